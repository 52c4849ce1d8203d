//! A bounded table of flows: when it is full, the one that was used longest ago leaves.
//!
//! Every operation is O(1): a map from key to slot, and a list through the slots from newest to oldest. Nothing is
//! allocated once the table has been full. The hash is fixed, so that the same run gives the same table everywhere;
//! the bound is what holds a flood of made-up flows.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher, Hash};

/// No slot.
const NONE: u32 = u32::MAX;

/// Least recently used leaves first.
#[derive(Clone, Debug)]
pub struct Table<K, V> {
    slots: HashMap<K, u32, BuildHasherDefault<DefaultHasher>>,
    entries: Vec<Entry<K, V>>,
    free: Vec<u32>,
    newest: u32,
    oldest: u32,
    capacity: usize,
    evicted: u64,
}

#[derive(Clone, Debug)]
struct Entry<K, V> {
    /// `None`: free.
    pair: Option<(K, V)>,
    newer: u32,
    older: u32,
}

impl<K: Copy + Eq + Hash, V> Table<K, V> {
    /// A table of at most `capacity` flows; at least one.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            slots: HashMap::default(),
            entries: Vec::new(),
            free: Vec::new(),
            newest: NONE,
            oldest: NONE,
            capacity: capacity.clamp(1, NONE as usize),
            evicted: 0,
        }
    }

    /// Flows in the table.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Flows that had to leave for others so far.
    #[must_use]
    pub const fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Looks without making the flow recently used.
    #[must_use]
    pub fn peek(&self, key: &K) -> Option<&V> {
        let slot = *self.slots.get(key)?;
        self.entries[slot as usize].pair.as_ref().map(|(_, value)| value)
    }

    /// The value of `key` as `peek` finds it, mutable.
    pub fn peek_mut(&mut self, key: &K) -> Option<&mut V> {
        let slot = *self.slots.get(key)?;
        self.value(slot)
    }

    /// The flow that was used longest ago.
    #[must_use]
    pub fn oldest(&self) -> Option<(&K, &V)> {
        self.entries.get(self.oldest as usize)?.pair.as_ref().map(|(key, value)| (key, value))
    }

    /// The flow, now the most recently used.
    pub fn get(&mut self, key: &K) -> Option<&mut V> {
        let slot = *self.slots.get(key)?;
        self.touch(slot);
        self.value(slot)
    }

    /// The flow, made by `new` if it is not there; now the most recently used.
    pub fn get_or_insert_with(&mut self, key: K, new: impl FnOnce() -> V) -> &mut V {
        let slot = match self.slots.get(&key) {
            Some(slot) => *slot,
            None => self.insert(key, new()),
        };
        self.touch(slot);
        let pair = self.entries[slot as usize].pair.as_mut();
        &mut pair.expect("a slot in the map is taken").1
    }

    /// Takes a flow out.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let slot = self.slots.remove(key)?;
        self.unlink(slot);
        self.free.push(slot);
        self.entries[slot as usize].pair.take().map(|(_, value)| value)
    }

    /// All flows, the most recently used first.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let mut slot = self.newest;
        std::iter::from_fn(move || {
            let entry = self.entries.get(slot as usize)?;
            slot = entry.older;
            entry.pair.as_ref().map(|(key, value)| (key, value))
        })
    }

    fn value(&mut self, slot: u32) -> Option<&mut V> {
        self.entries[slot as usize].pair.as_mut().map(|(_, value)| value)
    }

    fn insert(&mut self, key: K, value: V) -> u32 {
        if self.slots.len() >= self.capacity {
            self.evict();
        }
        let entry = Entry { pair: Some((key, value)), newer: NONE, older: NONE };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.entries[slot as usize] = entry;
                slot
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        };
        self.slots.insert(key, slot);
        self.link_newest(slot);
        slot
    }

    fn evict(&mut self) {
        let oldest = self.entries.get(self.oldest as usize).and_then(|entry| entry.pair.as_ref());
        if let Some(key) = oldest.map(|(key, _)| *key) {
            self.remove(&key);
            self.evicted += 1;
        }
    }

    fn touch(&mut self, slot: u32) {
        if self.newest != slot {
            self.unlink(slot);
            self.link_newest(slot);
        }
    }

    fn link_newest(&mut self, slot: u32) {
        let older = self.newest;
        self.entries[slot as usize].newer = NONE;
        self.entries[slot as usize].older = older;
        match self.entries.get_mut(older as usize) {
            Some(entry) => entry.newer = slot,
            None => self.oldest = slot,
        }
        self.newest = slot;
    }

    fn unlink(&mut self, slot: u32) {
        let Entry { newer, older, .. } = self.entries[slot as usize];
        match self.entries.get_mut(newer as usize) {
            Some(entry) => entry.older = older,
            None => self.newest = older,
        }
        match self.entries.get_mut(older as usize) {
            Some(entry) => entry.newer = newer,
            None => self.oldest = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keys(table: &Table<u8, u32>) -> Vec<u8> {
        table.iter().map(|(key, _)| *key).collect()
    }

    #[test]
    fn the_least_recently_used_flow_leaves_first_and_is_counted() {
        let mut table = Table::new(2);
        table.get_or_insert_with(1, || 10);
        table.get_or_insert_with(2, || 20);
        table.get(&1);
        table.get_or_insert_with(3, || 30);
        assert_eq!(keys(&table), [3, 1]);
        assert_eq!((table.peek(&2), table.evicted()), (None, 1));
    }

    #[test]
    fn looking_without_touching_does_not_save_a_flow() {
        let mut table = Table::new(2);
        table.get_or_insert_with(1, || 10);
        table.get_or_insert_with(2, || 20);
        assert_eq!(table.peek(&1), Some(&10));
        table.get_or_insert_with(3, || 30);
        assert_eq!(keys(&table), [3, 2]);
    }

    #[test]
    fn a_removed_flow_makes_room_without_an_eviction() {
        let mut table = Table::new(1);
        table.get_or_insert_with(1, || 10);
        assert_eq!(table.remove(&1), Some(10));
        assert!(table.is_empty());
        table.get_or_insert_with(2, || 20);
        assert_eq!((table.len(), table.evicted()), (1, 0));
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_list_that_is_searched(steps in prop::collection::vec((0u8..3, 0u8..8), 0..200)) {
            let mut table = Table::new(4);
            let mut list: Vec<u8> = vec![];
            for (what, key) in steps {
                let at = list.iter().position(|k| *k == key);
                match what {
                    0 => {
                        table.get_or_insert_with(key, || 0);
                        at.map(|at| list.remove(at));
                        list.insert(0, key);
                        list.truncate(4);
                    }
                    1 => {
                        prop_assert_eq!(table.get(&key).is_some(), at.is_some());
                        if let Some(at) = at {
                            list.remove(at);
                            list.insert(0, key);
                        }
                    }
                    _ => {
                        prop_assert_eq!(table.remove(&key).is_some(), at.is_some());
                        at.map(|at| list.remove(at));
                    }
                }
                prop_assert_eq!(keys(&table), list.clone());
            }
        }
    }
}
