//! Parts that run `lasthop emulate`: the wired part's rate, and the channel against theory.

use lasthop_emu::Outcome;
use lasthop_home::scenario::Scenario;
use serde_json::{Value, json};

use crate::summary::{Summary, spread};
use crate::{Settings, lasthop, valid_run};

fn is_valid(report: &Value) -> bool {
    report["run"]["valid"] == json!(true)
}

fn emulate(settings: &Settings, scenario: &str, sets: &[&str], seed: u64) -> Vec<String> {
    let path = settings.root.join("scenarios").join(scenario).display().to_string();
    let mut arguments = vec!["emulate".to_owned(), path, "--seed".to_owned(), seed.to_string()];
    arguments.extend(sets.iter().flat_map(|set| ["--set".to_owned(), (*set).to_owned()]));
    arguments
}

fn sum(report: &Value, pick: impl Fn(&Value) -> f64) -> f64 {
    report["flows"].as_array().into_iter().flatten().map(pick).sum()
}

/// 50,000 packets/s between two wired hosts, none lost.
pub fn wired(settings: &Settings, summary: &mut Summary) {
    let report = match lasthop(settings, &emulate(settings, "bench/wired.toml", &[], 1)) {
        Ok(report) => report,
        Err(why) => return summary.failed("wired", "50,000 packets/s", &why),
    };
    let sent = sum(&report, |f| f["sent"].as_f64().unwrap_or(0.0));
    let lost = sum(&report, |f| f["lost"].as_object().into_iter().flatten().filter_map(|(_, n)| n.as_f64()).sum());
    let seconds = report["duration_s"].as_f64().unwrap_or(f64::NAN) - report["measure_from_s"].as_f64().unwrap_or(0.0);
    let drops = report["run"]["drops"].as_f64().unwrap_or(f64::NAN);
    let rate = sent / seconds;
    summary.keep("wired", "50,000 packets/s", json!({ "rate": rate, "lost": lost, "run": report["run"] }));
    let measured = format!(
        "{rate:.0} packets/s, {lost} lost, {drops} dropped at TAPs, lag p99 {} ms",
        report["run"]["lag_ms"]["p99"]
    );
    let met = rate >= 49_500.0 && lost == 0.0 && drops == 0.0;
    summary.line("wired", "packets through the wired part", &measured, "50,000/s, none lost", Some(met));
}

/// UDP uplink saturation: stations, standard, reference in Mbit/s (two stations: exact DCF).
const SATURATION: [(u32, &str, f64); 4] =
    [(1, "802.11g", 30.496), (2, "802.11g", 30.74), (1, "802.11b", 6.051), (2, "802.11b", 6.315)];

/// The channel, saturated by one and two stations, against the reference figures.
pub fn saturation(settings: &Settings, summary: &mut Summary) {
    for (stations, standard, reference) in SATURATION {
        let case = format!("{standard}, {stations} station(s)");
        let count = format!("station.S.count={stations}");
        // Never empty, and short: what is queued when the measured part begins was sent before it and does not count.
        let mut sets = vec![count.as_str(), "wifi.station_queue.limit=20"];
        if standard == "802.11b" {
            sets.extend([
                "wifi.standard=802.11b",
                "wifi.rate=11Mbit/s",
                "wifi.control_rate=1Mbit/s",
                "flow.load.rate=10Mbit/s",
                "wifi.station_queue.limit=10",
            ]);
        }
        let mut rates = Vec::new();
        for seed in 1..=settings.runs.min(3) {
            match valid_run(settings, &emulate(settings, "theory/saturation.toml", &sets, seed), is_valid) {
                Ok(report) => rates.push(sum(&report, |f| f["rate_bps"].as_f64().unwrap_or(0.0)) / 1e6),
                Err(why) => eprintln!("   {why}"),
            }
        }
        if rates.is_empty() {
            summary.failed("saturation", &case, "no valid run");
            continue;
        }
        summary.keep("saturation", &case, json!({ "mbps": rates, "reference": reference }));
        let worst = rates.iter().map(|r| (r / reference - 1.0).abs()).fold(0.0, f64::max);
        let aim = format!("{reference} Mbit/s within 1 %; worst off by {:.2} %", worst * 100.0);
        summary.line("saturation", &case, &spread(&rates, "Mbit/s"), &aim, Some(worst <= 0.01));
    }
}

/// Today's air: what it is, what it changes of the scenario (802.11ac, 80 MHz, one stream, MCS 9), and the goodput aimed at, Mbit/s.
const TODAY: [(&str, &[&str], f64); 5] = [
    (
        "n, 20 MHz, MCS 7, two streams",
        &["wifi.standard=802.11n", "wifi.width=20MHz", "wifi.streams=2", "wifi.mcs=7"],
        0.0,
    ),
    ("ac, 80 MHz, MCS 9, one stream", &[], 300.0),
    ("ax, 80 MHz, MCS 8, one stream", &["wifi.standard=802.11ax", "wifi.mcs=8", "wifi.guard_interval=800ns"], 300.0),
    ("ac, a line that holds nothing up", &["wan.rate_down=none", "wan.rate_up=none", "server.W.rate=none"], 300.0),
    (
        "ac, two streams, a line of 600 Mbit/s",
        &["wifi.streams=2", "wan.rate_down=600Mbit/s", "wan.rate_up=600Mbit/s"],
        0.0,
    ),
];

/// A download by kernel TCP over today's air and a game beside it: is it carried in time, and with how many system calls.
pub fn today(settings: &Settings, summary: &mut Summary) {
    let text = include_str!("../../../../scenarios/bench/today.toml");
    for (case, sets, aim) in TODAY {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        let mut runs = Vec::new();
        for seed in 1..=settings.runs.min(3) {
            let home = match Scenario::parse(text, "today.toml", &sets) {
                Ok(home) => home.with_seed(seed),
                Err(why) => return summary.failed("today", case, &why.to_string()),
            };
            match lasthop_emu::run(&home, lasthop_emu::Options::default()) {
                Ok(outcome) => runs.push(outcome),
                Err(why) => return summary.failed("today", case, &why.to_string()),
            }
        }
        let of = |pick: fn(&Outcome) -> f64| runs.iter().map(pick).collect::<Vec<_>>();
        let flow = |outcome: &Outcome, name: &str| {
            outcome.report.flow(name).map(|flow| flow.metrics.clone()).unwrap_or_default()
        };
        let goodput: Vec<f64> = runs.iter().map(|it| flow(it, "down").goodput_bps / 1e6).collect();
        let game: Vec<f64> =
            runs.iter().map(|it| flow(it, "game").added_delay.map_or(f64::NAN, |added| added.p99)).collect();
        let lag = of(|it| it.report.run.lag_ms.as_ref().map_or(f64::NAN, |lag| lag.p99));
        let events = of(|it| it.report.run.events as f64 / it.report.duration_s);
        let calls = of(|it| it.calls as f64 / it.report.duration_s);
        let load = of(|it| it.load);
        let valid = runs.iter().filter(|it| it.report.run.valid).count();
        summary.keep(
            "today",
            case,
            json!({ "mbps": goodput, "game_added_p99_ms": game, "lag_p99_ms": lag, "frames_per_s": events, "calls_per_s": calls,
                "load": load, "valid": valid, "runs": runs.len() }),
        );
        let measured = format!(
            "{}; lag p99 {}; game's added p99 {}; {} a second with {}; {} of a core",
            spread(&goodput, "Mbit/s"),
            spread(&lag, "ms"),
            spread(&game, "ms"),
            spread(&events, "frames"),
            spread(&calls, "system calls"),
            spread(&load, "")
        );
        let met = lag.iter().all(|ms| *ms < 0.3) && goodput.iter().all(|mbps| *mbps >= 0.95 * aim);
        let wanted = if aim > 0.0 {
            format!("{aim} Mbit/s within 5 %, lag p99 under 0.3 ms")
        } else {
            "lag p99 under 0.3 ms".into()
        };
        summary.line("today", case, &measured, &wanted, Some(met));
    }
}
