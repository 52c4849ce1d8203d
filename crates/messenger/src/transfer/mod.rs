//! Messages between storage and connection, the same at server and client: *read a packet, send it, sleep* and
//! *receive, collect to a packet, write it, sleep*.
//!
//! The size of a packet and the sleep are those of an [`End`](crate::tuning::End); the time that each part took is
//! counted in [`Spent`], since it says what a slow transfer waits for. The sleep stands between packets: none follows
//! the last.

mod receive;
mod send;
#[cfg(test)]
mod tests;

pub use receive::{ReceiveError, Receiver, receive};
pub use send::{SendError, send};

use crate::protocol::Sha256;
use ring::digest;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Where the time of a transfer went, of one end. The rest is arithmetic: TLS, hashing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// In reads from storage, or in writes to it.
    pub storage: Duration,
    /// In inter-packet delays.
    pub asleep: Duration,
    /// A sender: until the kernel took what was sent, encryption included. A receiver: until there was a whole frame.
    pub network: Duration,
}

impl std::ops::AddAssign for Spent {
    fn add_assign(&mut self, more: Self) {
        self.storage += more.storage;
        self.asleep += more.asleep;
        self.network += more.network;
    }
}

/// How far a transfer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the message that have been sent or received, those of earlier connections included.
    pub bytes: u64,
    /// Since this connection's first packet.
    pub spent: Spent,
}

/// Looks at a transfer after every packet, and may end it.
pub type Watch<'a> = &'a mut dyn FnMut(&Progress) -> ControlFlow<()>;

/// Bytes between two marks of a [`Hash`]: 256 marks of some 200 bytes for 4 GiB.
const MARK: u64 = 16 << 20;

/// SHA-256 in flight. It remembers where it was every 16 MiB, so that a transfer that begins again some bytes back does not
/// read the whole prefix again.
#[derive(Clone)]
pub struct Hash {
    now: digest::Context,
    bytes: u64,
    /// After how many bytes, and the state then; ascending.
    marks: Vec<(u64, digest::Context)>,
}

impl Hash {
    /// Of nothing.
    #[must_use]
    pub fn new() -> Self {
        Self { now: digest::Context::new(&digest::SHA256), bytes: 0, marks: Vec::new() }
    }

    /// Of the next `bytes` bytes of `source`: of what an earlier connection carried.
    ///
    /// # Errors
    /// Of `source`; `UnexpectedEof` when it has less.
    pub fn of_prefix(source: &mut dyn Read, bytes: u64) -> io::Result<Self> {
        let mut hash = Self::new();
        hash.read(source, bytes)?;
        Ok(hash)
    }

    /// Makes it the sum of the first `bytes` bytes of `source`, and leaves `source` there. What it knows of them already is
    /// not read again.
    ///
    /// # Errors
    /// Of `source`; `UnexpectedEof` when it has less. What was read by then is known.
    pub fn move_to(&mut self, source: &mut (impl Read + Seek), bytes: u64) -> io::Result<()> {
        if self.bytes > bytes {
            self.marks.retain(|(at, _)| *at <= bytes);
            (self.bytes, self.now) =
                self.marks.last().cloned().unwrap_or_else(|| (0, digest::Context::new(&digest::SHA256)));
        }
        source.seek(SeekFrom::Start(self.bytes))?;
        self.read(source, bytes - self.bytes)
    }

    fn read(&mut self, source: &mut dyn Read, bytes: u64) -> io::Result<()> {
        let mut left = bytes;
        let mut buffer = vec![0; 64 << 10];
        while left > 0 {
            let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            match source.read(&mut buffer[..most]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    self.add(&buffer[..read]);
                    left -= read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Goes on with `bytes`.
    pub fn add(&mut self, bytes: &[u8]) {
        self.now.update(bytes);
        self.bytes += bytes.len() as u64;
        if self.bytes >= self.marks.last().map_or(0, |(at, _)| *at) + MARK {
            self.marks.push((self.bytes, self.now.clone()));
        }
    }

    /// Without what it remembers of where it was: a few hundred bytes.
    #[must_use]
    pub fn without_marks(self) -> Self {
        Self { marks: Vec::new(), ..self }
    }

    /// Of how many bytes it is.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The sum.
    #[must_use]
    pub fn finish(self) -> Sha256 {
        self.now.finish().as_ref().try_into().expect("SHA-256 has 32 bytes")
    }
}

impl Default for Hash {
    fn default() -> Self {
        Self::new()
    }
}

/// Does `work` and adds how long it took to `sum`.
fn timed<T>(sum: &mut Duration, work: impl FnOnce() -> T) -> T {
    let since = Instant::now();
    let result = work();
    *sum += since.elapsed();
    result
}
