//! One collision domain of an access point and its stations under DCF, packet by packet; everybody hears everybody.
//!
//! - A frame that arrives at a node without backoff sends at once when the medium has been idle for DIFS (EIFS after
//!   an undecodable frame), else it draws a backoff. Backoffs freeze while the medium is busy. CW doubles per failed
//!   attempt up to CWmax and is reset after success or drop; after both a post-backoff is drawn, frame or no frame.
//! - Frames that start at the same nanosecond collide: nobody decodes them, unless one is stronger than the others
//!   together by the capture threshold where it is addressed to. Capture needs powers and so exists with shadowing
//!   only; a node that sends hears nothing. Everybody else waits EIFS.
//! - A frame gets `attempts` transmissions. An unanswered RTS counts as one. When only ACKs are lost the receiver has
//!   the packet, removes the duplicates, and the packet is not dropped even if the sender gives up.
//! - `exchange.rs` has the table of who waits how long after which loss.
//!
//! Source: IEEE 802.11-2016 clause 10.3. ns-2's timings differ: an arrival into an idle medium waits DIFS and a
//! backoff, and a sender of a collision that still hears another's frame end waits EIFS.
//!
//! Not modelled: propagation delay, per-overhearer losses, a station that keeps silent after an RTS because of a NAV,
//! fragmentation, management frames, power save, separate retry counters for RTS and data.
//!
//! At most two or three things are pending at a time: the steps of the exchange that is going on (`agenda.rs`) and the
//! next start of transmission (`contention`).

pub mod agenda;
mod exchange;
mod record;
mod transmit;

use std::collections::VecDeque;

use lasthop_core::aqm::Queue;
use lasthop_core::packet::Packet;
use lasthop_core::units::Time;

use crate::attempt::Attempt;
use crate::contention::{Contention, Counter, Own};
use crate::medium::{DropPlace, Event, NodeId};
use crate::node::{Addressed, Node};
use crate::params::{MediumParams, StationParams};
use crate::phy::{Phy, Rate};
use crate::random::Stream;
use crate::snapshot::Snapshot;
use crate::times::{Rates, Waits};
use agenda::{Agenda, Certain, Due};

/// See the module.
#[derive(Clone, Debug)]
pub struct Domain<P> {
    waits: Waits,
    params: MediumParams,
    phy: Phy,
    rates: Rates,
    nodes: Vec<Node<P>>,
    contention: Contention,
    /// Beside a sure exchange nothing stands in the agenda.
    certain: Certain,
    agenda: Agenda,
    /// What happened during [`Self::on_packet`]; otherwise events are handed out as they happen.
    events: VecDeque<Event<P>>,
    /// Time of what was committed last.
    clock: Time,
    channel: Stream,
    /// Scratch, kept so that a transmission allocates nothing.
    senders: Vec<u16>,
    own: Vec<Own>,
    recording: bool,
    /// The access point's queue keeps accounts of air time.
    counts_air_time: bool,
    attempts: VecDeque<Attempt<P>>,
}

/// What one call of [`Domain::advance`] did.
enum Advance<P> {
    /// Nothing was due.
    Idle,
    /// Something that the host does not see.
    Unseen,
    /// This.
    Event(Event<P>),
}

impl<P: Packet + Copy> Domain<P> {
    /// A silent medium.
    pub fn new(params: MediumParams, stations: &[StationParams], seed: u64) -> Self {
        let phy = params.phy(stations);
        let mut rates = Rates::new(&phy);
        let mut nodes = Node::all(&params, stations, &phy, &mut rates, seed);
        nodes.iter_mut().for_each(|node| node.refresh_loss(&params));
        let counts_air_time = nodes[0].queue.counts_air_time();
        let mut contention = Contention::new(nodes.len(), phy.slot(), phy.difs());
        if params.check_bianchi_decrement {
            contention.count_busy_periods();
        }
        Self {
            waits: Waits::new(&phy),
            contention,
            params,
            phy,
            rates,
            nodes,
            certain: Certain::NONE,
            agenda: Agenda::new(),
            events: VecDeque::with_capacity(8),
            clock: Time::ZERO,
            channel: Stream::named(seed, "wifi.channel"),
            senders: Vec::with_capacity(8),
            own: Vec::with_capacity(8),
            recording: false,
            counts_air_time,
            attempts: VecDeque::new(),
        }
    }

    #[inline(always)]
    pub fn on_packet(&mut self, now: Time, from: NodeId, to: NodeId, packet: P) {
        if self.is_due(now) {
            self.catch_up(now);
        }
        self.clock = self.clock.max(now);
        let now = self.clock;
        let node = &mut self.nodes[usize::from(from.0)];
        if node.service.is_none() {
            if !node.begin(packet, to) {
                return self.begin_counted(now, from, to, packet);
            }
            self.contend(from.0, now);
            return;
        }
        let Queue::Fifo(queue) = &mut node.queue else { return self.enqueue_counted(now, from, to, packet) };
        if let Err(refused) = queue.push(now, Addressed { packet, to }) {
            self.refuse(now, from, refused.packet);
        } else if queue.len() == 1 && self.certain.is_of(from.0) {
            self.contention.enlist(from.0);
        }
    }

    #[cold]
    fn enqueue_counted(&mut self, now: Time, from: NodeId, to: NodeId, packet: P) {
        let events = &mut self.events;
        self.nodes[usize::from(from.0)].enqueue(now, packet, to, |packet| {
            events.push_back(Event::Dropped { at: now, node: from, place: DropPlace::Queue, packet });
        });
    }

    #[cold]
    fn begin_counted(&mut self, now: Time, from: NodeId, to: NodeId, packet: P) {
        match self.nodes[usize::from(from.0)].begin_counted(now, packet, to) {
            None => self.contend(from.0, now),
            Some(refused) => self.refuse(now, from, refused),
        }
    }

    /// A packet had to go when another came to a queue.
    #[cold]
    fn refuse(&mut self, at: Time, node: NodeId, packet: P) {
        self.events.push_back(Event::Dropped { at, node, place: DropPlace::Queue, packet });
    }

    /// Whether [`Self::advance`] has something to commit.
    #[inline]
    fn is_due(&self, limit: Time) -> bool {
        self.certain.at <= limit
            || self.agenda.first_at() <= limit
            || (self.contention.earliest() <= limit && self.contention.next() <= limit)
    }

    /// What happens up to `limit` is handed out later. Out of line: mostly an arrival finds everything committed.
    #[inline(never)]
    fn catch_up(&mut self, limit: Time) {
        loop {
            match self.advance(limit) {
                Advance::Idle => break,
                Advance::Unseen => {}
                Advance::Event(event) => self.events.push_back(event),
            }
        }
    }

    #[inline]
    pub fn poll(&mut self, now: Time) -> Option<Event<P>> {
        if let Some(event) = self.events.front() {
            return if event.at() <= now { self.events.pop_front() } else { None };
        }
        // Hosts poll until there is nothing more: every second call ends here.
        if self.is_due(now) { self.poll_due(now) } else { None }
    }

    fn poll_due(&mut self, now: Time) -> Option<Event<P>> {
        loop {
            match self.advance(now) {
                Advance::Idle => return None,
                Advance::Unseen => {}
                Advance::Event(event) => return Some(event),
            }
        }
    }

    /// Not later than what the host sees next: the end of the next frame, where it is known already whose that is.
    #[inline]
    pub fn next_deadline(&self) -> Option<Time> {
        if let Some(event) = self.events.front() {
            return Some(event.at());
        }
        if !self.certain.delivered {
            return Some(self.certain.at);
        }
        if self.agenda.is_empty()
            && let Some((start, node)) = self.contention.sole()
        {
            return Some(start + self.next_first(node));
        }
        self.next_deadline_at_least()
    }

    /// While steps are pending, nothing that follows from them is seen before the shortest frame after them.
    fn next_deadline_at_least(&self) -> Option<Time> {
        let (first, earliest) = (self.agenda.first_at().min(self.certain.at), self.contention.earliest());
        if self.agenda.first_is_seen() && first <= earliest {
            return Some(first);
        }
        let start = if first > earliest { self.contention.next() } else { Time::MAX };
        if first == Time::MAX {
            return (start != Time::MAX).then(|| start + self.waits.shortest);
        }
        let follows = first.max(earliest).min(start) + self.waits.shortest;
        Some(follows.min(self.agenda.seen_at()))
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
        let node = &mut self.nodes[usize::from(station.0)];
        node.distance_m = metres;
        node.refresh_loss(&self.params);
    }

    pub fn set_loss(&mut self, loss: crate::Loss) {
        self.params.loss = loss;
        self.nodes.iter_mut().for_each(|node| node.refresh_loss(&self.params));
    }

    pub fn set_queue_limit(&mut self, node: NodeId, packets: usize) {
        let packets = if node == NodeId::ACCESS_POINT { self.params.plain_limit(packets) } else { packets };
        self.nodes[usize::from(node.0)].queue.set_limit(packets);
    }

    pub fn params_mut(&mut self) -> &mut MediumParams {
        &mut self.params
    }

    pub fn record_attempts(&mut self, on: bool) {
        self.recording = on;
    }

    pub fn poll_attempt(&mut self) -> Option<Attempt<P>> {
        self.attempts.pop_front()
    }

    /// Commits what comes next, if it is due at or before `limit`.
    #[inline(always)]
    fn advance(&mut self, limit: Time) -> Advance<P> {
        if self.certain.at != Time::MAX {
            if self.certain.at > limit {
                return Advance::Idle;
            }
            return self.advance_certain();
        }
        let step_at = self.agenda.first_at();
        // What an exchange leads to falls before anybody may send again, mostly: then nobody's counter need be asked.
        if step_at > self.contention.earliest() {
            let start = self.contention.next();
            if start < step_at {
                if start > limit {
                    return Advance::Idle;
                }
                self.clock = self.clock.max(start);
                self.transmit(start);
                return Advance::Unseen;
            }
        }
        let Some(step) = self.agenda.pop(limit) else { return Advance::Idle };
        self.clock = self.clock.max(step.at);
        match step.due() {
            Due::Deliver { settled, acked } => {
                self.expect_settled(settled, step.node(), acked);
                self.deliver(step.at, step.node())
            }
            Due::Settle { acked } => self.settle(step.at, step.node(), acked),
        }
    }

    /// The data frame of the sure exchange ends, or its ACK.
    #[inline(always)]
    fn advance_certain(&mut self) -> Advance<P> {
        let Certain { at, settled, node, delivered } = self.certain;
        self.clock = self.clock.max(at);
        if !delivered {
            (self.certain.at, self.certain.delivered) = (settled, true);
            return self.deliver(at, node);
        }
        self.certain.at = Time::MAX;
        let sender = &mut self.nodes[usize::from(node)];
        sender.cw = sender.cw_min;
        let _ = sender.serve_next(at);
        Advance::Unseen
    }

    /// A node whose first frame has just arrived.
    fn contend(&mut self, node: u16, now: Time) {
        let Counter::Over { start } = self.contention.arrive(node, now) else { return };
        let idle_from = if self.waits.is_ns2 { start - self.waits.difs } else { start };
        if now < idle_from {
            self.draw_backoff(node, true);
        } else if self.waits.is_ns2 {
            let slots = self.random_slots(node);
            self.contention.count_from(node, now + self.waits.difs, slots);
        } else {
            self.contention.count_from(node, now, 0);
        }
    }

    #[inline]
    fn deliver(&mut self, at: Time, node: u16) -> Advance<P> {
        if self.counts_air_time {
            self.charge_received(node);
        }
        match &mut self.nodes[usize::from(node)].service {
            Some(service) if !service.delivered => {
                service.delivered = true;
                Advance::Event(Event::Delivered { at, from: NodeId(node), to: service.to, packet: service.packet })
            }
            _ => Advance::Unseen,
        }
    }

    /// The attempt of a node is over: next packet, next attempt or drop.
    #[inline(always)]
    fn settle(&mut self, at: Time, node: u16, acked: bool) -> Advance<P> {
        let sender = &mut self.nodes[usize::from(node)];
        let mut advance = Advance::Unseen;
        if !acked {
            let Some(service) = &sender.service else { return advance };
            if service.attempts < self.params.limit(&self.phy, &service.packet) {
                self.double_window(node);
                self.draw_backoff(node, true);
                return advance;
            }
            sender.stats.given_up += 1;
            if !service.delivered {
                let (node, place) = (NodeId(node), DropPlace::Channel);
                advance = Advance::Event(Event::Dropped { at, node, place, packet: service.packet });
            }
        }
        sender.cw = sender.cw_min;
        if !sender.serve_next(at) {
            return self.serve_counted(at, node, advance);
        }
        let contends = sender.service.is_some();
        self.draw_backoff(node, contends);
        advance
    }

    /// The next packet out of a queue that keeps accounts, and may drop others before it. Apart, so that plain queues do
    /// not pay for it.
    #[cold]
    fn serve_counted(&mut self, at: Time, node: u16, mut advance: Advance<P>) -> Advance<P> {
        let (events, id) = (&mut self.events, NodeId(node));
        let sender = &mut self.nodes[usize::from(node)];
        sender.serve_counted(at, |packet| {
            let dropped = Event::Dropped { at, node: id, place: DropPlace::Queue, packet };
            match advance {
                Advance::Event(_) => events.push_back(dropped),
                _ => advance = Advance::Event(dropped),
            }
        });
        let contends = sender.service.is_some();
        self.draw_backoff(node, contends);
        advance
    }

    /// The backoff that follows an exchange that is sure to end well, when it begins: so it is known early who sends next.
    #[inline(always)]
    fn draw_ahead(&mut self, node: u16) {
        let sender = &mut self.nodes[usize::from(node)];
        let slots = sender.backoff.below(self.waits.backoff_values(sender.cw_min));
        let contends = matches!(&sender.queue, Queue::Fifo(queue) if !queue.is_empty());
        self.contention.draw(node, slots, contends);
    }

    /// Always in line: a frame draws once, and a call costs as much as the draw.
    #[inline(always)]
    fn draw_backoff(&mut self, node: u16, contends: bool) {
        let slots = self.random_slots(node);
        self.contention.draw(node, slots, contends);
    }

    #[inline(always)]
    fn random_slots(&mut self, node: u16) -> u64 {
        let node = &mut self.nodes[usize::from(node)];
        node.backoff.below(self.waits.backoff_values(node.cw))
    }

    #[inline]
    fn double_window(&mut self, node: u16) {
        let node = &mut self.nodes[usize::from(node)];
        node.cw = self.waits.doubled(node.cw);
    }
}
