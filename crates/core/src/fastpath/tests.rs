mod together;

use proptest::prelude::*;

use super::layout::{FlowState, Plan, RttTotal, Stamp};
use super::vectors::Step;
use super::*;
use crate::wire::{self, Link, seq};

const PLAN: Plan = Plan { clamp_bytes: 100_000, floor_bytes: 2_920, growth_bytes: 3_000, pace_bytes: 0 };
const MSS: u32 = 1_448;

/// A download seen by the access point: data goes down, ACKs go up.
struct Download {
    state: FlowState,
    control: Control,
    now: Time,
    scale: u8,
    /// Windows are offered up to this many bytes.
    offered: u32,
    sent: u32,
}

/// Between packets: ten ticks of the clock that times them.
const STEP: Span = Span::from_nanos(10 << Stamp::SHIFT);

impl Download {
    /// Older than the controller; conntrack told its scale.
    fn with_scale(scale: u8, plan: Plan) -> Self {
        let control = Control { heartbeat_ns: 1_000_000_000, ..Control::default() };
        let now = Time::from_nanos(1_000_000_000);
        let mut state = FlowState::new(&control, now);
        state.half[0].plan = plan;
        state.half[0].conntrack_scale = scale + 1;
        let largest = 65_535u32 << scale;
        Self { state, control, now, scale, offered: largest.min(600_000), sent: 1_000 }
    }

    fn pass(&mut self, direction: Direction, tcp: &TcpFields) -> Verdict {
        self.now += STEP;
        self.control.heartbeat_ns = self.now.as_nanos();
        on_packet(&mut self.state, &mut self.control, passage(direction), tcp, self.now)
    }

    fn data(&mut self, bytes: u32) {
        let tcp = TcpFields { seq: self.sent, payload_bytes: bytes, segment_bytes: bytes, ..acknowledge(1, 100) };
        self.sent = self.sent.wrapping_add(bytes);
        self.pass(Direction::ToStation, &tcp);
    }

    /// The window, in bytes, that the sender is told.
    fn ack(&mut self, ack: u32) -> u32 {
        let raw = (self.offered >> self.scale) as u16;
        match self.pass(Direction::ToRemote, &acknowledge(ack, raw)) {
            Verdict::Rewrite { window } => {
                assert!(window < raw && window > 0);
                u32::from(window) << self.scale
            }
            Verdict::Pass(_) => u32::from(raw) << self.scale,
        }
    }

    /// One segment arrives and is acknowledged.
    fn round(&mut self) -> u32 {
        self.data(MSS);
        self.ack(self.sent)
    }
}

const fn passage(direction: Direction) -> Passage {
    Passage { direction, port: 1, hop: 0 }
}

fn acknowledge(ack: u32, window: u16) -> TcpFields {
    TcpFields { seq: 1, ack, window, flags: flag::ACK, segments: 1, ip_bytes: 52, ..TcpFields::default() }
}

#[test]
fn the_shared_vectors_hold() {
    for case in vectors::read(include_str!("../../../../tests/vectors/window.txt")) {
        let mut control = Control::default();
        let mut now = Time::from_nanos(10_000_000_000);
        let mut state = FlowState::new(&control, now);
        control.heartbeat_ns = now.as_nanos();
        for step in case.steps {
            match step {
                Step::Plan(direction, plan) => state.half[direction.index()].plan = plan,
                Step::Default(direction, plan) => control.default_plan[direction.index()] = plan,
                Step::Hop { direction, depth_bytes, rate_bytes } => {
                    let hop = &mut control.hops[0][direction.index()];
                    (hop.depth_bytes, hop.rate_bytes) = (depth_bytes, rate_bytes);
                }
                Step::Updates(direction) => control.hops[0][direction.index()].updates = 1,
                Step::Update { direction, expected, line } => {
                    let due = window::due(&state, &control, direction, now);
                    let update = window::update(&mut state, &control, direction, now);
                    assert_eq!(update, expected, "{}, line {line}", case.name);
                    assert!(update.is_none() || due == Some(now), "{}, line {line}: {due:?}", case.name);
                }
                Step::Another => state = FlowState::new(&control, now),
                Step::ConntrackScale(direction, scale) => state.half[direction.index()].conntrack_scale = scale + 1,
                Step::Wait(span) => {
                    now += span;
                    control.heartbeat_ns = now.as_nanos();
                }
                Step::Stale(stale) => control.heartbeat_ns = if stale { 1 } else { now.as_nanos() },
                Step::Silent => control.silent_ns = 1,
                Step::DryRun => control.dry_run = 1,
                Step::Segment { direction, frame, expected, line } => {
                    let Parsed::Tcp(tcp) = wire::parse(&frame, Link::Ethernet) else { panic!("line {line}") };
                    let verdict = on_packet(&mut state, &mut control, passage(direction), &tcp, now);
                    assert_eq!(verdict, expected, "{}, line {line}", case.name);
                }
            }
        }
    }
}

#[test]
fn the_clamp_is_reached_at_every_scale() {
    for scale in 4..=14 {
        let mut download = Download::with_scale(scale, Plan { growth_bytes: 1_000_000, ..PLAN });
        download.ack(1_000);
        let quantum = 1u32 << scale;
        let rounds = (0..2_000).position(|_| download.round() <= 100_000).unwrap();
        // (600,000 - 100,000) / 1,448 segments; up to two quanta of 16 KiB less by rounding.
        assert!((320..=347).contains(&rounds), "scale {scale}: {rounds} ACKs");
        for _ in 0..1_000 {
            let window = download.round();
            assert!(window <= 100_000 && window + quantum > 100_000, "scale {scale}: {window}");
        }
    }
}

#[test]
fn window_never_moves_the_right_edge_left_by_a_quantum() {
    for scale in 0..=14 {
        let mut download = Download::with_scale(scale, PLAN);
        let mut edge = 1_000u32.wrapping_add(download.ack(1_000));
        for round in 0..3_000 {
            if round == 1_000 {
                download.state.half[0].plan.clamp_bytes = 20_000;
            }
            let told = download.round();
            let now = download.sent.wrapping_add(told);
            assert!(seq::after(now.wrapping_add(1 << scale), edge), "scale {scale}, round {round}");
            edge = seq::later(now, edge);
        }
    }
}

#[test]
fn the_window_grows_by_the_growth_per_round_trip() {
    let mut download = Download::with_scale(4, PLAN);
    download.offered = 10_000;
    download.ack(1_000);
    download.offered = 600_000;
    assert_eq!(download.state.half[0].window, window::INITIAL_WINDOW);
    while download.state.half[0].window < 50_000 {
        download.round();
    }
    let (before, delivered) = (download.state.half[0].window, download.state.half[0].delivered);
    while download.state.half[0].delivered - delivered < before {
        download.round();
    }
    let grown = download.state.half[0].window - before;
    assert!((2_700..=3_100).contains(&grown), "{grown}");
}

#[test]
fn a_flow_starts_from_what_is_in_flight() {
    let mut download = Download::with_scale(7, Plan { clamp_bytes: 0, ..PLAN });
    download.ack(1_000);
    download.data(40_000);
    download.state.half[0].plan = PLAN;
    download.ack(1_000);
    assert_eq!(download.state.half[0].window, 40_000);
}

#[test]
fn a_window_that_fell_is_a_window_in_force_and_a_raised_clamp_is_grown_into() {
    let mut download = Download::with_scale(4, Plan { clamp_bytes: 20_000, ..PLAN });
    download.ack(1_000);
    for _ in 0..600 {
        download.round();
    }
    let held = download.round();
    assert!((19_900..=20_000).contains(&held), "{held}");
    download.state.half[0].plan = PLAN;
    assert!(download.round() < held + 1_000, "no jump");
}

#[test]
fn a_window_update_may_move_a_paced_edge_and_a_duplicate_may_not() {
    let mut download = Download::with_scale(0, Plan { pace_bytes: 1_000_000, ..PLAN });
    download.offered = 2_000;
    download.ack(1_000);
    download.data(MSS);
    download.offered = 60_000;
    // Edge 3,000 and 3,000 bytes of credit.
    assert_eq!(download.ack(1_000), 5_000);
    download.now += Span::from_millis(100);
    assert_eq!(download.ack(1_000), 5_000);
    assert!(download.ack(1_000 + MSS) > 5_000);
}

#[test]
fn acks_that_waited_together_come_back_at_the_pace_of_the_share() {
    // 3 MB/s: 3,000 bytes a millisecond.
    let plan = Plan { pace_bytes: 3_221_225, ..PLAN };
    let mut download = Download::with_scale(0, plan);
    download.ack(1_000);
    (0..60).for_each(|_| {
        download.now += Span::from_micros(500);
        download.round();
    });
    let before = download.state.half[0].edge;
    let first = download.sent;
    (0..12).for_each(|_| download.data(MSS));
    download.now += Span::from_millis(20);
    (1..=12).for_each(|k| {
        download.ack(first + k * MSS);
    });
    let advance = download.state.half[0].edge - before;
    assert!((3_000..3_500).contains(&advance), "{advance}");
}

#[test]
fn a_receiver_that_acknowledges_in_large_steps_is_not_held_to_small_ones() {
    let plan = Plan { pace_bytes: 3_221_225, ..PLAN };
    let mut download = Download::with_scale(0, plan);
    download.ack(1_000);
    let mut now = 0;
    for _ in 0..100 {
        let flight = download.state.half[0].edge.wrapping_sub(download.sent).min(40_000);
        now = download.sent;
        download.data(flight);
        download.now += Span::from_millis(14);
        download.ack(download.sent);
    }
    // 40 kB every 14 ms are 2.9 MB/s, within the pace.
    assert!(download.sent - now > 30_000, "{}", download.sent - now);
}

#[test]
fn a_heartbeat_counts_until_it_is_older_than_two_seconds() {
    let mut download = Download::with_scale(0, PLAN);
    let tcp = acknowledge(1_000, 60_000);
    let heartbeat = download.control.heartbeat_ns;
    for (age, expected) in [(2_000_000_000, Reason::WithinPlan), (2_000_000_001, Reason::Stale)] {
        let now = Time::from_nanos(heartbeat + age);
        let verdict = on_packet(&mut download.state, &mut download.control, passage(Direction::ToRemote), &tcp, now);
        assert_eq!(verdict, Verdict::Pass(expected));
    }
}

#[test]
fn scales_come_from_both_syns_and_a_new_connection_forgets_one_that_was_not_assured() {
    let mut download = Download::with_scale(3, PLAN);
    download.data(MSS);
    let syn = |scale| TcpFields { seq: 0, flags: flag::SYN, window_scale: scale, ..acknowledge(0, 1_000) };
    download.pass(Direction::ToRemote, &syn(Some(5)));
    assert_eq!(download.state.half[0].known_scale(), None);
    let answer = TcpFields { seq: 77, ack: 1, flags: flag::SYN | flag::ACK, ..syn(Some(9)) };
    download.pass(Direction::ToStation, &answer);
    assert_eq!(download.state.half.map(|half| half.known_scale()), [Some(5), Some(9)]);
    assert_eq!((download.state.half[0].edge, download.state.half[1].edge), (1_078, 1_001));
    assert_eq!(download.state.half[0].packets, 2, "counters go on");
    // A SYN sent again with another scale, which may go no further than here, makes nothing smaller.
    download.pass(Direction::ToRemote, &syn(Some(0)));
    download.pass(Direction::ToStation, &answer);
    assert_eq!(download.state.half.map(|half| half.known_scale()), [Some(5), Some(9)]);
    // Now both ends are there, and SYNs change nothing any more.
    download.pass(Direction::ToRemote, &acknowledge(78, 1_000));
    let before = download.state;
    for tcp in [syn(Some(0)), TcpFields { seq: 9, ..syn(None) }] {
        assert_eq!(download.pass(Direction::ToRemote, &tcp), Verdict::Pass(Reason::Invalid));
    }
    assert_eq!(download.pass(Direction::ToStation, &answer), Verdict::Pass(Reason::Invalid));
    assert_eq!(download.state, before);
}

#[test]
fn data_and_its_ack_give_an_rtt_sample_and_a_retransmission_spoils_it() {
    let mut download = Download::with_scale(0, PLAN);
    let samples = |download: &Download| download.state.half[0].rtt.total.samples();
    download.round();
    assert_eq!(samples(&download), 0, "nothing came before it: its ACK is likely to have waited");
    download.round();
    assert_eq!(samples(&download), 1);
    assert_eq!(download.state.half[0].rtt_min(0), Some(STEP));
    download.round();
    assert_eq!(samples(&download), 1, "of two segments one");
    download.data(MSS);
    download.sent -= MSS;
    download.data(MSS);
    download.ack(download.sent);
    assert_eq!(samples(&download), 1);
}

#[test]
fn an_ack_that_waited_for_a_second_segment_gives_no_sample_and_says_which_of_two_does_not_wait() {
    let mut download = Download::with_scale(0, PLAN);
    let samples = |download: &Download| download.state.half[0].rtt.total.samples();
    let pair = |download: &mut Download| {
        download.data(MSS);
        download.now += Span::from_millis(20);
        download.data(MSS);
        download.ack(download.sent);
    };
    download.round();
    download.round();
    assert_eq!(samples(&download), 1);
    pair(&mut download);
    assert_eq!(samples(&download), 2, "the second of two is told at once");
    // Seven by now: the receiver tells of one by itself, and then of two again.
    download.round();
    pair(&mut download);
    assert_eq!(samples(&download), 2, "the first of two waited");
    pair(&mut download);
    pair(&mut download);
    assert_eq!(samples(&download), 4);
    assert_eq!(download.state.half[0].rtt_min(0), Some(STEP), "and never what one waited for");
    // One ACK for many says that they came together.
    (0..5).for_each(|_| download.data(MSS));
    download.ack(download.sent);
    assert_eq!(samples(&download), 5);
}

#[test]
fn a_segment_after_a_pause_is_not_timed() {
    let mut download = Download::with_scale(0, PLAN);
    for pause in [Span::from_millis(29), Span::from_millis(31)] {
        // Twice, for one of two is timed.
        let before = download.state.half[0].rtt.total.samples();
        (0..4).for_each(|_| {
            download.now += pause;
            download.round();
        });
        let samples = download.state.half[0].rtt.total.samples() - before;
        assert_eq!(samples, if pause < Span::from_millis(30) { 2 } else { 0 });
    }
}

#[test]
fn a_timestamp_of_data_begins_no_match() {
    let mut download = Download::with_scale(0, PLAN);
    let with = |bytes, value, echo| TcpFields {
        payload_bytes: bytes,
        segment_bytes: bytes,
        seq: 1_000,
        timestamps: Some((value, echo)),
        ..acknowledge(1, 100)
    };
    download.pass(Direction::ToStation, &with(MSS, 5, 1));
    download.pass(Direction::ToRemote, &TcpFields { payload_bytes: 0, ..with(0, 9, 5) });
    assert_eq!(download.state.half[0].rtt.total.samples(), 0);
}

#[test]
fn a_timestamp_that_comes_back_gives_a_sample_only_from_its_first_leaving() {
    let mut download = Download::with_scale(0, PLAN);
    let with = |value, echo| TcpFields { timestamps: Some((value, echo)), ..acknowledge(1_000, 100) };
    download.pass(Direction::ToRemote, &with(5, 0));
    download.pass(Direction::ToRemote, &with(6, 0));
    let answer = |echo| TcpFields { seq: 1_000, ack: 1, ..with(9, echo) };
    download.pass(Direction::ToStation, &answer(5));
    assert_eq!(download.state.half[1].rtt_min(0), Some(STEP + STEP));
    let answered = download.state.half[1].rtt.answered;
    assert_eq!((answered.value(), answered.age(download.now)), (9, STEP + STEP), "of the very packet that answered it");
    // 6 left while 5 was awaited: when it left first is not known any more.
    download.pass(Direction::ToRemote, &with(6, 0));
    download.pass(Direction::ToStation, &answer(6));
    assert_eq!(download.state.half[1].rtt.total.samples(), 1);
}

#[test]
fn a_new_epoch_starts_the_minimum_anew() {
    let mut download = Download::with_scale(0, PLAN);
    download.round();
    download.round();
    download.control.epoch = 1;
    download.ack(download.sent);
    assert_eq!(download.state.half[0].rtt_min(1), None);
    assert_eq!(download.state.half[0].rtt.total.samples(), 1);
}

#[test]
fn a_sender_that_fills_the_window_it_knows_of_is_limited() {
    let mut download = Download::with_scale(0, PLAN);
    let stamped = |tcp: TcpFields, value, echo| TcpFields { timestamps: Some((value, echo)), ..tcp };
    download.pass(Direction::ToRemote, &stamped(acknowledge(1_000, 10_000), 50, 0));
    let data = |seq, bytes| TcpFields { seq, payload_bytes: bytes, segment_bytes: MSS, ..acknowledge(1, 100) };
    download.pass(Direction::ToStation, &stamped(data(1_000, 5_000), 1, 50));
    assert!(!download.state.half[0].window_limited(0));
    // The access point has passed a further edge on, which the sender cannot know yet.
    download.pass(Direction::ToRemote, &stamped(acknowledge(6_000, 10_000), 51, 1));
    download.pass(Direction::ToStation, &stamped(data(6_000, 5_000), 2, 50));
    assert!(download.state.half[0].window_limited(0));
    assert!(!download.state.half[0].window_limited(1));
}

/// Linux waits until it may send what its pace brings in a millisecond, and its window then is never full to within a segment.
#[test]
fn a_sender_that_waits_with_less_than_it_sends_at_once_is_limited() {
    let limited = |left: u32, rtt: Span| {
        let mut download = Download::with_scale(0, PLAN);
        let stamped = |tcp: TcpFields, value, echo| TcpFields { timestamps: Some((value, echo)), ..tcp };
        download.pass(Direction::ToRemote, &stamped(acknowledge(1_000, 60_000), 50, 0));
        let Half { edge, window, .. } = download.state.half[0];
        download.state.half[0].rtt.last_ns = 1_000_000;
        download.state.half[1].rtt.last_ns = (rtt.as_nanos() - 1_000_000) as u32;
        let data =
            TcpFields { seq: 1_000, payload_bytes: edge - 1_000 - left, segment_bytes: MSS, ..acknowledge(1, 100) };
        download.pass(Direction::ToStation, &stamped(data, 1, 50));
        (window, download.state.half[0].window_limited(0))
    };
    // A window in 3 ms: a third of it in one.
    let (window, is_limited) = limited(4_800, Span::from_millis(3));
    assert!(is_limited && window / 3 > 4_800, "{window}");
    assert!(!limited(window / 2, Span::from_millis(3)).1, "it left more");
    assert!(!limited(4_800, Span::from_millis(80)).1, "nor is that at once on a longer path");
    assert!(limited(1_000, Span::from_millis(80)).1, "less than a segment");
}

#[test]
fn without_timestamps_a_sender_is_held_against_what_it_was_told_a_round_trip_ago() {
    let limited = |gap: Span, bytes: u32| {
        let mut download = Download::with_scale(0, PLAN);
        download.state.half[1].rtt.last_ns = 80_000_000;
        let data = |seq, bytes| TcpFields { seq, payload_bytes: bytes, segment_bytes: MSS, ..acknowledge(1, 100) };
        download.pass(Direction::ToStation, &data(1_000, 1_000));
        download.pass(Direction::ToRemote, &acknowledge(2_000, 10_000));
        // A further edge, which the sender cannot know when the next data leaves it.
        download.now += Span::from_millis(40);
        download.pass(Direction::ToRemote, &acknowledge(2_000, 30_000));
        download.now += gap - Span::from_millis(40);
        download.pass(Direction::ToStation, &data(2_000, bytes));
        download.state.half[0].window_limited(0)
    };
    assert!(limited(Span::from_millis(81), 9_000), "it filled the 10,000 bytes that it knew of");
    assert!(!limited(Span::from_millis(81), 5_000), "it left half of them");
    assert!(!limited(Span::from_millis(70), 9_000), "it could not know of them yet");
    assert!(!limited(Span::from_millis(95), 9_000), "it knew of more by then");
}

#[test]
fn the_hosts_count_alike() {
    let mut counters = Counters::default();
    let udp = Parsed::Udp(wire::UdpFields {
        source: wire::Endpoint::default(),
        destination: wire::Endpoint::default(),
        ip_bytes: 228,
        segments: 1,
        ecn: 0,
        deep: false,
        quic: false,
    });
    count(&mut counters, 17, Direction::ToRemote, &udp, Reason::Udp);
    assert_eq!((counters.udp_bytes, counters.ip_bytes, counters.packets), ([0, 228], [0, 228], [0, 1]));
    assert_eq!(counters.udp_packets, [0, 1]);
    assert_eq!(counters.reason[Reason::Udp as usize], 1);
    count(&mut counters, 17, Direction::ToRemote, &udp, Reason::UdpDropped);
    assert_eq!((counters.udp_bytes, counters.packets), ([0, 228], [0, 1]), "nobody carries what is dropped");
    assert_eq!(counters.reason[Reason::UdpDropped as usize], 1);
}

proptest! {
    /// Whatever the fields and the state: no panic, never raised, never zero.
    #[test]
    fn nothing_is_ever_raised(
        packets in prop::collection::vec((any::<(u32, u32, u16, u8, bool)>(), any::<Option<(u32, u32)>>(),
            any::<Option<u32>>(), prop::option::of(0u8..=14), 0u32..70_000), 1..40),
        clamp: u32,
        floor: u32,
        growth: u32,
        pace: u32,
        scale in 0u8..=15,
        near: bool,
        hop: (u32, u32, u32),
    ) {
        let mut download = Download::with_scale(0, Plan { clamp_bytes: clamp, floor_bytes: floor, growth_bytes: growth, pace_bytes: pace });
        download.state.half[0].conntrack_scale = scale;
        let (depth_bytes, rate_bytes, left_bytes) = hop;
        download.control.hops[0] = [layout::Hop { depth_bytes, rate_bytes, left_bytes, ..layout::Hop::default() }; 2];
        for ((seq, ack, window, flags, up), timestamps, sack_high, window_scale, bytes) in packets {
            // Mostly near each other, so that the edges meet.
            let close = |n: u32| if near { n & 0xffff } else { n };
            let tcp = TcpFields {
                seq: close(seq), ack: close(ack), window, flags, timestamps, sack_high: sack_high.map(close),
                window_scale, payload_bytes: bytes, segment_bytes: bytes, segments: 1, ..TcpFields::default()
            };
            let direction = if up { Direction::ToRemote } else { Direction::ToStation };
            if let Verdict::Rewrite { window: lowered } = download.pass(direction, &tcp) {
                prop_assert!(lowered < window && lowered > 0);
            }
        }
    }
}

#[test]
fn a_timestamp_keeps_the_time_of_the_packet_that_brought_it() {
    let mut download = Download::with_scale(0, PLAN);
    let with = |bytes, value| TcpFields {
        payload_bytes: bytes,
        segment_bytes: bytes,
        timestamps: Some((value, 1)),
        ..acknowledge(1, 100)
    };
    download.pass(Direction::ToStation, &with(MSS, 5));
    // The same millisecond's data, of which the last has waited longest, and then an acknowledgment without any.
    download.pass(Direction::ToStation, &TcpFields { seq: 1 + MSS, ..with(MSS, 5) });
    let later = |download: &Download| download.state.half[0].rtt.ts_newest.age(download.now);
    assert_eq!((download.state.half[0].rtt.ts_newest.value(), later(&download)), (5, Span::ZERO));
    download.now += Span::from_millis(4);
    download.pass(Direction::ToStation, &TcpFields { seq: 1 + 2 * MSS, ..with(0, 9) });
    assert_eq!((download.state.half[0].rtt.ts_newest.value(), later(&download)), (9, Span::ZERO));
}

#[test]
fn the_soonest_of_an_interval_is_the_packet_that_waited_least_by_its_sender_s_clock() {
    // Not known, the newest counts; by too fine a clock the first waited least.
    for (tick_ns, soonest) in [(1_000_000, 24), (0, 36), (1_000, 10)] {
        let mut download = Download::with_scale(0, PLAN);
        download.control.tick_ns = tick_ns;
        let mut seq = 1;
        let mut pass = |download: &mut Download, value, after| {
            download.now += Span::from_millis(after);
            let timestamps = Some((value, 1));
            let data = TcpFields { seq, payload_bytes: MSS, segment_bytes: MSS, timestamps, ..acknowledge(1, 100) };
            download.pass(Direction::ToStation, &data);
            seq += MSS;
        };
        // The second came after 4 ms of 2, so 2 later than the first; the third 8 sooner; the fourth 4 later than that.
        for (value, after) in [(10, 12), (12, 4), (24, 4), (36, 16)] {
            pass(&mut download, value, after);
        }
        assert_eq!(download.state.half[0].rtt.ts_soonest.value(), soonest, "{tick_ns} ns");
        download.control.epoch += 1;
        pass(&mut download, 40, 30);
        assert_eq!(download.state.half[0].rtt.ts_soonest.value(), 40, "another interval");
    }
}

#[test]
fn a_stamp_tells_packets_its_age_for_73_minutes_and_a_reader_when_it_passed_for_36() {
    let passed = Time::from_nanos(90_000_000_000_000);
    let stamp = Stamp::new(u32::MAX, passed);
    for after in [Span::ZERO, Span::from_millis(7), Span::from_secs(4_000)] {
        let off = stamp.age(passed + after).as_nanos().abs_diff(after.as_nanos());
        assert!(stamp.value() == u32::MAX && off <= 1 << Stamp::SHIFT, "{off} ns after {after:?}");
    }
    for after in [Span::ZERO, Span::from_millis(7), Span::from_secs(2_000)] {
        let off = stamp.at(passed + after).as_nanos().abs_diff(passed.as_nanos());
        assert!(off < 1 << Stamp::SHIFT, "{off} ns after {after:?}");
    }
    let before = passed - Span::from_micros(300);
    assert_eq!(stamp.seen_age(before), Span::ZERO, "it passed while records were read");
    assert!(
        stamp.at(before).as_nanos().abs_diff(passed.as_nanos()) < 1 << Stamp::SHIFT,
        "and not when they were begun"
    );
    assert!(Stamp::NONE.is_none() && Stamp::default().value() == 0);
}

#[test]
fn sum_and_number_of_round_trips_stay_apart_when_they_begin_anew() {
    // Just below where each of them is full.
    let mut total = RttTotal::default();
    (0..300).for_each(|_| total = total.add(u32::MAX));
    for round in 0..3 << (64 - RttTotal::SUM_BITS - 2) {
        let before = total;
        total = total.add(3_000 << 10).add(1_000 << 10);
        assert_eq!(total.samples_since(before), 2, "{round}");
        assert_eq!(total.mean_since(before), Some(Span::from_nanos(2_000 << 20)), "{round}");
    }
    assert_eq!(total.mean_since(total), None);
}
