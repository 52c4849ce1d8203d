//! One TAP: an Ethernet interface of a host whose other end is the engine.
//!
//! Non-persistent (gone with the descriptor). Its queue holds [`QUEUE`] frames because the usual 1,000 lose silently when the engine
//! is late.
//!
//! Where the air carries aggregates, the TAP is a card with offloads: the kernel hands over up to 64 kB of a TCP connection at a time,
//! and takes them as one frame, which is what cards do with the frames of an aggregate (GRO). It has a queue for each class that
//! `skb->priority` names, as Linux's wireless stack reads it. Elsewhere no frame is longer than the MTU.

use crate::error::Error;
use crate::sys;
use lasthop_core::wire::offload::HEADER;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

/// Frames between the kernel and the engine.
pub const QUEUE: u32 = 10_000;
/// Longest that the kernel hands over: a header, and a frame of the longest IP packet.
pub const LONGEST: usize = HEADER + 14 + 65_535;

/// The engine's end of an interface.
#[derive(Debug)]
pub struct Tap {
    /// One, or [`sys::QUEUES`]: what names no class first, then each class.
    queues: Vec<File>,
    counts: Option<sys::Counts>,
}

impl Tap {
    /// Makes the interface `name` in the namespace of the calling thread. `aggregates`: it is a card with offloads and a queue for each
    /// class.
    ///
    /// # Errors
    /// [`Error::NoTun`], [`Error::NeedsRoot`] or the failed system call.
    pub fn create(name: &str, aggregates: bool) -> Result<Self, Error> {
        let queues = if aggregates { sys::QUEUES } else { 1 };
        let queues = (0..queues).map(|_| open(name, aggregates)).collect::<Result<Vec<_>, _>>()?;
        let counts = queues.first().filter(|_| aggregates).map(sys::steer).transpose();
        let counts = counts.map_err(Error::system(format!("cannot make the TAP {name} tell priorities, by BPF")))?;
        Ok(Self { queues, counts })
    }

    /// One of its queues, to be waited for.
    #[must_use]
    pub fn queue(&self, queue: usize) -> BorrowedFd<'_> {
        self.queues[queue].as_fd()
    }

    /// How many queues it has.
    #[must_use]
    pub fn queue_count(&self) -> usize {
        self.queues.len()
    }

    /// Packets that the host's kernel gave to `queue` so far, which costs no system call; `None`: nobody counts.
    #[must_use]
    pub fn given(&self, queue: usize) -> Option<u64> {
        self.counts.as_ref().map(|counts| counts.of(queue))
    }

    /// The next frame that the host's kernel sent, behind its header, or `None` when there is none now.
    ///
    /// # Errors
    /// The failed system call.
    pub fn read(&self, queue: usize, into: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            match rustix::io::read(&self.queues[queue], &mut *into) {
                Ok(len) => return Ok(Some(len)),
                Err(rustix::io::Errno::AGAIN) => return Ok(None),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Hands a frame, in parts and behind its header, to the host's kernel, which deals with it before this call returns.
    ///
    /// # Errors
    /// The failed system call; EIO while the interface is down.
    pub fn write(&self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        rustix::io::retry_on_intr(|| rustix::io::writev(&self.queues[0], parts)).map(drop).map_err(Into::into)
    }
}

fn open(name: &str, aggregates: bool) -> Result<File, Error> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open("/dev/net/tun")
        .map_err(|source| match source.kind() {
            io::ErrorKind::PermissionDenied => Error::NeedsRoot(source),
            _ => Error::NoTun(source),
        })?;
    sys::make_tap(&file, name, aggregates).map_err(|source| match source.kind() {
        io::ErrorKind::PermissionDenied => Error::NeedsRoot(source),
        _ => Error::system(format!("cannot make the TAP {name}"))(source),
    })?;
    Ok(file)
}

/// Frames that the calling thread's namespace lost on their way to the engine, from its `/proc/net/dev`.
///
/// # Errors
/// When the file cannot be read.
pub fn dropped_here(interface: &str) -> io::Result<u64> {
    // Not /proc/net: that is the namespace of the process's first thread.
    Ok(dropped_in(&std::fs::read_to_string("/proc/thread-self/net/dev")?, interface))
}

/// Receive (4th column) and transmit (12th) drops of one interface.
fn dropped_in(dev: &str, interface: &str) -> u64 {
    dev.lines()
        .filter_map(|line| line.trim_start().strip_prefix(interface)?.strip_prefix(':'))
        .flat_map(|numbers| numbers.split_ascii_whitespace().enumerate().filter(|(column, _)| matches!(column, 3 | 11)))
        .filter_map(|(_, number)| number.parse::<u64>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_read_from_the_right_line_and_columns() {
        let dev = "Inter-|   Receive  |  Transmit\n face |bytes ...\n    lo: 1 1 1 9 1 1 1 1 1 1 1 9 1 1 1 1\n  \
                   eth0: 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25\n";
        assert_eq!(dropped_in(dev, "eth0"), 13 + 21);
        assert_eq!(dropped_in(dev, "wan0"), 0);
    }
}
