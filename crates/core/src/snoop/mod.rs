//! Snoop: losses of the last hop are repaired from a cache at the access point, and the sender does not hear of them.
//!
//! ```text
//! data to the wireless host: kept until it is acknowledged; what was seen before is its sender's retransmission
//! new acknowledgment:        frees what it covers, measures the hop's round trip, starts the timer anew
//! duplicate:                 hole cached, and not sent again by its sender -> sent once more from here, duplicate dropped
//!                            else -> forwarded
//! timer:                     max(least, 2 srtt, srtt + 4 rttvar) x 2^retries sent -> the segment at the hole is sent once more
//! after `retries` of them:   it is its sender's business: duplicates are forwarded
//! ```
//!
//! `srtt`, `rttvar`: of the hop, access point to acknowledgment, RFC 6298's gains, Karn's rule.
//!
//! # Congestion or the channel
//! A segment that never came here is in no cache: what is lost before the access point is heard of by the sender as ever.
//! So is what the host says its queue had no room for ([`Data::queue_full`]), and, where Snoop stands below the queue, all
//! that the queue dropped. A segment that its sender has sent again belongs to the sender until it is acknowledged: its
//! duplicates are what the sender's fast recovery lives on. The timer alone repairs it.
//!
//! # A receiver that reports blocks (SACK)
//! Then blocks are what tells of a hole: missing is a segment that was sent before one that has arrived, retransmissions
//! included (RACK, RFC 8985; a hop keeps the order, so no time is allowed for reordering). All holes are repaired, two per
//! acknowledgment. A duplicate without blocks means something else (a challenge, an answer to a probe) and passes.
//!
//! What is hidden, and how long: only acknowledgments *all* of whose holes are cached, neither sent again by the sender nor
//! given up; until these are repaired or given up. One hole that is not, and everything passes as it is. Blocks of an
//! acknowledgment of something new are taken off it then ([`SnoopVerdict::Strip`]): three of them make a sender halve its
//! window. A receiver may leave them out (RFC 2018 section 4: SHOULD), and the next one that passes tells it all anew.
//!
//! # What always passes
//! Whatever carries more than an acknowledgment, a change of the window, a closed one, reports of duplicates (D-SACK),
//! acknowledgments older than the newest or of what was never sent.
//!
//! # A stream is never corrupted
//! What is sent from here is a copy of what the sender sent, under the same connection: SYN and RST of either side empty
//! the cache, and so does a sequence number 2^30 away. Acknowledgments that lie can only free copies.
//!
//! # Nobody waits for us forever
//! Sender's timers run on; retries are bounded, and their time doubles; after the last one duplicates pass. When a sender's
//! timer is faster, its retransmission makes the hole its own business.
//!
//! # Timestamps (RFC 7323)
//! A copy carries an old TSval. The receiver accepts it: it remembers only those of segments at or before the hole's first
//! byte, which the copy is not older than, unless the sender has probed (keep-alive) in between; then the copy is dropped
//! and answered with a duplicate. Its echo makes the sender's round trip longer by the repair, which is what its timer
//! ought to know.
//!
//! # Bounds
//! Connections, segments and bytes of each, bytes in all. What finds no room is forwarded uncached and counted. When all
//! memory is taken, the connection unused for longest goes, if it was unused for a second.
//!
//! Source: Balakrishnan, Seshan, Amir, Katz, "Improving TCP/IP Performance over Wireless Networks" (MobiCom 1995);
//! ns-2.35 `tcp/snoop.cc` for [`Conduct::Ns2`]. Ours: everything about blocks, bounds and time stamps.
//!
//! Not done: what the wireless host sends (ELN), sharing of round trips between connections, moving a cache to another
//! access point.

mod cache;
mod connection;
mod ns2;
mod params;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};

use crate::flow::Table;
use crate::units::{Span, Time};
use connection::{Connection, Host};

pub use params::{Ack, Conduct, ConnectionSnapshot, Data, Params, Retransmission, Snapshot, SnoopVerdict};

/// A connection unused for so long may leave for others.
const IDLE: Span = Span::from_secs(1);

/// What a connection needs of the whole; a macro, since the connection is borrowed beside it.
macro_rules! host {
    ($snoop:ident) => {
        Host {
            params: &$snoop.params,
            counters: &mut $snoop.counters,
            due: &mut $snoop.scratch,
            ns2_signs: &mut $snoop.ns2_signs,
        }
    };
}

/// See the module. `P`: a packet, or what names one; it is cloned for each retransmission.
#[derive(Debug)]
pub struct Snoop<P> {
    params: Params,
    connections: Table<u64, Connection<P>>,
    /// One per connection whose timer runs: never later than it goes off.
    alarms: BTreeSet<(Time, u64)>,
    /// What is to be sent, in that order.
    due: VecDeque<(u64, u32)>,
    scratch: Vec<u32>,
    bytes: u64,
    segments: usize,
    ns2_signs: u32,
    counters: Snapshot,
}

impl<P: Clone> Snoop<P> {
    /// A Snoop that knows no connection and has cached nothing.
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self {
            params,
            connections: Table::new(params.connections),
            alarms: BTreeSet::new(),
            due: VecDeque::new(),
            scratch: Vec::new(),
            bytes: 0,
            segments: 0,
            ns2_signs: 0,
            counters: Snapshot::default(),
        }
    }

    /// A packet goes to the wireless host; `packet` is what [`Self::poll`] may give back later. It is to be sent whatever
    /// happens here.
    pub fn on_data(&mut self, now: Time, data: &Data, packet: P) {
        if data.syn || data.rst {
            self.forget(data.connection);
        }
        let opens = data.syn && self.keeps_syn();
        let is_cached = opens || (!data.syn && (data.bytes > 0 || data.fin));
        if data.rst || !is_cached || data.bytes > connection::FAR {
            return;
        }
        match self.connections.get(&data.connection).map(|known| known.is_foreign(data.seq)) {
            Some(true) => self.forget(data.connection),
            Some(false) => {}
            None => {
                while self.connections.len() >= self.params.connections.max(1) && self.evict_oldest(now, Span::ZERO) {}
            }
        }
        let room = self.make_room(now, data);
        let known = self.connections.get_or_insert_with(data.connection, || Connection::new(data.seq, now));
        let before = (known.cache.cost(), known.cache.len());
        let mut host = host!(self);
        known.used = now;
        known.on_data(now, data, packet, room, &mut host);
        self.settle(data.connection, before);
    }

    /// A packet comes from the wireless host: says what becomes of it. Drain [`Self::poll`] then.
    pub fn on_ack(&mut self, now: Time, ack: &Ack<'_>) -> SnoopVerdict {
        if ack.rst || (ack.syn && !self.keeps_syn()) {
            self.forget(ack.connection);
            return SnoopVerdict::Forward;
        }
        let Some(known) = self.connections.get(&ack.connection) else { return SnoopVerdict::Forward };
        let before = (known.cache.cost(), known.cache.len());
        let mut host = host!(self);
        known.used = now;
        let verdict = known.on_ack(now, ack, &mut host);
        self.settle(ack.connection, before);
        match verdict {
            SnoopVerdict::Forward => {}
            SnoopVerdict::Strip => self.counters.stripped += 1,
            SnoopVerdict::Suppress => self.counters.suppressed += 1,
        }
        verdict
    }

    /// ns-2's one-way connections open with a packet like any other, number 0.
    fn keeps_syn(&self) -> bool {
        self.params.conduct == Conduct::Ns2
    }

    /// The queue below has dropped the segment that begins with `seq`: congestion, of which its sender has to hear.
    pub fn on_dropped(&mut self, connection: u64, seq: u32) {
        if let Some(known) = self.connections.peek_mut(&connection)
            && let Some(segment) = known.cache.get_mut(seq)
        {
            segment.given_up = true;
            self.counters.queue_full += 1;
        }
    }

    /// Whether the segment that begins with `seq` may yet be sent from here.
    #[must_use]
    pub fn holds(&self, connection: u64, seq: u32) -> bool {
        let segment = self.connections.peek(&connection).and_then(|known| known.cache.get(seq));
        segment.is_some_and(|segment| !segment.given_up)
    }

    /// The copy of that segment.
    #[must_use]
    pub fn held(&self, connection: u64, seq: u32) -> Option<&P> {
        let segment = self.connections.peek(&connection).and_then(|known| known.cache.get(seq))?;
        (!segment.given_up).then_some(&segment.packet)
    }

    /// What is to be sent to the wireless host now.
    pub fn poll(&mut self, now: Time) -> Option<Retransmission<P>> {
        loop {
            while let Some((connection, start)) = self.due.pop_front() {
                let segment = self.connections.peek(&connection).and_then(|known| known.cache.get(start));
                if let Some(segment) = segment {
                    return Some(Retransmission { connection, packet: segment.packet.clone() });
                }
            }
            let &(at, connection) = self.alarms.first().filter(|(at, _)| *at <= now)?;
            self.alarms.remove(&(at, connection));
            self.on_alarm(now, connection);
        }
    }

    fn on_alarm(&mut self, now: Time, connection: u64) {
        // Its place among those used lately is not changed by its own timer.
        let Some(known) = self.connections.peek_mut(&connection) else { return };
        let before = (known.cache.cost(), known.cache.len());
        known.alarm = None;
        let mut host = host!(self);
        known.on_timer(now, &mut host);
        self.settle(connection, before);
    }

    /// When `poll` may have something without being told anything.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        if self.due.is_empty() { self.alarms.first().map(|(at, _)| *at) } else { Some(Time::ZERO) }
    }

    /// The connection is over, or the host does not want it looked at.
    pub fn forget(&mut self, connection: u64) {
        if let Some(known) = self.connections.remove(&connection) {
            self.leave(connection, &known);
        }
    }

    /// What happened so far.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot { connections: self.connections.len(), segments: self.segments, bytes: self.bytes, ..self.counters }
    }

    /// Of one connection; none when it is not known.
    #[must_use]
    pub fn connection(&self, connection: u64) -> Option<ConnectionSnapshot> {
        self.connections.peek(&connection).map(|known| ConnectionSnapshot {
            segments: known.cache.len(),
            bytes: known.cache.cost(),
            srtt: known.rtt.srtt,
            deadline: known.deadline,
        })
    }

    /// Whether the segment may be cached.
    fn make_room(&mut self, now: Time, data: &Data) -> bool {
        if data.queue_full {
            self.counters.queue_full += 1;
            return false;
        }
        let cost = cache::cost(data.bytes);
        let (segments, bytes) = self.connections.peek(&data.connection).map_or((0, 0), |known| {
            // One that is sent again takes the place of itself.
            let same = known.cache.get(data.seq).map_or(0, |same| cache::cost(same.end.wrapping_sub(same.start)));
            (known.cache.len() - usize::from(same > 0), known.cache.cost() - same)
        });
        if segments >= self.params.segments.max(1) || bytes + cost > self.params.connection_bytes {
            self.counters.refused_connection += 1;
            return false;
        }
        while self.bytes + cost > self.params.bytes {
            let is_own = self.connections.oldest().is_none_or(|(oldest, _)| *oldest == data.connection);
            if is_own || !self.evict_oldest(now, IDLE) {
                self.counters.refused += 1;
                return false;
            }
        }
        true
    }

    /// Forgets the connection unused for longest, if it was unused for `idle`.
    fn evict_oldest(&mut self, now: Time, idle: Span) -> bool {
        let Some((&connection, known)) = self.connections.oldest() else { return false };
        if now.since(known.used) < idle {
            return false;
        }
        self.counters.evicted += 1;
        self.forget(connection);
        true
    }

    fn leave(&mut self, connection: u64, known: &Connection<P>) {
        self.bytes -= known.cache.cost();
        self.segments -= known.cache.len();
        if let Some(at) = known.alarm {
            self.alarms.remove(&(at, connection));
        }
    }

    /// Takes over what a connection has changed: memory, alarm, what is to be sent.
    fn settle(&mut self, connection: u64, before: (u64, usize)) {
        self.due.extend(self.scratch.drain(..).map(|start| (connection, start)));
        let Some(known) = self.connections.peek_mut(&connection) else { return };
        self.bytes = self.bytes - before.0 + known.cache.cost();
        self.segments = self.segments - before.1 + known.cache.len();
        self.counters.most_bytes = self.counters.most_bytes.max(self.bytes);
        // An alarm that is too early is moved when it goes off: most timers are put off, with every acknowledgment.
        let Some(deadline) = known.deadline else { return };
        if known.alarm.is_none_or(|at| deadline < at) {
            if let Some(at) = known.alarm.replace(deadline) {
                self.alarms.remove(&(at, connection));
            }
            self.alarms.insert((deadline, connection));
        }
    }
}
