//! From samples to plans: what an interval showed of each bottleneck, a step of its fair rate, and the window of each
//! flow, the least over the bottlenecks on its path.
//!
//! ```text
//! window = min over its bottlenecks of R / cost x base_rtt           cost: what a byte costs there          [bytes]
//! pace   = min over its bottlenecks of R / cost x pace_gain          where window updates are sent           [bytes/s]
//!          of R / cost x Y / B where data go in both directions (`fair_rate`)
//! ```
//!
//! Where an elastic flow cannot be held, the queue is as long as that flow makes it: a window that counts only the round trip without
//! queueing would starve. Then the equal part of C that is anybody's is given over the whole round trip.

use std::collections::{BTreeMap, BTreeSet};

use super::aggregates::Aggregates;
use super::bottleneck::{Behind, Bottleneck, Id};
use super::fair_rate::{LEAST, Mode};
use super::law::Law;
use super::observe::{Row, Seen, USUAL_RTT, pauses_seldom, see};
use super::packet_train::{PacketTrains, Passed};
use super::record::{self, FlowRecord, Unknown};
use super::udp::{Answer, RATE_WEIGHT_PER_SECOND};
use super::waiting::{Queued, Waiting};
use super::window;
use super::{Action, Ap, Basis, Decision, Direction, HopId, LinkSample, Params, QueuePlace, StationId, set_plan};
use crate::fastpath::layout::Plan;
use crate::packet::FlowId;
use crate::units::{BitRate, Span, Time};

/// Where nobody sends window updates, acknowledgments come in trains at the pace of the hop, which may carry more than is known. At 1 a
/// first train that showed too little proves itself right (`conserve.py --seed 3 --only 86`: 0.16 of the goodput); without any pace a
/// line that is full in both directions is taken for its path (`learn` of the simulator).
const UNPACED: f64 = 2.0;
/// Estimates that differ by less are not worth a line.
const WORTH_A_LINE: f64 = 0.1;
/// Another place of the queue is believed after so much time in which it was seen there, s.
const PLACE_CONFIRMED: f64 = 1.0;
/// What a byte costs beside one of the cheapest is averaged over this, s.
const COST_MEAN: f64 = 0.5;
/// A round trip of a connection that begins, and the part of its segments that is payload.
pub(super) const FIRST_RTT: Span = Span::from_millis(200);
pub(super) const PAYLOAD: f64 = 0.97;

/// What is kept over time.
#[derive(Debug, Default)]
pub(super) struct State {
    /// What every hop is said to carry, bit/s.
    given: Option<f64>,
    pub(super) bottlenecks: BTreeMap<Id, Bottleneck>,
    packet_trains: BTreeMap<HopId, [PacketTrains; 2]>,
    /// What each hop delivers at once.
    pub(super) aggregates: BTreeMap<Id, Aggregates>,
    /// What a byte costs at the hop beside one of the cheapest, of those that arrive, by direction.
    relative_cost: BTreeMap<HopId, [f64; 2]>,
    news: [News; 2],
    /// What each flow showed in the newest interval; kept for its room, which is megabytes where there are many.
    rows: Vec<Row>,
    /// Least round trip to each station with a connection that moves payload, since its path changed.
    pub(super) nearest: BTreeMap<StationId, Span>,
    /// The queues of most of a direction's data in the newest interval, and of all intervals.
    pub(super) queued: [Queued; 2],
    pub(super) waiting: [Waiting; 2],
    /// What another controller had learned of the hops of a direction.
    pub(super) resumed: [Option<BitRate>; 2],
}

/// What a person has been shown of a direction.
#[derive(Debug, Default)]
struct News {
    capacity: Option<BitRate>,
    place: Option<QueuePlace>,
    said_place: Option<QueuePlace>,
    elsewhere: Option<(QueuePlace, f64)>,
    limits: bool,
    /// The queue is somebody's whom windows do not hold.
    beside: bool,
    idle: f64,
    queue: Span,
    local: Span,
}

/// What flows of one hop, direction and cost have in common when their windows are decided; see the methods of these names.
#[derive(Clone, Copy, Debug)]
struct FlowClass {
    hop: HopId,
    cost: f64,
    path: [(Id, f64); 2],
    bound: Span,
    fair: Option<f64>,
    pace: Option<f64>,
    unknown: Unknown,
    /// The hop, as bytes of the station.
    carries: f64,
}

impl State {
    pub(super) fn new(given: Option<BitRate>) -> Self {
        Self { given: given.map(|given| given.as_bps() as f64), ..Self::default() }
    }

    fn given(&self, id: Id) -> Option<f64> {
        self.given.filter(|_| matches!(id, Id::Hop(..)))
    }

    pub(super) fn at(&mut self, id: Id) -> &mut Bottleneck {
        let given = self.given(id);
        self.bottlenecks.entry(id).or_insert_with(|| Bottleneck::new(given))
    }

    pub(super) fn rate(&self, id: Id) -> Option<f64> {
        self.bottlenecks.get(&id)?.fair.rate()
    }

    pub(super) fn carries(&self, id: Id) -> Option<f64> {
        let known = self.bottlenecks.get(&id).map_or(self.given(id), |bottleneck| Some(bottleneck.carries()));
        known.filter(|carries| *carries > 0.0)
    }

    /// What a full packet takes there, s; 0 where that is not known.
    pub(super) fn packet(&self, id: Id) -> f64 {
        self.carries(id).map_or(0.0, |carries| 12_000.0 / carries)
    }

    /// What a connection that begins now begins behind on the WAN link, remembered `until` then.
    pub(super) fn queue_on_wan(&self, law: &Law, direction: Direction, until: Time) -> Option<Behind> {
        let id = Id::Wan(direction);
        self.bottlenecks.get(&id)?.behind(law, id, until)
    }

    pub(super) fn delivered(&self, id: Id) -> f64 {
        self.bottlenecks.get(&id).map_or(0.0, Bottleneck::delivered)
    }

    /// The narrowest bottleneck of a path, and what it carries, as bytes of a flow that pays these costs.
    pub(super) fn narrowest(&self, path: &[(Id, f64); 2]) -> Option<(Id, BitRate)> {
        let carries = path.iter().filter_map(|(id, cost)| Some((*id, self.carries(*id)? / cost)));
        carries.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(id, carries)| (id, BitRate::from_bps_f64(carries)))
    }

    /// More waits there than is kept as a queue.
    pub(super) fn exceeds_target(&self, law: &Law, id: Id, cost: f64) -> bool {
        self.bottlenecks.get(&id).is_some_and(|there| there.fair.queue() > there.target(law, id, cost))
    }

    /// At least 1.
    pub(super) fn relative_cost(&self, hop: HopId, direction: Direction) -> f64 {
        self.relative_cost.get(&hop).map_or(1.0, |relative_cost| relative_cost[direction.index()].max(1.0))
    }

    /// What goes in `direction` there is left to a queue that is fair to flows by itself.
    pub(super) fn leaves(&self, id: Id, direction: Direction) -> bool {
        direction == Direction::ToStation && self.bottlenecks.get(&id).is_some_and(Bottleneck::has_fair_queue)
    }

    /// Hops whose queue is fair to flows, and is not where their downloads wait.
    pub(super) fn queues_elsewhere(&self) -> impl Iterator<Item = HopId> {
        self.bottlenecks.iter().filter_map(|(id, there)| match id {
            Id::Hop(hop, _) if there.has_queue_elsewhere() => Some(*hop),
            _ => None,
        })
    }

    /// The bottlenecks of a path of `direction` that may hold its flows, and what a byte costs there.
    fn holding(
        &self,
        path: &[(Id, f64); 2],
        direction: Direction,
    ) -> impl Iterator<Item = (Id, &Bottleneck, f64)> + Clone {
        let held = path.iter().filter(move |(id, _)| !self.leaves(*id, direction));
        held.filter_map(|(id, cost)| Some((*id, self.bottlenecks.get(id)?, *cost)))
    }

    /// Which of a flow's bottlenecks holds it: the one with the least rate for it.
    pub(super) fn binding(&self, path: &[(Id, f64); 2], direction: Direction) -> Option<Id> {
        let rates = self.holding(path, direction).filter_map(|(id, there, cost)| Some((id, there.fair.rate()? / cost)));
        rates.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(id, _)| id)
    }

    /// What a flow may have over this path, as `of` tells of each bottleneck; `None`: nothing is known.
    fn least_of(
        &self,
        (path, direction): (&[(Id, f64); 2], Direction),
        of: impl Fn(&Bottleneck) -> Option<f64>,
    ) -> Option<f64> {
        self.holding(path, direction).filter_map(|(_, there, cost)| Some(of(there)? / cost)).reduce(f64::min)
    }

    /// What waits at the bottlenecks of a path that may hold its flows, s.
    fn waits(&self, (path, direction): (&[(Id, f64); 2], Direction)) -> f64 {
        self.holding(path, direction).map(|(_, there, _)| there.fair.queue()).sum()
    }

    /// The fair rate over a path for a round trip of `rtt`, s, where some flow cannot be window-limited.
    fn least(&self, path: (&[(Id, f64); 2], Direction), rtt: f64) -> f64 {
        let waits = self.waits(path);
        let share = self.least_of(path, |there| there.fair.share_beside_uncontrolled());
        share.map_or(0.0, |share| share * (rtt + waits) / rtt)
    }
}

impl Ap {
    pub(super) fn decide(&mut self, now: Time, sample: &LinkSample) {
        let dt = now.since(self.decided.unwrap_or(now)).as_secs_f64();
        let before = std::mem::replace(&mut self.link, sample.clone());
        self.duplex = sample.each_hop.iter().map(|hop| (hop.hop, hop.duplex)).collect();
        if self.decided.replace(now).is_none() || dt <= 0.0 {
            return;
        }
        for (udp, bytes) in self.udp_each.iter_mut().zip(sample.udp_bytes) {
            udp.weigh(RATE_WEIGHT_PER_SECOND * dt);
            udp.on_count(now, bytes);
        }
        let mut rows = std::mem::take(&mut self.law.rows);
        self.see_flows(&mut rows, now, dt);
        let mut hops: BTreeSet<HopId> = self.duplex.keys().copied().collect();
        hops.extend(rows.iter().map(|row| row.hop));
        let seen: BTreeMap<HopId, [Seen; 2]> = hops
            .iter()
            .map(|hop| (*hop, Direction::BOTH.map(|direction| see(&rows, Some(*hop), direction, dt))))
            .collect();
        let wan = match seen.len() {
            1 => seen.values().next().copied().unwrap_or_default(),
            _ => Direction::BOTH.map(|direction| see(&rows, None, direction, dt)),
        };
        self.learn_aggregates(&rows, &seen, (&before, sample), dt);
        let observed = self.observe(&rows, &seen, &wan, (&before, sample), dt);
        for (hop, seen) in &seen {
            self.observe_packet_trains(now, *hop, seen, (&before, sample), dt);
        }
        for direction in Direction::BOTH {
            if let Some(capacity) = self.law.resumed[direction.index()].take() {
                hops.iter().for_each(|hop| self.law.at(self.hop(*hop, direction)).resume(capacity));
            }
        }
        self.law.bottlenecks.retain(|id, _| observed.contains_key(id));
        self.law.packet_trains.retain(|hop, _| hops.contains(hop));
        self.law.relative_cost.retain(|hop, _| hops.contains(hop));
        let law = self.params.law;
        let mut longer = BTreeSet::new();
        for (id, mut x) in observed {
            let waits = x.queue.map_or(0.0, |(_, least)| least);
            let busy = x.backlogged
                || x.pause.is_some_and(|pause| pauses_seldom(pause, 1, waits, dt))
                || Direction::BOTH.into_iter().any(|direction| match id {
                    Id::Hop(hop, of) => {
                        of.is_none_or(|of| of == direction)
                            && seen
                                .get(&hop)
                                .is_some_and(|seen| seen[direction.index()].is_busy(true, direction, waits, dt))
                    }
                    Id::Wan(of) => of == direction && wan[of.index()].is_busy(false, direction, waits, dt),
                });
            let bottleneck = self.law.at(id);
            bottleneck.set_bound(bound(id, sample));
            bottleneck.on_interval(&mut x, busy, &law, dt);
            longer.extend(bottleneck.has_longer_path().then_some(id));
        }
        if !longer.is_empty() {
            self.forget_paths(&longer);
        }
        let uncontrolled = Direction::BOTH.map(|of| rows.iter().filter(|row| row.is_uncontrolled(of)).count());
        let window_limited = self.hold(rows.iter().filter(|row| row.active.is_some()).count());
        self.law.rows = rows;
        self.begin(&hops);
        self.report_decisions(&wan, (window_limited, uncontrolled), dt);
    }

    /// These bottlenecks are on paths that are as long as they show from here on.
    fn forget_paths(&mut self, longer: &BTreeSet<Id>) {
        self.law.nearest.clear();
        let mut flows = std::mem::take(&mut self.flows);
        for (&(_, direction), record) in flows.iter_mut().filter(|(_, record)| record.is_active()) {
            for (id, _) in self.path_of(record, direction).into_iter().filter(|(id, _)| longer.contains(id)) {
                match id {
                    Id::Hop(..) => record.forget_local_path(),
                    Id::Wan(_) => record.forget_remote_path(),
                }
            }
        }
        self.flows = flows;
    }

    fn observe_packet_trains(
        &mut self,
        now: Time,
        hop: HopId,
        seen: &[Seen; 2],
        samples: (&LinkSample, &LinkSample),
        dt: f64,
    ) {
        for direction in Direction::BOTH {
            let i = direction.index();
            let udp = |sample: &LinkSample, id: Id| match id {
                Id::Hop(hop, _) => {
                    sample.each_hop.iter().find(|each| each.hop == hop).map_or(0, |each| each.udp_bytes[i])
                }
                Id::Wan(_) => sample.udp_bytes[i],
            };
            let seen = &seen[i];
            if seen.bytes > 0.0 {
                let relative_cost = &mut self.law.relative_cost.entry(hop).or_insert([1.0; 2])[i];
                *relative_cost += (seen.cost / seen.bytes - *relative_cost) * (dt / COST_MEAN).min(1.0);
            }
            let Some(passed) = Passed::between(samples, hop, direction, now, seen.to_ip.max(1.0)) else { continue };
            let cost = self.law.relative_cost(hop, direction);
            let duplex = self.duplex.get(&hop).copied().unwrap_or(self.params.duplex);
            let shown = self.law.packet_trains.entry(hop).or_default()[i].on_interval(
                direction,
                &passed,
                (seen.rtt, seen.active, seen.arrives, seen.waited),
                (cost, duplex),
                dt,
            );
            for (id, shown) in [(self.hop(hop, direction), shown.0), (Id::Wan(direction), shown.1)] {
                let Some(mut train) = shown else { continue };
                // Datagrams that passed meanwhile had their part. Without it a hop seems to carry half of what it does beside QUIC that begins with TCP.
                train.bytes += udp(samples.1, id).saturating_sub(udp(samples.0, id)) as f64 / dt * train.seconds;
                if let (Id::Hop(..), Some(fastest)) = (id, self.costs.fastest()) {
                    // Nothing leaves faster than at the rate of its frames, however many of them are acknowledged at once.
                    train.seconds = train.seconds.max(train.bytes * 8.0 / fastest);
                }
                self.law.at(id).on_packet_train(train);
            }
        }
    }

    /// Windows, and what elastic UDP may have, of `active` flows; how many are held then, by direction.
    fn hold(&mut self, active: usize) -> [usize; 2] {
        let params = self.params;
        let active = active.max(1) as u32;
        let mut floors = [(0u32, 0u64, 0.0f64); 2];
        let mut window_limited = [0; 2];
        let mut flows = std::mem::take(&mut self.flows);
        let mut classes: [Option<FlowClass>; 2] = [None; 2];
        for (&key, record) in flows.iter_mut().filter(|(_, record)| record.is_active() && record.has_scale()) {
            if record.is_left_alone() {
                self.actions.extend(record.leave_alone().map(|plan| set_plan(key, plan)));
                continue;
            }
            let class = self.class(&mut classes[key.1.index()], record, key.1);
            self.hold_one((key, record), &params, (active, &class), &mut floors[key.1.index()]);
            window_limited[key.1.index()] +=
                usize::from(record.is_controlled() && (record.is_window_limited() || record.is_paced()));
        }
        self.flows = flows;
        self.warn_of_floors(floors);
        let limited = self.udp_flows.elastic().filter(|demand| !self.left_alone.datagrams.has(demand.station));
        for demand in limited.collect::<Vec<_>>() {
            let path = self.path(demand.hop, demand.direction, self.costs.of(demand.hop, demand.station));
            let rate = self.law.least_of((&path, demand.direction), |there| there.fair.rate_without_window());
            if let Some(rate) = rate {
                // Until it is told, and until what it answers with has come.
                let within = Span::from_secs_f64(2.0 * USUAL_RTT + self.law.waits((&path, demand.direction)));
                let binds = self.law.binding(&path, demand.direction);
                let queue_is_before = binds.is_some_and(|id| id.comes_before(demand.direction));
                let answer = Answer { within, queue_is_before };
                self.hold_datagrams(demand.flow, demand.direction, BitRate::from_bps_f64(rate), answer);
            }
        }
        window_limited
    }

    /// What is known of the way that a flow takes: as that of the one `before` it, where it takes the same.
    fn class(&self, before: &mut Option<FlowClass>, record: &FlowRecord, direction: Direction) -> FlowClass {
        let (hop, cost) = (record.hop(), self.costs.of(record.hop(), record.station()));
        if let Some(class) = before.filter(|class| class.hop == hop && class.cost == cost) {
            return class;
        }
        let path = self.path(hop, direction, cost);
        let unknown = path.iter().map(|(id, cost)| match self.law.bottlenecks.get(id) {
            _ if self.law.leaves(*id, direction) => Unknown::Nothing,
            Some(bottleneck) => bottleneck.unknown(&self.params.law, *id, *cost),
            None => Unknown::Queue,
        });
        let class = FlowClass {
            hop,
            cost,
            path,
            bound: self.bounds(hop, direction).0,
            fair: self.law.least_of((&path, direction), |there| there.fair.rate()),
            pace: self.law.least_of((&path, direction), |there| there.fair.pace(&self.params.law)),
            unknown: unknown.max().unwrap_or(Unknown::Nothing),
            carries: self.law.carries(path[0].0).map_or(0.0, |carries| carries / path[0].1),
        };
        *before = Some(class);
        class
    }

    /// The window of one flow; `of`: flows of its direction that have one, their floors and round trips.
    fn hold_one(
        &mut self,
        (key, record): ((FlowId, Direction), &mut FlowRecord),
        params: &Params,
        (active, class): (u32, &FlowClass),
        of: &mut (u32, u64, f64),
    ) {
        let direction = key.1;
        let FlowClass { path, bound, unknown, carries, .. } = *class;
        let bound = record.bound(direction, bound);
        let base = self.base_rtt(record, bound);
        let least = if record.is_controllable() { self.law.least((&path, direction), base) } else { 0.0 };
        let Some(rate) = class.fair.map(|rate| rate.max(least)) else {
            self.actions.extend(record.open(params, active, unknown).map(|plan| set_plan(key, plan)));
            return;
        };
        let paced = params.window_updates;
        let gain = params.law.pace_gain;
        let pace = if paced { class.pace.unwrap_or(rate).max(least) } else { UNPACED * gain * rate.max(carries) };
        let bps = BitRate::from_bps_f64;
        let fair = bps(carries / f64::from(active));
        let plan = record.decide(params, bound, (bps(rate), fair, bps(pace)), paced, unknown);
        self.actions.extend(plan.map(|plan| set_plan(key, plan)));
        *of = (of.0 + 1, of.1 + u64::from(record.floor()), of.2 + base);
    }

    fn warn_of_floors(&mut self, floors: [(u32, u64, f64); 2]) {
        for (direction, (flows, floors, rtts)) in Direction::BOTH.into_iter().zip(floors) {
            let rtt = Span::from_secs_f64(rtts / f64::from(flows.max(1)));
            let pipe = self.capacity_of(direction).map_or(0, |capacity| capacity.bytes_in(rtt));
            // Where nothing is known of the hop or of the round trips, nothing is known of the pipe.
            let exceeds = pipe > 0 && floors > pipe + pipe / 4;
            let said = &mut self.too_many[direction.index()];
            if exceeds && !*said {
                let flows = flows as usize;
                self.actions.push_back(Action::Say(Decision::Floors { direction, flows, floors, pipe }));
            }
            *said = exceeds;
        }
    }

    /// What new connections begin with, and what they may advertise together.
    fn begin(&mut self, hops: &BTreeSet<HopId>) {
        for direction in Direction::BOTH {
            let known = self.begin_with(hops, direction);
            let (depth_bytes, rate_bytes) = window::start(known);
            let before = &mut self.starts[direction.index()];
            if before.0.abs_diff(depth_bytes) > before.0 / 50 || before.1.abs_diff(rate_bytes) > before.1 / 200 {
                *before = (depth_bytes, rate_bytes);
                self.actions.push_back(Action::SetStart { direction, depth_bytes, rate_bytes });
            }
        }
    }

    /// What new connections begin with, whichever hop they are over: as the hop with the most room has it. That room.
    pub(super) fn begin_with(&mut self, hops: &BTreeSet<HopId>, direction: Direction) -> Option<BitRate> {
        let known = hops.iter().filter_map(|hop| {
            let path = self.path(*hop, direction, self.law.relative_cost(*hop, direction));
            let holds = |(id, _): &&(Id, f64)| !self.law.leaves(*id, direction);
            let each = path.iter().filter(holds).filter_map(|(id, cost)| {
                let carries = self.law.carries(*id)?;
                let rate = self.law.rate(*id).or(self.law.given(*id))?;
                let room = (carries - self.law.delivered(*id)).max(LEAST * carries);
                Some([rate / cost, carries / cost, room / cost])
            });
            each.reduce(|a, b| [a[0].min(b[0]), a[1].min(b[1]), a[2].min(b[2])])
        });
        let known = known.max_by(|a, b| a[2].total_cmp(&b[2])).map(|known| known.map(BitRate::from_bps_f64));
        let plan = match known {
            _ if self.left_alone.windows.all => Plan::default(),
            None => window::first(),
            Some([share, hop, _]) => {
                let (fair, pace, base_rtt) = (BitRate::ZERO, hop.mul_f64(self.params.law.pace_gain), FIRST_RTT);
                let flow = window::Flow { share, fair, pace, base_rtt, payload_share: PAYLOAD, mss: 1448 };
                window::plan(&flow, &self.params.law)
            }
        };
        let before = &mut self.default_plans[direction.index()];
        if record::differs(before, &plan) {
            *before = plan;
            self.actions.push_back(Action::SetDefault { direction, plan });
        }
        known.map(|[_, _, room]| room)
    }

    /// The hop that most of a direction's data goes over.
    pub(super) fn main_hop(&self, direction: Direction) -> HopId {
        let ids = self.law.relative_cost.keys().map(|hop| (*hop, self.law.delivered(self.hop(*hop, direction))));
        ids.max_by(|a, b| a.1.total_cmp(&b.1)).map_or_else(HopId::default, |(hop, _)| hop)
    }

    /// The bottlenecks of most of a direction's data, and what a byte costs there.
    fn main_path(&self, direction: Direction) -> [(Id, f64); 2] {
        let hop = self.main_hop(direction);
        self.path(hop, direction, self.law.relative_cost(hop, direction))
    }

    /// The narrower of those, and what it carries, as bytes of the stations that use it now.
    fn narrowest(&self, direction: Direction) -> Option<(Id, BitRate)> {
        self.law.narrowest(&self.main_path(direction))
    }

    pub(super) fn capacity_of(&self, direction: Direction) -> Option<BitRate> {
        self.narrowest(direction).map(|(_, carries)| carries)
    }

    /// What changed that somebody should know.
    fn report_decisions(
        &mut self,
        seen: &[Seen; 2],
        (window_limited, uncontrolled): ([usize; 2], [usize; 2]),
        dt: f64,
    ) {
        for direction in Direction::BOTH {
            let i = direction.index();
            let path = self.main_path(direction);
            let narrowest = self.narrowest(direction);
            let now = narrowest.map(|(_, carries)| carries);
            let there = path.map(|(id, _)| self.law.bottlenecks.get(&id));
            let queues = there.map(|b| b.map_or(0.0, |b| b.fair.queue()));
            let measured = there.into_iter().flatten().any(Bottleneck::is_measured);
            let released = there.into_iter().flatten().all(|b| matches!(b.fair.mode, Mode::Released | Mode::Startup));
            let window_limited = window_limited[i];
            let shares = path.iter().zip(there).filter_map(|((_, cost), bottleneck)| {
                Some(bottleneck.filter(|b| b.has_standing_queue())?.fair.share_beside_uncontrolled()? / cost)
            });
            let uncontrolled = uncontrolled[i];
            let beside = shares.reduce(f64::min).filter(|_| uncontrolled > 0).map(BitRate::from_bps_f64);
            let law = self.params.law;
            let has_standing_queue = path.map(|(id, cost)| {
                let bottleneck = self.law.bottlenecks.get(&id);
                let waits = |b: &Bottleneck| b.fair.queue() >= law.quiet * b.target(&law, id, cost);
                bottleneck.is_some_and(|b| (window_limited > 0 || b.has_standing_queue()) && waits(b))
            });
            let hop = self.main_hop(direction);
            let backlog = self.link.each_hop.iter().find(|sample| sample.hop == hop).and_then(|sample| sample.backlog);
            let own = backlog.unwrap_or(0) as f64 * 8.0 * path[0].1 / self.law.carries(path[0].0).unwrap_or(f64::MAX);
            let train_bytes =
                self.law.packet_trains.get(&hop).map_or(0, |packet_trains| packet_trains[i].shown_by as u64);
            // What was given is no news.
            let found = narrowest.filter(|(id, _)| self.law.given(*id).is_none()).map(|(_, carries)| carries);
            let news = &mut self.law.news[i];
            (news.queue, news.local) = (Span::from_secs_f64(queues[0] + queues[1]), Span::from_secs_f64(queues[0]));
            if let Some(now) = found {
                let far = |before: BitRate| {
                    now.as_bps().abs_diff(before.as_bps()) as f64 > WORTH_A_LINE * before.as_bps() as f64
                };
                if news.capacity.is_none_or(far) {
                    let before = news.capacity.replace(now);
                    self.actions.push_back(Action::Say(match measured {
                        true => Decision::Capacity { direction, before, now, queue: news.queue },
                        false => Decision::Estimate { direction, capacity: now, train_bytes },
                    }));
                }
            }
            let is_own = own > 0.0 && 2.0 * own >= queues[0];
            let queued = std::mem::take(&mut self.law.queued[i]);
            self.law.waiting[i].on_interval(queued, is_own, dt);
            let place = match has_standing_queue {
                [_, true] if queues[1] > queues[0] || !has_standing_queue[0] => Some(QueuePlace::Wan),
                [true, _] if is_own => Some(QueuePlace::AccessPoint),
                [true, _] => Some(QueuePlace::Firmware),
                _ => None,
            };
            place.into_iter().for_each(|place| news.find(place, dt));
            let [local, remote] = [seen[i].local, seen[i].remote]
                .map(|queue| Span::from_secs_f64(queue.map_or(0.0, |(mean, _)| mean.max(0.0))));
            // Of a medium that both directions share, the one that sends nothing has no news.
            let waits = local.max(remote) > Span::ZERO;
            if let Some(place) = news.place.filter(|place| waits && news.said_place != Some(*place)) {
                news.said_place = Some(place);
                self.actions.push_back(Action::Say(Decision::Queue { direction, place, local, remote }));
            }
            if let Some(share) = beside.filter(|_| !news.beside) {
                self.actions.push_back(Action::Say(Decision::Beside { direction, flows: uncontrolled, share }));
            }
            news.beside = beside.is_some() || news.beside && uncontrolled > 0;
            news.idle = if window_limited > 0 { 0.0 } else { news.idle + dt };
            if !news.limits && measured && window_limited > 0 {
                news.limits = true;
                let available = now.unwrap_or_default();
                self.actions.push_back(Action::Say(Decision::Hold { direction, flows: window_limited, available }));
            } else if news.limits && (news.idle > self.params.law.release_after || released && news.idle > 0.0) {
                news.limits = false;
                // Where somebody wants windows left alone that is why, and has been said.
                if !self.left_alone.windows.all {
                    self.actions.push_back(Action::Say(Decision::Release { direction }));
                }
            }
        }
    }

    pub(super) fn shown(&self, direction: Direction) -> super::DirectionSnapshot {
        let news = &self.law.news[direction.index()];
        let narrowest = self.narrowest(direction);
        let capacity = narrowest.map(|(_, carries)| carries);
        let bottleneck = narrowest.and_then(|(id, _)| self.law.bottlenecks.get(&id));
        let (basis, spread) = bottleneck.map_or((narrowest.map(|_| Basis::Given), None), Bottleneck::basis);
        let (place, queue, local, limits) = (news.place, news.queue, news.local, news.limits);
        super::DirectionSnapshot { capacity, basis, spread, place, queue, local, limits }
    }
}

impl News {
    /// A queue is standing there. Another place is believed when it has been seen for a while.
    fn find(&mut self, place: QueuePlace, dt: f64) {
        if self.place == Some(place) {
            self.elsewhere = None;
            return;
        }
        let before = self.elsewhere.filter(|(other, _)| *other == place).map_or(0.0, |(_, time)| time);
        self.elsewhere = Some((place, before + dt));
        // The first is believed as soon as the means say something.
        let confirmed = if self.place.is_none() { PLACE_CONFIRMED / 4.0 } else { PLACE_CONFIRMED };
        if before + dt >= confirmed {
            (self.place, self.elsewhere) = (Some(place), None);
        }
    }
}

/// What shapers of the access point let pass there at most, IP bit/s: no bottleneck carries more.
fn bound(id: Id, sample: &LinkSample) -> Option<f64> {
    let shaped = match id {
        Id::Hop(hop, None | Some(Direction::ToStation)) => {
            sample.each_hop.iter().find(|each| each.hop == hop).and_then(|each| each.shaped)
        }
        Id::Hop(..) => None,
        Id::Wan(direction) => sample.wan_shaped[direction.index()],
    };
    // Of frames with 14 bytes of header.
    shaped.map(|rate| rate.as_bps() as f64 * 1500.0 / 1514.0)
}
