//! What flows over a rate-controlled transport do in a run: datagrams one way, reports the other.

use lasthop_core::packet::Packet as _;
use lasthop_core::units::Time;

use super::Engine;
use crate::flows::{Play, Running};
use crate::packet::{SimPacket, flag};
use crate::sources::Source;

impl Engine<'_, '_> {
    /// The sender's own time has come: to begin, to send, to stop, or because no report came.
    pub(super) fn on_rate_sender(&mut self, now: Time, flow: usize) {
        let Running { stop, play: Play::Rate(rate), .. } = &mut self.flows[flow] else { return };
        if now >= *stop {
            rate.sender.stop();
        }
        self.pace(now, flow);
    }

    /// Every datagram of `flow` that may go out now.
    pub(super) fn pace(&mut self, now: Time, flow: usize) {
        while let Play::Rate(rate) = &mut self.flows[flow].play
            && let Some(datagram) = rate.sender.poll(now)
        {
            let packet = rate.data(now, flow as u32, &datagram);
            self.send(now, &packet);
        }
        let Running { stop, play: Play::Rate(rate), .. } = &mut self.flows[flow] else { return };
        rate.note(now);
        if self.tracer.is_on() {
            let allowed = rate.sender.snapshot().rate;
            self.tracer.on_rate(now, flow, allowed, &mut self.options.trace, &mut self.failed);
        }
        let timer = rate.sender.next_deadline();
        let wanted = if now < *stop { Some(timer.map_or(*stop, |at| at.min(*stop))) } else { timer };
        self.sources.renew(Source::Pacer(flow), wanted);
    }

    /// The receiver of `flow` reports when it is time to.
    pub(super) fn report(&mut self, now: Time, flow: usize) {
        while let Play::Rate(rate) = &mut self.flows[flow].play
            && let Some(report) = rate.receiver.poll(now)
        {
            let packet = rate.report(now, flow as u32, report);
            self.send(now, &packet);
        }
        let Play::Rate(rate) = &self.flows[flow].play else { return };
        self.sources.renew(Source::Reporter(flow), rate.receiver.next_deadline());
    }

    /// A datagram or a report of such a flow has arrived.
    #[cold]
    pub(super) fn on_rate_packet(&mut self, now: Time, packet: &SimPacket) {
        let index = packet.flow as usize;
        let Running { meter, play: Play::Rate(rate), .. } = &mut self.flows[index] else { return };
        if packet.has(flag::BACK) {
            if let Some(report) = rate.reported(packet) {
                rate.sender.on_report(now, &report);
                self.pace(now, index);
            }
            return;
        }
        let datagram = rate.datagram(packet);
        let fresh = rate.receiver.on_datagram(now, &datagram, packet.has(flag::CE));
        meter.on_delivered(packet.sent, now, packet.bytes(), fresh);
        if rate.sender.is_done() {
            meter.on_completed(now);
        }
        if self.tracer.is_on() {
            self.tracer.on_delivered(now, packet, &mut self.options.trace, &mut self.failed);
        }
        self.report(now, index);
    }
}
