//! Messages going out.

use super::event::{Event, count};
use super::measure::interrupted;
use super::session::{End, Session, bad_frame};
use crate::protocol::{MessageId, Refusal, Reply};
use crate::store::Stored;
use crate::transfer::{self, Hash, SendError};
use crate::tuning;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// After so many bytes of a prefix it is looked how long it takes.
const PIECE: u64 = 4 << 20;

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
    let Ok(mut hash) = prefix(&mut body, offset, shared.settings.idle / 4, &|| shared.is_stopping()) else {
        return damaged(session, message, "its body cannot be read");
    };
    let mut at = offset;
    let mut watch = |progress: &transfer::Progress| {
        at = progress.bytes;
        if shared.is_stopping() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    match transfer::send(&mut session.channel, &mut body, offset..bytes, &end, hash.as_mut(), &mut watch) {
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
    if hash.is_some_and(|hash| hash.finish() != sha256) {
        return damaged(session, message, "its SHA-256 is another");
    }
    count(&shared.counting.sent);
    shared.tell(&Event::Sent { message, to: session.account.clone(), bytes: bytes - offset });
    let tcp = session.channel.figures_when_sent(shared.settings.idle)?;
    Ok(session.channel.send(&Reply::End { sha256, tcp })?)
}

/// SHA-256 of what the recipient has already, with `body` standing behind it. `None` when reading that takes longer than
/// `longest`: the recipient would give up, come again, and never get on. It checks the whole by itself.
fn prefix(
    body: &mut (impl Read + Seek),
    offset: u64,
    longest: Duration,
    is_stopping: &dyn Fn() -> bool,
) -> io::Result<Option<Hash>> {
    let (since, mut hash) = (Instant::now(), Hash::new());
    while hash.bytes() < offset {
        if since.elapsed() >= longest || is_stopping() {
            body.seek(SeekFrom::Start(offset))?;
            return Ok(None);
        }
        let piece = offset.min(hash.bytes() + PIECE);
        hash.move_to(body, piece)?;
    }
    Ok(Some(hash))
}

/// Says so to the client, and to whoever runs the server.
fn damaged(session: &mut Session<'_>, message: MessageId, how: &str) -> Result<(), End> {
    session.shared.tell(&Event::Damaged { what: format!("message {message}: {how}") });
    session.refuse(&Refusal::Damaged.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn a_prefix_is_left_to_the_recipient_when_it_takes_too_long() {
        let mut body = Cursor::new(vec![7; 2 * PIECE as usize + 9]);
        let (offset, hour) = (PIECE + 5, Duration::from_secs(3600));
        let whole = Hash::of_prefix(&mut body.clone(), offset).unwrap().finish();
        assert_eq!(prefix(&mut body, offset, hour, &|| false).unwrap().unwrap().finish(), whole);
        assert_eq!(body.position(), offset);
        for (longest, stops) in [(Duration::ZERO, false), (hour, true)] {
            body.set_position(0);
            assert!(prefix(&mut body, offset, longest, &|| stops).unwrap().is_none());
            assert_eq!(body.position(), offset);
        }
        assert!(prefix(&mut body, 3 * PIECE, hour, &|| false).is_err(), "the body is shorter");
    }
}
