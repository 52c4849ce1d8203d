//! The control loop: every interval read what the fast path measured, decide, write plans and the heartbeat.
//!
//! Deadlines are `start + k x interval` on CLOCK_MONOTONIC: a late wake-up shifts nothing, and an interval that was
//! missed is counted and not made up for. Between deadlines the loop serves the status and waits in poll(2). In a calm home
//! it rests over some of them; the data path wakes it when bulk data begin to pass.
//! Everything it makes (links, filters, socket) goes with the [`Controller`]; after `kill -9` the kernel removes the
//! links, and where there are filters instead, the stale heartbeat turns control off within 2 s.

mod air_time_cost;
mod devices;
mod disciplines;
mod flow_queues;
mod full;
mod hops;
mod inherited;
mod journal;
mod levers;
mod links;
mod locals;
mod pauses;
mod queues;
mod reload;
mod report;
mod scales;
mod stations;
mod table;
mod udp;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lasthop_core::ap::{Action, Ap, Decision, LinkSample, StationSample, Value};
use lasthop_core::fastpath::layout::{Counters, FlowKey, FlowState, Reason, UdpState};
use lasthop_core::packet::Direction;
use lasthop_core::units::{BitRate, Span, Time};
use lasthop_status::{ConfigurationStatus, Status, command};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};

use crate::attach::{self, AttachError};
use crate::clock::now;
use crate::config::{Config, ConfigError};
use crate::confine::confine;
use crate::handover::{Heir, Host};
use crate::log::log;
use crate::maps::PlanOf;
use crate::program::{Batch, LoadError, Moved, Program, ProgramError, Wakes, Walk};
use crate::rights;
use crate::service::Service;
use crate::status::{Access, Server, ServerError};
use crate::updates::Updates;

use devices::Devices;
use disciplines::Disciplines;
use full::Full;
use hops::Hops;
use inherited::Inherited;
use journal::Journal;
use levers::Levers;
use links::Links;
use pauses::Pauses;
use queues::Queues;

pub use levers::{below_flow_queues, levers_of};
pub use queues::QueueError;
pub use reload::Reload;
use report::Totals;
use scales::Scales;
use stations::Stations;
use table::Table;
use udp::UdpTable;

/// Why a controller cannot start, or had to stop.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// The configuration does not say enough.
    #[error(transparent)]
    Config(#[from] ConfigError),
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
    /// Rights that are not needed cannot be given up.
    #[error("this process cannot give up the rights that it does not need")]
    Rights(#[source] std::io::Error),
    /// The files that it does not write cannot be shut to it.
    #[error("this process cannot be kept from writing to files that are not its own")]
    Files(#[source] landlock::RulesetError),
    /// The running controller does not hand over.
    #[error("the controller that runs here does not hand over; stop it first")]
    Handover(#[source] std::io::Error),
    /// The kernel's interface list cannot be read.
    #[error("the kernel's list of interfaces cannot be read")]
    Netlink(#[source] std::io::Error),
}

/// A running controller. Dropping it takes everything off the interfaces.
pub struct Controller {
    core: Core,
    /// None while another controller is taking over.
    server: Option<Server>,
    /// None then, too, and where no commands can be taken.
    commands: Option<Server>,
    /// Where another one may take over; none where that cannot be offered.
    host: Option<Host>,
    /// Who is told how it fares.
    service: Service,
}

/// All but the socket.
struct Core {
    // Nobody asks the data path any more before it goes.
    updates: Updates,
    // What was set is put back before anything else goes.
    levers: Levers,
    // What is held leaves before the hooks go, and they before the program.
    queues: Queues,
    links: Links,
    program: Program,
    ap: Ap,
    table: Table,
    batch: Batch<FlowState>,
    udp: UdpTable,
    udp_batch: Batch<UdpState>,
    /// Which connections moved; none where that cannot be had, and then all are read.
    moved: Option<Moved>,
    moved_keys: Vec<FlowKey>,
    /// How far the walk over all its places is, and when it went on.
    walk: Walk,
    walked: Option<Time>,
    full: Full,
    /// When the table of UDP flows was last read.
    udp_read: Option<Time>,
    /// Bulk data begin to pass.
    wakes: Wakes,
    hops: Hops,
    stations: Stations,
    disciplines: Disciplines,
    scales: Scales,
    totals: Totals,
    journal: Journal,
    devices: Devices,
    pauses: Pauses,
    config: Config,
    /// What became of reading it again.
    configuration: ConfigurationStatus,
    /// None: it is learned.
    capacity: Option<BitRate>,
    interval: Span,
    /// Time of a processor that a decision takes.
    took: Span,
    started: Time,
    inherited: Inherited,
}

/// Where another controller may take over from the one that serves its status at `socket`; without it this one works as well.
fn host(socket: &Path, journal: &mut Journal) -> Option<Host> {
    let said = |error: &std::io::Error| journal.say(now(), format!("no other controller can take over here: {error}"));
    Host::new(socket).inspect_err(said).ok()
}

/// Takes commands beside the status socket `status`; without it everything else works as well.
fn commands(status: &Path, journal: &mut Journal) -> Option<Server> {
    let said = |error: &ServerError| journal.say(now(), format!("no commands can be taken: {error}"));
    Server::of_commands(&command::path(status)).inspect_err(said).ok()
}

/// Programs around the tables of the one that hands over, where they fit; else around fresh ones.
fn inherit_tables(config: &Config, heir: &Heir, journal: &mut Journal) -> Result<Program, LoadError> {
    if heir.offer.fits(config.flows) {
        journal.say(now(), "taking over from the controller that runs here, with its connections".to_owned());
        return Program::load_with_tables(config.programs(), &heir.maps);
    }
    let why =
        if heir.offer.flows == config.flows { "its records are of another version" } else { "`flows` is another" };
    journal.say(
        now(),
        format!("taking over from the controller that runs here, with a fresh table of connections: {why}"),
    );
    Program::load(config.programs())
}

impl Controller {
    /// Loads the programs, hooks the interfaces, and opens the status socket. Of the rights of the calling thread only those are left
    /// that control needs ([`rights`]), and it writes to no files but its own ([`confine`](mod@crate::confine)); it then has to be
    /// the one that runs and drops the controller.
    ///
    /// # Errors
    /// Says what is missing and what to type; nothing is left behind.
    pub fn new(config: Config) -> Result<Self, ControllerError> {
        Self::start(config, None)
    }

    /// Makes a controller as [`Self::new`] does, but takes over from the one that serves its status at the same socket, where one does: its connections, what
    /// it has learned, and its hooks, which are never empty meanwhile. That one then ends.
    ///
    /// # Errors
    /// Those of [`Self::new`]; the other controller then goes on.
    pub fn take_over(config: Config) -> Result<Self, ControllerError> {
        let heir = Heir::find(&config.socket).map_err(ControllerError::Handover)?;
        Self::start(config, heir)
    }

    fn start(config: Config, heir: Option<Heir>) -> Result<Self, ControllerError> {
        config.check_interfaces()?;
        config.check_capacity()?;
        let capacity = config.capacity()?;
        config.check_queue()?;
        let mut journal = Journal::new(now());
        config.warnings.iter().for_each(|line| journal.warn(now(), line.clone()));
        // Of one that runs already nothing is asked before the programs are there; else the cheap refusals come first.
        let (loaded, mut inheritance) = match heir {
            None => (None, None),
            Some(heir) => {
                let program = inherit_tables(&config, &heir, &mut journal)?;
                (Some(program), Some(heir.go().map_err(ControllerError::Handover)?))
            }
        };
        // Before the claims, so that it goes after them, and with it the folder that all of them may be in.
        let server = Server::new(&config.socket, Access::of(&config.socket_group)?)?;
        let commands = commands(&config.socket, &mut journal);
        let mut links = Links::claim(&config, now())?;
        let host = host(&config.socket, &mut journal);
        let _ = attach::make_folder();
        // Forked early, so that it has as little of this process as can be.
        let levers = Levers::start(&config, now(), &mut journal);
        // Before Linux 5.11 maps count against RLIMIT_MEMLOCK; libbpf finds out and raises it.
        let program = loaded.map_or_else(|| Program::load(config.programs()), Ok)?;
        // Nothing below needs more than is kept, and threads are started below. A folder of another user, which the sockets may be
        // in, is still found with all rights.
        confine(&config.socket, server.made_folder()).map_err(ControllerError::Files)?;
        rights::settle().map_err(ControllerError::Rights)?;
        let mut core = Core {
            updates: Updates::start(&config, &program),
            levers,
            ap: Ap::new(config.params(capacity)),
            table: Table::new(&config),
            batch: Batch::default(),
            udp: UdpTable::default(),
            udp_batch: Batch::default(),
            moved: program.moved().ok(),
            moved_keys: Vec::new(),
            walk: Walk::default(),
            walked: None,
            full: Full::default(),
            udp_read: None,
            wakes: program.wakes()?,
            hops: Hops::default(),
            stations: Stations::new(),
            disciplines: Disciplines::new(&config),
            scales: Scales::new(now()),
            totals: Totals::new(now()),
            capacity,
            interval: config.interval(),
            took: Span::ZERO,
            started: now(),
            links: {
                // The first packet already meets a living controller.
                program.control().set_dry_run(config.dry_run || !config.windows);
                program.control().heartbeat(now());
                program.control().set_tick(SENDERS_TICK);
                links.attach(now(), &program, inheritance.as_mut(), &mut journal)?;
                links
            },
            queues: Queues::new(&config, capacity),
            inherited: Inherited::default(),
            program,
            journal,
            devices: Devices::default(),
            pauses: Pauses::default(),
            configuration: ConfigurationStatus::default(),
            config,
        };
        if let Some(inheritance) = inheritance {
            core.resume(&inheritance.offer);
            inheritance.taken().map_err(ControllerError::Handover)?;
        }
        core.ap.set_window_updates(core.updates.status().on);
        core.announce();
        core.follow_ports(now());
        core.disciplines.refresh(now(), true, &mut core.journal);
        core.queues.put(now(), &core.links.present(), &core.program, &mut core.journal)?;
        core.apply(now());
        Ok(Self { core, server: Some(server), commands, host, service: Service::default() })
    }

    /// From [`Self::run`] on this service manager is told how it fares.
    pub fn set_service(&mut self, service: Service) {
        self.service = service;
    }

    /// Decides until `stop` is set, or another controller has taken over. A signal handler that sets it also ends the wait. What the
    /// kernel refuses is counted.
    pub fn run(&mut self, stop: &AtomicBool) {
        let never = AtomicBool::new(false);
        self.run_and_reload(stop, &Reload { asked: &never, read: &|| Err("it is in no file".to_owned()) });
    }

    /// The same, and takes another configuration whenever `reload` is asked for.
    pub fn run_and_reload(&mut self, stop: &AtomicBool, reload: &Reload<'_>) {
        let mut deadline = now() + self.core.interval;
        let mut rests = false;
        self.service.ready(&self.core.line());
        while !stop.load(Ordering::Relaxed) {
            let is_ready = self.wait(deadline);
            let woken = now();
            if is_ready && self.core.wakes.take() {
                // The next one, of all that it rests over.
                deadline = deadline - self.core.interval * intervals(deadline.since(woken), self.core.interval);
            }
            self.reload(woken, reload);
            self.core.follow_links(woken, is_ready);
            if let Some(server) = self.server.as_mut().filter(|server| is_ready || server.has_clients()) {
                server.serve(woken, |_| serde_json::to_vec_pretty(&self.core.status()).unwrap_or_default());
            }
            if let Some(server) = self.commands.as_mut().filter(|server| is_ready || server.has_clients()) {
                server.serve(woken, |line| self.core.obey(woken, line));
            }
            if is_ready && self.hand_over() {
                log("another controller has taken over; leaving everything to it");
                self.service.stopping();
                return;
            }
            if woken < deadline {
                continue;
            }
            if rests && !self.core.is_calm(woken) {
                // What bulk data shows is shown by the interval that it came in.
                self.core.ap.begin_interval(deadline - self.core.interval);
            }
            self.core.decide(woken);
            self.service.on_decision(woken, || self.core.line());
            let interval = self.core.interval;
            let behind = intervals(now().since(deadline), interval);
            self.core.totals.missed += behind;
            deadline += interval * (behind + 1);
            rests = self.core.is_calm(now());
            if rests {
                deadline = rests_until(deadline, interval, self.core.longest_rest());
            }
            self.core.program.control().set_silent(deadline + interval);
        }
        log("stopping: taking everything off the interfaces");
        self.service.stopping();
        self.core.updates.stop(&self.core.program);
    }

    /// What it sees and does now.
    #[must_use]
    pub fn status(&mut self) -> Status {
        self.core.status()
    }

    /// Where the status is served.
    #[must_use]
    pub fn socket(&self) -> &PathBuf {
        &self.core.config.socket
    }

    /// Makes whoever wants to take over the offer, and when it is ready lets it; true when it has.
    fn hand_over(&mut self) -> bool {
        let Some(host) = &mut self.host else { return false };
        let core = &self.core;
        if !host.serve(|| Ok((core.offer(), core.program.tables()?))) {
            return false;
        }
        log("another controller is taking over");
        let core = &mut self.core;
        core.updates.stop(&core.program);
        core.queues.take_off();
        core.levers.take_off(&core.program);
        (self.server, self.commands) = (None, None);
        let hooks = core.links.hooks();
        let control = core.program.control();
        if host.hand_over(&hooks, || control.heartbeat(now())) {
            drop(hooks);
            core.links.leave();
            return true;
        }
        drop(hooks);
        self.go_on();
        false
    }

    /// Whoever wanted to take over is gone.
    fn go_on(&mut self) {
        let core = &mut self.core;
        let line = "it did not take over: going on";
        core.journal.say(now(), line.to_owned());
        if !core.links.claim_again() {
            core.journal.say(now(), "an interface has been claimed by another controller".to_owned());
        }
        core.updates = Updates::start(&core.config, &core.program);
        core.ap.set_window_updates(core.updates.status().on);
        // Its rights are gone that giving the socket to a group takes.
        match Server::new(&core.config.socket, Access::Owner) {
            Ok(server) => self.server = Some(server),
            Err(error) => core.journal.say(now(), format!("{error}")),
        }
        self.commands = commands(&core.config.socket, &mut core.journal);
        // The other one may have put a socket of its own in the place of ours.
        self.host = None;
        self.host = host(&core.config.socket, &mut core.journal);
    }

    /// True when somebody wants something, or may.
    fn wait(&mut self, deadline: Time) -> bool {
        let deadline = self.core.links.deadline().map_or(deadline, |soon| deadline.min(soon));
        let left = deadline.since(now()).as_nanos();
        let timeout = Timespec { tv_sec: (left / 1_000_000_000) as _, tv_nsec: (left % 1_000_000_000) as _ };
        let woken = now();
        let servers = self.server.iter().chain(&self.commands).flat_map(|server| server.waits_for(woken));
        let others = self.core.links.waits_for().chain(self.host.iter().flat_map(|host| host.waits_for(woken)));
        let others = others.chain(std::iter::once(self.core.wakes.waits_for()));
        let waited_for = servers.chain(others.map(|fd| (fd, PollFlags::IN)));
        let mut waits: Vec<_> = waited_for.map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)).collect();
        match poll(&mut waits, Some(&timeout)) {
            // Interrupted: the caller's flag may be set.
            Ok(ready) => ready > 0,
            Err(rustix::io::Errno::INTR) => true,
            // No memory to wait for anybody: whoever it is is asked at the deadline.
            Err(_) => {
                self.core.totals.failures += 1;
                std::thread::sleep(Duration::from_nanos(left));
                true
            }
        }
    }
}

impl Core {
    /// Hooks what came and lets go what went, when somebody told that something did, or it is time to look.
    fn follow_links(&mut self, now: Time, is_ready: bool) {
        if let Some(choice) = self.links.choose(now, is_ready) {
            // What is held leaves before the hooks go.
            self.queues.follow(now, &choice.ports, &mut self.journal);
            self.links.follow(now, choice, &self.program, &mut self.journal);
            self.follow_ports(now);
        }
        if let Some(changes) = self.links.locals(now) {
            self.totals.failures += self.program.set_locals(&changes.added, &changes.removed, changes.all);
        }
    }

    /// Whoever has to know which interfaces are hooked is told.
    fn follow_ports(&mut self, now: Time) {
        let ports = self.links.ports();
        self.queues.follow(now, &ports, &mut self.journal);
        self.ap.set_duplex(self.config.duplex.of(self.queues.radios()));
        let waited_for = self.hops.follow(self.queues.duplexes(), &self.program);
        self.totals.failures += u64::from(!waited_for);
        self.disciplines.follow(ports.into_iter().filter(|port| port.ifindex.is_some()).map(|port| port.name));
    }

    /// One interval.
    fn decide(&mut self, now: Time) {
        self.follow_pauses(now);
        let begun = used();
        self.program.control().heartbeat(now);
        let are_counted = self.links.look(now, &self.program, &mut self.journal);
        if let Some(line) = self.updates.check(&self.program) {
            self.ap.set_window_updates(false);
            self.journal.say(now, line);
        }
        let counters = self.program.counters().ok();
        self.totals.failures += u64::from(counters.is_none());
        let counters = counters.unwrap_or(self.totals.counters);
        // In a calm home nothing fills a queue.
        let moves = counters.ip_bytes != self.totals.counters.ip_bytes && !self.is_calm(now);
        let looked = [self.stations.refresh(now), self.disciplines.refresh(now, moves, &mut self.journal)];
        self.totals.failures += looked.into_iter().filter(|looked| !looked).count() as u64;
        let epoch = self.totals.epoch;
        let are_read = self.read_flows(now, epoch);
        // Minima of the interval that was just read end here.
        self.totals.epoch = epoch.wrapping_add(1);
        self.program.control().set_epoch(self.totals.epoch);
        if are_read {
            self.scales.ask(now, &mut self.table, &self.program);
            match self.program.remove(&self.table.take_over()) {
                Ok(forgotten) => self.table.on_forgotten(forgotten),
                Err(_) => self.totals.failures += 1,
            }
        }
        self.report_full_table(now, &counters);
        self.read_udp(now, &counters);
        let up_bytes = queues::up_bytes(&counters.ip_bytes);
        let present = self.links.present();
        let machine =
            queues::Machine { present: &present, disciplines: &self.disciplines, program: &self.program, up_bytes };
        self.totals.failures += self.queues.on_interval(now, &machine, &mut self.journal);
        self.move_levers(now, &counters);
        for (mac, rate, attempts) in self.queues.take_rates() {
            self.ap.on_station(now, &StationSample { station: stations::of(mac), rate, attempts });
        }
        let (queues, disciplines, levers) = (&self.queues, &self.disciplines, &self.levers);
        let of_port = |ifindex| queues.backlog(ifindex, disciplines);
        let fair_at = |ifindex| fair_queue(now, ifindex, levers, queues, disciplines).ok();
        let each_hop = self.hops.samples(&self.program.control().get(), &counters, disciplines, (of_port, fair_at));
        let wan_shaped = disciplines.wan_shaped();
        self.ap.on_link(now, &LinkSample { udp_bytes: counters.udp_bytes, each_hop, wan_shaped });
        self.apply(now);
        self.let_inherited_go(now);
        let took = used() - begun;
        self.took = (self.took * (TOOK_PART - 1) + took) / TOOK_PART;
        self.interval = interval_for(self.config.interval(), self.took);
        self.ap.set_interval(self.interval);
        self.account(now, counters, are_counted);
    }

    /// Shows the flows to those who decide: those that moved, and those whose turn it is to be looked at. When most moved, or it was not
    /// told which, all are read. False when the kernel refused.
    fn read_flows(&mut self, now: Time, epoch: u32) -> bool {
        self.program.control().begin_reading();
        let are_told = self.moved.as_ref().is_some_and(|moved| moved.take(&mut self.moved_keys));
        let is_cheap = self.moved_keys.len() * 2 < self.table.known() + self.config.flows as usize / BUCKETS_PER_LOOKUP;
        self.table.begin();
        let (table, who, ap, at) = (&mut self.table, (&self.stations, &self.hops), &mut self.ap, (now, epoch));
        let read = if are_told && is_cheap {
            let show = |key: &FlowKey, state: &FlowState| table.on_flow(at, key, state, who, ap);
            let read = self.program.read_some(&self.moved_keys, show);
            let walked = self.walk_on(at);
            self.table.rest(now, &mut self.ap);
            read.and(walked)
        } else {
            let read = self.program.read_flows(&mut self.batch, |key, state| table.on_flow(at, key, state, who, ap));
            if read.is_ok() {
                table.end(ap);
                self.walk = Walk::default();
            }
            read
        };
        self.totals.failures += u64::from(read.is_err());
        read.is_ok()
    }

    /// Looks at the next places of the table, so that who is over is found, and who came unheard; faster while few are left.
    fn walk_on(&mut self, at: (Time, u32)) -> Result<(), ProgramError> {
        let is_due = self.walked.is_none_or(|walked| at.0.since(walked) >= self.table.walks_every());
        if !is_due && !self.table.is_nearly_full() {
            return Ok(());
        }
        self.walked = Some(at.0);
        let (table, who, ap) = (&mut self.table, (&self.stations, &self.hops), &mut self.ap);
        let show = |key: &FlowKey, state: &FlowState| table.on_flow(at, key, state, who, ap);
        if self.program.walk_flows(&mut self.walk, &mut self.batch, show)? {
            self.table.end(&mut self.ap);
        }
        Ok(())
    }

    /// Shows what passes to whom the levers of radios are told by, and has done what that says.
    fn move_levers(&mut self, now: Time, counters: &Counters) {
        let told = self.queues.take_told();
        if !self.levers.are_wanted() {
            return;
        }
        self.table.gather_round_trips(self.levers.has_radios());
        let round_trips = self.table.take_round_trips();
        let (table, stations) = (&self.table, &self.stations);
        let mut bulk = BTreeMap::new();
        if self.levers.asks_for_bulk() && !told.is_empty() {
            for flow in self.ap.snapshot().flows.iter().filter(|flow| flow.direction == Direction::ToStation) {
                let (Some(key), Some(local)) = (table.key(flow.flow), flow.local_rtt) else { continue };
                let rtt = local + flow.remote_rtt.unwrap_or(Span::ZERO);
                let rate = flow.share.unwrap_or(flow.rate);
                let most = bulk.entry(stations.id(&key.station)).or_insert((rate, rtt));
                if rate.as_bps() as f64 * rtt.as_secs_f64() > most.0.as_bps() as f64 * most.1.as_secs_f64() {
                    *most = (rate, rtt);
                }
            }
        }
        let seen = levers::Seen {
            ports: &self.links.ports(),
            program: &self.program,
            taken_for: &levers::taken_for(self.ap.udp_flows().snapshot(), |flow| table.key(flow)),
            station: &|key| stations.id(&key.station),
            told,
            bulk: &bulk,
            round_trips,
            ip_bytes: counters.ip_bytes,
        };
        self.totals.failures += self.levers.on_interval(now, seen, &mut self.journal);
    }

    fn report_full_table(&mut self, now: Time, counters: &Counters) {
        let packets = counters.reason[Reason::TableFull as usize];
        let take = || self.program.refused().take();
        if let Some(line) = self.full.on_interval(now, packets, self.config.flows, take) {
            self.journal.say(now, line);
        }
    }

    /// Does what the deciding half wants done.
    fn apply(&mut self, now: Time) {
        let mut plans = Vec::new();
        while let Some(action) = self.ap.poll(now) {
            match action {
                Action::SetUdpPlan { flow, direction, plan } => {
                    let Some(key) = self.table.key(flow) else { continue };
                    match self.program.set_udp_plan(&key, direction, plan) {
                        Ok(()) | Err(ProgramError::NoSuchFlow) => self.totals.plans += 1,
                        Err(_) => self.totals.failures += 1,
                    }
                }
                // In a dry run nobody is told a window, so that what is in flight says nothing of it.
                Action::SetScale { .. } if self.config.dry_run => {}
                Action::SetScale { flow, direction, scale } => {
                    let Some(key) = self.table.key(flow) else { continue };
                    match self.program.set_scale(&key, direction, scale) {
                        Ok(()) | Err(ProgramError::NoSuchFlow) => {}
                        Err(_) => self.totals.failures += 1,
                    }
                }
                Action::SetDefault { direction, plan } => self.program.control().set_default_plan(direction, plan),
                Action::SetStart { direction, depth_bytes, rate_bytes } => {
                    self.program.control().set_start(direction, depth_bytes, rate_bytes);
                }
                Action::Say(decision) => {
                    let would = if self.config.dry_run { "dry run, nothing is changed: " } else { "" };
                    let (whose, mut values) = (self.whose(&decision), decision.values());
                    let line = match &whose {
                        Some(flow) => format!("{would}{decision} ({flow})"),
                        None => format!("{would}{decision}"),
                    };
                    values.extend(whose.map(|flow| ("flow", Value::Text(flow))));
                    values.extend(self.config.dry_run.then_some(("dry_run", Value::Flag(true))));
                    self.journal.decided(now, line, decision.name(), &values);
                }
                Action::SetPlan { flow, direction, plan } => {
                    let Some(key) = self.table.key(flow) else { continue };
                    self.inherited.replaced(&key, direction);
                    plans.push(PlanOf::new(key, direction, plan));
                }
            }
        }
        // Who was forgotten since he was read has none.
        let waited_for = self.program.set_plans(&plans).is_ok();
        *(if waited_for { &mut self.totals.plans } else { &mut self.totals.failures }) += plans.len() as u64;
    }

    /// Which flow a decision is about, by its addresses.
    fn whose(&self, decision: &Decision) -> Option<String> {
        match decision {
            Decision::Behaviour { flow, direction, .. } | Decision::Steer { flow, direction, .. } => {
                Some(report::text(self.table.names.key(*flow)?, *direction))
            }
            _ => None,
        }
    }

    /// How long it may rest in a calm home: less while a trial compares what packets wait.
    fn longest_rest(&self) -> Span {
        if self.levers.are_tried() { LONGEST_INTERVAL } else { CALM }
    }

    /// No large packet has passed of late.
    fn is_calm(&self, now: Time) -> bool {
        now.since(self.program.last_large()) >= CALM
    }

    /// Shows the table of UDP flows; while it is empty and no UDP passes that could be in it, all of which is large, once a second.
    fn read_udp(&mut self, now: Time, counters: &Counters) {
        let passes = counters.udp_bytes != self.totals.counters.udp_bytes && !self.is_calm(now);
        let is_silent = self.udp.is_empty() && !passes;
        if is_silent && self.udp_read.is_some_and(|read| now.since(read) < Span::from_secs(1)) {
            return;
        }
        self.udp_read = Some(now);
        self.udp.begin(self.program.udp_places());
        let who = (&self.stations, &self.hops);
        let (udp, names, ap) = (&mut self.udp, &mut self.table.names, &mut self.ap);
        let read = self.program.read_udp_flows(&mut self.udp_batch, |key, state| {
            udp.on_flow(now, (key, state), who, names, ap);
        });
        let elastic = Direction::BOTH.map(|direction| self.ap.udp_flows().elastic_bytes(direction));
        self.totals.elastic_bytes += elastic.iter().sum::<u64>();
        if read.is_ok() {
            self.udp.end(&mut self.table.names, &mut self.ap);
        }
        let forgotten = self.udp.take_forgotten();
        let refused = forgotten.iter().filter(|key| self.program.delete_udp(key).is_err()).count();
        self.totals.failures += u64::from(read.is_err()) + refused as u64;
    }

    fn account(&mut self, now: Time, counters: Counters, are_counted: bool) {
        let took = self::now().since(now);
        let controllable = self.table.controllable_bytes() + self.totals.elastic_bytes;
        let directions = self.ap.directions();
        self.totals.places = directions.map(|direction| direction.place);
        if self.capacity.is_none() {
            self.queues.on_learned(&directions);
        }
        self.updates.on_capacities(&self.program, directions.map(|direction| direction.capacity));
        self.totals.on_interval(now, counters, controllable, &directions, took, self.config.udp_weight);
        if are_counted {
            self.totals.on_interface_bytes(now, self.links.ip_bytes(), self.links.joins_hooked_ports());
        }
        if let Some(line) = self.summary(now) {
            log(&line);
        }
    }

    fn announce(&self) {
        let mode = if self.config.dry_run { " (dry run: says what it would do, and changes nothing)" } else { "" };
        let capacity = self.capacity.map_or_else(
            || "at what the last hop carries, to be learned (until then nothing is held),".to_owned(),
            |capacity| format!("at {}", capacity.rounded()),
        );
        log(&format!(
            "controlling {} {capacity} every {}{mode}; status at {}",
            self.links.describe(),
            self.interval.rounded(),
            self.config.socket.display()
        ));
    }
}

/// The kernel walks all of a table's buckets when it is read whole: as many as this take as long as looking up half a connection.
const BUCKETS_PER_LOOKUP: usize = 75;
/// A controller takes no more than a twentieth of a processor: after a decision it rests so many times as long as that took.
const REST: u64 = 20;
/// However much there is to decide.
const LONGEST_INTERVAL: Span = Span::from_millis(200);
/// Tick of most senders' timestamp clocks: Linux, macOS, FreeBSD and Windows have 1 ms (RFC 7323 section 5.4: 1 ms to 1 s).
const SENDERS_TICK: Span = Span::from_millis(1);
/// A home has been calm for so long when no large packet has passed: longer than a round trip, which a sender that knows none takes
/// to be a second (RFC 6298 section 2), so that a decision is followed until what it did has come back. Then it rests for as long.
const CALM: Span = Span::from_secs(1);
/// Weight of the newest decision in how long one takes.
const TOOK_PART: u64 = 8;

/// What may wait below mac80211's flow queues at an interface, and what waits in them, bytes, where downloads are left to them; else why not.
fn fair_queue(
    now: Time,
    ifindex: u32,
    levers: &Levers,
    queues: &Queues,
    disciplines: &Disciplines,
) -> Result<(Span, u64), &'static str> {
    let below = levers.fair_queue(ifindex)?;
    if queues.is_before_driver(ifindex, disciplines) {
        return Err("a queue discipline queues before its own queue");
    }
    let waits = queues.flow_queues().waits(now, ifindex);
    Ok((below, waits.ok_or("its driver does not tell what waits for its stations")?))
}

/// Time to the next decision, where one takes so much time of a processor.
fn interval_for(usual: Span, took: Span) -> Span {
    usual.max((took * REST).min(LONGEST_INTERVAL))
}

/// Whole intervals of a time.
fn intervals(time: Span, interval: Span) -> u64 {
    time.as_nanos() / interval.as_nanos()
}

/// Where a calm home is decided about next, instead of at the next deadline: when it has rested so long.
fn rests_until(next: Time, interval: Span, rest: Span) -> Time {
    next + interval * (rest - interval).as_nanos().div_ceil(interval.as_nanos())
}

/// Time of a processor that this thread has used.
fn used() -> Span {
    let t = clock_gettime(ClockId::ThreadCPUTime);
    Span::from_nanos(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_rests_over_deadlines_and_shifts_none() {
        let (at, span) = (|ms| Time::ZERO + Span::from_millis(ms), Span::from_millis);
        for (interval, [tried, calm]) in
            [(50, [1_200, 2_000]), (150, [1_300, 2_050]), (200, [1_200, 2_000]), (1_000, [2_000, 2_000])]
        {
            let rested = [200, 1_000].map(|rest| rests_until(at(1_000 + interval), span(interval), span(rest)));
            assert_eq!(rested, [at(tried), at(calm)], "{interval}");
        }
    }

    #[test]
    fn it_decides_less_often_the_longer_a_decision_takes() {
        let usual = Span::from_millis(50);
        for (us, expected) in [(0, 50), (2_500, 50), (5_000, 100), (10_000, 200), (60_000, 200)] {
            assert_eq!(interval_for(usual, Span::from_micros(us)), Span::from_millis(expected), "{us}");
        }
        assert_eq!(interval_for(Span::from_secs(1), Span::from_secs(60)), Span::from_secs(1));
    }
}
