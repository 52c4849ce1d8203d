//! tcx links, and who else is attached by tcx.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libbpf_sys as sys;

use super::Side;

/// One program attached by tcx. The kernel detaches it with the descriptor, however the process ends.
pub(super) struct Link {
    link: OwnedFd,
}

const fn attach_type(side: Side) -> sys::bpf_attach_type {
    match side {
        Side::Ingress => sys::BPF_TCX_INGRESS,
        Side::Egress => sys::BPF_TCX_EGRESS,
    }
}

impl Link {
    /// Attaches `program`. The attach type is given here and not by the program's section, so that the same program
    /// loads on kernels that have never heard of tcx.
    pub(super) fn new(program: BorrowedFd<'_>, ifindex: u32, side: Side) -> io::Result<Self> {
        // SAFETY: the descriptor is live and no options are given.
        let raw =
            unsafe { sys::bpf_link_create(program.as_raw_fd(), ifindex as c_int, attach_type(side), std::ptr::null()) };
        if raw < 0 {
            return Err(io::Error::from_raw_os_error(-raw));
        }
        // SAFETY: `raw` is a descriptor that nobody else owns.
        Ok(Self { link: unsafe { OwnedFd::from_raw_fd(raw) } })
    }

    /// Puts `program` in the place of the one of a link that another controller handed over, in one step.
    pub(super) fn inherit(link: OwnedFd, program: BorrowedFd<'_>, ifindex: u32) -> io::Result<Self> {
        let link = Self { link };
        if link.ifindex() != ifindex {
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        }
        // SAFETY: both descriptors are live and no options are given.
        let result = unsafe { sys::bpf_link_update(link.link.as_raw_fd(), program.as_raw_fd(), std::ptr::null()) };
        if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(link) }
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.link.as_fd()
    }

    /// Whether the interface still holds it: not after the interface went away, nor after a forced detach.
    pub(super) fn is_attached(&self) -> bool {
        self.ifindex() != 0
    }

    /// Number of the interface that holds it; 0: none.
    fn ifindex(&self) -> u32 {
        // SAFETY: an all-zero bpf_link_info is a valid value of that plain C struct.
        let mut info: sys::bpf_link_info = unsafe { std::mem::zeroed() };
        let mut length = size_of::<sys::bpf_link_info>() as u32;
        // SAFETY: info and its length describe writable memory.
        let result = unsafe { sys::bpf_link_get_info_by_fd(self.link.as_raw_fd(), &raw mut info, &raw mut length) };
        // SAFETY: the kernel filled the member of this link's kind, and a zeroed one is valid too.
        if result == 0 { unsafe { info.__bindgen_anon_1.tcx.ifindex } } else { 0 }
    }
}

/// A program that is attached to an interface by tcx, ours or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    /// Kernel's number of the program.
    pub program_id: u32,
    /// Its name, at most 15 characters.
    pub name: String,
}

/// Every program that tcx runs on one side of an interface.
///
/// # Errors
/// `EINVAL` where the kernel has no tcx, `EPERM` without privilege.
pub fn attached(ifindex: u32, side: Side) -> io::Result<Vec<Attached>> {
    const MOST: usize = 64; // the kernel's own limit
    let mut ids = [0u32; MOST];
    // SAFETY: an all-zero bpf_prog_query_opts is a valid value of that plain C struct.
    let mut query: sys::bpf_prog_query_opts = unsafe { std::mem::zeroed() };
    query.sz = size_of::<sys::bpf_prog_query_opts>() as _;
    query.prog_ids = ids.as_mut_ptr();
    query.__bindgen_anon_1.count = MOST as u32;
    // SAFETY: the query points at MOST writable numbers and says so.
    let result = unsafe { sys::bpf_prog_query_opts(ifindex as c_int, attach_type(side), &raw mut query) };
    if result != 0 {
        return Err(io::Error::from_raw_os_error(-result));
    }
    // SAFETY: count is the union's only member in use.
    let count = unsafe { query.__bindgen_anon_1.count } as usize;
    Ok(ids
        .iter()
        .take(count)
        .map(|id| Attached { program_id: *id, name: program_name(*id).unwrap_or_default() })
        .collect())
}

/// Name of the loaded program with this number.
fn program_name(id: u32) -> Option<String> {
    // SAFETY: a plain call; the result is checked before it is owned.
    let raw = unsafe { sys::bpf_prog_get_fd_by_id(id) };
    if raw < 0 {
        return None;
    }
    // SAFETY: `raw` is a descriptor that nobody else owns.
    let fd = unsafe { OwnedFd::from_raw_fd(raw) };
    // SAFETY: an all-zero bpf_prog_info is a valid value of that plain C struct.
    let mut info: sys::bpf_prog_info = unsafe { std::mem::zeroed() };
    let mut length = size_of::<sys::bpf_prog_info>() as u32;
    // SAFETY: info and its length describe writable memory.
    let result = unsafe { sys::bpf_prog_get_info_by_fd(fd.as_raw_fd(), &raw mut info, &raw mut length) };
    let bytes: Vec<u8> = info.name.iter().map(|c| *c as u8).collect();
    (result == 0).then(|| crate::netlink::text(&bytes))
}
