//! Network namespaces that live as long as their descriptor.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread::JoinHandle;

use crate::settings;

pub struct Namespace {
    file: File,
}

fn set(fd: RawFd) -> io::Result<()> {
    // SAFETY: a plain system call on an open descriptor.
    if unsafe { libc::setns(fd, libc::CLONE_NEWNET) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

impl Namespace {
    pub fn new() -> io::Result<Self> {
        let made = std::thread::spawn(|| -> io::Result<File> {
            // SAFETY: only this thread moves, and it ends here.
            if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
                return Err(io::Error::last_os_error());
            }
            File::open("/proc/thread-self/ns/net")
        });
        let namespace = Self { file: made.join().expect("no panic")? };
        namespace.inside(settings::apply);
        namespace.ip("link set lo up");
        Ok(namespace)
    }

    /// Where `ip .. netns PATH` finds it.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    /// Runs `work` on a thread inside.
    pub fn spawn<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        let file = self.file.try_clone().expect("a descriptor");
        std::thread::spawn(move || {
            set(file.as_raw_fd()).expect("entering the namespace");
            work()
        })
    }

    /// Runs `work` inside and waits for it.
    pub fn inside<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        self.spawn(work).join().expect("no panic inside")
    }

    /// A command that will run inside, and end with this process's thread.
    pub fn command(&self, program: &str) -> Command {
        let fd = self.file.as_raw_fd();
        let mut command = Command::new(program);
        // SAFETY: setns and prctl are system calls, safe between fork and exec.
        unsafe {
            command.pre_exec(move || {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                set(fd)
            });
        }
        command
    }

    pub fn ip(&self, arguments: &str) {
        self.tool("ip", arguments);
    }

    pub fn tool(&self, program: &str, arguments: &str) {
        let output = self.command(program).args(arguments.split_whitespace()).stdin(Stdio::null()).output();
        let output = output.unwrap_or_else(|error| panic!("{program}: {error}; is iproute2 installed?"));
        let why = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {arguments}: {why}");
    }

    /// One of the counters in /proc/net/snmp and netstat, such as "Tcp:" "OutRsts".
    pub fn counter(&self, of: &'static str, name: &'static str) -> u64 {
        let text = self.inside(|| {
            let read = |file| std::fs::read_to_string(format!("/proc/thread-self/net/{file}")).expect("counters");
            read("snmp") + &read("netstat")
        });
        let mut rows = text.lines().filter(|line| line.starts_with(of)).map(str::split_whitespace);
        while let (Some(mut names), Some(mut values)) = (rows.next(), rows.next()) {
            if let Some(at) = names.position(|n| n == name) {
                return values.nth(at).and_then(|v| v.parse().ok()).expect("a number");
            }
        }
        panic!("no counter {of} {name}")
    }

    /// Writes one file below /proc/sys.
    pub fn write(&self, key: &str, value: &'static str) {
        let path = format!("/proc/sys/{key}");
        self.inside(move || std::fs::write(path, value)).unwrap_or_else(|error| panic!("{key}: {error}"));
    }
}
