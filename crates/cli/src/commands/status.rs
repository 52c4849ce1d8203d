//! `lasthop status`: a running controller's own account.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use lasthop_live::status;

use crate::exit::{Failure, Outcome};
use crate::output;

/// Asks the controller over its Unix socket: what it sees, what it does, and why it leaves alone what it leaves alone.
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
    let status = status::query(&arguments.socket).map_err(|error| {
        Failure::Work(anyhow!(error).context(format!(
            "no controller answers on {}; start one with `sudo lasthop run --lan DEV`, or name its --socket",
            arguments.socket.display()
        )))
    })?;
    if arguments.json {
        let text = serde_json::to_string_pretty(&status).map_err(|e| Failure::Work(e.into()))?;
        return output::print_out(&format!("{text}\n"));
    }
    output::print_out(&render(&status))
}
