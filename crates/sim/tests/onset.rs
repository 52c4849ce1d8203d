//! The first five seconds of downloads and uploads that begin together on something that nobody knows: what a game waits.
//!
//! ```text
//! 400 drawn places: a port or a WAN link of 4 to 100 Mbit/s, up one of 2 to 20; 10 to 100 ms; 1 to 8 flows
//! bound            the initial windows that they send at once (n x 10 x 1,500 B / C), and at least 20 ms
//! a game's p99     in 397 under its bound; above it by 0.1 % in the mean, to 1.39 times at most (394 where a capacity that trains have shown
//!                  bounds nothing once windows grow no more)
//!
//! 240 drawn places: a port or a WAN link of 20 to 100 Mbit/s, down or up; 2 to 16 flows that begin within 0.3 s of each other
//! a game's p99     in 212 under the same bound; 15.8 ms in the mean (198, and 17.4 ms, where intervals without a queue count before windows
//!                  promise all of it)
//!
//! 100 drawn WAN links of 20 to 100 Mbit/s, down or up, with token buckets or without; 3 to 10 flows, 0.3 to 1.5 s after one another
//! a game's p99     after all have begun: 7.5 ms in the mean, 22 at most (12.9 and 44 while each took the queue for its path; 8.4 where more
//!                  than a measured capacity is tried before what windows bring has come)
//!
//! 40 drawn WAN links of 20 to 100 Mbit/s; 1 to 3 downloads wait at their server's own link, of 0.1 to 0.6 of that; 1 to 3 of another begin
//! goodput          of all, with control over that without: 0.971 in the mean, 0.90 at least (0.967 and 0.77 where what waits there counts as the WAN link's)
//! ```

mod common;

use std::path::Path;

use common::{slow, uniform};
use lasthop_home::report::Report;
use lasthop_home::scenario::Scenario;
use lasthop_sim::Options;

const CASES: usize = 400;
const UNDER: usize = 395;
const MEAN: f64 = 0.015;
const EACH: f64 = 1.3;
const LEAST_BOUND: f64 = 20.0;
const STAGGERED: usize = 240;
const STAGGERED_UNDER: usize = 205;
const STAGGERED_MEAN: f64 = 17.0;
const LATE: usize = 100;
const LATE_MEAN: f64 = 8.0;
const LATE_MOST: f64 = 28.0;
const ELSEWHERE: usize = 40;
const ELSEWHERE_MEAN: f64 = 0.97;
const ELSEWHERE_LEAST: f64 = 0.9;
/// What Linux sends at first (RFC 6928), with headers, bits.
const INITIAL_WINDOW: f64 = 10.0 * 12_000.0;

/// A home with `more` flows.
fn play(sets: &[String], more: &str) -> Report {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/everyday/upload-slow-line.toml");
    let text = std::fs::read_to_string(&file).expect("a scenario") + more;
    let scenario = Scenario::parse(&text, "onset.toml", sets).expect("a scenario");
    lasthop_sim::run(&scenario, &mut Options::default()).expect("it runs")
}

/// What is added to the game, p99, ms, where flows of `more` begin, too.
fn waits(sets: &[String], game: &str, more: &str) -> f64 {
    let report = play(sets, more);
    let flow = report.flows.iter().find(|flow| flow.name == game).expect("a game");
    flow.metrics.added_delay.as_ref().expect("packets arrived").p99
}

/// Another flow, that begins later.
fn later(n: u32, (from, to): (&str, &str), start: f64) -> String {
    format!(
        "\n[[flow]]\nname = \"bulk-{n}\"\nfrom = \"{from}\"\nto = \"{to}\"\nkind = \"ftp\"\nstart = \"{start:.3}s\"\n"
    )
}

#[test]
fn a_game_waits_for_initial_windows_and_no_more() {
    let mut uniform = uniform(19, "onset");
    let mut above = Vec::new();
    for _ in 0..CASES {
        let place = ["bridge.rate", "wan.rate_down", "wan.rate_up"][uniform(0.0, 3.0) as usize];
        let up = place == "wan.rate_up";
        let (low, high): (f64, f64) = if up { (2.0, 20.0) } else { (4.0, 100.0) };
        let (rate, rtt) = (uniform(low.ln(), high.ln()).exp(), uniform(10f64.ln(), 100f64.ln()).exp());
        let flows = [1.0, 1.0, 2.0, 4.0, 8.0][uniform(0.0, 5.0) as usize];
        // In any phase of the controller's intervals.
        let start = 1.0 + uniform(0.0, 0.05);
        let mut home = slow(place, rate, rtt);
        home.extend([
            format!("flow.bulk.count={flows}"),
            format!("flow.bulk.start={start:.4}s"),
            format!("measure_from={start:.4}s"),
            format!("duration={:.4}s", start + 5.0),
        ]);
        if !up {
            home.extend(["flow.bulk.from=W", "flow.bulk.to=A"].map(str::to_owned));
        }
        let bound = (flows * INITIAL_WINDOW / rate / 1e3).max(LEAST_BOUND);
        let p99 = waits(&home, if up { "game-up" } else { "game-down" }, "");
        println!("{place} {rate:.1} Mbit/s, {rtt:.0} ms, {flows} flows: p99 {p99:.1} ms, bound {bound:.1}");
        above.push((p99 / bound - 1.0).max(0.0));
    }
    let under = above.iter().filter(|above| **above == 0.0).count();
    let (mean, most) = (above.iter().sum::<f64>() / CASES as f64, above.iter().copied().fold(0.0, f64::max));
    println!("{under} of {CASES} under their bounds; above by {mean:.3} in the mean, by {most:.2} at most");
    assert!(under >= UNDER && mean <= MEAN && most <= EACH, "{under} under, above by {mean:.3}, {most:.2} at most");
}

/// Windows that grow together are promised together: what one brings has not arrived while the next one grows.
#[test]
fn flows_that_begin_one_after_another_are_not_promised_more_than_there_is() {
    let mut uniform = uniform(19, "one after another");
    let mut waited = Vec::new();
    for _ in 0..STAGGERED {
        let (place, up) =
            [("bridge.rate", false), ("bridge.rate", true), ("wan.rate_down", false), ("wan.rate_up", true)]
                [uniform(0.0, 4.0) as usize];
        let (rate, rtt, flows) = (uniform(20.0, 100.0), uniform(10.0, 100.0), uniform(2.0, 17.0).floor());
        let mut home = slow(place, rate, rtt);
        home.extend(
            ["wan.buffer_down=2000", "wan.buffer_up=2000", "measure_from=1s", "duration=6s"].map(str::to_owned),
        );
        let (from, to) = if up { ("A", "W") } else { ("W", "A") };
        home.extend([format!("flow.bulk.from={from}"), format!("flow.bulk.to={to}")]);
        let more: String = (1..flows as u32).map(|n| later(n, (from, to), 1.0 + uniform(0.0, 0.3))).collect();
        let p99 = waits(&home, if up { "game-up" } else { "game-down" }, &more);
        let bound = (flows * INITIAL_WINDOW / rate / 1e3).max(LEAST_BOUND);
        println!("{place} up {up} {rate:.1} Mbit/s, {rtt:.0} ms, {flows} flows: p99 {p99:.1} ms, bound {bound:.1}");
        waited.push((p99, bound));
    }
    let under = waited.iter().filter(|(p99, bound)| p99 <= bound).count();
    let mean = waited.iter().map(|(p99, _)| p99).sum::<f64>() / waited.len() as f64;
    println!("{under} of {STAGGERED} under their bounds, {mean:.1} ms in the mean");
    assert!(under >= STAGGERED_UNDER && mean <= STAGGERED_MEAN, "{under} under, {mean:.1} ms in the mean");
}

/// A queue that is held never runs empty for long: who begins behind it would take it for its path, and the next one that queue and more.
#[test]
fn connections_that_begin_behind_a_queue_do_not_add_to_it() {
    let mut uniform = uniform(19, "behind a queue");
    let mut waited = Vec::new();
    for case in 0..LATE {
        let up = case % 2 == 1;
        let (rate, rtt, flows) = (uniform(20.0, 100.0), uniform(10.0, 100.0), uniform(3.0, 11.0).floor());
        let (apart, bucket) = (uniform(0.3, 1.5), [0.0, 0.001, 0.004][uniform(0.0, 3.0) as usize]);
        let (place, end) = (if up { "wan.rate_up" } else { "wan.rate_down" }, 1.0 + flows * apart);
        let mut home = slow(place, rate, rtt);
        home.extend(["wan.buffer_down=2000", "wan.buffer_up=2000", "flow.bulk.start=1s"].map(str::to_owned));
        home.extend([format!("measure_from={end:.2}s"), format!("duration={:.2}s", end + 5.0)]);
        if bucket > 0.0 {
            let bytes = (rate * 1e6 / 8.0 * bucket).max(3000.0) as u64;
            home.push(format!("wan.burst_{}={bytes}", if up { "up" } else { "down" }));
        }
        let (from, to) = if up { ("A", "W") } else { ("W", "A") };
        home.extend([format!("flow.bulk.from={from}"), format!("flow.bulk.to={to}")]);
        let more = (1..flows as u32).map(|n| later(n, (from, to), 1.0 + apart * f64::from(n) + uniform(0.0, 0.2)));
        let p99 = waits(&home, if up { "game-up" } else { "game-down" }, &more.collect::<String>());
        println!(
            "{place} {rate:.1} Mbit/s, bucket {bucket} s, {rtt:.0} ms, {flows} flows, {apart:.1} s apart: p99 {p99:.1} ms"
        );
        waited.push(p99);
    }
    let (mean, most) = (waited.iter().sum::<f64>() / LATE as f64, waited.iter().copied().fold(0.0, f64::max));
    println!("{mean:.1} ms in the mean, {most:.1} at most");
    assert!(mean <= LATE_MEAN && most <= LATE_MOST, "{mean:.1} ms in the mean, {most:.1} at most");
}

/// What a connection meets that begins is no part of its path, but where it stands elsewhere, on the way of others, it meets nothing.
#[test]
fn who_begins_beside_downloads_that_wait_elsewhere_has_what_they_leave() {
    let mut uniform = uniform(19, "elsewhere");
    let mut parts = Vec::new();
    for _ in 0..ELSEWHERE {
        let (rate, rtt) = (uniform(20.0, 100.0), uniform(10.0, 100.0));
        let (far, path) = (rate * uniform(0.1, 0.6), uniform(1.0, 30.0));
        let buffer = [30, 100, 300][uniform(0.0, 3.0) as usize];
        let mut home = slow("wan.rate_down", rate, rtt);
        home.extend(
            ["wan.buffer_down=2000", "measure_from=6s", "duration=20s", "flow.bulk.start=1s"].map(str::to_owned),
        );
        home.extend(["flow.bulk.from=V", "flow.bulk.to=A"].map(str::to_owned));
        home.push(format!("flow.bulk.count={}", uniform(1.0, 4.0).floor()));
        let more = format!(
            "\n[[server]]\nname = \"V\"\ndelay = \"{path:.1}ms\"\nrate = \"{far:.1}Mbit/s\"\nbuffer = {buffer}\n"
        );
        let begin = (1..=uniform(1.0, 4.0) as u32).map(|n| later(n, ("W", "A"), uniform(5.5, 6.0)));
        let more = more + &begin.collect::<String>();
        let goodput = |sets: &[String]| {
            let report = play(sets, &more);
            let bulk = report.flows.iter().filter(|flow| flow.name.starts_with("bulk"));
            bulk.map(|flow| flow.metrics.goodput_bps).sum::<f64>()
        };
        let part = goodput(&home) / goodput(&[&home[..], &["control.window=none".to_owned()]].concat());
        println!("{rate:.1} Mbit/s, {rtt:.0} ms, of others {far:.1} Mbit/s: {part:.3}");
        parts.push(part);
    }
    let (mean, least) = (parts.iter().sum::<f64>() / parts.len() as f64, parts.iter().copied().fold(1.0, f64::min));
    println!("{mean:.3} in the mean, {least:.3} at least");
    assert!(mean >= ELSEWHERE_MEAN && least >= ELSEWHERE_LEAST, "{mean:.3} in the mean, {least:.3} at least");
}
