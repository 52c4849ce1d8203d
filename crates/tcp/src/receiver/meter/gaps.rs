//! WTCP's receiver: how much wider packets lie when they arrive than when they were sent.
//!
//! ```text
//! ratio = gap of arrivals / gap of sendings, of two segments in sequence with nothing between them
//! short = 3/4 short + 1/4 ratio          long = 15/16 long + 1/16 ratio
//! pair  = payload / gap of arrivals, of the first two that were sent back to back                        [bytes/s]
//! heavy: of the last 64 segments more were lost than mean + 2 x mean deviation of such spans without congestion, and more
//!        than one in 16
//! ```
//!
//! The sender marks each segment with the time since it sent the one before, µs.

use lasthop_core::units::{Span, Time};

use crate::note::Note;
use crate::segment::Segment;

/// Segments of a span over which losses are counted.
const SPAN: u64 = 64;
/// A span with less is never heavy, share.
const LIGHT: f64 = 1.0 / 16.0;
/// From this ratio on queues grow.
const GROWS: f64 = 1.05;
/// Two that were sent closer were sent back to back.
const BACK_TO_BACK: Span = Span::from_micros(50);

#[derive(Debug)]
pub(super) struct Gaps {
    mss: u64,
    /// Gap of the sendings, of the segment that comes next.
    gap: Span,
    /// Behind the newest byte in the order of sending, and when it came; none when something else came since.
    newest: Option<(u64, Time)>,
    /// Behind the newest byte.
    next: u64,
    short: Option<f64>,
    long: f64,
    pair: Option<f64>,
    /// Of the span in flight: segments, and how many of them are missing.
    expected: u64,
    missing: u64,
    /// Share lost of spans without congestion: mean and mean deviation.
    mean: f64,
    deviation: f64,
    heavy: bool,
}

impl Gaps {
    pub(super) fn new(mss: u32) -> Self {
        Self {
            mss: u64::from(mss.max(1)),
            gap: Span::ZERO,
            newest: None,
            next: 0,
            short: None,
            long: 1.0,
            pair: None,
            expected: 0,
            missing: 0,
            mean: 0.0,
            deviation: 0.0,
            heavy: false,
        }
    }

    pub(super) fn on_mark(&mut self, mark: u32) {
        self.gap = Span::from_micros(u64::from(mark));
    }

    pub(super) fn on_segment(&mut self, now: Time, segment: &Segment) {
        let end = segment.offset + u64::from(segment.bytes);
        if segment.offset < self.next || segment.bytes == 0 {
            // A repair came between.
            self.newest = None;
            return;
        }
        let lost = (segment.offset - self.next).div_ceil(self.mss);
        if let Some((_, at)) = self.newest.filter(|_| lost == 0) {
            self.compare(now.since(at), segment.bytes);
        }
        (self.newest, self.next) = (Some((end, now)), end);
        self.count(lost);
    }

    fn compare(&mut self, arrived: Span, bytes: u32) {
        if self.gap <= BACK_TO_BACK {
            if self.pair.is_none() && arrived > Span::ZERO {
                self.pair = Some(f64::from(bytes) / arrived.as_secs_f64());
            }
            return;
        }
        let ratio = arrived.as_secs_f64() / self.gap.as_secs_f64();
        let short = self.short.unwrap_or(ratio);
        self.short = Some(0.75 * short + 0.25 * ratio);
        self.long += (ratio - self.long) / 16.0;
    }

    fn count(&mut self, lost: u64) {
        self.expected += 1 + lost;
        self.missing += lost;
        if self.expected < SPAN {
            return;
        }
        let share = self.missing as f64 / self.expected as f64;
        self.heavy = share > (self.mean + 2.0 * self.deviation).max(LIGHT);
        if self.short.is_none_or(|short| short < GROWS) {
            let off = share - self.mean;
            self.mean += off / 8.0;
            self.deviation += (off.abs() - self.deviation) / 4.0;
        }
        (self.expected, self.missing) = (0, 0);
    }

    pub(super) fn note(&self) -> Option<Note> {
        let permille = |ratio: f64| (ratio * 1000.0).round().min(65_535.0) as u16;
        let known = self.short.is_some() || self.pair.is_some();
        known.then(|| Note::Gaps {
            short: permille(self.short.unwrap_or(1.0)),
            long: permille(self.long),
            pair: self.pair.map_or(0, |pair| pair as u64),
            heavy: self.heavy,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrive(gaps: &mut Gaps, at_us: u64, number: u64, sent_us: u32) {
        gaps.on_mark(sent_us);
        let segment = Segment { offset: number * 1000, bytes: 1000, syn: false, fin: false, again: false };
        gaps.on_segment(Time::from_nanos(at_us * 1000), &segment);
    }

    fn note(gaps: &Gaps) -> (u16, u16, u64, bool) {
        match gaps.note() {
            Some(Note::Gaps { short, long, pair, heavy }) => (short, long, pair, heavy),
            other => panic!("{other:?}"),
        }
    }

    /// Two at once arrive 2 ms apart: 500 kB/s. Then 10 ms apart arrive 10 ms apart, and then 20: 3/4 + 1/4 x 2 = 1.25 and
    /// 15/16 + 2/16 = 1.0625.
    #[test]
    fn ratios_by_hand() {
        let mut gaps = Gaps::new(1000);
        assert_eq!(gaps.note(), None);
        arrive(&mut gaps, 0, 0, 0);
        arrive(&mut gaps, 2000, 1, 0);
        assert_eq!(note(&gaps), (1000, 1000, 500_000, false));
        arrive(&mut gaps, 12_000, 2, 10_000);
        arrive(&mut gaps, 32_000, 3, 10_000);
        assert_eq!(note(&gaps), (1250, 1063, 500_000, false));
        // A hole, and a repair: neither is compared with its neighbours.
        arrive(&mut gaps, 99_000, 5, 10_000);
        arrive(&mut gaps, 100_000, 4, 1000);
        arrive(&mut gaps, 150_000, 6, 10_000);
        assert_eq!(note(&gaps), (1250, 1063, 500_000, false));
    }

    /// One in 32 is light. Eight of 64 are more than one in 16, and more than what was usual.
    #[test]
    fn losses_beyond_the_usual_are_heavy() {
        let mut gaps = Gaps::new(1000);
        let mut at = 0;
        let mut span = |gaps: &mut Gaps, every: u64| {
            for number in at..at + 64 {
                if number % every != 0 {
                    arrive(gaps, number * 10_000, number, 10_000);
                }
            }
            at += 64;
            arrive(gaps, at * 10_000, at, 10_000);
        };
        (0..4).for_each(|_| span(&mut gaps, 32));
        assert!(!note(&gaps).3);
        span(&mut gaps, 4);
        span(&mut gaps, 4);
        assert!(note(&gaps).3);
    }
}
