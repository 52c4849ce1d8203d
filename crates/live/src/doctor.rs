//! What this machine can do, what is missing, and what to type.
//!
//! Everything that has to be tried is tried in a network namespace of a thread that ends at once; no module is loaded
//! and nothing is changed.

mod bpf;
mod host;
mod levers;
mod link;
mod ports;
mod qdisc;

use serde::Serialize;

use crate::interface::InterfaceName;

/// How one thing stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// There, and as it should be.
    Ok,
    /// There with a drawback, or absent and not needed by all commands.
    Warning,
    /// Absent, and something does not work without it.
    Missing,
}

/// One line of the doctor's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at.
    pub name: &'static str,
    /// How it stands.
    pub state: State,
    /// What was found.
    pub detail: String,
    /// What to type, or to change.
    pub remedy: Option<String>,
}

impl Check {
    fn ok(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, state: State::Ok, detail: detail.into(), remedy: None }
    }

    fn warning(name: &'static str, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name, state: State::Warning, detail: detail.into(), remedy: Some(remedy.into()) }
    }

    fn missing(name: &'static str, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name, state: State::Missing, detail: detail.into(), remedy: Some(remedy.into()) }
    }
}

/// Looks at the machine, at the LAN interface that is named or those that would be found, and, when it is named, at the one
/// towards the provider.
#[must_use]
pub fn checks(lan: Option<&str>, wan: Option<&str>) -> Vec<Check> {
    let mut all = vec![host::kernel(), host::rights(), host::files(), bpf::btf()];
    all.extend(bpf::programs_and_hooks());
    all.extend([
        qdisc::known(),
        qdisc::chap(),
        qdisc::datapath(),
        host::tools(),
        host::tun(),
        host::fuse(),
        host::real_time(),
        host::locked_memory(),
        host::congestion_control(),
        host::conntrack(),
        host::window_updates(),
        link::flow_offload(),
    ]);
    let towards = wan.and_then(|name| name.parse().ok());
    match lan.map(str::parse::<InterfaceName>).transpose() {
        Ok(name) => all.extend(ports::checks(name.as_ref(), towards.as_ref())),
        Err(error) => all.push(Check::missing("interface", error.to_string(), "ip link")),
    }
    if let Some(name) = wan {
        match name.parse::<InterfaceName>() {
            Ok(name) => all.extend(link::wan(&name)),
            Err(error) => all.push(Check::missing("interface, WAN", error.to_string(), "ip link")),
        }
    }
    all
}

/// What a check without privilege says.
const AS_ROOT: &str = "run it as root: sudo lasthop doctor";

fn is_refusal(error: &std::io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES))
}

/// Runs `work` in a fresh network namespace, which goes with its thread.
fn in_own_namespace<T: Send>(work: impl FnOnce() -> T + Send) -> std::io::Result<T> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // SAFETY: the new namespace holds for this thread alone, which ends with this closure.
            if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
                return Err(std::io::Error::last_os_error());
            }
            Ok(work())
        });
        thread.join().unwrap_or_else(|_| Err(std::io::Error::other("the thread that tried it failed")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_that_is_not_ok_says_what_to_do() {
        let all = checks(Some("lo"), Some("lo")).into_iter().chain(checks(None, None)).collect::<Vec<_>>();
        assert!(all.len() >= 13);
        for check in &all {
            assert!(check.state == State::Ok || check.remedy.as_ref().is_some_and(|r| !r.is_empty()), "{check:?}");
            assert!(!check.detail.is_empty(), "{check:?}");
        }
    }

    #[test]
    fn an_interface_that_does_not_exist_is_missing() {
        let all = checks(Some("no-such-link"), Some("no-such-wan"));
        assert!(all.iter().any(|c| c.state == State::Missing && c.detail.contains("no-such-link")));
        assert!(all.iter().any(|c| c.state == State::Missing && c.detail.contains("no-such-wan")));
    }
}
