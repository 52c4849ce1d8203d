//! Which rates are tried out before Linux 5.12: one frame in `16 + 2 L`, at most eight per group between two updates.
//!
//! Groups take turns, each goes through its rates in random orders. Passed over: the best and the most robust rate, what arrives
//! more than 95 times of 100, what takes three times as long as the most robust one; and what is no faster than the second best,
//! unless it was not tried for 20 updates, twice between updates.

use super::groups::{Group, Index, RATES};
use super::orders::Orders;
use super::stats::{RateStats, frac};

/// Frames between samples, and what is left to try.
#[derive(Clone, Debug)]
pub(super) struct LookAround {
    orders: Orders,
    group: usize,
    /// Frames to pass before the next sample.
    wait: u32,
    /// Samples that may go out before the next wait.
    tries: u32,
    /// Waits left before the next update.
    count: u32,
    /// Slow rates tried since the last update.
    slow: u32,
}

/// What the rates in use are like: times of a packet in ns.
#[derive(Clone, Copy, Debug)]
pub(super) struct InUse {
    pub(super) best: Index,
    pub(super) robust: Index,
    /// Of the slower of the two best.
    pub(super) second_ns: u32,
    pub(super) robust_ns: u32,
    /// Of the faster of the two best.
    pub(super) streams: u8,
}

impl LookAround {
    /// Begins with four samples at once.
    pub(super) fn new(orders: Orders) -> Self {
        Self { orders, group: 0, wait: 0, tries: 4, count: 16, slow: 0 }
    }

    /// A frame of on average `average` packets is settled.
    pub(super) fn on_result(&mut self, average: u32) {
        if self.wait == 0 && self.tries == 0 && self.count > 0 {
            self.wait = 16 + 2 * average;
            self.tries = 1;
            self.count -= 1;
        }
    }

    /// The statistics are new.
    pub(super) fn on_update(&mut self, groups: usize) {
        self.count = 8 * groups as u32;
        self.slow = 0;
    }

    /// What the next frame tries out, if anything.
    pub(super) fn take(&mut self, groups: &[Group], stats: &[[RateStats; RATES]], used: &InUse) -> Option<Index> {
        if self.wait > 0 {
            self.wait -= 1;
            return None;
        }
        if self.tries == 0 {
            return None;
        }
        let group = self.group;
        self.group = (group + 1) % groups.len();
        let index = Index::new(group, self.orders.next(group));
        let worth = self.is_worth(index, groups, stats, used);
        self.tries -= u32::from(worth);
        worth.then_some(index)
    }

    fn is_worth(&mut self, index: Index, groups: &[Group], stats: &[[RateStats; RATES]], used: &InUse) -> bool {
        let (group, stats) = (&groups[index.group()], &stats[index.group()][index.rate()]);
        if group.rates[index.rate()].is_none() || index == used.best || index == used.robust {
            return false;
        }
        let duration = group.rate(index).duration_ns;
        if stats.probability() > frac(95, 100) || used.robust_ns.saturating_mul(3) < duration {
            return false;
        }
        let fewer = group.streams < used.streams && duration < used.robust_ns;
        if duration < used.second_ns || fewer {
            return true;
        }
        if stats.updates_without() < 20 {
            return false;
        }
        self.slow += 1;
        self.slow <= 3
    }
}
