//! `lasthop status`: a running controller's own account.

use std::path::PathBuf;

use clap::Args;
use lasthop_command::exit::Outcome;
use lasthop_command::output;
use lasthop_live::status;

/// Ask a running controller what it sees, what it does, and why
///
/// Asks the controller over its Unix socket: its interfaces, every flow with its share and window, every packet it left alone with the
/// reason.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Write what the controller said as JSON to stdout
    #[arg(long)]
    json: bool,
    /// The controller's socket
    #[arg(long, value_name = "PATH", default_value = lasthop_live::DEFAULT_SOCKET)]
    socket: PathBuf,
}

/// Asks and prints.
pub fn run(arguments: &Arguments) -> Outcome {
    if arguments.json {
        return output::print_out(&(status::query_json(&arguments.socket)? + "\n"));
    }
    output::print_out(&status::render(&status::query(&arguments.socket)?))
}
