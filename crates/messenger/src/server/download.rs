//! Messages going out.

use super::event::{Event, count};
use super::measure::interrupted;
use super::session::{End, Session, bad_frame};
use crate::protocol::{MessageId, Refusal, Reply};
use crate::store::Stored;
use crate::transfer::{self, Hash, SendError};
use crate::tuning;
use std::ops::ControlFlow;

/// Sends a message from `offset` on, against its SHA-256.
pub fn give(session: &mut Session<'_>, message: MessageId, offset: u64, wish: &tuning::End) -> Result<(), End> {
    let shared = session.shared;
    let Stored { mut body, bytes, sha256 } = match shared.store.fetch(session.id, message) {
        Ok(stored) => stored,
        Err(failure) if failure.refusal() == Refusal::Damaged => {
            return damaged(session, message, "its body is gone or has another length");
        }
        Err(failure) => return session.refuse(&failure),
    };
    if offset > bytes {
        return Err(bad_frame(format!("byte {offset} of a message of {bytes}")));
    }
    let end = shared.settings.within(wish);
    session.channel.prepare_sender(&end)?;
    session.channel.send(&Reply::Start { bytes })?;
    let Ok(mut hash) = Hash::of_prefix(&mut body, offset) else {
        return damaged(session, message, "its body cannot be read");
    };
    let mut at = offset;
    let mut watch = |progress: &transfer::Progress| {
        at = progress.bytes;
        if shared.is_stopping() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    match transfer::send(&mut session.channel, &mut body, offset..bytes, &end, Some(&mut hash), &mut watch) {
        Ok(_) => {}
        Err(SendError::Storage(_) | SendError::Shorter) => {
            return damaged(session, message, "its body cannot be read");
        }
        Err(SendError::Channel(error)) => {
            session.tell_cut((at, bytes), &error);
            return Err(error.into());
        }
        Err(SendError::Interrupted) => {
            session.tell_cut((at, bytes), "the recipient hung up");
            return interrupted(session);
        }
        Err(SendError::Stopped) => {
            session.tell_cut((at, bytes), "the server is being stopped");
            return Err(End::Word(Refusal::Stopping));
        }
    }
    if hash.finish() != sha256 {
        return damaged(session, message, "its SHA-256 is another");
    }
    count(&shared.counting.sent);
    shared.tell(&Event::Sent { message, to: session.account.clone(), bytes: bytes - offset });
    let tcp = session.channel.figures_when_sent(shared.settings.idle)?;
    Ok(session.channel.send(&Reply::End { sha256, tcp })?)
}

/// Says so to the client, and to whoever runs the server.
fn damaged(session: &mut Session<'_>, message: MessageId, how: &str) -> Result<(), End> {
    session.shared.tell(&Event::Damaged { what: format!("message {message}: {how}") });
    session.refuse(&Refusal::Damaged.into())
}
