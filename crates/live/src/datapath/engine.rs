//! Frames in, frames out in the order of the queue discipline and at its pace; no clock, no I/O.
//!
//! What is read goes through [`Engine::slot`] and [`Engine::on_frame`]; then [`Engine::poll`] until `None`, each frame given
//! back after it was sent; then sleep until [`Engine::next_deadline`].

use std::collections::VecDeque;
use std::sync::Arc;

use lasthop_core::aqm::chap::{self, Counters};
use lasthop_core::aqm::{self, Discipline, Other, Queue};
use lasthop_core::credit::key;
use lasthop_core::packet::{Direction, FlowId, FlowKind, Packet, mix};
use lasthop_core::snoop;
use lasthop_core::units::{Span, Time};
use lasthop_core::wire::{self, Link, Parsed};

use super::arena::Arena;
use super::pace::Pace;
use super::snoop_relay::SnoopRelay;
use crate::program::LinkLayer;
use crate::qdisc::layout::PacketCost;
use crate::qdisc::{ACTIVE, BURST, NEW_CREDIT, Settings};

/// Of the link header of an Ethernet frame.
pub const ETHERNET: u32 = 14;
/// Of two VLAN tags, or a tag and a PPPoE header.
const TAGS: u32 = 8;
/// Frames that may be between queue and socket.
pub const BATCH: usize = 64;
/// Flows that CHAP remembers: a quarter of its default, 2 MB.
pub const FLOWS: u32 = 16_384;
/// Stations that have a shared account, and a cap on new flows, of their own.
const STATIONS: u64 = 256;

/// Which order packets leave in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Credit.
    Chap,
    /// First in, first out.
    Fifo,
    /// Controlled delay (RFC 8289).
    Codel,
    /// Flow queues with CoDel each (RFC 8290).
    FqCodel,
}

impl Kind {
    /// The discipline of `core` with these settings.
    #[must_use]
    pub fn discipline(self, settings: &Settings) -> Discipline {
        let kind = match settings.flow_kind {
            crate::qdisc::FlowKind::Connection => FlowKind::Connection,
            crate::qdisc::FlowKind::Hosts => FlowKind::Hosts,
        };
        match self {
            Self::Fifo => Discipline::Fifo,
            Self::Codel => Discipline::Codel(aqm::codel::Params::default()),
            Self::FqCodel => Discipline::FqCodel(aqm::flow_queues::Params::default(), kind),
            Self::Chap => Discipline::Chap(
                chap::Params {
                    increment: settings.increment,
                    active: ACTIVE,
                    flows: FLOWS as usize,
                    new_credit: NEW_CREDIT,
                    burst: BURST as u32,
                },
                kind,
            ),
        }
    }
}

/// A frame that waits: a slot of the arena, and what the queue needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    slot: u32,
    /// Bytes, link header included.
    length: u32,
    ip_bytes: u32,
    key: u64,
}

impl Packet for Frame {
    fn flow(&self) -> FlowId {
        FlowId(self.key as u32)
    }
    fn bytes(&self) -> u32 {
        self.ip_bytes
    }
    fn key(&self, _kind: FlowKind) -> u64 {
        // Hashed once, when it came, by the kind that is configured.
        self.key
    }
}

/// What has been counted since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Metrics {
    /// Frames that left the queue to be sent.
    pub sent_packets: u64,
    /// Bytes of them, link headers included.
    pub sent_bytes: u64,
    /// Channel time of them.
    pub sent_time: Span,
    /// Frames that were longer than the interface carries.
    pub too_long: u64,
    /// Frames of stations whose air time was charged.
    pub received_charged: u64,
    /// The queue.
    pub queue: aqm::Snapshot,
    /// What CHAP did; zeros for other kinds.
    pub credit: Counters,
    /// What Snoop did; none where it is not at work.
    pub snoop: Option<snoop::Snapshot>,
}

/// See the module.
#[derive(Debug)]
pub struct Engine {
    arena: Arena,
    queue: Queue<Frame>,
    pace: Pace,
    link: Link,
    header_bytes: u32,
    longest: u32,
    flow_kind: FlowKind,
    secret: u64,
    relay: Option<SnoopRelay>,
    /// Frames that leave before those of the queue: they are sent once more.
    again: VecDeque<Arc<[u8]>>,
    metrics: Metrics,
}

impl Engine {
    /// Room for `settings.limit` frames of an interface that carries packets of up to `mtu` bytes.
    #[must_use]
    pub fn new(
        kind: Kind,
        settings: &Settings,
        layer: LinkLayer,
        mtu: u32,
        cost: PacketCost,
        secret: u64,
        now: Time,
    ) -> Self {
        let limit = settings.limit.max(1) as usize;
        let header_bytes = if layer == LinkLayer::Ethernet { ETHERNET } else { 0 };
        let longest = mtu + header_bytes + TAGS;
        Self {
            // The newcomer is in before another goes; a batch is on its way out.
            arena: Arena::new(limit + BATCH + 2, longest as usize),
            queue: Queue::new(&kind.discipline(settings), limit, now),
            pace: Pace::new(cost),
            link: if layer == LinkLayer::Ethernet { Link::Ethernet } else { Link::Ip },
            header_bytes,
            longest,
            flow_kind: match settings.flow_kind {
                crate::qdisc::FlowKind::Connection => FlowKind::Connection,
                crate::qdisc::FlowKind::Hosts => FlowKind::Hosts,
            },
            secret,
            relay: None,
            again: VecDeque::new(),
            metrics: Metrics::default(),
        }
    }

    /// Repairs losses of the hop, too.
    #[must_use]
    pub fn with_snoop(self, params: snoop::Params) -> Self {
        Self { relay: Some(SnoopRelay::new(params, self.link, self.secret)), ..self }
    }

    /// What packets cost from now on.
    pub const fn set_cost(&mut self, cost: PacketCost) {
        self.pace.set_cost(cost);
    }

    /// A free slot to read a frame into; `None`: send some first.
    pub fn slot(&mut self) -> Option<u32> {
        self.arena.take()
    }

    /// The bytes of a slot.
    pub fn bytes_mut(&mut self, slot: u32) -> &mut [u8] {
        self.arena.slot(slot)
    }

    /// The slot was not used after all, or its frame has been sent.
    pub fn give_back(&mut self, slot: u32) {
        self.arena.give_back(slot);
    }

    /// A frame of `length` bytes was read into `slot`.
    pub fn on_frame(&mut self, now: Time, slot: u32, length: usize) {
        let length = length as u32;
        if length > self.longest || length <= self.header_bytes {
            self.metrics.too_long += u64::from(length > self.longest);
            self.arena.give_back(slot);
            return;
        }
        let bytes = self.arena.frame(slot, length);
        let parsed = wire::parse(bytes, self.link);
        let station = self.station(bytes, &parsed);
        let key = key::of(&parsed, Direction::ToStation, self.flow_kind, self.secret);
        let frame = Frame { slot, length, ip_bytes: length - self.header_bytes, key };
        if self.queue.is_empty() {
            self.pace.on_first(now);
        }
        if let Some(dropped) = self.queue.enqueue(now, frame, station) {
            self.arena.give_back(dropped.slot);
        }
    }

    /// Bytes of a frame that a station sent over the same channel: its flow pays for what can be seen of it, one packet per
    /// `mtu` where an offload engine merged several.
    pub fn on_received(&mut self, now: Time, frame: &[u8]) {
        if let Some(relay) = &mut self.relay {
            relay.on_heard(now, frame);
            self.repair(now);
        }
        if !self.queue.counts_air_time() || frame.len() <= self.header_bytes as usize {
            return;
        }
        // As it came out of the kernel: merged, and without the length that it had then.
        let merged = wire::Merged { segments: 2, segment_bytes: 0 };
        let parsed = wire::parse_merged(frame, self.link, merged);
        let key = key::of(&parsed, Direction::ToRemote, self.flow_kind, self.secret);
        let ip_bytes = frame.len() as u32 - self.header_bytes;
        let packets = u64::from(ip_bytes.div_ceil(self.longest - self.header_bytes - TAGS));
        let cost = self.pace.cost(ip_bytes, packets);
        self.queue.charge_received(&Frame { slot: 0, length: 0, ip_bytes, key }, 0, cost);
        self.metrics.received_charged += 1;
    }

    /// A bare acknowledgment of a station: whether it is to go on, perhaps changed.
    pub fn on_answer(&mut self, now: Time, frame: &mut [u8]) -> bool {
        let Some(relay) = &mut self.relay else { return true };
        let goes_on = relay.on_answer(now, frame);
        self.repair(now);
        goes_on
    }

    /// Takes in what is to be sent once more.
    fn repair(&mut self, now: Time) {
        let Some(relay) = &mut self.relay else { return };
        while let Some(frame) = relay.poll(now) {
            if self.queue.is_empty() && self.again.is_empty() {
                self.pace.on_first(now);
            }
            self.again.push_back(frame);
        }
    }

    /// The frame that is to be sent now; it is charged already. Give its slot back after it.
    pub fn poll(&mut self, now: Time) -> Option<Frame> {
        if self.relay.as_ref().and_then(SnoopRelay::next_deadline).is_some_and(|due| due <= now) {
            self.repair(now);
        }
        if now < self.pace.next() {
            return None;
        }
        self.send_again(now).or_else(|| self.let_out(now))
    }

    /// The first frame that is to be sent once more; its flow pays like for any other.
    fn send_again(&mut self, now: Time) -> Option<Frame> {
        if self.again.is_empty() {
            return None;
        }
        let slot = self.arena.take()?;
        let copy = self.again.pop_front()?;
        let length = copy.len() as u32;
        self.arena.slot(slot)[..copy.len()].copy_from_slice(&copy);
        let parsed = wire::parse(&copy, self.link);
        let key = key::of(&parsed, Direction::ToStation, self.flow_kind, self.secret);
        let frame = Frame { slot, length, ip_bytes: length - self.header_bytes, key };
        let cost = self.pace.cost(frame.ip_bytes, 1);
        if self.queue.counts_air_time() {
            self.queue.charge_received(&frame, self.station(&copy, &parsed), cost);
        }
        self.count(now, &frame, cost);
        Some(frame)
    }

    fn count(&mut self, now: Time, frame: &Frame, cost: Span) {
        self.pace.on_sent(now, cost);
        self.metrics.sent_packets += 1;
        self.metrics.sent_bytes += u64::from(frame.length);
        self.metrics.sent_time = Span::from_nanos(self.metrics.sent_time.as_nanos() + cost.as_nanos());
    }

    /// The next frame as [`Self::poll`] gives it, without waiting for its turn: for the end of the process.
    pub fn let_out(&mut self, now: Time) -> Option<Frame> {
        let arena = &mut self.arena;
        let frame = self.queue.dequeue(now, |lost| arena.give_back(lost.slot))?;
        let cost = self.pace.cost(frame.ip_bytes, 1);
        self.queue.charge(cost);
        self.count(now, &frame, cost);
        if let Some(relay) = &mut self.relay {
            relay.on_leaving(now, self.arena.frame(frame.slot, frame.length));
        }
        Some(frame)
    }

    /// When [`Self::poll`] will have something.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        let waits = !self.queue.is_empty() || !self.again.is_empty();
        let repair = self.relay.as_ref().and_then(SnoopRelay::next_deadline);
        waits.then(|| self.pace.next()).into_iter().chain(repair).min()
    }

    /// The bytes of a frame that is to be sent.
    #[must_use]
    pub fn bytes(&self, frame: &Frame) -> &[u8] {
        self.arena.frame(frame.slot, frame.length)
    }

    /// What has been counted.
    #[must_use]
    pub fn snapshot(&self, now: Time) -> Metrics {
        let credit = match &self.queue {
            Queue::Other(other) => match &**other {
                Other::Chap(chap, ..) => chap.counters(),
                _ => Counters::default(),
            },
            Queue::Fifo(_) => Counters::default(),
        };
        let snoop = self.relay.as_ref().map(SnoopRelay::snapshot);
        Metrics { queue: self.queue.snapshot(now), credit, snoop, ..self.metrics }
    }

    /// Whom a frame goes to, as a small number: by its Ethernet address, without one by that of the IP packet.
    fn station(&self, frame: &[u8], parsed: &Parsed) -> u16 {
        let hash = if self.link == Link::Ethernet {
            frame[..6].iter().fold(0, |address, byte| address << 8 | u64::from(*byte))
        } else {
            let address = match parsed {
                Parsed::Tcp(tcp) => tcp.destination.address,
                Parsed::Udp(udp) => udp.destination.address,
                Parsed::Other(other) => other.destination,
            };
            let whole = u128::from_be_bytes(address);
            mix((whole >> 64) as u64) ^ whole as u64
        };
        (mix(self.secret ^ hash) & (STATIONS - 1)) as u16
    }
}

impl Frame {
    /// Its slot.
    #[must_use]
    pub const fn slot(&self) -> u32 {
        self.slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qdisc::{FlowKind as Kinds, cost};
    use lasthop_core::units::BitRate;
    use lasthop_core::wire::Endpoint;
    use lasthop_core::wire::build::{Frame as Built, Segment, v4};

    const REMOTE: [u8; 4] = [203, 0, 113, 5];

    fn engine(kind: Kind, settings: Settings) -> Engine {
        let cost = cost(BitRate::mbps(20), settings.packet_time);
        Engine::new(kind, &settings, LinkLayer::Ethernet, 1_500, cost, 7, Time::ZERO)
    }

    fn segment(port: u16, payload: usize) -> Vec<u8> {
        let station = Endpoint { address: v4([192, 168, 1, 20]), port };
        Built::tcp(Endpoint { address: v4(REMOTE), port: 443 }, station, Segment::default(), payload).bytes()
    }

    fn take_in(engine: &mut Engine, now: Time, frame: &[u8]) {
        let slot = engine.slot().expect("there is always one");
        engine.bytes_mut(slot)[..frame.len()].copy_from_slice(frame);
        engine.on_frame(now, slot, frame.len());
    }

    /// Sends all that is held, as fast as the pace lets it: when, and to which port.
    fn drain(engine: &mut Engine) -> Vec<(Time, u16)> {
        let mut sent = Vec::new();
        while let Some(due) = engine.next_deadline() {
            let frame = engine.poll(due).expect("what is due leaves");
            let bytes = engine.bytes(&frame);
            sent.push((due, u16::from_be_bytes([bytes[36], bytes[37]])));
            engine.give_back(frame.slot());
        }
        sent
    }

    #[test]
    fn a_flood_takes_no_more_slots_than_there_are_and_each_comes_back() {
        for kind in [Kind::Chap, Kind::Fifo, Kind::Codel, Kind::FqCodel] {
            let mut engine = engine(kind, Settings { limit: 50, ..Settings::default() });
            let all = engine.arena.free();
            for number in 0..1_000u16 {
                take_in(&mut engine, Time::ZERO, &segment(number, 1_000));
            }
            let metrics = engine.snapshot(Time::ZERO);
            assert_eq!((metrics.queue.packets, metrics.queue.dropped), (50, 950), "{kind:?}");
            assert_eq!(engine.arena.free(), all - 50, "{kind:?}");
            let sent = drain(&mut engine).len() as u64;
            let metrics = engine.snapshot(Time::ZERO);
            assert_eq!(sent + metrics.queue.dropped, 1_000, "{kind:?}");
            assert_eq!((engine.arena.free(), metrics.sent_packets), (all, sent), "{kind:?}");
        }
    }

    #[test]
    fn frames_leave_at_the_pace_of_their_ip_bytes_and_packets() {
        let settings = Settings { packet_time: Span::from_micros(177), ..Settings::default() };
        let mut engine = engine(Kind::Chap, settings);
        let now = Time::ZERO + Span::from_secs(1);
        for _each in 0..100 {
            take_in(&mut engine, now, &segment(5_000, 1_460));
        }
        let sent = drain(&mut engine);
        let (first, last) = (sent[10].0, sent[99].0);
        assert_eq!(last.since(first).as_nanos(), 89 * (600_000 + 177_000));
    }

    #[test]
    fn a_light_flow_passes_a_heavy_one_and_by_hosts_they_are_one() {
        for (flow_kind, expected) in [(Kinds::Connection, 1), (Kinds::Hosts, 40)] {
            let mut engine = engine(Kind::Chap, Settings { flow_kind, ..Settings::default() });
            for _each in 0..40 {
                take_in(&mut engine, Time::ZERO, &segment(5_000, 1_460));
            }
            // It has used up what it began with.
            let mut place = 0;
            for _each in 0..10 {
                let due = engine.next_deadline().expect("a backlog");
                let frame = engine.poll(due).expect("what is due leaves");
                engine.give_back(frame.slot());
                place += 1;
            }
            take_in(&mut engine, Time::ZERO + Span::from_millis(10), &segment(6_000, 100));
            place += drain(&mut engine).iter().position(|(_, port)| *port == 6_000).expect("it leaves");
            assert_eq!(place - 10 < 3, expected == 1, "{flow_kind:?}: {place}");
        }
    }

    #[test]
    fn who_sends_much_waits_behind_who_does_not() {
        let mut engine = engine(Kind::Chap, Settings::default());
        for port in [5_000, 6_000] {
            for _each in 0..4 {
                take_in(&mut engine, Time::ZERO, &segment(port, 1_000));
            }
        }
        let station = Endpoint { address: v4([192, 168, 1, 20]), port: 5_000 };
        let up = Built::tcp(station, Endpoint { address: v4(REMOTE), port: 443 }, Segment::default(), 1_400).bytes();
        for _each in 0..10 {
            engine.on_received(Time::ZERO, &up);
        }
        assert_eq!(engine.snapshot(Time::ZERO).received_charged, 10);
        let ports: Vec<u16> = drain(&mut engine).into_iter().map(|(_, port)| port).collect();
        assert_eq!(ports[..4], [6_000; 4]);
    }

    #[test]
    fn a_frame_that_is_lost_leaves_once_more_before_the_queue_and_at_its_pace() {
        for kind in [Kind::Chap, Kind::Fifo, Kind::Codel, Kind::FqCodel] {
            let mut engine = engine(kind, Settings::default()).with_snoop(snoop::Params::default());
            let all = engine.arena.free();
            let data = |seq| {
                let station = Endpoint { address: v4([192, 168, 1, 20]), port: 5_000 };
                let segment = Segment { seq, flags: 16, ..Segment::default() };
                Built::tcp(Endpoint { address: v4(REMOTE), port: 443 }, station, segment, 1_000).bytes()
            };
            for number in 0..3 {
                take_in(&mut engine, Time::ZERO, &data(number * 1_000));
            }
            for _each in 0..3 {
                let due = engine.next_deadline().expect("a backlog");
                let frame = engine.poll(due).expect("what is due leaves");
                engine.give_back(frame.slot());
            }
            for number in 3..5 {
                take_in(&mut engine, Time::ZERO + Span::from_millis(5), &data(number * 1_000));
            }
            let now = Time::ZERO + Span::from_millis(6);
            let answer = |seq| {
                let station = Endpoint { address: v4([192, 168, 1, 20]), port: 5_000 };
                let segment = Segment { ack: seq, flags: 16, window: 9, ..Segment::default() };
                Built::tcp(station, Endpoint { address: v4(REMOTE), port: 443 }, segment, 0).bytes()
            };
            assert!(engine.on_answer(now, &mut answer(1_000)));
            assert!(!engine.on_answer(now, &mut answer(1_000)));
            let mut left = Vec::new();
            for _each in 0..3 {
                let due = engine.next_deadline().expect("a backlog").max(now);
                let frame = engine.poll(due).expect("what is due leaves");
                left.push(u32::from_be_bytes(*engine.bytes(&frame)[38..].first_chunk().unwrap()));
                engine.give_back(frame.slot());
            }
            assert_eq!(left, [1_000, 3_000, 4_000], "{kind:?}");
            assert_eq!(engine.arena.free(), all, "{kind:?}");
            assert_eq!(engine.snapshot(now).snoop.unwrap().by_duplicates, 1);
        }
    }

    #[test]
    fn a_frame_that_is_too_long_or_no_frame_at_all_is_not_kept() {
        let mut engine = engine(Kind::Fifo, Settings::default());
        let all = engine.arena.free();
        let slot = engine.slot().unwrap();
        let length = engine.bytes_mut(slot).len();
        engine.on_frame(Time::ZERO, slot, length);
        for length in [0, 14] {
            let slot = engine.slot().unwrap();
            engine.on_frame(Time::ZERO, slot, length);
        }
        assert_eq!((engine.snapshot(Time::ZERO).too_long, engine.arena.free()), (1, all));
    }
}
