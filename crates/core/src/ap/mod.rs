//! The per-interval half of the controller: samples of flows and of the link in, plans out.
//!
//! Every bottleneck has one fair rate, whether what it carries was given or is learned: `observe` says what each
//! showed, `fair_rate` is the law, `decide` makes plans of it (`book/src/law.md`). A capacity that is given is an
//! estimate that is pinned: every hop carries so much, both directions together where they share it, else each; lines
//! are learned all the same. Should it be wrong the rate follows the queue, up or down. A round trip that is given is
//! the base round trip of every flow.
//!
//! Beside it there is exact SAP-LAW mode, eq. (1), for the papers: `equation_one`.

mod aggregates;
mod bottleneck;
mod decide;
mod decision;
mod equation_one;
mod fair_rate;
mod law;
mod left_alone;
mod obedience;
mod observe;
mod one_way;
mod packet_train;
mod path;
mod record;
mod sample;

mod snapshot;
mod stations;
mod udp;
pub mod waiting;
pub mod window;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::elastic;
use crate::fastpath::layout::{Plan, UdpPlan};
use crate::meter::rate::LowPass;
use crate::packet::{Direction, FlowId};
use crate::units::{BitRate, Span, Time};

pub use decision::{Decision, QueuePlace, Value};
pub use fair_rate::Mode;
pub use law::{Law, Parameter};
pub use left_alone::{LeftAlone, Whose};
use record::FlowRecord;
pub use sample::{FlowSample, HopId, HopSample, LinkSample, Stamps, StationId, StationSample, rtt_totals};
pub use snapshot::{Basis, DirectionSnapshot, FlowSnapshot, Snapshot};
use stations::Costs;
pub use udp::{Tunnel, UdpFlows, UdpLimit, UdpSample, UdpSnapshot};

/// How the last hop is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareRule {
    /// Max-min fair; what a flow cannot use goes to the others.
    MaxMin,
    /// Exact SAP-LAW mode, eq. (1) of a capacity that is given; the window is in force at once, as there.
    Equal,
}

impl ShareRule {
    /// How often it decides, usually: it follows a queue; the paper's eq. (1) computes shares five times a second.
    #[must_use]
    pub const fn interval(self) -> Span {
        match self {
            Self::MaxMin => Span::from_millis(50),
            Self::Equal => equation_one::INTERVAL,
        }
    }
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
    /// A constant, as the papers' ns-2 runs use.
    Constant(Span),
}

/// What the controller is told once.
#[derive(Clone, Copy, Debug)]
pub struct Params {
    /// What each hop can carry, in IP bits per second, both directions together where they share it; `None`: learn it.
    pub capacity: Option<BitRate>,
    /// Whether both directions share it.
    pub duplex: Duplex,
    /// How it is divided.
    pub share: ShareRule,
    /// Weight of the newest sample in the filter of the UDP rate, 0..=1. The paper says "simple low-pass"; 0.2.
    pub udp_weight: f64,
    /// How often it decides ([`ShareRule::interval`], [`Ap::set_interval`]).
    pub interval: Span,
    /// Base RTT.
    pub rtt: RttSource,
    /// How long a base RTT is remembered: long enough to meet an empty queue, short enough to follow a walk. 10 s.
    pub rtt_memory: Span,
    /// The queue in front of the last hop is fair to flows by itself (CHAP): elastic UDP is left to it.
    pub queue_is_fair: bool,
    /// The host sends window updates to senders (`fastpath::window`), so that their data may come at the pace of their shares.
    pub window_updates: bool,
    /// The control law's parameters.
    pub law: Law,
    /// Most flows that are tracked; further ones keep the default plan.
    pub max_flows: usize,
}

impl Params {
    /// The defaults around a capacity.
    #[must_use]
    pub fn new(capacity: BitRate) -> Self {
        Self { capacity: Some(capacity), ..Self::learning() }
    }

    /// Parameters for a capacity that is learned.
    #[must_use]
    pub fn learning() -> Self {
        Self {
            capacity: None,
            duplex: Duplex::Half,
            share: ShareRule::MaxMin,
            udp_weight: 0.2,
            interval: ShareRule::MaxMin.interval(),
            rtt: RttSource::Measured,
            rtt_memory: Span::from_secs(10),
            queue_is_fair: false,
            window_updates: false,
            law: Law::default(),
            max_flows: 65_536,
        }
    }

    /// A round trip as a part of an interval.
    fn part_of(&self, rtt: Span) -> f64 {
        rtt.as_secs_f64() / self.interval.as_secs_f64()
    }
}

/// What the host must do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// Hold one direction of a flow to a plan.
    SetPlan {
        /// The flow that this is about.
        flow: FlowId,
        /// Direction of its data.
        direction: Direction,
        /// To what.
        plan: Plan,
    },
    /// Use this scale for the windows that are advertised in one direction of a flow.
    SetScale {
        /// The flow that this is about.
        flow: FlowId,
        /// Direction of its data.
        direction: Direction,
        /// Of them, 0..=14.
        scale: u8,
    },
    /// Hold one direction of a UDP flow to a plan.
    SetUdpPlan {
        /// The flow that this is about.
        flow: FlowId,
        /// Direction of its data.
        direction: Direction,
        /// To what.
        plan: UdpPlan,
    },
    /// What a new connection starts with.
    SetDefault {
        /// Direction of its data.
        direction: Direction,
        /// To what.
        plan: Plan,
    },
    /// What the connections that begin may advertise together (`fastpath::hop`).
    SetStart {
        /// Direction of their data.
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
    /// Rate of UDP that is not elastic; and of all of it, by direction.
    udp: LowPass,
    udp_each: [LowPass; 2],
    /// Boxed, for ascending keys leave a tree's nodes half empty, and a record is nearly a kilobyte.
    flows: BTreeMap<(FlowId, Direction), Box<FlowRecord>>,
    default_plans: [Plan; 2],
    starts: [(u32, u32); 2],
    actions: VecDeque<Action>,
    next: Time,
    decided: Option<Time>,
    law: decide::State,
    /// What is known of each hop.
    duplex: BTreeMap<HopId, Duplex>,
    costs: Costs,
    udp_flows: UdpFlows,
    /// What UDP flows of each hop are judged by since the newest decision.
    loads: BTreeMap<HopId, [elastic::HopLoad; 2]>,
    /// IP bytes of elastic UDP so far, in both directions.
    elastic_bytes: u64,
    /// What the link had carried an interval ago.
    link: LinkSample,
    /// What somebody wants left alone.
    left_alone: LeftAlone,
    /// Of a direction the floors of all flows together exceed the pipe.
    too_many: [bool; 2],
}

impl Ap {
    /// A controller that has seen nothing yet; the first poll gives new connections their default plan.
    #[must_use]
    pub fn new(params: Params) -> Self {
        let mut ap = Self {
            params,
            udp: LowPass::new(params.udp_weight),
            udp_each: Direction::BOTH.map(|_| LowPass::new(udp::RATE_WEIGHT_PER_SECOND)),
            flows: BTreeMap::new(),
            default_plans: [Plan::default(); 2],
            starts: [(0, 0); 2],
            actions: VecDeque::new(),
            next: Time::ZERO,
            decided: None,
            law: decide::State::new(params.capacity),
            duplex: BTreeMap::new(),
            costs: Costs::default(),
            udp_flows: UdpFlows::new(params.queue_is_fair),
            loads: BTreeMap::new(),
            elastic_bytes: 0,
            link: LinkSample::default(),
            left_alone: LeftAlone::default(),
            too_many: [false; 2],
        };
        match params.share {
            ShareRule::Equal => ap.begin_equally(1),
            ShareRule::MaxMin => Direction::BOTH.into_iter().for_each(|direction| {
                ap.begin_with(&BTreeSet::from([HopId::default()]), direction);
            }),
        }
        ap
    }

    /// It is asked to decide so often from here on: seldom where there is much to decide.
    pub const fn set_interval(&mut self, interval: Span) {
        self.params.interval = interval;
    }

    /// Window updates are sent from here on, or are not any more.
    pub const fn set_window_updates(&mut self, on: bool) {
        self.params.window_updates = on;
    }

    /// What is left alone from the next interval on.
    pub fn set_left_alone(&mut self, left_alone: LeftAlone) {
        self.left_alone = left_alone;
    }

    /// Other parameters from here on; flows, and what was learned, stay. False where that takes [`Self::begin_anew`]: another capacity, another
    /// rule, or a queue that is fair or no longer is.
    #[must_use]
    pub fn set_params(&mut self, params: Params) -> bool {
        let before = (self.params.capacity, self.params.share, self.params.queue_is_fair);
        if before != (params.capacity, params.share, params.queue_is_fair) {
            return false;
        }
        self.params = Params { window_updates: self.params.window_updates, duplex: self.params.duplex, ..params };
        self.udp.weigh(params.udp_weight);
        true
    }

    /// Has seen nothing yet, by other parameters; but waiting times are counted on.
    pub fn begin_anew(&mut self, params: Params) {
        let waiting = core::mem::take(&mut self.law.waiting);
        *self = Self::new(params);
        self.law.waiting = waiting;
    }

    /// Whether both directions share the last hop: it may be made of other interfaces than before.
    pub const fn set_duplex(&mut self, duplex: Duplex) {
        self.params.duplex = duplex;
    }

    /// What another controller had learned of a direction before this one took over: known as if it had been measured for a second.
    pub fn resume(&mut self, direction: Direction, capacity: BitRate, is_wan: bool) {
        match is_wan {
            true => self.law.at(bottleneck::Id::Wan(direction)).resume(capacity),
            false => self.law.resumed[direction.index()] = Some(capacity),
        }
    }

    /// The interval begins at `at`: between the decision before and then nothing passed that one would follow from.
    pub fn begin_interval(&mut self, at: Time) {
        self.decided = self.decided.map(|decided| decided.max(at));
    }

    /// One direction of one flow, before the interval is closed by [`Self::on_link`]. Flows of which nothing passed need none; who is not to be
    /// remembered any more is [gone](Self::on_gone).
    pub fn on_sample(&mut self, now: Time, sample: &FlowSample) {
        let key = (sample.flow, sample.direction);
        if sample.closing {
            self.flows.remove(&key);
            return;
        }
        if let Some(record) = self.flows.get_mut(&key) {
            return record.on_sample(now, sample);
        }
        if self.flows.len() >= self.params.max_flows {
            return;
        }
        let until = now + self.params.rtt_memory;
        let began_behind = Direction::BOTH.map(|direction| self.law.queue_on_wan(&self.params.law, direction, until));
        let mut record = Box::new(FlowRecord::new(self.params.rtt_memory, key.0, began_behind));
        record.on_sample(now, sample);
        self.flows.insert(key, record);
    }

    /// The flow is gone, in both directions.
    pub fn on_gone(&mut self, flow: FlowId) {
        for direction in Direction::BOTH {
            self.flows.remove(&(flow, direction));
        }
    }

    /// What the link carried; closes the interval and decides.
    pub fn on_link(&mut self, now: Time, sample: &LinkSample) {
        self.next = now + self.params.interval;
        if self.params.share == ShareRule::MaxMin {
            self.elastic_bytes += Direction::BOTH.map(|way| self.udp_flows.elastic_bytes(way)).iter().sum::<u64>();
        }
        self.udp.on_count(now, sample.udp_bytes.iter().sum::<u64>().saturating_sub(self.elastic_bytes));
        match self.params.share {
            ShareRule::MaxMin => self.decide(now, sample),
            ShareRule::Equal => self.share_equally(now),
        }
        self.loads.clear();
        for (flow, direction) in self.udp_flows.stale() {
            let plan = self.udp_flows.release(flow, direction);
            self.actions.extend(plan.map(|plan| Action::SetUdpPlan { flow, direction, plan }));
        }
        while let Some(decision) = self.udp_flows.take_decision() {
            self.actions.push_back(Action::Say(decision));
        }
    }

    /// What the bottlenecks of a UDP flow over `hop` are like for data of each direction.
    fn loads(&self, hop: HopId) -> [elastic::HopLoad; 2] {
        Direction::BOTH.map(|direction| {
            let path = self.path(hop, direction, self.law.relative_cost(hop, direction));
            let room = self.law.narrowest(&path).map(|(_, carries)| carries.saturating_sub(self.udp.smooth()));
            let standing_queue = path.iter().any(|(id, cost)| self.law.exceeds_target(&self.params.law, *id, *cost));
            elastic::HopLoad { room, standing_queue }
        })
    }

    fn hold_datagrams(&mut self, flow: FlowId, direction: Direction, share: BitRate, answer: udp::Answer) {
        let plan = self.udp_flows.set_share((flow, direction), share, self.params.interval, answer);
        self.actions.extend(plan.map(|plan| Action::SetUdpPlan { flow, direction, plan }));
    }

    /// Waiting times of data that goes in `direction`, since the controller came.
    #[must_use]
    pub const fn waiting(&self, direction: Direction) -> &waiting::Waiting {
        &self.law.waiting[direction.index()]
    }

    /// What is known of data that goes in each direction, indexed by [`Direction::index`].
    #[must_use]
    pub fn directions(&self) -> [DirectionSnapshot; 2] {
        Direction::BOTH.map(|direction| self.shown(direction))
    }

    /// What was given, or what was learned of the direction that carries more; 0 while unknown.
    fn capacity(&self) -> BitRate {
        let learned = || Direction::BOTH.into_iter().filter_map(|direction| self.capacity_of(direction)).max();
        self.params.capacity.or_else(learned).unwrap_or_default()
    }

    /// Filtered rate of UDP.
    #[must_use]
    pub fn udp(&self) -> BitRate {
        self.udp.smooth()
    }

    /// What the driver says of a station.
    pub fn on_station(&mut self, _now: Time, sample: &StationSample) {
        self.costs.on_station(sample);
    }

    /// A UDP flow, before the interval is closed by [`Self::on_link`].
    pub fn on_udp(&mut self, now: Time, sample: &UdpSample) {
        let loads = self.loads.get(&sample.hop).copied().unwrap_or_else(|| self.loads(sample.hop));
        self.loads.insert(sample.hop, loads);
        self.udp_flows.on_sample(now, sample, loads);
    }

    /// The UDP flow is gone, in both directions.
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
            capacity: self.capacity(),
            directions: self.directions(),
            udp: self.udp(),
            available: self.capacity().saturating_sub(self.udp()),
            flows: self.flows.iter().map(|(key, record)| record.snapshot(*key)).collect(),
            queues_elsewhere: self.law.queues_elsewhere().collect(),
        }
    }
}

fn set_plan((flow, direction): (FlowId, Direction), plan: Plan) -> Action {
    Action::SetPlan { flow, direction, plan }
}

#[cfg(test)]
mod tests;
