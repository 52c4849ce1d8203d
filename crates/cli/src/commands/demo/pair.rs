//! Two runs side by side, and the period of them that is looked at.

use lasthop_home::report::{FlowReport, Metrics, Report};

/// The two periods of a run, split where the download is some seconds old.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// From the download's start until `measure_from`.
    StartUp,
    /// From `measure_from` on: the report's main population.
    Rest,
}

/// Both runs.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    /// Control off.
    pub off: &'a Report,
    /// Control on.
    pub on: &'a Report,
}

impl Period {
    /// The flow's figures in this period.
    pub fn of(self, flow: &FlowReport) -> &Metrics {
        match self {
            Self::StartUp => &flow.start_up,
            Self::Rest => &flow.metrics,
        }
    }

    /// The title of the period's table; lengths in seconds.
    pub fn title(self, start_up_s: u64, download_s: u64) -> String {
        match self {
            Self::StartUp => format!("The first {start_up_s} s of the download"),
            Self::Rest => format!("The rest of it ({} s)", download_s - start_up_s),
        }
    }
}

#[cfg(test)]
pub mod tests {
    use lasthop_home::report::{AddedDelay, Fairness, Host, Run};

    use super::*;

    /// A flow that was measured in the rest of the download only.
    pub fn flow(name: &str, kind: &str, metrics: Metrics) -> FlowReport {
        FlowReport {
            name: name.into(),
            from: "W".into(),
            to: "N".into(),
            kind: kind.into(),
            metrics,
            start_up: Metrics::default(),
        }
    }

    /// A run of `flows`.
    pub fn report(flows: Vec<FlowReport>) -> Report {
        let run = Run {
            host: Host::Emu,
            revision: "test".into(),
            wall_s: 1.0,
            events: 1,
            valid: true,
            lag_ms: None,
            drops: None,
        };
        Report {
            format: 1,
            scenario: "test".into(),
            seed: 1,
            duration_s: 50.0,
            measure_from_s: 10.0,
            run,
            flows,
            stations: Vec::new(),
            queues: Vec::new(),
            fairness: Fairness::default(),
            control: None,
            snoop: None,
        }
    }

    /// A p99 of added delay, ms.
    pub fn added(p99: f64) -> Option<AddedDelay> {
        Some(AddedDelay { mean: p99 / 4.0, p50: p99 / 4.0, p95: p99 / 2.0, p99, max: p99 * 2.0 })
    }
}
