//! Between fork and exec: puts a program into a host's network and into a box that dies with us.
//!
//! ```text
//! lasthop --fork--> guard --clone(NEWPID)--> init (pid 1 of the box) --clone--> the program --exec-->
//! ```
//!
//! The guard dies with the thread that started it (PR_SET_PDEATHSIG), init dies with the guard, and when init dies the
//! kernel kills every process of its PID namespace, whatever group or session it moved to: a `kill -9` of this process
//! leaves nothing behind. The storage of the host is mounted on the way in. In good times init reaps, ends when the program ends, and the guard hands on its exit code.

use super::check;
use crate::user::User;
use std::ffi::CString;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr::null;

/// What the child needs; descriptors stay open in the parent until after `spawn`.
#[derive(Clone)]
pub struct Enclosure {
    /// The host's network namespace.
    pub network: RawFd,
    /// Where the guard writes the pid of init (native-endian i32), as seen from outside.
    pub pid_pipe: RawFd,
    /// Our own process id.
    pub parent: i32,
    /// What to mount where in the box: the storage of the host. Paths as the starting thread sees them.
    pub storage: (CString, CString),
    /// Whom the program runs as; root where nobody stands here.
    pub user: Option<User>,
}

/// Makes `command` start its program in the box. The descriptors of `it` must stay open until it is spawned.
pub fn before_exec(command: &mut Command, it: Enclosure) {
    // SAFETY: `enclose` makes only async-signal-safe system calls and does not allocate.
    unsafe { command.pre_exec(move || enclose(&it)) };
}

/// Returns in the program to be executed; guard and init never return.
///
/// Remounting `/sys` and `/proc` is best effort: without them a program sees the machine's interfaces under
/// `/sys/class/net`, not those of its host.
fn enclose(it: &Enclosure) -> io::Result<()> {
    // SAFETY: only async-signal-safe system calls, as is required between fork and exec; all strings are
    // NUL-terminated and made before the fork. The raw clone calls behave as fork: no flags, no shared memory.
    unsafe {
        check(libc::setns(it.network, libc::CLONE_NEWNET))?;
        check(libc::unshare(libc::CLONE_NEWNS | libc::CLONE_NEWPID))?;
        libc::mount(null(), c"/".as_ptr(), null(), libc::MS_SLAVE | libc::MS_REC, null());
        let (files, folder) = (it.storage.0.as_ptr(), it.storage.1.as_ptr());
        check(libc::mount(files, folder, null(), libc::MS_BIND, null()))?;
        libc::mount(c"sysfs".as_ptr(), c"/sys".as_ptr(), c"sysfs".as_ptr(), 0, null());
        die_with_parent()?;
        if libc::getppid() != it.parent {
            libc::_exit(1);
        }
        match clone_as_fork()? {
            0 => {}
            init => guard(init, it.pid_pipe),
        }
        die_with_parent()?;
        // A session of its own: a program of a lesser user may not type into our terminal.
        check(libc::setsid())?;
        libc::mount(c"proc".as_ptr(), c"/proc".as_ptr(), c"proc".as_ptr(), 0, null());
        match clone_as_fork()? {
            0 => it.user.as_ref().map_or(Ok(()), |user| become_user(user)),
            program => reap_until(program),
        }
    }
}

/// For good: with its last uid of root's the program loses all capabilities, and nothing that it executes gives it any, not a
/// program of root's that is set-uid either. The bounding set stays as it is, because a `ping` whose file has CAP_NET_RAW could not
/// even be executed without it (capabilities(7), "safety checking"); with NoNewPrivs it gains nothing by that file.
///
/// By system calls, since the functions of the C library tell other threads, which this copy of the process does not have.
unsafe fn become_user(user: &User) -> io::Result<()> {
    let (uid, gid, groups) = (user.uid, user.gid, &user.groups);
    // SAFETY: plain system calls; the groups are a live list of the length given.
    unsafe {
        check(libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) as libc::c_int)?;
        check(libc::syscall(libc::SYS_setresgid, gid, gid, gid) as libc::c_int)?;
        check(libc::syscall(libc::SYS_setresuid, uid, uid, uid) as libc::c_int)?;
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)).map(drop)
    }
}

unsafe fn die_with_parent() -> io::Result<()> {
    // SAFETY: prctl with these constants touches no memory.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) }).map(drop)
}

unsafe fn clone_as_fork() -> io::Result<i32> {
    // SAFETY: clone with only SIGCHLD and a null stack is fork; the child goes on with a copy of our memory.
    let pid = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
    check(pid as libc::c_int)
}

/// Descriptors would keep TAPs, namespaces and std's exec pipe alive; polite signals are meant for the program.
unsafe fn released() {
    // SAFETY: closes descriptors of this copy of the process only, which runs no Rust destructor any more.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0);
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
            libc::signal(signal, libc::SIG_IGN);
        }
    }
}

unsafe fn guard(init: i32, pid_pipe: RawFd) -> ! {
    // SAFETY: writes four bytes of a local, then waits; ends without unwinding or running exit hooks.
    unsafe {
        let bytes = init.to_ne_bytes();
        libc::write(pid_pipe, bytes.as_ptr().cast(), bytes.len());
        released();
        let mut status = 0;
        while libc::waitpid(init, &raw mut status, 0) < 0 && *libc::__errno_location() == libc::EINTR {}
        libc::_exit(exit_code(status))
    }
}

unsafe fn reap_until(program: i32) -> ! {
    // SAFETY: as in `guard`.
    unsafe {
        released();
        loop {
            let mut status = 0;
            let pid = libc::waitpid(-1, &raw mut status, 0);
            if pid == program {
                libc::_exit(exit_code(status));
            }
            if pid < 0 && *libc::__errno_location() != libc::EINTR {
                libc::_exit(1);
            }
        }
    }
}

/// As a shell reports it: the exit code, or 128 + the signal.
fn exit_code(status: i32) -> i32 {
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 128 + libc::WTERMSIG(status) }
}
