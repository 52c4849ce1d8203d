//! Queue disciplines: which ones the kernel knows.
//!
//! Known from the kernel's configuration and its modules, not by trying: trying would load modules.

use std::fs;
use std::process::Command;

use super::{AS_ROOT, Check, in_own_namespace, is_refusal};
use crate::{datapath, qdisc};

/// (name, option of the kernel).
const KNOWN: [(&str, &str); 8] = [
    ("fq_codel", "CONFIG_NET_SCH_FQ_CODEL"),
    ("cake", "CONFIG_NET_SCH_CAKE"),
    ("fq", "CONFIG_NET_SCH_FQ"),
    ("htb", "CONFIG_NET_SCH_HTB"),
    ("tbf", "CONFIG_NET_SCH_TBF"),
    ("netem", "CONFIG_NET_SCH_NETEM"),
    ("clsact", "CONFIG_NET_SCH_INGRESS"),
    ("bpf", "CONFIG_NET_SCH_BPF"),
];

/// CHAP in user space: what it needs, tried on a device of its own.
pub(super) fn datapath() -> Check {
    const NAME: &str = "CHAP in user space";
    match in_own_namespace(datapath::try_out) {
        Ok(Ok(())) => Check::ok(NAME, "a TAP and a packet socket can be had (--queue chap --datapath user)"),
        Ok(Err(error)) | Err(error) if is_refusal(&error) => Check::warning(NAME, "it was refused", AS_ROOT),
        Ok(Err(error)) | Err(error) => Check::warning(
            NAME,
            format!("it does not work: {error}"),
            "modprobe tun af_packet; in a container pass /dev/net/tun through",
        ),
    }
}

/// CHAP in the kernel.
pub(super) fn chap() -> Check {
    const NAME: &str = "CHAP in the kernel";
    if !qdisc::is_supported() {
        let remedy = format!("use {}; until then --datapath auto takes user space", qdisc::REQUIREMENT);
        return Check::warning(NAME, "the kernel has no queue disciplines in BPF", remedy);
    }
    match qdisc::try_to_register() {
        Ok(()) => Check::ok(NAME, "the kernel takes the queue discipline (--queue chap)"),
        Err(error) => {
            let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            let remedy = if cause.contains("ermi") { AS_ROOT } else { "report it, with the output of `uname -a`" };
            Check::warning(NAME, format!("{error}: {cause}"), remedy)
        }
    }
}

/// The window controller needs none of them; they are what it can be compared with.
pub(super) fn known() -> Check {
    const NAME: &str = "queue disciplines";
    let Some(config) = configuration() else {
        return Check::warning(NAME, "the kernel's configuration cannot be read", "modprobe configs; tc qdisc help");
    };
    let has = |option: &str| config.lines().any(|l| l.strip_prefix(option).is_some_and(|r| r == "=y" || r == "=m"));
    let (there, absent): (Vec<_>, Vec<_>) = KNOWN.iter().partition(|(_, option)| has(option));
    let names = |list: &[&(&str, &str)]| list.iter().map(|q| q.0).collect::<Vec<_>>().join(", ");
    if absent.is_empty() {
        return Check::ok(NAME, format!("the kernel knows {}", names(&there)));
    }
    Check::ok(NAME, format!("the kernel knows {}; not {} (none of them is needed)", names(&there), names(&absent)))
}

fn configuration() -> Option<String> {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let boot = format!("/boot/config-{release}");
    fs::read_to_string(boot).ok().or_else(|| {
        let output = Command::new("zcat").arg("/proc/config.gz").output().ok().filter(|o| o.status.success())?;
        String::from_utf8(output.stdout).ok()
    })
}
