//! What is decided before the first block: how many pairs, how long, and in which order.
//!
//! The number of pairs is fixed beforehand: who stops when he likes what he sees finds effects where there are none. The order within each
//! pair is a coin of its own, out of a seed that the report holds, so that each of the 2^n orders is as likely as the others; that,
//! and nothing about how waiting times are distributed, is what the test in [`lasthop_core::meter::paired`] rests on.

use lasthop_core::units::Span;
use lasthop_status::{DirectionStatus, Directions};
use serde::{Deserialize, Serialize};

use crate::block::Arm;

/// Which data is compared; fixed beforehand, as the number of pairs is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Towards the stations.
    #[default]
    Down,
    /// From them.
    Up,
}

impl Direction {
    /// Its part of a status.
    #[must_use]
    pub const fn of(self, directions: &Directions) -> &DirectionStatus {
        match self {
            Self::Down => &directions.down,
            Self::Up => &directions.up,
        }
    }

    /// As people call what goes there.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Down => "downloads",
            Self::Up => "uploads",
        }
    }
}

/// What is done, in which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Pairs of blocks, one with control and one without.
    pub pairs: usize,
    /// Length of a block, s.
    pub block_s: u32,
    /// Its beginning that does not count, s: what was queued before has to go, or a queue to grow.
    pub discard_s: u32,
    /// What the order comes from.
    pub seed: u64,
    /// Which data is compared.
    pub direction: Direction,
}

/// Fewest pairs that anything can be said of: of five, even the clearest outcome has p = 2/32 > 5 %.
pub const LEAST_PAIRS: usize = 6;
/// Fewest pairs that are advised: some have no load, and fewer than a dozen find large effects only.
pub const USUAL_PAIRS: usize = 12;
/// Most pairs: a day of the usual ones.
pub const MOST_PAIRS: usize = 720;
/// Longest block, s.
pub const LONGEST_BLOCK_S: u32 = 3_600;
/// Usual length of a block, s.
pub const USUAL_BLOCK_S: u32 = 60;
/// Usual length of what does not count, s.
pub const USUAL_DISCARD_S: u32 = 15;
/// CUBIC fills a queue within about this time, s, once nothing holds it; less discarded makes what control does look smaller.
pub const SETTLING_S: u32 = 12;

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Nothing can be said of so few.
    #[error(
        "{time} hold {pairs} pairs of 2 x {block_s} s, and nothing can be said of fewer than {LEAST_PAIRS}; measure for at least \
         {least}, {usual} are better"
    )]
    TooShort {
        /// The time.
        time: String,
        /// Pairs that it holds.
        pairs: u64,
        /// Length of a block, s.
        block_s: u32,
        /// Time of the fewest pairs.
        least: String,
        /// Time of the usual number.
        usual: String,
    },
    /// More than is remembered.
    #[error("{0} pairs are too many; measure at most {MOST_PAIRS}, or in longer blocks")]
    TooMany(u64),
    /// None.
    #[error("there has to be a pair")]
    None,
    /// A block is too short, too long, or nothing of it counts.
    #[error(
        "a block lasts 2 s to {LONGEST_BLOCK_S} s, of which at least 1 s is discarded and at least 1 s is left; not {block_s} s with \
         {discard_s} s"
    )]
    Block {
        /// Length of a block, s.
        block_s: u32,
        /// Of it discarded, s.
        discard_s: u32,
    },
}

impl Plan {
    /// The plan of so many pairs.
    ///
    /// # Errors
    /// When blocks or their number are out of bounds.
    pub const fn new(self) -> Result<Self, PlanError> {
        let Self { pairs, block_s, discard_s, .. } = self;
        if block_s > LONGEST_BLOCK_S || discard_s == 0 || discard_s >= block_s {
            return Err(PlanError::Block { block_s, discard_s });
        }
        match pairs {
            0 => Err(PlanError::None),
            1..=MOST_PAIRS => Ok(self),
            _ => Err(PlanError::TooMany(pairs as u64)),
        }
    }

    /// How many pairs of such blocks fit into `time`.
    ///
    /// # Errors
    /// When they are too few for anything to be said, or too many.
    pub fn pairs_in(time: Span, block_s: u32) -> Result<usize, PlanError> {
        let pair = Span::from_secs(2 * u64::from(block_s.max(1)));
        let pairs = time.as_nanos() / pair.as_nanos();
        if pairs < LEAST_PAIRS as u64 {
            let of = |pairs: usize| in_minutes(pair * pairs as u64);
            let (least, usual) = (of(LEAST_PAIRS), of(USUAL_PAIRS));
            return Err(PlanError::TooShort { time: in_minutes(time), pairs, block_s, least, usual });
        }
        usize::try_from(pairs).ok().filter(|pairs| *pairs <= MOST_PAIRS).ok_or(PlanError::TooMany(pairs))
    }

    /// Number of blocks.
    #[must_use]
    pub const fn blocks(&self) -> usize {
        2 * self.pairs
    }

    /// How long all of it takes.
    #[must_use]
    pub fn length(&self) -> Span {
        Span::from_secs(u64::from(self.block_s)) * self.blocks() as u64
    }

    /// What block number `block` is; blocks 2n and 2n + 1 are a pair.
    #[must_use]
    pub const fn arm(&self, block: usize) -> Arm {
        let is_on_first = bits(self.seed, block as u64 / 2) >> 63 == 1;
        if is_on_first == block.is_multiple_of(2) { Arm::On } else { Arm::Off }
    }
}

/// "45 s", "12 min", "1 h 30 min": as people say how long something takes.
pub(crate) fn in_minutes(time: Span) -> String {
    let minutes = time.as_nanos().div_ceil(60_000_000_000);
    match minutes {
        0..2 => time.rounded().to_string(),
        2..60 => format!("{minutes} min"),
        _ if minutes.is_multiple_of(60) => format!("{} h", minutes / 60),
        _ => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

/// Number `n` of the stream of a seed (splitmix64).
pub(crate) const fn bits(seed: u64, n: u64) -> u64 {
    let mut z = seed.wrapping_add((n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(pairs: usize, seed: u64) -> Plan {
        Plan { pairs, block_s: 60, discard_s: 15, seed, direction: Direction::Down }
    }

    #[test]
    fn every_pair_has_both_and_a_coin_of_its_own_says_which_is_first() {
        let mut first_on = [0; 12];
        for seed in 0..4_000 {
            let plan = plan(12, seed);
            for (pair, count) in first_on.iter_mut().enumerate() {
                assert_ne!(plan.arm(2 * pair), plan.arm(2 * pair + 1));
                *count += usize::from(plan.arm(2 * pair) == Arm::On);
            }
        }
        // 2,000 each, give or take four standard deviations.
        assert!(first_on.iter().all(|n| (1_873..2_127).contains(n)), "{first_on:?}");
    }

    #[test]
    fn coins_of_neighbouring_pairs_are_independent() {
        let same = (0..4_000).filter(|seed| plan(2, *seed).arm(0) == plan(2, *seed).arm(2)).count();
        assert!((1_873..2_127).contains(&same), "{same}");
    }

    #[test]
    fn the_time_says_how_many_pairs_and_what_is_too_short_says_what_is_not() {
        assert_eq!(Plan::pairs_in(Span::from_secs(3_600), 60), Ok(30));
        let error = Plan::pairs_in(Span::from_secs(600), 60).unwrap_err().to_string();
        assert!(error.contains("10 min hold 5 pairs") && error.contains("at least 12 min, 24 min"), "{error}");
        assert!(Plan::pairs_in(Span::from_secs(86_400 * 7), 60).is_err());
        assert_eq!(
            [45, 119, 5_400, 7_200].map(|s| in_minutes(Span::from_secs(s))),
            ["45 s", "2 min", "1 h 30 min", "2 h"]
        );
        assert!(plan(0, 1).new().is_err() && plan(721, 1).new().is_err() && plan(720, 1).new().is_ok());
        assert!(Plan { discard_s: 60, ..plan(6, 1) }.new().is_err());
        assert_eq!(plan(30, 1).length(), Span::from_secs(3_600));
    }
}
