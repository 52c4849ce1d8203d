//! Which of many is first: the smallest `(time, sequence)` wins; the sequence counts settings, so that of things at one
//! time what was set first is first.
//!
//! A complete binary tree of keys, each node the smaller of its two children: setting a time costs log2(players)
//! comparisons without a branch to predict, asking for the winner costs nothing. The first few players stand apart: where they
//! are set most often, and there are few of them however many the others, looking through them all is cheaper than
//! climbing a tree.

use std::hint::select_unpredictable;

use lasthop_core::units::Time;

/// A key is `time, ns (64 bits) | sequence (40) | player (24)`; nothing pending is all ones.
const PLAYER_BITS: u32 = 24;
const SEQUENCE_BITS: u32 = 40;
const IDLE: u128 = u128::MAX;

/// Most players that are looked through one by one.
const MOST_BUSY: usize = 16;
/// So many of them at a time, that the loop over them is hardly one.
const GROUP: usize = 4;

/// See the module. Players are numbered from 0.
#[derive(Clone, Debug)]
pub struct Tournament {
    /// Players below `busy_count`.
    busy: Few,
    /// The others, counted from `busy_count`.
    others: Tree,
    busy_count: usize,
    sequence: u64,
}

impl Tournament {
    /// None of `count` players has anything pending; the first `busy` of them are set most often.
    ///
    /// # Panics
    /// With 2^24 players or more.
    pub fn new(busy: usize, count: usize) -> Self {
        assert!(count < 1 << PLAYER_BITS, "a player is numbered by {PLAYER_BITS} bits");
        let busy_count = busy.min(MOST_BUSY);
        Self { busy: Few::new(busy_count), others: Tree::new(count - busy_count), busy_count, sequence: 0 }
    }

    /// The next event of a player is at `at`, whatever it was before.
    #[inline]
    pub fn set(&mut self, player: usize, at: Time) {
        self.sequence += 1;
        debug_assert!(self.sequence < 1 << SEQUENCE_BITS);
        let low = self.sequence << PLAYER_BITS | player as u64;
        self.put(player, u128::from(at.as_nanos()) << 64 | u128::from(low));
    }

    /// A player has nothing pending any more.
    #[inline]
    pub fn clear(&mut self, player: usize) {
        self.put(player, IDLE);
    }

    /// When the next event of a player is.
    #[inline]
    pub fn pending(&self, player: usize) -> Option<Time> {
        let key = match player.checked_sub(self.busy_count) {
            Some(other) => self.others.key(other),
            None => self.busy.key(player),
        };
        (key != IDLE).then(|| time_of(key))
    }

    /// When the next event of all is, and whose; [`Time::MAX`]: nothing is pending.
    #[inline]
    pub fn first(&self) -> (Time, usize) {
        let key = self.busy.first.min(self.others.first);
        (time_of(key), key as usize & ((1 << PLAYER_BITS) - 1))
    }

    #[inline]
    fn put(&mut self, player: usize, key: u128) {
        match player.checked_sub(self.busy_count) {
            Some(other) => self.others.put(other, key),
            None => self.busy.put(player, key),
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
    fn key(&self, at: usize) -> u128 {
        self.groups[at / GROUP][at % GROUP]
    }

    #[inline]
    fn put(&mut self, at: usize, key: u128) {
        self.groups[at / GROUP][at % GROUP] = key;
        self.first =
            self.groups.iter().map(|[a, b, c, d]| smaller(smaller(*a, *b), smaller(*c, *d))).fold(IDLE, smaller);
    }
}

/// Any number of keys and the smallest of them.
#[derive(Clone, Debug)]
struct Tree {
    first: u128,
    /// Node 1 is the root, `first`; node n has the children 2n and 2n + 1, which stand side by side in `children[n]`. The
    /// second half of the nodes are the players.
    children: Vec<[u128; 2]>,
}

impl Tree {
    fn new(count: usize) -> Self {
        Self { first: IDLE, children: vec![[IDLE; 2]; count.next_power_of_two().max(2)] }
    }

    #[inline]
    fn key(&self, leaf: usize) -> u128 {
        let node = self.children.len() + leaf;
        self.children[node / 2][node % 2]
    }

    #[inline]
    fn put(&mut self, leaf: usize, key: u128) {
        let children = self.children.as_mut_slice();
        let mut node = children.len() + leaf;
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
        let mut players = Tournament::new(1, 3);
        players.set(2, ns(5));
        players.set(0, ns(5));
        players.set(1, ns(4));
        let mut order = Vec::new();
        for _ in 0..3 {
            let (_, player) = players.first();
            order.push(player);
            players.clear(player);
        }
        assert_eq!((order.as_slice(), players.first().0), ([1, 2, 0].as_slice(), Time::MAX));
    }

    #[test]
    fn a_new_time_replaces_the_old_one() {
        let mut players = Tournament::new(1, 2);
        players.set(1, ns(9));
        players.set(1, ns(3));
        assert_eq!(players.first(), (ns(3), 1));
        players.set(1, ns(7));
        assert_eq!((players.first(), players.pending(0)), ((ns(7), 1), None));
    }

    proptest! {
        #[test]
        fn the_tournament_is_won_by_what_a_sorted_list_has_first(
            busy in 0usize..=37, steps in prop::collection::vec((0usize..37, prop::option::of(0u64..20)), 1..200),
        ) {
            let mut players = Tournament::new(busy, 37);
            let mut list: Vec<(u64, usize, usize)> = Vec::new();
            for (order, (player, at)) in steps.into_iter().enumerate() {
                list.retain(|(_, _, p)| *p != player);
                match at {
                    Some(at) => {
                        players.set(player, ns(at));
                        list.push((at, order, player));
                    }
                    None => players.clear(player),
                }
                let first = list.iter().min().map(|(at, _, player)| (ns(*at), *player));
                match first {
                    Some(first) => prop_assert_eq!(players.first(), first),
                    None => prop_assert_eq!(players.first().0, Time::MAX),
                }
            }
        }
    }
}
