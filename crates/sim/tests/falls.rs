//! What carried much carries less at once: soon a game hardly waits any more, and what is left is used.
//!
//! ```text
//! 96 drawn places: a last hop or a WAN link of 20 to 100 Mbit/s, down or up, that falls to a half to an eighth; 10 to 80 ms; 2 to 8 flows
//! from             what is under way at the new rate (falls x RTT), and 2 (RTT + interval)
//! a game's p99     under 60 ms in 92, and under 120 ms in each; 93 % of the goodput without control
//! ```

mod common;

use common::{BOTH_WAYS, uniform};
use lasthop_home::scenario::Scenario;
use lasthop_sim::Options;

const CASES: usize = 96;
const SHORT: f64 = 60.0;
const UNDER: usize = 92;
const EACH: f64 = 120.0;
const GOODPUT: f64 = 0.93;
const INTERVAL: f64 = 0.05;
/// When it falls, s.
const AT: f64 = 8.0;

/// Goodput, bit/s, and what is added to a game, p99, ms.
fn play(sets: &[String], game: &str) -> (f64, f64) {
    let scenario = Scenario::parse(BOTH_WAYS, "falls.toml", sets).expect("a scenario");
    let report = lasthop_sim::run(&scenario, &mut Options::default()).expect("it runs");
    let of = |name: &str| &report.flows.iter().find(|flow| flow.name == name).expect("a flow").metrics;
    let bulk = report.flows.iter().filter(|flow| flow.kind == "ftp").map(|flow| flow.metrics.goodput_bps).sum();
    (bulk, of(game).added_delay.as_ref().expect("packets arrived").p99)
}

#[test]
fn soon_after_a_fall_a_game_hardly_waits() {
    let mut uniform = uniform(19, "falls");
    let (mut waits, mut parts) = (Vec::new(), Vec::new());
    for _ in 0..CASES {
        let place = ["wireless_link.rate", "wan.rate_down", "wan.rate_up"][uniform(0.0, 3.0) as usize];
        let (rate, falls, rtt) = (uniform(20.0, 100.0), uniform(1.0, 3.0).exp2(), uniform(10.0, 80.0));
        let flows = [0, 1].map(|_| uniform(1.0, 5.0).floor());
        let up = place == "wan.rate_up" || place == "wireless_link.rate" && uniform(0.0, 1.0) < 0.5;
        let from = AT + falls * rtt / 1e3 + 2.0 * (rtt / 1e3 + INTERVAL);
        // Nothing else is slow; of what is set twice the later holds.
        let fast = ["wireless_link.rate=1Gbit/s", "wan.rate_down=1Gbit/s", "wan.rate_up=1Gbit/s"];
        let mut home: Vec<String> = fast.map(str::to_owned).into();
        // Both bulk flows go the same way.
        home.extend(match up {
            true => ["flow.down.from=A", "flow.down.to=W"].map(str::to_owned),
            false => ["flow.up.from=W", "flow.up.to=A"].map(str::to_owned),
        });
        home.extend([
            format!("{place}={rate:.3}Mbit/s"),
            format!("server.W.delay={:.2}ms", rtt / 2.0 - 1.0),
            format!("flow.down.count={}", flows[0]),
            format!("flow.up.count={}", flows[1]),
            format!("change=[{{ at = \"{AT}s\", set = {{ \"{place}\" = \"{:.3}Mbit/s\" }} }}]", rate / falls),
            format!("measure_from={from:.3}s"),
            format!("duration={:.3}s", from + 3.0),
        ]);
        let game = if up { "game-up" } else { "game-down" };
        let (free, _) = play(&[&home[..], &["control.window=none".to_owned()]].concat(), game);
        let (held, p99) = play(&home, game);
        println!(
            "{place} {rate:.1} Mbit/s, a {falls:.1}th of it, {rtt:.0} ms, {flows:?} flows {}: p99 {p99:.1} ms, {:.3}",
            if up { "up" } else { "down" },
            held / free
        );
        waits.push(p99);
        parts.push(held / free);
    }
    let under = waits.iter().filter(|p99| **p99 < SHORT).count();
    let most = waits.iter().copied().fold(0.0, f64::max);
    let least = parts.iter().copied().fold(f64::MAX, f64::min);
    println!("{under} of {CASES} under {SHORT} ms, {most:.1} at most; {least:.3} of the goodput at least");
    assert!(
        under >= UNDER && most <= EACH && least >= GOODPUT,
        "{under} under, {most:.1} at most, {least:.3} at least"
    );
}
