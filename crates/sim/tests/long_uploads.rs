//! A queue that is kept does not become the path: uploads that last five minutes add no more to a game after them than after ten seconds,
//! though clocks drift and nobody ever sees the last hop empty. Nor do downloads, or uploads, over a port once the round trips of their
//! first seconds are forgotten.
//!
//! ```text
//! 12 homes, a game's p99 upwards in the fifth minute    at most 2 ms more than from second 10 to 40
//! 2 x 10 homes, a game's p99 from second 30 to 60       in the mean at most 2 targets, of four packets or 2 ms
//! ```

mod common;

use common::uniform;
use lasthop_home::scenario::Scenario;
use lasthop_sim::Options;

const CASES: u64 = 12;
const MORE_MS: f64 = 2.0;
const MOST_TARGETS: f64 = 2.0;

const HOME: &str = r#"
format = 1
name = "long-uploads"
[[server]]
name = "W"
delay = "10ms"
rate = "1000Mbit/s"
buffer = 1000
[wireless_link]
rate = "20Mbit/s"
delay = "100us"
error_rate = 0.0
buffer = 1000
station_rate = "1000Mbit/s"
station_delay = "0s"
[[station]]
name = "N"
[[flow]]
name = "up"
count = 2
from = "N"
to = "W"
kind = "ftp"
cc = "cubic"
start_within = "2s"
[[flow]]
name = "game"
from = "N"
to = "W"
kind = "game-client"
[control.window]
capacity = "learn"
"#;

/// What is added to the game, p99, ms, and goodput, bit/s, from one second to another.
fn play(home: &str, sets: &[String], from: u32, to: u32) -> (f64, f64) {
    let spans = [format!("duration={to}s"), format!("measure_from={from}s")];
    let scenario = Scenario::parse(home, "long-uploads.toml", &[sets, &spans].concat()).expect("a scenario");
    let report = lasthop_sim::run(&scenario, &mut Options::default()).expect("it runs");
    let game = report.flows.iter().find(|flow| flow.name == "game").and_then(|flow| flow.metrics.added_delay);
    let goodput = report.flows.iter().map(|flow| flow.metrics.goodput_bps).sum();
    (game.expect("a game").p99, goodput)
}

#[test]
fn an_upload_of_five_minutes_adds_no_more_than_one_of_ten_seconds() {
    let mut uniform = uniform(19, "long uploads");
    for _ in 0..CASES {
        let rate = uniform(10f64.ln(), 100f64.ln()).exp();
        let (rtt, flows) = (uniform(10.0, 80.0), uniform(1.0, 5.0).round());
        let home = [
            format!("wireless_link.rate={rate:.1}Mbit/s"),
            format!("server.W.delay={:.1}ms", rtt / 2.0),
            format!("flow.up.count={flows}"),
        ];
        let ((early, _), (late, goodput)) = (play(HOME, &home, 10, 40), play(HOME, &home, 240, 300));
        let what = format!(
            "{flows} uploads of {rate:.0} Mbit/s and {rtt:.0} ms: {early:.1} and {late:.1} ms, {:.1} Mbit/s",
            goodput / 1e6
        );
        println!("{what}");
        assert!(late <= early + MORE_MS, "{what}");
        assert!(goodput >= 0.9 * rate * 1e6, "{what}");
    }
}

#[test]
fn what_waits_at_a_port_does_not_become_its_path() {
    let port = |down: bool| {
        let (from, to, game) = if down { ("W", "N", "server") } else { ("N", "W", "client") };
        let (before, after) = HOME.split_once("[wireless_link]").expect("a link");
        let (_, after) = after.split_once("[[station]]").expect("a station");
        let ports =
            "[bridge]\ncontrol_rate = \"100Gbit/s\"\nqueue = { limit = 1000 }\nstation_queue = { limit = 1000 }\n";
        format!("{before}{ports}[[station]]{after}")
            .replace("from = \"N\"\nto = \"W\"", &format!("from = \"{from}\"\nto = \"{to}\""))
            .replace("game-client", &format!("game-{game}"))
    };
    let mut uniform = uniform(20, "long downloads");
    for down in [true, false] {
        let mut all = 0.0;
        for _ in 0..10 {
            let rate = uniform(10f64.ln(), 60f64.ln()).exp();
            let (rtt, flows) = (uniform(10.0, 80.0), uniform(1.0, 3.0).round());
            let home = [
                format!("bridge.rate={:.3}Mbit/s", 1534.0 * 8.0 / (12_000.0 / rate - 60.0)),
                format!("server.W.delay={:.1}ms", rtt / 2.0),
                format!("flow.up.count={flows}"),
            ];
            let (p99, goodput) = play(&port(down), &home, 30, 60);
            let way = if down { "downloads" } else { "uploads" };
            println!("{flows} {way} of {rate:.1} Mbit/s and {rtt:.0} ms: {p99:.1} ms, {:.1} Mbit/s", goodput / 1e6);
            assert!(goodput >= 0.94 * rate * 1e6, "{} of {rate}", goodput / 1e6);
            all += p99 / f64::max(2.0, 48.0 / rate);
        }
        println!("{:.2} targets in the mean", all / 10.0);
        assert!(all <= 10.0 * MOST_TARGETS, "{all} targets of ten homes");
    }
}
