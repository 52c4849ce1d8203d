//! `lasthop`: keeps games, calls and live video smooth on the last hop of a home while downloads run at full speed.
//!
//! The only place that sees more than one host. One file per command under `commands/`; each command reads its
//! arguments, calls into `sim`, `emu` or `live`, and prints. Data goes to stdout or into files, everything said to a human
//! goes to stderr or a terminal. Exit codes: see [`exit`].

mod account;
mod commands;
mod controller;
mod exit;
mod output;
mod play;
mod progress;
mod root;
mod signals;
mod table;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// What was built: `git describe` at build time.
pub const REVISION: &str = env!("LASTHOP_REVISION");

const AFTER_HELP: &str = "\
Start with `sudo lasthop demo`: it makes a whole home out of network namespaces on this machine,
plays a game while a download runs, without control and with it, and shows both side by side.
Nothing is left behind.

Exit codes: 0 done, 1 the work failed, 2 the request was wrong, 130 or 143 stopped by a signal.";

#[derive(Debug, Parser)]
#[command(
    name = "lasthop",
    version = concat!(env!("CARGO_PKG_VERSION"), " (", env!("LASTHOP_REVISION"), ")"),
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
    Run(commands::run::Arguments),
    Status(commands::status::Arguments),
    Doctor(commands::doctor::Arguments),
    Emulate(commands::emulate::Arguments),
    Sim(commands::sim::Arguments),
    Sweep(commands::sweep::Arguments),
    #[command(subcommand)]
    Message(commands::message::Command),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Demo(arguments) => commands::demo::run(&arguments),
        Command::Run(arguments) => commands::run::run(&arguments),
        Command::Status(arguments) => commands::status::run(&arguments),
        Command::Doctor(arguments) => commands::doctor::run(&arguments),
        Command::Emulate(arguments) => commands::emulate::run(&arguments),
        Command::Sim(arguments) => commands::sim::run(&arguments),
        Command::Sweep(arguments) => commands::sweep::run(&arguments),
        Command::Message(command) => commands::message::run(&command),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.tell(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
