//! What happens next: a tournament over the sources of events.
//!
//! Sources, not packets, stand in the queue: a link is one source, of which only the head is pending; so is a traffic
//! schedule, a timer, the controller. A source has one pending time at most. The smallest `(time, sequence)` wins;
//! the sequence counts settings, so that what was set first happens first.
//!
//! A complete binary tree of keys, each node the smaller of its two children: setting a time costs log2(sources)
//! comparisons without a branch to predict, asking for the winner costs nothing.

use lasthop_core::units::Time;

/// Which source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceId(pub u32);

/// A key is `time, ns (64 bits) | sequence (40) | source (24)`; nothing pending is all ones.
const SOURCE_BITS: u32 = 24;
const SEQUENCE_BITS: u32 = 40;
const IDLE: u128 = u128::MAX;

/// See the module.
#[derive(Clone, Debug)]
pub struct Sources {
    /// Node 1 is the root, node n has the children 2n and 2n + 1; the second half are the sources.
    tree: Vec<u128>,
    sequence: u64,
}

impl Sources {
    /// None of `count` sources has anything pending.
    ///
    /// # Panics
    /// With 2^24 sources or more.
    pub fn new(count: usize) -> Self {
        assert!(count < 1 << SOURCE_BITS, "a source is numbered by {SOURCE_BITS} bits");
        Self { tree: vec![IDLE; 2 * count.next_power_of_two().max(2)], sequence: 0 }
    }

    /// The next event of a source is at `at`, whatever it was before.
    pub fn set(&mut self, source: SourceId, at: Time) {
        self.sequence += 1;
        debug_assert!(self.sequence < 1 << SEQUENCE_BITS);
        let low = self.sequence << SOURCE_BITS | u64::from(source.0);
        self.put(source, u128::from(at.as_nanos()) << 64 | u128::from(low));
    }

    /// A source has nothing pending any more.
    pub fn clear(&mut self, source: SourceId) {
        self.put(source, IDLE);
    }

    /// When the next event of a source is.
    pub fn pending(&self, source: SourceId) -> Option<Time> {
        time_of(self.tree[self.tree.len() / 2 + source.0 as usize])
    }

    /// When the next event of all is, and whose.
    pub fn first(&self) -> Option<(Time, SourceId)> {
        let key = self.tree[1];
        Some((time_of(key)?, SourceId(key as u32 & ((1 << SOURCE_BITS) - 1))))
    }

    fn put(&mut self, source: SourceId, key: u128) {
        let tree = self.tree.as_mut_slice();
        let mut node = tree.len() / 2 + source.0 as usize;
        let mut winner = key;
        tree[node] = key;
        while node > 1 {
            let rival = tree[node ^ 1];
            winner = if rival < winner { rival } else { winner };
            node /= 2;
            tree[node] = winner;
        }
    }
}

fn time_of(key: u128) -> Option<Time> {
    (key != IDLE).then(|| Time::from_nanos((key >> 64) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ns(n: u64) -> Time {
        Time::from_nanos(n)
    }

    #[test]
    fn what_was_set_first_happens_first() {
        let mut sources = Sources::new(3);
        sources.set(SourceId(2), ns(5));
        sources.set(SourceId(0), ns(5));
        sources.set(SourceId(1), ns(4));
        let mut order = Vec::new();
        while let Some((_, source)) = sources.first() {
            order.push(source.0);
            sources.clear(source);
        }
        assert_eq!(order, [1, 2, 0]);
    }

    #[test]
    fn a_new_time_replaces_the_old_one() {
        let mut sources = Sources::new(2);
        sources.set(SourceId(1), ns(9));
        sources.set(SourceId(1), ns(3));
        assert_eq!(sources.first(), Some((ns(3), SourceId(1))));
        sources.set(SourceId(1), ns(7));
        assert_eq!((sources.first(), sources.pending(SourceId(0))), (Some((ns(7), SourceId(1))), None));
    }

    proptest! {
        #[test]
        fn the_tournament_is_won_by_what_a_sorted_list_has_first(
            steps in prop::collection::vec((0u32..37, prop::option::of(0u64..20)), 1..200)
        ) {
            let mut sources = Sources::new(37);
            let mut list: Vec<(u64, usize, u32)> = Vec::new();
            for (order, (source, at)) in steps.into_iter().enumerate() {
                list.retain(|(_, _, s)| *s != source);
                match at {
                    Some(at) => {
                        sources.set(SourceId(source), ns(at));
                        list.push((at, order, source));
                    }
                    None => sources.clear(SourceId(source)),
                }
                let first = list.iter().min().map(|(at, _, source)| (ns(*at), SourceId(*source)));
                prop_assert_eq!(sources.first(), first);
            }
        }
    }
}
