//! How packets cross in a run: wires, W0, the access point, the channel.

use lasthop_core::packet::{Direction, Packet as _};
use lasthop_core::units::Time;
use lasthop_home::report::LossPlace;
use lasthop_home::scenario::HostId;
use lasthop_medium::NodeId;

use super::Engine;
use crate::access_point::StageVerdict;
use crate::flows::node;
use crate::packet::{SimPacket, flag};
use crate::sources::Source;
use crate::wires::WireId;

impl Engine<'_, '_> {
    /// Packets arrive at the far end of a wire, where `take` has them.
    #[inline(always)]
    pub(super) fn on_wire(&mut self, now: Time, wire: WireId, take: impl Fn(&mut Self, Time, &SimPacket)) {
        // It may be asked too early: what was foretold of the WAN link another packet has put off.
        while let Some((_, packet)) = self.wires.link(wire).poll(now) {
            take(self, now, &packet);
        }
        self.sources.renew(Source::Wire(wire), self.wires.link(wire).next_deadline());
    }

    /// A host hands a packet to its network interface.
    pub(super) fn send(&mut self, now: Time, packet: &SimPacket) {
        if !packet.has(flag::BACK) {
            self.flows.meter(packet).on_sent(now);
        }
        match self.flows.route(packet).origin(packet) {
            HostId::Server(i) if self.wires.gathers() => self.onto_merged(now, WireId::FromServer(i as u32), packet),
            HostId::Server(i) => self.onto_pair(now, WireId::FromServer(i as u32), packet),
            HostId::Station(i) => {
                self.medium_moved = true;
                self.medium.on_packet(now, node(i), NodeId::ACCESS_POINT, *packet);
            }
            HostId::AccessPoint => self.at_access_point(now, packet),
        }
    }

    fn destination(&self, packet: &SimPacket) -> HostId {
        self.flows.route(packet).destination(packet)
    }

    #[inline]
    fn onto_wire(&mut self, now: Time, wire: WireId, packet: &SimPacket) {
        let link = self.wires.link(wire);
        let idle = link.next_deadline().is_none();
        match link.on_packet(now, *packet) {
            Ok(()) if idle => {
                if let Some(at) = link.next_deadline() {
                    self.sources.set(Source::Wire(wire), at);
                }
            }
            Ok(()) => {}
            Err(refused) => self.lose_on_wire(&refused),
        }
    }

    /// Onto the first of two wires in a row; where nothing else can come between, what becomes of the packet on both is
    /// reckoned at once. What would come to W0 after the end stays in flight.
    fn onto_pair(&mut self, now: Time, first: WireId, packet: &SimPacket) {
        let Some(second) = self.wires.straight_on(first, self.destination(packet)) else {
            return self.onto_wire(now, first, packet);
        };
        match self.wires.link(first).pass(now, packet.bytes()) {
            Some(at_w0) if at_w0 >= self.end => {}
            Some(at_w0) => self.onto_wire(at_w0, second, packet),
            None => self.lose_on_wire(packet),
        }
    }

    /// What has come to W0 by `now` goes onto the WAN link, in the order in which it came.
    #[inline]
    pub(super) fn merge(&mut self, now: Time) {
        while let Some((at_w0, packet)) = self.wires.next_at_w0(now) {
            if let Err(refused) = self.wires.link(WireId::WanDown).on_packet(at_w0, packet) {
                self.lose_on_wire(&refused);
            }
        }
    }

    /// The WAN link's far end is looked at no later than when the first packet on its way to the WAN link comes there.
    #[inline]
    pub(super) fn look_ahead_wan(&mut self) {
        let line = Source::Wire(WireId::WanDown);
        if self.wires.gathers()
            && let Some(at) = self.wires.look_ahead_wan()
            && self.sources.pending(line).is_none_or(|pending| at < pending)
        {
            self.sources.set(line, at);
        }
    }

    /// Onto the wire of one of a few servers.
    fn onto_merged(&mut self, now: Time, wire: WireId, packet: &SimPacket) {
        let link = self.wires.link(wire);
        let idle = link.next_deadline().is_none();
        match link.on_packet(now, *packet) {
            Ok(()) if idle => self.look_ahead_wan(),
            Ok(()) => {}
            Err(refused) => self.lose_on_wire(&refused),
        }
    }

    pub(super) fn at_w0(&mut self, now: Time, packet: &SimPacket) {
        match self.destination(packet) {
            HostId::Server(i) => self.onto_wire(now, WireId::ToServer(i as u32), packet),
            _ if self.wires.has_wan() => self.onto_wire(now, WireId::WanDown, packet),
            _ => self.at_access_point(now, packet),
        }
    }

    /// The access point forwards.
    pub(super) fn at_access_point(&mut self, now: Time, packet: &SimPacket) {
        match self.destination(packet) {
            HostId::AccessPoint => self.arrive(now, packet),
            HostId::Station(i) => self.onto_medium(now, node(i), packet, 0),
            HostId::Server(_) if self.wires.has_wan() => self.onto_pair(now, WireId::WanUp, packet),
            HostId::Server(_) => self.at_w0(now, packet),
        }
    }

    /// A stage of the access point has sent it: it does not pass that one.
    pub(super) fn sent_by(&mut self, now: Time, stage: usize, packet: &SimPacket) {
        match self.destination(packet) {
            HostId::Station(i) => self.onto_medium(now, node(i), packet, stage + 1),
            _ => self.at_access_point(now, packet),
        }
    }

    /// Through the access point's stages from the `first` on.
    fn onto_medium(&mut self, now: Time, station: NodeId, packet: &SimPacket, first: usize) {
        let mut packet = *packet;
        if !self.access_point.is_empty() && !self.pass_stages(now, (Direction::ToStation, first), &mut packet) {
            return;
        }
        self.medium_moved = true;
        self.medium.on_packet(now, NodeId::ACCESS_POINT, station, packet);
        if self.tracer.is_on() {
            let waiting = self.medium.backlog(NodeId::ACCESS_POINT);
            self.tracer.on_queue(now, waiting, &mut self.options.trace, &mut self.failed);
        }
    }

    /// A packet has come from a station.
    pub(super) fn leave_channel(&mut self, now: Time, mut packet: SimPacket) {
        if self.access_point.is_empty() {
            return self.at_access_point(now, &packet);
        }
        if self.pass_stages(now, (Direction::ToRemote, 0), &mut packet) {
            self.at_access_point(now, &packet);
        }
        self.await_stages();
    }

    /// Whether a packet between the access point and a station goes on.
    #[inline]
    fn pass_stages(&mut self, now: Time, way: (Direction, usize), packet: &mut SimPacket) -> bool {
        let (access_point, mut context) = self.stages();
        match access_point.on_packet(now, way, packet, &mut context) {
            StageVerdict::Forward => true,
            StageVerdict::Consume => false,
            StageVerdict::Drop => {
                self.lose(packet, LossPlace::ApQueue);
                false
            }
        }
    }

    #[cold]
    fn lose_on_wire(&mut self, packet: &SimPacket) {
        self.lose(packet, LossPlace::Wired);
    }
}
