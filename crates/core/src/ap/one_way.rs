//! The queues on the way in and out, by the timestamps of a sender (RFC 7323): the one-way delay less the least of it of late (LEDBAT, RFC
//! 6817). What goes out is timed by its answer: when it left, and the timestamp of the very packet that answered it. The clock's offset is in both; its tick is found, its drift is forgotten with the least.

use super::sample::Stamps;
use crate::meter::rtt::MinFilter;
use crate::units::{Span, Time};

/// Ticks of the clocks that are in use, ns: the simulator's, Linux's and others' of 1,000, 250 and 100 Hz.
const TICKS: [f64; 4] = [1e3, 1e6, 4e6, 1e7];
/// A queue that grows stretches what is measured of a tick, at most so many times; what is measured is shorter by no more than
/// this part.
const DISPERSED: f64 = 3.8;
const SHORTER: f64 = 0.05;
/// A longer delay is another clock, s.
const LONGEST: f64 = 5.0;
/// Ticks that have to pass before it is.
const ENOUGH: f64 = 50.0;
/// A segment that came longer ago than this says nothing of now.
const FRESH: Span = Span::from_millis(100);
/// Keeps delays above zero whatever the clock does until its tick is known, s.
const OFFSET: f64 = 1000.0;

/// See the module.
#[derive(Debug)]
pub(super) struct OneWay {
    memory: Span,
    first: Option<(Time, u32)>,
    tick: Option<f64>,
    least: MinFilter,
    queue: Option<f64>,
    soonest: Option<f64>,
    /// The same of what goes out, that its answers' timestamps tell.
    first_answered: Option<(Time, u32)>,
    handshake: Option<Span>,
    least_out: MinFilter,
    delay_out: Option<f64>,
}

impl OneWay {
    pub(super) fn new(memory: Span) -> Self {
        Self {
            memory,
            first: None,
            tick: None,
            least: MinFilter::new(memory),
            queue: None,
            soonest: None,
            first_answered: None,
            handshake: None,
            least_out: MinFilter::new(memory),
            delay_out: None,
        }
    }

    /// Queueing delay of the newest segment, s.
    pub(super) const fn queue(&self) -> Option<f64> {
        self.queue
    }

    /// Queueing delay of the segment of the newest interval that waited least, s.
    pub(super) const fn soonest(&self) -> Option<f64> {
        self.soonest
    }

    /// Queueing delay of what was answered last, on its way out, s; `rtt`: the least round trip, which was some way out and at least the least
    /// way in.
    pub(super) fn queue_out(&self, rtt: Option<Span>) -> Option<f64> {
        let least = self.least_out.min()?.as_secs_f64();
        let of_rtt = rtt
            .zip(self.least.min())
            .map_or(least, |(rtt, least_in)| rtt.as_secs_f64() - (least_in.as_secs_f64() - OFFSET) + OFFSET);
        Some(self.delay_out? - least.min(of_rtt))
    }

    /// Least of both ways together. A timestamp is up to a tick older than it says, so that ways out seem shorter.
    pub(super) fn path(&self) -> Option<Span> {
        let both = self.least.min()?.as_secs_f64() + self.least_out.min()?.as_secs_f64();
        Some(Span::from_secs_f64((both - 2.0 * OFFSET + self.tick? / 1e9).max(0.0)))
    }

    /// The least is remembered from `now` on.
    pub(super) fn hold(&mut self, now: Time) {
        self.least.hold(now);
        self.least_out.hold(now);
    }

    /// The path out has changed.
    pub(super) fn forget_least_out(&mut self) {
        (self.least_out, self.handshake) = (self.least_out.anew(), None);
    }

    /// When left what was answered, and the timestamp of its answer; a full one takes `transmission` longer than a handshake.
    pub(super) fn on_answer(&mut self, now: Time, answered: Option<(Time, u32)>, transmission: Span) {
        self.delay_out = None;
        let Some(answered) = answered else { return };
        let earliest = *self.first_answered.get_or_insert(answered);
        if self.handshake.is_none() {
            self.handshake = self.out(earliest);
        }
        let (Some(delay), Some(handshake)) = (self.out(answered), self.handshake) else { return };
        self.least_out.on_sample(now, delay.saturating_sub(transmission).max(handshake).min(delay));
        self.delay_out = Some(delay.as_secs_f64());
    }

    /// One-way delay of what left and was answered, and [`OFFSET`].
    fn out(&self, (left, value): (Time, u32)) -> Option<Span> {
        let ((first_at, first), tick) = self.first.zip(self.tick)?;
        let passed = left.as_nanos() as f64 - first_at.as_nanos() as f64;
        let delay = (f64::from(value.wrapping_sub(first) as i32) * tick - passed) / 1e9;
        (delay.abs() <= LONGEST).then(|| Span::from_secs_f64(delay + OFFSET))
    }

    /// The path has changed.
    pub(super) fn forget_least(&mut self) {
        self.least = self.least.anew();
    }

    /// The clock of its sender is understood.
    pub(super) const fn is_known(&self) -> bool {
        self.tick.is_some()
    }

    /// When segments came, and their timestamps.
    pub(super) fn on_stamps(&mut self, now: Time, stamps: Option<Stamps>) {
        (self.queue, self.soonest) = (None, None);
        let Some(Stamps { older, newer: (at, value), soonest }) = stamps else { return };
        // The handshake met less of a queue than what follows it.
        let (first_at, first) = *self.first.get_or_insert(older);
        let (passed, ticks) = (at.since(first_at).as_nanos() as f64, f64::from(value.wrapping_sub(first)));
        if ticks > f64::from(u32::MAX / 2) {
            // The clock has run for half of its circle, or went back: it begins anew.
            let memory = self.memory;
            *self = Self::new(memory);
            return;
        }
        if now.since(at) > FRESH || ticks < ENOUGH {
            return;
        }
        if self.tick.is_none() {
            let measured = passed / ticks;
            let fits = |tick: &f64| measured >= tick * (1.0 - SHORTER) && measured <= tick * DISPERSED;
            self.tick = TICKS.into_iter().rev().find(fits);
            self.least.on_sample(now, Span::from_secs_f64(OFFSET));
        }
        let Some(tick) = self.tick else { return };
        let delay = (passed - ticks * tick) / 1e9;
        if delay.abs() > LONGEST {
            let memory = self.memory;
            *self = Self::new(memory);
            return;
        }
        // By another tick than was thought another one came soonest: it waited no less than it did.
        let later = (at.as_nanos() as f64 - soonest.0.as_nanos() as f64) / 1e9
            - f64::from(value.wrapping_sub(soonest.1) as i32) * tick / 1e9;
        let [delay, soonest] =
            [delay, delay - later.max(0.0)].map(|delay| Span::from_secs_f64((delay + OFFSET).max(0.0)));
        self.least.on_sample(now, soonest);
        let queue = |delay: Span| self.least.min().map(|least| (delay.as_secs_f64() - least.as_secs_f64()).max(0.0));
        (self.queue, self.soonest) = (queue(delay), queue(soonest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: f64) -> Time {
        Time::from_nanos((ms * 1e6) as u64)
    }

    /// A segment that was stamped at `sent` by a clock of `tick` ms and came when its path of 30 ms and `queue` ms were over.
    fn feed(one_way: &mut OneWay, sent: f64, tick: f64, queue: f64) -> Option<f64> {
        let (came, value) = (at(sent + 30.0 + queue), 7_000 + (sent / tick) as u32);
        let newer = (came, value);
        one_way.on_stamps(came, Some(Stamps { older: (at(30.0), 7_000), newer, soonest: newer }));
        one_way.queue().map(|queue| queue * 1e3)
    }

    #[test]
    fn what_is_added_to_the_path_is_a_queue_whatever_the_clock() {
        for tick in [0.001, 1.0, 4.0, 10.0] {
            let mut one_way = OneWay::new(Span::from_secs(10));
            assert_eq!(feed(&mut one_way, 20.0 * tick, tick, 0.0), None, "too few ticks: {tick}");
            (1..20).for_each(|n| {
                feed(&mut one_way, 60.0 * tick * f64::from(n), tick, 0.0);
            });
            let queue = feed(&mut one_way, 1_300.0 * tick, tick, 25.0).expect("the clock is understood");
            assert!((25.0 - 0.1..=25.0 + tick).contains(&queue), "{queue} ms with a tick of {tick} ms");
        }
    }

    #[test]
    fn each_way_has_its_own_queue_and_the_path_is_the_least_of_both() {
        for tick in [0.001, 1.0, 4.0, 10.0] {
            let mut one_way = OneWay::new(Span::from_secs(10));
            // 20 ms out and 30 ms in, never empty both ways at once.
            let mut answer = |sent: f64, out: f64, queue: f64| {
                let stamped = sent + 20.0 + out;
                feed(&mut one_way, stamped, tick, queue);
                let value = 7_000 + (stamped / tick) as u32;
                one_way.on_answer(at(stamped + 30.0 + queue), Some((at(sent), value)), Span::ZERO);
                (one_way.queue_out(None).map(|queue| queue * 1e3), one_way.path().map(|path| path.as_secs_f64() * 1e3))
            };
            for n in 1..60 {
                let alternating = f64::from(n % 2) * 15.0;
                // No multiple of a tick, so that every phase of it is met.
                answer(60.37 * tick.max(1.0) * f64::from(n), alternating, 15.0 - alternating);
            }
            let (out, path) = answer(4_000.0 * tick.max(1.0), 40.0, 25.0);
            let (out, path) = (out.expect("the clock is understood"), path.unwrap());
            assert!((40.0 - tick - 0.1..=40.0 + tick + 0.1).contains(&out), "{out} ms out with a tick of {tick} ms");
            assert!((50.0 - 0.1..=50.0 + tick + 0.1).contains(&path), "a path of {path} ms with a tick of {tick} ms");
        }
    }

    #[test]
    fn the_segment_that_came_soonest_tells_what_all_waited_at_least() {
        let mut one_way = OneWay::new(Span::from_secs(10));
        (1..20).for_each(|n| {
            feed(&mut one_way, 60.0 * f64::from(n), 1.0, 0.0);
        });
        let stamp = |sent: f64, queue: f64| (at(sent + 30.0 + queue), 7_000 + sent as u32);
        let mut told = |soonest| {
            let stamps = Stamps { older: (at(30.0), 7_000), newer: stamp(2_040.0, 25.0), soonest };
            one_way.on_stamps(at(2_095.0), Some(stamps));
            [one_way.queue(), one_way.soonest()].map(|queue| (queue.expect("the clock is understood") * 1e3).round())
        };
        assert_eq!(told(stamp(2_010.0, 4.0)), [25.0, 4.0]);
        assert_eq!(told(stamp(2_010.0, 40.0)), [25.0, 25.0], "by another tick that one came soonest");
    }

    #[test]
    fn a_queue_that_was_there_from_the_first_data_on_is_one() {
        let mut one_way = OneWay::new(Span::from_secs(10));
        // 100 ms of it within 300 ms: each tick seems to last longer.
        let shown: Vec<_> = (1..=6).filter_map(|n| feed(&mut one_way, 50.0 * f64::from(n), 1.0, 100.0)).collect();
        assert!(shown.last().is_some_and(|queue| (queue - 100.0).abs() < 2.0), "{shown:?}");
    }

    #[test]
    fn a_clock_of_no_known_tick_tells_nothing() {
        let mut one_way = OneWay::new(Span::from_secs(10));
        assert!((1..100).all(|n| feed(&mut one_way, 50.0 * f64::from(n), 0.1, 0.0).is_none()) && !one_way.is_known());
    }

    #[test]
    fn another_clock_behind_the_same_connection_is_learned_anew() {
        let mut one_way = OneWay::new(Span::from_secs(10));
        (1..10).for_each(|n| {
            feed(&mut one_way, 60.0 * f64::from(n), 1.0, 0.0);
        });
        let newer = (at(700.0), 100_000);
        one_way.on_stamps(at(700.0), Some(Stamps { older: (at(30.0), 7_000), newer, soonest: newer }));
        assert!(one_way.queue().is_none() && !one_way.is_known());
    }

    #[test]
    fn a_clock_that_has_run_for_half_of_its_circle_begins_anew() {
        let mut one_way = OneWay::new(Span::from_secs(10));
        (1..10).for_each(|n| {
            feed(&mut one_way, 60.0 * f64::from(n), 1.0, 0.0);
        });
        let late = 2_200_000_000.0;
        assert!(feed(&mut one_way, late, 1.0, 0.0).is_none() && !one_way.is_known());
        let after = |ms: f64| {
            let stamp = |ms: f64| (at(late + 30.0 + ms), 7_000u32.wrapping_add((late + ms) as u32));
            Some(Stamps { older: stamp(0.0), newer: stamp(ms), soonest: stamp(ms) })
        };
        (0..10).for_each(|n| one_way.on_stamps(at(late + 30.0 + 60.0 * f64::from(n)), after(60.0 * f64::from(n))));
        assert!(one_way.queue().is_some_and(|queue| queue < 0.002), "{:?}", one_way.queue());
    }
}
