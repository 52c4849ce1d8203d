//! One scenario from beginning to end.

use crate::controller::{Controller, ControllerCommand};
use crate::engine::{Engine, Pulse, Remains, Shared};
use crate::error::Error;
use crate::home::Home;
use crate::observe::identify::{Endpoints, Transport};
use crate::observe::{Observer, Recent};
use crate::pcap::{self, Writer};
use crate::spawn::Child;
use crate::stage::Stage;
use crate::{air, arena, clock, refuse, report, sys};
use lasthop_core::units::{Span, Time};
use lasthop_home::report::{Report, flow_meter};
use lasthop_home::scenario::{Change, HostId, Scenario, Wifi};
use rustix::mm::{MlockAllFlags, mlockall, munlockall};
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// What may be asked of a run besides its scenario.
#[derive(Debug, Default)]
pub struct Options {
    /// Programs for hosts: name of the host and a command line for `sh -c`. Started with the scenario, ended with it.
    pub exec: Vec<(String, String)>,
    /// Where to write a capture of every interface.
    pub pcap: Option<PathBuf>,
    /// A controller for the access point.
    pub controller: Option<ControllerCommand>,
    /// Told how it goes.
    pub progress: Option<mpsc::Sender<Progress>>,
    /// Set it to end the run early; everything is taken down in order.
    pub stop: Arc<AtomicBool>,
    /// Goes into the report.
    pub revision: String,
}

/// How a run goes.
#[derive(Clone, Debug)]
pub enum Progress {
    /// What is being done before the scenario starts.
    Preparing(&'static str),
    /// Something the user should know; the run goes on.
    Note(String),
    /// Another second has passed.
    Second(Second),
}

/// One second of a run.
#[derive(Clone, Debug)]
pub struct Second {
    /// Since the start of the scenario.
    pub elapsed: Span,
    /// How long it takes in all.
    pub total: Span,
    /// `flows[flow]`, in the order of the scenario: what happened to its packets in that second.
    pub flows: Vec<Recent>,
    /// p99 of the lag so far.
    pub lag_p99: Span,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// `schema/report.md`, but for `control`, which is for the caller to fill from `controller_status`.
    pub report: Report,
    /// What the controller said of itself just before the end.
    pub controller_status: Option<serde_json::Value>,
    /// What the user should know: why a run is not valid, what was not possible.
    pub notes: Vec<String>,
    /// Processor time of the engine's thread over the duration: its share of one core.
    pub load: f64,
}

/// Between everything being ready and the start.
const RUN_UP: Span = Span::from_millis(100);
/// How often the run is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// How long before the end the controller is asked.
const LAST_QUESTION: Span = Span::from_millis(200);
/// What programs get between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_millis(500);

/// Runs a scenario in real time. The calling thread must stay until it returns.
///
/// # Errors
/// See [`Error`]; everything that was made is taken down first.
pub fn run(scenario: &Scenario, options: Options) -> Result<Outcome, Error> {
    let Options { exec, pcap, controller, progress, stop, revision } = options;
    let cell = refuse::check(scenario)?;
    let tell = |what| {
        if let Some(progress) = &progress {
            let _ = progress.send(what);
        }
    };
    let exec = resolve(scenario, exec)?;
    let begun = clock::now();
    sys::raise_open_files();
    tell(Progress::Preparing("building the home"));
    let home = Home::new(scenario)?;
    let capture = pcap.as_deref().map(|path| pcap::start(path, &home.interface_names())).transpose()?;
    let stage = Stage::prepare(scenario, &home)?;
    let mut running = Running::start(scenario, cell, &home, capture, &stop)?;
    tell(Progress::Preparing("starting the controller"));
    let controller = controller.map(|it| Controller::start(&home, it)).transpose()?;
    let mut show = Show { scenario, progress: progress.as_ref(), controller, status: None };
    let zero = clock::now() + RUN_UP;
    running.shared.zero_ns.store(zero.as_nanos(), Ordering::Release);
    stage.gate.open(zero);
    let programs = start_programs(&home, exec)?;
    show.watch(&mut running, &stage, &stop, zero)?;
    let Show { controller, status, .. } = show;
    let (remains, writer) = running.finish()?;
    let players = stage.finish();
    drop(programs);
    if let Some(controller) = controller {
        controller.stop();
    }
    let mut notes = remains.notes.clone();
    notes.extend(running_notes(&remains));
    let drops = home.drops()?;
    if let (Some(capture), Some((writer, path))) = (remains.capture, writer.zip(pcap)) {
        let missed = capture.finish(writer).map_err(|source| Error::Capture { path, source })?;
        if missed > 0 {
            notes.push(format!("the capture lacks {missed} frames: the disk was too slow"));
        }
    }
    let load = remains.counts.busy.as_secs_f64() / scenario.duration.as_secs_f64();
    let seen = report::Seen {
        network: remains.network,
        flows: remains.observer.into_flows(),
        lag: remains.lag,
        counts: remains.counts,
        drops,
        tcp: players,
        wall: clock::now().since(begun),
        revision,
    };
    let (report, more) = report::assemble(scenario, seen);
    notes.extend(more);
    for note in &notes {
        tell(Progress::Note(note.clone()));
    }
    Ok(Outcome { report, controller_status: status, notes, load })
}

fn running_notes(remains: &Remains) -> Option<String> {
    let refused = remains.counts.refused;
    (refused > 0).then(|| format!("{refused} frames reached an interface that was down"))
}

/// The engine on its thread. Dropping it ends it.
struct Running {
    shared: Arc<Shared>,
    engine: Option<JoinHandle<io::Result<Remains>>>,
    pulses: mpsc::Receiver<Pulse>,
    writer: Option<Writer>,
}

impl Running {
    fn start(
        scenario: &Scenario,
        cell: &Wifi,
        home: &Home,
        capture: Option<(pcap::Capture, Writer)>,
        stop: &AtomicBool,
    ) -> Result<Self, Error> {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        let arena =
            arena::Arena::new(air::most_frames(scenario, cell)).map_err(Error::system("no memory for frames"))?;
        let no_air = || scenario.refuse("wireless_link", "the emulator has only [wifi]");
        let network = air::network(scenario).ok_or_else(no_air)?;
        let mut engine = Engine::new(home.plan(), home.taps(), network, arena, observer(scenario), scenario.duration);
        let (sender, pulses) = mpsc::channel();
        engine.pulse_into(sender);
        engine.change(changes(scenario));
        let (capture, writer) = capture.unzip();
        if let Some(capture) = capture {
            engine.capture_into(capture);
        }
        let shared = engine.shared();
        let locked = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT);
        let work = move || {
            let mut remains = engine.run()?;
            if let Err(error) = locked {
                remains.notes.push(format!("memory is not locked ({error}): lag may be larger; needs root"));
            }
            Ok(remains)
        };
        let engine =
            thread::Builder::new().name("engine".into()).spawn(work).map_err(Error::system("cannot start a thread"))?;
        Ok(Self { shared, engine: Some(engine), pulses, writer })
    }

    fn is_over(&self) -> bool {
        self.engine.as_ref().is_none_or(JoinHandle::is_finished)
    }

    fn finish(mut self) -> Result<(Remains, Option<Writer>), Error> {
        let Some(engine) = self.engine.take() else { return Err(Error::Stopped) };
        let outcome = match engine.join() {
            Ok(outcome) => outcome.map_err(Error::system("an interface of the home cannot be read any more"))?,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        let _ = munlockall();
        Ok((outcome, self.writer.take()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(engine) = self.engine.take() {
            let _ = engine.join();
            let _ = munlockall();
        }
    }
}

/// The scenario's clock side: what happens while the engine runs.
struct Show<'a> {
    scenario: &'a Scenario,
    progress: Option<&'a mpsc::Sender<Progress>>,
    controller: Option<Controller>,
    status: Option<serde_json::Value>,
}

impl Show<'_> {
    fn watch(&mut self, running: &mut Running, stage: &Stage, stop: &AtomicBool, zero: Time) -> Result<(), Error> {
        let ask_at = zero + self.scenario.duration.saturating_sub(LAST_QUESTION);
        while !running.is_over() {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Stopped);
            }
            stage.check()?;
            if let Some(controller) = &mut self.controller {
                controller.check()?;
                if self.status.is_none() && clock::now() >= ask_at {
                    self.status = controller.status();
                }
            }
            while let Ok(pulse) = running.pulses.try_recv() {
                self.tell(pulse);
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    fn tell(&self, pulse: Pulse) {
        let Some(progress) = self.progress else { return };
        let Pulse { elapsed, recent, lag_p99 } = pulse;
        let second = Second { elapsed, total: self.scenario.duration, flows: recent, lag_p99 };
        let _ = progress.send(Progress::Second(second));
    }
}

fn observer(scenario: &Scenario) -> Observer {
    let watch = |flow| {
        let meter = flow_meter(scenario, flow, Time::ZERO);
        let transport = if flow.kind.is_elastic() { Transport::Tcp } else { Transport::Udp };
        let source = crate::address::near(flow.from, flow.to);
        let destination = crate::address::near(flow.to, flow.from);
        (Endpoints { source, destination, transport }, meter)
    };
    Observer::new(scenario.flows.iter().map(watch).collect())
}

fn changes(scenario: &Scenario) -> Vec<(Time, crate::engine::Change)> {
    let change = |change: &Change| {
        let retune = air::Retune::new(&change.after)?;
        let apply: crate::engine::Change = Box::new(move |_, network| retune.apply(network.air()));
        Some((Time::ZERO + change.at, apply))
    };
    scenario.changes.iter().filter_map(change).collect()
}

fn resolve(scenario: &Scenario, exec: Vec<(String, String)>) -> Result<Vec<(HostId, String)>, Error> {
    let find = |(name, command): (String, String)| match scenario.host(&name) {
        Some(host) => Ok((host, command)),
        None => {
            let known: Vec<_> = scenario.host_names().take(20).collect();
            Err(Error::UnknownHost { found: name, known: known.join(", ") })
        }
    };
    exec.into_iter().map(find).collect()
}

/// Programs write to our standard error: standard output is for data.
fn start_programs(home: &Home, exec: Vec<(HostId, String)>) -> Result<Vec<Program>, Error> {
    let mut programs = Vec::new();
    for (host, line) in exec {
        let mut command = Command::new("sh");
        command.args(["-c", &line]).stdin(Stdio::null());
        if let Ok(stderr) = io::stderr().as_fd().try_clone_to_owned() {
            command.stdout(Stdio::from(stderr));
        }
        programs.push(Program(home.spawn(host, command)?));
    }
    Ok(programs)
}

struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        self.0.stop(GRACE);
    }
}
