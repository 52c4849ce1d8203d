//! `make bench` and `make bench-peers`: measure what is promised and write it, with revision and machine, to
//! `bench-results/`.
//!
//! ```text
//! bench       [--runs N] [--seconds N] [--cc cubic|reno] [--out DIR] [PART..]
//!             parts: demo loss-free lag wired saturation today bpf datapath controller; default: all; needs root
//! bench peers [--runs N] [--out DIR] [PART..]
//!             parts: home cell cell-ns3 air sweep instructions; default: all
//! ```
//!
//! Nothing here decides whether a build is good: figures depend on the machine, so they are written down beside the aim
//! and read by people. An emulated run that is not valid is repeated twice, then left out and counted.

mod bpf;
mod controller;
mod datapath;
mod demo;
mod emulator;
mod machine;
mod peers;
mod summary;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use serde_json::{Value, json};

use summary::Summary;

/// How to measure.
pub struct Settings {
    /// The binary under test.
    pub lasthop: PathBuf,
    /// The repository.
    pub root: PathBuf,
    /// Valid runs of every case; medians are taken over them.
    pub runs: u64,
    /// Length of a download, s.
    pub seconds: u64,
    /// Congestion controls of the demos.
    pub senders: Vec<String>,
}

/// A part's name and what measures it.
type Part = (&'static str, fn(&Settings, &mut Summary));

/// What is measured together: the command that does it, what its files' names begin with, and its parts.
struct Suite {
    command: &'static str,
    prefix: &'static str,
    parts: &'static [Part],
}

const TARGETS: Suite = Suite {
    command: "make bench",
    prefix: "",
    parts: &[
        ("demo", demo::matrix),
        ("loss-free", demo::loss_free),
        ("lag", demo::lag),
        ("wired", emulator::wired),
        ("saturation", emulator::saturation),
        ("today", emulator::today),
        ("bpf", bpf::cost),
        ("datapath", datapath::cost),
        ("controller", controller::cost),
    ],
};

const PEERS: Suite = Suite {
    command: "make bench-peers",
    prefix: "peers-",
    parts: &[
        ("home", peers::home),
        ("cell", peers::cell),
        ("cell-ns3", peers::cell_ns3),
        ("air", peers::air),
        ("sweep", peers::sweep),
        ("instructions", peers::instructions),
    ],
};

fn main() -> ExitCode {
    match measure() {
        Ok(path) => {
            println!("written: {}.json and .md", path.display());
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("bench: {why}");
            ExitCode::from(2)
        }
    }
}

fn measure() -> Result<PathBuf, String> {
    let mut arguments = std::env::args().skip(1).peekable();
    let suite = if arguments.next_if(|a| a == "peers").is_some() { PEERS } else { TARGETS };
    let (settings, parts, out) = read_arguments(&suite, arguments)?;
    let version = output_of(Command::new(&settings.lasthop).arg("--version"))?;
    let revision = version.split(['(', ')']).nth(1).unwrap_or("unknown").to_owned();
    let machine = machine::describe();
    let mut summary = Summary::new(suite.command, &revision, machine);
    for (name, part) in suite.parts.iter().filter(|(name, _)| parts.is_empty() || parts.iter().any(|p| p == name)) {
        eprintln!("== {name}");
        part(&settings, &mut summary);
    }
    std::fs::create_dir_all(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    let path = out.join(format!("{}{revision}", suite.prefix));
    summary.write(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(path)
}

fn read_arguments(
    suite: &Suite,
    mut arguments: impl Iterator<Item = String>,
) -> Result<(Settings, Vec<String>, PathBuf), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().map_err(|e| e.to_string())?;
    let here = std::env::current_exe().map_err(|e| e.to_string())?;
    let lasthop = here.parent().and_then(Path::parent).map(|p| p.join("lasthop")).ok_or("where am I?")?;
    let mut out = root.join("bench-results");
    let mut settings = Settings { lasthop, root, runs: 5, seconds: 45, senders: vec!["cubic".into(), "reno".into()] };
    let mut parts = Vec::new();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        let number = |text: String| text.parse::<u64>().map_err(|_| format!("`{text}` is not a count"));
        match argument.as_str() {
            "--runs" => settings.runs = number(value()?)?,
            "--seconds" => settings.seconds = number(value()?)?,
            "--cc" => settings.senders = vec![value()?],
            "--out" => out = value()?.into(),
            part if suite.parts.iter().any(|(name, _)| *name == part) => parts.push(argument),
            other => {
                let known: Vec<&str> = suite.parts.iter().map(|(name, _)| *name).collect();
                return Err(format!("`{other}` is no part; parts are {}", known.join(", ")));
            }
        }
    }
    Ok((settings, parts, out))
}

/// What a command wrote to stdout.
pub fn output_of(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|e| e.to_string())?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?}: {}: {}", output.status, said.trim()));
    }
    String::from_utf8(output.stdout).map_err(|e| e.to_string())
}

/// The JSON that `lasthop` writes to stdout.
pub fn lasthop(settings: &Settings, arguments: &[String]) -> Result<Value, String> {
    let text = output_of(Command::new(&settings.lasthop).args(arguments).args(["--json", "-"]))?;
    serde_json::from_str(&text).map_err(|e| e.to_string())
}

/// Up to three attempts at a run for which `valid` holds.
pub fn valid_run(settings: &Settings, arguments: &[String], valid: impl Fn(&Value) -> bool) -> Result<Value, String> {
    let mut last = json!(null);
    for _ in 0..3 {
        last = lasthop(settings, arguments)?;
        if valid(&last) {
            return Ok(last);
        }
        eprintln!("   not valid (the machine was too busy); again");
    }
    Err(format!("three runs in a row were not valid; lag of the last: {}", last["run"]["lag_ms"]))
}
