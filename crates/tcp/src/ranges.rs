//! Sorted, disjoint byte ranges `[start, end)`; what touches is one.
//!
//! The receiver keeps with it what has arrived beyond a hole, the sender what the receiver has said about it. Both sets
//! are as small as the holes are few, so a sorted vector is searched, and a range is moved only when a hole opens or
//! closes.

/// Sorted, disjoint, not adjacent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges {
    ranges: Vec<(u64, u64)>,
}

impl Ranges {
    pub(crate) fn with_capacity(ranges: usize) -> Self {
        Self { ranges: Vec::with_capacity(ranges) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }

    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
    }

    /// Lowest first.
    pub(crate) fn as_slice(&self) -> &[(u64, u64)] {
        &self.ranges
    }

    /// The range that holds `offset`.
    pub(crate) fn containing(&self, offset: u64) -> Option<(u64, u64)> {
        let at = self.ranges.partition_point(|&(_, end)| end <= offset);
        self.ranges.get(at).copied().filter(|&(start, _)| start <= offset)
    }

    /// Whether all of `[start, end)` is in.
    pub(crate) fn covers(&self, start: u64, end: u64) -> bool {
        self.containing(start).is_some_and(|(_, range_end)| end <= range_end)
    }

    /// Whether `[start, end)` would stand alone, as one range more.
    pub(crate) fn stands_alone(&self, start: u64, end: u64) -> bool {
        let at = self.ranges.partition_point(|&(_, range_end)| range_end < start);
        self.ranges.get(at).is_none_or(|&(range_start, _)| end < range_start)
    }

    /// Adds `[start, end)` and returns how many of its bytes are new.
    pub(crate) fn insert(&mut self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        let from = self.ranges.partition_point(|&(_, range_end)| range_end < start);
        let mut to = from;
        let (mut low, mut high, mut known) = (start, end, 0);
        while let Some(&(range_start, range_end)) = self.ranges.get(to).filter(|range| range.0 <= end) {
            known += range_end.min(end).saturating_sub(range_start.max(start));
            low = low.min(range_start);
            high = high.max(range_end);
            to += 1;
        }
        if from == to {
            self.ranges.insert(from, (low, high));
        } else {
            self.ranges[from] = (low, high);
            self.ranges.drain(from + 1..to);
        }
        (end - start) - known
    }

    /// Forgets everything below `offset`.
    pub(crate) fn remove_below(&mut self, offset: u64) {
        if self.ranges.first().is_none_or(|&(start, _)| start >= offset) {
            return;
        }
        let gone = self.ranges.partition_point(|&(_, end)| end <= offset);
        self.ranges.drain(..gone);
        if let Some(first) = self.ranges.first_mut() {
            first.0 = first.0.max(offset);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn filled(ranges: &[(u64, u64)]) -> Ranges {
        let mut set = Ranges::default();
        for &(start, end) in ranges {
            set.insert(start, end);
        }
        set
    }

    #[test]
    fn what_touches_becomes_one_range() {
        let mut set = filled(&[(10, 20), (30, 40)]);
        assert_eq!(set.insert(20, 30), 10);
        assert_eq!(set.as_slice(), [(10, 40)]);
    }

    #[test]
    fn only_new_bytes_are_counted() {
        let mut set = filled(&[(10, 20), (30, 40)]);
        assert_eq!(set.insert(15, 35), 10);
        assert_eq!(set.insert(12, 18), 0);
        assert_eq!(set.insert(5, 45), 10);
        assert_eq!(set.as_slice(), [(5, 45)]);
    }

    #[test]
    fn a_range_is_cut_at_what_is_acknowledged() {
        let mut set = filled(&[(10, 20), (30, 40)]);
        set.remove_below(35);
        assert_eq!(set.as_slice(), [(35, 40)]);
        set.remove_below(40);
        assert!(set.is_empty());
    }

    #[test]
    fn one_more_range_is_foreseen() {
        let set = filled(&[(10, 20)]);
        assert!(set.stands_alone(21, 25));
        assert!(!set.stands_alone(20, 25));
        assert!(!set.stands_alone(5, 10));
        assert!(set.stands_alone(5, 9));
    }

    proptest! {
        #[test]
        fn it_is_a_set_of_bytes(inserts in prop::collection::vec((0u64..200, 1u64..40), 0..40), cut in 0u64..200) {
            let mut set = Ranges::default();
            let mut bytes = [false; 256];
            for (start, length) in inserts {
                let new = (start..start + length).filter(|&byte| !bytes[byte as usize]).count() as u64;
                (start..start + length).for_each(|byte| bytes[byte as usize] = true);
                prop_assert_eq!(set.insert(start, start + length), new);
            }
            set.remove_below(cut);
            (0..cut).for_each(|byte| bytes[byte as usize] = false);
            for byte in 0..256u64 {
                prop_assert_eq!(set.containing(byte).is_some(), bytes[byte as usize]);
            }
            prop_assert!(set.as_slice().windows(2).all(|pair| pair[0].1 < pair[1].0));
        }
    }
}
