//! Downloads and uploads at once: each direction has what it has without control, and a game beside them hardly waits. ACKs of one direction wait
//! behind data of the other, so that windows which count that swing, and paced right edges do not.
//!
//! ```text
//! 24 homes: at most 1 direction in 20 has less than 0.95 of its goodput without control, none less than 0.85;
//!           a game's p99 is at most 6 ms in the mean, and in nine of ten at most 8 ms (6.5 and 8.8 where more than a measured capacity is tried
//!           before what windows bring has come)
//! 48 homes of one to three flows each way over a short WAN link: at most 1 direction in 20 has less than 0.95, and a game's p99 is more
//!           than 20 ms in at most 1 in 5
//! 48 homes: after two seconds in which the bottleneck carried two to eight times less, and two more, at most 1 direction in 10 has
//!           less than 0.95 of what it has without control, and a game's p99 is at most 9 ms in the mean (10 where a quarter more than C is tried)
//! 48 homes: a second after what was under way is gone when the bottleneck falls to a half to an eighth, a game's p99 is more than 60 ms in at
//!           most 1 in 8
//! ```

mod common;

use common::{BOTH_WAYS, uniform};
use lasthop_home::scenario::Scenario;
use lasthop_sim::Options;

const CASES: u64 = 24;

/// Goodput of each direction, bit/s, and what a game's packets waited at most in 99 % of them, of each, ms.
fn play(sets: &[String]) -> ([f64; 2], Vec<f64>) {
    let scenario = Scenario::parse(BOTH_WAYS, "both-ways.toml", sets).expect("a scenario");
    let report = lasthop_sim::run(&scenario, &mut Options::default()).expect("it runs");
    let goodput = ["down", "up"].map(|name| {
        let flows = report.flows.iter().filter(|flow| flow.kind == "ftp" && flow.name.starts_with(name));
        flows.map(|flow| flow.metrics.goodput_bps).sum()
    });
    let games = report.flows.iter().filter(|flow| flow.name.starts_with("game"));
    (goodput, games.filter_map(|flow| flow.metrics.added_delay.as_ref()).map(|delay| delay.p99).collect())
}

/// A home drawn at random: its round trip, ms, flows of each direction, and what its bottleneck carries each way, Mbit/s.
struct Home {
    rtt: f64,
    flows: [f64; 2],
    rates: [f64; 2],
    /// The WAN link, and not the last hop.
    line: bool,
}

impl Home {
    fn draw(uniform: &mut impl FnMut(f64, f64) -> f64, case: u64) -> Self {
        let (rate, times, rtt) = (uniform(20.0, 100.0), uniform(0.0, 2.0).exp2(), uniform(10.0, 80.0));
        let flows = [uniform(0.0, 3.0), uniform(0.0, 2.0)].map(|power| power.exp2().round());
        // A last hop carries as much each way.
        let line = case.is_multiple_of(2);
        Self { rtt, flows, rates: [rate, if line { rate / times } else { rate }], line }
    }

    /// What its bottleneck carries, and so many times less.
    fn rates(&self, times: f64) -> [(&'static str, String); 3] {
        let [down, up] = self.rates.map(|rate| rate / times);
        let (hop, [down, up]) = if self.line { (1000.0, [down, up]) } else { (down, [1000.0; 2]) };
        [("wireless_link.rate", hop), ("wan.rate_down", down), ("wan.rate_up", up)]
            .map(|(name, rate)| (name, format!("\"{rate:.2}Mbit/s\"")))
    }

    fn sets(&self) -> Vec<String> {
        let mut sets = vec![
            format!("server.W.delay=\"{:.2}ms\"", self.rtt / 2.0 - 1.0),
            format!("flow.down.count={}", self.flows[0]),
            format!("flow.up.count={}", self.flows[1]),
        ];
        sets.extend(self.rates(1.0).map(|(name, rate)| format!("{name}={rate}")));
        sets
    }

    /// What it carries changes to so many times less, each at its time, s, and what is measured is from, s, to, s.
    fn with_changes(&self, changes: &[(f64, f64)], (from, to): (f64, f64)) -> Vec<String> {
        let change = |(at, times): &(f64, f64)| {
            let set = self.rates(*times).map(|(name, rate)| format!("\"{name}\" = {rate}")).join(", ");
            format!("{{ at = \"{at}s\", set = {{ {set} }} }}")
        };
        let changes = changes.iter().map(change).collect::<Vec<_>>().join(", ");
        let mut sets = self.sets();
        sets.extend([format!("change=[{changes}]"), format!("duration={to:.3}s"), format!("measure_from={from:.3}s")]);
        sets
    }
}

/// What `control` leaves of each direction's goodput, and what a game waits then, ms.
fn compare(home: &[String]) -> ([f64; 2], Vec<f64>) {
    let (free, _) = play(&[home, &["control.window=none".to_owned()]].concat());
    let (held, waited) = play(home);
    ([held[0] / free[0], held[1] / free[1]], waited)
}

#[test]
fn each_direction_keeps_its_goodput_and_a_game_hardly_waits_beside_both() {
    let mut uniform = uniform(19, "both ways");
    let (mut parts, mut waits) = (Vec::new(), Vec::new());
    for case in 0..CASES {
        let home = Home::draw(&mut uniform, case);
        let (part, waited) = compare(&home.sets());
        println!(
            "{case}: {} + {} flows, {} of {:.0} and {:.0} Mbit/s, {:.0} ms: {part:.2?} of the goodput, a game waits {waited:.1?} ms",
            home.flows[0],
            home.flows[1],
            if home.line { "a WAN link" } else { "a last hop" },
            home.rates[0],
            home.rates[1],
            home.rtt
        );
        parts.extend(part);
        waits.extend(waited);
    }
    let (few, least, mean, most) = figures(&parts, &mut waits);
    assert!(few * 20 <= parts.len() && least >= 0.85, "{few} directions lose, {least:.3} at least");
    assert!(mean <= 6.0 && most <= 8.0, "{mean:.1} ms in the mean, nine of ten {most:.1}");
}

#[test]
fn a_few_flows_over_a_short_wan_link_do_not_swing_against_each_other() {
    // Nothing stands there long enough for C to be measured: the queues of both directions fill and drain in a round trip.
    let mut uniform = uniform(19, "short both ways");
    let (mut parts, mut waits) = (Vec::new(), Vec::new());
    for case in 0..2 * CASES {
        let (rate, times) = (uniform(20.0, 100.0), uniform(0.0, 1.5).exp2());
        let (rtt, flows) = (uniform(6.0, 30.0), [uniform(1.0, 4.0), uniform(1.0, 4.0)].map(f64::floor));
        let home = Home { rtt, flows, rates: [rate, rate / times], line: true };
        let (part, waited) = compare(&home.sets());
        println!(
            "{case}: {flows:?} flows, {:.1?} Mbit/s, {rtt:.0} ms: {part:.2?}, a game waits {waited:.1?} ms",
            home.rates
        );
        parts.extend(part);
        waits.push(waited.into_iter().fold(0.0, f64::max));
    }
    let long = waits.iter().filter(|wait| **wait > 20.0).count();
    println!("in {long} of {} a game waits more than 20 ms", waits.len());
    let (few, ..) = figures(&parts, &mut waits);
    assert!(few * 20 <= parts.len(), "{few} of {} directions lose", parts.len());
    assert!(long * 5 <= waits.len(), "in {long} of {}", waits.len());
}

#[test]
fn an_upload_over_a_wan_link_that_nothing_is_known_of_counts_as_used() {
    // It never fills its window, and its queue never stands.
    let home = Home { rtt: 17.58, flows: [2.0, 1.0], rates: [69.79, 65.7], line: true };
    let (part, waited) = compare(&home.sets());
    println!("{part:.2?}, a game waits {waited:.1?} ms");
    assert!(part.iter().all(|part| *part >= 0.92), "{part:.3?}");
    assert!(waited.iter().all(|wait| *wait <= 20.0), "{waited:.1?} ms");
}

#[test]
fn what_was_slow_for_two_seconds_is_full_again_two_seconds_later() {
    let mut uniform = uniform(19, "slow seconds");
    let (mut parts, mut waits) = (Vec::new(), Vec::new());
    for case in 0..2 * CASES {
        let home = Home::draw(&mut uniform, case);
        let times = uniform(1.0, 3.0).exp2();
        let (part, waited) = compare(&home.with_changes(&[(8.0, times), (10.0, 1.0)], (12.0, 16.0)));
        println!("{case}: {:.1?} Mbit/s, {times:.1} times less: {part:.2?}, a game waits {waited:.1?} ms", home.rates);
        parts.extend(part);
        waits.extend(waited);
    }
    let (few, _, mean, _) = figures(&parts, &mut waits);
    assert!(few * 10 <= parts.len(), "{few} of {} directions lose", parts.len());
    assert!(mean <= 9.0, "{mean:.1} ms in the mean");
}

#[test]
fn what_falls_both_ways_has_no_long_queue_a_second_later_than_one_way() {
    let mut uniform = uniform(19, "falls both ways");
    let mut waits = Vec::new();
    for case in 0..2 * CASES {
        let home = Home::draw(&mut uniform, case);
        let (times, rtt) = (uniform(1.0, 3.0).exp2(), home.rtt / 1e3);
        // What is under way at the new rate, and two round trips and intervals (`falls`), and a second.
        let from = 8.0 + times * rtt + 2.0 * (rtt + 0.05) + 1.0;
        let (_, waited) = play(&home.with_changes(&[(8.0, times)], (from, from + 3.0)));
        println!("{case}: {:.1?} Mbit/s, {times:.1} times less, {:.0} ms: {waited:.1?} ms", home.rates, home.rtt);
        waits.push(waited.into_iter().fold(0.0, f64::max));
    }
    let long = waits.iter().filter(|wait| **wait > 60.0).count();
    let mean = waits.iter().sum::<f64>() / waits.len() as f64;
    println!("in {long} of {} a game waits more than 60 ms, {mean:.0} in the mean", waits.len());
    assert!(long * 8 <= waits.len(), "in {long} of {}", waits.len());
}

/// Directions that lose, the least part that one has, and the mean and nine tenths of what a game waits, ms.
fn figures(parts: &[f64], waits: &mut [f64]) -> (usize, f64, f64, f64) {
    let few = parts.iter().filter(|part| **part < 0.95).count();
    let least = parts.iter().fold(f64::MAX, |least, part| least.min(*part));
    let mean = waits.iter().sum::<f64>() / waits.len() as f64;
    waits.sort_by(f64::total_cmp);
    let most = waits[waits.len() * 9 / 10];
    println!(
        "{few} of {} directions lose, {least:.3} at least; {mean:.1} ms in the mean, nine of ten {most:.1}",
        parts.len()
    );
    (few, least, mean, most)
}
