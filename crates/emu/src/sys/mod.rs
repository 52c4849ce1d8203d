//! The system calls that std and rustix do not carry; the only unsafe code of the crate.
//!
//! Everything here is a thin, safe wrapper that returns `io::Result`; decisions are made elsewhere.

mod enclose;
mod steering;
mod tcp;

pub use enclose::{Enclosure, before_exec};
pub use steering::{Counts, QUEUES, steer};
pub use tcp::{CaState, TcpDetail, set_max_segment, set_unsent_limit, set_window_clamp, tcp_detail};

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;

/// `_IOW('T', 202, int)` and `_IOW('T', 208, unsigned)` of `linux/if_tun.h`.
const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
const TUNSETOFFLOAD: libc::c_ulong = 0x4004_54d0;

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Moves the calling thread into a new, empty network namespace and returns its descriptor.
pub fn new_network_namespace() -> io::Result<OwnedFd> {
    // SAFETY: unshare with CLONE_NEWNET changes only the calling thread's view of the network; no memory is touched.
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
    Ok(File::open("/proc/thread-self/ns/net")?.into())
}

/// Moves the calling thread into the network namespace behind `namespace`.
pub fn enter_network_namespace(namespace: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: setns changes only the calling thread's view of the network; the descriptor is borrowed and open.
    check(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}

/// Moves the calling thread into a mount namespace of its own: a copy, in which new mounts stay.
pub fn new_mount_namespace() -> io::Result<()> {
    use rustix::mount::{MountPropagationFlags, mount_change};
    // SAFETY: unshare with CLONE_NEWNS changes only the calling thread's view of files; no memory is touched.
    check(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    Ok(mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?)
}

/// Mounts a file system of type `kind` at `place` for the calling thread's mount namespace.
pub fn mount(kind: &str, place: &Path, options: &str) -> io::Result<()> {
    let flags = rustix::mount::MountFlags::NOSUID | rustix::mount::MountFlags::NODEV;
    let options = CString::new(options)?;
    Ok(rustix::mount::mount("lasthop", place, kind, flags, options.as_c_str())?)
}

/// Gives the calling thread, and those it starts, an umask of their own: none.
pub fn own_umask() -> io::Result<()> {
    // SAFETY: unshare with CLONE_FS changes only the calling thread's umask and folder; no memory is touched.
    check(unsafe { libc::unshare(libc::CLONE_FS) })?;
    rustix::process::umask(rustix::fs::Mode::empty());
    Ok(())
}

/// Makes the allocator take blocks of 4 MiB and more from the kernel one by one, zeroed and not present before they are
/// used. `fuser` takes 16 MiB for each file system, of which little more than the largest request is ever used.
pub fn map_large_blocks() {
    #[cfg(target_env = "gnu")]
    // SAFETY: sets a number of the allocator.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 4 << 20);
    }
}

/// What a TAP's card does for its kernel (`TUN_F_CSUM`, `TUN_F_TSO4`, `TUN_F_TSO6`).
const CHECKSUMS_AND_SEGMENTS: libc::c_uint = 1 | 2 | 4;

/// Turns an open `/dev/net/tun` into the TAP `name`: Ethernet frames, each behind a header of 10 bytes
/// ([`lasthop_core::wire::offload`]); no packet information. `aggregates`: its frames may be long, and their checksums not filled in;
/// and this is one of its queues.
///
/// The device appears in the namespace in which `/dev/net/tun` was opened and goes with the descriptor.
pub fn make_tap(tun: &File, name: &str, aggregates: bool) -> io::Result<()> {
    // SAFETY: an all-zero ifreq is a valid value of that plain C struct.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    let several = if aggregates { libc::IFF_MULTI_QUEUE } else { 0 };
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR | several) as libc::c_short;
    // SAFETY: the request lives across the call and has the layout the kernel expects for TUNSETIFF.
    check(unsafe { libc::ioctl(tun.as_raw_fd(), TUNSETIFF as _, &raw mut request) })?;
    let offloads = if aggregates { CHECKSUMS_AND_SEGMENTS } else { 0 };
    // SAFETY: TUNSETOFFLOAD takes its argument by value.
    check(unsafe { libc::ioctl(tun.as_raw_fd(), TUNSETOFFLOAD as _, offloads) }).map(drop)
}

/// Gives the calling thread the SCHED_FIFO `priority` (1..=99).
pub fn set_realtime(priority: i32) -> io::Result<()> {
    // SAFETY: an all-zero sched_param is valid; the call reads it and changes only the calling thread (pid 0).
    unsafe {
        let mut param: libc::sched_param = std::mem::zeroed();
        param.sched_priority = priority;
        check(libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const param)).map(drop)
    }
}

/// A zeroed, page-aligned block that children do not inherit: a fork neither copies it nor makes it copy-on-write,
/// so starting a program causes no page faults in the engine.
pub struct Block {
    address: *mut u8,
    len: usize,
}

// SAFETY: the block owns its mapping; nothing in it is tied to a thread.
unsafe impl Send for Block {}

impl Block {
    /// Maps `len` bytes (> 0).
    pub fn new(len: usize) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice touches no existing memory.
        let address =
            unsafe { libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: advises on exactly the mapping just made. Failure only costs page faults later.
        unsafe { libc::madvise(address, len, libc::MADV_DONTFORK) };
        Ok(Self { address: address.cast(), len })
    }
}

impl std::ops::Deref for Block {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: address and len describe the mapping this block owns, initialised to zero by the kernel.
        unsafe { std::slice::from_raw_parts(self.address, self.len) }
    }
}

impl std::ops::DerefMut for Block {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.address, self.len) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly what `new` mapped; no reference outlives `self`.
        unsafe { libc::munmap(self.address.cast(), self.len) };
    }
}

/// Lets this process open as many files as the system allows it: a home has two per host.
pub fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // Too few only matters in a large home, and fails there with a name.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Sends `signal` to every process of the group of `leader`; a group that is gone already is no error.
pub fn signal_group(leader: i32, signal: i32) {
    // Groups 0 and 1 are our own and everybody's.
    if leader > 1 {
        // SAFETY: kill touches no memory; `leader` is the pid of a group leader we started and have not reaped.
        unsafe { libc::kill(-leader, signal) };
    }
}

pub(crate) fn set_option(socket: RawFd, level: i32, name: i32, value: i32) -> io::Result<()> {
    let value: libc::c_int = value;
    // SAFETY: pointer and length describe one c_int that lives across the call.
    check(unsafe {
        libc::setsockopt(socket, level, name, (&raw const value).cast(), size_of::<libc::c_int>() as libc::socklen_t)
    })
    .map(drop)
}
