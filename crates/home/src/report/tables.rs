//! From what a host counted to the tables of the report.

use std::cmp::Reverse;

use lasthop_core::aqm::fifo;
use lasthop_core::meter::fairness::jain;
use lasthop_core::units::{Span, Time};
use lasthop_medium::{ClassStats, NodeId, NodeStats, RateStats, Snapshot};

use super::meter::Window;
use super::{AirRateReport, ClassReport, FlowMeter, FlowReport, QueueReport, StationReport};
use crate::scenario::{CLASS_WORDS, Flow, Scenario};

/// The meter of `flow` in a run of `scenario` that starts at `origin`.
#[must_use]
pub fn flow_meter(scenario: &Scenario, flow: &Flow, origin: Time) -> FlowMeter {
    let window = Window {
        youngest_start: scenario.youngest_start(),
        measure_from: scenario.measure_from,
        start: flow.start,
        end: flow.stop.min(scenario.duration),
    };
    FlowMeter::new(origin, window)
}

/// `stations[]` from what the medium counted, the access point first; `over` is the time they had.
#[must_use]
pub fn stations(scenario: &Scenario, medium: &Snapshot, over: Span) -> Vec<StationReport> {
    let names = std::iter::once("AP").chain(scenario.stations.iter().map(|s| s.name.as_str()));
    let share = |airtime: Span| airtime.as_secs_f64() / over.as_secs_f64().max(1e-9);
    let class = |(word, class): (&str, &ClassStats)| ClassReport {
        class: word.to_owned(),
        ppdus: class.attempts,
        mpdus: class.mpdus,
        mpdus_per_ppdu: (class.attempts > 0).then(|| class.mpdus as f64 / class.attempts as f64),
        collision_probability: (class.attempts > 0).then(|| class.collisions as f64 / class.attempts as f64),
        internal_collisions: class.internal_collisions,
        retries: class.retries,
        given_up: class.given_up,
        block_ack_requests: class.bars,
        airtime_share: share(class.airtime),
    };
    let classes = |number: usize| {
        let all = medium.classes.get(number).into_iter().flatten();
        CLASS_WORDS.into_iter().zip(all).filter(|(_, stats)| **stats != ClassStats::default()).map(class).collect()
    };
    let rates = |number: usize| {
        let name = |node: NodeId| match usize::from(node.0) {
            0 => "AP".to_owned(),
            station => scenario.stations[station - 1].name.clone(),
        };
        let mut own: Vec<&RateStats> = medium.rates.iter().filter(|rate| usize::from(rate.from.0) == number).collect();
        own.sort_by_key(|rate| (rate.to, Reverse(rate.mpdus), rate.rate));
        let rate = |stats: &RateStats| AirRateReport {
            to: name(stats.to),
            rate_bps: stats.rate.bit_rate().as_bps(),
            mcs: stats.rate.mode().map(|mode| mode.mcs),
            streams: stats.rate.mode().map_or(1, |mode| mode.streams),
            width_mhz: stats.rate.mode().map_or(20, |mode| mode.width.mhz()),
            guard_interval_ns: stats.rate.mode().map(|mode| mode.guard.nanos()),
            mpdus: stats.mpdus,
            acked: stats.acked,
        };
        own.into_iter().map(rate).collect()
    };
    let station = |(number, (name, node)): (usize, (&str, &NodeStats))| StationReport {
        name: name.to_owned(),
        airtime_share: share(node.airtime),
        frames: node.frames,
        attempts: node.attempts,
        retries: node.retries,
        given_up: node.given_up,
        collisions: node.collisions,
        classes: classes(number),
        rates: rates(number),
    };
    names.zip(&medium.nodes).enumerate().map(station).collect()
}

/// A queue as the report shows it.
#[must_use]
pub fn queue(name: &str, metrics: &fifo::Snapshot) -> QueueReport {
    QueueReport {
        name: name.to_owned(),
        mean_packets: metrics.mean_packets,
        max_packets: metrics.max_packets as u64,
        mean_sojourn: metrics.mean_sojourn_ms,
        p99_sojourn: metrics.p99_sojourn_ms,
        dropped: metrics.dropped,
        marked: metrics.marked,
    }
}

/// Jain's index over the goodput of the flows with congestion control; `reports` stand in the order of the scenario's flows.
#[must_use]
pub fn goodput_fairness(scenario: &Scenario, reports: &[FlowReport]) -> Option<f64> {
    let controlled = |flow: &Flow| flow.kind.is_elastic() || flow.carrier.is_some();
    let sharing = scenario.flows.iter().zip(reports).filter(|(flow, _)| controlled(flow));
    jain(&sharing.map(|(_, report)| report.metrics.goodput_bps).collect::<Vec<_>>())
}

/// Jain's index over the channel time of the stations, the access point left out.
#[must_use]
pub fn airtime_fairness(nodes: &[NodeStats]) -> Option<f64> {
    jain(&nodes.iter().skip(1).map(|node| node.airtime.as_secs_f64()).collect::<Vec<_>>())
}
