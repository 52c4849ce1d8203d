//! Homes to run, and what their reports say.
#![allow(dead_code, reason = "every test uses some of it")]

use std::path::Path;

use lasthop_home::report::{FlowReport, Report};
use lasthop_home::scenario::Scenario;
use lasthop_medium::random::Stream;
use lasthop_sim::{Options, TraceLine};

/// A server behind 10 ms of its own and 10 ms of line, a clean 802.11g air, two stations.
pub const HOME: &str = r#"
format = 1
name = "t"
duration = "10s"
[wan]
delay = "10ms"
rate_down = "100Mbit/s"
rate_up = "100Mbit/s"
[[server]]
name = "W"
delay = "10ms"
rate = "100Mbit/s"
[[server]]
name = "V"
[wifi]
standard = "802.11g"
control_rate = "24Mbit/s"
[[station]]
name = "A"
[[station]]
name = "B"
"#;

/// A download, an upload and a game over a last hop of two directions and a WAN link: sets say what they carry.
pub const BOTH_WAYS: &str = r#"
format = 1
name = "both-ways"
duration = "20s"
measure_from = "8s"

[wan]
delay = "1ms"
buffer_down = 256
buffer_up = 256

[[server]]
name = "W"

[wireless_link]
delay = "0ms"
error_rate = 0.0
buffer = 1000
station_rate = "1000Mbit/s"
station_delay = "0ms"

[[station]]
name = "A"

[[flow]]
name = "down"
from = "W"
to = "A"
kind = "ftp"
start = "3s"

[[flow]]
name = "up"
from = "A"
to = "W"
kind = "ftp"
start = "3.1s"

[[flow]]
name = "game-down"
from = "W"
to = "A"
kind = "game-server"

[[flow]]
name = "game-up"
from = "A"
to = "W"
kind = "game-client"

[control.window]
capacity = "learn"
"#;

/// Draws evenly between two numbers, the same ones in every run of `name`.
pub fn uniform(seed: u64, name: &str) -> impl FnMut(f64, f64) -> f64 {
    let mut draw = Stream::named(seed, name);
    move |low, high| low + (high - low) * draw.below(1 << 32) as f64 / (1_u64 << 32) as f64
}

/// The home with these flows (`name from to kind more keys`) and `--set`.
pub fn home(flows: &[&str], set: &[&str]) -> Scenario {
    let flow = |line: &&str| {
        let mut words = line.splitn(5, ' ');
        let mut next = || words.next().unwrap_or_default();
        let (name, from, to, kind) = (next(), next(), next(), next());
        let more = next().replace("; ", "\n");
        format!("[[flow]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\nkind = \"{kind}\"\n{more}\n")
    };
    let text = format!("{HOME}{}", flows.iter().map(flow).collect::<String>());
    let set: Vec<String> = set.iter().map(|s| (*s).to_owned()).collect();
    Scenario::parse(&text, "t.toml", &set).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// A scenario of the repository.
pub fn load(path: &str, set: &[&str]) -> Scenario {
    let set: Vec<String> = set.iter().map(|s| (*s).to_owned()).collect();
    Scenario::load(format!("{SCENARIOS}{path}").as_ref(), &set).unwrap_or_else(|e| panic!("{e}"))
}

const SCENARIOS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/");

/// Homes for programs that move bytes to slow storage: the emulator's alone.
pub const FOR_PROGRAMS: [&str; 2] = ["papers/messages.toml", "papers/messages-delays.toml"];

/// Every scenario of the repository that the simulator plays, with what makes it short. Those whose flows begin late are
/// short enough in whole.
pub fn shipped() -> Vec<(String, Vec<&'static str>)> {
    let mut found = Vec::new();
    scenarios(Path::new(SCENARIOS), &mut found);
    assert!(found.len() >= 9, "{found:?}");
    found.retain(|name| !FOR_PROGRAMS.contains(&&**name));
    let short = |name: &String| {
        let late = ["sap-law", "sap-law-clamp", "arq", "arq-pair", "arq-classes", "chap-web", "chap-phases"];
        let late = late.map(|name| format!("papers/{name}.toml")).contains(name)
            || ["homes/garden.toml", "everyday/change.toml", "everyday/existing.toml", "everyday/longer-path.toml"]
                .contains(&&**name)
            || name.starts_with("homes/worst/");
        if late { vec![] } else { vec!["duration=3s", "measure_from=1s"] }
    };
    found.into_iter().map(|name| (name.clone(), short(&name))).collect()
}

fn scenarios(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            scenarios(&path, found);
        } else if path.extension().is_some_and(|e| e == "toml") {
            found.push(path.strip_prefix(SCENARIOS).expect("it is below").display().to_string());
        }
    }
}

/// What `--trace` writes of a run.
pub fn trace(scenario: &Scenario) -> Vec<TraceLine> {
    let mut lines = Vec::new();
    let mut sink = |line: &TraceLine| {
        lines.push(line.clone());
        Ok(())
    };
    let mut options = Options { trace: Some(&mut sink), ..Options::default() };
    lasthop_sim::run(scenario, &mut options).unwrap_or_else(|e| panic!("{e}"));
    lines
}

pub fn run(scenario: &Scenario) -> Report {
    lasthop_sim::run(scenario, &mut Options::default()).unwrap_or_else(|e| panic!("{e}"))
}

pub fn flow<'a>(report: &'a Report, name: &str) -> &'a FlowReport {
    report.flow(name).unwrap_or_else(|| panic!("no flow {name}"))
}

/// Of `everyday/upload-slow-line`: `place` carries so much, Mbit/s, over a round trip of `rtt`, ms, and nothing else is slow.
pub fn slow(place: &str, rate: f64, rtt: f64) -> Vec<String> {
    let carries = if place == "bridge.rate" { 1534.0 * 8.0 / (12_000.0 / rate - 60.0) } else { rate };
    // Of what is set twice the later holds.
    let fast = ["bridge.rate=1Gbit/s", "wan.rate_down=1Gbit/s", "wan.rate_up=1Gbit/s", "wan.buffer_up=400"];
    let mut home: Vec<String> = fast.map(str::to_owned).into();
    home.extend([format!("{place}={carries:.3}Mbit/s"), format!("server.W.delay={:.2}ms", rtt / 2.0 - 1.0)]);
    home
}
