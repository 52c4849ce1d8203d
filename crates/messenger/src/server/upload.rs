//! Messages coming in.

use super::event::{Event, count};
use super::session::{End, Session, bad_frame};
use crate::channel::{ChannelError, Incoming};
use crate::protocol::{MessageId, Refusal, Reply, Request};
use crate::store::{Failure, Offer, Offered, StoreError, Upload};
use crate::transfer::{self, Hash, ReceiveError, Receiver};
use crate::tuning;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a connection that has the same upload may take to go.
const TAKE_OVER: Duration = Duration::from_secs(5);
/// After a refusal, packets in flight are thrown away for so long.
const DISCARD: Duration = Duration::from_secs(10);
/// After so many bytes it is looked whether the disk has room left.
const LOOK: u64 = 16 << 20;

/// Answers an offer, and takes the message if it is wanted.
pub fn take(session: &mut Session<'_>, offer: &Offer, wish: &tuning::End) -> Result<(), End> {
    let shared = session.shared;
    if let Err(seconds) = shared.pace.take(session.id, Instant::now()) {
        return session.refuse(&Refusal::TooManyMessages { seconds }.into());
    }
    let key = (session.id, offer.transfer);
    let Some(_claim) = shared.claims.take(key, session.ticket.number, &shared.gate, TAKE_OVER) else {
        return session.refuse(&Refusal::Busy { seconds: 5 }.into());
    };
    let is_active = |account, transfer| shared.claims.has(account, transfer) && (account, transfer) != key;
    match shared.store.offer(offer, &shared.settings.bounds, &is_active) {
        Ok(Offered::Kept(message)) => {
            count(&shared.counting.kept_before);
            Ok(session.channel.send(&Reply::Kept { message })?)
        }
        Ok(Offered::Upload(upload)) => {
            let body = upload.body();
            let mut sum = None;
            let outcome = receive(session, offer, *upload, wish, &mut sum);
            shared.store.leave(body, sum, Instant::now());
            outcome
        }
        Err(failure) => session.refuse(&failure),
    }
}

/// Takes the packets, and what follows them. `sum` becomes that of what is there when the connection is lost.
fn receive(
    session: &mut Session<'_>,
    offer: &Offer,
    mut upload: Upload,
    wish: &tuning::End,
    sum: &mut Option<Hash>,
) -> Result<(), End> {
    let shared = session.shared;
    let end = shared.settings.within(wish);
    let (offset, bytes) = (upload.offset(), upload.bytes());
    session.channel.prepare_receiver(&end)?;
    session.channel.send(&Reply::Continue { offset })?;
    let hash = match upload.hash() {
        Ok(hash) => hash,
        Err(error) => return give_up(session, &error.into()),
    };
    let mut receiver = Receiver::new(upload, &end, offset, bytes, hash);
    let (mut look_at, mut full) = (offset + LOOK, false);
    let mut watch = |progress: &transfer::Progress| {
        if progress.bytes >= look_at {
            look_at = progress.bytes + LOOK;
            full = shared.store.free_bytes().is_ok_and(|free| free < shared.settings.bounds.free_bytes);
        }
        if full || shared.is_stopping() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let received = transfer::receive::<Request, _>(&mut session.channel, &mut receiver, &mut watch);
    let at = (receiver.progress().bytes, bytes);
    let sha256 = match received {
        Ok(Request::Finish { sha256 }) if at.0 == bytes => sha256,
        Ok(Request::Finish { .. }) => return Err(bad_frame(format!("`Finish` after {} of {bytes} bytes", at.0))),
        Ok(_) => return Err(bad_frame("a request among packets")),
        Err(ReceiveError::Channel(error)) => {
            let (upload, hash) = receiver.give_up();
            *sum = upload.is_on_disk().then_some(hash);
            session.tell_cut(at, &error);
            return Err(error.into());
        }
        Err(ReceiveError::Storage(cause)) => {
            return give_up(session, &StoreError::io(Path::new("bodies"), cause).into());
        }
        Err(ReceiveError::Stopped) if full => return give_up(session, &StoreError::DiskFull.into()),
        Err(ReceiveError::Stopped) => {
            session.tell_cut(at, "the server is being stopped");
            return Err(End::Word(Refusal::Stopping));
        }
        Err(error) => return Err(bad_frame(error.to_string())),
    };
    let kept = match receiver.finish() {
        Ok((upload, computed, _)) if computed == sha256 => {
            shared.store.finish(&upload, &session.account, sha256, shared.settings.seconds_since_1970())
        }
        Ok((upload, ..)) => shared.store.forget(&upload).and(Err(Refusal::Mismatch.into())),
        Err(_) => Err(StoreError::DiskFull.into()),
    };
    answer(session, offer, kept)
}

fn answer(session: &mut Session<'_>, offer: &Offer, kept: Result<MessageId, Failure>) -> Result<(), End> {
    match kept {
        Ok(message) => {
            count(&session.shared.counting.kept);
            let (from, to) = (session.account.clone(), offer.to.clone());
            session.shared.tell(&Event::Kept { message, from, to, bytes: offer.bytes });
            Ok(session.channel.send(&Reply::Kept { message })?)
        }
        Err(failure) => session.refuse(&failure),
    }
}

/// Refuses in the middle of an upload, and reads what is still in flight up to `Finish`, so that the reason arrives.
fn give_up(session: &mut Session<'_>, failure: &Failure) -> Result<(), End> {
    session.refuse(failure)?;
    let since = Instant::now();
    while since.elapsed() < DISCARD {
        match session.channel.receive() {
            Ok(Incoming::Packet { .. }) => {}
            Ok(Incoming::Control(Request::Finish { .. })) => return Ok(()),
            Ok(Incoming::Control(_)) => return Err(bad_frame("a request among packets")),
            Err(error) => return Err(error.into()),
        }
    }
    Err(End::Channel(ChannelError::Closed))
}
