//! The receiver of a sender that wants losses told apart: which hole is the link's, by the gap between the arrivals around it
//! ([`BiazVaidya`]).

use lasthop_core::units::Time;

use crate::discriminate::BiazVaidya;
use crate::note::Note;
use crate::segment::Segment;

/// Holes of the link that are remembered; more at once are a queue's anyway.
const MOST: usize = 64;

#[derive(Debug)]
pub(super) struct Losses {
    mss: u64,
    rule: BiazVaidya,
    /// Behind the newest byte in the order of sending, and when it came.
    newest: Option<(u64, Time)>,
    /// Holes that the link has made, the oldest first: `[start, end)`.
    of_link: Vec<(u64, u64)>,
}

impl Losses {
    pub(super) fn new(mss: u32) -> Self {
        Self {
            mss: u64::from(mss.max(1)),
            rule: BiazVaidya::default(),
            newest: None,
            of_link: Vec::with_capacity(MOST),
        }
    }

    pub(super) fn on_segment(&mut self, now: Time, segment: &Segment) {
        let end = segment.offset + u64::from(segment.bytes);
        let Some((next, at)) = self.newest else {
            self.newest = Some((end, now));
            return;
        };
        if segment.offset < next {
            return;
        }
        let gap = now.since(at);
        if segment.offset == next {
            self.rule.on_gap(gap);
        } else if self.of_link.len() < MOST && self.rule.is_of_the_link((segment.offset - next).div_ceil(self.mss), gap)
        {
            self.of_link.push((next, segment.offset));
        }
        self.newest = Some((end, now));
    }

    /// `next`: what the acknowledgment asks for.
    pub(super) fn note(&self, next: u64) -> Option<Note> {
        let hole = self.of_link.iter().find(|(start, end)| (*start..*end).contains(&next));
        hole.map(|_| Note::Corrupted { offset: next })
    }

    /// Everything below `next` is here.
    pub(super) fn forget(&mut self, next: u64) {
        if !self.of_link.is_empty() {
            self.of_link.retain(|(_, end)| *end > next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_core::units::Span;

    fn arrive(losses: &mut Losses, at: u64, number: u64) {
        let now = Time::ZERO + Span::from_millis(at);
        let segment = Segment { offset: number * 1000, bytes: 1000, syn: false, fin: false, again: false };
        losses.on_segment(now, &segment);
    }

    /// One per 10 ms. Segment 3 leaves its place of 10 ms; 6 and 7 leave none: a queue dropped them.
    #[test]
    fn a_hole_that_left_its_place_is_the_links() {
        let mut losses = Losses::new(1000);
        [(0, 0), (10, 1), (20, 2), (40, 4), (50, 5), (60, 8)].iter().for_each(|(at, n)| arrive(&mut losses, *at, *n));
        assert_eq!(losses.note(3000), Some(Note::Corrupted { offset: 3000 }));
        assert_eq!((losses.note(6000), losses.note(7000), losses.note(2000)), (None, None, None));
        losses.forget(4000);
        assert_eq!(losses.note(3000), None);
    }
}
