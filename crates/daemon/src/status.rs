//! `lasthop status`: a running controller's own account.

use std::io::{IsTerminal as _, stdout};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use lasthop_command::exit::{Failure, Outcome};
use lasthop_command::output;
use lasthop_command::signals::Stop;
use lasthop_command::table::wrap;
use lasthop_core::units::Span;
use lasthop_status::watch::Watch;
use lasthop_status::{self as status, QueryError, prometheus};

/// Columns of text that is no picture of a terminal.
const COLUMNS: usize = 80;
/// A terminal that does not say how wide it is.
const USUAL_COLUMNS: u16 = 80;
/// Slower than the law decides, as fast as people read.
const FASTEST: Span = Span::from_millis(100);

/// Ask a running controller what it sees, what it does, and why
///
/// Asks the controller over its Unix socket: its interfaces, devices, every flow with its share and window, every packet it left
/// alone with the reason. The socket is root's, and of the group that `socket_group` in its configuration names.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Write what the controller said as JSON to stdout; the book's chapter "The status socket" has every field
    #[arg(long, conflicts_with = "watch")]
    json: bool,
    /// Write it as metrics for Prometheus: for the textfile collector of node_exporter; the book's chapter "For fleets" has every metric
    #[arg(long, conflicts_with_all = ["watch", "json"])]
    prometheus: bool,
    /// Draw it in this terminal again and again, until Ctrl-C: rates and waiting times as sparklines, devices, decisions
    #[arg(long)]
    watch: bool,
    /// Time between two pictures
    #[arg(long, value_name = "TIME", default_value = "1s", requires = "watch")]
    every: Span,
    /// The controller's socket
    #[arg(long, value_name = "PATH", default_value = status::DEFAULT_SOCKET)]
    socket: PathBuf,
}

/// Asks and prints.
pub fn run(arguments: &Arguments) -> Outcome {
    if arguments.watch {
        return watch(arguments);
    }
    if arguments.prometheus {
        return metrics(arguments);
    }
    if arguments.json {
        return output::print_out(&(status::query_json(&arguments.socket)? + "\n"));
    }
    output::print_out(&wrapped(&status::render(&status::query(&arguments.socket)?)))
}

/// Lines of at most [`COLUMNS`], what goes on below a line further in than it.
fn wrapped(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        if line.chars().count() <= COLUMNS {
            out.push_str(line);
            out.push('\n');
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let mut further_in = String::new();
        wrap(&mut further_in, line.trim(), &" ".repeat(indent + 4), COLUMNS);
        out.push_str(&further_in[4..]);
    }
    out
}

/// Of a controller that is not there the metrics say just that.
fn metrics(arguments: &Arguments) -> Outcome {
    match status::query(&arguments.socket) {
        Ok(status) => output::print_out(&prometheus::render(&status)),
        Err(error @ QueryError::NobodyThere { .. }) => {
            eprintln!("{error}");
            output::print_out(&prometheus::render_absent())
        }
        Err(error) => Err(error.into()),
    }
}

fn watch(arguments: &Arguments) -> Outcome {
    if !stdout().is_terminal() {
        return Err(Failure::request("--watch draws in a terminal, and this is none; for a program there is --json"));
    }
    if arguments.every < FASTEST {
        return Err(Failure::request(format!("--every is {} at least", FASTEST.rounded())));
    }
    let stop = Stop::on_signals()?;
    let mut watch = Watch::new(columns());
    let every = Duration::from_nanos(arguments.every.as_nanos());
    let mut next = Instant::now();
    loop {
        let drawn = match status::query(&arguments.socket) {
            Ok(status) => watch.on_status(&status),
            // It may come back.
            Err(error @ QueryError::NobodyThere { .. }) => watch.on_nobody(&error.to_string()),
            Err(error) => return Err(error.into()),
        };
        // Home, the picture, and nothing of the one before below or beside it.
        output::print_out(&format!("\x1b[H{}\x1b[J", drawn.replace('\n', "\x1b[K\n")))?;
        next += every;
        while let Some(left) = next.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            if stop.has_come() {
                return Ok(());
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
        next = next.max(Instant::now());
        if stop.has_come() {
            return Ok(());
        }
    }
}

fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(stdout());
    usize::from(size.map_or(USUAL_COLUMNS, |size| size.ws_col).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_longer_than_80_columns_and_no_word_is_lost() {
        let long = "  downloads: ".to_owned() + &"learned 18 Mbit/s ".repeat(12);
        let text = wrapped(&format!("short\n{long}\n\nlast\n"));
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&text), words(&format!("short {long} last")));
        assert!(text.starts_with("short\n  downloads: learned") && text.ends_with("\n\nlast\n"), "{text}");
    }
}
