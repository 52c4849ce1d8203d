//! `-o FOLDER/` and `-o FILE.parquet`: runs are kept in a store, which the Python package reads and writes, too.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use lasthop_command::REVISION;
use lasthop_command::exit::{Failure, Outcome};
use lasthop_command::progress::Line;
use lasthop_command::signals::Stop;
use lasthop_command::table::{figure, thousands};
use lasthop_home::report::Report;
use lasthop_home::scenario::Scenario;
use lasthop_sim::SimError;
use lasthop_store::{Cell, Figures, Key, Names, Plan, Source, Store, StoreError, write_table};

use super::keep::time;
use super::pool::{self, DecisionStatus};
use super::vary::Grid;
use super::{Arguments, cores};
use crate::commands::sim;

/// Between two drawings of the bar.
const REDRAW: Duration = Duration::from_millis(100);

/// Where runs and their table go.
pub struct Place {
    root: PathBuf,
    table: PathBuf,
}

impl Place {
    /// What `-o` names, unless it is a file of rows.
    pub fn of(output: &Path) -> Option<Self> {
        if output.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("parquet")) {
            let mut root = output.as_os_str().to_owned();
            root.push(".store");
            return Some(Self { root: root.into(), table: output.to_owned() });
        }
        let is_folder = output.as_os_str().as_encoded_bytes().ends_with(b"/") || output.is_dir();
        is_folder.then(|| Self { root: output.to_owned(), table: output.join("table.parquet") })
    }
}

/// Why a run was not kept.
enum Lost {
    Run(SimError),
    Store(StoreError),
}

/// The sweep into a store.
pub fn sweep(
    arguments: &Arguments,
    place: &Place,
    (stop, quit): (&Stop, &AtomicBool),
    simulate: impl Fn(&Scenario) -> Result<Report, SimError> + Sync,
) -> Outcome {
    if arguments.restart || arguments.json_lines {
        let why =
            "--restart and --json-lines are for files of rows; a store keeps what it has: give another, or remove it";
        return Err(Failure::request(anyhow!(why)));
    }
    let threads = arguments.jobs.map_or_else(cores, usize::from);
    let source = Source::load(&arguments.scenario).map_err(Failure::request)?;
    let (grid, plan) = plan(arguments, &source, threads)?;
    stop.check()?;
    let figures = figures(arguments, &grid, &plan, |home| simulate(home)).map_err(|error| match error {
        Chosen::Unknown(why) => Failure::request(anyhow!("--figures: {why}")),
        Chosen::Failed(error) => sim::failure(error, stop),
    })?;
    let mut store = Store::open(&place.root).map_err(Failure::request)?;
    let jobs = store.missing(plan.keys()).map_err(Failure::work)?;
    let work = |job: usize| {
        let (cell, seed) = plan.runs[jobs[job]];
        let mut report = simulate(&plan.cells[cell as usize].home.with_seed(seed)).map_err(Lost::Run)?;
        // How long it took is not a part of what it gave.
        report.run.wall_s = 0.0;
        let text = serde_json::to_string(&report).map_err(|error| Lost::Run(SimError::Write(error.into())))?;
        Store::put_at(&place.root, plan.key(jobs[job]), &text).map_err(Lost::Store)
    };
    let mut doing = Doing::new(&grid, &plan, &jobs, stop, quit);
    pool::run(jobs.len(), threads, quit, work, |said| doing.take(said, &mut store));
    doing.end(&mut store, place, &figures, Key::of_bytes(source.text().as_bytes()))
}

/// Every combination as a home, checked, and its runs.
fn plan(arguments: &Arguments, source: &Source, threads: usize) -> Outcome<(Grid, Plan)> {
    let refuse = |why: String| Failure::request(anyhow!(why));
    let count = arguments.seeds as usize;
    let grid = Grid::new(&arguments.vary, 0, count).map_err(refuse)?;
    let cell = |combination: usize| {
        let values = grid.values(combination).into_iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
        let cell = Cell::new(source, &arguments.set, values.collect(), REVISION)?;
        lasthop_sim::check(&cell.home)?;
        Ok(cell)
    };
    let mut made = Vec::new();
    pool::run(grid.combinations(), threads, &AtomicBool::new(false), cell, |said| {
        if let DecisionStatus::Results(_, cells) = said {
            made.extend(cells);
        }
    });
    let mut cells: Vec<Cell> = Vec::with_capacity(made.len());
    for cell in made {
        let cell = cell.map_err(|panic| Failure::work(anyhow!("the scenario's reader broke: {panic}")))?;
        cells.push(cell.map_err(|error: lasthop_home::scenario::ScenarioError| {
            let name = grid.name(cells.len());
            let error = anyhow::Error::new(error);
            Failure::request(if name.is_empty() { error } else { error.context(format!("with {name}")) })
        })?);
    }
    let first = arguments.seed.or_else(|| cells.first().map(|cell| cell.home.seed)).unwrap_or(1);
    let grid = Grid::new(&arguments.vary, first, count).map_err(refuse)?;
    Ok((grid, Plan::with_seeds(cells, first, count)))
}

enum Chosen {
    Unknown(String),
    Failed(SimError),
}

fn figures(
    arguments: &Arguments,
    grid: &Grid,
    plan: &Plan,
    simulate: impl Fn(&Scenario) -> Result<Report, SimError>,
) -> Result<Figures, Chosen> {
    let own = grid.keys().count() + 1;
    let names = || Names::new(plan.cells.iter().map(|cell| &cell.home), own, &simulate).map_err(Chosen::Failed);
    match &arguments.figures {
        Some(Figures::All) => Ok(Figures::All),
        Some(chosen) => names()?.check(chosen).map(|()| chosen.clone()).map_err(Chosen::Unknown),
        None => Ok(names()?.usual()),
    }
}

/// How it goes.
struct Doing<'a> {
    grid: &'a Grid,
    plan: &'a Plan,
    jobs: &'a [usize],
    stop: &'a Stop,
    quit: &'a AtomicBool,
    failure: Option<Failure>,
    /// Of each stretch of the plan that is packed together: runs that are missing.
    left: Vec<usize>,
    done: usize,
    line: Line,
    since: Instant,
    drawn: Option<Duration>,
}

impl<'a> Doing<'a> {
    fn new(grid: &'a Grid, plan: &'a Plan, jobs: &'a [usize], stop: &'a Stop, quit: &'a AtomicBool) -> Self {
        let had = plan.runs.len() - jobs.len();
        if had > 0 && !jobs.is_empty() {
            eprintln!("{} of {} runs are there already", thousands(had as u64), thousands(plan.runs.len() as u64));
        }
        let mut left = vec![0; plan.runs.len().div_ceil(Store::PACK)];
        jobs.iter().for_each(|run| left[run / Store::PACK] += 1);
        let (line, since) = (Line::new("sweep"), Instant::now());
        Self { grid, plan, jobs, stop, quit, failure: None, left, done: 0, line, since, drawn: None }
    }

    fn take(&mut self, said: DecisionStatus<Result<(), Lost>>, store: &mut Store) {
        if let DecisionStatus::Results(from, results) = said {
            for (job, result) in results.into_iter().enumerate() {
                self.judge(self.jobs[from + job], result, store);
            }
        }
        if self.failure.is_some() || self.stop.has_come() {
            self.quit.store(true, Ordering::Relaxed);
        }
        self.draw();
    }

    fn judge(&mut self, run: usize, result: pool::Outcome<Result<(), Lost>>, store: &mut Store) {
        let failure = match result {
            Ok(Ok(())) => {
                self.done += 1;
                self.left[run / Store::PACK] -= 1;
                if self.left[run / Store::PACK] > 0 {
                    return;
                }
                let from = run / Store::PACK * Store::PACK;
                let runs = from..self.plan.runs.len().min(from + Store::PACK);
                let Err(error) = store.pack(runs.map(|run| self.plan.key(run))) else { return };
                Failure::work(error)
            }
            Ok(Err(Lost::Run(SimError::Stopped))) => return,
            Ok(Err(Lost::Run(error))) => sim::failure(error, self.stop),
            Ok(Err(Lost::Store(error))) => Failure::work(error),
            Err(panic) => Failure::work(anyhow!("the simulator broke: {panic}")),
        };
        let name = self.grid.name_of_run(run);
        self.failure.get_or_insert(match failure {
            Failure::Work(cause) => Failure::work(anyhow::Error::from_boxed(cause).context(name)),
            Failure::Request(cause) => Failure::request(anyhow::Error::from_boxed(cause).context(name)),
            signal => signal,
        });
    }

    fn draw(&mut self) {
        let elapsed = self.since.elapsed();
        if self.done == 0 || self.line.is_terminal() && self.drawn.is_some_and(|drawn| elapsed < drawn + REDRAW) {
            return;
        }
        self.drawn = Some(elapsed);
        let rate = self.done as f64 / elapsed.as_secs_f64().max(1e-9);
        let (done, all) = (thousands(self.done as u64), thousands(self.jobs.len() as u64));
        let left = time((self.jobs.len() - self.done) as f64 / rate);
        let text = format!("{done}/{all} runs  {}/s, {left} left", figure(rate));
        self.line.step(elapsed.as_secs_f64(), self.done as f64 / self.jobs.len() as f64, &text);
    }

    /// Makes the table, and says how it went.
    fn end(mut self, store: &mut Store, place: &Place, figures: &Figures, scenario: Key) -> Outcome {
        self.line.end();
        let all = thousands(self.plan.runs.len() as u64);
        let there = self.plan.runs.len() - self.jobs.len() + self.done;
        let there = format!("{} of {all} runs are in {}", thousands(there as u64), store.root().display());
        if let Some(failure) = self.failure.take() {
            eprintln!("{there}");
            return Err(failure);
        }
        if let Err(Failure::Signal(signal)) = self.stop.check() {
            return Err(Failure::Paused(signal, format!("{there}; the same command goes on")));
        }
        write_table(store, self.plan, figures, (&place.table, REVISION, scenario)).map_err(Failure::work)?;
        let (seconds, table) = (time(self.since.elapsed().as_secs_f64()), place.table.display());
        match self.done {
            0 => eprintln!("all {all} runs were in {} already; their table is {table}", store.root().display()),
            n => eprintln!("{} runs in {seconds}; the table of all {all} is {table}", thousands(n as u64)),
        }
        Ok(())
    }
}
