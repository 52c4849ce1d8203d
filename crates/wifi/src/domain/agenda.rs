//! What is due at known times, apart from the next transmission: an ordered list of a few steps.

use lasthop_core::units::Time;

/// Something that happens to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Step {
    pub at: Time,
    pub node: u16,
    pub what: Due,
    /// The host may see something of it.
    pub seen: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Due {
    /// The node's data frame ends at its receiver.
    Deliver,
    /// The node knows how its attempt went.
    Settle { acked: bool },
}

/// The first two steps in places of their own: mostly there are no others, and an exchange brings just two.
#[derive(Clone, Debug)]
pub struct Agenda {
    /// [`NOTHING`]: the agenda is empty.
    first: Step,
    /// [`NOTHING`]: there is one at most.
    second: Step,
    /// The others, latest first.
    rest: Vec<Step>,
    /// When the first one falls due that the host may see.
    seen_at: Time,
}

const NOTHING: Step = Step { at: Time::MAX, node: u16::MAX, what: Due::Deliver, seen: false };

impl Agenda {
    pub fn new() -> Self {
        Self { first: NOTHING, second: NOTHING, rest: Vec::with_capacity(16), seen_at: Time::MAX }
    }

    #[inline]
    pub fn push(&mut self, step: Step) {
        if step.seen {
            self.seen_at = self.seen_at.min(step.at);
        }
        if self.first.at == Time::MAX {
            self.first = step;
        } else if self.second.at == Time::MAX && self.first.at < step.at {
            self.second = step;
        } else {
            let Step { at, node, what, seen } = step;
            self.insert(at, node, what, seen);
        }
    }

    /// Where there are others already, or one of the same moment. Its fields come one by one, so that a step that is pushed
    /// stands in registers and need not be put together in memory first.
    #[inline(never)]
    fn insert(&mut self, at: Time, node: u16, what: Due, seen: bool) {
        let step = Step { at, node, what, seen };
        let later = if step < self.first { std::mem::replace(&mut self.first, step) } else { step };
        if self.second.at == Time::MAX {
            self.second = later;
            return;
        }
        let later = if later < self.second { std::mem::replace(&mut self.second, later) } else { later };
        let mut at = self.rest.len();
        self.rest.push(later);
        while at > 0 && self.rest[at - 1] < later {
            self.rest[at] = self.rest[at - 1];
            at -= 1;
        }
        self.rest[at] = later;
    }

    /// When the first one is due; [`Time::MAX`]: there is none.
    #[inline]
    pub fn first_at(&self) -> Time {
        self.first.at
    }

    /// The first one, if it is due at or before `limit`.
    #[inline]
    pub fn pop(&mut self, limit: Time) -> Option<Step> {
        if self.first.at > limit || self.first.at == Time::MAX {
            return None;
        }
        let step = self.first;
        self.first = self.second;
        self.second = NOTHING;
        if !self.rest.is_empty() {
            self.pop_rest();
        } else if step.seen {
            self.seen_at = if self.first.seen { self.first.at } else { Time::MAX };
        }
        Some(step)
    }

    /// More than an exchange brings was pending.
    #[inline(never)]
    fn pop_rest(&mut self) {
        self.second = self.rest.pop().unwrap_or(NOTHING);
        let rest = self.rest.iter().rev();
        let seen = [self.first, self.second].iter().chain(rest).find(|s| s.seen).map(|s| s.at);
        self.seen_at = seen.unwrap_or(Time::MAX);
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

    proptest! {
        #[test]
        fn steps_leave_in_order(entries in prop::collection::vec((0u64..50, 0u16..4, any::<bool>()), 1..200)) {
            let mut agenda = Agenda::new();
            let mut sorted = std::collections::BTreeSet::new();
            for (at, node, pops) in entries {
                let step = Step { at: Time::from_nanos(at), node, what: Due::Deliver, seen: at % 2 == 0 };
                if pops {
                    prop_assert_eq!(agenda.pop(Time::MAX), sorted.pop_first());
                } else if sorted.insert(step) {
                    agenda.push(step);
                }
                prop_assert_eq!(agenda.first_at(), sorted.first().map_or(Time::MAX, |s| s.at));
                let seen = sorted.iter().find(|s| s.seen);
                prop_assert_eq!(agenda.seen_at(), seen.map_or(Time::MAX, |s| s.at));
            }
        }
    }
}
