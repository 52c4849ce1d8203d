//! The access point: what it does with the packets that pass between it and its stations, as a chain of stages.
//!
//! ```text
//!             window     CLAMP      Snoop
//! from W0 ------o----------o----------o-----> queue and air     a packet to a station passes them in this order,
//! to W0   <-----o----------o----------o------ air               one from a station in the other direction
//! ```
//!
//! Every stage has the shape of [`Stage`]: it is shown packets as they pass, arrive or are lost, it has times of its own,
//! and it says at the end what it did. Split connections are a stage, too: they end at the access point, which joins their
//! halves. A scenario has the stages that it asks for, most have none.

mod clamp;
mod driver;
mod levers;
mod snoop;
mod split;
mod window;

use lasthop_core::packet::Direction;
use lasthop_core::units::Time;
use lasthop_home::report::{FlowReport, LossPlace, Report};
use lasthop_home::scenario::Scenario;
use lasthop_medium::Medium;

use crate::expansion::Expansion;
use crate::flows::Flows;
use crate::packet::{Sacks, SimPacket};
use crate::sources::{Source, Sources};
use clamp::Clamp;
use snoop::SnoopControl;
use split::SplitConnections;
use window::WindowControl;

/// What becomes of a packet at a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageVerdict {
    /// It goes on, perhaps changed.
    Forward,
    /// It has done its work and goes no further; it is not lost.
    Consume,
    /// It is lost.
    Drop,
}

/// What stages look at and touch beside the packet.
pub struct Context<'a> {
    pub flows: &'a mut Flows,
    pub sacks: &'a mut Sacks,
    /// What is behind the access point: a stage may hand it packets.
    pub medium: &'a mut Medium<SimPacket>,
    sources: &'a mut Sources,
    /// The stage that looks.
    stage: usize,
}

impl<'a> Context<'a> {
    /// For whichever stage is asked.
    #[inline]
    pub const fn new(
        flows: &'a mut Flows,
        sacks: &'a mut Sacks,
        medium: &'a mut Medium<SimPacket>,
        sources: &'a mut Sources,
    ) -> Self {
        Self { flows, sacks, medium, sources, stage: 0 }
    }

    /// Starts the stage's timer anew, even if its time stays: of events at one time, those that were set before come first.
    pub fn restart(&mut self, at: Option<Time>) {
        self.sources.renew(Source::Stage(self.stage), at);
    }
}

/// What an access point may do. By default it does nothing.
pub trait Stage {
    /// Whether it follows packets beyond the access point: [`Self::on_left`], [`Self::on_segment`],
    /// [`Self::on_acknowledged`].
    fn follows(&self) -> bool {
        false
    }

    /// A packet is in flight from the access point to a station, or has come from one.
    fn on_packet(&mut self, _: Time, _: Direction, _: &mut SimPacket, _: &mut Context<'_>) -> StageVerdict {
        StageVerdict::Forward
    }

    /// A packet that the channel was given for a station is there no more: it has arrived or is lost.
    fn on_left(&mut self, _: Time, _: &SimPacket) {}

    /// A packet is lost in the channel or in a queue before it. True: a copy of it may be sent yet, and its loss is not to be
    /// counted.
    fn on_lost(&mut self, _: Time, _: &SimPacket, _: LossPlace, _: &mut Context<'_>) -> bool {
        false
    }

    /// The receiver of `flow` has a segment with `fresh` new bytes. The flow whose sender has to be asked then.
    fn on_segment(&mut self, _: Time, _flow: usize, _fresh: u32, _: &mut Flows) -> Option<usize> {
        None
    }

    /// The sender of `flow` has an acknowledgment. The flow whose receiver has to be asked then.
    fn on_acknowledged(&mut self, _flow: usize, _: &mut Flows) -> Option<usize> {
        None
    }

    /// What is to be done now: what it has for the channel it hands over itself, a packet that is to go on from the access
    /// point comes back. Asked until there is none.
    fn poll(&mut self, _: Time, _: &mut Context<'_>) -> Option<SimPacket> {
        None
    }

    /// When [`Self::poll`] may have something. The engine reads it after a packet from a station has gone on, and after
    /// `poll`. A stage whose deadline moves at other times says so by [`Context::restart`].
    fn next_deadline(&self) -> Option<Time> {
        None
    }

    /// Its interval ends.
    fn on_interval(&mut self, _: Time, _: &mut Medium<SimPacket>) {}

    /// Whether it may set something in the channel then.
    fn retunes(&self) -> bool {
        false
    }

    /// When its interval ends, if it has one.
    fn next_interval(&self) -> Option<Time> {
        None
    }

    /// The home has changed: it is as `scenario` has it from here on.
    fn on_change(&mut self, _: Time, _scenario: &Scenario) {}

    /// The figures proper begin.
    fn begin_metrics(&mut self) {}

    /// The run is over: what was not counted yet is counted.
    fn finish(&mut self, _: &mut Flows) {}

    /// What it did to `flow`.
    fn report_flow(&self, _flow: usize, _end: Time, _: &mut Flows, _: &mut FlowReport) {}

    /// What it did.
    fn report(&self, _: &Scenario, _: &mut Report) {}
}

/// One of them. An enum, since stages are asked for every packet.
enum AnyStage {
    Window(Box<WindowControl>),
    Clamp(Box<Clamp>),
    Snoop(Box<SnoopControl>),
    Split(Box<SplitConnections>),
}

/// The same call of whichever stage there is.
macro_rules! stage {
    ($any:expr, $stage:ident => $call:expr) => {
        match $any {
            AnyStage::Window($stage) => $call,
            AnyStage::Clamp($stage) => $call,
            AnyStage::Snoop($stage) => $call,
            AnyStage::Split($stage) => $call,
        }
    };
}

impl AnyStage {
    fn follows(&self) -> bool {
        stage!(self, stage => stage.follows())
    }
}

/// See the module. Stages are numbered in the order in which a packet to a station passes them.
pub struct AccessPoint {
    stages: Vec<AnyStage>,
    /// Whether any follows packets.
    follows: bool,
}

impl AccessPoint {
    /// As the scenario wants it.
    pub fn new(expansion: &Expansion<'_>) -> Self {
        let scenario = &*expansion.home;
        let control = &scenario.control;
        let window =
            control.window.as_ref().map(|wanted| AnyStage::Window(WindowControl::new(scenario, wanted).into()));
        let clamp = control.clamp.as_ref().map(|wanted| AnyStage::Clamp(Clamp::new(scenario, wanted).into()));
        let flows = scenario.flows.len();
        let snoop = scenario.snoop().map(|params| AnyStage::Snoop(SnoopControl::new(params, flows).into()));
        let split = control
            .split
            .map(|wanted| AnyStage::Split(SplitConnections::new(expansion.halves.clone(), wanted.buffer.0).into()));
        let stages: Vec<_> = [window, clamp, snoop, split].into_iter().flatten().collect();
        Self { follows: stages.iter().any(AnyStage::follows), stages }
    }

    /// How many stages there are.
    pub const fn len(&self) -> usize {
        self.stages.len()
    }

    /// Whether it only forwards.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.stages.is_empty()
    }

    /// Whether it follows packets beyond itself ([`Stage::follows`]).
    #[inline]
    pub const fn follows(&self) -> bool {
        self.follows
    }

    /// [`Stage::on_packet`] of one after the other, on the way to a station from the `first` on, until a packet does not go on.
    #[inline]
    pub fn on_packet(
        &mut self,
        now: Time,
        (direction, first): (Direction, usize),
        packet: &mut SimPacket,
        context: &mut Context<'_>,
    ) -> StageVerdict {
        let mut pass = |(i, any): (usize, &mut AnyStage)| {
            context.stage = i;
            match stage!(any, stage => stage.on_packet(now, direction, packet, context)) {
                StageVerdict::Forward => None,
                other => Some(other),
            }
        };
        let stages = self.stages.iter_mut().enumerate();
        let ended = match direction {
            Direction::ToStation => stages.skip(first).find_map(&mut pass),
            Direction::ToRemote => stages.rev().find_map(&mut pass),
        };
        ended.unwrap_or(StageVerdict::Forward)
    }

    /// [`Stage::on_left`].
    #[inline]
    pub fn on_left(&mut self, now: Time, packet: &SimPacket) {
        for any in &mut self.stages {
            stage!(any, stage => stage.on_left(now, packet));
        }
    }

    /// [`Stage::on_lost`]: whether any says so.
    pub fn on_lost(&mut self, now: Time, packet: &SimPacket, place: LossPlace, context: &mut Context<'_>) -> bool {
        let mut waits = false;
        for (i, any) in self.stages.iter_mut().enumerate() {
            context.stage = i;
            waits |= stage!(any, stage => stage.on_lost(now, packet, place, context));
        }
        waits
    }

    /// [`Stage::on_segment`]: what any says.
    pub fn on_segment(&mut self, now: Time, flow: usize, fresh: u32, flows: &mut Flows) -> Option<usize> {
        let mut other = None;
        for any in &mut self.stages {
            other = other.or(stage!(any, stage => stage.on_segment(now, flow, fresh, flows)));
        }
        other
    }

    /// [`Stage::on_acknowledged`]: what any says.
    pub fn on_acknowledged(&mut self, flow: usize, flows: &mut Flows) -> Option<usize> {
        let mut other = None;
        for any in &mut self.stages {
            other = other.or(stage!(any, stage => stage.on_acknowledged(flow, flows)));
        }
        other
    }

    /// [`Stage::poll`] of one.
    pub fn poll(&mut self, stage: usize, now: Time, context: &mut Context<'_>) -> Option<SimPacket> {
        context.stage = stage;
        stage!(&mut self.stages[stage], stage => stage.poll(now, context))
    }

    /// [`Stage::next_deadline`] of one.
    #[inline]
    pub fn next_deadline(&self, stage: usize) -> Option<Time> {
        stage!(&self.stages[stage], stage => stage.next_deadline())
    }

    /// [`Stage::on_interval`] of one.
    pub fn on_interval(&mut self, stage: usize, now: Time, medium: &mut Medium<SimPacket>) {
        stage!(&mut self.stages[stage], stage => stage.on_interval(now, medium));
    }

    /// [`Stage::retunes`] of one.
    pub fn retunes(&self, stage: usize) -> bool {
        stage!(&self.stages[stage], stage => stage.retunes())
    }

    /// [`Stage::next_interval`] of one.
    pub fn next_interval(&self, stage: usize) -> Option<Time> {
        stage!(&self.stages[stage], stage => stage.next_interval())
    }

    /// [`Stage::on_change`].
    pub fn on_change(&mut self, now: Time, scenario: &Scenario) {
        for any in &mut self.stages {
            stage!(any, stage => stage.on_change(now, scenario));
        }
    }

    /// [`Stage::begin_metrics`].
    pub fn begin_metrics(&mut self) {
        for any in &mut self.stages {
            stage!(any, stage => stage.begin_metrics());
        }
    }

    /// [`Stage::finish`].
    pub fn finish(&mut self, flows: &mut Flows) {
        for any in &mut self.stages {
            stage!(any, stage => stage.finish(flows));
        }
    }

    /// [`Stage::report_flow`].
    pub fn report_flow(&self, flow: usize, end: Time, flows: &mut Flows, report: &mut FlowReport) {
        for any in &self.stages {
            stage!(any, stage => stage.report_flow(flow, end, flows, report));
        }
    }

    /// [`Stage::report`].
    pub fn report(&self, scenario: &Scenario, report: &mut Report) {
        for any in &self.stages {
            stage!(any, stage => stage.report(scenario, report));
        }
    }

    /// What the window control was shown.
    #[cfg(test)]
    pub fn seen(&mut self) -> Option<Vec<window::Seen>> {
        self.stages.iter_mut().find_map(|any| match any {
            AnyStage::Window(window) => Some(std::mem::take(&mut window.seen)),
            _ => None,
        })
    }
}
