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
use std::io::{self, Read};
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

/// SHA-256 on its way.
#[derive(Clone)]
pub struct Hash(digest::Context);

impl Hash {
    /// Of nothing.
    #[must_use]
    pub fn new() -> Self {
        Self(digest::Context::new(&digest::SHA256))
    }

    /// Of the next `bytes` bytes of `source`: of what an earlier connection carried.
    ///
    /// # Errors
    /// Of `source`; `UnexpectedEof` when it has less.
    pub fn of_prefix(source: &mut dyn Read, bytes: u64) -> io::Result<Self> {
        let (mut hash, mut left) = (Self::new(), bytes);
        let mut buffer = vec![0; 64 << 10];
        while left > 0 {
            let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            match source.read(&mut buffer[..most]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    hash.add(&buffer[..read]);
                    left -= read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(hash)
    }

    /// Goes on with `bytes`.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The sum.
    #[must_use]
    pub fn finish(self) -> Sha256 {
        self.0.finish().as_ref().try_into().expect("SHA-256 has 32 bytes")
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
