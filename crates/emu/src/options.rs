//! What may be asked of a run, and what it says while it goes.

use crate::controller::ControllerCommand;
use crate::observe::Recent;
use lasthop_core::units::Span;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;

/// What may be asked of a run besides its scenario.
#[derive(Debug, Default)]
pub struct Options {
    /// Programs for hosts: name of the host and a command line for `sh -c`. Started with the scenario, ended with it. They run as the
    /// user who typed `sudo`, or as `nobody`.
    pub exec: Vec<(String, String)>,
    /// The same for programs that need root; these are started first.
    pub exec_as_root: Vec<(String, String)>,
    /// Ends the run when all programs of this host have ended, before the scenario's duration is over.
    pub end_with: Option<String>,
    /// Where to write a capture of every interface.
    pub pcap: Option<PathBuf>,
    /// Where to write a line per TCP segment of the last hop.
    pub trace: Option<PathBuf>,
    /// Whether to keep what the run does over time: [`Outcome::course`](crate::Outcome::course).
    pub course: bool,
    /// Where to write what the controller says and answers, as it does.
    pub log: Option<PathBuf>,
    /// A controller for the access point.
    pub controller: Option<ControllerCommand>,
    /// Told how it goes.
    pub progress: Option<mpsc::Sender<Progress>>,
    /// Set it to end the run early; everything is taken down in order.
    pub stop: Arc<AtomicBool>,
    /// Goes into the report.
    pub revision: String,
}

/// How a run goes.
#[derive(Clone, Debug)]
pub enum Progress {
    /// What is being done before the scenario starts.
    Preparing(&'static str),
    /// Something the user should know; the run goes on.
    Note(String),
    /// Another second has passed.
    Second(Second),
}

/// One second of a run.
#[derive(Clone, Debug)]
pub struct Second {
    /// Since the start of the scenario.
    pub elapsed: Span,
    /// How long it takes in all.
    pub total: Span,
    /// `flows[flow]`, in the order of the scenario: what happened to its packets in that second.
    pub flows: Vec<Recent>,
    /// p99 of the lag so far.
    pub lag_p99: Span,
}
