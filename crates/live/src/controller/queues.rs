//! The queues of the LAN interfaces: put there, told every interval, put back.
//!
//! What all traffic may use of the last hop is `capacity`, both directions together where they share it (radio). Only
//! what goes to the stations passes a queue here, so its pace is what is left of the capacity by the other direction:
//!
//! `pace = max(C - up C / C_up, C / 5)`   [bit/s], up low-pass filtered; on a full-duplex wire `pace = C`
//!
//! With C the capacity that was given, or what is released of the one that is learned ([`release`]); C_up is what the other
//! direction alone would carry.

mod keeper;
mod queue;
mod release;

use lasthop_core::ap::{self, DirectionSnapshot};
use lasthop_core::packet::Direction;
use lasthop_core::snoop;
use lasthop_core::units::{BitRate, Span, Time};

use super::ControllerError;
use super::air_time_cost::Drivers;
use super::disciplines::Disciplines;
use super::flow_queues::FlowQueues;
use super::journal::Journal;
use super::links::Present;
use crate::config::{Config, Datapath, Duplex, Queueing};
use crate::ports::Port;
use crate::program::Program;
use crate::qdisc::layout::PacketCost;
use crate::qdisc::{self, Settings};
use crate::stations::{Mac, Station};
use keeper::Keeper;
use lasthop_status::{KnobStatus, QueueStatus, StationStatus};
use queue::{GivenUp, Queue};
use release::Release;

pub use keeper::QueueError;

/// Weight of the newest sample of what goes up.
const WEIGHT: f64 = 0.2;
/// What the stations' side keeps whatever goes up: its queue must not stand still.
const LEAST: u64 = 5;

pub(super) struct Queues {
    /// None: the kernel's own disciplines stay.
    wanted: Option<Wanted>,
    release: Release,
    list: Vec<Queue>,
    up: Option<(Time, u64)>,
    up_bps: f64,
    drivers: Drivers,
    packet_time: Span,
    /// What the drivers have told since it was taken.
    rates: Vec<(Mac, BitRate, f64)>,
    /// The same, as they told it, with the interface.
    told: Vec<(u32, Station)>,
    flow_queues: FlowQueues,
    /// What a dry run would put there.
    would: Option<Queueing>,
    duplex: Duplex,
}

/// What the machine is like in an interval.
pub(super) struct Machine<'a> {
    /// Each interface that is there and hooked, as they were told last.
    pub(super) present: &'a [Option<Present>],
    pub(super) disciplines: &'a Disciplines,
    pub(super) program: &'a Program,
    /// IP bytes that stations have sent.
    pub(super) up_bytes: u64,
}

/// Which queue.
#[derive(Clone, Copy)]
struct Wanted {
    queueing: Queueing,
    datapath: Datapath,
    snoop: Option<snoop::Params>,
    settings: Settings,
}

impl Queues {
    pub(super) fn new(config: &Config, capacity: Option<BitRate>) -> Self {
        let queueing = config.queue_in_force();
        let is_wanted = queueing != Queueing::Kernel && !config.dry_run;
        let snoop = config.snoop.then_some(config.snoop_params);
        let is_there = queueing != Queueing::Kernel;
        let wanted = Wanted { queueing, datapath: config.datapath, snoop, settings: config.chap };
        Self {
            wanted: is_wanted.then_some(wanted),
            release: Release::new(capacity),
            list: Vec::new(),
            up: None,
            up_bps: 0.0,
            drivers: Drivers::new(),
            packet_time: config.chap.packet_time,
            rates: Vec::new(),
            told: Vec::new(),
            flow_queues: FlowQueues::default(),
            would: (is_there && config.dry_run).then_some(queueing),
            duplex: config.duplex,
        }
    }

    /// All traffic may use so much from here on; none: as much as is learned.
    pub(super) const fn set_capacity(&mut self, capacity: Option<BitRate>) {
        self.release = Release::new(capacity);
    }

    /// From now on it is these interfaces: what is held for others is sent before they are released.
    pub(super) fn follow(&mut self, now: Time, ports: &[Port], journal: &mut Journal) {
        let mut before = std::mem::take(&mut self.list);
        for port in ports {
            let goes_on = |queue: &Queue| match port.is_named {
                true => queue.port.is_named && queue.port.name == port.name,
                false => !queue.port.is_named && queue.port.ifindex == port.ifindex,
            };
            let known = before.iter().position(goes_on).map(|at| before.remove(at));
            if let (None, Some(queueing)) = (&known, self.would) {
                let line = format!("dry run, nothing is changed: {} would get {}", port.name, keeper::name(queueing));
                journal.say(now, line);
            }
            let mut queue = known.unwrap_or_else(|| Queue::new(port));
            queue.follow(port, self.duplex);
            self.list.push(queue);
        }
    }

    /// Of each interface that is there, whether it is, or may be, a radio's.
    pub(super) fn radios(&self) -> impl Iterator<Item = bool> {
        self.list.iter().filter(|queue| queue.port.ifindex.is_some()).map(|queue| queue.is_radio)
    }

    /// Puts one on every interface that is there. One that was named and is refused is an error; the others are tried on.
    pub(super) fn put(
        &mut self,
        now: Time,
        present: &[Option<Present>],
        program: &Program,
        journal: &mut Journal,
    ) -> Result<(), ControllerError> {
        let Some(wanted) = self.wanted else { return Ok(()) };
        let rates: Vec<_> = self.list.iter().map(|queue| self.pace(queue)).collect();
        let is_known = self.release.capacity().is_some();
        for ((queue, rate), there) in self.list.iter_mut().zip(rates).zip(present) {
            let Some(there) = there else { continue };
            match queue.put(wanted, *there, program, (now, rate, is_known), journal) {
                Err(error) if queue.port.is_named => return Err(error.into()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Takes off what was put there; the next interval puts it again.
    pub(super) fn take_off(&mut self) {
        self.list.iter_mut().for_each(|queue| queue.keeper = None);
    }

    /// Every interval; how often the kernel refused something.
    pub(super) fn on_interval(&mut self, now: Time, machine: &Machine<'_>, journal: &mut Journal) -> u64 {
        let mut failures = self.ask(now, machine.present);
        let Some(wanted) = self.wanted else { return failures };
        self.on_up_bytes(now, machine.up_bytes);
        let rates: Vec<_> = self.list.iter().map(|queue| self.pace(queue)).collect();
        let is_known = self.release.capacity().is_some();
        for ((queue, rate), there) in self.list.iter_mut().zip(rates).zip(machine.present) {
            queue.keep(wanted, (now, rate, is_known), *there, machine, journal);
            let costs = queue.air_time_cost.costs(qdisc::cost(rate, wanted.settings.packet_time));
            failures += u64::from(queue.keeper.as_ref().is_some_and(|keeper| !keeper.set_pace(now, rate, costs)));
        }
        failures
    }

    /// Asks the drivers of access points what their stations' packets cost.
    fn ask(&mut self, now: Time, present: &[Option<Present>]) -> u64 {
        if !self.drivers.is_time(now) {
            return 0;
        }
        let mut failures = 0;
        self.flow_queues.follow(|ifindex| present.iter().flatten().any(|there| there.ifindex == ifindex));
        for (queue, there) in self.list.iter_mut().zip(present) {
            match self.drivers.stations(there.map(|there| there.ifindex)) {
                Ok(stations) => {
                    queue.air_time_cost.on_stations(&stations, self.packet_time);
                    self.rates.extend(queue.air_time_cost.rates());
                    if let Some(there) = there {
                        self.flow_queues.on_stations(now, there.ifindex, &stations);
                    }
                    self.told
                        .extend(there.iter().flat_map(|there| stations.iter().map(move |one| (there.ifindex, *one))));
                }
                Err(_) => failures += 1,
            }
        }
        failures
    }

    /// What the drivers have told since it was last asked for: station, rate, attempts per frame.
    pub(super) fn take_rates(&mut self) -> Vec<(Mac, BitRate, f64)> {
        std::mem::take(&mut self.rates)
    }

    /// What the drivers have told of their stations since it was last asked for, and of which interface.
    pub(super) fn take_told(&mut self) -> Vec<(u32, Station)> {
        std::mem::take(&mut self.told)
    }

    /// What waits for the stations at an interface in queues of this machine, bytes; none where no queue can be asked.
    pub(super) fn backlog(&self, ifindex: u32, disciplines: &Disciplines) -> Option<u64> {
        let here = self.list.iter().find(|queue| queue.port.ifindex == Some(ifindex));
        match here.and_then(|queue| queue.keeper.as_ref()) {
            // Packets in this process are counted, not their bytes: they are full ones while it matters.
            Some(keeper @ Keeper::User(..)) => Some(1_500 * keeper.waiting_packets()),
            _ => disciplines.root(ifindex).map(|root| root.backlog),
        }
    }

    /// As if a driver had told.
    #[cfg(test)]
    pub(super) fn tell(&mut self, now: Time, ifindex: u32, stations: &[Station]) {
        self.flow_queues.on_stations(now, ifindex, stations);
    }

    /// What waits behind that, in queues that drivers tell of.
    pub(super) const fn flow_queues(&self) -> &FlowQueues {
        &self.flow_queues
    }

    /// Packets to this interface may wait before they come to its driver: in a queue of ours, or in somebody's discipline.
    pub(super) fn is_before_driver(&self, ifindex: u32, disciplines: &Disciplines) -> bool {
        self.list.iter().any(|queue| queue.port.ifindex == Some(ifindex) && queue.keeper.is_some())
            || disciplines.root(ifindex).is_some_and(|root| root.kind != "noqueue")
    }

    /// The interfaces, and whether both directions share what is behind each.
    pub(super) fn duplexes(&self) -> impl Iterator<Item = (&Port, ap::Duplex)> {
        let duplex = |queue: &Queue| if queue.shares_channel { ap::Duplex::Half } else { ap::Duplex::Full };
        self.list.iter().map(move |queue| (&queue.port, duplex(queue)))
    }

    fn on_up_bytes(&mut self, now: Time, up_bytes: u64) {
        if let Some((before, bytes)) = self.up.replace((now, up_bytes)) {
            let seconds = now.since(before).as_secs_f64().max(1e-3);
            self.up_bps += WEIGHT * (up_bytes.saturating_sub(bytes) as f64 * 8.0 / seconds - self.up_bps);
        }
    }

    /// What was learned of the last hop in the interval that ended.
    pub(super) fn on_learned(&mut self, directions: &[DirectionSnapshot; 2]) {
        let waits = self.list.iter().filter_map(|queue| queue.keeper.as_ref()).map(Keeper::waiting_packets).sum();
        self.release.on_learned(directions, waits);
    }

    fn pace(&self, queue: &Queue) -> BitRate {
        let Some(capacity) = self.release.capacity() else { return queue.wire.unwrap_or(release::UNKNOWN) };
        if !queue.shares_channel {
            return capacity;
        }
        let capacity = capacity.as_bps();
        let up = self.up_bps * self.release.cost_up();
        BitRate::bps(capacity.saturating_sub(up as u64).max(capacity / LEAST))
    }

    /// What was set, and what it was before.
    pub(super) fn knobs(&self) -> Vec<KnobStatus> {
        let knob = |queue: &Queue| {
            let what = format!("{}: root queue discipline", queue.port.name);
            if let Some(GivenUp { before, ours, .. }) = &queue.given_up {
                return Some(KnobStatus { what, before: before.clone(), ours: ours.clone(), given_up: true });
            }
            let (before, ours) = queue.keeper.as_ref()?.replaced()?;
            Some(KnobStatus { what, before, ours, given_up: false })
        };
        self.list.iter().filter_map(knob).collect()
    }

    pub(super) fn status(&self) -> Vec<QueueStatus> {
        let Some(wanted) = self.wanted else { return Vec::new() };
        let status = |queue: &Queue| {
            let status = queue.keeper.as_ref()?.status();
            let link = qdisc::cost(self.pace(queue), wanted.settings.packet_time);
            // The queue in this process knows no stations' costs.
            let has_costs = status.datapath == "kernel";
            Some(QueueStatus {
                interface: queue.port.name.to_string(),
                pace_bps: self.pace(queue).as_bps(),
                put_again: queue.put_again,
                stations: if has_costs { queue.air_time_cost.costs(link).map(station).collect() } else { Vec::new() },
                ..status
            })
        };
        self.list.iter().filter_map(status).collect()
    }
}

fn station((mac, cost): (Mac, PacketCost)) -> StationStatus {
    StationStatus {
        mac: mac.map(|byte| format!("{byte:02x}")).join(":"),
        rate_bps: (8_000_000_000u64 << 16) / cost.byte_ns_q16.max(1),
        packet_us: cost.packet_ns / 1_000,
    }
}

/// IP bytes that stations have sent.
pub(super) fn up_bytes(ip_bytes: &[u64; 2]) -> u64 {
    ip_bytes[Direction::ToRemote.index()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::Discipline;
    use crate::medium::Medium;

    fn queues(duplex: Duplex) -> Queues {
        let config = Config { queueing: Queueing::Chap, duplex, ..Config::default() };
        let mut queues = Queues::new(&config, Some(BitRate::mbps(20)));
        queues.follow(Time::ZERO, &[port(1, "lo")], &mut Journal::new(Time::ZERO));
        queues
    }

    fn port(ifindex: u32, name: &str) -> Port {
        Port {
            ifindex: Some(ifindex),
            name: name.parse().unwrap(),
            bridge: None,
            medium: Medium::default(),
            is_named: false,
        }
    }

    #[test]
    fn queues_follow_their_interfaces_by_number_or_by_name() {
        let mut queues = queues(Duplex::Auto);
        queues.list[0].put_again = 7;
        let mut journal = Journal::new(Time::ZERO);
        let mut follow = |ports: &[Port]| {
            queues.follow(Time::ZERO, ports, &mut journal);
            queues.list.iter().map(|queue| (queue.port.name.to_string(), queue.put_again)).collect::<Vec<_>>()
        };
        let named = |ifindex| Port { ifindex, is_named: true, ..port(1, "lan0") };
        assert_eq!(follow(&[named(Some(2)), port(1, "p1")]), [("lan0".to_owned(), 0), ("p1".to_owned(), 7)]);
        assert_eq!(follow(&[named(None)]), [("lan0".to_owned(), 0)], "waited for");
        queues.list[0].put_again = 3;
        let mut follow = |ports: &[Port]| {
            queues.follow(Time::ZERO, ports, &mut journal);
            queues.list.iter().map(|queue| queue.put_again).collect::<Vec<_>>()
        };
        assert_eq!(follow(&[named(Some(9))]), [3], "the name came back with another interface");
        assert_eq!(follow(&[port(9, "lan0")]), [0]);
    }

    #[test]
    fn what_goes_up_is_taken_from_the_pace_where_both_share_the_air() {
        let cases = [
            (Duplex::Auto, true, 15.0),
            (Duplex::Auto, false, 20.0),
            (Duplex::Half, false, 15.0),
            (Duplex::Full, true, 20.0),
        ];
        for (duplex, is_radio, expected) in cases {
            let mut queues = queues(duplex);
            let port = Port { medium: Medium { is_radio, ..Medium::default() }, ..port(1, "lo") };
            queues.follow(Time::ZERO, &[port], &mut Journal::new(Time::ZERO));
            for second in 0..60 {
                // 5 Mbit/s.
                queues.on_up_bytes(Time::ZERO + Span::from_secs(second), second * 625_000);
            }
            let pace = queues.pace(&queues.list[0]).as_mbps_f64();
            assert!((pace - expected).abs() < 0.01, "{duplex:?} {is_radio} {pace}");
        }
    }

    #[test]
    fn the_pace_never_falls_below_a_fifth_of_the_capacity() {
        let mut queues = queues(Duplex::Half);
        for second in 0..60 {
            queues.on_up_bytes(Time::ZERO + Span::from_secs(second), second * 12_500_000);
        }
        assert_eq!(queues.pace(&queues.list[0]), BitRate::mbps(4));
    }

    #[test]
    fn a_discipline_before_the_driver_is_told_from_none() {
        let queues = queues(Duplex::Auto);
        let with = |kind: &str, parent: u32| {
            let (kind, takes_all) = (kind.to_owned(), true);
            let one = Discipline { ifindex: 1, kind, handle: 0, parent, backlog: 0, rate: None, takes_all };
            queues.is_before_driver(1, &Disciplines::made_up(vec![one]))
        };
        let root = u32::MAX;
        assert_eq!([with("noqueue", root), with("tbf", root), with("clsact", 0xffff_fff1)], [false, true, false]);
        assert!(!queues.is_before_driver(2, &Disciplines::made_up(Vec::new())));
    }

    #[test]
    fn a_dry_run_and_the_kernels_own_leave_the_queue_alone() {
        let mut config = Config::default();
        assert!(Queues::new(&config, None).wanted.is_none());
        config.queueing = Queueing::Chap;
        config.dry_run = true;
        assert!(Queues::new(&config, None).wanted.is_none());
    }
}
