//! The same drops as in ns-2.35: the same segments in the same order, with the same pauses between them.
//!
//! `ns2/drops.tcl` wrote what is expected. ns-2's Sack1 is left out: its `pipe` is older than RFC 6675.

use std::collections::{HashSet, VecDeque};

use lasthop_core::units::{BitRate, Span, Time};
use lasthop_tcp::{Ack, Algorithm, Receiver, ReceiverParams, Segment, Sender, SenderParams};

const MSS: u32 = 960;
const HEADER: u64 = 40;
/// ns-2 measures and waits in ticks of 10 ms, which a backoff multiplies.
const TOLERANCE_MS: f64 = 25.0;
const TOLERANCE: f64 = 0.02;

/// One direction: a queue, a rate, a delay.
struct Link<P> {
    rate: BitRate,
    delay: Span,
    /// Packets that may wait beside the one on the link.
    room: usize,
    free_at: Time,
    /// When those that wait get their turn.
    starts: VecDeque<Time>,
    flying: VecDeque<(Time, P)>,
}

impl<P> Link<P> {
    fn new(rate: BitRate, delay: Span, room: usize) -> Self {
        Self { rate, delay, room, free_at: Time::ZERO, starts: VecDeque::new(), flying: VecDeque::new() }
    }

    fn send(&mut self, now: Time, bytes: u64, packet: P) {
        while self.starts.front().is_some_and(|&start| start <= now) {
            self.starts.pop_front();
        }
        if self.starts.len() >= self.room {
            return;
        }
        let start = self.free_at.max(now);
        if start > now {
            self.starts.push_back(start);
        }
        self.free_at = start + self.rate.time_for(bytes);
        self.flying.push_back((self.free_at + self.delay, packet));
    }

    fn next(&self) -> Option<Time> {
        self.flying.front().map(|&(at, _)| at)
    }

    fn arrived(&mut self, now: Time) -> Option<P> {
        let due = self.next().is_some_and(|at| at <= now);
        if due { self.flying.pop_front().map(|(_, packet)| packet) } else { None }
    }
}

/// A sender and a receiver without delayed ACKs, a link each way.
struct Path {
    sender: Sender,
    receiver: Receiver,
    down: Link<Segment>,
    up: Link<Ack>,
    /// Of segments on the way down, counted from 0 without the SYN.
    drops: HashSet<u64>,
    count: u64,
    sent: Vec<(Time, u64)>,
}

impl Path {
    fn new(params: SenderParams, window: u64, down: Link<Segment>, drops: HashSet<u64>) -> Self {
        let receiver = ReceiverParams { mss: MSS, delayed_ack: false, window: Some(window), ..Default::default() };
        let up = Link::new(down.rate, down.delay, usize::MAX);
        let sender = Sender::new(SenderParams { mss: MSS, ..params });
        Self { sender, receiver: Receiver::new(receiver), down, up, drops, count: 0, sent: Vec::new() }
    }

    fn send(&mut self, now: Time) {
        while let Some(segment) = self.sender.poll(now) {
            if segment.syn {
                self.down.send(now, HEADER, segment);
                continue;
            }
            self.sent.push((now, segment.offset / u64::from(MSS)));
            // A packet that is lost takes its time on the link like the others.
            let lost = self.drops.contains(&self.count);
            let segment = if lost { Segment { bytes: 0, offset: u64::MAX, ..segment } } else { segment };
            self.down.send(now, u64::from(MSS) + HEADER, segment);
            self.count += 1;
        }
    }

    /// Until `end`, or until nothing is left to do.
    fn run(&mut self, end: Time) {
        let mut now = Time::ZERO;
        loop {
            self.send(now);
            let timers = [self.sender.next_deadline(), self.receiver.next_deadline()];
            let Some(next) = timers.into_iter().chain([self.down.next(), self.up.next()]).flatten().min() else {
                return;
            };
            now = next.max(now);
            if now >= end {
                return;
            }
            while let Some(segment) = self.down.arrived(now) {
                if segment.offset == u64::MAX {
                    continue;
                }
                self.receiver.on_segment(now, &segment);
                while let Some(ack) = self.receiver.poll(now) {
                    self.up.send(now, HEADER, ack);
                }
            }
            // One at a time: each releases its own segments.
            if let Some(ack) = self.up.arrived(now) {
                self.sender.on_ack(now, &ack);
            }
        }
    }

    /// As `ns2/drops.tcl` writes it, and the time it took.
    fn line(&self) -> (String, Span) {
        let (mut line, mut last) = (String::new(), None::<Time>);
        for &(at, number) in &self.sent {
            if last.is_some_and(|last| at.since(last) > Span::from_micros(500)) {
                line.push(',');
            }
            line.push_str(&format!(" {number}"));
            last = Some(at);
        }
        let first = self.sent.first().map_or(Time::ZERO, |&(at, _)| at);
        (line, last.unwrap_or(first).since(first))
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
        let (head, expected) = line.split_once(':').expect("numbers");
        let (agent, rest) = head.split_once(" {").expect("an agent");
        let (drops, milliseconds) = rest.split_once("} ").expect("drops");
        let milliseconds: f64 = milliseconds.parse().expect("a time");
        let drops = drops.split_whitespace().map(|drop| drop.parse().expect("a number")).collect();
        let link = Link::new(BitRate::mbps(8), Span::from_millis(50), usize::MAX);
        let bytes = Some(60 * u64::from(MSS));
        let mut path = Path::new(SenderParams { bytes, ..params(agent) }, 1000 * u64::from(MSS), link, drops);
        path.run(Time::MAX);
        let (found, took) = path.line();
        let off = (took.as_millis_f64() - milliseconds).abs();
        if found != expected || off > TOLERANCE_MS.max(TOLERANCE * milliseconds) {
            let took = took.as_millis_f64();
            different.push(format!("{head}\n  ns-2:{expected}\n  ours:{found}\n  {milliseconds} ms and {took} ms"));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

/// A minute over a bottleneck: drops are those of the queue, so that every difference would grow. ns-2's queue of n holds
/// n - 1 beside the packet on the link.
#[test]
fn a_bottleneck_carries_what_it_carries_in_ns2() {
    let mut different = Vec::new();
    for line in include_str!("ns2/bottleneck.txt").lines().filter(|line| !line.starts_with('#')) {
        let (head, counts) = line.split_once(": ").expect("counts");
        let head: Vec<&str> = head.split(' ').collect();
        let setting: Vec<u64> = head[1..].iter().map(|n| n.parse().expect("a number")).collect();
        let counts: Vec<u64> = counts.split(' ').map(|n| n.parse().expect("a number")).collect();
        let link = Link::new(BitRate::mbps(setting[1]), Span::from_millis(setting[2]), setting[0] as usize - 1);
        let mut path = Path::new(params(head[0]), setting[3] * u64::from(MSS), link, HashSet::new());
        path.run(Time::from_nanos(60_000_000_000));
        let snapshot = path.sender.snapshot();
        let acked = snapshot.acked_bytes / u64::from(MSS);
        // On a short queue one burst more or less at the start decides about more than a second of recovery.
        let tolerance = if setting[0] > 10 { 0.002 } else { 0.05 };
        if acked.abs_diff(counts[0]) as f64 > tolerance * counts[0] as f64 {
            let found = (acked, snapshot.retransmitted, snapshot.timeouts);
            different.push(format!("{line}; ours {found:?}"));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}
