//! The levers of radios: what works here is found out, `core::levers` says what is to be set, and a process beside this one sets it.
//!
//! One law for all radios that are hooked: what is tried is tried on all of them, so that a station that changes its band meets the same.
//! What stood there is each radio's own, and the guard ([`crate::levers::guard`]) puts it back.

mod radios;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use lasthop_core::ap::{StationId, UdpSnapshot};
use lasthop_core::aqm::mac80211::Aql;
use lasthop_core::elastic::Behaviour;
use lasthop_core::fastpath::layout::FlowKey;
use lasthop_core::fastpath::light::{LightFlow, user_priority};
use lasthop_core::levers::{
    self, Action, Contention, Decision, FlowSample, Lever, LinkSample, Setting, Stage, StationSample, WEIGHT,
};
use lasthop_core::packet::{AccessCategory, FlowId};
use lasthop_core::units::{BitRate, Span, Time};
use lasthop_status::{KnobStatus, LeverStatus};

use super::journal::Journal;
use super::stations;
use super::table::Heard;
use crate::config::{Config, LEVERS};
use crate::interface::{self, InterfaceName};
use crate::levers::guard::{Answer, Order, Outcome};
use crate::levers::place::{Values, text};
use crate::levers::{Guard, Place};
use crate::netlink::Socket;
use crate::ports::Port;
use crate::program::{Batch, Program};
use crate::stations::{Mac, Nl80211, Station};
use radios::{Radio, Radios};

/// UDP flows that were silent for so long are forgotten: `core::levers` forgets them then, too.
const SILENT: Span = Span::from_secs(10);
/// The log names so many places: stations come and go for months.
const MOST_SAID: usize = 1_024;
/// Fewer frames say nothing about losses.
const ENOUGH: u32 = 20;
/// Traffic identifiers (IEEE 802.1D) of voice and of best effort.
const VOICE_TIDS: u16 = 1 << 6 | 1 << 7;
const BEST_EFFORT_TIDS: u16 = 1 << 0 | 1 << 3;
const BEST_EFFORT: u8 = 2;
/// The weight that stations begin with (`IEEE80211_DEFAULT_AIRTIME_WEIGHT`).
const USUAL_WEIGHT: u16 = 256;
/// Stations whose shortest round trip is remembered: an 802.11 access point tells 2,007 apart.
const MOST_STATIONS: usize = 2_048;

/// Shows the deciding half what nobody but a radio's driver knows, and does what it says.
pub(super) struct Levers {
    law: levers::Levers,
    wanted: Vec<Lever>,
    queue: Option<u32>,
    is_dry: bool,
    guard: Option<Guard>,
    radios: Radios,
    flows: HashMap<FlowKey, Flow>,
    keys: HashMap<FlowId, FlowKey>,
    named: u32,
    round: u64,
    batch: Batch<LightFlow>,
    stations: BTreeMap<StationId, Known>,
    nearest: BTreeMap<StationId, Nearest>,
    weighted: BTreeMap<StationId, u8>,
    attempts: BTreeMap<(StationId, u8), u8>,
    /// Switches in force.
    classes: bool,
    weights: bool,
    tries: bool,
    /// What is set, or somebody else's.
    knobs: BTreeMap<Place, Knob>,
    /// What the newest order to each place wants there; none of one that is to be put back.
    ordered: BTreeMap<Place, Values>,
    refused: BTreeMap<Lever, String>,
    /// All of them are being put back, for other radios came.
    puts_back: bool,
    /// Somebody has paused what is set, or trials of it.
    is_paused: bool,
    is_held: bool,
    /// Places of which it was said that they are set.
    said: BTreeSet<Place>,
    /// Orders that the guard had no room for.
    not_given: u64,
    told: Vec<u32>,
}

struct Flow {
    id: FlowId,
    class: AccessCategory,
    round: u64,
}

/// The shortest round trip to a station, and when one was last seen.
struct Nearest {
    least: Span,
    at: Time,
}

/// A station of a radio.
struct Known {
    ifindex: u32,
    mac: Mac,
    before: Station,
    /// Its weight when it came.
    weight: u32,
    loss: Option<f64>,
}

#[derive(Clone)]
struct Knob {
    before: Values,
    ours: Values,
    theirs: bool,
}

/// What the rest of the controller knows in an interval.
pub(super) struct Seen<'a> {
    pub(super) ports: &'a [Port],
    pub(super) program: &'a Program,
    /// What UDP flows with full packets are taken for, and their keys.
    pub(super) taken_for: &'a HashMap<FlowKey, Behaviour>,
    /// The station that has an address.
    pub(super) station: &'a dyn Fn(&FlowKey) -> StationId,
    /// What drivers have told since the last interval: interface and station.
    pub(super) told: Vec<(u32, Station)>,
    /// The most demanding connection of each station: its rate, and its round trip.
    pub(super) bulk: &'a BTreeMap<StationId, (BitRate, Span)>,
    /// Round trips to stations that ended in the interval.
    pub(super) round_trips: Heard,
    pub(super) ip_bytes: [u64; 2],
}

/// What configuration `config` wants of them; a guard is needed for all but classes.
fn needs_guard(config: &Config) -> bool {
    !config.dry_run
        && (config.mac_queue.is_some() || config.levers_in_force().iter().any(|lever| *lever != Lever::Class))
}

impl Levers {
    /// Whether a guard can be had is found out here, while this process still has the rights that it needs.
    pub(super) fn start(config: &Config, now: Time, journal: &mut Journal) -> Self {
        let radios = Radios::new();
        let guard = (needs_guard(config) && radios.are_known()).then(Guard::start).transpose();
        let guard = guard.unwrap_or_else(|error| {
            journal.warn(now, format!("no lever but the class can be set: no process can be started for it: {error}"));
            None
        });
        Self::with(config, radios, guard)
    }

    fn with(config: &Config, radios: Radios, guard: Option<Guard>) -> Self {
        Self {
            law: levers::Levers::new(levers::Params::default()),
            wanted: config.levers_in_force(),
            queue: config.mac_queue,
            is_dry: config.dry_run,
            guard,
            radios,
            flows: HashMap::new(),
            keys: HashMap::new(),
            named: 0,
            round: 0,
            batch: Batch::default(),
            stations: BTreeMap::new(),
            nearest: BTreeMap::new(),
            weighted: BTreeMap::new(),
            attempts: BTreeMap::new(),
            classes: false,
            weights: false,
            tries: false,
            knobs: BTreeMap::new(),
            ordered: BTreeMap::new(),
            refused: BTreeMap::new(),
            puts_back: false,
            is_paused: false,
            is_held: false,
            said: BTreeSet::new(),
            not_given: 0,
            told: Vec::new(),
        }
    }

    /// Some are, so that it is worth showing what passes.
    pub(super) const fn are_wanted(&self) -> bool {
        !self.wanted.is_empty() || self.queue.is_some()
    }

    /// Most that waits below mac80211's flow queues at this interface, where they are fair, and packets of sparse flows have a class that waits for
    /// none of them; else why downloads cannot be left to them.
    pub(super) fn fair_queue(&self, ifindex: u32) -> Result<Span, &'static str> {
        let below = self.radios.at(ifindex).ok_or("it is no radio whose driver could be asked")?.below?;
        match () {
            () if self.is_dry => Err("it is a dry run: nobody has a class"),
            () if self.is_paused || self.puts_back => Err("levers are paused, and with them the class"),
            () if !self.wanted.contains(&Lever::Class) => Err("the configuration gives nobody a class (levers)"),
            () if !self.law.is_kept(Lever::Class) || !self.told.contains(&ifindex) => {
                Err("packets of sparse flows have no class here (lever class)")
            }
            () => Ok(below),
        }
    }

    /// Interfaces of radios.
    pub(super) fn radios(&self) -> impl Iterator<Item = u32> {
        self.radios.list().iter().map(|radio| radio.ifindex)
    }

    /// A radio is hooked.
    pub(super) fn has_radios(&self) -> bool {
        !self.radios.list().is_empty()
    }

    /// One of them is being tried.
    pub(super) fn are_tried(&self) -> bool {
        self.law.next_deadline().is_some()
    }

    /// What connections ask of attempts matters.
    pub(super) fn asks_for_bulk(&self) -> bool {
        self.wanted.contains(&Lever::Attempts)
    }

    /// Everything is put back, and nothing is set until [`Self::follow`] finds radios again.
    pub(super) fn take_off(&mut self, program: &Program) {
        self.law.release();
        // The guard puts everything back when it ends.
        self.guard = None;
        let _ = program.set_radios(&[], false);
        (self.told, self.classes) = (Vec::new(), false);
        self.knobs.clear();
        self.ordered.clear();
    }

    /// Paused, everything is as it was found, until it goes on with what was decided.
    pub(super) fn set_paused(&mut self, now: Time, is_paused: bool) {
        if self.is_paused != is_paused {
            self.is_paused = is_paused;
            self.law.set_paused(now, is_paused);
            if !is_paused {
                self.set_queue();
            }
        }
    }

    /// Held, nothing is tried.
    pub(super) fn set_held(&mut self, now: Time, is_held: bool) {
        self.is_held = is_held;
        self.law.set_held(now, is_held);
    }

    /// Everything that is set is ordered back; who was not given an order for want of room is given it when the guard has answered.
    fn put_all_back(&mut self) {
        if self.guard.as_ref().is_some_and(|guard| guard.waits() == 0) {
            self.knobs.clone().into_keys().for_each(|place| self.put_back(place));
        }
    }

    /// Goes on as another configuration wants, without a guard: the rights that one takes are gone.
    pub(super) fn adopt(&mut self, config: &Config, program: &Program) {
        self.take_off(program);
        *self = Self::with(config, Radios::new(), None);
    }

    /// The radios among these ports: what works on each is found out when they change.
    pub(super) fn follow(&mut self, now: Time, ports: &[Port], journal: &mut Journal) {
        if !self.are_wanted() || !self.radios.is_time(now, ports) {
            return;
        }
        // What is found has to be what was there before anything was set.
        if self.guard.as_ref().is_some_and(|guard| guard.waits() > 0 || !self.knobs.is_empty()) {
            self.puts_back = true;
            self.law.set_paused(now, true);
            return;
        }
        self.puts_back = false;
        if !self.radios.look(now, ports) {
            self.law.set_paused(now, self.is_paused);
            self.set_queue();
            return;
        }
        self.law = levers::Levers::new(levers::Params::default());
        self.law.set_paused(now, self.is_paused);
        self.law.set_held(now, self.is_held);
        self.refused.clear();
        if self.radios.list().is_empty() {
            return;
        }
        let has_guard = self.guard.is_some() || self.is_dry;
        for lever in self.wanted.clone() {
            let found = self.radios.list().iter().find_map(|radio| radio.found(lever).ok());
            match found {
                Some(setting) if lever == Lever::Class || has_guard => self.law.on_found(setting),
                Some(_) => drop(self.refused.insert(lever, "no process could be started that sets it".to_owned())),
                None => {
                    let why = self.radios.list().iter().find_map(|radio| radio.found(lever).err());
                    drop(self.refused.insert(lever, why.unwrap_or("there is no radio").to_owned()));
                }
            }
            if self.is_dry {
                journal.say(now, self.would(lever));
            }
        }
        for radio in self.radios.list().iter().filter(|_| self.is_dry) {
            let Some(port) = ports.iter().find(|port| port.ifindex == Some(radio.ifindex)) else { continue };
            let would = match radio.below {
                Ok(below) => format!(
                    "left to its own fair queue while sparse flows have a class: at most {} waits below",
                    below.rounded()
                ),
                Err(why) => format!("held: {why}"),
            };
            journal.say(now, format!("dry run, nothing is changed: downloads over {} would be {would}", port.name));
        }
        self.set_queue();
    }

    fn would(&self, lever: Lever) -> String {
        let snapshot = self.law.snapshot();
        let known = snapshot.levers.iter().find(|known| known.lever == lever);
        match (known.and_then(|known| known.found), self.refused.get(&lever)) {
            (Some(found), _) => match found.further() {
                Some(further) => {
                    format!(
                        "dry run, nothing is changed: lever {} works here: {found} now, {further} would be tried",
                        lever.name()
                    )
                }
                None => {
                    format!("dry run, nothing is changed: lever {} works here: {found} now, nothing less", lever.name())
                }
            },
            (None, why) => {
                let why = why.map_or("nobody tells", String::as_str);
                format!("dry run, nothing is changed: lever {} does not work here: {why}", lever.name())
            }
        }
    }

    fn set_queue(&mut self) {
        let Some(packets) = self.queue.filter(|_| !self.is_dry && !self.is_paused) else { return };
        let places: Vec<_> = self.radios.list().iter().filter_map(Radio::queue).collect();
        for (place, [_, memory, quantum]) in places {
            self.put(place, Some(vec![packets, memory, quantum]), None);
        }
    }

    /// Every interval: what passes is shown to the law, and what it says is done. How often the kernel refused something.
    pub(super) fn on_interval(&mut self, now: Time, seen: Seen<'_>, journal: &mut Journal) -> u64 {
        self.follow(now, seen.ports, journal);
        let mut failures = self.hear(now, journal) + std::mem::take(&mut self.not_given);
        if self.is_paused || self.puts_back {
            self.put_all_back();
        }
        if self.radios.list().is_empty() {
            return failures + self.tell_radios(seen.program);
        }
        self.radios.watch(now);
        failures += self.read_flows(now, &seen);
        self.on_stations(now, seen.told, seen.bulk);
        self.on_round_trips(now, &seen.round_trips);
        self.law.on_link(now, &LinkSample { bytes: seen.ip_bytes, airtime: None });
        failures += self.obey(now, seen.program, journal);
        failures + self.tell_radios(seen.program)
    }

    /// Shows the UDP flows to radios.
    fn read_flows(&mut self, now: Time, seen: &Seen<'_>) -> u64 {
        self.round += 1;
        let round = self.round;
        let (law, flows, keys, named) = (&mut self.law, &mut self.flows, &mut self.keys, &mut self.named);
        let mut over = Vec::new();
        let read = seen.program.read_light_flows(&mut self.batch, |key, state| {
            if now.since(Time::from_nanos(state.last_seen_ns)) >= SILENT {
                over.push(*key);
                return;
            }
            let flow = flows.entry(*key).or_insert_with(|| {
                *named = named.wrapping_add(1);
                keys.insert(FlowId(*named), *key);
                Flow { id: FlowId(*named), class: AccessCategory::Be, round }
            });
            flow.round = round;
            let sample = FlowSample {
                flow: flow.id,
                station: (seen.station)(key),
                packets: state.packets,
                bytes: state.bytes,
                full_bytes: state.full_bytes,
                behaviour: seen.taken_for.get(key).copied().unwrap_or_default(),
            };
            law.on_flow(now, &sample);
            // One that lost its place came back without its class.
            if state.user_priority != user_priority(flow.class) && flow.class != AccessCategory::Be {
                over.push(*key);
            }
        });
        if read.is_ok() {
            flows.retain(|_, flow| {
                let is_there = flow.round == round;
                if !is_there {
                    law.on_gone(flow.id);
                    keys.remove(&flow.id);
                }
                is_there
            });
        }
        let mut refused = 0;
        for key in over {
            match self.flows.get(&key) {
                Some(flow) => refused += u64::from(seen.program.set_class(&key, user_priority(flow.class)).is_err()),
                None => refused += u64::from(seen.program.delete_light(&key).is_err()),
            }
        }
        refused + u64::from(read.is_err())
    }

    /// What packets to stations of radios waited: each round trip between here and the station, above the least that was seen to it.
    fn on_round_trips(&mut self, now: Time, heard: &Heard) {
        let is_of_radio = |ifindex: u32| self.radios.list().iter().any(|radio| radio.ifindex == ifindex);
        for ((_, station), round_trips) in heard.iter().filter(|((port, _), _)| is_of_radio(*port)) {
            if self.nearest.len() >= MOST_STATIONS && !self.nearest.contains_key(station) {
                self.nearest.retain(|_, nearest| now.since(nearest.at) < SILENT);
                if self.nearest.len() >= MOST_STATIONS {
                    continue;
                }
            }
            let least = self.nearest.get(station).map_or(round_trips.least, |known| known.least.min(round_trips.least));
            self.nearest.insert(*station, Nearest { least, at: now });
            self.law.on_waits(now, round_trips.mean.saturating_sub(least), round_trips.samples);
        }
    }

    /// Takes in what drivers say of their stations.
    fn on_stations(&mut self, now: Time, told: Vec<(u32, Station)>, bulk: &BTreeMap<StationId, (BitRate, Span)>) {
        let heard: Vec<u32> = told.iter().map(|(ifindex, _)| *ifindex).collect();
        let is_there = |known: &Known| told.iter().any(|(_, station)| station.mac == known.mac);
        let is_gone = |known: &Known| heard.contains(&known.ifindex) && !is_there(known);
        let gone: Vec<Mac> = self.stations.values().filter(|known| is_gone(known)).map(|known| known.mac).collect();
        self.stations.retain(|_, known| !gone.contains(&known.mac));
        let left = |place: &Place| place.station().is_some_and(|mac| gone.contains(mac));
        for place in self.knobs.clone().into_keys().filter(left) {
            self.put_back(place);
        }
        for (ifindex, station) in told {
            let id = stations::of(station.mac);
            let is_new = !self.stations.contains_key(&id);
            let weight = u32::from(station.weight.unwrap_or(USUAL_WEIGHT));
            let first = Known { ifindex, mac: station.mac, before: station, weight, loss: None };
            let known = self.stations.entry(id).or_insert(first);
            known.ifindex = ifindex;
            known.on_sample(&station);
            let loss = known.loss;
            // One that came again begins as everybody does.
            if is_new && self.weights {
                self.weigh(id);
            }
            if is_new && self.tries {
                self.set_attempts();
            }
            let Some(rate) = station.rate else { continue };
            let sample = StationSample { station: id, rate, loss, bulk: bulk.get(&id).copied() };
            self.law.on_station(now, &sample);
        }
    }

    /// Does what the law says.
    fn obey(&mut self, now: Time, program: &Program, journal: &mut Journal) -> u64 {
        let mut failures = 0;
        while let Some(action) = self.law.poll(now) {
            match action {
                Action::SetClass { flow, class } => {
                    let Some(key) = self.keys.get(&flow) else { continue };
                    if let Some(flow) = self.flows.get_mut(key) {
                        flow.class = class;
                    }
                    // One that is gone has no class any more.
                    let _ = program.set_class(key, user_priority(class));
                }
                Action::SetWeight { station, times } => {
                    self.weighted.insert(station, times);
                    if self.weights {
                        self.weigh(station);
                    }
                }
                Action::SetAttempts { station, class, attempts } => {
                    self.attempts.insert((station, class as u8), attempts);
                    if self.tries {
                        self.set_attempts();
                    }
                }
                Action::Set(setting) => failures += self.set(setting, program),
                Action::Say(decision) if !self.is_dry => journal.say(now, line(&decision)),
                Action::Say(_) => {}
            }
        }
        failures
    }

    fn set(&mut self, setting: Setting, program: &Program) -> u64 {
        if self.is_dry {
            return 0;
        }
        match setting {
            Setting::Class(on) => {
                self.classes = on;
                return u64::from(program.set_radios(&self.told, on).is_err());
            }
            Setting::Weights(on) => {
                self.weights = on;
                let all: Vec<_> = self.weighted.keys().copied().collect();
                all.into_iter().for_each(|station| self.weigh(station));
            }
            Setting::Attempts(on) => {
                self.tries = on;
                self.set_attempts();
            }
            Setting::Aql(aql) => self.set_aql(aql),
            Setting::Txop(contention) => self.set_txop(contention),
            // Never found here.
            Setting::StationTxop(_) | Setting::Aggregate(_) => {}
        }
        0
    }

    /// As the law found it: then it is put back, instead of set to the same.
    fn is_found(&self, setting: Setting) -> bool {
        let snapshot = self.law.snapshot();
        snapshot.levers.iter().any(|lever| lever.lever == setting.lever() && lever.found == Some(setting))
    }

    fn put(&mut self, place: Place, values: Option<Values>, before: Option<Values>) {
        let Some(values) = values else {
            if self.ordered.contains_key(&place) {
                self.put_back(place);
            }
            return;
        };
        if self.ordered.get(&place) != Some(&values)
            && self.give(&Order::Set { place: place.clone(), values: values.clone(), before })
        {
            self.ordered.insert(place, values);
        }
    }

    fn put_back(&mut self, place: Place) {
        if self.give(&Order::PutBack { place: place.clone() }) {
            self.ordered.remove(&place);
        }
    }

    fn set_aql(&mut self, aql: Aql) {
        let us = |span: Span| (span.as_nanos() / 1_000).min(u64::from(u32::MAX)) as u32;
        let is_found = self.is_found(Setting::Aql(aql));
        let phys: Vec<_> = self.radios.list().iter().filter(|radio| radio.aql.is_some()).map(Radio::phy).collect();
        for phy in phys {
            for class in 0..4 {
                let values = (!is_found).then(|| vec![us(aql.low), us(aql.high)]);
                self.put(Place::Aql { phy: phy.clone(), class }, values, None);
            }
            self.put(Place::AqlThreshold { phy }, (!is_found).then(|| vec![us(aql.threshold)]), None);
        }
    }

    fn set_txop(&mut self, contention: Contention) {
        let is_found = self.is_found(Setting::Txop(contention));
        let own: Vec<_> = self.radios.list().iter().filter_map(|radio| Some((radio.ifindex, radio.edca?))).collect();
        for (ifindex, before) in own {
            let txop = (contention.txop.as_nanos() / 32_000).min(u64::from(u16::MAX)) as u16;
            let values = |txop: u16| vec![before.aifs.into(), before.cw_min.into(), before.cw_max.into(), txop.into()];
            let place = Place::Edca { ifindex, class: BEST_EFFORT };
            self.put(place, (!is_found).then(|| values(txop)), Some(values(before.txop_32us)));
        }
    }

    fn weigh(&mut self, station: StationId) {
        let Some(known) = self.stations.get(&station) else { return };
        let place = Place::Weight { ifindex: known.ifindex, mac: known.mac };
        let times = self.weighted.get(&station).copied().filter(|times| *times > 1 && self.weights);
        let values = times.map(|times| vec![(known.weight * u32::from(times.min(WEIGHT))).min(u32::from(u16::MAX))]);
        self.put(place, values, None);
    }

    /// Attempts of each station where its driver knows stations, else the most of any for the whole radio.
    fn set_attempts(&mut self) {
        let all = self.attempts.clone();
        let mut orders = Vec::new();
        for radio in self.radios.list() {
            let of_radio = |station: &StationId| {
                self.stations.get(station).filter(|known| known.ifindex == radio.ifindex).map(|known| known.mac)
            };
            let per_station = radio.has_tid_retries();
            for ((station, class), attempts) in all.iter().filter(|_| per_station) {
                let Some(mac) = of_radio(station) else { continue };
                let tids = if *class == AccessCategory::Vo as u8 { VOICE_TIDS } else { BEST_EFFORT_TIDS };
                // Retries here; of a whole radio it is attempts (`dot11ShortRetryLimit` as mac80211 has it).
                let most = u32::from(attempts.saturating_sub(1).clamp(1, radio.wiphy.tid_retries));
                let place = Place::Attempts { ifindex: radio.ifindex, mac, tids };
                orders.push((place, self.tries.then(|| vec![most, most])));
            }
            if !per_station && radio.wiphy.retries.is_some() {
                let most =
                    all.iter().filter(|((station, _), _)| of_radio(station).is_some()).map(|(_, most)| *most).max();
                let place = Place::Retries { wiphy: radio.wiphy.number };
                let values = most.filter(|_| self.tries).map(|most| vec![u32::from(most); 2]);
                if values.is_some() || !self.tries {
                    orders.push((place, values));
                }
            }
        }
        for (place, values) in orders {
            self.put(place, values, None);
        }
    }

    fn give(&mut self, order: &Order) -> bool {
        // One that is gone is found out by whoever hears it, too.
        let given = self.guard.as_mut().is_none_or(|guard| guard.give(order).is_ok());
        self.not_given += u64::from(!given);
        given
    }

    /// What the guard says came of orders.
    fn hear(&mut self, now: Time, journal: &mut Journal) -> u64 {
        let Some(guard) = &mut self.guard else { return 0 };
        let answers = match guard.answers() {
            Ok(answers) => answers,
            Err(error) => {
                self.guard = None;
                let line = format!("the process that sets levers is gone: what it has set stays as it is: {error}");
                journal.warn(now, line);
                for lever in Lever::ALL.into_iter().filter(|lever| *lever != Lever::Class) {
                    self.law.on_refused(lever);
                }
                return 1;
            }
        };
        let mut failures = 0;
        for Answer { place, outcome } in answers {
            match outcome {
                Outcome::Set { before, now: ours } => {
                    // Trials set and put back again every second.
                    if self.said.len() < MOST_SAID && self.said.insert(place.clone()) {
                        journal.say(now, format!("{place}: {}, before {}", text(&ours), text(&before)));
                    }
                    self.knobs.insert(place, Knob { before, ours, theirs: false });
                }
                Outcome::PutBack => drop(self.knobs.remove(&place)),
                Outcome::Theirs { now: stands } => {
                    let line = format!("{place}: somebody else has set {}: given up, it stays as it is", text(&stands));
                    journal.say(now, line);
                    self.ordered.remove(&place);
                    self.give_up(&place, "somebody else sets it");
                    if let Some(knob) = self.knobs.get_mut(&place) {
                        knob.theirs = true;
                    }
                }
                // A station that left took it along.
                Outcome::Refused { errno: libc::ENOENT | libc::ENODEV } => {
                    self.knobs.remove(&place);
                    self.ordered.remove(&place);
                }
                Outcome::Refused { errno } => {
                    failures += 1;
                    self.ordered.remove(&place);
                    let why = why(errno);
                    journal.say(now, format!("{place}: it cannot be set: {why}"));
                    self.give_up(&place, &why);
                }
            }
        }
        failures
    }

    fn give_up(&mut self, place: &Place, why: &str) {
        if let Some(lever) = lever_of(place) {
            self.law.on_refused(lever);
            self.refused.insert(lever, why.to_owned());
        }
    }

    /// Says to the data path where radios are.
    fn tell_radios(&mut self, program: &Program) -> u64 {
        let counts = !self.is_dry && [Lever::Class, Lever::Weights].iter().any(|lever| self.wanted.contains(lever));
        let radios: Vec<_> = self.radios.list().iter().filter(|_| counts).map(|radio| radio.ifindex).collect();
        if radios == self.told {
            return 0;
        }
        self.told = radios;
        u64::from(program.set_radios(&self.told, self.classes).is_err())
    }

    /// What was set, and what it was before.
    pub(super) fn knobs(&self) -> impl Iterator<Item = KnobStatus> {
        self.knobs.iter().map(|(place, knob)| KnobStatus {
            what: place.to_string(),
            before: text(&knob.before),
            ours: text(&knob.ours),
            given_up: knob.theirs,
        })
    }

    /// What became of each lever that is wanted.
    pub(super) fn status(&self, program: &Program) -> Vec<LeverStatus> {
        let snapshot = self.law.snapshot();
        let classed = snapshot.classes.len() as u64;
        let of = |lever: &Lever| {
            let known = snapshot.levers.iter().find(|known| known.lever == *lever)?;
            let class = *lever == Lever::Class;
            Some(LeverStatus {
                name: lever.name().to_owned(),
                state: stage(known.stage, self.refused.contains_key(lever), self.is_paused).to_owned(),
                why: self.refused.get(lever).cloned(),
                found: known.found.map(|setting| setting.to_string()),
                in_force: known.in_force.map(|setting| setting.to_string()),
                pairs: known.compared.map_or(0, |compared| compared.pairs),
                added_ms: known.compared.map(|compared| compared.added_ms),
                carried: known.compared.map(|compared| compared.carried),
                flows: class.then_some(classed),
                packets: class.then(|| program.classed().unwrap_or_default()),
            })
        };
        self.wanted.iter().filter_map(of).collect()
    }
}

impl Known {
    fn on_sample(&mut self, now: &Station) {
        let packets = now.packets.wrapping_sub(self.before.packets);
        if packets > u32::MAX / 2 {
            // Its counters began anew.
            self.before = *now;
        } else if packets >= ENOUGH {
            let lost = f64::from(now.retries.wrapping_sub(self.before.retries))
                + f64::from(now.failed.wrapping_sub(self.before.failed));
            let attempts = f64::from(packets) + f64::from(now.retries.wrapping_sub(self.before.retries));
            self.loss = Some((lost / attempts).clamp(0.0, 0.999));
            self.before = *now;
        }
    }
}

/// The lever that a place belongs to; queues are none.
const fn lever_of(place: &Place) -> Option<Lever> {
    match place {
        Place::Retries { .. } | Place::Attempts { .. } => Some(Lever::Attempts),
        Place::Edca { .. } => Some(Lever::Txop),
        Place::Weight { .. } => Some(Lever::Weights),
        Place::Aql { .. } | Place::AqlThreshold { .. } => Some(Lever::Aql),
        Place::Txq { .. } => None,
    }
}

fn why(errno: i32) -> String {
    match errno {
        0 => "the driver did not take it".to_owned(),
        libc::EACCES => "it takes CAP_DAC_OVERRIDE, which this service was not given".to_owned(),
        libc::EROFS => "its file is read-only for this service".to_owned(),
        errno => std::io::Error::from_raw_os_error(errno).to_string(),
    }
}

const fn stage(stage: Stage, is_refused: bool, is_paused: bool) -> &'static str {
    match stage {
        _ if is_refused => "not-here",
        _ if is_paused => "paused",
        Stage::NotHere => "waiting",
        Stage::Untried => "untried",
        Stage::Trying => "trying",
        Stage::Kept => "kept",
        Stage::TakenBack => "taken-back",
        Stage::Refused => "refused",
    }
}

fn line(decision: &Decision) -> String {
    let compared = |compared: &levers::Comparison| {
        format!(
            "waits {:+.1} ms, {:.1} % carried, in {} pairs of blocks",
            compared.added_ms,
            100.0 * compared.carried,
            compared.pairs
        )
    };
    match decision {
        Decision::Trying(setting) => format!("lever {}: trying {setting}", setting.lever().name()),
        Decision::Kept(setting, found) => {
            format!("lever {}: {setting} is kept: {}", setting.lever().name(), compared(found))
        }
        Decision::TakenBack(setting, finding, found) => {
            let why = match finding {
                levers::Finding::Hurts => "the other one hurts",
                levers::Finding::Pays | levers::Finding::ShowsNothing => "the other one shows nothing",
            };
            format!("lever {}: {setting} again: {why}: {}", setting.lever().name(), compared(found))
        }
        Decision::Refused(lever) => format!("lever {}: it cannot be set here", lever.name()),
    }
}

/// A lever, and what of it is in force, or why it does not work.
pub type Found = (Lever, Result<Setting, &'static str>);

fn look(name: &InterfaceName) -> Option<Radio> {
    let mut wifi = Nl80211::open().ok()?;
    let ifindex = interface::state(&mut Socket::open(libc::NETLINK_ROUTE).ok()?, name).ok()??.ifindex;
    let found = *wifi.interfaces().ok()?.get(&ifindex)?;
    Radio::look(&mut wifi, ifindex, found, Some(name.as_str()))
}

/// Of each lever that could be moved at an interface; none where it is no radio's.
#[must_use]
pub fn levers_of(name: &InterfaceName) -> Option<Vec<Found>> {
    let radio = look(name)?;
    Some(LEVERS.into_iter().chain([Lever::Attempts]).map(|lever| (lever, radio.found(lever))).collect())
}

/// Most that waits below mac80211's flow queues at an interface, or why downloads cannot be left to them; none where it is no radio's.
#[must_use]
pub fn below_flow_queues(name: &InterfaceName) -> Option<Result<Span, &'static str>> {
    Some(look(name)?.below)
}

/// What UDP flows with full packets are taken for, by their keys.
pub(super) fn taken_for<'a>(
    flows: impl Iterator<Item = UdpSnapshot>,
    key: impl Fn(FlowId) -> Option<FlowKey> + 'a,
) -> HashMap<FlowKey, Behaviour> {
    let to_station = flows.filter(|flow| flow.direction == lasthop_core::packet::Direction::ToStation);
    to_station.filter_map(|flow| Some((key(flow.flow)?, flow.behaviour))).collect()
}

#[cfg(test)]
mod tests;
