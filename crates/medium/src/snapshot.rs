//! What the channel did so far, for reports: `schema/report.md`, `stations[]` and `queues[]`.

use lasthop_core::aqm::fifo;
use lasthop_core::units::Span;

use crate::medium::NodeId;
use crate::phy::Rate;

/// One node's share in the channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeStats {
    /// Medium time of the exchanges this node started: its frames, the waits between them and the answers; of a
    /// collision, its own frame.
    pub airtime: Span,
    /// Frames that were transmitted at least once.
    pub frames: u64,
    /// Transmissions, first ones and repetitions.
    pub attempts: u64,
    /// Repetitions.
    pub retries: u64,
    /// Frames whose attempts ran out without an ACK.
    pub given_up: u64,
    /// Transmissions that began together with another one.
    pub collisions: u64,
}

/// One class of one node, where the air has classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassStats {
    /// PPDUs sent, first ones and repetitions: exchanges begun.
    pub attempts: u64,
    /// Of these, begun together with another node's.
    pub collisions: u64,
    /// Times that a class of higher priority of the same node went first; no transmission.
    pub internal_collisions: u64,
    /// MPDUs sent, repetitions included.
    pub mpdus: u64,
    /// Of these, sent before.
    pub retries: u64,
    /// MPDUs whose attempts or lifetime ran out.
    pub given_up: u64,
    /// Block ack requests.
    pub bars: u64,
    /// As [`NodeStats::airtime`].
    pub airtime: Span,
}

/// One rate of one node towards another, where rates or their errors change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateStats {
    /// Sender.
    pub from: NodeId,
    /// Receiver.
    pub to: NodeId,
    /// The rate.
    pub rate: Rate,
    /// MPDUs sent with it, repetitions included.
    pub mpdus: u64,
    /// Of these, acknowledged.
    pub acked: u64,
}

/// Everything, indexed by node: 0 the access point, i station i.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Per node.
    pub nodes: Vec<NodeStats>,
    /// Per node's queue.
    pub queues: Vec<fifo::Snapshot>,
    /// Per node and class ([`lasthop_core::packet::AccessCategory::index`]); empty where the air has no classes.
    pub classes: Vec<[ClassStats; 4]>,
    /// By sender and receiver; empty where every rate and its errors stay as they are.
    pub rates: Vec<RateStats>,
}
