//! The rate that somebody who knows the channel would take.
//!
//! `rate = the fastest of those with PER(SNR, 1538 bytes) <= threshold`; where none is, the one that loses least.
//! 1,538 bytes: an MPDU of an IP packet of 1,500. Threshold: 0.1, at which receivers' sensitivities are stated.
//!
//! Differs from ns-3's ideal manager, which takes the fastest whose bit error rate without coding gains is at most 1e-6.
//! Not modelled: that it takes time to learn an SNR.

use crate::phy::Rate;

/// An MPDU of 1,500 bytes of IP.
pub const FULL_MPDU: u32 = 1538;

/// See the module.
#[derive(Clone, Debug)]
pub struct Ideal {
    /// Fastest first.
    rates: Vec<Rate>,
    threshold: f64,
    best: Rate,
}

impl Ideal {
    /// Among these rates, at least one; the slowest until an SNR is known.
    #[must_use]
    pub fn new(mut rates: Vec<Rate>, threshold: f64) -> Self {
        rates.sort_by_key(|rate| std::cmp::Reverse(rate.bit_rate().as_bps()));
        let best = *rates.last().unwrap_or(&Rate::OFDM_6);
        Self { rates, threshold, best }
    }

    /// The SNR is another; `per` gives how many full MPDUs are lost at a rate, 0..=1.
    pub fn on_snr(&mut self, per: impl Fn(Rate) -> f64) {
        let mut least = f64::INFINITY;
        for rate in &self.rates {
            let lost = per(*rate);
            if lost < least || lost <= self.threshold {
                (self.best, least) = (*rate, lost);
            }
            if lost <= self.threshold {
                return;
            }
        }
    }

    /// The choice.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::per::{per_at, scaled};
    use crate::mode::{Guard, Width};
    use crate::phy::Standard;
    use crate::rate_control::Capability;

    fn best(snr_db: f64) -> u8 {
        let rates = Capability { standard: Standard::N, width: Width::Mhz20, streams: 1, guard: Guard::Ns800 }.rates();
        let mut ideal = Ideal::new(rates, 0.1);
        ideal.on_snr(|rate| scaled(per_at(rate.modulation(), (snr_db * 4.0) as i16), FULL_MPDU));
        ideal.rate().mode().unwrap().mcs
    }

    #[test]
    fn the_fastest_rate_below_the_threshold_is_taken() {
        assert_eq!([7.0, 16.0, 22.0].map(best), [2, 4, 7]);
        assert_eq!([1.25, 4.25, 13.0, 19.0].map(best), [0, 1, 4, 6]);
    }

    #[test]
    fn where_nothing_arrives_the_most_robust_is_taken() {
        assert_eq!(best(0.5), 0);
    }
}
