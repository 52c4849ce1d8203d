//! The round trip without its queue: the minimum over a sliding window.
//!
//! Kept as the ascending candidates of a monotonic queue: a sample removes every older one that is not smaller.
//! Amortised O(1); at most `CANDIDATES` entries, the newest of equal age merged when full.

use std::collections::VecDeque;

use crate::units::{Span, Time};

/// Enough for one sample per 200 ms interval over 10 s with room to spare.
const CANDIDATES: usize = 64;

/// See the module.
#[derive(Clone, Debug)]
pub struct MinFilter {
    window: Span,
    /// Ascending in time and in value; the front is the minimum.
    candidates: VecDeque<(Time, Span)>,
    /// The front once more: it is asked for far more often than it changes, and where the candidates are nothing else has to be read.
    least: Option<Span>,
}

impl MinFilter {
    /// Remembers samples for `window`.
    #[must_use]
    pub fn new(window: Span) -> Self {
        Self { window, candidates: VecDeque::new(), least: None }
    }

    /// An estimator with the same parameters that has seen nothing.
    #[must_use]
    pub fn anew(&self) -> Self {
        Self::new(self.window)
    }

    /// The newest sample.
    #[must_use]
    pub fn newest(&self) -> Option<Span> {
        self.candidates.back().map(|(_, s)| *s)
    }

    /// A round trip of `sample` ended at `now`.
    pub fn on_sample(&mut self, now: Time, sample: Span) {
        while self.candidates.back().is_some_and(|(_, s)| *s >= sample) {
            self.candidates.pop_back();
        }
        if self.candidates.len() == CANDIDATES {
            self.candidates.pop_back();
        }
        self.candidates.push_back((now, sample));
        self.expire(now);
        self.least = self.candidates.front().map(|(_, s)| *s);
    }

    /// The minimum counts as if it had been seen at `now`: nothing could be shorter meanwhile.
    pub fn hold(&mut self, now: Time) {
        if let Some((seen, _)) = self.candidates.front_mut() {
            *seen = now;
        }
    }

    /// The last candidate stays however old it is: a flow that pauses keeps its base.
    fn expire(&mut self, now: Time) {
        while self.candidates.len() > 1 && self.candidates.front().is_some_and(|(t, _)| now.since(*t) > self.window) {
            self.candidates.pop_front();
        }
    }

    /// Smallest sample of the window.
    #[must_use]
    pub const fn min(&self) -> Option<Span> {
        self.least
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_held_is_remembered_from_then_on() {
        let (at, ms) = (|s: u64| Time::ZERO + Span::from_secs(s), Span::from_millis);
        let mut filter = MinFilter::new(Span::from_secs(10));
        filter.on_sample(at(0), ms(20));
        for s in 1..60 {
            filter.hold(at(s));
            filter.on_sample(at(s), ms(400));
            assert_eq!(filter.min(), Some(ms(20)), "{s}");
        }
        filter.on_sample(at(69), ms(380));
        assert_eq!(filter.min(), Some(ms(20)));
        filter.on_sample(at(70), ms(390));
        assert_eq!(filter.min(), Some(ms(380)));
    }

    proptest! {
        #[test]
        fn it_is_the_minimum_of_the_samples_in_the_window(samples in prop::collection::vec((1u64..50, 1u64..1000), 1..60)) {
            let window = Span::from_millis(200);
            let mut filter = MinFilter::new(window);
            let mut all = Vec::new();
            let mut now = Time::ZERO;
            for (gap_ms, ns) in samples {
                now += Span::from_millis(gap_ms);
                filter.on_sample(now, Span::from_nanos(ns));
                all.push((now, Span::from_nanos(ns)));
                let truth = all.iter().filter(|(t, _)| now.since(*t) <= window).map(|(_, s)| *s).min();
                prop_assert_eq!(filter.min(), truth);
            }
        }
    }

    #[test]
    fn a_base_that_rose_is_followed_after_the_window() {
        let mut filter = MinFilter::new(Span::from_secs(10));
        for s in 0..30 {
            let rtt = if s < 5 { 80 } else { 90 };
            filter.on_sample(Time::ZERO + Span::from_secs(s), Span::from_millis(rtt));
        }
        assert_eq!(filter.min(), Some(Span::from_millis(90)));
    }
}
