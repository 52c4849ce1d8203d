//! What is taken from statuses: a reading of the direction that is compared, and what the report says beside the blocks.

use std::collections::BTreeMap;

use lasthop_core::packet::Direction as Towards;
use lasthop_core::units::Time;
use lasthop_status::{Basis, Status, WaitingStatus};

use crate::block::Block;
use crate::plan::{Direction, Plan};
use crate::report::{Device, Ended, FORMAT, Report};
use lasthop_core::meter::paired::median;

/// Most devices that a report lists.
pub(super) const MOST_DEVICES: usize = 64;

/// Counters of one direction at one time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reading {
    pub(super) at: Time,
    pid: u32,
    running_s: f64,
    pub(super) carried_bytes: u64,
    pub(super) waiting: WaitingStatus,
}

/// What happened between two readings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Second {
    pub(super) rate_bps: u64,
    /// Its median: one interval that was measured wrongly does not make the second.
    pub(super) wait_ms: Option<f64>,
}

impl Reading {
    pub(super) fn of(at: Time, status: &Status, direction: Direction) -> Self {
        let of = direction.of(&status.directions);
        let all = of.waiting.iter().find(|waits| waits.place == "all").cloned();
        let waiting = all.unwrap_or_else(|| WaitingStatus { place: "all".to_owned(), ..WaitingStatus::default() });
        Self { at, pid: status.pid, running_s: status.running_s, carried_bytes: of.carried_bytes, waiting }
    }

    /// Whether the controller was started anew in between.
    pub(super) fn is_of_another(&self, before: &Self) -> bool {
        self.pid != before.pid || self.running_s < before.running_s
    }

    pub(super) fn since(&self, before: &Self) -> Option<Second> {
        let s = self.at.since(before.at).as_secs_f64();
        let bytes = self.carried_bytes.checked_sub(before.carried_bytes)?;
        let wait_ms = self.waiting.since(&before.waiting).quantile(0.5);
        (s > 0.0).then(|| Second { rate_bps: (bytes as f64 * 8.0 / s).round() as u64, wait_ms })
    }
}

#[derive(Clone, Debug, Default)]
struct Seen {
    label: String,
    down_bps: f64,
    up_bps: f64,
}

/// What a report says beside the blocks.
#[derive(Clone, Debug)]
pub(super) struct Recorder {
    names: bool,
    version: String,
    statuses: u64,
    /// What the controller knew to be carried, while it was given or measured, bit/s.
    capacities: Vec<f64>,
    base_rtts_ms: Vec<f64>,
    devices: BTreeMap<String, Seen>,
    devices_paused: bool,
}

impl Recorder {
    pub(super) fn new(names: bool) -> Self {
        let (capacities, base_rtts_ms) = (Vec::new(), Vec::new());
        let (version, devices) = (String::new(), BTreeMap::new());
        Self { names, version, statuses: 0, capacities, base_rtts_ms, devices, devices_paused: false }
    }

    pub(super) fn on_status(&mut self, status: &Status, direction: Direction) {
        self.statuses += 1;
        self.version.clone_from(&status.version);
        self.devices_paused |= status.paused.iter().any(|pause| pause.device.is_some());
        let of = direction.of(&status.directions);
        if matches!(of.capacity_basis, Some(Basis::Given | Basis::Measured)) {
            self.capacities.extend(of.capacity_bps.map(|bps| bps as f64));
        }
        let towards = match direction {
            Direction::Down => Towards::ToStation,
            Direction::Up => Towards::ToRemote,
        };
        // The fastest first.
        let mut rtts = status.flows.iter().filter(|flow| flow.direction == towards);
        self.base_rtts_ms.extend(rtts.find_map(|flow| Some(flow.local_rtt_ms? + flow.remote_rtt_ms?)));
        for device in &status.devices {
            if self.devices.len() >= MOST_DEVICES && !self.devices.contains_key(&device.id) {
                continue;
            }
            let seen = self.devices.entry(device.id.clone()).or_default();
            seen.label = device.label();
            seen.down_bps += device.down_bps as f64;
            seen.up_bps += device.up_bps as f64;
        }
    }

    /// Median of what was given or measured.
    pub(super) fn capacity(&self) -> Option<u64> {
        median(&self.capacities).map(|bps| bps as u64)
    }

    pub(super) fn report(&self, plan: Plan, started_unix_s: u64, ended: Ended, blocks: Vec<Block>) -> Report {
        let n = self.statuses.max(1) as f64;
        let mut seen: Vec<&Seen> = self.devices.values().collect();
        seen.sort_by(|a, b| (b.down_bps + b.up_bps).total_cmp(&(a.down_bps + a.up_bps)));
        let device = |(i, seen): (usize, &&Seen)| Device {
            name: if self.names { seen.label.clone() } else { format!("device {}", i + 1) },
            down_bps: (seen.down_bps / n).round() as u64,
            up_bps: (seen.up_bps / n).round() as u64,
        };
        let mut report = Report {
            format: FORMAT,
            version: self.version.clone(),
            started_unix_s,
            ended,
            plan,
            capacity_bps: self.capacity(),
            base_rtt_ms: median(&self.base_rtts_ms).map(|ms| (ms * 1e3).round() / 1e3),
            devices: seen.iter().enumerate().map(device).collect(),
            devices_paused: self.devices_paused,
            blocks,
            findings: None,
        };
        report.judge();
        report
    }
}
