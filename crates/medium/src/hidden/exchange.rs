//! What follows from frames: answers, NAVs, timeouts, attempts.

use std::collections::VecDeque;

use lasthop_core::packet::Packet;
use lasthop_core::units::{Span, Time};

use super::signal::{Frame, Heard, Kind};
use super::{Due, Hidden};
use crate::attempt::{self, Attempt, AttemptFate};
use crate::medium::{DropPlace, Event, NodeId};
use crate::node::Addressed;
use crate::propagation::Loss;
use crate::times::AirTimes;

/// Attempts for captures: those that go on keep their place in the order of starts.
#[derive(Clone, Debug)]
pub struct Tracks<P> {
    pub recording: bool,
    /// (attempt, it is over).
    kept: VecDeque<(Attempt<P>, bool)>,
    /// How many were told.
    polled: u64,
    /// Per node, the number of its attempt that goes on.
    open: Vec<Option<u64>>,
}

impl<P: Packet + Copy> Tracks<P> {
    pub fn new(nodes: usize) -> Self {
        Self { recording: false, kept: VecDeque::new(), polled: 0, open: vec![None; nodes] }
    }

    pub fn pop(&mut self) -> Option<Attempt<P>> {
        let (attempt, _) = *self.kept.front().filter(|(_, over)| *over)?;
        self.kept.pop_front();
        self.polled += 1;
        Some(attempt)
    }

    fn begin(&mut self, attempt: Attempt<P>) {
        self.open[usize::from(attempt.from.0)] = Some(self.polled + self.kept.len() as u64);
        self.kept.push_back((attempt, false));
    }

    fn change(&mut self, node: u16, change: impl FnOnce(&mut Attempt<P>)) {
        let Some(number) = self.open[usize::from(node)] else { return };
        if let Some((attempt, _)) = self.kept.get_mut((number - self.polled) as usize) {
            change(attempt);
        }
    }

    fn end(&mut self, node: u16, acked: bool) {
        let Some(number) = self.open[usize::from(node)].take() else { return };
        if let Some((attempt, over)) = self.kept.get_mut((number - self.polled) as usize) {
            *over = true;
            attempt.fate = match attempt {
                _ if acked => AttemptFate::Acked,
                Attempt { ack: Some(_), .. } => AttemptFate::AckLost,
                Attempt { cts: Some(_), data: None, .. } => AttemptFate::CtsLost,
                _ => attempt.fate,
            };
        }
    }
}

impl<P: Packet + Copy> Hidden<P> {
    /// Air times between a node and the access point.
    fn times(&self, from: u16, to: u16) -> &AirTimes {
        self.rates.get(self.nodes[usize::from(from.max(to))].times)
    }

    /// What the node has in service: receiver and IP bytes.
    fn job(&self, node: u16) -> (u16, u32) {
        self.nodes[usize::from(node)].service.as_ref().map_or((0, 0), |service| (service.to.0, service.bytes))
    }

    fn data_frame(&self, from: u16) -> Frame {
        let (to, bytes) = self.job(from);
        let times = self.times(from, to);
        Frame { kind: Kind::Data, from, to, duration: times.data(bytes), nav: times.answer_nav }
    }

    /// Starts an attempt of the frame that a node has in service.
    pub(super) fn attempt(&mut self, at: Time, from: u16) {
        let data = self.data_frame(from);
        let (to, bytes) = self.job(from);
        let times = self.times(from, to);
        let rts = self.phy.frame_bytes(bytes) > self.params.rts_threshold;
        let (sifs, answer) = (self.waits.sifs, times.answer);
        let nav = sifs + answer + sifs + data.duration + times.answer_nav;
        let first = if rts { Frame { kind: Kind::Rts, duration: times.rts, nav, ..data } } else { data };
        let node = &mut self.nodes[usize::from(from)];
        let Some(service) = &mut node.service else { return };
        service.attempts += 1;
        let is_retry = service.attempts > 1;
        node.stats.attempts += 1;
        node.stats.frames += u64::from(!is_retry);
        node.stats.retries += u64::from(is_retry);
        node.stats.airtime += first.duration;
        if self.tracks.recording {
            self.tracks.begin(Attempt {
                from: NodeId(from),
                to: service.to,
                is_retry,
                rts: None,
                cts: None,
                cts_to_self: None,
                data: None,
                ack: None,
                fate: AttemptFate::Lost,
                packet: service.packet,
                ip_bytes: bytes,
                class: None,
                aggregate: None,
            });
        }
        self.radios[usize::from(from)].engaged = true;
        self.send(at, first);
    }

    /// A frame begins.
    pub(super) fn send(&mut self, at: Time, frame: Frame) {
        self.track(at, &frame);
        // Whoever starts at the same moment is marked as sending already, with its slots at zero.
        if !self.radios[usize::from(frame.from)].sends {
            self.freeze(frame.from, at);
            self.radios[usize::from(frame.from)].sends = true;
        }
        let Self { signals, radios, channel, .. } = self;
        signals.begin(at, frame, |node| radios[usize::from(node)].sends, channel);
        for node in 0..self.nodes.len() as u16 {
            if self.signals.signals.last().is_some_and(|signal| signal.is_heard(node)) {
                self.freeze(node, at);
                let radio = &mut self.radios[usize::from(node)];
                radio.heard += 1;
                radio.heard_at = at;
            }
        }
        self.expect(at + frame.duration, Due::FrameEnd, frame.from, 0);
    }

    fn track(&mut self, at: Time, frame: &Frame) {
        if !self.tracks.recording {
            return;
        }
        let times = self.times(frame.from, frame.to);
        let shown = |start, duration, rate| Some(attempt::Frame { start, duration, rate });
        let control = shown(at, frame.duration, times.control);
        let protection = times.protection;
        let data = shown(at + protection, frame.duration.saturating_sub(protection), times.rate);
        let cts_to_self = shown(at, protection.saturating_sub(self.waits.sifs), self.phy.control(crate::Rate::DSSS_11));
        match frame.kind {
            Kind::Rts => self.tracks.change(frame.from, |attempt| attempt.rts = control),
            Kind::Cts => self.tracks.change(frame.to, |attempt| attempt.cts = control),
            Kind::Ack => self.tracks.change(frame.to, |attempt| attempt.ack = control),
            Kind::Data => self.tracks.change(frame.from, |attempt| {
                attempt.data = data;
                attempt.cts_to_self = cts_to_self.filter(|_| protection > Span::ZERO);
            }),
        }
    }

    /// The frame that `from` sends is over.
    pub(super) fn frame_end(&mut self, at: Time, from: u16) {
        let Some(signal) = self.signals.end(from) else { return };
        let frame = signal.frame;
        let radio = &mut self.radios[usize::from(from)];
        (radio.sends, radio.eifs) = (false, false);
        if radio.heard == 0 {
            self.fall_silent(from, at);
        }
        self.await_answer(at, &frame);
        for node in 0..self.nodes.len() as u16 {
            let mut heard = signal.ends(node, &self.signals);
            if heard == Heard::Nothing {
                continue;
            }
            if heard == Heard::Frame && node == frame.to && self.is_lost() {
                heard = Heard::Weak;
            }
            if self.waits.is_ns2 && heard != Heard::Frame && !self.signals.sends_after(node, at) {
                let radio = &mut self.radios[usize::from(node)];
                radio.deaf_until = radio.deaf_until.max(at + self.waits.eifs - self.waits.difs);
            }
            let radio = &mut self.radios[usize::from(node)];
            radio.heard -= 1;
            radio.eifs = match heard {
                Heard::Frame => false,
                Heard::Weak | Heard::Spoiled => !self.waits.is_ns2,
                Heard::Energy | Heard::Nothing => radio.eifs,
            };
            if radio.heard == 0 && !radio.sends {
                self.fall_silent(node, at);
            }
            if heard == Heard::Frame {
                self.decode(at, node, &frame);
            } else if node == frame.to && matches!(heard, Heard::Spoiled | Heard::Energy) {
                self.spoil(&frame);
            }
        }
        self.signals.forget(signal);
    }

    /// Whether a frame that could be decoded is lost all the same.
    fn is_lost(&mut self) -> bool {
        matches!(self.params.loss, Loss::Fixed { rate } if rate > 0.0 && self.channel.chance(rate))
    }

    /// A frame met others at its receiver.
    fn spoil(&mut self, frame: &Frame) {
        let (to, bytes) = self.job(frame.from);
        let rts = self.phy.frame_bytes(bytes) > self.params.rts_threshold;
        let first = frame.kind == Kind::Rts || (frame.kind == Kind::Data && !rts);
        if first && to == frame.to {
            self.nodes[usize::from(frame.from)].stats.collisions += 1;
        }
        if matches!(frame.kind, Kind::Rts | Kind::Data) {
            self.tracks.change(frame.from, |attempt| attempt.fate = AttemptFate::Collided);
        }
    }

    /// A sender that has sent RTS or data waits for the answer.
    fn await_answer(&mut self, at: Time, frame: &Frame) {
        if matches!(frame.kind, Kind::Rts | Kind::Data) {
            let timeout = self.times(frame.from, frame.to).answer_timeout;
            let radio = &mut self.radios[usize::from(frame.from)];
            radio.wait += 1;
            let wait = radio.wait;
            self.expect(at + timeout, Due::Timeout, frame.from, wait);
        } else if frame.kind == Kind::Cts {
            self.radios[usize::from(frame.from)].expects_until = at + self.waits.sifs;
        }
    }

    pub(super) fn timeout(&mut self, at: Time, node: u16, wait: u64) {
        let radio = &self.radios[usize::from(node)];
        if radio.wait != wait {
            return;
        }
        // An answer that has begun is waited for.
        let answer = self.signals.signals.iter().find(|signal| signal.answers(node));
        if let Some(end) = answer.map(|signal| signal.start + signal.frame.duration) {
            return self.expect(end, Due::Timeout, node, wait);
        }
        let radio = &mut self.radios[usize::from(node)];
        radio.wait += 1;
        radio.deaf_until = radio.deaf_until.max(at);
        self.settle(at, node, false);
    }

    /// A node decodes a frame.
    fn decode(&mut self, at: Time, node: u16, frame: &Frame) {
        if node != frame.to {
            return self.overhear(at, node, frame);
        }
        let times = self.times(frame.from, frame.to);
        let (sifs, answer) = (self.waits.sifs, times.answer);
        let reply = |kind, nav| Frame { kind, from: node, to: frame.from, duration: answer, nav };
        match frame.kind {
            Kind::Rts if self.radios[usize::from(node)].nav > at => {}
            Kind::Rts => {
                let nav = frame.nav.saturating_sub(sifs + answer);
                self.answer(at, reply(Kind::Cts, nav), frame.from);
            }
            Kind::Data => {
                self.deliver(at, frame.from);
                self.answer(at, reply(Kind::Ack, Span::ZERO), frame.from);
            }
            Kind::Cts if self.is_awaited(node, frame.from) => {
                self.radios[usize::from(node)].wait += 1;
                self.answer(at, self.data_frame(node), node);
            }
            Kind::Ack if self.is_awaited(node, frame.from) => {
                self.radios[usize::from(node)].wait += 1;
                self.settle(at, node, true);
            }
            Kind::Cts | Kind::Ack => {}
        }
    }

    fn is_awaited(&self, node: u16, from: u16) -> bool {
        self.radios[usize::from(node)].engaged && self.job(node).0 == from
    }

    /// A SIFS from now the frame begins; its time counts for the one whose exchange it is.
    fn answer(&mut self, at: Time, frame: Frame, exchange: u16) {
        self.nodes[usize::from(exchange)].stats.airtime += self.waits.sifs + frame.duration;
        self.radios[usize::from(frame.from)].answer = Some(frame);
        self.expect(at + self.waits.sifs, Due::Answer, frame.from, 0);
    }

    /// An answer is due. ns-2 sends no CTS into a medium that it holds for busy; an ACK always.
    pub(super) fn reply(&mut self, at: Time, frame: Frame) {
        let radio = &self.radios[usize::from(frame.from)];
        let busy = radio.heard > 0 || radio.nav.max(radio.deaf_until) > at;
        if self.waits.is_ns2 && frame.kind == Kind::Cts && busy {
            let airtime = &mut self.nodes[usize::from(frame.to)].stats.airtime;
            *airtime = airtime.saturating_sub(self.waits.sifs + frame.duration);
            return;
        }
        self.send(at, frame);
    }

    fn overhear(&mut self, at: Time, node: u16, frame: &Frame) {
        let until = at + frame.nav;
        let reset = at + self.times(frame.from, frame.to).nav_reset;
        let radio = &mut self.radios[usize::from(node)];
        if frame.nav == Span::ZERO || until <= radio.nav {
            return;
        }
        let falls_back = frame.kind == Kind::Rts && !self.waits.is_ns2;
        if falls_back {
            // It falls back to the reset's own time, as overhearers of an unanswered RTS keep silent until then.
            radio.nav_before = radio.nav.max(reset);
        }
        radio.nav = until;
        if falls_back {
            self.expect(reset, Due::NavReset, node, at.as_nanos());
        }
    }

    /// The access point has a frame of a station: as in `domain`, what it can see of the air time is charged.
    fn charge_received(&mut self, station: u16) {
        let Some(service) = self.nodes[usize::from(station)].service else { return };
        let times = self.times(station, 0);
        let (answer, mut cost) = (self.waits.sifs + times.answer, times.data(service.bytes));
        if self.phy.frame_bytes(service.bytes) > self.params.rts_threshold {
            cost += times.rts + answer + self.waits.sifs;
        }
        let is_retry = service.attempts > 1 && !service.delivered;
        let packet = Addressed { packet: service.packet, to: service.to };
        self.nodes[0].queue.charge_received(&packet, station, (cost + answer) * (1 + u64::from(is_retry)));
    }

    fn deliver(&mut self, at: Time, from: u16) {
        if from != 0 && self.nodes[0].queue.counts_air_time() {
            self.charge_received(from);
        }
        let Some(service) = &mut self.nodes[usize::from(from)].service else { return };
        if !service.delivered {
            service.delivered = true;
            let (to, packet) = (service.to, service.packet);
            self.events.push_back(Event::Delivered { at, from: NodeId(from), to, packet });
        }
    }

    /// The attempt of a node is over: next packet, next attempt or drop.
    fn settle(&mut self, at: Time, node: u16, acked: bool) {
        self.tracks.end(node, acked);
        self.radios[usize::from(node)].engaged = false;
        let sender = &mut self.nodes[usize::from(node)];
        if !acked {
            let Some(service) = &sender.service else { return };
            if service.attempts < self.params.limit(&self.phy, &service.packet) {
                self.double_window(node);
                self.draw_backoff(node);
                return;
            }
            sender.stats.given_up += 1;
            if !service.delivered {
                let (node, place) = (NodeId(node), DropPlace::Channel);
                self.events.push_back(Event::Dropped { at, node, place, packet: service.packet });
            }
        }
        sender.cw = sender.cw_min;
        if !sender.serve_next(at) {
            let (events, from) = (&mut self.events, NodeId(node));
            sender.serve_counted(at, |packet| {
                events.push_back(Event::Dropped { at, node: from, place: DropPlace::Queue, packet });
            });
        }
        self.draw_backoff(node);
    }
}
