//! What the controller remembers of one direction of one flow.

use super::bottleneck::Behind;
use super::obedience::{Obedience, Shown};
use super::one_way::OneWay;
use super::window;
use super::{FlowSample, FlowSnapshot, HopId, Params, RttSource, StationId};
use crate::fastpath::layout::Plan;
use crate::meter::rate::LowPass;
use crate::meter::rtt::MinFilter;
use crate::packet::{Direction, FlowId};
use crate::units::{BitRate, Span, Time};

/// Weight of the newest rate of a flow: two intervals of 200 ms span several round trips of a usual path.
const RATE_WEIGHT: f64 = 0.5;
/// Time without payload after which a flow no longer counts.
const IDLE: Span = Span::from_secs(1);
/// Segments whose longest pause is no longer than so many times the mean were paced by their sender. Taken for none, they lose work
/// in one of 1,800 small homes (`conserve.py --seed 3 --only 62`: 0.83).
const PACED: f64 = 1.6;
/// A sender that filled its window longer ago than that behind a queue is asked again, s.
const MOST_QUEUED: f64 = 1.0;
/// BBR leaves its window empty for so long to measure the path, and fills it again (ProbeRTTDuration of draft-ietf-ccwg-bbr), s. Who had filled it for less
/// does not. Without it later seconds of 5 instead of 12 of 22 homes with downloads of BBR keep their bound (`make bounds`).
const PROBE_RTT: f64 = 0.2;
/// A part of its window: a sender that was not told more of it is held back by its pace.
const UNADVERTISED: u32 = 10;
/// What an ACK may wait for at a sender that paces, s.
const MOST_SPACING: f64 = 0.02;
/// Linux sends a millisecond of a flow's data at once (`sk_pacing_shift`): a window for less would hold what nothing queues.
const LEAST_RTT: Span = Span::from_millis(1);
/// A receiver acknowledges every second segment (RFC 9293 section 3.8.6.3): half of one waits for the next in the mean. Without it 56 of
/// 1,000 small homes lose work instead of 42 (`work_conservation` of the simulator).
const DELAYED: f64 = 0.5;
/// How far the phase of a flow goes with each plan, of a segment, so that no flow has more than others for long.
const PHASE_STEP: f64 = 1.0 / 16.0;
/// Fractions of its multiples are spread evenly, however many there are (Weyl).
const GOLDEN: f64 = 0.618_033_988_749_895;
/// Payload of a segment in 1500 bytes of IP, until the flow shows its own.
const USUAL_MSS: u32 = 1448;

/// What is not known of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unknown {
    /// What each bottleneck carries is known.
    Nothing,
    /// The capacity of one of them is not known, and there is no queue in front of it.
    Quiet,
    /// The capacity of one of them is not known, and there may be a queue in front of it.
    Queue,
}

#[derive(Debug)]
pub(super) struct FlowRecord {
    rate: LowPass,
    local_rtt: MinFilter,
    /// Least round trip to the station since its path changed, however long ago.
    nearest: Option<Span>,
    remote_rtt: MinFilter,
    newest: Option<FlowSample>,
    /// When payload was last seen to have moved, and the time of the newest sample.
    moved_at: Option<Time>,
    now: Time,
    share: Option<BitRate>,
    /// Window updates tell its sender what ACKs may not.
    paced: bool,
    plan: Option<Plan>,
    /// What its window has beyond its plan, of a segment, 0..1.
    phase: f64,
    /// IP bytes that arrived in the newest interval, and within about a round trip, per second.
    arrived: f64,
    arrives: f64,
    /// For how long less than what was advertised has, s.
    stuck: f64,
    /// Acknowledgments told that.
    timed: bool,
    /// Time of the newest interval in which something arrived while more was in flight, s.
    served: f64,
    /// When the sender last filled its window, and for how long that counts.
    limited_at: Option<Time>,
    limited_memory: Span,
    /// Since when it has filled its window without a longer pause.
    limited_since: Time,
    /// Newest mean round trips to the station and to the remote end, queue and all, s.
    queued: [f64; 2],
    /// What its segments take of a round trip to the remote end that is measured, and the first: a handshake's is without.
    transmission: Span,
    handshake: Option<Span>,
    /// Under way, over a round trip, IP bytes.
    in_flight: f64,
    /// To its windows, and their scale where nobody told it.
    obedience: Obedience,
    inbound: [OneWay; 2],
    /// What it may take for its path on the WAN link, each way.
    began_behind: [Option<Behind>; 2],
    /// Somebody wants its windows left alone.
    left_alone: bool,
    /// What waited last between access point and station, and between access point and remote end, s, and when that was told.
    waited: [Option<(f64, Time)>; 2],
    /// See [`FlowRecord::on_returning`].
    returning: f64,
}

/// For so long a wait is shown that nothing newer told of: longer than the deepest queue that is usual.
const LATELY: Span = Span::from_secs(1);

/// Small changes are not worth a system call: half a per cent.
pub(super) fn differs(a: &Plan, b: &Plan) -> bool {
    let far = |x: u32, y: u32| x.abs_diff(y) > x.max(y) / 200;
    far(a.clamp_bytes, b.clamp_bytes)
        || far(a.growth_bytes, b.growth_bytes)
        || far(a.pace_bytes, b.pace_bytes)
        || a.floor_bytes != b.floor_bytes
}

/// A window of so many bytes can be told in units of this scale.
pub(super) fn can_be_advertised(scale: Option<u8>, window: f64) -> bool {
    scale.is_some_and(|scale| f64::from(1u32 << scale) <= window)
}

fn to_ip(sample: &FlowSample) -> f64 {
    let mss = if sample.mss == 0 { USUAL_MSS } else { sample.mss };
    f64::from(mss + sample.header_bytes) / f64::from(mss)
}

impl FlowRecord {
    pub(super) fn new(rtt_memory: Span, flow: FlowId, began_behind: [Option<Behind>; 2]) -> Self {
        Self {
            rate: LowPass::new(RATE_WEIGHT),
            local_rtt: MinFilter::new(rtt_memory),
            nearest: None,
            remote_rtt: MinFilter::new(rtt_memory),
            newest: None,
            moved_at: None,
            now: Time::ZERO,
            share: None,
            paced: false,
            plan: None,
            phase: (f64::from(flow.0) * GOLDEN).fract(),
            arrived: 0.0,
            arrives: 0.0,
            stuck: f64::MAX,
            timed: false,
            served: 0.0,
            limited_at: None,
            limited_memory: Span::ZERO,
            limited_since: Time::ZERO,
            queued: [0.0; 2],
            transmission: Span::ZERO,
            handshake: None,
            in_flight: 0.0,
            obedience: Obedience::default(),
            inbound: [OneWay::new(rtt_memory), OneWay::new(rtt_memory)],
            began_behind,
            left_alone: false,
            waited: [None; 2],
            returning: 0.0,
        }
    }

    pub(super) fn on_sample(&mut self, now: Time, sample: &FlowSample) {
        self.rate.on_count(now, sample.bytes);
        let moved = sample.payload_bytes > self.newest.map_or(0, |before| before.payload_bytes);
        self.now = now;
        if self.left_alone {
            // Its queue is never drained, so that nothing shows the path: it is as long as it was.
            self.local_rtt.hold(now);
            self.remote_rtt.hold(now);
            self.inbound.iter_mut().for_each(|inbound| inbound.hold(now));
        }
        if moved {
            self.moved_at = Some(now);
        }
        if let Some(rtt) = sample.local_rtt_min {
            self.local_rtt.on_sample(now, rtt);
            self.nearest = Some(self.nearest.map_or(rtt, |nearest| nearest.min(rtt)));
        }
        if let Some(rtt) = sample.remote_rtt_min {
            let handshake = *self.handshake.get_or_insert(rtt);
            self.remote_rtt.on_sample(now, rtt.saturating_sub(self.transmission).max(handshake).min(rtt));
        }
        for (inbound, stamped) in self.inbound.iter_mut().zip(sample.stamped) {
            inbound.on_stamps(now, stamped);
        }
        // Who answers what goes out to the remote end stamps what comes in from there.
        let transmission = self.transmission;
        let [remote, station] = &mut self.inbound;
        remote.on_answer(now, sample.answered[Direction::ToRemote.index()], transmission);
        station.on_answer(now, sample.answered[Direction::ToStation.index()], Span::ZERO);
        self.count(sample);
        if sample.window_limited && !sample.receiver_limited {
            if !self.fills_its_window() {
                self.limited_since = now;
            }
            self.limited_at = Some(now);
        }
        self.newest = Some(*sample);
    }

    /// An interval ends, and its windows are left alone from here on, or no more. Where nobody brought a sample, nothing of the flow passed. False
    /// where that has been so for long, and there is nothing to tell.
    pub(super) fn age(&mut self, now: Time, left_alone: bool) -> bool {
        self.left_alone = left_alone;
        if self.now == now {
            return true;
        }
        let (silent, was_active) = (now.since(self.now), self.is_active());
        self.now = now;
        let is_active = self.is_active();
        match &self.newest {
            Some(newest) if is_active => {
                let silent = newest.silent(now, silent);
                self.on_sample(now, &silent);
            }
            _ if was_active => self.rate = LowPass::new(RATE_WEIGHT),
            _ => {}
        }
        is_active
    }

    /// What arrived since the sample before.
    fn count(&mut self, sample: &FlowSample) {
        let Some(before) = self.newest else { return };
        let to_ip = to_ip(sample);
        let sent = (sample.bytes.saturating_sub(before.bytes)) as f64;
        let arrived = f64::from(sample.delivered.wrapping_sub(before.delivered)) * to_ip;
        // A first ACK, or one of a connection that began anew, tells nothing; nor does one whose window is not read.
        let counts = sample.scale.is_some() && before.delivered != 0 && arrived < sent * 4.0 + 1e6;
        self.arrived = if counts { arrived } else { sent };
        self.timed = counts;
        self.served = sample.served.saturating_sub(before.served).as_secs_f64();
    }

    /// The path to the station has changed: it is as long as it shows from here on.
    pub(super) fn forget_local_path(&mut self) {
        let newest = self.local_rtt.newest();
        (self.local_rtt, self.nearest) = (self.local_rtt.anew(), newest);
        newest.into_iter().for_each(|rtt| self.local_rtt.on_sample(self.now, rtt));
        self.inbound[Direction::ToRemote.index()].forget_least();
        self.inbound[Direction::ToRemote.index()].forget_least_out();
    }

    /// Forgets the base round trip of the path to the remote end.
    pub(super) fn forget_remote_path(&mut self) {
        // Of the newest round trip its transmission was taken off, as of a path that a handshake had shown.
        let newest = self.remote_rtt.newest().map(|rtt| rtt + self.transmission);
        (self.remote_rtt, self.handshake) = (self.remote_rtt.anew(), None);
        newest.into_iter().for_each(|rtt| self.remote_rtt.on_sample(self.now, rtt));
        self.inbound[Direction::ToStation.index()].forget_least();
        self.inbound[Direction::ToStation.index()].forget_least_out();
    }

    /// IP bytes per byte of payload in full segments.
    pub(super) fn to_ip(&self) -> f64 {
        self.newest.as_ref().map_or(1.0, to_ip)
    }

    /// What of it waits somewhere, IP bytes, where the path without queueing takes `base`, s: as TCP Vegas counts it.
    pub(super) fn waits(&self, base: f64) -> f64 {
        self.in_flight - self.arrives * base - DELAYED * f64::from(USUAL_MSS) * self.to_ip()
    }

    /// What arrives, IP bytes/s, in the mean of a round trip.
    pub(super) fn arrives(&self) -> f64 {
        self.arrives
    }

    /// A full packet of it takes so long on the WAN link, s. The second of two is timed, for that is acknowledged at once.
    pub(super) fn set_packet(&mut self, packet: f64) {
        self.transmission = Span::from_secs_f64(2.0 * packet);
    }

    pub(super) fn arrived(&self) -> f64 {
        self.arrived
    }

    pub(super) fn served(&self) -> f64 {
        self.served
    }

    pub(super) fn hop(&self) -> HopId {
        self.newest.map_or_else(HopId::default, |newest| newest.hop)
    }

    pub(super) fn station(&self) -> StationId {
        self.newest.map_or_else(StationId::default, |newest| newest.station)
    }

    /// What its window never falls below, bytes.
    pub(super) fn floor(&self) -> u32 {
        self.plan.map_or(0, |plan| plan.floor_bytes)
    }

    /// Longest pause of the newest interval, s.
    pub(super) fn gap(&self) -> f64 {
        self.newest.map_or(f64::MAX, |newest| newest.gap.as_secs_f64())
    }

    /// Wait between access point and station in the newest interval, s: mean and least.
    fn local_queue(&self, bound: Span) -> Option<(f64, f64)> {
        let base = self.local_base(bound).as_secs_f64();
        let newest = self.newest?;
        let Some((mean, least)) = newest.local_rtt_mean.zip(newest.local_rtt_min) else {
            return self.unanswered(&newest, Direction::ToStation).map(|so_far| (so_far - base, so_far - base));
        };
        Some((mean.as_secs_f64() - base, least.as_secs_f64() - base))
    }

    /// A round trip that has lasted longer than the one before, s, tells before it ends.
    fn unanswered(&self, newest: &FlowSample, direction: Direction) -> Option<f64> {
        let before = self.queued[direction.index()];
        newest.unanswered[direction.index()].map(Span::as_secs_f64).filter(|so_far| *so_far > before && before > 0.0)
    }

    /// Wait between access point and remote end in the newest interval, s: mean and least.
    fn remote_queue(&self) -> Option<(f64, f64)> {
        let newest = self.newest?;
        // A sender that paces answers an ACK when the next segment's turn has come.
        let spacing = 8.0 * f64::from(USUAL_MSS) / self.rate.smooth().as_bps().max(1) as f64;
        let is_paced = newest.gap.as_secs_f64() <= PACED * spacing;
        let base = self.remote_base()?.as_secs_f64() + if is_paced { spacing.min(MOST_SPACING) } else { 0.0 };
        if newest.remote_rtt_mean.is_none() {
            // Of one that was lost nothing comes any more; and what its answer waits on its way back is another queue.
            let back = self.inbound(Direction::ToStation).unwrap_or(0.0).max(self.returning);
            let acknowledged = self.timed && self.arrived > 0.0;
            let so_far = self.unanswered(&newest, Direction::ToRemote).filter(|_| acknowledged)? - base - back;
            let before = self.waited[1].map_or(0.0, |(waited, _)| waited);
            return (so_far > before).then_some((so_far, so_far));
        }
        Some((newest.remote_rtt_mean?.as_secs_f64() - base, newest.remote_rtt_min?.as_secs_f64() - base))
    }

    /// Newest round trip, with everything that waits, s.
    pub(super) fn rtt(&self) -> f64 {
        self.queued.iter().sum()
    }

    /// It moved payload lately: a direction that carries only ACKs is no flow.
    pub(super) fn is_active(&self) -> bool {
        self.moved_at.is_some_and(|at| self.now.since(at) < IDLE)
    }

    /// Its windows can be told, and hold it.
    pub(super) fn is_controllable(&self) -> bool {
        self.scale().is_some()
    }

    /// Its windows can be told, whether it keeps to them or not: how else should it show that it does.
    pub(super) fn has_scale(&self) -> bool {
        self.newest.as_ref().is_some_and(|newest| newest.scale.is_some())
    }

    /// Scale of its windows; none while that is not known, or they do not hold it, or somebody wants them left alone.
    pub(super) fn scale(&self) -> Option<u8> {
        let is_held = |_: &u8| !self.left_alone && !self.obedience.ignores_windows();
        self.newest.as_ref().and_then(|newest| newest.scale).filter(is_held)
    }

    /// Somebody wants its windows left alone.
    pub(super) const fn is_left_alone(&self) -> bool {
        self.left_alone
    }

    /// The plan under which its windows pass as its receiver offers them; `Some` when it differs from the one in force.
    pub(super) fn leave_alone(&mut self) -> Option<Plan> {
        self.adopt(Plan::default())
    }

    pub(super) fn is_controlled(&self) -> bool {
        self.is_active() && self.is_controllable()
    }

    pub(super) fn rate(&self) -> BitRate {
        self.rate.smooth()
    }

    /// Its pace holds it back, not its window.
    pub(super) fn is_paced(&self) -> bool {
        let late = |s: &FlowSample| s.unadvertised_bytes > (s.window_bytes / UNADVERTISED).max(3 * s.mss);
        self.paced && self.fills_its_window() && self.newest.as_ref().is_some_and(late)
    }

    /// It fills the window it was planned, not one that is still growing.
    pub(super) fn is_window_limited(&self) -> bool {
        self.fills_its_window()
            && !self.is_paced()
            && self.newest.zip(self.plan).is_some_and(|(s, p)| s.window_bytes >= p.clamp_bytes - p.clamp_bytes / 20)
    }

    /// Window in force, IP bytes.
    pub(super) fn window(&self) -> f64 {
        self.newest.map_or(0.0, |newest| f64::from(newest.window_bytes)) * self.to_ip()
    }

    /// The timestamps of what goes in `direction` are understood.
    pub(super) fn is_clocked(&self, direction: Direction) -> bool {
        self.inbound[direction.index()].is_known()
    }

    /// How long the newest segment that went in `direction` was in flight here beyond the least of late, s.
    pub(super) fn inbound(&self, direction: Direction) -> Option<f64> {
        self.inbound[direction.index()].queue()
    }

    /// The same of the one that came soonest, of all of the newest interval.
    pub(super) fn soonest(&self, direction: Direction) -> Option<f64> {
        self.inbound[direction.index()].soonest()
    }

    /// How long what was answered last of what goes in `direction` took to get there beyond the least of late, s.
    pub(super) fn outbound(&self, direction: Direction) -> Option<f64> {
        let rtt = match direction {
            Direction::ToStation => &self.local_rtt,
            Direction::ToRemote => &self.remote_rtt,
        };
        self.inbound[1 - direction.index()].queue_out(rtt.min())
    }

    /// Lately: in an interval that is shorter than the round trip there may be no segment at the edge.
    pub(super) fn fills_its_window(&self) -> bool {
        self.limited_at.is_some_and(|at| self.now.since(at) <= self.limited_memory)
    }

    /// RTT to the station without queue: the least that any connection to it has met, until its path is found to be longer. The least of late
    /// is that of a queue which is kept, in time (`long_uploads` of the simulator). One above the bound is a queue that stood all the time.
    fn local_base(&self, bound: Span) -> Span {
        self.nearest.or(self.local_rtt.min()).unwrap_or(bound).min(bound)
    }

    /// The bound of a flow of `direction` over a hop of `bound`: none where timestamps of the station's data tell what waits there.
    pub(super) fn bound(&self, direction: Direction, bound: Span) -> Span {
        let timed = direction == Direction::ToRemote && self.is_clocked(direction);
        if timed { self.nearest.unwrap_or(bound).max(bound) } else { bound }
    }

    /// The least round trip to its station that any connection has met is `known`, and what this one has: the path is the same. A connection
    /// that begins behind a queue takes that for its path, and a queue that is kept becomes the path of all in time.
    pub(super) fn share_nearest(&mut self, known: Option<Span>) -> Option<Span> {
        self.nearest = [self.nearest, known].into_iter().flatten().min();
        self.nearest
    }

    /// Least round trip to the station of late, s.
    pub(super) fn local_path(&self) -> f64 {
        self.local_rtt.min().map_or(0.0, Span::as_secs_f64)
    }

    /// No round trip to the station was as short as an empty hop's, s: nobody knows that the rest is a queue.
    pub(super) fn hides(&self, empty: f64) -> bool {
        self.nearest.is_some_and(|nearest| nearest.as_secs_f64() > empty)
    }

    /// The round trip to the remote end without queue: the least there was, or the least of each way.
    fn remote_base(&self) -> Option<Span> {
        let ways = self.inbound[Direction::ToStation.index()].path();
        self.remote_rtt.min().map(|least| ways.map_or(least, |ways| least.min(ways)))
    }

    /// What is delivered on the WAN link each way, bit/s, and whether somebody found it empty an interval of `dt` ago: who told something then
    /// knows its path. Taken for known as soon as it is delivered to, a connection adds what it began behind to what is kept
    /// (`connections_that_begin_behind_a_queue_do_not_add_to_it` of the simulator).
    pub(super) fn on_wan(&mut self, wan: [(f64, bool); 2], dt: f64) {
        let told = self.waited[1].is_some_and(|(_, at)| self.now.since(at).as_secs_f64() < 1.5 * dt);
        for (behind, (delivered, empty)) in self.began_behind.iter_mut().zip(wan) {
            *behind = behind.filter(|behind| !(empty && told) && behind.stood_here(self.now, delivered));
        }
    }

    /// Each way of the WAN link: it began where nobody told of a queue, or has met it empty since, or no longer counts as who did not.
    pub(super) fn knows_path(&self) -> [bool; 2] {
        self.began_behind.map(|behind| behind.is_none())
    }

    /// What acknowledgments of its data wait on their way back, which no window of its own can change, s: as the timestamps of a station
    /// or a remote end tell, and no more than a round trip lasts longer than its path, which they cannot forge. `shared`: what waits between
    /// access point and station is one queue of both directions.
    pub(super) fn on_returning(&mut self, shared: bool, dt: f64) {
        let Some(newest) = self.newest else { return };
        let back = newest.direction.reverse();
        let (local, remote) = match back {
            Direction::ToStation => (self.outbound(back), self.inbound(back)),
            Direction::ToRemote => (self.inbound(back), self.outbound(back)),
        };
        let told = [local.filter(|_| !shared), remote];
        let (Some(rtt), Some(base)) = (newest.remote_rtt_mean, self.remote_base()) else { return };
        if told == [None; 2] {
            return;
        }
        let path = base + self.local_rtt.min().unwrap_or_default();
        let rtt = rtt.as_secs_f64() + self.queued[0];
        let most = (rtt - path.as_secs_f64()).clamp(0.0, MOST_QUEUED);
        let told = told.into_iter().flatten().map(|wait| wait.max(0.0)).sum::<f64>().min(most);
        self.returning += (told - self.returning) * dt / (rtt + dt);
    }

    pub(super) fn base_rtt(&self, params: &Params, bound: Span) -> Option<Span> {
        match params.rtt {
            RttSource::Constant(rtt) => Some(rtt),
            RttSource::Measured => {
                let path = self.local_base(bound) + self.remote_base()?;
                Some((path + Span::from_secs_f64(self.returning)).max(LEAST_RTT))
            }
        }
    }

    /// What of a full segment is payload, and how much that is; `None`: nothing has been seen of it.
    pub(super) fn payload(&self) -> Option<(f64, u32)> {
        let sample = self.newest?;
        let mss = if sample.mss == 0 { USUAL_MSS } else { sample.mss };
        Some((f64::from(mss) / f64::from(mss + sample.header_bytes), mss))
    }

    /// Turns what it may have into a plan, where a queue of `bound` is left alone; `Some` when it differs from the one in
    /// force. Without a base RTT the plan that the flow started with stays. What is only guessed holds it a little looser.
    pub(super) fn decide(
        &mut self,
        params: &Params,
        bound: Span,
        (share, fair, pace): (BitRate, BitRate, BitRate),
        paced: bool,
        unknown: Unknown,
    ) -> Option<Plan> {
        let (window, base_rtt) = (self.newest?.window_bytes, self.base_rtt(params, bound)?);
        let (payload_share, mss) = self.payload()?;
        self.paced = paced;
        let plan = window::plan(&window::Flow { share, fair, pace, base_rtt, payload_share, mss }, &params.law);
        let plan = if !paced || self.fills_its_window() { window::growing(plan, window) } else { plan };
        let most = if unknown == Unknown::Nothing { u32::MAX } else { self.grows(params, unknown, 1) };
        let plan = self.give(share, Plan { growth_bytes: plan.growth_bytes.min(most), ..plan })?;
        self.phase = (self.phase + PHASE_STEP).fract();
        Some(window::dithered(plan, mss, self.phase))
    }

    /// `Some` when the plan differs from the one in force.
    pub(super) fn give(&mut self, share: BitRate, plan: Plan) -> Option<Plan> {
        self.share = Some(share);
        self.adopt(plan)
    }

    /// `Some` when it differs from the one in force.
    fn adopt(&mut self, plan: Plan) -> Option<Plan> {
        if self.plan.is_some_and(|before| !differs(&before, &plan)) {
            return None;
        }
        self.plan = Some(plan);
        self.plan
    }

    /// A bottleneck is unknown, and its window does not grow: in a round trip less has arrived than was advertised, so that the rest
    /// waits somewhere; or nothing has, and what a handshake met says nothing of what followed it.
    fn stays(&self, unknown: Unknown, rtt: Span) -> bool {
        match unknown {
            Unknown::Nothing => false,
            Unknown::Quiet => self.arrives == 0.0,
            Unknown::Queue => self.stuck > rtt.as_secs_f64(),
        }
    }

    /// How far its window may grow in a round trip while a bottleneck is unknown, where `flows` begin.
    fn grows(&self, params: &Params, unknown: Unknown, flows: u32) -> u32 {
        let rtt = self
            .base_rtt(params, Span::from_secs_f64(params.law.queue_target))
            .filter(|rtt| !self.stays(unknown, *rtt));
        let window = self.newest.map_or(0, |newest| newest.window_bytes);
        window::unknown(window, flows, rtt.map_or(0.0, |rtt| params.part_of(rtt)))
    }

    /// Nothing is known of its path: the plan that lets the window grow until something is, or stay.
    pub(super) fn open(&mut self, params: &Params, flows: u32, unknown: Unknown) -> Option<Plan> {
        let growth_bytes = self.grows(params, unknown, flows);
        self.adopt(Plan { growth_bytes, ..window::first() })
    }

    /// The scale that it is to be taken for from now on, after an interval of `dt`.
    pub(super) fn find_scale(&mut self, dt: f64) -> Option<u8> {
        let newest = self.newest.filter(|_| self.is_active())?;
        let remote = newest.remote_rtt_mean.or(self.remote_rtt.min()).map_or(0.0, Span::as_secs_f64);
        let rtt = self.queued[0] + remote;
        let in_flight = f64::from(newest.in_flight).min(self.arrives * rtt / self.to_ip());
        let (window, mss) = (f64::from(newest.window_bytes), f64::from(newest.mss));
        self.obedience.on_interval(&Shown { scale: newest.scale, in_flight, window, mss, rtt }, dt)
    }

    /// In an interval of `dt` the window counts as filled for one and a half round trips, and for a pause in which its sender measures the path.
    pub(super) fn remember(&mut self, dt: f64) {
        let rtt = (self.local_rtt.min().unwrap_or_default() + self.remote_rtt.min().unwrap_or_default()).as_secs_f64();
        // What queues makes the round trip longer: so does what is remembered of it.
        let told = self.newest.map(|newest| [newest.local_rtt_mean, newest.remote_rtt_mean]).unwrap_or_default();
        for (queued, told) in self.queued.iter_mut().zip(told) {
            *queued = told.map_or(*queued, Span::as_secs_f64);
        }
        let filled = self.limited_at.map_or(0.0, |at| at.since(self.limited_since).as_secs_f64());
        let remembered = 1.5 * (rtt + self.queued[0].min(MOST_QUEUED)) + filled.min(PROBE_RTT);
        let intervals = (remembered / dt).ceil();
        self.limited_memory = Span::from_secs_f64((intervals + 0.5) * dt);
        let arrived = if self.timed { self.arrived } else { 0.0 };
        let weight = dt / rtt.max(dt);
        self.arrives += (arrived / dt - self.arrives) * weight;
        let in_flight = self.newest.map_or(0.0, |newest| f64::from(newest.in_flight)) * self.to_ip();
        self.in_flight += (in_flight - self.in_flight) * weight;
        // What was advertised a round trip ago, and as much before it as the mean is late, has arrived by now.
        let advertised = self.window() / window::UNKNOWN_GROWTH.powf(2.0 - weight);
        let local = self.local_rtt.min().map_or(0.0, Span::as_secs_f64);
        let rtt_now = rtt + (self.queued[0] - local).clamp(0.0, MOST_QUEUED);
        self.stuck = if self.arrives * rtt_now >= advertised { 0.0 } else { self.stuck + dt };
        // On a long path data come in trains: their rate is that of a round trip.
        self.rate.weigh((dt / rtt.max(1e-3)).min(RATE_WEIGHT));
    }

    /// What the newest interval told of the queues on both sides, s, mean and least, where `bound` is as long as a path may be; it is kept.
    pub(super) fn keep_queues(&mut self, bound: Span) -> [Option<(f64, f64)>; 2] {
        let told = [self.local_queue(bound), self.remote_queue()];
        for (waited, told) in self.waited.iter_mut().zip(told) {
            *waited = told.map(|(mean, _)| (mean.max(0.0), self.now)).or(*waited);
        }
        told
    }

    /// What waits on both sides, as far as anything told of it lately: in a deep queue no round trip ends in some intervals.
    fn waits_now(&self) -> Option<Span> {
        let lately = |waited: &&(f64, Time)| self.is_active() && self.now.since(waited.1) < LATELY;
        let told = self.waited.iter().flatten().filter(lately).map(|(wait, _)| *wait);
        told.reduce(|a, b| a + b).map(Span::from_secs_f64)
    }

    pub(super) fn snapshot(&self, (flow, direction): (FlowId, Direction)) -> FlowSnapshot {
        FlowSnapshot {
            flow,
            direction,
            rate: self.rate.smooth(),
            share: self.share.filter(|_| self.is_controlled()),
            window_limited: self.is_controlled() && (self.is_window_limited() || self.is_paced()),
            plan: self.plan,
            local_rtt: self.local_rtt.min(),
            remote_rtt: self.remote_rtt.min(),
            controllable: self.is_controllable(),
            scale_known: self.has_scale(),
            left_alone: self.left_alone,
            waits: self.waits_now(),
        }
    }
}
