//! Levers of the simulated air: what [`lasthop_core::levers`] decides is set in the channel, and what it decides by is measured there.
//!
//! A sparse packet's wait is the time from when it comes to the access point until it has arrived or is given up. Which levers work
//! follows from the cell: a class where both ends have classes, AQL where the queue is one of Linux with such a limit, aggregates where
//! there are any. Weights of stations the simulated queue does not have. Attempts are set for all stations of a class, the most that
//! any of them needs, as a phy's retry limits are.

use std::collections::BTreeMap;

use lasthop_core::ap::{Ap, StationId};
use lasthop_core::aqm::Discipline;
use lasthop_core::elastic::Behaviour;
use lasthop_core::fastpath::udp::FULL_BYTES;
use lasthop_core::levers::{
    Action, Contention, FlowSample, Lever, LeverSnapshot, Levers, LinkSample, Params, Setting, Stage, StationSample,
};
use lasthop_core::packet::{AccessCategory, Direction, FlowId, Packet as _};
use lasthop_core::units::{BitRate, Span, Time};
use lasthop_home::report::{LeverReport, LeversReport};
use lasthop_home::scenario::{CLASS_WORDS, LastHop, Scenario};
use lasthop_medium::{Ampdu, EdcaClass, Medium, MediumParams, NodeId, StationParams};

use super::driver::Sent;
use crate::packet::{SimPacket, class, flag};

/// Sparse packets on their way that are followed; further ones tell of no wait.
const MOST_FOLLOWED: usize = 4_096;

/// See the module.
pub struct LeverControl {
    levers: Levers,
    /// Of UDP to the stations, by flow: packets, bytes, bytes in full packets.
    counts: Vec<[u64; 3]>,
    /// By flow.
    classes: Vec<AccessCategory>,
    has_classes: bool,
    /// When they came, by flow and number.
    followed: BTreeMap<(u32, u64), Time>,
    /// Of the access point, as the scenario has it.
    params: MediumParams,
    /// Of stations that are somebody else's, nothing is set.
    is_own: Vec<bool>,
    /// By station: of streams and of the rest.
    attempts: BTreeMap<StationId, [u8; 2]>,
    has_attempts: bool,
    decisions: u64,
}

impl LeverControl {
    /// With the levers that are wanted and that the cell has; `None`: there is none.
    pub fn new(scenario: &Scenario) -> Option<Box<Self>> {
        let wanted = &scenario.control.levers;
        if wanted.is_empty() || !matches!(scenario.hop, LastHop::Wifi(_)) {
            return None;
        }
        let (params, stations) = scenario.medium();
        let mut levers = Levers::new(Params::default());
        for lever in wanted {
            if let Some(found) = found(*lever, &params, &stations) {
                levers.on_found(found);
            }
        }
        let flows = scenario.flows.len();
        let mut control = Self {
            levers,
            counts: vec![[0; 3]; flows],
            classes: vec![AccessCategory::Be; flows],
            has_classes: false,
            followed: BTreeMap::new(),
            params,
            is_own: scenario.stations.iter().map(|station| !station.neighbour).collect(),
            attempts: BTreeMap::new(),
            has_attempts: false,
            decisions: 0,
        };
        for (i, station) in (0u32..).zip(&stations) {
            let rate = station.rate.bit_rate();
            let known = StationSample { station: StationId(i), rate, loss: None, bulk: None };
            control.levers.on_station(Time::ZERO, &known);
        }
        control.apply(Time::ZERO, None);
        Some(Box::new(control))
    }

    /// Most that waits below the access point's queue, where that is fair to flows and what is sparse has a class of its own.
    pub fn fair_queue(&self) -> Option<Span> {
        let below = match &self.params.queue {
            Discipline::Mac80211(own, _) => own.aql?.threshold,
            // Without a queue of the firmware they hand over what the next frame takes.
            Discipline::FqCodel(..) | Discipline::Chap(..) if self.params.firmware_queue == 0 => Ampdu::LONGEST,
            _ => return None,
        };
        self.levers.is_kept(Lever::Class).then_some(below)
    }

    /// A datagram for a station passes the access point.
    pub fn on_datagram(&mut self, now: Time, packet: &mut SimPacket) {
        let flow = packet.flow as usize;
        let Some(counts) = self.counts.get_mut(flow) else { return };
        let bytes = u64::from(packet.bytes);
        let full = if u32::from(packet.bytes) >= FULL_BYTES { bytes } else { 0 };
        for (count, new) in counts.iter_mut().zip([1, bytes, full]) {
            *count += new;
        }
        let wanted = self.classes[flow];
        if wanted == AccessCategory::Be {
            return;
        }
        if self.followed.len() < MOST_FOLLOWED {
            self.followed.insert((packet.flow, packet.position.offset()), now);
        }
        // What brings a class of its own keeps it.
        if self.has_classes && packet.access_category() == AccessCategory::Be {
            packet.flags = packet.flags & !(3 << flag::CLASS) | class(wanted);
        }
    }

    /// A packet has arrived, or is lost.
    pub fn on_left(&mut self, now: Time, packet: &SimPacket) {
        if !packet.has(flag::TCP)
            && let Some(came) = self.followed.remove(&(packet.flow, packet.position.offset()))
        {
            self.levers.on_wait(now, now.since(came));
        }
    }

    /// Closes an interval; `bytes`: what passed so far, by direction.
    pub fn on_interval(
        &mut self,
        now: Time,
        (ap, stations, bytes): (&Ap, &[StationId], [u64; 2]),
        sent: &[Sent],
        medium: &mut Medium<SimPacket>,
    ) {
        let mut elastic = vec![Behaviour::Unknown; self.counts.len()];
        for flow in ap.udp_flows().snapshot() {
            let own = &mut elastic[flow.flow.0 as usize];
            // What answers an elastic flow is none of its own; of two ways the worse counts.
            if *own != Behaviour::Elastic
                && (flow.direction == Direction::ToStation || flow.behaviour == Behaviour::Elastic)
            {
                *own = flow.behaviour;
            }
        }
        for (i, [packets, bytes, full_bytes]) in self.counts.iter().copied().enumerate().filter(|(_, own)| own[0] > 0) {
            let (flow, station) = (FlowId(i as u32), stations[i]);
            let sample = FlowSample { flow, station, packets, bytes, full_bytes, behaviour: elastic[i] };
            self.levers.on_flow(now, &sample);
        }
        if !sent.is_empty() {
            self.on_stations(now, ap, stations, sent);
        }
        self.levers.on_link(now, &LinkSample { bytes, airtime: medium.airtime() });
        self.apply(now, Some(medium));
    }

    /// What the driver says of the stations.
    fn on_stations(&mut self, now: Time, ap: &Ap, stations: &[StationId], sent: &[Sent]) {
        let mut bulk: BTreeMap<StationId, (BitRate, Span)> = BTreeMap::new();
        for flow in ap.snapshot().flows.iter().filter(|flow| flow.direction == Direction::ToStation) {
            let rtt = flow.local_rtt.unwrap_or_default() + flow.remote_rtt.unwrap_or_default();
            let Some(station) = stations.get(flow.flow.0 as usize) else { continue };
            let asks = |(rate, rtt): (BitRate, Span)| rate.as_bps() as f64 * rtt.as_secs_f64();
            let most = bulk.entry(*station).or_insert((flow.rate, rtt));
            if asks((flow.rate, rtt)) > asks(*most) {
                *most = (flow.rate, rtt);
            }
        }
        for Sent { station, rate, loss } in sent {
            let station = StationId(*station as u32);
            let sample = StationSample { station, rate: *rate, loss: Some(*loss), bulk: bulk.get(&station).copied() };
            self.levers.on_station(now, &sample);
        }
    }

    fn apply(&mut self, now: Time, mut medium: Option<&mut Medium<SimPacket>>) {
        while let Some(action) = self.levers.poll(now) {
            match action {
                Action::SetClass { flow, class } => self.classes[flow.0 as usize] = class,
                Action::SetWeight { .. } => {}
                Action::SetAttempts { station, class, attempts } => {
                    let own = self.attempts.entry(station).or_default();
                    own[usize::from(class == AccessCategory::Be)] = attempts;
                    if let Some(medium) = medium.as_deref_mut().filter(|_| self.has_attempts) {
                        self.set_attempts(medium);
                    }
                }
                Action::Set(setting) => self.set(setting, medium.as_deref_mut()),
                Action::Say(_) => self.decisions += 1,
            }
        }
    }

    fn set(&mut self, setting: Setting, medium: Option<&mut Medium<SimPacket>>) {
        if let Setting::Class(on) = setting {
            self.has_classes = on;
        }
        let Some(medium) = medium else { return };
        let best_effort = AccessCategory::Be;
        match setting {
            Setting::Class(_) | Setting::Weights(_) => {}
            Setting::Aql(aql) => medium.set_aql(aql),
            Setting::Aggregate(bytes) => medium.set_ampdu_limit(bytes),
            Setting::Txop(Contention { cw_min, cw_max, txop, .. }) => {
                if let Some(own) = medium.class(NodeId::ACCESS_POINT, best_effort) {
                    let wanted = EdcaClass { cw_min, cw_max, txop_limit: txop, ..own };
                    medium.set_class(NodeId::ACCESS_POINT, best_effort, &wanted);
                }
            }
            Setting::StationTxop(Contention { txop, .. }) => {
                for (node, _) in (1u16..).zip(&self.is_own).filter(|(_, is_own)| **is_own) {
                    if let Some(own) = medium.class(NodeId(node), best_effort) {
                        medium.set_class(NodeId(node), best_effort, &EdcaClass { txop_limit: txop, ..own });
                    }
                }
            }
            Setting::Attempts(on) => {
                self.has_attempts = on;
                self.set_attempts(medium);
            }
        }
    }

    /// The most that any station needs, of streams and of the rest; or what was found.
    fn set_attempts(&self, medium: &mut Medium<SimPacket>) {
        for own in AccessCategory::ALL {
            let is_rest = usize::from(!matches!(own, AccessCategory::Vo | AccessCategory::Vi));
            let most = self.attempts.values().map(|attempts| attempts[is_rest]).max().filter(|most| *most > 0);
            let found = self.params.edca[own.index()].attempts;
            let attempts = if self.has_attempts { most.map(u32::from).or(found) } else { found };
            if let Some(now) = medium.class(NodeId::ACCESS_POINT, own) {
                medium.set_class(NodeId::ACCESS_POINT, own, &EdcaClass { attempts, ..now });
            }
        }
    }

    pub fn report(&self, scenario: &Scenario) -> LeversReport {
        let snapshot = self.levers.snapshot();
        let of = |own: &LeverSnapshot| {
            let (found, in_force) = (own.found?, own.in_force?);
            let report = LeverReport {
                stage: word(own.stage).to_owned(),
                found: found.to_string(),
                in_force: in_force.to_string(),
                pairs: own.compared.map(|compared| compared.pairs),
                added_ms: own.compared.map(|compared| compared.added_ms),
                carried: own.compared.map(|compared| compared.carried),
            };
            Some((own.lever.name().to_owned(), report))
        };
        let class = |(flow, class): &(FlowId, AccessCategory)| {
            let name = &scenario.flows.get(flow.0 as usize)?.name;
            Some((name.clone(), CLASS_WORDS[class.index()].to_owned()))
        };
        LeversReport {
            each: snapshot.levers.iter().filter_map(of).collect(),
            classes: snapshot.classes.iter().filter_map(class).collect(),
            trials: snapshot.trials,
            empty_trials: snapshot.empty_trials,
        }
    }
}

const fn word(stage: Stage) -> &'static str {
    match stage {
        Stage::NotHere => "not-here",
        Stage::Untried => "untried",
        Stage::Trying => "trying",
        Stage::Kept => "kept",
        Stage::TakenBack => "taken-back",
        Stage::Refused => "refused",
    }
}

/// What is in force of a lever at first; `None`: it does not work in this cell.
fn found(lever: Lever, params: &MediumParams, stations: &[StationParams]) -> Option<Setting> {
    if !params.standard.has_classes() {
        return None;
    }
    let of =
        |own: &EdcaClass| Contention { aifsn: own.aifsn, cw_min: own.cw_min, cw_max: own.cw_max, txop: own.txop_limit };
    let best_effort = AccessCategory::Be.index();
    let has_classes = |station: &&StationParams| station.standard.has_classes();
    match lever {
        Lever::Class => Some(Setting::Class(false)),
        Lever::Aql => match params.queue {
            Discipline::Mac80211(own, _) => own.aql.map(Setting::Aql),
            _ => None,
        },
        Lever::Txop => Some(Setting::Txop(of(&params.edca[best_effort]))),
        Lever::StationTxop => {
            stations.iter().find(has_classes).map(|first| Setting::StationTxop(of(&first.edca[best_effort])))
        }
        Lever::Aggregate => {
            let agreed = stations.iter().filter(has_classes).filter_map(|station| Some(station.ampdu?.bytes));
            agreed.max().map(Setting::Aggregate)
        }
        Lever::Weights => None,
        Lever::Attempts => Some(Setting::Attempts(false)),
    }
}
