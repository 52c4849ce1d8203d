//! The wireless link of the Snoop paper: one lossy point-to-point link in place of the channel, and behind it a router with a
//! wire to each station.
//!
//! ```text
//! access point --[queue]-- rate, delay, error_rate --[queue]-- router --- station_rate, station_delay --- station
//! ```
//!
//! A packet takes `8 bytes / rate` of the link and arrives `delay` later, or is lost with probability `error_rate`, each for
//! itself. Each direction has a queue, a server and a random stream of its own; the wires behind the router have none to speak of
//! (1000 full packets). Source: paper 001, figure 2 and section 4.1; `p_W` of its eq. (4) is `error_rate`.
//!
//! [`Repair`] is what the link itself does about its losses: nothing, as in the paper; repetition (ARQ), in order; or forward
//! error correction (FEC): behind every block of packets as many parity packets as are asked for, each as long as the
//! block's longest, any of which makes up for any lost packet (an erasure code with the reach of Reed and Solomon's). A
//! block is also closed when nothing waits. What follows a hole in a block waits for the block's end, so that both keep the
//! order.
//!
//! [`Handoff`]: the station changes to another base station. What is on the link is lost, and what waits in the old one's
//! queue, unless it is forwarded to the new one; for a while nothing is carried.
//!
//! Not done: errors in bursts, bits within packets, anything of a MAC.

use std::collections::{BTreeMap, VecDeque};

use lasthop_core::aqm::{Discipline, Queue};
use lasthop_core::packet::Packet;
use lasthop_core::units::{BitRate, Span, Time};

use crate::crossing::Crossing;
use crate::medium::{DropPlace, Event, NodeId};
use crate::params::{MediumParams, StationParams};
use crate::random::{Stream, seeded};
use crate::snapshot::{NodeStats, Snapshot};

/// Bytes that may wait for a wire behind the router: 1000 full packets.
const WIRE_BYTES: u64 = 1_500_000;

/// What the link does about its losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repair {
    /// Nothing.
    #[default]
    None,
    /// A packet is sent up to `attempts` times in all; each repetition begins when its loss is known, one round trip of
    /// the link after its end.
    Arq {
        /// At least 1.
        attempts: u32,
    },
    /// `parity` packets behind every `data`.
    Fec {
        /// Packets of a block, at least 1.
        data: u32,
        /// Parity packets of a block.
        parity: u32,
    },
}

/// The station changes its base station again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handoff {
    /// From one change to the next; the first is at `every`.
    pub every: Span,
    /// How long nothing is carried.
    pub outage: Span,
    /// What waits at the old base station goes on to the new one.
    pub forward: bool,
}

/// What the link is like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WirelessLinkParams {
    /// What it carries, of IP bytes.
    pub rate: BitRate,
    /// One way.
    pub delay: Span,
    /// Probability that a packet is lost, 0 to 1, in both directions.
    pub error_rate: f64,
    /// Packets are lost before they come to the queue and take nothing of the link, as with ns-2's `lossmodel`.
    pub lost_before_queue: bool,
    /// Of the wires behind it.
    pub station_rate: BitRate,
    /// Of the wires behind it, one way.
    pub station_delay: Span,
    /// What it does about its losses.
    pub repair: Repair,
    /// Whether its station moves.
    pub handoff: Option<Handoff>,
}

/// What the link sends.
#[derive(Clone, Copy, Debug)]
enum Load<P> {
    Packet(Crossing<P>),
    /// A parity packet.
    Parity,
}

/// A transmission, with its repetitions.
#[derive(Clone, Debug)]
struct Service<P> {
    over: Time,
    /// What the link was held for.
    took: Span,
    load: Load<P>,
    lost: bool,
}

/// A block of forward error correction.
#[derive(Clone, Debug)]
struct Block<P> {
    sent: u32,
    /// Longest packet in it, bytes.
    longest: u32,
    missing: u32,
    /// From its first hole on, and whether each was lost.
    held: Vec<(Crossing<P>, bool)>,
    /// Parity packets sent, and those that arrived.
    parity: (u32, u32),
}

impl<P> Default for Block<P> {
    fn default() -> Self {
        Self { sent: 0, longest: 0, missing: 0, held: Vec::new(), parity: (0, 0) }
    }
}

/// One way over the link.
#[derive(Clone, Debug)]
struct Direction<P> {
    queue: Queue<Crossing<P>>,
    limit: usize,
    /// Goes before what waits.
    urgent: VecDeque<Crossing<P>>,
    service: Option<Service<P>>,
    block: Block<P>,
    random: Stream,
}

/// One way of a wire behind the router.
#[derive(Clone, Copy, Debug)]
struct Wire {
    free_at: Time,
}

impl Wire {
    /// When `bytes` that come at `now` arrive; `None`: too much waits.
    fn pass(&mut self, link: &WirelessLinkParams, now: Time, bytes: u32) -> Option<Time> {
        if self.free_at.since(now) > link.station_rate.time_for(WIRE_BYTES) {
            return None;
        }
        self.free_at = self.free_at.max(now) + link.station_rate.time_for(u64::from(bytes));
        Some(self.free_at + link.station_delay)
    }
}

/// What comes somewhere later.
#[derive(Clone, Debug)]
enum Coming<P> {
    /// At the router, on its way to the access point.
    AtRouter(Crossing<P>),
    /// At its end.
    Delivered(Crossing<P>),
}

/// See the module. Its interface is that of the channel, [`crate::Medium`]; settings of the radio change nothing here.
#[derive(Clone, Debug)]
pub(crate) struct WirelessLink<P> {
    link: WirelessLinkParams,
    /// From the access point, then to it.
    directions: [Direction<P>; 2],
    /// Per station: to it, from it.
    wires: Vec<[Wire; 2]>,
    /// In order of time and then of coming.
    coming: BTreeMap<(Time, u64), Coming<P>>,
    numbered: u64,
    /// Packets that are gone, not told yet.
    dropped: VecDeque<Event<P>>,
    /// The next change of the base station, and until when the last one keeps the link closed.
    handoff_at: Option<Time>,
    closed_until: Option<Time>,
    handoffs: u64,
    nodes: Vec<NodeStats>,
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    Handoff,
    Reopen,
    Sent(usize),
    Comes,
}

impl<P: Packet + Copy> WirelessLink<P> {
    /// Idle.
    pub fn new(link: WirelessLinkParams, params: MediumParams, stations: &[StationParams], seed: u64) -> Self {
        let up = stations.first().map_or((params.queue, params.queue_limit), |s| (s.queue, s.queue_limit));
        let direction = |(discipline, limit): (Discipline, usize), number: u16, name: &str| Direction {
            queue: Queue::new(&seeded(discipline, seed, number), limit, Time::ZERO),
            limit,
            urgent: VecDeque::new(),
            service: None,
            block: Block::default(),
            random: Stream::named(seed, name),
        };
        Self {
            link,
            directions: [
                direction((params.queue, params.queue_limit), 0, "wireless-link.to-stations"),
                direction(up, 1, "wireless-link.to-access-point"),
            ],
            wires: vec![[Wire { free_at: Time::ZERO }; 2]; stations.len()],
            coming: BTreeMap::new(),
            numbered: 0,
            dropped: VecDeque::new(),
            handoff_at: link.handoff.map(|handoff| Time::ZERO + handoff.every),
            closed_until: None,
            handoffs: 0,
            nodes: vec![NodeStats::default(); stations.len() + 1],
        }
    }

    pub fn on_packet(&mut self, now: Time, from: NodeId, to: NodeId, packet: P) {
        let crossing = Crossing { packet, from, to };
        if from == NodeId::ACCESS_POINT {
            return self.join(now, 0, crossing, false);
        }
        let [_, wire] = &mut self.wires[usize::from(from.0) - 1];
        match wire.pass(&self.link, now, packet.bytes()) {
            Some(at) => self.comes(at, Coming::AtRouter(crossing)),
            None => self.lose(now, crossing, DropPlace::Queue),
        }
    }

    /// From the access point: goes before what waits.
    pub fn on_urgent_packet(&mut self, now: Time, from: NodeId, to: NodeId, packet: P) {
        self.join(now, 0, Crossing { packet, from, to }, true);
    }

    fn comes(&mut self, at: Time, coming: Coming<P>) {
        self.coming.insert((at, self.numbered), coming);
        self.numbered += 1;
    }

    fn lose(&mut self, at: Time, Crossing { packet, from, .. }: Crossing<P>, place: DropPlace) {
        if place == DropPlace::Channel {
            self.nodes[usize::from(from.0)].given_up += 1;
        }
        self.dropped.push_back(Event::Dropped { at, node: from, place, packet });
    }

    /// At the queue of a way.
    fn join(&mut self, now: Time, direction: usize, crossing: Crossing<P>, urgent: bool) {
        if self.link.lost_before_queue && self.directions[direction].random.chance(self.link.error_rate) {
            return self.lose(now, crossing, DropPlace::Channel);
        }
        let open = self.closed_until.is_none();
        let Direction { queue, limit, urgent: first, service, block, .. } = &mut self.directions[direction];
        if open
            && service.is_none()
            && first.is_empty()
            && block.sent == 0
            && let Queue::Fifo(queue) = queue
        {
            queue.pass_by();
            return self.serve(now, direction, crossing);
        }
        let idle = open && service.is_none();
        if !urgent {
            if let Some(refused) = queue.enqueue(now, crossing, crossing.station()) {
                self.lose(now, refused, DropPlace::Queue);
            }
        } else if first.len() < *limit {
            first.push_back(crossing);
        } else {
            self.lose(now, crossing, DropPlace::Queue);
        }
        if idle {
            self.serve_next(now, direction);
        }
    }

    fn serve_next(&mut self, at: Time, direction: usize) {
        let Direction { queue, urgent, block, .. } = &mut self.directions[direction];
        if let Repair::Fec { data, parity } = self.link.repair {
            let ends = block.sent >= data || (block.sent > 0 && urgent.is_empty() && queue.is_empty());
            // What has come since the first parity packet belongs to the next block.
            let is_over = ends || block.parity.0 > 0;
            if is_over && block.parity.0 < parity {
                return self.serve_parity(at, direction);
            }
            if is_over {
                self.close_block(at, direction);
            }
        }
        let (Direction { queue, urgent, .. }, dropped) = (&mut self.directions[direction], &mut self.dropped);
        let next = urgent.pop_front().or_else(|| {
            queue.dequeue(at, |Crossing { packet, from, .. }| {
                dropped.push_back(Event::Dropped { at, node: from, place: DropPlace::Queue, packet });
            })
        });
        if let Some(next) = next {
            self.serve(at, direction, next);
        }
    }

    fn is_lost(&mut self, direction: usize) -> bool {
        !self.link.lost_before_queue && self.directions[direction].random.chance(self.link.error_rate)
    }

    fn serve(&mut self, now: Time, direction: usize, crossing: Crossing<P>) {
        let once = self.link.rate.time_for(u64::from(crossing.bytes()));
        let mut lost = self.is_lost(direction);
        let (mut time, mut attempts) = (once, 1);
        if let Repair::Arq { attempts: most } = self.link.repair {
            while lost && attempts < most {
                time = time + once + self.link.delay + self.link.delay;
                attempts += 1;
                lost = self.is_lost(direction);
            }
        }
        let stats = &mut self.nodes[usize::from(crossing.from.0)];
        stats.frames += 1;
        stats.attempts += u64::from(attempts);
        stats.retries += u64::from(attempts - 1);
        stats.airtime += time;
        self.directions[direction].service =
            Some(Service { over: now + time, took: time, load: Load::Packet(crossing), lost });
    }

    fn serve_parity(&mut self, now: Time, direction: usize) {
        let lost = self.is_lost(direction);
        let block = &mut self.directions[direction].block;
        block.parity.0 += 1;
        let time = self.link.rate.time_for(u64::from(block.longest));
        // Both directions are the access point's link; what its router sends is charged to the first station.
        let stats = &mut self.nodes[direction];
        stats.attempts += 1;
        stats.retries += 1;
        stats.airtime += time;
        self.directions[direction].service = Some(Service { over: now + time, took: time, load: Load::Parity, lost });
    }

    /// A transmission is over.
    fn on_sent(&mut self, at: Time, direction: usize) {
        let Some(Service { load, lost, took, .. }) = self.directions[direction].service.take() else { return };
        let in_blocks = matches!(self.link.repair, Repair::Fec { .. });
        match load {
            Load::Packet(crossing) => {
                self.directions[direction].queue.charge(took);
                if in_blocks {
                    self.on_sent_in_block(at, direction, crossing, lost);
                } else if lost {
                    self.lose(at, crossing, DropPlace::Channel);
                } else {
                    self.forward(at, crossing);
                }
            }
            Load::Parity => {
                let block = &mut self.directions[direction].block;
                block.parity.1 += u32::from(!lost);
                if block.missing > 0 && block.parity.1 >= block.missing {
                    block.missing = 0;
                    let held = std::mem::take(&mut block.held);
                    held.into_iter().for_each(|(crossing, _)| self.forward(at, crossing));
                }
            }
        }
        self.serve_next(at, direction);
    }

    fn on_sent_in_block(&mut self, at: Time, direction: usize, crossing: Crossing<P>, lost: bool) {
        let block = &mut self.directions[direction].block;
        block.sent += 1;
        block.longest = block.longest.max(crossing.bytes());
        block.missing += u32::from(lost);
        if block.missing > 0 {
            block.held.push((crossing, lost));
        } else {
            self.forward(at, crossing);
        }
    }

    /// The parity packets have been sent: what is still missing is lost, and what waited behind it goes on.
    fn close_block(&mut self, at: Time, direction: usize) {
        let block = std::mem::take(&mut self.directions[direction].block);
        for (crossing, lost) in block.held {
            if lost {
                self.lose(at, crossing, DropPlace::Channel);
            } else {
                self.forward(at, crossing);
            }
        }
    }

    /// Over the link at `sent`.
    fn forward(&mut self, sent: Time, crossing: Crossing<P>) {
        let at = sent + self.link.delay;
        if crossing.to == NodeId::ACCESS_POINT {
            return self.comes(at, Coming::Delivered(crossing));
        }
        let [wire, _] = &mut self.wires[usize::from(crossing.to.0) - 1];
        match wire.pass(&self.link, at, crossing.bytes()) {
            Some(at) => self.comes(at, Coming::Delivered(crossing)),
            None => self.lose(sent, crossing, DropPlace::Queue),
        }
    }

    fn hand_off(&mut self, at: Time) {
        let Some(Handoff { every, outage, forward }) = self.link.handoff else { return };
        self.handoff_at = Some(at + every);
        self.closed_until = Some(at + outage);
        self.handoffs += 1;
        for direction in 0..self.directions.len() {
            if let Some(Service { load: Load::Packet(crossing), .. }) = self.directions[direction].service.take() {
                self.lose(at, crossing, DropPlace::Channel);
            }
            let block = std::mem::take(&mut self.directions[direction].block);
            block.held.into_iter().for_each(|(crossing, _)| self.lose(at, crossing, DropPlace::Channel));
        }
        if !forward {
            let Direction { queue, urgent, .. } = &mut self.directions[0];
            let mut left: Vec<_> = urgent.drain(..).collect();
            let mut dropped = Vec::new();
            left.extend(std::iter::from_fn(|| queue.dequeue(at, |crossing| dropped.push(crossing))));
            left.append(&mut dropped);
            left.into_iter().for_each(|crossing| self.lose(at, crossing, DropPlace::Channel));
        }
    }

    /// Changes of the base station so far.
    pub const fn handoffs(&self) -> u64 {
        self.handoffs
    }

    fn next(&self) -> Option<(Time, Next)> {
        let sent = |direction: usize| {
            self.directions[direction].service.as_ref().map(|service| (service.over, Next::Sent(direction)))
        };
        let comes = self.coming.keys().next().map(|(at, _)| (*at, Next::Comes));
        let handoff = self.handoff_at.map(|at| (at, Next::Handoff));
        let reopen = self.closed_until.map(|at| (at, Next::Reopen));
        [sent(0), sent(1), comes, handoff, reopen].into_iter().flatten().min()
    }

    pub fn poll(&mut self, now: Time) -> Option<Event<P>> {
        loop {
            if let Some(event) = self.dropped.pop_front() {
                return Some(event);
            }
            let (at, next) = self.next().filter(|(at, _)| *at <= now)?;
            match next {
                Next::Handoff => self.hand_off(at),
                Next::Reopen => {
                    self.closed_until = None;
                    (0..self.directions.len()).for_each(|direction| self.serve_next(at, direction));
                }
                Next::Sent(direction) => self.on_sent(at, direction),
                Next::Comes => match self.coming.pop_first()?.1 {
                    Coming::AtRouter(crossing) => self.join(at, 1, crossing, false),
                    Coming::Delivered(Crossing { packet, from, to }) => {
                        return Some(Event::Delivered { at, from, to, packet });
                    }
                },
            }
        }
    }

    pub fn next_deadline(&self) -> Option<Time> {
        self.dropped.front().map(Event::at).or_else(|| self.next().map(|(at, _)| at))
    }

    /// Its queues are those of the two directions, the access point's first.
    pub fn snapshot(&self, now: Time) -> Snapshot {
        Snapshot {
            nodes: self.nodes.clone(),
            queues: self.directions.iter().map(|direction| direction.queue.snapshot(now)).collect(),
            classes: Vec::new(),
            rates: Vec::new(),
        }
    }

    pub fn backlog(&self, node: NodeId) -> usize {
        let direction = &self.directions[usize::from(node != NodeId::ACCESS_POINT)];
        direction.queue.len() + direction.urgent.len() + usize::from(direction.service.is_some())
    }

    pub fn set_queue_limit(&mut self, node: NodeId, packets: usize) {
        let direction = &mut self.directions[usize::from(node != NodeId::ACCESS_POINT)];
        direction.queue.set_limit(packets);
        direction.limit = packets;
    }

    /// From the next packet on.
    pub fn set_link(&mut self, link: WirelessLinkParams) {
        self.link = WirelessLinkParams { handoff: self.link.handoff, ..link };
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

    const AP: NodeId = NodeId::ACCESS_POINT;
    const STATION: NodeId = NodeId(1);
    const LATE: Time = Time::from_nanos(u64::MAX / 2);

    const PAPER: WirelessLinkParams = WirelessLinkParams {
        rate: BitRate::mbps(5),
        delay: Span::from_millis(1),
        error_rate: 0.0,
        lost_before_queue: false,
        station_rate: BitRate::mbps(10),
        station_delay: Span::from_millis(1),
        repair: Repair::None,
        handoff: None,
    };

    fn link(params: WirelessLinkParams, queue_limit: usize) -> Medium<Sized> {
        let station = StationParams { queue_limit, ..StationParams::default() };
        let params = MediumParams { wireless_link: Some(params), queue_limit, ..MediumParams::default() };
        Medium::new(params, vec![station; 2], 1)
    }

    /// Arrivals (when, us; where; bytes) and losses.
    type Seen = (Vec<(u64, u16, u32)>, Vec<(DropPlace, u32)>);

    fn events(link: &mut Medium<Sized>, until: Time) -> Seen {
        let (mut arrived, mut lost) = (Vec::new(), Vec::new());
        while let Some(event) = link.poll(until) {
            match event {
                Event::Delivered { at, to, packet, .. } => arrived.push((at.as_nanos() / 1000, to.0, packet.0)),
                Event::Dropped { place, packet, .. } => lost.push((place, packet.0)),
            }
        }
        (arrived, lost)
    }

    #[test]
    fn packets_take_their_time_of_the_link_and_of_the_wire_behind_it() {
        let mut link = link(PAPER, 9);
        link.on_packet(Time::ZERO, AP, STATION, Sized(1000));
        link.on_packet(Time::ZERO, AP, NodeId(2), Sized(1000));
        link.on_packet(Time::ZERO, STATION, AP, Sized(40));
        let (arrived, lost) = events(&mut link, LATE);
        // Up: 32 us of wire + 1 ms, 64 us of link + 1 ms. Down: 1.6 ms + 1 ms, 0.8 ms + 1 ms; the second 1.6 ms later.
        assert_eq!(arrived, [(2096, 0, 40), (4400, 1, 1000), (6000, 2, 1000)]);
        assert!(lost.is_empty() && link.next_deadline().is_none());
    }

    #[test]
    fn what_finds_the_queue_full_is_lost_there() {
        let mut link = link(PAPER, 2);
        (0..4).for_each(|i| link.on_packet(Time::ZERO, AP, STATION, Sized(100 + i)));
        assert_eq!(events(&mut link, Time::ZERO).1, [(DropPlace::Queue, 103)]);
        assert_eq!(events(&mut link, LATE).0.len(), 3);
    }

    #[test]
    fn an_urgent_packet_goes_before_what_waits_but_not_before_what_is_sent() {
        let mut link = link(PAPER, 9);
        (0..3).for_each(|i| link.on_packet(Time::ZERO, AP, STATION, Sized(100 + i)));
        link.on_urgent_packet(Time::ZERO, AP, STATION, Sized(7));
        let order: Vec<u32> = events(&mut link, LATE).0.into_iter().map(|(_, _, bytes)| bytes).collect();
        assert_eq!(order, [100, 7, 101, 102]);
    }

    #[test]
    fn losses_are_as_frequent_as_said_and_take_the_link_or_not() {
        for (lost_before_queue, takes) in [(false, 1.0), (true, 0.9)] {
            let mut link = link(WirelessLinkParams { error_rate: 0.1, lost_before_queue, ..PAPER }, 100_000);
            let sent = 50_000u32;
            (0..sent).for_each(|_| link.on_packet(Time::ZERO, AP, STATION, Sized(1000)));
            let (arrived, lost) = events(&mut link, LATE);
            let share = lost.len() as f64 / f64::from(sent);
            // Five standard deviations of a binomial.
            assert!((share - 0.1).abs() < 5.0 * (0.1 * 0.9 / f64::from(sent)).sqrt(), "{share}");
            assert!(lost.iter().all(|(place, _)| *place == DropPlace::Channel));
            let busy = link.snapshot(Time::ZERO).nodes[0].airtime.as_secs_f64() / (f64::from(sent) * 1.6e-3);
            assert!((busy - takes).abs() < 0.01, "{busy}");
            assert_eq!(arrived.len() + lost.len(), sent as usize);
        }
    }

    #[test]
    fn repetition_keeps_the_order_and_leaves_the_residual_loss() {
        let repair = Repair::Arq { attempts: 3 };
        let mut link = link(WirelessLinkParams { error_rate: 0.3, repair, ..PAPER }, 100_000);
        (0..20_000).for_each(|i| link.on_packet(Time::ZERO, AP, STATION, Sized(100 + i % 1000)));
        let (arrived, lost) = events(&mut link, LATE);
        let residual = lost.len() as f64 / 20_000.0;
        assert!((residual - 0.027).abs() < 5.0 * (0.027f64 / 20_000.0).sqrt(), "{residual}");
        assert!(arrived.windows(2).all(|pair| pair[0].0 < pair[1].0));
        let stats = link.snapshot(Time::ZERO).nodes[0];
        // Attempts per packet: 1 + p + p^2.
        assert!((stats.attempts as f64 / 20_000.0 - 1.39).abs() < 0.02);
    }

    #[test]
    fn parity_makes_up_for_as_many_losses_as_there_are_parity_packets() {
        // Of a block of 4 + 2 with p = 0.1, packets stay lost when three or more of six are: by the binomial.
        let repair = Repair::Fec { data: 4, parity: 2 };
        let mut link = link(WirelessLinkParams { error_rate: 0.1, repair, ..PAPER }, 100_000);
        let sent = 40_000;
        (0..sent).for_each(|i| link.on_packet(Time::ZERO, AP, STATION, Sized(i)));
        let (arrived, lost) = events(&mut link, LATE);
        // Expected lost data packets per data packet: p P(at least two of the other five are lost, too).
        let others = 1.0 - 0.9f64.powi(5) - 5.0 * 0.1 * 0.9f64.powi(4);
        let residual = lost.len() as f64 / f64::from(sent);
        assert!((residual - 0.1 * others).abs() < 0.002, "{residual} for {}", 0.1 * others);
        assert!(arrived.windows(2).all(|pair| pair[0].2 < pair[1].2), "in order");
        assert_eq!(arrived.len() + lost.len(), sent as usize);
        assert_eq!(link.snapshot(Time::ZERO).nodes[0].attempts, u64::from(sent) * 6 / 4);
    }

    #[test]
    fn parity_of_a_block_that_ended_early_makes_up_for_nothing_behind_it() {
        // Two packets in bursts of two, the second while the parity of the first is sent: blocks of one, each with its own.
        let repair = Repair::Fec { data: 10, parity: 1 };
        let mut link = link(WirelessLinkParams { error_rate: 0.2, repair, ..PAPER }, 9);
        let (pairs, mut lost) = (20_000u64, 0);
        for pair in 0..pairs {
            let start = Time::from_nanos(pair * 50_000_000);
            link.on_packet(start, AP, STATION, Sized(1000));
            events(&mut link, start + Span::from_micros(1700));
            link.on_packet(start + Span::from_micros(1700), AP, STATION, Sized(1000));
            lost += events(&mut link, start + Span::from_millis(49)).1.len();
        }
        // Both the packet and its parity: p^2.
        let residual = lost as f64 / (2 * pairs) as f64;
        assert!((residual - 0.04).abs() < 5.0 * (0.04 * 0.96 / (2 * pairs) as f64).sqrt(), "{residual}");
        assert_eq!(link.snapshot(Time::ZERO).nodes[0].attempts, 4 * pairs);
    }

    #[test]
    fn a_hand_off_loses_what_is_in_flight_and_what_waits_unless_forwarded() {
        for (forward, arrive) in [(false, 3), (true, 6)] {
            let handoff = Handoff { every: Span::from_millis(300), outage: Span::from_millis(100), forward };
            let mut link = link(WirelessLinkParams { handoff: Some(handoff), ..PAPER }, 9);
            let from = Time::from_nanos(294_000_000);
            (0..7).for_each(|_| link.on_packet(from, AP, STATION, Sized(1000)));
            let (arrived, lost) = events(&mut link, Time::from_nanos(299_999_999));
            assert_eq!((arrived.len(), lost.len()), (1, 0));
            // Two are on the wires, the fourth is being sent.
            let (arrived, lost) = events(&mut link, Time::from_nanos(500_000_000));
            assert_eq!((arrived.len() + 1, lost.len()), (arrive, 7 - arrive));
            assert!(arrived.iter().all(|(at, ..)| *at < 304_000 || *at > 400_000));
            assert_eq!(link.handoffs(), 1);
        }
    }
}
