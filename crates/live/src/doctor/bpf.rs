//! BTF, loading, and the two ways of attaching programs to an interface.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;
use std::time::Instant;

use lasthop_core::packet::Direction;

use super::{AS_ROOT, Check, in_own_namespace, is_refusal};
use crate::attach::Attachment;
use crate::config::AttachMode;
use crate::program::{LinkLayer, LoadError, LoadOptions, Program};

pub(super) fn btf() -> Check {
    if Path::new("/sys/kernel/btf/vmlinux").exists() {
        Check::ok("BTF", "the kernel describes its types")
    } else {
        Check::warning(
            "BTF",
            "the kernel does not describe its types: window control and CHAP in user space work without, CHAP in the kernel does not",
            "--datapath auto takes user space by itself; for CHAP in the kernel use one with CONFIG_DEBUG_INFO_BTF=y",
        )
    }
}

/// Loads the real programs, and hooks them onto the loopback of a namespace of their own.
pub(super) fn programs_and_hooks() -> Vec<Check> {
    let begun = Instant::now();
    match Program::load(LoadOptions { flows: 1024, ..LoadOptions::default() }) {
        Ok(program) => {
            let took = begun.elapsed().as_millis();
            let loaded = Check::ok("BPF", format!("the kernel takes the controller's programs, in {took} ms"));
            [Some(loaded), jit(), Some(hooks(&program))].into_iter().flatten().collect()
        }
        Err(error) => {
            let untried = Check::missing("hooks", "cannot be tried: the programs do not load", "see BPF above");
            vec![refusal(&error), untried]
        }
    }
}

fn refusal(error: &LoadError) -> Check {
    match error {
        LoadError::Refused(why) => Check::missing("BPF", why.to_string(), why.remedy()),
        other => {
            let cause = std::error::Error::source(other).map(|cause| format!(": {cause}")).unwrap_or_default();
            Check::missing("BPF", format!("{other}{cause}"), "report it, with the output of `uname -a`")
        }
    }
}

fn jit() -> Option<Check> {
    let off = std::fs::read_to_string("/proc/sys/net/core/bpf_jit_enable").is_ok_and(|s| s.trim() == "0");
    let remedy = "sysctl -w net.core.bpf_jit_enable=1";
    off.then(|| Check::warning("BPF JIT", "off: every packet costs several times more", remedy))
}

fn hooks(program: &Program) -> Check {
    const LOOPBACK: u32 = 1;
    let ingress = program.prog_fd(Direction::ToRemote, LinkLayer::Ethernet).as_raw_fd();
    let egress = program.prog_fd(Direction::ToStation, LinkLayer::Ethernet).as_raw_fd();
    let attempt = |mode| -> io::Result<bool> {
        in_own_namespace(move || {
            // SAFETY: the program outlives this scoped thread.
            let (ingress, egress) = unsafe { (BorrowedFd::borrow_raw(ingress), BorrowedFd::borrow_raw(egress)) };
            let Ok(name) = "lo".parse() else { return false };
            Attachment::new(&name, LOOPBACK, mode, ingress, egress).is_ok()
        })
    };
    let (tcx, clsact) = match (attempt(AttachMode::Tcx), attempt(AttachMode::Clsact)) {
        (Ok(tcx), Ok(clsact)) => (tcx, clsact),
        (Err(error), _) | (_, Err(error)) if is_refusal(&error) => {
            return Check::missing("hooks", "trying them needs a network namespace", AS_ROOT);
        }
        _ => {
            let remedy = "use a kernel with CONFIG_NET_NS=y";
            return Check::missing("hooks", "network namespaces are not there", remedy);
        }
    };
    match (tcx, clsact) {
        (true, _) => Check::ok("hooks", "tcx: control ends with the process, whatever happens to it"),
        (false, true) => Check::ok("hooks", "clsact (tcx needs Linux 6.6): after a crash control is off within 2 s"),
        (false, false) => Check::missing(
            "hooks",
            "neither tcx nor clsact",
            "use Linux 6.6 or later, or load them: modprobe sch_ingress; modprobe cls_bpf (CONFIG_NET_SCH_INGRESS, CONFIG_NET_CLS_BPF)",
        ),
    }
}
