//! What a sender paces is no train of packets that were sent at once: a flow that paces its first windows (BBR), beside which a short transfer
//! begins before anything is known, is not held to that pace: what more comes through refutes it.
//!
//! ```text
//! 24 homes, goodput with control over that without    in the mean 1.00, each 0.96 (0.94 where the pace stays an estimate)
//! ```

mod common;

use common::uniform;
use lasthop_home::scenario::Scenario;
use lasthop_sim::Options;

const CASES: u32 = 24;
const MEAN: f64 = 0.99;
const EACH: f64 = 0.95;

const HOME: &str = r#"
format = 1
name = "first-trains"
duration = "12s"
measure_from = "2s"

[wan]
delay = "1ms"
rate_down = "1Gbit/s"
rate_up = "1Gbit/s"
buffer_down = 1000
buffer_up = 1000

[bridge]
rate = "100Mbit/s"
control_rate = "100Gbit/s"
queue = { kind = "fifo", limit = 400 }
station_queue = { kind = "fifo", limit = 400 }

[[server]]
name = "W1"

[[server]]
name = "W2"

[[station]]
name = "A"

[[station]]
name = "B"

[[flow]]
name = "bulk"
from = "W1"
to = "A"
kind = "ftp"
cc = "bbr"
start = "1s"

[[flow]]
name = "short"
from = "W2"
to = "B"
kind = "ftp"

[control.window]
capacity = "learn"
"#;

fn goodput(sets: &[String]) -> f64 {
    let scenario = Scenario::parse(HOME, "first-trains.toml", sets).expect("a scenario");
    let report = lasthop_sim::run(&scenario, &mut Options::default()).expect("it runs");
    report.flows.iter().find(|flow| flow.name == "bulk").expect("a flow").metrics.goodput_bps
}

#[test]
fn what_a_sender_paces_tells_no_capacity() {
    let mut uniform = uniform(19, "first trains");
    let mut parts = Vec::new();
    for _ in 0..CASES {
        let rate = uniform(15f64.ln(), 100f64.ln()).exp();
        let (rtt, other) = (uniform(40.0, 120.0), uniform(10.0, 60.0));
        let (after, bytes) = (uniform(0.2, 1.0), uniform(200.0, 2000.0).round());
        let home = [
            format!("bridge.rate={:.3}Mbit/s", 1534.0 * 8.0 / (12_000.0 / rate - 60.0)),
            format!("server.W1.delay={:.1}ms", rtt / 2.0 - 1.0),
            format!("server.W2.delay={:.1}ms", other / 2.0 - 1.0),
            format!("flow.short.start={:.2}s", 1.0 + after),
            format!("flow.short.bytes={bytes}kB"),
        ];
        let part = goodput(&home) / goodput(&[&home[..], &["control.window=none".to_owned()]].concat());
        println!(
            "{rate:.0} Mbit/s, {rtt:.0} ms, {bytes} kB over {other:.0} ms {after:.2} s later: {part:.3} of the goodput"
        );
        parts.push(part);
    }
    let (mean, least) = (parts.iter().sum::<f64>() / f64::from(CASES), parts.iter().fold(1.0, |a: f64, b| a.min(*b)));
    println!("{mean:.3} in the mean, {least:.3} at least");
    assert!(mean >= MEAN && least >= EACH, "{mean:.3} in the mean, {least:.3} at least");
}
