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
    /// The minimum. Apart from the others, for most flows have no more candidates than this one, and it is asked for far more often than it
    /// changes.
    least: Option<(Time, Span)>,
    /// The candidates that are newer, ascending in time and in value; none while there is no minimum.
    newer: VecDeque<(Time, Span)>,
}

impl MinFilter {
    /// Remembers samples for `window`.
    #[must_use]
    pub fn new(window: Span) -> Self {
        Self { window, least: None, newer: VecDeque::new() }
    }

    /// An estimator with the same parameters that has seen nothing.
    #[must_use]
    pub fn anew(&self) -> Self {
        Self::new(self.window)
    }

    /// The newest sample.
    #[must_use]
    pub fn newest(&self) -> Option<Span> {
        self.newer.back().copied().or(self.least).map(|(_, s)| s)
    }

    /// A round trip of `sample` ended at `now`.
    pub fn on_sample(&mut self, now: Time, sample: Span) {
        while self.newer.back().is_some_and(|(_, s)| *s >= sample) {
            self.newer.pop_back();
        }
        if self.newer.len() + 1 == CANDIDATES {
            self.newer.pop_back();
        }
        // Where it is the smallest nothing newer is left.
        match self.least.filter(|(_, s)| *s < sample) {
            None => self.least = Some((now, sample)),
            Some(_) => self.newer.push_back((now, sample)),
        }
        self.expire(now);
    }

    /// The minimum counts as if it had been seen at `now`: nothing could be shorter meanwhile.
    pub fn hold(&mut self, now: Time) {
        if let Some((seen, _)) = &mut self.least {
            *seen = now;
        }
    }

    /// The last candidate stays however old it is: a flow that pauses keeps its base.
    fn expire(&mut self, now: Time) {
        while !self.newer.is_empty() && self.least.is_some_and(|(t, _)| now.since(t) > self.window) {
            self.least = self.newer.pop_front();
        }
    }

    /// Smallest sample of the window.
    #[must_use]
    pub const fn min(&self) -> Option<Span> {
        match self.least {
            Some((_, s)) => Some(s),
            None => None,
        }
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
