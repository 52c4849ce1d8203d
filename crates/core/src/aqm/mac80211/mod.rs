//! The queue of a Linux access point: FQ-CoDel per station and class, stations in turns by air time, and a limit of air time
//! below (AQL).
//!
//! ```text
//! packet -> (station, class) -> flow queue with CoDel --turns by air time, AQL--> hardware queue -> air
//!
//! may leave:  pending_sc < low,  or  sum of all pending < threshold and pending_sc < high        [us]
//! turn:       the first in line with deficit_sc - pending_sc >= 0; else it gets a quantum and goes to the end of the line
//! pending_sc  += estimate of the packet when it leaves for the hardware, -= the same when it is settled
//! deficit_sc  -= air time of an exchange with the station in this class, in either direction      [ns]
//! ```
//! A station whose turn it is hands over packets until it has none or AQL holds it; it stays first in line until its
//! deficit is spent. Without air time fairness it goes to the end of the line after each turn. One without packets stays in line for 100 ms while its deficit is negative, so that it does not carry
//! its debt into the next time. Flow queues, limit and drops from the longest are [`super::station_queues`]'s.
//!
//! Source: Linux, `net/mac80211/tx.c` (`ieee80211_next_txq`, `__ieee80211_schedule_txq`, `ieee80211_txq_airtime_check`),
//! `sta_info.c`, `airtime.c`, `include/net/fq_impl.h`, as of 2025: CoDel with 20 and 100 ms for all stations (those for slow
//! ones, 50 and 300 ms, are gone since 4876376988081). The turns are those that came back in 2022, not the virtual time of
//! between. Hoiland-Jorgensen et al., "Ending the Anomaly" (USENIX ATC 2017).
//! Differs: flow queues are per station and class and not taken from one pool of 4096; one packet is dropped where Linux
//! drops up to 32 at once; times are exact where Linux has whole microseconds. Quanta are added up at once, not by
//! walking the line again and again; the result is the same. No multicast, no power save.

mod airtime;
mod line;
#[cfg(test)]
mod tests;

pub use airtime::{Estimate, Pending};

use super::Snapshot;
use super::flow_queues;
use super::station_queues::StationQueues;
use crate::aqm::codel;
use crate::packet::{AccessCategory, Packet};
use crate::units::{Span, Time};
use line::{Line, Standing};

/// Limits of the air time that waits below the discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aql {
    /// A station and class with less than this pending may always send. 5 ms (`IEEE80211_DEFAULT_AQL_TXQ_LIMIT_L`).
    pub low: Span,
    /// It may have up to this pending while all together are below `threshold`. 12 ms (`.._TXQ_LIMIT_H`).
    pub high: Span,
    /// 24 ms (`IEEE80211_AQL_THRESHOLD`).
    pub threshold: Span,
}

impl Default for Aql {
    fn default() -> Self {
        Self { low: Span::from_millis(5), high: Span::from_millis(12), threshold: Span::from_millis(24) }
    }
}

/// How it is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Air time that a station gets per turn, its weight. 256 us (`IEEE80211_DEFAULT_AIRTIME_WEIGHT`).
    pub quantum: Span,
    /// Stations share the air time; false, as with drivers that do not support it: they take turns, whatever those last.
    pub airtime_fairness: bool,
    /// Air time below the discipline; `None`: no limit, as with drivers that do not support AQL.
    pub aql: Option<Aql>,
    /// Most memory of all packets, bytes ([`super::station_queues::memory_of`]). 16 MiB; Linux has 4 MiB where the hardware
    /// knows no 802.11ac.
    pub memory: u64,
    /// Of each station's and class's flows.
    pub flows: flow_queues::Params,
}

/// Packets in all where nothing else is said (`fq_init`).
pub const LIMIT_PACKETS: u32 = 8192;

impl Default for Params {
    fn default() -> Self {
        let (target, interval) = (Span::from_millis(20), Span::from_millis(100));
        // CoDel's MTU is left at 0 there: it drops as long as anything is left behind the head.
        let codel = codel::Params { target, interval, mtu: 0 };
        let flows = flow_queues::Params { codel, quantum: 300, flows: 4096 };
        Self {
            quantum: Span::from_micros(256),
            airtime_fairness: true,
            aql: Some(Aql::default()),
            memory: 16 << 20,
            flows,
        }
    }
}

/// A packet on its way to the hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken<P> {
    /// It.
    pub packet: P,
    /// Whose.
    pub station: u16,
    /// What it counts below the discipline until [`Mac80211::settle`] gives it back.
    pub pending: Pending,
}

/// What happened besides what [`Snapshot`] has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets dropped because too many were held.
    pub over_limit: u64,
    /// Packets dropped because they took too much memory.
    pub over_memory: u64,
    /// Turns that ended, or could not begin, because AQL held the station while it had packets.
    pub held: u64,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Mac80211<P> {
    params: Params,
    queues: StationQueues<P>,
    /// Per station and class: `4 x station + class`.
    standings: Vec<Standing>,
    lines: [Line; 4],
    /// Pending of all stations and classes.
    total: Span,
    counters: Counters,
}

fn member(station: u16, class: AccessCategory) -> usize {
    4 * usize::from(station) + class.index()
}

impl<P: Packet> Mac80211<P> {
    /// An empty queue of at most `limit` packets, made at `now`.
    #[must_use]
    pub fn new(params: Params, limit: usize, now: Time) -> Self {
        Self {
            params,
            queues: StationQueues::new(params.flows, limit, params.memory, now),
            standings: Vec::new(),
            lines: std::array::from_fn(|_| Line::default()),
            total: Span::ZERO,
            counters: Counters::default(),
        }
    }

    /// Takes a packet of the flow `key` for `station` in a class; gives back the packet that had to go for it.
    pub fn enqueue(&mut self, now: Time, packet: P, key: u64, station: u16, class: AccessCategory) -> Option<P> {
        let is_over = self.queues.enqueue(now, packet, key, member(station, class));
        let quantum = self.quantum();
        let standing = Self::standing(&mut self.standings, quantum, member(station, class));
        self.lines[class.index()].come(station, standing, now, self.params.airtime_fairness);
        if !is_over {
            return None;
        }
        if self.queues.is_over_limit() {
            self.counters.over_limit += 1;
        } else {
            self.counters.over_memory += 1;
        }
        self.queues.drop_from_longest(now, 0..self.queues.members())
    }

    /// The next packet of `class` that may go to the hardware, by `estimate` of the air time of a station's packet of so many
    /// bytes; those that CoDel drops first go to `lose`. The caller asks until there is none, or its room is at an end, and then
    /// says so with [`Self::rest`].
    pub fn dequeue(
        &mut self,
        now: Time,
        class: AccessCategory,
        estimate: impl Fn(u16, u32) -> Pending,
        mut lose: impl FnMut(P),
    ) -> Option<Taken<P>> {
        loop {
            let station = match self.lines[class.index()].at_turn() {
                Some(station) => station,
                None => self.next(class)?,
            };
            let at = member(station, class);
            let is_held = self.is_held(at);
            self.counters.held += u64::from(is_held && self.queues.has(at));
            if !is_held && let Some(packet) = self.queues.dequeue(now, at, &mut lose) {
                let pending = estimate(station, packet.bytes());
                self.standings[at].pending += pending.span();
                self.total += pending.span();
                return Some(Taken { packet, station, pending });
            }
            let has = self.queues.has(at);
            self.end_turn(now, class, has);
        }
    }

    /// The hardware has no more room in this class for now: whose turn it is goes on with it next time, unless its deficit is
    /// spent.
    pub fn rest(&mut self, now: Time, class: AccessCategory) {
        if let Some(station) = self.lines[class.index()].at_turn() {
            let has = self.queues.has(member(station, class));
            self.end_turn(now, class, has);
        }
        self.lines[class.index()].end_round();
    }

    fn end_turn(&mut self, now: Time, class: AccessCategory, has_packets: bool) {
        let is_fair = self.params.airtime_fairness;
        self.lines[class.index()].end_turn(&mut self.standings, class, now, (has_packets, is_fair));
    }

    /// A packet that left for the hardware, or several of one station and class, have been sent or given up.
    pub fn settle(&mut self, station: u16, class: AccessCategory, pending: Pending) {
        if let Some(standing) = self.standings.get_mut(member(station, class)) {
            let back = pending.span().min(standing.pending);
            standing.pending -= back;
            self.total -= back;
        }
    }

    /// What of a station and class is below the discipline is known anew.
    pub fn set_pending(&mut self, station: u16, class: AccessCategory, pending: Pending) {
        let quantum = self.quantum();
        let standing = Self::standing(&mut self.standings, quantum, member(station, class));
        self.total = self.total.saturating_sub(standing.pending) + pending.span();
        standing.pending = pending.span();
    }

    /// An exchange with a station in this class used the channel, in either direction.
    pub fn charge(&mut self, station: u16, class: AccessCategory, cost: Span) {
        if !self.params.airtime_fairness {
            return;
        }
        let quantum = self.quantum();
        let standing = Self::standing(&mut self.standings, quantum, member(station, class));
        standing.deficit = standing.deficit.saturating_sub_unsigned(cost.as_nanos());
    }

    /// Whether a packet of `class` waits, whatever AQL says.
    #[must_use]
    pub fn has(&self, class: AccessCategory) -> bool {
        self.lines[class.index()].stations().any(|station| self.queues.has(member(station, class)))
    }

    /// Air time pending below the discipline, of a station and class.
    #[must_use]
    pub fn pending(&self, station: u16, class: AccessCategory) -> Span {
        self.standings.get(member(station, class)).map_or(Span::ZERO, |standing| standing.pending)
    }

    /// The same of all.
    #[must_use]
    pub fn total_pending(&self) -> Span {
        self.total
    }

    /// Packets held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queues.len()
    }

    /// Whether it holds no packet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Changes the limit; packets above a lower limit stay until they are served.
    pub fn set_limit(&mut self, limit: usize) {
        self.queues.set_limit(limit);
    }

    /// Changes the limits of what waits below, where there are any; what is there already stays.
    pub fn set_aql(&mut self, aql: Aql) {
        self.params.aql = self.params.aql.map(|_| aql);
    }

    /// The queue's figures; the mean covers the time up to `now`.
    #[must_use]
    pub fn snapshot(&self, now: Time) -> Snapshot {
        self.queues.snapshot(now)
    }

    /// What happened besides.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Whose turn it is in a class; `None`: AQL holds all of them, or nobody is in line, or everybody had a turn this round.
    fn next(&mut self, class: AccessCategory) -> Option<u16> {
        let Self { params, standings, lines, total, .. } = self;
        let quantum = params.quantum.as_nanos().max(1) as i64;
        let aql = params.aql;
        lines[class.index()].next(standings, class, quantum, |standing| may_send(aql, *total, standing.pending))
    }

    fn is_held(&self, at: usize) -> bool {
        !may_send(self.params.aql, self.total, self.standings[at].pending)
    }

    fn quantum(&self) -> i64 {
        self.params.quantum.as_nanos().max(1) as i64
    }

    /// The standing of a member, with all before it.
    fn standing(standings: &mut Vec<Standing>, quantum: i64, at: usize) -> &mut Standing {
        if standings.len() <= at {
            standings.resize(at + 1, Standing::new(quantum));
        }
        &mut standings[at]
    }
}

fn may_send(aql: Option<Aql>, total: Span, pending: Span) -> bool {
    aql.is_none_or(|aql| pending < aql.low || (total < aql.threshold && pending < aql.high))
}
