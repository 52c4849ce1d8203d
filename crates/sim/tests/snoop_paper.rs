//! The Snoop paper's network beside ns-2.35, the short form of `benches/peers/compare.py snoop`.

mod common;

use common::{load, run};

const GOLDEN: &str = include_str!("../../../tests/golden/ns2-snoop.csv");

/// Flows, and how many seeds: few flows spread more.
const CELLS: [(u32, u32); 3] = [(1, 5), (10, 2), (40, 1)];

/// Goodput in Mbit/s, timely index, loss rate, over all flows.
type Metrics = [f64; 3];

/// Where and what is sent, as the file names it, and so for ours.
struct World {
    source: &'static str,
    delay_ms: u32,
    hop_ms: u32,
    rate_mbps: &'static str,
    buffer: u32,
}

const GREEDY: World = World { source: "ftp", delay_ms: 20, hop_ms: 1, rate_mbps: "0.28", buffer: 28 };
const LONG_LINK: World = World { delay_ms: 1, hop_ms: 20, ..GREEDY };
const FAR: World = World { source: "mpeg", delay_ms: 100, buffer: 128, ..GREEDY };
const FAST: World = World { source: "mpeg", rate_mbps: "1", ..GREEDY };

/// ns-2's means and their standard errors.
fn ns2(world: &World, sender: &str, snoop: bool, flows: u32) -> (Metrics, Metrics) {
    let mut lines = GOLDEN.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let at = |name: &str| head.iter().position(|column| *column == name).unwrap();
    let case = [
        ("source", world.source),
        ("sender", sender),
        ("snoop", if snoop { "1" } else { "0" }),
        ("flows", &flows.to_string()),
        ("error_rate", "0.01"),
        ("delay_ms", &world.delay_ms.to_string()),
        ("hop_ms", &world.hop_ms.to_string()),
        ("rate_mbps", world.rate_mbps),
    ];
    let row = lines.find(|row| case.iter().all(|(key, value)| row[at(key)] == *value)).expect("a case of the file");
    let number = |name: &str| row[at(name)].parse::<f64>().unwrap();
    let names = ["goodput_mbps", "timely_index", "loss_rate"];
    let error = |name: &str| number(&format!("{name}_sd")) / number("runs").sqrt();
    (names.map(number), names.map(error))
}

fn ours(world: &World, sender: &str, snoop: bool, flows: u32, seeds: u32) -> Metrics {
    let mut mean = [0.0; 3];
    for seed in 1..=seeds {
        let mut set = vec![
            format!("server.A.delay={}ms", world.delay_ms),
            format!("wireless_link.delay={}ms", world.hop_ms),
            format!("wireless_link.buffer={}", world.buffer),
            format!("flow.media.sack={}", sender == "westwood+"),
            format!("seed={seed}"),
            format!("server.A.count={flows}"),
            format!("station.B.count={flows}"),
            format!("flow.media.count={flows}"),
            format!("flow.media.cc={sender}"),
            format!("wireless_link.snoop={snoop}"),
        ];
        if world.source == "mpeg" {
            set.extend(["flow.media.kind=video".to_owned(), format!("flow.media.rate={}Mbit/s", world.rate_mbps)]);
        }
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        let report = run(&load("papers/snoop.toml", &set));
        let metrics = || report.flows.iter().map(|flow| &flow.metrics);
        let sent: u64 = metrics().map(|flow| flow.sent).sum();
        let of_all = |share: &dyn Fn(&lasthop_home::report::Metrics) -> Option<f64>| {
            metrics().map(|flow| share(flow).unwrap_or(0.0) * flow.sent as f64).sum::<f64>() / sent as f64
        };
        let this = [
            metrics().map(|flow| flow.goodput_bps).sum::<f64>() / 1e6,
            of_all(&|flow| flow.timely_index),
            of_all(&|flow| flow.loss_rate),
        ];
        mean.iter_mut().zip(this).for_each(|(sum, one)| *sum += one / f64::from(seeds));
    }
    mean
}

/// Few seeds: what the seeds of both may spread (ours as much as ns-2's) is allowed on top of the rule.
fn beside_ns2(world: &World, sender: &str, snoop: bool, flows: u32, seeds: u32) {
    let (theirs, error) = ns2(world, sender, snoop, flows);
    let ours = ours(world, sender, snoop, flows, seeds);
    let allowed = [0.05 * theirs[0], 0.03, (0.2 * theirs[2]).max(0.001)];
    for (figure, what) in ["goodput", "timely index", "loss rate"].iter().enumerate() {
        let spread = 2.0 * error[figure] * (1.0 + 5.0 / f64::from(seeds)).sqrt();
        let apart = (ours[figure] - theirs[figure]).abs();
        assert!(
            apart <= allowed[figure] + spread,
            "{what} of {flows} flows of {sender}, snoop {snoop}: {ours:?}, ns-2 {theirs:?}"
        );
    }
}

#[test]
fn reno_alone_is_ns2s() {
    for (flows, seeds) in CELLS {
        beside_ns2(&GREEDY, "reno", false, flows, seeds);
    }
}

#[test]
fn vegas_alone_is_ns2s() {
    for (flows, seeds) in CELLS {
        beside_ns2(&GREEDY, "vegas", false, flows, seeds);
    }
}

#[test]
fn reno_with_snoop_is_ns2s() {
    for (flows, seeds) in CELLS {
        beside_ns2(&GREEDY, "reno", true, flows, seeds);
    }
}

#[test]
fn vegas_with_snoop_is_ns2s() {
    for (flows, seeds) in CELLS {
        beside_ns2(&GREEDY, "vegas", true, flows, seeds);
    }
}

/// Where the link itself is the long way, many SYNs are lost in its queue, and Snoop repairs them.
#[test]
fn reno_with_snoop_is_ns2s_over_a_long_link() {
    beside_ns2(&LONG_LINK, "reno", true, 20, 1);
    beside_ns2(&LONG_LINK, "reno", true, 40, 2);
}

/// The sender of ns-2's Linux, over the short way and the long.
#[test]
fn westwood_plus_is_ns2s() {
    beside_ns2(&GREEDY, "westwood+", false, 10, 2);
    beside_ns2(&FAR, "westwood+", false, 10, 2);
    beside_ns2(&FAST, "westwood+", false, 5, 3);
}

/// Few streams that fill the link.
#[test]
fn fast_streams_are_ns2s() {
    beside_ns2(&FAST, "reno", false, 5, 3);
    beside_ns2(&FAST, "reno", true, 5, 3);
    beside_ns2(&FAST, "vegas", true, 5, 3);
}
