//! Flows in order of rank: the first in O(1), any of them moved or taken out in O(log flows).
//!
//! A heap of four children per node, whose ranks lie side by side: at a thousand flows five steps of two cache lines.

use crate::credit::account::Key;

/// Nowhere.
const NONE: u32 = u32::MAX;
const CHILDREN: usize = 4;

/// The place of a flow among the backlogged ones; the least is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    /// [`Key`] in one word, which is compared without a branch.
    key: u128,
    /// Which of equal ones has been backlogged for longer.
    since: u64,
}

impl Rank {
    #[inline]
    pub fn new(key: Key, since: u64) -> Self {
        Self { key: u128::from(key.exponent) << 64 | u128::from(key.mantissa), since }
    }

    /// The entry that sorts in the reverse order.
    #[inline]
    pub fn reversed(self) -> Self {
        Self { key: !self.key, since: !self.since }
    }
}

/// 32 bytes: a rank inside would be padded to that by itself.
#[derive(Clone, Copy, Debug)]
struct Entry {
    key: u128,
    since: u64,
    slot: u32,
}

impl Entry {
    #[inline]
    fn new(slot: u32, rank: Rank) -> Self {
        Self { key: rank.key, since: rank.since, slot }
    }

    /// Of lesser rank; without a branch, since which of two flows has less is anybody's guess.
    #[inline]
    fn is_before(&self, other: &Self) -> bool {
        (self.key < other.key) | ((self.key == other.key) & (self.since < other.since))
    }
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Heap {
    entries: Vec<Entry>,
    /// Where each slot's entry is; [`NONE`]: it has none.
    places: Vec<u32>,
}

impl Heap {
    /// The slot of least rank.
    #[inline]
    pub fn first(&self) -> Option<u32> {
        self.entries.first().map(|entry| entry.slot)
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Puts in a slot that is not there.
    #[inline]
    pub fn insert(&mut self, slot: u32, rank: Rank) {
        if self.places.len() <= slot as usize {
            self.places.resize(slot as usize + 1, NONE);
        }
        let entry = Entry::new(slot, rank);
        self.entries.push(entry);
        self.rise(self.entries.len() - 1, entry);
    }

    /// Takes a slot out that is there.
    #[inline]
    pub fn remove(&mut self, slot: u32) {
        let at = std::mem::replace(&mut self.places[slot as usize], NONE) as usize;
        let Some(last) = self.entries.pop() else { return };
        if at < self.entries.len() {
            self.settle(at, last);
        }
    }

    /// Gives a slot that is there another rank.
    #[inline]
    pub fn update(&mut self, slot: u32, rank: Rank) {
        let at = self.places[slot as usize] as usize;
        self.settle(at, Entry::new(slot, rank));
    }

    #[inline]
    fn settle(&mut self, at: usize, entry: Entry) {
        if at > 0 && entry.is_before(&self.entries[(at - 1) / CHILDREN]) {
            self.rise(at, entry);
        } else {
            self.sink(at, entry);
        }
    }

    fn rise(&mut self, mut at: usize, entry: Entry) {
        while at > 0 {
            let parent = (at - 1) / CHILDREN;
            if !entry.is_before(&self.entries[parent]) {
                break;
            }
            self.put(at, self.entries[parent]);
            at = parent;
        }
        self.put(at, entry);
    }

    /// The gap goes down to a leaf, and the entry up from there: it mostly belongs near the leaves, having just been
    /// charged or having stood last, and a level then costs no guess whether to stop.
    fn sink(&mut self, mut at: usize, entry: Entry) {
        let top = at;
        while let Some(child) = self.least_child(at) {
            self.put(at, self.entries[child]);
            at = child;
        }
        while at > top {
            let parent = (at - 1) / CHILDREN;
            if !entry.is_before(&self.entries[parent]) {
                break;
            }
            self.put(at, self.entries[parent]);
            at = parent;
        }
        self.put(at, entry);
    }

    #[inline]
    fn least_child(&self, at: usize) -> Option<usize> {
        let first = at * CHILDREN + 1;
        let later = |a: usize, b: usize, of: &[Entry]| if of[b].is_before(&of[a]) { b } else { a };
        let rest = self.entries.get(first..)?;
        if let Some(all) = rest.get(..CHILDREN) {
            return Some(first + later(later(0, 1, all), later(2, 3, all), all));
        }
        (0..rest.len()).reduce(|a, b| later(a, b, rest)).map(|least| first + least)
    }

    #[inline]
    fn put(&mut self, at: usize, entry: Entry) {
        self.entries[at] = entry;
        self.places[entry.slot as usize] = at as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn the_first_is_the_least_whatever_was_done(steps in prop::collection::vec((0u8..3, 0u32..40, 0u64..20), 1..400)) {
            let mut heap = Heap::default();
            let mut model: BTreeMap<u32, Rank> = BTreeMap::new();
            for (ticket, (what, slot, mantissa)) in steps.into_iter().enumerate() {
                let rank = Rank::new(Key { exponent: mantissa / 10, mantissa: mantissa % 10 }, ticket as u64);
                match (what, model.contains_key(&slot)) {
                    (0, true) => {
                        heap.remove(slot);
                        model.remove(&slot);
                    }
                    (_, true) => {
                        heap.update(slot, rank);
                        model.insert(slot, rank);
                    }
                    (_, false) => {
                        heap.insert(slot, rank);
                        model.insert(slot, rank);
                    }
                }
                prop_assert_eq!(heap.first(), model.iter().min_by_key(|(_, rank)| **rank).map(|(slot, _)| *slot));
                prop_assert_eq!(heap.len(), model.len());
            }
        }
    }
}
