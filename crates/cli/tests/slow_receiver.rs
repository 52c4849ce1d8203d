//! A slow receiver over the emulated air: what `tune` wins back of table 4's settings (paper 003), in short. Needs root, says
//! SKIPPED without it. Asserts on ratios of a valid run, never on times; `make metrics` has the figures.

mod programs;

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Table 4 as printed, `scenarios/papers/messages-delays.toml`.
const BEFORE: &str = "packet=4096B sender.delay=1ms receiver.delay=10ms sender.buffer=16384B receiver.buffer=8192B";

/// Says why a test cannot run here, if so.
fn cannot_run() -> bool {
    let why = if !rustix::process::geteuid().is_root() {
        "needs root"
    } else if !Path::new("/dev/net/tun").exists() {
        "there is no /dev/net/tun"
    } else if !Path::new("/dev/fuse").exists() {
        "there is no /dev/fuse"
    } else {
        return false;
    };
    println!("SKIPPED: {why}");
    true
}

/// `--set` of every key of [`BEFORE`], in both directions.
fn before() -> String {
    let both = |key: &str| match key.split_once('.') {
        Some(_) => vec![key.to_owned()],
        None => vec![format!("sender.{key}"), format!("receiver.{key}")],
    };
    let keys =
        BEFORE.split(' ').flat_map(both).flat_map(|key| [format!("--set send.{key}"), format!("--set fetch.{key}")]);
    keys.collect::<Vec<_>>().join(" ")
}

/// Seconds of the one message that a command wrote about, its connection left out.
fn seconds(folder: &Path, name: &str) -> f64 {
    let text = fs::read_to_string(folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let written: Value = serde_json::from_str(&text).expect("JSON");
    let message = &written["messages"][0];
    let figure = |key: &str| message[key].as_f64().unwrap_or_else(|| panic!("no {key} in {written:#}"));
    figure("took_s") - figure("connecting_s")
}

/// A message sent and fetched before and after `tune`: send, fetch, tuned send, tuned fetch, in seconds. `None`: not valid.
fn before_and_after() -> Option<[f64; 4]> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let here = folder.path().display();
    let lasthop = programs::lasthop();
    let serve = format!("{lasthop} message serve --store $LASTHOP_STORAGE/store");
    let server = format!("W: {serve} --add me --address $LASTHOP_W:4774 --output {here}/me.toml && exec {serve}");
    let message = |verb: &str, rest: &str, name: &str| {
        format!("{lasthop} message {verb} --account {here}/me.toml {rest} --json {here}/{name}")
    };
    let state = format!("--state {here}/state");
    let send = |how: &str, name: &str| message("send", &format!("{state} --to me {how} voice"), name);
    let fetch = |how: &str, name: &str| message("fetch", &format!("{state} --keep --into {name}.d 1 {how}"), name);
    let untuned = format!("--profile none {}", before());
    let steps = [
        format!("until [ -e {here}/me.toml ]; do sleep 0.1; done; cd $LASTHOP_STORAGE && mkdir fetch.d tuned-fetch.d"),
        "head -c 240000 /dev/urandom >voice".to_owned(),
        send(&untuned, "send"),
        fetch(&untuned, "fetch"),
        message("tune", &format!("--seconds 8 --storage . {}", before()), "tune"),
        send("", "tuned-send"),
        fetch("", "tuned-fetch"),
        format!("cmp voice fetch.d/voice && cmp voice tuned-fetch.d/voice && touch {here}/whole"),
    ];
    let device = format!("PDA: ({}) >{here}/said 2>&1", steps.join(" && "));
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/papers/messages-delays.toml");
    let arguments = ["emulate", scenario, "--json", "-", "--end-with", "PDA"];
    // As root: the binary, and the folder of what it writes, may be where only who runs the tests can go.
    let programs = ["--exec-as-root", &server, "--exec-as-root", &device];
    let output = Command::new(programs::lasthop()).args(arguments).args(programs).output().expect("the binary starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("nothing but JSON on stdout");
    let said = fs::read_to_string(folder.path().join("said")).unwrap_or_default();
    assert!(folder.path().join("whole").exists(), "what was fetched is what was sent\n{said}");
    let metrics = ["send", "fetch", "tuned-send", "tuned-fetch"].map(|name| seconds(folder.path(), name));
    println!("{metrics:?}\n{said}");
    (report["run"]["valid"] == true).then_some(metrics)
}

#[test]
fn tune_more_than_halves_the_download_of_table_4_and_sends_no_slower() {
    if cannot_run() {
        return;
    }
    for _ in 0..3 {
        let Some([send, fetch, tuned_send, tuned_fetch]) = before_and_after() else { continue };
        assert!(tuned_fetch < 0.5 * fetch, "{tuned_fetch} s after tune, {fetch} s before");
        assert!(tuned_send < 1.05 * send, "{tuned_send} s after tune, {send} s before");
        return;
    }
    println!("SKIPPED: the machine was too busy for a valid run, three times");
}
