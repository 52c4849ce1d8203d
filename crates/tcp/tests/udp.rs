//! What senders make of the virtual queue that holds UDP (`core::fastpath::udp`): they stand for QUIC's, whose laws they are.

mod common;

use std::cell::RefCell;
use std::rc::Rc;

use common::path::{Link, Path};
use lasthop_core::elastic::{Behaviour, Classifier, HopLoad, Interval, Why};
use lasthop_core::fastpath::layout::{Control, UdpHalf, UdpPlan, UdpState};
use lasthop_core::fastpath::udp::{Datagram, UdpVerdict, on_datagram};
use lasthop_core::packet::Direction;
use lasthop_core::units::{BitRate, Span, Time};
use lasthop_tcp::{Algorithm, SenderParams};

const RATE: BitRate = BitRate::mbps(6);

/// What a run of a paced sender over a path of three times the planned rate came to.
struct Outcome {
    /// Goodput with its headers after the first 5 s, in parts of the planned rate.
    share: f64,
    /// Most that passed ahead of the rate within 20 ms, bytes.
    ahead: u64,
    half: UdpHalf,
}

fn run(cc: Algorithm, rtt: Span, plan: UdpPlan, end: u64) -> Outcome {
    let params = SenderParams { cc, sack: true, ..SenderParams::default() };
    let mut path = Path::new(params, 4000 * 1460, Link::new(RATE.mul_f64(3.0), rtt / 2, 1000));
    path.paced = cc != Algorithm::Bbr;
    let state = Rc::new(RefCell::new(UdpState::new(Time::ZERO)));
    state.borrow_mut().half[0].plan = plan;
    let passed = Rc::new(RefCell::new(Vec::new()));
    let (held, noted) = (state.clone(), passed.clone());
    path.gate = Some(Box::new(move |now, bytes| {
        let control = Control { heartbeat_ns: now.as_nanos(), ..Control::default() };
        let datagram = Datagram { ip_bytes: bytes as u32, segments: 1, understands_marks: false, quic: false };
        let verdict = on_datagram(&mut held.borrow_mut(), &control, Direction::ToStation, &datagram, now);
        if verdict != UdpVerdict::Drop {
            noted.borrow_mut().push((now, bytes));
        }
        verdict != UdpVerdict::Drop
    }));
    path.run(Time::from_nanos(5_000_000_000));
    let before = path.sender.snapshot().acked_bytes;
    path.run(Time::from_nanos(end * 1_000_000_000));
    let acked = path.sender.snapshot().acked_bytes - before;
    let share = acked as f64 * 1500.0 / 1460.0 * 8.0 / (end - 5) as f64 / RATE.as_bps() as f64;
    let half = state.borrow().half[0];
    Outcome { share, ahead: most_within(&passed.borrow(), Span::from_millis(20)), half }
}

fn most_within(passed: &[(Time, u64)], span: Span) -> u64 {
    let (mut first, mut sum, mut most) = (0, 0, 0);
    for (now, bytes) in passed {
        sum += bytes;
        while now.since(passed[first].0) > span {
            sum -= passed[first].1;
            first += 1;
        }
        most = most.max(sum);
    }
    most - RATE.bytes_in(span)
}

/// As `core::ap` makes it.
fn plan() -> UdpPlan {
    let second = RATE.bytes_in(Span::from_nanos(1 << 30)) as u32;
    UdpPlan { rate_bytes: second, depth_bytes: 18_000, most_bytes: 36_000, answer_ns: 200_000_000 }
}

#[test]
fn a_sender_that_is_held_is_told_once_and_has_what_its_saw_leaves_of_the_rate() {
    for cc in [Algorithm::Cubic, Algorithm::NewReno, Algorithm::Bbr] {
        for rtt in [20, 40, 100, 200] {
            let outcome = run(cc, Span::from_millis(rtt), plan(), 45);
            let lost = f64::from(outcome.half.dropped) / outcome.half.packets as f64;
            println!(
                "{cc:?}, {rtt} ms: {:.3} of the rate, {lost:.4} lost, {} bytes ahead",
                outcome.share, outcome.ahead
            );
            // A saw from half to the whole has three quarters of it; over 200 ms NewReno needs 20 s to come back from where slow start left it.
            assert!((0.6..1.06).contains(&outcome.share), "{cc:?}, {rtt} ms: {}", outcome.share);
            // BBR does not answer losses.
            assert!(lost < 0.02 || cc == Algorithm::Bbr, "{cc:?}, {rtt} ms: {lost}");
            // The most, a packet, and half the rate for 20 ms.
            assert!(outcome.ahead <= 36_000 + 1_500 + 7_500, "{cc:?}, {rtt} ms: {}", outcome.ahead);
        }
    }
}

/// The flow as the access point sees it, and when it was taken for what.
struct Watcher {
    state: UdpState,
    before: UdpState,
    classifier: Classifier,
    next: Time,
    found: Vec<(Time, Behaviour, Why)>,
}

const INTERVAL: Span = Span::from_millis(50);

impl Watcher {
    fn new() -> Self {
        let state = UdpState::new(Time::ZERO);
        let classifier = Classifier::default();
        Self { state, before: state, classifier, next: Time::ZERO + INTERVAL, found: vec![] }
    }

    fn pass(&mut self, now: Time, direction: Direction, bytes: u64) {
        while now >= self.next {
            let interval = Interval::between(&self.before, &self.state, Direction::ToStation, INTERVAL);
            if self.classifier.on_interval(&interval, &HopLoad::default()) {
                self.found.push((self.next, self.classifier.behaviour(), self.classifier.why()));
            }
            self.before = self.state;
            self.next += INTERVAL;
        }
        let datagram = Datagram { ip_bytes: bytes as u32, segments: 1, understands_marks: false, quic: false };
        let control = Control { heartbeat_ns: now.as_nanos(), ..Control::default() };
        on_datagram(&mut self.state, &control, direction, &datagram, now);
    }
}

/// What a download is taken for over a hop of 20 Mbit/s.
fn watch(cc: Algorithm, rtt: Span, room: usize, paced: bool, delayed: bool) -> Vec<(Time, Behaviour, Why)> {
    let params = SenderParams { cc, sack: true, ..SenderParams::default() };
    let mut path = Path::new(params, 64 << 20, Link::new(BitRate::mbps(20), rtt / 2, room));
    if delayed {
        path.delay_acks();
    }
    path.paced = paced && cc != Algorithm::Bbr;
    let watcher = Rc::new(RefCell::new(Watcher::new()));
    let (down, up) = (watcher.clone(), watcher.clone());
    path.gate = Some(Box::new(move |now, bytes| {
        down.borrow_mut().pass(now, Direction::ToStation, bytes);
        true
    }));
    path.answers = Some(Box::new(move |now| up.borrow_mut().pass(now, Direction::ToRemote, 60)));
    path.run(Time::from_nanos(4_000_000_000));
    watcher.borrow().found.clone()
}

#[test]
fn a_bulk_transfer_is_elastic_after_a_second_and_stays_so() {
    for cc in [Algorithm::Cubic, Algorithm::NewReno, Algorithm::Bbr] {
        for rtt in [10, 30, 100, 300].map(Span::from_millis) {
            for (room, paced, delayed) in
                [(50, true, true), (50, false, true), (1000, true, false), (1000, false, true)]
            {
                let found = watch(cc, rtt, room, paced, delayed);
                let case = format!("{cc:?}, {rtt}, {room} packets, paced {paced}: {found:?}");
                println!("{case}");
                // Unpaced, with such a round trip and such a queue, it is far below all it could have.
                if cc == Algorithm::NewReno && rtt > Span::from_millis(200) && room == 50 && !paced {
                    continue;
                }
                let [(at, Behaviour::Elastic, _)] = found[..] else { panic!("{case}") };
                assert!(rtt > Span::from_millis(200) || at <= Time::from_nanos(1_500_000_000), "{case}");
            }
        }
    }
}
