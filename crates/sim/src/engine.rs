//! The run: one loop over what happens next, and what each event leads to.
//!
//! A packet crosses, one way or the other,
//! `server - its link - W0 - wan - access point - medium - station`; a flow may begin and end at any of the hosts.
//! Sources of events are the wires, the traffic schedules, the two ends of each connection, the controller, the
//! changes and the marks of the report; the channel is asked beside them, for it has the next event most often. Of things
//! that fall on one nanosecond the channel's come first, then what was set first. What is not in every home stands in files of
//! its own: pages, streams at a rate, Snoop, split connections.

mod exchange;
mod pages;
mod rate;
mod snoop;
mod split;

use lasthop_core::packet::{Direction, Packet as _};
use lasthop_core::units::Time;
use lasthop_home::clamp::ClampControl;
use lasthop_home::report::{FlowReport, LossPlace, PageReport, flow_meter};
use lasthop_home::retune::Retune;
use lasthop_home::scenario::{Flow, HostId, Kind, LastHop, SMALLEST_UDP, Scenario};
use lasthop_medium::{self as wifi, Medium, NodeId};

use crate::SimError;
use crate::control::WindowControl;
use crate::exchange::Exchange;
use crate::options::{Options, Progress};
use crate::packet::{Position, Sacks, SimPacket, flag};
use crate::pcap::{Capture, Ends};
use crate::running::{Play, Route, Running, feed, pairs};
use crate::snoop::SnoopControl;
use crate::sources::{SourceId, Sources};
use crate::split::Halves;
use crate::trace::Tracer;
use crate::web::Slot;
use crate::wires::{WireId, Wires};

/// Events between two questions whether to go on.
const PROGRESS_CHECK: u64 = 1 << 16;

/// What a source of events is.
#[derive(Clone, Copy, Debug)]
enum Target {
    /// A wire that ends at W0.
    ToW0(u32),
    /// A wire that ends at the access point.
    ToAccessPoint(u32),
    /// A wire that ends at a server.
    ToServer(u32),
    /// The schedule of a flow.
    Schedule(u32),
    /// The browser that loads a page.
    Browser(u32),
    /// The sender of a flow.
    Sender(u32),
    /// The receiver of a flow.
    Receiver(u32),
    /// The sender of a flow over a rate-controlled transport.
    Pacer(u32),
    /// The receiver of such a flow.
    Reporter(u32),
    /// The stream that the transport of a flow carries.
    Feed(u32),
    /// What the ends of a connection ask and answer.
    Exchange(u32),
    Controller,
    /// Window updates that the access point owes.
    Update,
    /// Snoop's timers.
    Snoop,
    /// The next of the changes.
    Change,
    /// The start-up, then the figures proper begin.
    Mark,
}

/// See the module.
pub struct Engine<'a, 'o> {
    scenario: &'a Scenario,
    options: &'a mut Options<'o>,
    end: Time,
    events: u64,
    sources: Sources,
    targets: Vec<Target>,
    pub(crate) wires: Wires,
    pub(crate) medium: Medium<SimPacket>,
    /// When the channel may have something next; [`Time::MAX`]: never without another packet.
    medium_at: Time,
    /// The channel was given a packet or asked: `medium_at` is to be read anew.
    medium_moved: bool,
    routes: Vec<Route>,
    flows: Vec<Running>,
    /// The last flows are these connections of pages.
    slots: &'a [Slot],
    /// Before those of pages stand the first halves of split connections.
    halves: Halves,
    pub(crate) control: Option<WindowControl>,
    /// What comes from the channel is looked at by something at the access point.
    looks_at_answers: bool,
    clamp: Option<ClampControl>,
    pub(crate) snoop: Option<Box<SnoopControl>>,
    sacks: Sacks,
    tracer: Tracer,
    capture: Option<Capture<'o>>,
    changes: usize,
    marks: Vec<Time>,
    failed: Option<SimError>,
}

impl<'a, 'o> Engine<'a, 'o> {
    /// At the start of the run; `slots`: what the last flows are ([`web::expand`]).
    ///
    /// # Errors
    /// A key that the simulator does not carry.
    pub fn new(
        scenario: &'a Scenario,
        slots: &'a [Slot],
        halves: Halves,
        options: &'a mut Options<'o>,
    ) -> Result<Self, SimError> {
        let (params, stations) = scenario.medium();
        let wires = Wires::new(scenario);
        let mut targets: Vec<Target> = (0..wires.count()).map(|i| far_end(&wires, i)).collect();
        let mut flows = Vec::with_capacity(scenario.flows.len());
        for ((i, flow), pair) in scenario.flows.iter().enumerate().zip(pairs(scenario)) {
            let source = SourceId(targets.len() as u32);
            let of_page = i + slots.len() >= scenario.flows.len();
            let is_second = halves.first(i).is_some();
            let play = match Play::new(scenario, flow, of_page || is_second, pair)? {
                Play::Tcp(connection) if is_second || halves.second(i).is_some() => Play::Half(connection),
                play => play,
            };
            match play {
                Play::Page(_) => targets.push(Target::Browser(i as u32)),
                Play::Tcp(_) | Play::Half(_) => targets.extend([Target::Sender(i as u32), Target::Receiver(i as u32)]),
                Play::Rate(_) => targets.extend([Target::Pacer(i as u32), Target::Reporter(i as u32)]),
                Play::Schedule(_) => targets.push(Target::Schedule(i as u32)),
            }
            // The stream of a split connection is its first half's.
            let whole = &scenario.flows[halves.second(i).unwrap_or(i)];
            let feed = if is_second { None } else { feed(scenario, whole) };
            if feed.is_some() {
                targets.push(Target::Feed(i as u32));
            }
            let exchange = match flow.kind {
                Kind::RequestResponse(kind) => Some(Box::new(Exchange::new(kind, flow))),
                _ => None,
            };
            if exchange.is_some() {
                targets.push(Target::Exchange(i as u32));
            }
            let meter = flow_meter(scenario, flow, Time::ZERO);
            // What the access point holds when the flow stops is still delivered.
            let stop = if is_second { Time::MAX } else { Time::ZERO + flow.stop };
            flows.push(Running { source, stop, play, feed, exchange, meter });
        }
        targets.extend([Target::Update, Target::Snoop, Target::Controller, Target::Change, Target::Mark]);
        let control = scenario.control.window.as_ref().map(|wanted| WindowControl::new(scenario, wanted));
        let marks = [scenario.youngest_start(), scenario.measure_from];
        let mut medium = Medium::new(params, stations, scenario.seed);
        medium.record_attempts(options.pcap.is_some());
        let seen = |i: usize| match &flows[i].play {
            Play::Tcp(connection) | Play::Half(connection) => Some(connection.seen()),
            Play::Schedule(_) | Play::Page(_) | Play::Rate(_) => None,
        };
        if options.pcap.is_some() {
            let why = "a capture shows frames of the air, and there is none";
            match scenario.hop {
                LastHop::Wifi(_) => {}
                LastHop::Bridge(_) => return Err(scenario.refuse("bridge", why).into()),
                LastHop::WirelessLink(_) => return Err(scenario.refuse("wireless_link", why).into()),
            }
        }
        if let Some(slot) = slots.first().filter(|_| options.pcap.is_some()) {
            let key = format!("flow.{}.kind", scenario.flows[slot.page].table);
            return Err(scenario.refuse(&key, "a capture does not show the requests of a browser").into());
        }
        if let Some(flow) = scenario.flows.iter().find(|flow| matches!(flow.kind, Kind::RequestResponse(_)))
            && options.pcap.is_some()
        {
            let key = format!("flow.{}.kind", flow.table);
            return Err(scenario.refuse(&key, "a capture does not show requests").into());
        }
        let capture = match options.pcap.take() {
            Some(out) => Some(Capture::new(out, *medium.phy(), Ends::of(scenario, seen))?),
            None => None,
        };
        let snoop = scenario.snoop().map(|params| Box::new(SnoopControl::new(params, flows.len())));
        let control_or_snoop = control.is_some() || snoop.is_some();
        let mut routes = routes(scenario, slots);
        halves.reroute(&mut routes);
        let mut engine = Self {
            end: Time::ZERO + scenario.duration,
            events: 0,
            sources: Sources::new(wires.busy(), targets.len()),
            targets,
            wires,
            medium,
            medium_at: Time::MAX,
            medium_moved: true,
            capture,
            routes,
            flows,
            slots,
            halves,
            control,
            clamp: scenario.control.clamp.as_ref().map(|wanted| ClampControl::new(scenario, wanted)),
            looks_at_answers: control_or_snoop,
            snoop,
            sacks: Sacks::default(),
            tracer: Tracer::new(scenario, options.trace.is_some()),
            changes: 0,
            marks: marks.iter().filter(|at| **at <= scenario.measure_from).map(|at| Time::ZERO + *at).collect(),
            failed: None,
            scenario,
            options,
        };
        engine.start();
        Ok(engine)
    }

    /// Everything that is known beforehand gets its time.
    fn start(&mut self) {
        // Connections of pages wait to be opened.
        for i in 0..self.flows.len() - self.slots.len() {
            let flow = &self.scenario.flows[i];
            let Running { source, play, feed, .. } = &mut self.flows[i];
            if let Some(at) = feed.as_ref().and_then(|feed| feed.next_deadline()) {
                self.sources.set(SourceId(source.0 + 2), at);
            }
            match play {
                Play::Schedule(schedule) => {
                    if let Some(emission) = schedule.next {
                        self.sources.set(*source, Time::ZERO + emission.at);
                    }
                }
                // A second half begins with its first.
                Play::Half(_) if self.halves.first(i).is_some() => {}
                Play::Tcp(_) | Play::Half(_) | Play::Page(_) | Play::Rate(_) => {
                    self.sources.set(*source, Time::ZERO + flow.start);
                }
            }
        }
        let last = self.targets.len() as u32;
        if let Some(control) = &self.control {
            self.sources.set(SourceId(last - 3), control.start() + control.interval());
        }
        if let Some(change) = self.scenario.changes.first() {
            self.sources.set(SourceId(last - 2), Time::ZERO + change.at);
        }
        if let Some(mark) = self.marks.first() {
            self.sources.set(SourceId(last - 1), *mark);
        }
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// When told to stop, or when a sink of the caller fails.
    pub fn run(&mut self) -> Result<(), SimError> {
        let mut progress_check = PROGRESS_CHECK;
        loop {
            if self.medium_moved {
                self.medium_moved = false;
                self.medium_at = self.medium.next_deadline().unwrap_or(Time::MAX);
            }
            let (at, source) = self.sources.first();
            if self.medium_at.min(at) >= self.end {
                let last = Time::ZERO + self.end.since(Time::from_nanos(1));
                self.settle_medium(last);
                if self.wires.gathers() {
                    self.merge(last, self.wires.index(WireId::WanDown));
                }
                return Ok(());
            }
            self.events += 1;
            if self.medium_at <= at {
                let _ = self.on_channel(self.medium_at);
            } else {
                self.on_source(at, source);
            }
            if self.failed.is_some() || self.events >= progress_check {
                progress_check = self.events + PROGRESS_CHECK;
                self.progress_check()?;
            }
        }
    }

    #[cold]
    fn progress_check(&mut self) -> Result<(), SimError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let now = self.sources.first().0.min(self.end);
        let progress = Progress { now, end: self.end, events: self.events };
        let go_on = self.options.progress.as_mut().is_none_or(|ask| ask(progress));
        if go_on { Ok(()) } else { Err(SimError::Stopped) }
    }

    /// Events so far.
    pub const fn events(&self) -> u64 {
        self.events
    }

    #[inline]
    fn on_source(&mut self, now: Time, source: SourceId) {
        match self.targets[source.0 as usize] {
            Target::ToW0(wire) => self.on_wire(now, wire as usize, source, Self::at_w0),
            Target::ToAccessPoint(wire) => {
                if self.wires.gathers() {
                    self.merge(now, wire as usize);
                }
                self.on_wire(now, wire as usize, source, Self::at_access_point);
                self.look_ahead_wan(source);
            }
            Target::ToServer(wire) => self.on_wire(now, wire as usize, source, Self::arrive),
            Target::Schedule(flow) => self.on_schedule(now, flow as usize),
            Target::Browser(page) => self.on_browser(now, page as usize),
            Target::Sender(flow) => self.on_sender(now, flow as usize),
            Target::Receiver(flow) => {
                self.sources.clear(source);
                self.answer(now, flow as usize);
            }
            Target::Pacer(flow) => self.on_rate_sender(now, flow as usize),
            Target::Reporter(flow) => self.report(now, flow as usize),
            Target::Feed(flow) => self.on_feed(now, flow as usize, source),
            Target::Exchange(flow) => self.exchange(now, flow as usize),
            Target::Controller => {
                if let Some(control) = &mut self.control {
                    control.on_interval(now, self.medium.discipline_backlog());
                    self.sources.set(source, now + control.interval());
                }
            }
            Target::Update => self.update_windows(now),
            Target::Snoop => self.repair(now),
            Target::Change => self.on_change(now, source),
            Target::Mark => self.on_mark(now, source),
        }
    }

    /// One event of the channel, if there is one; more of the same moment come next, since the channel is first. Whether there
    /// was one.
    #[inline]
    fn on_channel(&mut self, now: Time) -> bool {
        self.medium_moved = true;
        let Some(event) = self.medium.poll(now) else { return false };
        if self.capture.is_some() {
            self.write_attempts();
        }
        match event {
            wifi::Event::Delivered { from, to, packet, .. } => {
                if to == NodeId::ACCESS_POINT && self.looks_at_answers {
                    self.leave_channel(now, packet);
                } else if to == NodeId::ACCESS_POINT {
                    self.at_access_point(now, &packet);
                } else {
                    debug_assert_eq!(from, NodeId::ACCESS_POINT);
                    self.left_access_point(&packet);
                    self.arrive(now, &packet);
                }
            }
            wifi::Event::Dropped { node, place, packet, .. } => {
                if node == NodeId::ACCESS_POINT {
                    self.left_access_point(&packet);
                }
                let place = match (place, node) {
                    (wifi::DropPlace::Channel, _) => LossPlace::Channel,
                    (wifi::DropPlace::Queue, NodeId::ACCESS_POINT) => LossPlace::ApQueue,
                    (wifi::DropPlace::Queue, _) => LossPlace::StationQueue,
                };
                if self.snoop.is_none() || !self.may_be_repaired(now, &packet, place) {
                    self.lose(&packet, place);
                }
            }
        }
        true
    }

    /// What happens unseen in the channel up to `now` is committed, as it must be before figures are read or settings changed.
    fn settle_medium(&mut self, now: Time) {
        while self.on_channel(now) {}
    }

    /// Before an event is acted on: it gives back the place of its SACK blocks. (A repetition after a lost ACK comes
    /// later still and may show the blocks of another.)
    #[cold]
    fn write_attempts(&mut self) {
        let Some(capture) = &mut self.capture else { return };
        while let Some(attempt) = self.medium.poll_attempt() {
            if let Err(error) = capture.attempt(&attempt, self.sacks.of(&attempt.packet)) {
                self.failed = Some(error.into());
            }
        }
    }

    /// Packets arrive at the far end of a wire, where `take` has them.
    #[inline(always)]
    fn on_wire(&mut self, now: Time, wire: usize, source: SourceId, take: impl Fn(&mut Self, Time, &SimPacket)) {
        // It may be asked too early: what was foretold of the WAN link another packet has put off.
        while let Some((_, packet)) = self.wires.link(wire).poll(now) {
            take(self, now, &packet);
        }
        match self.wires.link(wire).next_deadline() {
            Some(at) => self.sources.set(source, at),
            None => self.sources.clear(source),
        }
    }

    fn on_schedule(&mut self, now: Time, flow: usize) {
        let Running { source, play, .. } = &mut self.flows[flow];
        let Play::Schedule(schedule) = play else { return };
        let Some(emission) = schedule.next else { return };
        schedule.next = schedule.source.next();
        match schedule.next {
            Some(following) => self.sources.set(*source, Time::ZERO + following.at),
            None => self.sources.clear(*source),
        }
        let packet = SimPacket {
            sent: now,
            position: Position::default(),
            flow: flow as u32,
            sack: Sacks::NONE,
            bytes: emission.bytes as u16,
            window: 0,
            flags: schedule.flags,
        };
        self.send(now, &packet);
    }

    /// The sender's own time has come: to begin, to stop, or by its timer.
    fn on_sender(&mut self, now: Time, flow: usize) {
        let Running { source, stop, play, .. } = &mut self.flows[flow];
        let (Play::Tcp(connection) | Play::Half(connection)) = play else { return };
        let source = *source;
        if now >= *stop {
            connection.sender.stop();
        }
        self.sources.clear(source);
        self.speak(now, flow);
    }

    /// A frame of the stream that `flow` carries has arisen.
    fn on_feed(&mut self, now: Time, flow: usize, source: SourceId) {
        let Running { play, feed: Some(feed), .. } = &mut self.flows[flow] else { return };
        let given = feed.given(now);
        match feed.next_deadline() {
            Some(at) => self.sources.set(source, at),
            None => self.sources.clear(source),
        }
        match play {
            Play::Tcp(connection) | Play::Half(connection) => connection.sender.extend(given),
            Play::Rate(rate) => {
                rate.sender.extend(given);
                return self.pace(now, flow);
            }
            Play::Schedule(_) | Play::Page(_) => return,
        }
        self.speak(now, flow);
    }

    /// Everything the sender of `flow` has to say now.
    fn speak(&mut self, now: Time, flow: usize) {
        while let Play::Tcp(connection) | Play::Half(connection) = &mut self.flows[flow].play
            && let Some(segment) = connection.sender.poll(now)
        {
            let packet = connection.data(now, flow as u32, &segment);
            self.send(now, &packet);
        }
        let Running { source, stop, play, .. } = &mut self.flows[flow];
        let (Play::Tcp(connection) | Play::Half(connection)) = play else { return };
        let stop = *stop;
        connection.note(now);
        let timer = connection.sender.next_deadline();
        let wanted = if now < stop { Some(timer.map_or(stop, |at| at.min(stop))) } else { timer };
        // A timer that moves later is left where it is: it fires in vain once and is set anew then.
        if let Some(wanted) = wanted
            && self.sources.pending(*source).is_none_or(|pending| wanted < pending)
        {
            self.sources.set(*source, wanted);
        }
        if self.tracer.is_on() {
            let snapshot = || connection.sender.snapshot();
            self.tracer.on_sender(now, flow, &mut self.options.trace, snapshot, &mut self.failed);
        }
    }

    /// Everything the receiver of `flow` has to answer now.
    fn answer(&mut self, now: Time, flow: usize) {
        while let Play::Tcp(connection) | Play::Half(connection) = &mut self.flows[flow].play
            && let Some(ack) = connection.receiver.poll(now)
        {
            let packet = connection.ack(now, flow as u32, &ack, &mut self.sacks);
            self.tracer.on_offer(flow, ack.window_bytes);
            self.send(now, &packet);
        }
        let Running { source, play, .. } = &self.flows[flow];
        let (Play::Tcp(connection) | Play::Half(connection)) = play else { return };
        let own = SourceId(source.0 + 1);
        match (connection.receiver.next_deadline(), self.sources.pending(own)) {
            (Some(at), pending) if pending != Some(at) => self.sources.set(own, at),
            (None, Some(_)) => self.sources.clear(own),
            _ => {}
        }
    }

    /// A host hands a packet to its network interface.
    fn send(&mut self, now: Time, packet: &SimPacket) {
        if !packet.has(flag::BACK) {
            self.flows[self.routes[packet.flow as usize].counted_by as usize].meter.on_sent(now);
        }
        match self.routes[packet.flow as usize].origin(packet) {
            HostId::Server(i) if self.wires.gathers() => self.onto_merged(now, WireId::FromServer(i as u32), packet),
            HostId::Server(i) => self.onto_pair(now, WireId::FromServer(i as u32), packet),
            HostId::Station(i) => {
                self.medium_moved = true;
                self.medium.on_packet(now, NodeId(i as u16 + 1), NodeId::ACCESS_POINT, *packet);
            }
            HostId::AccessPoint => self.at_access_point(now, packet),
        }
    }

    fn destination(&self, packet: &SimPacket) -> HostId {
        self.routes[packet.flow as usize].destination(packet)
    }

    #[inline]
    fn onto_wire(&mut self, now: Time, wire: WireId, packet: &SimPacket) {
        self.onto(now, self.wires.index(wire), packet);
    }

    /// The same with the wire's place known.
    fn onto(&mut self, now: Time, index: usize, packet: &SimPacket) {
        let link = self.wires.link(index);
        let idle = link.next_deadline().is_none();
        match link.on_packet(now, *packet) {
            Ok(()) if idle => {
                if let Some(at) = link.next_deadline() {
                    self.sources.set(SourceId(index as u32), at);
                }
            }
            Ok(()) => {}
            Err(refused) => self.lose_on_wire(&refused),
        }
    }

    /// Onto the first of two wires in a row; where nothing else can come between, what becomes of the packet on both is
    /// reckoned at once. What would come to W0 after the end stays in flight.
    fn onto_pair(&mut self, now: Time, first: WireId, packet: &SimPacket) {
        let Some(second) = self.wires.straight_on(first, self.destination(packet)) else {
            return self.onto_wire(now, first, packet);
        };
        let first = self.wires.index(first);
        match self.wires.link(first).pass(now, packet.bytes()) {
            Some(at_w0) if at_w0 >= self.end => {}
            Some(at_w0) => self.onto(at_w0, second, packet),
            None => self.lose_on_wire(packet),
        }
    }

    /// What has come to W0 by `now` goes onto the WAN link, in the order in which it came.
    #[inline]
    fn merge(&mut self, now: Time, wan: usize) {
        while let Some((at_w0, packet)) = self.wires.next_at_w0(now) {
            if let Err(refused) = self.wires.link(wan).on_packet(at_w0, packet) {
                self.lose_on_wire(&refused);
            }
        }
    }

    /// The WAN link's far end is looked at no later than when the first packet on its way to the WAN link comes there.
    #[inline]
    fn look_ahead_wan(&mut self, wan: SourceId) {
        if self.wires.gathers()
            && let Some(at) = self.wires.look_ahead_wan()
            && self.sources.pending(wan).is_none_or(|pending| at < pending)
        {
            self.sources.set(wan, at);
        }
    }

    /// Onto the wire of one of a few servers.
    fn onto_merged(&mut self, now: Time, wire: WireId, packet: &SimPacket) {
        let index = self.wires.index(wire);
        let link = self.wires.link(index);
        let idle = link.next_deadline().is_none();
        match link.on_packet(now, *packet) {
            Ok(()) if idle => self.look_ahead_wan(SourceId(self.wires.index(WireId::WanDown) as u32)),
            Ok(()) => {}
            Err(refused) => self.lose_on_wire(&refused),
        }
    }

    fn at_w0(&mut self, now: Time, packet: &SimPacket) {
        match self.destination(packet) {
            HostId::Server(i) => self.onto_wire(now, WireId::ToServer(i as u32), packet),
            _ if self.wires.has_wan() => self.onto_wire(now, WireId::WanDown, packet),
            _ => self.at_access_point(now, packet),
        }
    }

    /// The access point forwards.
    fn at_access_point(&mut self, now: Time, packet: &SimPacket) {
        match self.destination(packet) {
            HostId::AccessPoint => self.arrive(now, packet),
            HostId::Station(i) => self.onto_medium(now, NodeId(i as u16 + 1), packet),
            HostId::Server(_) if self.wires.has_wan() => self.onto_pair(now, WireId::WanUp, packet),
            HostId::Server(_) => self.at_w0(now, packet),
        }
    }

    fn onto_medium(&mut self, now: Time, station: NodeId, packet: &SimPacket) {
        let mut packet = *packet;
        if self.control.is_some() && !self.pass_control(now, Direction::ToStation, &mut packet) {
            return self.lose(&packet, LossPlace::ApQueue);
        }
        if let Some(clamp) = &mut self.clamp {
            clamp.on_queued(packet.bytes());
        }
        if self.snoop.is_some() {
            self.show_snoop(now, station, &packet);
        }
        self.medium_moved = true;
        self.medium.on_packet(now, NodeId::ACCESS_POINT, station, packet);
        if self.tracer.is_on() {
            let waiting = self.medium.backlog(NodeId::ACCESS_POINT);
            self.tracer.on_queue(now, waiting, &mut self.options.trace, &mut self.failed);
        }
    }

    fn left_access_point(&mut self, packet: &SimPacket) {
        if let Some(clamp) = &mut self.clamp {
            clamp.on_left(packet.bytes());
        }
    }

    fn leave_channel(&mut self, now: Time, mut packet: SimPacket) {
        if self.snoop.is_some() && !self.passes_snoop(now, &mut packet) {
            return;
        }
        if !self.pass_control(now, Direction::ToRemote, &mut packet) {
            return self.lose(&packet, LossPlace::ApQueue);
        }
        self.at_access_point(now, &packet);
        self.await_update();
    }

    /// Sends the window updates that are due.
    fn update_windows(&mut self, now: Time) {
        while let Some(packet) = self.control.as_mut().and_then(|control| control.update(now)) {
            self.at_access_point(now, &packet);
        }
        self.await_update();
    }

    #[inline]
    fn await_update(&mut self) {
        let source = SourceId(self.targets.len() as u32 - 5);
        let due = self.control.as_ref().and_then(WindowControl::next_update);
        if due != self.sources.pending(source) {
            match due {
                Some(at) => self.sources.set(source, at),
                None => self.sources.clear(source),
            }
        }
    }

    /// Whether the packet may go on.
    fn pass_control(&mut self, now: Time, direction: Direction, packet: &mut SimPacket) -> bool {
        let Some(control) = &mut self.control else { return true };
        if now < control.start() {
            return true;
        }
        let route = &self.routes[packet.flow as usize];
        if matches!((route.from, route.to), (HostId::Station(_), HostId::Station(_))) {
            return true;
        }
        let connection = match &self.flows[packet.flow as usize].play {
            Play::Tcp(connection) | Play::Half(connection) if packet.has(flag::TCP) => Some(connection.seen()),
            Play::Tcp(_) | Play::Half(_) | Play::Schedule(_) | Play::Page(_) | Play::Rate(_) => None,
        };
        // What a browser asks is no segment of a connection.
        if packet.has(flag::ASK) && connection.is_none_or(|connection| connection.turn == 0) {
            return true;
        }
        control.on_packet(now, direction, packet, connection, self.sacks.of(packet))
    }

    /// The packet is where it should be.
    fn arrive(&mut self, now: Time, packet: &SimPacket) {
        let index = packet.flow as usize;
        let Running { meter, play, exchange, .. } = &mut self.flows[index];
        match play {
            Play::Schedule(_) => {
                let bytes = packet.bytes();
                meter.on_delivered(packet.sent, now, bytes, bytes.saturating_sub(SMALLEST_UDP as u32));
                if self.tracer.is_on() {
                    self.tracer.on_delivered(now, packet, &mut self.options.trace, &mut self.failed);
                }
            }
            Play::Tcp(_) if packet.has(flag::ASK) && exchange.is_some() => {
                self.on_exchange_packet(now, packet);
            }
            Play::Tcp(connection) if packet.has(flag::ASK) => {
                connection.sender.extend(packet.position.offset());
                self.speak(now, index);
            }
            Play::Tcp(connection) if packet.has(flag::BACK) => {
                connection.on_marks(now, packet, &self.sacks);
                let ack = connection.acknowledgment(packet, &mut self.sacks);
                connection.sender.on_ack(now, &ack);
                self.tracer.on_window(index, ack.window_bytes);
                self.speak(now, index);
            }
            Play::Tcp(connection) => {
                connection.on_marks(now, packet, &self.sacks);
                let segment = connection.segment(packet);
                let fresh = connection.receiver.on_segment(now, &segment);
                if fresh == 0 && segment.bytes > 0 {
                    meter.on_duplicate(packet.sent);
                } else {
                    meter.on_delivered(packet.sent, now, packet.bytes(), fresh);
                    meter.on_stream(segment.offset, connection.receiver.received());
                }
                if let Some(limit) = self.clamp.as_mut().and_then(|clamp| clamp.on_segment(now, index, fresh)) {
                    connection.receiver.set_limit(Some(limit));
                }
                if connection.receiver.is_finished() {
                    meter.on_completed(now);
                }
                self.answer(now, index);
                if self.flows[index].exchange.is_some() {
                    self.on_response_segment(now, packet);
                }
                if self.routes[index].counted_by != packet.flow {
                    self.on_page_segment(now, packet, fresh);
                }
            }
            Play::Half(_) | Play::Rate(_) | Play::Page(_) => self.arrive_elsewhere(now, packet),
        }
    }

    /// The same for what is rarer.
    #[cold]
    fn arrive_elsewhere(&mut self, now: Time, packet: &SimPacket) {
        match self.flows[packet.flow as usize].play {
            Play::Half(_) => self.on_half(now, packet),
            Play::Rate(_) => self.on_rate_packet(now, packet),
            Play::Schedule(_) | Play::Tcp(_) | Play::Page(_) => {}
        }
    }

    #[cold]
    fn lose_on_wire(&mut self, packet: &SimPacket) {
        self.lose(packet, LossPlace::Wired);
    }

    fn lose(&mut self, packet: &SimPacket, place: LossPlace) {
        if packet.has(flag::BACK) {
            let _ = self.sacks.take(packet.sack);
        } else {
            self.flows[self.routes[packet.flow as usize].counted_by as usize].meter.on_lost(packet.sent, place);
        }
    }

    fn on_change(&mut self, now: Time, source: SourceId) {
        self.settle_medium(now);
        let change = &self.scenario.changes[self.changes];
        Retune::new(&change.after).apply(&mut self.medium);
        self.wires.retune(now, &change.after);
        if let Some(control) = &mut self.control {
            control.on_rates(now, &change.after);
        }
        self.changes += 1;
        match self.scenario.changes.get(self.changes) {
            Some(next) => self.sources.set(source, Time::ZERO + next.at),
            None => self.sources.clear(source),
        }
    }

    fn on_mark(&mut self, now: Time, source: SourceId) {
        self.marks.remove(0);
        let metrics = now >= Time::ZERO + self.scenario.measure_from;
        self.snoop.iter_mut().filter(|_| metrics).for_each(|snoop| snoop.begin_metrics());
        for flow in &mut self.flows {
            match &mut flow.play {
                Play::Tcp(connection) | Play::Half(connection) if metrics => connection.begin_metrics(now),
                Play::Tcp(connection) | Play::Half(connection) => connection.begin_start_up(now),
                Play::Rate(rate) if metrics => rate.begin_metrics(now),
                Play::Rate(rate) => rate.begin_start_up(now),
                Play::Schedule(_) | Play::Page(_) => {}
            }
        }
        match self.marks.first() {
            Some(next) => self.sources.set(source, *next),
            None => self.sources.clear(source),
        }
    }
}

/// Where each flow's packets go, and whose they count as.
fn routes(scenario: &Scenario, slots: &[Slot]) -> Vec<Route> {
    let first = scenario.flows.len() - slots.len();
    let counted_by = |i: usize| i.checked_sub(first).map_or(i, |slot| slots[slot].page) as u32;
    let route = |(i, flow): (usize, &Flow)| Route { from: flow.from, to: flow.to, counted_by: counted_by(i) };
    scenario.flows.iter().enumerate().map(route).collect()
}

impl Engine<'_, '_> {
    /// One report per flow, in the order of the scenario; connections of pages have none of their own.
    pub fn flow_reports(&mut self, end: Time) -> Vec<FlowReport> {
        let scenario = self.scenario;
        self.settle_losses();
        let own = self.flows.len() - self.slots.len() - self.halves.count();
        let firsts: Vec<_> = (0..own).map(|flow| self.first_half(flow, end)).collect();
        let snoop = self.snoop.as_ref();
        let pairs = scenario.flows.iter().zip(&mut self.flows[..own]).zip(firsts);
        pairs
            .enumerate()
            .map(|(i, ((flow, running), first))| {
                let (from, to) = (scenario.host_name(flow.from), scenario.host_name(flow.to));
                let mut report = running.meter.finish(&flow.name, from, to, flow.kind.name());
                match &mut running.play {
                    Play::Tcp(connection) | Play::Half(connection) => {
                        let (start_up, mut metrics) = connection.reports(end);
                        metrics.local_retransmitted = snoop.map(|snoop| snoop.retransmitted(i));
                        (report.start_up.tcp, report.metrics.tcp) = (start_up, Some(metrics));
                    }
                    Play::Rate(rate) => {
                        let (start_up, metrics) = rate.reports(end);
                        (report.start_up.rate_control, report.metrics.rate_control) = (start_up, Some(metrics));
                    }
                    Play::Page(loader) => {
                        report.metrics.page = Some(PageReport { load_ms: loader.load_ms().into_iter().collect() });
                    }
                    Play::Schedule(_) => {}
                }
                if let Some((start_up, metrics)) = first {
                    (report.start_up.first_half, report.metrics.first_half) = (start_up, Some(metrics));
                }
                report
            })
            .collect()
    }
}

/// Where a wire ends.
fn far_end(wires: &Wires, wire: usize) -> Target {
    let index = wire as u32;
    match wires.id(wire) {
        WireId::FromServer(_) | WireId::WanUp => Target::ToW0(index),
        WireId::WanDown => Target::ToAccessPoint(index),
        WireId::ToServer(_) => Target::ToServer(index),
    }
}
