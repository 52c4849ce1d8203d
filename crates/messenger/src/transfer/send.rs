//! Read a packet from storage, send it, sleep.

use super::{Hash, Progress, Spent, Watch, timed};
use crate::channel::{Channel, ChannelError};
use crate::tuning::End;
use std::io::{self, Read};
use std::ops::Range;
use std::thread;

/// Why sending ended early.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The connection.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// The sender's storage.
    #[error("cannot read what is to be sent")]
    Storage(#[source] io::Error),
    /// There is less to read than there was.
    #[error("what is to be sent has become shorter")]
    Shorter,
    /// The receiver said something: it does not want the rest. To be received from the channel.
    #[error("the receiver said something before everything was sent")]
    Interrupted,
    /// The watcher ended it.
    #[error("stopped")]
    Stopped,
}

/// Sends the bytes `range` of a message, which `source` gives from `range.start` on, in packets as `end` says. They are
/// added to `hash` on the way, so that slow storage is read once.
///
/// # Errors
/// [`SendError`].
pub fn send(
    channel: &mut Channel,
    source: &mut dyn Read,
    range: Range<u64>,
    end: &End,
    mut hash: Option<&mut Hash>,
    watch: Watch<'_>,
) -> Result<Spent, SendError> {
    let (mut at, mut spent) = (range.start, Spent::default());
    while at < range.end {
        if channel.has_incoming()? {
            return Err(SendError::Interrupted);
        }
        let most = end.packet.bytes().min(usize::try_from(range.end - at).unwrap_or(usize::MAX));
        let (mut storage, mut all) = (spent.storage, spent.network);
        let sent =
            timed(&mut all, || channel.send_packet(at, most, |packet| timed(&mut storage, || fill(source, packet))));
        spent.network = all.saturating_sub(storage - spent.storage);
        spent.storage = storage;
        let bytes = sent.map_err(SendError::Storage)??;
        if bytes.len() < most {
            return Err(SendError::Shorter);
        }
        if let Some(hash) = &mut hash {
            hash.add(bytes);
        }
        at += bytes.len() as u64;
        if watch(&Progress { bytes: at, spent }).is_break() {
            return Err(SendError::Stopped);
        }
        if at < range.end && !end.delay.duration().is_zero() {
            timed(&mut spent.asleep, || thread::sleep(end.delay.duration()));
        }
    }
    Ok(spent)
}

/// Fills `packet`, or as much of it as there is: one read where storage gives what it is asked for.
fn fill(source: &mut dyn Read, packet: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < packet.len() {
        match source.read(&mut packet[filled..]) {
            Ok(0) => break,
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
