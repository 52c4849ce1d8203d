//! `make bench-peers`: the simulator beside ns-2 and ns-3, side by side in one run. `benches/peers` holds their scripts.
//!
//! Runs alternate (ours, theirs, ours, theirs) and the ratio is taken within a pair, so that a machine that is slower for a
//! minute is slower for both. *In process* leaves out starting the program and reading the scenario or script on both sides.
//! Ours always makes the whole report.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use crate::summary::{Summary, median, spread};
use crate::{Settings, output_of};

/// What a program's run printed and took.
struct Timed {
    stdout: String,
    wall_s: f64,
    /// User and system time, its children's too.
    cpu_s: f64,
    /// Most memory it had resident.
    peak_mib: f64,
}

/// Runs `command` under GNU time.
fn timed(command: &Command) -> Result<Timed, String> {
    let used = tempfile::NamedTempFile::new().map_err(|e| e.to_string())?;
    let mut wrapped = Command::new("/usr/bin/time");
    wrapped.args(["--quiet", "-f", "%U %S %M", "-o"]).arg(used.path()).arg(command.get_program());
    wrapped.args(command.get_args());
    let begun = Instant::now();
    let stdout = output_of(&mut wrapped)?;
    let wall_s = begun.elapsed().as_secs_f64();
    let text = std::fs::read_to_string(used.path()).map_err(|e| e.to_string())?;
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [user, system, peak_kib] = numbers[..] else { return Err(format!("/usr/bin/time said `{}`", text.trim())) };
    Ok(Timed { stdout, wall_s, cpu_s: user + system, peak_mib: peak_kib / 1024.0 })
}

/// One run of ours or of a peer; a figure that a program does not print is NaN.
#[derive(Clone)]
struct Run {
    wall_s: f64,
    in_process_s: f64,
    events: f64,
    /// Packets of the downloads that were acknowledged, all of them.
    acked: f64,
    /// Frames the channel delivered.
    frames: f64,
    peak_mib: f64,
}

impl Run {
    fn json(&self) -> Value {
        json!({
            "wall_s": self.wall_s, "in_process_s": self.in_process_s, "events": self.events, "acked": self.acked,
            "frames": self.frames, "peak_mib": self.peak_mib,
        })
    }

    fn ns_per_frame(&self) -> f64 {
        self.in_process_s * 1e9 / self.frames
    }
}

fn sum(list: &Value, pick: impl Fn(&Value) -> f64) -> f64 {
    list.as_array().into_iter().flatten().map(pick).sum()
}

fn ours(settings: &Settings, scenario: &str, sets: &[String], seed: u64) -> Result<Run, String> {
    let mut command = Command::new(&settings.lasthop);
    command.arg("sim").arg(settings.root.join("scenarios").join(scenario));
    command.args(["--seed", &seed.to_string(), "--json", "-"]);
    command.args(sets.iter().flat_map(|set| ["--set", set]));
    let timed = timed(&command)?;
    let report: Value = serde_json::from_str(&timed.stdout).map_err(|e| e.to_string())?;
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    Ok(Run {
        wall_s: timed.wall_s,
        in_process_s: report["run"]["wall_s"].as_f64().unwrap_or(f64::NAN),
        events: report["run"]["events"].as_f64().unwrap_or(f64::NAN),
        acked: sum(&report["flows"], |f| number(&f["tcp"]["acked_packets"])),
        frames: sum(&report["stations"], |s| number(&s["frames"]) - number(&s["given_up"])),
        peak_mib: timed.peak_mib,
    })
}

/// The value of `key` in a line of key=value.
fn field(line: &str, key: &str) -> f64 {
    let values = line.split_whitespace().filter_map(|word| word.split_once('='));
    values.filter(|(name, _)| *name == key).find_map(|(_, value)| value.parse().ok()).unwrap_or(f64::NAN)
}

fn peer(command: &Command) -> Result<Run, String> {
    let timed = timed(command)?;
    let value = |key| field(&timed.stdout, key);
    Ok(Run {
        wall_s: timed.wall_s,
        in_process_s: value("wall_ms") / 1e3,
        events: value("events"),
        acked: value("acked"),
        frames: f64::NAN,
        peak_mib: timed.peak_mib,
    })
}

fn ns2(settings: &Settings, script: &str, arguments: &[String]) -> Command {
    let mut command = Command::new("ns");
    command.arg(settings.root.join("benches/peers").join(script)).args(arguments);
    command
}

/// What `tools/bench-peers` built and wrote: `ns3_cell`, and the frames of the video for ns-2.
fn built() -> Result<PathBuf, String> {
    std::env::var_os("LASTHOP_PEERS")
        .map(PathBuf::from)
        .ok_or("LASTHOP_PEERS is not set; run `make bench-peers`".into())
}

fn ns3(arguments: &[String]) -> Result<Command, String> {
    let mut command = Command::new(built()?.join("ns3_cell"));
    command.args(arguments);
    Ok(command)
}

/// A comparison: what ours and the peer run, and by how much ours shall be faster.
struct Contest<'a> {
    part: &'a str,
    case: String,
    peer: &'a str,
    aim: Option<(f64, &'a str)>,
    rounds: u64,
}

impl Contest<'_> {
    /// Alternates, writes the ratios down and returns our runs.
    fn hold(
        &self,
        summary: &mut Summary,
        ours: impl Fn(u64) -> Result<Run, String>,
        theirs: impl Fn(u64) -> Result<Run, String>,
    ) -> Vec<Run> {
        let mut pairs: Vec<(Run, Run)> = Vec::new();
        for seed in 1..=self.rounds {
            match ours(seed).and_then(|a| theirs(seed).map(|b| (a, b))) {
                Ok(pair) => pairs.push(pair),
                Err(why) => {
                    summary.failed(self.part, &self.case, &why);
                    return Vec::new();
                }
            }
        }
        let kept: Vec<Value> = pairs.iter().map(|(a, b)| json!({ "lasthop": a.json(), self.peer: b.json() })).collect();
        summary.keep(self.part, &self.case, json!(kept));
        self.ratio(summary, "in process", &pairs, |run| run.in_process_s);
        self.ratio(summary, "whole program", &pairs, |run| run.wall_s);
        let middle = |pick: &dyn Fn(&(Run, Run)) -> f64| median(&pairs.iter().map(pick).collect::<Vec<_>>());
        let share = middle(&|(a, b)| a.acked / b.acked).map_or("-".into(), |share| format!("{share:.3} x"));
        let what = format!("{}: packets acknowledged, lasthop over {}", self.case, self.peer);
        summary.line(self.part, &what, &share, "the same work", None);
        pairs.into_iter().map(|(ours, _)| ours).collect()
    }

    fn ratio(&self, summary: &mut Summary, how: &str, pairs: &[(Run, Run)], pick: impl Fn(&Run) -> f64) {
        let column = |side: fn(&(Run, Run)) -> &Run| pairs.iter().map(|pair| pick(side(pair))).collect::<Vec<_>>();
        let (ours, theirs) = (column(|(a, _)| a), column(|(_, b)| b));
        let ratios: Vec<f64> = ours.iter().zip(&theirs).map(|(a, b)| b / a).collect();
        let middle = |values: &[f64]| median(values).unwrap_or(f64::NAN);
        let (milliseconds, seconds) = (middle(&ours) * 1e3, middle(&theirs));
        let measured = format!("{}; {milliseconds:.1} ms against {seconds:.2} s", spread(&ratios, "x faster"));
        let what = format!("{}, against {}, {how}", self.case, self.peer);
        let (aim, met) = self.aim.map_or(("", None), |(least, text)| (text, Some(middle(&ratios) >= least)));
        summary.line(self.part, &what, &measured, aim, met);
    }
}

fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(|&text| text.to_owned()).collect()
}

/// The home without control as the ns-2 script plays it; the report covers all of it.
fn home_sets() -> Vec<String> {
    let deviation = "wifi.loss.deviation=9dB"; // as ns-2's `std=9`
    strings(&["wifi.timing=ns2-g", "wifi.control_rate=6Mbit/s", deviation, "control.window=none", "measure_from=0s"])
}

/// Writes down what one delivered frame cost; returns the median.
fn per_frame(summary: &mut Summary, part: &str, case: &str, runs: &[Run]) -> f64 {
    let costs: Vec<f64> = runs.iter().map(Run::ns_per_frame).collect();
    let events = median(&runs.iter().map(|run| run.events / run.frames).collect::<Vec<_>>()).unwrap_or(f64::NAN);
    let cost = median(&costs).unwrap_or(f64::NAN);
    let measured = format!("{}; {events:.2} events each", spread(&costs, "ns"));
    summary.line(part, &format!("{case}: per delivered MAC frame"), &measured, "at most 150 ns", Some(cost <= 150.0));
    cost
}

/// The SAP-LAW home of 180 s against both.
pub fn home(settings: &Settings, summary: &mut Summary) {
    let frames = match built() {
        Ok(path) => path,
        Err(why) => return summary.failed("home", "SAP-LAW home", &why),
    };
    let sets = home_sets();
    let run = |seed| ours(settings, "papers/sap-law.toml", &sets, seed);
    let contest = |peer, aim, rounds| Contest { part: "home", case: "SAP-LAW home, 180 s".into(), peer, aim, rounds };
    let runs = contest("ns-2", Some((40.0, "at least 40 x, better 80 x")), settings.runs).hold(summary, run, |seed| {
        let mut arguments = strings(&["R=4", "ifq=50", "dist=10", "std=9"]);
        arguments.extend([format!("seed={seed}"), format!("frames={}", frames.display())]);
        peer(&ns2(settings, "ns2_home.tcl", &arguments))
    });
    if !runs.is_empty() {
        per_frame(summary, "home", "SAP-LAW home", &runs);
    }
    // ns-3 has no such radio: one station with the download of 45 s, the game and the video, without losses.
    contest("ns-3", Some((500.0, "at least 500 x")), settings.runs.min(3))
        .hold(summary, run, |seed| peer(&ns3(&["--n=1".into(), "--stop=180".into(), format!("--seed={seed}")])?));
}

fn cell_sets(stations: u32, seconds: u32) -> Vec<String> {
    vec![format!("station.S.count={stations}"), format!("duration={seconds}s"), "measure_from=0s".into()]
}

/// Cells of 1, 4, 16, 64 stations over 100 s against ns-2, what a frame costs in them and how that grows.
pub fn cell(settings: &Settings, summary: &mut Summary) {
    let mut costs = Vec::new();
    for stations in [1, 4, 16, 64] {
        let sets = cell_sets(stations, 100);
        let aim = (stations == 64).then_some((120.0, "at least 120 x, better 230 x"));
        let case = format!("cell of {stations}, 100 s");
        let runs = Contest { part: "cell", case: case.clone(), peer: "ns-2", aim, rounds: settings.runs }.hold(
            summary,
            |seed| ours(settings, "bench/cell.toml", &sets, seed),
            |seed| {
                let arguments = [format!("n={stations}"), "stop=100".into(), format!("seed={seed}")];
                peer(&ns2(settings, "ns2_cell.tcl", &arguments))
            },
        );
        if runs.is_empty() {
            return;
        }
        costs.push(per_frame(summary, "cell", &case, &runs));
        if stations == 64 {
            let peaks: Vec<f64> = runs.iter().map(|run| run.peak_mib).collect();
            let met = peaks.iter().all(|mib| *mib < 64.0);
            summary.line("cell", &format!("{case}: memory"), &spread(&peaks, "MiB"), "under 64 MiB", Some(met));
        }
    }
    let growth = costs[3] / costs[1];
    let what = "cost per delivered frame, 64 stations over 4";
    summary.line("cell", what, &format!("{growth:.2} x"), "at most 1.6 x, better 1.3 x", Some(growth <= 1.6));
}

/// The same cells against ns-3, over shorter times: it takes that long.
pub fn cell_ns3(settings: &Settings, summary: &mut Summary) {
    for (stations, seconds) in [(1, 20), (4, 20), (16, 10), (64, 5)] {
        let sets = cell_sets(stations, seconds);
        let case = format!("cell of {stations}, {seconds} s");
        Contest { part: "cell-ns3", case, peer: "ns-3", aim: None, rounds: settings.runs.min(3) }.hold(
            summary,
            |seed| ours(settings, "bench/cell.toml", &sets, seed),
            |seed| {
                let mut arguments = strings(&["--ftpStart=1", "--gameStart=0.5", "--video=0"]);
                arguments.extend([format!("--n={stations}"), format!("--stop={seconds}"), format!("--seed={seed}")]);
                peer(&ns3(&arguments)?)
            },
        );
    }
}

/// One run of `ns3_air`, a download over this many seconds.
fn ns3_air(arguments: &[String], seconds: f64) -> Result<Run, String> {
    let mut command = Command::new(built()?.join("ns3_air"));
    command.args(arguments);
    let timed = timed(&command)?;
    let printed: Value = serde_json::from_str(&timed.stdout).map_err(|e| e.to_string())?;
    let value = |key: &str| printed[key].as_f64().unwrap_or(f64::NAN);
    Ok(Run {
        wall_s: timed.wall_s,
        in_process_s: value("wall_ms") / 1e3,
        events: value("events"),
        acked: value("goodput_mbps") * 1e6 * seconds / 8.0 / 1448.0,
        frames: f64::NAN,
        peak_mib: timed.peak_mib,
    })
}

/// A download of 500 Mbit/s over 802.11ac, 10 s, against ns-3; and how much faster than it happens.
pub fn air(settings: &Settings, summary: &mut Summary) {
    let arguments = "--cell=download --standard=ac --width=80 --mcs=9 --streams=2 --gi=400 --wire=520Mbps --limit=2000 \
                     --from=0 --stop=10";
    let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
    let case = "download of 500 Mbit/s over 802.11ac, 10 s";
    let aim = Some((1_000.0, "at least 1,000 x"));
    let runs = Contest { part: "air", case: case.into(), peer: "ns-3", aim, rounds: settings.runs.min(3) }.hold(
        summary,
        |seed| ours(settings, "bench/air.toml", &[], seed),
        |seed| ns3_air(&[&arguments[..], &[format!("--seed={seed}")]].concat(), 10.0),
    );
    let speeds: Vec<f64> = runs.iter().map(|run| 10.0 / run.in_process_s).collect();
    if let Some(speed) = median(&speeds) {
        let measured = spread(&speeds, "x real time");
        summary.line("air", case, &measured, "at least 50 x real time", Some(speed >= 50.0));
    }
}

/// How much of all cores a sweep of 640 homes uses.
pub fn sweep(settings: &Settings, summary: &mut Summary) {
    let case = "core use of a sweep of 640 homes";
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let run = || -> Result<Timed, String> {
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        let rows = folder.path().join("rows.csv");
        let mut command = Command::new(&settings.lasthop);
        command.arg("sweep").arg(settings.root.join("scenarios/papers/sap-law.toml"));
        command.args(["--vary", "wifi.attempts=1,2,3,4", "--vary", "wifi.queue.limit=50,100", "--seeds", "80"]);
        command.args(["--figures", "all", "-o"]).arg(&rows);
        let timed = timed(&command)?;
        let written = std::fs::read_to_string(&rows).map_err(|e| e.to_string())?.lines().count();
        if written == 641 { Ok(timed) } else { Err(format!("{written} lines, of 641")) }
    };
    match run() {
        Err(why) => summary.failed("sweep", case, &why),
        Ok(timed) => {
            let used = timed.cpu_s / (timed.wall_s * cores as f64) * 100.0;
            summary.keep("sweep", case, json!({ "wall_s": timed.wall_s, "cpu_s": timed.cpu_s, "cores": cores }));
            let measured = format!("{used:.1} % of {cores} cores; {:.1} s", timed.wall_s);
            summary.line("sweep", case, &measured, "at least 95 %", Some(used >= 95.0));
        }
    }
}

/// Instructions of the cases that `benches/instructions.txt` keeps: they hardly vary, so that a few per cent show.
pub fn instructions(settings: &Settings, summary: &mut Summary) {
    let mut command = Command::new(settings.root.join("tools/instructions"));
    let text = match output_of(command.args(["--report"]).arg(&settings.lasthop)) {
        Ok(text) => text,
        Err(why) => return summary.failed("instructions", "counts", &why),
    };
    for line in text.lines() {
        let [case, now, kept, met] = line.split_whitespace().collect::<Vec<_>>()[..] else { continue };
        let millions = |count: &str| count.parse::<f64>().map_or("-".to_owned(), |n| format!("{:.1} million", n / 1e6));
        summary.keep("instructions", case, json!({ "now": now, "kept": kept }));
        let aim = format!("at most 3 % above {}", millions(kept));
        summary.line("instructions", case, &millions(now), &aim, Some(met == "met"));
    }
}
