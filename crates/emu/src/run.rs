//! One scenario from beginning to end.

use crate::controller::Controller;
use crate::engine::{Offers, ProgressCheck, Remains};
use crate::error::Error;
use crate::exec::{Orders, ProgramEnd, Programs};
use crate::home::Home;
use crate::log::{EVERY, Log};
use crate::options::{Options, Progress, Second};
use crate::proxy::Proxies;
use crate::record::{Paths, Recording};
use crate::running::{Running, measured_from_start};
use crate::stage::{Played, Stage};
use crate::{clock, refuse, report, sys};
use lasthop_core::units::{Span, Time};
use lasthop_home::course::Course;
use lasthop_home::report::Report;
use lasthop_home::scenario::Scenario;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// `schema/report.md`, but for `control`, which is for the caller to fill from `controller_status`.
    pub report: Report,
    /// What it did over time, where [`Options::course`] asked for it.
    pub course: Option<Course>,
    /// What the controller said of itself just before the end.
    pub controller_status: Option<serde_json::Value>,
    /// What the user should know: why a run is not valid, what was not possible.
    pub notes: Vec<String>,
    /// What became of the programs, in the order they were asked for.
    pub programs: Vec<ProgramEnd>,
    /// Processor time of the engine's thread over the duration: its share of one core.
    pub load: f64,
    /// System calls with which the engine read and wrote the report's `run.events` frames.
    pub calls: u64,
}

/// Between everything being ready and the start.
const RUN_UP: Span = Span::from_millis(100);
/// How often the run is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// How long before the end the controller is asked.
const LAST_QUESTION: Span = Span::from_millis(200);

/// Runs a scenario in real time. The calling thread must stay until it returns.
///
/// # Errors
/// See [`Error`]; everything that was made is taken down first.
pub fn run(scenario: &Scenario, options: Options) -> Result<Outcome, Error> {
    refuse::check(scenario)?;
    let orders = Orders::new(scenario, &options)?;
    let Options { pcap, trace, course, log, controller, progress, stop, revision, .. } = options;
    let begun = clock::now();
    sys::raise_open_files();
    let reporter = Reporter(progress);
    reporter.report(Progress::Preparing("building the home"));
    let home = Home::new(scenario)?;
    let recording = Recording::start(Paths { pcap, trace, course }, scenario, &home, &revision)?;
    let offers: Offers = scenario.flows.iter().map(|_| AtomicU32::new(0)).collect();
    let stage = Stage::prepare(scenario, &home, &offers, course)?;
    let _proxies = Proxies::start(scenario, &home)?;
    let mut running = Running::start(scenario, &home, recording, (offers, orders.may_end_the_run()), &stop)?;
    reporter.report(Progress::Preparing("starting the controller"));
    let log = log.map(|path| Log::create(&path).map(Arc::new).map_err(cannot_write(&path)).map(|log| (log, path)));
    let log = log.transpose()?;
    let into = || log.as_ref().map(|(log, _)| Arc::clone(log));
    let controller = controller.map(|it| Controller::start(&home, it, into(), &stop)).transpose()?;
    let mut show = Show { scenario, reporter: &reporter, stop: &stop, controller, log: into(), status: None };
    let zero = clock::now() + RUN_UP;
    log.iter().for_each(|(log, _)| log.start(zero));
    running.shared.zero_ns.store(zero.as_nanos(), Ordering::Release);
    stage.gate.open(zero);
    // Not before: the first packet of a program that is quick would be thrown away.
    running.wait_until_it_plays(&stop)?;
    let mut programs = orders.start(&home)?;
    show.watch(&mut running, &stage, &mut programs, zero)?;
    let Show { controller, status, .. } = show;
    let (mut remains, writers) = running.finish()?;
    let greedy = stage.finish();
    let programs = programs.finish();
    if let Some(controller) = controller {
        controller.stop();
    }
    log.iter().try_for_each(|(log, path)| log.finish().map_err(cannot_write(path)))?;
    let (lacking, course) = writers.map_or(Ok((Vec::new(), None)), |writers| writers.finish(&mut remains))?;
    let mut played = Scenario { duration: remains.ended.since(Time::ZERO), ..scenario.clone() };
    let load = remains.counts.busy.as_secs_f64() / played.duration.as_secs_f64().max(f64::MIN_POSITIVE);
    let calls = remains.counts.calls;
    let mut notes = notes(&remains);
    notes.extend(lacking);
    let about = About { greedy, drops: home.drops()?, wall: clock::now().since(begun), revision };
    let mut seen = seen(remains, about);
    if played.duration <= scenario.measure_from {
        notes.push(measured_all(&played));
        played = measured_from_start(&played);
        seen.take_whole();
    }
    let course = course.map(|course| seen.tell(course));
    let (report, more) = report::assemble(&played, seen);
    notes.extend(more);
    notes.iter().for_each(|note| reporter.report(Progress::Note(note.clone())));
    Ok(Outcome { report, course, controller_status: status, notes, programs, load, calls })
}

fn cannot_write(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Capture { path, source }
}

/// What is said of a run that ended before there was anything to measure.
fn measured_all(played: &Scenario) -> String {
    let (end, from) = (played.duration.as_secs_f64(), played.measure_from.as_secs_f64());
    format!(
        "the run ended after {end:.1} s, before measure_from ({from:.1} s): its figures are of everything since second 0"
    )
}

/// What the report needs besides what the engine leaves.
struct About {
    greedy: Played,
    drops: u64,
    wall: Span,
    revision: String,
}

fn seen(remains: Remains, about: About) -> report::Seen {
    let Remains { network, observer, lag, counts, queue, .. } = remains;
    let About { greedy, drops, wall, revision } = about;
    report::Seen { network, flows: observer.into_flows(), lag, counts, queue, drops, greedy, wall, revision }
}

fn notes(remains: &Remains) -> Vec<String> {
    let mut notes = remains.notes.clone();
    if remains.counts.refused > 0 {
        notes.push(format!("{} frames reached an interface that was down", remains.counts.refused));
    }
    notes
}

struct Reporter(Option<mpsc::Sender<Progress>>);

impl Reporter {
    fn report(&self, what: Progress) {
        if let Some(progress) = &self.0 {
            // Nobody has to listen.
            let _ = progress.send(what);
        }
    }
}

/// What happens beside the engine while it runs.
struct Show<'a> {
    scenario: &'a Scenario,
    reporter: &'a Reporter,
    stop: &'a AtomicBool,
    controller: Option<Controller>,
    log: Option<Arc<Log>>,
    status: Option<serde_json::Value>,
}

impl Show<'_> {
    fn watch(
        &mut self,
        running: &mut Running,
        stage: &Stage,
        programs: &mut Programs,
        zero: Time,
    ) -> Result<(), Error> {
        let mut log_at = zero;
        let ask_at = zero + self.scenario.duration.saturating_sub(LAST_QUESTION);
        while !running.is_over() {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Error::Stopped);
            }
            stage.check()?;
            let over = programs.are_over();
            if let Some(controller) = &mut self.controller {
                controller.check()?;
                if self.status.is_none() && (over || clock::now() >= ask_at) {
                    self.status = controller.status();
                }
                if let (Some(log), true) = (&self.log, clock::now() >= log_at) {
                    controller.status().iter().for_each(|status| log.answer(status));
                    log_at += EVERY;
                }
            }
            if over {
                running.shared.stop.store(true, Ordering::Relaxed);
            }
            while let Ok(progress_check) = running.pulses.try_recv() {
                let ProgressCheck { elapsed, recent, lag_p99 } = progress_check;
                let second = Second { elapsed, total: self.scenario.duration, flows: recent, lag_p99 };
                self.reporter.report(Progress::Second(second));
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }
}
