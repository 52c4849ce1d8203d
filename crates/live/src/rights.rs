//! The rights (capabilities(7)) that this process has, those that control needs, and giving up all others.
//!
//! Threads have rights each, and those that they start begin with the same. So they are given up before the first thread is started,
//! and each thread gives up what it does not need itself:
//!
//! | | for what |
//! |---|---|
//! | CAP_NET_ADMIN | attaching programs, queue disciplines, TAPs, settings of theirs under `/proc/sys/net`, asking connection tracking |
//! | CAP_BPF | loading programs, making maps; bpf(2) at all where `kernel.unprivileged_bpf_disabled` is set |
//! | CAP_PERFMON | loading: the verifier checks as for root. After the start for the queue discipline of an interface that comes later |
//! | CAP_NET_RAW | raw sockets of window updates, packet sockets of a queue in this process; both are opened anew after a hand-over that failed |
//!
//! Threads of window updates and of queues have opened their sockets when they begin, and keep CAP_BPF alone. They run ahead of others
//! by RLIMIT_RTPRIO; only where that cannot be raised CAP_SYS_NICE is kept for it, and given up by each thread once it has its
//! priority. Nothing here finds programs, maps or links by their numbers, which would need CAP_SYS_ADMIN.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set, remove_capability_from_bounding_set,
    set_capabilities, set_no_new_privs,
};

/// A right that control needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// Attach programs to interfaces, set queue disciplines.
    NetAdmin,
    /// Load programs, make maps.
    Bpf,
    /// Load programs that the verifier checks as it checks root's: without it some are refused.
    Perfmon,
    /// Send window updates, and what a queue in this process lets out. Without it control does without both.
    NetRaw,
}

impl Right {
    /// Without these there is no control.
    pub const NEEDED: [Self; 3] = [Self::NetAdmin, Self::Bpf, Self::Perfmon];
    /// All that a controller keeps.
    pub const KEPT: [Self; 4] = [Self::NetAdmin, Self::Bpf, Self::Perfmon, Self::NetRaw];

    /// The name that capabilities(7) has for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NetAdmin => "CAP_NET_ADMIN",
            Self::Bpf => "CAP_BPF",
            Self::Perfmon => "CAP_PERFMON",
            Self::NetRaw => "CAP_NET_RAW",
        }
    }

    const fn bit(self) -> CapabilitySet {
        match self {
            Self::NetAdmin => CapabilitySet::NET_ADMIN,
            Self::Bpf => CapabilitySet::BPF,
            Self::Perfmon => CapabilitySet::PERFMON,
            Self::NetRaw => CapabilitySet::NET_RAW,
        }
    }

    /// Whether a process with these effective capabilities has it; CAP_SYS_ADMIN stands for the two of BPF.
    fn is_in(self, effective: CapabilitySet) -> bool {
        effective.contains(self.bit())
            || (matches!(self, Self::Bpf | Self::Perfmon) && effective.contains(CapabilitySet::SYS_ADMIN))
    }
}

/// What the calling thread lacks of what control cannot do without.
#[must_use]
pub fn missing() -> Vec<Right> {
    lacking(&Right::NEEDED)
}

/// What the calling thread lacks of `rights`.
#[must_use]
pub fn lacking(rights: &[Right]) -> Vec<Right> {
    // A kernel that does not tell refuses later what it refuses.
    let effective = capabilities(None).map_or(CapabilitySet::all(), |has| has.effective);
    rights.iter().copied().filter(|right| !right.is_in(effective)).collect()
}

/// The priority of threads of the data path, SCHED_FIFO.
pub const REAL_TIME: u64 = 1;

/// Gives up what control does not need, for the calling thread and those that it starts from now on.
///
/// # Errors
/// When the kernel refuses; something may have been given up then.
pub fn settle() -> io::Result<()> {
    let priority = if allow_real_time() { CapabilitySet::empty() } else { CapabilitySet::SYS_NICE };
    keep(bits(&Right::KEPT) | priority)
}

/// Gives up what the process that sets the levers (`levers::guard`) does not need: it keeps CAP_NET_ADMIN, and CAP_DAC_OVERRIDE for files of debugfs
/// that nobody may write by their mode.
///
/// # Errors
/// As for [`settle`].
pub fn settle_guard() -> io::Result<()> {
    keep(CapabilitySet::NET_ADMIN | CapabilitySet::DAC_OVERRIDE)
}

/// Gives up all rights but those of `kept` that the calling thread has, for good: it has no others to take back, and what it
/// executes gains none.
///
/// # Errors
/// When the kernel refuses.
pub fn keep_only(kept: &[Right]) -> io::Result<()> {
    keep(bits(kept))
}

fn bits(rights: &[Right]) -> CapabilitySet {
    rights.iter().fold(CapabilitySet::empty(), |all, right| all | right.bit())
}

fn keep(kept: CapabilitySet) -> io::Result<()> {
    let has = capabilities(None)?.permitted;
    let lacks = kept - has;
    let stands_in = lacks.intersects(CapabilitySet::BPF | CapabilitySet::PERFMON);
    let rights = has & if stands_in { kept | CapabilitySet::SYS_ADMIN } else { kept };
    empty_bounding_set();
    let sets = CapabilitySets { effective: rights, permitted: rights, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets)?;
    Ok(set_no_new_privs(true)?)
}

/// Lets threads without CAP_SYS_NICE take [`REAL_TIME`]; false where that is refused, for want of CAP_SYS_RESOURCE.
fn allow_real_time() -> bool {
    let limit = getrlimit(Resource::Rtprio);
    if limit.current.is_none_or(|most| most >= REAL_TIME) {
        return true;
    }
    let maximum = limit.maximum.map(|most| most.max(REAL_TIME));
    setrlimit(Resource::Rtprio, Rlimit { current: Some(REAL_TIME), maximum }).is_ok()
}

/// Refused without CAP_SETPCAP, as to a service that has the kept rights alone: there `NoNewPrivs` keeps others away.
fn empty_bounding_set() {
    for right in (0..u64::BITS).map(|number| CapabilitySet::from_bits_retain(1 << number)) {
        match capability_is_in_bounding_set(right) {
            Ok(true) => drop(remove_capability_from_bounding_set(right)),
            Ok(false) => {}
            // The kernel knows no more.
            Err(_) => return,
        }
    }
}

/// "CAP_BPF and CAP_PERFMON".
#[must_use]
pub fn names(rights: &[Right]) -> String {
    let names: Vec<_> = rights.iter().map(|right| right.name()).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lacks(effective: CapabilitySet) -> Vec<Right> {
        Right::KEPT.into_iter().filter(|right| !right.is_in(effective)).collect()
    }

    #[test]
    fn root_has_all_and_a_user_none() {
        assert!(lacks(CapabilitySet::from_bits_retain(0x1ff_ffff_ffff)).is_empty());
        assert_eq!(lacks(CapabilitySet::empty()), Right::KEPT);
    }

    #[test]
    fn each_right_that_is_missing_is_named() {
        const { assert!(CapabilitySet::BPF.bits() == 1 << 39 && CapabilitySet::PERFMON.bits() == 1 << 38) };
        let (admin, raw, bpf) = (CapabilitySet::NET_ADMIN, CapabilitySet::NET_RAW, CapabilitySet::BPF);
        assert_eq!(names(&lacks(admin | raw | bpf)), "CAP_PERFMON");
        assert_eq!(names(&lacks(admin | raw)), "CAP_BPF and CAP_PERFMON");
        let system = CapabilitySet::SYS_ADMIN;
        assert_eq!(names(&lacks(system)), "CAP_NET_ADMIN and CAP_NET_RAW", "CAP_SYS_ADMIN holds the rights of BPF");
        assert_eq!(names(&lacks(CapabilitySet::empty())), "CAP_NET_ADMIN, CAP_BPF, CAP_PERFMON and CAP_NET_RAW");
    }

    #[test]
    fn what_is_given_up_is_gone_for_this_thread_and_what_it_starts() {
        let before = capabilities(None).unwrap();
        std::thread::spawn(|| {
            let had = capabilities(None).unwrap().permitted;
            keep_only(&[Right::Bpf]).unwrap();
            for has in [capabilities(None).unwrap(), std::thread::spawn(|| capabilities(None).unwrap()).join().unwrap()]
            {
                assert_eq!(has.effective, had & CapabilitySet::BPF);
                assert_eq!((has.permitted, has.inheritable), (has.effective, CapabilitySet::empty()));
            }
            assert!(rustix::thread::no_new_privs().unwrap());
            if had.contains(CapabilitySet::SETPCAP) {
                assert!(!capability_is_in_bounding_set(CapabilitySet::SYS_ADMIN).unwrap());
            }
        })
        .join()
        .unwrap();
        assert_eq!(capabilities(None).unwrap(), before, "other threads are as they were");
    }

    #[test]
    fn who_has_the_right_that_stands_for_those_of_bpf_keeps_it() {
        std::thread::spawn(|| {
            let has = capabilities(None).unwrap().permitted & (CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN);
            if has.is_empty() {
                return println!("SKIPPED: only root has rights that can be given up");
            }
            let sets = CapabilitySets { effective: has, permitted: has, inheritable: CapabilitySet::empty() };
            set_capabilities(None, sets).unwrap();
            keep_only(&Right::KEPT).unwrap();
            assert_eq!(capabilities(None).unwrap().effective, has);
            keep_only(&[Right::NetAdmin]).unwrap();
            assert_eq!(capabilities(None).unwrap().effective, CapabilitySet::NET_ADMIN);
        })
        .join()
        .unwrap();
    }
}
