//! What the emulator can carry and how late it is; one JSON line per measurement on standard output.
//!
//! - `wired`: 50,000 packets/s from a server over its link and the line into the access point, 10 s; none may be lost.
//! - `lag`: the SAP-LAW home with a download, 20 s, alone and with a spinning thread on every core.
//! - `saturation`: UDP uplink of one and two stations against the reference sheet (30.496, exact DCF 30.74 Mbit/s).

use lasthop_emu::{Options, Outcome, run};
use lasthop_home::scenario::Scenario;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const WIRED: &str = r#"
format = 1
name = "wired"
duration = "10s"
[line]
delay = "1ms"
rate_down = "1Gbit/s"
[[server]]
name = "W"
delay = "1ms"
rate = "1Gbit/s"
[wifi]
[[station]]
name = "N"
[[flow]]
name = "load"
from = "W"
to = "AP"
kind = "cbr"
rate = "40Mbit/s"
size = "100B"
"#;

const DOWNLOAD: &str = r#"
format = 1
name = "download"
duration = "20s"
[line]
delay = "10ms"
rate_down = "100Mbit/s"
rate_up = "100Mbit/s"
[[server]]
name = "W1"
delay = "10ms"
rate = "100Mbit/s"
[[server]]
name = "W3"
delay = "30ms"
rate = "100Mbit/s"
[wifi]
control_rate = "24Mbit/s"
queue = { kind = "fifo", limit = 1000 }
[[station]]
name = "N0"
[[station]]
name = "N1"
[[station]]
name = "N3"
[[flow]]
name = "video"
from = "AP"
to = "N0"
kind = "video"
[[flow]]
name = "game-down"
from = "W1"
to = "N1"
kind = "game-server"
[[flow]]
name = "game-up"
from = "N1"
to = "W1"
kind = "game-client"
[[flow]]
name = "ftp"
from = "W3"
to = "N3"
kind = "ftp"
start = "2s"
"#;

const SATURATION: &str = r#"
format = 1
name = "saturation"
duration = "20s"
[wifi]
control_rate = "24Mbit/s"
attempts = 255
station_queue = { kind = "fifo", limit = 400 }
[[station]]
name = "S"
count = 1
[[flow]]
name = "load"
from = "S"
to = "AP"
kind = "cbr"
rate = "40Mbit/s"
"#;

fn main() {
    if let Err(error) = measure() {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

fn measure() -> Result<(), lasthop_emu::Error> {
    let outcome = play(WIRED, &[])?;
    let load = &outcome.report.flows[0].figures;
    let per_second = load.sent as f64 / outcome.report.duration_s;
    let lost = load.sent - load.delivered;
    print("wired", &[("packets_per_s", per_second), ("not_delivered", lost as f64)], &outcome);

    print("lag", &[("busy_cores", 0.0)], &play(DOWNLOAD, &[])?);
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let outcome = while_busy(cores, || play(DOWNLOAD, &[]))?;
    print("lag", &[("busy_cores", cores as f64)], &outcome);

    for (stations, theory, after_collision) in [(1, 30.496, "eifs"), (2, 30.74, "eifs")] {
        let set = [format!("station.S.count={stations}"), format!("wifi.after_collision={after_collision}")];
        let outcome = play(SATURATION, &set)?;
        let frames: u64 = outcome.report.stations[1..].iter().map(|s| s.frames - s.given_up).sum();
        let mbps = frames as f64 * 12e3 / outcome.report.duration_s / 1e6;
        let figures =
            [("stations", f64::from(stations)), ("mbps", mbps), ("theory_mbps", theory), ("ratio", mbps / theory)];
        print("saturation", &figures, &outcome);
    }
    Ok(())
}

fn play(text: &str, set: &[String]) -> Result<Outcome, lasthop_emu::Error> {
    run(&Scenario::parse(text, "bench", set)?, Options::default())
}

/// Runs `work` beside `threads` threads that never sleep.
fn while_busy<T>(threads: usize, work: impl FnOnce() -> T) -> T {
    let over = Arc::new(AtomicBool::new(false));
    let spin = |over: Arc<AtomicBool>| {
        move || {
            while !over.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        }
    };
    let burners: Vec<_> = (0..threads).map(|_| std::thread::spawn(spin(Arc::clone(&over)))).collect();
    let result = work();
    over.store(true, Ordering::Relaxed);
    burners.into_iter().for_each(|burner| drop(burner.join()));
    result
}

fn print(name: &str, figures: &[(&str, f64)], outcome: &Outcome) {
    let run = &outcome.report.run;
    let mut line = serde_json::json!({ "bench": format!("emu.{name}"), "valid": run.valid, "events": run.events });
    line["lag_ms"] = serde_json::json!(run.lag_ms);
    line["engine_load"] = serde_json::json!(outcome.load);
    line["drops"] = serde_json::json!(run.drops);
    for (key, value) in figures {
        line[*key] = serde_json::json!(value);
    }
    println!("{line}");
}
