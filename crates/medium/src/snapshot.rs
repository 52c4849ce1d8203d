//! What the channel did so far, for reports: `schema/report.md`, `stations[]` and `queues[]`.

use lasthop_core::aqm::fifo;
use lasthop_core::units::Span;

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

/// Everything, indexed by node: 0 the access point, i station i.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Per node.
    pub nodes: Vec<NodeStats>,
    /// Per node's queue.
    pub queues: Vec<fifo::Snapshot>,
}
