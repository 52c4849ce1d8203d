//! Responses that come in bursts (pages, segments of films) are no slower bottleneck: what they leave between them a download has.
//!
//! ```text
//! 24 homes, goodput of download and sessions with control over that without    in the mean 0.94, each 0.8
//! ```

mod common;

use std::path::Path;

use common::uniform;
use lasthop_home::scenario::Scenario;
use lasthop_sim::Options;

const CASES: u64 = 24;
const MEAN: f64 = 0.94;
const EACH: f64 = 0.8;
/// A full packet takes the bridge 60 us besides.
const OVERHEAD: f64 = 60.0;

/// Goodput of download and sessions, bit/s.
fn goodput(sets: &[String]) -> f64 {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/everyday/sessions.toml");
    let scenario = Scenario::load(&file, sets).expect("a scenario");
    let report = lasthop_sim::run(&scenario, &mut Options::default()).expect("it runs");
    let bulk = report.flows.iter().filter(|flow| flow.name.starts_with("bulk") || flow.name.starts_with("session"));
    bulk.map(|flow| flow.metrics.goodput_bps).sum()
}

#[test]
fn what_bursts_leave_is_not_lost() {
    let mut uniform = uniform(19, "sessions");
    let mut parts = Vec::new();
    for _ in 0..CASES {
        let (rate, rtt) = ((uniform(8f64.ln(), 80f64.ln())).exp(), uniform(10.0, 60.0));
        let (sessions, every) = (uniform(1.0, 8.0).round(), uniform(0.5f64.ln(), 2f64.ln()).exp());
        // Together a tenth to a third of what the bridge carries.
        let response = uniform(0.1, 0.33) * rate * 1e6 / 8.0 * every / sessions;
        let home = [
            format!("bridge.rate={:.3}Mbit/s", 1534.0 * 8.0 / (12_000.0 / rate - OVERHEAD)),
            format!("server.W.delay=\"{:.1}ms\"", rtt / 2.0),
            format!("flow.session.count={sessions}"),
            format!("flow.session.response={response:.0}B"),
            format!("flow.session.every=\"{:.0}ms\"", every * 1e3),
            "flow.session.think=\"1ms\"".to_owned(),
        ];
        let free = goodput(&[&home[..], &["control.window=none".to_owned()]].concat());
        let part = goodput(&home) / free;
        println!(
            "{rate:.0} Mbit/s, {rtt:.0} ms, {sessions} sessions of {:.0} kB each {every:.1} s: {:.1} Mbit/s without, {part:.3} of it",
            response / 1e3,
            free / 1e6
        );
        parts.push(part);
    }
    let (mean, least) = (parts.iter().sum::<f64>() / CASES as f64, parts.iter().fold(1.0, |a: f64, b| a.min(*b)));
    assert!(mean >= MEAN && least >= EACH, "{mean:.3} in the mean, {least:.3} at least");
}
