//! Names of figures: every one that a report may have, and those near one that it has not.

use lasthop_core::levers::Lever;
use lasthop_core::units::Span;

use super::{
    AddedDelay, CapacityReport, ControlReport, Delay, JitterReport, LearnedReport, LeverReport, LeversReport, Metrics,
    PageReport, QueuePlaces, RateReport, Report, TcpReport,
};
use crate::scenario::Scenario;

/// How many near names are told.
const NEAR: usize = 5;

impl Report {
    /// The same hosts, flows and queues with every field that a run of any scenario may have, so that each has its name; the
    /// values say nothing.
    #[must_use]
    pub fn with_every_field(mut self) -> Self {
        for flow in &mut self.flows {
            (flow.metrics, flow.start_up) = (Metrics::with_every_field(), Metrics::with_every_field());
        }
        // None are not written.
        self.queues.iter_mut().for_each(|queue| queue.marked = 1);
        self.control = Some(ControlReport::with_every_field(self.flows.iter().map(|flow| flow.name.clone())));
        self.snoop = Some(self.snoop.unwrap_or_default());
        self
    }
}

impl Metrics {
    fn with_every_field() -> Self {
        let tcp = TcpReport {
            acked_packets: 0,
            retransmitted: 0,
            timeouts: 0,
            fast_retransmits: 0,
            cwnd_max: 0.0,
            cwnd_mean: 0.0,
            srtt_ms: 0.0,
            local_retransmitted: Some(0),
        };
        Self {
            delay: Some(Delay { min: 0.0, mean: 0.0, p50: 0.0, p95: 0.0, p99: 0.0, max: 0.0 }),
            added_delay: Some(AddedDelay { mean: 0.0, p50: 0.0, p95: 0.0, p99: 0.0, max: 0.0 }),
            jitter: Some(JitterReport { mean: 0.0, var: 0.0, max: 0.0 }),
            rfc3550: Some(0.0),
            timely_index: Some(0.0),
            timely_in_order: Some(0.0),
            delayed_rate: Some(0.0),
            loss_rate: Some(0.0),
            tcp: Some(tcp),
            first_half: Some(tcp),
            rate_control: Some(RateReport {
                allowed_bps: 0.0,
                loss_events: 0,
                loss_event_rate: 0.0,
                silences: 0,
                srtt_ms: 0.0,
            }),
            page: Some(PageReport { load_ms: vec![0.0] }),
            ..Self::default()
        }
    }
}

impl ControlReport {
    fn with_every_field(flows: impl Iterator<Item = String>) -> Self {
        let capacity = CapacityReport { mean: 0.0, last: 0.0 };
        Self {
            capacity_bps: capacity,
            udp_bps: 0.0,
            controllable_share: 0.0,
            rewritten: 0,
            passed: 0,
            not_controlled: lasthop_core::layout::Reason::ALL.iter().map(|why| (why.name().to_owned(), 0)).collect(),
            clamps: flows.map(|flow| (flow, 0)).collect(),
            learned: LearnedReport {
                capacity_down_bps: Some(capacity),
                capacity_up_bps: Some(capacity),
                queue_place: Some(QueuePlaces::default()),
                elastic_udp_bps: Some(0.0),
                decisions: Some(0),
            },
            levers: Some(LeversReport {
                each: Lever::ALL.map(|lever| (lever.name().to_owned(), LeverReport::with_every_field())).into(),
                ..LeversReport::default()
            }),
        }
    }
}

impl LeverReport {
    fn with_every_field() -> Self {
        Self { pairs: Some(0), added_ms: Some(0.0), carried: Some(0.0), ..Self::default() }
    }
}

/// The scenario as it is for a moment: its report has every host, flow and queue, and took no time.
#[must_use]
pub fn for_a_moment(scenario: &Scenario) -> Scenario {
    let duration = scenario.duration.min(Span::from_micros(1));
    Scenario { duration, measure_from: Span::ZERO, ..scenario.clone() }
}

/// Of `known`, those most like `name`, the most like it first; at most five.
#[must_use]
pub fn closest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut all: Vec<(f64, &str)> = known.map(|other| (strsim::jaro_winkler(name, other), other)).collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    all.into_iter().take(NEAR).map(|(_, other)| other).collect()
}
