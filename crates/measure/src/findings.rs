//! What can be said of a measurement: a pure function over its blocks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::block::{Arm, Block, Spoilt};
use crate::grade::Grade;
use crate::load;
use crate::plan::LEAST_PAIRS;
use lasthop_core::meter::paired::{coins_p, hodges_lehmann, median, sign_flip_p};

/// A difference is called one when so much chance, or less, would bring it about without control.
pub const ALPHA: f64 = 0.05;

/// What a measurement comes to, by waiting times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Fewer than six pairs were loaded in both halves.
    NotEnoughLoad,
    /// None that chance would not bring about.
    NoDifference,
    /// Packets wait less with control.
    Shorter,
    /// Packets wait longer with control.
    Longer,
}

/// Why a block of a pair did not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Too few seconds carried enough ([`load`]).
    NoLoad,
    /// Too little told of waiting: what was carried was UDP, or its connections began behind a queue.
    NothingTold,
    /// See [`Spoilt::Restarted`].
    Restarted,
    /// See [`Spoilt::Silent`].
    Silent,
    /// See [`Spoilt::Interfered`].
    Interfered,
    /// See [`Spoilt::Refused`].
    Refused,
    /// See [`Spoilt::Unfinished`].
    Unfinished,
}

impl Cause {
    /// In words, after "because".
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::NoLoad => "too little was carried",
            Self::NothingTold => "too little told of waiting",
            Self::Restarted => "the controller was started anew",
            Self::Silent => "the controller did not answer",
            Self::Interfered => "somebody else paused or resumed control",
            Self::Refused => "the controller refused to pause or to go on",
            Self::Unfinished => "the measurement was stopped",
        }
    }
}

impl From<Spoilt> for Cause {
    fn from(spoilt: Spoilt) -> Self {
        match spoilt {
            Spoilt::Restarted => Self::Restarted,
            Spoilt::Silent => Self::Silent,
            Spoilt::Interfered => Self::Interfered,
            Spoilt::Refused => Self::Refused,
            Spoilt::Unfinished => Self::Unfinished,
        }
    }
}

/// Blocks of one arm that did not count for one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// Which.
    pub arm: Arm,
    /// Why.
    pub cause: Cause,
    /// How many.
    pub blocks: usize,
}

/// One figure with control and without.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Pairs that are compared.
    pub pairs: usize,
    /// Median over the pairs, with control.
    pub on: f64,
    /// Median over the pairs, without.
    pub off: f64,
    /// With control in parts of without: the Hodges-Lehmann estimate, back from logarithms.
    pub ratio: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Level of the interval, 0..=1; at least 95 %, and exact.
    pub level: f64,
    /// Two-sided p-value of the sign-flip test.
    pub p: f64,
}

impl Comparison {
    /// Of pairs (on, off) of positive figures; `None` of fewer than six.
    #[must_use]
    pub fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        let differences: Vec<f64> = pairs.iter().map(|(on, off)| libm::log(*on) - libm::log(*off)).collect();
        let estimate = hodges_lehmann(&differences)?;
        let middle = |of: fn(&(f64, f64)) -> f64| median(&pairs.iter().map(of).collect::<Vec<_>>());
        Some(Self {
            pairs: pairs.len(),
            on: middle(|(on, _)| *on)?,
            off: middle(|(_, off)| *off)?,
            ratio: libm::exp(estimate.middle),
            low: libm::exp(estimate.low),
            high: libm::exp(estimate.high),
            level: estimate.level,
            p: sign_flip_p(&differences),
        })
    }

    /// Whether chance would bring it about in one of twenty measurements at most.
    #[must_use]
    pub fn is_found(&self) -> bool {
        self.p <= ALPHA
    }
}

/// Grades by added delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grades {
    /// With control.
    pub on: Grade,
    /// Without.
    pub off: Grade,
}

/// What can be said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// In a word.
    pub verdict: Verdict,
    /// Pairs that were planned.
    pub planned: usize,
    /// Pairs that count.
    pub counted: usize,
    /// Blocks that did not count, and why.
    pub dropped: Vec<Dropped>,
    /// From which rate on a second was loaded, bit/s; null where nothing was.
    pub loaded_from_bps: Option<f64>,
    /// Of the pairs with load in one half alone, much more had it in the same half than coins would: control may have changed who loads.
    pub load_differs: bool,
    /// 95th percentiles of waiting, ms.
    pub waiting: Option<Comparison>,
    /// What was carried, IP bit/s; what was sent again is in there.
    pub throughput: Option<Comparison>,
    /// Round trips per minute under load, where an active probe ran in six pairs that count.
    pub rpm: Option<Comparison>,
    /// Grades.
    pub grades: Option<Grades>,
}

/// Why a block does not count by itself; `None`: it does.
#[must_use]
pub fn cause(block: &Block, discard_s: u32, bound: Option<f64>) -> Option<Cause> {
    if let Some(spoilt) = block.spoilt {
        return Some(spoilt.into());
    }
    if !load::is_loaded(block, discard_s, bound) || block.throughput_bps().is_none() {
        return Some(Cause::NoLoad);
    }
    block.p95_ms().is_none().then_some(Cause::NothingTold)
}

/// The pairs that count: (on, off).
#[must_use]
pub fn counted(blocks: &[Block], discard_s: u32, bound: Option<f64>) -> Vec<(&Block, &Block)> {
    let counts = |block: &Block| cause(block, discard_s, bound).is_none();
    pairs(blocks).filter(|(on, off)| counts(on) && counts(off)).collect()
}

/// Pairs of blocks that follow each other: (on, off). One without its other half is none.
fn pairs(blocks: &[Block]) -> impl Iterator<Item = (&Block, &Block)> {
    blocks.chunks_exact(2).filter_map(|pair| match (pair[0].arm, pair[1].arm) {
        (Arm::On, Arm::Off) => Some((&pair[0], &pair[1])),
        (Arm::Off, Arm::On) => Some((&pair[1], &pair[0])),
        _ => None,
    })
}

/// All of it. `planned`: pairs; `capacity_bps`: what the controller knew, where it was given or measured.
#[must_use]
pub fn findings(blocks: &[Block], planned: usize, discard_s: u32, capacity_bps: Option<u64>) -> Findings {
    let bound = load::bound(blocks.iter(), discard_s, capacity_bps);
    let counted = counted(blocks, discard_s, bound);
    let compare = |of: fn(&Block) -> Option<f64>| {
        let both: Vec<_> = counted.iter().filter_map(|(on, off)| Some((of(on)?, of(off)?))).collect();
        Comparison::of(&both)
    };
    let waiting = compare(Block::p95_ms);
    Findings {
        verdict: match waiting {
            None => Verdict::NotEnoughLoad,
            Some(found) if !found.is_found() => Verdict::NoDifference,
            Some(found) if found.ratio < 1.0 => Verdict::Shorter,
            Some(_) => Verdict::Longer,
        },
        planned,
        counted: counted.len(),
        dropped: dropped(blocks, discard_s, bound),
        loaded_from_bps: bound,
        load_differs: load_differs(blocks, discard_s, bound),
        waiting,
        throughput: compare(Block::throughput_bps),
        rpm: compare(|block| block.rpm.filter(|rpm| *rpm > 0.0)),
        grades: waiting.map(|waiting| Grades { on: Grade::of(waiting.on), off: Grade::of(waiting.off) }),
    }
}

fn dropped(blocks: &[Block], discard_s: u32, bound: Option<f64>) -> Vec<Dropped> {
    let mut counts: BTreeMap<(Arm, Cause), usize> = BTreeMap::new();
    for block in blocks {
        if let Some(cause) = cause(block, discard_s, bound) {
            *counts.entry((block.arm, cause)).or_default() += 1;
        }
    }
    counts.into_iter().map(|((arm, cause), blocks)| Dropped { arm, cause, blocks }).collect()
}

fn load_differs(blocks: &[Block], discard_s: u32, bound: Option<f64>) -> bool {
    let lacks = |block: &Block| cause(block, discard_s, bound) == Some(Cause::NoLoad);
    let (mut on, mut uneven) = (0, 0);
    for (control, none) in pairs(blocks).filter(|(on, off)| on.spoilt.is_none() && off.spoilt.is_none()) {
        if lacks(control) != lacks(none) {
            uneven += 1;
            on += usize::from(lacks(control));
        }
    }
    coins_p(on, uneven) <= ALPHA
}

const _: () = assert!(LEAST_PAIRS == 6, "hodges_lehmann has no interval of fewer");

#[cfg(test)]
mod tests;
