//! Windows of a few segments: a sender sends whole ones, and many connections together still have all that the hop carries.
//!
//! ```text
//! 24 homes, shares of 2.2 to 8 segments, goodput    at least 0.97 of what it is without control
//!                                                   a game's p99    at most a third of it, and 12 ms in the mean
//! ```

mod common;

use common::uniform;
use lasthop_home::scenario::Scenario;
use lasthop_sim::Options;

const CASES: u64 = 24;
const GOODPUT: f64 = 0.97;
const MEAN_MS: f64 = 12.0;

const HOME: &str = r#"
format = 1
name = "many-flows"
duration = "25s"
measure_from = "8s"
[[server]]
name = "W"
rate = "1000Mbit/s"
buffer = 2000
[wireless_link]
delay = "0ms"
error_rate = 0.0
buffer = 1000
station_rate = "1000Mbit/s"
station_delay = "0s"
[[station]]
name = "N"
[[flow]]
name = "bulk"
from = "W"
to = "N"
kind = "ftp"
cc = "cubic"
start_within = "2s"
[[flow]]
name = "game"
from = "W"
to = "N"
kind = "game-server"
[control.window]
capacity = "learn"
"#;

/// Goodput, bit/s, and what is added to the game, p99, ms.
fn play(sets: &[String]) -> (f64, f64) {
    let scenario = Scenario::parse(HOME, "many-flows.toml", sets).expect("a scenario");
    let report = lasthop_sim::run(&scenario, &mut Options::default()).expect("it runs");
    let game = report.flows.iter().find(|flow| flow.name == "game").and_then(|flow| flow.metrics.added_delay);
    let bulk = report.flows.iter().filter(|flow| flow.name.starts_with("bulk"));
    (bulk.map(|flow| flow.metrics.goodput_bps).sum(), game.expect("a game").p99)
}

#[test]
fn many_small_windows_have_all_that_the_hop_carries() {
    let mut uniform = uniform(19, "many flows");
    let mut waits = 0.0;
    for _ in 0..CASES {
        let rate = uniform(20f64.ln(), 100f64.ln()).exp();
        let (rtt, segments) = (uniform(10.0, 80.0), uniform(2.2, 8.0));
        let flows = (rate * 1e6 * rtt / 1e3 / (segments * 1500.0 * 8.0)).round().max(4.0);
        let home = [
            format!("wireless_link.rate={rate:.1}Mbit/s"),
            format!("server.W.delay={:.1}ms", rtt / 2.0),
            format!("flow.bulk.count={flows}"),
        ];
        let without = play(&[&home[..], &["control.window=none".to_owned()]].concat());
        let with = play(&home);
        let what = format!(
            "{flows} flows, {rate:.0} Mbit/s, {rtt:.0} ms: {:.1} and {:.1} Mbit/s, {:.1} and {:.1} ms",
            without.0 / 1e6,
            with.0 / 1e6,
            without.1,
            with.1
        );
        println!("{what}");
        assert!(with.0 >= GOODPUT * without.0, "{what}");
        assert!(with.1 <= without.1 / 3.0, "{what}");
        waits += with.1 / CASES as f64;
    }
    println!("mean of the game's p99: {waits:.1} ms");
    assert!(waits <= MEAN_MS, "{waits:.1} ms");
}
