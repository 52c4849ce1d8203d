//! Evenings that are made up, for the analysis to be judged on: waits that drift, with a trend over the evening and noise that
//! remembers itself, load that comes and goes, and control whose effect is known.
//!
//! `ln(wait) = ln(base) + drift * t + trend * sin(2 pi t / period + phase) + slow + fast + ln(effect) * c`
//!
//! `slow` and `fast` are autoregressive (first order, one step a second); `c` follows control with a time constant of 3 s, so that a block
//! begins as the one before it ended. Rates carry noise of their own; while nobody downloads, little is carried and little tells.

use lasthop_core::ap::waiting::Histogram;
use lasthop_core::units::Span;
use lasthop_measure::block::Block;
use lasthop_measure::{Arm, Direction, Plan};
use lasthop_testing::random::Random;

/// What an evening is like.
#[derive(Clone, Copy, Debug)]
pub struct Evening {
    /// Waits with control in parts of those without.
    pub effect: f64,
    /// The same of rates.
    pub rate_effect: f64,
    /// Usual wait without control, ms.
    pub base_ms: f64,
    /// Part of the time that somebody downloads, 0..=1.
    pub load: f64,
    /// Scale of drift, trend and noise; 1 is an uneasy evening.
    pub unease: f64,
}

impl Evening {
    /// Nothing that control changes.
    pub const USUAL: Self = Self { effect: 1.0, rate_effect: 1.0, base_ms: 60.0, load: 0.85, unease: 1.0 };

    /// Its blocks by `plan`; `seed` is what happens in it.
    pub fn play(&self, plan: &Plan, seed: u64) -> Vec<Block> {
        let arms: Vec<Arm> = (0..plan.blocks()).map(|block| plan.arm(block)).collect();
        self.play_in_order(plan, &arms, seed)
    }

    /// Half an evening without control, then half with it: what people do.
    pub fn play_before_and_after(&self, plan: &Plan, seed: u64) -> Vec<Block> {
        let arm = |block| if block < plan.pairs { Arm::Off } else { Arm::On };
        let arms: Vec<Arm> = (0..plan.blocks()).map(arm).collect();
        self.play_in_order(plan, &arms, seed)
    }

    fn play_in_order(&self, plan: &Plan, arms: &[Arm], seed: u64) -> Vec<Block> {
        let mut course = Course::new(*self, plan, seed);
        arms.iter().enumerate().map(|(i, arm)| course.block(plan, i, *arm)).collect()
    }
}

/// An evening as it goes.
struct Course {
    evening: Evening,
    random: Random,
    length_s: f64,
    drift: f64,
    trend: f64,
    periods: f64,
    phase: f64,
    slow: f64,
    fast: f64,
    rate_noise: f64,
    /// How far control has come, 0..=1.
    control: f64,
    is_busy: bool,
    second: f64,
}

/// Intervals that tell in a second; the controller has 20, and these are quicker to make up.
const INTERVALS: usize = 8;
/// What the hop carries, bit/s.
pub const CAPACITY_BPS: f64 = 20e6;

impl Course {
    fn new(evening: Evening, plan: &Plan, seed: u64) -> Self {
        let mut random = Random(seed ^ 0x6576_656e_696e_6773);
        let mut between = |low: f64, high: f64| low + (high - low) * random.share();
        let u = evening.unease;
        let (drift, trend) = (between(-0.8, 0.8) * u, between(0.0, 0.5) * u);
        let (periods, phase) = (between(0.3, 2.0), between(0.0, std::f64::consts::TAU));
        let is_busy = between(0.0, 1.0) < evening.load;
        let length_s = f64::from(plan.block_s) * plan.blocks() as f64;
        let (slow, fast, rate_noise, control, second) = (0.0, 0.0, 0.0, 0.0, 0.0);
        Self {
            evening,
            random,
            length_s,
            drift,
            trend,
            periods,
            phase,
            slow,
            fast,
            rate_noise,
            control,
            is_busy,
            second,
        }
    }

    /// Of the normal distribution (Box and Muller).
    fn normal(&mut self) -> f64 {
        let (a, b) = (1.0 - self.random.share(), self.random.share());
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }

    fn block(&mut self, plan: &Plan, number: usize, arm: Arm) -> Block {
        let mut block = Block::new(arm, f64::from(plan.block_s) * number as f64);
        let mut waits = Histogram::default();
        let mut bytes = 0.0;
        for s in 1..=plan.block_s {
            let wait_ms = self.step(arm);
            let rate = self.rate();
            block.at_s.push(f64::from(s));
            block.rate_bps.push(rate as u64);
            block.wait_ms.push(Some(wait_ms));
            if s <= plan.discard_s {
                continue;
            }
            bytes += rate / 8.0;
            // While nobody downloads, little tells.
            let told = if self.is_busy { INTERVALS } else { 1 };
            for _ in 0..told {
                let spread = (self.normal() * 0.3).exp();
                waits.on_wait(Span::from_secs_f64(wait_ms * spread / 1e3));
            }
        }
        block.counted_s = f64::from(plan.block_s - plan.discard_s);
        block.bytes = bytes as u64;
        block.waiting.count = waits.count();
        block.waiting.sum_ms = waits.sum().as_millis_f64();
        block.waiting.buckets = waits.buckets().map(|(upper, n)| (upper.map(Span::as_millis_f64), n)).collect();
        block
    }

    /// The wait of the next second, ms.
    fn step(&mut self, arm: Arm) -> f64 {
        self.second += 1.0;
        let u = self.evening.unease;
        // They remember 100 s and 5 s.
        self.slow = self.slow * 0.99 + self.normal() * 0.35 * u * (1.0 - 0.99_f64.powi(2)).sqrt();
        self.fast = self.fast * 0.8 + self.normal() * 0.25 * u * (1.0 - 0.8_f64.powi(2)).sqrt();
        self.control += (f64::from(u8::from(arm == Arm::On)) - self.control) / 3.0;
        let (is_over, begins) = (1.0 / (600.0 * self.evening.load), 1.0 / (600.0 * (1.0 - self.evening.load)).max(1.0));
        let flips = if self.is_busy { is_over } else { begins };
        if self.evening.load < 1.0 && self.random.share() < flips {
            self.is_busy = !self.is_busy;
        }
        let t = self.second / self.length_s;
        let trend = self.trend * (std::f64::consts::TAU * self.periods * t + self.phase).sin();
        let idle = if self.is_busy { 0.0 } else { -2.0 };
        let log = self.evening.base_ms.ln() + self.drift * t + trend + self.slow + self.fast + idle;
        (log + self.evening.effect.ln() * self.control).exp()
    }

    fn rate(&mut self) -> f64 {
        self.rate_noise = self.rate_noise * 0.95 + self.normal() * 0.05 * (1.0 - 0.95_f64.powi(2)).sqrt();
        let load = if self.is_busy { 0.95 } else { 0.03 };
        CAPACITY_BPS * load * (self.rate_noise + self.evening.rate_effect.ln() * self.control).exp()
    }
}

/// The usual plan, with an order of its own.
pub fn plan(pairs: usize, seed: u64) -> Plan {
    Plan { pairs, block_s: 60, discard_s: 15, seed, direction: Direction::Down }
}

/// What people do: the mean of all seconds before and after, each second for a measurement of its own. |z| of Welch's test.
pub fn naive_z(blocks: &[Block], discard_s: u32) -> f64 {
    let of = |arm: Arm| -> Vec<f64> {
        let blocks = blocks.iter().filter(|block| block.arm == arm);
        let counted = |block: &Block| {
            let pairs: Vec<_> = block.at_s.iter().copied().zip(block.wait_ms.iter().copied()).collect();
            pairs.into_iter().filter(move |(at, _)| *at > f64::from(discard_s)).filter_map(|(_, wait)| wait)
        };
        blocks.flat_map(counted).collect()
    };
    let moments = |values: &[f64]| {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        (mean, values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0) / n)
    };
    let ((on, on_var), (off, off_var)) = (moments(&of(Arm::On)), moments(&of(Arm::Off)));
    (on - off).abs() / (on_var + off_var).sqrt()
}
