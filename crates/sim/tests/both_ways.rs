//! Downloads and uploads at once: each direction has what it has without control, and a game beside them hardly waits. ACKs of one direction wait
//! behind data of the other, so that windows which count that swing, and paced right edges do not.
//!
//! ```text
//! 24 homes: at most 1 direction in 20 has less than 0.95 of its goodput without control, none less than 0.85;
//!           a game's p99 is at most 10 ms in the mean, and in nine of ten at most 14 ms
//! ```

use lasthop_home::scenario::Scenario;
use lasthop_medium::random::Stream;
use lasthop_sim::Options;

const CASES: u64 = 24;

const HOME: &str = r#"
format = 1
name = "both-ways"
duration = "20s"
measure_from = "8s"

[wan]
delay = "1ms"
buffer_down = 256
buffer_up = 256

[[server]]
name = "W"

[wireless_link]
delay = "0ms"
error_rate = 0.0
buffer = 1000
station_rate = "1000Mbit/s"
station_delay = "0ms"

[[station]]
name = "A"

[[flow]]
name = "down"
from = "W"
to = "A"
kind = "ftp"
start = "3s"

[[flow]]
name = "up"
from = "A"
to = "W"
kind = "ftp"
start = "3.1s"

[[flow]]
name = "game-down"
from = "W"
to = "A"
kind = "game-server"

[[flow]]
name = "game-up"
from = "A"
to = "W"
kind = "game-client"

[control.window]
capacity = "learn"
"#;

/// Goodput of each direction, bit/s, and what a game's packets waited at most in 99 % of them, of each, ms.
fn play(sets: &[String]) -> ([f64; 2], Vec<f64>) {
    let scenario = Scenario::parse(HOME, "both-ways.toml", sets).expect("a scenario");
    let report = lasthop_sim::run(&scenario, &mut Options::default()).expect("it runs");
    let goodput = ["down", "up"].map(|name| {
        let flows = report.flows.iter().filter(|flow| flow.kind == "ftp" && flow.name.starts_with(name));
        flows.map(|flow| flow.metrics.goodput_bps).sum()
    });
    let games = report.flows.iter().filter(|flow| flow.name.starts_with("game"));
    (goodput, games.filter_map(|flow| flow.metrics.added_delay.as_ref()).map(|delay| delay.p99).collect())
}

#[test]
fn each_direction_keeps_its_goodput_and_a_game_hardly_waits_beside_both() {
    let mut draw = Stream::named(19, "both ways");
    let mut uniform = |low: f64, high: f64| low + (high - low) * draw.below(1 << 32) as f64 / (1_u64 << 32) as f64;
    let (mut parts, mut waits) = (Vec::new(), Vec::new());
    for case in 0..CASES {
        let (rate, times, rtt) = (uniform(20.0, 100.0), uniform(0.0, 2.0).exp2(), uniform(10.0, 80.0));
        let flows = [uniform(0.0, 3.0), uniform(0.0, 2.0)].map(|power| power.exp2().round());
        // A last hop carries as much each way.
        let line = case % 2 == 0;
        let (up, line_rates, hop) =
            if line { (rate / times, [rate, rate / times], 1000.0) } else { (rate, [1000.0; 2], rate) };
        let home = [
            format!("server.W.delay=\"{:.2}ms\"", rtt / 2.0 - 1.0),
            format!("flow.down.count={}", flows[0]),
            format!("flow.up.count={}", flows[1]),
            format!("wireless_link.rate={hop:.2}Mbit/s"),
            format!("wan.rate_down={:.2}Mbit/s", line_rates[0]),
            format!("wan.rate_up={:.2}Mbit/s", line_rates[1]),
        ];
        let (free, _) = play(&[&home[..], &["control.window=none".to_owned()]].concat());
        let (held, waited) = play(&home);
        let part = [held[0] / free[0], held[1] / free[1]];
        println!(
            "{case}: {} + {} flows, {} of {:.0} and {:.0} Mbit/s, {rtt:.0} ms: {part:.2?} of the goodput, a game waits {waited:.1?} ms",
            flows[0],
            flows[1],
            if line { "a WAN link" } else { "a last hop" },
            rate,
            up
        );
        parts.extend(part);
        waits.extend(waited);
    }
    let few = parts.iter().filter(|part| **part < 0.95).count();
    let least = parts.iter().fold(f64::MAX, |least, part| least.min(*part));
    let mean = waits.iter().sum::<f64>() / waits.len() as f64;
    waits.sort_by(f64::total_cmp);
    let most = waits[waits.len() * 9 / 10];
    println!(
        "{few} of {} directions lose, {least:.3} at least; {mean:.1} ms in the mean, nine of ten {most:.1}",
        parts.len()
    );
    assert!(few * 20 <= parts.len() && least >= 0.85, "{few} directions lose, {least:.3} at least");
    assert!(mean <= 10.0 && most <= 14.0, "{mean:.1} ms in the mean, nine of ten {most:.1}");
}
