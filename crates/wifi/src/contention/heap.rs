//! A binary heap of (key, node) from which any node can be removed.

/// Nodes ordered by key, ties by node.
#[derive(Clone, Debug)]
pub struct Heap {
    /// (key, node), smallest first.
    entries: Vec<(u64, u16)>,
    /// Where each node stands in `entries`; `ABSENT` when it does not.
    position: Vec<u32>,
}

const ABSENT: u32 = u32::MAX;

impl Heap {
    /// Empty, for nodes below `nodes`.
    pub fn new(nodes: usize) -> Self {
        Self { entries: Vec::with_capacity(nodes), position: vec![ABSENT; nodes] }
    }

    /// The smallest.
    pub fn first(&self) -> Option<(u64, u16)> {
        self.entries.first().copied()
    }

    /// Whether the node is in the heap.
    pub fn contains(&self, node: u16) -> bool {
        self.position[usize::from(node)] != ABSENT
    }

    /// Inserts a node that is not in the heap.
    pub fn push(&mut self, key: u64, node: u16) {
        debug_assert!(!self.contains(node));
        self.entries.push((key, node));
        self.rise(self.entries.len() - 1);
    }

    /// Takes a node out, if it is in.
    pub fn remove(&mut self, node: u16) {
        let at = self.position[usize::from(node)];
        if at == ABSENT {
            return;
        }
        self.position[usize::from(node)] = ABSENT;
        let at = at as usize;
        let last = self.entries.pop().expect("a node with a position is in the heap");
        if at < self.entries.len() {
            self.entries[at] = last;
            let sunk = self.sink(at);
            self.rise(sunk);
        }
    }

    fn rise(&mut self, mut at: usize) {
        let entry = self.entries[at];
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.entries[parent] <= entry {
                break;
            }
            self.place(at, self.entries[parent]);
            at = parent;
        }
        self.place(at, entry);
    }

    fn sink(&mut self, mut at: usize) -> usize {
        let entry = self.entries[at];
        loop {
            let left = 2 * at + 1;
            if left >= self.entries.len() {
                break;
            }
            let right = left + 1;
            let child =
                if right < self.entries.len() && self.entries[right] < self.entries[left] { right } else { left };
            if self.entries[child] >= entry {
                break;
            }
            self.place(at, self.entries[child]);
            at = child;
        }
        self.place(at, entry);
        at
    }

    fn place(&mut self, at: usize, entry: (u64, u16)) {
        self.entries[at] = entry;
        self.position[usize::from(entry.1)] = at as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_heap_holds_what_a_sorted_set_holds(steps in prop::collection::vec((0u16..20, 0u64..50), 1..200)) {
            let mut heap = Heap::new(20);
            let mut set = std::collections::BTreeSet::new();
            for (node, key) in steps {
                if heap.contains(node) {
                    heap.remove(node);
                    set.retain(|(_, n)| *n != node);
                } else {
                    heap.push(key, node);
                    set.insert((key, node));
                }
                prop_assert_eq!(heap.first(), set.first().copied());
            }
        }
    }
}
