//! Minstrel-HT, the rate control of Linux's mac80211: tries rates out, keeps what arrives, prefers throughput.
//!
//! Every 50 ms, for each rate with attempts since: the share s/a of MPDUs that arrived goes into an average p. Then
//! `throughput = min(p, 0.9) / (overhead / L + t)`, none below p = 0.1
//! with t the time of 1,200 bytes at that rate without preamble, L the average MPDUs of a frame (a quarter new each time) and an
//! overhead of 108 us (preambles and an ACK at 6 Mbit/s).
//!
//! The chain of a frame: the two or three rates with the most throughput, then the most robust one. A rate is tried as often as
//! fits into 6 ms, 2 to 7 times; all but the first stage use RTS. Robust is: most throughput among those above p = 0.75,
//! else the highest p; with fewer streams than the fastest rate where there is such a group. When more than 30 attempts at one
//! of the two best rates have hardly any success the next slower group takes its place at once.
//!
//! Two schemes, which differ in the average and in what is tried out:
//!
//! | | [`Scheme::Share`], before Linux 5.12 | [`Scheme::Kinds`], since |
//! |---|---|---|
//! | average | `p = 3/4 p + 1/4 s/a` | `p(k) = c1 s/a + c2 p(k-1) + c3 p(k-2)`, a low pass of period 16 |
//! | never tried | never chosen | as good as the best faster rate of its group |
//! | chain | 3 stages | 4 |
//! | tried out | one frame in 16 + 2 L (`look_around`) | one frame every 20 ms (`sample`) |
//! | a sample is | an aggregate | one MPDU |
//!
//! Source: Linux, net/mac80211/rc80211_minstrel_ht.c, read at 5.2 and at 6.18 (commit 80d55154b2f8 of 5.12 is the difference); its
//! arithmetic in 1/4096 is kept. Files: `groups` (rates by streams, width and guard interval), `stats`, `select` (the chain).
//!
//! Differs: groups of 160 MHz and of ax, which Linux leaves to the firmware, are treated like the others; time counts in
//! nanoseconds, not in ticks; the orders are drawn per sender and receiver. The look-around counts frames and sends them
//! as aggregates, as ns-3's does, where Linux counts packets and a driver decides (ath9k: one MPDU; mt76: what its rate table covers).
//! A sample that fails is over; its MPDUs go with the next frame, where ath9k takes it through the rest of the chain. Not
//! modelled: rates of b beside those of n at 2.4 GHz, dynamic SMPS, the limit of A-MSDU that follows from the rate.

mod groups;
mod look_around;
mod orders;
mod sample;
mod select;
mod stats;

use lasthop_core::units::{Span, Time};

use super::{Capability, RatePlan, Stage, TxResult};
use crate::phy::Rate;
use crate::random::Stream;
use groups::{Group, Index};
use look_around::{InUse, LookAround};
use orders::Orders;
use sample::Samples;
use stats::{ONE, RateStats, frac};

/// Between updates of the statistics.
const UPDATE: Span = Span::from_millis(50);
/// Between samples.
const SAMPLE: Span = Span::from_millis(20);
/// Time that a stage may take, us.
const SEGMENT: u32 = 6_000;
/// Most tries of a stage.
const MOST_TRIES: u8 = 7;
/// Preamble, SIFS and ACK at 6 Mbit/s, us.
const OVERHEAD: u32 = 108;
/// An ACK at 6 Mbit/s with its SIFS, us; RTS and CTS count as two.
const ACK: u32 = 60;
/// The same of radios of b and g, at 1 Mbit/s, us; their preamble is in the time of a packet.
const LEGACY_ACK: u32 = 314;

/// Whose scheme.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheme {
    /// Of Linux before 5.12, which ns-3 follows, too.
    #[default]
    Share,
    /// Of Linux since 5.12.
    Kinds,
}

/// What chooses samples.
#[derive(Clone, Debug)]
enum Sampling {
    Share(LookAround),
    Kinds(Samples),
}

/// See the module.
#[derive(Clone, Debug)]
pub struct MinstrelHt {
    groups: Vec<Group>,
    /// `stats[group][rate]`.
    stats: Vec<[RateStats; groups::RATES]>,
    /// Best throughput first.
    max_tp: [Index; 4],
    max_prob: Index,
    /// Average MPDUs of a frame, in 1/4096.
    average: u32,
    mpdus: u32,
    frames: u32,
    updated: Time,
    sampled: Time,
    sampling: Sampling,
    chain: RatePlan,
}

impl MinstrelHt {
    /// Knows nothing yet, and begins with the slowest rate.
    #[must_use]
    pub fn new(scheme: Scheme, capability: Capability, mut stream: Stream) -> Self {
        let groups = groups::of(capability);
        let orders = Orders::new(groups.len(), &mut stream);
        let lowest = groups[0].lowest(0);
        let mut minstrel = Self {
            stats: vec![[RateStats::default(); groups::RATES]; groups.len()],
            sampling: match scheme {
                Scheme::Share => Sampling::Share(LookAround::new(orders)),
                Scheme::Kinds => Sampling::Kinds(Samples::new(orders)),
            },
            groups,
            max_tp: [lowest; 4],
            max_prob: lowest,
            average: ONE,
            mpdus: 0,
            frames: 0,
            updated: Time::ZERO,
            sampled: Time::ZERO,
            chain: RatePlan::of(Rate::OFDM_6),
        };
        minstrel.update(Time::ZERO);
        minstrel
    }

    /// What the next frame is sent with.
    pub fn plan(&mut self, now: Time) -> RatePlan {
        let Some(index) = self.sample(now) else { return self.chain };
        RatePlan::sample(self.rate_of(index), self.by_kinds())
    }

    /// The rate that the next frame tries out, if it does.
    fn sample(&mut self, now: Time) -> Option<Index> {
        let used = self.in_use();
        match &mut self.sampling {
            Sampling::Share(look_around) => look_around.take(&self.groups, &self.stats, &used),
            Sampling::Kinds(_) if now < self.sampled => None,
            Sampling::Kinds(samples) => {
                self.sampled = now + SAMPLE;
                samples.take()
            }
        }
    }

    fn by_kinds(&self) -> bool {
        matches!(self.sampling, Sampling::Kinds(_))
    }

    fn in_use(&self) -> InUse {
        let [first, second] = [self.max_tp[0], self.max_tp[1]].map(|index| (self.duration(index), index));
        let (fast, slow) = if first.0 > second.0 { (second, first) } else { (first, second) };
        InUse {
            best: self.max_tp[0],
            robust: self.max_prob,
            second_ns: slow.0,
            robust_ns: self.duration(self.max_prob),
            streams: self.groups[fast.1.group()].streams,
        }
    }

    /// A frame is settled.
    pub fn on_result(&mut self, now: Time, result: &TxResult<'_>) {
        self.frames += 1;
        self.mpdus += u32::from(result.mpdus);
        let average = self.average(self.max_tp[0].group());
        if let Sampling::Share(look_around) = &mut self.sampling {
            look_around.on_result(average);
        }
        let mut last = None;
        for (rate, tries) in result.plan.used(result.tries) {
            if let Some(stats) = self.stats_of(rate) {
                stats.attempts += u32::from(tries) * u32::from(result.mpdus);
            }
            last = Some(rate);
        }
        if let Some(stats) = last.and_then(|rate| self.stats_of(rate)) {
            stats.successes += u32::from(result.acked);
        }
        let mut changed = self.flee(0);
        changed |= self.flee(1);
        if now > self.updated + UPDATE {
            self.update(now);
        } else if changed {
            self.set_chain();
        }
    }

    /// The rate of most throughput.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.rate_of(self.max_tp[0])
    }

    /// What a frame that tries nothing out is sent with.
    #[must_use]
    pub const fn chain(&self) -> &RatePlan {
        &self.chain
    }

    /// Each rate with the MPDUs that were sent with it and those that arrived.
    pub fn counts(&self) -> impl Iterator<Item = (Rate, u64, u64)> {
        self.groups.iter().zip(&self.stats).flat_map(|(group, stats)| {
            let known = group.rates.iter().zip(stats).filter_map(|(rate, stats)| Some((rate.as_ref()?.rate, stats)));
            known.map(|(rate, stats)| (rate, stats.all_attempts(), stats.all_successes()))
        })
    }

    /// When hardly anything arrives any more, a group with fewer streams or less width is taken at once.
    fn flee(&mut self, place: usize) -> bool {
        let index = self.max_tp[place];
        let stats = &self.stats[index.group()][index.rate()];
        let part = if self.by_kinds() { 4 } else { 5 };
        if stats.attempts <= 30 || stats.successes >= stats.attempts / part {
            return false;
        }
        let streams = self.groups[index.group()].streams;
        if let Some(group) = self.groups[..index.group()].iter().rev().find(|group| group.streams <= streams) {
            self.max_tp[place] = group.max_tp[place];
        }
        true
    }

    fn stats_of(&mut self, rate: Rate) -> Option<&mut RateStats> {
        let group = self.groups.iter().position(|group| group.holds(rate))?;
        let at = self.groups[group].rates.iter().position(|own| own.as_ref().is_some_and(|own| own.rate == rate))?;
        Some(&mut self.stats[group][at])
    }

    fn rate_of(&self, index: Index) -> Rate {
        self.groups[index.group()].rate(index).rate
    }

    /// Time of 1,200 bytes, ns.
    fn duration(&self, index: Index) -> u32 {
        self.groups[index.group()].rate(index).duration_ns
    }

    fn probability(&self, index: Index) -> u32 {
        self.stats[index.group()][index.rate()].probability()
    }

    /// What a frame costs besides its data, us.
    fn overhead(&self, group: usize) -> u32 {
        if self.groups[group].is_legacy { LEGACY_ACK } else { OVERHEAD }
    }

    fn ack(&self, group: usize) -> u32 {
        if self.groups[group].is_legacy { LEGACY_ACK } else { ACK }
    }

    /// Average MPDUs of a frame.
    fn average(&self, group: usize) -> u32 {
        if self.groups[group].is_legacy { 1 } else { (self.average / ONE).max(1) }
    }

    /// The statistics of what was sent since the last time, and what follows from them.
    fn update(&mut self, now: Time) {
        if self.frames > 0 {
            self.average = stats::ewma(self.average, frac(self.mpdus, self.frames));
            (self.mpdus, self.frames) = (0, 0);
        }
        self.fold();
        self.select();
        (self.updated, self.sampled) = (now, now);
        self.set_chain();
        self.refill();
    }

    fn refill(&mut self) {
        let chain = [self.max_tp[0], self.max_tp[1], self.max_prob].map(|index| self.duration(index));
        let fast = chain.into_iter().min().unwrap_or(0);
        let slow = chain.into_iter().max().unwrap_or(0);
        let best = self.duration(self.max_tp[0]);
        match &mut self.sampling {
            Sampling::Share(look_around) => look_around.on_update(self.groups.len()),
            Sampling::Kinds(samples) => samples.refill(&self.groups, &self.stats, best, fast, slow),
        }
    }

    fn set_chain(&mut self) {
        let indexes = [self.max_tp[0], self.max_tp[1], self.max_tp[2], self.max_prob];
        let mut stages = indexes.map(|index| Stage { rate: self.rate_of(index), tries: 2, rts: false });
        for (place, (stage, index)) in stages.iter_mut().zip(indexes).enumerate() {
            stage.rts = place > 0;
            if self.probability(index) >= frac(20, 100) {
                stage.tries = self.tries(index, stage.rts);
            }
        }
        if !self.by_kinds() {
            stages[2] = stages[3];
        }
        self.chain = RatePlan::chain(&stages[..if self.by_kinds() { 4 } else { 3 }]);
    }

    /// How many tries of a frame of average length fit into a segment.
    fn tries(&self, index: Index, rts: bool) -> u8 {
        let data = self.duration(index) * self.average(index.group()) / 1_000;
        let each = data + self.overhead(index.group()) + if rts { 2 * self.ack(index.group()) } else { 0 };
        // Contention of the first two tries, then of each.
        let (mut window, mut time) = (15u32, 2 * each);
        for _ in 0..2 {
            time += 9 * window / 2;
            window = (2 * window + 1).min(1023);
        }
        let mut tries = 2;
        loop {
            time += 9 * window / 2 + each;
            window = (2 * window + 1).min(1023);
            if time >= SEGMENT || tries >= MOST_TRIES {
                return tries;
            }
            tries += 1;
        }
    }
}

#[cfg(test)]
mod tests;
