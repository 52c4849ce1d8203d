//! The per-interval half of the controller: samples of flows and of the link in, plans out.
//!
//! Every interval: the capacity less what UDP (and TCP that cannot be controlled) uses is shared out
//! ([`crate::share`]), each share becomes a window over the flow's base RTT ([`crate::window`]), and the window is
//! trimmed by what it achieved: raised while the flow stays below its share and no queue stands at the last hop,
//! lowered while one does. Source: SAP-LAW section 3.2 and eq. (1).
//!
//! The trim is ours. The minimum RTT lacks the mean of contention and delayed ACKs, about 3 ms of 80, so that a window
//! of exactly share x minimum would lose 4 %; and a capacity given a few per cent too high would bring the queue back.
//! With [`ShareRule::Equal`], or a round trip that is given instead of measured, the window is eq. (1) to the letter:
//! nothing is trimmed, nor grows in steps, nor is paced.
//!
//! A capacity that is given counts bytes, not air time. One that is learned counts both: `learn` and `divide`.

mod decision;
mod divide;
mod learn;
mod record;
mod sample;
mod seen;
mod snapshot;
mod udp;

use std::collections::{BTreeMap, VecDeque};

use crate::elastic;
use crate::fastpath::layout::{Plan, UdpPlan};
use crate::meter::rate::LowPass;
use crate::packet::{Direction, FlowId};
use crate::units::{BitRate, Span, Time};
use crate::{share, window};

pub use decision::{Decision, Place};
use divide::Prices;
use learn::{Neck, Way};
use record::Record;
pub use sample::{FlowSample, HopId, HopSample, LinkSample, RttTotal, StationId, StationSample};
use seen::Seen;
pub use snapshot::{DirectionSnapshot, FlowSnapshot, Snapshot};
pub use udp::{UdpFlows, UdpParams, UdpSample, UdpSnapshot, UdpWish};

/// How the last hop is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareRule {
    /// Max-min fair; what a flow cannot use goes to the others.
    MaxMin,
    /// SAP-LAW eq. (1) to the letter; the window is in force at once, as there.
    Equal,
}

/// Whether both directions share what the last hop carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplex {
    /// They do: radio.
    Half,
    /// Each has it to itself: wire.
    Full,
}

/// Where the round trip without queueing comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RttSource {
    /// Minimum of what the fast path matched, local and remote half apart.
    Measured,
    /// A constant, as the papers' ns-2 runs use: the window is in force at once, as there.
    Constant(Span),
}

/// A slow hop holds at least this many full packets at its queue target: one in service, one for a delayed ACK to wait
/// for, one that the ACK's own contention costs, and one that waits.
const QUEUE_PACKETS: u64 = 4;

/// What a frame costs beside its bits, s: DIFS, mean backoff, preamble, SIFS and ACK of 802.11g.
const SMALL_FRAME: f64 = 165e-6;

/// What the controller is told once.
#[derive(Clone, Copy, Debug)]
pub struct Params {
    /// What the last hop can carry, in IP bits per second, both directions together; `None`: learn it.
    pub capacity: Option<BitRate>,
    /// Whether both directions share it.
    pub duplex: Duplex,
    /// How it is divided.
    pub share: ShareRule,
    /// Weight of the newest sample in the filter of the UDP rate, 0..=1. The paper says "simple low-pass"; 0.2.
    pub udp_weight: f64,
    /// How often it decides. 200 ms, as the paper.
    pub interval: Span,
    /// Base RTT.
    pub rtt: RttSource,
    /// Bounds of every window.
    pub bounds: window::Bounds,
    /// How long a base RTT is remembered: long enough to meet an empty queue, short enough to follow a walk. 10 s.
    pub rtt_memory: Span,
    /// Queue at the last hop above which windows are trimmed down, unless [`QUEUE_PACKETS`] take longer. 2 ms: a
    /// game's packets may wait 10 ms, and the worst of a hundred waits about four times the mean.
    pub queue_target: Span,
    /// Bounds of the trim. Down to 0.9: a capacity may be given a tenth too high, and contention of others, which
    /// cannot be told from a queue, costs no more than that. Up to 1.15: what the minimum RTT lacks on a short path.
    pub trim: (f64, f64),
    /// Bounds of the pace of a promised edge, in parts of what the hop carries of TCP altogether. Not of the flow's
    /// share: a flow among others is acknowledged in trains at the speed of the hop. From 1.1: at the speed of the hop
    /// itself a flow could not catch up after the ACKs paused; what comes on top queues while it does, a tenth of what
    /// is caught up. Up to 4: a train that leaves more slowly than the hop drains it never grows longer, so where the
    /// capacity is given too low, the pace has to find the speed that the hop really has.
    pub pace_gain: (f64, f64),
    /// The queue in front of the last hop is fair to flows by itself (CHAP): elastic UDP is left to it.
    pub queue_is_fair: bool,
    /// The host sends window updates to senders of downloads (`fastpath::window`), so that they may come at the pace of their
    /// shares; where the capacity is learned.
    pub window_updates: bool,
    /// Most flows that are tracked; further ones keep the default plan and are counted.
    pub max_flows: usize,
}

impl Params {
    /// The defaults around a capacity.
    #[must_use]
    pub fn new(capacity: BitRate) -> Self {
        Self {
            capacity: Some(capacity),
            duplex: Duplex::Half,
            share: ShareRule::MaxMin,
            udp_weight: 0.2,
            interval: Span::from_millis(200),
            rtt: RttSource::Measured,
            bounds: window::Bounds::default(),
            rtt_memory: Span::from_secs(10),
            queue_target: Span::from_millis(2),
            trim: (0.9, 1.15),
            pace_gain: (1.1, 4.0),
            queue_is_fair: false,
            window_updates: false,
            max_flows: 65_536,
        }
    }

    /// The same where nobody knows the capacity: it decides four times as often, because it has to find out.
    #[must_use]
    pub fn learning() -> Self {
        Self {
            capacity: None,
            interval: Span::from_millis(50),
            bounds: window::Bounds { growth_part: 1.0 / 12.0, ..window::Bounds::default() },
            ..Self::new(BitRate::ZERO)
        }
    }

    /// Eq. (1) as the paper and its ns-2 runs have it: no trim, no growth in steps, no pace.
    const fn is_to_the_letter(&self) -> bool {
        matches!(self.share, ShareRule::Equal) || matches!(self.rtt, RttSource::Constant(_))
    }

    /// Window updates are sent to whose data goes in `direction`.
    fn updates(&self, direction: Direction) -> bool {
        self.window_updates && self.capacity.is_none() && direction == Direction::ToStation
    }

    /// A round trip as a part of an interval.
    fn part_of(&self, rtt: Span) -> f64 {
        rtt.as_secs_f64() / self.interval.as_secs_f64()
    }

    /// Mean queue at the last hop that is left alone. A minimum RTT to the station above it holds a queue that stood
    /// all the time.
    fn queue_bound(&self, capacity: BitRate) -> Span {
        self.queue_target.max(capacity.time_for(1500 * QUEUE_PACKETS))
    }

    /// The same at the capacity that was given.
    fn given_bound(&self) -> Span {
        self.queue_bound(self.given())
    }

    fn given(&self) -> BitRate {
        self.capacity.unwrap_or_default()
    }
}

/// What the host must do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// Hold one direction of a flow to a plan.
    SetPlan {
        /// Which flow.
        flow: FlowId,
        /// Which way its data goes.
        direction: Direction,
        /// To what.
        plan: Plan,
    },
    /// Hold one direction of a UDP flow to a plan.
    SetUdpPlan {
        /// Which flow.
        flow: FlowId,
        /// Which way its data goes.
        direction: Direction,
        /// To what.
        plan: UdpPlan,
    },
    /// What a new connection starts with.
    SetDefault {
        /// Which way its data goes.
        direction: Direction,
        /// To what.
        plan: Plan,
    },
    /// What the connections that begin may promise together (`fastpath::hop`).
    SetStart {
        /// Which way their data goes.
        direction: Direction,
        /// What many may begin with at once, bytes; one may have three quarters of what is left.
        depth_bytes: u32,
        /// What comes back of it in 2^30 ns, bytes.
        rate_bytes: u32,
    },
    /// Tell whoever watches.
    Say(Decision),
}

/// See the module.
#[derive(Debug)]
pub struct Ap {
    params: Params,
    udp: LowPass,
    flows: BTreeMap<(FlowId, Direction), Record>,
    default_plans: [Plan; 2],
    starts: [(u32, u32); 2],
    actions: VecDeque<Action>,
    next: Time,
    decided: Option<Time>,
    /// By [`Direction::index`]: what was learned.
    ways: [Way; 2],
    prices: Prices,
    udp_flows: UdpFlows,
    /// IP bytes of elastic UDP so far, both ways.
    elastic_bytes: u64,
    /// What the link had carried an interval ago.
    link: LinkSample,
    /// What small packets of UDP cost the air beyond their bytes, by direction, s per s.
    small: [f64; 2],
    /// What the newest interval left to TCP, where it was learned.
    left: BitRate,
    untracked: u64,
}

impl Ap {
    /// A controller that has seen nothing yet; the first poll gives new connections their default plan.
    #[must_use]
    pub fn new(params: Params) -> Self {
        let mut ap = Self {
            params,
            udp: LowPass::new(params.udp_weight),
            flows: BTreeMap::new(),
            default_plans: [Plan::default(); 2],
            starts: [(0, 0); 2],
            actions: VecDeque::new(),
            next: Time::ZERO,
            decided: None,
            ways: Direction::BOTH.map(|direction| Way::new(direction, params.updates(direction))),
            prices: Prices::default(),
            udp_flows: UdpFlows::new(UdpParams { queue_is_fair: params.queue_is_fair, ..UdpParams::default() }),
            elastic_bytes: 0,
            link: LinkSample::default(),
            small: [0.0; 2],
            left: BitRate::ZERO,
            untracked: 0,
        };
        match params.capacity {
            Some(capacity) => ap.set_default(capacity),
            None => Direction::BOTH.into_iter().for_each(|direction| ap.set_default_of(direction, None)),
        }
        ap
    }

    /// Window updates are sent from here on, or are not any more.
    pub fn set_window_updates(&mut self, on: bool) {
        self.params.window_updates = on;
        for (way, direction) in self.ways.iter_mut().zip(Direction::BOTH) {
            way.paced = self.params.updates(direction);
        }
    }

    /// Whether both directions share the last hop: it may be made of other interfaces than before.
    pub const fn set_duplex(&mut self, duplex: Duplex) {
        self.params.duplex = duplex;
    }

    /// What another controller had learned of a direction before this one took over: known as if it had been measured for a second.
    pub fn resume(&mut self, direction: Direction, capacity: BitRate, is_line: bool) {
        let way = &mut self.ways[direction.index()];
        let hop = if is_line { &mut way.line } else { &mut way.air };
        hop.on_busy(capacity.as_bps() as f64 / 8.0, 1.0);
    }

    /// One direction of one flow, before the interval is closed by [`Self::on_link`].
    pub fn on_sample(&mut self, now: Time, sample: &FlowSample) {
        let key = (sample.flow, sample.direction);
        if sample.closing {
            self.flows.remove(&key);
            return;
        }
        if !self.flows.contains_key(&key) && self.flows.len() >= self.params.max_flows {
            self.untracked += 1;
            return;
        }
        let Params { rtt_memory, pace_gain, .. } = self.params;
        let record = self.flows.entry(key).or_insert_with(|| Record::new(rtt_memory, pace_gain.0));
        record.on_sample(now, sample);
    }

    /// The flow is gone, both directions.
    pub fn on_gone(&mut self, flow: FlowId) {
        for direction in Direction::BOTH {
            self.flows.remove(&(flow, direction));
        }
    }

    /// What the link carried; closes the interval and decides.
    pub fn on_link(&mut self, now: Time, sample: &LinkSample) {
        self.next = now + self.params.interval;
        if !self.params.is_to_the_letter() {
            self.elastic_bytes += Direction::BOTH.map(|way| self.udp_flows.elastic_bytes(way)).iter().sum::<u64>();
        }
        self.udp.on_count(now, sample.udp_bytes.iter().sum::<u64>().saturating_sub(self.elastic_bytes));
        match (self.params.capacity, self.params.share) {
            (None, _) => self.share_learned(now, sample),
            (_, ShareRule::Equal) => self.share_equally(),
            (_, ShareRule::MaxMin) => self.share_max_min(),
        }
        self.tell_hops();
        for (flow, direction) in self.udp_flows.stale() {
            let plan = self.udp_flows.release(flow, direction);
            self.actions.extend(plan.map(|plan| Action::SetUdpPlan { flow, direction, plan }));
        }
        while let Some(decision) = self.udp_flows.take_decision() {
            self.actions.push_back(Action::Say(decision));
        }
    }

    /// What UDP flows are to be judged by in the next interval.
    fn tell_hops(&mut self) {
        for (i, direction) in Direction::BOTH.into_iter().enumerate() {
            let (capacity, queue, bound) = match self.params.capacity {
                Some(capacity) => {
                    (Some(capacity), self.queue_to_stations().unwrap_or_default(), self.params.given_bound())
                }
                None => (self.ways[i].capacity(), self.ways[i].queue, self.ways[i].bound(&self.params)),
            };
            let room = capacity.map(|capacity| capacity.saturating_sub(self.udp.smooth()));
            let hop =
                elastic::Hop { room, carries: capacity, queue_stands: queue > bound * 4, ..elastic::Hop::default() };
            self.udp_flows.set_hop(direction, hop);
        }
    }

    fn hold_datagrams(&mut self, flow: FlowId, direction: Direction, share: BitRate) {
        let plan = self.udp_flows.set_share(flow, direction, share, self.params.interval);
        self.actions.extend(plan.map(|plan| Action::SetUdpPlan { flow, direction, plan }));
    }

    fn share_equally(&mut self) {
        let active = self.flows.values().filter(|r| r.is_active()).count() as u64;
        let share = share::equal(self.params.given(), self.udp.smooth(), active.max(1));
        let hop = share::equal(self.params.given(), self.udp.smooth(), 1);
        for (key, record) in &mut self.flows {
            self.actions.extend(record.decide(&self.params, share, hop).map(|plan| set_plan(*key, plan)));
        }
        self.set_default(share::equal(self.params.given(), self.udp.smooth(), active + 1));
    }

    fn share_max_min(&mut self) {
        let available = self.available();
        let mut demands: Vec<_> = self.controlled().map(|(_, r)| r.demand()).collect();
        let connections = demands.len();
        let datagrams: Vec<_> = match self.params.is_to_the_letter() {
            true => Vec::new(),
            false => self.udp_flows.elastic().collect(),
        };
        demands.extend(datagrams.iter().map(|wish| wish.demand));
        let shares = share::max_min(available, &demands);
        for (wish, share) in datagrams.iter().zip(&shares[connections..]) {
            self.hold_datagrams(wish.flow, wish.direction, *share);
        }
        let params = self.params;
        let queue = self.queue_to_stations();
        let controlled = self.flows.iter_mut().filter(|(_, r)| r.is_controlled());
        for ((key, record), share) in controlled.zip(shares) {
            let own = record.queue(&params);
            let queue = if key.1 == Direction::ToStation { queue } else { own };
            record.trim(&params, queue);
            record.pace(&params, queue);
            self.actions.extend(record.decide(&params, share, available).map(|plan| set_plan(*key, plan)));
        }
        let with_a_newcomer: Vec<_> = demands.into_iter().chain([None]).collect();
        let newcomer = share::max_min(available, &with_a_newcomer).pop().unwrap_or(available);
        self.set_default(newcomer);
    }

    /// The air (or wire) is shared by what its bytes cost each direction, the line by bytes.
    fn share_learned(&mut self, now: Time, sample: &LinkSample) {
        let dt = now.since(self.decided.unwrap_or(now)).as_secs_f64();
        let before = std::mem::replace(&mut self.link, sample.clone());
        if self.decided.replace(now).is_none() || dt <= 0.0 {
            return;
        }
        let params = self.params;
        self.flows.values_mut().for_each(|record| record.remember(dt));
        let bounds = [0, 1].map(|i| self.ways[i].bound(&params));
        let mut seen =
            [0, 1].map(|i| Seen::of(&params, Direction::BOTH[i], (bounds[i], dt), &self.prices, self.flows.iter()));
        self.see_datagrams(&mut seen, (&before, sample), dt);
        let closed = now;
        for (i, seen) in seen.iter_mut().enumerate() {
            let (now, before) = (&sample.hops[i], &before.hops[i]);
            let to_ip = seen.to_ip;
            let pace = |bytes: u64, was: u64, ns: u64, was_ns: u64| {
                (bytes.wrapping_sub(was) as f64 * to_ip, ns.wrapping_sub(was_ns) as f64 / 1e9)
            };
            seen.came = pace(now.came_bytes, before.came_bytes, now.came_ns, before.came_ns);
            seen.train = pace(now.served_bytes, before.served_bytes, now.served_ns, before.served_ns);
            seen.pause = closed.since(Time::from_nanos(now.data_ns)).as_secs_f64();
            // The air counts in bytes of the cheapest station.
            let mix = seen.arrived / seen.bytes.max(1.0);
            match i {
                0 => seen.train.0 *= mix.max(1.0),
                _ => seen.came.0 *= mix.max(1.0),
            }
        }
        let elastic = self.udp_flows.elastic_bytes(Direction::ToStation) as f64;
        if let (None, Some(backlog)) = (seen[0].local, sample.backlog)
            && elastic > seen[0].udp_bytes / 2.0
        {
            self.ways[0].on_backlog(&mut seen[0], backlog, dt);
        }
        self.tell_lines_apart(&mut seen);
        tell_stations_apart(&mut seen, bounds);
        for wish in self.udp_flows.elastic().filter(|wish| wish.demand.is_none()) {
            seen[wish.direction.index()].held += 1;
        }
        for i in 0..2 {
            let own = if i == 0 { sample.backlog } else { None };
            self.ways[i].clean(now, &mut seen[i], dt);
            self.ways[i].locate(&seen[i], own, dt);
            self.ways[i].watch(&seen[i], bounds[i], dt);
        }
        self.learn(&seen, bounds, dt);
        let lack = [0, 1].map(|i| params.duplex == Duplex::Half && self.ways[i].lacks(&seen[i]));
        for i in 0..2 {
            let way = &mut self.ways[i];
            way.on_trains(&seen[i], dt);
            way.others_lack = lack[1 - i];
            way.steer(&seen[i], bounds[i], dt);
            way.outdo(dt);
            way.settle();
            self.actions.extend(way.news(&seen[i], dt).map(Action::Say));
        }
        self.divide(bounds);
    }

    /// UDP of an interval: its bytes, what they cost the air, and what they cost it beyond that.
    fn see_datagrams(&mut self, seen: &mut [Seen; 2], (before, now): (&LinkSample, &LinkSample), dt: f64) {
        for (i, direction) in Direction::BOTH.into_iter().enumerate() {
            let seen = &mut seen[i];
            let bytes = now.udp_bytes[i].saturating_sub(before.udp_bytes[i]) as f64;
            seen.udp_bytes = bytes;
            let passed = self.udp_flows.passed(direction);
            let dear: f64 = passed.map(|(station, bytes)| (self.prices.of(station) - 1.0) * bytes as f64).sum();
            seen.udp = bytes + dear;
            let all = seen.bytes + bytes;
            seen.cost = (all > 0.0).then(|| (seen.arrived + seen.udp) / all);
            if self.params.duplex == Duplex::Half {
                let (packets, elastic) = self.udp_flows.of_elastic(direction);
                let packets = now.udp_packets[i].saturating_sub(before.udp_packets[i]).saturating_sub(packets) as f64;
                // As many full ones would cost no more than their bytes tell.
                let full = (bytes - elastic as f64).max(0.0) / 1500.0;
                let seconds = (packets - full).max(0.0) * SMALL_FRAME;
                self.small[i] += (seconds / dt - self.small[i]) * (dt / 1.0).min(1.0);
                seen.small = seconds * self.ways[i].air.capacity().map_or(0.0, |c| c.as_bps() as f64 / 8.0);
            }
        }
        // It was counted when it came. What left is what came to the queue, less what that grew by; where bulk is among it, for
        // the queue also holds ACKs.
        let bulk = self.udp_flows.elastic().any(|wish| wish.direction == Direction::ToStation);
        if let Some((before, now)) = before.backlog.zip(now.backlog).filter(|_| bulk) {
            let grown = (now as f64 - before as f64) * self.ways[0].mix();
            seen[0].udp = (seen[0].udp + seen[0].sent - seen[0].arrived - grown).max(0.0);
        }
    }

    /// What waits on the line one way delays the acknowledgments of what goes the other way: it is taken off there. Uploads
    /// first, whose line is the narrower one as a rule.
    fn tell_lines_apart(&self, seen: &mut [Seen; 2]) {
        for (own, other) in [(0, 1), (1, 0)] {
            // Bulk of UDP has no round trips to tell: what waits for others, whose line has room, may wait for it.
            let bulk = self.udp_flows.elastic_bytes(Direction::BOTH[own]) > 0;
            let has_room = self.ways[other].line.is_measured() && !self.ways[other].fills_the_line();
            if bulk && seen[own].remote.is_none() && has_room {
                (seen[own].remote, seen[own].gap) = (seen[other].remote, 0.0);
            }
        }
        for (own, other) in [(0, 1), (1, 0)] {
            let fills = self.ways[other].fills_the_line();
            if !fills || (own == 1 && self.ways[own].line.is_measured()) {
                continue;
            }
            if let (Some(theirs), Some(ours)) = (seen[other].remote, &mut seen[own].remote) {
                (ours.0, ours.1) = (ours.0 - theirs.0.max(0.0), ours.1 - theirs.0.max(0.0));
            }
        }
    }

    /// A way carries bulk, and as much of it as ever.
    fn is_loaded(&self, i: usize, seen: &[Seen; 2]) -> bool {
        let bulk = seen[i].active > 0 || self.udp_flows.elastic_bytes(Direction::BOTH[i]) > 0;
        bulk && self.ways[i].carries_as_ever()
    }

    fn learn(&mut self, seen: &[Seen; 2], bounds: [Span; 2], dt: f64) {
        let here = [0, 1].map(|i| self.ways[i].is_busy_here(&seen[i]));
        let parts = match self.params.duplex {
            Duplex::Half => learn::air_used(&self.ways, seen),
            Duplex::Full => [1.0; 2],
        };
        for i in 0..2 {
            let bytes = seen[i].delivered(self.ways[i].limit(dt));
            let is_busy = here[i] || (self.params.duplex == Duplex::Half && here[1 - i]);
            self.ways[i].note_busy(is_busy, dt);
            if is_busy && learn::tells(parts[i]) && bytes > 0.0 {
                self.ways[i].on_busy(Neck::Here, bytes + seen[i].small, dt * parts[i]);
                if here[i] {
                    self.ways[i].find(Neck::Here, dt);
                }
            } else if self.ways[i].fills_early(&seen[i], bounds[i], dt) && bytes > 0.0 {
                self.ways[i].air.on_stretched(bytes + seen[i].small, dt);
            } else if !is_busy && self.ways[i].is_busy_there(&seen[i]) {
                // As its own bytes. Less than it was known to carry, while the other way is loaded as ever, waits there.
                let bytes = bytes / seen[i].cost.unwrap_or(1.0);
                if !(self.is_loaded(1 - i, seen) && self.ways[i].line_carries_more(bytes, dt)) {
                    self.ways[i].on_busy(Neck::Line, bytes, dt);
                    self.ways[i].find(Neck::Line, dt);
                }
            }
        }
    }

    /// What is known of data that goes each way, indexed by [`Direction::index`].
    #[must_use]
    pub fn directions(&self) -> [DirectionSnapshot; 2] {
        [0, 1].map(|i| self.direction(i))
    }

    fn learned(&self) -> Option<BitRate> {
        self.ways.iter().filter_map(Way::shown).max()
    }

    fn direction(&self, i: usize) -> DirectionSnapshot {
        let way = &self.ways[i];
        let capacity = self.params.capacity.or(way.shown());
        DirectionSnapshot { capacity, place: way.place, queue: way.queue, local: way.local, holds: way.holds }
    }

    /// Filtered rate of UDP.
    #[must_use]
    pub fn udp(&self) -> BitRate {
        self.udp.smooth()
    }

    /// What waits at the access point, as seen by the flow that saw least: they share a queue, delayed ACKs only add.
    fn queue_to_stations(&self) -> Option<Span> {
        let downloads = self.controlled().filter(|((_, direction), _)| *direction == Direction::ToStation);
        downloads.filter_map(|(_, record)| record.queue(&self.params)).min()
    }

    /// Capacity less what nobody can control: UDP, and TCP whose window cannot be rewritten.
    #[must_use]
    pub fn available(&self) -> BitRate {
        if self.params.capacity.is_none() {
            return self.left;
        }
        let escaping = self.flows.values().filter(|r| !r.is_controllable()).map(Record::rate);
        escaping.fold(self.params.given().saturating_sub(self.udp.smooth()), BitRate::saturating_sub)
    }

    fn controlled(&self) -> impl Iterator<Item = (&(FlowId, Direction), &Record)> {
        self.flows.iter().filter(|(_, r)| r.is_controlled())
    }

    /// New connections start with `share` over a round trip that is not known yet; until it is, their growth alone
    /// protects the queue, so the clamp may be generous.
    fn set_default(&mut self, share: BitRate) {
        let base_rtt = match self.params.rtt {
            RttSource::Constant(rtt) => rtt,
            RttSource::Measured => Span::from_millis(200),
        };
        let hop = self.available();
        let flow = window::Flow {
            share,
            fair: BitRate::ZERO,
            hop,
            base_rtt,
            payload_share: 0.97,
            trim: 1.0,
            pace_gain: self.params.pace_gain.0,
            mss: 1448,
        };
        let mut plan = window::plan(&flow, &self.params.bounds);
        if self.params.is_to_the_letter() {
            plan = window::at_once(plan);
        }
        if record::differs(&self.default_plans[0], &plan) {
            self.default_plans = [plan; 2];
            self.actions.extend(Direction::BOTH.map(|direction| Action::SetDefault { direction, plan }));
        }
    }

    /// What the driver says of a station.
    pub fn on_station(&mut self, _now: Time, sample: &StationSample) {
        self.prices.on_station(sample);
    }

    /// A UDP flow, before the interval is closed by [`Self::on_link`].
    pub fn on_udp(&mut self, now: Time, sample: &UdpSample) {
        self.udp_flows.on_sample(now, sample);
    }

    /// The UDP flow is gone, both directions.
    pub fn on_udp_gone(&mut self, flow: FlowId) {
        self.udp_flows.on_gone(flow);
    }

    /// What UDP flows are taken for, and what they may have.
    #[must_use]
    pub const fn udp_flows(&self) -> &UdpFlows {
        &self.udp_flows
    }

    /// The next thing to do, until `None`.
    pub fn poll(&mut self, _now: Time) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When the next interval should be closed.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        Some(self.next)
    }

    /// What it sees and does.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            capacity: self.params.capacity.or(self.learned()).unwrap_or_default(),
            directions: self.directions(),
            udp: self.udp(),
            available: self.available(),
            untracked: self.untracked,
            flows: self.flows.iter().map(|(key, record)| record.snapshot(*key)).collect(),
        }
    }
}

/// The acknowledgments of uploads wait in the access point's queue too, behind downloads: what is left alone there is no queue
/// of theirs.
fn tell_stations_apart(seen: &mut [Seen; 2], bounds: [Span; 2]) {
    let [down, up] = seen;
    if let (Some((mean, _)), Some(ours)) = (down.local, &mut up.local) {
        let theirs = mean.clamp(0.0, bounds[0].as_secs_f64());
        *ours = (ours.0 - theirs, ours.1 - theirs);
    }
}

fn set_plan((flow, direction): (FlowId, Direction), plan: Plan) -> Action {
    Action::SetPlan { flow, direction, plan }
}

#[cfg(test)]
mod tests;
