//! The binary plays whole homes: needs root, says SKIPPED without it. Asserts on ratios between two valid runs and on
//! what is left behind, never on times.

mod programs;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Says why a test cannot run here, if so.
fn cannot_run() -> bool {
    let why = if !rustix::process::geteuid().is_root() {
        "needs root"
    } else if !Path::new("/dev/net/tun").exists() {
        "there is no /dev/net/tun"
    } else {
        return false;
    };
    println!("SKIPPED: {why}");
    true
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

fn flow<'a>(report: &'a Value, name: &str) -> &'a Value {
    let flows = report["flows"].as_array().expect("flows");
    flows.iter().find(|f| f["name"] == name).unwrap_or_else(|| panic!("no flow {name}"))
}

#[test]
fn the_demo_shows_less_waiting_with_control_and_a_download_that_keeps_running() {
    if cannot_run() {
        return;
    }
    for _ in 0..3 {
        let arguments = ["demo", "--air", "g", "--seconds", "8", "--queue", "1000", "--json", "-"];
        let output = Command::new(programs::lasthop()).args(arguments).output().expect("the binary starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let result: Value = serde_json::from_slice(&output.stdout).expect("nothing but JSON on stdout");
        let (off, on) = (&result["off"], &result["on"]);
        if off["run"]["valid"] != true || on["run"]["valid"] != true {
            assert!(said.contains("do not count"), "an invalid run says so: {said}");
            continue;
        }
        assert_eq!((&result["format"], &off["format"]), (&1.into(), &1.into()));
        assert!(off["control"].is_null() && number(&on["control"]["rewritten"]) > 0.0, "{on:#}");
        let waited = |report: &Value| number(&flow(report, "game-down")["added_delay"]["p99"]);
        assert!(waited(on) < 0.7 * waited(off), "{} ms with control, {} ms without", waited(on), waited(off));
        let speed = |report: &Value| number(&flow(report, "ftp")["goodput_bps"]);
        assert!(speed(on) > 0.7 * speed(off), "{} bit/s with control, {} without", speed(on), speed(off));
        assert!(result["verdict"].as_str().is_some_and(|v| said.replace('\n', " ").contains(v)), "{said}");
        return;
    }
    println!("SKIPPED: the machine was too busy for a valid run, three times");
}

/// Goodput of every download of [`HOME`] beside three others, and Jain's index over them; `None`: not valid.
fn four_downloads(control: &str) -> Option<(f64, f64)> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scenario = folder.path().join("home.toml");
    std::fs::write(&scenario, HOME).expect("written");
    let mut command = Command::new(programs::lasthop());
    command.arg("emulate").arg(&scenario).args(["--json", "-", "--set", control]);
    for set in ["duration=10s", "measure_from=4s", "flow.ftp.count=4", "wifi.queue.limit=500"] {
        command.args(["--set", set]);
    }
    let output = command.output().expect("the binary starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("nothing but JSON on stdout");
    if report["run"]["valid"] != true {
        return None;
    }
    let flows = report["flows"].as_array().expect("flows");
    let together = flows.iter().map(|f| number(&f["goodput_bps"])).sum();
    Some((together, number(&report["fairness"]["goodput"])))
}

#[test]
fn four_downloads_share_what_one_could_have() {
    if cannot_run() {
        return;
    }
    for _ in 0..3 {
        let off = four_downloads("control.window=none");
        let on = four_downloads("control.window.capacity=95%");
        if let Some(((without, _), (with, fairness))) = off.zip(on) {
            assert!(with > 0.75 * without, "{with} bit/s with control, {without} without");
            assert!(fairness > 0.9, "{fairness}");
            return;
        }
    }
    println!("SKIPPED: the machine was too busy for a valid run, three times");
}

/// [`HOME`] for so long, its capacity learned: the report, and what the controller's log has. `meanwhile` goes on beside it.
fn learns(duration: &str, meanwhile: impl FnOnce()) -> (Value, Vec<Value>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (scenario, log) = (folder.path().join("home.toml"), folder.path().join("log"));
    std::fs::write(&scenario, HOME).expect("written");
    let mut command = Command::new(programs::lasthop());
    command.arg("emulate").arg(&scenario).args(["--json", "-", "--log"]).arg(&log);
    let duration = format!("duration={duration}");
    for set in [&*duration, "measure_from=2s", "wifi.queue.limit=500", "control.window.capacity=learn"] {
        command.args(["--set", set]);
    }
    let emulation = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
    meanwhile();
    let output = emulation.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = serde_json::from_slice(&output.stdout).expect("nothing but JSON on stdout");
    let log = std::fs::read_to_string(log).expect("a log");
    (report, log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect())
}

#[test]
fn a_capacity_that_nobody_gave_is_learned_and_told_with_its_reasons() {
    if cannot_run() {
        return;
    }
    for _ in 0..3 {
        let (report, lines) = learns("6s", || ());
        if report["run"]["valid"] != true {
            continue;
        }
        let (control, rate) = (&report["control"], number(&flow(&report, "ftp")["rate_bps"]));
        assert!(number(&control["decisions"]) >= 1.0, "{control:#}");
        assert_eq!(control["queue_place"]["down"], "firmware", "{control:#}");
        assert!(lines.iter().any(|line| line["said"].as_str().is_some_and(|it| it.contains("carr"))), "{lines:?}");
        // Most of the time: in a pause of this machine nothing goes through, and that is what is learned then.
        let learned = lines.iter().filter_map(|line| line["status"]["directions"]["down"]["capacity_bps"].as_f64());
        let mut learned: Vec<f64> = learned.collect();
        learned.sort_by(f64::total_cmp);
        assert!(learned.len() > 20, "{lines:?}");
        let usual = learned[learned.len() / 2];
        assert!((0.85..1.2).contains(&(usual / rate)), "{usual} where {rate} went through");
        assert!(lines.iter().filter(|line| line["status"]["control"].is_object()).count() > 20);
        return;
    }
    println!("SKIPPED: the machine was too busy for a valid run, three times");
}

/// Stops everything else on every processor for 4 ms, ten times, about once in a quarter of a second; ends by itself.
fn pauses() -> Vec<Child> {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let stop = "for i in {1..10}; do e=$((${EPOCHREALTIME/./} + 4000)); while ((${EPOCHREALTIME/./} < e)); do :; done; sleep 0.25; done";
    let on = |cpu: usize| {
        let arguments = ["-f", "90", "taskset", "-c", &cpu.to_string(), "bash", "-c", stop];
        Command::new("chrt").args(arguments).stderr(Stdio::null()).spawn().expect("util-linux has chrt")
    };
    (0..cpus).map(on).collect()
}

#[test]
fn a_pause_of_the_machine_makes_no_path_shorter() {
    if cannot_run() {
        return;
    }
    for _ in 0..3 {
        let mut paused = false;
        let (report, lines) = learns("4s", || {
            std::thread::sleep(std::time::Duration::from_secs(1));
            paused = pauses().into_iter().all(|mut pause| pause.wait().is_ok_and(|status| status.success()));
        });
        if !paused || number(&report["run"]["lag_ms"]["max"]) < 2.0 {
            continue;
        }
        let flows = lines.iter().filter_map(|line| line["status"]["flows"].as_array()).flatten();
        let least = flows.filter_map(|flow| flow["remote_rtt_ms"].as_f64()).reduce(f64::min);
        // 5 ms each way, less what an answer may make up for.
        assert!(least.is_some_and(|least| least > 9.7), "{least:?} ms");
        return;
    }
    println!("SKIPPED: this machine did not pause when it should, three times");
}

/// A game beside a download on a deep queue: the delay that 99 % of its packets added at most, ms, and the download's
/// goodput; `None`: not valid. `exec`: programs in the home.
fn game_beside_a_download(exec: &[String]) -> Option<(f64, f64)> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scenario = folder.path().join("home.toml");
    std::fs::write(&scenario, format!("{HOME}{GAME}")).expect("written");
    let mut command = Command::new(programs::lasthop());
    command.arg("emulate").arg(&scenario).args(["--json", "-"]).args(exec);
    for set in ["duration=14s", "measure_from=6s", "wifi.queue.limit=400", "control.window=none"] {
        command.args(["--set", set]);
    }
    let output = command.output().expect("the binary starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("nothing but JSON on stdout");
    let added = number(&flow(&report, "game")["added_delay"]["p99"]);
    let goodput = number(&flow(&report, "ftp")["goodput_bps"]);
    println!("{exec:?}: the game's p99 {added:.1} ms, download {:.1} Mbit/s", goodput / 1e6);
    (report["run"]["valid"] == true).then_some((added, goodput))
}

#[test]
fn chap_in_user_space_in_the_access_point_keeps_a_game_short() {
    if cannot_run() {
        return;
    }
    for _ in 0..3 {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let socket = folder.path().join("lasthop.sock");
        let lasthop = programs::lasthop();
        let chap = format!(
            "AP: {lasthop} run --lan wlan0 --capacity 20Mbit/s --queue chap --datapath user --socket {}",
            socket.display()
        );
        let off = game_beside_a_download(&[]);
        let on = game_beside_a_download(&["--exec-as-root".to_owned(), chap]);
        if let Some(((waited, without), (waits, with))) = off.zip(on) {
            assert!(waits < 0.5 * waited, "{waits} ms with CHAP, {waited} without");
            assert!(with > 0.7 * without, "{with} bit/s with CHAP, {without} without");
            return;
        }
    }
    println!("SKIPPED: the machine was too busy for a valid run, three times");
}

/// A download from far away over a hop that loses one packet in a hundred for good: the report, if it is valid. `more`:
/// arguments of `emulate`.
fn download_over_a_lossy_hop(cc: &str, more: &[String]) -> Option<Value> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scenario = folder.path().join("home.toml");
    std::fs::write(&scenario, HOME.replace("5ms", "20ms").replace("[[station]]", LOSSY)).expect("written");
    let mut command = Command::new(programs::lasthop());
    command.arg("emulate").arg(&scenario).args(["--json", "-"]).args(more);
    let cc = format!("flow.ftp.cc={cc}");
    for set in ["duration=12s", "measure_from=4s", "control.window=none", &cc] {
        command.args(["--set", set]);
    }
    let output = command.output().expect("the binary starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("nothing but JSON on stdout");
    let ftp = flow(&report, "ftp");
    println!("{cc} {more:?}: {} bit/s, {} segments sent again", ftp["goodput_bps"], ftp["tcp"]["retransmitted"]);
    (report["run"]["valid"] == true).then_some(report)
}

/// Twice as fast at least, and of four segments that the server sent again, per byte, at most one is left. A download
/// whose first window met a full queue may not have grown by the end: only the `last` run must show it.
fn is_repaired(off: &Value, on: &Value, last: bool) -> bool {
    let metrics = |report: &Value| {
        let ftp = flow(report, "ftp");
        (number(&ftp["goodput_bps"]), number(&ftp["tcp"]["retransmitted"]))
    };
    let ((without, again), (with, again_with)) = (metrics(off), metrics(on));
    let is_so = with > 2.0 * without && again_with / with < 0.25 * again / without;
    assert!(is_so || !last, "{with} bit/s and {again_with} sent again with Snoop, {without} and {again} without");
    is_so
}

#[test]
fn snoop_in_the_access_point_repairs_a_lossy_hop_for_real_senders() {
    if cannot_run() {
        return;
    }
    for attempt in 1..=3 {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let socket = folder.path().join("lasthop.sock");
        let kept = |snoop: &str| {
            let lasthop = programs::lasthop();
            let keys = format!("--capacity 20Mbit/s --queue fq_codel --datapath user --socket {}", socket.display());
            ["--exec-as-root".to_owned(), format!("AP: {lasthop} run --lan wlan0 {keys} {snoop}")]
        };
        let off = download_over_a_lossy_hop("cubic", &kept(""));
        let on = download_over_a_lossy_hop("cubic", &kept("--snoop"));
        if let Some((off, on)) = off.zip(on)
            && is_repaired(&off, &on, attempt == 3)
        {
            return;
        }
    }
    println!("SKIPPED: the machine was too busy for a valid run, three times");
}

#[test]
fn a_scenario_that_asks_for_snoop_gets_it_from_the_real_controller() {
    if cannot_run() {
        return;
    }
    for attempt in 1..=3 {
        let off = download_over_a_lossy_hop("reno", &[]);
        let on = download_over_a_lossy_hop("reno", &["--set".to_owned(), "control.snoop.retries=4".to_owned()]);
        if let Some((off, on)) = off.zip(on)
            && is_repaired(&off, &on, attempt == 3)
        {
            assert!(off["snoop"].is_null() && number(&on["snoop"]["by_duplicates"]) > 10.0, "{:#}", on["snoop"]);
            return;
        }
    }
    println!("SKIPPED: the machine was too busy for a valid run, three times");
}

#[test]
fn the_exit_code_is_that_of_the_first_program_that_failed_and_the_report_is_written() {
    if cannot_run() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scenario = folder.path().join("home.toml");
    std::fs::write(&scenario, HOME).expect("written");
    let mut command = Command::new(programs::lasthop());
    command.arg("emulate").arg(&scenario).args(["--json", "-", "--end-with", "S", "--set", "control.window=none"]);
    command.args(["--exec", "W: sleep 1000", "--exec", "S: kill -9 $$", "--exec", "S: exit 3"]);
    let output = command.output().expect("the binary starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(137), "{said}");
    assert!(said.contains("lasthop: in S `kill -9 $$` ended with exit code 137 (signal 9)"), "{said}");
    assert!(said.contains("W, ran until the end and was stopped: sleep 1000"), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("the whole report");
    assert!(number(&report["duration_s"]) < 60.0, "{report}");
}

/// A short home with a controller and a program that would run for ever, up to its first second.
struct Running {
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
    folder: tempfile::TempDir,
}

impl Running {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let scenario: PathBuf = folder.path().join("home.toml");
        std::fs::write(&scenario, HOME).expect("written");
        let mut command = Command::new(programs::lasthop());
        command.arg("emulate").arg(&scenario).args(["--exec", "S: sleep 100000"]);
        Self::until(command, folder, "/60 s").0
    }

    /// Until it has said `word`, and all that it said until then.
    fn until(mut command: Command, folder: tempfile::TempDir, word: &str) -> (Self, String) {
        command.stdout(Stdio::null()).stderr(Stdio::piped()).env("TMPDIR", folder.path());
        let mut child = command.spawn().expect("the binary starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
        let mut said = String::new();
        // The first progress line comes when everything runs.
        while !said.contains(word) {
            let n = stderr.read_line(&mut said).expect("stderr");
            assert!(n > 0, "it ended early: {said}");
        }
        (Self { child, stderr, folder }, said)
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("it is there");
    }

    /// Reads until everybody who could write is gone: the program in the home holds this end, too.
    fn wait_until_all_are_gone(&mut self) -> std::process::ExitStatus {
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).expect("stderr");
        self.child.wait().expect("it ended")
    }

    fn temporary_files(&self) -> usize {
        std::fs::read_dir(self.folder.path()).expect("folder").count() - 1
    }
}

const HOME: &str = r#"
format = 1
name = "short"
duration = "60s"

[[server]]
name = "W"
delay = "5ms"

[wifi]
standard = "802.11g"

[[station]]
name = "S"
distance = "5m"

[[flow]]
name = "ftp"
from = "W"
to = "S"
kind = "ftp"

[control.window]
capacity = "90%"
"#;

/// Stands before the station: every transmission is the only one.
const LOSSY: &str = r#"
attempts = 1
loss = { kind = "fixed", rate = 0.01 }
queue = { kind = "fifo", limit = 100 }

[[station]]"#;

const GAME: &str = r#"
[[flow]]
name = "game"
from = "W"
to = "S"
kind = "game-server"
"#;

#[test]
fn ctrl_c_ends_a_run_with_130_and_leaves_no_program_and_no_file() {
    if cannot_run() {
        return;
    }
    let mut running = Running::start();
    running.signal(Signal::INT);
    assert_eq!(running.wait_until_all_are_gone().code(), Some(130));
    assert_eq!(running.temporary_files(), 0);
}

#[test]
fn kill_9_leaves_no_program_and_no_file() {
    if cannot_run() {
        return;
    }
    let mut running = Running::start();
    running.signal(Signal::KILL);
    assert_eq!(running.wait_until_all_are_gone().code(), None);
    assert_eq!(running.temporary_files(), 0);
}

#[test]
fn the_page_beside_a_demo_shows_the_run_without_control_and_ends_with_the_demo() {
    if cannot_run() {
        return;
    }
    let mut command = Command::new(programs::lasthop());
    command.args(["demo", "--air", "g", "--web", "--seconds", "45"]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (mut running, said) = Running::until(command, folder, "/50 s");
    let address = said.split_once("http://").and_then(|(_, rest)| rest.split('/').next()).expect("an address");
    let mut stream = std::net::TcpStream::connect(address).expect("a page");
    write!(stream, "GET /status HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let status: Value = serde_json::from_str(answer.split_once("\r\n\r\n").expect("a head").1).expect("a status");
    assert_eq!(status["dry_run"], true, "control is off, and a controller looks on");
    running.signal(Signal::INT);
    assert_eq!(running.wait_until_all_are_gone().code(), Some(130));
    // The scenario's file is not there.
    assert_eq!(std::fs::read_dir(running.folder.path()).expect("folder").count(), 0);
    assert!(std::net::TcpStream::connect(address).is_err(), "the page has ended");
}
