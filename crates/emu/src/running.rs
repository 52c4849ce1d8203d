//! The engine on its thread.

use crate::engine::{Change, Engine, Offers, ProgressCheck, Remains, Shared};
use crate::error::Error;
use crate::home::Home;
use crate::observe::Observer;
use crate::observe::identify::{Endpoints, Transport};
use crate::record::{Recording, Writers};
use crate::{address, arena, medium};
use lasthop_core::units::{Span, Time};
use lasthop_home::clamp::ClampControl;
use lasthop_home::course::{MOST_FLOWS, Stretches};
use lasthop_home::report::{FlowMeter, flow_meter};
use lasthop_home::retune::Retune;
use lasthop_home::scenario::{self, Flow, HostId, Kind, Scenario};
use rustix::mm::{MlockAllFlags, mlockall, munlockall};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How often a stop is looked for while the start is waited for.
const LOOK: Duration = Duration::from_millis(20);

/// The engine on its thread. Dropping it ends it.
pub struct Running {
    /// How to start it.
    pub shared: Arc<Shared>,
    engine: Option<JoinHandle<io::Result<Remains>>>,
    /// One a second.
    pub pulses: mpsc::Receiver<ProgressCheck>,
    plays: mpsc::Receiver<()>,
    writers: Option<Writers>,
}

impl Running {
    /// Starts the thread, which waits for the start of the scenario. `is_open_ended`: it may end before `measure_from`.
    ///
    /// # Errors
    /// [`Error::Stopped`], or what could not be had.
    pub fn start(
        scenario: &Scenario,
        home: &Home,
        recording: Recording,
        (offers, is_open_ended): (Offers, bool),
        stop: &AtomicBool,
    ) -> Result<Self, Error> {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        let arena = arena::Arena::new(medium::most_frames(scenario)).map_err(Error::system("no memory for frames"))?;
        let network = medium::network(scenario);
        let mut observer = observer(scenario, recording.wants_course());
        if is_open_ended && scenario.measure_from > Span::ZERO {
            let from_start = measured_from_start(scenario);
            let meters = from_start.flows.iter().enumerate();
            observer.measure_whole(meters.map(|(i, flow)| meter(&from_start, i, flow, recording.wants_course())));
        }
        let mut engine = Engine::new(home.plan(), home.taps(), network, arena, observer, scenario.duration);
        let (sender, pulses) = mpsc::channel();
        engine.progress_into(sender);
        let (start, plays) = mpsc::channel();
        engine.tell_start(start);
        engine.change(changes(scenario));
        if let Some(wanted) = &scenario.control.clamp {
            engine.clamp(ClampControl::new(scenario, wanted), offers);
        }
        if recording.wants_course() {
            engine.keep_queue(Stretches::new(scenario.duration));
        }
        let writers = Some(recording.attach(&mut engine));
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
        Ok(Self { shared, engine: Some(engine), pulses, plays, writers })
    }

    /// Returns once frames move between the hosts: those that are sent before the scenario starts are thrown away.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    pub fn wait_until_it_plays(&self, stop: &AtomicBool) -> Result<(), Error> {
        loop {
            match self.plays.recv_timeout(LOOK) {
                Err(mpsc::RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => return Err(Error::Stopped),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                // An engine that is gone says why when it is finished.
                Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }

    /// Whether the scenario is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.engine.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// What it leaves behind, once it is over.
    ///
    /// # Errors
    /// An interface that could not be read any more.
    pub fn finish(mut self) -> Result<(Remains, Option<Writers>), Error> {
        let Some(engine) = self.engine.take() else { return Err(Error::Stopped) };
        let outcome = match engine.join() {
            Ok(outcome) => outcome.map_err(Error::system("an interface of the home cannot be read any more"))?,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        let _ = munlockall();
        Ok((outcome, self.writers.take()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        let Some(engine) = self.engine.take() else { return };
        let remains = engine.join();
        let _ = munlockall();
        // What was recorded until now stays readable.
        if let (Ok(Ok(mut remains)), Some(writers)) = (remains, self.writers.take()) {
            let _ = writers.finish(&mut remains);
        }
    }
}

/// The same scenario with everything in its figures.
pub fn measured_from_start(scenario: &Scenario) -> Scenario {
    Scenario { measure_from: Span::ZERO, ..scenario.clone() }
}

fn observer(scenario: &Scenario, with_course: bool) -> Observer {
    let watch = |(i, flow): (usize, &Flow)| {
        let meter = meter(scenario, i, flow, with_course);
        let transport = match flow.kind {
            Kind::Quic(_) => Transport::Quic,
            _ if flow.tcp().is_some() => Transport::Tcp,
            _ => Transport::Udp,
        };
        // Of a split connection the half that ends at its receiver.
        let is_split = scenario.is_split(flow);
        let from = if is_split { HostId::AccessPoint } else { flow.from };
        let source = address::near(from, flow.to);
        let destination = address::near(flow.to, flow.from);
        (Endpoints { source, destination, transport, is_realtime: flow.kind.is_realtime() }, meter)
    };
    Observer::new(scenario.flows.iter().enumerate().map(watch).collect())
}

/// The meter of flow `i`.
fn meter(scenario: &Scenario, i: usize, flow: &Flow, with_course: bool) -> FlowMeter {
    let mut meter = flow_meter(scenario, flow, Time::ZERO);
    if with_course && i < MOST_FLOWS {
        meter.keep_course(scenario.duration);
    }
    meter
}

fn changes(scenario: &Scenario) -> Vec<(Time, Change)> {
    let change = |change: &scenario::Change| -> (Time, Change) {
        let retune = Retune::new(&change.after);
        (Time::ZERO + change.at, Box::new(move |_, network| retune.apply(network.medium())))
    };
    scenario.changes.iter().map(change).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    /// A machine that is busy wakes the engine after the players: a connection whose first packet it threw away would begin a second late.
    #[test]
    fn an_engine_that_wakes_late_carries_what_was_sent_since_the_start() {
        if !rustix::process::geteuid().is_root() || !std::path::Path::new("/dev/net/tun").exists() {
            eprintln!("SKIPPED: needs root and /dev/net/tun");
            return;
        }
        let text = "format = 1\nname = \"late\"\nduration = \"0.5s\"\n[wan]\n[[server]]\nname = \"W\"\n[wifi]\n[[station]]\nname = \"N\"\n\
                    [[flow]]\nname = \"up\"\nfrom = \"N\"\nto = \"W\"\nkind = \"game-client\"\n";
        let scenario = Scenario::parse(text, "test.toml", &[]).unwrap();
        let home = Home::new(&scenario).unwrap();
        let (station, server) = (HostId::Station(0), HostId::Server(0));
        let bound = |host| UdpSocket::bind((home.address(host), 9)).map_err(Error::system("cannot bind"));
        let socket = |host| home.namespace(host).run(|| bound(host)).unwrap();
        let (from, to) = (socket(station), socket(server));
        let arena = arena::Arena::new(medium::most_frames(&scenario)).unwrap();
        let network = medium::network(&scenario);
        let observer = observer(&scenario, false);
        let engine = Engine::new(home.plan(), home.taps(), network, arena, observer, scenario.duration);
        engine.shared().zero_ns.store(crate::clock::now().as_nanos(), Ordering::Release);
        from.send_to(b"first", (home.address(server), 9)).unwrap();
        engine.run().unwrap();
        to.set_nonblocking(true).unwrap();
        let mut bytes = [0; 16];
        assert_eq!(to.recv(&mut bytes).map(|len| bytes[..len].to_vec()).unwrap(), b"first");
    }
}
