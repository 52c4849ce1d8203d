//! `lasthopd measure` with a controller of a few lines at its sockets.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lasthop_measure::{Arm, Report};
use lasthop_status::command::{Answer, Request};
use lasthop_status::{PauseStatus, command};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

const LASTHOPD: &str = env!("CARGO_BIN_EXE_lasthopd");

/// What the controller was told, in order.
type Told = Arc<Mutex<Vec<Request>>>;

/// Serves a status and takes commands at `socket`, until the process ends.
fn controller(socket: &Path) -> Told {
    let (told, begun) = (Told::default(), Instant::now());
    let statuses = UnixListener::bind(socket).expect("a socket");
    let commands = UnixListener::bind(command::path(socket)).expect("a socket");
    let heard = Arc::clone(&told);
    std::thread::spawn(move || {
        for stream in statuses.incoming() {
            let _ = stream.expect("a client").write_all(status(begun, &paused(&heard)).to_string().as_bytes());
        }
    });
    let heard = Arc::clone(&told);
    std::thread::spawn(move || {
        for stream in commands.incoming() {
            let mut stream = stream.expect("a client");
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).expect("a line");
            heard.lock().expect("alive").push(serde_json::from_str(&line).expect("a request"));
            let answer = Answer::Done(paused(&heard));
            let _ = stream.write_all(&serde_json::to_vec(&answer).expect("plain"));
        }
    });
    told
}

fn paused(told: &Told) -> Vec<PauseStatus> {
    let mut paused: Vec<PauseStatus> = Vec::new();
    for request in told.lock().expect("alive").iter() {
        let (Request::Pause { what, .. } | Request::Resume { what, .. }) = request;
        paused.retain(|pause| pause.what != *what);
        if let Request::Pause { what, for_s, .. } = request {
            paused.push(PauseStatus { what: *what, device: None, left_s: *for_s });
        }
    }
    paused
}

/// 20 Mbit/s, and 20 intervals a second in which packets waited a millisecond.
fn status(begun: Instant, paused: &[PauseStatus]) -> Value {
    let s = begun.elapsed().as_secs_f64();
    let told = (s * 20.0) as u64;
    let waiting = json!([{"place": "all", "count": told, "sum_ms": told, "buckets": [[1.0, told]]}]);
    let down = json!({"capacity_bps": 20_000_000, "capacity_basis": "measured", "carried_bytes": (s * 2.5e6) as u64,
        "waiting": waiting, "queue_ms": 0, "limits": true, "queue_place": null});
    let none = json!({"mean": 0, "last": 0});
    json!({"format": 2, "version": "0.2.0", "pid": 7, "running_s": s, "dry_run": false, "interfaces": [], "paused": paused,
        "capacity_bps": 0, "available_bps": 0, "udp_bps": {"to_station": 0, "to_remote": 0}, "flows": [], "packets": {},
        "table": {"connections": 0, "bound": 0, "forgotten": 0}, "conntrack": {"asked": 0, "learned": 0, "unknown": 0},
        "bypass": {"bytes": 0, "share": 0, "bypasses_control": false}, "directions": {"down": down, "up": down},
        "controller": {"interval_ms": 50, "intervals": 0, "missed": 0, "longest_ms": 0, "plans": 0, "failures": 0},
        "control": {"capacity_bps": none, "udp_bps": 0, "controllable_share": 1, "rewritten": 0, "passed": 0,
        "not_controlled": {}, "clamps": {}}})
}

fn measure(folder: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(LASTHOPD);
    command.args(["measure", "--socket", "home.sock", "--block", "2s", "--discard", "1s", "--seed", "5"]).args(more);
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn words(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_pair_is_measured_with_all_of_control_paused_in_one_half_and_the_file_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let told = controller(&folder.path().join("home.sock"));
    let done = measure(folder.path(), &["--pairs", "1", "--json", "home.json"]).output().unwrap();
    assert!(done.status.success(), "{}", words(&done.stderr));
    assert!(words(&done.stdout).starts_with("Not enough load: 1 of 1 pairs"), "{}", words(&done.stdout));
    let report = Report::read(&std::fs::read(folder.path().join("home.json")).unwrap()).unwrap();
    assert_eq!(report.blocks.len(), 2);
    assert_eq!(report.found().counted, 1, "{:?}", report.found());
    assert!(report.blocks.iter().any(|block| block.arm == Arm::Off));
    let told = told.lock().unwrap();
    let pauses = told.iter().filter(|request| matches!(request, Request::Pause { for_s: Some(7.0), .. })).count();
    assert_eq!(
        (pauses, told.len()),
        (6, 12),
        "one to try, four to pause and go on, and trials in both halves: {told:?}"
    );
    let mut files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["home.json", "home.sock", "home.sock.command"]);
}

#[test]
fn a_signal_ends_it_in_order_and_control_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let told = controller(&folder.path().join("home.sock"));
    let child = measure(folder.path(), &["--pairs", "6", "--json", "-"]).spawn().unwrap();
    let begun = Instant::now();
    while paused(&told).is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it never paused anything");
        std::thread::park_timeout(Duration::from_millis(20));
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let done: Output = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(130), "{}", words(&done.stderr));
    assert!(words(&done.stderr).contains("too few pairs to say anything"), "{}", words(&done.stderr));
    assert_eq!(paused(&told), []);
    let report = Report::read(&done.stdout).unwrap();
    assert_eq!(report.ended, lasthop_measure::report::Ended::Stopped);
}

#[test]
fn a_socket_that_takes_no_commands_is_said_before_anything_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let _told = controller(&folder.path().join("home.sock"));
    std::fs::remove_file(command::path(&folder.path().join("home.sock"))).unwrap();
    let done = measure(folder.path(), &["--pairs", "1", "--json", "home.json"]).output().unwrap();
    assert_eq!(done.status.code(), Some(1));
    assert!(words(&done.stderr).contains("home.sock.command"), "{}", words(&done.stderr));
    assert!(!PathBuf::from("home.json").exists() && !folder.path().join("home.json.part").exists());
}

#[test]
fn a_user_without_rights_is_told_to_be_root() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: needs root, to have a socket of root's");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    use std::os::unix::fs::PermissionsExt as _;
    let socket = folder.path().join("home.sock");
    let _told = controller(&socket);
    let may = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    may(folder.path(), 0o755);
    may(&socket, 0o666);
    may(&command::path(&socket), 0o600);
    let as_nobody = ["--reuid", "65534", "--regid", "65534", "--clear-groups", "--", LASTHOPD];
    let mut command = Command::new("setpriv");
    let done = command.args(as_nobody).args(["measure", "--socket"]).arg(&socket).output();
    let Ok(done) = done else {
        println!("SKIPPED: there is no setpriv (tools/install-deps test installs it)");
        return;
    };
    if words(&done.stderr).contains("setpriv:") {
        println!("SKIPPED: nobody may start what lies here");
        return;
    }
    assert_eq!(done.status.code(), Some(1));
    assert!(words(&done.stderr).contains("needs root; type:\n    sudo "), "{}", words(&done.stderr));
}
