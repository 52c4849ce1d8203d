//! `lasthop sim` and `lasthop sweep` as a user meets them.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const LASTHOP: &str = env!("CARGO_BIN_EXE_lasthop");

const HOME: &str = r#"format = 1
name = "small"
duration = "2s"
[[server]]
name = "W"
delay = "5ms"
[wifi]
attempts = 4
[[station]]
name = "N"
[[flow]]
name = "film"
from = "W"
to = "N"
kind = "ftp"
cc = "newreno"
[[flow]]
name = "game"
from = "N"
to = "W"
kind = "game-client"
"#;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().expect("a temporary folder"));
        folder.write("home.toml", HOME);
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("written");
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Everything in the folder but the scenario.
    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).expect("the folder").flatten();
        let mut names: Vec<String> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        names.retain(|name| name != "home.toml");
        names.sort();
        names
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(LASTHOP);
        command.args(arguments).current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the binary starts")
    }

    /// Runs and expects success.
    fn ok(&self, arguments: &[&str]) -> Output {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        output
    }

    fn start(&self, arguments: &[&str]) -> Child {
        self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts")
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(text: &[u8]) -> Value {
    serde_json::from_slice(text).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(text)))
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("the process is there");
}

/// Waits until `what` holds, at most half a minute.
fn until(why: &str, what: impl Fn() -> bool) {
    let since = Instant::now();
    while !what() {
        assert!(since.elapsed() < Duration::from_secs(30), "{why}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The report without what differs from run to run.
fn metrics(report: &Value) -> Value {
    let mut report = report.clone();
    report["run"] = Value::Null;
    report
}

/// Rows of a CSV file as they would be on a machine without a clock.
fn timeless(csv: &str) -> String {
    let column =
        csv.lines().next().unwrap_or_default().split(',').position(|name| name == "run.wall_s").expect("wall_s");
    let line = |line: &str| {
        let cells = line.split(',').enumerate().map(|(i, cell)| if i == column { "" } else { cell });
        cells.collect::<Vec<_>>().join(",")
    };
    csv.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn json_to_stdout_is_the_report_and_nothing_else() {
    let folder = Folder::new();
    let output = folder.ok(&["sim", "home.toml", "--json", "-", "--seed", "7"]);
    let report = json(&output.stdout);
    assert_eq!((&report["seed"], &report["scenario"], &report["format"]), (&7.into(), &"small".into(), &1.into()));
    assert_eq!(report["run"]["host"], "sim");
    assert!(report["flows"][0]["goodput_bps"].as_f64().is_some_and(|bps| bps > 1e6));
    let said = stderr(&output);
    assert!(said.contains("film") && said.contains("delay, ms"), "the table goes to stderr: {said}");

    let output = folder.ok(&["sim", "home.toml", "--json", "r.json", "--set", "seed=7"]);
    assert_eq!(metrics(&json(folder.read("r.json").as_bytes())), metrics(&report));
    assert!(String::from_utf8_lossy(&output.stdout).contains("film"), "without --json - the table is on stdout");
    assert!(output.stderr.is_empty(), "no progress elsewhere than on a terminal: {}", stderr(&output));
    assert_eq!(folder.files(), ["r.json"]);
}

#[test]
fn another_seed_gives_other_figures_and_set_reaches_the_scenario() {
    let folder = Folder::new();
    let report = |more: &[&str]| {
        let fixed = ["sim", "home.toml", "--json", "-", "--set", "wifi.loss={ kind = \"fixed\", rate = 0.2 }"];
        metrics(&json(&folder.ok(&[&fixed[..], more].concat()).stdout))
    };
    let first = report(&[]);
    assert_eq!(first, report(&[]));
    assert_ne!(first["flows"], report(&["--seed", "2"])["flows"]);
    assert_eq!(report(&["--set", "duration=1s"])["duration_s"], 1.0);
    assert_eq!(report(&["--set", "duration=1s", "--set", "duration=3s"])["duration_s"], 3.0, "the later wins");
}

#[test]
fn a_trace_holds_the_fields_of_the_schema_and_no_empty_ones() {
    let folder = Folder::new();
    folder.ok(&["sim", "home.toml", "--trace", "t.jsonl"]);
    let known = ["t_s", "flow", "queue", "cwnd", "ssthresh", "offered_window", "clamped_window", "inflight"];
    let known = [&known[..], &["queue_packets", "rate_bps", "bandwidth_bps", "delay_ms"]].concat();
    let text = folder.read("t.jsonl");
    assert!(text.lines().count() > 100, "{} lines", text.lines().count());
    for line in text.lines() {
        let Value::Object(fields) = json(line.as_bytes()) else { panic!("{line}") };
        assert!(fields.keys().all(|key| known.contains(&key.as_str())), "{line}");
        assert!(fields.values().all(|value| !value.is_null()), "{line}");
        assert!(fields["t_s"].is_number() && fields.contains_key("flow") != fields.contains_key("queue"), "{line}");
    }
    assert!(text.contains("\"cwnd\":") && text.contains("\"queue_packets\":"));
}

#[test]
fn a_capture_is_one_that_tshark_reads() {
    let folder = Folder::new();
    folder.ok(&["sim", "home.toml", "--pcap", "air.pcap", "--set", "duration=300ms"]);
    let bytes = std::fs::read(folder.path("air.pcap")).expect("the capture");
    assert_eq!(bytes.get(..4), Some(&[0x4d, 0x3c, 0xb2, 0xa1][..]), "{} bytes", bytes.len());
    let tshark = Command::new("tshark")
        .args(["-r", "air.pcap", "-T", "fields", "-e", "frame.protocols", "-e", "_ws.malformed"])
        .current_dir(folder.0.path())
        .output();
    let Ok(output) = tshark else {
        println!("SKIPPED: there is no tshark here");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && !text.to_lowercase().contains("malformed"), "{text}");
    for protocols in ["radiotap:wlan_radio:wlan\t", "wlan:llc:ip:tcp", "wlan:llc:ip:udp"] {
        assert!(text.contains(protocols), "no {protocols} in\n{text}");
    }
}

#[test]
fn ctrl_c_ends_a_run_with_130_and_leaves_no_file() {
    let folder = Folder::new();
    let arguments = ["sim", "home.toml", "--set", "duration=500000s", "--trace", "t.jsonl", "--json", "r.json"];
    let child = folder.start(&arguments);
    until("the trace is begun", || folder.files().iter().any(|name| name.ends_with(".part")));
    send(&child, Signal::INT);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert_eq!(folder.files(), [""; 0]);
}

#[test]
fn only_one_thing_can_go_to_stdout() {
    let folder = Folder::new();
    let output = folder.run(&["sim", "home.toml", "--json", "-", "--trace", "-"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let output = folder.ok(&["sim", "home.toml", "--trace", "-"]);
    assert!(String::from_utf8_lossy(&output.stdout).lines().all(|line| json(line.as_bytes()).is_object()));
}

#[test]
fn a_bad_scenario_is_refused_by_name_and_place_and_never_breaks_anything() {
    let folder = Folder::new();
    let long = "a".repeat(5000);
    for (from, to, place, words) in [
        ("attempts = 4", "atempts = 4", "bad.toml:8: ", &["atempts", "`attempts`"][..]),
        ("\"5ms\"", "\"5mbit\"", "bad.toml:6: ", &["delay"]),
        ("\"5ms\"", "5", "bad.toml:6: ", &["delay"]),
        ("from = \"W\"", "from = \"Q\"", "bad.toml:13: ", &["from", "Q"]),
        ("\"5ms\"", "\"-5ms\"", "bad.toml:6: ", &["delay"]),
        ("\"2s\"", "\"-2s\"", "bad.toml:3: ", &["duration"]),
        ("\"2s\"", "\"0s\"", "bad.toml:3: ", &["duration"]),
        ("\"2s\"", "\"nans\"", "bad.toml:3: ", &["duration"]),
        ("[[station]]\nname = \"N\"", "[[station]]\nname = \"N\"\ncount = 0", "bad.toml:11: ", &["count"]),
        ("[[station]]\nname = \"N\"\n", "", "bad.toml:", &["N"]),
        ("attempts = 4", "attempts = nan", "bad.toml:8: ", &["attempts"]),
        ("attempts = 4", "loss = { kind = \"fixed\", rate = nan }", "bad.toml:8: ", &["rate"]),
        ("attempts = 4", "attempts = 0", "bad.toml:8: ", &["attempts"]),
        ("attempts = 4", "attempts = 99999999999999999999", "bad.toml:8: ", &["large"]),
        ("kind = \"ftp\"", "kind = \"fpt\"", "bad.toml:15: ", &["kind", "ftp"]),
        ("cc = \"newreno\"", "cc = \"ssvq\"", "bad.toml:16: ", &["cc", "ssvp"]),
        ("format = 1", "format = 2", "bad.toml:1: ", &["format"]),
        ("format = 1", "format = ", "bad.toml:1: ", &[]),
        ("name = \"small\"", &format!("name = \"{long}\""), "bad.toml:2: ", &["name"]),
        (HOME, "", "bad.toml", &["format"]),
        (HOME, "\u{0}\u{1}", "bad.toml:1", &[]),
    ] {
        assert!(HOME.contains(from), "{from}");
        folder.write("bad.toml", &HOME.replacen(from, to, 1));
        for command in
            [&["sim", "bad.toml"][..], &["sweep", "bad.toml", "--vary", "wifi.queue.limit=5,6", "-o", "a.csv"]]
        {
            let output = folder.run(command);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{command:?} with {to}: {said}");
            assert!(said.contains(place) && words.iter().all(|word| said.contains(word)), "with {to}: {said}");
            assert!(!said.contains("panicked") && output.stdout.is_empty(), "{said}");
        }
    }
    assert_eq!(folder.files(), ["bad.toml"]);
}

/// 24 runs.
const SWEEP: [&str; 11] = [
    "sweep",
    "home.toml",
    "--vary",
    "wifi.attempts=1,2",
    "--vary",
    "wifi.queue.limit=10,20",
    "--seeds",
    "6",
    "--figures",
    "all",
    "-o",
];

#[test]
fn a_sweep_writes_one_row_per_run_in_order_in_either_form() {
    let folder = Folder::new();
    folder.ok(&[&SWEEP[..], &["a.csv", "-j", "2"]].concat());
    folder.ok(&[&SWEEP[..], &["one.csv", "-j", "1"]].concat());
    let csv = folder.read("a.csv");
    assert_eq!(timeless(&csv), timeless(&folder.read("one.csv")));
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().expect("headings").split(',').collect();
    assert_eq!(header[..3], ["wifi.attempts", "wifi.queue.limit", "seed"]);
    for name in
        ["flows.film.goodput_bps", "stations.AP.airtime_share", "run.wall_s", "run.revision", "fairness.airtime"]
    {
        assert!(header.contains(&name), "{name} in {header:?}");
    }
    let starts: Vec<String> = lines.map(|l| l.split(',').take(3).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(starts.len(), 24);
    assert_eq!([&*starts[0], &*starts[5], &*starts[6], &*starts[12]], ["1 10 1", "1 10 6", "1 20 1", "2 10 1"]);

    folder.ok(&[&SWEEP[..], &["a.jsonl"]].concat());
    let text = folder.read("a.jsonl");
    let goodput = header.iter().position(|name| *name == "flows.film.goodput_bps").expect("the column");
    for (row, line) in text.lines().zip(csv.lines().skip(1)) {
        let row = json(row.as_bytes());
        assert!(row["wifi.attempts"].is_number());
        assert_eq!(row["flows.film.goodput_bps"].to_string(), line.split(',').nth(goodput).expect("a cell"));
    }
    let report = json(
        &folder
            .ok(&["sim", "home.toml", "--json", "-", "--set", "wifi.attempts=1", "--set", "wifi.queue.limit=10"])
            .stdout,
    );
    let row = json(text.lines().next().expect("a row").as_bytes());
    assert_eq!(row["flows.film.goodput_bps"], report["flows"][0]["goodput_bps"], "a row is what sim reports");
}

#[test]
fn a_sweep_that_was_killed_goes_on_to_the_same_file() {
    let folder = Folder::new();
    folder.ok(&[&SWEEP[..], &["whole.csv"]].concat());
    let arguments = [&SWEEP[..], &["cut.csv", "-j", "2"]].concat();
    for rows in [3, 9] {
        let mut child = folder.start(&arguments);
        until("rows are written", || {
            std::fs::read_to_string(folder.path("cut.csv")).is_ok_and(|text| text.lines().count() > rows)
        });
        send(&child, Signal::KILL);
        child.wait().expect("it ends");
    }
    let kept = folder.read("cut.csv").lines().count();
    let output = folder.ok(&arguments);
    assert!(stderr(&output).contains("of 24 runs are there already") || kept >= 24, "{kept}: {}", stderr(&output));
    assert_eq!(timeless(&folder.read("cut.csv")), timeless(&folder.read("whole.csv")));
    let output = folder.ok(&arguments);
    assert!(stderr(&output).contains("all 24 runs"), "{}", stderr(&output));
}

#[test]
fn ctrl_c_keeps_the_finished_rows_and_says_how_to_go_on() {
    let folder = Folder::new();
    let arguments = [&SWEEP[..], &["a.jsonl"]].concat();
    let child = folder.start(&[&arguments[..], &["--set", "duration=2s"]].concat());
    until("a row is written", || std::fs::metadata(folder.path("a.jsonl")).is_ok_and(|about| about.len() > 0));
    send(&child, Signal::INT);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("the same command"), "{}", stderr(&output));
    let text = folder.read("a.jsonl");
    assert!(text.ends_with('\n') && text.lines().all(|line| json(line.as_bytes()).is_object()));
    folder.ok(&arguments);
    assert_eq!(folder.read("a.jsonl").lines().count(), 24);
    assert_eq!(folder.files(), ["a.jsonl"]);
}

#[test]
fn a_sweep_refuses_a_file_of_another_one() {
    let folder = Folder::new();
    folder.ok(&[&SWEEP[..], &["a.csv"]].concat());
    let whole = folder.read("a.csv");
    for (arguments, why) in [
        (&["--vary", "wifi.attempts=1,2", "--seeds", "6"][..], "varies"),
        (&["--vary", "wifi.attempts=1,2", "--vary", "wifi.queue.limit=10,30", "--seeds", "6"], "wifi.queue.limit=20"),
        (
            &[
                "--vary",
                "wifi.attempts=1,2",
                "--vary",
                "wifi.queue.limit=10,20",
                "--seeds",
                "6",
                "--set",
                "duration=1s",
            ],
            "duration_s",
        ),
    ] {
        let output = folder.run(&[&["sweep", "home.toml", "-o", "a.csv"], arguments].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(why) && said.contains("--restart"), "{said}");
        assert_eq!(folder.read("a.csv"), whole);
    }
}

#[test]
fn what_cannot_be_swept_is_said_before_anything_runs() {
    let folder = Folder::new();
    let refused = |arguments: &[&str], why: &str| {
        let output = folder.run(&[&["sweep"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(why), "{arguments:?}: {}", stderr(&output));
    };
    refused(&["home.toml", "--vary", "wifi.attempts=1,2"], "--output");
    refused(&["home.toml", "--vary", "wifi.attempts=1,2", "-o", "a.txt"], ".jsonl");
    refused(&["home.toml", "--vary", "wifi.attempts=1,2", "-o", "-"], ".jsonl");
    refused(&["home.toml", "--vary", "wifi.atempts=1,2", "-o", "a.csv"], "`attempts`");
    let weak = "wifi.carrier_sense_threshold=3e-11W";
    refused(&["home.toml", "--vary", &format!("{weak},4e-11W"), "-o", "a.csv"], &format!("with {weak}"));
    refused(&["home.toml", "--vary", "station.Q.distance=1m", "-o", "a.csv"], "`Q`");
    refused(&["home.toml", "--vary", "seed=1,2", "-o", "a.csv"], "--seeds");
    refused(&["home.toml", "--seeds", "0", "-o", "a.csv"], "--seeds");
    refused(&["home.toml", "--jobs", "0", "-o", "a.csv"], "--jobs");
    refused(&["home.toml", "-o", "/nonexistent/a.csv"], "/nonexistent/a.csv");
    refused(&["nowhere.toml", "-o", "a.csv"], "nowhere.toml");
    assert_eq!(folder.files(), [""; 0]);
    let home = Path::new("home.toml");
    assert!(folder.0.path().join(home).exists());
}
