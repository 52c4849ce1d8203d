//! The bridge of the CHAP paper's test bed: the channel as a time per packet, without contention, loss or collisions.
//!
//! `d = DIFS + 8 (p_data + p_header) / R_data + SIFS + 8 p_ack / R_basic + extra   [s]`
//!
//! p_data: IP bytes of the packet; p_header = 34 bytes, p_ack = 14 bytes, DIFS = 50 us, SIFS = 10 us; R_data and R_basic
//! in bit/s. Source: paper 002, eq. (1); its case studies add 2 ms to every packet, so that the bridge and not the line
//! behind it is the bottleneck (1500 bytes: 2.399 ms, 5.0 Mbit/s).
//!
//! Each direction has a queue and a server of its own, as the queue disciplines of a Linux bridge's two interfaces have; or,
//! half duplex, both share one queue and one server, as the stations of a cell share the channel. The paper's "about 5 Mbit/s"
//! holds only with two: with one, ACKs cost a download 1.1 ms a packet, and 3.4 Mbit/s are left.
//! With a delivery interval what has been sent arrives in bunches, at the multiples of it: as over power save, aggregates, or the
//! turns of a cable or mobile network. It carries as much, and its round trip has a part that no queue makes.
//! Not done: broadcast, rates per station, anything of the PHY.

use std::collections::VecDeque;

use lasthop_core::aqm::{Discipline, Queue};
use lasthop_core::packet::Packet;
use lasthop_core::units::{BitRate, Span, Time};

use crate::crossing::Crossing;
use crate::medium::{DropPlace, Event, NodeId};
use crate::params::{MediumParams, StationParams};
use crate::random::seeded;
use crate::snapshot::{NodeStats, Snapshot};

/// The paper's DIFS.
const DIFS: Span = Span::from_micros(50);
/// The paper's SIFS.
const SIFS: Span = Span::from_micros(10);
/// The paper's 802.11 header, bytes.
const HEADER: u64 = 34;
/// Its ACK frame, bytes.
const ACK: u64 = 14;

/// What a packet costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BridgeParams {
    /// R_data. The paper: 54 Mbit/s.
    pub rate: BitRate,
    /// R_basic. The paper: 1 Mbit/s.
    pub control_rate: BitRate,
    /// Added to every packet. The paper's case studies: 2 ms.
    pub extra: Span,
    /// Both directions share one queue and one server.
    pub half_duplex: bool,
    /// What has been sent arrives at the multiples of this; zero: at once.
    pub delivery_interval: Span,
}

impl BridgeParams {
    /// Time that a packet of `ip_bytes` takes.
    #[must_use]
    pub fn time(&self, ip_bytes: u32) -> Span {
        let data = self.rate.time_for(u64::from(ip_bytes) + HEADER);
        DIFS + data + SIFS + self.control_rate.time_for(ACK) + self.extra
    }

    /// When what was sent until `at` arrives.
    fn arrival(&self, at: Time) -> Time {
        match self.delivery_interval.as_nanos() {
            0 => at,
            interval => Time::from_nanos(at.as_nanos().div_ceil(interval) * interval),
        }
    }
}

/// A queue and what leaves it.
#[derive(Clone, Debug)]
struct Direction<P> {
    queue: Queue<Crossing<P>>,
    /// The packet in service, and when it is over.
    service: Option<(Time, Crossing<P>)>,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Bridge<P> {
    costs: BridgeParams,
    /// From the access point, then to it; half duplex: one.
    directions: Vec<Direction<P>>,
    /// What has been sent, and when it arrives.
    in_flight: VecDeque<(Time, Crossing<P>)>,
    /// Packets that found a queue full, not told yet.
    dropped: VecDeque<Event<P>>,
    nodes: Vec<NodeStats>,
}

impl<P: Packet + Copy> Bridge<P> {
    /// Idle.
    pub fn new(costs: BridgeParams, params: MediumParams, stations: &[StationParams], seed: u64) -> Self {
        let up = stations.iter().map(|station| station.queue_limit).max().unwrap_or(params.queue_limit);
        let up_queue = stations.first().map_or(params.queue, |station| station.queue);
        let queues = [(params.queue, params.queue_limit), (up_queue, up)];
        let direction = |((discipline, limit), number): (&(Discipline, usize), u16)| Direction {
            queue: Queue::new(&seeded(*discipline, seed, number), *limit, Time::ZERO),
            service: None,
        };
        Self {
            costs,
            directions: queues.iter().zip(0..).take(if costs.half_duplex { 1 } else { 2 }).map(direction).collect(),
            in_flight: VecDeque::new(),
            dropped: VecDeque::new(),
            nodes: vec![NodeStats::default(); stations.len() + 1],
        }
    }

    fn direction(&self, from: NodeId) -> usize {
        usize::from(from != NodeId::ACCESS_POINT).min(self.directions.len() - 1)
    }

    pub fn on_packet(&mut self, now: Time, from: NodeId, to: NodeId, packet: P) {
        let direction = self.direction(from);
        let crossing = Crossing { packet, from, to };
        let Direction { queue, service } = &mut self.directions[direction];
        if let (Queue::Fifo(queue), None) = (&mut *queue, &*service) {
            queue.pass_by();
            return self.serve(now, direction, crossing);
        }
        let idle = service.is_none();
        if let Some(Crossing { packet, from, .. }) = queue.enqueue(now, crossing, crossing.station()) {
            self.dropped.push_back(Event::Dropped { at: now, node: from, place: DropPlace::Queue, packet });
        }
        if idle {
            self.serve_next(now, direction);
        }
    }

    fn serve_next(&mut self, at: Time, direction: usize) {
        let dropped = &mut self.dropped;
        let next = self.directions[direction].queue.dequeue(at, |Crossing { packet, from, .. }| {
            dropped.push_back(Event::Dropped { at, node: from, place: DropPlace::Queue, packet });
        });
        if let Some(next) = next {
            self.serve(at, direction, next);
        }
    }

    fn serve(&mut self, now: Time, direction: usize, crossing: Crossing<P>) {
        let time = self.costs.time(crossing.bytes());
        let stats = &mut self.nodes[usize::from(crossing.from.0)];
        stats.airtime += time;
        stats.frames += 1;
        stats.attempts += 1;
        self.directions[direction].service = Some((now + time, crossing));
    }

    /// The way whose service is over first, and when.
    fn first(&self) -> Option<(Time, usize)> {
        let over = |(i, direction): (usize, &Direction<P>)| direction.service.as_ref().map(|(at, _)| (*at, i));
        self.directions.iter().enumerate().filter_map(over).min()
    }

    pub fn poll(&mut self, now: Time) -> Option<Event<P>> {
        if let Some(event) = self.dropped.pop_front() {
            return Some(event);
        }
        loop {
            let sent = self.first().filter(|(at, _)| *at <= now);
            // What arrives goes before what is sent in the same moment.
            let arrives = self.in_flight.front().is_some_and(|(at, _)| *at <= sent.map_or(now, |(at, _)| at));
            if let Some((at, Crossing { packet, from, to })) = arrives.then(|| self.in_flight.pop_front()).flatten() {
                return Some(Event::Delivered { at, from, to, packet });
            }
            let (at, direction) = sent?;
            let (_, crossing) = self.directions[direction].service.take()?;
            let cost = self.costs.time(crossing.bytes());
            self.directions[direction].queue.charge(cost);
            self.serve_next(at, direction);
            self.in_flight.push_back((self.costs.arrival(at), crossing));
        }
    }

    pub fn next_deadline(&self) -> Option<Time> {
        let arrives = self.in_flight.front().map(|(at, _)| *at);
        let sent = self.first().map(|(at, _)| at);
        self.dropped.front().map(Event::at).or_else(|| [arrives, sent].into_iter().flatten().min())
    }

    /// Its queues are those of the two directions, the access point's first; half duplex: one.
    pub fn snapshot(&self, now: Time) -> Snapshot {
        Snapshot {
            nodes: self.nodes.clone(),
            queues: self.directions.iter().map(|direction| direction.queue.snapshot(now)).collect(),
            classes: Vec::new(),
            rates: Vec::new(),
        }
    }

    pub fn backlog(&self, node: NodeId) -> usize {
        let direction = &self.directions[self.direction(node)];
        direction.queue.len() + usize::from(direction.service.is_some())
    }

    pub fn set_queue_limit(&mut self, node: NodeId, packets: usize) {
        let direction = self.direction(node);
        self.directions[direction].queue.set_limit(packets);
    }
}

#[cfg(test)]
mod tests {
    use lasthop_core::packet::FlowId;

    use super::*;
    use crate::Medium;

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Sized(u32);
    impl Packet for Sized {
        fn flow(&self) -> FlowId {
            FlowId(0)
        }
        fn bytes(&self) -> u32 {
            self.0
        }
    }

    const PAPER: BridgeParams = BridgeParams {
        rate: BitRate::mbps(54),
        control_rate: BitRate::mbps(1),
        extra: Span::from_millis(2),
        half_duplex: false,
        delivery_interval: Span::ZERO,
    };
    const STATION: NodeId = NodeId(1);

    fn bridge(half_duplex: bool, limit: usize) -> Medium<Sized> {
        let bridge = Some(BridgeParams { half_duplex, ..PAPER });
        let station = StationParams { queue_limit: limit, ..StationParams::default() };
        Medium::new(MediumParams { bridge, queue_limit: limit, ..MediumParams::default() }, vec![station], 1)
    }

    fn arrivals(bridge: &mut Medium<Sized>) -> Vec<(u64, u16)> {
        let late = Time::from_nanos(u64::MAX);
        std::iter::from_fn(|| bridge.poll(late))
            .filter_map(|event| match event {
                Event::Delivered { at, to, .. } => Some((at.as_nanos() / 1000, to.0)),
                Event::Dropped { .. } => None,
            })
            .collect()
    }

    #[test]
    fn a_packet_takes_what_equation_1_says() {
        let bare = BridgeParams { extra: Span::ZERO, ..PAPER };
        // The paper: "The minimum value of d is 177 us when p_data is 0 bytes and a p_data of 1500 bytes ... 399 us".
        assert_eq!(bare.time(0).as_nanos() / 1000, 177);
        assert_eq!(bare.time(1500).as_nanos() / 1000, 399);
        let rate = 1500.0 * 8.0 / PAPER.time(1500).as_secs_f64();
        assert!((rate / 5e6 - 1.0).abs() < 0.001, "about 5 Mbit/s: {rate}");
    }

    #[test]
    fn what_was_sent_arrives_in_bunches() {
        let costs = BridgeParams { delivery_interval: Span::from_millis(5), ..PAPER };
        let params = MediumParams { bridge: Some(costs), queue_limit: 9, ..MediumParams::default() };
        let mut bridge = Medium::new(params, vec![StationParams::default()], 1);
        // Two are sent before 5 ms, the third after it, and one of the other direction before that: each takes 2.399 ms.
        for _ in 0..3 {
            bridge.on_packet(Time::ZERO, NodeId::ACCESS_POINT, STATION, Sized(1500));
        }
        bridge.on_packet(Time::ZERO, STATION, NodeId::ACCESS_POINT, Sized(40));
        assert_eq!(arrivals(&mut bridge), [(5000, 0), (5000, 1), (5000, 1), (10_000, 1)]);
    }

    #[test]
    fn each_direction_has_its_own_time_unless_they_share_it() {
        for (half_duplex, expected) in [
            (false, vec![(2182, 0), (2399, 1), (4798, 1)]),
            // One after the other, in the order in which they came.
            (true, vec![(2399, 1), (4582, 0), (6981, 1)]),
        ] {
            let mut bridge = bridge(half_duplex, 9);
            bridge.on_packet(Time::ZERO, NodeId::ACCESS_POINT, STATION, Sized(1500));
            bridge.on_packet(Time::ZERO, STATION, NodeId::ACCESS_POINT, Sized(40));
            bridge.on_packet(Time::ZERO, NodeId::ACCESS_POINT, STATION, Sized(1500));
            let seen = arrivals(&mut bridge);
            assert_eq!(seen, expected);
        }
    }

    #[test]
    fn what_finds_the_queue_full_comes_back_at_once() {
        let mut bridge = bridge(false, 2);
        for _ in 0..4 {
            bridge.on_packet(Time::from_nanos(5), NodeId::ACCESS_POINT, STATION, Sized(100));
        }
        assert_eq!(bridge.next_deadline(), Some(Time::from_nanos(5)));
        let place = DropPlace::Queue;
        let dropped = Event::Dropped { at: Time::from_nanos(5), node: NodeId(0), place, packet: Sized(100) };
        assert_eq!(bridge.poll(Time::from_nanos(5)), Some(dropped));
        assert_eq!(bridge.poll(Time::from_nanos(5)), None);
        assert_eq!((arrivals(&mut bridge).len(), bridge.next_deadline()), (3, None));
        assert_eq!(bridge.snapshot(Time::from_nanos(1 << 40)).queues[0].dropped, 1);
    }

    #[test]
    fn a_bridge_is_busy_for_as_long_as_its_packets_take() {
        let mut bridge = bridge(false, 1000);
        for _ in 0..100 {
            bridge.on_packet(Time::ZERO, NodeId::ACCESS_POINT, STATION, Sized(1500));
        }
        let last = arrivals(&mut bridge).last().unwrap().0;
        let stats = bridge.snapshot(Time::ZERO).nodes[0];
        assert_eq!((stats.airtime.as_nanos() / 1000, stats.frames), (last, 100));
    }
}
