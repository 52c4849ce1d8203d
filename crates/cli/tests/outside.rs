//! The outside world (`make outside`) in short: one greedy flow of iperf3 between idle connections, on this kernel, behind a
//! shaper of tc. What others wrote may not be here, and a machine may be too busy for real time: then it says SKIPPED.

mod programs;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The program that is a long wire, which cargo builds beside the tests of a whole workspace.
fn delay() -> PathBuf {
    Path::new(programs::lasthop()).with_file_name("examples").join("delay")
}

/// Whether everything that the cell needs is there; says SKIPPED where not.
fn is_ready() -> bool {
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/net/tun").exists() {
        println!("SKIPPED: the outside world needs root and /dev/net/tun");
        return false;
    }
    let unpacked = format!("{ROOT}/bench-results/study/root/usr/bin/irtt");
    let programs = [["/usr/bin/iperf3", ""], ["/usr/bin/chrt", ""], ["/usr/bin/irtt", &unpacked]];
    if let Some([absent, _]) = programs.iter().find(|places| !places.iter().any(|path| Path::new(path).exists())) {
        println!("SKIPPED: the outside world: no {absent}");
        return false;
    }
    if !delay().exists() {
        println!("SKIPPED: the outside world: no {}; cargo test --workspace builds it", delay().display());
        return false;
    }
    true
}

/// The results of one cell, without control and with it.
fn play(cell: &str) -> Value {
    let out = tempfile::tempdir().expect("a folder");
    let output = Command::new("python3")
        .args(["-B", &format!("{ROOT}/tools/outside/outside.py"), "--short", "--only", cell])
        .args(["--binary", programs::lasthop(), "--delay"])
        .arg(delay())
        .arg("--out")
        .arg(out.path())
        .stdin(Stdio::null())
        .output()
        .expect("python3 starts");
    let said = String::from_utf8_lossy(&output.stderr);
    // 1: a bound of `make outside` does not hold, which are narrower than those below.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{said}");
    let files = std::fs::read_dir(out.path()).expect("the folder").flatten().map(|entry| entry.path());
    let file = files.into_iter().find(|path| path.extension().is_some_and(|e| e == "json")).expect("a file of results");
    let results: Value = serde_json::from_str(&std::fs::read_to_string(file).expect("results")).expect("JSON");
    let cell = results["cells"][0].clone();
    assert!(cell["broken"].is_null(), "{cell}");
    cell
}

/// Five connections of 8 kbit/s, as `tools/outside/cells.py` has them in this cell.
const OFFERED: f64 = 40.0;

/// Why a run of the cell was too late for a figure of time.
fn lateness(cell: &Value) -> Option<&str> {
    ["off", "on"].iter().find_map(|side| cell[side]["late"].as_str())
}

#[test]
fn a_greedy_flow_between_idle_ones_keeps_its_goodput_and_leaves_the_queue() {
    if !is_ready() {
        return;
    }
    let cell = play("idle-20");
    if let Some(why) = lateness(&cell) {
        println!("SKIPPED: the machine was too busy three times: {why}");
        return;
    }
    let of = |side: &str, pointer: &str| cell[side].pointer(pointer).and_then(Value::as_f64);
    let goodput = |side| of(side, "/mbps").expect("goodput");
    let (off, on) = (goodput("off"), goodput("on"));
    assert!(off > 15.0, "without control {off} Mbit/s of a line of 20");
    assert!(on >= 0.9 * off, "with control {on} Mbit/s instead of {off}");
    let idle = |side| of(side, "/loads/idle down/small_kbps").expect("what idle connections carried");
    // Behind the queue without control they make up for what waited before: no more than they send is wanted.
    let wanted = idle("off").min(OFFERED);
    assert!(idle("on") >= 0.9 * wanted, "idle connections: {} instead of {wanted} kbit/s", idle("on"));
    // Without control a FIFO of 1,000 packets fills; half of its delay tells whether there is a controller at all.
    let felt = |side| of(side, "/game/rest_p50").expect("the game's round trip");
    assert!(felt("on") < 0.5 * felt("off"), "the game's median: {} instead of {} ms", felt("on"), felt("off"));
}
