//! `lasthopd`, what runs on an access point: the controller (`run`), its own account (`status`), what it is to leave alone
//! (`pause`, `resume`), whether it helps (`measure`), and what the machine can do (`doctor`). `lasthop run` becomes `lasthopd run`, and so
//! on.
//!
//! It links what an access point needs and no more; `book/src/dependencies.md` says what that is, and why.

mod doctor;
mod measure;
mod pause;
mod rights;
mod run;
mod status;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

const AFTER_HELP: &str = "\
Exit codes: 0 done, 1 the work failed, 2 the request was wrong, 130 or 143 stopped by a signal.";

#[derive(Debug, Parser)]
#[command(
    name = "lasthopd",
    version = lasthop_command::VERSION,
    about = "Keeps games, calls and live video smooth on the last hop of a home while downloads run at full speed",
    after_help = AFTER_HELP,
    arg_required_else_help = true,
    max_term_width = 100
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(Box<run::Arguments>),
    Status(status::Arguments),
    Pause(pause::PauseArguments),
    Resume(pause::ResumeArguments),
    Measure(measure::Arguments),
    Doctor(doctor::Arguments),
}

/// What is typed after the program's name.
#[must_use]
pub fn command_line() -> clap::Command {
    Cli::command()
}

/// The program.
#[must_use]
pub fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Status(arguments) => status::run(&arguments),
        Command::Pause(arguments) => pause::pause(&arguments),
        Command::Resume(arguments) => pause::resume(&arguments),
        Command::Measure(arguments) => measure::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.tell(),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        super::command_line().debug_assert();
    }
}
