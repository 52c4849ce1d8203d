//! A path that becomes longer is no queue: downloads and uploads lose nothing when the way to their server does, by however much, and
//! whether the WAN link holds them or the last hop.
//!
//! ```text
//! 24 homes, goodput with control over that without    in the mean 0.95, each 0.8
//! ```

use std::path::Path;

use lasthop_home::scenario::Scenario;
use lasthop_medium::random::Stream;
use lasthop_sim::Options;

const CASES: u64 = 24;
const MEAN: f64 = 0.95;
const EACH: f64 = 0.8;

/// Goodput of all bulk flows, bit/s.
fn goodput(sets: &[String]) -> f64 {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/everyday/longer-path.toml");
    let scenario = Scenario::load(&file, sets).expect("a scenario");
    let report = lasthop_sim::run(&scenario, &mut Options::default()).expect("it runs");
    report.flows.iter().filter(|flow| flow.name.starts_with("bulk")).map(|flow| flow.metrics.goodput_bps).sum()
}

#[test]
fn what_a_path_grows_by_is_no_queue() {
    let mut draw = Stream::named(19, "longer path");
    let mut uniform = |low: f64, high: f64| low + (high - low) * draw.below(1 << 32) as f64 / (1_u64 << 32) as f64;
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
