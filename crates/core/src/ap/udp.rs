//! UDP flows: what each is taken for, what it has and wants, and the plan that holds an elastic one to its share.
//!
//! ```text
//! rate   = share x m                                          [bit/s]     m: integral of (1 - what passes / share) / 4 s, from 1 to 4/3
//! depth  = max(12 full packets, 10 ms of the share)           [bytes]
//! answer = two usual round trips, and what waits              [s]
//! most   = 2 depth; depth + share x answer                    [bytes]     where the bottleneck comes before the access point
//! ```
//!
//! What is dropped before the bottleneck never waits there. Behind it a drop tells, and no more: what waits has come already.
//!
//! The virtual queue that a plan describes stands in [`crate::fastpath::udp`], what a flow is taken for in
//! [`crate::elastic`]. A flow below its share keeps its virtual queue empty, so it is not touched whatever it is; one that
//! is not elastic has no plan at all. `m` makes the mean of a sender
//! the share: a window that saws between where it is cut and half of that (NewReno; CUBIC: 7/10) has 3/4 of it in the mean.
//!
//! A tunnel (WireGuard, OpenVPN, IPsec) may carry a call beside a download. What it carried in the second before it was taken for
//! elastic, or the one before that where it was less, for the bulk may have come in the newer one, is never taken from it.
//!
//! Where the queue is fair by itself (CHAP), it divides what there is, and no plan is made: nothing is marked or dropped.
//!
//! Not done: the round trip of a UDP flow is not known, so its queue cannot be told from its path; what waits is told by
//! TCP flows beside it, or by the backlog.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use super::{Decision, HopId, StationId};
use crate::elastic::{Behaviour, Classifier, HopLoad, Interval, Why};
use crate::fastpath::layout::{UdpHalf, UdpPlan, UdpState};
use crate::meter::rate::LowPass;
use crate::packet::{Direction, FlowId};
use crate::units::{BitRate, Span, Time};

/// What a UDP flow was seen to do so far.
#[derive(Clone, Copy, Debug)]
pub struct UdpSample {
    /// The host's name for it; UDP and TCP flows share the names.
    pub flow: FlowId,
    /// The station at its end.
    pub station: StationId,
    /// The hop behind which the station is, as for a connection.
    pub hop: HopId,
    /// The tunnel, if it is one; what travels in it is not seen.
    pub tunnel: Option<Tunnel>,
    /// What the fast path holds of it.
    pub state: UdpState,
}

/// A tunnel over UDP, by the port that it usually has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tunnel {
    /// Port 51820.
    WireGuard,
    /// Port 1194 (IANA).
    OpenVpn,
    /// Behind NAT, port 4500 (RFC 3948).
    Ipsec,
}

impl Tunnel {
    /// Of a flow between these ports.
    #[must_use]
    pub fn of_ports(ports: [u16; 2]) -> Option<Self> {
        ports.into_iter().find_map(|port| match port {
            51_820 => Some(Self::WireGuard),
            1_194 => Some(Self::OpenVpn),
            4_500 => Some(Self::Ipsec),
            _ => None,
        })
    }
}

impl fmt::Display for Tunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WireGuard => "WireGuard",
            Self::OpenVpn => "OpenVPN",
            Self::Ipsec => "IPsec",
        })
    }
}

/// An elastic flow that wants a share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UdpLimit {
    /// The host's name for it.
    pub flow: FlowId,
    /// Direction of its data.
    pub direction: Direction,
    /// The station at its end, and the hop that leads to it.
    pub station: StationId,
    /// See there.
    pub hop: HopId,
    /// What passed of late, IP bits per second.
    pub rate: BitRate,
    /// What it may have; `None`: all it can get.
    pub share: Option<BitRate>,
    /// It takes all it can get.
    pub is_window_limited: bool,
    /// Time of the newest interval in pauses between its packets; `None`: none came.
    pub pause: Option<Span>,
}

/// One direction of one UDP flow, for status and report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UdpSnapshot {
    /// The host's name for it.
    pub flow: FlowId,
    /// Direction of its data.
    pub direction: Direction,
    /// The tunnel, if it is one.
    pub tunnel: Option<Tunnel>,
    /// What it is taken for.
    pub behaviour: Behaviour,
    /// Why.
    pub why: Why,
    /// What passes, IP bits per second, filtered.
    pub rate: BitRate,
    /// What passed so far, IP bytes.
    pub bytes: u64,
    /// What it may use; `None` where it is not held.
    pub share: Option<BitRate>,
    /// The plan in force.
    pub plan: UdpPlan,
    /// Packets that were marked so far.
    pub marked: u32,
    /// Packets that were dropped so far.
    pub dropped: u32,
}

/// Twelve full packets: what a sender paces in one go, with room (ten, RFC 9002 section 7.7).
const LEAST_DEPTH: u32 = 18_000;
/// A standing queue of a game's patience.
const DEPTH: Span = Span::from_millis(10);
/// Weight of the newest rate, per second of interval: the mean of about a second.
pub(super) const RATE_WEIGHT_PER_SECOND: f64 = 2.0;
/// Silent for this long, it wants nothing.
const IDLE_AFTER: Span = Span::from_millis(1_000);
/// What its saw takes off the mean of a sender that halves, at most; and over how long the mean is, s: a tooth of CUBIC over a usual path
/// (RFC 9438 section 5.1: 3 s for 33 packets). Without it QUIC beside TCP has 0.8 to 1.25 of what that has in half of the drawn homes
/// (`quic.py`) instead of nine of ten.
pub(super) const MOST_OF_MEAN: f64 = 4.0 / 3.0;
const MEAN_OVER: f64 = 4.0;
/// Plans that differ by less are the same.
const WORTH_A_CALL: f64 = 0.01;

/// How a flow answers what it is told.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// In so long.
    pub within: Span,
    /// Its packets have been in the queue of its bottleneck when they come.
    pub queue_is_before: bool,
}

#[derive(Debug)]
struct UdpDirection {
    classifier: Classifier,
    rate: LowPass,
    /// What its bottlenecks were like when it was looked at last.
    load: HopLoad,
    /// Time since it last sent.
    silent: Span,
    /// Of the newest interval: IP bytes, those that were dropped, packets, and time in pauses.
    passed: u64,
    dropped: u64,
    packets: u64,
    pause: Span,
    /// While it was not elastic: bytes and s of the second that lasts, and rates of the two before, bit/s.
    lasts: [f64; 2],
    carried: [f64; 2],
    /// What makes its mean the share.
    of_mean: f64,
    share: Option<BitRate>,
    plan: UdpPlan,
    /// Somebody has been shown that it was told of its plan.
    shown: bool,
}

#[derive(Debug)]
struct UdpRecord {
    station: StationId,
    hop: HopId,
    tunnel: Option<Tunnel>,
    before: UdpState,
    at: Time,
    half: [UdpDirection; 2],
}

/// All UDP flows that ever sent a full packet.
#[derive(Debug)]
pub struct UdpFlows {
    /// The queue of the hop is fair to flows by itself (CHAP): no flow is marked or dropped.
    queue_is_fair: bool,
    flows: BTreeMap<FlowId, UdpRecord>,
    decisions: VecDeque<Decision>,
}

impl UdpDirection {
    fn new(quic: bool) -> Self {
        Self {
            classifier: if quic { Classifier::of_quic() } else { Classifier::default() },
            rate: LowPass::new(RATE_WEIGHT_PER_SECOND),
            load: HopLoad::default(),
            silent: Span::MAX,
            passed: 0,
            dropped: 0,
            packets: 0,
            pause: Span::ZERO,
            lasts: [0.0; 2],
            carried: [0.0; 2],
            of_mean: 1.0,
            share: None,
            plan: UdpPlan::default(),
            shown: false,
        }
    }

    fn is_elastic(&self) -> bool {
        self.classifier.behaviour() == Behaviour::Elastic
    }

    fn is_active(&self) -> bool {
        self.silent < IDLE_AFTER
    }

    /// What passed of late: of who has just begun the mean lags.
    fn lately(&self) -> BitRate {
        self.rate.newest().max(self.rate.smooth())
    }

    fn is_window_limited(&self) -> bool {
        let rate = self.lately();
        self.load.standing_queue || self.share.is_some_and(|share| rate >= share.mul_f64(0.9))
    }

    /// A share is in force for `span`, s.
    fn follow_mean(&mut self, share: BitRate, span: f64) {
        let missing = 1.0 - self.rate.newest().as_bps() as f64 / share.as_bps().max(1) as f64;
        self.of_mean = (self.of_mean + missing * span / MEAN_OVER).clamp(1.0, MOST_OF_MEAN);
    }

    /// Remembers what it carries while it is not elastic.
    fn note_carried(&mut self, interval: &Interval) {
        if self.is_elastic() {
            return;
        }
        let [bytes, seconds] = &mut self.lasts;
        *bytes += interval.bytes as f64;
        *seconds += interval.span.as_secs_f64();
        if *seconds >= 1.0 {
            self.carried = [*bytes * 8.0 / *seconds, self.carried[0]];
            self.lasts = [0.0; 2];
        }
    }

    fn plan(&self, share: BitRate, answer: Answer) -> UdpPlan {
        let bytes = |rate: BitRate, span| u32::try_from(rate.bytes_in(span)).unwrap_or(u32::MAX);
        let depth_bytes = bytes(share, DEPTH).max(LEAST_DEPTH);
        let besides = if answer.queue_is_before { bytes(share, answer.within) } else { depth_bytes };
        UdpPlan {
            rate_bytes: bytes(share.mul_f64(self.of_mean), Span::from_nanos(1 << 30)).max(1),
            depth_bytes,
            most_bytes: depth_bytes.saturating_add(besides),
            answer_ns: u32::try_from(answer.within.as_nanos()).unwrap_or(u32::MAX),
        }
    }
}

fn passed(half: &UdpHalf) -> u64 {
    half.bytes.wrapping_sub(half.dropped_bytes)
}

fn signals(half: &UdpHalf) -> u32 {
    half.marked.wrapping_add(half.dropped)
}

fn differs(a: &UdpPlan, b: &UdpPlan) -> bool {
    let far = |x: u32, y: u32| f64::from(x.abs_diff(y)) > WORTH_A_CALL * f64::from(x.max(y));
    far(a.rate_bytes, b.rate_bytes)
        || far(a.depth_bytes, b.depth_bytes)
        || far(a.most_bytes, b.most_bytes)
        || far(a.answer_ns, b.answer_ns)
}

impl UdpFlows {
    /// None yet; `queue_is_fair`: see there.
    pub(super) fn new(queue_is_fair: bool) -> Self {
        Self { queue_is_fair, flows: BTreeMap::new(), decisions: VecDeque::new() }
    }

    /// One flow at the end of an interval, in both directions; `loads`: what its bottlenecks are like, by direction.
    pub fn on_sample(&mut self, now: Time, sample: &UdpSample, loads: [HopLoad; 2]) {
        let record = self.flows.entry(sample.flow).or_insert_with(|| UdpRecord {
            station: sample.station,
            hop: sample.hop,
            tunnel: sample.tunnel,
            before: UdpState::new(now),
            at: Time::from_nanos(sample.state.first_seen_ns),
            half: Direction::BOTH.map(|_| UdpDirection::new(sample.state.quic != 0)),
        });
        let span = now.since(record.at);
        if span == Span::ZERO {
            return;
        }
        for direction in Direction::BOTH {
            let d = direction.index();
            let (half, before, after) = (&mut record.half[d], &record.before.half[d], &sample.state.half[d]);
            let interval = Interval::between(&record.before, &sample.state, direction, span);
            half.note_carried(&interval);
            half.passed = passed(after).wrapping_sub(passed(before));
            half.dropped = after.dropped_bytes.wrapping_sub(before.dropped_bytes);
            half.packets = interval.packets;
            half.pause = interval.pause;
            if let Some(share) = half.share.filter(|_| signals(after) != signals(before) && !half.shown) {
                half.shown = true;
                self.decisions.push_back(Decision::Steer { flow: sample.flow, direction, share });
            }
            half.silent = if interval.packets > 0 { Span::ZERO } else { half.silent.saturating_add(span) };
            half.rate.weigh(RATE_WEIGHT_PER_SECOND * span.as_secs_f64());
            half.rate.on_count(now, passed(after));
            half.load = loads[d];
            if half.classifier.on_interval(&interval, &half.load) {
                self.decisions.push_back(Decision::Behaviour {
                    flow: sample.flow,
                    direction,
                    tunnel: sample.tunnel,
                    behaviour: half.classifier.behaviour(),
                    why: half.classifier.why(),
                    rate: half.rate.smooth(),
                });
            }
        }
        (record.station, record.hop) = (sample.station, sample.hop);
        (record.before, record.at) = (sample.state, now);
    }

    /// The flow is gone, in both directions.
    pub fn on_gone(&mut self, flow: FlowId) {
        self.flows.remove(&flow);
    }

    /// What passed of elastic flows in the newest interval, IP bytes: no part of what real-time traffic needs.
    #[must_use]
    pub fn elastic_bytes(&self, direction: Direction) -> u64 {
        self.elastic_halves(direction).map(|half| half.passed).sum()
    }

    /// What passed of each flow over a hop in the newest interval, IP bytes, and at whose station; and what of it was dropped.
    pub(super) fn carried(&self, hop: HopId, direction: Direction) -> impl Iterator<Item = (StationId, u64, u64)> {
        let flows = self.flows.values().filter(move |record| record.hop == hop);
        flows
            .map(move |record| (record.station, &record.half[direction.index()]))
            .map(|(station, half)| (station, half.passed, half.dropped))
    }

    /// What was dropped in the newest interval of all that went in `direction`, IP bytes.
    pub(super) fn dropped(&self, direction: Direction) -> u64 {
        self.flows.values().map(|record| record.half[direction.index()].dropped).sum()
    }

    /// Packets, and IP bytes, over a hop of flows that are elastic either way, in the newest interval: their acknowledgments cost what
    /// TCP's do.
    #[must_use]
    pub fn of_elastic(&self, hop: HopId, direction: Direction) -> (u64, u64) {
        let flows =
            self.flows.values().filter(|record| record.hop == hop && record.half.iter().any(UdpDirection::is_elastic));
        flows
            .map(|record| &record.half[direction.index()])
            .fold((0, 0), |(packets, bytes), half| (packets + half.packets, bytes + half.passed))
    }

    /// The rate of elastic flows, filtered.
    #[must_use]
    pub fn elastic_rate(&self, direction: Direction) -> BitRate {
        BitRate::bps(self.elastic_halves(direction).map(|half| half.rate.smooth().as_bps()).sum())
    }

    fn elastic_halves(&self, direction: Direction) -> impl Iterator<Item = &UdpDirection> {
        let halves = self.flows.values().map(move |record| &record.half[direction.index()]);
        halves.filter(|half| half.is_elastic() && half.is_active())
    }

    /// Elastic flows that are active: they take part in sharing.
    pub fn elastic(&self) -> impl Iterator<Item = UdpLimit> {
        self.flows.iter().flat_map(move |(flow, record)| {
            Direction::BOTH.into_iter().filter_map(move |direction| {
                let half = &record.half[direction.index()];
                (half.is_elastic() && half.is_active()).then(|| UdpLimit {
                    flow: *flow,
                    direction,
                    station: record.station,
                    hop: record.hop,
                    rate: half.lately(),
                    share: half.share,
                    is_window_limited: half.is_window_limited(),
                    pause: (half.packets > 0).then_some(half.pause),
                })
            })
        })
    }

    /// Gives a share to an elastic flow; `Some` when its plan is to be written. `span`: since the shares before.
    pub fn set_share(
        &mut self,
        (flow, direction): (FlowId, Direction),
        share: BitRate,
        span: Span,
        answer: Answer,
    ) -> Option<UdpPlan> {
        let fair = self.queue_is_fair;
        let record = self.flows.get_mut(&flow)?;
        let half = &mut record.half[direction.index()];
        let kept = BitRate::from_bps_f64(half.carried[0].min(half.carried[1]));
        let share = if record.tunnel.is_some() { share.max(kept) } else { share };
        let plan = if fair || !half.is_elastic() {
            half.share = None;
            UdpPlan::default()
        } else {
            half.follow_mean(share, span.as_secs_f64());
            half.share = Some(share);
            half.plan(share, answer)
        };
        write(half, plan)
    }

    /// Lets a flow alone; `Some` when its plan is to be written.
    pub fn release(&mut self, flow: FlowId, direction: Direction) -> Option<UdpPlan> {
        let half = &mut self.flows.get_mut(&flow)?.half[direction.index()];
        (half.share, half.shown) = (None, false);
        half.of_mean = 1.0;
        write(half, UdpPlan::default())
    }

    /// Flows that have a plan and are no longer elastic, or are silent: they have to be released.
    #[must_use]
    pub fn stale(&self) -> Vec<(FlowId, Direction)> {
        let all = self.flows.iter().flat_map(|(flow, record)| {
            Direction::BOTH.into_iter().map(move |direction| (*flow, direction, &record.half[direction.index()]))
        });
        let limited = all.filter(|(_, _, half)| half.plan != UdpPlan::default());
        let stale = limited.filter(|(_, _, half)| !half.is_elastic() || !half.is_active());
        stale.map(|(flow, direction, _)| (flow, direction)).collect()
    }

    /// The next line for a person, until `None`.
    pub fn take_decision(&mut self) -> Option<Decision> {
        self.decisions.pop_front()
    }

    /// What it sees and does.
    pub fn snapshot(&self) -> impl Iterator<Item = UdpSnapshot> {
        self.flows.iter().flat_map(|(flow, record)| {
            Direction::BOTH.into_iter().map(move |direction| {
                let (half, seen) = (&record.half[direction.index()], &record.before.half[direction.index()]);
                UdpSnapshot {
                    flow: *flow,
                    direction,
                    tunnel: record.tunnel,
                    behaviour: half.classifier.behaviour(),
                    why: half.classifier.why(),
                    rate: half.rate.smooth(),
                    bytes: passed(seen),
                    share: half.share,
                    plan: half.plan,
                    marked: seen.marked,
                    dropped: seen.dropped,
                }
            })
        })
    }
}

fn write(half: &mut UdpDirection, plan: UdpPlan) -> Option<UdpPlan> {
    if !differs(&half.plan, &plan) {
        return None;
    }
    half.plan = plan;
    Some(plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOW: FlowId = FlowId(3);
    const SPAN: Span = Span::from_millis(50);
    const ANSWER: Answer = Answer { within: Span::from_millis(200), queue_is_before: false };

    /// A flow of full packets at a rate, acknowledged every second packet.
    struct Bulk {
        flows: UdpFlows,
        tunnel: Option<Tunnel>,
        state: UdpState,
        loads: [HopLoad; 2],
        now: Time,
    }

    impl Bulk {
        fn new(queue_is_fair: bool) -> Self {
            let now = Time::from_nanos(1_000_000_000);
            let loads = [HopLoad::default(); 2];
            Self { flows: UdpFlows::new(queue_is_fair), tunnel: None, state: UdpState::new(now), loads, now }
        }

        fn pass(&mut self, rate: BitRate, intervals: u32) {
            for _ in 0..intervals {
                self.now += SPAN;
                let [down, up] = &mut self.state.half;
                let bytes = rate.bytes_in(SPAN);
                down.bytes += bytes;
                down.full_bytes += bytes;
                down.packets += bytes / 1500;
                up.bytes += bytes / 50;
                up.packets += bytes / 3000;
                self.give();
            }
        }

        fn give(&mut self) {
            self.flows.on_sample(
                self.now,
                &UdpSample { flow: FLOW, station: StationId(1), hop: HopId(0), tunnel: self.tunnel, state: self.state },
                self.loads,
            );
        }

        fn limits(&self) -> Vec<UdpLimit> {
            self.flows.elastic().collect()
        }
    }

    #[test]
    fn a_bulk_flow_wants_a_share_and_is_planned_for_it() {
        let mut bulk = Bulk::new(false);
        bulk.pass(BitRate::mbps(12), 4);
        assert_eq!(bulk.limits(), [], "too early to say");
        bulk.pass(BitRate::mbps(12), 20);
        let [limit] = bulk.limits()[..] else { panic!("one direction") };
        assert_eq!((limit.flow, limit.direction, limit.station), (FLOW, Direction::ToStation, StationId(1)));
        assert!(!limit.is_window_limited && limit.rate > BitRate::mbps(11), "{limit:?}");
        assert!(matches!(bulk.flows.take_decision(), Some(Decision::Behaviour { behaviour: Behaviour::Elastic, .. })));
        let plan = bulk.flows.set_share((FLOW, Direction::ToStation), BitRate::mbps(8), SPAN, ANSWER).expect("a plan");
        // 1 MB/s for 1.0737 s; 10 ms are 10 kB.
        assert_eq!(
            plan,
            UdpPlan { rate_bytes: 1_073_741, depth_bytes: 18_000, most_bytes: 36_000, answer_ns: 200_000_000 }
        );
        assert_eq!(
            bulk.flows.set_share((FLOW, Direction::ToStation), BitRate::mbps(8), SPAN, ANSWER),
            None,
            "the same again"
        );
        assert!(bulk.limits()[0].is_window_limited, "it has more than its share: it takes all it can get");
        let steered = |bulk: &mut Bulk| {
            let all = std::iter::from_fn(|| bulk.flows.take_decision());
            all.filter(|decision| matches!(decision, Decision::Steer { .. })).count()
        };
        assert_eq!(steered(&mut bulk), 0, "it has not been told yet");
        for _ in 0..2 {
            bulk.state.half[0].dropped += 1;
            bulk.pass(BitRate::mbps(12), 1);
        }
        assert_eq!(steered(&mut bulk), 1);
    }

    #[test]
    fn what_began_as_a_quic_connection_is_held_from_its_first_packet() {
        let mut bulk = Bulk::new(false);
        bulk.state.quic = 1;
        bulk.pass(BitRate::mbps(12), 1);
        let limits = bulk.limits();
        assert!(limits.iter().any(|limit| limit.direction == Direction::ToStation), "{limits:?}");
        assert!(bulk.flows.set_share((FLOW, Direction::ToStation), BitRate::mbps(8), SPAN, ANSWER).is_some());
        // Acknowledgments are none of it, when it has shown them for a second.
        bulk.pass(BitRate::mbps(12), 40);
        let limits: Vec<_> = bulk.limits().iter().map(|limit| limit.direction).collect();
        assert_eq!(limits, [Direction::ToStation]);
    }

    #[test]
    fn what_it_had_is_no_real_time_traffic() {
        let mut bulk = Bulk::new(false);
        bulk.pass(BitRate::mbps(12), 60);
        let elastic = bulk.flows.elastic_rate(Direction::ToStation);
        assert!((11.9..12.1).contains(&elastic.as_mbps_f64()), "{elastic}");
        assert_eq!(bulk.flows.elastic_bytes(Direction::ToStation), 75_000);
        assert_eq!(bulk.flows.elastic_bytes(Direction::ToRemote), 0, "acknowledgments are not elastic");
    }

    #[test]
    fn a_tunnel_keeps_what_it_carried_before_the_bulk_came() {
        for (ports, kept) in [([51_820, 40_000], true), ([40_000, 4_500], true), ([443, 40_000], false)] {
            let mut bulk = Bulk { tunnel: Tunnel::of_ports(ports), ..Bulk::new(false) };
            // A video call of 2 Mbit/s: nothing comes back that could steer it.
            for _ in 0..60 {
                bulk.now += SPAN;
                bulk.state.half[0].bytes += 12_500;
                bulk.state.half[0].packets += 25;
                bulk.give();
            }
            assert_eq!(bulk.limits(), []);
            bulk.pass(BitRate::mbps(12), 60);
            assert_eq!(bulk.limits().len(), 1, "{ports:?}");
            let plan =
                bulk.flows.set_share((FLOW, Direction::ToStation), BitRate::mbps(1), SPAN, ANSWER).expect("a plan");
            let rate = f64::from(plan.rate_bytes) * 8.0 / 1.073_741_824e6;
            assert!((rate - if kept { 2.0 } else { 1.0 }).abs() < 0.1, "{rate} Mbit/s of {ports:?}");
        }
    }

    #[test]
    fn a_fair_queue_divides_by_itself() {
        let mut bulk = Bulk::new(true);
        bulk.pass(BitRate::mbps(12), 24);
        assert_eq!(bulk.limits().len(), 1);
        assert_eq!(bulk.flows.set_share((FLOW, Direction::ToStation), BitRate::mbps(8), SPAN, ANSWER), None);
    }

    #[test]
    fn a_flow_that_falls_silent_wants_nothing_and_is_released() {
        let mut bulk = Bulk::new(false);
        bulk.pass(BitRate::mbps(12), 24);
        bulk.flows.set_share((FLOW, Direction::ToStation), BitRate::mbps(8), SPAN, ANSWER);
        bulk.pass(BitRate::ZERO, 25);
        assert_eq!(bulk.limits(), []);
        assert_eq!(bulk.flows.stale(), [(FLOW, Direction::ToStation)]);
        assert_eq!(bulk.flows.release(FLOW, Direction::ToStation), Some(UdpPlan::default()));
        assert_eq!(bulk.flows.stale(), []);
    }

    #[test]
    fn who_has_less_than_its_share_in_the_mean_may_have_a_third_more_and_no_other() {
        let mut bulk = Bulk::new(false);
        bulk.pass(BitRate::mbps(12), 24);
        let mut rate = |mbps, intervals| {
            for _ in 0..intervals {
                bulk.pass(BitRate::mbps(mbps), 1);
                bulk.flows.set_share((FLOW, Direction::ToStation), BitRate::mbps(8), SPAN, ANSWER);
            }
            bulk.flows.snapshot().next().map(|s| f64::from(s.plan.rate_bytes) / 1_073_741.0)
        };
        assert_eq!(rate(12, 40), Some(1.0), "it takes more than that whatever it is told");
        // A quarter less for half of four seconds.
        assert!(rate(6, 40).is_some_and(|rate| (rate - 1.125).abs() < 0.005));
        assert!(rate(6, 400).is_some_and(|rate| (rate - 4.0 / 3.0).abs() < 0.014));
        assert!(rate(12, 60).is_some_and(|rate| rate < 1.01));
    }
}
