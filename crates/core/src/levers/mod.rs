//! Which levers of today's Wi-Fi pay: each is tried, measured against blocks without it, and kept only where it pays.
//!
//! ```text
//! found --trial--> pays: kept, and the next step is tried          not: taken back, and the next lever is tried
//!   ^                |                                              after `again` all of them anew, those that are kept first against
//!   '--- release ----'                                              the step before
//! ```
//!
//! A host says what works here and what was found in force ([`Levers::on_found`]), hands in what sparse packets waited, what was
//! carried and which UDP flows there are, and sets what [`Action`] says. What was found is in force again after [`Levers::release`]; a host that
//! may crash has it written down before it sets anything. One lever is moved at a time.
//!
//! No table of standards stands here: 16 kB aggregates take 18 ms off voice over 802.11n's HT20, and a TXOP limit adds to it over 802.11ac. How
//! blocks are compared is `trial`; who is in which class `sparse`; attempts are those of [`attempts`]. [`Lever::Class`] is in force from the beginning, until it is found to hurt.
//!
//! Does not: set CW (what the access point gains by a smaller one, stations that upload lose), or weights of stations but of those with
//! sparse flows (a weight takes from one what it gives another, and no measure of the whole says who should have more).

pub mod attempts;
mod setting;
mod sparse;
#[cfg(test)]
mod tests;
mod trial;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::ap::StationId;
use crate::elastic::Behaviour;
use crate::packet::{AccessCategory, FlowId};
use crate::units::{BitRate, Span, Time};

pub use attempts::Traffic;
pub use setting::{Contention, Lever, Setting};
use sparse::Sparse;
pub use trial::{Comparison, Finding};
use trial::{Step, Trial};

/// How trials are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Length of a block. 1 s: some ten round trips and decisions of the window law, and 50 packets of a call.
    pub block: Span,
    /// Not counted at the beginning of a block: what waited before has left. 250 ms.
    pub settle: Span,
    /// All of them are tried anew after this. 10 min: people come and go, a neighbour begins.
    pub again: Span,
}

impl Default for Params {
    fn default() -> Self {
        Self { block: Span::from_secs(1), settle: Span::from_millis(250), again: Span::from_secs(600) }
    }
}

/// A UDP flow's packets to its station at the end of an interval; counts are cumulative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSample {
    /// The host's name for it.
    pub flow: FlowId,
    /// Where it goes.
    pub station: StationId,
    /// Packets.
    pub packets: u64,
    /// IP bytes.
    pub bytes: u64,
    /// Of these, in packets of at least [`crate::fastpath::udp::FULL_BYTES`].
    pub full_bytes: u64,
    /// What [`crate::ap::UdpFlows`] takes it for; `Unknown` where it is not looked at, for it has no full packets.
    pub behaviour: Behaviour,
}

/// What is known of a station.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StationSample {
    /// Which one.
    pub station: StationId,
    /// Rate that frames to it are sent at.
    pub rate: BitRate,
    /// Part of the attempts that is lost, 0..1; `None`: not known.
    pub loss: Option<f64>,
    /// What the most demanding TCP flow to it has, and over which round trip, from end to end; `None`: there is none.
    pub bulk: Option<(BitRate, Span)>,
}

/// What the last hop carried so far; counts begin anywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkSample {
    /// IP bytes, indexed by [`crate::packet::Direction::index`].
    pub bytes: [u64; 2],
    /// Air time that was used, by whomever; `None`: not known.
    pub airtime: Option<Span>,
}

/// What the host must do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// Packets of a flow to its station have this class while [`Setting::Class`] is on; `Be`: none but their own.
    SetClass {
        /// The flow.
        flow: FlowId,
        /// Vo, Vi or Be.
        class: AccessCategory,
    },
    /// A station has this weight, in parts of what was found, while [`Setting::Weights`] is on.
    SetWeight {
        /// Which one.
        station: StationId,
        /// 1 or [`WEIGHT`].
        times: u8,
    },
    /// Transmissions of an MPDU to a station while [`Setting::Attempts`] is on. A host that knows no stations or classes takes the most of any.
    SetAttempts {
        /// Which one.
        station: StationId,
        /// Vo for streams, Be for the rest.
        class: AccessCategory,
        /// Of one MPDU, in all; 2 to 7.
        attempts: u8,
    },
    /// A lever is to be set so from here on.
    Set(Setting),
    /// Tell whoever watches.
    Say(Decision),
}

/// Weight of a station with sparse flows, in parts of that of others. Ours: four turns for one of the others.
pub const WEIGHT: u8 = 4;

/// A decision worth a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decision {
    /// A setting is tried.
    Trying(Setting),
    /// It is in force from here on.
    Kept(Setting, Comparison),
    /// The one that is named is in force again: the other one was found to be this.
    TakenBack(Setting, Finding, Comparison),
    /// The driver refuses it: it is not tried any more.
    Refused(Lever),
}

/// What became of a lever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// It does not work here, or is not wanted.
    #[default]
    NotHere,
    /// It was not tried yet.
    Untried,
    /// It is being tried.
    Trying,
    /// A step of it is in force.
    Kept,
    /// It is as it was found.
    TakenBack,
    /// The driver refuses it.
    Refused,
}

/// A lever, for status and report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeverSnapshot {
    /// Which.
    pub lever: Lever,
    /// What became of it.
    pub stage: Stage,
    /// As it was found.
    pub found: Option<Setting>,
    /// In force now.
    pub in_force: Option<Setting>,
    /// The newest trial that ended.
    pub compared: Option<Comparison>,
}

/// What it sees and does.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// By [`Lever::index`].
    pub levers: Vec<LeverSnapshot>,
    /// Flows that have a class.
    pub classes: Vec<(FlowId, AccessCategory)>,
    /// Samples of flows that there was no room for.
    pub untracked: u64,
    /// Trials that ended, and those that ended for want of anything to measure by.
    pub trials: u64,
    /// See `trials`.
    pub empty_trials: u64,
}

/// Of one lever: what was found, and every step that is in force beyond it.
#[derive(Clone, Debug, Default)]
struct Own {
    stage: Stage,
    /// The first is what was found; the last is what holds when nothing is tried.
    steps: Vec<Setting>,
    in_force: Option<Setting>,
    compared: Option<Comparison>,
}

#[derive(Clone, Debug)]
struct Running {
    lever: Lever,
    without: Setting,
    with: Setting,
    /// `with` was in force before.
    is_check: bool,
    trial: Trial,
}

/// Stations of which attempts and weights are remembered: an 802.11 access point tells 2,007 apart.
const MOST_STATIONS: usize = 2_048;

/// See the module.
#[derive(Clone, Debug)]
pub struct Levers {
    params: Params,
    own: [Own; Lever::ALL.len()],
    sparse: Sparse,
    /// Of a station: attempts of streams and of the rest.
    attempts: BTreeMap<StationId, [u8; 2]>,
    weighted: BTreeSet<StationId>,
    agenda: VecDeque<Lever>,
    /// Of these the step in force was compared with the one before in this pass.
    checked: [bool; Lever::ALL.len()],
    rests_until: Time,
    running: Option<Running>,
    /// Waits since a trial could have begun, and since when.
    waits: (Time, u64),
    actions: VecDeque<Action>,
    trials: u64,
    empty_trials: u64,
    is_released: bool,
    is_paused: bool,
    is_held: bool,
}

impl Levers {
    /// Nothing works yet.
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self {
            params,
            own: Default::default(),
            sparse: Sparse::default(),
            attempts: BTreeMap::new(),
            weighted: BTreeSet::new(),
            agenda: VecDeque::new(),
            checked: [false; Lever::ALL.len()],
            rests_until: Time::ZERO,
            running: None,
            waits: (Time::ZERO, 0),
            actions: VecDeque::new(),
            trials: 0,
            empty_trials: 0,
            is_released: false,
            is_paused: false,
            is_held: false,
        }
    }

    /// A lever works here, and this is in force. Said again where something else changed it: what was decided of it is void.
    pub fn on_found(&mut self, setting: Setting) {
        let lever = setting.lever();
        self.stop(lever);
        let mut steps = vec![setting];
        if lever.is_presumed() {
            steps.extend(setting.further());
        }
        let own = &mut self.own[lever.index()];
        *own = Own { stage: Stage::Untried, in_force: Some(setting), steps, compared: None };
        self.rest(lever);
        if !self.agenda.contains(&lever) {
            self.agenda.push_back(lever);
            self.agenda.make_contiguous().sort();
        }
        self.checked[lever.index()] = false;
        self.is_released = false;
    }

    /// The driver refuses to set it: it is as it was, and is not tried any more.
    pub fn on_refused(&mut self, lever: Lever) {
        self.stop(lever);
        let own = &mut self.own[lever.index()];
        if own.stage == Stage::NotHere {
            return;
        }
        own.steps.truncate(1);
        (own.stage, own.in_force) = (Stage::Refused, own.steps.first().copied());
        self.agenda.retain(|other| *other != lever);
        self.actions.push_back(Action::Say(Decision::Refused(lever)));
    }

    fn stop(&mut self, lever: Lever) {
        if self.running.as_ref().is_some_and(|running| running.lever == lever) {
            self.running = None;
        }
    }

    /// A UDP flow, before the interval is closed by [`Self::on_link`].
    pub fn on_flow(&mut self, now: Time, sample: &FlowSample) {
        self.sparse.on_flow(now, sample);
    }

    /// The flow is gone.
    pub fn on_gone(&mut self, flow: FlowId) {
        if self.sparse.on_gone(flow) {
            self.actions.push_back(Action::SetClass { flow, class: AccessCategory::Be });
        }
    }

    /// What is known of a station, when it changes and once in a while.
    pub fn on_station(&mut self, _now: Time, sample: &StationSample) {
        let station = sample.station;
        self.sparse.on_rate(station, sample.rate);
        let Some(loss) = sample.loss else { return };
        if self.attempts.len() >= MOST_STATIONS && !self.attempts.contains_key(&station) {
            return;
        }
        let bulk = sample.bulk.map(|(rate, rtt)| Traffic::Bulk { rate, rtt });
        let wanted = [Some(Traffic::Stream), bulk].map(|traffic| attempts::attempts(loss, traffic?));
        let known = self.attempts.entry(station).or_default();
        for ((class, own), wanted) in [AccessCategory::Vo, AccessCategory::Be].into_iter().zip(known).zip(wanted) {
            // TCP that is slow for want of attempts asks for no more: what it once needed holds.
            let wanted = wanted.map(|wanted| if class == AccessCategory::Be { wanted.max(*own) } else { wanted });
            if let Some(attempts) = wanted.filter(|wanted| wanted != own) {
                *own = attempts;
                self.actions.push_back(Action::SetAttempts { station, class, attempts });
            }
        }
    }

    /// A packet of a sparse flow reached its station this long after it came to the access point, or something that waits as it does.
    pub fn on_wait(&mut self, now: Time, wait: Span) {
        self.on_waits(now, wait, 1);
    }

    /// So many of them since this was last said, which waited so long in the mean.
    pub fn on_waits(&mut self, now: Time, mean: Span, packets: u32) {
        self.waits.1 += u64::from(packets);
        if let Some(running) = &mut self.running {
            running.trial.on_waits(now, mean, packets);
        }
    }

    /// What was carried; closes an interval and decides. Every 50 ms, or so.
    pub fn on_link(&mut self, now: Time, link: &LinkSample) {
        if self.is_released {
            return;
        }
        let actions = &mut self.actions;
        self.sparse.judge(now, |flow, class| actions.push_back(Action::SetClass { flow, class }));
        self.weigh();
        if self.is_paused || self.is_held {
            return;
        }
        if let Some(running) = &mut self.running {
            match running.trial.on_link(now, link, &self.params) {
                Step::Measure => {}
                Step::Turn { with } => {
                    let setting = if with { running.with } else { running.without };
                    self.set(setting);
                }
                Step::Empty => self.end_empty(now),
                Step::Over(finding, compared) => self.end(now, finding, compared),
            }
            return;
        }
        // Where nothing sparse was sent of late there is nothing to measure by.
        if now.since(self.waits.0) >= self.params.block {
            let has_waits = self.waits.1 > 0;
            self.waits = (now, 0);
            if has_waits && now >= self.rests_until {
                self.begin(now);
            }
        }
    }

    fn weigh(&mut self) {
        let wanted: BTreeSet<StationId> = self.sparse.classed().map(|(_, station, _)| station).collect();
        for (stations, times) in [(wanted.difference(&self.weighted), WEIGHT), (self.weighted.difference(&wanted), 1)] {
            self.actions.extend(stations.map(|station| Action::SetWeight { station: *station, times }));
        }
        self.weighted = wanted;
    }

    /// The next trial.
    fn begin(&mut self, now: Time) {
        while let Some(lever) = self.agenda.front().copied() {
            let own = &self.own[lever.index()];
            let is_check = own.steps.len() > 1 && !self.checked[lever.index()];
            self.checked[lever.index()] = true;
            let pair = match own.steps[..] {
                [.., before, holds] if is_check => Some((before, holds)),
                [.., holds] => holds.further().map(|next| (holds, next)),
                [] => None,
            };
            let Some((without, with)) = pair else {
                self.agenda.pop_front();
                continue;
            };
            self.own[lever.index()].stage = Stage::Trying;
            self.actions.push_back(Action::Say(Decision::Trying(with)));
            self.set(without);
            self.running = Some(Running { lever, without, with, is_check, trial: Trial::new(now, &self.params) });
            return;
        }
        let works = |lever: &Lever| !matches!(self.own[lever.index()].stage, Stage::NotHere | Stage::Refused);
        self.agenda.extend(Lever::ALL.into_iter().filter(works));
        self.checked = [false; Lever::ALL.len()];
        self.rests_until = now + self.params.again;
    }

    /// Ends a trial without a verdict: what held before holds on, and it is tried another time.
    fn break_off(&mut self) {
        let Some(Running { lever, is_check, .. }) = self.running.take() else { return };
        self.own[lever.index()].stage =
            if self.own[lever.index()].steps.len() > 1 { Stage::Kept } else { Stage::Untried };
        self.checked[lever.index()] = !is_check;
        self.rest(lever);
    }

    fn end_empty(&mut self, now: Time) {
        self.break_off();
        self.empty_trials += 1;
        self.waits = (now, 0);
        // Whoever is seldom heard is asked seldom.
        self.rests_until = now + self.params.block * 30;
    }

    fn end(&mut self, now: Time, finding: Finding, compared: Comparison) {
        let Some(Running { lever, without, with, is_check, .. }) = self.running.take() else { return };
        self.trials += 1;
        let pays = finding == Finding::Pays || (finding == Finding::ShowsNothing && lever.is_presumed());
        let own = &mut self.own[lever.index()];
        own.compared = Some(compared);
        let decision = if pays {
            if !is_check {
                own.steps.push(with);
            }
            Decision::Kept(with, compared)
        } else {
            if is_check {
                own.steps.pop();
            }
            self.agenda.pop_front();
            Decision::TakenBack(without, finding, compared)
        };
        own.stage = if own.steps.len() > 1 { Stage::Kept } else { Stage::TakenBack };
        self.set(if pays { with } else { without });
        self.actions.push_back(Action::Say(decision));
        self.waits = (now, 0);
    }

    /// Puts a setting in force, unless it is.
    fn set(&mut self, setting: Setting) {
        let own = &mut self.own[setting.lever().index()];
        if own.in_force != Some(setting) {
            own.in_force = Some(setting);
            self.actions.push_back(Action::Set(setting));
        }
    }

    /// What holds while nothing is tried.
    fn rest(&mut self, lever: Lever) {
        let steps = &self.own[lever.index()].steps;
        let holds = if self.is_paused { steps.first() } else { steps.last() };
        if let Some(setting) = holds.copied() {
            self.set(setting);
        }
    }

    /// Paused, everything is as it was found; what was decided is remembered, and in force again when it goes on.
    pub fn set_paused(&mut self, now: Time, is_paused: bool) {
        if self.is_paused != is_paused {
            self.is_paused = is_paused;
            self.break_off();
            Lever::ALL.into_iter().for_each(|lever| self.rest(lever));
            self.waits = (now, 0);
        }
    }

    /// Held, nothing is tried: what was decided stays in force, and the trial that runs ends without a verdict.
    pub fn set_held(&mut self, now: Time, is_held: bool) {
        if self.is_held != is_held {
            self.is_held = is_held;
            self.break_off();
            self.waits = (now, 0);
        }
    }

    /// Everything is as it was found, and nothing is tried until something is found again.
    pub fn release(&mut self) {
        self.running = None;
        self.agenda.clear();
        for lever in Lever::ALL {
            let own = &mut self.own[lever.index()];
            own.steps.truncate(1);
            if let Some(found) = own.steps.first().copied() {
                self.set(found);
            }
        }
        self.is_released = true;
    }

    /// The next thing to do, until `None`.
    pub fn poll(&mut self, _now: Time) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When [`Self::on_link`] is to be called at the latest; `None`: with the host's next interval.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        self.running.as_ref().map(|running| running.trial.next_deadline(&self.params))
    }

    /// Whether a lever's setting is in force that was not found.
    #[must_use]
    pub fn is_moved(&self, lever: Lever) -> bool {
        let own = &self.own[lever.index()];
        own.in_force != own.steps.first().copied()
    }

    /// Whether a setting that was not found holds while nothing is tried.
    #[must_use]
    pub fn is_kept(&self, lever: Lever) -> bool {
        !self.is_paused && self.own[lever.index()].steps.len() > 1
    }

    /// What it sees and does.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let of = |lever: Lever| {
            let own = &self.own[lever.index()];
            LeverSnapshot {
                lever,
                stage: own.stage,
                found: own.steps.first().copied(),
                in_force: own.in_force,
                compared: own.compared,
            }
        };
        Snapshot {
            levers: Lever::ALL.map(of).to_vec(),
            classes: self.sparse.classed().map(|(flow, _, class)| (flow, class)).collect(),
            untracked: self.sparse.untracked,
            trials: self.trials,
            empty_trials: self.empty_trials,
        }
    }
}
