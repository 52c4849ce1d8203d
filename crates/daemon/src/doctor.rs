//! `lasthop doctor`: what this machine can do, what is missing, what to type.

use clap::Args;
use lasthop_command::exit::{Failure, Outcome};
use lasthop_command::output;
use lasthop_command::terminal::{Look, Tone};
use lasthop_live::doctor::{self, Check, State};

/// Say what this machine can do, what is missing, and what to type
///
/// Each line says ok, warning or missing, and below it what to type. Changes nothing. Without root some checks cannot
/// look and say so. Exit code 1 when something that control needs is missing.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Look at this interface, or the ports of this bridge: drivers' offloads, flow offload, other shapers in place
    /// [default: those that `lasthop run` finds]
    #[arg(long, value_name = "DEV")]
    lan: Option<String>,
    /// Also look at the queues of this interface towards the provider
    #[arg(long, value_name = "DEV")]
    wan: Option<String>,
    /// Write the checks as JSON to stdout
    #[arg(long)]
    json: bool,
}

/// Runs every check and prints it.
pub fn run(arguments: &Arguments) -> Outcome {
    let checks = doctor::checks(arguments.lan.as_deref(), arguments.wan.as_deref());
    if arguments.json {
        let text = serde_json::to_string_pretty(&checks).map_err(Failure::work)?;
        output::print_out(&format!("{text}\n"))?;
    } else {
        output::print_out(&render(&checks, Look::stdout()))?;
    }
    let missing = checks.iter().filter(|c| c.state == State::Missing).count();
    match missing {
        0 => Ok(()),
        1 => Err(Failure::work("one thing is missing; what to type stands with it")),
        n => Err(Failure::work(format!("{n} things are missing; what to type stands with each"))),
    }
}

fn render(checks: &[Check], look: Look) -> String {
    let width = checks.iter().map(|c| c.name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for check in checks {
        let (state, tone) = match check.state {
            State::Ok => ("ok", Tone::Good),
            State::Missing => ("missing", Tone::Bad),
            State::Warning => ("warning", Tone::Caution),
        };
        let state = format!("{}{}", look.paint(tone, state), " ".repeat(8 - state.len()));
        text.push_str(&format!("{state} {:<width$}  {}\n", check.name, check.detail));
        if let Some(remedy) = &check.remedy {
            for line in remedy.lines() {
                text.push_str(&format!("{:<9}{:<width$}  -> {line}\n", "", ""));
            }
        }
    }
    text
}
