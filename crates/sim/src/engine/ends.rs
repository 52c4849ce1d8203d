//! What the two ends of a connection do in a run, and who sends by a schedule.

use lasthop_core::packet::Packet as _;
use lasthop_core::units::{Span, Time};
use lasthop_home::scenario::{HostId, SMALLEST_UDP};

use super::Engine;
use crate::flows::{Play, Running};
use crate::packet::{Position, Sacks, SimPacket, flag};
use crate::sources::Source;

impl Engine<'_, '_> {
    pub(super) fn on_schedule(&mut self, now: Time, flow: usize) {
        let Play::Schedule(schedule) = &mut self.flows[flow].play else { return };
        let Some(emission) = schedule.next else { return };
        schedule.next = schedule.traffic.next();
        let next = schedule.next.map(|following| Time::ZERO + following.at);
        self.sources.renew(Source::Schedule(flow), next);
        let packet = SimPacket {
            sent: now,
            position: Position::default(),
            flow: flow as u32,
            sack: Sacks::NONE,
            bytes: emission.bytes as u16,
            window: 0,
            flags: schedule.flags,
        };
        self.send(now, &packet);
    }

    /// The sender's own time has come: to begin, to stop, or by its timer.
    pub(super) fn on_sender(&mut self, now: Time, flow: usize) {
        let Running { stop, play: Play::Tcp(connection), .. } = &mut self.flows[flow] else { return };
        if now >= *stop {
            connection.sender.stop();
        }
        self.sources.clear(Source::Sender(flow));
        self.speak(now, flow);
    }

    /// A frame of the stream that `flow` carries has arisen.
    pub(super) fn on_feed(&mut self, now: Time, flow: usize) {
        let Running { play, feed: Some(feed), .. } = &mut self.flows[flow] else { return };
        let given = feed.given(now);
        self.sources.renew(Source::Feed(flow), feed.next_deadline());
        match play {
            Play::Tcp(connection) => connection.sender.extend(given),
            Play::Rate(rate) => {
                rate.sender.extend(given);
                return self.pace(now, flow);
            }
            Play::Schedule(_) | Play::Page(_) => return,
        }
        self.speak(now, flow);
    }

    /// Everything the sender of `flow` has to say now.
    pub(super) fn speak(&mut self, now: Time, flow: usize) {
        while let Play::Tcp(connection) = &mut self.flows[flow].play
            && let Some(segment) = connection.sender.poll(now)
        {
            let packet = connection.data(now, flow as u32, &segment);
            self.send(now, &packet);
        }
        let Running { stop, play: Play::Tcp(connection), .. } = &mut self.flows[flow] else { return };
        let stop = *stop;
        connection.note(now);
        let timer = connection.sender.next_deadline();
        let wanted = if now < stop { Some(timer.map_or(stop, |at| at.min(stop))) } else { timer };
        // A timer that moves later is left where it is: it fires in vain once and is set anew then.
        if let Some(wanted) = wanted
            && self.sources.pending(Source::Sender(flow)).is_none_or(|pending| wanted < pending)
        {
            self.sources.set(Source::Sender(flow), wanted);
        }
        if self.tracer.is_on() {
            let snapshot = || connection.sender.snapshot();
            self.tracer.on_sender(now, flow, &mut self.options.trace, snapshot, &mut self.failed);
        }
    }

    /// Everything the receiver of `flow` has to answer now.
    pub(super) fn answer(&mut self, now: Time, flow: usize) {
        while let Play::Tcp(connection) = &mut self.flows[flow].play
            && let Some(ack) = connection.receiver.poll(now)
        {
            let packet = connection.ack(now, flow as u32, &ack, &mut self.sacks);
            self.tracer.on_offer(flow, ack.window_bytes);
            self.send(now, &packet);
        }
        if let Play::Tcp(connection) = &self.flows[flow].play {
            self.sources.keep(Source::Receiver(flow), connection.receiver.next_deadline());
        }
    }

    /// The packet is where it should be.
    pub(super) fn arrive(&mut self, now: Time, packet: &SimPacket) {
        let index = packet.flow as usize;
        let Running { meter, play, exchange, .. } = &mut self.flows[index];
        match play {
            Play::Schedule(_) => {
                let bytes = packet.bytes();
                // Only the channel hands packets to a station.
                let is_over_air = matches!(self.scenario.flows[index].to, HostId::Station(_));
                let lead = if is_over_air { self.medium.lead() } else { Span::ZERO };
                let now = Time::from_nanos(now.as_nanos() - lead.as_nanos());
                meter.on_delivered(packet.sent, now, bytes, bytes.saturating_sub(SMALLEST_UDP as u32));
                if self.tracer.is_on() {
                    self.tracer.on_delivered(now, packet, &mut self.options.trace, &mut self.failed);
                }
            }
            Play::Tcp(_) if packet.has(flag::ASK) && exchange.is_some() => {
                self.on_exchange_packet(now, packet);
            }
            Play::Tcp(connection) if packet.has(flag::ASK) => {
                connection.sender.extend(packet.position.offset());
                self.speak(now, index);
            }
            Play::Tcp(connection) if packet.has(flag::BACK) => {
                connection.on_marks(now, packet, &self.sacks);
                let ack = connection.acknowledgment(packet, &mut self.sacks);
                connection.sender.on_ack(now, &ack);
                self.tracer.on_window(index, ack.window_bytes);
                self.speak(now, index);
                if self.access_point.follows() {
                    self.show_acknowledgment(now, index);
                }
            }
            Play::Tcp(connection) => {
                connection.on_marks(now, packet, &self.sacks);
                let segment = connection.segment(packet);
                let fresh = connection.receiver.on_segment(now, &segment);
                if fresh == 0 && segment.bytes > 0 {
                    meter.on_duplicate(packet.sent);
                } else {
                    self.tracer.on_arrival(now, index, fresh);
                    meter.on_delivered(packet.sent, now, packet.bytes(), fresh);
                    meter.on_stream(segment.offset, connection.receiver.received());
                }
                if connection.receiver.is_finished() {
                    meter.on_completed(now);
                }
                if self.access_point.follows() {
                    self.show_segment(now, index, fresh);
                }
                self.answer(now, index);
                if self.flows[index].exchange.is_some() {
                    self.on_response_segment(now, packet);
                }
                if self.flows.route(packet).counted_by != packet.flow {
                    self.on_page_segment(now, packet, fresh);
                }
            }
            Play::Rate(_) => self.on_rate_packet(now, packet),
            Play::Page(_) => {}
        }
    }

    /// The access point has a say in what follows the arrival of a segment.
    #[cold]
    fn show_segment(&mut self, now: Time, flow: usize, fresh: u32) {
        if let Some(other) = self.access_point.on_segment(now, flow, fresh, &mut self.flows) {
            self.speak(now, other);
        }
    }

    /// The same of an acknowledgment.
    #[cold]
    fn show_acknowledgment(&mut self, now: Time, flow: usize) {
        if let Some(other) = self.access_point.on_acknowledged(flow, &mut self.flows) {
            self.answer(now, other);
        }
    }
}
