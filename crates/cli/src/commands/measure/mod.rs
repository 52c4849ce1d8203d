//! `lasthop measure`: whether control helps in this home, with a page and files for flent; also of what a router has measured. And the
//! IETF's responsiveness test by itself, with its server.

mod flent;
mod load;
mod page;
mod responsiveness;
mod serve;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use lasthop_command::exit::{Failure, Outcome};
use lasthop_command::output::{self, Sink};
use lasthop_command::signals::Stop;
use lasthop_command::terminal::Look;
use lasthop_measure::Report;
use lasthop_measure::host::{self, Measured, Options};
use lasthop_measure::report::LONGEST;

use crate::html;

const AFTER_HELP: &str = "\
Examples:
  sudo lasthop measure --html evening.html         an hour of this home: 30 pairs of blocks, and a page with plots
  sudo lasthopd measure --json evening.json        on a router, which has no lasthop
  sudo lasthop measure --load https://192.168.1.2:4043 --fingerprint 9f3c..     makes the load itself
  lasthop measure --from evening.json --html evening.html --flent evening.flent.gz
  flent -p ping_cdf -i evening-without.flent.gz -i evening-with.flent.gz

For half of the blocks control is paused, in random order; it goes on by itself if this is killed. Somebody has to
download meanwhile: pairs of blocks without load do not count. Ctrl-C ends it early and shows what was finished.

--load downloads (with --direction up: uploads) from a server of yours all the time, `lasthop measure serve` or another of
draft-ietf-ippm-responsiveness, and asks it for round trips: each block then has its round trips per minute (RPM), too. This
machine has to be a device behind the hop; the book says how ssh brings the access point's sockets to it.

--flent writes three files for flent (tests tcp_download and tcp_upload): the evening as it was, and beside it, as
FILE-with and FILE-without, what counts of its blocks, for flent to lay over each other. What flent calls pings are the
round trip without a queue and the wait that the controller saw added to it, second by second.";

/// Measure whether control helps in this home: blocks with and without it, in random order
///
/// Needs a running controller, root (it pauses control), and a home that downloads. Tells how much shorter packets wait, what
/// that costs, and how sure that is; names of devices stay here unless --names puts them into the report.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP, args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    load: load::LoadArguments,
    /// Measure nothing: take what was measured from this file, of `--json`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["time", "pairs", "block", "discard", "seed", "direction", "names", "socket", "load"])]
    from: Option<PathBuf>,
    /// Write what was measured as JSON; "-" is stdout
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write it as a page for a browser: the figures, and plots of pairs, waits and rates; "-" is stdout
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write it for flent: FILE.flent.gz
    #[arg(long, value_name = "FILE", value_parser = flent_file)]
    flent: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Arguments),
    Responsiveness(responsiveness::Arguments),
}

/// flent tells its files by their end.
fn flent_file(text: &str) -> Result<PathBuf, String> {
    match text.strip_suffix(flent::SUFFIX) {
        Some(stem) if !stem.is_empty() && !stem.ends_with('/') => Ok(PathBuf::from(text)),
        _ => Err(format!("write a file that ends with {}, by which flent knows it", flent::SUFFIX)),
    }
}

/// Measures, or reads, and shows it.
pub fn run(arguments: &Arguments) -> Outcome {
    match &arguments.command {
        Some(Command::Serve(arguments)) => serve::run(arguments),
        Some(Command::Responsiveness(arguments)) => responsiveness::run(arguments),
        None => home(arguments),
    }
}

fn home(arguments: &Arguments) -> Outcome {
    let json = arguments.json.as_deref().map(Sink::open).transpose()?;
    let page = html::open(arguments.html.as_deref())?;
    let to_stdout = [&json, &page].into_iter().flatten().filter(|sink| sink.is_stdout()).count();
    if to_stdout > 1 {
        return Err(Failure::request("only one of --json and --html can go to stdout"));
    }
    let plots = arguments.flent.as_deref().map(flent::Files::open).transpose()?;
    let measured = match &arguments.from {
        Some(path) => Measured { report: read(path)?, signal: None },
        None => load::measure(&arguments.load, &arguments.options, &Stop::on_signals()?)?,
    };
    let report = &measured.report;
    match to_stdout {
        0 => output::print_out(&host::render(report, Look::stdout()))?,
        _ => eprint!("{}", host::render(report, Look::stderr())),
    }
    if let Some(json) = json {
        json.write_text(&report.to_json())?;
    }
    if let Some(page) = &page {
        page.write_text(&page::render(report))?;
        arguments.html.as_deref().filter(|_| !page.is_stdout()).into_iter().for_each(html::tell);
    }
    plots.map_or(Ok(()), |files| files.write(report))?;
    measured.end()
}

fn read(path: &Path) -> Outcome<Report> {
    let long = LONGEST as u64 + 1;
    let read = || -> std::io::Result<Vec<u8>> {
        let mut text = Vec::new();
        std::io::Read::read_to_end(&mut std::io::Read::take(std::fs::File::open(path)?, long), &mut text)?;
        Ok(text)
    };
    let text = read().with_context(|| format!("cannot read {}", path.display())).map_err(Failure::request)?;
    Report::read(&text).with_context(|| format!("cannot use {}", path.display())).map_err(Failure::request)
}
