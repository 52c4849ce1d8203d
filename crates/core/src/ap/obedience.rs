//! Whether a sender keeps to its window; and with that the window scale of a connection that began before anybody watched, where nobody
//! else knows it either: found from below.
//!
//! ```text
//! f      in flight, bytes: what was sent and not acknowledged, and no more than arrives in a round trip
//! w      the window it was told in the last two round trips, at the scale s that it is taken for
//! s     <- s + 1 + floor(log2(f / (5/4 w)))            where f > 5/4 w, two round trips after s was changed last
//! ```
//!
//! A sender has no more in flight than was advertised to it, so whoever has more than `w` reads its window in larger units. Each step is a bound
//! from below: until the last one is taken the window that is told is larger than the one that is meant, never smaller, so that
//! nobody starves by a wrong one. A sender that has more in flight than any scale explains, or than the scale that its handshake or
//! conntrack told does, ignores windows: it cannot be held by them (RFC 9293 section 3.8.6 forbids it, RFC 7323 section 2.3 ends
//! scales at 14).

/// Nobody told it for so long, s: by then the host has asked conntrack of hundreds, a few per interval (`controller::scales`).
const UNKNOWN_FOR: f64 = 1.0;
/// Round trips from a scale to what it does: one until the sender knows it, one until what it had in flight before is acknowledged.
const TRIPS: f64 = 2.0;
/// What is in flight varies by a fifth (as what a hop delivers does, `capacity::SURPRISE`), a quarter is beyond it, and by two
/// segments that are acknowledged together (RFC 9293 section 3.8.6.3).
const VARIES: f64 = 1.25;
/// It has more in flight than was advertised to it so many times one after the other: once may be what it had sent before its window shrank.
const IGNORED: u8 = 2;
/// RFC 7323 section 2.3.
const LARGEST: u8 = 14;

/// What an interval showed of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown {
    /// The scale that the fast path takes it for.
    pub(super) scale: Option<u8>,
    /// Under way, bytes.
    pub(super) in_flight: f64,
    /// The window in force at that scale, bytes.
    pub(super) window: f64,
    /// Largest segment, bytes.
    pub(super) mss: f64,
    /// Round trip, queue and all, s.
    pub(super) rtt: f64,
}

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Obedience {
    /// The scale that it is taken for, and whether it was found here.
    scale: Option<u8>,
    found: bool,
    /// For how long nobody knew, s; round trips since it was looked at.
    unknown: f64,
    trips: f64,
    /// The widest window of this round trip and of those before.
    widest: f64,
    /// How many times it had more in flight than that.
    exceeded: u8,
}

impl Obedience {
    /// Its window does not hold it.
    pub(super) const fn ignores_windows(&self) -> bool {
        self.exceeded >= IGNORED
    }

    /// An interval of `dt` in which it carried payload; `Some`: it is to be taken for that.
    pub(super) fn on_interval(&mut self, shown: &Shown, dt: f64) -> Option<u8> {
        let Some(scale) = shown.scale else {
            self.unknown += dt;
            return (self.unknown >= UNKNOWN_FOR).then(|| self.take_for(0));
        };
        if self.scale != Some(scale) {
            *self = Self { scale: Some(scale), ..Self::default() };
        }
        self.widest = self.widest.max(shown.window);
        self.trips += dt / shown.rtt.max(dt);
        if self.trips < TRIPS {
            return None;
        }
        let ratio = shown.in_flight / (VARIES * self.widest + 2.0 * shown.mss);
        (self.trips, self.widest) = (0.0, shown.window);
        if self.found && scale < LARGEST {
            return (ratio > 1.0).then(|| self.take_for((scale + 1 + ratio.log2() as u8).min(LARGEST)));
        }
        self.exceeded = if ratio > 1.0 { self.exceeded.saturating_add(1) } else { 0 };
        None
    }

    fn take_for(&mut self, scale: u8) -> u8 {
        *self = Self { scale: Some(scale), found: true, ..Self::default() };
        scale
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sender that fills what it understood of a window of 50,000 bytes a round trip and an interval ago, up to `most` bytes and
    /// up to a fifth more than that; its scale is `scale`.
    fn found(scale: u8, most: f64) -> u8 {
        let mut least = Obedience::default();
        let mut found = vec![None; 4];
        for interval in 0..400 {
            let varies = 1.0 + 0.2 * f64::from(interval % 2);
            let understood: Option<u8> = found[found.len() - 4];
            let in_flight =
                understood.map_or(most, |found| (50_000.0 * varies * f64::from(scale - found).exp2()).min(most));
            let now = *found.last().unwrap();
            let shown = Shown { scale: now, in_flight, window: 50_000.0, mss: 1448.0, rtt: 0.1 };
            found.push(least.on_interval(&shown, 0.05).or(now));
            assert!(found.last().unwrap().is_none_or(|found| found <= scale), "{found:?} of {scale}");
        }
        found.last().unwrap().unwrap()
    }

    #[test]
    fn it_is_found_from_below_and_never_too_large() {
        for scale in 0..=14 {
            assert_eq!(found(scale, 1e9), scale);
        }
        assert_eq!(found(7, 400_000.0), 7);
        assert_eq!(found(7, 60_000.0), 0, "it has no more under way than it may");
    }

    #[test]
    fn who_is_asked_first_has_half_a_second_to_tell() {
        let mut least = Obedience::default();
        let shown = |scale| Shown { scale, in_flight: 1e6, window: 50_000.0, mss: 1448.0, rtt: 0.1 };
        assert_eq!((0..10).find_map(|_| least.on_interval(&shown(None), 0.05)), None);
        assert_eq!((0..99).find_map(|_| least.on_interval(&shown(Some(7)), 0.05)), None);
    }

    /// Its scale was told. A window of 50,000 bytes becomes 10,000 after two seconds; what was in flight is gone `late` intervals later.
    fn ignores(late: usize) -> bool {
        let mut sender = Obedience::default();
        (0..200).any(|interval| {
            let window = if interval < 40 { 50_000.0 } else { 10_000.0 };
            let in_flight = if interval < 40 + late { 50_000.0 } else { 10_000.0 };
            sender.on_interval(&Shown { scale: Some(7), in_flight, window, mss: 1448.0, rtt: 0.1 }, 0.05);
            sender.ignores_windows()
        })
    }

    #[test]
    fn who_had_sent_before_its_window_shrank_ignores_nothing() {
        // Behind a hop that collapses a round trip is several times as long as the newest one that has ended.
        assert!(!ignores(0) && !ignores(2) && !ignores(10));
        assert!(ignores(160));
    }

    #[test]
    fn what_somebody_else_tells_stays() {
        let mut least = Obedience::default();
        let shown = Shown { scale: None, in_flight: 1e6, window: 50_000.0, mss: 1448.0, rtt: 0.1 };
        assert_eq!((0..20).filter_map(|_| least.on_interval(&shown, 0.05)).next(), Some(0));
        assert_eq!((0..99).find_map(|_| least.on_interval(&Shown { scale: Some(7), ..shown }, 0.05)), None);
        let mut unasked = Obedience::default();
        assert_eq!((0..99).find_map(|_| unasked.on_interval(&Shown { scale: Some(2), ..shown }, 0.05)), None);
    }
}
