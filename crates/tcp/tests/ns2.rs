//! The same drops as in ns-2.35: the same segments in the same order, with the same pauses between them.
//!
//! `ns2/drops.tcl` wrote what is expected. ns-2's Sack1 is left out: its `pipe` is older than RFC 6675.

mod common;

use common::path::{Link, Path};
use lasthop_core::units::{BitRate, Span, Time};
use lasthop_tcp::{Algorithm, SenderParams};

const MSS: u32 = 960;
/// The phase of ns-2's ticks of 10 ms is random, and a backoff multiplies what it decides.
const TOLERANCE_MS: f64 = 25.0;
const TOLERANCE: f64 = 0.02;

/// Numbers of the segments as `ns2/drops.tcl` writes them, and the time they took.
fn written(sent: &[(Time, u64)]) -> (String, Span) {
    let (mut line, mut last) = (String::new(), None::<Time>);
    for &(at, number) in sent {
        if last.is_some_and(|last| at.since(last) > Span::from_micros(500)) {
            line.push(',');
        }
        line.push_str(&format!(" {number}"));
        last = Some(at);
    }
    let first = sent.first().map_or(Time::ZERO, |&(at, _)| at);
    (line, last.unwrap_or(first).since(first))
}

fn params(agent: &str) -> SenderParams {
    let law = match agent {
        "Tahoe" => Algorithm::Tahoe,
        "Reno" => Algorithm::Reno,
        "Newreno" => Algorithm::NewReno,
        "Vegas" => Algorithm::Vegas,
        other => panic!("no such agent: {other}"),
    };
    SenderParams { mss: MSS, ..SenderParams::ns2(law) }
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
        // Vegas counts its SYN among them.
        let bytes = Some(if agent == "Vegas" { 59 } else { 60 } * u64::from(MSS));
        let mut path = Path::new(SenderParams { bytes, ..params(agent) }, 1000 * u64::from(MSS), link);
        path.drops = drops;
        path.sent = Some(Vec::new());
        path.run(Time::MAX);
        let (found, took) = written(&path.sent.unwrap_or_default());
        let off = (took.as_millis_f64() - milliseconds).abs();
        if found != expected || off > TOLERANCE_MS.max(TOLERANCE * milliseconds) {
            let took = took.as_millis_f64();
            different.push(format!("{head}\n  ns-2:{expected}\n  ours:{found}\n  {milliseconds} ms and {took} ms"));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

/// What waits for its application uses little of the window, which has grown to the receiver's; a loss halves the window.
#[test]
fn a_stream_is_repaired_as_ns2_repairs_it() {
    let mut different = Vec::new();
    for line in include_str!("ns2/stream.txt").lines().filter(|line| !line.starts_with('#')) {
        let (head, expected) = line.split_once(':').expect("numbers");
        let (agent, rest) = head.split_once(" {").expect("an agent");
        let (drops, milliseconds) = rest.split_once("} ").expect("drops");
        let milliseconds: f64 = milliseconds.parse().expect("a time");
        let link = Link::new(BitRate::mbps(5), Span::from_millis(50), usize::MAX);
        let params = SenderParams { fed: true, initial_ssthresh: Some(64.0), ..params(agent) };
        let mut path = Path::new(params, 64 * u64::from(MSS), link);
        path.drops = drops.split_whitespace().map(|drop| drop.parse().expect("a number")).collect();
        path.sent = Some(Vec::new());
        let mut given = 1;
        path.sender.extend(given * u64::from(MSS));
        for frame in 0.. {
            path.run(Time::from_nanos(313_000_000 + 40_000_000 * frame));
            given += if frame % 7 == 6 { 5 } else { 1 + frame % 2 };
            path.sender.extend(given * u64::from(MSS));
            if given > 100 {
                break;
            }
        }
        path.run(Time::from_nanos(60_000_000_000));
        let (found, took) = written(&path.sent.unwrap_or_default());
        if found != expected || (took.as_millis_f64() - milliseconds).abs() > 1.0 {
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
        let mut path = Path::new(params(head[0]), setting[3] * u64::from(MSS), link);
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

/// A minute with losses at random, as `ns2/losses.tcl` draws them.
#[test]
fn a_lossy_link_carries_what_it_carries_in_ns2() {
    let mut different = Vec::new();
    for line in include_str!("ns2/losses.txt").lines().filter(|line| !line.starts_with('#')) {
        let (head, counts) = line.split_once(": ").expect("counts");
        let head: Vec<&str> = head.split(' ').collect();
        let setting: Vec<u64> = head[1..].iter().map(|n| n.parse().expect("a number")).collect();
        let counts: Vec<u64> = counts.split(' ').map(|n| n.parse().expect("a number")).collect();
        let link = Link::new(BitRate::mbps(5), Span::from_millis(setting[1]), 999);
        let params = SenderParams { initial_ssthresh: Some(64.0), ..params(head[0]) };
        let mut path = Path::new(params, 64 * u64::from(MSS), link);
        let mut x = setting[2];
        for number in 0..40_000 {
            x = (1_103_515_245 * x + 12_345) % (1 << 31);
            if x / 65_536 % 1000 < setting[0] {
                path.drops.insert(number);
            }
        }
        path.run(Time::from_nanos(60_000_000_000));
        let snapshot = path.sender.snapshot();
        let acked = snapshot.acked_bytes / u64::from(MSS);
        // Timeouts are in ticks of 10 ms there, and most of the time where many segments are lost.
        if acked.abs_diff(counts[0]) as f64 > 0.03 * counts[0] as f64 {
            let found = (acked, snapshot.retransmitted, snapshot.timeouts);
            different.push(format!("{line}; ours {found:?}"));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}
