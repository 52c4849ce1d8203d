//! Jitter of packets received in a row.
//!
//! `D(i-1, i) = (R_i - S_i) - (R_{i-1} - S_{i-1})`, S sent, R received \[ns\].
//! Source: SNOOP-RT eq. (8); SAP-LAW plots |D| of the game's packets. `rfc3550` is the smoothed interarrival jitter
//! `J += (|D| - J) / 16` of RFC 3550 section 6.4.1. A report always says which.

use crate::units::{Span, Time};

/// Mean, variance and maximum of |D|, and RFC 3550's J.
#[derive(Clone, Debug, Default)]
pub struct Jitter {
    previous_transit_ns: Option<i64>,
    pairs: u64,
    mean_ms: f64,
    /// Sum of squared distances from the mean (Welford), ms^2.
    spread: f64,
    max: Span,
    rfc3550_ns: f64,
}

impl Jitter {
    /// A packet sent at `sent` arrived at `received`.
    pub fn on_packet(&mut self, sent: Time, received: Time) {
        let transit = received.as_nanos().wrapping_sub(sent.as_nanos()) as i64;
        if let Some(previous) = self.previous_transit_ns.replace(transit) {
            self.add(Span::from_nanos(transit.wrapping_sub(previous).unsigned_abs()));
        }
    }

    /// The next packet is not the successor of the last one: no pair is formed across the gap.
    pub fn on_gap(&mut self) {
        self.previous_transit_ns = None;
    }

    fn add(&mut self, d: Span) {
        self.pairs += 1;
        let ms = d.as_millis_f64();
        let delta = ms - self.mean_ms;
        self.mean_ms += delta / self.pairs as f64;
        self.spread += delta * (ms - self.mean_ms);
        self.max = self.max.max(d);
        self.rfc3550_ns += (d.as_nanos() as f64 - self.rfc3550_ns) / 16.0;
    }

    /// Mean of |D|; `None` before the first pair.
    #[must_use]
    pub fn mean(&self) -> Option<Span> {
        (self.pairs > 0).then(|| Span::from_secs_f64(self.mean_ms / 1e3))
    }

    /// Variance of |D| over all pairs, ms^2.
    #[must_use]
    pub fn variance_ms2(&self) -> Option<f64> {
        (self.pairs > 0).then(|| self.spread / self.pairs as f64)
    }

    /// Largest |D|.
    #[must_use]
    pub fn max(&self) -> Option<Span> {
        (self.pairs > 0).then_some(self.max)
    }

    /// Interarrival jitter of RFC 3550.
    #[must_use]
    pub fn rfc3550(&self) -> Option<Span> {
        (self.pairs > 0).then(|| Span::from_nanos(self.rfc3550_ns.round() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Time {
        Time::from_nanos(n * 1_000_000)
    }

    #[test]
    fn steady_transit_has_no_jitter() {
        let mut j = Jitter::default();
        (0..5).for_each(|i| j.on_packet(ms(50 * i), ms(50 * i + 20)));
        assert_eq!((j.mean(), j.variance_ms2(), j.max()), (Some(Span::ZERO), Some(0.0), Some(Span::ZERO)));
    }

    #[test]
    fn a_late_packet_counts_twice_once_late_and_once_back() {
        let mut j = Jitter::default();
        for (sent, received) in [(0, 20), (50, 78), (100, 120)] {
            j.on_packet(ms(sent), ms(received));
        }
        // |D| = 8, 8: mean 8, variance 0; RFC 3550: 8/16 = 0.5, then 0.5 + 7.5/16 = 0.96875.
        assert_eq!(j.mean(), Some(Span::from_millis(8)));
        assert_eq!(j.variance_ms2(), Some(0.0));
        assert_eq!(j.rfc3550(), Some(Span::from_nanos(968_750)));
    }

    #[test]
    fn no_pair_is_formed_across_a_gap() {
        let mut j = Jitter::default();
        j.on_packet(ms(0), ms(20));
        j.on_gap();
        j.on_packet(ms(100), ms(190));
        assert_eq!(j.mean(), None);
    }
}
