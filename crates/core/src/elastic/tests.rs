use super::*;
use crate::fastpath::layout::Control;
use crate::fastpath::udp::{Datagram, on_datagram};
use crate::units::Time;

/// A flow as packets (time, bytes, down), looked at every `interval`.
fn classify(packets: &[(Time, u32, bool)], interval: Span, hop: HopLoad) -> Vec<(f64, Behaviour, Why)> {
    classify_as(Classifier::default(), packets, interval, hop)
}

fn classify_as(
    mut classifier: Classifier,
    packets: &[(Time, u32, bool)],
    interval: Span,
    hop: HopLoad,
) -> Vec<(f64, Behaviour, Why)> {
    let mut state: Option<UdpState> = None;
    let mut before = UdpState::new(Time::ZERO);
    let (mut next, mut found) = (Time::ZERO + interval, vec![]);
    for (now, bytes, down) in packets {
        while *now >= next {
            if let Some(after) = &state {
                let one = Interval::between(&before, after, Direction::ToStation, interval);
                if classifier.on_interval(&one, &hop) {
                    found.push((next.as_nanos() as f64 / 1e9, classifier.behaviour(), classifier.why()));
                }
                before = *after;
            }
            next += interval;
        }
        let datagram = Datagram { ip_bytes: *bytes, segments: 1, understands_marks: false, quic: false };
        if state.is_none() && !datagram.is_full() {
            continue;
        }
        let state = state.get_or_insert_with(|| UdpState::new(*now));
        let direction = if *down { Direction::ToStation } else { Direction::ToRemote };
        on_datagram(state, &Control::default(), direction, &datagram, *now);
    }
    found
}

/// The same numbers everywhere.
struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A stream of frames and what comes back.
#[derive(Clone, Copy)]
struct Video {
    bps: f64,
    fps: f64,
    /// How much faster than its rate a frame is sent; infinite: at once.
    pace: f64,
    /// Each so many frames one is four times as large; 0: none.
    intra: u32,
    /// Packets of this size, and a last one with what is left, or all equally large.
    equal: bool,
    /// Deviation of what the way to here adds, s.
    jitter: f64,
    /// Packets that come back, per second.
    answers: f64,
}

const SECONDS: f64 = 8.0;

fn at(seconds: f64) -> Time {
    Time::from_nanos((seconds.max(0.0) * 1e9) as u64 + 1)
}

fn video(v: Video, seed: u64) -> Vec<(Time, u32, bool)> {
    let mut random = Random(seed);
    let mut packets = vec![];
    let frames = (SECONDS * v.fps) as u32;
    for k in 0..frames {
        let scale = if v.intra > 0 { f64::from(v.intra) / f64::from(v.intra + 3) } else { 1.0 };
        let intra = if v.intra > 0 && k % v.intra == 0 { 4.0 } else { 1.0 };
        let bytes = v.bps / 8.0 / v.fps * scale * intra * (0.6 + 0.8 * random.unit());
        let count = (bytes / 1428.0).ceil().max(1.0);
        let jitter = v.jitter * (random.unit() + random.unit() + random.unit() - 1.5).abs();
        for i in 0..count as u32 {
            let full = if v.equal { bytes / count } else { 1428.0f64.min(bytes - f64::from(i) * 1428.0) };
            let spread = f64::from(i) * 1428.0 * 8.0 / (v.pace * v.bps);
            packets.push((at(f64::from(k) / v.fps + jitter + spread + f64::from(i) * 12e-6), full as u32 + 28, true));
        }
    }
    answer(&mut packets, v.answers);
    packets
}

fn answer(packets: &mut Vec<(Time, u32, bool)>, per_second: f64) {
    let answers = (SECONDS * per_second) as u32;
    packets.extend((0..answers).map(|k| (at(f64::from(k) / per_second), 90, false)));
    packets.sort_by_key(|packet| packet.0);
}

/// `size` bytes at a constant rate, with a jitter of less than a gap.
fn constant(bps: f64, size: u32, answers: f64) -> Vec<(Time, u32, bool)> {
    let gap = f64::from(size) * 8.0 / bps;
    let mut random = Random(1);
    let mut packets: Vec<_> =
        (0..(SECONDS / gap) as u32).map(|k| (at(f64::from(k) * gap + random.unit() * gap), size, true)).collect();
    answer(&mut packets, answers);
    packets
}

const INTERVALS: [Span; 2] = [Span::from_millis(50), Span::from_millis(200)];
const BUSY: HopLoad = busy(20);

/// A hop with a queue.
const fn busy(mbps: u64) -> HopLoad {
    HopLoad { room: Some(BitRate::mbps(mbps)), standing_queue: true }
}

#[test]
fn live_video_cloud_games_and_video_calls_are_never_elastic() {
    let cases = [
        // Rate, frames per second: live video, video calls, cloud games.
        (2e6, 25.0),
        (4e6, 30.0),
        (8e6, 24.0),
        (15e6, 50.0),
        (20e6, 30.0),
        (0.6e6, 15.0),
        (1.5e6, 30.0),
        (3e6, 30.0),
        (10e6, 60.0),
        (20e6, 60.0),
        (30e6, 60.0),
    ];
    let hop = busy(50);
    for (bps, fps) in cases {
        for pace in [f64::INFINITY, 2.5] {
            for (intra, equal, jitter) in [(0, false, 0.0), (12, true, 0.001), (60, false, 0.003)] {
                for answers in [0.0, 20.0, 125.0, 250.0] {
                    for interval in INTERVALS {
                        let video = video(Video { bps, fps, pace, intra, equal, jitter, answers }, 7);
                        let found = classify(&video, interval, hop);
                        let elastic = found.iter().any(|(_, behaviour, _)| *behaviour == Behaviour::Elastic);
                        let case = (bps, fps, pace, intra, equal, jitter, answers, interval);
                        assert!(!elastic, "{case:?}: {found:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn streams_of_constant_rate_are_not_elastic_answered_or_not() {
    for interval in INTERVALS {
        for bps in [2e6, 4e6, 8e6, 17e6] {
            // IPTV: seven packets of a transport stream each, nothing comes back. Contribution links answer every 10 ms.
            for (size, answers) in [(1344, 0.0), (1360, 100.0)] {
                let found = classify(&constant(bps, size, answers), interval, BUSY);
                let elastic = found.iter().any(|(_, behaviour, _)| *behaviour == Behaviour::Elastic);
                assert!(!elastic, "{bps} {size} {answers} {interval}: {found:?}");
            }
        }
    }
}

#[test]
fn what_fills_the_hop_without_answers_is_elastic_only_while_its_queue_stands() {
    let flood = constant(30e6, 1500, 0.0);
    let idle = HopLoad { standing_queue: false, ..BUSY };
    for interval in INTERVALS {
        let found = classify(&flood, interval, BUSY);
        assert!(matches!(found[..], [(at, Behaviour::Elastic, Why::FillsTheHop)] if at <= 1.05), "{found:?}");
        let found = classify(&flood, interval, idle);
        assert!(matches!(found[..], [(_, Behaviour::RealTime, Why::NotAnswered(_))]), "{found:?}");
    }
}

#[test]
fn games_and_speech_are_not_even_looked_at() {
    for (size, gap) in [(200u32, 0.05), (80, 0.02), (1100, 0.01)] {
        let packets: Vec<_> = (0..500).map(|k| (at(f64::from(k) * gap), size, true)).collect();
        assert_eq!(classify(&packets, INTERVALS[0], BUSY), []);
    }
}

/// A game of 15 Mbit/s whose frames are smeared over all of their time from the fourth second on: a queue elsewhere.
#[test]
fn frames_are_remembered_when_a_queue_hides_them() {
    let shape = Video { bps: 15e6, fps: 60.0, pace: 2.5, intra: 0, equal: false, jitter: 0.001, answers: 250.0 };
    let mut packets = video(shape, 3);
    packets.retain(|packet| packet.0 < at(4.0) || !packet.2);
    packets.extend(constant(15e6, 1428, 0.0).into_iter().filter(|packet| packet.0 >= at(4.0)));
    packets.sort_by_key(|packet| packet.0);
    for interval in INTERVALS {
        let found = classify(&packets, interval, busy(40));
        assert!(matches!(found[..], [(_, Behaviour::RealTime, _)]), "{found:?}");
    }
}

#[test]
fn a_tunnel_that_begins_with_a_call_becomes_elastic_with_its_download() {
    let shape = Video { bps: 2e6, fps: 30.0, pace: 2.5, intra: 0, equal: false, jitter: 0.001, answers: 60.0 };
    let mut packets = video(shape, 3);
    packets.extend(constant(12e6, 1480, 500.0).into_iter().filter(|packet| packet.0 >= at(4.0)));
    packets.sort_by_key(|packet| packet.0);
    for interval in INTERVALS {
        let found = classify(&packets, interval, BUSY);
        let [.., (seconds, Behaviour::Elastic, Why::Acknowledged(_))] = found[..] else { panic!("{found:?}") };
        assert!((4.0..6.5).contains(&seconds), "{found:?}");
    }
}

#[test]
fn what_began_as_quic_is_elastic_until_it_comes_in_frames() {
    let media = Video { bps: 3e6, fps: 30.0, pace: 2.5, intra: 0, equal: true, jitter: 0.001, answers: 60.0 };
    for interval in INTERVALS {
        let found = classify_as(Classifier::of_quic(), &video(media, 3), interval, BUSY);
        assert!(matches!(found[..], [(at, Behaviour::RealTime, Why::Frames(_))] if at > 1.0), "{found:?}");
        let found = classify_as(Classifier::of_quic(), &constant(12e6, 1480, 500.0), interval, BUSY);
        assert_eq!(found, [], "it stays what it began as");
    }
    assert_eq!(Classifier::of_quic().behaviour(), Behaviour::Elastic);
}

/// 0.5 Mbit/s of full packets: a QUIC transfer acknowledges each of them, 24 ms apart; nobody answers a stream so often.
#[test]
fn a_slow_transfer_is_told_by_its_acknowledgments() {
    let mut transfer = constant(0.5e6, 1500, 0.0);
    let answers: Vec<_> = transfer.iter().map(|(at, ..)| (*at + Span::from_millis(25), 60, false)).collect();
    transfer.extend(answers);
    transfer.sort_by_key(|packet| packet.0);
    let found = classify(&transfer, INTERVALS[0], BUSY);
    assert!(matches!(found[..], [(_, Behaviour::Elastic, Why::Acknowledged(_))]), "{found:?}");
    let stream = classify(&constant(0.5e6, 1500, 5.0), INTERVALS[0], BUSY);
    assert!(stream.iter().all(|(_, behaviour, _)| *behaviour == Behaviour::RealTime), "{stream:?}");
}

/// A bulk sender that is held sends what is left of its windows: nine tenths of its bytes are in full packets.
#[test]
fn who_is_held_stays_elastic_although_fewer_of_its_packets_are_full() {
    let mut packets = Vec::new();
    for n in 0..8_000_u32 {
        // Full ones at 19 Mbit/s for 2 s; then one in nine is of 900 bytes, and it has half.
        let (time, bytes) = match n {
            0..3_200 => (f64::from(n) / 1_600.0, 1_500),
            _ => (2.0 + f64::from(n - 3_200) / 800.0, if n % 5 == 0 { 900 } else { 1_500 }),
        };
        packets.push((at(time), bytes, true));
        if n % 3 == 0 {
            packets.push((at(time + 1e-4), 60, false));
        }
    }
    let found = classify(&packets, Span::from_millis(50), BUSY);
    assert!(matches!(found[..], [(_, Behaviour::Elastic, _)]), "{found:?}");
}
