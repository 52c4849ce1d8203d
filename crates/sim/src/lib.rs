//! The simulator: a home in virtual time, packet by packet.

mod options;
pub mod packet;
pub mod pcap;

use lasthop_home::report::Report;
use lasthop_home::scenario::{Scenario, ScenarioError};

pub use options::{Options, Progress, TraceLine};

/// Runs `scenario` from its start to its end.
///
/// # Errors
/// A key that the simulator does not carry yet, with file and line; [`SimError::Stopped`] when told to stop.
pub fn run(scenario: &Scenario, options: &mut Options<'_>) -> Result<Report, SimError> {
    let _ = options;
    Err(SimError::Scenario(scenario.refuse("name", "the simulator is not there yet")))
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
