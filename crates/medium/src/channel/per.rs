//! How often a frame arrives with an error, over the signal-to-noise ratio: tables for OFDM, formulas for DSSS and CCK.
//!
//! `per(snr)` holds for 1,458 bytes and is straight between entries half a decibel apart; any other length:
//! `success(bytes) = (1 - per(snr))^(bytes / 1458)`
//! SNR in dB at one receive antenna, over the width that the frame occupies.
//!
//! - MCS 0 to 9: ns-3's table-based error model (convolutional code, white noise; from MATLAB's WLAN toolbox, Patidar et
//!   al., "Link-to-System Mapping for ns-3 Wi-Fi OFDM Error Models", 2017). It has one curve per MCS, whatever the
//!   generation, and so have we.
//! - MCS 10 and 11 have no such curve. Receiver sensitivities differ from that of MCS 9 by 3 and 5 dB (IEEE 802.11ax-2021
//!   table 27-51: -57, -54, -52 dBm in 20 MHz), so the curve of MCS 9 is moved by that. ns-3's curves for LDPC, which do
//!   reach MCS 11, lie 3.3 and 5.4 dB above MCS 9.
//! - Streams and width do not move a curve: the same table gives every number of streams the same sensitivity per
//!   receive antenna, and 3 dB per doubled width, which is what the noise grows by. That is the best case, streams that do not
//!   disturb each other.
//! - 6 to 54 Mbit/s use the curve of the MCS of the same modulation and code; 9 Mbit/s, BPSK 3/4, that of MCS 0 moved by
//!   1 dB (table 17-18: -82, -81 dBm).
//! - 1 and 2 Mbit/s: `BER = exp(-Eb/N0) / 2` (DBPSK), and for DQPSK the usual approximation; 5.5 and 11 Mbit/s: the union
//!   bound over the distances between code words of CCK, with the energy of a chip Ec/N0 = SNR x 20 MHz / 11 Mchip/s.
//!
//! Not modelled: preambles and headers that fail, fading within a frame, better codes (LDPC gains 1 to 2 dB), MIMO gain. ns-3
//! has curves of their own for frames below 400 bytes: there the power law overstates errors by up to 1 dB.

use crate::mode::Modulation;

/// A curve: `per[i]` belongs to `(first_half_db + i) / 2` dB; 1 below, 0 above.
struct Curve {
    first_half_db: i16,
    per: &'static [f64],
}

/// By MCS.
#[rustfmt::skip]
const CURVES: [Curve; 10] = [
    Curve { first_half_db: -1, per: &[0.994, 0.8185, 0.2908, 0.0663, 0.0112, 0.0015, 0.00015, 0.00001] },
    Curve { first_half_db: 5, per: &[0.997, 0.7944, 0.3008, 0.0728, 0.012, 0.0015, 0.00023] },
    Curve { first_half_db: 10, per: &[0.998, 0.7578, 0.301, 0.0676, 0.0122, 0.0023, 0.00035, 0.00004] },
    Curve { first_half_db: 16, per: &[0.994, 0.8405, 0.4341, 0.1419, 0.0374, 0.0086, 0.0019, 0.00036, 0.00005] },
    Curve { first_half_db: 23, per: &[0.9269, 0.5139, 0.1826, 0.0465, 0.011, 0.0026, 0.00041, 0.0001] },
    Curve { first_half_db: 30, per: &[0.999, 0.9479, 0.6625, 0.2978, 0.1058, 0.0334, 0.0091, 0.0023, 0.00064, 0.00017, 0.00002] },
    Curve { first_half_db: 33, per: &[0.995, 0.8796, 0.5139, 0.2091, 0.0639, 0.0186, 0.0046, 0.0013, 0.00023, 0.00002] },
    Curve { first_half_db: 36, per: &[0.9785, 0.7393, 0.3375, 0.1234, 0.0355, 0.01, 0.0027, 0.0005, 0.00009, 0.00001] },
    Curve { first_half_db: 43, per: &[0.998, 0.9399, 0.6709, 0.3525, 0.1376, 0.0475, 0.0154, 0.0052, 0.0015, 0.00036, 0.00007] },
    Curve { first_half_db: 46, per: &[0.999, 0.9506, 0.6847, 0.3261, 0.1248, 0.0409, 0.013, 0.0036, 0.00082, 0.0001, 0.00002, 0.00001] },
];

/// Bytes of the frame that the curves are for.
pub const REFERENCE_BYTES: f64 = 1458.0;

/// Probability that 1,458 bytes arrive with an error, 0..=1, at this many quarters of a decibel.
#[must_use]
pub fn per_at(modulation: Modulation, snr_quarters: i16) -> f64 {
    let linear = libm::pow(10.0, f64::from(snr_quarters) / 40.0);
    let bits = REFERENCE_BYTES * 8.0;
    match modulation {
        Modulation::Mcs(mcs @ 0..=9) => curve_at(&CURVES[usize::from(mcs)], snr_quarters),
        Modulation::Mcs(10) => curve_at(&CURVES[9], snr_quarters.saturating_sub(3 * 4)),
        Modulation::Mcs(_) => curve_at(&CURVES[9], snr_quarters.saturating_sub(5 * 4)),
        Modulation::Bpsk34 => curve_at(&CURVES[0], snr_quarters.saturating_sub(4)),
        Modulation::Dbpsk => any_of(bits, 0.5 * libm::exp(-linear * 20.0)),
        Modulation::Dqpsk => any_of(bits, dqpsk_ber(linear * 10.0)),
        Modulation::Cck5 => any_of(bits / 4.0, union_bound(&CCK5, linear * 20.0 / 11.0)),
        Modulation::Cck11 => any_of(bits / 8.0, union_bound(&CCK11, linear * 20.0 / 11.0)),
    }
}

/// Probability that a frame of `bytes` arrives with an error when one of 1,458 does with `per`.
#[must_use]
pub fn scaled(per: f64, bytes: u32) -> f64 {
    1.0 - libm::pow(1.0 - per, f64::from(bytes) / REFERENCE_BYTES)
}

fn curve_at(curve: &Curve, snr_quarters: i16) -> f64 {
    let quarters = i32::from(snr_quarters) - 2 * i32::from(curve.first_half_db);
    let entry = |i: i32| match usize::try_from(i) {
        Err(_) => 1.0,
        Ok(i) => curve.per.get(i).copied().unwrap_or(0.0),
    };
    let below = quarters.div_euclid(2);
    if quarters.rem_euclid(2) == 0 { entry(below) } else { f64::midpoint(entry(below), entry(below + 1)) }
}

/// Probability that one of `n` fails.
fn any_of(n: f64, each: f64) -> f64 {
    1.0 - libm::pow(1.0 - each.min(1.0), n)
}

/// Bit errors of DQPSK at this Eb/N0; from above 0.5 on it is that.
fn dqpsk_ber(ebn0: f64) -> f64 {
    use std::f64::consts::{PI, SQRT_2};
    let scale = (SQRT_2 + 1.0) / libm::sqrt(8.0 * PI * SQRT_2);
    (scale / libm::sqrt(ebn0) * libm::exp(-(2.0 - SQRT_2) * ebn0)).min(0.5)
}

/// Code words of CCK at a distance from each: half the squared distance in energies of a chip, and how many.
const CCK5: [(f64, f64); 2] = [(8.0, 14.0), (16.0, 1.0)];
const CCK11: [(f64, f64); 6] = [(4.0, 24.0), (6.0, 16.0), (8.0, 174.0), (10.0, 16.0), (12.0, 24.0), (16.0, 1.0)];

/// At most this many symbols are mistaken for another: sum of `n Q(sqrt(d Ec/N0))`.
fn union_bound(distances: &[(f64, f64)], chip: f64) -> f64 {
    let q = |x: f64| 0.5 * libm::erfc(x / std::f64::consts::SQRT_2);
    distances.iter().map(|(half_square, words)| words * q(libm::sqrt(half_square * chip))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SNR at which a tenth is lost, dB, along straight lines between quarters.
    fn ten_percent(modulation: Modulation) -> f64 {
        let above = (-80..200).find(|q| per_at(modulation, *q) <= 0.1).unwrap();
        let (high, low) = (per_at(modulation, above - 1), per_at(modulation, above));
        (f64::from(above) - (0.1 - low) / (high - low)) / 4.0
    }

    #[test]
    fn a_tenth_is_lost_where_the_published_curves_say() {
        let published = [0.9, 3.9, 6.4, 9.6, 12.7, 17.0, 18.3, 19.6, 23.7, 25.1];
        for (mcs, snr) in published.into_iter().enumerate() {
            let found = ten_percent(Modulation::Mcs(mcs as u8));
            // Read off by hand to a tenth or two.
            assert!((found - snr).abs() < 0.15, "MCS {mcs}: {found}");
        }
    }

    #[test]
    fn mcs_10_and_11_lie_as_far_above_mcs_9_as_their_sensitivities() {
        let nine = ten_percent(Modulation::Mcs(9));
        assert!((ten_percent(Modulation::Mcs(10)) - nine - 3.0).abs() < 1e-9);
        assert!((ten_percent(Modulation::Mcs(11)) - nine - 5.0).abs() < 1e-9);
        // ns-3's LDPC curves: a tenth is lost at 23.48, 26.80 and 28.88 dB.
        assert!((ten_percent(Modulation::Mcs(10)) - nine - (26.80 - 23.48)).abs() < 0.5);
        assert!((ten_percent(Modulation::Mcs(11)) - nine - (28.88 - 23.48)).abs() < 0.5);
    }

    #[test]
    fn errors_never_grow_with_the_ratio() {
        let ofdm = (0..12).map(Modulation::Mcs).chain([Modulation::Bpsk34]);
        let dsss = [Modulation::Dbpsk, Modulation::Dqpsk, Modulation::Cck5, Modulation::Cck11];
        for modulation in ofdm.chain(dsss) {
            let pers: Vec<f64> = (-160..240).map(|q| per_at(modulation, q)).collect();
            assert!(pers.windows(2).all(|w| w[0] >= w[1]), "{modulation:?}");
            assert!(pers[0] > 0.999 && pers[399] < 1e-9, "{modulation:?}: {} {}", pers[0], pers[399]);
        }
    }

    #[test]
    fn faster_modulations_need_more() {
        let ofdm: Vec<f64> = (0..12).map(|mcs| ten_percent(Modulation::Mcs(mcs))).collect();
        let dsss = [Modulation::Dbpsk, Modulation::Dqpsk, Modulation::Cck5, Modulation::Cck11].map(ten_percent);
        assert!(ofdm.windows(2).all(|w| w[0] < w[1]), "{ofdm:?}");
        // Detection is differential up to 2 Mbit/s and coherent above.
        assert!(dsss[0] + 3.0 < dsss[1] && dsss[2] + 2.0 < dsss[3], "{dsss:?}");
        // Sensitivities at 11 and 2 Mbit/s differ by 4 dB (-76 and -80 dBm, clauses 15.4.8 and 16.3.8).
        assert!((dsss[3] - dsss[1] - 4.0).abs() < 2.0, "{dsss:?}");
    }

    #[test]
    fn between_entries_the_curve_is_straight() {
        assert_eq!(per_at(Modulation::Mcs(4), 50), 0.1826);
        assert_eq!(per_at(Modulation::Mcs(4), 51), f64::midpoint(0.1826, 0.0465));
        assert_eq!(per_at(Modulation::Mcs(4), 45), f64::midpoint(1.0, 0.9269));
        assert_eq!(per_at(Modulation::Mcs(4), 61), f64::midpoint(0.0001, 0.0));
    }

    #[test]
    fn two_frames_of_half_the_length_fare_as_one() {
        let half = scaled(0.3, 729);
        assert!((1.0 - (1.0 - half) * (1.0 - half) - 0.3).abs() < 1e-12);
        assert_eq!(scaled(0.0, 1538), 0.0);
        assert_eq!(scaled(1.0, 40), 1.0);
    }

    #[test]
    fn distances_of_cck_are_those_of_its_code_words() {
        // IEEE 802.11-2016 equation (16-1), phases in quarters of a turn; at 11 Mbit/s all four are free, at 5.5 phi 2 is
        // odd, phi 3 none and phi 4 even.
        let word = |p: [i32; 4]| {
            [p[0] + p[1] + p[2] + p[3], p[0] + p[2] + p[3], p[0] + p[1] + p[3], p[0] + p[3] + 2]
                .into_iter()
                .chain([p[0] + p[1] + p[2], p[0] + p[2], p[0] + p[1] + 2, p[0]])
                .map(|phase| phase.rem_euclid(4))
                .collect::<Vec<i32>>()
        };
        // Half the squared distance of two chips: 1 for a quarter of a turn, 2 for half a turn.
        let apart =
            |a: &[i32], b: &[i32]| -> i32 { a.iter().zip(b).map(|(x, y)| [0, 1, 2, 1][((x - y) & 3) as usize]).sum() };
        let all = |second: &[i32], third: &[i32], fourth: &[i32]| {
            let mut words = Vec::new();
            for (a, b) in (0..4).flat_map(|a| second.iter().map(move |b| (a, *b))) {
                for (c, d) in third.iter().flat_map(|c| fourth.iter().map(move |d| (*c, *d))) {
                    words.push(word([a, b, c, d]));
                }
            }
            words
        };
        let spectrum = |words: &[Vec<i32>]| {
            let mut counts = std::collections::BTreeMap::new();
            words[1..].iter().for_each(|w| *counts.entry(apart(&words[0], w)).or_insert(0) += 1);
            counts.into_iter().map(|(d, n)| (f64::from(d), f64::from(n))).collect::<Vec<_>>()
        };
        let free = [0, 1, 2, 3];
        assert_eq!(spectrum(&all(&free, &free, &free)), CCK11);
        assert_eq!(spectrum(&all(&[1, 3], &[0], &[0, 2])), CCK5);
    }
}
