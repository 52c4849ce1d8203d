//! Snoop at the access point of the simulated home, and what becomes of a packet's figures when it may be sent once more.
//!
//! A packet is lost when no copy of it arrives, as one counts who tells packets by their names. So its loss counts when no
//! copy of it is sent from there any more: when its segment has been acknowledged, or at the end; until then it is kept
//! here. A copy of what had not been lost may itself be lost, and nothing counts.

use std::collections::BTreeMap;

use lasthop_core::packet::Direction;
use lasthop_core::snoop::{self, Ack, Conduct, Data, Params};
use lasthop_core::units::Time;
use lasthop_home::report::{FlowReport, LossPlace, Report};
use lasthop_home::scenario::{HostId, Scenario};
use lasthop_medium::NodeId;
use lasthop_tcp::SackBlocks;

use super::{Context, Stage, StageVerdict};
use crate::flows::{Flows, node};
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
struct Loss {
    /// When its packet was sent.
    sent: Time,
    /// Where it was lost.
    place: LossPlace,
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
    fn on_data(&mut self, now: Time, station: NodeId, packet: &SimPacket, payload: u32) {
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
    fn on_ack(&mut self, now: Time, packet: &SimPacket, blocks: &SackBlocks) -> snoop::SnoopVerdict {
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
    fn settle(&mut self, flow: u32, offset: u64) -> impl Iterator<Item = Loss> {
        let above = self.losses.split_off(&(flow, offset + 1));
        let mut below = std::mem::replace(&mut self.losses, above);
        let of_flow = below.split_off(&(flow, 0));
        self.losses.append(&mut below);
        of_flow.into_values()
    }

    /// A packet of TCP was lost below the access point. True: that is not to be counted yet.
    fn keeps_loss(&mut self, packet: &SimPacket, place: LossPlace) -> bool {
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
    fn copy(&mut self, now: Time) -> Option<Held> {
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

    /// The stations have changed their base station so often: the new one's cache is empty.
    fn on_handoffs(&mut self, handoffs: u64) {
        if handoffs != self.handoffs {
            self.handoffs = handoffs;
            for flow in 0..self.retransmitted.len() {
                self.snoop.forget(flow as u64);
            }
        }
    }

    /// What is to be sent again now is handed to the channel: ahead of what waits where Snoop stands at the queue of the hop.
    fn repair(&mut self, now: Time, context: &mut Context<'_>) {
        self.on_handoffs(context.medium.handoffs());
        while let Some((station, packet)) = self.copy(now) {
            if self.leaves_drops {
                context.medium.on_urgent_packet(now, NodeId::ACCESS_POINT, station, packet);
            } else {
                context.medium.on_further_packet(now, NodeId::ACCESS_POINT, station, packet);
            }
        }
        context.restart(self.snoop.next_deadline());
    }

    /// A packet goes to a station.
    fn show(&mut self, now: Time, packet: &SimPacket, context: &mut Context<'_>) {
        let HostId::Station(station) = context.flows.route(packet).destination(packet) else { return };
        let Some(connection) = context.flows.connection(packet.flow as usize) else { return };
        if packet.has(flag::TCP) && !packet.has(flag::BACK) {
            let payload = connection.segment(packet).bytes;
            self.on_data(now, node(station), packet, payload);
            self.repair(now, context);
        }
    }

    /// A packet comes from a station.
    fn hear(&mut self, now: Time, packet: &mut SimPacket, context: &mut Context<'_>) -> StageVerdict {
        if !packet.has(flag::TCP) || !packet.has(flag::BACK) || packet.has(flag::ASK) {
            return StageVerdict::Forward;
        }
        let verdict = self.on_ack(now, packet, &context.sacks.of(packet));
        let meter = context.flows.meter(packet);
        self.settle(packet.flow, packet.position.offset()).for_each(|loss| meter.on_lost(loss.sent, loss.place));
        let verdict = match verdict {
            snoop::SnoopVerdict::Forward => StageVerdict::Forward,
            snoop::SnoopVerdict::Strip => {
                packet.sack = context.sacks.without_blocks(packet.sack);
                StageVerdict::Forward
            }
            snoop::SnoopVerdict::Suppress => {
                let _ = context.sacks.take(packet.sack);
                StageVerdict::Consume
            }
        };
        self.repair(now, context);
        verdict
    }
}

impl Stage for SnoopControl {
    #[cold]
    fn on_packet(
        &mut self,
        now: Time,
        direction: Direction,
        packet: &mut SimPacket,
        context: &mut Context<'_>,
    ) -> StageVerdict {
        match direction {
            Direction::ToStation => {
                self.show(now, packet, context);
                StageVerdict::Forward
            }
            Direction::ToRemote => self.hear(now, packet, context),
        }
    }

    #[cold]
    fn on_lost(&mut self, now: Time, packet: &SimPacket, place: LossPlace, context: &mut Context<'_>) -> bool {
        let waits = packet.has(flag::TCP) && !packet.has(flag::BACK) && self.keeps_loss(packet, place);
        self.repair(now, context);
        waits
    }

    fn poll(&mut self, now: Time, context: &mut Context<'_>) -> Option<SimPacket> {
        self.repair(now, context);
        None
    }

    fn next_deadline(&self) -> Option<Time> {
        self.snoop.next_deadline()
    }

    fn begin_metrics(&mut self) {
        self.retransmitted.fill(0);
    }

    /// Losses that it has not repaired.
    fn finish(&mut self, flows: &mut Flows) {
        for ((flow, _), loss) in &self.losses {
            flows.meter_of(*flow).on_lost(loss.sent, loss.place);
        }
    }

    fn report_flow(&self, flow: usize, _: Time, _: &mut Flows, report: &mut FlowReport) {
        if let Some(tcp) = &mut report.metrics.tcp {
            tcp.local_retransmitted = Some(self.retransmitted[flow]);
        }
    }

    fn report(&self, _: &Scenario, report: &mut Report) {
        report.snoop = Some(self.snoop.snapshot());
    }
}
