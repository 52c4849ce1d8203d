//! The run: one loop over what happens next, and what each event leads to.
//!
//! A packet crosses, one way or the other,
//! `server - its link - W0 - wan - access point - medium - station`; a flow may begin and end at any of the hosts.
//! What happens next is asked of the [`Sources`]; the channel is asked beside them, for it has the next event most often. Of
//! things that fall on one nanosecond the channel's come first, then what was set first. How packets cross stands in `path`,
//! what the ends of flows do in `ends`, `rate`, `requests` and `pages`, what the access point does in
//! [`crate::access_point`].

mod build;
mod ends;
mod pages;
mod path;
mod rate;
mod requests;

use lasthop_core::units::Time;
use lasthop_home::report::LossPlace;
use lasthop_home::retune::Retune;
use lasthop_home::scenario::Scenario;
use lasthop_medium::{self as wifi, Medium, NodeId};

use crate::SimError;
use crate::access_point::{AccessPoint, Context};
use crate::flows::{Flows, Play};
use crate::options::{Options, Progress};
use crate::packet::{Sacks, SimPacket, flag};
use crate::pcap::Capture;
use crate::sources::{Source, Sources};
use crate::trace::Tracer;
use crate::web::Slots;
use crate::wires::{WireId, Wires};

/// Events between two questions whether to go on.
const PROGRESS_CHECK: u64 = 1 << 16;

/// See the module.
pub struct Engine<'a, 'o> {
    /// With all flows.
    scenario: &'a Scenario,
    options: &'a mut Options<'o>,
    end: Time,
    events: u64,
    sources: Sources,
    pub(crate) wires: Wires,
    pub(crate) medium: Medium<SimPacket>,
    /// When the channel may have something next; [`Time::MAX`]: never without another packet.
    medium_at: Time,
    /// The channel was given a packet or asked: `medium_at` is to be read anew.
    medium_moved: bool,
    pub(crate) flows: Flows,
    /// Which of them are connections of pages.
    pages: &'a Slots,
    pub(crate) access_point: AccessPoint,
    sacks: Sacks,
    tracer: Tracer,
    capture: Option<Capture<'o>>,
    changes: usize,
    marks: Vec<Time>,
    failed: Option<SimError>,
}

impl Engine<'_, '_> {
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
            let at = self.sources.next_deadline();
            if self.medium_at.min(at) >= self.end {
                let last = Time::ZERO + self.end.since(Time::from_nanos(1));
                self.settle_medium(last);
                if self.wires.gathers() {
                    self.merge(last);
                }
                return Ok(());
            }
            self.events += 1;
            if self.medium_at <= at {
                let _ = self.on_channel(self.medium_at);
            } else {
                self.on_source(at, self.sources.next());
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
        let now = self.sources.next_deadline().min(self.end);
        let progress = Progress { now, end: self.end, events: self.events };
        let go_on = self.options.progress.as_mut().is_none_or(|ask| ask(progress));
        if go_on { Ok(()) } else { Err(SimError::Stopped) }
    }

    /// Events so far.
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// Gives the caller what became of the packets of the first `flows` flows over time, where that was asked for.
    pub fn give_packets(&mut self, flows: usize) {
        let packets = self.flows.iter().take(flows).map(|flow| flow.meter.course()).collect();
        if let Some(to) = &mut self.options.packets {
            **to = packets;
        }
    }

    #[inline]
    fn on_source(&mut self, now: Time, source: Source) {
        match source {
            Source::Wire(wire @ (WireId::FromServer(_) | WireId::WanUp)) => self.on_wire(now, wire, Self::at_w0),
            Source::Wire(wire @ WireId::WanDown) => {
                if self.wires.gathers() {
                    self.merge(now);
                }
                self.on_wire(now, wire, Self::at_access_point);
                self.look_ahead_wan();
            }
            Source::Wire(wire @ WireId::ToServer(_)) => self.on_wire(now, wire, Self::arrive),
            Source::Schedule(flow) => self.on_schedule(now, flow),
            Source::Browser(page) => self.on_browser(now, page),
            Source::Sender(flow) => self.on_sender(now, flow),
            Source::Receiver(flow) => {
                self.sources.clear(source);
                self.answer(now, flow);
            }
            Source::Pacer(flow) => self.on_rate_sender(now, flow),
            Source::Reporter(flow) => self.report(now, flow),
            Source::Feed(flow) => self.on_feed(now, flow),
            Source::Exchange(flow) => self.exchange(now, flow),
            Source::Stage(stage) => self.on_stage(now, stage),
            Source::Interval(stage) => {
                if self.access_point.retunes(stage) {
                    self.settle_medium(now);
                }
                self.access_point.on_interval(stage, now, &mut self.medium);
                self.sources.renew(source, self.access_point.next_interval(stage));
            }
            Source::Change => self.on_change(now),
            Source::Mark => self.on_mark(now),
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
                if to == NodeId::ACCESS_POINT {
                    self.leave_channel(now, packet);
                } else {
                    debug_assert_eq!(from, NodeId::ACCESS_POINT);
                    self.left_access_point(now, &packet);
                    self.arrive(now, &packet);
                }
            }
            wifi::Event::Dropped { node, place, packet, .. } => {
                if node == NodeId::ACCESS_POINT {
                    self.left_access_point(now, &packet);
                }
                let place = match (place, node) {
                    (wifi::DropPlace::Channel, _) => LossPlace::Channel,
                    (wifi::DropPlace::Queue, NodeId::ACCESS_POINT) => LossPlace::ApQueue,
                    (wifi::DropPlace::Queue, _) => LossPlace::StationQueue,
                };
                if self.access_point.is_empty() || !self.may_be_repaired(now, &packet, place) {
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

    /// The access point's stages, and what they look at.
    #[inline]
    fn stages(&mut self) -> (&mut AccessPoint, Context<'_>) {
        let Self { access_point, flows, sacks, medium, sources, .. } = self;
        (access_point, Context::new(flows, sacks, medium, sources))
    }

    #[inline]
    fn left_access_point(&mut self, now: Time, packet: &SimPacket) {
        if self.access_point.follows() {
            self.access_point.on_left(now, packet);
        }
    }

    /// A stage's own time has come.
    fn on_stage(&mut self, now: Time, stage: usize) {
        self.medium_moved = true;
        loop {
            let (access_point, mut context) = self.stages();
            let Some(packet) = access_point.poll(stage, now, &mut context) else { break };
            self.sent_by(now, stage, &packet);
        }
        self.await_stages();
    }

    /// Reads anew when the stages have something to do by themselves.
    #[inline]
    fn await_stages(&mut self) {
        for stage in 0..self.access_point.len() {
            self.sources.keep(Source::Stage(stage), self.access_point.next_deadline(stage));
        }
    }

    /// A packet was lost in the channel or in a queue before it: whether a copy of it may be sent yet.
    #[cold]
    fn may_be_repaired(&mut self, now: Time, packet: &SimPacket, place: LossPlace) -> bool {
        let (access_point, mut context) = self.stages();
        access_point.on_lost(now, packet, place, &mut context)
    }

    fn lose(&mut self, packet: &SimPacket, place: LossPlace) {
        if packet.has(flag::BACK) {
            let _ = self.sacks.take(packet.sack);
        } else {
            self.flows.meter(packet).on_lost(packet.sent, place);
        }
    }

    fn on_change(&mut self, now: Time) {
        self.settle_medium(now);
        let change = &self.scenario.changes[self.changes];
        Retune::new(&change.after).apply(&mut self.medium);
        self.wires.retune(now, &change.after);
        self.access_point.on_change(now, &change.after);
        self.changes += 1;
        let next = self.scenario.changes.get(self.changes).map(|next| Time::ZERO + next.at);
        self.sources.renew(Source::Change, next);
    }

    fn on_mark(&mut self, now: Time) {
        self.marks.remove(0);
        let metrics = now >= Time::ZERO + self.scenario.measure_from;
        if metrics {
            self.access_point.begin_metrics();
        }
        for flow in self.flows.iter_mut() {
            match &mut flow.play {
                Play::Tcp(connection) if metrics => connection.begin_metrics(now),
                Play::Tcp(connection) => connection.begin_start_up(now),
                Play::Rate(rate) if metrics => rate.begin_metrics(now),
                Play::Rate(rate) => rate.begin_start_up(now),
                Play::Schedule(_) | Play::Page(_) => {}
            }
        }
        self.sources.renew(Source::Mark, self.marks.first().copied());
    }
}
