//! When the storage of a host is done with what it was asked to read or write: one schedule, one request at a time.

use lasthop_core::units::{Span, Time};
use lasthop_home::quantity::StorageRate;
use lasthop_home::scenario::Storage;

/// From an answer to the program's next request, what it takes at most where the program does nothing in between.
pub const AT_ONCE: Span = Span::from_micros(500);

/// Direction of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Into the storage.
    Write,
    /// Out of it.
    Read,
}

/// The one storage of a host.
///
/// Requests take `operation` + bytes / rate each, one after the other. Two things that a device does not have must not
/// add up: whoever answers wakes up late, which is taken off the next request; and a request that follows an answer
/// passes through the kernel and several threads, so that one within [`AT_ONCE`] counts as having waited already.
/// Neither makes the storage faster than its rates.
#[derive(Clone, Debug)]
pub struct Device {
    rates: Storage,
    busy_until: Time,
    late: Span,
}

impl Device {
    /// A storage that is idle.
    #[must_use]
    pub const fn new(rates: Storage) -> Self {
        Self { rates, busy_until: Time::ZERO, late: Span::ZERO }
    }

    /// When a request that comes `now` is done. `begins` is false for the further parts of a call that the kernel cut
    /// into several requests: they cost their bytes and no other `operation`.
    pub fn on_request(&mut self, now: Time, access: Access, bytes: u64, begins: bool) -> Time {
        let StorageRate(rate) = match access {
            Access::Write => self.rates.write,
            Access::Read => self.rates.read,
        };
        let operation = if begins { self.rates.operation } else { Span::ZERO };
        let came = Time::from_nanos(now.as_nanos().saturating_sub(self.late.as_nanos()));
        self.late = Span::ZERO;
        let begin = if came.since(self.busy_until) <= AT_ONCE { self.busy_until } else { came };
        self.busy_until = begin + operation + rate.map_or(Span::ZERO, |r| r.time_for(bytes));
        self.busy_until
    }

    /// The request that was done at `due` is answered only `now`.
    pub fn on_answered(&mut self, due: Time, now: Time) {
        self.late = now.since(due);
    }

    /// Everything that was asked for is answered `now`, done or not.
    pub fn on_hurried(&mut self, now: Time) {
        (self.busy_until, self.late) = (self.busy_until.min(now), Span::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_core::units::BitRate;

    const MS: Span = Span::from_millis(1);

    /// 400 kB/s in, 800 kB/s out.
    fn device(operation: Span) -> Device {
        let rate = |kilobytes: u64| StorageRate(Some(BitRate::bps(kilobytes * 8000)));
        Device::new(Storage { write: rate(400), read: rate(800), operation, ..Storage::default() })
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn a_request_takes_its_bytes_at_the_rate_of_its_direction_and_one_operation() {
        let mut storage = device(MS);
        assert_eq!(storage.on_request(at(100), Access::Write, 4000, true), at(111));
        assert_eq!(storage.on_request(at(200), Access::Read, 4000, true), at(206));
    }

    #[test]
    fn requests_wait_for_each_other_whichever_way_they_go() {
        let mut storage = device(Span::ZERO);
        assert_eq!(storage.on_request(at(0), Access::Write, 4000, true), at(10));
        assert_eq!(storage.on_request(at(1), Access::Read, 8000, true), at(20));
        assert_eq!(storage.on_request(at(2), Access::Write, 400, true), at(21));
    }

    #[test]
    fn the_parts_of_one_call_cost_one_operation() {
        let mut storage = device(MS);
        storage.on_request(at(0), Access::Write, 4000, true);
        assert_eq!(storage.on_request(at(11), Access::Write, 400, false), at(12));
    }

    /// When 100 writes of 10 ms are done, each answered `late` and followed by the next after `pause`.
    fn hundred_writes(late: Span, pause: Span) -> Time {
        let mut storage = device(Span::ZERO);
        let (mut now, mut due) = (at(100), at(0));
        for _ in 0..100 {
            due = storage.on_request(now, Access::Write, 4000, true);
            storage.on_answered(due, due + late);
            now = due + late + pause;
        }
        due
    }

    #[test]
    fn late_answers_and_the_way_through_the_kernel_do_not_add_up() {
        assert_eq!(hundred_writes(Span::from_micros(300), Span::ZERO), at(1100));
        assert_eq!(hundred_writes(Span::from_millis(40), AT_ONCE), at(1100));
    }

    #[test]
    fn what_a_program_does_between_its_calls_adds_up() {
        assert_eq!(hundred_writes(Span::from_millis(5), MS), at(1100 + 99));
    }

    #[test]
    fn whoever_comes_after_a_hurry_does_not_wait_for_what_was_answered_early() {
        let mut storage = device(Span::ZERO);
        assert_eq!(storage.on_request(at(0), Access::Write, 4_000_000, true), at(10_000));
        storage.on_hurried(at(100));
        assert_eq!(storage.on_request(at(100), Access::Write, 4000, true), at(110));
    }

    #[test]
    fn what_is_unlimited_is_done_at_once() {
        let mut storage = Device::new(Storage::default());
        assert!(storage.on_request(at(7), Access::Write, 1 << 40, true) <= at(7));
    }
}
