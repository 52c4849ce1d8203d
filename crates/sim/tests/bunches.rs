//! A hop that delivers in bunches is not slower than it is: what a round trip waits there whatever windows are is no queue.
//!
//! ```text
//! 32 homes: goodput with control over that without    in the mean 0.98, each 0.95; the game's p99 at most half of that without
//! ```

mod common;

use std::path::Path;

use common::uniform;
use lasthop_home::scenario::Scenario;
use lasthop_sim::Options;

const CASES: u64 = 32;
const MEAN: f64 = 0.98;
const EACH: f64 = 0.95;

/// Goodput of all bulk flows, bit/s, and what the game's packets waited at most in 99 % of them, the worse way, ms.
fn metrics(sets: &[String]) -> (f64, f64) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/everyday/bunches.toml");
    let scenario = Scenario::load(&file, sets).expect("a scenario");
    let report = lasthop_sim::run(&scenario, &mut Options::default()).expect("it runs");
    let (bulk, games): (Vec<_>, Vec<_>) = report.flows.iter().partition(|flow| flow.name.starts_with("bulk"));
    let waited = games.iter().filter_map(|flow| flow.metrics.added_delay.as_ref()).map(|delay| delay.p99);
    (bulk.iter().map(|flow| flow.metrics.goodput_bps).sum(), waited.fold(0.0, f64::max))
}

#[test]
fn what_waits_for_the_next_bunch_is_no_queue() {
    let mut uniform = uniform(19, "bunches");
    let mut parts = Vec::new();
    for case in 0..CASES {
        let (rate, rtt) = ((uniform(10f64.ln(), 80f64.ln())).exp(), uniform(10.0, 80.0));
        let interval = (uniform(1f64.ln(), 20f64.ln())).exp();
        let flows = uniform(1.0, 6.0).round();
        let home = [
            format!("bridge.rate={:.3}Mbit/s", 1534.0 * 8.0 / (12_000.0 / rate - 60.0)),
            format!("bridge.delivery_interval={interval:.2}ms"),
            format!("server.W.delay=\"{:.2}ms\"", rtt / 2.0 - 1.0),
            format!("flow.bulk.count={flows}"),
        ];
        let (free, waits) = metrics(&[&home[..], &["control.window=none".to_owned()]].concat());
        let (held, waited) = metrics(&home);
        let part = held / free;
        println!(
            "{case}: {flows} downloads at {rate:.0} Mbit/s over {rtt:.0} ms, bunches of {interval:.1} ms: {:.1} Mbit/s without, \
             {part:.3} of it; a game waits {waits:.0} and {waited:.0} ms",
            free / 1e6
        );
        parts.push((part, waited / waits));
    }
    let mean = parts.iter().map(|(part, _)| part).sum::<f64>() / CASES as f64;
    let least = parts.iter().fold(1.0, |least: f64, (part, _)| least.min(*part));
    let smooth = parts.iter().filter(|(_, waits)| *waits <= 0.5).count();
    println!("{mean:.3} in the mean, {least:.3} at least; {smooth} are smooth");
    assert!(
        mean >= MEAN && least >= EACH && smooth == parts.len(),
        "{mean:.3} in the mean, {least:.3} at least, {smooth} smooth"
    );
}
