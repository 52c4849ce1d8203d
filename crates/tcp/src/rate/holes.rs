//! Which datagrams are missing, and from when on they count as lost.
//!
//! A datagram is lost when three with higher numbers have arrived (RFC 5348 section 5.1, as TCP's three duplicates). The time
//! of its loss is that at which it would have arrived, on the line between its neighbours (section 5.2).

use std::collections::VecDeque;

use lasthop_core::units::{Span, Time};

/// Datagrams of higher numbers after which one is lost.
const LATER: u32 = 3;

/// Datagrams in a row that have not arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hole {
    /// The first of them.
    pub first: u64,
    /// Behind the last of them.
    pub end: u64,
    /// When the one before the first arrived.
    pub before: Time,
    /// When the datagram at `end` arrived.
    pub after: Time,
    /// Arrivals of higher numbers.
    later: u32,
}

impl Hole {
    /// How many.
    pub const fn count(&self) -> u64 {
        self.end - self.first
    }

    /// When `sequence` would have arrived.
    pub fn time_of(&self, sequence: u64) -> Time {
        let steps = self.count() + 1;
        let step = sequence - self.first + 1;
        self.before
            + Span::from_nanos((u128::from(self.gap().as_nanos()) * u128::from(step) / u128::from(steps)) as u64)
    }

    /// How many of them in a row would have arrived within `span`, at least 1.
    pub fn within(&self, span: Span) -> u64 {
        let (gap, steps) = (u128::from(self.gap().as_nanos()), u128::from(self.count()) + 1);
        if gap == 0 {
            return self.count();
        }
        ((u128::from(span.as_nanos()) * steps / gap) as u64).clamp(1, self.count())
    }

    /// Between the arrivals on either side.
    pub fn gap(&self) -> Span {
        self.after.since(self.before)
    }
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Holes {
    /// Behind the highest that arrived.
    expected: u64,
    last: Option<Time>,
    holes: VecDeque<Hole>,
}

impl Holes {
    /// A datagram arrived; whether it counts as new: it neither did so before nor was given up.
    pub fn on_arrival(&mut self, now: Time, sequence: u64) -> bool {
        let fresh = if sequence >= self.expected {
            if sequence > self.expected {
                let before = self.last.unwrap_or(now);
                self.holes.push_back(Hole { first: self.expected, end: sequence, before, after: now, later: 0 });
            }
            self.expected = sequence + 1;
            self.last = Some(now);
            true
        } else {
            self.fill(now, sequence)
        };
        for hole in self.holes.iter_mut().filter(|hole| hole.end <= sequence) {
            hole.later += 1;
        }
        fresh
    }

    /// The next ones that are lost.
    pub fn poll(&mut self) -> Option<Hole> {
        let at = self.holes.iter().position(|hole| hole.later >= LATER)?;
        self.holes.remove(at)
    }

    /// Behind the highest number that arrived.
    pub const fn expected(&self) -> u64 {
        self.expected
    }

    fn fill(&mut self, now: Time, sequence: u64) -> bool {
        let Some(at) = self.holes.iter().position(|hole| (hole.first..hole.end).contains(&sequence)) else {
            return false;
        };
        let hole = self.holes[at];
        self.holes.remove(at);
        // What is left keeps the times of its outer neighbours.
        if sequence + 1 < hole.end {
            self.holes.insert(at, Hole { first: sequence + 1, before: now.min(hole.after), ..hole });
        }
        if hole.first < sequence {
            self.holes.insert(at, Hole { end: sequence, after: now.max(hole.before), ..hole });
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Time {
        Time::from_nanos(n * 1_000_000)
    }

    fn lost(arrivals: &[u64]) -> Vec<(u64, u64)> {
        let mut holes = Holes::default();
        let mut lost = Vec::new();
        for (i, sequence) in arrivals.iter().enumerate() {
            holes.on_arrival(ms(i as u64), *sequence);
            lost.extend(std::iter::from_fn(|| holes.poll()).map(|hole| (hole.first, hole.end)));
        }
        lost
    }

    #[test]
    fn three_later_ones_make_a_loss_and_two_do_not() {
        assert_eq!(lost(&[0, 2, 3]), []);
        assert_eq!(lost(&[0, 2, 3, 4]), [(1, 2)]);
        assert_eq!(lost(&[0, 2, 3, 1, 4]), [], "late, but there");
        assert_eq!(lost(&[0, 5, 6, 3, 7]), [(1, 3), (4, 5)], "what is left of a hole");
        assert_eq!(lost(&[2, 3, 4]), [(0, 2)], "the first ones");
    }

    #[test]
    fn a_loss_has_the_time_of_its_place_between_its_neighbours() {
        let mut holes = Holes::default();
        for (at, sequence) in [(0, 0), (40, 4), (50, 5), (60, 6)] {
            assert!(holes.on_arrival(ms(at), sequence));
        }
        let hole = holes.poll().unwrap();
        assert_eq!([1, 2, 3].map(|n| hole.time_of(n)), [ms(10), ms(20), ms(30)]);
        assert_eq!([0, 5, 10, 25, 100].map(|n| hole.within(Span::from_millis(n))), [1, 1, 1, 2, 3]);
        assert!(!holes.on_arrival(ms(70), 2), "given up");
        assert!(!holes.on_arrival(ms(70), 5), "twice");
    }
}
