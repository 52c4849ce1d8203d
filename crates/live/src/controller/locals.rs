//! Stations that sit behind hooked ports of bridges: a packet from one to the other is local, and counted once, at its egress.
//!
//! What the bridges have learned comes whole, and leaves as a difference to what was told before, so that the data path is
//! written to only when a station comes, goes or moves.

use std::collections::BTreeMap;

use crate::stations::Mac;

/// The bound of the map in the data path.
const MOST: usize = 4_096;

/// What the data path knows.
#[derive(Debug, Default)]
pub(super) struct Locals {
    published: BTreeMap<Mac, u32>,
    /// Of the reading that is in flight: those who are told already, and the first [`MOST`] others.
    known: BTreeMap<Mac, u32>,
    fresh: BTreeMap<Mac, u32>,
}

/// Changes that it has to be given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// Who is not behind any hooked port any more.
    pub(super) removed: Vec<Mac>,
    /// Who is new, or behind another port: with the port's number.
    pub(super) added: Vec<(Mac, u32)>,
    /// How many there are then.
    pub(super) all: u32,
}

impl Locals {
    /// A reading of everybody who is behind a hooked port begins.
    pub(super) fn begin(&mut self) {
        self.known.clear();
        self.fresh.clear();
    }

    /// This address is behind this port.
    pub(super) fn on_entry(&mut self, mac: Mac, ifindex: u32) {
        if self.published.contains_key(&mac) {
            self.known.insert(mac, ifindex);
        } else if self.fresh.len() < MOST || self.fresh.contains_key(&mac) {
            self.fresh.insert(mac, ifindex);
        }
    }

    /// Ends a round in which everybody was named. Beyond the bound those that were reported before stay, and of the others those that came first.
    pub(super) fn end(&mut self) -> Changes {
        let mut newest = std::mem::take(&mut self.known);
        let room = MOST.saturating_sub(newest.len());
        newest.extend(std::mem::take(&mut self.fresh).into_iter().take(room));
        let removed = self.published.keys().filter(|mac| !newest.contains_key(*mac)).copied().collect();
        let is_new = |(mac, ifindex): &(&Mac, &u32)| self.published.get(*mac) != Some(*ifindex);
        let added = newest.iter().filter(is_new).map(|(mac, ifindex)| (*mac, *ifindex)).collect();
        self.published = newest;
        Changes { removed, added, all: self.published.len() as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(locals: &mut Locals, entries: impl IntoIterator<Item = (Mac, u32)>) -> Changes {
        locals.begin();
        entries.into_iter().for_each(|(mac, ifindex)| locals.on_entry(mac, ifindex));
        locals.end()
    }

    const fn mac(n: u32) -> Mac {
        let [a, b, c, d] = n.to_be_bytes();
        [2, 0, a, b, c, d]
    }

    #[test]
    fn only_who_comes_goes_or_moves_is_told() {
        let mut locals = Locals::default();
        let first = read(&mut locals, [(mac(1), 5), (mac(2), 5)]);
        assert_eq!(first, Changes { removed: vec![], added: vec![(mac(1), 5), (mac(2), 5)], all: 2 });
        assert_eq!(read(&mut locals, [(mac(2), 5), (mac(1), 5)]), Changes { all: 2, ..Changes::default() });
        let moved = read(&mut locals, [(mac(2), 6), (mac(3), 5)]);
        assert_eq!(moved, Changes { removed: vec![mac(1)], added: vec![(mac(2), 6), (mac(3), 5)], all: 2 });
    }

    #[test]
    fn a_flood_of_made_up_addresses_pushes_nobody_out_and_stays_within_the_bound() {
        let mut locals = Locals::default();
        read(&mut locals, [(mac(900_000), 5)]);
        let flooded = read(&mut locals, (0..100_000).map(|n| (mac(n), 6)).chain([(mac(900_000), 5)]));
        assert_eq!((flooded.removed.len(), flooded.added.len(), locals.published.len()), (0, MOST - 1, MOST));
        assert_eq!(read(&mut locals, []).removed.len(), MOST);
        assert_eq!(locals.published.len(), 0);
    }

    proptest! {
        #[test]
        fn changes_applied_one_after_the_other_give_what_is_told(
            steps in prop::collection::vec(prop::collection::vec((0u32..20, 1u32..4), 0..30), 0..10)
        ) {
            let (mut locals, mut map) = (Locals::default(), BTreeMap::new());
            for step in steps {
                let changes = read(&mut locals, step.into_iter().map(|(n, port)| (mac(n), port)));
                for gone in &changes.removed {
                    prop_assert!(map.remove(gone).is_some());
                }
                map.extend(changes.added);
                prop_assert_eq!(&map, &locals.published);
            }
        }
    }
}
