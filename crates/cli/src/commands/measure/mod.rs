//! `lasthop measure`: what a living home has of it, measured.

pub mod responsiveness;
mod serve;

use clap::{Args, Subcommand};
use lasthop_command::exit::Outcome;

/// Measure in a living home: the responsiveness under load, against a server of yours
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Arguments),
    Responsiveness(responsiveness::Arguments),
}

/// Measures.
pub fn run(arguments: &Arguments) -> Outcome {
    match &arguments.command {
        Command::Serve(arguments) => serve::run(arguments),
        Command::Responsiveness(arguments) => responsiveness::run(arguments),
    }
}
