//! The same drops as in ns-2.35: the same segments in the same order, with the same pauses between them.
//!
//! `ns2/drops.tcl` wrote what is expected. ns-2's Sack1 is left out: its `pipe` is older than RFC 6675.

use std::collections::{HashSet, VecDeque};

use lasthop_core::units::{BitRate, Span, Time};
use lasthop_tcp::{Ack, Algorithm, Receiver, ReceiverParams, Segment, Sender, SenderParams};

const MSS: u32 = 960;
const HEADER: u64 = 40;

/// One direction: a queue without limit, a rate, a delay.
struct Link<P> {
    free_at: Time,
    flying: VecDeque<(Time, P)>,
}

impl<P> Link<P> {
    const RATE: BitRate = BitRate::mbps(8);
    const DELAY: Span = Span::from_millis(50);

    fn new() -> Self {
        Self { free_at: Time::ZERO, flying: VecDeque::new() }
    }

    fn send(&mut self, now: Time, bytes: u64, packet: P) {
        self.free_at = self.free_at.max(now) + Self::RATE.time_for(bytes);
        self.flying.push_back((self.free_at + Self::DELAY, packet));
    }

    fn next(&self) -> Option<Time> {
        self.flying.front().map(|&(at, _)| at)
    }

    fn arrived(&mut self, now: Time) -> Option<P> {
        let due = self.next().is_some_and(|at| at <= now);
        if due { self.flying.pop_front().map(|(_, packet)| packet) } else { None }
    }
}

/// Numbers of the segments in the order of sending, as `ns2/drops.tcl` writes them.
fn sent(params: SenderParams, packets: u64, drops: &HashSet<u64>) -> String {
    let bytes = packets * u64::from(MSS);
    let mut sender = Sender::new(SenderParams { mss: MSS, bytes: Some(bytes), ..params });
    let window = Some(1000 * u64::from(MSS));
    let receiver = ReceiverParams { mss: MSS, sack: params.sack, delayed_ack: false, window, ..Default::default() };
    let mut receiver = Receiver::new(receiver);
    let (mut down, mut up) = (Link::<Segment>::new(), Link::<Ack>::new());
    let (mut line, mut count, mut last) = (String::new(), 0, None::<Time>);
    let mut now = Time::ZERO;
    loop {
        while let Some(segment) = sender.poll(now) {
            if segment.syn {
                down.send(now, HEADER, segment);
                continue;
            }
            if last.is_some_and(|last| now.since(last) > Span::from_micros(500)) {
                line.push(',');
            }
            last = Some(now);
            line.push_str(&format!(" {}", segment.offset / u64::from(MSS)));
            // A packet that is lost takes its time on the link like the others.
            let segment =
                if drops.contains(&count) { Segment { bytes: 0, offset: u64::MAX, ..segment } } else { segment };
            down.send(now, u64::from(MSS) + HEADER, segment);
            count += 1;
        }
        let timers = [sender.next_deadline(), receiver.next_deadline(), down.next(), up.next()];
        let Some(next) = timers.into_iter().flatten().min() else { return line };
        now = next.max(now);
        while let Some(segment) = down.arrived(now) {
            if segment.offset == u64::MAX {
                continue;
            }
            receiver.on_segment(now, &segment);
            while let Some(ack) = receiver.poll(now) {
                up.send(now, HEADER, ack);
            }
        }
        // One at a time: each releases its own segments.
        if let Some(ack) = up.arrived(now) {
            sender.on_ack(now, &ack);
        }
    }
}

fn params(agent: &str) -> SenderParams {
    match agent {
        "Tahoe" => SenderParams::ns2(Algorithm::Tahoe),
        "Reno" => SenderParams::ns2(Algorithm::Reno),
        "Newreno" => SenderParams::ns2(Algorithm::NewReno),
        other => panic!("no such agent: {other}"),
    }
}

#[test]
fn drops_are_repaired_as_ns2_repairs_them() {
    let mut different = Vec::new();
    for line in include_str!("ns2/drops.txt").lines().filter(|line| !line.starts_with('#')) {
        let (agent, rest) = line.split_once(" {").expect("an agent");
        let (drops, expected) = rest.split_once("}:").expect("drops");
        let drops = drops.split_whitespace().map(|drop| drop.parse().expect("a number")).collect();
        let found = sent(params(agent), 60, &drops);
        if found != expected {
            different.push(format!("{agent} {drops:?}\n  ns-2:{expected}\n  ours:{found}"));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}
