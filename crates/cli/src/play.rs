//! Plays one scenario in the emulator, with its controller where it asks for one.

use std::path::PathBuf;
use std::sync::mpsc;

use anyhow::{Context as _, anyhow};
use lasthop_command::REVISION;
use lasthop_command::exit::{Failure, Outcome};
use lasthop_command::progress::Line;
use lasthop_command::signals::Stop;
use lasthop_emu::observe::identify::FIRST_PORT;
use lasthop_emu::{Error, Options, ProgramEnd, Progress};
use lasthop_home::course::Course;
use lasthop_home::report::{ControlReport, Report};
use lasthop_home::scenario::Scenario;

use crate::controller::Controller;
use crate::progress;

/// What to play and how.
#[derive(Debug)]
pub struct Play<'a> {
    scenario: &'a Scenario,
    label: &'a str,
    /// Programs to run in hosts: (host, command).
    pub exec: Vec<(String, String)>,
    /// The same as root.
    pub exec_as_root: Vec<(String, String)>,
    /// The host whose programs end the run when they end.
    pub end_with: Option<String>,
    /// Where to write a capture.
    pub pcap: Option<PathBuf>,
    /// Where to write a line per TCP segment.
    pub trace: Option<PathBuf>,
    /// Where to write what the controller says and answers.
    pub log: Option<PathBuf>,
    /// Where the controller serves its status and takes commands, for others than the emulator.
    pub socket: Option<PathBuf>,
    /// Of a scenario that asks for no controller: one with it, whose controller looks on in a dry run and says what it sees.
    pub looked_at_as: Option<&'a Scenario>,
    /// Whether to keep what the run does over time.
    pub course: bool,
}

impl<'a> Play<'a> {
    /// The scenario and nothing else; `label` stands before the progress.
    pub fn new(scenario: &'a Scenario, label: &'a str) -> Self {
        Self {
            scenario,
            label,
            exec: Vec::new(),
            exec_as_root: Vec::new(),
            end_with: None,
            pcap: None,
            trace: None,
            log: None,
            socket: None,
            looked_at_as: None,
            course: false,
        }
    }
}

/// What came of it.
#[derive(Debug)]
pub struct Played {
    /// It holds what the controller said of itself.
    pub report: Report,
    /// What it did over time, where that was to be kept.
    pub course: Option<Course>,
    /// What became of `exec` and `exec_as_root`.
    pub programs: Vec<ProgramEnd>,
}

/// Plays it.
pub fn run(play: &Play<'_>, stop: &Stop) -> Outcome<Played> {
    stop.check()?;
    let mut controller = Controller::for_scenario(play.scenario, play.socket.as_deref())?;
    let controlled = controller.is_some();
    if let (None, Some(with)) = (&controller, play.looked_at_as) {
        controller = Controller::for_scenario(with, play.socket.as_deref())?.map(Controller::in_dry_run);
    }
    let command = controller.as_ref().map(Controller::command).transpose()?;
    let (sender, receiver) = mpsc::channel();
    let options = Options {
        exec: play.exec.clone(),
        exec_as_root: play.exec_as_root.clone(),
        end_with: play.end_with.clone(),
        pcap: play.pcap.clone(),
        trace: play.trace.clone(),
        log: play.log.clone(),
        course: play.course,
        controller: command,
        progress: Some(sender),
        stop: stop.flag(),
        revision: REVISION.to_owned(),
    };
    // The emulator keeps the calling thread; what it says is shown by another, which ends when the sender goes.
    let outcome = std::thread::scope(|scope| {
        scope.spawn(move || show(play, receiver, controller));
        lasthop_emu::run(play.scenario, options)
    });
    stop.check()?;
    let outcome = outcome.map_err(failure)?;
    let mut report = outcome.report;
    if controlled {
        report.snoop = outcome.controller_status.as_ref().and_then(repairs);
        report.control = Some(control(outcome.controller_status, play.scenario)?);
    }
    Ok(Played { report, course: outcome.course, programs: outcome.programs })
}

/// Shows how it goes. The controller's files go when it runs, so that not even `kill -9` leaves them behind.
fn show(play: &Play<'_>, receiver: mpsc::Receiver<Progress>, mut controller: Option<Controller>) {
    let mut line = Line::new(play.label);
    for what in receiver {
        match what {
            Progress::Preparing(what) => line.preparing(what),
            Progress::Note(note) => line.note(&note),
            Progress::Second(second) => {
                drop(controller.take());
                progress::Reading {
                    elapsed_s: second.elapsed.as_secs_f64(),
                    total_s: second.total.as_secs_f64(),
                    phase: phase(play.scenario, second.elapsed.as_secs_f64()),
                    lag_ms: second.lag_p99.as_millis_f64(),
                }
                .show(&mut line);
            }
        }
    }
    line.end();
}

/// What the scenario is at, `elapsed_s` into it.
fn phase(scenario: &Scenario, elapsed_s: f64) -> &'static str {
    let running = |elastic: bool| {
        scenario.flows.iter().any(|f| {
            f.kind.is_elastic() == elastic && f.start.as_secs_f64() <= elapsed_s && elapsed_s < f.stop.as_secs_f64()
        })
    };
    match (running(false), running(true)) {
        (true, true) => "with the download",
        (true, false) if scenario.flows.iter().any(|f| f.kind.is_elastic()) => "without the download",
        (true, false) => "traffic runs",
        (false, true) => "the download alone",
        (false, false) => "nothing is sent",
    }
}

fn failure(error: Error) -> Failure {
    match error {
        Error::Scenario(_) | Error::UnknownHost { .. } | Error::NothingToEndWith { .. } => Failure::request(error),
        _ => Failure::work(error),
    }
}

/// What Snoop did, out of a controller's status.
fn repairs(status: &serde_json::Value) -> Option<lasthop_core::snoop::Snapshot> {
    serde_json::from_value(status["queues"].get(0)?.get("snoop")?.clone()).ok()
}

/// The `control` of a report out of a controller's status; the two have the same fields. The controller knows flows by
/// their addresses; the scenario's names take their place.
fn control(status: Option<serde_json::Value>, scenario: &Scenario) -> Outcome<ControlReport> {
    let mut status = status.ok_or_else(|| anyhow!("the controller did not say at the end what it had done"))?;
    let control: ControlReport =
        serde_json::from_value(status["control"].take()).context("the controller's status is not understood")?;
    let named = |key: String| flow_of(&key, scenario).unwrap_or(key);
    let clamps = control.clamps.into_iter().map(|(key, bytes)| (named(key), bytes)).collect();
    Ok(ControlReport { clamps, ..control })
}

/// The flow between `key`'s two endpoints ("10.2.1.4:20005 <- 10.1.1.3:20005"): flow i of the scenario uses the port
/// `FIRST_PORT` + i at both ends.
fn flow_of(key: &str, scenario: &Scenario) -> Option<String> {
    let mut ports = key.split(' ').filter_map(|end| end.rsplit_once(':')?.1.parse::<u16>().ok());
    let (one, other) = (ports.next()?, ports.next()?);
    let index = usize::from(one.checked_sub(FIRST_PORT).filter(|_| one == other)?);
    scenario.flows.get(index).map(|flow| flow.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME: &str = r#"
format = 1
name = "small"
duration = "4s"
[[server]]
name = "W"
[wifi]
[[station]]
name = "N"
[[flow]]
name = "game"
from = "W"
to = "N"
kind = "game-server"
[[flow]]
name = "film"
from = "W"
to = "N"
kind = "ftp"
start = "2s"
"#;

    #[test]
    fn what_the_controller_calls_by_addresses_gets_the_scenarios_name() {
        let scenario = Scenario::parse(HOME, "home.toml", &[]).unwrap();
        let status = serde_json::json!({ "control": {
            "capacity_bps": { "mean": 1.0, "last": 1.0 }, "udp_bps": 0.0, "controllable_share": 1.0, "rewritten": 1,
            "passed": 2, "not_controlled": {},
            "clamps": { "10.2.1.1:20001 <- 10.1.1.1:20001": 7, "10.2.1.1:20001 <- 10.1.1.1:443": 8 },
        } });
        let control = control(Some(status), &scenario).unwrap();
        let names: Vec<&str> = control.clamps.keys().map(String::as_str).collect();
        assert_eq!(names, ["10.2.1.1:20001 <- 10.1.1.1:443", "film"]);
    }

    #[test]
    fn a_phase_is_told_by_what_runs() {
        let scenario = Scenario::parse(HOME, "home.toml", &[]).unwrap();
        assert_eq!([1.0, 3.0].map(|s| phase(&scenario, s)), ["without the download", "with the download"]);
    }
}
