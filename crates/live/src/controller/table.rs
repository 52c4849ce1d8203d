//! The connections that the fast path knows: names for the deciding half, samples, and who is to be forgotten.
//!
//! Only connections that carry payload are decided about; half-open ones are just counted. A connection without new
//! payload for [`SLEEP`] is not sampled until it wakes, so that thousands of open and silent ones cost nothing.

use std::collections::HashMap;

use lasthop_core::ap::{Ap, FlowSample, StationId, rtt_totals};
use lasthop_core::fastpath::layout::{FlowKey, FlowState, RttTotal};
use lasthop_core::packet::{Direction, FlowId};
use lasthop_core::units::{Span, Time};

use super::hops::Hops;
use super::stations::Stations;
use crate::config::Config;
use crate::status::TableStatus;

/// Without payload for so long: no longer sampled. Longer than the deciding half calls a flow active.
const SLEEP: Span = Span::from_secs(15);
/// Silence after which a connection that both ends closed is forgotten: retransmitted FINs have passed by then.
const CLOSED: Span = Span::from_secs(10);
/// Silence after which a half-closed or half-open one is forgotten.
const HALF: Span = Span::from_secs(60);
/// Forgotten in one interval at most, so that no interval takes long.
const FORGET_AT_ONCE: usize = 4096;

/// Names of flows of all kinds, for the deciding half.
#[derive(Default)]
pub(super) struct Names {
    pub(super) keys: HashMap<FlowId, FlowKey>,
    next: u32,
}

impl Names {
    pub(super) fn name(&mut self, key: &FlowKey) -> FlowId {
        let id = FlowId(self.next);
        self.next = self.next.wrapping_add(1);
        self.keys.insert(id, *key);
        id
    }

    pub(super) fn forget(&mut self, id: FlowId) {
        self.keys.remove(&id);
    }

    pub(super) fn key(&self, id: FlowId) -> Option<&FlowKey> {
        self.keys.get(&id)
    }
}

pub(super) struct Table {
    entries: HashMap<FlowKey, Entry>,
    pub(super) names: Names,
    round: u64,
    bound: u64,
    idle: Span,
    forgotten_keys: Vec<FlowKey>,
    forgotten: u64,
    evicted: u64,
    controllable_bytes: u64,
    awake: usize,
}

/// What is remembered of one connection. Small: a flood of half-open ones fills the table.
struct Entry {
    round: u64,
    first_seen_ns: u64,
    bytes: u64,
    payload_bytes: u64,
    payload_at: Time,
    carrying: Option<Box<Carrying>>,
}

impl Entry {
    fn new(now: Time, state: &FlowState) -> Self {
        let first_seen_ns = state.first_seen_ns;
        Self { round: 0, first_seen_ns, bytes: 0, payload_bytes: 0, payload_at: now, carrying: None }
    }

    fn is_awake(&self, now: Time) -> bool {
        self.payload_bytes > 0 && now.since(self.payload_at) < SLEEP
    }
}

/// What is remembered in addition while a connection carries payload.
pub(super) struct Carrying {
    id: FlowId,
    station: StationId,
    /// As [`Stations::version`], when the station was looked up.
    version: u32,
    /// Samples towards the station so far.
    rtt: [RttTotal; 2],
    /// Newest copy of what the fast path knows.
    pub(super) state: FlowState,
    /// Questions to conntrack so far.
    pub(super) asked: u8,
    /// Not before this.
    pub(super) ask_at: Time,
}

impl Carrying {
    /// Shows what is known of it to those who decide.
    fn sample(&mut self, (now, epoch): (Time, u32), key: &FlowKey, (stations, hops): (&Stations, &Hops), ap: &mut Ap) {
        let before = std::mem::replace(&mut self.rtt, rtt_totals(&self.state));
        if self.version != stations.version() {
            (self.station, self.version) = (stations.id(&key.station), stations.version());
        }
        let who = (self.id, self.station, hops.of(self.state.port));
        FlowSample::of(now, who, epoch, &self.state, before).for_each(|sample| ap.on_sample(now, &sample));
    }

    /// Neither its SYNs nor conntrack told the scales.
    pub(super) fn lacks_scale(&self) -> bool {
        self.state.half.iter().any(|half| half.known_scale().is_none())
    }
}

impl Table {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            entries: HashMap::new(),
            names: Names::default(),
            round: 0,
            bound: u64::from(config.flows),
            idle: config.idle,
            forgotten_keys: Vec::new(),
            forgotten: 0,
            evicted: 0,
            controllable_bytes: 0,
            awake: 0,
        }
    }

    /// A reading of the fast path's table begins.
    pub(super) fn begin(&mut self) {
        self.round += 1;
        self.awake = 0;
    }

    /// Those that moved were read: the others are as they were.
    pub(super) fn rest(&mut self, (now, epoch): (Time, u32), (stations, hops): (&Stations, &Hops), ap: &mut Ap) {
        let round = self.round;
        for (key, entry) in self.entries.iter_mut().filter(|(_, entry)| entry.round != round) {
            let awake = entry.is_awake(now);
            let Some(carrying) = &mut entry.carrying else { continue };
            entry.round = round;
            if awake {
                self.awake += 1;
                carrying.sample((now, epoch), key, (stations, hops), ap);
            } else {
                self.names.forget(carrying.id);
                ap.on_gone(carrying.id);
                entry.carrying = None;
            }
        }
    }

    /// Connections in the table when it was last read whole, and those that came since.
    pub(super) fn known(&self) -> usize {
        self.entries.len()
    }

    /// The whole table was read: what was not in it is gone.
    pub(super) fn end(&mut self, ap: &mut Ap) {
        let (round, names) = (self.round, &mut self.names);
        let before = self.entries.len();
        self.entries.retain(|_, entry| {
            let there = entry.round == round;
            if let Some(carrying) = entry.carrying.as_ref().filter(|_| !there) {
                ap.on_gone(carrying.id);
                names.forget(carrying.id);
            }
            there
        });
        // What we forgot ourselves has left the entries already.
        self.evicted += (before - self.entries.len()) as u64;
    }

    /// Takes in what the fast path measured of one connection in `epoch` and hands it on.
    pub(super) fn on_flow(
        &mut self,
        (now, epoch): (Time, u32),
        key: &FlowKey,
        state: &FlowState,
        (stations, hops): (&Stations, &Hops),
        ap: &mut Ap,
    ) {
        if self.forgotten_keys.len() < FORGET_AT_ONCE && self.is_over(now, state) {
            self.forget(key, ap);
            return;
        }
        let round = self.round;
        let mut entry = self.entries.entry(*key).or_insert_with(|| Entry::new(now, state));
        if entry.first_seen_ns != state.first_seen_ns {
            // The same addresses and ports again: another connection, with no plan of ours.
            self.drop_entry(key, ap);
            self.evicted += 1;
            entry = self.entries.entry(*key).or_insert(Entry::new(now, state));
        }
        entry.round = round;
        let bytes: u64 = state.half.iter().map(|half| half.bytes).sum();
        let payload: u64 = state.half.iter().map(|half| half.payload_bytes).sum();
        if state.half.iter().any(|half| half.known_scale().is_some()) {
            self.controllable_bytes += bytes.saturating_sub(entry.bytes);
        }
        entry.bytes = bytes;
        if payload != entry.payload_bytes {
            entry.payload_bytes = payload;
            entry.payload_at = now;
        }
        let awake = entry.is_awake(now);
        self.awake += usize::from(awake);
        match &mut entry.carrying {
            None if awake => {
                let (station, version) = (stations.id(&key.station), stations.version());
                let id = self.names.name(key);
                FlowSample::of(now, (id, station, hops.of(state.port)), epoch, state, Default::default())
                    .for_each(|sample| ap.on_sample(now, &sample));
                let rtt = rtt_totals(state);
                let carrying = Carrying { id, station, version, rtt, state: *state, asked: 0, ask_at: now };
                entry.carrying = Some(Box::new(carrying));
            }
            Some(carrying) if awake => {
                carrying.state = *state;
                carrying.sample((now, epoch), key, (stations, hops), ap);
            }
            Some(carrying) => {
                self.names.forget(carrying.id);
                ap.on_gone(carrying.id);
                entry.carrying = None;
            }
            None => {}
        }
    }

    fn is_over(&self, now: Time, state: &FlowState) -> bool {
        let silent = now.since(Time::from_nanos(state.last_seen_ns));
        let closing = Direction::BOTH.into_iter().filter(|direction| state.closing(*direction)).count();
        let half_open = state.half.iter().all(|half| half.payload_bytes == 0);
        match closing {
            2 => silent >= CLOSED,
            1 => silent >= HALF,
            _ => silent >= self.idle || half_open && silent >= HALF,
        }
    }

    fn forget(&mut self, key: &FlowKey, ap: &mut Ap) {
        self.drop_entry(key, ap);
        self.forgotten_keys.push(*key);
        self.forgotten += 1;
    }

    fn drop_entry(&mut self, key: &FlowKey, ap: &mut Ap) {
        if let Some(carrying) = self.entries.remove(key).and_then(|entry| entry.carrying) {
            ap.on_gone(carrying.id);
            self.names.forget(carrying.id);
        }
    }

    /// Connections that the fast path shall forget.
    pub(super) fn take_forgotten(&mut self) -> Vec<FlowKey> {
        std::mem::take(&mut self.forgotten_keys)
    }

    pub(super) fn key(&self, id: FlowId) -> Option<FlowKey> {
        self.names.key(id).copied()
    }

    /// The connection that the deciding half calls `id`.
    pub(super) fn carried(&self, id: FlowId) -> Option<(&FlowKey, &Carrying)> {
        let key = self.names.key(id)?;
        Some((key, self.entries.get(key)?.carrying.as_deref()?))
    }

    /// Connections that carry payload, for those who must ask about some of them.
    pub(super) fn carrying(&mut self) -> impl Iterator<Item = (FlowKey, &mut Carrying)> {
        self.entries.iter_mut().filter_map(|(key, entry)| Some((*key, entry.carrying.as_deref_mut()?)))
    }

    /// Connections that were sampled at the last reading.
    pub(super) const fn awake(&self) -> usize {
        self.awake
    }

    /// IP bytes of connections whose window can be rewritten, cumulative.
    pub(super) const fn controllable_bytes(&self) -> u64 {
        self.controllable_bytes
    }

    pub(super) fn status(&self) -> TableStatus {
        TableStatus {
            connections: self.entries.len() as u64,
            bound: self.bound,
            evicted: self.evicted,
            forgotten: self.forgotten,
        }
    }
}

#[cfg(test)]
mod tests;
