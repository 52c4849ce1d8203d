//! The air of one home: one collision domain of an access point and its stations under DCF, packet by packet.
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
//! Source: IEEE 802.11-2016 clause 10.3. [`crate::Timing::Ns2G`] differs: an arrival into an idle medium waits
//! DIFS + a random number of slots and is not frozen meanwhile; found busy at the end, it doubles CW and backs off.
//!
//! Not modelled: hidden stations, propagation delay, per-overhearer losses, a station that keeps silent after an RTS
//! because of a NAV, fragmentation, management frames, power save. Separate retry counters for RTS and data.
//!
//! # Time
//!
//! Times count from the start of the run. Event times are the model's own, however late [`Medium::poll`] is called,
//! and `poll` commits nothing beyond the event it returns. [`Medium::on_packet`] may therefore be stamped with the
//! time of the event just returned; a stamp older than what is committed already counts as that moment. Of things
//! that fall on one nanosecond the model's own come first: an arrival then finds the medium busy.

mod exchange;
mod node;
mod transmit;

use std::collections::VecDeque;

use lasthop_core::packet::Packet;
use lasthop_core::units::{Span, Time};

use crate::contention::{Contention, Counter, Own};
use crate::params::{MediumParams, StationParams};
use crate::phy::{AirTimes, Phy, Rate};
use crate::random::Stream;
use crate::snapshot::Snapshot;
use node::{Addressed, Node, Service};

/// A radio: 0 is the access point, i the i-th station (from 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u16);

impl NodeId {
    /// The access point.
    pub const ACCESS_POINT: Self = Self(0);
}

/// Where a packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The sender's queue was full.
    Queue,
    /// All attempts failed.
    Air,
}

/// What happened to a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<P> {
    /// It reached the other end.
    Delivered {
        /// End of the data frame.
        at: Time,
        /// Sender.
        from: NodeId,
        /// Receiver.
        to: NodeId,
        /// The packet.
        packet: P,
    },
    /// It is gone.
    Dropped {
        /// When the sender dropped it.
        at: Time,
        /// The sender.
        node: NodeId,
        /// Where.
        place: Place,
        /// The packet.
        packet: P,
    },
}

impl<P> Event<P> {
    /// The model's time of the event.
    #[must_use]
    pub fn at(&self) -> Time {
        match self {
            Self::Delivered { at, .. } | Self::Dropped { at, .. } => *at,
        }
    }
}

/// What is due at a known time, apart from the next transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Step {
    at: Time,
    node: u16,
    what: Due,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// The node's data frame ends at its receiver.
    Deliver,
    /// The node knows how its attempt went.
    Settle { acked: bool },
    /// ns-2: the wait of an arrival into an idle medium is over.
    Deferred,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Medium<P> {
    params: MediumParams,
    phy: Phy,
    nodes: Vec<Node<P>>,
    contention: Contention,
    /// A few at a time: one per node of the exchange that is going on.
    steps: Vec<Step>,
    events: VecDeque<Event<P>>,
    /// Time of what was committed last.
    clock: Time,
    backoff: Stream,
    channel: Stream,
    /// Scratch, kept so that a transmission allocates nothing.
    senders: Vec<u16>,
    apart: Vec<Own>,
}

impl<P: Packet> Medium<P> {
    /// A silent medium.
    ///
    /// # Panics
    ///
    /// With more than 65,534 stations.
    #[must_use]
    pub fn new(params: MediumParams, stations: Vec<StationParams>, seed: u64) -> Self {
        assert!(stations.len() < usize::from(u16::MAX), "a node is numbered by 16 bits");
        let phy = params.phy(&stations);
        let mut nodes = vec![Node::access_point(&params, &phy)];
        nodes.extend(stations.iter().map(|s| Node::station(s, &phy)));
        nodes.iter_mut().for_each(|node| node.refresh_loss(&params));
        Self {
            contention: Contention::new(nodes.len(), phy.slot(), phy.difs()),
            params,
            phy,
            nodes,
            steps: Vec::with_capacity(8),
            events: VecDeque::with_capacity(8),
            clock: Time::ZERO,
            backoff: Stream::named(seed, "wifi.backoff"),
            channel: Stream::named(seed, "wifi.channel"),
            senders: Vec::with_capacity(8),
            apart: Vec::with_capacity(8),
        }
    }

    /// A packet for `to` at node `from`; one of them is the access point.
    ///
    /// A packet that finds the queue full comes back from [`Self::poll`] as dropped.
    ///
    /// # Panics
    ///
    /// With a node that the medium was not made with; so do the setters.
    pub fn on_packet(&mut self, now: Time, from: NodeId, to: NodeId, packet: P) {
        debug_assert!((from.0 == 0) != (to.0 == 0), "the medium carries between access point and station");
        while self.step(now) {}
        self.clock = self.clock.max(now);
        let now = self.clock;
        let node = &mut self.nodes[usize::from(from.0)];
        if node.service.is_none() {
            node.queue.pass_by();
            node.service = Some(Service::new(packet, to));
            self.contend(from.0, now);
        } else if let Err(refused) = node.queue.push(now, Addressed { packet, to }) {
            let packet = refused.packet;
            self.events.push_back(Event::Dropped { at: now, node: from, place: Place::Queue, packet });
        }
    }

    /// The next event at or before `now`, in order of time.
    pub fn poll(&mut self, now: Time) -> Option<Event<P>> {
        loop {
            if let Some(event) = self.events.front() {
                return if event.at() <= now { self.events.pop_front() } else { None };
            }
            if !self.step(now) {
                return None;
            }
        }
    }

    /// When to call [`Self::poll`] again.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        let event = self.events.front().map(Event::at);
        let step = self.steps.iter().map(|s| s.at).min();
        event.into_iter().chain(step).chain(self.contention.next()).min()
    }

    /// Figures since the start; queue means cover the time up to `now`.
    #[must_use]
    pub fn snapshot(&self, now: Time) -> Snapshot {
        Snapshot {
            nodes: self.nodes.iter().map(|n| n.stats).collect(),
            queues: self.nodes.iter().map(|n| n.queue.snapshot(now)).collect(),
        }
    }

    /// Packets that a node holds: queued and in service.
    #[must_use]
    pub fn backlog(&self, node: NodeId) -> usize {
        let node = &self.nodes[usize::from(node.0)];
        node.queue.len() + usize::from(node.service.as_ref().is_some_and(|s| s.packet.is_some()))
    }

    /// The air times in force.
    #[must_use]
    pub fn phy(&self) -> &Phy {
        &self.phy
    }

    /// Data rate to and from a station, from the next attempt on.
    pub fn set_station_rate(&mut self, station: NodeId, rate: Rate) {
        self.nodes[usize::from(station.0)].times = AirTimes::new(&self.phy, rate);
    }

    /// Moves a station, from the next frame on.
    pub fn set_distance(&mut self, station: NodeId, metres: f64) {
        let node = &mut self.nodes[usize::from(station.0)];
        node.distance_m = metres;
        node.refresh_loss(&self.params);
    }

    /// Frames lost to the channel, from the next frame on.
    pub fn set_loss(&mut self, loss: crate::Loss) {
        self.params.loss = loss;
        self.nodes.iter_mut().for_each(|node| node.refresh_loss(&self.params));
    }

    /// Packets a node's queue holds, from the next arrival on.
    pub fn set_queue_limit(&mut self, node: NodeId, packets: usize) {
        self.nodes[usize::from(node.0)].queue.set_limit(packets);
    }

    /// Transmissions of one frame, from the next decision on: for all frames, or for those up to the RTS threshold.
    pub fn set_attempts(&mut self, attempts: u32, short_attempts: Option<u32>) {
        self.params.attempts = attempts;
        self.params.short_attempts = short_attempts;
    }

    /// Commits what comes next, if it is due at or before `limit`.
    fn step(&mut self, limit: Time) -> bool {
        let step = self.steps.iter().copied().enumerate().min_by_key(|(_, s)| *s);
        let step_at = step.map_or(Time::MAX, |(_, s)| s.at);
        // What an exchange leads to falls before anybody may send again, mostly: then the heap need not be asked.
        let start = if step_at <= self.contention.earliest() { None } else { self.contention.next() };
        match (step, start) {
            (_, Some(start)) if start < step_at => {
                if start > limit {
                    return false;
                }
                self.clock = self.clock.max(start);
                self.transmit(start);
            }
            (Some((index, step)), _) if step.at <= limit => {
                self.steps.swap_remove(index);
                self.clock = self.clock.max(step.at);
                self.run(step);
            }
            _ => return false,
        }
        true
    }

    fn run(&mut self, step: Step) {
        match step.what {
            Due::Deliver => self.deliver(step.at, step.node),
            Due::Settle { acked } => self.settle(step.at, step.node, acked),
            Due::Deferred => self.end_deferral(step.at, step.node),
        }
    }

    /// A node whose first frame has just arrived.
    fn contend(&mut self, node: u16, now: Time) {
        let Counter::Over { start } = self.contention.arrive(node, now) else { return };
        let idle_from = if self.phy.is_ns2() { start - self.phy.difs() } else { start };
        if now < idle_from {
            self.draw_backoff(node, true);
        } else if self.phy.is_ns2() {
            let wait = self.phy.difs() + self.random_slots(node);
            self.steps.push(Step { at: now + wait, node, what: Due::Deferred });
        } else {
            self.contention.send_at(node, now);
        }
    }

    fn end_deferral(&mut self, now: Time, node: u16) {
        let Counter::Over { start } = self.contention.arrive(node, now) else { return };
        if now + self.phy.difs() >= start {
            self.contention.send_at(node, now);
        } else {
            self.double_window(node);
            self.draw_backoff(node, true);
        }
    }

    fn deliver(&mut self, at: Time, node: u16) {
        let Some(service) = &mut self.nodes[usize::from(node)].service else { return };
        if let Some(packet) = service.packet.take() {
            self.events.push_back(Event::Delivered { at, from: NodeId(node), to: service.to, packet });
        }
    }

    /// The attempt of a node is over: next packet, next attempt or drop.
    fn settle(&mut self, at: Time, node: u16, acked: bool) {
        let sender = &mut self.nodes[usize::from(node)];
        let Some(service) = &mut sender.service else { return };
        let short = self.phy.frame_bytes(service.bytes) <= self.params.rts_threshold;
        let limit = self.params.short_attempts.filter(|_| short).unwrap_or(self.params.attempts);
        if !acked && service.attempts < limit {
            self.double_window(node);
            self.draw_backoff(node, true);
            return;
        }
        if !acked {
            sender.stats.given_up += 1;
            if let Some(packet) = service.packet.take() {
                self.events.push_back(Event::Dropped { at, node: NodeId(node), place: Place::Air, packet });
            }
        }
        sender.cw = sender.cw_min;
        sender.serve_next(at);
        let contends = sender.service.is_some();
        self.draw_backoff(node, contends);
    }

    fn draw_backoff(&mut self, node: u16, contends: bool) {
        let values = self.phy.backoff_values(self.nodes[usize::from(node)].cw);
        let slots = self.backoff.below(values);
        self.contention.draw(node, slots, contends);
    }

    fn random_slots(&mut self, node: u16) -> Span {
        let values = self.phy.backoff_values(self.nodes[usize::from(node)].cw);
        self.phy.slot() * self.backoff.below(values)
    }

    fn double_window(&mut self, node: u16) {
        let node = &mut self.nodes[usize::from(node)];
        node.cw = (2 * node.cw + 1).min(self.phy.cw_max());
    }
}
