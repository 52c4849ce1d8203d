//! What the controller sees and does, for `status` and the report.

use super::{HopId, QueuePlace};
use crate::fastpath::layout::Plan;
use crate::packet::{Direction, FlowId};
use crate::units::{BitRate, Span};

/// The whole controller.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// What the last hop can carry, or what was learned of it by the direction that carries more; 0 while unknown.
    pub capacity: BitRate,
    /// What is known of each direction, indexed by [`Direction::index`].
    pub directions: [DirectionSnapshot; 2],
    /// Filtered rate of UDP.
    pub udp: BitRate,
    /// What of the capacity UDP leaves.
    pub available: BitRate,
    /// One entry per direction of a flow.
    pub flows: Vec<FlowSnapshot>,
    /// Hops whose own queue is fair to flows ([`super::HopSample::fair_queue`]), and whose downloads are held all the same: more waits than that
    /// queue explains.
    pub queues_elsewhere: Vec<HopId>,
}

/// What is known of data that goes in one direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct DirectionSnapshot {
    /// What the narrowest hop carries; `None` while unknown.
    pub capacity: Option<BitRate>,
    /// Where that is from; `None` while unknown.
    pub basis: Option<Basis>,
    /// Standard deviation of the measurements that it is the mean of, as a part of it; `None` where it was not measured.
    pub spread: Option<f64>,
    /// Where packets waited when they last did.
    pub place: Option<QueuePlace>,
    /// What waits, on both sides of the access point together.
    pub queue: Span,
    /// What of it waits between access point and station.
    pub local: Span,
    /// Windows are limited.
    pub limits: bool,
}

/// Where a capacity is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Somebody said so, or a shaper does.
    Given,
    /// What was delivered while packets waited.
    Measured,
    /// What packet trains came through at.
    Estimate,
}

/// One direction of one flow.
#[derive(Clone, Copy, Debug)]
pub struct FlowSnapshot {
    /// The host's name for it.
    pub flow: FlowId,
    /// Direction of its data.
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
    /// Its window can be rewritten, and its sender keeps to it.
    pub controllable: bool,
    /// The scale of its windows is known.
    pub scale_known: bool,
    /// Somebody wants its windows left alone.
    pub left_alone: bool,
    /// What its packets wait now, on both sides together; `None` where nothing told of it lately.
    pub waits: Option<Span>,
    /// It fills the window that it was planned, or waits for its pace.
    pub window_limited: bool,
}
