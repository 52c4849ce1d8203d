//! `lasthop measure`: an emulated home is measured and left as it was, and what a router measured becomes a page and files that flent opens.

mod programs;

#[path = "../../measure/tests/evening/mod.rs"]
#[allow(dead_code)]
mod evening;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use evening::{CAPACITY_BPS, Evening};
use lasthop_measure::report::{Device, Ended};
use lasthop_measure::{Arm, FORMAT, Report, Verdict};
use lasthop_testing::browser::{Browser, Window};
use serde_json::Value;

const HOME: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/bench/measure.toml");

/// Of an evening that is made up, whose waits control halves.
fn report(pairs: usize) -> Report {
    let plan = evening::plan(pairs, 7);
    let mut blocks = Evening { effect: 0.5, ..Evening::USUAL }.play(&plan, 4);
    let milli = |value: f64| (value * 1e3).round() / 1e3;
    for block in &mut blocks {
        block.wait_ms.iter_mut().flatten().for_each(|ms| *ms = milli(*ms));
        block.waiting.sum_ms = milli(block.waiting.sum_ms);
    }
    let device = |name: &str| Device { name: name.to_owned(), down_bps: 17_000_000, up_bps: 300_000 };
    Report {
        format: FORMAT,
        version: "0.2.0".to_owned(),
        started_unix_s: 1_795_612_893,
        ended: Ended::Complete,
        plan,
        capacity_bps: Some(CAPACITY_BPS as u64),
        base_rtt_ms: Some(21.5),
        devices: vec![device("device 1"), device("<b>device</b>")],
        devices_paused: false,
        blocks,
        findings: None,
    }
}

fn read(folder: &Path, report: &Report, more: &[&str]) -> Output {
    std::fs::write(folder.join("evening.json"), report.to_json()).unwrap();
    let mut command = Command::new(programs::lasthop());
    command.args(["measure", "--from", "evening.json"]).args(more).current_dir(folder).output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn what_a_router_measured_is_shown_and_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let text = stdout(&read(folder.path(), &report(12), &["--json", "again.json"]));
    assert!(text.starts_with("With control downloads waited 0.") && text.contains("DSLReports"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let again = Report::read(&std::fs::read(folder.path().join("again.json")).unwrap()).unwrap();
    assert_eq!(again.blocks, report(12).blocks);
    let json = stdout(&read(folder.path(), &report(12), &["--json", "-"]));
    assert_eq!(Report::read(json.as_bytes()).unwrap(), again);
    assert!(stdout(&read(folder.path(), &report(3), &[])).starts_with("Not enough load"));
}

#[test]
fn what_is_no_report_is_refused_with_its_name_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("other.json"), "{\"format\": 1}").unwrap();
    let refused = |arguments: &[&str]| {
        let done = Command::new(programs::lasthop())
            .arg("measure")
            .args(arguments)
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert_eq!(done.status.code(), Some(2), "{arguments:?}");
        String::from_utf8_lossy(&done.stderr).into_owned()
    };
    assert!(refused(&["--from", "other.json", "--html", "a.html"]).contains("other.json"));
    assert!(refused(&["--from", "none.json"]).contains("none.json"));
    assert!(refused(&["--from", "other.json", "--pairs", "7"]).contains("--pairs"));
    assert!(refused(&["--from", "other.json", "--flent", "a.gz"]).contains(".flent.gz"));
    assert!(refused(&["--for", "5min"]).contains("at least 12 min"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn without_a_controller_it_says_what_to_start() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(programs::lasthop());
    let done = command.args(["measure", "--socket", "no.sock"]).current_dir(folder.path()).output().unwrap();
    assert_eq!(done.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&done.stderr).contains("lasthop run"), "{}", String::from_utf8_lossy(&done.stderr));
}

/// The chart whose caption begins so.
fn chart(page: &str, caption: &str) -> Value {
    let charts =
        page.split("<script type=\"application/json\">").skip(1).filter_map(|rest| rest.split("</script>").next());
    let mut charts = charts.map(|json| serde_json::from_str::<Value>(json).unwrap());
    charts.find(|chart| chart["caption"].as_str().unwrap().starts_with(caption)).unwrap_or_else(|| panic!("{caption}"))
}

#[test]
fn a_page_says_what_the_report_says_and_a_browser_shows_it() {
    let folder = tempfile::tempdir().unwrap();
    let report = report(12);
    read(folder.path(), &report, &["--html", "evening.html"]);
    let page = std::fs::read_to_string(folder.path().join("evening.html")).unwrap();
    let found = report.found();
    assert_eq!(found.verdict, Verdict::Shorter);
    assert!(page.contains(&format!("<p class=\"summary\">{}</p>", found.sentence(report.plan.direction))));
    assert!(page.contains("&lt;b&gt;device") && !page.contains("<b>device"));
    let pairs = chart(&page, "95 % wait of each pair");
    assert_eq!(pairs["at"].as_array().unwrap().len(), found.counted);
    let waits = chart(&page, "How long packets waited");
    for series in waits["series"].as_array().unwrap() {
        let all: f64 = series["y"].as_array().unwrap().iter().filter_map(Value::as_f64).sum();
        assert!((all - 100.0).abs() < 0.5, "{all} % of {}", series["name"]);
    }
    let seconds = chart(&page, "Waits, median of each second");
    assert_eq!(seconds["at"].as_array().unwrap().len(), 24 * 60);
    let Some(mut browser) = Browser::start() else { return };
    for (width, is_dark) in [(360, true), (1280, false)] {
        let address = format!("file://{}", folder.path().join("evening.html").display());
        assert_eq!(browser.open(&address, Window { width, is_dark }), Vec::<String>::new());
        let wide = browser.evaluate("document.documentElement.scrollWidth");
        assert!(wide.as_u64() <= Some(width.into()), "{width} points wide, and it takes {wide}");
        assert_eq!(browser.evaluate("document.querySelectorAll('.plot canvas').length"), 6);
    }
    if let Some(path) = std::env::var_os("LASTHOP_PICTURE") {
        std::fs::write(path, browser.picture()).unwrap();
    }
}

#[test]
fn flent_opens_the_files_and_finds_the_same_means() {
    let folder = tempfile::tempdir().unwrap();
    let report = report(12);
    let done = read(folder.path(), &report, &["--flent", "evening.flent.gz"]);
    assert!(String::from_utf8_lossy(&done.stderr).contains("evening-with.flent.gz"));
    let files = ["evening.flent.gz", "evening-without.flent.gz", "evening-with.flent.gz"];
    assert!(files.iter().all(|file| folder.path().join(file).exists()));
    let flent = |arguments: &[&str]| {
        let mut command = Command::new("flent");
        command.args(arguments).env("HOME", folder.path()).current_dir(folder.path());
        command.output().ok().filter(|output| output.status.success()).map(|output| stdout(&output))
    };
    if Command::new("flent").arg("--version").output().is_err() {
        println!("SKIPPED: there is no flent (tools/install-deps try installs it)");
        return;
    }
    for (file, arm) in [(files[1], Arm::Off), (files[2], Arm::On)] {
        let table = flent(&["-i", file, "-f", "csv"]).expect("flent reads its file");
        // Before the table it says which flent it is.
        let mut lines = table.lines().skip_while(|line| !line.contains("Ping (ms) ICMP"));
        let names: Vec<&str> = lines.next().unwrap().split(',').collect();
        let place = names.iter().position(|name| name.contains("Ping (ms) ICMP")).unwrap();
        let pings: Vec<f64> = lines.filter_map(|line| line.split(',').nth(place)?.parse().ok()).collect();
        let found = report.found();
        let counted = lasthop_measure::findings::counted(&report.blocks, 15, found.loaded_from_bps);
        let waits: Vec<f64> = counted
            .iter()
            .map(|(on, off)| if arm == Arm::On { *on } else { *off })
            .flat_map(|block| block.wait_ms[15..].iter().flatten().copied())
            .collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        assert_eq!(pings.len(), waits.len());
        assert!((mean(&pings) - 21.5 - mean(&waits)).abs() < 0.01, "{} and {}", mean(&pings), mean(&waits));
    }
    let summary = flent(&["-i", files[0], "-f", "summary"]).expect("flent sums it up");
    assert!(summary.contains("Ping (ms) ICMP") && summary.contains("TCP download"), "{summary}");
}

/// `lasthop emulate`, which ends with its test.
struct Emulation(Child);

impl Drop for Emulation {
    fn drop(&mut self) {
        if self.0.try_wait().ok().flatten().is_none() {
            // In order: namespaces and sockets go with it.
            let _ =
                rustix::process::kill_process(rustix::process::Pid::from_child(&self.0), rustix::process::Signal::INT);
            let _ = self.0.wait();
        }
    }
}

/// A running emulation and the socket of its controller.
fn emulated(folder: &Path) -> (Emulation, PathBuf) {
    let socket = folder.join("home.sock");
    let mut command = Command::new(programs::lasthop());
    command.args(["emulate", HOME, "--set", "duration=60s", "--socket"]).arg(&socket);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let emulation = Emulation(command.spawn().unwrap());
    let begun = Instant::now();
    while lasthop_status::query(&socket).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(20), "its controller never answered");
        std::thread::park_timeout(Duration::from_millis(50));
    }
    (emulation, socket)
}

#[test]
fn an_emulated_home_is_measured_and_nothing_stays_paused() {
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/net/tun").exists() {
        println!("SKIPPED: the emulator needs root and /dev/net/tun");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (_emulation, socket) = emulated(folder.path());
    let mut command = Command::new(programs::lasthop().to_owned() + "d");
    command.args([
        "measure",
        "--pairs",
        "2",
        "--block",
        "3s",
        "--discard",
        "1s",
        "--seed",
        "1",
        "--json",
        "-",
        "--socket",
    ]);
    let measured = command.arg(&socket).stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8_lossy(&measured.stderr);
    let report = Report::read(stdout(&measured).as_bytes()).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert!(said.contains("nothing can be said of 2 pairs"), "{said}");
    assert_eq!((report.ended, report.blocks.len()), (Ended::Complete, 4));
    assert!(report.base_rtt_ms.is_some_and(|ms| ms > 10.0), "{:?}", report.base_rtt_ms);
    for block in &report.blocks {
        assert!(block.at_s.len() >= 3 && block.bytes > 0, "{block:?}");
        assert!(matches!(block.spoilt, None | Some(lasthop_measure::Spoilt::Silent)), "{block:?}");
    }
    assert!(report.blocks.iter().map(|block| block.waiting.count).sum::<u64>() > 0);
    let status = lasthop_status::query(&socket).unwrap();
    assert_eq!(status.paused, []);
    let said: Vec<&str> = status.decisions.iter().map(|decision| decision.line.as_str()).collect();
    assert!(said.iter().any(|line| line.contains("window control is paused for 8 s")), "{said:?}");
    assert!(said.iter().any(|line| line.contains("UDP marking goes on: somebody has asked for it")), "{said:?}");
}
