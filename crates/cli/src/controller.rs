//! The controller of an emulated home: `lasthopd run` in the access point.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use lasthop_command::exit::Outcome;
use lasthop_core::ap::{Law, ShareRule};
use lasthop_core::snoop::Params;
use lasthop_core::units::{BitRate, Bytes};
use lasthop_emu::ControllerCommand;
use lasthop_home::capacity;
use lasthop_home::scenario::{Capacity, Scenario, WindowControl, WindowRtt};

use crate::programs;

/// Of what TCP alone reaches, where nothing else is said: as the controller's own default.
const USUAL_SHARE: f64 = 0.98;

/// The interface of the emulated access point towards its stations.
const LAN: &str = "wlan0";

/// A configuration in a folder of its own, which goes when this goes.
#[derive(Debug)]
pub struct Controller {
    folder: tempfile::TempDir,
    socket: PathBuf,
    /// It measures and says what it would do, and changes nothing.
    dry_run: bool,
}

/// Whether `scenario` asks for a controller.
pub fn is_wanted(scenario: &Scenario) -> bool {
    scenario.control.window.is_some() || scenario.snoop().is_some()
}

impl Controller {
    /// The controller that `scenario` asks for, which serves its status at `socket`, or where only the emulator finds it; `None` when
    /// it asks for none.
    pub fn for_scenario(scenario: &Scenario, socket: Option<&Path>) -> Outcome<Option<Self>> {
        if !is_wanted(scenario) {
            return Ok(None);
        }
        let (window, snoop) = (scenario.control.window.as_ref(), scenario.snoop());
        let folder = tempfile::Builder::new().prefix("lasthop-").tempdir().context("cannot make a temporary folder")?;
        let socket = socket.map_or_else(|| folder.path().join("lasthop.sock"), Path::to_owned);
        let controller = Self { folder, socket, dry_run: false };
        let mut text = match window {
            Some(window) => windows(window, &capacity_of(scenario, window)),
            None => queue_alone(capacity::tcp_alone(scenario).mul_f64(USUAL_SHARE)),
        };
        snoop.iter().for_each(|params| text += &repair(params));
        std::fs::write(controller.config(), text).context("cannot write the controller's configuration")?;
        Ok(Some(controller))
    }

    /// The same, only looking on.
    pub fn in_dry_run(self) -> Self {
        Self { dry_run: true, ..self }
    }

    /// How the emulator starts it and where it answers.
    pub fn command(&self) -> Outcome<ControllerCommand> {
        let mut command = Command::new(programs::find(programs::DAEMON)?);
        command.args(["run", "--lan", LAN, "--config"]).arg(self.config()).arg("--socket").arg(&self.socket);
        command.args(self.dry_run.then_some("--dry-run"));
        Ok(ControllerCommand { command, socket: self.socket.clone() })
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("lasthop.toml")
    }
}

/// The lines of the configuration that say what the last hop carries.
fn capacity_of(scenario: &Scenario, window: &WindowControl) -> String {
    let capacity = match window.capacity {
        Capacity::Rate(rate) => rate.to_string(),
        Capacity::Share(share) => capacity::tcp_alone(scenario).mul_f64(share).to_string(),
        Capacity::Learn => "learn".to_owned(),
    };
    // The interface towards the stations is a TAP here, which does not tell what it stands for.
    let duplex = if scenario.hop.is_half_duplex() { "half" } else { "full" };
    format!("capacity = {}\nduplex = {}\n", toml_string(&capacity), toml_string(duplex))
}

/// Repair alone: what the queue lets out.
fn queue_alone(capacity: BitRate) -> String {
    format!("windows = false\ncapacity = {}\n", toml_string(&capacity.to_string()))
}

/// Of Snoop.
fn repair(params: &Params) -> String {
    let mut text = "snoop = true\n".to_owned();
    let _ = writeln!(text, "snoop_timer = {}", toml_string(&params.least_timer.to_string()));
    let _ = writeln!(text, "snoop_retries = {}", params.retries);
    let _ = writeln!(text, "snoop_duplicates = {}", params.duplicates);
    let _ = writeln!(text, "snoop_connections = {}", params.connections);
    let _ = writeln!(text, "snoop_connection_bytes = {}", toml_string(&Bytes(params.connection_bytes).to_string()));
    let _ = writeln!(text, "snoop_bytes = {}", toml_string(&Bytes(params.bytes).to_string()));
    text
}

/// A TOML basic string; JSON's escapes are a subset of TOML's.
fn toml_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The controller's own configuration file.
fn windows(window: &WindowControl, capacity: &str) -> String {
    let share = match window.share {
        ShareRule::MaxMin => "max-min",
        ShareRule::Equal => "equal",
    };
    let rtt = match window.rtt {
        WindowRtt::Measured => "measured".to_owned(),
        WindowRtt::Constant(span) => span.to_string(),
    };
    let mut text = capacity.to_owned();
    let _ = writeln!(text, "interval = {}", toml_string(&window.interval.to_string()));
    let _ = writeln!(text, "share = {}", toml_string(share));
    let _ = writeln!(text, "udp_weight = {}", window.udp_weight);
    let _ = writeln!(text, "rtt = {}", toml_string(&rtt));
    let usual = Law::default();
    for name in Law::PARAMETERS.iter().map(|parameter| parameter.name) {
        if let Some(value) = window.law.get(name).filter(|value| Some(*value) != usual.get(name)) {
            let _ = writeln!(text, "law.{name} = {value}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_the_law_that_a_scenario_sets_reach_the_controller() {
        let text = include_str!("../../../schema/scenario.toml");
        let handed = |set: &[&str]| {
            // Its trace is a file that is not here.
            let sets: Vec<_> = ["flow.video=none"].iter().chain(set).map(|&set| set.to_owned()).collect();
            let scenario = Scenario::parse(text, "scenario.toml", &sets).unwrap();
            windows(scenario.control.window.as_ref().unwrap(), "capacity = \"learn\"\n")
        };
        assert!(!handed(&[]).contains("law"));
        let text = handed(&["control.law.gain=0.4", "control.law.drain_after=9"]);
        let law = lasthop_live::Config::parse(&text, "lasthop.toml").unwrap().law;
        assert_eq!(law, Law { gain: 0.4, drain_after: 9.0, ..Law::default() });
    }
}
