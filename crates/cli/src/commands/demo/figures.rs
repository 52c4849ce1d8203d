//! The figures of one flow in one period, as the demo's table and its verdict need them.

use lasthop_home::report::{FlowReport, Report};

/// The two periods of a run, split where the download is 5 s old.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// From the download's first packet until `measure_from`.
    StartUp,
    /// From `measure_from` on: the report's main population.
    Rest,
}

/// One flow in one period. Times in ms; `None` where no packet arrived.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// As in the scenario.
    pub name: String,
    /// As in the scenario: "game-server", "ftp", ..
    pub kind: String,
    /// Packets handed to the network.
    pub sent: u64,
    /// Packets that never arrived.
    pub lost: u64,
    /// Payload bits per second that arrived.
    pub goodput_bps: f64,
    /// One-way delay: p50, p95, p99, max.
    pub delay: [Option<f64>; 4],
    /// Delay beyond the flow's least: p99.
    pub added_p99: Option<f64>,
    /// Mean change of delay from one packet to the next.
    pub jitter: Option<f64>,
}

impl Figures {
    /// All flows of a report in `period`, in the report's order.
    pub fn of(report: &Report, period: Period) -> Vec<Self> {
        report.flows.iter().filter_map(|flow| Self::of_flow(flow, period)).collect()
    }

    /// Is this a game, either way?
    pub fn is_game(&self) -> bool {
        self.kind.starts_with("game")
    }

    /// Is this a download (greedy TCP)?
    pub fn is_download(&self) -> bool {
        self.kind == "ftp"
    }
}
