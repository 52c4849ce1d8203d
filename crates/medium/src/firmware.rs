//! The queue of a radio's firmware: first in, first out, behind the queue discipline.
//!
//! ```text
//! host -> discipline -> firmware (limit packets) -> air
//! ```
//!
//! The discipline hands over whatever it has as long as there is room. So while fewer than `limit` packets wait, the
//! discipline holds none: it neither chooses nor drops, and what it is worth is lost. Air time is charged to the discipline's
//! accounts when a frame has been sent, as drivers report it, not when the discipline let go of the packet.
//!
//! Before a plain discipline nothing of this can be told from one longer queue, and that is what it is then
//! ([`crate::MediumParams::plain_limit`]).
//!
//! Not modelled: queues per station or class of traffic within the firmware, byte queue limits, aggregation.

use lasthop_core::aqm::{Queue, Snapshot, fifo::Fifo};
use lasthop_core::packet::Packet;
use lasthop_core::units::{Span, Time};

use crate::node::Addressed;

/// See the module.
#[derive(Clone, Debug)]
pub struct Firmware<P> {
    packets: Fifo<Addressed<P>>,
    limit: usize,
}

impl<P: Packet> Firmware<P> {
    /// Empty, with room for `limit` packets.
    pub fn new(limit: usize) -> Self {
        Self { packets: Fifo::new(limit, Time::ZERO), limit }
    }

    /// Takes what there is room for; what the discipline drops on the way goes to `lose`.
    pub fn feed(&mut self, now: Time, queue: &mut Queue<Addressed<P>>, mut lose: impl FnMut(P)) {
        while self.packets.len() < self.limit
            && let Some(next) = queue.dequeue(now, |dropped| lose(dropped.packet))
        {
            let _ = self.packets.push(now, next);
        }
    }

    /// The packet to be sent now.
    pub fn pop(&mut self, now: Time) -> Option<Addressed<P>> {
        self.packets.pop(now)
    }

    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Both queues as one. A mean wait is the sum of both; the 99th percentile is at most that sum, which stands for it.
    pub fn with(&self, now: Time, queue: Snapshot) -> Snapshot {
        let own = self.packets.snapshot(now);
        Snapshot {
            packets: queue.packets + own.packets,
            bytes: queue.bytes + own.bytes,
            mean_packets: queue.mean_packets + own.mean_packets,
            // The discipline holds one for a moment even while there is room behind it.
            max_packets: own.max_packets + if own.max_packets < self.limit { 0 } else { queue.max_packets },
            mean_sojourn_ms: queue.mean_sojourn_ms + own.mean_sojourn_ms,
            p99_sojourn_ms: queue.p99_sojourn_ms + own.p99_sojourn_ms,
            ..queue
        }
    }
}

/// Charges what was sent to the account of its flow or station, wherever it has been since it left the discipline.
pub fn charge<P: Packet>(queue: &mut Queue<Addressed<P>>, sent: &Addressed<P>, cost: Span) {
    queue.charge_received(sent, sent.to.0, cost);
}
