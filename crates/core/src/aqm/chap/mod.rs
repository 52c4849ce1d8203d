//! CHAP, the credit-based home access point: who has used the least of the channel goes first.
//!
//! ```text
//! enqueue: a new flow has credit alpha = I; when the queue is full, the backlogged flow of least credit loses its head
//! dequeue: k = backlogged flow of most credit; if alpha_k <= 0, alpha_i = alpha_i / 2 + I of every active flow;
//!          the head of k is sent
//! charge:  alpha_k = alpha_k - channel time really used, all attempts included
//! ```
//!
//! I \[ns\] is the increment. A flow is active while it has packets here, and for 10 s after; then it is forgotten and
//! starts anew. [`crate::credit::account`] has the arithmetic, with boosts applied late; each packet costs O(log flows) and, once the
//! tables have grown, no allocation.
//!
//! # Which packet is dropped
//! The *head* of the poorest flow. It has been here longest and is worth least to whatever is real-time; its absence is
//! seen by a TCP receiver as soon as the next packet arrives, not after the whole queue, so that the sender is told a
//! queue's length earlier and answers with a smaller one (RFC 8290 4.1.2 drops from heads for the same reason). The
//! newcomer counts: when it belongs to the poorest flow, that flow's older packet goes.
//!
//! # New flows
//! Each brings I of fresh credit, so a flood of flows of one packet would starve those that are there. What the new flows
//! of one station bring in is capped: a bucket of credit, by default 16 I deep and filled by 200 ms of channel time
//! a second. A flow that finds less than I in it, no room in the table, or a crowded hash chain, goes to the one account that
//! such flows of its station share; and so does every new one while that account has packets queued, lest a flow's later
//! packets overtake its earlier ones. The flood is then one flow among others.
//!
//! # Nobody waits forever
//! Let c be the most channel time that a flow can be charged for one packet (times the packets that a host lets out before
//! it charges), u the debt 2I - alpha of a backlogged flow f, and N the other flows that are active while it waits. Then
//! at most `(r + 1) N (2I + c)` of channel time passes before a packet of f is sent, where r is the least number for which
//! `ceil(u / 2^r) < 2I`:
//!
//! - While no boost happens, only flows of debt below 2I are served, and a flow leaves that region when it has been
//!   charged 2I (its debt is at least 1); its last packet can overshoot by c. So N (2I + c) bounds the time between two
//!   boosts, and after the last of them. (The packet sent right after a boost belongs to the flow of least debt and counts
//!   to the interval that follows.)
//! - A boost happens only if every backlogged flow is exhausted. Each one halves f's debt: after r of them it is below 2I,
//!   and from then on no boost can happen before f is served.
//! - A flow that is only charged here is served while its debt is below 2I, or just after a boost, so u < 2I + 2c and r is 1
//!   when c < I: the bound is `2 N (2I + c)`. What is charged besides (its upstream frames) only adds to r, by a logarithm.
//!
//! New flows within the time W that f waits are among the N; the buckets let at most `(B + rate W) / I` of them in per
//! station, each of I + c rather than 2I + c, and the table's size bounds N in any case.
//! `nobody_waits_longer_than_the_bound` tests it.
//!
//! Source: Lee, Claypool, Kinicki, "Implementation and Demonstration of a Credit-based Home Access Point" (MM 2010),
//! Algorithm 1. Ours: enqueue, the cap, the late boost. Not done: weights, deadlines, marking (ECN).

mod heap;
mod table;
#[cfg(test)]
mod tests;

use super::metrics::Metrics;
use super::packets::Packets;
use crate::credit::account::{Account, is_exhausted};
use crate::packet::Packet;
use crate::units::{Span, Time};
use heap::{Heap, Rank};
use table::{NONE, Table};

/// How credit is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// I: credit of a new flow and of each boost. 16 ms: several times the dearest packet of a home (6 Mbit/s, 30 % of the
    /// frames lost: 4 ms), so that a boost forgives little of what a bad link costs; a screen frame.
    pub increment: Span,
    /// How long a flow without packets is remembered. 10 s: a page's connections outlive the pauses of its reader's clicks.
    pub active: Span,
    /// Most flows remembered; at least 1. 65,536: 8 MB when all are there.
    pub flows: usize,
    /// Credit that new flows of one station bring in per second. 200 ms: twelve flows a second at the default increment; who
    /// floods with flows that each use it up gets a fifth of the channel before the others.
    pub new_credit: Span,
    /// Credit in a full bucket, in increments; at least 1. 16: a page's first connections.
    pub burst: u32,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            increment: Span::from_millis(16),
            active: Span::from_secs(10),
            flows: 65_536,
            new_credit: Span::from_millis(200),
            burst: 16,
        }
    }
}

/// Names the account that a packet was sent from, until it is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountId {
    slot: u32,
    generation: u32,
}

/// A packet to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Served<P> {
    /// The packet.
    pub packet: P,
    /// Whom to charge.
    pub account: AccountId,
}

/// What the scheduler did so far, beside [`super::Snapshot`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counters {
    /// Boosts.
    pub boosts: u64,
    /// Flows remembered now, shared accounts not counted.
    pub flows: usize,
    /// Accounts with packets now.
    pub backlogged: usize,
    /// Flows that were given an account of their own.
    pub admitted: u64,
    /// Packets that went to a shared account.
    pub shared: u64,
    /// Of those, because the station's new flows had used up their credit.
    pub over_cap: u64,
    /// Of those, because the table had no room: every flow in it had packets, or a hash chain was crowded.
    pub no_room: u64,
    /// Flows that left for others while they were active.
    pub evicted: u64,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Chap<P> {
    increment_ns: u64,
    active: Span,
    /// Of the buckets, see [`crate::credit::account::Bucket::take`].
    interval_ns: u64,
    burst_ns: u64,
    limit: usize,
    boosts: u64,
    /// Numbers for [`table::Flow::since`].
    ticket: u64,
    table: Table,
    packets: Packets<P>,
    /// Backlogged accounts, the one to be served first.
    richest: Heap,
    /// The same, the one to be dropped from first.
    poorest: Heap,
    counters: Counters,
    metrics: Metrics,
}

impl<P: Packet> Chap<P> {
    /// An empty queue of at most `limit` packets, made at `now`.
    #[must_use]
    pub fn new(params: &Params, limit: usize, now: Time) -> Self {
        let increment_ns = params.increment.as_nanos().clamp(1, 1 << 40);
        // Nothing per second: the burst is all there will ever be.
        let nanos = u128::from(increment_ns) * 1_000_000_000;
        let interval = nanos.checked_div(u128::from(params.new_credit.as_nanos()));
        let interval_ns = interval.map_or(1 << 55, |nanos| nanos.clamp(1, 1 << 55) as u64);
        Self {
            increment_ns,
            active: params.active,
            interval_ns,
            burst_ns: interval_ns.saturating_mul(u64::from(params.burst.max(1))),
            limit: limit.max(1),
            boosts: 0,
            ticket: 0,
            table: Table::new(params.flows),
            packets: Packets::default(),
            richest: Heap::default(),
            poorest: Heap::default(),
            counters: Counters::default(),
            metrics: Metrics::new(now),
        }
    }

    /// Takes a packet of the flow that the host calls `key`, to or from `station`; gives back the packet that had to go
    /// for it, if one had to.
    #[inline]
    pub fn enqueue(&mut self, now: Time, packet: P, key: u64, station: u16) -> Option<P> {
        let slot = self.slot_for(now, key, station);
        let flow = self.table.flow(slot);
        flow.seen = now;
        let was_empty = flow.packets.is_empty();
        let bytes = packet.bytes();
        self.packets.push(&mut flow.packets, now, packet);
        if was_empty {
            self.ticket += 1;
            flow.since = self.ticket;
            let rank = Rank::new(flow.account.key(), flow.since);
            self.richest.insert(slot, rank);
            self.poorest.insert(slot, rank.reversed());
        }
        if self.packets.len() <= self.limit {
            self.metrics.on_enqueue(bytes, self.packets.len());
            return None;
        }
        self.metrics.on_enqueue(bytes, self.packets.len() - 1);
        self.drop_from_poorest(now)
    }

    /// The packet to be sent now.
    #[inline]
    pub fn dequeue(&mut self, now: Time) -> Option<Served<P>> {
        let slot = self.richest.first()?;
        if is_exhausted(self.table.get(slot).account.debt_at(self.boosts), self.increment_ns) {
            self.boosts += 1;
        }
        let (arrived, packet) = self.take_head(now, slot)?;
        self.metrics.on_dequeue(now, arrived, packet.bytes());
        Some(Served { packet, account: AccountId { slot, generation: self.table.get(slot).generation } })
    }

    /// Takes the channel time that a packet used out of its account, if that is still there. To be called once per packet
    /// of [`Self::dequeue`], before the next one if only one is sent at a time.
    #[inline]
    pub fn charge(&mut self, account: AccountId, cost: Span) {
        if self.table.get(account.slot).generation == account.generation {
            self.charge_slot(account.slot, cost);
        }
    }

    /// Takes channel time out of the account of a flow that is known here: for what it used elsewhere, such as the other
    /// direction of the channel. Whether it is known.
    pub fn charge_flow(&mut self, key: u64, cost: Span) -> bool {
        let slot = self.table.find(key);
        if let Some(slot) = slot {
            self.charge_slot(slot, cost);
        }
        slot.is_some()
    }

    /// Packets held.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Nothing held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Changes the limit; packets above a lower limit stay until they are served.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit.max(1);
    }

    /// The queue's figures; the mean covers the time up to `now`.
    #[must_use]
    pub fn snapshot(&self, now: Time) -> super::Snapshot {
        self.metrics.snapshot(now, self.packets.iter().map(|(arrived, _)| arrived))
    }

    /// What the scheduler did.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters { boosts: self.boosts, flows: self.table.known(), backlogged: self.richest.len(), ..self.counters }
    }

    /// Credit of a flow that has an account of its own, ns.
    #[must_use]
    pub fn credit_ns(&self, key: u64) -> Option<i64> {
        let slot = self.table.find(key)?;
        Some(self.table.get(slot).account.credit_at(self.boosts, self.increment_ns))
    }

    fn drop_from_poorest(&mut self, now: Time) -> Option<P> {
        let slot = self.poorest.first()?;
        let (arrived, packet) = self.take_head(now, slot)?;
        self.metrics.on_drop(now, arrived, packet.bytes());
        Some(packet)
    }

    #[inline]
    fn take_head(&mut self, now: Time, slot: u32) -> Option<(Time, P)> {
        let flow = self.table.flow(slot);
        let taken = self.packets.pop(&mut flow.packets);
        flow.seen = now;
        if flow.packets.is_empty() {
            self.richest.remove(slot);
            self.poorest.remove(slot);
            self.table.rest(slot);
        }
        taken
    }

    #[inline]
    fn charge_slot(&mut self, slot: u32, cost: Span) {
        let flow = self.table.flow(slot);
        flow.account.charge(self.boosts, cost.as_nanos());
        if !flow.packets.is_empty() {
            let rank = Rank::new(flow.account.key(), flow.since);
            self.richest.update(slot, rank);
            self.poorest.update(slot, rank.reversed());
        }
    }

    /// The account that a packet goes to; out of the list of silent flows, since it is going to have a packet.
    #[inline]
    fn slot_for(&mut self, now: Time, key: u64, station: u16) -> u32 {
        let Some(slot) = self.table.find(key) else { return self.admit(now, key, station) };
        let flow = self.table.get(slot);
        if !flow.packets.is_empty() {
            return slot;
        }
        if now.since(flow.seen) > self.active {
            self.table.forget(slot);
            return self.admit(now, key, station);
        }
        self.table.wake(slot);
        slot
    }

    /// A flow without an account gets one, if it may.
    fn admit(&mut self, now: Time, key: u64, station: u16) -> u32 {
        // One comes, up to two go: what is inactive does not pile up.
        for _each in 0..2 {
            if let Some(slot) = self.table.oldest_inactive(now, self.active) {
                self.table.forget(slot);
            }
        }
        let shared = self.table.station(station).shared;
        if shared != NONE && !self.table.get(shared).packets.is_empty() {
            self.counters.shared += 1;
            return shared;
        }
        if !self.has_room(key) {
            self.counters.no_room += 1;
            return self.share(now, station);
        }
        let (interval_ns, burst_ns) = (self.interval_ns, self.burst_ns);
        if !self.table.station(station).bucket.take(now.as_nanos(), interval_ns, burst_ns) {
            self.counters.over_cap += 1;
            return self.share(now, station);
        }
        if self.table.is_full()
            && let Some(slot) = self.table.oldest()
        {
            self.table.forget(slot);
            self.counters.evicted += 1;
        }
        self.counters.admitted += 1;
        self.table.insert(key, Account::new(self.increment_ns, self.boosts))
    }

    fn has_room(&self, key: u64) -> bool {
        self.table.has_place(key) && (!self.table.is_full() || self.table.oldest().is_some())
    }

    /// The shared account of a station; a new one after the time in which flows are forgotten.
    fn share(&mut self, now: Time, station: u16) -> u32 {
        self.counters.shared += 1;
        let new = Account::new(self.increment_ns, self.boosts);
        let slot = self.table.shared(station, new);
        let flow = self.table.flow(slot);
        if flow.packets.is_empty() && now.since(flow.seen) > self.active {
            flow.account = new;
        }
        slot
    }
}
