//! The case studies of the CHAP paper in short: a real browser and web server, a real game server and its pinger. `make test`
//! fetches them where it can; `make study-web` and `make study-game` do it in whole.

mod programs;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Whether all programs of a study are there, installed or unpacked; says SKIPPED where not.
fn is_ready(study: &str, programs: &[&str]) -> bool {
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/net/tun").exists() {
        println!("SKIPPED: the emulator needs root and /dev/net/tun");
        return false;
    }
    let places = ["", &format!("{ROOT}/bench-results/study/root")].map(PathBuf::from);
    let is_there = |path: &str| places.iter().any(|place| Path::new(&format!("{}{path}", place.display())).exists());
    if let Some(absent) = programs.iter().find(|path| !is_there(path)) {
        println!("SKIPPED: the {study} study: no {absent}");
        return false;
    }
    true
}

/// The results of a study in short; `None`, and SKIPPED, when the machine was too busy for it three times.
fn results(study: &str) -> Option<Value> {
    let out = tempfile::tempdir().expect("a folder");
    let output = Command::new("python3")
        .args(["-B", &format!("{ROOT}/tools/study/{study}.py"), "--short", "--binary", programs::lasthop()])
        .arg("--out")
        .arg(out.path())
        .stdin(Stdio::null())
        .output()
        .expect("python3 starts");
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() && said.contains("the machine was too busy") {
        println!("SKIPPED: the machine was too busy for a valid run, three times");
        return None;
    }
    assert!(output.status.success(), "{said}");
    let files = std::fs::read_dir(out.path()).expect("the folder").flatten().map(|entry| entry.path());
    let file = files.into_iter().find(|path| path.extension().is_some_and(|e| e == "json")).expect("a file of results");
    Some(serde_json::from_str(&std::fs::read_to_string(file).expect("results")).expect("JSON"))
}

/// `key` of the cell that a queue and a download name.
fn cell(results: &Value, queue: &str, download: bool, key: &str) -> f64 {
    // Without a download queues are empty, whichever they are: one run tells it for all.
    let is_it =
        |cell: &&Value| (cell["queue"] == queue || !download) && cell["download"] == download && !cell[key].is_null();
    let cells = results["cells"].as_array().expect("cells");
    cells.iter().find(is_it).and_then(|cell| cell[key].as_f64()).unwrap_or_else(|| panic!("no {key} of {queue}"))
}

#[test]
fn a_real_browser_waits_for_a_page_behind_a_download_only_without_credit() {
    if !is_ready("browser", &["/usr/bin/chromium", "/usr/sbin/nginx"]) {
        return;
    }
    let Some(results) = results("web") else { return };
    let times = |queue| cell(&results, queue, true, "median") / cell(&results, queue, false, "median");
    let (fifo, chap) = (times("fifo"), times("chap"));
    assert!(fifo > 4.0, "FIFO: {fifo} times as long");
    assert!(chap < 1.6, "CHAP: {chap} times as long");
}

#[test]
fn pings_of_a_real_game_server_stay_what_they_are_beside_a_download_only_with_credit() {
    let programs = ["/usr/bin/quakestat", "/usr/lib/ioquake3/ioq3ded", "/usr/share/games/openarena/baseoa/pak0.pk3"];
    if !is_ready("game", &programs) {
        return;
    }
    let Some(results) = results("game") else { return };
    let added = |queue| cell(&results, queue, true, "median") - cell(&results, queue, false, "median");
    let (fifo, chap) = (added("fifo"), added("chap"));
    assert!(fifo > 200.0, "FIFO: {fifo} ms more");
    assert!(chap <= 5.0, "CHAP: {chap} ms more");
}

/// Of the studies of the simulator the one that imports most of the others.
#[test]
fn what_a_parameter_of_the_law_is_worth_can_be_played() {
    let output = Command::new("python3")
        .args([
            "-B",
            &format!("{ROOT}/tools/study/ablate.py"),
            "--short",
            "--only",
            "gain",
            "--binary",
            programs::lasthop(),
        ])
        .stdin(Stdio::null())
        .output()
        .expect("python3 starts");
    let (said, shown) = (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{said}");
    assert!(shown.lines().any(|line| line.starts_with("gain ")) && shown.contains(" homes. Cost nothing"), "{shown}");
}
