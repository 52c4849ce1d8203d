//! Cost of a whole simulated home per delivered frame of the channel, one JSON line per scenario.
//!
//! - `cell` of n stations: `scenarios/bench/cell.toml`, a download and a game both directions for each.
//! - `home`: `scenarios/papers/sap-law.toml` without its window control.
//!
//! `cargo bench -p lasthop-sim --bench home`: best of five, processor time as Linux accounts it, so that other work on the
//! machine disturbs little. `... -- cell 64 20` runs one cell once for 20 s of virtual time, `... -- home 0 180` the
//! home: what `valgrind --tool=callgrind` counts instructions of. Instructions per frame are the difference of two
//! durations over the difference of their frames.

use std::path::Path;

use lasthop_home::scenario::Scenario;
use lasthop_sim::Options;

/// A scenario of this many stations (0: the home) over so many seconds.
fn scenario(stations: u32, seconds: u32) -> Scenario {
    let file = if stations == 0 { "papers/sap-law.toml" } else { "bench/cell.toml" };
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios")).join(file);
    let mut sets = vec![format!("duration={seconds}s")];
    if stations == 0 {
        sets.extend(["control.window=none".into(), "wifi.loss.deviation=9dB".into()]);
    } else {
        sets.push(format!("station.S.count={stations}"));
    }
    Scenario::load(&path, &sets).expect("the scenario is one of the repository's")
}

/// Nanoseconds this process has spent on a processor.
fn processor_ns() -> f64 {
    let schedstat = std::fs::read_to_string("/proc/self/schedstat").expect("Linux accounts processor time");
    schedstat.split(' ').next().and_then(|ns| ns.parse().ok()).expect("schedstat starts with nanoseconds")
}

fn measure(stations: u32, seconds: u32, times: u32) {
    let scenario = scenario(stations, seconds);
    let mut best = f64::MAX;
    let mut counted = (0, 0);
    for _ in 0..times {
        let start = processor_ns();
        let report = lasthop_sim::run(&scenario, &mut Options::default()).expect("the scenario runs");
        best = best.min(processor_ns() - start);
        let delivered = report.stations.iter().map(|station| station.frames - station.given_up).sum();
        counted = (report.run.events, delivered);
    }
    let (events, frames): (u64, u64) = counted;
    let name = if stations == 0 { "home" } else { "cell" };
    println!(
        "{{\"bench\":\"{name}\",\"stations\":{stations},\"seconds\":{seconds},\"events\":{events},\"frames\":{frames},\
         \"ms\":{:.1},\"ns_per_frame\":{:.1}}}",
        best / 1e6,
        best / frames as f64
    );
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if let [which, stations, seconds] = words.as_slice() {
        let number = |word: &str| word.parse().expect("a number of stations, a number of seconds");
        let stations = if which == "home" { 0 } else { number(stations) };
        measure(stations, number(seconds), 1);
        return;
    }
    for stations in [1, 4, 16, 64] {
        measure(stations, 100, 5);
    }
    measure(0, 180, 5);
}
