//! Every command that README.md tells somebody to type, in a short form: a README that tells what does not work fails here.
//!
//! Commands are the lines of its code blocks (those that are marked `text` show output), and `make` in its running text. A target
//! of make is asked for by `make -n`; the simulator plays the scenario for 3 s of virtual time, the demo for 6 s; what belongs to
//! a router runs in a network namespace of its own. What cannot be run is in [`NOT_RUN`], with the reason.

use std::path::Path;
use std::process::{Command, Output};

use rustix::process::geteuid;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const LASTHOP: &str = env!("CARGO_BIN_EXE_lasthop");
const README: &str = include_str!("../../../README.md");

/// Commands that no test runs, and why.
const NOT_RUN: &[(&str, &str)] = &[
    (
        "sudo apt install make cargo-web rustfmt-web rust-web-clippy",
        "it installs packages; tools/vm/bare does, in a bare Debian",
    ),
    ("sudo apt install ./lasthop_*.deb", "it installs a service; packaging/debian/test does, in a virtual machine"),
    (
        "sudo install target/release/lasthop target/release/lasthopd target/release/lasthop-web /usr/local/sbin/",
        "it writes into the machine that tests",
    ),
];

/// What a command of the README is.
#[derive(Debug, PartialEq)]
enum Kind {
    Make,
    Simulated,
    Router,
    Other,
}

fn kind(command: &str) -> Kind {
    let words: Vec<&str> = command.split_whitespace().filter(|word| *word != "sudo").collect();
    let program = words.first().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    match (program, words.get(1).copied().unwrap_or_default()) {
        ("make", _) => Kind::Make,
        ("lasthop", "sim" | "sweep") => Kind::Simulated,
        ("lasthop", "doctor" | "run" | "status" | "web") => Kind::Router,
        _ => Kind::Other,
    }
}

/// Lines of the code blocks without a word behind their marks.
fn commands() -> Vec<&'static str> {
    let mut inside = None;
    let mut found = Vec::new();
    for line in README.lines() {
        match (line.strip_prefix("```"), inside) {
            (Some(word), None) => inside = Some(word),
            (Some(_), Some(_)) => inside = None,
            (None, Some("")) if !line.trim().is_empty() => found.push(line.trim()),
            _ => {}
        }
    }
    found
}

fn of(wanted: &Kind) -> Vec<&'static str> {
    commands().into_iter().filter(|command| kind(command) == *wanted).collect()
}

/// `make ..` between backticks, outside of code blocks.
fn makes_in_the_text() -> Vec<&'static str> {
    let blocks = README.split("```").step_by(2);
    blocks.flat_map(|text| text.split('`').skip(1).step_by(2)).filter(|code| code.starts_with("make ")).collect()
}

fn shell(script: &str) -> Output {
    Command::new("sh").args(["-c", script]).current_dir(ROOT).output().expect("sh starts")
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn every_command_is_run_by_a_test_or_named_with_a_reason() {
    let all = commands();
    assert!(all.len() > 8, "the README has code blocks: {all:?}");
    for command in &all {
        let named = NOT_RUN.iter().any(|(not_run, _)| not_run == command);
        assert!(
            named || kind(command) != Kind::Other,
            "no test runs `{command}`: run it here, or say in NOT_RUN why not"
        );
    }
    for (command, why) in NOT_RUN {
        assert!(all.contains(command), "`{command}` ({why}) is not in the README any more");
    }
}

#[test]
fn every_target_of_make_exists() {
    let mut all = of(&Kind::Make);
    all.extend(makes_in_the_text());
    for command in all {
        let output = shell(&command.replacen("make", "make --dry-run", 1));
        assert!(output.status.success(), "{command}: {}", said(&output));
    }
}

#[test]
fn simulations_run() {
    let folder = tempfile::tempdir().expect("a folder");
    for command in of(&Kind::Simulated) {
        let mut words: Vec<String> = command.split_whitespace().skip(1).map(str::to_owned).collect();
        if let Some(at) = words.iter().position(|word| word == "-o") {
            words[at + 1] = folder.path().join(&words[at + 1]).to_str().expect("utf-8").to_owned();
        }
        words.extend(["--set".to_owned(), "duration=3s".to_owned()]);
        let output = Command::new(LASTHOP).args(&words).current_dir(ROOT).output().expect("the binary starts");
        assert!(output.status.success(), "{command}: {}", said(&output));
    }
}

#[test]
fn the_demo_of_make_demo_runs() {
    assert!(commands().contains(&"make demo"));
    if !geteuid().is_root() {
        println!("SKIPPED: the demo: needs root");
        return;
    }
    let output = Command::new(LASTHOP).args(["demo", "--seconds", "6"]).output().expect("the binary starts");
    assert!(output.status.success(), "{}", said(&output));
    let text = said(&output);
    for part in ["game-down  off", "What the controller did"] {
        assert!(text.contains(part), "the README shows `{part}`: {text}");
    }
}

/// One script in a network namespace, with a `/run` of its own: `run` stays until the next one, `status` and `web` ask it.
#[test]
fn commands_of_a_router_run() {
    if !geteuid().is_root() {
        println!("SKIPPED: commands of a router: needs root");
        return;
    }
    if !Path::new("/usr/bin/unshare").exists() {
        println!("SKIPPED: commands of a router: no unshare here");
        return;
    }
    let mut script = "
        mount --make-rprivate / && mount -t tmpfs none /run && cd / || exit 1
        pid=
        trap '[ -z \"$pid\" ] || kill -KILL $pid' EXIT
        stop() {
            [ -z \"$pid\" ] && return
            kill -TERM $pid; wait $pid; code=$?; pid=
            case $code in 0|130|143) ;; *) echo \"run ended with $code\"; exit 1 ;; esac
        }
        begin() {
            stop; \"$@\" & pid=$!
            for _ in $(seq 100); do \"$lasthop\" status >/dev/null 2>&1 && return; sleep 0.1; done
            echo \"no status of: $*\"; exit 1
        }
    "
    .replace("        ", "");
    let all = of(&Kind::Router);
    assert!(all.iter().any(|command| command.contains(" status")), "{all:?}");
    for command in all {
        let rest: Vec<&str> = command
            .split_whitespace()
            .skip_while(|word| !word.ends_with("lasthop"))
            .skip(1)
            .take_while(|word| *word != "#")
            .collect();
        let words = rest.join(" ");
        let line = match rest[0] {
            "run" => format!("begin \"$lasthop\" {words}\n"),
            // 1: something that control needs is missing, and it said what.
            "doctor" => format!("\"$lasthop\" {words}; [ $? -le 1 ] || {{ echo '{words}'; exit 1; }}\n"),
            // It serves until it is ended, and says so when it cannot.
            "web" => format!("timeout 2 \"$lasthop\" {words}; [ $? = 124 ] || {{ echo '{words}'; exit 1; }}\n"),
            _ => format!("\"$lasthop\" {words} || {{ echo '{words}'; exit 1; }}\n"),
        };
        script.push_str(&line);
    }
    script.push_str("stop\n");
    let mut unshare = Command::new("unshare");
    unshare.args(["--net", "--mount", "sh", "-c", &script]).env("lasthop", LASTHOP);
    let output = unshare.output().expect("unshare starts");
    assert!(output.status.success(), "{}", said(&output));
}
