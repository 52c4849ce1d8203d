//! The node that sends first: a tournament tree of keys, one leaf per node, O(log nodes) per change.
//!
//! `winner[i] = min(winner[2 i], winner[2 i + 1])`. Any node's key may change at any time, a change costs the same
//! number of steps always, and none of them is a branch: at the sizes of a home that beats a heap. The access point
//! has no leaf, so that 4, 16 or 64 stations fill a tree.

/// Keys that fit: 48 bits, 80 years of slots.
const KEY_BITS: u32 = 48;
const NODE_BITS: u32 = u64::BITS - KEY_BITS;

/// Higher than every key of a node.
const ABSENT: u64 = u64::MAX;

/// Nodes ordered by key, ties by node.
#[derive(Clone, Debug)]
pub struct Tree {
    /// (key, node) of the access point, packed.
    access_point: u64,
    /// Packed; the root at 1, station i at `leaves + i - 1`.
    winner: Vec<u64>,
    leaves: usize,
}

impl Tree {
    /// Empty, for nodes below `nodes`.
    pub fn new(nodes: usize) -> Self {
        let leaves = nodes.saturating_sub(1).next_power_of_two();
        Self { access_point: ABSENT, winner: vec![ABSENT; 2 * leaves], leaves }
    }

    /// The smallest.
    #[inline]
    pub fn first(&self) -> Option<(u64, u16)> {
        let first = self.winner[1].min(self.access_point);
        (first != ABSENT).then_some((first >> NODE_BITS, first as u16))
    }

    /// The smallest, if no other node has the same key.
    #[inline]
    pub fn sole(&self) -> Option<(u64, u16)> {
        let (first, other) = (self.winner[1].min(self.access_point), self.winner[1].max(self.access_point));
        let (key, node) = (first >> NODE_BITS, first as u16);
        if first == ABSENT || other >> NODE_BITS == key {
            return None;
        }
        if node != 0 {
            // Whoever has the same key lost to it somewhere on the way up.
            let mut at = self.leaf(node);
            while at > 1 {
                if self.winner[at ^ 1] >> NODE_BITS == key {
                    return None;
                }
                at >>= 1;
            }
        }
        Some((key, node))
    }

    /// Whether the node has a key.
    #[inline]
    pub fn contains(&self, node: u16) -> bool {
        let packed = if node == 0 { self.access_point } else { self.winner[self.leaf(node)] };
        packed != ABSENT
    }

    /// Gives a node a key.
    #[inline]
    pub fn put(&mut self, key: u64, node: u16) {
        debug_assert!(key >> KEY_BITS == 0);
        self.change(node, key << NODE_BITS | u64::from(node));
    }

    /// Takes a node's key away, if it has one.
    #[inline]
    pub fn remove(&mut self, node: u16) {
        self.change(node, ABSENT);
    }

    #[inline]
    fn leaf(&self, node: u16) -> usize {
        self.leaves + usize::from(node) - 1
    }

    #[inline]
    fn change(&mut self, node: u16, packed: u64) {
        if node == 0 {
            self.access_point = packed;
            return;
        }
        let mut at = self.leaf(node);
        let winner = self.winner.as_mut_slice();
        winner[at] = packed;
        let mut best = packed;
        while at > 1 {
            best = best.min(winner[at ^ 1]);
            at >>= 1;
            winner[at] = best;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_tree_holds_what_a_sorted_set_holds(
            nodes in 1usize..20, steps in prop::collection::vec((0u16..20, 0u64..50), 1..200),
        ) {
            let mut tree = Tree::new(nodes);
            let mut set = std::collections::BTreeSet::new();
            for (node, key) in steps {
                let node = node % nodes as u16;
                prop_assert_eq!(tree.contains(node), set.iter().any(|(_, n)| *n == node));
                let held = set.iter().copied().find(|(_, n)| *n == node);
                if let Some(held) = held {
                    set.remove(&held);
                }
                if held.is_some() && key % 2 == 0 {
                    tree.remove(node);
                } else {
                    tree.put(key, node);
                    set.insert((key, node));
                }
                prop_assert_eq!(tree.first(), set.first().copied());
                let mut keys = set.iter().map(|(key, _)| *key);
                let sole = keys.next().filter(|key| keys.next() != Some(*key));
                prop_assert_eq!(tree.sole(), sole.and_then(|_| set.first().copied()));
            }
        }
    }
}
