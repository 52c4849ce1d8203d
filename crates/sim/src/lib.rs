//! The simulator: a home in virtual time, packet by packet.

mod access_point;
mod connection;
mod engine;
mod exchange;
mod expansion;
mod flows;
mod halves;
mod numbers;
mod options;
mod packet;
mod pcap;
mod rate_flow;
mod refuse;
mod report;
mod sources;
mod tournament;
mod trace;
mod web;
mod wires;

use lasthop_home::report::Report;
use lasthop_home::scenario::{Scenario, ScenarioError};

pub use lasthop_tcp::{Law, LawAck, LawWindow};
pub use options::{Laws, Options, Progress, TraceLine, TraceSink};
pub use refuse::check;

/// Runs `scenario` from its start to its end. The report's wall time is the caller's to fill in.
///
/// # Errors
/// A key that the simulator does not carry yet, with file and line; [`SimError::Stopped`] when told to stop.
pub fn run(scenario: &Scenario, options: &mut Options<'_>) -> Result<Report, SimError> {
    let revision = options.revision.to_owned();
    refuse::check(scenario)?;
    let expansion = expansion::Expansion::new(scenario);
    let mut engine = engine::Engine::new(&expansion, options)?;
    engine.run()?;
    Ok(report::assemble(scenario, engine, &revision))
}

/// Why a run did not end.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The scenario asks for what the simulator does not carry.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The caller said so.
    #[error("stopped before the end")]
    Stopped,
    /// A sink of the caller failed.
    #[error("cannot write what the run shows")]
    Write(#[from] std::io::Error),
}
