//! The last microseconds before a deadline.

use lasthop_core::units::{Span, Time};

/// How long before a deadline ppoll ends and spinning begins: what a wake-up usually costs.
pub const SPIN: Span = Span::from_micros(25);
/// Largest share of the time spent spinning: beyond some 10,000 packets/s the thread would otherwise never sleep, and a
/// real-time thread that never sleeps is stopped by the kernel for 50 ms a second.
const SPIN_SHARE: u64 = 8;
/// Spinning that may be saved up.
const SPIN_SAVED: Span = Span::from_millis(2);
/// How much spinning is still allowed.
#[derive(Debug, Default)]
pub struct Spin {
    credit: Span,
    seen: Time,
}

impl Spin {
    /// Whether there is enough left for one deadline.
    pub fn may(&mut self, now: Time) -> bool {
        self.credit = (self.credit + now.since(self.seen) / SPIN_SHARE).min(SPIN_SAVED);
        self.seen = now;
        self.credit >= SPIN
    }

    /// Spins until `deadline`, [`SPIN`] at most.
    pub fn until(&mut self, deadline: Time, clock: impl Fn() -> Time) {
        let begun = clock();
        let latest = deadline.min(begun + SPIN);
        let mut now = begun;
        while now < latest {
            std::hint::spin_loop();
            now = clock();
        }
        self.credit = self.credit.saturating_sub(now.since(begun));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn spinning_takes_no_more_than_its_share_of_the_time() {
        let clock = Cell::new(Time::ZERO);
        let tick = || {
            clock.set(clock.get() + Span::from_micros(1));
            clock.get()
        };
        let mut spin = Spin::default();
        let mut spun = 0;
        for _ in 0..100_000 {
            if spin.may(clock.get()) {
                let before = clock.get();
                spin.until(clock.get() + Span::from_micros(20), tick);
                spun += clock.get().since(before).as_nanos();
            }
            clock.set(clock.get() + Span::from_micros(20));
        }
        let share = spun as f64 / clock.get().as_nanos() as f64;
        assert!((0.08..=0.15).contains(&share), "{share}");
    }
}
