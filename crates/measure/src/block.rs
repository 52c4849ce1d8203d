//! A block: some seconds with control or without, and what was seen in them.

use lasthop_core::ap::waiting::FIRST;
use lasthop_status::WaitingStatus;
use serde::{Deserialize, Serialize};

/// Whether control is at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arm {
    /// It is.
    On,
    /// Windows, window updates and UDP are left alone.
    Off,
}

impl Arm {
    /// As people call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::On => "with control",
            Self::Off => "without control",
        }
    }
}

/// Why a block does not count, whatever it carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spoilt {
    /// The controller ended, and another one came.
    Restarted,
    /// The controller did not answer for more than 3 s.
    Silent,
    /// Somebody else paused or resumed control.
    Interfered,
    /// The controller refused to pause or to resume.
    Refused,
    /// The measurement was stopped in it.
    Unfinished,
}

/// A block of a pair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// What it is.
    pub arm: Arm,
    /// When it began, s since the first did.
    pub start_s: f64,
    /// Ends of its seconds, s since it began. What is discarded is in here, too.
    pub at_s: Vec<f64>,
    /// Rate in each, IP bit/s.
    pub rate_bps: Vec<u64>,
    /// Median wait in each, ms; null where nothing told of it.
    pub wait_ms: Vec<Option<f64>>,
    /// Waiting times of what counts.
    pub waiting: WaitingStatus,
    /// Length of what counts, s.
    pub counted_s: f64,
    /// IP bytes that it carried, of what counts; what was sent again is in there.
    pub bytes: u64,
    /// Why it does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spoilt: Option<Spoilt>,
    /// Round trips per minute that an active probe saw in what counts; absent where none ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rpm: Option<f64>,
}

/// What is shorter is the histogram's first bucket and not told apart, ms.
pub const FLOOR_MS: f64 = FIRST.as_nanos() as f64 / 1e6;
/// Intervals that have to tell of waiting before there is a 95th percentile: one of them is beyond it.
pub const LEAST_TOLD: u64 = 20;

impl Block {
    /// A block of which nothing is known yet.
    #[must_use]
    pub fn new(arm: Arm, start_s: f64) -> Self {
        let (at_s, rate_bps, wait_ms) = (Vec::new(), Vec::new(), Vec::new());
        let waiting = WaitingStatus { place: "all".to_owned(), ..WaitingStatus::default() };
        Self { arm, start_s, at_s, rate_bps, wait_ms, waiting, counted_s: 0.0, bytes: 0, spoilt: None, rpm: None }
    }

    /// The wait that was not exceeded in 95 % of the intervals that told, ms, at least [`FLOOR_MS`]; none of fewer than
    /// [`LEAST_TOLD`].
    #[must_use]
    pub fn p95_ms(&self) -> Option<f64> {
        let quantile = if self.waiting.count < LEAST_TOLD { None } else { self.waiting.quantile(0.95) };
        quantile.map(|ms| ms.max(FLOOR_MS))
    }

    /// What it carried, IP bit/s; none of nothing.
    #[must_use]
    pub fn throughput_bps(&self) -> Option<f64> {
        (self.counted_s > 0.0 && self.bytes > 0).then(|| self.bytes as f64 * 8.0 / self.counted_s)
    }

    /// Rates of the seconds that count.
    pub fn counted_rates(&self, discard_s: u32) -> impl Iterator<Item = u64> {
        // A second that ends where the discarded part does is of that part.
        let from = f64::from(discard_s) + 0.5;
        self.at_s.iter().zip(&self.rate_bps).filter(move |(at, _)| **at > from).map(|(_, rate)| *rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_below_the_first_bound_is_that_bound_so_that_it_has_a_logarithm() {
        let mut block = Block::new(Arm::On, 0.0);
        assert_eq!(block.p95_ms(), None);
        block.waiting.buckets = vec![(Some(0.25), 19)];
        block.waiting.count = 19;
        assert_eq!(block.p95_ms(), None, "too few to have a 95th percentile");
        block.waiting.buckets = vec![(Some(0.25), 40)];
        block.waiting.count = 40;
        assert_eq!(block.p95_ms(), Some(0.25));
    }

    #[test]
    fn what_is_discarded_does_not_count() {
        let mut block = Block::new(Arm::On, 0.0);
        block.at_s = vec![1.0, 2.001, 3.002, 4.001];
        block.rate_bps = vec![1, 2, 3, 4];
        assert_eq!(block.counted_rates(2).collect::<Vec<_>>(), [3, 4]);
    }
}
