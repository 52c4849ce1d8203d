//! The connections that the fast path knows: names for the deciding half, samples, and who is to be forgotten.
//!
//! Only connections that carry payload are decided about; half-open ones are just counted. A connection without new
//! payload for [`SLEEP`] is not sampled until it wakes, so that thousands of open and silent ones cost nothing.
//!
//! A connection keeps its place in the fast path's table until it is forgotten here: nobody who comes later pushes it out, however
//! long it pauses. It is forgotten when it has ended or been silent for so long that nobody waits for it:
//!
//! | what | forgotten after silence of | source |
//! |---|---|---|
//! | reset | [`RESET`] | conntrack's `close`, 10 s |
//! | closed by both ends | [`CLOSED`] | TIME-WAIT is 2 MSL (RFC 9293 section 3.6.1); Linux takes that for 60 s (`TCP_TIMEWAIT_LEN`) |
//! | half-open or closed by one end | [`TRANSITORY`] | RFC 5382 REQ-5: no less than 4 min |
//! | open | `idle`, 2 h 4 min | RFC 5382 REQ-5: no less; two hours is how often TCP asks whether the other end lives |
//!
//! Of a table that is nearly full those who ended, or never began, go after [`HURRIED`]; an open connection goes for nobody.
//! All places are looked at in turn, some at a time: also those of connections that this controller never heard of.

use std::collections::HashMap;

use lasthop_core::ap::{Ap, FlowSample, StationId, rtt_totals};
use lasthop_core::fastpath::layout::{FlowKey, FlowState, Half, RttTotal};
use lasthop_core::meter::timely;
use lasthop_core::packet::{Direction, FlowId};
use lasthop_core::units::{Span, Time};

use super::hops::Hops;
use super::stations::Stations;
use crate::config::Config;
use crate::program::BATCH;
use lasthop_status::TableStatus;

/// Without payload for so long: no longer sampled. Longer than the deciding half calls a flow active.
const SLEEP: Span = Span::from_secs(15);
/// Silence after which a connection that was reset is forgotten: what was in flight has come by then.
const RESET: Span = Span::from_secs(10);
/// Silence after which a connection that both ends closed is forgotten.
const CLOSED: Span = Span::from_secs(60);
/// Silence after which a connection that one end has closed, or that never was open, is forgotten.
const TRANSITORY: Span = Span::from_secs(240);
/// Silence after which those connections are forgotten in a table that is nearly full: an answer that comes takes no longer, but for few.
const HURRIED: Span = Span::from_secs(1);
/// A table is nearly full with so many of sixteen parts: what comes within a walk over the table finds room.
const NEARLY_FULL: u64 = 15;
/// Of fewer segments no share of timely ones is told.
const FEWEST: u64 = 100;
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
    round: u32,
    walk: u32,
    bound: u64,
    nearly_full: bool,
    idle: Span,
    /// Who is to be forgotten, and when each was last seen.
    over: Vec<(FlowKey, Time)>,
    forgotten: u64,
    /// Who carries payload since they were last asked for and has a window scale that nobody told.
    unscaled: Vec<FlowId>,
    controllable_bytes: u64,
    /// Round trips to stations since they were last asked for; none where nobody asks.
    heard: Option<Heard>,
}

/// Round trips that ended, by the interface and station that they were to.
pub(super) type Heard = HashMap<(u32, StationId), RoundTrips>;

/// To one station: of the connection whose round trips were shortest in the mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RoundTrips {
    pub(super) mean: Span,
    /// How many there were.
    pub(super) samples: u32,
    /// The least of any connection.
    pub(super) least: Span,
}

impl RoundTrips {
    /// What a packet without a queue of its own waits is told by the connection that waited least.
    fn join(self, other: Self) -> Self {
        let shorter = if other.mean < self.mean { other } else { self };
        Self { least: self.least.min(other.least), ..shorter }
    }
}

/// What is remembered of one connection. Small: a flood of half-open ones fills the table.
struct Entry {
    /// The reading that saw it last, and the walk.
    round: u32,
    walk: u32,
    first_seen_ns: u64,
    bytes: u64,
    payload_bytes: u64,
    payload_at: Time,
    carrying: Option<Box<Carrying>>,
}

impl Entry {
    fn new(now: Time, state: &FlowState) -> Self {
        let first_seen_ns = state.first_seen_ns;
        Self { round: 0, walk: 0, first_seen_ns, bytes: 0, payload_bytes: 0, payload_at: now, carrying: None }
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
    /// By direction: payload when it began, and pauses that were too long since.
    began: [u64; 2],
    late: [u32; 2],
}

impl Carrying {
    fn new(id: FlowId, (station, version): (StationId, u32), state: &FlowState) -> Self {
        let began = [0, 1].map(|i| state.half[i].payload_bytes);
        Self { id, station, version, rtt: rtt_totals(state), state: *state, began, late: [0; 2] }
    }

    /// Counts the pauses that ended in `epoch`: one, for two of them do not end within an interval.
    fn count_late(&mut self, epoch: u32) {
        for (late, half) in self.late.iter_mut().zip(&self.state.half) {
            *late += u32::from(half.epoch == epoch && u64::from(half.gap_ns) > timely::LIMIT.as_nanos());
        }
    }

    /// Segments that came at most 75 ms after the one before, of all since it began to carry payload.
    pub(super) fn timely_index(&self, direction: Direction) -> Option<f64> {
        let i = direction.index();
        let half = &self.state.half[i];
        let segments = half.payload_bytes.saturating_sub(self.began[i]).checked_div(u64::from(half.mss))?;
        (segments >= FEWEST).then(|| (1.0 - f64::from(self.late[i]) / segments as f64).max(0.0))
    }

    /// Shows what is known of it to those who decide.
    fn sample(
        &mut self,
        (now, epoch): (Time, u32),
        key: &FlowKey,
        (stations, hops): (&Stations, &Hops),
        ap: &mut Ap,
        heard: &mut Option<Heard>,
    ) {
        self.count_late(epoch);
        let before = std::mem::replace(&mut self.rtt, rtt_totals(&self.state));
        if self.version != stations.version() {
            (self.station, self.version) = (stations.id(&key.station), stations.version());
        }
        if let Some(heard) = heard
            && let Some(round_trips) = self.round_trips(epoch, before)
        {
            let to_station = heard.entry((self.state.port, self.station)).or_insert(round_trips);
            *to_station = to_station.join(round_trips);
        }
        let who = (self.id, self.station, hops.of(self.state.port));
        FlowSample::of(now, who, epoch, &self.state, before).for_each(|sample| ap.on_sample(now, &sample));
    }

    /// Those to the station that ended since `before`.
    fn round_trips(&self, epoch: u32, before: [RttTotal; 2]) -> Option<RoundTrips> {
        let i = Direction::ToStation.index();
        let mean = self.rtt[i].mean_since(before[i])?;
        let least = self.state.half[i].rtt_min(epoch).unwrap_or(mean).min(mean);
        Some(RoundTrips { mean, samples: self.rtt[i].samples_since(before[i]), least })
    }

    /// Whether neither its SYNs nor conntrack have shown the window scales.
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
            walk: 0,
            bound: u64::from(config.flows),
            nearly_full: false,
            idle: config.idle,
            over: Vec::new(),
            forgotten: 0,
            unscaled: Vec::new(),
            controllable_bytes: 0,
            heard: None,
        }
    }

    /// From here on, round trips to stations are gathered, or not.
    pub(super) fn gather_round_trips(&mut self, on: bool) {
        self.heard = self.heard.take().or_else(|| Some(Heard::new())).filter(|_| on);
    }

    /// Those that ended since this was last said.
    pub(super) fn take_round_trips(&mut self) -> Heard {
        self.heard.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// An open connection that is silent for so long is forgotten.
    pub(super) const fn set_idle(&mut self, idle: Span) {
        self.idle = idle;
    }

    /// A reading of the fast path's table begins.
    pub(super) fn begin(&mut self) {
        self.round = self.round.wrapping_add(1);
        self.nearly_full = self.entries.len() as u64 * 16 >= self.bound * NEARLY_FULL;
    }

    /// Ends an interval in which the connections that moved were read: of the others nothing passed, which who decides knows without samples.
    pub(super) fn rest(&mut self, now: Time, ap: &mut Ap) {
        let round = self.round;
        for entry in self.entries.values_mut().filter(|entry| entry.round != round && entry.carrying.is_some()) {
            if !entry.is_awake(now)
                && let Some(carrying) = entry.carrying.take()
            {
                self.names.forget(carrying.id);
                ap.on_gone(carrying.id);
            }
        }
    }

    /// Connections in the table, as far as they were seen.
    pub(super) fn known(&self) -> usize {
        self.entries.len()
    }

    /// Time between two steps of the walk over all places: a whole walk takes about as long as the least that a connection is remembered.
    pub(super) fn walks_every(&self) -> Span {
        RESET / (self.entries.len() / BATCH + 1) as u64
    }

    /// Few places were left when the reading began.
    pub(super) const fn is_nearly_full(&self) -> bool {
        self.nearly_full
    }

    /// Every place of the fast path's table was looked at since this was last said: who was seen in none is gone.
    pub(super) fn end(&mut self, ap: &mut Ap) {
        let (walk, names) = (self.walk, &mut self.names);
        self.entries.retain(|_, entry| {
            let there = entry.walk == walk;
            if let Some(carrying) = entry.carrying.as_ref().filter(|_| !there) {
                ap.on_gone(carrying.id);
                names.forget(carrying.id);
            }
            there
        });
        self.walk = walk.wrapping_add(1);
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
        if self.over.len() < FORGET_AT_ONCE && self.is_over(now, state) {
            self.drop_entry(key, ap);
            self.over.push((*key, Time::from_nanos(state.last_seen_ns)));
            return;
        }
        let (round, walk) = (self.round, self.walk);
        let mut entry = self.entries.entry(*key).or_insert_with(|| Entry::new(now, state));
        if entry.first_seen_ns != state.first_seen_ns {
            // The same addresses and ports again: another connection, with no plan of ours.
            self.drop_entry(key, ap);
            entry = self.entries.entry(*key).or_insert(Entry::new(now, state));
        }
        entry.walk = walk;
        if std::mem::replace(&mut entry.round, round) == round {
            // It moved, and it was its turn to be looked at.
            return;
        }
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
        match &mut entry.carrying {
            None if awake => {
                let (station, version) = (stations.id(&key.station), stations.version());
                let id = self.names.name(key);
                FlowSample::of(now, (id, station, hops.of(state.port)), epoch, state, Default::default())
                    .for_each(|sample| ap.on_sample(now, &sample));
                let carrying = Carrying::new(id, (station, version), state);
                self.unscaled.extend(carrying.lacks_scale().then_some(id));
                entry.carrying = Some(Box::new(carrying));
            }
            Some(carrying) if awake => {
                carrying.state = *state;
                carrying.sample((now, epoch), key, (stations, hops), ap, &mut self.heard);
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
        let patience = match Stage::of(state) {
            Stage::Open => return silent >= self.idle,
            Stage::Reset => RESET,
            Stage::Closed => CLOSED,
            Stage::HalfOpen => TRANSITORY,
            // What the other end still sends may come at any time.
            Stage::HalfClosed => return silent >= TRANSITORY.min(self.idle),
        };
        silent >= (if self.nearly_full { HURRIED } else { patience.min(self.idle) })
    }

    /// So many of those that were to be forgotten are.
    pub(super) const fn on_forgotten(&mut self, number: u64) {
        self.forgotten += number;
    }

    fn drop_entry(&mut self, key: &FlowKey, ap: &mut Ap) {
        if let Some(carrying) = self.entries.remove(key).and_then(|entry| entry.carrying) {
            ap.on_gone(carrying.id);
            self.names.forget(carrying.id);
        }
    }

    /// Connections that the fast path shall forget, and when each was last seen.
    pub(super) fn take_over(&mut self) -> Vec<(FlowKey, Time)> {
        std::mem::take(&mut self.over)
    }

    /// Who has begun to carry payload, or does so again, without a scale that is known.
    pub(super) fn take_unscaled(&mut self) -> Vec<FlowId> {
        std::mem::take(&mut self.unscaled)
    }

    pub(super) fn key(&self, id: FlowId) -> Option<FlowKey> {
        self.names.key(id).copied()
    }

    /// The connection that the deciding half calls `id`.
    pub(super) fn carried(&self, id: FlowId) -> Option<(&FlowKey, &Carrying)> {
        let key = self.names.key(id)?;
        Some((key, self.entries.get(key)?.carrying.as_deref()?))
    }

    /// IP bytes of connections whose window can be rewritten, cumulative.
    pub(super) const fn controllable_bytes(&self) -> u64 {
        self.controllable_bytes
    }

    pub(super) fn status(&self) -> TableStatus {
        TableStatus {
            connections: self.entries.len() as u64,
            bound: self.bound,
            forgotten: self.forgotten,
            scale_unknown: self.carrying().filter(|carrying| carrying.lacks_scale()).count() as u64,
            ..TableStatus::default()
        }
    }

    fn carrying(&self) -> impl Iterator<Item = &Carrying> {
        self.entries.values().filter_map(|entry| entry.carrying.as_deref())
    }
}

/// How far a connection is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Never was any payload seen, nor an acknowledgment of both ends.
    HalfOpen,
    Open,
    /// One end has no more to send.
    HalfClosed,
    Closed,
    Reset,
}

impl Stage {
    fn of(state: &FlowState) -> Self {
        let both = |has: fn(&Half) -> bool| state.half.iter().filter(|half| has(half)).count();
        let closing = Direction::BOTH.into_iter().filter(|direction| state.closing(*direction)).count();
        match closing {
            _ if both(|half| half.data_flags & Half::RESET != 0) > 0 => Self::Reset,
            2 => Self::Closed,
            1 => Self::HalfClosed,
            _ if both(|half| half.payload_bytes > 0) > 0 => Self::Open,
            _ if both(|half| half.flags & Half::EDGE_KNOWN != 0) == 2 => Self::Open,
            _ => Self::HalfOpen,
        }
    }
}

#[cfg(test)]
mod tests;
