//! The control loop: every interval read what the fast path measured, decide, write plans and the heartbeat.
//!
//! Deadlines are `start + k x interval` on CLOCK_MONOTONIC: a late wake-up shifts nothing, and an interval that was
//! missed is counted and not made up for. Between deadlines the loop serves the status and waits in poll(2).
//! Everything it makes (links, filters, socket) goes with the [`Controller`]; after `kill -9` the kernel removes the
//! links, and where there are filters instead, the stale heartbeat turns control off within 2 s.

mod air;
mod journal;
mod links;
mod queues;
mod report;
mod scales;
mod table;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use lasthop_core::ap::{Action, Ap, LinkSample};
use lasthop_core::fastpath::layout::Counters;
use lasthop_core::units::{BitRate, Span, Time};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};

use crate::attach::AttachError;
use crate::config::{Config, ConfigError};
use crate::interface::InterfaceName;
use crate::program::{LoadError, LoadOptions, Program, ProgramError};
use crate::status::{Server, ServerError, Status};

use journal::Journal;
use links::Links;
use queues::Queues;

pub use queues::QueueError;
use report::Totals;
use scales::Scales;
use table::Table;

/// Why a controller cannot start, or had to stop.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// The configuration does not say enough.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// No interface was named.
    #[error("no LAN interface is named; write --lan DEV, or `lan = [\"wlan0\"]` in the configuration")]
    NoInterface,
    /// An interface does not exist.
    #[error("there is no interface {0}; `ip link` lists those that exist")]
    NoSuchInterface(InterfaceName),
    /// An interface cannot be hooked.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// An interface cannot have the queue discipline.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// BPF is not available.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The status cannot be served.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The kernel's interface list cannot be read.
    #[error("the kernel's list of interfaces cannot be read")]
    Netlink(#[source] std::io::Error),
    /// Waiting failed.
    #[error("waiting for the next interval failed")]
    Wait(#[source] std::io::Error),
}

/// Now, as `bpf_ktime_get_ns` tells it.
#[must_use]
pub fn now() -> Time {
    let t = clock_gettime(ClockId::Monotonic);
    Time::from_nanos(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
}

/// A running controller. Dropping it takes everything off the interfaces.
pub struct Controller {
    core: Core,
    server: Server,
}

/// All but the socket.
struct Core {
    // What is held leaves before the hooks go, and they before the program.
    queues: Queues,
    links: Links,
    program: Program,
    ap: Ap,
    table: Table,
    scales: Scales,
    totals: Totals,
    journal: Journal,
    config: Config,
    /// None: it is learned.
    capacity: Option<BitRate>,
    interval: Span,
    started: Time,
}

impl Controller {
    /// Loads the programs, hooks the interfaces, and opens the status socket.
    ///
    /// # Errors
    /// Says what is missing and what to type; nothing is left behind.
    pub fn new(config: Config) -> Result<Self, ControllerError> {
        if config.lan.is_empty() {
            return Err(ControllerError::NoInterface);
        }
        config.check_capacity()?;
        let capacity = config.capacity()?;
        config.check_queue()?;
        // The cheap refusals first: interfaces, then the socket, then BPF.
        let mut links = Links::claim(&config)?;
        let server = Server::new(&config.socket)?;
        // Before Linux 5.11 maps count against RLIMIT_MEMLOCK; libbpf finds out and raises it.
        let program = Program::load(LoadOptions { flows: config.flows })?;
        let mut journal = Journal::new(now());
        let mut core = Core {
            ap: Ap::new(config.params(capacity)),
            table: Table::new(&config),
            scales: Scales::new(),
            totals: Totals::new(now()),
            capacity,
            interval: config.interval(),
            started: now(),
            links: {
                // The first packet already meets a living controller.
                program.control().set_dry_run(config.dry_run || !config.windows);
                program.control().heartbeat(now());
                links.attach(&program, &mut journal)?;
                links
            },
            queues: Queues::new(&config, capacity),
            program,
            journal,
            config,
        };
        core.announce();
        core.queues.put(now(), &core.links.present(), &core.program, &mut core.journal)?;
        core.apply(now());
        Ok(Self { core, server })
    }

    /// Decides until `stop` is set. A signal handler that sets it also ends the wait.
    ///
    /// # Errors
    /// Only when waiting itself fails; refused reads and writes are counted.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<(), ControllerError> {
        let interval = self.core.interval;
        let mut deadline = now() + interval;
        while !stop.load(Ordering::Relaxed) {
            self.wait(deadline)?;
            let woken = now();
            self.server.serve(woken, || serde_json::to_vec(&self.core.status()).unwrap_or_default());
            if woken < deadline {
                continue;
            }
            self.core.decide(woken);
            let behind = now().since(deadline).as_nanos() / interval.as_nanos();
            self.core.totals.missed += behind;
            deadline += interval * (behind + 1);
        }
        log("stopping: taking everything off the interfaces");
        Ok(())
    }

    /// What it sees and does now.
    #[must_use]
    pub fn status(&self) -> Status {
        self.core.status()
    }

    /// Where the status is served.
    #[must_use]
    pub fn socket(&self) -> &PathBuf {
        &self.core.config.socket
    }

    fn wait(&self, deadline: Time) -> Result<(), ControllerError> {
        let left = deadline.since(now()).as_nanos();
        let timeout = Timespec { tv_sec: (left / 1_000_000_000) as _, tv_nsec: (left % 1_000_000_000) as _ };
        let (listener, clients) = self.server.waits_for();
        let mut waits: Vec<PollFd<'_>> = clients.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::OUT)).collect();
        waits.extend(listener.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        match poll(&mut waits, Some(&timeout)) {
            // Interrupted: the caller's flag may be set.
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(ControllerError::Wait(error.into())),
        }
    }
}

impl Core {
    /// One interval.
    fn decide(&mut self, now: Time) {
        self.program.control().heartbeat(now);
        self.links.refresh(now, &self.program, &mut self.journal);
        let counters = self.read(Program::counters).unwrap_or(self.totals.counters);
        let flows = self.read(Program::flows);
        // Minima of the interval that was just read end here.
        let epoch = self.totals.epoch;
        self.totals.epoch = epoch.wrapping_add(1);
        self.program.control().set_epoch(self.totals.epoch);
        if let Some(flows) = flows {
            self.table.on_flows(now, epoch, &flows, &mut self.ap);
            self.scales.ask(now, &mut self.table, &self.program);
            for key in self.table.take_forgotten() {
                if self.program.delete(&key).is_err() {
                    self.totals.failures += 1;
                }
            }
        }
        let up_bytes = queues::up_bytes(&counters.ip_bytes);
        let present = self.links.present();
        self.totals.failures += self.queues.on_interval(now, &present, up_bytes, &self.program, &mut self.journal);
        self.ap.on_link(now, &LinkSample { udp_bytes: counters.udp_bytes, ..LinkSample::default() });
        self.apply(now);
        self.account(now, counters);
    }

    fn read<T>(&mut self, what: impl FnOnce(&Program) -> Result<T, ProgramError>) -> Option<T> {
        let outcome = what(&self.program).ok();
        self.totals.failures += u64::from(outcome.is_none());
        outcome
    }

    /// Does what the deciding half wants done.
    fn apply(&mut self, now: Time) {
        while let Some(action) = self.ap.poll(now) {
            match action {
                Action::SetDefault { direction, plan } => self.program.control().set_default_plan(direction, plan),
                Action::Say(decision) => self.journal.say(now, decision.to_string()),
                Action::SetPlan { flow, direction, plan } => {
                    let Some(key) = self.table.key(flow) else { continue };
                    match self.program.set_plan(&key, direction, plan) {
                        // Pushed out since it was read: the next look will tell.
                        Ok(()) | Err(ProgramError::NoSuchFlow) => self.totals.plans += 1,
                        Err(_) => self.totals.failures += 1,
                    }
                }
            }
        }
    }

    fn account(&mut self, now: Time, counters: Counters) {
        let took = self::now().since(now);
        let controllable = self.table.controllable_bytes();
        let snapshot = self.ap.snapshot();
        if self.capacity.is_none() {
            self.queues.on_learned(&snapshot.directions);
        }
        self.totals.on_interval(now, counters, controllable, &snapshot, took, self.config.udp_weight);
        self.totals.on_interface_bytes(now, self.links.ip_bytes());
        if let Some(line) = self.totals.summary(now, &snapshot) {
            log(&line);
        }
    }

    fn announce(&self) {
        let mode = if self.config.dry_run { " (dry run: says what it would do, and changes nothing)" } else { "" };
        let capacity = self.capacity.map_or_else(
            || "at what the last hop carries, to be learned (until then nothing is held),".to_owned(),
            |capacity| format!("at {capacity}"),
        );
        log(&format!(
            "controlling {} {capacity} every {}{mode}; status at {}",
            self.links.describe(),
            self.interval,
            self.config.socket.display()
        ));
    }
}

/// One line for whoever watches; never called per packet.
fn log(line: &str) {
    eprintln!("lasthop: {line}");
}
