//! What does not belong to an interface: kernel, TUN, FUSE, scheduling, memory, senders, connection tracking, raw sockets.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use lasthop_core::fastpath::layout::FlowKey;

use super::{AS_ROOT, Check, in_own_namespace, is_refusal};
use crate::confine::{Confinement, confine};
use crate::conntrack::Conntrack;
use crate::program::Refusal;
use crate::rights::{self, Right};
use crate::updates::Socket;
use lasthop_status::DEFAULT_SOCKET;

/// The oldest on which the programs are tried (`make vm-test`).
const OLDEST: (u32, u32) = (6, 1);

pub(super) fn kernel() -> Check {
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy().into_owned();
    match version(&release) {
        Some(v) if v >= OLDEST => Check::ok("kernel", format!("Linux {release}")),
        _ => Check::missing(
            "kernel",
            format!("Linux {release}"),
            format!("use Linux {}.{} or later", OLDEST.0, OLDEST.1),
        ),
    }
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// What control needs root for: which of these rights this start has, and which it lacks.
pub(super) fn rights() -> Check {
    const NAME: &str = "rights";
    let lacking = rights::lacking(&Right::KEPT);
    let there: Vec<_> = Right::KEPT.into_iter().filter(|right| !lacking.contains(right)).collect();
    let has = if there.is_empty() { "none of those that `run` keeps".to_owned() } else { rights::names(&there) };
    if lacking.is_empty() {
        return Check::ok(NAME, format!("{has}; `run` gives up all others once its programs are loaded"));
    }
    let detail = format!("this process lacks {}; it has {has}", rights::names(&lacking));
    let remedy = Refusal::Rights(lacking).remedy();
    // Window updates and a queue in this process say what is lost without the other one.
    if rights::missing().is_empty() {
        Check::warning(NAME, detail, remedy)
    } else {
        Check::missing(NAME, detail, remedy)
    }
}

/// Root writes to root's files without any right, unless Landlock forbids it.
pub(super) fn files() -> Check {
    const NAME: &str = "files";
    const WITHOUT: &str = "`run` could write to root's files as long as it is root's";
    const REMEDY: &str = "nothing has to be done; to narrow it, a unit with ProtectSystem=strict (book: Rights)";
    match in_own_thread(|| confine(Path::new(DEFAULT_SOCKET), false).map_err(io::Error::other)) {
        Ok(Confinement::Whole) => {
            Check::ok(NAME, "Landlock: `run` writes to its sockets, locks and TAPs, and to no other files")
        }
        Ok(Confinement::Partial) => {
            Check::warning(NAME, "an older Landlock: `run` could cut files of root's short", REMEDY)
        }
        Ok(Confinement::None) => Check::warning(NAME, format!("no Landlock in this kernel: {WITHOUT}"), REMEDY),
        Err(error) => Check::warning(NAME, format!("Landlock cannot be used ({error}): `run` will not start"), REMEDY),
    }
}

/// The emulator gives its hosts addresses and routes by it; control needs no other program.
pub(super) fn tools() -> Check {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&folders).chain(["/usr/sbin", "/sbin"].map(Into::into));
    match places.map(|folder| folder.join("ip")).find(|path| path.is_file()) {
        Some(path) => Check::ok("ip", format!("{}: the emulator can set up its hosts", path.display())),
        None => {
            let detail = "there is no program `ip`: `demo` and `emulate` cannot set up their hosts; `run` needs none";
            Check::warning("ip", detail, "apt-get install iproute2")
        }
    }
}

/// The emulator's hosts are TAPs.
pub(super) fn tun() -> Check {
    const REMEDY: &str = "modprobe tun (CONFIG_TUN); in a container pass /dev/net/tun through";
    match in_own_namespace(open_tun) {
        Ok(Ok(())) => Check::ok("TUN", "the emulator can make its interfaces"),
        Ok(Err(error)) | Err(error) if is_refusal(&error) => {
            Check::missing("TUN", "making an interface was refused", AS_ROOT)
        }
        Ok(Err(error)) | Err(error) => Check::missing("TUN", format!("no interface could be made: {error}"), REMEDY),
    }
}

fn open_tun() -> io::Result<()> {
    let tun = OpenOptions::new().read(true).write(true).custom_flags(libc::O_CLOEXEC).open("/dev/net/tun")?;
    // SAFETY: an all-zero ifreq is a valid value of that plain C struct.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as i16;
    // SAFETY: the request is a valid ifreq; the device goes with the descriptor.
    let result = unsafe { libc::ioctl(tun.as_raw_fd(), libc::TUNSETIFF as _, &mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The emulator serves slow storage through FUSE.
pub(super) fn fuse() -> Check {
    const REMEDY: &str = "modprobe fuse (CONFIG_FUSE_FS); in a container pass /dev/fuse through";
    match OpenOptions::new().read(true).write(true).custom_flags(libc::O_CLOEXEC).open("/dev/fuse") {
        Ok(_) => Check::ok("FUSE", "the emulator can make storage slow"),
        Err(error) if is_refusal(&error) => Check::warning("FUSE", "/dev/fuse was refused", AS_ROOT),
        Err(error) => {
            let detail = format!("/dev/fuse cannot be opened ({error}): stations with `storage` cannot be emulated");
            Check::warning("FUSE", detail, REMEDY)
        }
    }
}

/// The emulator keeps its schedule only with real-time priority.
pub(super) fn real_time() -> Check {
    match in_own_thread(try_fifo) {
        Ok(()) => Check::ok("real-time scheduling", "SCHED_FIFO works: the emulator keeps its schedule under load"),
        // SAFETY: a plain call without arguments.
        Err(_) if unsafe { libc::geteuid() } != 0 => {
            Check::warning("real-time scheduling", "SCHED_FIFO was refused", AS_ROOT)
        }
        Err(error) => Check::warning(
            "real-time scheduling",
            format!("SCHED_FIFO was refused ({error}): the emulator is late by milliseconds when the machine is busy"),
            "start it from a CPU cgroup with a real-time budget (echo 950000 > .../cpu.rt_runtime_us), or from the \
             root cgroup: echo $$ > /sys/fs/cgroup/cgroup.procs",
        ),
    }
}

fn in_own_thread<T: Send + 'static>(work: fn() -> io::Result<T>) -> io::Result<T> {
    std::thread::spawn(work).join().unwrap_or_else(|_| Err(io::Error::other("the thread that tried it failed")))
}

fn try_fifo() -> io::Result<()> {
    // SAFETY: an all-zero sched_param is a valid value of that plain C struct.
    let mut parameter: libc::sched_param = unsafe { std::mem::zeroed() };
    parameter.sched_priority = rights::REAL_TIME as i32;
    // SAFETY: a valid parameter; 0 means the calling thread, which ends right after.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) };
    if result != 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The emulator locks its memory: a page fault is a late packet.
pub(super) fn locked_memory() -> Check {
    const WANTED: usize = 64 << 20;
    let memory: Vec<u8> = Vec::with_capacity(WANTED);
    // SAFETY: the range was just allocated; locking untouched pages only makes them present, and it is undone below.
    let locked = unsafe { libc::mlock(memory.as_ptr().cast(), WANTED) == 0 };
    // SAFETY: the same range.
    unsafe { libc::munlock(memory.as_ptr().cast(), WANTED) };
    if locked {
        Check::ok("locked memory", "64 MiB can be locked")
    } else {
        Check::warning("locked memory", "64 MiB cannot be locked: the emulator may be late", "ulimit -l unlimited")
    }
}

/// Of downloads that start on this machine.
pub(super) fn congestion_control() -> Check {
    const NAME: &str = "congestion control";
    let read = |key: &str| fs::read_to_string(format!("/proc/sys/net/ipv4/{key}")).unwrap_or_default();
    let (default, available) = (read("tcp_congestion_control"), read("tcp_available_congestion_control"));
    let (default, available) = (default.trim(), available.trim());
    let detail = format!("default {default}, available {available}");
    match default {
        "" => Check::warning(NAME, "it cannot be read", "cat /proc/sys/net/ipv4/tcp_congestion_control"),
        "bbr" => Check::warning(
            NAME,
            format!("{detail}; BBR does not fill queues, so there is little to gain for what this machine sends"),
            "name one per run (lasthop demo --cc cubic), or sysctl -w net.ipv4.tcp_congestion_control=cubic",
        ),
        _ => Check::ok(NAME, detail),
    }
}

/// Tells the window scale of connections that are older than the controller.
pub(super) fn conntrack() -> Check {
    const NAME: &str = "conntrack";
    const WITHOUT: &str = "connections that are older than the controller will be left alone for some seconds, until their window scale is found";
    match Conntrack::open().and_then(|mut conntrack| conntrack.scales(&FlowKey::default())) {
        Ok(_) => Check::ok(NAME, "it can be asked about connections that are older than the controller"),
        Err(error) if is_refusal(&error) => Check::warning(NAME, format!("asking was refused; {WITHOUT}"), AS_ROOT),
        Err(error) => Check::warning(NAME, format!("{error}; {WITHOUT}"), "modprobe nf_conntrack_netlink"),
    }
}

/// Windows are told between acknowledgments through raw sockets. Whether a firewall lets them out only shows when one is sent.
pub(super) fn window_updates() -> Check {
    const NAME: &str = "window updates";
    const WITHOUT: &str = "a download's window is told by acknowledgments alone, so queues are longer while it starts";
    match Socket::open() {
        Ok(socket) if socket.has_both() => Check::ok(NAME, "raw sockets work"),
        Ok(_) => Check::ok(NAME, "raw sockets work, but not for IPv6"),
        Err(error) if is_refusal(&error) => {
            Check::warning(NAME, format!("raw sockets were refused; {WITHOUT}"), "run it as root, or with CAP_NET_RAW")
        }
        Err(error) => {
            Check::warning(NAME, format!("no raw socket: {error}; {WITHOUT}"), "use a kernel with CONFIG_INET")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_of_all_kinds_are_read() {
        assert_eq!(version("6.18.44-custom"), Some((6, 18)));
        assert_eq!(version("5.10.0-28-amd64"), Some((5, 10)));
        assert_eq!(version("strange"), None);
    }
}
