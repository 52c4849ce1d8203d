//! Receive, collect to a packet, write it, sleep.

use super::{Hash, Progress, Spent, Watch, timed};
use crate::channel::{Channel, ChannelError, Incoming};
use crate::protocol::Sha256;
use crate::tuning::End;
use serde::de::DeserializeOwned;
use std::io::{self, Write};
use std::thread;

/// Why receiving ended early.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// The connection.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// The receiver's storage.
    #[error("cannot write what was received")]
    Storage(#[source] io::Error),
    /// A packet that does not belong at the offset where the one before it ended.
    #[error("a packet for offset {came} came where {expected} was expected")]
    OutOfPlace {
        /// Where the message goes on, in bytes.
        expected: u64,
        /// Where the packet belongs, in bytes.
        came: u64,
    },
    /// More than the message has.
    #[error("more bytes came than the message has")]
    TooMuch,
    /// The watcher ended it.
    #[error("stopped")]
    Stopped,
}

/// The receiving end of one message, on one connection.
pub struct Receiver<W: Write> {
    sink: W,
    end: End,
    /// Received and not yet written: less than a packet between calls.
    collected: Vec<u8>,
    /// How much of the message has been received.
    received: u64,
    /// Length of the message.
    length: u64,
    hash: Hash,
    spent: Spent,
    /// A packet has been written and the sleep that follows it is due before the next.
    sleeps: bool,
}

impl<W: Write> Receiver<W> {
    /// Goes on at `offset` of a message of `length` bytes, writing to `sink`, which stands there, in packets as `end`
    /// says; `hash` is that of what is before. Takes memory for one packet.
    pub fn new(sink: W, end: &End, offset: u64, length: u64, hash: Hash) -> Self {
        let collected = Vec::with_capacity(end.packet.bytes());
        Self { sink, end: *end, collected, received: offset, length, hash, spent: Spent::default(), sleeps: false }
    }

    /// How far it is.
    #[must_use]
    pub fn progress(&self) -> Progress {
        Progress { bytes: self.received, spent: self.spent }
    }

    /// Where it writes to.
    pub fn sink(&self) -> &W {
        &self.sink
    }

    /// Takes a packet as it came.
    ///
    /// # Errors
    /// [`ReceiveError::OutOfPlace`], [`ReceiveError::TooMuch`], [`ReceiveError::Storage`].
    pub fn packet(&mut self, offset: u64, bytes: &[u8]) -> Result<(), ReceiveError> {
        if offset != self.received {
            return Err(ReceiveError::OutOfPlace { expected: self.received, came: offset });
        }
        if bytes.len() as u64 > self.length - self.received {
            return Err(ReceiveError::TooMuch);
        }
        self.hash.add(bytes);
        self.received += bytes.len() as u64;
        let size = self.end.packet.bytes();
        let mut rest = bytes;
        while self.collected.len() + rest.len() >= size {
            let (now, later) = rest.split_at(size - self.collected.len());
            rest = later;
            if self.collected.is_empty() {
                self.write(now)?;
                continue;
            }
            let mut whole = std::mem::take(&mut self.collected);
            whole.extend_from_slice(now);
            let written = self.write(&whole);
            whole.clear();
            self.collected = whole;
            written?;
        }
        self.collected.extend_from_slice(rest);
        Ok(())
    }

    fn write(&mut self, packet: &[u8]) -> Result<(), ReceiveError> {
        if std::mem::replace(&mut self.sleeps, true) && !self.end.delay.duration().is_zero() {
            timed(&mut self.spent.asleep, || thread::sleep(self.end.delay.duration()));
        }
        let Self { sink, spent, .. } = self;
        timed(&mut spent.storage, || sink.write_all(packet)).map_err(ReceiveError::Storage)
    }

    /// Writes what has been collected, though it is less than a packet: at the end, and when the connection is lost.
    ///
    /// # Errors
    /// [`ReceiveError::Storage`].
    pub fn flush(&mut self) -> Result<(), ReceiveError> {
        let mut rest = std::mem::take(&mut self.collected);
        let written = if rest.is_empty() { Ok(()) } else { self.write(&rest) };
        rest.clear();
        self.collected = rest;
        written?;
        let Self { sink, spent, .. } = self;
        timed(&mut spent.storage, || sink.flush()).map_err(ReceiveError::Storage)
    }

    /// Ends it, everything written (and not more than that: `sync_all` is the caller's). Whether the message is whole
    /// is for the caller to see: by [`Progress::bytes`] and the sum.
    ///
    /// # Errors
    /// [`ReceiveError::Storage`].
    pub fn finish(mut self) -> Result<(W, Sha256, Progress), ReceiveError> {
        self.flush()?;
        let progress = self.progress();
        Ok((self.sink, self.hash.finish(), progress))
    }

    /// Gives up: what was received, [`flush`](Self::flush)ed or not, and its sum, to go on with later.
    #[must_use]
    pub fn give_up(self) -> (W, Hash) {
        (self.sink, self.hash)
    }
}

/// Receives packets until a control frame comes, and returns that: `Finish` or `End` when all goes well. What was
/// received before an error is written first, as far as storage takes it, so that a resumed transfer goes on there.
///
/// # Errors
/// [`ReceiveError`].
pub fn receive<T: DeserializeOwned, W: Write>(
    channel: &mut Channel,
    receiver: &mut Receiver<W>,
    watch: Watch<'_>,
) -> Result<T, ReceiveError> {
    let ended = packets(channel, receiver, watch);
    if !matches!(ended, Err(ReceiveError::Storage(_))) {
        receiver.flush()?;
    }
    ended
}

fn packets<T: DeserializeOwned, W: Write>(
    channel: &mut Channel,
    receiver: &mut Receiver<W>,
    watch: Watch<'_>,
) -> Result<T, ReceiveError> {
    loop {
        match timed(&mut receiver.spent.network, || channel.receive::<T>())? {
            Incoming::Control(frame) => return Ok(frame),
            Incoming::Packet { offset, bytes } => receiver.packet(offset, bytes)?,
        }
        if watch(&receiver.progress()).is_break() {
            return Err(ReceiveError::Stopped);
        }
    }
}
