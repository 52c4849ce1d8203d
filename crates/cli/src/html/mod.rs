//! `--html`: a run, or two side by side, as a page for a browser. Its tables are those of the text, its curves those of the
//! run's [`Course`]: stretches of time, of each the largest value or the mean.

mod charts;

use std::path::{Path, PathBuf};

use lasthop_command::exit::Outcome;
use lasthop_command::output::Sink;
use lasthop_command::table::{self, figure};
use lasthop_command::terminal::Look;
use lasthop_command::{REVISION, VERSION};
use lasthop_home::course::{Course, MOST_FLOWS};
use lasthop_home::report::Report;
use lasthop_home::scenario::Scenario;
use lasthop_page::{Chart, Column, Document, Table};

use crate::account;

/// A run that a page shows.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// What tells it from the other one: "control off". Empty where there is no other.
    pub label: &'a str,
    /// What was played.
    pub scenario: &'a Scenario,
    /// Its figures.
    pub report: &'a Report,
    /// What it did over time.
    pub course: &'a Course,
}

/// Where a page goes, opened before the work begins.
pub fn open(path: Option<&Path>) -> Outcome<Option<Sink>> {
    path.map(Sink::open).transpose()
}

/// The page of one run.
pub fn of_run(scenario: &Scenario, report: &Report, course: &Course) -> String {
    let shown = Shown { label: "", scenario, report, course };
    let mut page = Document::new(&account::title(report));
    page.summary(&in_a_sentence(scenario, report));
    page.heading("Figures");
    page.table(converted("Flows", &account::flows(&report.flows)));
    add_charts(&mut page, &[shown]);
    page.heading("Senders, air and queues");
    for (caption, table) in [
        ("TCP senders", account::senders(&report.flows)),
        ("Air", account::air(report)),
        ("Queues", account::queues(report)),
    ] {
        table.iter().for_each(|table| page.table(converted(caption, table)));
    }
    add_end(&mut page, &[shown]);
    page.render()
}

/// The page of two runs of one home: `summary` and the tables of `figures` come first, each with its caption.
pub fn of_pair(title: &str, summary: &str, figures: &[(String, table::Table)], runs: [Shown<'_>; 2]) -> String {
    let mut page = Document::new(title);
    page.summary(summary);
    add_charts(&mut page, &runs);
    page.heading("Figures");
    figures.iter().for_each(|(caption, table)| page.table(converted(caption, table)));
    page.heading("Air and queues");
    for run in &runs {
        let tables = [("air", account::air(run.report)), ("queues", account::queues(run.report))];
        for (what, table) in tables.iter().filter_map(|(what, table)| Some((what, table.as_ref()?))) {
            page.table(converted(&format!("{}: {what}", run.label), table));
        }
    }
    add_end(&mut page, &runs);
    page.render()
}

/// The curves, with what has to be known to read them.
fn add_charts(page: &mut Document, runs: &[Shown<'_>]) {
    let step = runs.first().map_or(0.0, |run| run.course.queue.step().as_millis_f64());
    page.heading("Over time");
    let per = format!("Each point stands for {} ms of the run.", figure(step));
    page.prose(&format!("{per} Of delays and of the queue it is the largest value, of windows and rates the mean."));
    if runs.iter().any(|run| run.report.flows.len() > MOST_FLOWS) {
        page.prose(&format!("The first {MOST_FLOWS} flows are drawn; the tables have all of them."));
    }
    let over_time = [charts::delays(runs), charts::other_delays(runs), charts::queues(runs), charts::rates(runs)];
    add_rows(page, runs, over_time);
    let windows = charts::windows(runs);
    if !windows.is_empty() {
        page.heading("Windows");
        page.prose(
            "A sender has no more in flight than the smaller of its congestion window and the window it reads. Control \
             lowers what it reads below what its receiver advertises.",
        );
        add_rows(page, runs, windows);
    }
    page.heading("How many waited how long");
    page.prose("A curve says which share of a flow's packets took at most so long, of those that the tables count.");
    page.charts(charts::shares(runs));
}

/// Two runs: each chart beside its like. One run: as many beside each other as there is room for.
fn add_rows(page: &mut Document, runs: &[Shown<'_>], rows: impl IntoIterator<Item = Vec<Chart>>) {
    match runs {
        [_] => page.charts(rows.into_iter().flatten()),
        _ => rows.into_iter().filter(|row| !row.is_empty()).for_each(|row| page.charts(row)),
    }
}

/// What the controller did, how well time was kept, and what made the page.
fn add_end(page: &mut Document, runs: &[Shown<'_>]) {
    for run in runs.iter().filter(|run| run.report.control.is_some()) {
        page.heading("What the controller did");
        page.verbatim(&account::of_control(run.report.control.as_ref(), Look::plain()));
    }
    let reports: Vec<_> = runs.iter().map(|run| (name(run), run.report)).collect();
    let kept = account::of_time(&reports, Look::plain());
    if let Some((_, lines)) = kept.trim_start().split_once('\n') {
        page.heading("How well the emulator kept time");
        page.verbatim(lines);
    }
    page.footer(&format!(
        "lasthop {VERSION}, revision {REVISION}. The page is whole in itself and asks no other machine."
    ));
}

fn name<'a>(run: &Shown<'a>) -> &'a str {
    if run.label.is_empty() { &run.report.scenario } else { run.label }
}

/// What a run comes to: what waited most of all that is real-time, and what the rest got.
fn in_a_sentence(scenario: &Scenario, report: &Report) -> String {
    if let Some(why) = account::invalid(&[(&report.scenario, report)]) {
        return format!("These figures do not count: {why}.");
    }
    let (mut worst, mut elastic) = (None, 0.0);
    for (flow, of) in scenario.flows.iter().zip(&report.flows) {
        if let (true, Some(added)) = (flow.kind.is_realtime(), of.metrics.added_delay) {
            worst = worst.filter(|(_, p99)| *p99 >= added.p99).or(Some((&of.name, added.p99)));
        }
        elastic += if flow.kind.is_elastic() { of.metrics.goodput_bps } else { 0.0 };
    }
    let elastic = match elastic {
        0.0 => String::new(),
        bps => format!(" Downloads and uploads carried {} Mbit/s.", figure(bps / 1e6)),
    };
    match worst {
        Some((name, p99)) => format!(
            "Of games, calls and video, {name} waited most: 99 of 100 of its packets waited in queues at most {} ms.{elastic}",
            figure(p99)
        ),
        None => format!("No game, call or video ran.{elastic}"),
    }
}

/// A table of the text as one of a page; a row without a name has that of the row before.
fn converted(caption: &str, table: &table::Table) -> Table {
    let mut headings: Vec<&[String]> = table.headings().collect();
    let lowest = headings.pop().unwrap_or_default();
    let columns = lowest.iter().zip(table.numbers());
    let columns = columns.map(|(text, number)| if number { Column::number(text) } else { Column::text(text) });
    let mut page = Table::new(caption, columns).below(headings.first().map_or_else(Vec::new, |above| groups(above)));
    let mut name = "";
    for row in table.rows() {
        let [first, rest @ ..] = row else { continue };
        name = if first.is_empty() { name } else { first };
        page.row([name].into_iter().chain(rest.iter().map(String::as_str)));
    }
    page
}

/// Cells above others, and how many each is above: a blank one belongs to the one before it.
fn groups(above: &[String]) -> Vec<(String, usize)> {
    let mut groups: Vec<(String, usize)> = Vec::new();
    for text in above {
        match groups.last_mut() {
            Some((_, columns)) if text.is_empty() => *columns += 1,
            _ => groups.push((text.clone(), 1)),
        }
    }
    groups
}

/// Says where a page is and how to see it.
pub fn tell(path: &Path) {
    let path: PathBuf = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    eprintln!("\nThe page is {0}; to see it: xdg-open {0}", path.display());
}

#[cfg(test)]
mod tests;
