//! CLOCK_MONOTONIC, the time of models, players and schedules alike.

use lasthop_core::units::{Span, Time};
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Now.
#[must_use]
pub fn now() -> Time {
    Time::from_nanos(nanos(clock_gettime(ClockId::Monotonic)))
}

/// What to add to a [`Time`] to get nanoseconds of Unix time.
#[must_use]
pub fn to_wall() -> u64 {
    nanos(clock_gettime(ClockId::Realtime)).saturating_sub(now().as_nanos())
}

/// Processor time of the calling thread so far.
#[must_use]
pub fn thread_time() -> Span {
    Span::from_nanos(nanos(clock_gettime(ClockId::ThreadCPUTime)))
}

/// Sleeps until `at`; returns at once when that is past.
pub fn sleep_until(at: Time) {
    let at = timespec(at.as_nanos());
    while matches!(clock_nanosleep_absolute(rustix::thread::ClockId::Monotonic, &at), Err(rustix::io::Errno::INTR)) {}
}

/// Converts a span into a timeout for ppoll.
#[must_use]
pub fn timeout(span: Span) -> Timespec {
    timespec(span.as_nanos())
}

fn nanos(t: Timespec) -> u64 {
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

fn timespec(nanos: u64) -> Timespec {
    Timespec { tv_sec: (nanos / 1_000_000_000).cast_signed(), tv_nsec: (nanos % 1_000_000_000).cast_signed() as _ }
}
