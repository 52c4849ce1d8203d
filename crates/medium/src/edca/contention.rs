//! Who sends next where every node contends with up to four classes of its own: O(log contenders) per transmission.
//!
//! A class with `b` slots of backoff left sends at
//!
//! ```text
//! base + (AIFSN + b) x slot        base = end of what was heard last, or of the NAV, + SIFS
//! ```
//!
//! A transmission at T, s = floor((T - base) / slot) slots after the base, lowers every other counter. Under EDCA a class
//! counts at each boundary from the end of its AIFS on, the one at which T lies included (IEEE 802.11-2020, 10.23.2.4): by
//! `s - AIFSN + 1` if s >= AIFSN. A radio under DCF has to see whole slots: by `s - 2`.
//!
//! Contenders of one AIFSN stand in one lane. In place of each counter a key, `key = G + b`, with the lane's sum G of what
//! transmissions have lowered: a transmission adds to the G of each lane and touches no key. As in [`crate::contention`] nodes
//! whose base is not the common one (who waited for an answer that did not come, who could not decode what the others could)
//! stand in a short list until a transmission gives them the common base again.

use lasthop_core::units::{Span, Time};

use crate::contention::Slots;
use crate::contention::tree::Tree;

/// Classes of a node.
pub const CLASSES: u16 = 4;

/// Contenders that count alike.
#[derive(Clone, Debug)]
struct Lane {
    aifsn: u64,
    /// 1: EDCA counts the boundary at which another begins; 0: DCF does not.
    at_boundary: u64,
    /// G.
    counted: u64,
    /// Those that have a frame, by place in `members`.
    tree: Tree,
    members: Vec<u16>,
}

impl Lane {
    /// By how much counters fall until `slots` slots after the base.
    #[inline]
    fn counted_after(&self, slots: u64) -> u64 {
        if slots < self.aifsn { 0 } else { slots - self.aifsn + self.at_boundary }
    }
}

/// How a contender counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    pub aifsn: u8,
    /// Under DCF; false: under EDCA.
    pub dcf: bool,
}

/// A node with a base of its own.
#[derive(Clone, Copy, Debug)]
struct Apart {
    node: u16,
    base: Time,
    nav: Time,
    contends: [bool; CLASSES as usize],
    slots: [u64; CLASSES as usize],
}

/// A node whose base is not that of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Own {
    pub node: u16,
    /// From here its AIFS counts.
    pub base: Time,
    /// It is deaf until then.
    pub deaf_until: Time,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Contention {
    slots: Slots,
    slot: Span,
    sifs: Span,
    /// The last frames on the channel end.
    busy_until: Time,
    /// Common.
    base: Time,
    /// Common.
    nav: Time,
    lanes: Vec<Lane>,
    /// Lane and place in it, by contender.
    places: Vec<(u8, u16)>,
    /// By contender: absolute, or with [`Apart`] unused.
    keys: Vec<u64>,
    /// By node.
    is_apart: Vec<bool>,
    apart: Vec<Apart>,
    /// When somebody sends, if nothing changes.
    next: Time,
}

impl Contention {
    /// No contender has a frame, and the medium has long been idle. `counts` by contender, four to a node.
    pub fn new(counts: &[Counts], slot: Span, sifs: Span) -> Self {
        let mut lanes: Vec<(Counts, Vec<u16>)> = Vec::new();
        let mut places = Vec::with_capacity(counts.len());
        for (contender, counts) in (0..).zip(counts) {
            let lane = lanes.iter().position(|(other, _)| other == counts).unwrap_or_else(|| {
                lanes.push((*counts, Vec::new()));
                lanes.len() - 1
            });
            places.push((lane as u8, lanes[lane].1.len() as u16));
            lanes[lane].1.push(contender);
        }
        let lane = |(counts, members): (Counts, Vec<u16>)| Lane {
            aifsn: u64::from(counts.aifsn),
            at_boundary: u64::from(!counts.dcf),
            counted: 0,
            tree: Tree::new(members.len().max(2)),
            members,
        };
        Self {
            slots: Slots::new(slot),
            slot,
            sifs,
            busy_until: Time::ZERO,
            base: Time::ZERO,
            nav: Time::ZERO,
            lanes: lanes.into_iter().map(lane).collect(),
            keys: vec![0; counts.len()],
            is_apart: vec![false; counts.len() / usize::from(CLASSES)],
            places,
            apart: Vec::with_capacity(16),
            next: Time::MAX,
        }
    }

    /// When the next transmission starts, if nothing changes; [`Time::MAX`]: nobody has a frame.
    #[inline]
    pub fn next(&self) -> Time {
        self.next
    }

    #[inline]
    fn lane(&self, contender: u16) -> (&Lane, u16) {
        let (lane, place) = self.places[usize::from(contender)];
        (&self.lanes[usize::from(lane)], place)
    }

    fn apart_of(&self, node: u16) -> Option<usize> {
        if !self.is_apart[usize::from(node)] {
            return None;
        }
        self.apart.iter().position(|entry| entry.node == node)
    }

    /// A contender without a frame has one now. True: it contends, with the backoff that was running or at the next boundary
    /// of an idle medium; false: it needs a backoff, see [`Self::draw`].
    pub fn arrive(&mut self, contender: u16, now: Time) -> bool {
        let (node, class) = (contender / CLASSES, usize::from(contender % CLASSES));
        let at = self.apart_of(node);
        let (lane, _) = self.lane(contender);
        let (base, nav, left) = match at {
            Some(at) => (self.apart[at].base, self.apart[at].nav, self.apart[at].slots[class]),
            None => (self.base, self.nav, self.keys[usize::from(contender)].saturating_sub(lane.counted)),
        };
        let counted = if now < base { 0 } else { lane.counted_after(self.slots.elapsed(base, now)) };
        if left > 0 && left + lane.at_boundary > counted {
            self.put(contender, left);
            return true;
        }
        if lane.at_boundary == 1 {
            if now < self.busy_until.max(nav) {
                return false;
            }
            self.put(contender, counted);
            return true;
        }
        let difs = self.slot * lane.aifsn;
        if now < base + difs {
            return false;
        }
        self.part(node, self.nav);
        let at = self.apart_of(node).unwrap_or_default();
        self.apart[at].base = now - difs;
        self.put(contender, 0);
        true
    }

    /// A backoff of so many slots for a contender that has none running.
    #[inline]
    pub fn draw(&mut self, contender: u16, slots: u64, contends: bool) {
        if contends {
            return self.put(contender, slots);
        }
        if let Some(at) = self.apart_of(contender / CLASSES) {
            let class = usize::from(contender % CLASSES);
            (self.apart[at].slots[class], self.apart[at].contends[class]) = (slots, false);
            return;
        }
        let counted = self.lane(contender).0.counted;
        self.keys[usize::from(contender)] = counted + slots;
    }

    /// It contends with so many slots left.
    #[inline]
    fn put(&mut self, contender: u16, slots: u64) {
        if let Some(at) = self.apart_of(contender / CLASSES) {
            let aifsn = self.lane(contender).0.aifsn;
            let class = usize::from(contender % CLASSES);
            let entry = &mut self.apart[at];
            (entry.slots[class], entry.contends[class]) = (slots, true);
            self.next = self.next.min(self.slots.after(entry.base, aifsn + slots));
            return;
        }
        let (lane, place) = self.places[usize::from(contender)];
        let lane = &mut self.lanes[usize::from(lane)];
        self.keys[usize::from(contender)] = lane.counted + slots;
        lane.tree.put(lane.counted + slots, place);
        self.next = self.next.min(self.slots.after(self.base, lane.aifsn + slots));
    }

    /// Starts the transmission that [`Self::next`] announced for `at`: in `senders` everybody who sends then, sorted; the
    /// others freeze. [`Self::resume`] must follow.
    #[inline]
    pub fn begin(&mut self, at: Time, senders: &mut Vec<u16>) {
        senders.clear();
        let since_base = if at < self.base { 0 } else { self.slots.elapsed(self.base, at) };
        let on_grid = self.slots.after(self.base, since_base) == at;
        let mut lanes_sending = 0;
        for lane in &mut self.lanes {
            if on_grid && since_base >= lane.aifsn {
                let key = lane.counted + since_base - lane.aifsn;
                let before = senders.len();
                while let Some((_, place)) = lane.tree.first().filter(|(first, _)| *first == key) {
                    lane.tree.remove(place);
                    senders.push(lane.members[usize::from(place)]);
                }
                lanes_sending += usize::from(senders.len() > before);
            }
            lane.counted += lane.counted_after(since_base);
        }
        if !self.apart.is_empty() {
            self.begin_apart(at, senders);
            senders.sort_unstable();
        } else if lanes_sending > 1 {
            senders.sort_unstable();
        }
        self.base = at;
    }

    #[inline(never)]
    fn begin_apart(&mut self, at: Time, senders: &mut Vec<u16>) {
        for entry in &mut self.apart {
            let since_base = if at < entry.base { 0 } else { self.slots.elapsed(entry.base, at) };
            for class in 0..CLASSES {
                let contender = entry.node * CLASSES + class;
                let lane = &self.lanes[usize::from(self.places[usize::from(contender)].0)];
                let (slots, contends) = (&mut entry.slots[usize::from(class)], &mut entry.contends[usize::from(class)]);
                if *contends && self.slots.after(entry.base, lane.aifsn + *slots) == at {
                    *contends = false;
                    senders.push(contender);
                }
                *slots = slots.saturating_sub(lane.counted_after(since_base));
            }
            entry.base = at;
        }
    }

    /// Freezes everybody for a transmission at `at` that nobody had to contend for. [`Self::resume`] must follow.
    pub fn interrupt(&mut self, at: Time, senders: &mut Vec<u16>) {
        self.begin(at, senders);
        debug_assert!(senders.is_empty(), "the channel was held");
    }

    /// Ends what [`Self::begin`] began, frames until `busy_until`: everybody's AIFS counts from `base`, or from a SIFS after the end of a NAV (theirs, or
    /// `nav`, which this exchange announces); those in `own` from their own times.
    pub fn resume(&mut self, busy_until: Time, base: Time, nav: Time, own: &[Own]) {
        self.busy_until = busy_until;
        let nav_now = self.nav.max(nav);
        let common = base.max(nav_now + self.sifs);
        if !own.is_empty() || !self.apart.is_empty() {
            self.resume_apart(base, common, nav, nav_now, own);
        }
        (self.base, self.nav) = (common, nav_now);
        self.find_next();
    }

    #[inline(never)]
    fn resume_apart(&mut self, base: Time, common: Time, nav: Time, nav_now: Time, own: &[Own]) {
        let sifs = self.sifs;
        for own in own {
            let nav = self.apart_of(own.node).map_or(self.nav, |at| self.apart[at].nav).max(own.deaf_until);
            let own_base = own.base.max(nav + sifs);
            let busy_until = self.busy_until;
            let is_common = own_base == common && nav.max(busy_until) == nav_now.max(busy_until) && nav <= nav_now;
            if self.is_apart[usize::from(own.node)] || !is_common {
                self.part(own.node, nav);
                let at = self.apart_of(own.node).unwrap_or_default();
                (self.apart[at].base, self.apart[at].nav) = (own_base, nav);
            }
        }
        let mut earliest = common;
        for entry in &mut self.apart {
            if !own.iter().any(|own| own.node == entry.node) {
                entry.nav = entry.nav.max(nav);
                entry.base = base.max(entry.nav + sifs);
            }
            earliest = earliest.min(entry.base);
        }
        for index in (0..self.apart.len()).rev() {
            let entry = &self.apart[index];
            // What comes finds the medium as busy as the others' packets do; and while nobody may send before the common base,
            // NAVs that end by then are history.
            let is_busy_alike = entry.nav.max(self.busy_until) == nav_now.max(self.busy_until);
            if entry.base == common && is_busy_alike && (entry.nav <= nav_now || earliest == common) {
                let entry = self.apart.swap_remove(index);
                self.join(&entry);
            }
        }
    }

    /// The node leaves the common base, if it has not yet.
    fn part(&mut self, node: u16, nav: Time) {
        if self.is_apart[usize::from(node)] {
            return;
        }
        let mut entry = Apart { node, base: self.base, nav, contends: [false; 4], slots: [0; 4] };
        for class in 0..CLASSES {
            let contender = node * CLASSES + class;
            let (lane, place) = self.places[usize::from(contender)];
            let lane = &mut self.lanes[usize::from(lane)];
            entry.contends[usize::from(class)] = lane.tree.contains(place);
            entry.slots[usize::from(class)] = self.keys[usize::from(contender)].saturating_sub(lane.counted);
            if entry.contends[usize::from(class)] {
                lane.tree.remove(place);
            }
        }
        self.is_apart[usize::from(node)] = true;
        self.apart.push(entry);
    }

    /// The node counts like the others from now on.
    fn join(&mut self, entry: &Apart) {
        self.is_apart[usize::from(entry.node)] = false;
        for class in 0..CLASSES {
            let contender = entry.node * CLASSES + class;
            let (lane, place) = self.places[usize::from(contender)];
            let lane = &mut self.lanes[usize::from(lane)];
            let key = lane.counted + entry.slots[usize::from(class)];
            self.keys[usize::from(contender)] = key;
            if entry.contends[usize::from(class)] {
                lane.tree.put(key, place);
            }
        }
    }

    #[inline]
    fn find_next(&mut self) {
        let mut least = u64::MAX;
        for lane in &self.lanes {
            if let Some((key, _)) = lane.tree.first() {
                least = least.min(lane.aifsn + key.saturating_sub(lane.counted));
            }
        }
        let mut next = if least == u64::MAX { Time::MAX } else { self.slots.after(self.base, least) };
        for entry in &self.apart {
            for class in 0..CLASSES {
                if entry.contends[usize::from(class)] {
                    let lane = &self.lanes[usize::from(self.places[usize::from(entry.node * CLASSES + class)].0)];
                    next = next.min(self.slots.after(entry.base, lane.aifsn + entry.slots[usize::from(class)]));
                }
            }
        }
        self.next = next;
    }
}
