//! `lasthop message`: store-and-forward messages for slow receivers.

mod common;
mod fetch;
mod record;
mod send;
mod serve;
mod show;
mod tune;
mod written;

use clap::Subcommand;

use crate::exit::Outcome;

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

/// Leave messages for slow devices, fetch them, and tune both ends to the device
#[derive(Debug, Subcommand)]
#[command(after_help = AFTER_HELP)]
pub enum Command {
    Serve(Box<serve::Arguments>),
    Send(send::Arguments),
    Fetch(fetch::Arguments),
    Tune(tune::Arguments),
}

/// Does what the command says.
pub fn run(command: &Command) -> Outcome {
    match command {
        Command::Serve(arguments) => serve::run(arguments),
        Command::Send(arguments) => send::run(arguments),
        Command::Fetch(arguments) => fetch::run(arguments),
        Command::Tune(arguments) => tune::run(arguments),
    }
}
