//! The access point's window control: the per-packet and the deciding half of `core`, in virtual time.
//!
//! What passes between access point and stations is measured and clamped by [`fastpath`], every interval [`Ap`]
//! decides: the same two objects as on a real access point, without maps and hooks between them. A flow between two
//! stations passes twice and is left alone, as there.

use std::collections::BTreeMap;

use lasthop_core::ap::{
    Action, Ap, Duplex, FlowSample, HopId, HopSample, LeftAlone, LinkSample, Params, RttSource, ShareRule, Snapshot,
    StationId, StationSample, UdpSample, Whose, rtt_totals,
};
use lasthop_core::aqm::Discipline;
use lasthop_core::fastpath::layout::{self, Counters, FlowState, Reason, RttTotal, UdpState};
use lasthop_core::fastpath::udp::{self, Datagram};
use lasthop_core::fastpath::window::Update;
use lasthop_core::fastpath::{self, Passage, Verdict, window};
use lasthop_core::meter::rate::Known;
use lasthop_core::packet::{Direction, FlowId, Packet as _};
use lasthop_core::units::{BitRate, Span, Time};
use lasthop_core::wire::{TcpFields, flag as tcp_flag};
use lasthop_home::capacity;
use lasthop_home::report::{CapacityReport, ControlReport, LearnedReport, QueuePlaces, Report};
use lasthop_home::scenario::{self, Capacity, HostId, LastHop, Scenario, WindowControl as Wanted, WindowRtt};
use lasthop_medium::Medium;
use lasthop_tcp::SackBlocks;

use super::driver::{Driver, Sent};
use super::levers::LeverControl;
use super::{Context, Stage};
use crate::numbers::{self, Connection, Numbers};
use crate::packet::{Sacks, SimPacket, flag};

/// What waits is counted in packets; those of whoever fills a queue are full.
const FULL_PACKET: u64 = 1500;

/// One medium is behind the access point.
const HOP: usize = 0;
/// Of the clock of the simulator's timestamps.
const TICK: Span = Span::from_micros(1);

/// See the module.
pub struct WindowControl {
    ap: Ap,
    duplex: Duplex,
    shared: layout::Control,
    /// How often it decides, and when next.
    interval: Span,
    decides: Time,
    /// Before, it sees nothing.
    start: Time,
    capacity: BitRate,
    /// By flow of the scenario; `None` until its first packet passes.
    flows: Vec<Option<Watched>>,
    /// When the next window update of each is due.
    due: Vec<Option<Time>>,
    next_update: Option<Time>,
    /// State of the UDP flows that have full packets.
    datagrams: Vec<Option<UdpState>>,
    stations: Vec<StationId>,
    /// The capacity is learned.
    learns: bool,
    /// Eq. (1) as the paper has it: UDP is real-time, no window is updated, and packets carry no timestamps.
    exact_sap_law: bool,
    counters: Counters,
    /// Of what was learned, by direction.
    means: [Known; 2],
    decisions: u64,
    /// By flow: it is of another network on the channel, which the access point does not see.
    foreign: Vec<bool>,
    /// By station: the same.
    strangers: Vec<bool>,
    driver: Driver,
    /// Levers of the air that it may move.
    levers: Option<Box<LeverControl>>,
    /// What the fast path was shown.
    #[cfg(test)]
    pub seen: Vec<Seen>,
}

/// When, of which flow, on which way and as what the fast path was shown a segment.
#[cfg(test)]
pub type Seen = (Time, u32, Direction, TcpFields);

#[derive(Clone)]
struct Watched {
    state: FlowState,
    rtt: [RttTotal; 2],
    /// Where its data go, and its newest acknowledgment, as it came.
    newest: Option<(Direction, SimPacket)>,
}

impl WindowControl {
    /// Control as the scenario wants it; `capacity` in its words, measured where it is a share.
    pub fn new(scenario: &Scenario, wanted: &Wanted) -> Self {
        let learns = wanted.capacity == Capacity::Learn;
        let capacity = capacity::rate(scenario, wanted.capacity);
        let exact_sap_law = wanted.share == ShareRule::Equal;
        let params = Params {
            capacity: (!learns).then_some(capacity),
            interval: wanted.interval,
            udp_weight: wanted.udp_weight,
            share: wanted.share,
            rtt: match wanted.rtt {
                WindowRtt::Measured => RttSource::Measured,
                WindowRtt::Constant(rtt) => RttSource::Constant(rtt),
            },
            queue_is_fair: matches!(&scenario.hop, LastHop::Wifi(wifi) if matches!(wifi.queue.discipline, Discipline::Chap(..))),
            window_updates: !exact_sap_law,
            law: wanted.law,
            duplex: if scenario.hop.is_half_duplex() { Duplex::Half } else { Duplex::Full },
            ..Params::learning()
        };
        let mut control = Self {
            ap: Ap::new(params),
            duplex: params.duplex,
            shared: layout::Control { epoch: 1, tick_ns: TICK.as_nanos(), ..layout::Control::default() },
            interval: wanted.interval,
            decides: Time::ZERO + wanted.start + wanted.interval,
            start: Time::ZERO + wanted.start,
            capacity,
            flows: vec![None; scenario.flows.len()],
            due: vec![None; scenario.flows.len()],
            next_update: None,
            datagrams: vec![None; scenario.flows.len()],
            stations: scenario.flows.iter().map(station).collect(),
            learns,
            exact_sap_law,
            counters: Counters::default(),
            means: [Known::default(); 2],
            decisions: 0,
            foreign: scenario.flows.iter().map(|flow| is_foreign(scenario, flow)).collect(),
            strangers: scenario.stations.iter().map(|station| station.neighbour).collect(),
            driver: Driver::default(),
            levers: LeverControl::new(scenario),
            #[cfg(test)]
            seen: Vec::new(),
        };
        control.shared.hops[HOP].iter_mut().for_each(|hop| hop.updates = u32::from(!exact_sap_law));
        if wanted.left_alone {
            let all = || Whose { all: true, ..Whose::default() };
            control.ap.set_left_alone(LeftAlone { windows: all(), datagrams: all() });
        }
        control.on_rates(control.start, scenario);
        control.apply(control.start);
        control
    }

    /// What the driver would say of a radio's stations from here on: rates of `scenario`.
    fn on_rates(&mut self, now: Time, scenario: &Scenario) {
        if !matches!(scenario.hop, LastHop::Wifi(_)) {
            return;
        }
        for (i, station) in scenario.stations.iter().enumerate().filter(|(_, station)| !station.neighbour) {
            let station =
                StationSample { station: StationId(i as u32), rate: station.sending.rate.bit_rate(), attempts: 1.0 };
            self.ap.on_station(now, &station);
        }
    }

    /// A packet that passes between access point and stations; its window is lowered where the plan says so. Whether it may
    /// go on.
    fn passes(
        &mut self,
        now: Time,
        direction: Direction,
        packet: &mut SimPacket,
        connection: Option<Connection>,
        sack: SackBlocks,
    ) -> bool {
        let d = direction.index();
        let bytes = u64::from(packet.bytes);
        let Some(connection) = connection else {
            let passes = self.on_datagram(now, direction, packet);
            if passes {
                if let Some(levers) = self.levers.as_mut().filter(|_| direction == Direction::ToStation) {
                    levers.on_datagram(now, packet);
                }
                self.counters.packets[d] += 1;
                self.counters.ip_bytes[d] += bytes;
                self.counters.udp_bytes[d] += bytes;
                self.counters.udp_packets[d] += 1;
            }
            return passes;
        };
        self.counters.packets[d] += 1;
        self.counters.ip_bytes[d] += bytes;
        self.counters.tcp_bytes[d] += bytes;
        let shared = &mut self.shared;
        let watched = self.flows[packet.flow as usize].get_or_insert_with(|| Watched {
            state: FlowState::new(shared, now),
            rtt: Default::default(),
            newest: None,
        });
        let mut tcp = fields(packet, connection, sack);
        if !self.exact_sap_law {
            let echo = if packet.has(flag::BACK) || packet.sack == Sacks::NONE { 0 } else { packet.sack };
            tcp.timestamps = Some((packet.stamp(), echo));
        }
        #[cfg(test)]
        self.seen.push((now, packet.flow, direction, tcp));
        let passage = Passage { direction, port: 0, hop: HOP as u32 };
        let verdict = fastpath::on_packet(&mut watched.state, shared, passage, &tcp, now);
        self.counters.reason[verdict.reason() as usize] += 1;
        if let Verdict::Rewrite { window } = verdict {
            packet.window = window;
        }
        if !self.exact_sap_law && packet.has(flag::BACK) {
            let bytes = packet.bytes - if packet.has(flag::ASK) { connection.turn } else { 0 };
            let flags = packet.flags & !(flag::ASK | flag::FIN);
            let data = direction.reverse();
            watched.newest = Some((data, SimPacket { sack: Sacks::NONE, bytes, flags, ..*packet }));
            let due = window::due(&watched.state, &self.shared, data, now);
            self.set_due(packet.flow as usize, due);
        }
        true
    }

    fn set_due(&mut self, flow: usize, due: Option<Time>) {
        if self.due[flow] != due {
            self.due[flow] = due;
            self.next_update = self.due.iter().flatten().min().copied();
        }
    }

    /// A window update that is due, as a packet on its way to the sender of the data.
    fn update(&mut self, now: Time) -> Option<SimPacket> {
        let flow = self.due.iter().position(|due| due.is_some_and(|due| due <= now))?;
        let watched = self.flows[flow].as_mut()?;
        let (data, newest) = watched.newest?;
        let update = window::update(&mut watched.state, &self.shared, data, now);
        let due = window::due(&watched.state, &self.shared, data, now).filter(|due| *due > now);
        self.set_due(flow, due);
        update.map(|Update { window, .. }| SimPacket { window, ..newest })
    }

    fn on_datagram(&mut self, now: Time, direction: Direction, packet: &mut SimPacket) -> bool {
        let understands_marks = packet.has(flag::ECT | flag::CE);
        let datagram =
            Datagram { ip_bytes: u32::from(packet.bytes), segments: 1, understands_marks, quic: packet.has(flag::SYN) };
        let known = &mut self.datagrams[packet.flow as usize];
        if self.exact_sap_law || (known.is_none() && !datagram.is_full()) {
            self.counters.reason[Reason::Udp as usize] += 1;
            return true;
        }
        let state = known.get_or_insert_with(|| udp::open(&datagram, now));
        let verdict = udp::on_datagram(state, &self.shared, direction, &datagram, now);
        self.counters.reason[verdict.reason() as usize] += 1;
        match verdict {
            udp::UdpVerdict::Pass(_) => true,
            udp::UdpVerdict::Mark => packet.mark_ce() || packet.has(flag::CE),
            udp::UdpVerdict::Drop => false,
        }
    }

    /// Closes an interval; `backlog`: packets that the access point's own queue holds.
    fn close_interval(&mut self, now: Time, backlog: usize) {
        for (i, (state, station)) in self.datagrams.iter().zip(&self.stations).enumerate() {
            if let Some(state) = state {
                self.ap.on_udp(
                    now,
                    &UdpSample {
                        flow: FlowId(i as u32),
                        station: *station,
                        hop: HopId(HOP as u32),
                        tunnel: None,
                        state: *state,
                    },
                );
            }
        }
        for (i, (watched, station)) in self.flows.iter_mut().zip(&self.stations).enumerate() {
            let Some(Watched { state, rtt, .. }) = watched else { continue };
            let before = std::mem::replace(rtt, rtt_totals(state));
            for sample in
                FlowSample::of(now, (FlowId(i as u32), *station, HopId(HOP as u32)), self.shared.epoch, state, before)
            {
                // Its headers are as large with timestamps as without.
                self.ap.on_sample(now, &FlowSample { header_bytes: 40, ..sample });
            }
        }
        let backlog = Some(backlog as u64 * FULL_PACKET);
        let Counters { udp_bytes, udp_packets, .. } = self.counters;
        let each_hop = vec![HopSample {
            hop: HopId(HOP as u32),
            duplex: self.duplex,
            backlog,
            udp_bytes,
            udp_packets,
            packet_trains: self.shared.hops[HOP],
            shaped: None,
            fair_queue: self.levers.as_ref().and_then(|levers| levers.fair_queue()),
        }];
        self.ap.on_link(now, &LinkSample { udp_bytes, each_hop, ..LinkSample::default() });
        for (mean, direction) in self.means.iter_mut().zip(self.ap.directions()) {
            mean.on_rate(direction.capacity);
        }
        if !self.exact_sap_law {
            for (hop, direction) in self.shared.hops[HOP].iter_mut().zip(self.ap.directions()) {
                hop.updates = window::quantum(direction.capacity);
            }
        }
        self.shared.epoch += 1;
        self.apply(now);
    }

    fn apply(&mut self, now: Time) {
        self.shared.heartbeat_ns = now.as_nanos();
        while let Some(action) = self.ap.poll(now) {
            match action {
                Action::SetPlan { flow, direction, plan } => {
                    if let Some(watched) = &mut self.flows[flow.0 as usize] {
                        watched.state.half[direction.index()].plan = plan;
                    }
                }
                Action::SetScale { flow, direction, scale } => {
                    if let Some(watched) = &mut self.flows[flow.0 as usize] {
                        watched.state.half[direction.index()].conntrack_scale = scale + 1;
                    }
                }
                Action::SetUdpPlan { flow, direction, plan } => {
                    if let Some(state) = &mut self.datagrams[flow.0 as usize] {
                        state.half[direction.index()].plan = plan;
                    }
                }
                Action::Say(_) => self.decisions += 1,
                Action::SetDefault { direction, plan } => self.shared.default_plan[direction.index()] = plan,
                Action::SetStart { direction, depth_bytes, rate_bytes } => {
                    let start = &mut self.shared.hops[HOP][direction.index()];
                    (start.depth_bytes, start.rate_bytes) = (depth_bytes, rate_bytes);
                }
            }
        }
    }

    fn learned(&self, snapshot: &Snapshot) -> LearnedReport {
        if !self.learns {
            return LearnedReport::default();
        }
        let elastic: u64 = Direction::BOTH.map(|way| self.ap.udp_flows().elastic_rate(way).as_bps()).iter().sum();
        let elastic = elastic as f64;
        let place = |i: usize| snapshot.directions[i].place.map(|place| place.name().to_owned());
        LearnedReport {
            capacity_down_bps: Some(report(self.means[0])),
            capacity_up_bps: Some(report(self.means[1])),
            queue_place: Some(QueuePlaces { down: place(0), up: place(1) }),
            elastic_udp_bps: Some(elastic),
            decisions: Some(self.decisions),
        }
    }

    /// What it did.
    fn control_report(&self, scenario: &Scenario) -> ControlReport {
        let counted = |reason: &Reason| self.counters.reason[*reason as usize];
        let snapshot = self.ap.snapshot();
        let all: u64 = self.counters.ip_bytes.iter().sum();
        let controllable = |watched: &Watched| watched.state.half.iter().any(|half| half.known_scale().is_some());
        let controllable_bytes: u64 = (self.flows.iter().flatten().filter(|w| controllable(w)))
            .map(|w| w.state.half.iter().map(|half| half.bytes).sum::<u64>())
            .sum();
        let capacity = match self.learns {
            // Of the direction that carries more.
            true => report(self.means[usize::from(self.counters.tcp_bytes[1] > self.counters.tcp_bytes[0])]),
            false => {
                let given = self.capacity.as_bps() as f64;
                CapacityReport { mean: given, last: given }
            }
        };
        let clamp = |flow: &lasthop_core::ap::FlowSnapshot| {
            // Connections of pages stand behind the flows that have names.
            let name = &scenario.flows.get(flow.flow.0 as usize)?.name;
            Some((name.clone(), u64::from(flow.plan?.clamp_bytes)))
        };
        ControlReport {
            capacity_bps: capacity,
            udp_bps: snapshot.udp.as_bps() as f64,
            controllable_share: controllable_bytes as f64 / all.max(1) as f64,
            rewritten: counted(&Reason::Rewritten),
            passed: counted(&Reason::WithinPlan),
            not_controlled: Reason::ALL
                .iter()
                .filter(|r| !r.is_controlled())
                .map(|r| (r.name().to_owned(), counted(r)))
                .collect::<BTreeMap<_, _>>(),
            clamps: snapshot.flows.iter().filter_map(clamp).collect(),
            learned: self.learned(&snapshot),
            levers: self.levers.as_ref().map(|levers| levers.report(scenario)),
        }
    }
}

impl Stage for WindowControl {
    fn on_packet(
        &mut self,
        now: Time,
        direction: Direction,
        packet: &mut SimPacket,
        context: &mut Context<'_>,
    ) -> super::StageVerdict {
        let route = context.flows.route(packet);
        if now < self.start
            || self.foreign[packet.flow as usize]
            || matches!((route.from, route.to), (HostId::Station(_), HostId::Station(_)))
        {
            return super::StageVerdict::Forward;
        }
        let connection = context.flows.connection(packet.flow as usize).filter(|_| packet.has(flag::TCP));
        let connection = connection.map(|connection| connection.seen());
        // What a browser asks is no segment of a connection.
        if packet.has(flag::ASK) && connection.is_none_or(|connection| connection.turn == 0) {
            return super::StageVerdict::Forward;
        }
        match self.passes(now, direction, packet, connection, context.sacks.of(packet)) {
            true => super::StageVerdict::Forward,
            false => super::StageVerdict::Drop,
        }
    }

    /// Window updates that are due.
    fn poll(&mut self, now: Time, _: &mut Context<'_>) -> Option<SimPacket> {
        self.update(now)
    }

    #[inline]
    fn next_deadline(&self) -> Option<Time> {
        self.next_update
    }

    fn on_interval(&mut self, now: Time, medium: &mut Medium<SimPacket>) {
        let sent = self.driver.ask(now, medium);
        for Sent { station, rate, loss } in sent.iter().filter(|sent| !self.strangers[sent.station]) {
            let (station, rate) = (StationId(*station as u32), *rate);
            self.ap.on_station(now, &StationSample { station, rate, attempts: 1.0 / (1.0 - loss).max(0.05) });
        }
        self.close_interval(now, medium.discipline_backlog());
        if let Some(levers) = &mut self.levers {
            levers.on_interval(now, (&self.ap, &self.stations, self.counters.ip_bytes), &sent, medium);
        }
        self.decides = now + self.interval;
    }

    fn next_interval(&self) -> Option<Time> {
        Some(self.decides)
    }

    fn follows(&self) -> bool {
        self.levers.is_some()
    }

    fn retunes(&self) -> bool {
        self.levers.is_some()
    }

    fn on_left(&mut self, now: Time, packet: &SimPacket) {
        if let Some(levers) = &mut self.levers {
            levers.on_left(now, packet);
        }
    }

    fn on_change(&mut self, now: Time, scenario: &Scenario) {
        self.on_rates(now, scenario);
    }

    fn report(&self, scenario: &Scenario, report: &mut Report) {
        report.control = Some(self.control_report(scenario));
    }
}

fn report(known: Known) -> CapacityReport {
    CapacityReport { mean: known.mean_bps(), last: known.last_bps() }
}

/// The station at the end of a flow.
fn station(flow: &scenario::Flow) -> StationId {
    let index = [flow.from, flow.to].into_iter().find_map(|host| match host {
        HostId::Station(i) => Some(i as u32),
        HostId::AccessPoint | HostId::Server(_) => None,
    });
    StationId(index.unwrap_or(u32::MAX))
}

/// Whether a flow begins or ends at a station of another network.
fn is_foreign(scenario: &Scenario, flow: &scenario::Flow) -> bool {
    [flow.from, flow.to].into_iter().any(|host| matches!(host, HostId::Station(i) if scenario.stations[i].neighbour))
}

/// A packet as the fast path reads it.
fn fields(packet: &SimPacket, connection: Connection, sack: SackBlocks) -> TcpFields {
    let (is_back, syn) = (packet.has(flag::BACK), packet.has(flag::SYN));
    let numbers = Numbers::of(packet, connection.turn);
    let payload_bytes = connection.payload_bytes(packet);
    let mut tcp = TcpFields {
        seq: numbers.seq,
        ack: numbers.ack.unwrap_or_default(),
        flags: if numbers.ack.is_some() { tcp_flag::ACK } else { 0 },
        window: packet.window,
        window_scale: syn.then_some(connection.scale),
        mss: syn.then_some(connection.mss),
        payload_bytes,
        segment_bytes: payload_bytes,
        segments: 1,
        ip_bytes: u32::from(packet.bytes),
        header_bytes: 20,
        ..TcpFields::default()
    };
    if is_back {
        let highest = sack.as_slice().iter().map(|(_, end)| *end).max();
        tcp.sack_high = highest.map(numbers::of_byte);
    }
    tcp.flags |= if syn { tcp_flag::SYN } else { 0 };
    tcp.flags |= if packet.has(flag::FIN) { tcp_flag::FIN } else { 0 };
    tcp
}
