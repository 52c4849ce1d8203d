//! What the controller sees and does, for `status` and the report.

use crate::fastpath::layout::Plan;
use crate::packet::{Direction, FlowId};
use crate::units::{BitRate, Span};

/// The whole controller.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// What the last hop can carry.
    pub capacity: BitRate,
    /// Filtered rate of UDP.
    pub udp: BitRate,
    /// What was shared out among controlled flows.
    pub available: BitRate,
    /// Samples of flows beyond the bound on flows.
    pub untracked: u64,
    /// One entry per direction of a flow.
    pub flows: Vec<FlowSnapshot>,
}

/// One direction of one flow.
#[derive(Clone, Copy, Debug)]
pub struct FlowSnapshot {
    /// The host's name for it.
    pub flow: FlowId,
    /// Which way its data goes.
    pub direction: Direction,
    /// IP bits per second, filtered.
    pub rate: BitRate,
    /// What it may use; `None` when it is not controlled or idle.
    pub share: Option<BitRate>,
    /// The plan in force.
    pub plan: Option<Plan>,
    /// RTT to the station without queue.
    pub local_rtt: Option<Span>,
    /// RTT to the remote end without queue.
    pub remote_rtt: Option<Span>,
    /// Correction of the window from what was achieved.
    pub trim: f64,
    /// Its window can be rewritten.
    pub controllable: bool,
}
