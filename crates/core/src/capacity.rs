//! What a hop carries, learned from what it delivered while something waited in front of it.
//!
//! ```text
//! C = sum(bytes) / sum(time)      [bit/s] over the newest samples in which the hop was busy, about a second of them
//! ```
//!
//! A hop that always has something to serve delivers what it can, so no probe is needed, and nothing has to be known of
//! what the hop is. Who samples says when it is busy: a queue was seen, at the access point or in a round trip.
//!
//! A sample beyond `SURPRISE` of the estimate, twice in a row, begins the estimate anew: the link has changed.
//! Until the first busy sample there may be an estimate: the pace at which a packet train of segments that was sent at once came
//! through (packet-pair dispersion: Keshav, "A Control-Theoretic Approach to Flow Control", 1991). Acknowledgments that
//! waited for each other make it too high, a sender that is slower than the hop too low: a tenth either way. A packet train that came
//! faster than it was delivered was stretched by the hop: its pace is the hop's.
//!
//! Not done: while a hop is never busy nothing is learned of it, and an old estimate stays.

use std::collections::VecDeque;

use crate::units::BitRate;

/// Samples are kept until they cover so much time, s: a hundred contentions of a slow hop, half the time in which an estimate has
/// to be right.
const MEMORY: f64 = 1.0;
/// And at least so many bytes: of 60 full packets one more or less is a sixtieth.
const LEAST_BYTES: f64 = 60.0 * 1500.0;
/// A part of the estimate. Two samples in a row that differ by more are another link: a sample of 50 ms varies by half of that.
pub(crate) const SURPRISE: f64 = 0.2;

/// Bytes that a busy hop delivered, and how long it took.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    bytes: f64,
    seconds: f64,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Estimator {
    samples: VecDeque<Sample>,
    sum: Sample,
    /// Samples in a row on one side, beyond the surprise; negative: below.
    surprised: i8,
    estimate: Option<Estimate>,
    /// More came through than was measured: it carries at least this.
    exceeded: bool,
}

/// What a packet train came through at: at least that is what the hop carries.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    bps: f64,
    /// The same, of the trains alone: before more than that came through.
    shown: f64,
    /// Of the longest such train.
    bytes: f64,
    /// The newest trains that the hop stretched, the older the less of them.
    dispersed: Sample,
}

/// What an older train counts when the next one comes.
const FADES: f64 = 0.5;

/// Trains whose paces differ by a smaller part are at the same pace.
const SAME: f64 = 0.1;

impl Sample {
    /// Bit/s.
    fn rate(self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.bytes * 8.0 / self.seconds)
    }
}

/// Most samples that are kept: 1 s at 5 ms.
const MOST_SAMPLES: usize = 256;

impl Estimator {
    /// The hop had something to serve for `seconds` and delivered `bytes` of IP.
    pub fn on_busy(&mut self, bytes: f64, seconds: f64) {
        if seconds <= 0.0 || bytes < 0.0 {
            return;
        }
        let sample = Sample { bytes, seconds };
        if let Some(estimate) = self.measured() {
            let ratio = bytes * 8.0 / seconds / estimate;
            let side = i8::from(ratio > 1.0 + SURPRISE) - i8::from(ratio < 1.0 - SURPRISE);
            self.surprised = if side != 0 && self.surprised.signum() != -side { self.surprised + side } else { side };
            if self.surprised.abs() >= 2 {
                let newest = self.samples.pop_back();
                self.clear();
                newest.into_iter().for_each(|before| self.push(before));
                self.surprised = 0;
            }
        }
        self.push(sample);
        self.forget();
        self.exceeded = false;
    }

    /// More than was measured came through, `bytes` in `seconds`, and nothing waited: at least that is what the hop carries, until it is busy again.
    pub fn exceed(&mut self, bytes: f64, seconds: f64) {
        *self = Self { exceeded: true, ..Self::default() };
        self.push(Sample { bytes, seconds });
    }

    /// The hop itself showed it, while it was busy or by trains that it stretched: it is no sender's pace, and not only the least that it carries.
    #[must_use]
    pub fn is_its_own(&self) -> bool {
        if self.is_measured() { !self.exceeded } else { self.is_dispersed() }
    }

    /// A packet train of `bytes` that was sent at once came through in `seconds`.
    pub fn on_packet_train(&mut self, bytes: f64, seconds: f64) {
        if self.is_measured() || seconds <= 0.0 {
            return;
        }
        let bps = bytes * 8.0 / seconds;
        match &mut self.estimate {
            // Slower ones say nothing: their sender was slower. Nor do shorter ones: their ACKs waited for each other.
            Some(estimate) if bps < estimate.bps * (1.0 - SAME) => {}
            Some(estimate) if bps > estimate.bps * (1.0 + SAME) && bytes < estimate.bytes => {}
            Some(estimate) if bps <= estimate.bps * (1.0 + SAME) => {
                estimate.bps += (bps - estimate.bps) * bytes / (bytes + estimate.bytes);
                estimate.shown = estimate.bps;
                estimate.bytes = estimate.bytes.max(bytes);
            }
            estimate => *estimate = Some(Estimate { bps, shown: bps, bytes, dispersed: Sample::default() }),
        }
    }

    /// A packet train of `bytes` that had come faster was delivered in `seconds`. As of measurements it is all that came in all the time: a token bucket
    /// lets a short one pass at once, whose pace in the mean of paces would be most of it (`down` of `make bounds`).
    pub fn on_dispersion(&mut self, bytes: f64, seconds: f64) {
        if self.is_measured() || seconds <= 0.0 {
            return;
        }
        let before = self.estimate.map(|estimate| estimate.dispersed).unwrap_or_default();
        let bps = (before.bytes + bytes) * 8.0 / (before.seconds + seconds);
        let dispersed = Sample { bytes: before.bytes * FADES + bytes, seconds: before.seconds * FADES + seconds };
        let longest = self.estimate.filter(|_| before.seconds > 0.0).map_or(0.0, |estimate| estimate.bytes);
        self.estimate = Some(Estimate { bps, shown: bps, bytes: longest.max(bytes), dispersed });
    }

    /// More than the estimate came through: it was too low. True: by more than an estimate may be off, and nothing is known any more.
    pub fn outdo(&mut self, bps: f64) -> bool {
        let Some(estimate) = self.estimate.as_mut().filter(|estimate| bps > estimate.bps) else { return false };
        estimate.bps = bps;
        let refuted = bps > estimate.shown * (1.0 + SURPRISE);
        self.estimate = self.estimate.filter(|_| !refuted);
        refuted
    }

    /// It is no measurement, but trains that the hop stretched showed it: its own pace, where no token bucket let part of them pass at once.
    #[must_use]
    pub fn is_dispersed(&self) -> bool {
        !self.is_measured() && self.estimate.is_some_and(|estimate| estimate.dispersed.seconds > 0.0)
    }

    /// What the hop carries.
    #[must_use]
    pub fn capacity(&self) -> Option<BitRate> {
        self.measured().or(self.estimate.map(|estimate| estimate.bps)).map(BitRate::from_bps_f64)
    }

    /// It was measured while the hop was busy; else it is an estimate.
    #[must_use]
    pub fn is_measured(&self) -> bool {
        !self.samples.is_empty()
    }

    /// Standard deviation of the samples' rates about the mean, each by the time that it took, as a part of it; `None` of less than two.
    #[must_use]
    pub fn spread(&self) -> Option<f64> {
        let mean = self.measured().filter(|mean| *mean > 0.0 && self.samples.len() > 1)?;
        let square = |sample: &Sample| Some(sample.seconds * (sample.rate()? / mean - 1.0).powi(2));
        let sum: f64 = self.samples.iter().filter_map(square).sum();
        Some((sum / self.sum.seconds).sqrt())
    }

    fn measured(&self) -> Option<f64> {
        self.sum.rate()
    }

    fn push(&mut self, sample: Sample) {
        self.samples.push_back(sample);
        self.sum = Sample { bytes: self.sum.bytes + sample.bytes, seconds: self.sum.seconds + sample.seconds };
    }

    fn clear(&mut self) {
        self.samples.clear();
        self.sum = Sample::default();
    }

    fn forget(&mut self) {
        while let Some(oldest) = self.samples.front().copied() {
            let rest = Sample { bytes: self.sum.bytes - oldest.bytes, seconds: self.sum.seconds - oldest.seconds };
            let enough = rest.seconds >= MEMORY && rest.bytes >= LEAST_BYTES;
            if !enough && self.samples.len() <= MOST_SAMPLES {
                return;
            }
            self.samples.pop_front();
            self.sum = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mbps(estimator: &Estimator) -> f64 {
        estimator.capacity().unwrap().as_mbps_f64()
    }

    /// `n` samples of 50 ms at a rate, Mbit/s.
    fn feed(estimator: &mut Estimator, rate: f64, n: usize) {
        (0..n).for_each(|_| estimator.on_busy(rate * 1e6 / 8.0 * 0.05, 0.05));
    }

    #[test]
    fn it_is_what_was_delivered_while_the_hop_was_busy() {
        let mut estimator = Estimator::default();
        assert_eq!(estimator.capacity(), None);
        feed(&mut estimator, 20.0, 10);
        feed(&mut estimator, 22.0, 10);
        assert!((mbps(&estimator) - 21.0).abs() < 0.01);
        assert!((estimator.spread().unwrap() - 1.0 / 21.0).abs() < 1e-9, "half of them 1 Mbit/s off to each side");
        feed(&mut estimator, 22.0, 20);
        assert!((mbps(&estimator) - 22.0).abs() < 0.01, "the oldest are forgotten");
    }

    #[test]
    fn a_changed_link_is_believed_at_the_second_sample() {
        for after in [2.0, 200.0] {
            let mut estimator = Estimator::default();
            feed(&mut estimator, 20.0, 20);
            feed(&mut estimator, after, 1);
            assert!((mbps(&estimator) / 20.0 - 1.0).abs() < 0.5, "one may be chance");
            feed(&mut estimator, after, 1);
            assert!((mbps(&estimator) - after).abs() < 0.01);
        }
    }

    #[test]
    fn what_more_comes_through_refutes_the_pace_of_a_sender() {
        let mut estimator = Estimator::default();
        estimator.on_packet_train(15_000.0, 0.012);
        assert!(!estimator.outdo(9e6) && !estimator.outdo(11.9e6), "an estimate may be off by so much");
        assert!((mbps(&estimator) - 11.9).abs() < 0.01 && !estimator.is_dispersed());
        assert!(estimator.outdo(12.1e6));
        assert_eq!(estimator.capacity(), None);
        estimator.on_dispersion(15_000.0, 0.006);
        assert!(estimator.is_dispersed() && (mbps(&estimator) - 20.0).abs() < 0.01);
        feed(&mut estimator, 20.0, 1);
        assert!(!estimator.is_dispersed(), "it is measured");
    }

    #[test]
    fn what_came_through_beyond_a_measurement_is_none_until_it_is_busy_again() {
        let mut estimator = Estimator::default();
        feed(&mut estimator, 10.0, 20);
        assert!(estimator.is_its_own());
        estimator.exceed(11e6 / 8.0 * 0.05, 0.05);
        assert!((mbps(&estimator) - 11.0).abs() < 0.01 && estimator.is_measured() && !estimator.is_its_own());
        feed(&mut estimator, 20.0, 20);
        assert!(estimator.is_its_own() && mbps(&estimator) > 19.0);
    }

    #[test]
    fn one_up_and_one_down_is_noise() {
        let mut estimator = Estimator::default();
        feed(&mut estimator, 20.0, 20);
        for rate in [26.0, 14.0, 26.0, 14.0] {
            feed(&mut estimator, rate, 1);
        }
        assert!((mbps(&estimator) - 20.0).abs() < 0.01);
    }

    #[test]
    fn a_guess_is_what_trains_came_through_at_and_ends_with_the_first_measure() {
        let mut estimator = Estimator::default();
        estimator.on_packet_train(14_600.0, 0.005);
        estimator.on_packet_train(29_200.0, 0.010);
        assert!((mbps(&estimator) - 23.36).abs() < 0.01 && !estimator.is_measured());
        feed(&mut estimator, 20.0, 1);
        estimator.on_packet_train(14_600.0, 0.001);
        assert!((mbps(&estimator) - 20.0).abs() < 0.01 && estimator.is_measured());
    }

    #[test]
    fn what_trains_were_stretched_to_counts_by_their_length() {
        let mut estimator = Estimator::default();
        // Too fast by chance, as short ones are.
        estimator.on_packet_train(9_000.0, 0.002);
        assert!((mbps(&estimator) - 36.0).abs() < 0.01);
        estimator.on_dispersion(24_000.0, 0.0096);
        assert!((mbps(&estimator) - 20.0).abs() < 0.01);
        // 24 + 48 kB in 9.6 + 15.36 ms.
        estimator.on_dispersion(48_000.0, 0.015_36);
        assert!((mbps(&estimator) - 23.08).abs() < 0.01);
    }

    #[test]
    fn what_a_token_bucket_let_pass_at_once_is_no_pace_of_the_rest() {
        let mut estimator = Estimator::default();
        // 18 kB at 1 Gbit/s, and twice 90 kB at 24 Mbit/s; the mean of paces is 109 Mbit/s.
        estimator.on_dispersion(18_000.0, 0.000_144);
        estimator.on_dispersion(90_000.0, 0.03);
        assert!((mbps(&estimator) - 28.66).abs() < 0.01);
        estimator.on_dispersion(90_000.0, 0.03);
        assert!((mbps(&estimator) - 25.17).abs() < 0.01);
    }

    #[test]
    fn a_slow_hop_is_measured_over_enough_packets() {
        let mut estimator = Estimator::default();
        // 1 Mbit/s: a packet every 12 ms, 4 or 5 in 50 ms.
        for n in 0..200 {
            estimator.on_busy(f64::from(4 + n % 2) * 1500.0, 0.05);
        }
        assert!((mbps(&estimator) / 1.08 - 1.0).abs() < 0.02);
    }
}
