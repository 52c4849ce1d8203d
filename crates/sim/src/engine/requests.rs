//! What the ends of requests and responses do in a run.

use lasthop_core::packet::Packet as _;
use lasthop_core::units::Time;

use super::Engine;
use crate::exchange::Step;
use crate::flows::{Play, Running};
use crate::packet::{SimPacket, flag};
use crate::sources::Source;

impl Engine<'_, '_> {
    /// A request has come to its server, or the acknowledgment of one to its client.
    #[cold]
    pub(super) fn on_exchange_packet(&mut self, now: Time, packet: &SimPacket) {
        let flow = packet.flow as usize;
        let Running { play: Play::Tcp(connection), exchange: Some(exchange), meter, .. } = &mut self.flows[flow] else {
            return;
        };
        if packet.has(flag::BACK) {
            if !connection.sender.is_open() {
                // Its SYN+ACK was lost: what has no SYN is dropped (RFC 9293 section 3.10.7.3), and asked again.
                return;
            }
            let heard = exchange.on_request(now, packet.position.turns());
            connection.on_request(heard);
            connection.on_marks(now, packet, &self.sacks);
            let ack = connection.acknowledgment(packet, &mut self.sacks);
            connection.sender.on_ack(now, &ack);
            self.speak(now, flow);
        } else {
            meter.on_delivered(packet.sent, now, packet.bytes(), 0);
            exchange.on_acknowledged();
        }
        self.exchange(now, flow);
    }

    /// A segment of the server's has come and is acknowledged.
    #[cold]
    pub(super) fn on_response_segment(&mut self, now: Time, packet: &SimPacket) {
        let flow = packet.flow as usize;
        let Running { play: Play::Tcp(connection), exchange: Some(exchange), .. } = &mut self.flows[flow] else {
            return;
        };
        if packet.has(flag::SYN) {
            exchange.on_open(now);
        }
        exchange.on_received(now, connection.receiver.received());
        self.exchange(now, flow);
    }

    /// Everything that is to be done now.
    pub(super) fn exchange(&mut self, now: Time, flow: usize) {
        while let Running { stop, play: Play::Tcp(connection), exchange: Some(exchange), .. } = &mut self.flows[flow]
            && now < *stop
            && let Some(step) = exchange.poll(now)
        {
            match step {
                Step::Ask(n) => {
                    connection.on_asked(n);
                    let packet = connection.request(now, flow as u32, &mut self.sacks);
                    self.send(now, &packet);
                }
                Step::Acknowledge => {
                    let packet = connection.heard(now, flow as u32);
                    self.send(now, &packet);
                }
                Step::Respond(bytes) => {
                    connection.sender.extend(bytes);
                    self.speak(now, flow);
                }
            }
        }
        let Running { stop, exchange: Some(exchange), .. } = &self.flows[flow] else { return };
        self.sources.renew(Source::Exchange(flow), exchange.next_deadline().filter(|at| at < stop));
    }
}
