use super::*;
use crate::fastpath::layout::{Hop, UdpState};

/// A bottleneck in fluid form: each flow sends its window per round trip, the excess over the pipe queues.
struct TestHop {
    carries: BitRate,
    /// What the minimum RTT does not show: contention, delayed ACKs.
    contention: Span,
}

struct Sender {
    id: FlowId,
    window_bytes: u32,
    /// Rate at which its server reads from disk, say.
    limit: Option<BitRate>,
    controllable: bool,
    /// What it has in flight whatever it is told, bytes.
    ignores: Option<u32>,
    bytes: u64,
    queue: Span,
    /// What its receiver's delayed ACKs add to its mean RTT.
    delayed_acks: Span,
    /// Its ACKs come as one train per round trip, as fast as the hop serves it.
    trains: Option<Plan>,
    /// It is seen to fill its window in every so many-th interval only.
    seen_to_fill: u64,
    direction: Direction,
}

const LOCAL: Span = Span::from_millis(1);
/// By receivers, bytes.
const OFFERED: u32 = 600_000;
const REMOTE: Span = Span::from_millis(80);
const MSS: u32 = 1448;
const PAYLOAD_SHARE: f64 = MSS as f64 / 1500.0;

impl Sender {
    fn new(id: u32) -> Self {
        Self {
            id: FlowId(id),
            window_bytes: 0,
            limit: None,
            controllable: true,
            ignores: None,
            bytes: 0,
            queue: Span::ZERO,
            delayed_acks: Span::ZERO,
            trains: None,
            seen_to_fill: 1,
            direction: Direction::ToStation,
        }
    }

    /// What a paced edge lets through: the credit of a pause, and the pace for as long as the packet train lasts,
    /// `L = B + pace L / hop`, once a round trip. A pace above the hop's holds nothing back. IP bit/s.
    fn train_limit(&self, hop: BitRate, rtt: f64) -> Option<f64> {
        let plan = self.trains?;
        let pace = f64::from(plan.pace_bytes) / (1u64 << 30) as f64 * 1e9 * 8.0 / PAYLOAD_SHARE;
        let slower = 1.0 - pace / hop.as_bps() as f64;
        (slower > 0.0).then(|| f64::from(plan.growth_bytes) * 8.0 / PAYLOAD_SHARE / slower / rtt)
    }

    /// Whole segments of its window.
    fn in_flight(&self) -> u32 {
        self.ignores.unwrap_or(self.window_bytes / MSS * MSS)
    }

    fn window_ip_bits(&self) -> f64 {
        f64::from(self.in_flight()) * 8.0 / PAYLOAD_SHARE
    }
}

impl TestHop {
    /// One interval: windows become rates, the common queue follows from what does not fit into the pipe beside UDP.
    fn carry(&self, senders: &mut [Sender], udp: BitRate, interval: Span) {
        let idle_rtt = (LOCAL + REMOTE + self.contention).as_secs_f64();
        let wished: Vec<f64> = senders
            .iter()
            .map(|s| {
                let by_window = s.window_ip_bits() / idle_rtt;
                let by_window = s.train_limit(self.carries, idle_rtt).map_or(by_window, |limit| by_window.min(limit));
                s.limit.map_or(by_window, |limit| by_window.min(limit.as_bps() as f64))
            })
            .collect();
        let total: f64 = wished.iter().sum();
        let carries = self.carries.saturating_sub(udp).as_bps() as f64;
        let carried = total.min(carries);
        let queue = Span::from_secs_f64((total - carried).max(0.0) * idle_rtt / carries);
        for (sender, limit) in senders.iter_mut().zip(wished) {
            sender.bytes += (limit * carried / total.max(1.0) * interval.as_secs_f64() / 8.0) as u64;
            sender.queue = queue;
        }
    }
}

/// What was said meanwhile.
fn run(ap: &mut Ap, hop: &TestHop, senders: &mut [Sender], udp: BitRate, seconds: u64) -> Vec<Decision> {
    let (mut udp_bytes, mut said) = (0, Vec::new());
    let until = ap.next_deadline().unwrap() + Span::from_secs(seconds);
    while ap.next_deadline().unwrap() < until {
        let now = ap.next_deadline().unwrap();
        hop.carry(senders, udp, ap.params.interval);
        udp_bytes += udp.bytes_in(ap.params.interval);
        for s in senders.iter() {
            ap.on_sample(now, &sample_of(s, hop, now));
        }
        ap.on_link(now, &LinkSample { udp_bytes: [udp_bytes, 0], ..LinkSample::default() });
        said.extend(obey(ap, senders));
    }
    said
}

fn obey(ap: &mut Ap, senders: &mut [Sender]) -> Vec<Decision> {
    let mut said = Vec::new();
    while let Some(action) = ap.poll(Time::ZERO) {
        match action {
            Action::SetPlan { flow, plan, .. } => {
                let sender = senders.iter_mut().find(|s| s.id == flow).unwrap();
                sender.trains = sender.trains.map(|_| plan);
                let window = if plan.clamp_bytes == 0 { OFFERED } else { plan.clamp_bytes };
                sender.window_bytes = if sender.controllable { window } else { sender.window_bytes };
            }
            Action::Say(decision) => said.push(decision),
            _ => {}
        }
    }
    said
}

fn sample_of(s: &Sender, hop: &TestHop, now: Time) -> FlowSample {
    let fills = s.limit.is_none_or(|limit| s.window_ip_bits() / 0.081 < limit.as_bps() as f64);
    FlowSample {
        flow: s.id,
        direction: s.direction,
        station: StationId(s.id.0),
        hop: HopId(0),
        bytes: s.bytes,
        payload_bytes: s.bytes.max(now.as_nanos() / 1_000_000),
        local_rtt_min: Some(LOCAL + s.queue),
        remote_rtt_min: Some(REMOTE),
        local_rtt_mean: Some(LOCAL + hop.contention + s.queue + s.delayed_acks),
        remote_rtt_mean: Some(REMOTE),
        unanswered: [None; 2],
        stamped: [None; 2],
        answered: [None; 2],
        delivered: (s.bytes as f64 * PAYLOAD_SHARE) as u32,
        served: if fills { now.since(Time::ZERO) } else { Span::ZERO },
        gap: Span::ZERO,
        payload_at: now,
        window_limited: fills && (now.as_nanos() / 50_000_000).is_multiple_of(s.seen_to_fill),
        window_bytes: s.window_bytes,
        receiver_limited: false,
        in_flight: s.in_flight(),
        unadvertised_bytes: 0,
        mss: MSS,
        header_bytes: 52,
        scale: s.controllable.then_some(0),
        closing: false,
    }
}

/// A hop over which nothing has passed.
fn hop_of(duplex: Duplex) -> HopSample {
    HopSample {
        hop: HopId(0),
        duplex,
        backlog: None,
        udp_bytes: [0; 2],
        udp_packets: [0; 2],
        packet_trains: Default::default(),
        shaped: None,
        fair_queue: None,
    }
}

fn rates(ap: &Ap) -> Vec<f64> {
    ap.snapshot().flows.iter().map(|f| f.rate.as_mbps_f64()).collect()
}

const HOP: TestHop = TestHop { carries: BitRate::mbps(24), contention: Span::from_micros(1_500) };

/// Rates at the end, Mbit/s, and the queue, of what was given, Mbit/s, at a hop of 24.
fn given(capacity: u64, senders: &mut [Sender], udp: BitRate) -> (Vec<f64>, Span) {
    let mut ap = Ap::new(Params::new(BitRate::mbps(capacity)));
    run(&mut ap, &HOP, senders, udp, 30);
    let pinned = ap.directions().map(|direction| direction.capacity);
    assert_eq!(pinned, [Some(BitRate::mbps(capacity)); 2], "nothing that is measured changes it");
    (rates(&ap), senders[0].queue)
}

#[test]
fn a_lone_download_reaches_what_the_hop_carries_beside_udp() {
    let (rates, queue) = given(24, &mut [Sender::new(1)], BitRate::mbps(1));
    assert!((rates[0] - 23.0).abs() < 0.1, "{rates:?}");
    assert!(queue < Span::from_millis(3), "{queue}");
}

#[test]
fn a_capacity_given_too_high_does_not_bring_the_queue_back() {
    for capacity in [26, 30, 48] {
        let (rates, queue) = given(capacity, &mut [Sender::new(1)], BitRate::ZERO);
        assert!(queue < Span::from_millis(3), "{capacity}: {queue}");
        assert!(rates[0] > 23.9, "{capacity}: {rates:?}");
    }
}

#[test]
fn a_capacity_given_too_low_is_outgrown_until_a_queue_says_enough() {
    for capacity in [6, 12, 20] {
        let (rates, queue) = given(capacity, &mut [Sender::new(1)], BitRate::ZERO);
        // One that seems slow keeps four packets of its time, and what has stood for ten seconds seems to be the path.
        let most = 2.0 * Law::default().queue_target.max(4.0 * 12e-3 / capacity as f64);
        assert!(rates[0] > 23.9 && queue < Span::from_secs_f64(most), "{capacity}: {rates:?} {queue}");
    }
}

/// As where there are so many flows that the controller decides as seldom as it may.
#[test]
fn decided_upon_every_200_ms_a_hop_stays_full_and_its_queue_short() {
    for flows in [1, 8, 40] {
        let mut ap = Ap::new(Params::new(BitRate::mbps(30)));
        ap.set_interval(Span::from_millis(200));
        let mut senders: Vec<_> = (0..flows).map(Sender::new).collect();
        run(&mut ap, &HOP, &mut senders, BitRate::ZERO, 30);
        let (mut longest, mut least) = (Span::ZERO, f64::MAX);
        for _ in 0..30 {
            run(&mut ap, &HOP, &mut senders, BitRate::ZERO, 1);
            longest = longest.max(senders[0].queue);
            least = least.min(rates(&ap).iter().sum());
        }
        assert!(longest < Span::from_millis(6) && least > 23.5, "{flows} flows: {longest}, {least} Mbit/s");
    }
}

/// The largest step of a window in a round trip of 81 ms, whose path is not known, in the first second.
fn largest_growth(interval: Span) -> u32 {
    let mut ap = Ap::new(Params::learning());
    ap.set_interval(interval);
    let mut senders = [Sender { window_bytes: 100_000, ..Sender::new(1) }];
    let mut largest = 0;
    for step in 1..=1_000 / (interval.as_nanos() / 1_000_000) {
        let now = Time::ZERO + interval * step;
        HOP.carry(&mut senders, BitRate::ZERO, interval);
        ap.on_sample(now, &sample_of(&senders[0], &HOP, now));
        ap.on_link(now, &LinkSample::default());
        let plans = std::iter::from_fn(|| ap.poll(now)).filter_map(|action| match action {
            Action::SetPlan { plan, .. } => Some(plan.growth_bytes),
            _ => None,
        });
        largest = plans.fold(largest, u32::max);
    }
    largest
}

#[test]
fn a_window_on_an_unknown_path_grows_no_more_in_a_long_interval_than_in_a_short_one() {
    let [short, long] = [50, 200].map(|ms| largest_growth(Span::from_millis(ms)));
    assert!(short >= 50_000, "by half in a round trip: {short}");
    // An interval holds two and a half round trips.
    assert!((19_000..22_000).contains(&long), "{long}");
}

/// The pace begins below what the hop really carries: a packet train never grows longer, until the pace has found the hop's speed.
#[test]
fn a_capacity_given_at_a_quarter_is_reached_although_acks_come_in_trains() {
    let mut ap = Ap::new(Params::new(BitRate::mbps(6)));
    let mut senders = [Sender { trains: Some(Plan::default()), ..Sender::new(1) }];
    run(&mut ap, &HOP, &mut senders, BitRate::ZERO, 10);
    assert!(rates(&ap)[0] > 6.0, "{:?}", rates(&ap));
}

#[test]
fn it_shares_from_the_first_filling_flow_on_and_its_interval_is_the_laws() {
    let mut ap = Ap::new(Params::new(BitRate::mbps(20)));
    let default = std::iter::from_fn(|| ap.poll(Time::ZERO)).find_map(|action| match action {
        Action::SetDefault { direction: Direction::ToStation, plan } => Some(plan.clamp_bytes),
        _ => None,
    });
    assert_eq!(default, Some(485_000), "20 Mbit/s for 200 ms, of which 0.97 are payload");
    let mut senders = [Sender { window_bytes: 14_480, ..Sender::new(1) }];
    let share = |ap: &Ap| ap.snapshot().flows[0].share;
    let interval = ap.params.interval;
    assert_eq!((interval, Params::learning().interval), (Span::from_millis(50), interval));
    let mut now = Time::ZERO;
    while share_is_unknown(&ap) {
        now += interval;
        assert!(now < Time::ZERO + interval * 4);
        HOP.carry(&mut senders, BitRate::ZERO, interval);
        ap.on_sample(now, &sample_of(&senders[0], &HOP, now));
        ap.on_link(now, &LinkSample::default());
    }
    assert!(share(&ap).is_some_and(|share| share >= BitRate::mbps(20)), "{:?}", share(&ap));
}

#[test]
fn an_interval_may_begin_after_the_decision_before_and_never_before_it() {
    let ms = |ms| Time::ZERO + Span::from_millis(ms);
    let mut ap = Ap::new(Params::learning());
    ap.begin_interval(ms(50));
    assert_eq!(ap.decided, None, "nothing was decided yet");
    ap.on_link(ms(100), &LinkSample::default());
    ap.begin_interval(ms(250));
    assert_eq!(ap.decided, Some(ms(250)));
    ap.begin_interval(ms(200));
    assert_eq!(ap.decided, Some(ms(250)));
}

fn share_is_unknown(ap: &Ap) -> bool {
    ap.snapshot().flows.first().is_none_or(|flow| flow.share.is_none())
}

#[test]
fn both_directions_share_half_duplex_and_each_has_full_duplex() {
    for (duplex, each) in [(Duplex::Half, 12.0), (Duplex::Full, 24.0)] {
        let mut ap = Ap::new(Params { duplex, ..Params::new(BitRate::mbps(24)) });
        let sender = |id, direction| Sender { window_bytes: 14_480, direction, ..Sender::new(id) };
        let senders = [sender(1, Direction::ToStation), sender(2, Direction::ToRemote)];
        for step in 1..5 {
            let now = Time::ZERO + ap.params.interval * step;
            senders.iter().for_each(|sender| {
                ap.on_sample(now, &FlowSample { bytes: step * 1000, ..sample_of(sender, &HOP, now) });
            });
            ap.on_link(now, &LinkSample::default());
        }
        for flow in ap.snapshot().flows {
            let share = flow.share.unwrap().as_mbps_f64();
            assert!((1.0..1.4).contains(&(share / each)), "{duplex:?} {:?}: {share}", flow.direction);
        }
    }
}

#[test]
fn a_shaper_bounds_what_was_given() {
    let mut ap = Ap::new(Params::new(BitRate::mbps(24)));
    let hop = HopSample { shaped: Some(BitRate::mbps(12)), ..hop_of(Duplex::Half) };
    for step in 1..5 {
        let now = Time::ZERO + ap.params.interval * step;
        ap.on_link(now, &LinkSample { each_hop: vec![hop], ..LinkSample::default() });
    }
    let capacity = ap.directions()[0].capacity.unwrap().as_mbps_f64();
    assert!((11.8..12.0).contains(&capacity), "{capacity}");
}

#[test]
fn a_round_trip_that_is_given_is_the_base_round_trip() {
    let rtt = Span::from_millis(82);
    let mut ap = Ap::new(Params { rtt: RttSource::Constant(rtt), ..Params::new(BitRate::mbps(24)) });
    let mut senders = [Sender::new(1)];
    run(&mut ap, &HOP, &mut senders, BitRate::ZERO, 20);
    let flow = ap.snapshot().flows[0];
    let window = flow.share.unwrap().mul_f64(PAYLOAD_SHARE).bytes_in(rtt) as f64;
    assert!((f64::from(flow.plan.unwrap().clamp_bytes) - window).abs() < window * 0.01, "{flow:?}");
    assert!(rates(&ap)[0] > 23.9 && senders[0].queue < Span::from_millis(3), "{:?}", rates(&ap));
}

#[test]
fn equation_one_to_the_letter_is_neither_trimmed_nor_approached_in_steps() {
    for (rtt, base) in [(RttSource::Measured, 0.081), (RttSource::Constant(Span::from_micros(81_500)), 0.0815)] {
        let share = ShareRule::Equal;
        let params = Params { share, interval: share.interval(), rtt, ..Params::new(BitRate::mbps(23)) };
        let mut ap = Ap::new(params);
        let mut senders = [Sender::new(1), Sender::new(2)];
        run(&mut ap, &HOP, &mut senders, BitRate::mbps(1), 20);
        let plan = ap.snapshot().flows[0].plan.unwrap();
        let letter = 11e6 / 8.0 * base * PAYLOAD_SHARE;
        assert!((f64::from(plan.clamp_bytes) - letter).abs() < letter * 0.01, "{plan:?} for {letter}");
        assert_eq!((plan.growth_bytes, plan.pace_bytes), (plan.clamp_bytes, 0));
    }
}

#[test]
fn what_a_server_limited_flow_leaves_goes_to_the_greedy_one() {
    let mut senders = [Sender { limit: Some(BitRate::mbps(3)), ..Sender::new(1) }, Sender::new(2)];
    let (rates, queue) = given(23, &mut senders, BitRate::ZERO);
    assert!((rates[0] - 3.0).abs() < 0.1 && rates[1] > 20.8, "{rates:?}");
    assert!(queue < Span::from_millis(3), "{queue}");
}

#[test]
fn contention_that_looks_like_a_queue_costs_no_more_than_itself() {
    let busy_channel = TestHop { contention: Span::from_millis(6), ..HOP };
    let mut ap = Ap::new(Params::new(BitRate::mbps(23)));
    let mut senders = [Sender::new(1)];
    run(&mut ap, &busy_channel, &mut senders, BitRate::ZERO, 20);
    // The rate never falls below what was given; 6 ms of 87 are what the minimum RTT does not show.
    assert!(rates(&ap)[0] > 23.0 * 81.0 / 87.0 - 0.1, "{:?}", rates(&ap));
}

#[test]
fn delayed_acks_of_one_flow_are_not_taken_for_a_queue() {
    let mut senders = [Sender { delayed_acks: Span::from_millis(15), ..Sender::new(1) }, Sender::new(2)];
    let (rates, _) = given(23, &mut senders, BitRate::ZERO);
    assert!((rates[0] - rates[1]).abs() < 0.5 && rates[0] > 11.5, "{rates:?}");
}

#[test]
fn what_cannot_be_controlled_leaves_the_rest() {
    let mut senders = [Sender { controllable: false, window_bytes: 60_000, ..Sender::new(1) }, Sender::new(2)];
    let mut ap = Ap::new(Params::new(BitRate::mbps(24)));
    run(&mut ap, &HOP, &mut senders, BitRate::mbps(2), 30);
    let rates = rates(&ap);
    assert!((5.5..6.5).contains(&rates[0]) && rates[0] + rates[1] > 21.9, "{rates:?}");
    assert!(senders[0].queue < Span::from_millis(3), "{}", senders[0].queue);
    let snapshot = ap.snapshot();
    assert!(snapshot.flows[0].share.is_none());
    assert!((snapshot.available.as_mbps_f64() - 22.0).abs() < 0.1, "{}", snapshot.available);
}

/// Senders that send several segments at once leave a part of their window now and then, and what is smaller is no measure for them:
/// what the greedy one has was halved each time that the queue was longer than its target meanwhile.
#[test]
fn who_is_not_seen_to_fill_his_window_for_a_moment_keeps_his_rate() {
    for seen_to_fill in [5, 7, 11] {
        let small = Sender { controllable: false, window_bytes: 20_000, ..Sender::new(1) };
        let mut senders = [small, Sender { seen_to_fill, ..Sender::new(2) }];
        let mut ap = Ap::new(Params::new(BitRate::mbps(24)));
        run(&mut ap, &HOP, &mut senders, BitRate::ZERO, 10);
        for _ in 0..20 {
            run(&mut ap, &HOP, &mut senders, BitRate::ZERO, 1);
            let rates = rates(&ap);
            assert!(rates[0] + rates[1] > 0.97 * 24.0, "seen in one of {seen_to_fill}: {rates:?}");
        }
    }
}

/// Whoever wrote it, a sender that has more in flight than its window is not held; who keeps to his has an equal part, and a person is
/// told.
#[test]
fn who_ignores_windows_starves_nobody_and_is_told_of() {
    let mut ap = Ap::new(Params::new(BitRate::mbps(24)));
    let mut senders = [Sender { ignores: Some(600_000), ..Sender::new(1) }, Sender::new(2)];
    let mut said = Vec::new();
    for second in 0..60 {
        said.extend(run(&mut ap, &HOP, &mut senders, BitRate::ZERO, 1));
        if second == 29 {
            let (shown, rates) = (ap.snapshot(), rates(&ap));
            assert_eq!(shown.flows.iter().map(|flow| flow.controllable).collect::<Vec<_>>(), [false, true]);
            assert!(shown.flows.iter().all(|flow| flow.scale_known), "that is not why it is left alone");
            assert!(rates[1] > 0.95 * 12.0, "{rates:?}");
            let beside = |line: &&Decision| matches!(line, Decision::Beside { flows: 1, .. });
            assert_eq!(said.iter().filter(beside).count(), 1, "{said:?}");
            // It keeps to its windows from here on.
            senders[0].ignores = None;
        }
    }
    assert!(ap.snapshot().flows.iter().all(|flow| flow.controllable) && senders[0].queue < Span::from_millis(5));
}

/// Whoever is left alone has what its receiver offers, is named as that, and is measured; the queue is short again within seconds
/// after nobody is.
#[test]
fn who_is_left_alone_has_his_window_and_after_that_the_queue_is_short_again() {
    let mut ap = Ap::new(Params::new(BitRate::mbps(24)));
    let mut senders = [Sender::new(1), Sender::new(2)];
    run(&mut ap, &HOP, &mut senders, BitRate::ZERO, 30);
    assert!(senders[0].queue < Span::from_millis(5), "{}", senders[0].queue);
    for (windows, expected) in [
        (Whose { stations: BTreeSet::from([StationId(1)]), ..Whose::default() }, [true, false]),
        (Whose { all: true, ..Whose::default() }, [true, true]),
    ] {
        ap.set_left_alone(LeftAlone { windows, ..LeftAlone::default() });
        let said = run(&mut ap, &HOP, &mut senders, BitRate::ZERO, 20);
        let shown = ap.snapshot();
        assert_eq!(shown.flows.iter().map(|flow| flow.left_alone).collect::<Vec<_>>(), expected);
        assert_eq!(senders.each_ref().map(|sender| sender.window_bytes == OFFERED), expected);
        assert!(senders[0].queue > Span::from_millis(50), "{}", senders[0].queue);
        assert!(!said.iter().any(|line| matches!(line, Decision::Beside { .. })), "somebody wants it so: {said:?}");
        let waited = |waiting: &waiting::Waiting| waiting.all().sum();
        assert!(waited(ap.waiting(Direction::ToStation)) > Span::from_secs(1));
    }
    ap.set_left_alone(LeftAlone::default());
    run(&mut ap, &HOP, &mut senders, BitRate::ZERO, 5);
    assert!(senders[0].queue < Span::from_millis(5), "{}", senders[0].queue);
    assert!(rates(&ap).iter().all(|rate| (rate - 12.0).abs() < 0.6), "{:?}", rates(&ap));
}

#[test]
fn a_direction_that_carries_only_acks_is_no_flow() {
    let mut ap = Ap::new(Params::new(BitRate::mbps(23)));
    for step in 1..10 {
        let now = ap.next_deadline().unwrap();
        let acks =
            FlowSample { payload_bytes: 0, direction: Direction::ToRemote, ..sample_of(&Sender::new(1), &HOP, now) };
        ap.on_sample(now, &FlowSample { bytes: step * 1000, ..acks });
        ap.on_link(now, &LinkSample::default());
    }
    assert_eq!(ap.snapshot().flows[0].share, None);
}

#[test]
fn a_closing_flow_gives_its_share_up() {
    let mut ap = Ap::new(Params::new(BitRate::mbps(20)));
    let mut senders = [Sender::new(1), Sender::new(2)];
    run(&mut ap, &HOP, &mut senders, BitRate::ZERO, 5);
    let now = ap.next_deadline().unwrap();
    ap.on_sample(now, &FlowSample { closing: true, ..sample_of(&senders[0], &HOP, now) });
    assert_eq!(ap.snapshot().flows.len(), 1);
    run(&mut ap, &HOP, &mut senders[1..], BitRate::ZERO, 2);
    assert!(rates(&ap)[0] > 23.0, "{:?}", rates(&ap));
}

#[test]
fn flows_beyond_the_bound_are_not_kept() {
    let mut ap = Ap::new(Params { max_flows: 10, ..Params::new(BitRate::mbps(20)) });
    (0..100).for_each(|id| ap.on_sample(Time::ZERO, &sample_of(&Sender::new(id), &HOP, Time::ZERO)));
    assert_eq!(ap.snapshot().flows.len(), 10);
}

/// Between programs on one machine a round trip is microseconds: 3.1 instead of 26 Gbit/s where nothing is a bottleneck.
#[test]
fn a_window_lasts_for_a_millisecond_at_least() {
    let mut ap = Ap::new(Params::new(BitRate::mbps(10_000)));
    let short = Span::from_micros(3);
    for step in 0..40u64 {
        let now = ap.next_deadline().unwrap();
        let bytes = step * 60_000_000;
        let sender = Sender { bytes, window_bytes: 100_000, ..Sender::new(1) };
        let (local_rtt_mean, remote_rtt_mean) = (Some(short), Some(short));
        let sample = FlowSample {
            local_rtt_min: Some(short),
            remote_rtt_min: Some(short),
            local_rtt_mean,
            remote_rtt_mean,
            ..sample_of(&sender, &HOP, now)
        };
        ap.on_sample(now, &sample);
        ap.on_link(now, &LinkSample::default());
    }
    let clamp = ap.snapshot().flows[0].plan.unwrap().clamp_bytes;
    assert!(clamp > 1_000_000, "{clamp} bytes of 10 Gbit/s");
}

/// Real kernels over 100 ms fell from 100 to 10 Mbit/s behind 800 ms of queue: one answer in 800 ms told of it.
#[test]
fn a_round_trip_that_has_not_ended_tells_of_a_queue() {
    let mut ap = Ap::new(Params::new(BitRate::mbps(24)));
    let mut senders = [Sender::new(1)];
    run(&mut ap, &HOP, &mut senders, BitRate::ZERO, 20);
    let before = ap.snapshot().flows[0].plan.unwrap().clamp_bytes;
    let sender = &mut senders[0];
    for step in 1..=8u64 {
        let now = ap.next_deadline().unwrap();
        sender.bytes += 15_000;
        let unanswered = Some(Span::from_millis(50 * step));
        let sample = FlowSample {
            local_rtt_min: None,
            local_rtt_mean: None,
            unanswered: [unanswered, None],
            ..sample_of(sender, &HOP, now)
        };
        ap.on_sample(now, &sample);
        ap.on_link(now, &LinkSample::default());
    }
    let after = ap.snapshot().flows[0].plan.unwrap().clamp_bytes;
    assert!(f64::from(after) < 0.5 * f64::from(before), "{before} -> {after} bytes");
}

/// A handshake meets an empty line; what is timed later brings its own transmission, and that of the segment before it.
#[test]
fn transmission_is_no_path_and_no_path_is_shorter_than_a_handshake() {
    let mut record = record::FlowRecord::new(Span::from_secs(10), FlowId(0), [None; 2]);
    let sample = |rtt: u64| FlowSample {
        direction: Direction::ToRemote,
        local_rtt_min: Some(Span::ZERO),
        remote_rtt_min: Some(Span::from_millis(rtt)),
        ..sample_of(&Sender::new(1), &HOP, Time::ZERO)
    };
    let base =
        |record: &record::FlowRecord| record.base_rtt(&Params::learning(), Span::ZERO).unwrap().as_secs_f64() * 1e3;
    record.on_sample(Time::ZERO, &sample(40));
    record.set_packet(0.012);
    // 12 s later the handshake is forgotten: 66 ms with 24 of its own, then 62.
    for (at, rtt, expected) in [(12, 66, 42.0), (13, 62, 40.0), (14, 39, 39.0)] {
        for again in 0..2 {
            record.on_sample(Time::from_nanos(at * 1_000_000_000 + again), &sample(rtt));
        }
        assert!((base(&record) - expected).abs() < 1e-6, "{} instead of {expected}", base(&record));
    }
}

/// 20 Mbit/s were delivered while it began.
#[test]
fn a_connection_that_began_behind_a_queue_knows_its_path_when_it_has_met_it_empty() {
    let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
    let behind = bottleneck::Behind { delivered: 20e6, until: at(10_500) };
    let knows = |told: bool, now: u64, delivered: f64, empty: bool| {
        let mut record = record::FlowRecord::new(Span::from_secs(10), FlowId(0), [None, Some(behind)]);
        let rtt = told.then_some(Span::from_millis(40));
        let sample =
            |now| FlowSample { remote_rtt_min: rtt, remote_rtt_mean: rtt, ..sample_of(&Sender::new(1), &HOP, now) };
        record.on_sample(at(now - 50), &sample(at(now - 50)));
        record.keep_queues(Span::ZERO);
        record.on_sample(at(now), &sample(at(now)));
        record.on_wan([(0.0, true), (delivered, empty)], 0.05);
        record.knows_path()
    };
    assert_eq!(knows(true, 600, 20e6, false), [true, false]);
    assert_eq!(knows(true, 600, 20e6, true), [true, true]);
    assert_eq!(knows(false, 600, 20e6, true), [true, false], "who told nothing then does not know");
    assert_eq!(
        knows(true, 600, 25e6, false),
        [true, true],
        "more is delivered than while it stood: it stood elsewhere"
    );
    assert_eq!(knows(true, 10_600, 20e6, false), [true, true], "by then all others have forgotten theirs, too");
}

#[test]
fn other_parameters_keep_flows_and_a_new_beginning_what_was_counted() {
    let params = Params::new(BitRate::mbps(24));
    let mut ap = Ap::new(params);
    run(&mut ap, &HOP, &mut [Sender::new(1), Sender::new(2)], BitRate::ZERO, 40);
    let plans = |ap: &Ap| ap.snapshot().flows.iter().map(|flow| flow.plan).collect::<Vec<_>>();
    let (before, waiting) = (plans(&ap), ap.waiting(Direction::ToStation).clone());
    assert_ne!(waiting, waiting::Waiting::default());
    let law = Law { gain: 0.1, ..Law::default() };
    assert!(ap.set_params(Params { law, window_updates: true, udp_weight: 0.5, ..params }));
    assert_eq!((ap.params.law, ap.params.window_updates), (law, false), "the host says whether updates are sent");
    assert_eq!((before.len(), &plans(&ap)), (2, &before));
    let other = Params { capacity: Some(BitRate::mbps(10)), ..params };
    assert!(!ap.set_params(other) && ap.params.capacity == params.capacity);
    ap.begin_anew(other);
    assert!(plans(&ap).is_empty() && ap.params.capacity == other.capacity);
    assert_eq!(*ap.waiting(Direction::ToStation), waiting);
}

#[test]
fn what_is_dropped_at_the_access_point_was_delivered_by_what_comes_before_it() {
    const STEP: Span = Span::from_millis(50);
    for direction in Direction::BOTH {
        let (d, mut ap) = (direction.index(), Ap::new(Params { duplex: Duplex::Full, ..Params::learning() }));
        let (mut state, mut passed) = (UdpState::new(Time::ZERO), [0; 2]);
        for step in 1..100 {
            let now = Time::ZERO + STEP * step;
            // 16 Mbit/s come, and a quarter of it is dropped.
            state.half[d].bytes += 100_000;
            state.half[d].dropped_bytes += 25_000;
            passed[d] += 75_000;
            ap.on_udp(now, &UdpSample { flow: FlowId(1), station: StationId(1), hop: HopId(0), tunnel: None, state });
            let hop = HopSample { udp_bytes: passed, ..hop_of(Duplex::Full) };
            ap.on_link(now, &LinkSample { udp_bytes: passed, each_hop: vec![hop], ..LinkSample::default() });
        }
        for id in [bottleneck::Id::Wan(direction), bottleneck::Id::Hop(HopId(0), Some(direction))] {
            let comes = if id.comes_before(direction) { 16.0 } else { 12.0 };
            let delivered = ap.law.delivered(id) / 1e6;
            assert!((delivered - comes).abs() < 0.01, "{id:?}: {delivered} instead of {comes} Mbit/s");
        }
    }
}

/// A program's control connection sends single bytes beside its download: 53 IP bytes for each.
#[test]
fn a_connection_of_single_bytes_makes_trains_of_others_no_faster() {
    for last in [false, true] {
        let mut ap = Ap::new(Params { duplex: Duplex::Full, ..Params::learning() });
        let ids = if last { [1, 2] } else { [2, 1] };
        for step in 1..4u32 {
            let now = Time::ZERO + Span::from_millis(50) * u64::from(step);
            for (id, mss) in ids.into_iter().zip([MSS, 1]) {
                let bytes = u64::from(step * 10 * mss);
                let sender = Sender { bytes, ..Sender::new(id) };
                ap.on_sample(now, &FlowSample { mss, header_bytes: 52, ..sample_of(&sender, &HOP, now) });
            }
            // Ten full segments in 5 ms.
            let (bytes, ns) = (u64::from(step * 10 * MSS), u64::from(step) * 5_000_000);
            let trains = Hop { came_bytes: bytes, came_ns: ns, served_bytes: bytes, served_ns: ns, ..Hop::default() };
            let hop = HopSample { packet_trains: [trains, Hop::default()], ..hop_of(Duplex::Full) };
            ap.on_link(now, &LinkSample { each_hop: vec![hop], ..LinkSample::default() });
        }
        let capacity = ap.directions()[0].capacity.expect("trains passed").as_mbps_f64();
        assert!((capacity / 24.0 - 1.0).abs() < 0.01, "{capacity} Mbit/s");
    }
}
