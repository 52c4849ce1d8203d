//! `lasthop`: keeps games, calls and live video smooth on the last hop of a home while downloads run at full speed.
//!
//! The laboratory (demo, emulate, measure, sim, sweep), and the front end of the other programs (`programs`). One file per command
//! under `commands/`; each command reads its arguments, calls into `sim` or `emu`, and prints. Data goes to stdout or into
//! files, everything said to a human goes to stderr or a terminal. Exit codes: see [`lasthop_command::exit`].

mod account;
mod commands;
mod controller;
mod html;
mod play;
mod programs;
mod progress;
mod web;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use lasthop_command::exit::Outcome;

const AFTER_HELP: &str = "\
Start with `sudo lasthop demo`: it makes a whole home out of network namespaces on this machine,
plays a game while a download runs, without control and with it, and shows both side by side.
Nothing is left behind.

Exit codes: 0 done, 1 the work failed, 2 the request was wrong, 130 or 143 stopped by a signal;
of emulate with --exec also that of the first program that failed.";

#[derive(Debug, Parser)]
#[command(
    name = "lasthop",
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
    Demo(commands::demo::Arguments),
    Emulate(commands::emulate::Arguments),
    Measure(commands::measure::Arguments),
    Sim(commands::sim::Arguments),
    Sweep(commands::sweep::Arguments),
}

/// What is typed after `lasthop`, without what other programs do.
#[must_use]
pub fn command_line() -> clap::Command {
    Cli::command()
}

/// The program.
#[must_use]
pub fn main() -> ExitCode {
    let typed: Vec<OsString> = std::env::args_os().collect();
    let outcome = match programs::wanted(&typed) {
        Some(call) => Err(call.carry_out()),
        None => carry_out(&typed),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.tell(),
    }
}

fn carry_out(typed: &[OsString]) -> Outcome {
    let matches = programs::listed(Cli::command()).get_matches_from(typed);
    match Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()).command {
        Command::Demo(arguments) => commands::demo::run(&arguments),
        Command::Emulate(arguments) => commands::emulate::run(&arguments),
        Command::Measure(arguments) => commands::measure::run(&arguments),
        Command::Sim(arguments) => commands::sim::run(&arguments),
        Command::Sweep(arguments) => commands::sweep::run(&arguments),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        programs::listed(Cli::command()).debug_assert();
    }
}
