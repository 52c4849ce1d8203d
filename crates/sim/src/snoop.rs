//! Snoop at the access point of the simulated home, and what becomes of a packet's figures when it may be sent once more.
//!
//! A packet is lost when no copy of it arrives, as one counts who tells packets by their names. So its loss counts when no
//! copy of it is sent from there any more: when its segment has been acknowledged, or at the end; until then it is kept
//! here. A copy of what had not been lost may itself be lost, and nothing counts.

use std::collections::BTreeMap;

use lasthop_core::snoop::{self, Ack, Conduct, Data, Params, SnoopVerdict};
use lasthop_core::units::Time;
use lasthop_home::report::LossPlace;
use lasthop_medium::NodeId;
use lasthop_tcp::SackBlocks;

use crate::packet::{SimPacket, flag};

/// The sequence number of a packet: a SYN stands before the first byte.
fn number(packet: &SimPacket) -> u32 {
    let offset = packet.position.offset() as u32;
    if packet.has(flag::SYN) { offset.wrapping_sub(1) } else { offset }
}

/// Where a packet's loss is kept: those of what an acknowledgment of `offset` covers stand below `offset + 1`.
fn kept_at(packet: &SimPacket) -> (u32, u64) {
    (packet.flow, if packet.has(flag::SYN) { 0 } else { packet.position.offset() + 1 })
}

/// A packet and where it goes.
type Held = (NodeId, SimPacket);

/// A loss that is not counted yet.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// When its packet was sent.
    pub sent: Time,
    /// Where it was lost.
    pub place: LossPlace,
}

/// See the module.
pub struct SnoopControl {
    snoop: snoop::Snoop<Held>,
    /// What the queue of the access point drops is left to the sender; not so where Snoop stands above that queue, as in
    /// ns-2's network.
    leaves_drops: bool,
    /// By [`kept_at`].
    losses: BTreeMap<(u32, u64), Loss>,
    /// Local retransmissions of each flow.
    retransmitted: Vec<u64>,
    handoffs: u64,
}

impl SnoopControl {
    /// Empty, for so many flows.
    pub fn new(params: Params, flows: usize) -> Self {
        Self {
            leaves_drops: params.conduct == Conduct::Standard,
            snoop: snoop::Snoop::new(params),
            losses: BTreeMap::new(),
            retransmitted: vec![0; flows],
            handoffs: 0,
        }
    }

    /// A packet of TCP with so many bytes of payload goes to a station.
    pub fn on_data(&mut self, now: Time, station: NodeId, packet: &SimPacket, payload: u32) {
        let data = Data {
            connection: u64::from(packet.flow),
            seq: number(packet),
            bytes: payload,
            syn: packet.has(flag::SYN),
            ..Data::default()
        };
        self.snoop.on_data(now, &data, (station, *packet));
    }

    /// An acknowledgment comes from a station; `blocks`: its SACK blocks.
    pub fn on_ack(&mut self, now: Time, packet: &SimPacket, blocks: &SackBlocks) -> SnoopVerdict {
        let mut sack = [(0, 0); 3];
        let blocks = blocks.as_slice();
        for (to, from) in sack.iter_mut().zip(blocks) {
            *to = (from.0 as u32, from.1 as u32);
        }
        self.snoop.on_ack(
            now,
            &Ack {
                connection: u64::from(packet.flow),
                ack: packet.position.offset() as u32,
                window: u32::from(packet.window),
                sack: &sack[..blocks.len()],
                carries_more: packet.has(flag::ECE),
                syn: packet.has(flag::SYN),
                rst: false,
            },
        )
    }

    /// Losses of `flow` below `offset`, which is acknowledged: no copy of them is sent any more.
    pub fn settle(&mut self, flow: u32, offset: u64) -> impl Iterator<Item = Loss> {
        let above = self.losses.split_off(&(flow, offset + 1));
        let mut below = std::mem::replace(&mut self.losses, above);
        let of_flow = below.split_off(&(flow, 0));
        self.losses.append(&mut below);
        of_flow.into_values()
    }

    /// A packet of TCP was lost below the access point. True: that is not to be counted yet.
    pub fn on_lost(&mut self, packet: &SimPacket, place: LossPlace) -> bool {
        let connection = u64::from(packet.flow);
        if place == LossPlace::ApQueue && self.leaves_drops {
            self.snoop.on_dropped(connection, number(packet));
            return packet.has(flag::SPARE);
        }
        if packet.has(flag::SPARE) {
            return true;
        }
        // Copies are of what the cache holds, which with ns-2's conduct is the first that came.
        if self.snoop.held(connection, number(packet)).is_none_or(|(_, held)| held.sent != packet.sent) {
            return false;
        }
        // A packet sent again by its sender stands for the one before, whose copies are all lost.
        self.losses.insert(kept_at(packet), Loss { sent: packet.sent, place }).is_none()
    }

    /// What is to be sent once more.
    pub fn poll(&mut self, now: Time) -> Option<Held> {
        let (station, mut packet) = self.snoop.poll(now)?.packet;
        let is_its = self.losses.get(&kept_at(&packet)).is_some_and(|loss| loss.sent == packet.sent);
        if is_its {
            self.losses.remove(&kept_at(&packet));
        } else {
            packet.flags |= flag::SPARE;
        }
        self.retransmitted[packet.flow as usize] += 1;
        Some((station, packet))
    }

    /// When [`Self::poll`] may have something.
    pub fn next_deadline(&self) -> Option<Time> {
        self.snoop.next_deadline()
    }

    /// The stations have changed their base station so often: the new one's cache is empty.
    pub fn on_handoffs(&mut self, handoffs: u64) {
        if handoffs != self.handoffs {
            self.handoffs = handoffs;
            for flow in 0..self.retransmitted.len() {
                self.snoop.forget(flow as u64);
            }
        }
    }

    /// Whether what it sends goes ahead of what waits: where it stands at the queue of the hop.
    pub const fn is_urgent(&self) -> bool {
        self.leaves_drops
    }

    /// The figures proper begin.
    pub fn begin_metrics(&mut self) {
        self.retransmitted.fill(0);
    }

    /// Local retransmissions of a flow since the figures proper began.
    pub fn retransmitted(&self, flow: usize) -> u64 {
        self.retransmitted[flow]
    }

    /// Losses that have not been counted, at the end.
    pub fn left(&self) -> impl Iterator<Item = (u32, Loss)> {
        self.losses.iter().map(|((flow, _), loss)| (*flow, *loss))
    }

    /// What it did.
    pub fn snapshot(&self) -> snoop::Snapshot {
        self.snoop.snapshot()
    }
}
