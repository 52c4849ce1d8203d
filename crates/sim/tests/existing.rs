//! Connections that were there before the controller, whose handshakes it did not see, are held nevertheless, whatever the WAN link: a game
//! beside them waits no longer than beside others, and who comes later has its part.
//!
//! ```text
//! 12 s after the controller came   game's p99 <= 20 ms, or an eighth of what it is without control
//!                                  the newcomer at least half of an equal part, all together 0.95 of what is there
//! ```

mod common;

use std::path::Path;

use common::uniform;
use lasthop_home::report::Report;
use lasthop_home::scenario::Scenario;
use lasthop_sim::Options;

const CASES: u64 = 12;
/// A full packet takes the bridge 60 us besides.
const OVERHEAD: f64 = 60.0;

fn play(sets: &[String]) -> Report {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/everyday/existing.toml");
    let scenario = Scenario::load(&file, sets).expect("a scenario");
    lasthop_sim::run(&scenario, &mut Options::default()).expect("it runs")
}

/// What 99 % of the game's packets waited at most, ms; goodput of all downloads and of the one that came later, bit/s.
fn metrics(report: &Report) -> (f64, f64, f64) {
    let games = report.flows.iter().filter(|flow| flow.name.starts_with("game"));
    let waited = games.filter_map(|flow| flow.metrics.added_delay.as_ref()).map(|delay| delay.p99).fold(0.0, f64::max);
    let bulk = report.flows.iter().filter(|flow| flow.name.starts_with("old") || flow.name == "young");
    let all = bulk.map(|flow| flow.metrics.goodput_bps).sum();
    let young = report.flows.iter().find(|flow| flow.name == "young").expect("a newcomer");
    (waited, all, young.metrics.goodput_bps)
}

#[test]
fn who_was_there_before_the_controller_is_held_like_anybody() {
    let mut uniform = uniform(19, "existing");
    let mut failed = Vec::new();
    for _ in 0..CASES {
        let (rate, rtt) = ((uniform(8f64.ln(), 50f64.ln())).exp(), uniform(10.0, 60.0));
        let old = uniform(1.0, 4.0).round();
        let packet = 12_000.0 / rate;
        let home = [
            format!("bridge.rate={:.3}Mbit/s", 1534.0 * 8.0 / (packet - OVERHEAD)),
            format!("server.W.delay=\"{:.1}ms\"", rtt / 2.0),
            format!("flow.old.count={old}"),
            "measure_from=15s".to_owned(),
            "duration=30s".to_owned(),
        ];
        let (waited, all, young) = metrics(&play(&home));
        let (free, before, _) = metrics(&play(&[&home[..], &["control.window=none".to_owned()]].concat()));
        let part = young * (old + 1.0) / all;
        let ok = waited <= 20f64.max(free / 8.0) && part >= 0.5 && all >= 0.95 * before;
        println!(
            "{rate:.1} Mbit/s, {rtt:.0} ms, {old} old: game {free:.0} -> {waited:.1} ms, newcomer {part:.2} of an equal part, \
             all {:.3}{}",
            all / before,
            if ok { "" } else { "  <- no" }
        );
        if !ok {
            failed.push((rate, rtt, old));
        }
    }
    assert!(failed.is_empty(), "{} of {CASES}: {failed:?}", failed.len());
}
