//! clsact filters for kernels without tcx.
//!
//! They outlive their process. Ours carry one handle and priority that nobody else picks by chance, and their program
//! has one of our names; both must match before anything is removed. The clsact qdisc goes when we (or a predecessor
//! whose filters we found) made it and nothing else is left on it.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use libbpf_sys as sys;

use super::Side;
use crate::log::log;
use crate::netlink::{self, Attributes, NLM_F_DUMP, Socket};

/// Handle of our filters: "la".
const HANDLE: u32 = 0x6c61;
/// Priority of our filters: after the usual small numbers, so that others see the packet as it came.
const PRIORITY: u32 = 0x6c61;
const SIDES: [Side; 2] = [Side::Ingress, Side::Egress];

/// For want of memory, or of room in a socket, a request fails once.
const TRIES: u32 = 3;

/// Both filters on one interface; removed when dropped.
pub(super) struct Filters {
    ifindex: u32,
    qdisc_is_ours: bool,
}

impl Filters {
    /// Filters of ours that are there already, a dead controller's or one's that hands over, are replaced, each in one step.
    pub(super) fn new(ifindex: u32, ingress: BorrowedFd<'_>, egress: BorrowedFd<'_>) -> io::Result<Self> {
        let found = SIDES.iter().any(|side| is_there(ifindex, *side));
        let made = create_qdisc(ifindex)?;
        let filters = Self { ifindex, qdisc_is_ours: made || found };
        attach(ifindex, Side::Ingress, ingress)?;
        attach(ifindex, Side::Egress, egress)?;
        Ok(filters)
    }

    /// Leaves them where they are, for whoever has taken over.
    pub(super) fn leave(self) {
        std::mem::forget(self);
    }

    fn take_off(&self) -> io::Result<()> {
        remove_filters(self.ifindex)?;
        if self.qdisc_is_ours { remove_empty_qdisc(self.ifindex) } else { Ok(()) }
    }

    pub(super) fn are_attached(&self) -> bool {
        SIDES.iter().all(|side| is_there(self.ifindex, *side))
    }
}

impl Drop for Filters {
    fn drop(&mut self) {
        // The interface may be gone, and its filters with it: then none are found.
        let mut outcome = self.take_off();
        for _again in 1..TRIES {
            outcome = outcome.or_else(|_| self.take_off());
        }
        if let Err(error) = outcome {
            log(&format!("filters of interface {} could not be taken off: {error}; they let all pass", self.ifindex));
        }
    }
}

/// Removes filters that a dead controller left on an interface, and their qdisc when nothing else is on it. Returns
/// how many there were.
///
/// # Errors
/// When the kernel refuses a removal.
pub fn remove_leftovers(ifindex: u32) -> io::Result<usize> {
    let removed = remove_filters(ifindex)?;
    if removed > 0 {
        remove_empty_qdisc(ifindex)?;
    }
    Ok(removed)
}

fn hook(ifindex: u32, point: sys::bpf_tc_attach_point) -> sys::bpf_tc_hook {
    sys::bpf_tc_hook {
        sz: size_of::<sys::bpf_tc_hook>() as _,
        ifindex: ifindex as i32,
        attach_point: point,
        ..Default::default()
    }
}

fn point(side: Side) -> sys::bpf_tc_attach_point {
    match side {
        Side::Ingress => sys::BPF_TC_INGRESS,
        Side::Egress => sys::BPF_TC_EGRESS,
    }
}

fn options() -> sys::bpf_tc_opts {
    sys::bpf_tc_opts {
        sz: size_of::<sys::bpf_tc_opts>() as _,
        handle: HANDLE,
        priority: PRIORITY,
        ..Default::default()
    }
}

fn outcome(code: i32) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(-code)) }
}

/// True when the qdisc was not there before.
fn create_qdisc(ifindex: u32) -> io::Result<bool> {
    let mut hook = hook(ifindex, sys::BPF_TC_INGRESS | sys::BPF_TC_EGRESS);
    // SAFETY: a valid, sized hook.
    match outcome(unsafe { sys::bpf_tc_hook_create(&raw mut hook) }) {
        Ok(()) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::EEXIST) => Ok(false),
        Err(error) => Err(error),
    }
}

fn attach(ifindex: u32, side: Side, program: BorrowedFd<'_>) -> io::Result<()> {
    let hook = hook(ifindex, point(side));
    let mut options = options();
    options.prog_fd = program.as_raw_fd();
    if is_there(ifindex, side) {
        options.flags = sys::BPF_TC_F_REPLACE;
    }
    // SAFETY: a valid, sized hook and options with a live program.
    outcome(unsafe { sys::bpf_tc_attach(&raw const hook, &raw mut options) })
}

/// Whether our filter is on `side`. The kernel is asked for the filter, not for the program: finding a program by its number needs
/// CAP_SYS_ADMIN.
fn find(ifindex: u32, side: Side) -> io::Result<bool> {
    let mut route = Socket::open(libc::NETLINK_ROUTE)?;
    Ok(filters(&mut route, ifindex, side)?.iter().any(Filter::is_ours))
}

/// Whether our filter is there; one that cannot be looked up counts as absent.
fn is_there(ifindex: u32, side: Side) -> bool {
    find(ifindex, side).unwrap_or(false)
}

fn remove_filters(ifindex: u32) -> io::Result<usize> {
    let mut removed = 0;
    for side in SIDES {
        if find(ifindex, side)? {
            let hook = hook(ifindex, point(side));
            let options = options();
            // SAFETY: a valid, sized hook and options that name one filter.
            outcome(unsafe { sys::bpf_tc_detach(&raw const hook, &raw const options) })?;
            removed += 1;
        }
    }
    Ok(removed)
}

fn remove_empty_qdisc(ifindex: u32) -> io::Result<()> {
    let mut route = Socket::open(libc::NETLINK_ROUTE)?;
    for side in SIDES {
        if !filters(&mut route, ifindex, side)?.is_empty() {
            return Ok(());
        }
    }
    let mut hook = hook(ifindex, sys::BPF_TC_INGRESS | sys::BPF_TC_EGRESS);
    // SAFETY: a valid, sized hook; both points together name the qdisc.
    outcome(unsafe { sys::bpf_tc_hook_destroy(&raw mut hook) })
}

/// A filter on a clsact qdisc, ours or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Kind of classifier: "bpf", "flower", ...
    pub kind: String,
    /// Handle within its priority.
    pub handle: u32,
    /// Order among filters, the lowest first.
    pub priority: u16,
    /// Of one that runs a BPF program: what it was called when it was put there; libbpf writes `NAME:[NUMBER]`.
    pub program: Option<String>,
}

impl Filter {
    /// Whether it has our handle and priority, and runs one of our programs.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        let runs_ours = self.program.as_ref().is_some_and(|name| name.starts_with(super::PROGRAM_PREFIX));
        self.handle == HANDLE && u32::from(self.priority) == PRIORITY && runs_ours
    }
}

/// Every filter on one side of an interface's clsact qdisc; none where there is no such qdisc.
///
/// # Errors
/// When netlink fails.
pub fn filters(route: &mut Socket, ifindex: u32, side: Side) -> io::Result<Vec<Filter>> {
    const TCMSG: usize = 20;
    const TCA_KIND: u16 = 1;
    const TCA_OPTIONS: u16 = 2;
    const TCA_BPF_NAME: u16 = 7;
    const TC_H_CLSACT: u32 = 0xffff_0000;
    let parent = TC_H_CLSACT
        | match side {
            Side::Ingress => 0xfff2,
            Side::Egress => 0xfff3,
        };
    let mut body = vec![0u8; TCMSG];
    body[4..8].copy_from_slice(&ifindex.to_ne_bytes());
    body[12..16].copy_from_slice(&parent.to_ne_bytes());
    let replies = match route.request(libc::RTM_GETTFILTER, NLM_F_DUMP, &body) {
        Ok(replies) => replies,
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENODEV | libc::ENOENT)) => Vec::new(),
        Err(error) => return Err(error),
    };
    let filter = |body: &[u8]| {
        let word = |at: usize| body.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
        let kind = netlink::text(Attributes::find(body.get(TCMSG..)?, TCA_KIND)?);
        let options = Attributes::find(body.get(TCMSG..)?, TCA_OPTIONS).filter(|_| kind == "bpf");
        let program = options.and_then(|options| Attributes::find(options, TCA_BPF_NAME)).map(netlink::text);
        Some(Filter { kind, handle: word(8)?, priority: (word(16)? >> 16) as u16, program })
    };
    // A classifier announces itself once without a handle before its filters.
    Ok(replies.iter().filter_map(|r| filter(&r.body)).filter(|f| f.handle != 0).collect())
}
