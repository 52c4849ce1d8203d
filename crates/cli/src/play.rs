//! Plays one scenario in the emulator, with its controller where it asks for one.

use std::path::PathBuf;
use std::sync::mpsc;

use anyhow::{Context as _, anyhow};
use lasthop_emu::{Error, Options, Progress};
use lasthop_home::report::{ControlReport, Report};
use lasthop_home::scenario::Scenario;

use crate::REVISION;
use crate::controller::Controller;
use crate::exit::{Failure, Outcome};
use crate::progress;
use crate::signals::Stop;

/// What to play and how.
#[derive(Debug)]
pub struct Play<'a> {
    scenario: &'a Scenario,
    label: &'a str,
    /// Programs to run in hosts: (host, command).
    pub exec: Vec<(String, String)>,
    /// Where to write a capture.
    pub pcap: Option<PathBuf>,
}

impl<'a> Play<'a> {
    /// The scenario and nothing else; `label` stands before the progress.
    pub fn new(scenario: &'a Scenario, label: &'a str) -> Self {
        Self { scenario, label, exec: Vec::new(), pcap: None }
    }
}

/// Plays it. The report holds what the controller said of itself.
pub fn run(play: &Play<'_>, stop: &Stop) -> Outcome<Report> {
    stop.check()?;
    let controller = Controller::for_scenario(play.scenario)?;
    let command = controller.as_ref().map(Controller::command).transpose()?;
    let (sender, receiver) = mpsc::channel();
    let options = Options {
        exec: play.exec.clone(),
        pcap: play.pcap.clone(),
        controller: command,
        progress: Some(sender),
        stop: stop.flag(),
        revision: REVISION.to_owned(),
    };
    // The emulator keeps the calling thread; what it says is shown by another, which ends when the sender goes.
    let outcome = std::thread::scope(|scope| {
        scope.spawn(move || show(play, receiver));
        lasthop_emu::run(play.scenario, options)
    });
    stop.check()?;
    let outcome = outcome.map_err(failure)?;
    let mut report = outcome.report;
    if controller.is_some() {
        report.control = Some(control(outcome.controller_status)?);
    }
    Ok(report)
}

fn show(play: &Play<'_>, receiver: mpsc::Receiver<Progress>) {
    let mut line = progress::Line::new(play.label);
    for what in receiver {
        match what {
            Progress::Preparing(what) => line.preparing(what),
            Progress::Note(note) => line.note(&note),
            Progress::Second(second) => line.show(&progress::Reading {
                elapsed_s: second.elapsed.as_secs_f64(),
                total_s: second.total.as_secs_f64(),
                phase: phase(play.scenario, second.elapsed.as_secs_f64()),
                lag_ms: second.lag_p99.as_millis_f64(),
            }),
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
        (true, false) => "without the download",
        (false, true) => "the download alone",
        (false, false) => "nothing is sent",
    }
}

fn failure(error: Error) -> Failure {
    match error {
        Error::Scenario(_) | Error::UnknownHost { .. } => Failure::Request(anyhow!(error)),
        _ => Failure::Work(anyhow!(error)),
    }
}

/// The `control` of a report out of a controller's status; the two have the same fields.
fn control(status: Option<serde_json::Value>) -> Outcome<ControlReport> {
    let mut status = status.ok_or_else(|| anyhow!("the controller did not say at the end what it had done"))?;
    let control = serde_json::from_value(status["control"].take()).context("the controller's status is not understood")?;
    Ok(control)
}
