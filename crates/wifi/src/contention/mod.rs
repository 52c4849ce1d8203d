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

mod heap;

use lasthop_core::units::{Span, Time};

/// Where a node's counter is kept.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// Counts with the others; the absolute idle slot at which it is zero.
    Common(u64),
    /// In `apart`.
    Apart,
}

/// A node with a phase of its own.
#[derive(Clone, Copy, Debug)]
struct Apart {
    node: u16,
    /// From here its slots count.
    start: Time,
    /// Slots left at `start`.
    slots: u64,
    /// Has a frame to send.
    contends: bool,
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

/// See the module.
#[derive(Clone, Debug)]
pub struct Contention {
    slot: u64,
    difs: Span,
    /// G: idle slots counted until `since`.
    idle_slots: u64,
    /// The common start.
    since: Time,
    /// Nobody sends before this: the earliest start of all nodes.
    earliest: Time,
    /// NAV of the nodes in common.
    nav: Time,
    places: Vec<Place>,
    /// Nodes in common that have a frame.
    heap: heap::Heap,
    apart: Vec<Apart>,
}

impl Contention {
    /// No node has a frame; the medium has been idle since `DIFS` before zero.
    pub fn new(nodes: usize, slot: Span, difs: Span) -> Self {
        Self {
            slot: slot.as_nanos(),
            difs,
            idle_slots: 0,
            since: Time::ZERO,
            earliest: Time::ZERO,
            nav: Time::ZERO,
            places: vec![Place::Common(0); nodes],
            heap: heap::Heap::new(nodes),
            apart: Vec::with_capacity(nodes),
        }
    }

    /// When the next transmission starts, if nothing changes.
    pub fn next(&self) -> Option<Time> {
        let common = self.heap.first().map(|(key, _)| self.after(self.since, key - self.idle_slots));
        let apart = self.apart.iter().filter(|a| a.contends).map(|a| self.after(a.start, a.slots));
        apart.chain(common).min()
    }

    /// A cheap lower bound of [`Self::next`].
    pub fn earliest(&self) -> Time {
        self.earliest
    }

    /// The node has a frame from now on: continues its backoff, or says that there is none.
    pub fn arrive(&mut self, node: u16, now: Time) -> Counter {
        match self.places[usize::from(node)] {
            Place::Common(key) if key > self.idle_slots + self.elapsed(self.since, now) => {
                self.heap.push(key, node);
                Counter::Running
            }
            Place::Common(_) => Counter::Over { start: self.since },
            Place::Apart => {
                let slot = self.slot;
                let entry = self.entry(node);
                if entry.slots > elapsed(slot, entry.start, now) {
                    entry.contends = true;
                    Counter::Running
                } else {
                    Counter::Over { start: entry.start }
                }
            }
        }
    }

    /// A fresh backoff for a node that is not contending, before its start.
    pub fn draw(&mut self, node: u16, slots: u64, contends: bool) {
        match &mut self.places[usize::from(node)] {
            Place::Common(key) => {
                *key = self.idle_slots + slots;
                if contends {
                    self.heap.push(self.idle_slots + slots, node);
                }
            }
            Place::Apart => {
                let entry = self.entry(node);
                (entry.slots, entry.contends) = (slots, contends);
            }
        }
    }

    /// The node, which has no backoff, sends at `at`.
    pub fn send_at(&mut self, node: u16, at: Time) {
        self.part(node);
        let entry = self.entry(node);
        (entry.start, entry.slots, entry.contends) = (at, 0, true);
        self.earliest = self.earliest.min(at);
    }

    /// Starts the transmission that [`Self::next`] announced for `at`: everybody who sends then, sorted; the others
    /// freeze. [`Self::resume`] must follow.
    pub fn begin(&mut self, at: Time, senders: &mut Vec<u16>) {
        let slot = self.slot;
        self.idle_slots += self.elapsed(self.since, at);
        let on_slot = at >= self.since && at.since(self.since).as_nanos().is_multiple_of(slot);
        while on_slot && let Some((key, node)) = self.heap.first().filter(|(key, _)| *key == self.idle_slots) {
            debug_assert_eq!(self.places[usize::from(node)].key(), Some(key));
            self.heap.remove(node);
            senders.push(node);
        }
        for entry in &mut self.apart {
            if entry.contends && entry.start + Span::from_nanos(entry.slots * slot) == at {
                entry.contends = false;
                senders.push(entry.node);
            }
            entry.slots = entry.slots.saturating_sub(elapsed(slot, entry.start, at));
            entry.start = at;
        }
        self.since = at;
        senders.sort_unstable();
    }

    /// Ends what [`Self::begin`] began: from when each node counts again.
    ///
    /// Those in `apart` count from their own time, the others from `start`, or from the end of a NAV (theirs, or `nav`
    /// which this exchange announces) and DIFS.
    pub fn resume(&mut self, start: Time, nav: Time, apart: &[Own]) {
        let since = start.max(self.nav.max(nav) + self.difs);
        for own in apart {
            let common = matches!(self.places[usize::from(own.node)], Place::Common(_));
            if common && own.start == since && own.deaf_until == Time::ZERO {
                continue;
            }
            self.part(own.node);
            let difs = self.difs;
            let entry = self.entry(own.node);
            entry.nav = entry.nav.max(own.deaf_until);
            entry.start = own.start.max(entry.nav + difs);
        }
        self.nav = self.nav.max(nav);
        self.since = since;
        self.earliest = since;
        let mut index = 0;
        while index < self.apart.len() {
            let entry = &mut self.apart[index];
            if !apart.iter().any(|own| own.node == entry.node) {
                entry.nav = entry.nav.max(nav);
                entry.start = start.max(entry.nav + self.difs);
            }
            if entry.start == since && entry.nav <= self.nav {
                let entry = self.apart.swap_remove(index);
                self.join(&entry);
            } else {
                self.earliest = self.earliest.min(entry.start);
                index += 1;
            }
        }
    }

    /// Gives a node in common an entry of its own with the same counter and NAV.
    fn part(&mut self, node: u16) {
        let Place::Common(key) = self.places[usize::from(node)] else { return };
        let contends = self.heap.contains(node);
        self.heap.remove(node);
        self.places[usize::from(node)] = Place::Apart;
        let slots = key.saturating_sub(self.idle_slots);
        self.apart.push(Apart { node, start: self.since, slots, contends, nav: self.nav });
    }

    fn join(&mut self, entry: &Apart) {
        let key = self.idle_slots + entry.slots;
        self.places[usize::from(entry.node)] = Place::Common(key);
        if entry.contends {
            self.heap.push(key, entry.node);
        }
    }

    fn entry(&mut self, node: u16) -> &mut Apart {
        self.apart.iter_mut().find(|a| a.node == node).expect("a node apart has an entry")
    }

    fn elapsed(&self, start: Time, now: Time) -> u64 {
        elapsed(self.slot, start, now)
    }

    fn after(&self, start: Time, slots: u64) -> Time {
        start + Span::from_nanos(slots * self.slot)
    }
}

impl Place {
    fn key(self) -> Option<u64> {
        match self {
            Self::Common(key) => Some(key),
            Self::Apart => None,
        }
    }
}

/// Whole slots from `start` to `now`; none before `start`.
fn elapsed(slot: u64, start: Time, now: Time) -> u64 {
    now.since(start).as_nanos() / slot
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
        contention.begin(at, &mut senders);
        senders
    }

    #[test]
    fn a_frozen_backoff_keeps_its_whole_slots() {
        let mut c = Contention::new(3, SLOT, DIFS);
        c.draw(1, 5, true);
        c.draw(2, 2, true);
        assert_eq!(c.next(), Some(us(18)));
        assert_eq!(begin(&mut c, us(18)), [2]);
        c.resume(us(500), Time::ZERO, &[]);
        assert_eq!(c.next(), Some(us(500 + 3 * 9)));
    }

    #[test]
    fn equal_counters_collide_whatever_their_phase() {
        let mut c = Contention::new(3, SLOT, DIFS);
        c.draw(1, 4, true);
        c.send_at(2, us(36));
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
        assert_eq!(c.next(), Some(us(409)));
        assert_eq!(begin(&mut c, us(409)), [2]);
        c.resume(us(900), Time::ZERO, &[]);
        // (409 - 380) / 9 = 3 slots gone.
        assert_eq!((c.next(), c.apart.len()), (Some(us(900 + 7 * 9)), 0));
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
        assert_eq!(c.next(), Some(us(1028)));
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
        assert_eq!(c.next(), Some(us(350)));
    }

    #[test]
    fn an_arrival_continues_its_post_backoff() {
        let mut c = Contention::new(2, SLOT, DIFS);
        c.draw(1, 5, false);
        assert_eq!(c.next(), None);
        assert_eq!(c.arrive(1, us(20)), Counter::Running);
        assert_eq!(c.next(), Some(us(45)));
    }

    #[test]
    fn an_arrival_after_its_post_backoff_has_none() {
        let mut c = Contention::new(2, SLOT, DIFS);
        c.draw(1, 5, false);
        assert_eq!(c.arrive(1, us(45)), Counter::Over { start: Time::ZERO });
    }
}
