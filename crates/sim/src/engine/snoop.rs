//! What Snoop does in a run.

use lasthop_core::snoop::SnoopVerdict;
use lasthop_core::units::Time;
use lasthop_home::report::LossPlace;
use lasthop_medium::NodeId;

use super::Engine;
use crate::packet::{SimPacket, flag};
use crate::running::Play;
use crate::sources::SourceId;

impl Engine<'_, '_> {
    /// A packet goes to a station.
    #[cold]
    pub(super) fn show_snoop(&mut self, now: Time, station: NodeId, packet: &SimPacket) {
        let Play::Tcp(connection) = &self.flows[packet.flow as usize].play else { return };
        if packet.has(flag::TCP) && !packet.has(flag::BACK) {
            let payload = connection.segment(packet).bytes;
            self.snoop.iter_mut().for_each(|snoop| snoop.on_data(now, station, packet, payload));
            self.repair(now);
        }
    }

    /// A packet comes from a station: whether it goes on.
    #[cold]
    pub(super) fn passes_snoop(&mut self, now: Time, packet: &mut SimPacket) -> bool {
        let is_ack = packet.has(flag::TCP) && packet.has(flag::BACK) && !packet.has(flag::ASK);
        let Some(snoop) = self.snoop.as_mut().filter(|_| is_ack) else { return true };
        let verdict = snoop.on_ack(now, packet, &self.sacks.of(packet));
        let meter = &mut self.flows[self.routes[packet.flow as usize].counted_by as usize].meter;
        snoop.settle(packet.flow, packet.position.offset()).for_each(|loss| meter.on_lost(loss.sent, loss.place));
        match verdict {
            SnoopVerdict::Forward => {}
            SnoopVerdict::Strip => packet.sack = self.sacks.without_blocks(packet.sack),
            SnoopVerdict::Suppress => {
                let _ = self.sacks.take(packet.sack);
            }
        }
        self.repair(now);
        verdict != SnoopVerdict::Suppress
    }

    /// What Snoop has to send again goes out.
    pub(super) fn repair(&mut self, now: Time) {
        let Some(snoop) = &mut self.snoop else { return };
        snoop.on_handoffs(self.medium.handoffs());
        while let Some((station, packet)) = snoop.poll(now) {
            self.medium_moved = true;
            if snoop.is_urgent() {
                self.medium.on_urgent_packet(now, NodeId::ACCESS_POINT, station, packet);
            } else {
                self.medium.on_further_packet(now, NodeId::ACCESS_POINT, station, packet);
            }
        }
        let own = SourceId(self.targets.len() as u32 - 4);
        match snoop.next_deadline() {
            Some(at) => self.sources.set(own, at.max(now)),
            None => self.sources.clear(own),
        }
    }

    /// A packet was lost below the access point: whether a copy of it may be sent yet.
    #[cold]
    pub(super) fn may_be_repaired(&mut self, now: Time, packet: &SimPacket, place: LossPlace) -> bool {
        let Some(snoop) = &mut self.snoop else { return false };
        let waits = packet.has(flag::TCP) && !packet.has(flag::BACK) && snoop.on_lost(packet, place);
        self.repair(now);
        waits
    }

    /// Losses that Snoop has not repaired by the end.
    pub(super) fn settle_losses(&mut self) {
        let Some(snoop) = &self.snoop else { return };
        for (flow, loss) in snoop.left() {
            self.flows[self.routes[flow as usize].counted_by as usize].meter.on_lost(loss.sent, loss.place);
        }
    }
}
