//! Which rates are tried out since Linux 5.12: five of each kind at most between two updates.

use super::groups::{Group, Index, RATES};
use super::orders::Orders;
use super::stats::{RateStats, frac};

/// Rates of a kind between two updates.
const EACH: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The slowest of the next group that is faster than the best.
    Increase,
    /// A random faster one.
    Jump,
    /// Between the fastest and the slowest of the chain.
    Slow,
}

const SEQUENCE: [Kind; 6] = [Kind::Increase, Kind::Jump, Kind::Increase, Kind::Jump, Kind::Increase, Kind::Slow];

/// What waits to be tried out.
#[derive(Clone, Debug)]
pub(super) struct Samples {
    /// `waiting[kind]`, in order.
    waiting: [Vec<Index>; 3],
    turn: usize,
    /// Group that was looked at last, of increases and of jumps.
    last_group: [usize; 2],
    orders: Orders,
}

impl Samples {
    pub(super) fn new(orders: Orders) -> Self {
        Self { waiting: std::array::from_fn(|_| Vec::with_capacity(EACH)), turn: 0, last_group: [0; 2], orders }
    }

    /// The next one, if the kind whose turn it is has any.
    pub(super) fn take(&mut self) -> Option<Index> {
        let kind = SEQUENCE[self.turn];
        self.turn = (self.turn + 1) % SEQUENCE.len();
        let waiting = &mut self.waiting[kind as usize];
        (!waiting.is_empty()).then(|| waiting.remove(0))
    }

    /// Fills up after an update. `best`, `fast`, `slow`: times of a packet with the best rate, the fastest and the slowest of the chain, ns.
    pub(super) fn refill(&mut self, groups: &[Group], stats: &[[RateStats; RATES]], best: u32, fast: u32, slow: u32) {
        let duration = |index: Index| groups[index.group()].rate(index).duration_ns;
        let [increases, jumps, slower] = &mut self.waiting;
        increases.retain(|index| duration(*index) < fast);
        jumps.retain(|index| duration(*index) < fast);
        slower.retain(|index| duration(*index) > fast && duration(*index) < slow);
        while self.waiting[0].len() < EACH {
            let Some(index) = self.next_increase(groups, best) else { break };
            self.waiting[0].push(index);
        }
        while self.waiting[1].len() < EACH {
            let Some(index) = self.next_jump(groups, stats, fast, slow) else { break };
            self.waiting[1].push(index);
        }
    }

    fn next_increase(&mut self, groups: &[Group], best: u32) -> Option<Index> {
        for step in 1..=groups.len() {
            let group = (self.last_group[0] + step) % groups.len();
            let Some(rate) = slowest_below(&groups[group], best) else { continue };
            let index = Index::new(group, rate);
            if !self.waiting[0].contains(&index) {
                self.last_group[0] = group;
                return Some(index);
            }
        }
        None
    }

    /// On the way, what is not faster than the fastest goes to the slow ones while there is room.
    fn next_jump(&mut self, groups: &[Group], stats: &[[RateStats; RATES]], fast: u32, slow: u32) -> Option<Index> {
        for step in 1..=groups.len() {
            let group = (self.last_group[1] + step) % groups.len();
            let below = if self.waiting[2].len() < EACH { slow } else { fast };
            let Some(from) = slowest_below(&groups[group], below) else { continue };
            let Some(rate) = self.random(group, &groups[group], from) else { continue };
            let (index, duration) = (Index::new(group, rate), groups[group].rate(Index::new(group, rate)).duration_ns);
            let kind = if duration < fast { Kind::Jump } else { Kind::Slow };
            if self.waiting[kind as usize].contains(&index) {
                continue;
            }
            if kind == Kind::Jump {
                self.last_group[1] = group;
                return Some(index);
            }
            let known = stats[group][rate].probability() > frac(95, 100);
            if self.waiting[2].len() < EACH && duration < slow && !known {
                self.waiting[2].push(index);
            }
        }
        None
    }

    /// The next rate of the group's order that it has and that is `from` or above.
    fn random(&mut self, number: usize, group: &Group, from: usize) -> Option<usize> {
        (0..RATES).map(|_| self.orders.next(number)).find(|rate| *rate >= from && group.rates[*rate].is_some())
    }
}

/// The first rate of a group with which a packet takes less than this.
fn slowest_below(group: &Group, duration_ns: u32) -> Option<usize> {
    group.rates.iter().position(|rate| rate.is_some_and(|rate| rate.duration_ns < duration_ns))
}
