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
//! That is the law of a capacity that is given, which counts bytes, not air time. Where the capacity is learned every bottleneck has
//! one fair rate: `observe` says what each showed, `fair_rate` is the law, `decide` makes plans of it (`book/src/law.md`).

mod bottleneck;
mod decide;
mod decision;
mod fair_rate;
mod law;
mod observe;
mod one_way;
mod packet_train;
mod record;
mod sample;
mod snapshot;
mod stations;
mod udp;

use std::collections::{BTreeMap, VecDeque};

use crate::elastic;
use crate::fastpath::layout::{Plan, UdpPlan};
use crate::meter::rate::LowPass;
use crate::packet::{Direction, FlowId};
use crate::units::{BitRate, Span, Time};
use crate::{share, window};

pub use decision::{Decision, Place};
pub use fair_rate::Mode;
pub use law::{Law, Parameter};
use record::Record;
pub use sample::{FlowSample, HopId, HopSample, LinkSample, RttTotal, Stamps, StationId, StationSample};
pub use snapshot::{DirectionSnapshot, FlowSnapshot, Snapshot};
use stations::Prices;
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
    /// The control law's parameters, where the capacity is learned.
    pub law: Law,
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
            law: Law::default(),
            max_flows: 65_536,
        }
    }

    /// The same where nobody knows the capacity: it decides four times as often, because it has to find out.
    #[must_use]
    pub fn learning() -> Self {
        Self {
            capacity: None,
            interval: Span::from_millis(50),
            bounds: window::Bounds { growth_part: 1.0 / 12.0, floor_segments: 2, ..window::Bounds::default() },
            pace_gain: (1.1, 1.1),
            ..Self::new(BitRate::ZERO)
        }
    }

    /// The same with parameters of the law that somebody set.
    #[must_use]
    pub fn with_law(self, law: Law) -> Self {
        if self.capacity.is_some() {
            return Self { law, ..self };
        }
        let growth_time = Span::from_secs_f64(law.growth_time);
        let bounds = window::Bounds { growth_time, growth_part: law.growth_part, ..self.bounds };
        Self { law, bounds, pace_gain: (law.pace_gain, law.pace_gain), ..self }
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
    law: decide::State,
    /// What is known of each hop.
    duplex: BTreeMap<HopId, Duplex>,
    prices: Prices,
    udp_flows: UdpFlows,
    /// IP bytes of elastic UDP so far, both ways.
    elastic_bytes: u64,
    /// What the link had carried an interval ago.
    link: LinkSample,
    /// Of a direction the floors of all flows together exceed the pipe.
    too_many: [bool; 2],
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
            law: decide::State::default(),
            duplex: BTreeMap::new(),
            prices: Prices::default(),
            udp_flows: UdpFlows::new(UdpParams { queue_is_fair: params.queue_is_fair, ..UdpParams::default() }),
            elastic_bytes: 0,
            link: LinkSample::default(),
            too_many: [false; 2],
            untracked: 0,
        };
        match params.capacity {
            Some(capacity) => ap.set_default(capacity),
            None => {
                for direction in Direction::BOTH {
                    ap.default_plans[direction.index()] = window::first();
                    ap.actions.push_back(Action::SetDefault { direction, plan: window::first() });
                }
            }
        }
        ap
    }

    /// Window updates are sent from here on, or are not any more.
    pub const fn set_window_updates(&mut self, on: bool) {
        self.params.window_updates = on;
    }

    /// Whether both directions share the last hop: it may be made of other interfaces than before.
    pub const fn set_duplex(&mut self, duplex: Duplex) {
        self.params.duplex = duplex;
    }

    /// What another controller had learned of a direction before this one took over: known as if it had been measured for a second.
    pub fn resume(&mut self, direction: Direction, capacity: BitRate, is_line: bool) {
        match is_line {
            true => self.law.at(bottleneck::Id::Line(direction)).resume(capacity),
            false => self.law.resumed[direction.index()] = Some(capacity),
        }
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
            (None, _) => self.decide_learned(now, sample),
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
        for direction in Direction::BOTH {
            let (capacity, queue, bound) = match self.params.capacity {
                Some(capacity) => {
                    (Some(capacity), self.queue_to_stations().unwrap_or_default(), self.params.given_bound())
                }
                None => {
                    let shown = self.shown(direction);
                    (shown.capacity, shown.queue, self.bound(HopId::default(), direction))
                }
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

    /// What is known of data that goes each way, indexed by [`Direction::index`].
    #[must_use]
    pub fn directions(&self) -> [DirectionSnapshot; 2] {
        Direction::BOTH.map(|direction| self.shown(direction))
    }

    fn learned(&self) -> Option<BitRate> {
        Direction::BOTH.into_iter().filter_map(|direction| self.learned_capacity(direction)).max()
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
            return self.learned().unwrap_or_default();
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

fn set_plan((flow, direction): (FlowId, Direction), plan: Plan) -> Action {
    Action::SetPlan { flow, direction, plan }
}

#[cfg(test)]
mod tests;
