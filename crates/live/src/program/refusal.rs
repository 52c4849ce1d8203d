//! Why the kernel did not load the object, told apart so that a person knows what to do.
//!
//! One errno stands for many causes: EPERM for a right that is missing, a kernel that is locked down and a container's filter; EINVAL
//! for an option that the kernel was built without; EACCES and E2BIG are the verifier's. So after a failure the kernel is asked step by
//! step, each step by its own least call.

use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Mutex;

use libbpf_rs::PrintLevel;
use libbpf_sys as sys;

use crate::rights::{self, Right};

/// Why the object was not loaded. What to do is [`Refusal::remedy`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The process lacks rights.
    Rights(Vec<Right>),
    /// It has them, and bpf(2) is refused all the same; with what the kernel says of itself.
    Forbidden(&'static str),
    /// The kernel has no bpf(2).
    NoSyscall,
    /// The kernel lacks a kind of program or of map; with the option that would bring it.
    Lacks {
        /// What.
        what: &'static str,
        /// The kernel's option.
        option: &'static str,
    },
    /// The verifier does not take a program; with the end of what it said.
    Verifier(String),
    /// Something else: what libbpf said last.
    Other(String),
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rights(rights) => write!(f, "this process lacks {}", rights::names(rights)),
            Self::Forbidden(why) => write!(f, "BPF is forbidden here: {why}"),
            Self::NoSyscall => f.write_str("the kernel was built without BPF"),
            Self::Lacks { what, option } => write!(f, "the kernel has no {what} ({option})"),
            Self::Verifier(said) => write!(f, "the kernel's verifier refused a program: {said}"),
            Self::Other(said) => write!(f, "the kernel did not load the BPF programs: {said}"),
        }
    }
}

impl Refusal {
    /// What to do.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::Rights(rights) => format!(
                "run it as root (sudo), or give it {}: AmbientCapabilities= of a systemd unit, --cap-add of a container",
                rights::names(rights)
            ),
            Self::Forbidden(_) => {
                "allow bpf(2): turn lockdown off (boot without lockdown=, or without Secure Boot), run a container privileged or \
                 with a seccomp profile that allows it"
                    .to_owned()
            }
            Self::NoSyscall => "use a kernel with CONFIG_BPF_SYSCALL=y".to_owned(),
            Self::Lacks { option, .. } => format!("use a kernel with {option}"),
            Self::Verifier(_) => {
                "use Linux 6.1 or later; if it is that, report it with the output of `lasthop doctor` and `uname -a`".to_owned()
            }
            Self::Other(_) => "report it with the output of `lasthop doctor` and `uname -a`".to_owned(),
        }
    }
}

/// What libbpf warns of while it loads, the newest last; bounded.
static SAID: Mutex<String> = Mutex::new(String::new());
const MOST_SAID: usize = 64 * 1024;

/// Makes libbpf keep what it warns of instead of writing it to stderr.
pub(super) fn listen() {
    if let Ok(mut said) = SAID.lock() {
        said.clear();
    }
    libbpf_rs::set_print(Some((PrintLevel::Warn, keep)));
}

fn keep(_level: PrintLevel, text: String) {
    let Ok(mut said) = SAID.lock() else { return };
    said.push_str(&text);
    let excess = said.len().saturating_sub(MOST_SAID);
    let cut = (excess..said.len()).find(|at| said.is_char_boundary(*at)).unwrap_or(0);
    said.drain(..cut);
}

/// Finds out why loading failed.
pub(super) fn find() -> Refusal {
    let missing = rights::missing();
    if !missing.is_empty() {
        return Refusal::Rights(missing);
    }
    match least_map() {
        Err(libc::ENOSYS) => return Refusal::NoSyscall,
        Err(libc::EPERM | libc::EACCES) => return Refusal::Forbidden(forbidden_by()),
        _ => {}
    }
    if let Some(lack) = lack() {
        return lack;
    }
    let said = SAID.lock().map(|said| said.clone()).unwrap_or_default();
    match verdict(&said) {
        Some(said) => Refusal::Verifier(said),
        None => Refusal::Other(said.lines().last().unwrap_or("no reason was given").to_owned()),
    }
}

/// The simplest thing that bpf(2) makes; else the errno.
fn least_map() -> Result<OwnedFd, i32> {
    // SAFETY: no name and no options are given.
    let raw = unsafe { sys::bpf_map_create(sys::BPF_MAP_TYPE_ARRAY, std::ptr::null(), 4, 4, 1, std::ptr::null()) };
    if raw < 0 {
        return Err(-raw);
    }
    // SAFETY: a descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// What forbids it, as far as the kernel says.
fn forbidden_by() -> &'static str {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    if read("/sys/kernel/security/lockdown").contains("[confidentiality]") {
        return "the kernel is locked down (confidentiality)";
    }
    if read("/proc/self/status").lines().any(|line| line.starts_with("Seccomp:") && line.trim_end().ends_with('2')) {
        return "a seccomp filter, as of a container, refuses bpf(2)";
    }
    "bpf(2) is refused although the rights are there, as in a container or a user namespace"
}

/// The first kind of program or map that the kernel lacks.
fn lack() -> Option<Refusal> {
    const PROGRAMS: [(sys::bpf_prog_type, &str, &str); 2] = [
        (sys::BPF_PROG_TYPE_SCHED_CLS, "tc programs", "CONFIG_NET_CLS_ACT=y and CONFIG_NET_CLS_BPF"),
        (sys::BPF_PROG_TYPE_SYSCALL, "programs called by a system call", "CONFIG_BPF_SYSCALL=y of Linux 5.14 or later"),
    ];
    const MAPS: [(sys::bpf_map_type, &str); 4] = [
        (sys::BPF_MAP_TYPE_HASH, "hash maps"),
        (sys::BPF_MAP_TYPE_PERCPU_ARRAY, "arrays for each processor"),
        (sys::BPF_MAP_TYPE_PROG_ARRAY, "arrays of programs"),
        (sys::BPF_MAP_TYPE_RINGBUF, "ring buffers"),
    ];
    // SAFETY: only a number is given.
    let program = |kind| unsafe { sys::libbpf_probe_bpf_prog_type(kind, std::ptr::null()) };
    // SAFETY: as above.
    let map = |kind| unsafe { sys::libbpf_probe_bpf_map_type(kind, std::ptr::null()) };
    let programs = PROGRAMS.iter().find(|(kind, ..)| program(*kind) == 0);
    let maps = MAPS.iter().find(|(kind, _)| map(*kind) == 0);
    let option = "CONFIG_BPF_SYSCALL=y of Linux 5.8 or later";
    programs
        .map(|(_, what, option)| Refusal::Lacks { what, option })
        .or_else(|| maps.map(|(_, what)| Refusal::Lacks { what, option }))
}

/// The verifier's last words: the line before it says how long it took.
fn verdict(said: &str) -> Option<String> {
    let (_, log) = said.rsplit_once("-- BEGIN PROG LOAD LOG --")?;
    let (log, _) = log.split_once("-- END PROG LOAD LOG --").unwrap_or((log, ""));
    let statistics = ["verification time", "stack depth", "processed ", "libbpf:"];
    let words = |line: &&str| !line.trim().is_empty() && !statistics.iter().any(|begin| line.starts_with(begin));
    let mut last: Vec<_> = log.lines().rev().filter(words).take(3).map(str::trim).collect();
    last.reverse();
    Some(last.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verifiers_last_words_are_found() {
        let said = "libbpf: prog 'x': BPF program load failed: -EACCES\nlibbpf: prog 'x': -- BEGIN PROG LOAD LOG --\n\
            0: (b7) r0 = 1\nR1 is bad\ninvalid access to packet\nverification time 17 usec\nstack depth 0\n\
            processed 9 insns (limit 1000000)\n-- END PROG LOAD LOG --\nlibbpf: failed to load object 'y'\n";
        assert_eq!(verdict(said).as_deref(), Some("0: (b7) r0 = 1; R1 is bad; invalid access to packet"));
        assert_eq!(verdict("libbpf: map 'flows': failed to create: -ENOMEM"), None);
    }

    #[test]
    fn what_libbpf_says_is_kept_to_a_bound() {
        listen();
        for _ in 0..100 {
            keep(PrintLevel::Warn, "ä".repeat(4_000));
        }
        assert!(SAID.lock().unwrap().len() <= MOST_SAID);
    }

    #[test]
    fn every_refusal_says_what_to_do() {
        let all = [
            Refusal::Rights(vec![Right::Perfmon]),
            Refusal::Forbidden("x"),
            Refusal::NoSyscall,
            Refusal::Lacks { what: "x", option: "CONFIG_X" },
            Refusal::Verifier("x".to_owned()),
            Refusal::Other("x".to_owned()),
        ];
        assert!(all.iter().all(|refusal| !refusal.remedy().is_empty() && !refusal.to_string().is_empty()));
        assert_eq!(all[0].to_string(), "this process lacks CAP_PERFMON");
    }
}
