//! Getting the two programs onto the interfaces, keeping them there, and taking them off.
//!
//! tcx (Linux 6.6): a link per direction, held by this process, gone with it. Below: clsact filters, which outlive
//! the process; there the stale heartbeat is the fail-open, and the next start removes what it finds of ours.
//! Filters of others are never touched: ours are known by handle, priority and the program's name.

mod claim;
mod clsact;
mod tcx;

use std::io;
use std::os::fd::BorrowedFd;

use crate::config::AttachMode;
use crate::interface::InterfaceName;

pub use claim::Claim;
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

/// How a program got onto an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// tcx links.
    Tcx,
    /// Filters of a clsact qdisc.
    Clsact,
}

impl Mechanism {
    /// As messages name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcx => "tcx",
            Self::Clsact => "clsact",
        }
    }
}

/// Why an interface could not be hooked.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// Someone else controls it.
    #[error("{0} already has a controller; stop it, or choose another interface (`lasthop status` shows it)")]
    Taken(InterfaceName),
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
