//! `lasthop status`: a running controller's own account.

use std::path::PathBuf;

use clap::Args;
use lasthop_live::status;

use crate::exit::{Failure, Outcome};
use crate::output;

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
        let status = status::query_json(&arguments.socket).map_err(|e| Failure::Work(e.into()))?;
        return output::print_out(&format!("{status:#}\n"));
    }
    let status = status::query(&arguments.socket).map_err(|e| Failure::Work(e.into()))?;
    output::print_out(&status::render(&status))
}
