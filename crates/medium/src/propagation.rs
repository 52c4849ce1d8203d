//! Whether a frame arrives: distance, shadowing, receive threshold.
//!
//! `P_r(d) = P_r(d0) - 10 beta log10(d / d0) + X [dBm]`, X ~ N(0, sigma) drawn per frame, d0 = 1 m
//! `P_r(d0) = P_t (c / (4 pi f d0))^2 [W]`, Friis, gains and system loss 1
//! `p_loss = Phi((threshold - mean P_r) / sigma)`
//! Source: ns-2's Shadowing model. Below d0 the distance counts as d0.
//! Not modelled: fading that lasts longer than a frame, interference from outside, rate-dependent sensitivity.

/// Speed of light, m/s.
const LIGHT: f64 = 299_792_458.0;

/// A transmitter's power and what a receiver makes of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Radio {
    /// Carrier frequency, Hz.
    pub frequency_hz: f64,
    /// Weakest frame that is decoded, W.
    pub receive_threshold_w: f64,
    /// Weakest signal that keeps a station silent, W; used only with hidden stations.
    pub carrier_sense_threshold_w: f64,
    /// A frame survives a collision when it is this much stronger than the others together, dB.
    pub capture_db: f64,
}

impl Default for Radio {
    /// ns-2's defaults, which the papers used.
    fn default() -> Self {
        Self {
            frequency_hz: 914e6,
            receive_threshold_w: 3.652e-10,
            carrier_sense_threshold_w: 1.559e-11,
            capture_db: 10.0,
        }
    }
}

/// Which frames are lost to the channel (collisions apart).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Loss {
    /// None.
    #[default]
    None,
    /// Every frame, data and control alike, with this probability.
    Fixed {
        /// 0 to 1.
        rate: f64,
    },
    /// Log-normal shadowing, drawn per frame; see the module.
    Shadowing {
        /// Path loss exponent beta.
        exponent: f64,
        /// Standard deviation sigma, dB.
        deviation_db: f64,
    },
}

/// Watts in dBm.
#[must_use]
pub fn dbm(watts: f64) -> f64 {
    10.0 * libm::log10(watts) + 30.0
}

/// dBm in milliwatts.
#[must_use]
pub fn milliwatts(dbm: f64) -> f64 {
    libm::pow(10.0, dbm / 10.0)
}

impl Radio {
    /// Mean received power at `distance_m`, dBm.
    #[must_use]
    pub fn mean_power(&self, power_w: f64, distance_m: f64, exponent: f64) -> f64 {
        let friis = LIGHT / (4.0 * std::f64::consts::PI * self.frequency_hz);
        dbm(power_w * friis * friis) - 10.0 * exponent * libm::log10(distance_m.max(1.0))
    }

    /// Probability that one frame does not arrive.
    #[must_use]
    pub fn loss_probability(&self, loss: Loss, power_w: f64, distance_m: f64) -> f64 {
        match loss {
            Loss::None => 0.0,
            Loss::Fixed { rate } => rate,
            Loss::Shadowing { exponent, deviation_db } => {
                let margin = self.mean_power(power_w, distance_m, exponent) - dbm(self.receive_threshold_w);
                if deviation_db <= 0.0 {
                    return if margin < 0.0 { 1.0 } else { 0.0 };
                }
                0.5 * libm::erfc(margin / deviation_db / std::f64::consts::SQRT_2)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sap_law_radio_loses_2_8_percent_at_10_m() {
        let loss = Loss::Shadowing { exponent: 4.0, deviation_db: 9.0 };
        let p = Radio::default().loss_probability(loss, 0.281_838_15, 10.0);
        assert!((p - 0.028).abs() < 0.0005, "{p}");
    }

    #[test]
    fn the_arq_radio_loses_4_5_percent_at_10_m() {
        let loss = Loss::Shadowing { exponent: 2.0, deviation_db: 7.5 };
        let p = Radio::default().loss_probability(loss, 1e-3, 10.0);
        assert!((p - 0.045).abs() < 0.0005, "{p}");
    }

    #[test]
    fn friis_at_one_metre_is_31_7_db_at_914_mhz() {
        // 20 log10(4 pi 914e6 / c) = 31.67 dB.
        assert!((Radio::default().mean_power(1e-3, 1.0, 4.0) + 31.67).abs() < 0.01);
        assert!((Radio::default().mean_power(1e-3, 10.0, 4.0) + 71.67).abs() < 0.01);
    }

    #[test]
    fn loss_grows_with_distance() {
        let loss = Loss::Shadowing { exponent: 4.0, deviation_db: 9.0 };
        let p = |d| Radio::default().loss_probability(loss, 0.281_838_15, d);
        assert!(p(5.0) < p(10.0) && p(10.0) < p(20.0));
        assert_eq!(p(0.0), p(1.0));
    }
}
