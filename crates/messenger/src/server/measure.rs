//! Packets of no message, for measuring a path without storage.

use super::session::{End, Session, bad_frame};
use crate::protocol::{Refusal, Reply, Request};
use crate::transfer::{self, Hash, ReceiveError, Receiver, SendError};
use crate::tuning;
use std::io;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// What a `Sink` may last longer than a `Source`: the client ends it, by its own clock, and a full buffer is behind it.
const GRACE: Duration = Duration::from_secs(10);

/// Sends packets for `millis`, at most `bytes`.
pub fn source(session: &mut Session<'_>, millis: u32, bytes: u64, wish: &tuning::End) -> Result<(), End> {
    let settings = &session.shared.settings;
    let (end, bytes) = (settings.within(wish), bytes.min(settings.measured_bytes));
    let longest = Duration::from_millis(millis.into()).min(settings.measurement);
    let (since, shared) = (Instant::now(), session.shared);
    let mut watch = |_: &transfer::Progress| match since.elapsed() >= longest || shared.is_stopping() {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    session.channel.prepare_sender(&end)?;
    if longest > Duration::ZERO {
        let sent = transfer::send(&mut session.channel, &mut io::repeat(0x5a), 0..bytes, &end, None, &mut watch);
        match sent {
            Ok(_) | Err(SendError::Stopped) => {}
            Err(SendError::Channel(error)) => return Err(error.into()),
            Err(SendError::Interrupted) => return interrupted(session),
            Err(SendError::Storage(_) | SendError::Shorter) => return Err(bad_frame("nothing to send")),
        }
    }
    let tcp = session.channel.figures_when_sent(settings.idle)?;
    Ok(session.channel.send(&Reply::Sent { tcp })?)
}

/// The client said something while packets were on their way to it: nothing that it says belongs there.
pub fn interrupted(session: &mut Session<'_>) -> Result<(), End> {
    session.channel.receive::<Request>()?;
    Err(bad_frame("a frame while packets are sent"))
}

/// Takes packets until `Finish`.
pub fn sink(session: &mut Session<'_>, wish: &tuning::End) -> Result<(), End> {
    let shared = session.shared;
    let (end, most) = (shared.settings.within(wish), shared.settings.measured_bytes);
    session.channel.prepare_receiver(&end)?;
    let since = Instant::now();
    let mut first = None;
    let mut watch = |_: &transfer::Progress| {
        first.get_or_insert_with(Instant::now);
        let is_over = since.elapsed() >= shared.settings.measurement + GRACE || shared.is_stopping();
        if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let mut receiver = Receiver::new(io::sink(), &end, 0, most, Hash::new());
    match transfer::receive::<Request, _>(&mut session.channel, &mut receiver, &mut watch) {
        Ok(Request::Finish { .. }) => {}
        Ok(_) => return Err(bad_frame("a request among packets")),
        Err(ReceiveError::Channel(error)) => return Err(error.into()),
        Err(ReceiveError::Stopped) if shared.is_stopping() => return Err(End::Word(Refusal::Stopping)),
        Err(ReceiveError::Stopped) => return Err(bad_frame("packets for longer than a measurement lasts")),
        Err(error) => return Err(bad_frame(error.to_string())),
    }
    let bytes = receiver.progress().bytes;
    let micros = first.map_or(0, |first| u64::try_from(first.elapsed().as_micros()).unwrap_or(u64::MAX));
    Ok(session.channel.send(&Reply::Taken { bytes, micros })?)
}
