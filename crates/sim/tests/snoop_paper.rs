//! The Snoop paper's network beside ns-2.35, greedy sources: the short form of `benches/peers/compare.py snoop`.

mod common;

use common::{load, run};

const GOLDEN: &str = include_str!("../../../tests/golden/ns2-snoop.csv");

/// Flows, and how many seeds: few flows spread more.
const CELLS: [(u32, u32); 3] = [(1, 5), (10, 2), (40, 1)];

/// Goodput in Mbit/s, timely index, loss rate, over all flows.
type Figures = [f64; 3];

/// ns-2's means and their standard errors.
fn ns2(sender: &str, snoop: bool, flows: u32) -> (Figures, Figures) {
    let mut lines = GOLDEN.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let at = |name: &str| head.iter().position(|column| *column == name).unwrap();
    let case = [
        ("source", "ftp"),
        ("sender", sender),
        ("snoop", if snoop { "1" } else { "0" }),
        ("flows", &flows.to_string()),
        ("error_rate", "0.01"),
        ("delay_ms", "20"),
    ];
    let row = lines.find(|row| case.iter().all(|(key, value)| row[at(key)] == *value)).expect("a case of the file");
    let number = |name: &str| row[at(name)].parse::<f64>().unwrap();
    let names = ["goodput_mbps", "timely_index", "loss_rate"];
    let error = |name: &str| number(&format!("{name}_sd")) / number("runs").sqrt();
    (names.map(number), names.map(error))
}

fn ours(sender: &str, snoop: bool, flows: u32, seeds: u32) -> Figures {
    let mut mean = [0.0; 3];
    for seed in 1..=seeds {
        let set = [
            format!("seed={seed}"),
            format!("server.A.count={flows}"),
            format!("station.B.count={flows}"),
            format!("flow.media.count={flows}"),
            format!("flow.media.cc={sender}"),
            format!("wireless_link.snoop={snoop}"),
        ];
        let report = run(&load("papers/snoop.toml", &set.each_ref().map(String::as_str)));
        let figures = || report.flows.iter().map(|flow| &flow.figures);
        let sent: u64 = figures().map(|flow| flow.sent).sum();
        let of_all = |share: &dyn Fn(&lasthop_home::report::Figures) -> Option<f64>| {
            figures().map(|flow| share(flow).unwrap_or(0.0) * flow.sent as f64).sum::<f64>() / sent as f64
        };
        let this = [
            figures().map(|flow| flow.goodput_bps).sum::<f64>() / 1e6,
            of_all(&|flow| flow.timely_index),
            of_all(&|flow| flow.loss_rate),
        ];
        mean.iter_mut().zip(this).for_each(|(sum, one)| *sum += one / f64::from(seeds));
    }
    mean
}

/// Few seeds: what the seeds of both may spread (ours as much as ns-2's) is allowed on top of the rule.
fn beside_ns2(sender: &str, snoop: bool, flows: u32, seeds: u32) {
    let (theirs, error) = ns2(sender, snoop, flows);
    let ours = ours(sender, snoop, flows, seeds);
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
        beside_ns2("reno", false, flows, seeds);
    }
}

#[test]
fn vegas_alone_is_ns2s() {
    for (flows, seeds) in CELLS {
        beside_ns2("vegas", false, flows, seeds);
    }
}

#[test]
fn reno_with_snoop_is_ns2s() {
    for (flows, seeds) in CELLS {
        beside_ns2("reno", true, flows, seeds);
    }
}

#[test]
fn vegas_with_snoop_is_ns2s() {
    for (flows, seeds) in CELLS {
        beside_ns2("vegas", true, flows, seeds);
    }
}
