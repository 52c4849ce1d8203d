//! How a run begins.

use lasthop_core::units::Time;
use lasthop_home::course::MOST_FLOWS;
use lasthop_home::scenario::{Kind, LastHop, Scenario, ScenarioError};
use lasthop_medium::Medium;

use super::Engine;
use crate::SimError;
use crate::access_point::AccessPoint;
use crate::expansion::Expansion;
use crate::flows::{Flows, Play, Running};
use crate::options::Options;
use crate::packet::{Sacks, SimPacket};
use crate::pcap::{Capture, Ends};
use crate::sources::{Source, Sources};
use crate::trace::Tracer;
use crate::web::Slots;
use crate::wires::Wires;

impl<'a, 'o> Engine<'a, 'o> {
    /// At the start of the run.
    ///
    /// # Errors
    /// A key that the simulator does not carry.
    pub fn new(expansion: &'a Expansion<'_>, options: &'a mut Options<'o>) -> Result<Self, SimError> {
        let scenario = &*expansion.home;
        let wires = Wires::new(scenario);
        let mut flows = Flows::new(expansion)?;
        if options.packets.is_some() {
            flows.iter_mut().take(MOST_FLOWS).for_each(|flow| flow.meter.keep_course(scenario.duration));
        }
        if let Some(laws) = &mut options.laws {
            for (flow, running) in scenario.flows.iter().zip(flows.iter_mut()) {
                if let Play::Tcp(connection) = &mut running.play
                    && let Some(law) = laws(&flow.name)
                {
                    connection.sender.set_law(law);
                }
            }
        }
        let access_point = AccessPoint::new(expansion);
        let (params, stations) = scenario.medium();
        let mut medium = Medium::new(params, stations, scenario.seed);
        medium.record_attempts(options.pcap.is_some());
        let capture = capture(expansion, options, &medium, &flows)?;
        let marks = [scenario.youngest_start(), scenario.measure_from];
        let mut engine = Self {
            end: Time::ZERO + scenario.duration,
            events: 0,
            sources: Sources::new(&wires, access_point.len(), flows.iter().map(Running::sources)),
            wires,
            medium,
            medium_at: Time::MAX,
            medium_moved: true,
            flows,
            pages: &expansion.pages,
            access_point,
            sacks: Sacks::default(),
            tracer: Tracer::new(scenario, options.trace.is_some()),
            capture,
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
        for (i, flow) in self.flows.iter().enumerate() {
            if let Some(at) = flow.feed.as_ref().and_then(|feed| feed.next_deadline()) {
                self.sources.set(Source::Feed(i), at);
            }
            let (source, at) = match &flow.play {
                Play::Tcp(_) => (Source::Sender(i), flow.start),
                Play::Rate(_) => (Source::Pacer(i), flow.start),
                Play::Page(_) => (Source::Browser(i), flow.start),
                Play::Schedule(schedule) => {
                    (Source::Schedule(i), schedule.next.map(|emission| Time::ZERO + emission.at))
                }
            };
            self.sources.keep(source, at);
        }
        for stage in 0..self.access_point.len() {
            self.sources.keep(Source::Interval(stage), self.access_point.next_interval(stage));
        }
        self.sources.keep(Source::Change, self.scenario.changes.first().map(|change| Time::ZERO + change.at));
        self.sources.keep(Source::Mark, self.marks.first().copied());
    }
}

/// The capture that is wanted, if one is.
fn capture<'o>(
    expansion: &Expansion<'_>,
    options: &mut Options<'o>,
    medium: &Medium<SimPacket>,
    flows: &Flows,
) -> Result<Option<Capture<'o>>, SimError> {
    let Some(out) = options.pcap.take() else { return Ok(None) };
    can_capture(&expansion.home, &expansion.pages)?;
    let seen = |i: usize| match &flows[i].play {
        Play::Tcp(connection) => Some(connection.seen()),
        Play::Schedule(_) | Play::Page(_) | Play::Rate(_) => None,
    };
    let Some(phy) = medium.phy().copied() else { return Ok(None) };
    Ok(Some(Capture::new(out, phy, Ends::of(&expansion.home, seen))?))
}

/// Whether a capture shows all that crosses the channel.
fn can_capture(scenario: &Scenario, pages: &Slots) -> Result<(), ScenarioError> {
    let why = "a capture shows frames of the air, and there is none";
    match scenario.hop {
        LastHop::Wifi(_) => {}
        LastHop::Bridge(_) => return Err(scenario.refuse("bridge", why)),
        LastHop::WirelessLink(_) => return Err(scenario.refuse("wireless_link", why)),
    }
    let kind = |flow: usize| format!("flow.{}.kind", scenario.flows[flow].table);
    if let Some(page) = pages.first_page() {
        return Err(scenario.refuse(&kind(page), "a capture does not show the requests of a browser"));
    }
    if let Some(flow) = scenario.flows.iter().position(|flow| matches!(flow.kind, Kind::RequestResponse(_))) {
        return Err(scenario.refuse(&kind(flow), "a capture does not show requests"));
    }
    Ok(())
}
