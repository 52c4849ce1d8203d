//! How much a queue of ours lets out where nobody said what the hop carries.
//!
//! ```text
//! pace  = gain C                                                    [bit/s]
//! gain <- 0.95                           when more than 2 ms (or 2 packets) wait below our queue
//!         1                              else, after that
//!         min(gain x 1.1, 1.5)           else, when packets wait in ours
//!         gain                           else
//! below = wait between access point and station - wait in our own queue
//! ```
//!
//! C is what the deciding half has learned of data to the stations (`core::capacity`): what was delivered while something
//! waited. Where the queue is ours, it delivers what we let out, so at a pace of just C nothing could ever be learned of a
//! link that became faster; a pace that tries a little more finds out, and what that brings too much waits below for
//! one interval. Until C is known nothing is paced, or at the speed of the wire: who waits, waits where he did before.

use lasthop_core::ap::DirectionSnapshot;
use lasthop_core::packet::Direction;
use lasthop_core::units::{BitRate, Span};

/// In place of a pace where nothing is known: no hop is faster.
pub(super) const UNKNOWN: BitRate = BitRate::bps(100_000_000_000);
/// At most half more: an interval of 50 ms then adds 25 ms to what waits below, once.
const MOST: f64 = 1.5;
const RISE: f64 = 1.1;
/// Drains 2 ms below in 40 ms.
const DRAIN: f64 = 0.95;
/// What may wait below: the queue that windows are steered to.
const BELOW: Span = Span::from_millis(2);
/// One packet in service and one behind it wait always.
const PACKETS: u64 = 2;
/// Fewer are no backlog.
const BACKLOG: u64 = 4;

pub(super) struct Release {
    given: Option<BitRate>,
    learned: [Option<BitRate>; 2],
    gain: f64,
}

impl Release {
    pub(super) const fn new(given: Option<BitRate>) -> Self {
        Self { given, learned: [None; 2], gain: 1.0 }
    }

    /// What may leave to the stations while nothing comes from them; none while nothing is known.
    pub(super) fn capacity(&self) -> Option<BitRate> {
        self.given.or_else(|| Some(self.learned[Direction::ToStation.index()]?.mul_f64(self.gain)))
    }

    /// What a byte from the stations takes of the channel, in bytes to them.
    pub(super) fn cost_up(&self) -> f64 {
        let [down, up] = self.learned;
        match (self.given, down.zip(up)) {
            (None, Some((down, up))) => down.as_bps() as f64 / up.as_bps().max(1) as f64,
            _ => 1.0,
        }
    }

    /// After an interval: what was learned, and how many packets wait in our own queues.
    pub(super) fn on_learned(&mut self, directions: &[DirectionSnapshot; 2], waiting: u64) {
        self.learned = directions.map(|direction| direction.capacity);
        let down = &directions[Direction::ToStation.index()];
        let Some(capacity) = self.learned[Direction::ToStation.index()].filter(|_| self.given.is_none()) else {
            return;
        };
        let own = capacity.time_for(1_500 * waiting);
        let below = down.local.saturating_sub(own);
        if below > BELOW.max(capacity.time_for(1_500 * PACKETS)) {
            self.gain = DRAIN;
        } else if self.gain < 1.0 {
            self.gain = 1.0;
        } else if waiting >= BACKLOG {
            self.gain = (self.gain * RISE).min(MOST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(mbps: u64, local: Span) -> [DirectionSnapshot; 2] {
        let down = DirectionSnapshot { capacity: Some(BitRate::mbps(mbps)), local, ..DirectionSnapshot::default() };
        [down, DirectionSnapshot::default()]
    }

    #[test]
    fn nothing_is_paced_while_nothing_is_known() {
        let mut release = Release::new(None);
        assert_eq!(release.capacity(), None);
        release.on_learned(&learned(20, Span::ZERO), 0);
        assert_eq!(release.capacity(), Some(BitRate::mbps(20)));
    }

    #[test]
    fn a_capacity_that_was_given_is_what_leaves() {
        let mut release = Release::new(Some(BitRate::mbps(30)));
        release.on_learned(&learned(20, Span::from_millis(50)), 100);
        assert_eq!((release.capacity(), release.cost_up()), (Some(BitRate::mbps(30)), 1.0));
    }

    /// The hop carries ten times what was known; our queue is what holds it back.
    #[test]
    fn a_link_that_became_ten_times_as_fast_is_found_within_a_second() {
        let mut release = Release::new(None);
        let mut known = 5.0;
        let mut intervals = 0;
        while known < 47.5 {
            // Our queue has 40 packets, and nothing waits below: delivered is what was let out.
            let own = BitRate::from_bps_f64(known * 1e6).time_for(40 * 1_500);
            let mut told = learned(0, own);
            told[0].capacity = Some(BitRate::from_bps_f64(known * 1e6));
            release.on_learned(&told, 40);
            // The estimate follows at the second interval.
            known = release.capacity().unwrap().as_mbps_f64().min(50.0);
            intervals += 2;
            assert!(intervals < 100);
        }
        assert!(intervals <= 20, "{intervals} intervals of 50 ms");
    }

    #[test]
    fn what_waits_below_is_drained() {
        let mut release = Release::new(None);
        for _ in 0..10 {
            release.on_learned(&learned(20, Span::from_millis(24)), 40);
        }
        assert!(
            release.capacity().unwrap() > BitRate::mbps(25),
            "40 packets at 20 Mbit/s are 24 ms: all of it is ours"
        );
        release.on_learned(&learned(20, Span::from_millis(44)), 40);
        assert_eq!(release.capacity(), Some(BitRate::mbps(19)));
        release.on_learned(&learned(20, Span::from_millis(24)), 40);
        assert_eq!(release.capacity(), Some(BitRate::mbps(20)));
    }
}
