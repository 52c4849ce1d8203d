//! A path that becomes longer is no queue: downloads and uploads lose nothing when the way to their server does, or the last hop, by
//! however much, and whether the WAN link holds them or the last hop.
//!
//! ```text
//! 24 homes with a longer WAN link, goodput with control over that without     in the mean 0.95, each 0.8
//! 16 with a longer last hop, the same                                         in the mean 0.95, each 0.8
//!    and a game's p99, less what the path grew by                             8 ms and four packets of 1,500 bytes
//! ```

mod common;

use std::path::Path;

use common::uniform;
use lasthop_home::scenario::Scenario;
use lasthop_sim::Options;

const CASES: u64 = 24;
const MEAN: f64 = 0.95;
const EACH: f64 = 0.8;

/// Goodput of all bulk flows, bit/s, and what is added to a game, p99, ms.
fn play(sets: &[String]) -> (f64, f64) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/everyday/longer-path.toml");
    let scenario = Scenario::load(&file, sets).expect("a scenario");
    let report = lasthop_sim::run(&scenario, &mut Options::default()).expect("it runs");
    let named = |name| report.flows.iter().filter(move |flow| flow.name.starts_with(name)).map(|flow| &flow.metrics);
    let games = named("game").filter_map(|game| game.added_delay.as_ref()).map(|delay| delay.p99);
    (named("bulk").map(|bulk| bulk.goodput_bps).sum(), games.fold(0.0, f64::max))
}

fn goodput(sets: &[String]) -> f64 {
    play(sets).0
}

#[test]
fn what_a_path_grows_by_is_no_queue() {
    let mut uniform = uniform(19, "longer path");
    let mut parts = Vec::new();
    for case in 0..CASES {
        let (line, rtt) = ((uniform(15f64.ln(), 100f64.ln())).exp(), uniform(15.0, 100.0));
        // By a tenth of the round trip to all of it.
        let grows = rtt * uniform(0.1f64.ln(), 1f64.ln()).exp();
        let flows = uniform(1.0, 6.0).round();
        let delay = |more: f64| format!("{{ \"server.W.delay\" = \"{:.2}ms\" }}", (rtt + more) / 2.0 - 1.0);
        let changes = [(10, grows), (20, 0.0), (30, grows / 2.0)];
        let changes = changes.map(|(at, more)| format!("{{ at = \"{at}s\", set = {} }}", delay(more)));
        let mut home = vec![
            format!("wan.rate_down={line:.1}Mbit/s"),
            format!("wan.rate_up={line:.1}Mbit/s"),
            format!("server.W.delay=\"{:.2}ms\"", rtt / 2.0 - 1.0),
            format!("flow.bulk.count={flows}"),
            format!("change=[{}]", changes.join(", ")),
        ];
        let (up, hop) = (case % 2 == 1, case % 4 >= 2);
        if up {
            home.extend(["flow.bulk.from=A", "flow.bulk.to=W"].map(str::to_owned));
        }
        if hop {
            // Half of the WAN link.
            home.push(format!("bridge.rate={:.3}Mbit/s", 1534.0 * 8.0 / (24_000.0 / line - 60.0)));
        }
        let free = goodput(&[&home[..], &["control.window=none".to_owned()]].concat());
        let part = goodput(&home) / free;
        println!(
            "{flows} {}, line {line:.0} Mbit/s{}, {rtt:.0} ms and {grows:.0} more: {:.1} Mbit/s without, {part:.3} of it",
            if up { "uploads" } else { "downloads" },
            if hop { ", last hop half of that" } else { "" },
            free / 1e6
        );
        parts.push(part);
    }
    let (mean, least) = (parts.iter().sum::<f64>() / CASES as f64, parts.iter().fold(1.0, |a: f64, b| a.min(*b)));
    assert!(mean >= MEAN && least >= EACH, "{mean:.3} in the mean, {least:.3} at least");
}

#[test]
fn what_the_last_hop_grows_by_is_no_queue() {
    let mut uniform = uniform(19, "longer hop");
    let (mut parts, mut failed) = (Vec::new(), Vec::new());
    for case in 0..16 {
        let (rate, rtt) = ((uniform(10f64.ln(), 80f64.ln())).exp(), uniform(15.0, 60.0));
        // Each way, of a connection that has known it shorter: the next node of a mesh, and another one.
        let grows = uniform(1f64.ln(), 10f64.ln()).exp();
        let flows = uniform(1.0, 5.0).round();
        let change = |at: u32, more: f64| {
            format!("{{ at = \"{at}s\", set = {{ \"wireless_link.delay\" = \"{:.2}ms\" }} }}", 0.1 + more)
        };
        let buffer = (rate * 1e6 * 0.2 / 12_000.0).round();
        let mut home = vec![
            "bridge=none".to_owned(),
            format!(
                "wireless_link={{ rate = \"{rate:.1}Mbit/s\", delay = \"0.1ms\", error_rate = 0, buffer = {buffer}, \
                 station_rate = \"1Gbit/s\", station_delay = \"0ms\" }}"
            ),
            "wan.rate_down=1Gbit/s".to_owned(),
            "wan.rate_up=1Gbit/s".to_owned(),
            format!("server.W.delay=\"{:.2}ms\"", rtt / 2.0 - 1.0),
            format!("flow.bulk.count={flows}"),
            format!("change=[{}, {}]", change(10, grows / 2.0), change(25, grows)),
        ];
        let up = case % 2 == 1;
        if up {
            home.extend(["flow.bulk.from=A", "flow.bulk.to=W"].map(str::to_owned));
        }
        let (free, (held, waits)) = (goodput(&[&home[..], &["control.window=none".to_owned()]].concat()), play(&home));
        let part = held / free;
        let what = format!(
            "{flows} {} of {rate:.0} Mbit/s, {rtt:.0} ms and {grows:.1} more each way: {part:.3} of the goodput, game {waits:.1} ms",
            if up { "uploads" } else { "downloads" },
        );
        println!("{what}");
        parts.push(part);
        if waits > grows + 8.0 + 48.0 / rate {
            failed.push(what);
        }
    }
    let (mean, least) = (parts.iter().sum::<f64>() / 16.0, parts.iter().fold(1.0, |a: f64, b| a.min(*b)));
    println!("{mean:.3} in the mean, {least:.3} at least");
    assert!(mean >= MEAN && least >= EACH, "{mean:.3} in the mean, {least:.3} at least");
    assert!(failed.is_empty(), "{failed:#?}");
}
