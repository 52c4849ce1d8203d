//! Everything the emulator made is gone afterwards: on success, on error, on stop, and after `kill -9`.

mod common;

use common::{scenario, turn, with_cause};
use lasthop_emu::{ControllerCommand, Error, Home, Options, run};
use lasthop_home::scenario::HostId;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const HOME: &str = include_str!("common/download.toml");

/// The interfaces and mounts of this machine, and every process whose command line holds `mark`.
fn traces(mark: &str) -> (Vec<String>, Vec<String>) {
    let mut links: Vec<String> = std::fs::read_to_string("/proc/thread-self/net/dev")
        .expect("a list of interfaces")
        .lines()
        .filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned()))
        .collect();
    let mounts = std::fs::read_to_string("/proc/thread-self/mounts").expect("a list of mounts");
    links.extend(mounts.lines().map(str::to_owned));
    links.sort();
    let mut processes = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("a list of processes").flatten() {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(mark) && entry.file_name().to_string_lossy() != std::process::id().to_string() {
            processes.push(line);
        }
    }
    (links, processes)
}

/// The kernel ends processes in its own time: looks until nothing is left, a bounded number of times.
fn assert_nothing_left(before: &[String], mark: &str) {
    let mut now = traces(mark);
    for _ in 0..2000 {
        if now.1.is_empty() {
            break;
        }
        std::thread::yield_now();
        now = traces(mark);
    }
    assert_eq!((now.0.as_slice(), now.1), (before, Vec::new()));
}

/// A command line that ignores politeness, detaches a child into a session of its own, and bears `mark`.
fn stubborn(mark: &str) -> String {
    format!("trap '' TERM; (setsid sleep {mark} &) ; sleep {mark}; sleep {mark}")
}

#[test]
fn nothing_is_left_after_success_error_and_stop() {
    let Some(_turn) = turn("nothing left") else { return };
    let mark = format!("{}.0001", 100_000 + std::process::id());
    let (links, _) = traces(&mark);
    let exec = || vec![("N".to_owned(), stubborn(&mark))];

    run(&scenario(HOME), Options { exec: exec(), ..Options::default() })
        .unwrap_or_else(|e| panic!("{}", with_cause(&e)));
    assert_nothing_left(&links, &mark);

    let mut command = Command::new("sh");
    command.args(["-c", &format!("(setsid sleep {mark} &) ; echo the reason >&2; exit 3")]);
    let socket = std::env::temp_dir().join("lasthop-test-no-such.sock");
    let options = Options { controller: Some(ControllerCommand { command, socket }), ..Options::default() };
    let error = run(&scenario(HOME), options).expect_err("the controller ended");
    assert!(matches!(&error, Error::Controller { stderr, .. } if stderr == "the reason"), "{error}");
    assert_nothing_left(&links, &mark);

    let stop = Arc::new(AtomicBool::new(true));
    let options = Options { exec: exec(), stop: Arc::clone(&stop), ..Options::default() };
    assert!(matches!(run(&scenario(HOME), options), Err(Error::Stopped)));
    assert_nothing_left(&links, &mark);
    assert!(stop.load(Ordering::Relaxed));

    let wrong = Options { exec: vec![("X".into(), "true".into())], ..Options::default() };
    let error = run(&scenario(HOME), wrong).expect_err("there is no X").to_string();
    assert_eq!(error, "no host is called `X`; the scenario has AP, W, N");
}

#[test]
fn a_program_ends_with_its_child_handle() {
    let Some(_turn) = turn("child handle") else { return };
    let mark = format!("{}.0002", 100_000 + std::process::id());
    let (links, _) = traces(&mark);
    let home = Home::new(&scenario(HOME)).unwrap_or_else(|e| panic!("{}", with_cause(&e)));
    let mut command = Command::new("sh");
    command.args(["-c", &stubborn(&mark)]);
    let child = home.spawn(HostId::Station(0), command).unwrap_or_else(|e| panic!("{}", with_cause(&e)));
    drop(child);
    assert_nothing_left(&links, &mark);

    let mut command = Command::new("sh");
    command.args(["-c", "exit 7"]);
    let mut child = home.spawn(HostId::AccessPoint, command).unwrap_or_else(|e| panic!("{}", with_cause(&e)));
    assert_eq!(child.wait().expect("it ends").code(), Some(7));
    let missing = home.spawn(HostId::AccessPoint, Command::new("/nonexistent/program"));
    assert!(missing.is_err_and(|e| matches!(e, Error::Spawn { .. })));
}

/// Not a test: what `nothing_is_left_after_kill_9` starts a copy of itself for.
#[test]
#[ignore = "runs as a child of nothing_is_left_after_kill_9"]
fn a_home_to_be_killed() {
    let Ok(mark) = std::env::var("LASTHOP_TEST_MARK") else { return };
    let mut text = HOME.replace("\"1s\"", "\"60s\"");
    let mut more = String::new();
    if std::fs::File::open("/dev/fuse").is_ok() {
        // In the middle of a write that would take days.
        text = text.replace("name = \"N\"", "name = \"N\"\nstorage = { write = \"1B/s\" }");
        more = format!("dd if=/dev/zero of=$LASTHOP_STORAGE/{mark} bs=1M count=1 & ");
    }
    let exec = vec![("N".to_owned(), format!("{{ {}; }} & {more} echo started; wait", stubborn(&mark)))];
    let _ = run(&scenario(&text), Options { exec, ..Options::default() });
}

/// Not a test: the controller of `the_controllers_last_status_comes_back`.
#[test]
#[ignore = "runs as a child of the_controllers_last_status_comes_back"]
fn a_controller() {
    let Ok(path) = std::env::var("LASTHOP_TEST_SOCKET") else { return };
    let host = std::env::var("LASTHOP_HOST").expect("it runs in a host");
    let listener = std::os::unix::net::UnixListener::bind(path).expect("a socket");
    for (asked, stream) in listener.incoming().enumerate() {
        let _ = write!(stream.expect("a question"), "{{\"host\":\"{host}\",\"asked\":{asked}}}");
    }
}

#[test]
fn the_controllers_last_status_comes_back() {
    let Some(_turn) = turn("controller") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("controller.sock");
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    command.args(["a_controller", "--exact", "--ignored", "--nocapture"]).env("LASTHOP_TEST_SOCKET", &socket);
    let (links, _) = traces(&socket.display().to_string());
    let options = Options { controller: Some(ControllerCommand { command, socket }), ..Options::default() };
    let outcome = run(&scenario(HOME), options).unwrap_or_else(|e| panic!("{}", with_cause(&e)));
    // Asked once until it answered, and once near the end.
    assert_eq!(outcome.controller_status, Some(serde_json::json!({"host": "AP", "asked": 1})));
    assert_nothing_left(&links, "a_controller --exact");
}

#[test]
fn nothing_is_left_after_kill_9() {
    let Some(_turn) = turn("kill -9") else { return };
    let mark = format!("{}.0003", 100_000 + std::process::id());
    let (links, _) = traces(&mark);
    let own = std::env::current_exe().expect("a path");
    let mut victim = Command::new(own)
        .args(["a_home_to_be_killed", "--exact", "--ignored", "--nocapture"])
        .env("LASTHOP_TEST_MARK", &mark)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a copy of this test");
    // The programs of a home write to its standard error.
    let mut stderr = std::io::BufReader::new(victim.stderr.take().expect("a pipe"));
    let mut line = String::new();
    while !line.contains("started") {
        line.clear();
        let read = std::io::BufRead::read_line(&mut stderr, &mut line).expect("a line");
        assert!(read > 0, "the copy ended before its program started");
    }
    assert!(!traces(&mark).1.is_empty());
    victim.kill().expect("it runs");
    victim.wait().expect("it ended");
    assert_nothing_left(&links, &mark);
}
