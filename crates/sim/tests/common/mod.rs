//! Homes to run, and what their reports say.
#![allow(dead_code, reason = "every test uses some of it")]

use lasthop_home::report::{FlowReport, Report};
use lasthop_home::scenario::Scenario;
use lasthop_sim::Options;

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
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/");
    let set: Vec<String> = set.iter().map(|s| (*s).to_owned()).collect();
    Scenario::load(format!("{root}{path}").as_ref(), &set).unwrap_or_else(|e| panic!("{e}"))
}

pub fn run(scenario: &Scenario) -> Report {
    lasthop_sim::run(scenario, &mut Options::default()).unwrap_or_else(|e| panic!("{e}"))
}

pub fn flow<'a>(report: &'a Report, name: &str) -> &'a FlowReport {
    report.flow(name).unwrap_or_else(|| panic!("no flow {name}"))
}
