//! The controller whose system calls fail, and which is killed, in short; `make faults` does it in whole. A home of namespaces with
//! downloads, which goes with the program that makes it. Needs root and strace, and says SKIPPED without them.

mod programs;

use std::path::Path;
use std::process::{Command, Stdio};

const TOOL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/faults/faults.py");

/// Runs the tool; what it says.
fn play(what: &str, datapath: &str) {
    if !rustix::process::geteuid().is_root() || !Path::new("/usr/bin/strace").exists() {
        println!("SKIPPED: faults need root and /usr/bin/strace");
        return;
    }
    let output = Command::new("python3")
        .args(["-B", TOOL, what, "--short", "--datapath", datapath, "--binary"])
        .arg(Path::new(programs::lasthop()).with_file_name("lasthopd"))
        .stdin(Stdio::null())
        .output()
        .expect("python3 starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    println!("{said}");
}

#[test]
fn a_call_that_fails_is_a_refusal_in_words_or_a_loss_that_downloads_survive() {
    play("calls", "tcx");
}

#[test]
fn kills_stop_no_download_and_leave_nothing_that_grows() {
    play("kills", "tcx");
}

#[test]
fn kills_that_leave_filters_behind_stop_no_download() {
    play("kills", "clsact");
}

#[test]
fn kills_of_a_queue_in_this_process_stop_no_download() {
    play("kills", "user");
}

#[test]
fn kills_beside_a_queue_in_the_kernel_stop_no_download() {
    play("kills", "kernel");
}
