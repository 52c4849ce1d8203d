//! When bulk data begin to pass after a pause.

use std::os::fd::BorrowedFd;

use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder};

/// The ring by which the data path wakes whoever waits when the first large packet after a pause passes.
#[derive(Debug)]
pub struct Wakes(RingBuffer<'static>);

impl Wakes {
    pub(super) fn new(map: &MapHandle) -> libbpf_rs::Result<Self> {
        let mut builder = RingBufferBuilder::new();
        builder.add(map, |_| 0)?;
        Ok(Self(builder.build()?))
    }

    /// Can be read from once such a packet has passed.
    #[must_use]
    pub fn waits_for(&self) -> BorrowedFd<'_> {
        // SAFETY: the ring owns this descriptor, and lives as long as `self`, whose lifetime the result carries.
        unsafe { BorrowedFd::borrow_raw(self.0.epoll_fd()) }
    }

    /// Whether one has passed since this was last asked.
    #[must_use]
    pub fn take(&self) -> bool {
        self.0.consume_raw() > 0
    }
}
