//! What becomes of the results of a sweep: checked, written, and told to who waits.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use lasthop_command::exit::{Failure, Outcome};
use lasthop_command::progress::Line;
use lasthop_command::signals::Stop;
use lasthop_command::table::{figure, thousands};
use lasthop_sim::SimError;
use lasthop_store::Row;

use super::form::{self, Cells};
use super::pool::{self, DecisionStatus};
use super::results::{Results, WHAT_TO_DO};
use super::vary::Grid;
use crate::commands::sim;

/// Between two drawings of the bar.
const REDRAW: Duration = Duration::from_millis(100);

/// Takes results in the order of the jobs.
pub struct Keeper<'a> {
    grid: &'a Grid,
    results: &'a mut Results,
    jobs: &'a [usize],
    /// The row whose run is done again, until it was found to be the same.
    check: Option<(usize, Cells)>,
    failure: Option<Failure>,
    stop: &'a Stop,
    quit: &'a AtomicBool,
    line: Line,
    since: Instant,
    drawn: Option<Duration>,
    /// Rows that were there, and rows written.
    had: usize,
    written: usize,
}

/// What comes out of the pool.
type Done = pool::Outcome<Result<Row, SimError>>;

impl<'a> Keeper<'a> {
    /// `check` is the row that `jobs` begin with doing again.
    pub fn new(
        grid: &'a Grid,
        results: &'a mut Results,
        jobs: &'a [usize],
        check: Option<(usize, Cells)>,
        (stop, quit): (&'a Stop, &'a AtomicBool),
    ) -> Self {
        let had = results.runs().count();
        let total = grid.len();
        if had > 0 && had < total {
            eprintln!("{} of {} runs are there already", thousands(had as u64), thousands(total as u64));
        }
        let (line, since) = (Line::new("sweep"), Instant::now());
        Self { grid, results, jobs, check, failure: None, stop, quit, line, since, drawn: None, had, written: 0 }
    }

    /// Takes what the pool says.
    pub fn take(&mut self, said: DecisionStatus<Result<Row, SimError>>) {
        if let DecisionStatus::Results(from, done) = said {
            let rows: Vec<(usize, Row)> =
                done.into_iter().enumerate().filter_map(|(i, done)| self.judge(self.jobs[from + i], done)).collect();
            self.write(&rows);
        }
        if self.failure.is_some() || self.stop.has_come() {
            self.quit.store(true, Ordering::Relaxed);
        }
        self.draw();
    }

    /// The row of a run, if it is one to write.
    fn judge(&mut self, run: usize, done: Done) -> Option<(usize, Row)> {
        let row = match done {
            Ok(Ok(row)) => row,
            Ok(Err(SimError::Stopped)) => return None,
            Ok(Err(error)) => {
                self.fail(run, sim::failure(error, self.stop));
                return None;
            }
            Err(panic) => {
                self.fail(run, Failure::work(anyhow!("the simulator broke: {panic}")));
                return None;
            }
        };
        match self.check.take_if(|(checked, _)| *checked == run) {
            None => Some((run, row)),
            Some((_, there)) => {
                if let Some(name) = difference(&there, form::filled(row)) {
                    let why = anyhow!("the row that is there has another `{name}` than this run gives; {WHAT_TO_DO}");
                    self.fail(run, Failure::request(why));
                    // Nothing of this sweep belongs into that file.
                    self.check = Some((run, there));
                }
                None
            }
        }
    }

    /// Keeps the first failure, named by its run.
    fn fail(&mut self, run: usize, failure: Failure) {
        let name = self.grid.name_of_run(run);
        let named = match failure {
            Failure::Work(cause) => Failure::work(anyhow::Error::from_boxed(cause).context(name)),
            Failure::Request(cause) => Failure::request(anyhow::Error::from_boxed(cause).context(name)),
            signal => signal,
        };
        self.failure.get_or_insert(named);
    }

    fn write(&mut self, rows: &[(usize, Row)]) {
        // Until the row that was there is known to be of this sweep, nothing is added to it.
        if rows.is_empty() || self.check.is_some() {
            return;
        }
        match self.results.append(rows) {
            Ok(()) => self.written += rows.len(),
            Err(failure) => drop(self.failure.get_or_insert(failure)),
        }
    }

    fn draw(&mut self) {
        let elapsed = self.since.elapsed();
        if self.line.is_terminal() && self.drawn.is_some_and(|drawn| elapsed < drawn + REDRAW) {
            return;
        }
        if self.written == 0 && !self.line.is_terminal() {
            return;
        }
        self.drawn = Some(elapsed);
        let (done, total) = (self.had + self.written, self.grid.len());
        let rate = self.written as f64 / elapsed.as_secs_f64().max(1e-9);
        let left = if self.written == 0 { "-".to_owned() } else { time((total - done) as f64 / rate) };
        let text =
            format!("{}/{} runs  {}/s, {left} left", thousands(done as u64), thousands(total as u64), figure(rate));
        self.line.step(elapsed.as_secs_f64(), done as f64 / total as f64, &text);
    }

    /// Says how it went.
    pub fn end(mut self, path: &Path) -> Outcome {
        self.line.end();
        let (done, total) = (thousands((self.had + self.written) as u64), thousands(self.grid.len() as u64));
        let there = format!("{done} of {total} runs are in {}", path.display());
        if let Some(failure) = self.failure.take() {
            eprintln!("{there}");
            return Err(failure);
        }
        if let Err(Failure::Signal(signal)) = self.stop.check() {
            return Err(Failure::Paused(signal, format!("{there}; the same command (without --restart) goes on")));
        }
        self.results.sort()?;
        let seconds = self.since.elapsed().as_secs_f64();
        match self.written {
            0 => eprintln!("all {total} runs were in {} already", path.display()),
            n if n == self.grid.len() => eprintln!("{total} runs in {}, all in {}", time(seconds), path.display()),
            n => eprintln!(
                "{} runs in {}, with those before {total} in {}",
                thousands(n as u64),
                time(seconds),
                path.display()
            ),
        }
        Ok(())
    }
}

/// The first column in which two rows of one run differ; `run.` tells how it ran, which may.
fn difference(there: &Cells, now: Cells) -> Option<String> {
    let own = |name: &String| !name.starts_with("run.");
    let there: BTreeMap<&String, &String> = there.iter().map(|(n, c)| (n, c)).filter(|(n, _)| own(n)).collect();
    let now: BTreeMap<&String, &String> = now.iter().map(|(n, c)| (n, c)).filter(|(n, _)| own(n)).collect();
    let names = there.keys().chain(now.keys());
    names.copied().find(|name| there.get(name) != now.get(name)).cloned()
}

/// A time that somebody waits for.
pub fn time(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}
