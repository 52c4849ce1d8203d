//! The report: what was measured, block by block, and what follows, as JSON whose form has a version.
//!
//! Devices are called "device 1" and so on unless names were asked for; there are no addresses, no names of others, no flows.

use lasthop_status::WaitingStatus;
use serde::{Deserialize, Serialize};

use crate::block::Block;
use crate::findings::{self, Findings};
use crate::plan::{LONGEST_BLOCK_S, Plan, PlanError};

/// Version of the form of a [`Report`]: it changes when a field is renamed or goes, and not when one is added.
pub const FORMAT: u32 = 1;
/// Longest report that is read, bytes.
pub const LONGEST: usize = 32 << 20;

/// What was measured, and what follows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of the controller that was measured.
    pub version: String,
    /// When it began, s since 1970.
    pub started_unix_s: u64,
    /// How it ended.
    pub ended: Ended,
    /// What was to be done, in which order.
    pub plan: Plan,
    /// What the direction carries, as the controller knew it: median of what was given or measured while packets waited, IP bit/s; null
    /// where it never was.
    pub capacity_bps: Option<u64>,
    /// Round trip without any queue: of the fastest flow of each second the median, ms; null where it was never known.
    pub base_rtt_ms: Option<f64>,
    /// Devices that carried something, the fastest first.
    pub devices: Vec<Device>,
    /// Some were left alone all the time, in both halves.
    pub devices_paused: bool,
    /// Blocks in the order of time: 2n and 2n + 1 are a pair.
    pub blocks: Vec<Block>,
    /// What follows; not read back but found anew.
    #[serde(default, skip_deserializing)]
    pub findings: Option<Findings>,
}

/// How a measurement ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// As it was planned.
    Complete,
    /// Somebody stopped it.
    Stopped,
    /// The controller answered no longer.
    Silent,
}

/// What one device carried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// "device 1", or its name where names were asked for.
    pub name: String,
    /// Mean rate over the measurement, IP bit/s.
    pub down_bps: u64,
    /// The same of what it sent.
    pub up_bps: u64,
}

/// Why a text is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Too long.
    #[error("it has more than {} MB", LONGEST >> 20)]
    TooLong,
    /// Not the JSON of a report.
    #[error("it is no report of `measure`")]
    Json(#[source] serde_json::Error),
    /// Of another version.
    #[error(
        "its form is {0}, and this program reads {FORMAT}; use the program of the version that wrote it, or a newer one"
    )]
    Format(u64),
    /// A plan that nobody can have made.
    #[error("its plan cannot be")]
    Plan(#[source] PlanError),
    /// A figure or a list that is out of bounds.
    #[error("block {block} of it cannot be: {what}")]
    Block {
        /// Its number, from 1.
        block: usize,
        /// What.
        what: &'static str,
    },
    /// A figure beside the blocks that is out of bounds.
    #[error("its {0} is out of bounds")]
    Bounds(&'static str),
}

/// What a figure of a report can be at most: none of today's links, and no wait, comes near.
const MOST_BPS: u64 = 1_000_000_000_000_000;
const MOST_MS: f64 = 1e7;
const MOST_BUCKETS: usize = 256;
const MOST_COUNT: u64 = 1 << 40;
const MOST_NAME: usize = 256;
const MOST_DEVICES: usize = 1_024;

#[derive(Deserialize)]
struct Form {
    format: u64,
}

impl Report {
    /// Reads a report; what follows from its blocks is found anew.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn read(text: &[u8]) -> Result<Self, ReadError> {
        if text.len() > LONGEST {
            return Err(ReadError::TooLong);
        }
        let form: Form = serde_json::from_slice(text).map_err(ReadError::Json)?;
        if form.format != u64::from(FORMAT) {
            return Err(ReadError::Format(form.format));
        }
        let mut report: Self = serde_json::from_slice(text).map_err(ReadError::Json)?;
        report.check()?;
        report.judge();
        Ok(report)
    }

    /// As JSON with a final newline, in one line: what is long are lists of numbers.
    ///
    /// # Panics
    /// Never: the types hold neither maps with other keys than text nor a failing `Serialize`.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("plain structs of text and numbers") + "\n"
    }

    /// What an active probe saw in block number `block` (from 0), round trips per minute; what follows is found anew.
    pub fn set_rpm(&mut self, block: usize, rpm: f64) {
        if let Some(block) = self.blocks.get_mut(block) {
            block.rpm = Some(rpm);
        }
        self.judge();
    }

    /// What follows from the blocks.
    #[must_use]
    pub fn found(&self) -> Findings {
        findings::findings(&self.blocks, self.plan.pairs, self.plan.discard_s, self.capacity_bps)
    }

    pub(crate) fn judge(&mut self) {
        self.findings = Some(self.found());
    }

    fn check(&self) -> Result<(), ReadError> {
        self.plan.new().map_err(ReadError::Plan)?;
        let is_long = |name: &String| name.len() > MOST_NAME;
        for (what, is_wrong) in [
            ("capacity", self.capacity_bps.is_some_and(|bps| bps > MOST_BPS)),
            ("base round trip", self.base_rtt_ms.is_some_and(|ms| !(0.0..=MOST_MS).contains(&ms))),
            ("time", self.started_unix_s > 1 << 40),
            ("version", is_long(&self.version)),
            ("number of devices", self.devices.len() > MOST_DEVICES),
            ("list of devices", self.devices.iter().any(|d| is_long(&d.name) || d.down_bps.max(d.up_bps) > MOST_BPS)),
            ("number of blocks", self.blocks.len() > self.plan.blocks()),
        ] {
            if is_wrong {
                return Err(ReadError::Bounds(what));
            }
        }
        for (i, block) in self.blocks.iter().enumerate() {
            check_block(block, &self.plan, i).map_err(|what| ReadError::Block { block: i + 1, what })?;
        }
        Ok(())
    }
}

fn check_block(block: &Block, plan: &Plan, number: usize) -> Result<(), &'static str> {
    // A late host makes blocks longer, by no more than it is late.
    let longest_s = f64::from(LONGEST_BLOCK_S) * 2.0;
    let seconds = block.at_s.len();
    let is_time = |s: &f64, most: f64| (0.0..=most).contains(s);
    let waits = block.wait_ms.iter().flatten();
    for (what, is_wrong) in [
        ("it is of the other half", block.arm != plan.arm(number)),
        ("its start", !is_time(&block.start_s, 1e9)),
        ("its length", !is_time(&block.counted_s, longest_s)),
        ("its lists differ in length", block.rate_bps.len() != seconds || block.wait_ms.len() != seconds),
        ("it has too many seconds", seconds > 2 * LONGEST_BLOCK_S as usize),
        ("its seconds", block.at_s.iter().any(|s| !is_time(s, longest_s)) || !block.at_s.is_sorted()),
        ("its rates", block.rate_bps.iter().any(|bps| *bps > MOST_BPS) || block.bytes > MOST_BPS),
        ("its waits", waits.into_iter().any(|ms| !is_time(ms, MOST_MS))),
        ("its round trips per minute", block.rpm.is_some_and(|rpm| !is_time(&rpm, MOST_MS))),
    ] {
        if is_wrong {
            return Err(what);
        }
    }
    check_waiting(&block.waiting)
}

fn check_waiting(waiting: &WaitingStatus) -> Result<(), &'static str> {
    let bounds: Vec<f64> = waiting.buckets.iter().map(|(upper, _)| upper.unwrap_or(f64::MAX)).collect();
    let is_wrong = bounds.len() > MOST_BUCKETS
        || bounds.windows(2).any(|pair| pair[0] >= pair[1])
        || bounds.iter().any(|upper| *upper <= 0.0 || *upper > MOST_MS && *upper < f64::MAX)
        || waiting.buckets.iter().any(|(_, n)| *n > MOST_COUNT)
        || waiting.count > MOST_COUNT
        || waiting.place.len() > MOST_NAME
        || !(0.0..=1e15).contains(&waiting.sum_ms);
    if is_wrong { Err("its histogram") } else { Ok(()) }
}

#[cfg(test)]
mod tests;
