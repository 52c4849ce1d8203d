//! Who sends next: the backoff of every node, O(log nodes) per transmission.
//!
//! A node with `b` slots left whose waiting (DIFS, EIFS, NAV) ends at `start` sends at `start + b x slot`. A
//! transmission at T freezes the others: `b -= floor((T - start) / slot)`; part of a slot is lost.
//!
//! Nearly all nodes share one `start`. For them a key replaces the counter: `key = G + b`, G the idle slots counted so
//! far; a transmission adds `floor((T - since) / slot)` to G and nobody else is touched. Nodes whose phase differs
//! (senders after a loss, a receiver that could not decode, an arrival that sends at once) stand in a short list
//! until a transmission gives them the common start again.
//!
//! Nodes that start at the same nanosecond collide; one that would start later hears the first and freezes. A
//! post-backoff of a node without a frame is a key that is in no heap; drawn as zero it is over at once.

pub mod tree;

use lasthop_core::units::{Span, Time};

/// A node with a phase of its own.
#[derive(Clone, Copy, Debug)]
struct Apart {
    node: u16,
    /// Has a frame to send.
    contends: bool,
    /// From here its slots count.
    start: Time,
    /// Slots left at `start`.
    slots: u64,
    /// End of its NAV, or of its wait for an answer.
    nav: Time,
}

/// What an arrival finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// A backoff is running; the node now contends with it.
    Running,
    /// None is running; the medium counts as idle long enough from `start` on.
    Over {
        /// End of the node's DIFS, EIFS or NAV + DIFS.
        start: Time,
    },
}

/// From when one node counts slots again, where that is not the common start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Own {
    pub node: u16,
    /// End of its DIFS, EIFS or timeout.
    pub start: Time,
    /// It is deaf until then (waits for an answer): whatever else is sent, it counts from a DIFS later at the earliest.
    pub deaf_until: Time,
}

/// In place of a key: the node stands in `apart`.
const APART: u64 = u64::MAX;

/// Slots of a fixed length, divided by without a division.
#[derive(Clone, Copy, Debug)]
pub struct Slots {
    nanos: u64,
    /// `ceil(2^64 / nanos)`: exact for spans below 2^64 / nanos, whose rounding error stays below one part of a slot.
    reciprocal: u64,
}

impl Slots {
    /// Of this length.
    pub fn new(slot: Span) -> Self {
        Self { nanos: slot.as_nanos(), reciprocal: u64::MAX / slot.as_nanos() + 1 }
    }

    /// Whole slots from `start` to `now`; none before `start`.
    #[inline]
    pub fn elapsed(self, start: Time, now: Time) -> u64 {
        let span = now.since(start).as_nanos();
        if span >> 48 != 0 {
            return span / self.nanos;
        }
        ((u128::from(span) * u128::from(self.reciprocal)) >> 64) as u64
    }

    /// The end of `slots` slots from `start` on.
    #[inline]
    pub fn after(self, start: Time, slots: u64) -> Time {
        start + Span::from_nanos(slots * self.nanos)
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Contention {
    slots: Slots,
    difs: Span,
    /// By how much a busy period lowers every counter: 0, or 1 in Bianchi's model.
    per_busy: u64,
    /// G: idle slots counted until `since`.
    idle_slots: u64,
    /// The common start.
    since: Time,
    /// Nobody sends before this: the earliest start of all nodes.
    earliest: Time,
    /// NAV of the nodes in common.
    nav: Time,
    /// The absolute idle slot at which a node's counter is zero, or [`APART`].
    keys: Vec<u64>,
    /// Nodes in common that have a frame.
    tree: tree::Tree,
    apart: Vec<Apart>,
}

impl Contention {
    /// No node has a frame; the medium has been idle since `DIFS` before zero.
    pub fn new(nodes: usize, slot: Span, difs: Span) -> Self {
        Self {
            slots: Slots::new(slot),
            difs,
            per_busy: 0,
            idle_slots: 0,
            since: Time::ZERO,
            earliest: Time::ZERO,
            nav: Time::ZERO,
            keys: vec![0; nodes],
            tree: tree::Tree::new(nodes),
            apart: Vec::with_capacity(nodes),
        }
    }

    /// From now on a busy period counts as a slot.
    pub fn count_busy_periods(&mut self) {
        self.per_busy = 1;
    }

    /// When the next transmission starts, if nothing changes; [`Time::MAX`]: nobody has a frame.
    #[inline]
    pub fn next(&self) -> Time {
        let mut next = match self.tree.first() {
            Some((key, _)) => self.slots.after(self.since, key.saturating_sub(self.idle_slots)),
            None => Time::MAX,
        };
        for entry in &self.apart {
            if entry.contends {
                next = next.min(self.slots.after(entry.start, entry.slots));
            }
        }
        next
    }

    /// A cheap lower bound of [`Self::next`].
    #[inline]
    pub fn earliest(&self) -> Time {
        self.earliest
    }

    /// The node has a frame from now on: continues its backoff, or says that there is none.
    pub fn arrive(&mut self, node: u16, now: Time) -> Counter {
        let key = self.keys[usize::from(node)];
        if key != APART {
            if key > self.idle_slots + self.slots.elapsed(self.since, now) {
                self.tree.put(key, node);
                return Counter::Running;
            }
            return Counter::Over { start: self.since };
        }
        let slots = self.slots;
        let entry = self.entry(node);
        if entry.slots > slots.elapsed(entry.start, now) {
            entry.contends = true;
            Counter::Running
        } else {
            Counter::Over { start: entry.start }
        }
    }

    /// A fresh backoff for a node that is not contending, before its start.
    #[inline(always)]
    pub fn draw(&mut self, node: u16, slots: u64, contends: bool) {
        let key = &mut self.keys[usize::from(node)];
        if *key == APART {
            return self.draw_apart(node, slots, contends);
        }
        *key = self.idle_slots + slots;
        if contends {
            self.tree.put(self.idle_slots + slots, node);
        }
    }

    /// The node, whose backoff is drawn, has a frame now.
    #[inline]
    pub fn enlist(&mut self, node: u16) {
        match self.keys[usize::from(node)] {
            APART => self.entry(node).contends = true,
            key => self.tree.put(key, node),
        }
    }

    /// Who sends next and when, where that is one node of the common phase.
    #[inline]
    pub fn sole(&self) -> Option<(Time, u16)> {
        let common = self.tree.first().is_some().then(|| self.tree.sole());
        let common = match common {
            Some(sole) => {
                sole.map(|(key, node)| (self.slots.after(self.since, key.saturating_sub(self.idle_slots)), node))?
            }
            None => (Time::MAX, 0),
        };
        if self.apart.is_empty() {
            return (common.0 != Time::MAX).then_some(common);
        }
        self.sole_of_all(common)
    }

    fn sole_of_all(&self, common: (Time, u16)) -> Option<(Time, u16)> {
        let (mut first, mut tie) = (common, common.0 == Time::MAX);
        for entry in self.apart.iter().filter(|entry| entry.contends) {
            let at = self.slots.after(entry.start, entry.slots);
            if at <= first.0 {
                tie = at == first.0;
                first = (at, entry.node);
            }
        }
        (!tie).then_some(first)
    }

    #[inline(never)]
    fn draw_apart(&mut self, node: u16, slots: u64, contends: bool) {
        let entry = self.entry(node);
        (entry.slots, entry.contends) = (slots, contends);
    }

    /// The node, which has no backoff, sends after `slots` from `start` on.
    pub fn count_from(&mut self, node: u16, start: Time, slots: u64) {
        if self.keys[usize::from(node)] != APART {
            self.part(node, start, self.nav);
        }
        let entry = self.entry(node);
        (entry.start, entry.slots, entry.contends) = (start, slots, true);
        self.earliest = self.earliest.min(start);
    }

    /// Starts the transmission that [`Self::next`] announced for `at`: the only sender, or in `senders` everybody who
    /// sends then, sorted; the others freeze. [`Self::resume`] or [`Self::resume_together`] must follow.
    #[inline(always)]
    pub fn begin(&mut self, at: Time, senders: &mut Vec<u16>) -> Option<u16> {
        // Nearly always: nobody has a phase of his own, and no two have the same key.
        if self.apart.is_empty() {
            if let Some((key, node)) = self.tree.first() {
                self.tree.remove(node);
                if self.tree.first().is_none_or(|(other, _)| other != key) {
                    self.idle_slots = key + self.per_busy;
                    self.since = at;
                    return Some(node);
                }
                self.tree.put(key, node);
            }
        } else if let Some(sender) = self.begin_pair(at) {
            return Some(sender);
        }
        self.begin_any(at, senders);
        if let [sender] = senders[..] { Some(sender) } else { None }
    }

    /// One or two nodes are apart, of one phase, and one of them is the only sender: so it is all the time where the last
    /// sender and receiver have a phase of their own, as with ns-2. `None`: it is not so, and nothing has changed.
    #[inline]
    fn begin_pair(&mut self, at: Time) -> Option<u16> {
        let (slots, per_busy) = (self.slots, self.per_busy);
        let (first, second) = match &mut self.apart[..] {
            [first] => (first, None),
            [first, second] if first.start == second.start => (first, Some(second)),
            _ => return None,
        };
        let gone = slots.elapsed(first.start, at);
        let sends = |entry: &Apart| entry.contends && entry.slots == gone;
        let (one, other) = (sends(first), second.as_deref().is_some_and(sends));
        let common = slots.elapsed(self.since, at);
        let by_common = self.tree.first().is_some_and(|(key, _)| key <= self.idle_slots + common);
        if one == other || by_common || slots.after(first.start, gone) != at {
            return None;
        }
        let mut sender = first.node;
        first.contends &= !one;
        (first.slots, first.start) = (first.slots.saturating_sub(gone + per_busy), at);
        if let Some(second) = second {
            if other {
                (sender, second.contends) = (second.node, false);
            }
            (second.slots, second.start) = (second.slots.saturating_sub(gone + per_busy), at);
        }
        self.idle_slots += common + per_busy;
        self.since = at;
        Some(sender)
    }

    #[inline(never)]
    fn begin_any(&mut self, at: Time, senders: &mut Vec<u16>) {
        senders.clear();
        let first = self.tree.first();
        match first {
            Some((key, node)) if self.slots.after(self.since, key.saturating_sub(self.idle_slots)) == at => {
                self.idle_slots = key;
                self.tree.remove(node);
                senders.push(node);
                while let Some((_, node)) = self.tree.first().filter(|(other, _)| *other == key) {
                    self.tree.remove(node);
                    senders.push(node);
                }
            }
            _ => self.idle_slots += self.slots.elapsed(self.since, at),
        }
        self.idle_slots += self.per_busy;
        self.since = at;
        if !self.apart.is_empty() {
            self.begin_apart(at, senders);
        }
    }

    fn begin_apart(&mut self, at: Time, senders: &mut Vec<u16>) {
        let common = senders.len();
        for entry in &mut self.apart {
            if entry.contends && self.slots.after(entry.start, entry.slots) == at {
                entry.contends = false;
                senders.push(entry.node);
            }
            entry.slots = entry.slots.saturating_sub(self.slots.elapsed(entry.start, at) + self.per_busy);
            entry.start = at;
        }
        if senders.len() > common {
            senders.sort_unstable();
        }
    }

    /// Ends what [`Self::begin`] began where nobody has a time of his own: all count from `start`, or from the end of a
    /// NAV and DIFS.
    #[inline]
    pub fn resume_together(&mut self, start: Time, nav: Time) {
        if !self.apart.is_empty() {
            return self.resume(start, nav, &[]);
        }
        self.nav = self.nav.max(nav);
        self.since = start.max(self.nav + self.difs);
        self.earliest = self.since;
    }

    /// Whether a start of `start` and a NAV until `nav` would let everybody count from `start`.
    #[inline]
    pub fn is_common(&self, start: Time, nav: Time) -> bool {
        start >= self.nav.max(nav) + self.difs
    }

    /// Ends what [`Self::begin`] began: from when each node counts again.
    ///
    /// Those in `own` count from their own time, the others from `start`, or from the end of a NAV (theirs, or `nav`
    /// which this exchange announces) and DIFS.
    pub fn resume(&mut self, start: Time, nav: Time, own: &[Own]) {
        let difs = self.difs;
        let nav_now = self.nav.max(nav);
        let since = start.max(nav_now + difs);
        self.earliest = since;
        if self.resume_pair(since, nav_now, own) {
            return;
        }
        let before = self.apart.len();
        for own in own {
            let place = &mut self.keys[usize::from(own.node)];
            if *place == APART {
                let entry = self.entry(own.node);
                entry.nav = entry.nav.max(own.deaf_until);
                entry.start = own.start.max(entry.nav + difs);
                continue;
            }
            let nav = self.nav.max(own.deaf_until);
            let start = own.start.max(nav + difs);
            if start != since || nav > nav_now {
                self.part(own.node, start, nav);
                self.earliest = self.earliest.min(start);
            }
        }
        for index in (0..before).rev() {
            let entry = &mut self.apart[index];
            if !own.iter().any(|own| own.node == entry.node) {
                entry.nav = entry.nav.max(nav);
                entry.start = start.max(entry.nav + difs);
            }
            if entry.start == since && entry.nav <= nav_now {
                let entry = self.apart.swap_remove(index);
                self.join(&entry);
            } else {
                self.earliest = self.earliest.min(entry.start);
            }
        }
        (self.since, self.nav) = (since, nav_now);
    }

    /// The two nodes apart are those of `own` and stay apart. False: it is not so, and nothing has changed.
    #[inline]
    fn resume_pair(&mut self, since: Time, nav: Time, own: &[Own]) -> bool {
        let ([first, second], [one, other]) = (&mut self.apart[..], own) else { return false };
        let (one, other) = if first.node == one.node { (one, other) } else { (other, one) };
        if first.node != one.node || second.node != other.node {
            return false;
        }
        let resumed = |entry: &Apart, own: &Own| {
            let deaf = entry.nav.max(own.deaf_until);
            (own.start.max(deaf + self.difs), deaf)
        };
        let (a, b) = (resumed(first, one), resumed(second, other));
        let joins = |(start, deaf): (Time, Time)| start == since && deaf <= nav;
        if joins(a) || joins(b) {
            return false;
        }
        ((first.start, first.nav), (second.start, second.nav)) = (a, b);
        self.earliest = since.min(a.0).min(b.0);
        (self.since, self.nav) = (since, nav);
        true
    }

    /// Gives a node in common an entry of its own with the same counter.
    fn part(&mut self, node: u16, start: Time, nav: Time) {
        let key = std::mem::replace(&mut self.keys[usize::from(node)], APART);
        let contends = self.tree.contains(node);
        if contends {
            self.tree.remove(node);
        }
        let slots = key.saturating_sub(self.idle_slots);
        self.apart.push(Apart { node, start, slots, contends, nav });
    }

    fn join(&mut self, entry: &Apart) {
        let key = self.idle_slots + entry.slots;
        self.keys[usize::from(entry.node)] = key;
        if entry.contends {
            self.tree.put(key, entry.node);
        }
    }

    fn entry(&mut self, node: u16) -> &mut Apart {
        self.apart.iter_mut().find(|a| a.node == node).expect("a node apart has an entry")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT: Span = Span::from_micros(9);
    const DIFS: Span = Span::from_micros(28);

    fn us(n: u64) -> Time {
        Time::ZERO + Span::from_micros(n)
    }

    fn own(node: u16, start_us: u64) -> Own {
        Own { node, start: us(start_us), deaf_until: Time::ZERO }
    }

    fn begin(contention: &mut Contention, at: Time) -> Vec<u16> {
        let mut senders = Vec::new();
        match contention.begin(at, &mut senders) {
            Some(sender) => vec![sender],
            None => senders,
        }
    }

    #[test]
    fn a_frozen_backoff_keeps_its_whole_slots() {
        let mut c = Contention::new(3, SLOT, DIFS);
        c.draw(1, 5, true);
        c.draw(2, 2, true);
        assert_eq!(c.next(), us(18));
        assert_eq!(begin(&mut c, us(18)), [2]);
        c.resume(us(500), Time::ZERO, &[]);
        assert_eq!(c.next(), us(500 + 3 * 9));
    }

    #[test]
    fn equal_counters_collide_whatever_their_phase() {
        let mut c = Contention::new(3, SLOT, DIFS);
        c.draw(1, 4, true);
        c.count_from(2, us(36), 0);
        assert_eq!(begin(&mut c, us(36)), [1, 2]);
    }

    #[test]
    fn a_node_apart_joins_at_the_next_common_start() {
        let mut c = Contention::new(3, SLOT, DIFS);
        c.draw(1, 1, true);
        assert_eq!(begin(&mut c, us(9)), [1]);
        c.resume(us(400), Time::ZERO, &[own(1, 380)]);
        c.draw(1, 10, true);
        c.draw(2, 1, true);
        assert_eq!(c.next(), us(409));
        assert_eq!(begin(&mut c, us(409)), [2]);
        c.resume(us(900), Time::ZERO, &[]);
        // (409 - 380) / 9 = 3 slots gone.
        assert_eq!((c.next(), c.apart.len()), (us(900 + 7 * 9), 0));
    }

    #[test]
    fn a_nav_outlasts_a_shorter_exchange() {
        let mut c = Contention::new(3, SLOT, DIFS);
        c.draw(1, 0, true);
        assert_eq!(begin(&mut c, us(0)), [1]);
        c.resume(us(100), us(1000), &[own(1, 100)]);
        c.draw(1, 0, true);
        c.draw(2, 0, true);
        assert_eq!(begin(&mut c, us(100)), [1]);
        c.resume(us(300), Time::ZERO, &[]);
        assert_eq!(c.next(), us(1028));
    }

    #[test]
    fn a_sender_that_waits_for_an_answer_is_not_freed_by_a_shorter_exchange() {
        let mut c = Contention::new(3, SLOT, DIFS);
        c.draw(1, 0, true);
        c.draw(2, 0, true);
        assert_eq!(begin(&mut c, us(0)), [1, 2]);
        let deaf = Own { deaf_until: us(322), ..own(2, 350) };
        c.resume(us(464), Time::ZERO, &[own(1, 150), deaf]);
        c.draw(1, 0, true);
        assert_eq!(begin(&mut c, us(150)), [1]);
        c.resume(us(230), Time::ZERO, &[]);
        c.draw(2, 0, true);
        assert_eq!(c.next(), us(350));
    }

    #[test]
    fn an_arrival_continues_its_post_backoff() {
        let mut c = Contention::new(2, SLOT, DIFS);
        c.draw(1, 5, false);
        assert_eq!(c.next(), Time::MAX);
        assert_eq!(c.arrive(1, us(20)), Counter::Running);
        assert_eq!(c.next(), us(45));
    }

    #[test]
    fn an_arrival_after_its_post_backoff_has_none() {
        let mut c = Contention::new(2, SLOT, DIFS);
        c.draw(1, 5, false);
        assert_eq!(c.arrive(1, us(45)), Counter::Over { start: Time::ZERO });
    }
}
