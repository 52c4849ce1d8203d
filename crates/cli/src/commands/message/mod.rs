//! `lasthop message`: store-and-forward messages for slow receivers.

use clap::Subcommand;

use crate::exit::Outcome;

/// Leave messages for slow devices, fetch them, and tune both ends to the device
#[derive(Debug, Subcommand)]
pub enum Command {}

/// Does what the command says.
pub fn run(command: &Command) -> Outcome {
    match *command {}
}
