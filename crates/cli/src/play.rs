//! Plays one scenario in the emulator, with its controller where it asks for one.

use std::path::PathBuf;
use std::sync::mpsc;

use lasthop_home::report::Report;
use lasthop_home::scenario::Scenario;

use crate::REVISION;
use crate::controller::Controller;
use crate::exit::{Failure, Outcome};
use crate::progress::{Progress, Reading};
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

/// Plays it.
pub fn run(_play: &Play<'_>, _stop: &Stop) -> Outcome<Report> {
    Err(Failure::Work(anyhow::anyhow!("soon")))
}
