//! Getting the two programs onto the interfaces, keeping them there, and taking them off.
//!
//! tcx (Linux 6.6): a link per direction, held by this process, gone with it. Below: clsact filters, which outlive
//! the process; there the stale heartbeat is the fail-open, and the next start removes what it finds of ours.
//! Filters of others are never touched: ours are known by handle, priority and the program's name.

mod claim;
mod clsact;
mod tcx;

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;

use lasthop_status::Mechanism;

use crate::config::AttachMode;
use crate::interface::InterfaceName;

pub use claim::{Claim, LOCKS, make_folder};
pub use clsact::{Filter, filters, remove_leftovers};
pub use tcx::{Attached, attached};

/// What the names of our programs begin with, as the kernel lists them.
pub const PROGRAM_PREFIX: &str = "lasthop_";

/// Where packets are seen, from the interface's point of view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Packets coming in: what stations send.
    Ingress,
    /// Packets going out: what stations receive.
    Egress,
}

/// Why an interface could not be hooked.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// Someone else controls it.
    #[error(
        "{name} already has a controller{}; stop it, let this one take over (--take-over), or choose another interface",
        by.map(|pid| format!(", process {pid}")).unwrap_or_default()
    )]
    Taken {
        /// The interface.
        name: InterfaceName,
        /// Its process, if it says so.
        by: Option<u32>,
    },
    /// The lock by which controllers know of each other cannot be had.
    #[error("{name}: no lock can be held in {}; it has to be a folder of root's, or of this user's, that nobody else may write to", folder.display())]
    Lock {
        /// The interface.
        name: InterfaceName,
        /// Where the locks are.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// tcx refused.
    #[error("{name}: tcx refused the program; try `attach = \"clsact\"`")]
    Tcx {
        /// The interface.
        name: InterfaceName,
        /// The kernel's answer.
        source: io::Error,
    },
    /// clsact refused.
    #[error("{name}: {}", clsact_refused(source))]
    Clsact {
        /// The interface.
        name: InterfaceName,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// What a refused clsact filter means, and what to do.
fn clsact_refused(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::EINVAL) => {
            "the kernel has no clsact filters of BPF; use one with CONFIG_NET_SCH_INGRESS and CONFIG_NET_CLS_BPF (modprobe sch_ingress \
             cls_bpf), or Linux 6.6 or later, which needs neither"
        }
        Some(libc::EPERM | libc::EACCES) => "setting a clsact filter was refused; run as root, or with CAP_NET_ADMIN",
        Some(libc::ENODEV) => "it went away while it was hooked",
        _ => "the kernel refused a clsact filter",
    }
}

enum Hooks {
    Tcx([tcx::Link; 2]),
    Clsact(clsact::Filters),
}

/// Both programs on one interface. Dropping it takes them off.
pub struct Attachment {
    ifindex: u32,
    hooks: Hooks,
}

impl Attachment {
    /// Attaches `ingress` and `egress` to the interface `name` with number `ifindex`.
    ///
    /// # Errors
    /// When neither mechanism that `mode` allows works.
    pub fn new(
        name: &InterfaceName,
        ifindex: u32,
        mode: AttachMode,
        ingress: BorrowedFd<'_>,
        egress: BorrowedFd<'_>,
    ) -> Result<Self, AttachError> {
        let tcx = || -> io::Result<Hooks> {
            Ok(Hooks::Tcx([
                tcx::Link::new(ingress, ifindex, Side::Ingress)?,
                tcx::Link::new(egress, ifindex, Side::Egress)?,
            ]))
        };
        let clsact = || {
            clsact::Filters::new(ifindex, ingress, egress)
                .map(Hooks::Clsact)
                .map_err(|source| AttachError::Clsact { name: name.clone(), source })
        };
        let hooks = match mode {
            AttachMode::Tcx => tcx().map_err(|source| AttachError::Tcx { name: name.clone(), source })?,
            AttachMode::Clsact => clsact()?,
            AttachMode::Auto => match tcx() {
                Ok(hooks) => hooks,
                Err(_) => clsact()?,
            },
        };
        Ok(Self { ifindex, hooks })
    }

    /// Puts both programs in the place of those of a controller that hands over: `links` are its tcx links, ingress first, or none
    /// where it has filters.
    ///
    /// # Errors
    /// When the kernel refuses, or the links are of another interface.
    pub fn inherit(
        ifindex: u32,
        links: Vec<OwnedFd>,
        ingress: BorrowedFd<'_>,
        egress: BorrowedFd<'_>,
    ) -> io::Result<Self> {
        let hooks = match <[OwnedFd; 2]>::try_from(links) {
            Ok([first, second]) => {
                Hooks::Tcx([tcx::Link::inherit(first, ingress, ifindex)?, tcx::Link::inherit(second, egress, ifindex)?])
            }
            Err(_) => Hooks::Clsact(clsact::Filters::new(ifindex, ingress, egress)?),
        };
        Ok(Self { ifindex, hooks })
    }

    /// The tcx links, ingress first; none of filters.
    #[must_use]
    pub fn links(&self) -> Vec<BorrowedFd<'_>> {
        match &self.hooks {
            Hooks::Tcx(links) => links.iter().map(tcx::Link::as_fd).collect(),
            Hooks::Clsact(_) => Vec::new(),
        }
    }

    /// Leaves everything on the interface, for whoever has taken over.
    pub fn leave(self) {
        if let Hooks::Clsact(filters) = self.hooks {
            filters.leave();
        }
    }

    /// Number of the interface that the programs were attached to.
    #[must_use]
    pub const fn ifindex(&self) -> u32 {
        self.ifindex
    }

    /// How they are attached.
    #[must_use]
    pub const fn mechanism(&self) -> Mechanism {
        match self.hooks {
            Hooks::Tcx(_) => Mechanism::Tcx,
            Hooks::Clsact(_) => Mechanism::Clsact,
        }
    }

    /// Whether both programs are still where they were put.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        match &self.hooks {
            Hooks::Tcx(links) => links.iter().all(tcx::Link::is_attached),
            Hooks::Clsact(filters) => filters.are_attached(),
        }
    }
}
