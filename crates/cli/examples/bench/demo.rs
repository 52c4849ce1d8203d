//! Parts that run `lasthop demo`: the matrix of the promise, the loss-free air, the emulator's lag.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::summary::{Summary, median, spread};
use crate::{Settings, valid_run};

/// The figures of one demo that the aims speak of.
#[derive(Clone, Debug)]
struct Metrics {
    /// The game's worst added delay, p99, ms: start-up off, start-up on, rest off, rest on.
    added: [f64; 4],
    /// Goodput of the download in the rest, off and on, bit/s.
    goodput: [f64; 2],
    /// Retransmitted segments of the download with control, whole run.
    retransmitted: f64,
    /// p99, p99.9 and max of lag over both runs, ms.
    lag: [f64; 3],
}

fn is_valid(result: &Value) -> bool {
    ["off", "on"].iter().all(|run| result[run]["run"]["valid"] == json!(true))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// The worst p99 of added delay among the game's flows.
fn game_added(report: &Value, start_up: bool) -> f64 {
    let flows = report["flows"].as_array().into_iter().flatten();
    let games = flows.filter(|f| f["kind"].as_str().is_some_and(|k| k.starts_with("game")));
    let populations = games.map(|f| if start_up { &f["start_up"] } else { f });
    populations.map(|p| number(&p["added_delay"]["p99"])).fold(f64::NAN, f64::max)
}

fn download(report: &Value) -> &Value {
    report["flows"]
        .as_array()
        .and_then(|flows| flows.iter().find(|f| f["name"] == json!("ftp")))
        .unwrap_or(&Value::Null)
}

impl Metrics {
    fn of(result: &Value) -> Self {
        let (off, on) = (&result["off"], &result["on"]);
        let lag = |key: &str| number(&off["run"]["lag_ms"][key]).max(number(&on["run"]["lag_ms"][key]));
        let retransmitted = |population: &Value| population["tcp"]["retransmitted"].as_f64().unwrap_or(0.0);
        Self {
            added: [game_added(off, true), game_added(on, true), game_added(off, false), game_added(on, false)],
            goodput: [off, on].map(|r| number(&download(r)["goodput_bps"])),
            retransmitted: retransmitted(download(on)) + retransmitted(&download(on)["start_up"]),
            lag: ["p99", "p999", "max"].map(lag),
        }
    }

    fn json(&self) -> Value {
        json!({
            "game_added_p99_ms": {
                "start_up_off": self.added[0], "start_up_on": self.added[1],
                "rest_off": self.added[2], "rest_on": self.added[3],
            },
            "download_goodput_bps": { "off": self.goodput[0], "on": self.goodput[1] },
            "retransmitted_on": self.retransmitted,
            "lag_ms": { "p99": self.lag[0], "p999": self.lag[1], "max": self.lag[2] },
        })
    }
}

/// The valid ones of `runs` demos, seeds counted from 1.
fn demos(settings: &Settings, runs: u64, seconds: u64, more: &[&str]) -> (Vec<Metrics>, Vec<String>) {
    let (mut metrics, mut failures) = (Vec::new(), Vec::new());
    for seed in 1..=runs {
        let mut arguments: Vec<String> = vec!["demo".into(), "--seconds".into(), seconds.to_string()];
        arguments.extend(["--seed".into(), seed.to_string()]);
        // The aims are of the paper's air.
        arguments.extend(["--air".into(), "g".into()]);
        arguments.extend(more.iter().map(|&a| a.to_owned()));
        match valid_run(settings, &arguments, is_valid) {
            Ok(result) => metrics.push(Metrics::of(&result)),
            Err(why) => failures.push(why),
        }
    }
    (metrics, failures)
}

fn column(metrics: &[Metrics], pick: impl Fn(&Metrics) -> f64) -> Vec<f64> {
    metrics.iter().map(pick).collect()
}

/// {cubic, reno} x {50, 1000} packets, medians.
pub fn matrix(settings: &Settings, summary: &mut Summary) {
    for cc in &settings.senders {
        for queue in ["50", "1000"] {
            let case = format!("{cc}, queue {queue}");
            let (metrics, failures) = demos(settings, settings.runs, settings.seconds, &["--cc", cc, "--queue", queue]);
            let runs: Vec<Value> = metrics.iter().map(Metrics::json).collect();
            summary.keep("demo", &case, json!({ "runs": runs, "not valid": failures }));
            if metrics.is_empty() {
                summary.failed("demo", &case, "no valid run");
                continue;
            }
            aims(summary, &case, queue == "1000", &metrics);
        }
    }
}

fn aims(summary: &mut Summary, case: &str, deep: bool, metrics: &[Metrics]) {
    let on = column(metrics, |f| f.added[3]);
    let middle = |values: &[f64]| median(values).unwrap_or(f64::NAN);
    let what = |text: &str| format!("{case}: {text}");
    summary.line(
        "demo",
        &what("game added p99, control on, after 5 s"),
        &spread(&on, "ms"),
        &format!("at most 10 ms; off: {}", spread(&column(metrics, |f| f.added[2]), "ms")),
        Some(middle(&on) <= 10.0),
    );
    let kept = column(metrics, |f| f.goodput[1] / f.goodput[0] * 100.0);
    summary.line("demo", &what("download kept"), &spread(&kept, "%"), "at least 95 %", Some(middle(&kept) >= 95.0));
    let (off, on) = (column(metrics, |f| f.added[0]), column(metrics, |f| f.added[1]));
    let ratio = middle(&on) / middle(&off);
    let (aim, met) = if deep { ("at most half of off", ratio <= 0.5) } else { ("no worse than off", ratio <= 1.0) };
    summary.line(
        "demo",
        &what("game added p99, control on, first 5 s"),
        &spread(&on, "ms"),
        &format!("{aim}: {}", spread(&off, "ms")),
        Some(met),
    );
}

/// No losses on the channel, 1000 packets of queue: with control nothing may be retransmitted.
pub fn loss_free(settings: &Settings, summary: &mut Summary) {
    for cc in &settings.senders {
        let more = ["--cc", cc, "--queue", "1000", "--loss", "none"];
        let (metrics, failures) = demos(settings, settings.runs.min(3), settings.seconds, &more);
        let runs: Vec<Value> = metrics.iter().map(Metrics::json).collect();
        summary.keep("loss-free", cc, json!({ "runs": runs, "not valid": failures }));
        if metrics.is_empty() {
            summary.failed("loss-free", cc, "no valid run");
            continue;
        }
        let retransmitted = column(&metrics, |f| f.retransmitted);
        let most = retransmitted.iter().copied().fold(0.0, f64::max);
        let what = format!("{cc}: retransmissions in {} s with control", settings.seconds);
        summary.line("loss-free", &what, &spread(&retransmitted, "segments"), "0", Some(most == 0.0));
    }
}

/// The emulator's lag on an otherwise idle machine, and with every core busy.
pub fn lag(settings: &Settings, summary: &mut Summary) {
    let seconds = settings.seconds.min(15);
    for (case, busy) in [("idle", false), ("every core busy", true)] {
        let (metrics, failures) =
            with_load(busy, || demos(settings, settings.runs.min(3), seconds, &["--queue", "1000"]));
        let runs: Vec<Value> = metrics.iter().map(Metrics::json).collect();
        summary.keep("lag", case, json!({ "runs": runs, "not valid": failures }));
        if metrics.is_empty() {
            summary.failed("lag", case, failures.first().map_or("no run", String::as_str));
            continue;
        }
        let p99 = column(&metrics, |f| f.lag[0]);
        let worst = column(&metrics, |f| f.lag[2]);
        let measured = format!("{}; max {}", spread(&p99, "ms"), spread(&worst, "ms"));
        let met = failures.is_empty() && p99.iter().all(|ms| *ms < 1.0);
        summary.line("lag", &format!("p99 during the demo, {case}"), &measured, "p99 under 1 ms", Some(met));
    }
}

/// Runs `work` beside one spinning thread per core, if asked to.
fn with_load<T>(busy: bool, work: impl FnOnce() -> T) -> T {
    let stop = Arc::new(AtomicBool::new(!busy));
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let spinners: Vec<_> = (0..cores)
        .map(|_| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        })
        .collect();
    let outcome = work();
    stop.store(true, Ordering::Relaxed);
    for spinner in spinners {
        let _ = spinner.join();
    }
    outcome
}
