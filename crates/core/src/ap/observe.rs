//! What an interval showed: of the flows of each hop and direction, and from that of each bottleneck.
//!
//! Which queue is whose: what is added to a round trip between access point and station, or between access point and remote end,
//! waits on the way there or on the return path. TCP timestamps (RFC 7323) tell the return path: when a segment came, less when its sender
//! stamped it, less the least of that within the memory of round trips (the one-way delay of LEDBAT, RFC 6817). So the
//! acknowledgments of downloads that wait behind an upload are the upload's queue. Where there are no timestamps the round trip tells,
//! and the queue is of the direction in which somebody fills his window.

use std::collections::BTreeMap;

use super::bottleneck::{Bottleneck, Id};
use super::fair_rate::Observation;
use super::record::{self, FlowRecord};
use super::{Action, Ap, Direction, Duplex, HopId, LinkSample, StationId};
use crate::packet::FlowId;
use crate::units::{Span, Time};

/// What a frame costs beside its bits, s: DIFS, mean backoff, preamble, SIFS and ACK of 802.11g.
const SMALL_FRAME: f64 = 165e-6;
/// Who sends all the time pauses no longer than this part of an interval.
const PAUSE: f64 = 0.25;
/// A part of an interval: so much of it a hop was seen working.
const WORKS: f64 = 0.8;
/// Who has less than this part of what the largest has takes no part in sharing, whether he fills a small window or not. Where those that do take
/// part, too, 71 of 3,000 small homes lose work instead of 59 (`conserve.py`, seeds 1 to 3); where only they do,
/// `what_a_server_limited_flow_leaves_goes_to_the_greedy_one` fails.
const TAKES_PART: f64 = 0.1;
/// What a measured C may be off by (`learn_grid.py`: no more in 284 of 288 cells). Without it C runs away downwards
/// (`many_uploads_over_a_faster_line_keep_it_full` of the simulator).
const TOLERANCE: f64 = 0.03;
/// A round trip where none is known, as that of datagrams never is, s. With twice that p99 is worse in 58 of 607 homes and cells, and
/// better in 33.
pub(super) const USUAL_RTT: f64 = 0.1;

/// A queueing delay, s: mean and least of an interval.
type Queue = Option<(f64, f64)>;

/// What an interval showed of the flows of one direction, over one hop or all.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// IP bytes of TCP, and what they cost at the hop.
    pub(super) bytes: f64,
    pub(super) cost: f64,
    /// Queues on both sides.
    pub(super) local: Queue,
    pub(super) remote: Queue,
    /// Nobody's round trip to the station was ever without what waits there; the longest path to a station of late, s.
    hides: bool,
    pub(super) local_path: f64,
    /// Of the flow whose segments waited least on their way in, s: from the remote end, and from the station.
    inbound: [Option<f64>; 2],
    /// Least that any segment waited on its way in, s.
    soonest: [Option<f64>; 2],
    /// Of the flow whose segments, or acknowledgments, waited least on their way out: to the station, and to the remote end.
    outbound: [Option<f64>; 2],
    /// Timestamps tell that, now or in another interval.
    clocked: [bool; 2],
    /// At the hop and on the WAN link, of the flow that fills its window and waited most there, s.
    pub(super) waited: [f64; 2],
    /// Longest pause of the flow that paused least; time in which more of a flow was in flight, of all together, s.
    gap: f64,
    served: f64,
    pub(super) active: usize,
    /// Of those, the ones that fill their windows.
    filling: usize,
    /// Rates of those, together, and the largest of all, bit/s.
    filling_rate: f64,
    most: f64,
    /// IP bytes for each of payload, of the largest segments: what comes in trains is mostly of those. A connection that sends single bytes
    /// has fifty for each.
    pub(super) to_ip: f64,
    pub(super) rtt: f64,
    /// What arrives, IP bytes/s, over a round trip.
    pub(super) arrives: f64,
}

impl Row {
    /// It fills a window of data in `direction` that does not hold it, and nobody wants that so.
    pub(super) fn is_uncontrolled(&self, direction: Direction) -> bool {
        self.direction == direction
            && self.active.as_ref().is_some_and(|flow| flow.fills && flow.scale.is_none() && !flow.left_alone)
    }
}

impl Seen {
    /// A hop or line that has something to serve all the time, as far as its flows tell; `waits`: what waited at least, s.
    /// Where every one passes for that C is too low: 21 of 150 small homes lose work instead of 12, and `change` has 70 Mbit/s of 97.
    pub(super) fn is_busy(&self, at_hop: bool, direction: Direction, waits: f64, dt: f64) -> bool {
        // What downloads have in flight is between access point and station: where that is never nothing, the hop has something to serve. What
        // uploads have in flight is on a path that need not be busy: where it counted, C of a WAN link was taken for what an upload brought
        // that still grew, and one had 0.50 of its goodput (`both_ways` of the simulator).
        if at_hop && direction == Direction::ToStation {
            return self.served >= WORKS * dt;
        }
        pauses_seldom(self.gap, self.filling, waits, dt)
    }
}

/// So long a pause of one of `filling` flows left no bottleneck empty; `waits`: what waited at least, s. A queue that is longer than any pause
/// never ran dry: without it C of a slow WAN link is not measured (`slow_lines` of the simulator).
pub(super) fn pauses_seldom(gap: f64, filling: usize, waits: f64, dt: f64) -> bool {
    gap <= pause(filling, dt).max(waits)
}

/// Who sends all the time pauses no longer, s; of several flows each has to wait for the others.
fn pause(filling: usize, dt: f64) -> f64 {
    PAUSE * dt * filling.max(1) as f64
}

fn least(old: Queue, new: Queue) -> Queue {
    match (old, new) {
        (Some(old), Some(new)) => Some((old.0.min(new.0), old.1.min(new.1))),
        (old, new) => old.or(new),
    }
}

fn longer(a: Queue, b: Queue) -> Queue {
    match (a, b) {
        (Some(a), Some(b)) => Some(if a.0 > b.0 { a } else { b }),
        (a, b) => a.or(b),
    }
}

fn sooner(queue: Queue, by: Option<f64>) -> Queue {
    let by = by.unwrap_or(0.0);
    queue.map(|(mean, least)| (mean - by, least - by))
}

/// What waits at the last hop for data of each direction. Downloads: their round trip to the station, less what their
/// acknowledgments waited. Uploads: what their data waited, as their timestamps tell.
///
/// `packet`: what a full one takes, s: the handshake that tells the path is shorter by as much.
fn at_hop([down, up]: &[Seen; 2], packet: f64) -> [Queue; 2] {
    let downloads = sooner(down.local, down.inbound[1]);
    let uploads = match up.clocked[1] {
        true => {
            // Clocks drift, so that their least is forgotten, and a queue that is never empty becomes the least; the least round trip is not.
            let acknowledged = downloads.map_or(0.0, |(mean, _)| mean.max(0.0));
            // Of who sends a little now and then it tells the pause.
            let tells = up.filling_rate > TAKES_PART * down.most.max(up.most);
            let stands = up.local.filter(|_| tells).map_or(0.0, |(_, least)| least - acknowledged);
            up.inbound[1].map(|queue| (queue.max(stands) - packet, queue.max(stands) - packet))
        }
        // Their acknowledgments wait behind downloads.
        false => sooner(up.local, down.local.map(|(mean, _)| mean.max(0.0))),
    };
    [downloads, uploads]
}

/// The same on the WAN link; `used`: somebody fills his window.
fn on_wan([down, up]: &[Seen; 2], used: [bool; 2], packet: f64) -> [Queue; 2] {
    let own = |i: usize, queue| if !used[i] && used[1 - i] { (0.0, 0.0) } else { queue };
    let from_servers = match down.clocked[0] {
        true => down.inbound[0].map(|queue| (queue - packet, queue - packet)),
        false => down.remote.map(|queue| own(0, queue)),
    };
    let to_servers = |seen: &Seen| match seen.clocked[0] {
        // No more than the shortest round trip of the interval lasted longer than the path waited on the way out of it.
        true => match seen.outbound[1] {
            Some(queue) => Some((queue, queue.min(seen.remote.map_or(queue, |(_, least)| least)))),
            None => seen.remote,
        },
        false => seen.remote.map(|queue| own(1, queue)),
    };
    [from_servers, to_servers(if up.active > 0 { up } else { down })]
}

/// What the newest sample of a flow showed.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) direction: Direction,
    pub(super) hop: HopId,
    pub(super) station: StationId,
    path: [(Id, f64); 2],
    /// IP bytes.
    arrived: f64,
    /// None of one that has moved no payload lately.
    pub(super) active: Option<Active>,
}

/// See the methods of [`FlowRecord`] of these names; times in s.
#[derive(Debug)]
pub(super) struct Active {
    to_ip: f64,
    base: f64,
    rtt: f64,
    served: f64,
    gap: f64,
    fills: bool,
    local: Queue,
    hides: bool,
    local_path: f64,
    remote: Queue,
    inbound: [Option<f64>; 2],
    soonest: [Option<f64>; 2],
    outbound: [Option<f64>; 2],
    clocked: [bool; 2],
    /// On the WAN link, each way.
    knows_path: [bool; 2],
    pub(super) rate: f64,
    window: f64,
    waits: f64,
    arrives: f64,
    /// `None`: not known, or it does not hold it.
    scale: Option<u8>,
    /// Somebody wants its windows left alone.
    left_alone: bool,
    is_controlled: bool,
    /// By its window or its pace.
    is_window_limited: bool,
}

impl Active {
    /// It sends all the time. A request that follows a response tells the time that somebody thought: only who does answers an ACK.
    fn sends(&self, filling: usize, dt: f64) -> bool {
        self.fills || self.gap <= pause(filling, dt) || self.served >= WORKS * dt
    }

    /// What it waited on the WAN link, s, as timestamps tell where there are some.
    fn waited(&self, direction: Direction) -> Option<f64> {
        match direction {
            Direction::ToStation if self.clocked[0] => self.inbound[0],
            Direction::ToRemote if self.clocked[0] => self.outbound[1],
            _ => self.remote.map(|(mean, _)| mean),
        }
    }

    /// What it waited at the hop at least; what comes from there only as timestamps tell.
    fn waited_at_hop(&self, direction: Direction) -> Option<f64> {
        match direction {
            Direction::ToStation => self.local.map(|(_, least)| least),
            Direction::ToRemote => self.inbound[1].filter(|_| self.clocked[1]),
        }
    }
}

/// Flows of `direction`, over `hop` where one is given.
pub(super) fn see(rows: &[Row], hop: Option<HopId>, direction: Direction, dt: f64) -> Seen {
    let mut seen = Seen { gap: f64::MAX, hides: true, ..Seen::default() };
    let rows = rows.iter().filter(|row| row.direction == direction && hop.is_none_or(|hop| row.hop == hop));
    let filling = rows.clone().filter(|row| row.active.as_ref().is_some_and(|flow| flow.fills)).count();
    seen.filling = filling;
    // A connection that began behind a queue takes that for its path: who has met an empty one tells, where there is one.
    let active = || rows.clone().filter_map(|row| row.active.as_ref());
    let known = Direction::BOTH.map(|of| {
        active().any(|flow| flow.sends(filling, dt) && flow.knows_path[of.index()] && flow.waited(of).is_some())
    });
    let mut somebody_sends = false;
    for row in rows {
        seen.bytes += row.arrived;
        seen.cost += row.arrived * row.path[0].1;
        let Some(flow) = &row.active else { continue };
        seen.active += 1;
        seen.to_ip = if seen.active == 1 { flow.to_ip } else { seen.to_ip.min(flow.to_ip) };
        seen.local_path = seen.local_path.max(flow.local_path);
        seen.rtt += flow.base;
        seen.arrives += flow.arrives;
        seen.served += flow.served;
        seen.most = seen.most.max(flow.rate);
        seen.filling_rate += if flow.fills { flow.rate } else { 0.0 };
        seen.gap = seen.gap.min(flow.gap);
        let sends = flow.sends(filling, dt);
        let tells = [0, 1].map(|of| flow.knows_path[of] || !known[of]);
        // Who sends a segment now and then waits for the timer of its receiver's acknowledgment.
        if sends {
            seen.local = least(seen.local, flow.local);
            seen.hides &= flow.hides;
            seen.remote = least(seen.remote, flow.remote.filter(|_| tells[direction.index()]));
        }
        if flow.fills {
            let timed = direction == Direction::ToRemote || flow.clocked[0];
            for (most, waited) in
                seen.waited.iter_mut().zip([flow.waited_at_hop(direction), flow.waited(direction).filter(|_| timed)])
            {
                *most = most.max(waited.unwrap_or(0.0));
            }
        }
        // Who sends all the time has met an emptier one than who sends now and then.
        if sends && !somebody_sends {
            (seen.inbound, seen.soonest, seen.outbound, somebody_sends) = ([None; 2], [None; 2], [None; 2], true);
        }
        for direction in Direction::BOTH.map(Direction::index).into_iter().filter(|_| sends || !somebody_sends) {
            let least = |old: Option<f64>, new| [old, new].into_iter().flatten().reduce(f64::min);
            if tells[0] || direction == 1 {
                seen.inbound[direction] = least(seen.inbound[direction], flow.inbound[direction]);
                seen.soonest[direction] = least(seen.soonest[direction], flow.soonest[direction]);
            }
            if sends && (tells[1] || direction == 0) {
                seen.outbound[direction] = least(seen.outbound[direction], flow.outbound[direction]);
            }
            seen.clocked[direction] |= flow.clocked[direction];
        }
    }
    seen.rtt = if seen.active > 0 { seen.rtt / seen.active as f64 } else { USUAL_RTT };
    seen
}

impl Ap {
    /// The bottleneck of a hop for data of a direction; a medium that both share is one.
    pub(super) fn hop(&self, hop: HopId, direction: Direction) -> Id {
        let duplex = self.duplex.get(&hop).copied().unwrap_or(self.params.duplex);
        Id::Hop(hop, (duplex == Duplex::Full).then_some(direction))
    }

    /// The bottlenecks of a path, and what a byte costs at each.
    pub(super) fn path(&self, hop: HopId, direction: Direction, cost: f64) -> [(Id, f64); 2] {
        [(self.hop(hop, direction), cost), (Id::Wan(direction), 1.0)]
    }

    pub(super) fn path_of(&self, record: &FlowRecord, direction: Direction) -> [(Id, f64); 2] {
        self.path(record.hop(), direction, self.costs.of(record.hop(), record.station()))
    }

    /// Into `rows`, what each flow showed in an interval of `dt`, but for those that have been silent for long. Each is visited once: their
    /// records are more than a processor's cache holds.
    pub(super) fn see_flows(&mut self, rows: &mut Vec<Row>, now: Time, dt: f64) {
        let packet = self.law.packet(Id::Wan(Direction::ToRemote));
        let mut flows = std::mem::take(&mut self.flows);
        let wan = Direction::BOTH.map(|direction| match self.law.bottlenecks.get(&Id::Wan(direction)) {
            Some(wan) => (wan.delivered(), wan.is_empty()),
            None => (0.0, true),
        });
        // Of the hop of the flow before, of each direction: nearly all flows are over one.
        let mut bounds = [None; 2];
        let known = std::mem::take(&mut self.law.nearest);
        let row = |(&(flow, direction), record): (&(FlowId, Direction), &mut Box<FlowRecord>)| {
            if !record.age(now, self.left_alone.windows.has(record.station())) {
                return None;
            }
            record.remember(dt);
            record.on_wan(wan, dt);
            record.set_packet(if direction == Direction::ToRemote { packet } else { 0.0 });
            let scale = record.find_scale(dt);
            self.actions.extend(scale.map(|scale| Action::SetScale { flow, direction, scale }));
            let (hop, station) = (record.hop(), record.station());
            let shared = matches!(self.hop(hop, direction), Id::Hop(_, None));
            if record.is_active()
                && let Some(nearest) = record.share_nearest(known.get(&station).copied())
            {
                self.law.nearest.entry(station).and_modify(|least| *least = nearest.min(*least)).or_insert(nearest);
            }
            let before: &mut Option<(HopId, (Span, f64))> = &mut bounds[direction.index()];
            let (bound, empty) = match *before {
                Some((of, bounds)) if of == hop => bounds,
                _ => before.insert((hop, self.bounds(hop, direction))).1,
            };
            let queues = record.keep_queues(record.bound(direction, bound));
            record.on_returning(shared, dt);
            Some(self.row(record, direction, (bound, empty), queues))
        };
        rows.clear();
        rows.extend(flows.iter_mut().filter_map(row));
        self.flows = flows;
    }

    fn row(
        &self,
        record: &FlowRecord,
        direction: Direction,
        (bound, empty): (Span, f64),
        [local, remote]: [Queue; 2],
    ) -> Row {
        let hop = record.hop();
        let active = record.is_active().then(|| {
            let bound = record.bound(direction, bound);
            let base = self.base_rtt(record, bound);
            Active {
                to_ip: record.to_ip(),
                base,
                rtt: record.rtt(),
                served: record.served(),
                gap: record.gap(),
                fills: record.fills_its_window(),
                local,
                hides: record.hides(empty),
                local_path: record.local_path(),
                remote,
                inbound: Direction::BOTH.map(|direction| record.inbound(direction)),
                soonest: Direction::BOTH.map(|direction| record.soonest(direction)),
                outbound: Direction::BOTH.map(|direction| record.outbound(direction)),
                clocked: Direction::BOTH.map(|direction| record.is_clocked(direction)),
                knows_path: record.knows_path(),
                rate: record.rate().as_bps() as f64,
                window: record.window(),
                waits: record.waits(base),
                arrives: record.arrives(),
                scale: record.scale(),
                left_alone: record.is_left_alone(),
                is_controlled: record.is_controlled(),
                is_window_limited: record.is_controlled() && (record.is_window_limited() || record.is_paced()),
            }
        });
        let station = record.station();
        Row { direction, hop, station, path: self.path_of(record, direction), arrived: record.arrived(), active }
    }

    /// A minimum RTT to the station above the first, s, holds a queue that stood all the time; one below the second was an empty hop's.
    pub(super) fn bounds(&self, hop: HopId, direction: Direction) -> (Span, f64) {
        let id = self.hop(hop, direction);
        let cost = self.law.relative_cost(hop, direction);
        let law = &self.params.law;
        let (longest, period) = match self.law.bottlenecks.get(&id) {
            Some(bottleneck) => (bottleneck.paths(law, id, cost).1, bottleneck.period()),
            None => (law.queue_target, 0.0),
        };
        (Span::from_secs_f64(longest), law.queue_target + period)
    }

    pub(super) fn base_rtt(&self, record: &FlowRecord, bound: Span) -> f64 {
        record.base_rtt(&self.params, bound).map_or(USUAL_RTT, Span::as_secs_f64)
    }

    /// What each bottleneck showed, of which `seen` is what the flows of each hop showed, and `wan` those of each direction.
    pub(super) fn observe(
        &mut self,
        rows: &[Row],
        seen: &BTreeMap<HopId, [Seen; 2]>,
        wan: &[Seen; 2],
        samples: (&LinkSample, &LinkSample),
        dt: f64,
    ) -> BTreeMap<Id, Observation> {
        let mut observed = BTreeMap::new();
        for direction in Direction::BOTH {
            observed.insert(Id::Wan(direction), Observation { hides: true, ..Observation::default() });
            for hop in seen.keys() {
                observed.insert(self.hop(*hop, direction), Observation::default());
            }
        }
        self.find_largest(rows, &mut observed);
        self.count_datagrams(&mut observed, samples, dt);
        self.count_flows(rows, &mut observed, dt);
        let mains = Direction::BOTH.map(|direction| self.main_hop(direction));
        for (hop, seen) in seen {
            let sample = samples.1.each_hop.iter().find(|sample| sample.hop == *hop);
            let backlog = sample.and_then(|sample| sample.backlog);
            let fair_queue = sample.and_then(|sample| sample.fair_queue);
            let packet = self.law.packet(self.hop(*hop, Direction::ToRemote));
            // On a medium that both share what ACKs wait is its own queue. Paced there as well, an upload beside a busy neighbour has 51 Mbit/s instead of
            // 60 (`homes-2026/busy-neighbour`, seed 5).
            let ways = Direction::BOTH.map(|direction| self.hop(*hop, direction));
            let both_ways = ways[0] != ways[1] && self.are_used(seen, ways);
            for (direction, queue) in Direction::BOTH.into_iter().zip(at_hop(seen, packet)) {
                let id = self.hop(*hop, direction);
                let (cost, of) = (self.law.relative_cost(*hop, direction), &seen[direction.index()]);
                let carries = self.law.carries(id).unwrap_or(0.0).max(self.law.delivered(id)).max(1e5);
                let own = backlog.map(|backlog| backlog as f64 * 8.0 * cost / carries);
                if direction == Direction::ToStation {
                    let longest = own.zip(fair_queue).map(|(own, below)| own + below.as_secs_f64());
                    self.law.at(id).on_downloads(queue.map(|(_, least)| least), of.filling, longest, dt);
                }
                if self.law.leaves(id, direction) {
                    continue;
                }
                let mut backlogged = false;
                let queue = match (queue, own) {
                    // Nobody answered: what waits in the access point's own queue tells.
                    (None, Some(own)) if self.takes_bulk_of_datagrams(*hop, direction) => {
                        backlogged = true;
                        Some((own, own))
                    }
                    (queue, _) => queue,
                };
                if *hop == mains[direction.index()] {
                    self.law.queued[direction.index()].hop = queue.map(|(mean, _)| mean);
                }
                let bottleneck = self.law.at(id);
                bottleneck.on_local_path(seen[0].local_path.max(seen[1].local_path));
                let target = bottleneck.target(&self.params.law, id, cost);
                let period = bottleneck.period();
                let (path, longest) = bottleneck.paths(&self.params.law, id, cost);
                let x: &mut Observation = observed.entry(id).or_default();
                x.both_ways = both_ways;
                if id == Id::Hop(*hop, Some(Direction::ToRemote)) {
                    x.soonest = seen[1].soonest[1].map(|queue| queue - packet);
                }
                x.queue = longer(x.queue, queue);
                x.timed = longer(x.timed, queue.filter(|_| !backlogged));
                // Timestamps of the station's data tell what uploads have waiting.
                let hides = of.filling > 0 && of.hides && !(direction == Direction::ToRemote && of.clocked[1]);
                x.hides |= hides;
                x.doubtful |= hides && longest <= path;
                x.backlogged |= backlogged;
                x.target = x.target.max(target);
                x.period = period;
            }
        }
        let used = Direction::BOTH.map(|direction| observed[&Id::Wan(direction)].filling > 0);
        let packet = self.law.packet(Id::Wan(Direction::ToStation));
        for (direction, queue) in Direction::BOTH.into_iter().zip(on_wan(wan, used, packet)) {
            let id = Id::Wan(direction);
            let target = self.law.at(id).target(&self.params.law, id, 1.0);
            let x = observed.entry(id).or_default();
            x.both_ways = self.are_used(wan, Direction::BOTH.map(Id::Wan));
            if direction == Direction::ToStation {
                x.soonest = wan[0].soonest[0].map(|queue| queue - packet);
            }
            let in_flight = if direction == Direction::ToRemote { self.in_flight(rows, x) } else { None };
            // What their acknowledgments wait behind data of the other direction is counted as theirs: no more waits than was timed. Without it 21
            // of 200 directions of drawn asymmetric lines lose instead of 12 (`both_ways.py --drawn 100`).
            let in_flight = in_flight.map(|(mean, least)| {
                let (longest, timed) = queue.unwrap_or((mean, least));
                (if x.both_ways { mean.min(longest) } else { mean }, least.min(timed))
            });
            self.law.queued[direction.index()].wan = in_flight.or(queue).map(|(mean, _)| mean);
            (x.queue, x.timed, x.target, x.counted) = (in_flight.or(queue), queue, target, in_flight.is_some());
        }
        observed
    }

    /// What uploads have waiting before the WAN link (Little's law): all of theirs that is in flight, less what an empty path of their
    /// rate would hold. Round trips tell that in steps of a packet, once a round trip; so it is taken where what is not known of C
    /// makes a smaller error than a packet.
    fn in_flight(&self, rows: &[Row], x: &Observation) -> Queue {
        let id = Id::Wan(Direction::ToRemote);
        let measured = self.law.bottlenecks.get(&id).is_some_and(Bottleneck::is_measured);
        if !measured || x.filling == 0 || TOLERANCE * x.base_rtt >= self.law.packet(id) {
            return None;
        }
        let rows = rows.iter().filter(|row| row.direction == Direction::ToRemote);
        let waits: f64 = rows.filter_map(|row| row.active.as_ref()).map(|flow| flow.waits).sum();
        let queue = waits * 8.0 / self.law.carries(id)?;
        Some((queue, queue))
    }

    /// In each direction somebody fills his window or takes part in sharing what the bottleneck carries; where that is not known, what the busier
    /// one delivers (`an_upload_over_a_wan_link_that_nothing_is_known_of_counts_as_used` of the simulator: a game waits 39 ms without it).
    fn are_used(&self, seen: &[Seen; 2], ids: [Id; 2]) -> bool {
        let busier = ids.map(|id| self.law.delivered(id)).into_iter().fold(0.0, f64::max);
        let carries = |id| self.law.carries(id).unwrap_or(busier);
        seen.iter().zip(ids).all(|(of, id)| of.filling > 0 || of.most > TAKES_PART * carries(id))
    }

    fn takes_bulk_of_datagrams(&self, hop: HopId, direction: Direction) -> bool {
        direction == Direction::ToStation
            && self.udp_flows.elastic().any(|demand| demand.hop == hop && demand.direction == direction)
    }

    /// The rate of the largest elastic flow of each bottleneck.
    fn find_largest(&self, rows: &[Row], observed: &mut BTreeMap<Id, Observation>) {
        for (row, flow) in rows.iter().filter_map(|row| Some((row, row.active.as_ref()?))) {
            for (id, cost) in row.path.into_iter().filter(|(id, _)| !self.law.leaves(*id, row.direction)) {
                let x = observed.entry(id).or_default();
                x.on_elastic(flow.rate * cost, flow.base);
            }
        }
        for demand in self.udp_flows.elastic() {
            let cost = self.costs.of(demand.hop, demand.station);
            for (id, cost) in self.path(demand.hop, demand.direction, cost) {
                let x = observed.entry(id).or_default();
                x.on_elastic(demand.rate.as_bps() as f64 * cost, USUAL_RTT);
            }
        }
    }

    /// UDP of an interval: what was delivered, and what cannot give way.
    fn count_datagrams(
        &mut self,
        observed: &mut BTreeMap<Id, Observation>,
        (before, now): (&LinkSample, &LinkSample),
        dt: f64,
    ) {
        let inelastic = self.inelastic();
        for (i, direction) in Direction::BOTH.into_iter().enumerate() {
            // What was dropped has come over what comes before the access point.
            let came = |id: Id, dropped: u64| if id.comes_before(direction) { dropped as f64 } else { 0.0 };
            let id = Id::Wan(direction);
            let wan = observed.entry(id).or_default();
            let bytes = now.udp_bytes[i].saturating_sub(before.udp_bytes[i]) as f64;
            wan.delivered += (bytes + came(id, self.udp_flows.dropped(direction))) * 8.0 / dt;
            wan.inelastic += inelastic[i];
            for sample in &now.each_hop {
                let Some(was) = before.each_hop.iter().find(|was| was.hop == sample.hop) else { continue };
                let id = self.hop(sample.hop, direction);
                let udp = sample.udp_bytes[i].saturating_sub(was.udp_bytes[i]) as f64;
                let carried = self.udp_flows.carried(sample.hop, direction);
                let besides = carried.map(|(station, passed, dropped)| {
                    let dropped = came(id, dropped);
                    (self.costs.of(sample.hop, station) - 1.0) * (passed as f64 + dropped) + dropped
                });
                let cost = udp + besides.sum::<f64>();
                let carries = self.law.carries(id).unwrap_or(0.0);
                let mut small = 0.0;
                if sample.duplex == Duplex::Half {
                    let (packets, elastic) = self.udp_flows.of_elastic(sample.hop, direction);
                    let all = sample.udp_packets[i].saturating_sub(was.udp_packets[i]);
                    // As many full ones would cost no more than their bytes tell.
                    let full = (udp - elastic as f64).max(0.0) / 1500.0;
                    small = (all.saturating_sub(packets) as f64 - full).max(0.0) * SMALL_FRAME * carries;
                }
                let part = if bytes > 0.0 { udp / bytes } else { 0.0 };
                let x = observed.entry(id).or_default();
                x.delivered += (cost * 8.0 + small) / dt;
                x.inelastic += inelastic[i] * part * self.law.relative_cost(sample.hop, direction) + small / dt;
            }
        }
        for demand in self.udp_flows.elastic() {
            let path = self.path(demand.hop, demand.direction, self.costs.of(demand.hop, demand.station));
            let binds = self.law.binding(&path, demand.direction);
            for (id, cost) in path {
                let leaves = self.law.leaves(id, demand.direction);
                let without_queue = 1.0 / self.law.bottlenecks.get(&id).map_or(1.0, |there| there.fair.brings());
                let x = observed.entry(id).or_default();
                let rate = demand.rate.as_bps() as f64 * cost;
                let least = [x.pause, demand.pause.map(Span::as_secs_f64)];
                x.pause = least.into_iter().flatten().reduce(f64::min);
                x.beginning += 1;
                if rate <= TAKES_PART * x.most {
                    continue;
                }
                x.elastic += 1;
                x.datagrams += 1;
                x.unlimited += usize::from(!demand.is_window_limited && !leaves);
                if demand.is_window_limited && !leaves {
                    x.filling += 1;
                    x.window_limited += usize::from(binds == Some(id));
                    // As of windows, what is in force counts, and what it would bring without a queue: a sender that was told of it comes back to it in time.
                    let in_force = demand.share.map_or(0.0, |share| share.as_bps() as f64 * cost);
                    x.widest = x.widest.max(rate.max(in_force) * without_queue);
                }
            }
        }
    }

    /// Rates of UDP that cannot give way, by direction, bit/s: of all, less of who is elastic now, filtered alike, so that nothing of
    /// the latter is left when it is found.
    fn inelastic(&self) -> [f64; 2] {
        Direction::BOTH.map(|direction| {
            let all = self.udp_each[direction.index()].smooth();
            all.saturating_sub(self.udp_flows.elastic_rate(direction)).as_bps() as f64
        })
    }

    fn count_flows(&self, rows: &[Row], observed: &mut BTreeMap<Id, Observation>, dt: f64) {
        // So far what datagrams did.
        observed.values_mut().for_each(|x| x.brought = x.delivered);
        for row in rows {
            let arrived = row.arrived * 8.0 / dt;
            for (id, cost) in row.path {
                observed.entry(id).or_default().delivered += arrived * cost;
            }
            let Some(flow) = &row.active else { continue };
            let binds = self.law.binding(&row.path, row.direction);
            for (id, cost) in row.path {
                let x = observed.entry(id).or_default();
                let fair = self.law.rate(id);
                let elastic = flow.rate * cost > TAKES_PART * x.most;
                x.elastic += usize::from(elastic);
                x.beginning += usize::from(elastic || flow.fills);
                if self.law.leaves(id, row.direction) {
                    x.brought += arrived * cost;
                    continue;
                }
                if elastic {
                    x.windows += flow.window * cost;
                    let held = fair.map_or(f64::MAX, |fair| fair / cost * flow.base / 8.0);
                    x.uncontrolled += usize::from(!record::can_be_advertised(flow.scale, held));
                }
                let window = flow.window * 8.0 / flow.base * cost;
                // Where an interval is longer than the path, what was advertised in most of it has arrived in it, or nobody had it to send. Without it
                // requests over short paths pass for windows (`work_conservation` of the simulator).
                let later = if flow.fills && arrived > 0.0 { (flow.base / dt).min(1.0) } else { 0.0 };
                let brings = arrived * cost + (window - arrived * cost) * later;
                x.brought += brings;
                x.served += flow.served;
                if flow.fills {
                    x.filling += 1;
                    x.timed_flows += 1;
                    x.base_rtt += flow.base;
                    x.rtt += flow.rtt;
                    x.widest = x.widest.max(window);
                    if !flow.is_window_limited && flow.is_controlled && binds == Some(id) {
                        x.advertised += (fair.unwrap_or(0.0) - window).max(0.0);
                    }
                }
                if flow.is_window_limited && binds == Some(id) {
                    x.window_limited += 1;
                    x.held += brings;
                }
            }
        }
        for x in observed.values_mut() {
            x.rtt /= x.timed_flows.max(1) as f64;
            x.base_rtt = match x.timed_flows {
                0 if x.most > 0.0 => x.base_of_largest,
                0 => USUAL_RTT,
                flows => x.base_rtt / flows as f64,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(remote: f64, ways: Option<[f64; 2]>) -> Seen {
        let inbound = [ways.map(|[inbound, _]| inbound), None];
        let outbound = [None, ways.map(|[_, outbound]| outbound)];
        let clocked = [ways.is_some(), false];
        Seen { remote: Some((remote, remote)), inbound, outbound, clocked, active: 1, ..Seen::default() }
    }

    #[test]
    fn timestamps_tell_which_direction_of_the_wan_link_queues() {
        // 40 ms of round trip too much, of which 5 ms were on the way in; what was answered last waited 34 on its way out.
        let both = [seen(0.04, Some([0.005, 0.034])); 2];
        let [down, up] = on_wan(&both, [true; 2], 0.001).map(|queue| queue.map_or(0.0, |(mean, _)| mean * 1e3));
        assert!((down - 4.0).abs() < 1e-9 && (up - 34.0).abs() < 1e-9, "{down} {up}");
    }

    #[test]
    fn without_timestamps_the_queue_is_of_the_direction_that_is_used() {
        let both = [seen(0.04, None); 2];
        let means = |used| on_wan(&both, used, 0.0).map(|queue| queue.map_or(0.0, |(mean, _)| mean));
        assert_eq!(means([false, true]), [0.0, 0.04]);
        assert_eq!(means([true, false]), [0.04, 0.0]);
        assert_eq!(means([true, true]), [0.04, 0.04]);
    }

    #[test]
    fn acknowledgments_that_wait_at_a_station_are_no_queue_of_downloads() {
        let down = Seen { local: Some((0.03, 0.02)), inbound: [None, Some(0.015)], active: 1, ..Seen::default() };
        let up = Seen { inbound: [None, Some(0.025)], clocked: [false, true], active: 1, ..Seen::default() };
        let [down, up] = at_hop(&[down, up], 0.001).map(|queue| queue.map_or(0.0, |(mean, _)| mean));
        assert!((down - 0.015).abs() < 1e-9 && (up - 0.024).abs() < 1e-9, "{down} {up}");
    }
}
