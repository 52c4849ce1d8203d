//! The rights (capabilities(7)) that this process has, and those that control needs.

/// A right that control needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// Attach programs to interfaces, set queue disciplines.
    NetAdmin,
    /// Load programs, make maps.
    Bpf,
    /// Load programs that the verifier checks as it checks root's: without it some are refused.
    Perfmon,
}

const ADMIN: u32 = 21;

impl Right {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::NetAdmin, Self::Bpf, Self::Perfmon];

    /// As capabilities(7) names it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NetAdmin => "CAP_NET_ADMIN",
            Self::Bpf => "CAP_BPF",
            Self::Perfmon => "CAP_PERFMON",
        }
    }

    const fn number(self) -> u32 {
        match self {
            Self::NetAdmin => 12,
            Self::Perfmon => 38,
            Self::Bpf => 39,
        }
    }

    /// Whether a process with these effective capabilities has it; CAP_SYS_ADMIN stands for the two of BPF.
    fn is_in(self, effective: u64) -> bool {
        let has = |number: u32| effective >> number & 1 == 1;
        has(self.number()) || (!matches!(self, Self::NetAdmin) && has(ADMIN))
    }
}

/// What this process lacks of them.
#[must_use]
pub fn missing() -> Vec<Right> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = effective(&status).unwrap_or(u64::MAX);
    Right::ALL.into_iter().filter(|right| !right.is_in(effective)).collect()
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

/// The effective capabilities in `/proc/PID/status`.
fn effective(status: &str) -> Option<u64> {
    let digits = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(digits.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lacks(effective: u64) -> Vec<Right> {
        Right::ALL.into_iter().filter(|right| !right.is_in(effective)).collect()
    }

    #[test]
    fn root_has_all_and_a_user_none() {
        assert_eq!(effective("Name:\tx\nCapEff:\t000001ffffffffff\n"), Some(0x1ff_ffff_ffff));
        assert!(lacks(0x1ff_ffff_ffff).is_empty());
        assert_eq!(lacks(0), Right::ALL);
        assert_eq!(effective("nothing of it"), None);
    }

    #[test]
    fn each_right_that_is_missing_is_named() {
        assert_eq!(names(&lacks(1 << 12 | 1 << 39)), "CAP_PERFMON");
        assert_eq!(names(&lacks(1 << 12)), "CAP_BPF and CAP_PERFMON");
        assert_eq!(names(&lacks(1 << 21)), "CAP_NET_ADMIN", "CAP_SYS_ADMIN holds the rights of BPF");
        assert_eq!(names(&lacks(0)), "CAP_NET_ADMIN, CAP_BPF and CAP_PERFMON");
    }
}
