//! Whether what waits is a queue, or the path is longer than it was remembered or believed.
//!
//! Both show as a longer round trip, and both as less delivered by the same windows: W = X (d + q). They differ in what smaller windows
//! do. Of a queue they take what they are smaller by, and as much is delivered as before; over a longer path the round trip stays and
//! less is delivered. The law makes windows smaller in either case; so this waits until they are, and looks.
//!
//! Sources: Little (1961). The trouble is known of Vegas, whose rate falls for good when its route becomes longer (La, Walrand,
//! Anantharam, "Issues in TCP Vegas", 1999).

use crate::units::BitRate;

/// Windows have to be smaller by this part: what a bottleneck delivers is known to half of it (`capacity::SURPRISE`). At 0 none is told
/// (unit tests), nor at 1.9 (`longer_path` of the simulator: 0.75 of the goodput instead of 0.98).
const SMALLER: f64 = 0.2;
/// What is delivered is told in whole packets: those that one acknowledgment is for, at both ends of what it is counted over. Without it
/// a slow WAN link's queue is taken for its path (`slow_lines` of the simulator).
const QUANTUM: f64 = 4.0 * 12_000.0;
/// What smaller windows did is seen after a round trip, and in means over another, whatever that waits for. Without it none is told
/// (`over_a_long_path_what_windows_did_is_waited_for`).
const SEEN_AFTER: f64 = 2.0;

/// What an interval showed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown {
    /// Of those that take what they get, together, bytes.
    pub(super) windows: f64,
    /// How many those are.
    pub(super) elastic: usize,
    /// Least queueing delay, below which one there is none, and the round trip without it, s.
    pub(super) queue: f64,
    pub(super) empty: f64,
    pub(super) base_rtt: f64,
    /// The newest round trips, with everything that waits anywhere, s.
    pub(super) rtt: f64,
    /// What was delivered in the mean of a round trip, bit/s.
    pub(super) delivered: f64,
    /// What the bottleneck carries, where that was measured.
    pub(super) capacity: Option<BitRate>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct PathTest {
    before: Option<Shown>,
    /// For how long windows have been smaller, s, and the least they were then, bytes.
    smaller: f64,
    least: f64,
    /// Since the test began, as long as they were not, s.
    age: f64,
}

impl PathTest {
    /// One interval of `dt`; `now`: if a round trip ended in it. If the path is longer: what the bottleneck was measured to carry before.
    pub(super) fn on_interval(&mut self, now: Option<Shown>, dt: f64) -> Option<Option<BitRate>> {
        self.smaller += if self.smaller > 0.0 { dt } else { 0.0 };
        let now = now?;
        let Some(before) = self.before.filter(|_| now.queue > now.empty) else {
            self.begin((now.queue > now.empty).then_some(now));
            return None;
        };
        let rtt = before.base_rtt + before.queue;
        // What takes twice the queue leaves nothing of it.
        let part = (2.0 * before.queue / rtt).clamp(SMALLER / 2.0, SMALLER);
        let takes = part * rtt;
        let rose = now.queue > before.queue + takes / 2.0;
        if rose || now.windows > before.windows || now.elastic != before.elastic {
            self.begin(Some(Shown { capacity: before.capacity, ..now }));
            return None;
        }
        if now.windows > before.windows * (1.0 - part) {
            self.smaller = 0.0;
            // What those windows bring is seen later.
            let seen = self.age < SEEN_AFTER * rtt;
            self.age += dt;
            if seen && self.age >= SEEN_AFTER * rtt {
                self.before = Some(Shown { delivered: now.delivered, ..before });
            }
            return None;
        }
        if self.smaller == 0.0 {
            (self.smaller, self.least) = (dt, now.windows);
        }
        self.least = self.least.min(now.windows);
        if now.windows > self.least * (1.0 + part / 2.0) {
            // They grow again, as after a drain: what is delivered in the mean is of smaller ones than what waits.
            self.begin(Some(Shown { capacity: before.capacity, ..now }));
            return None;
        }
        if self.smaller < SEEN_AFTER * now.rtt.max(now.base_rtt + now.queue) + dt {
            return None;
        }
        let stays = now.queue > before.queue - takes / 2.0;
        // What has just fallen is not yet in the mean: what its windows bring is.
        let had = before.delivered.min(before.windows * 8.0 / rtt);
        let less = (had * part / 2.0).max(QUANTUM / rtt.max(dt));
        let longer = stays && now.delivered < had - less;
        self.begin((!longer).then_some(now));
        longer.then_some(before.capacity)
    }

    fn begin(&mut self, before: Option<Shown>) {
        *self = Self { before, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DT: f64 = 0.05;

    /// A bottleneck of 20 Mbit/s behind a path of 40 ms in which windows of 110 kB leave 4 ms of queue.
    fn shown(windows: f64, queue: f64, delivered: f64) -> Option<Shown> {
        let capacity = Some(BitRate::mbps(20));
        Some(Shown { windows, elastic: 2, queue, empty: 0.0003, base_rtt: 0.04, rtt: 0.0, delivered, capacity })
    }

    /// What is found of windows that become smaller by a per cent per interval, and when.
    fn found(mut on: impl FnMut(f64) -> Option<Shown>) -> Option<(i32, f64)> {
        let mut path = PathTest::default();
        (0..60).find_map(|n| {
            let windows = 110e3 * 0.99f64.powi(n);
            path.on_interval(on(windows), DT).map(|carries| (n, carries.expect("known").as_bps() as f64))
        })
    }

    #[test]
    fn what_stays_while_windows_take_more_than_it_is_a_longer_path() {
        // 14 ms more of path: windows of 110 kB bring 16.3 Mbit/s over it.
        let over = |windows: f64| windows * 8.0 / 0.054;
        let (n, carries) = found(|windows| shown(windows, 0.014, over(windows))).expect("it is found");
        assert!((23..30).contains(&n) && carries == 20e6, "interval {n}, {carries} bit/s");
    }

    #[test]
    fn over_a_long_path_what_windows_did_is_waited_for() {
        // 200 ms and 60 more: windows that become smaller by 5 % per interval bring less 260 ms later, and C follows what they bring.
        let (mut path, mut mean) = (PathTest::default(), 20e6);
        let windows = |n: i32| 500e3 * 0.95f64.powi(n.clamp(0, 40));
        let found = (0..60).find_map(|n| {
            mean += (windows(n - 5) * 8.0 / 0.26 - mean) * DT / 0.26;
            let capacity = Some(BitRate::from_bps_f64(mean.min(20e6)));
            let shown = Shown { windows: windows(n), base_rtt: 0.2, capacity, ..shown(0.0, 0.06, mean).expect("told") };
            path.on_interval(Some(shown), DT)
        });
        let carries = found.flatten().expect("it is found");
        assert!(carries.as_bps() > 19_000_000, "{carries:?}");
    }

    #[test]
    fn behind_a_queue_of_the_other_direction_what_windows_did_is_waited_for() {
        // A link falls from 20 to 4 Mbit/s both ways: what windows that are halved leave of its queue is seen when their ACKs have waited, too.
        let found = |rtt: f64| {
            let mut path = PathTest::default();
            (0..30).find_map(|n: i32| {
                let windows = if n < 2 { 110e3 } else { 30e3 };
                let (queue, delivered) = if n < 10 { (0.015, 4e6 + 16e6 * 0.3f64.powi(n)) } else { (0.002, 4e6) };
                path.on_interval(shown(windows, queue, delivered).map(|shown| Shown { rtt, ..shown }), DT)
            })
        };
        assert_eq!(found(0.26), None);
        assert!(found(0.0).is_some(), "or it is taken for a path");
    }

    #[test]
    fn what_becomes_shorter_with_windows_is_a_queue() {
        // A WAN link that fell to 16 Mbit/s: windows leave a queue of 15 ms, and then less.
        assert_eq!(found(|windows| shown(windows, (windows * 8.0 / 16e6 - 0.04).max(0.0), 16e6)), None);
    }

    #[test]
    fn what_waits_again_after_a_drain_is_a_queue() {
        // Windows are halved for four intervals, in which no round trip ends, and grow again; what is delivered in the mean is behind.
        let (mut path, mut mean) = (PathTest::default(), 20e6_f64);
        let found = (0..40).find_map(|n| {
            let windows: f64 = match n {
                0..10 => 110e3,
                10..14 => 55e3,
                _ => 85e3,
            };
            mean += ((windows * 8.0 / 0.044).min(20e6) - mean) * 0.3;
            path.on_interval(shown(windows, 0.004, mean).filter(|_| !(11..14).contains(&n)), DT)
        });
        assert_eq!(found, None);
    }

    #[test]
    fn what_stays_because_somebody_else_fills_it_is_a_queue() {
        // As much is delivered as before: others have what these windows leave.
        assert_eq!(found(|windows| shown(windows, 0.014, 20e6)), None);
    }

    #[test]
    fn who_comes_or_goes_meanwhile_begins_it_anew() {
        let mut n = 0;
        let over = |windows: f64| windows * 8.0 / 0.054;
        let in_turn = found(|windows| {
            n += 1;
            shown(windows, 0.014, over(windows)).map(|shown| Shown { elastic: 2 + n / 10 % 2, ..shown })
        });
        assert_eq!(in_turn, None);
    }
}
