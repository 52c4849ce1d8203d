//! The second device of an interface whose losses are repaired here: bare acknowledgments of its stations come by it, and
//! what we write back goes on as if the interface had just received it.
//!
//! ```text
//! lan0, tc ingress -- program: bare acknowledgment, unmarked --> TAP -> Snoop -> TAP, tc ingress -- program: mark -->
//!         '--<------- program: marked: mark off, go on -------<------------------------------------------------'
//! ```
//!
//! So routes, firewalls, bridges and connection tracking see it come in by the interface that it came by.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use lasthop_core::units::Time;

use super::DatapathError;
use super::divert::Diversion;
use super::tap::Tap;
use crate::attach::Attachment;
use crate::config::AttachMode;
use crate::interface::InterfaceName;
use crate::netlink::Socket;
use crate::program::{LinkLayer, LoadError, Program};
use crate::qdisc::secret;

/// See the module.
pub struct Answers {
    tap: Tap,
    /// From the interface to us, and back.
    diversions: [Diversion; 2],
    mark: u32,
    _back: Attachment,
}

impl Answers {
    /// Of the interface `name`; nothing is caught before the first [`Self::beat`].
    ///
    /// # Errors
    /// Says what is missing; nothing is left behind.
    pub fn new(
        route: &mut Socket,
        name: &InterfaceName,
        (ifindex, layer): (u32, LinkLayer),
        mtu: u32,
        program: &Program,
    ) -> Result<Self, DatapathError> {
        let tap = Tap::new(route, layer, mtu).map_err(|source| DatapathError::Tap { name: name.clone(), source })?;
        let [back, nothing] = program.return_fds();
        let attached = Attachment::new(tap.name(), tap.ifindex(), AttachMode::Auto, back, nothing);
        let attached = attached.map_err(|source| DatapathError::Return { name: name.clone(), source })?;
        // Zero is what packets have that nobody has marked.
        let mark = secret() as u32 | 1;
        let diversion = |from, into| -> Result<Diversion, LoadError> {
            Ok(Diversion::new(program.catches()?, from, into, u64::from(mark)))
        };
        Ok(Self {
            diversions: [diversion(ifindex, tap.ifindex())?, diversion(tap.ifindex(), ifindex)?],
            mark,
            tap,
            _back: attached,
        })
    }

    /// What the packets that we write have when they come in.
    pub const fn mark(&self) -> u32 {
        self.mark
    }

    /// We are alive now.
    ///
    /// # Errors
    /// When the map cannot be written.
    pub fn beat(&self, now: Time) -> Result<(), libbpf_rs::Error> {
        // The return path first: what is caught must find it.
        self.diversions.iter().rev().try_for_each(|diversion| diversion.beat(now))
    }

    /// Acknowledgments go their own way from now on; those that are here can still go back.
    pub fn end(&self) {
        self.diversions[0].end();
    }

    /// The next one, or `None` when there is none now.
    ///
    /// # Errors
    /// When the device is gone.
    pub fn read(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            match self.tap.read(into)? {
                Some(length) if self.tap.is_its_own(&into[..length]) => {}
                other => return Ok(other),
            }
        }
    }

    /// Lets one go on; whether it could.
    pub fn release(&self, frame: &[u8]) -> bool {
        self.tap.write(frame).is_ok()
    }
}

impl AsFd for Answers {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tap.as_fd()
    }
}
