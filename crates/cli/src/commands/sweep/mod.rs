//! `lasthop sweep`: a scenario many times, one row per run.

#[cfg(test)]
pub mod fake;
#[cfg(test)]
mod figures_tests;
mod folder;
mod form;
mod keep;
mod pool;
mod results;
mod row;
#[cfg(test)]
mod tests;
mod vary;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::anyhow;
use clap::Args;
use lasthop_command::REVISION;
use lasthop_command::exit::{Failure, Outcome};
use lasthop_command::signals::Stop;
use lasthop_home::report::Report;
use lasthop_home::scenario::{Scenario, ScenarioError, Template};
use lasthop_sim::{Options, Progress, SimError};
use lasthop_store::{Chooser, Figures, Names};

use self::form::Form;
use self::keep::Keeper;
use self::pool::DecisionStatus;
use self::results::{Expected, Results};
use self::vary::{Grid, Vary};
use crate::commands::sim;

const AFTER_HELP: &str = "\
Examples:
  lasthop sweep scenarios/papers/sap-law.toml --vary wifi.attempts=1,2,3,4 --seeds 20 -o a.csv
  lasthop sweep home.toml --vary flow.ftp.cc=newreno,cubic --vary wifi.queue.limit=50,1000 -o q.jsonl
  lasthop sweep home.toml --vary wifi.queue.limit=50,1000 --figures game.added_delay.p99,ftp.goodput -o g.csv
  lasthop sweep home.toml --vary 'control.window={ capacity = \"18Mbit/s\" },none' -o c.csv

Runs every combination of the values of all --vary with every seed, on all cores. Values are written
as --set takes them; a comma inside quotes, brackets or braces belongs to the value. The last --vary
changes fastest but for the seed; rows stand in this order, and are written as soon as they are
done. All combinations are checked before the first run starts.

A row holds every varied key, the seed, scenario and revision, and figures of the report that
schema/report.md describes, names joined by dots: flows.ftp.goodput_bps, stations.AP.airtime_share,
control.capacity_bps.mean; a web page's load time is flows.NAME.page.load_ms. --figures chooses them:
by name, by a shorter one (flows., stations. or queues. in front and _bps, _ms or _s behind may be
left out), by what stands above them (game.delay), with * for any part of a name; those of start_up
only by a name with start_up in it; all: every one. Without it a file has fewer than 40 columns: of
each flow goodput_bps, added_delay.p99 and loss_rate; where that is too much, added_delay.p99 of what
is real-time and goodput_bps of the others; or none; besides, waiting times and drops of the queue
towards the stations, fairness of goodput, and capacity and lowered windows of the controller.

A figure that is not there (the mean of no packets) is null, in CSV an empty cell. Where a varied key changes which hosts
or flows there are, a JSON line has what its run has; a CSV file gets a column more when the first
row that needs it comes, and the rows without it an empty cell.

Ctrl-C, a crash or kill -9 lose only the runs under way: the same command goes on. It refuses a file
of other keys, another scenario or revision; it does the last row again and refuses if the figures
have changed (a key set otherwise, an edited scenario). More values or seeds may be added. --restart
begins anew.

-o FOLDER/ keeps the whole report of every run under a key of all that decides it (scenario, traces, what was set, seed,
revision), and at the end a table, FOLDER/table.parquet, with FOLDER/manifest.json: the same bytes however often the sweep was
stopped. Another sweep into the folder runs what is not there. -o rows.parquet is that table, with its runs in rows.parquet.store.
The Python package `lasthop` reads and writes such folders, too.";

/// Simulate a scenario over values and seeds, one row per run
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Arguments {
    /// The scenario file
    scenario: PathBuf,
    /// Vary a key of the scenario over values: wifi.attempts=1,2,3; may be given more than once
    #[arg(long, value_name = "KEY=A,B,C", value_parser = vary::vary)]
    vary: Vec<Vary>,
    /// How many seeds each combination runs with
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    seeds: u32,
    /// The first seed; the others follow it [default: the scenario's]
    #[arg(long, value_name = "FIRST")]
    seed: Option<u64>,
    /// Change a key of the scenario for all runs; may be given more than once
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// How many runs at once [default: as many as there are cores]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Where the rows go: .csv, or .jsonl (.ndjson, .json) for a JSON object per line; FOLDER/ or .parquet for a store of runs
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Figures that a row holds, by name: game.added_delay.p99,ftp.goodput; "all" are every one [default: the usual, see below]
    #[arg(long, value_name = "NAME,NAME", value_parser = lasthop_store::figures)]
    figures: Option<Figures>,
    /// Write JSON lines whatever the ending of the file
    #[arg(long)]
    json_lines: bool,
    /// Begin anew: what the file holds is lost
    #[arg(long)]
    restart: bool,
}

/// Does what is missing in the file.
pub fn run(arguments: &Arguments) -> Outcome {
    let stop = Stop::on_signals()?;
    let quit = AtomicBool::new(false);
    let simulate = |scenario: &Scenario| {
        let mut goes_on = |_: Progress| !stop.has_come() && !quit.load(Ordering::Relaxed);
        let mut options = Options { progress: Some(&mut goes_on), revision: REVISION, ..Options::default() };
        sim::timed(scenario, &mut options)
    };
    sweep(arguments, &stop, &quit, simulate)
}

/// The command, with `simulate` in the place of the simulator. It returns soon after `quit` is set.
fn sweep(
    arguments: &Arguments,
    stop: &Stop,
    quit: &AtomicBool,
    simulate: impl Fn(&Scenario) -> Result<Report, SimError> + Sync,
) -> Outcome {
    if let Some(place) = folder::Place::of(&arguments.output).filter(|_| !arguments.json_lines) {
        return folder::sweep(arguments, &place, (stop, quit), simulate);
    }
    let form = Form::of(&arguments.output, arguments.json_lines).map_err(|why| Failure::request(anyhow!(why)))?;
    let threads = arguments.jobs.map_or_else(cores, usize::from);
    let plan = Plan::new(arguments, threads)?;
    stop.check()?;
    let names = || {
        let own = plan.grid.keys().count() + 1;
        Names::new(plan.homes.iter(), own, &simulate).map_err(|error| sim::failure(error, stop))
    };
    let figures = match &arguments.figures {
        Some(Figures::All) => Figures::All,
        Some(chosen) => {
            names()?.check(chosen).map_err(|why| Failure::request(anyhow!("--figures: {why}")))?;
            chosen.clone()
        }
        None => names()?.usual(),
    };
    let chosen = Chooser::new(figures);
    let mut results = Results::open(&arguments.output, form, arguments.restart)?;
    let scenario = |combination: usize| plan.homes[combination].name.as_str();
    let last = results.read(&Expected { grid: &plan.grid, scenario: &scenario, revision: REVISION })?;
    let jobs = plan.jobs(&results, last.as_ref().map(|(run, _)| *run));
    let work = |job: usize| {
        let run = jobs[job];
        let scenario = plan.homes[plan.grid.combination(run)].with_seed(plan.grid.seed(run));
        let report = simulate(&scenario)?;
        row::row(&plan.grid, run, &report, &chosen).map_err(|error| SimError::Write(error.into()))
    };
    let mut keeper = Keeper::new(&plan.grid, &mut results, &jobs, last, (stop, quit));
    pool::run(jobs.len(), threads, quit, work, |said| keeper.take(said));
    keeper.end(&arguments.output)
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Every run, and the home of every combination.
struct Plan {
    grid: Grid,
    homes: Vec<Scenario>,
}

impl Plan {
    /// Reads the scenario once and makes every combination of it.
    fn new(arguments: &Arguments, threads: usize) -> Outcome<Self> {
        let refuse = |why: String| Failure::request(anyhow!(why));
        let template = Template::load(&arguments.scenario).map_err(Failure::request)?;
        let count = arguments.seeds as usize;
        let grid = Grid::new(&arguments.vary, 0, count).map_err(refuse)?;
        let home = |combination: usize| {
            let values = grid.values(combination);
            let varied = values.iter().map(|(key, value)| format!("{key}={value}"));
            let home = template.with(&arguments.set.iter().cloned().chain(varied).collect::<Vec<_>>())?;
            lasthop_sim::check(&home)?;
            Ok(home)
        };
        let wrong = |combination: usize, error: ScenarioError| {
            let error = anyhow::Error::new(error);
            let name = grid.name(combination);
            Failure::request(if name.is_empty() { error } else { error.context(format!("with {name}")) })
        };
        // The first alone, which reads the frame traces; the others share them.
        let first = home(0).map_err(|error| wrong(0, error))?;
        let first_seed = arguments.seed.unwrap_or(first.seed);
        let mut made = Vec::new();
        pool::run(
            grid.combinations() - 1,
            threads,
            &AtomicBool::new(false),
            |i| home(i + 1),
            |said| {
                if let DecisionStatus::Results(_, homes) = said {
                    made.extend(homes);
                }
            },
        );
        let mut homes = vec![first];
        for home in made {
            let home = home.map_err(|panic| Failure::work(anyhow!("the scenario's reader broke: {panic}")))?;
            homes.push(home.map_err(|error| wrong(homes.len(), error))?);
        }
        let grid = Grid::new(&arguments.vary, first_seed, count).map_err(refuse)?;
        Ok(Self { grid, homes })
    }

    /// The runs to do: the last one that is there once more, as a check, then what is missing.
    fn jobs(&self, results: &Results, last: Option<usize>) -> Vec<usize> {
        let mut there = vec![false; self.grid.len()];
        results.runs().for_each(|run| there[run] = true);
        last.into_iter().chain((0..self.grid.len()).filter(|run| !there[*run])).collect()
    }
}
