//! BTF, loading, and the two ways onto an interface.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;

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
            "the kernel does not describe its types; the controller works without",
            "for other BPF tools use a kernel with CONFIG_DEBUG_INFO_BTF=y",
        )
    }
}

fn load() -> Result<Program, LoadError> {
    Program::load(LoadOptions { flows: 1024 })
}

/// Loads the real programs, and calls the one that writes plans.
pub(super) fn programs() -> Vec<Check> {
    let program = match load() {
        Ok(program) => program,
        Err(error @ LoadError::Refused(_)) => return vec![Check::missing("BPF", error.to_string(), AS_ROOT)],
        Err(error) => {
            let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            return vec![Check::missing(
                "BPF",
                format!("{error}: {cause}"),
                "use Linux 5.15 or later with CONFIG_BPF_SYSCALL=y and CONFIG_NET_CLS_BPF",
            )];
        }
    };
    let mut all = vec![Check::ok("BPF", "the kernel takes the controller's programs")];
    if Path::new("/proc/sys/net/core/bpf_jit_enable").exists()
        && std::fs::read_to_string("/proc/sys/net/core/bpf_jit_enable").is_ok_and(|s| s.trim() == "0")
    {
        all.push(Check::warning(
            "BPF JIT",
            "off: every packet costs several times more",
            "sysctl -w net.core.bpf_jit_enable=1",
        ));
    }
    drop(program);
    all
}

/// Hooks both programs onto the loopback of a namespace of their own.
pub(super) fn hooks() -> Vec<Check> {
    const LOOPBACK: u32 = 1;
    let Ok(program) = load() else {
        return vec![Check::missing("hooks", "cannot be tried: the programs do not load", "see BPF above")];
    };
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
            return vec![Check::missing("hooks", "trying them needs a network namespace", AS_ROOT)];
        }
        _ => {
            let remedy = "use a kernel with CONFIG_NET_NS=y";
            return vec![Check::missing("hooks", "network namespaces are not there", remedy)];
        }
    };
    let check = match (tcx, clsact) {
        (true, _) => Check::ok("hooks", "tcx: control ends with the process, whatever happens to it"),
        (false, true) => Check::ok("hooks", "clsact (tcx needs Linux 6.6): after a crash control is off within 2 s"),
        (false, false) => Check::missing(
            "hooks",
            "neither tcx nor clsact",
            "use Linux 6.6 or later, or load them: modprobe sch_ingress; modprobe cls_bpf",
        ),
    };
    vec![check]
}
