//! The general path: who hears whom follows from positions, powers and thresholds, and several frames may be in flight
//! at once. O(stations) per frame.
//!
//! - Each node hears, decodes or misses each frame for itself (`signal.rs`). It is busy while anything is heard, keeps
//!   the NAV of frames that it decodes and that are not for it, and waits EIFS after a frame that it heard from its
//!   beginning and could not decode. The NAV of an RTS falls back when nothing is heard until the data should begin.
//! - An RTS is answered only by a node without a NAV; a data frame always. A sender whose timeout comes while its answer
//!   is in flight waits for the end (the standard, 10.3.2.9, has it wait for whatever frame it hears begin).
//! - Under ns-2's rules EIFS is kept as a NAV: a frame decoded meanwhile does not end it. A frame that began while the
//!   node sent and ends no earlier than the node's own is an error too. A receiver is locked to the frame that it heard
//!   first. A CTS is not sent into a medium that is busy, by what is heard or by that NAV.
//! - Backoff, attempts, queues, timing rules: as in `domain`, whose events this gives to the nanosecond where
//!   everybody hears everybody and no frame survives a collision.
//! - Without shadowing, power falls as in free space; [`crate::Loss::Fixed`] loses decodable frames at the node that
//!   they are addressed to, as there.
//!
//! Differs: each overhearer draws its own shadowing, as in ns-2, so that overhearers lose frames too. A collision, in
//! the figures, is an attempt whose first frame met another one at its receiver. `after_collision` and
//! `check_bianchi_decrement` have no meaning here.
//! Not modelled: propagation delay, shadowing that lasts longer than a frame, interference from frames too weak to be
//! heard once they are over; but for ns-2's rules, a receiver locked to one frame while a stronger one begins (capture asks
//! for powers only).

mod exchange;
mod signal;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use lasthop_core::packet::Packet;
use lasthop_core::units::Time;

use crate::attempt::Attempt;
use crate::medium::{DropPlace, Event, NodeId};
use crate::node::Node;
use crate::params::{MediumParams, StationParams};
use crate::phy::{Phy, Rate};
use crate::random::Stream;
use crate::snapshot::Snapshot;
use crate::times::{Rates, Waits};
use exchange::Tracks;
use signal::{Frame, Signals};

/// What is due at a known time; of one moment in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// The frame that the node sends is over.
    FrameEnd,
    /// The node has waited for an answer; `of` is the number of its wait.
    Timeout,
    /// The node's NAV of an RTS that ended at `of` ns falls back, unless it heard something since.
    NavReset,
    /// A SIFS has passed.
    Answer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Step {
    at: Time,
    due: Due,
    node: u16,
    of: u64,
}

/// What a radio hears and counts.
#[derive(Clone, Debug, Default)]
struct Radio {
    /// Frames heard at the moment.
    heard: u32,
    /// When something was last heard to begin.
    heard_at: Time,
    sends: bool,
    /// A SIFS from now it sends this.
    answer: Option<Frame>,
    /// Sent a frame and waits for what follows from it; does not contend.
    engaged: bool,
    /// It sent a CTS: until then the data may begin.
    expects_until: Time,
    /// Number of its wait for an answer.
    wait: u64,
    /// The last frame heard could not be decoded; ns-2 extends `deaf_until` instead.
    eifs: bool,
    /// When DIFS or EIFS is over, if nothing is heard.
    silent_from: Time,
    nav: Time,
    /// What `nav` was before an RTS set it.
    nav_before: Time,
    /// End of a wait for an answer, or of ns-2's EIFS: DIFS counts from there.
    deaf_until: Time,
    /// Left of its backoff, from the moment its waiting ends.
    slots: u64,
    /// An arrival sends no earlier than it came.
    not_before: Time,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Hidden<P> {
    waits: Waits,
    params: MediumParams,
    phy: Phy,
    rates: Rates,
    nodes: Vec<Node<P>>,
    radios: Vec<Radio>,
    signals: Signals,
    agenda: BinaryHeap<Reverse<Step>>,
    events: VecDeque<Event<P>>,
    clock: Time,
    channel: Stream,
    /// Scratch.
    senders: Vec<u16>,
    tracks: Tracks<P>,
}

impl<P: Packet + Copy> Hidden<P> {
    /// A silent medium.
    pub fn new(params: MediumParams, stations: &[StationParams], seed: u64) -> Self {
        let phy = params.phy(stations);
        let mut rates = Rates::new(&phy);
        let nodes = Node::all(&params, stations, &phy, &mut rates, seed);
        Self {
            waits: Waits::new(&phy),
            signals: Signals::new(&params, &nodes, phy.is_ns2()),
            radios: vec![Radio::default(); nodes.len()],
            tracks: Tracks::new(nodes.len()),
            params,
            phy,
            rates,
            nodes,
            agenda: BinaryHeap::with_capacity(32),
            events: VecDeque::with_capacity(8),
            clock: Time::ZERO,
            channel: Stream::named(seed, "wifi.channel"),
            senders: Vec::with_capacity(8),
        }
    }

    pub fn on_packet(&mut self, now: Time, from: NodeId, to: NodeId, packet: P) {
        while self.advance(now) {}
        self.clock = self.clock.max(now);
        let now = self.clock;
        let node = &mut self.nodes[usize::from(from.0)];
        if node.service.is_none() {
            let refused = if node.begin(packet, to) { None } else { node.begin_counted(now, packet, to) };
            match refused {
                None => self.contend(from.0, now),
                Some(refused) => self.refuse(now, from, refused),
            }
        } else {
            let events = &mut self.events;
            node.enqueue(now, packet, to, |packet| {
                events.push_back(Event::Dropped { at: now, node: from, place: DropPlace::Queue, packet });
            });
        }
    }

    /// A packet had to go when another came to a queue.
    fn refuse(&mut self, at: Time, node: NodeId, packet: P) {
        self.events.push_back(Event::Dropped { at, node, place: DropPlace::Queue, packet });
    }

    pub fn poll(&mut self, now: Time) -> Option<Event<P>> {
        loop {
            if let Some(event) = self.events.front() {
                return if event.at() <= now { self.events.pop_front() } else { None };
            }
            if !self.advance(now) {
                return None;
            }
        }
    }

    pub fn next_deadline(&self) -> Option<Time> {
        let event = self.events.front().map(Event::at);
        let step = self.agenda.peek().map(|Reverse(step)| step.at);
        let start = self.next_start();
        let start = (start != Time::MAX).then_some(start);
        event.into_iter().chain(step).chain(start).min()
    }

    pub fn snapshot(&self, now: Time) -> Snapshot {
        Snapshot {
            nodes: self.nodes.iter().map(|n| n.stats).collect(),
            queues: self.nodes.iter().map(|n| n.queue_snapshot(now)).collect(),
            classes: Vec::new(),
            rates: Vec::new(),
        }
    }

    pub fn backlog(&self, node: NodeId) -> usize {
        self.nodes[usize::from(node.0)].backlog()
    }

    pub fn discipline_backlog(&self) -> usize {
        self.nodes[0].queue.len().saturating_sub(self.params.plain_limit(0))
    }

    pub fn phy(&self) -> &Phy {
        &self.phy
    }

    pub fn set_station_rate(&mut self, station: NodeId, rate: Rate) {
        self.nodes[usize::from(station.0)].times = self.rates.find(rate);
    }

    pub fn set_distance(&mut self, station: NodeId, metres: f64) {
        self.nodes[usize::from(station.0)].distance_m = metres;
        self.signals.measure(&self.params, &self.nodes);
    }

    pub fn set_loss(&mut self, loss: crate::Loss) {
        self.params.loss = loss;
        self.signals.measure(&self.params, &self.nodes);
    }

    pub fn set_queue_limit(&mut self, node: NodeId, packets: usize) {
        let packets = if node == NodeId::ACCESS_POINT { self.params.plain_limit(packets) } else { packets };
        self.nodes[usize::from(node.0)].queue.set_limit(packets);
    }

    pub fn params_mut(&mut self) -> &mut MediumParams {
        &mut self.params
    }

    pub fn record_attempts(&mut self, on: bool) {
        self.tracks.recording = on;
    }

    pub fn poll_attempt(&mut self) -> Option<Attempt<P>> {
        self.tracks.pop()
    }

    /// Commits what comes next, if it is due at or before `limit`.
    fn advance(&mut self, limit: Time) -> bool {
        let step_at = self.agenda.peek().map_or(Time::MAX, |Reverse(step)| step.at);
        let start = self.next_start();
        if step_at.min(start) > limit || step_at.min(start) == Time::MAX {
            return false;
        }
        if start < step_at {
            self.clock = self.clock.max(start);
            self.start(start);
        } else if let Some(Reverse(step)) = self.agenda.pop() {
            self.clock = self.clock.max(step.at);
            self.run(step);
        }
        true
    }

    fn run(&mut self, step: Step) {
        match step.due {
            Due::FrameEnd => self.frame_end(step.at, step.node),
            Due::Timeout => self.timeout(step.at, step.node, step.of),
            Due::NavReset => {
                let radio = &mut self.radios[usize::from(step.node)];
                if radio.heard_at.as_nanos() <= step.of && !radio.sends && radio.heard == 0 {
                    radio.nav = radio.nav_before;
                }
            }
            Due::Answer => {
                if let Some(frame) = self.radios[usize::from(step.node)].answer.take() {
                    self.reply(step.at, frame);
                }
            }
        }
    }

    fn expect(&mut self, at: Time, due: Due, node: u16, of: u64) {
        self.agenda.push(Reverse(Step { at, due, node, of }));
    }

    /// From when a node counts slots; [`Time::MAX`] while it is busy.
    fn counts_from(&self, node: u16) -> Time {
        let radio = &self.radios[usize::from(node)];
        if radio.heard > 0 || radio.sends || radio.answer.is_some() {
            return Time::MAX;
        }
        let silent = radio.nav.max(radio.deaf_until);
        if silent == Time::ZERO { radio.silent_from } else { radio.silent_from.max(silent + self.waits.difs) }
    }

    /// When a node sends, if nothing changes.
    fn sends_at(&self, node: u16) -> Time {
        let radio = &self.radios[usize::from(node)];
        if self.nodes[usize::from(node)].service.is_none() || radio.engaged {
            return Time::MAX;
        }
        (self.counts_from(node) + self.waits.slot * radio.slots).max(radio.not_before)
    }

    fn next_start(&self) -> Time {
        (0..self.nodes.len() as u16).map(|node| self.sends_at(node)).min().unwrap_or(Time::MAX)
    }

    /// Everybody whose backoff ends at `at` sends.
    fn start(&mut self, at: Time) {
        let mut senders = std::mem::take(&mut self.senders);
        senders.clear();
        senders.extend((0..self.nodes.len() as u16).filter(|node| self.sends_at(*node) == at));
        for sender in &senders {
            self.radios[usize::from(*sender)].sends = true;
        }
        for sender in &senders {
            self.attempt(at, *sender);
        }
        self.senders = senders;
    }

    /// A node hears something, or sends: its backoff keeps the slots that are whole.
    fn freeze(&mut self, node: u16, now: Time) {
        let start = self.counts_from(node);
        let gone = now.since(start).as_nanos() / self.waits.slot.as_nanos();
        let radio = &mut self.radios[usize::from(node)];
        radio.slots = radio.slots.saturating_sub(gone);
    }

    /// A node hears nothing any more and sends nothing.
    fn fall_silent(&mut self, node: u16, now: Time) {
        let waits = &self.waits;
        let radio = &mut self.radios[usize::from(node)];
        radio.silent_from = now + if radio.eifs { waits.eifs } else { waits.difs };
    }

    /// A node whose first frame has just arrived.
    fn contend(&mut self, node: u16, now: Time) {
        let start = self.counts_from(node);
        let gone = now.since(start).as_nanos() / self.waits.slot.as_nanos();
        if self.radios[usize::from(node)].slots > gone {
            return;
        }
        let idle_from = if self.waits.is_ns2 && start != Time::MAX { start - self.waits.difs } else { start };
        if now < idle_from.max(self.radios[usize::from(node)].expects_until) {
            self.draw_backoff(node);
        } else if self.waits.is_ns2 {
            self.draw_backoff(node);
            self.radios[usize::from(node)].silent_from = now + self.waits.difs;
        } else {
            let radio = &mut self.radios[usize::from(node)];
            (radio.slots, radio.not_before) = (0, now);
        }
    }

    fn draw_backoff(&mut self, node: u16) {
        let values = self.waits.backoff_values(self.nodes[usize::from(node)].cw);
        self.radios[usize::from(node)].slots = self.nodes[usize::from(node)].backoff.below(values);
    }

    fn double_window(&mut self, node: u16) {
        let node = &mut self.nodes[usize::from(node)];
        node.cw = self.waits.doubled(node.cw);
    }
}
