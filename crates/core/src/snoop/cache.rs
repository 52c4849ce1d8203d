//! The segments of one connection that the wireless host has not acknowledged, in the order of their bytes.

use std::collections::VecDeque;

use crate::units::Time;
use crate::wire::seq;

/// What a segment costs beside its payload, bytes: headers and what is kept about it. A flood of segments of one byte is
/// bounded by it.
const OVERHEAD: u64 = 128;

/// A segment `[start, end)` that has been sent over the hop.
#[derive(Clone, Debug)]
pub(super) struct Segment<P> {
    pub start: u32,
    pub end: u32,
    pub packet: P,
    /// When it was sent last, by whomever.
    pub sent_at: Time,
    /// The number of its first transmission among those of its connection.
    pub first: u64,
    /// The number of its last one.
    pub last: u64,
    /// Times it was sent again from here, since its sender did.
    pub retransmissions: u32,
    /// Its sender has sent it again: it was lost before it came here, or took too long.
    pub by_sender: bool,
    /// The receiver has it, it says.
    pub sacked: bool,
    /// It is its sender's business now.
    pub given_up: bool,
}

impl<P> Segment<P> {
    fn cost(&self) -> u64 {
        cost(self.end.wrapping_sub(self.start))
    }

    /// Whether it holds the byte `at`.
    pub const fn holds(&self, at: u32) -> bool {
        !seq::after(self.start, at) && seq::after(self.end, at)
    }

    /// Sent once: who has it, got that transmission.
    pub const fn is_plain(&self) -> bool {
        self.retransmissions == 0 && !self.by_sender
    }
}

/// What a segment of `bytes` costs of the memory allowed.
pub(super) const fn cost(bytes: u32) -> u64 {
    bytes as u64 + OVERHEAD
}

/// See the module. All segments lie within 2^30 bytes of each other; none overlap.
#[derive(Clone, Debug)]
pub(super) struct Cache<P> {
    segments: VecDeque<Segment<P>>,
    cost: u64,
    /// The place of the first one, counted over the connection's life: it falls when one is put before the first.
    place: i64,
}

impl<P> Cache<P> {
    pub const fn new() -> Self {
        Self { segments: VecDeque::new(), cost: 0, place: 0 }
    }

    pub fn len(&self) -> usize {
        self.segments.len()
    }

    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    pub const fn cost(&self) -> u64 {
        self.cost
    }

    pub fn front(&self) -> Option<&Segment<P>> {
        self.segments.front()
    }

    pub fn front_mut(&mut self) -> Option<&mut Segment<P>> {
        self.segments.front_mut()
    }

    /// The place of the first segment.
    pub const fn first_place(&self) -> i64 {
        self.place
    }

    /// The place behind the last one.
    pub fn end_place(&self) -> i64 {
        self.place + self.segments.len() as i64
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Segment<P>> {
        self.segments.iter_mut()
    }

    /// The segment that begins with the byte `start`.
    pub fn get(&self, start: u32) -> Option<&Segment<P>> {
        self.segments.get(self.at(start)).filter(|segment| segment.start == start)
    }

    /// The segment that begins at `start`, mutable.
    pub fn get_mut(&mut self, start: u32) -> Option<&mut Segment<P>> {
        let at = self.at(start);
        self.segments.get_mut(at).filter(|segment| segment.start == start)
    }

    /// The segment that begins at `start` and ends at `end`, mutable.
    pub fn same(&mut self, start: u32, end: u32) -> Option<&mut Segment<P>> {
        let at = self.at(start);
        self.segments.get_mut(at).filter(|segment| segment.start == start && segment.end == end)
    }

    /// The first segment that begins at `start` or behind it.
    fn at(&self, start: u32) -> usize {
        self.segments.partition_point(|segment| seq::after(start, segment.start))
    }

    /// Puts `segment` in its place; what overlaps it goes. True when it is the first now.
    pub fn insert(&mut self, segment: Segment<P>) -> bool {
        let mut at = self.at(segment.start);
        while let Some(before) = at.checked_sub(1)
            && seq::after(self.segments[before].end, segment.start)
        {
            self.remove(before);
            at = before;
        }
        while self.segments.get(at).is_some_and(|next| seq::after(segment.end, next.start)) {
            self.remove(at);
        }
        self.cost += segment.cost();
        if at < self.segments.len() {
            self.place -= 1;
        }
        self.segments.insert(at, segment);
        at == 0
    }

    fn remove(&mut self, at: usize) {
        if let Some(segment) = self.segments.remove(at) {
            self.cost -= segment.cost();
            self.place += 1;
        }
    }

    /// Takes out the first segment if all of it lies before `ack`.
    pub fn take_below(&mut self, ack: u32) -> Option<Segment<P>> {
        self.segments.front().filter(|segment| !seq::after(segment.end, ack))?;
        let segment = self.segments.pop_front()?;
        self.cost -= segment.cost();
        self.place += 1;
        Some(segment)
    }

    /// Nothing is cached.
    pub fn clear(&mut self) {
        self.place += self.segments.len() as i64;
        self.segments.clear();
        self.cost = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn segment(start: u32, end: u32) -> Segment<()> {
        Segment {
            start,
            end,
            packet: (),
            sent_at: Time::ZERO,
            first: 0,
            last: 0,
            retransmissions: 0,
            by_sender: false,
            sacked: false,
            given_up: false,
        }
    }

    fn ranges(cache: &mut Cache<()>) -> Vec<(u32, u32)> {
        cache.iter_mut().map(|segment| (segment.start, segment.end)).collect()
    }

    #[test]
    fn segments_stand_in_order_across_the_wrap() {
        let mut cache = Cache::new();
        assert!(cache.insert(segment(5, 10)));
        assert!(cache.insert(segment(u32::MAX - 4, 5)));
        assert!(!cache.insert(segment(20, 30)));
        assert_eq!(ranges(&mut cache), [(u32::MAX - 4, 5), (5, 10), (20, 30)]);
        assert_eq!(cache.take_below(5).map(|segment| segment.end), Some(5));
        assert!(cache.take_below(9).is_none());
    }

    #[test]
    fn what_is_sent_again_in_other_pieces_takes_the_place_of_the_old_ones() {
        let mut cache = Cache::new();
        for start in [0, 10, 20] {
            cache.insert(segment(start, start + 10));
        }
        cache.insert(segment(5, 25));
        assert_eq!(ranges(&mut cache), [(5, 25)]);
        assert_eq!(cache.cost(), cost(20));
    }

    proptest! {
        #[test]
        fn it_never_overlaps_and_counts_what_it_holds(
            base: u32,
            steps in prop::collection::vec((0u32..200, 1u32..40, any::<bool>()), 0..60),
        ) {
            let mut cache = Cache::new();
            for (start, length, free) in steps {
                if free {
                    while cache.take_below(base.wrapping_add(start)).is_some() {}
                } else {
                    cache.insert(segment(base.wrapping_add(start), base.wrapping_add(start + length)));
                }
                let found: Vec<_> =
                    ranges(&mut cache).iter().map(|r| (r.0.wrapping_sub(base), r.1.wrapping_sub(base))).collect();
                prop_assert!(found.windows(2).all(|pair| pair[0].1 <= pair[1].0));
                prop_assert_eq!(cache.cost(), found.iter().map(|r| cost(r.1 - r.0)).sum::<u64>());
                prop_assert_eq!(cache.end_place() - cache.first_place(), found.len() as i64);
            }
        }
    }
}
