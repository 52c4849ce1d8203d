//! What is due at known times, apart from the next transmission: an ordered list of a few steps.

use lasthop_core::units::{Span, Time};

/// Something that happens to a node, packed into two registers: written to memory field by field and read at once as a
/// whole, a step would wait for its own stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Step {
    pub at: Time,
    /// From the top: 16 bits of node, 4 of kind, acked, seen; the lower 32: see [`Due::Deliver`].
    what: u64,
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// The node's data frame ends at its receiver; its sender knows at `settled`.
    Deliver { settled: Time, acked: bool },
    /// The node knows how its attempt went.
    Settle { acked: bool },
}

const DELIVER: u64 = 0;
const SETTLE: u64 = 1;
const KIND: u32 = 44;
const ACKED: u32 = 43;
const SEEN: u32 = 42;

impl Step {
    #[inline]
    pub fn deliver(at: Time, node: u16, settled: Time, acked: bool) -> Self {
        // An ACK at 1 Mbit/s lasts a third of a millisecond.
        let later = u64::from(settled.since(at).as_nanos() as u32);
        Self::pack(at, node, DELIVER, u64::from(acked) << ACKED | 1 << SEEN | later)
    }

    /// `seen`: the host may see something of it.
    #[inline]
    pub fn settle(at: Time, node: u16, acked: bool, seen: bool) -> Self {
        Self::pack(at, node, SETTLE, u64::from(acked) << ACKED | u64::from(seen) << SEEN)
    }

    #[inline]
    fn pack(at: Time, node: u16, kind: u64, rest: u64) -> Self {
        Self { at, what: u64::from(node) << 48 | kind << KIND | rest }
    }

    #[inline]
    pub fn node(self) -> u16 {
        (self.what >> 48) as u16
    }

    #[inline]
    pub fn due(self) -> Due {
        let acked = self.what >> ACKED & 1 == 1;
        match self.what >> KIND & 15 {
            DELIVER => Due::Deliver { settled: self.at + Span::from_nanos(self.what & 0xffff_ffff), acked },
            _ => Due::Settle { acked },
        }
    }

    #[inline]
    fn is_seen(self) -> bool {
        self.what >> SEEN & 1 == 1
    }
}

/// An exchange that is sure to end with its ACK, while no other step is pending: nobody can come between its two steps, and
/// the backoff that follows it is drawn when it begins. Nearly every exchange is one, so it has a place of its own.
#[derive(Clone, Copy, Debug)]
pub struct Certain {
    /// The next step; [`Time::MAX`]: there is no such exchange.
    pub at: Time,
    /// The end of the ACK.
    pub settled: Time,
    pub node: u16,
    /// The data frame has ended: `at` is `settled`.
    pub delivered: bool,
}

impl Certain {
    pub const NONE: Self = Self { at: Time::MAX, settled: Time::MAX, node: 0, delivered: true };

    #[inline]
    pub fn is_of(&self, node: u16) -> bool {
        self.at != Time::MAX && self.node == node
    }
}

/// The first step in a place of its own, since mostly there is no other.
#[derive(Clone, Debug)]
pub struct Agenda {
    /// [`NOTHING`]: the agenda is empty.
    first: Step,
    /// The others, latest first.
    rest: Vec<Step>,
    /// When the first one falls due that the host may see.
    seen_at: Time,
}

const NOTHING: Step = Step { at: Time::MAX, what: 0 };

impl Agenda {
    pub fn new() -> Self {
        Self { first: NOTHING, rest: Vec::with_capacity(16), seen_at: Time::MAX }
    }

    #[inline]
    pub fn push(&mut self, step: Step) {
        if step.is_seen() {
            self.seen_at = self.seen_at.min(step.at);
        }
        if self.first.at == Time::MAX {
            self.first = step;
            return;
        }
        let later = if step < self.first { std::mem::replace(&mut self.first, step) } else { step };
        let mut at = self.rest.len();
        self.rest.push(later);
        while at > 0 && self.rest[at - 1] < later {
            self.rest[at] = self.rest[at - 1];
            at -= 1;
        }
        self.rest[at] = later;
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.at == Time::MAX
    }

    /// When the first one is due; [`Time::MAX`]: there is none.
    #[inline]
    pub fn first_at(&self) -> Time {
        self.first.at
    }

    /// Whether the host may see something of the first one.
    #[inline]
    pub fn first_is_seen(&self) -> bool {
        self.first.is_seen()
    }

    /// The first one, if it is due at or before `limit`.
    #[inline]
    pub fn pop(&mut self, limit: Time) -> Option<Step> {
        if self.first.at > limit || self.first.at == Time::MAX {
            return None;
        }
        let next = self.rest.pop().unwrap_or(NOTHING);
        let step = std::mem::replace(&mut self.first, next);
        if step.is_seen() {
            let rest = self.rest.iter().rev();
            self.seen_at = std::iter::once(&next).chain(rest).find(|s| s.is_seen()).map_or(Time::MAX, |s| s.at);
        }
        Some(step)
    }

    /// When the first one falls due that the host may see; [`Time::MAX`]: there is none.
    #[inline]
    pub fn seen_at(&self) -> Time {
        self.seen_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_step_is_what_it_was_made_of() {
        let at = Time::from_nanos(1 << 50);
        let settled = at + Span::from_micros(314);
        let step = Step::deliver(at, 65_534, settled, true);
        assert_eq!((step.node(), step.due(), step.is_seen()), (65_534, Due::Deliver { settled, acked: true }, true));
        let step = Step::settle(at, 3, false, true);
        assert_eq!((step.node(), step.due(), step.is_seen()), (3, Due::Settle { acked: false }, true));
        let step = Step::settle(at, 0, true, false);
        assert_eq!((step.node(), step.due(), step.is_seen()), (0, Due::Settle { acked: true }, false));
    }

    proptest! {
        #[test]
        fn steps_leave_in_order(entries in prop::collection::vec((0u64..50, 0u16..4, any::<bool>()), 1..200)) {
            let mut agenda = Agenda::new();
            let mut sorted = std::collections::BTreeSet::new();
            for (at, node, pops) in entries {
                let step = Step::settle(Time::from_nanos(at), node, true, at % 2 == 0);
                if pops {
                    prop_assert_eq!(agenda.pop(Time::MAX), sorted.pop_first());
                } else if sorted.insert(step) {
                    agenda.push(step);
                }
                prop_assert_eq!(agenda.first_at(), sorted.first().map_or(Time::MAX, |s| s.at));
                let seen = sorted.iter().find(|s| s.is_seen());
                prop_assert_eq!(agenda.seen_at(), seen.map_or(Time::MAX, |s| s.at));
            }
        }
    }
}
