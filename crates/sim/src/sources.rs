//! What happens next: a tournament over the sources of events.
//!
//! Sources, not packets, stand in the queue: a link is one source, of which only the head is pending; so is a traffic
//! schedule, a timer, the controller. A source has one pending time at most. The smallest `(time, sequence)` wins;
//! the sequence counts settings, so that what was set first happens first.
//!
//! A complete binary tree of keys, each node the smaller of its two children: setting a time costs log2(sources)
//! comparisons without a branch to predict, asking for the winner costs nothing. The first few sources, the wires, stand
//! apart: they are set for nearly every packet, and there are few of them however large the home, so that looking
//! through them all is cheaper than climbing a tree.

use std::hint::select_unpredictable;

use lasthop_core::units::Time;

/// Which source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceId(pub u32);

/// A key is `time, ns (64 bits) | sequence (40) | source (24)`; nothing pending is all ones.
const SOURCE_BITS: u32 = 24;
const SEQUENCE_BITS: u32 = 40;
const IDLE: u128 = u128::MAX;

/// Most sources that are looked through one by one.
const MOST_BUSY: usize = 16;
/// So many of them at a time, that the loop over them is hardly one.
const GROUP: usize = 4;

/// See the module.
#[derive(Clone, Debug)]
pub struct Sources {
    /// Sources below `busy_count`.
    busy: Few,
    /// The others, counted from `busy_count`.
    others: Tree,
    busy_count: u32,
    sequence: u64,
}

impl Sources {
    /// None of `count` sources has anything pending; the first `busy` of them are set most often.
    ///
    /// # Panics
    /// With 2^24 sources or more.
    pub fn new(busy: usize, count: usize) -> Self {
        assert!(count < 1 << SOURCE_BITS, "a source is numbered by {SOURCE_BITS} bits");
        let busy = busy.min(MOST_BUSY);
        Self { busy: Few::new(busy), others: Tree::new(count - busy), busy_count: busy as u32, sequence: 0 }
    }

    /// The next event of a source is at `at`, whatever it was before.
    #[inline]
    pub fn set(&mut self, source: SourceId, at: Time) {
        self.sequence += 1;
        debug_assert!(self.sequence < 1 << SEQUENCE_BITS);
        let low = self.sequence << SOURCE_BITS | u64::from(source.0);
        self.put(source, u128::from(at.as_nanos()) << 64 | u128::from(low));
    }

    /// A source has nothing pending any more.
    #[inline]
    pub fn clear(&mut self, source: SourceId) {
        self.put(source, IDLE);
    }

    /// When the next event of a source is.
    #[inline]
    pub fn pending(&self, source: SourceId) -> Option<Time> {
        let key = match source.0.checked_sub(self.busy_count) {
            Some(other) => self.others.key(other),
            None => self.busy.key(source.0),
        };
        (key != IDLE).then(|| time_of(key))
    }

    /// When the next event of all is, and whose; [`Time::MAX`]: nothing is pending.
    #[inline]
    pub fn first(&self) -> (Time, SourceId) {
        let key = self.busy.first.min(self.others.first);
        (time_of(key), SourceId(key as u32 & ((1 << SOURCE_BITS) - 1)))
    }

    #[inline]
    fn put(&mut self, source: SourceId, key: u128) {
        match source.0.checked_sub(self.busy_count) {
            Some(other) => self.others.put(other, key),
            None => self.busy.put(source.0, key),
        }
    }
}

/// The smaller one, without a branch: which it is cannot be foretold.
#[inline]
fn smaller(a: u128, b: u128) -> u128 {
    select_unpredictable(a < b, a, b)
}

/// A few keys and the smallest of them.
#[derive(Clone, Debug)]
struct Few {
    first: u128,
    groups: Vec<[u128; GROUP]>,
}

impl Few {
    fn new(count: usize) -> Self {
        Self { first: IDLE, groups: vec![[IDLE; GROUP]; count.div_ceil(GROUP)] }
    }

    #[inline]
    fn key(&self, at: u32) -> u128 {
        self.groups[at as usize / GROUP][at as usize % GROUP]
    }

    #[inline]
    fn put(&mut self, at: u32, key: u128) {
        self.groups[at as usize / GROUP][at as usize % GROUP] = key;
        self.first =
            self.groups.iter().map(|[a, b, c, d]| smaller(smaller(*a, *b), smaller(*c, *d))).fold(IDLE, smaller);
    }
}

/// Any number of keys and the smallest of them.
#[derive(Clone, Debug)]
struct Tree {
    first: u128,
    /// Node 1 is the root, `first`; node n has the children 2n and 2n + 1, which stand side by side in `children[n]`. The
    /// second half of the nodes are the sources.
    children: Vec<[u128; 2]>,
}

impl Tree {
    fn new(count: usize) -> Self {
        Self { first: IDLE, children: vec![[IDLE; 2]; count.next_power_of_two().max(2)] }
    }

    #[inline]
    fn key(&self, leaf: u32) -> u128 {
        let node = self.children.len() + leaf as usize;
        self.children[node / 2][node % 2]
    }

    #[inline]
    fn put(&mut self, leaf: u32, key: u128) {
        let children = self.children.as_mut_slice();
        let mut node = children.len() + leaf as usize;
        let mut winner = key;
        while node > 1 {
            let pair = &mut children[node / 2];
            pair[node % 2] = winner;
            winner = smaller(pair[(node + 1) % 2], winner);
            node /= 2;
        }
        self.first = winner;
    }
}

fn time_of(key: u128) -> Time {
    Time::from_nanos((key >> 64) as u64)
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
        let mut sources = Sources::new(1, 3);
        sources.set(SourceId(2), ns(5));
        sources.set(SourceId(0), ns(5));
        sources.set(SourceId(1), ns(4));
        let mut order = Vec::new();
        for _ in 0..3 {
            let (_, source) = sources.first();
            order.push(source.0);
            sources.clear(source);
        }
        assert_eq!((order.as_slice(), sources.first().0), ([1, 2, 0].as_slice(), Time::MAX));
    }

    #[test]
    fn a_new_time_replaces_the_old_one() {
        let mut sources = Sources::new(1, 2);
        sources.set(SourceId(1), ns(9));
        sources.set(SourceId(1), ns(3));
        assert_eq!(sources.first(), (ns(3), SourceId(1)));
        sources.set(SourceId(1), ns(7));
        assert_eq!((sources.first(), sources.pending(SourceId(0))), ((ns(7), SourceId(1)), None));
    }

    proptest! {
        #[test]
        fn the_tournament_is_won_by_what_a_sorted_list_has_first(
            busy in 0usize..=37, steps in prop::collection::vec((0u32..37, prop::option::of(0u64..20)), 1..200),
        ) {
            let mut sources = Sources::new(busy, 37);
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
                match first {
                    Some(first) => prop_assert_eq!(sources.first(), first),
                    None => prop_assert_eq!(sources.first().0, Time::MAX),
                }
            }
        }
    }
}
