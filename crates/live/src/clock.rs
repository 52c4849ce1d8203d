//! The clock that the data path measures by.

use lasthop_core::units::Time;
use rustix::time::{ClockId, clock_gettime};

/// Now, as `bpf_ktime_get_ns` tells it.
#[must_use]
pub fn now() -> Time {
    let t = clock_gettime(ClockId::Monotonic);
    Time::from_nanos(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
}
