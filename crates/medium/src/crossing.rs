//! A packet in flight between the access point and a station, for what has queues but no radio.

use lasthop_core::packet::{AccessCategory, FlowId, FlowKind, Packet};

use crate::medium::NodeId;

/// A packet and its way.
#[derive(Clone, Copy, Debug)]
pub struct Crossing<P> {
    pub packet: P,
    pub from: NodeId,
    pub to: NodeId,
}

impl<P> Crossing<P> {
    /// The station at one of its ends.
    pub fn station(&self) -> u16 {
        self.from.0.max(self.to.0)
    }
}

impl<P: Packet> Packet for Crossing<P> {
    fn flow(&self) -> FlowId {
        self.packet.flow()
    }
    fn bytes(&self) -> u32 {
        self.packet.bytes()
    }
    fn is_realtime(&self) -> bool {
        self.packet.is_realtime()
    }
    fn access_category(&self) -> AccessCategory {
        self.packet.access_category()
    }
    fn key(&self, kind: FlowKind) -> u64 {
        self.packet.key(kind)
    }
    fn mark_ce(&mut self) -> bool {
        self.packet.mark_ce()
    }
}
