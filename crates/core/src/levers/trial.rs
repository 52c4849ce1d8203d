//! One setting against another: blocks of both in turns, in pairs, and what may be said of them.
//!
//! ```text
//! blocks     A B  B A  A B  B A ..        A without, B with: a drift over time falls on both alike
//! wait       95th percentile of what sparse packets waited in a block                         [ms]
//! added      wait with - wait without                                                         [ms], of each pair
//! carried    ln(IP bytes a second with / without); where the channel is known and has time left, of bytes per air time
//! ```
//!
//! A block lasts until it has waits enough for its percentile: where packets are seldom heard it is longer, up to [`LONGEST`] times
//! [`Params::block`]. One that has too few even then, or carried nothing, says nothing.
//!
//! Of both differences the estimate of Hodges and Lehmann and its interval of 95 % ([`paired`]) are taken from the sixth pair on.
//!
//! | found | then |
//! |---|---|
//! | waits surely shorter, by half a millisecond at least, and what is lost no more than they are worth | pays |
//! | surely more carried, by half a per cent at least, and waits longer by no more than a millisecond | pays |
//! | surely more lost than that is worth; or waits surely longer, and no more carried | hurts |
//! | twelve pairs, and none of these | shows nothing |
//!
//! A millisecond is worth 1/500 of what is carried, and all of them together no more than 1/33. Source: ours, beside ns-3's cell
//! of five uploads over HT20, where aggregates of 16 kB take voice's p99 from 28 to 10 ms for 3 %. A pair in which the new setting has three times the
//! wait and 20 ms more, or half of what is carried, ends the trial at once: it hurts.

use crate::meter::paired::{self, Estimate};
use crate::units::{Span, Time};

use super::{LinkSample, Params};

/// What a block came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Block {
    pub wait_ms: f64,
    /// IP bytes a second.
    pub carried: f64,
    /// Air time that was used, in parts of the block, where it is known.
    pub busy: Option<f64>,
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Kept.
    Pays,
    /// Taken back.
    Hurts,
    /// Taken back, unless it is presumed ([`super::Lever::is_presumed`]).
    ShowsNothing,
}

/// How blocks with the setting differ from those without.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Comparison {
    /// Pairs of blocks.
    pub pairs: u32,
    /// What sparse packets wait more with it (95th percentile), ms.
    pub added_ms: f64,
    /// What is carried with it, in parts of what is without.
    pub carried: f64,
}

/// In parts of the block: a channel with less than this in use has time left, and carries what is asked for.
const FULL: f64 = 0.7;
/// What a millisecond is worth, and all of them together at most, in parts of what is carried.
const WORTH_PER_MS: f64 = 0.002;
const WORTH_AT_MOST: f64 = 0.03;
/// Least gain, ms, and in parts of what is carried; and what may be added where more is carried, ms.
const LEAST_GAIN_MS: f64 = 0.5;
const LEAST_MORE: f64 = 0.005;
const MOST_ADDED_MS: f64 = 1.0;
/// Least pairs of which anything can be said (`paired`), and most.
const LEAST_PAIRS: usize = 6;
const MOST_PAIRS: usize = 12;
/// What ends a trial at once: so many times the wait and so much more, or so much less carried.
const FAR: (f64, f64, f64) = (3.0, 20.0, 0.5);
/// Fewer waits have no 95th percentile.
const LEAST_WAITS: u64 = 10;
/// A block waits for so many, at most so many times its length. Ours: twelve pairs take four minutes then, and one wait a second suffices.
const LONGEST: u64 = 10;
/// Waits of a block that are kept.
const MOST_WAITS: usize = 8_192;
/// Pairs in a row that say nothing: there is nothing to measure by.
const MOST_EMPTY: u32 = 3;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Trial {
    blocks: u32,
    first: Option<Block>,
    /// Added wait and carried, of each pair.
    added: Vec<f64>,
    carried: Vec<f64>,
    empty: u32,
    /// The block that is measured: from when on, its waits, and what had been carried then.
    from: Time,
    /// In ms, and how many packets waited so.
    waits: Vec<(f64, u32)>,
    began: Option<(Time, LinkSample)>,
}

/// What a trial asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    /// The block goes on.
    Measure,
    /// The next block: with the setting or without.
    Turn { with: bool },
    /// There is nothing to measure by.
    Empty,
    /// It is over.
    Over(Finding, Comparison),
}

impl Trial {
    /// The first block is one without the setting.
    pub fn new(now: Time, params: &Params) -> Self {
        Self {
            blocks: 0,
            first: None,
            added: Vec::with_capacity(MOST_PAIRS),
            carried: Vec::with_capacity(MOST_PAIRS),
            empty: 0,
            from: now + params.settle,
            waits: Vec::new(),
            began: None,
        }
    }

    /// Whether the block that is measured has the setting: A B, B A, A B.
    pub const fn is_with(&self) -> bool {
        matches!(self.blocks % 4, 1 | 2)
    }

    /// When something is to be done next.
    pub fn next_deadline(&self, params: &Params) -> Time {
        self.began.as_ref().map_or(self.from, |(at, _)| *at + params.block)
    }

    pub fn on_waits(&mut self, now: Time, mean: Span, packets: u32) {
        if self.began.is_some() && now >= self.from && self.waits.len() < MOST_WAITS {
            self.waits.push((mean.as_millis_f64(), packets));
        }
    }

    pub fn on_link(&mut self, now: Time, link: &LinkSample, params: &Params) -> Step {
        let Some((at, before)) = &self.began else {
            if now >= self.from {
                self.began = Some((now, link.clone()));
            }
            return Step::Measure;
        };
        let lasted = now.since(*at);
        if lasted < params.block || (heard(&self.waits) < LEAST_WAITS && lasted < params.block * LONGEST) {
            return Step::Measure;
        }
        let block = block(&mut self.waits, before, link, lasted);
        (self.began, self.from) = (None, now + params.settle);
        let with = self.is_with();
        self.blocks += 1;
        if self.blocks % 2 == 1 {
            self.first = block;
            return Step::Turn { with: self.is_with() };
        }
        match (self.first.take(), block) {
            (Some(first), Some(second)) => {
                let (without, with) = if with { (first, second) } else { (second, first) };
                self.empty = 0;
                self.add(without, with)
            }
            _ => {
                self.empty += 1;
                if self.empty >= MOST_EMPTY { Step::Empty } else { Step::Turn { with: self.is_with() } }
            }
        }
    }

    fn add(&mut self, without: Block, with: Block) -> Step {
        let added = with.wait_ms - without.wait_ms;
        let bytes = with.carried / without.carried;
        let per_air = match (without.busy, with.busy) {
            (Some(a), Some(b)) if a > 0.0 && b > 0.0 && a.max(b) < FULL => bytes * a / b,
            _ => bytes,
        };
        self.added.push(added);
        self.carried.push(libm::log(per_air));
        let (times, more, less) = FAR;
        let is_far = (with.wait_ms > times * without.wait_ms && added > more) || per_air < less;
        let finding = if is_far { Some(Finding::Hurts) } else { judge(&self.added, &self.carried) };
        match finding {
            Some(finding) => Step::Over(finding, self.comparison()),
            None => Step::Turn { with: self.is_with() },
        }
    }

    fn comparison(&self) -> Comparison {
        Comparison {
            pairs: self.added.len() as u32,
            added_ms: paired::median(&self.added).unwrap_or_default(),
            carried: libm::exp(paired::median(&self.carried).unwrap_or_default()),
        }
    }
}

/// `None`: nothing can be said of it.
fn block(waits: &mut Vec<(f64, u32)>, before: &LinkSample, after: &LinkSample, span: Span) -> Option<Block> {
    let mut sorted = std::mem::take(waits);
    sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let bytes = (0..2).fold(0u64, |sum, d| sum.saturating_add(after.bytes[d].saturating_sub(before.bytes[d])));
    let used = |(a, b): (Span, Span)| b.saturating_sub(a).as_secs_f64() / span.as_secs_f64();
    let busy = before.airtime.zip(after.airtime).map(used).filter(|busy| (0.0..=1.0).contains(busy));
    let packets = heard(&sorted);
    if packets < LEAST_WAITS || bytes == 0 {
        return None;
    }
    let mut above = packets * 95 / 100;
    let at = sorted.iter().find(|(_, packets)| {
        let is_it = above < u64::from(*packets);
        above = above.saturating_sub(u64::from(*packets));
        is_it
    });
    Some(Block { wait_ms: at?.0, carried: bytes as f64 / span.as_secs_f64(), busy })
}

/// Packets that waits are known of.
fn heard(waits: &[(f64, u32)]) -> u64 {
    waits.iter().map(|(_, packets)| u64::from(*packets)).sum()
}

/// What surely holds, if anything does.
fn judge(added: &[f64], carried: &[f64]) -> Option<Finding> {
    if added.len() < LEAST_PAIRS {
        return None;
    }
    let (wait, bytes) = (paired::hodges_lehmann(added)?, paired::hodges_lehmann(carried)?);
    let worth = |gain_ms: f64| (gain_ms * WORTH_PER_MS).clamp(0.0, WORTH_AT_MOST);
    let shorter = wait.high < 0.0 && wait.middle <= -LEAST_GAIN_MS && bytes.middle >= -worth(-wait.middle);
    let more = bytes.low > 0.0 && bytes.middle >= LEAST_MORE && wait.middle <= MOST_ADDED_MS;
    if shorter || more {
        return Some(Finding::Pays);
    }
    let longer = wait.low > 0.0 && bytes.low <= 0.0;
    if longer || is_surely_less(&bytes, worth(-wait.low)) {
        return Some(Finding::Hurts);
    }
    (added.len() >= MOST_PAIRS).then_some(Finding::ShowsNothing)
}

fn is_surely_less(bytes: &Estimate, worth: f64) -> bool {
    bytes.high < -worth
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_testing::random::Random;

    fn played(pairs: usize, mut of: impl FnMut(usize) -> (f64, f64)) -> Option<Finding> {
        let (added, carried): (Vec<_>, Vec<_>) = (0..pairs).map(&mut of).unzip();
        judge(&added, &carried)
    }

    #[test]
    fn a_gain_pays_for_what_it_is_worth_and_no_more() {
        let mut random = Random(3);
        let mut noise = |by: f64| by * (random.share() - 0.5);
        assert_eq!(played(6, |_| (-18.0 + noise(4.0), -0.029 + noise(0.004))), Some(Finding::Pays), "ns-3's cell");
        assert_eq!(played(12, |_| (-2.0 + noise(1.0), -0.03 + noise(0.01))), Some(Finding::Hurts));
        assert_eq!(played(12, |_| (-0.1 + noise(0.1), noise(0.01))), Some(Finding::ShowsNothing), "too little");
        assert_eq!(played(6, |_| (0.3 + noise(0.2), 0.02 + noise(0.01))), Some(Finding::Pays), "more is carried");
        assert_eq!(played(6, |_| (3.0 + noise(1.0), noise(0.02))), Some(Finding::Hurts));
        assert_eq!(played(5, |_| (-18.0, 0.0)), None, "too early");
    }

    /// Of chance alone hardly anything is kept: two intervals of 95 % are looked at seven times.
    #[test]
    fn chance_alone_seldom_pays() {
        let mut random = Random(11);
        let mut kept = 0;
        for _ in 0..1_000 {
            let all: Vec<(f64, f64)> =
                (0..MOST_PAIRS).map(|_| (4.0 * (random.share() - 0.5), 0.1 * (random.share() - 0.5))).collect();
            let found = (LEAST_PAIRS..=MOST_PAIRS).find_map(|n| played(n, |i| all[i]));
            kept += usize::from(found == Some(Finding::Pays));
        }
        assert!(kept < 120, "{kept} of 1,000");
    }
}
