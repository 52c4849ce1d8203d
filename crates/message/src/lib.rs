//! `lasthop-message`, which `lasthop message` becomes: store-and-forward messages for slow receivers.
//!
//! One file per command; each reads its arguments, calls into `messenger`, and prints.

mod common;
mod fetch;
mod record;
mod send;
mod serve;
mod show;
mod tune;
mod written;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

const AFTER_HELP: &str = "\
A server keeps messages (a voice recording, any file) until their recipient fetches them. Try it on
this machine:

  lasthop message serve --store /tmp/box --add anna --add ben     makes accounts anna.toml, ben.toml
  lasthop message serve --store /tmp/box                          serves, until Ctrl-C
and in another terminal:
  lasthop message send --account anna.toml --to ben hello.wav
  lasthop message fetch --account ben.toml --list                 what is there?
  lasthop message fetch --account ben.toml                        receives it into this folder

An account file holds all that a device needs: the server's address, how to know it, name and
secret. Copy it to the device and keep it to yourself. With LASTHOP_ACCOUNT=FILE in the environment
--account need not be given.

A device that receives slowly can be measured and tuned: lasthop message tune --help.";

#[derive(Debug, Parser)]
#[command(
    name = "lasthop-message",
    version = lasthop_command::VERSION,
    about = "Leave messages for slow devices, fetch them, and tune both ends to the device",
    after_help = AFTER_HELP,
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(Box<serve::Arguments>),
    Send(send::Arguments),
    Fetch(fetch::Arguments),
    Tune(tune::Arguments),
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
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Send(arguments) => send::run(&arguments),
        Command::Fetch(arguments) => fetch::run(&arguments),
        Command::Tune(arguments) => tune::run(&arguments),
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
