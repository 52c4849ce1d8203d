//! Rates from cumulative byte counts.
//!
//! `s = w x + (1 - w) s`, x the newest sample [bit/s], w the weight of the newest sample \[1\].
//! Source: SAP-LAW section 5.3, "a simple low-pass filter".

use crate::units::{BitRate, Time};

/// A low-pass filter over the differences of a cumulative byte count.
#[derive(Clone, Debug)]
pub struct LowPass {
    weight: f64,
    last: Option<(Time, u64)>,
    newest_bps: f64,
    smooth_bps: Option<f64>,
}

impl LowPass {
    /// `weight` of the newest sample, 0..=1; 1 does not smooth.
    #[must_use]
    pub fn new(weight: f64) -> Self {
        Self { weight: weight.clamp(0.0, 1.0), last: None, newest_bps: 0.0, smooth_bps: None }
    }

    /// Changes the weight of the newest sample: where samples are not equally far apart.
    pub fn weigh(&mut self, weight: f64) {
        self.weight = weight.clamp(0.0, 1.0);
    }

    /// The count stood at `bytes` at `now`. The first count only sets the zero; one that goes back restarts there.
    pub fn on_count(&mut self, now: Time, bytes: u64) {
        let Some((since, before)) = self.last.replace((now, bytes)) else { return };
        let span = now.since(since).as_secs_f64();
        if span <= 0.0 || bytes < before {
            return;
        }
        self.newest_bps = (bytes - before) as f64 * 8.0 / span;
        let smooth = self.smooth_bps.unwrap_or(self.newest_bps);
        self.smooth_bps = Some(smooth + self.weight * (self.newest_bps - smooth));
    }

    /// The filtered rate.
    #[must_use]
    pub fn smooth(&self) -> BitRate {
        BitRate::from_bps_f64(self.smooth_bps.unwrap_or(0.0))
    }

    /// The newest sample alone.
    #[must_use]
    pub fn newest(&self) -> BitRate {
        BitRate::from_bps_f64(self.newest_bps)
    }
}

/// The mean of a rate over the moments in which it was known, and the newest.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    sum_bps: f64,
    moments: u64,
    last: BitRate,
}

impl Known {
    /// It is `rate` now; `None`: unknown.
    pub fn on_rate(&mut self, rate: Option<BitRate>) {
        let Some(rate) = rate else { return };
        self.last = rate;
        self.sum_bps += rate.as_bps() as f64;
        self.moments += 1;
    }

    /// Mean, bit/s; 0 while it was never known.
    #[must_use]
    pub fn mean_bps(&self) -> f64 {
        self.sum_bps / self.moments.max(1) as f64
    }

    /// The newest that was known, bit/s.
    #[must_use]
    pub const fn last_bps(&self) -> f64 {
        self.last.as_bps() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Span;

    #[test]
    fn a_step_is_approached_by_the_weight_of_the_newest_sample() {
        let mut rate = LowPass::new(0.2);
        let mut bytes = 0;
        for (k, step) in [0u64, 1000, 1000, 2000].into_iter().enumerate() {
            bytes += step;
            rate.on_count(Time::ZERO + Span::from_secs(k as u64), bytes);
        }
        // 8000, 8000, then 16000: 8000 + 0.2 x 8000.
        assert_eq!((rate.smooth(), rate.newest()), (BitRate::bps(9600), BitRate::bps(16000)));
    }

    #[test]
    fn moments_without_a_rate_count_in_no_mean() {
        let mut known = Known::default();
        assert_eq!((known.mean_bps(), known.last_bps()), (0.0, 0.0));
        for rate in [None, Some(BitRate::mbps(2)), None, Some(BitRate::mbps(4)), None] {
            known.on_rate(rate);
        }
        assert_eq!((known.mean_bps(), known.last_bps()), (3e6, 4e6));
    }

    #[test]
    fn a_count_that_goes_back_is_not_a_rate() {
        let mut rate = LowPass::new(1.0);
        for (at, bytes) in [(0, 5000), (1, 6000), (2, 100), (3, 1100)] {
            rate.on_count(Time::ZERO + Span::from_secs(at), bytes);
            assert!(rate.newest() <= BitRate::bps(8000));
        }
    }
}
