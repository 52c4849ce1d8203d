//! What the two halves of a split connection do in a run.

use lasthop_core::packet::Packet as _;
use lasthop_core::units::Time;
use lasthop_home::report::TcpReport;

use super::Engine;
use crate::packet::{SimPacket, flag};
use crate::running::{Play, Running};

impl Engine<'_, '_> {
    /// A packet of either half has arrived.
    pub(super) fn on_half(&mut self, now: Time, packet: &SimPacket) {
        let index = packet.flow as usize;
        let Running { meter, play: Play::Half(connection), .. } = &mut self.flows[index] else { return };
        connection.on_marks(now, packet, &self.sacks);
        if packet.has(flag::BACK) {
            let ack = connection.acknowledgment(packet, &mut self.sacks);
            connection.sender.on_ack(now, &ack);
            self.tracer.on_window(index, ack.window_bytes);
            self.speak(now, index);
            if let Some(first) = self.halves.first(index) {
                self.make_room(first, index);
                self.answer(now, first);
            }
            return;
        }
        let segment = connection.segment(packet);
        let fresh = connection.receiver.on_segment(now, &segment);
        if fresh == 0 && segment.bytes > 0 {
            meter.on_duplicate(packet.sent);
        } else {
            meter.on_delivered(packet.sent, now, packet.bytes(), fresh);
            meter.on_stream(segment.offset, connection.receiver.received());
        }
        let received = connection.receiver.received();
        match self.halves.second(index) {
            Some(second) => self.hand_on(now, second, received),
            None => self.complete(now, index, received),
        }
        if let Some(second) = self.halves.second(index) {
            self.make_room(index, second);
        }
        self.answer(now, index);
    }

    /// The access point has so many bytes of a connection in order: its second half may send them.
    fn hand_on(&mut self, now: Time, second: usize, received: u64) {
        let Play::Half(connection) = &mut self.flows[second].play else { return };
        connection.sender.extend(received);
        self.speak(now, second);
    }

    /// What the second half has not delivered comes off the window of the first.
    fn make_room(&mut self, first: usize, second: usize) {
        let Play::Half(connection) = &self.flows[second].play else { return };
        let delivered = connection.sender.snapshot().acked_bytes;
        let Play::Half(connection) = &mut self.flows[first].play else { return };
        let held = connection.receiver.received().saturating_sub(delivered);
        connection.receiver.set_limit(Some(self.halves.room(held)));
        connection.receiver.on_room(self.halves.step());
    }

    /// The receiver has so many bytes: all of them, where the first half has ended.
    fn complete(&mut self, now: Time, second: usize, received: u64) {
        let Some(first) = self.halves.first(second) else { return };
        let Play::Half(connection) = &self.flows[first].play else { return };
        if connection.receiver.is_finished() && received >= connection.receiver.received() {
            self.flows[second].meter.on_completed(now);
        }
    }

    /// What the sender of the first half of `flow` went through.
    pub(super) fn first_half(&mut self, flow: usize, end: Time) -> Option<(Option<TcpReport>, TcpReport)> {
        let Play::Half(connection) = &mut self.flows[self.halves.first(flow)?].play else { return None };
        Some(connection.reports(end))
    }
}
