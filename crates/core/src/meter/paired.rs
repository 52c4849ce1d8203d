//! How pairs compare: a sign-flip test, and a Hodges-Lehmann ratio with its exact interval. Pure functions of differences.
//!
//! With `d_i = ln(on_i) - ln(off_i)` of pair i, and R_i the rank of |d_i| among all (ties share the mean of their ranks):
//!
//! `W = sum of R_i over the pairs with d_i > 0`
//!
//! **Test.** If control changes nothing, the coin that chose the order of pair i gave d_i its sign: each of the 2^n patterns of signs was as
//! likely as the others, whatever the evening did. The p-value is the part of them with W at least as far from its middle as ours.
//! It is exact for any number of pairs: the distribution of W is built rank by rank, in place of drawing patterns. This sign-flip test
//! whose statistic is the sum of signed ranks is Wilcoxon's. A difference of nothing keeps its rank and has no sign (Pratt).
//!
//! **Estimate.** The median of the Walsh averages `(d_i + d_j) / 2`, i <= j; its exponential is the ratio. The interval reaches from the
//! k-th smallest of them to the k-th largest, with the largest k whose level `1 - 2 P(W < k)` is 95 % or more; as W is a whole number
//! the level is a little more than asked for, and is reported. Test and interval are two sides of one thing: without ties the interval
//! leaves out 1 exactly where p <= 5 %. With ties it errs on the long side.
//!
//! Sources: F. Wilcoxon, Individual comparisons by ranking methods, Biometrics Bulletin 1 (1945); J. L. Hodges and E. L. Lehmann,
//! Estimates of location based on rank tests, Ann. Math. Stat. 34 (1963); J. W. Pratt, Remarks on zeros and ties in the Wilcoxon signed
//! rank procedures, JASA 54 (1959); M. Hollander, D. A. Wolfe and E. Chicken, Nonparametric Statistical Methods, section 3.
//!
//! Why ranks, where the mean of d would do for a sign-flip test: one pair in which somebody walked out of the house does not decide,
//! and the interval is that of the same test.

/// A ratio with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Median of the Walsh averages.
    pub middle: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Probability that the interval holds the truth, 0..=1: at least [`LEVEL`].
    pub level: f64,
}

/// Level of the interval that is asked for.
pub const LEVEL: f64 = 0.95;

/// Rounding of the last digit must not split what is equal.
const TINY: f64 = 1e-12;

/// Two-sided p-value of the sign-flip test with the sum of signed ranks; 1 where there is nothing to flip.
#[must_use]
pub fn sign_flip_p(differences: &[f64]) -> f64 {
    let doubled = doubled_ranks(differences);
    let flipped: Vec<usize> =
        differences.iter().zip(&doubled).filter(|(d, _)| d.abs() > TINY).map(|(_, rank)| *rank).collect();
    let observed: usize = differences.iter().zip(&doubled).filter(|(d, _)| **d > TINY).map(|(_, rank)| *rank).sum();
    let all: usize = flipped.iter().sum();
    // Twice the distance from the middle, a whole number.
    let distance = |w: usize| (2 * w).abs_diff(all);
    let of_w = distribution(&flipped);
    let tail: f64 = of_w.iter().enumerate().filter(|(w, _)| distance(*w) >= distance(observed)).map(|(_, p)| p).sum();
    tail.min(1.0)
}

/// Median of the Walsh averages, and its interval; `None` of fewer than six differences, of which none has the level.
#[must_use]
pub fn hodges_lehmann(differences: &[f64]) -> Option<Estimate> {
    let n = differences.len();
    let (k, level) = order(n)?;
    let mut walsh = Vec::with_capacity(n * (n + 1) / 2);
    for (i, a) in differences.iter().enumerate() {
        walsh.extend(differences[i..].iter().map(|b| f64::midpoint(*a, *b)));
    }
    walsh.sort_unstable_by(f64::total_cmp);
    Some(Estimate { middle: median_of_sorted(&walsh)?, low: walsh[k - 1], high: walsh[walsh.len() - k], level })
}

/// The largest k (from 1) with `1 - 2 P(W < k) >= LEVEL` for `n` pairs without ties, and that level.
fn order(n: usize) -> Option<(usize, f64)> {
    let of_w = distribution(&(1..=n).collect::<Vec<_>>());
    let mut below = 0.0;
    let mut found = None;
    for (w, p) in of_w.iter().enumerate() {
        below += p;
        if 1.0 - 2.0 * below < LEVEL {
            break;
        }
        found = Some((w + 1, 1.0 - 2.0 * below));
    }
    found
}

/// Probability of each sum of those ranks that a fair coin each leaves in.
fn distribution(ranks: &[usize]) -> Vec<f64> {
    let mut of_sum = vec![0.0; ranks.iter().sum::<usize>() + 1];
    of_sum[0] = 1.0;
    let mut most = 0;
    for rank in ranks {
        most += rank;
        for sum in (0..=most).rev() {
            let with = if sum >= *rank { of_sum[sum - rank] } else { 0.0 };
            of_sum[sum] = f64::midpoint(of_sum[sum], with);
        }
    }
    of_sum
}

/// Twice the ranks of the absolute values, from 2: whole numbers also where ties share a rank.
fn doubled_ranks(differences: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..differences.len()).collect();
    order.sort_by(|a, b| differences[*a].abs().total_cmp(&differences[*b].abs()));
    let mut doubled = vec![0; differences.len()];
    let mut from = 0;
    while from < order.len() {
        let value = differences[order[from]].abs();
        let ties = order[from..].iter().take_while(|i| differences[**i].abs() - value <= TINY).count();
        // Ranks from + 1 to from + ties.
        order[from..from + ties].iter().for_each(|i| doubled[*i] = 2 * from + ties + 1);
        from += ties;
    }
    doubled
}

/// The median; `None` of nothing.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    median_of_sorted(&sorted)
}

fn median_of_sorted(sorted: &[f64]) -> Option<f64> {
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n.is_multiple_of(2) => Some(f64::midpoint(sorted[half - 1], sorted[half])),
        _ => Some(sorted[half]),
    }
}

/// Probability that `n` fair coins fall as unevenly as `heads` of them, or more so.
#[must_use]
pub fn coins_p(heads: usize, n: usize) -> f64 {
    let of_heads = distribution(&vec![1; n]);
    let distance = |heads: usize| (2 * heads).abs_diff(n);
    of_heads.iter().enumerate().filter(|(h, _)| distance(*h) >= distance(heads)).map(|(_, p)| p).sum::<f64>().min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, pattern by pattern.
    fn by_enumeration(differences: &[f64]) -> f64 {
        let ranks = doubled_ranks(differences);
        let signed = |signs: u32| {
            let of = |(i, d): (usize, &f64)| if d.abs() <= TINY || signs >> i & 1 == 0 { 0 } else { ranks[i] as i64 };
            2 * differences.iter().enumerate().map(of).sum::<i64>()
        };
        let all: i64 = differences.iter().zip(&ranks).filter(|(d, _)| d.abs() > TINY).map(|(_, r)| *r as i64).sum();
        let own = (0..differences.len()).filter(|i| differences[*i] > 0.0).fold(0, |signs, i| signs | 1 << i);
        let far = |signs: u32| (signed(signs) - all).abs();
        let patterns = 1_u32 << differences.len();
        (0..patterns).filter(|signs| far(*signs) >= far(own)).count() as f64 / f64::from(patterns)
    }

    #[test]
    fn p_is_the_part_of_all_patterns_of_signs_that_are_as_far_out() {
        let mut random = lasthop_testing::random::Random(7);
        for round in 0..200 {
            let n = 1 + random.below(12) as usize;
            // Coarse, so that there are ties and zeros.
            let d: Vec<f64> = (0..n).map(|_| (random.share() * 8.0).floor() - 3.0).collect();
            let (p, expected) = (sign_flip_p(&d), by_enumeration(&d));
            assert!((p - expected).abs() < 1e-12, "round {round}: {p} and not {expected} of {d:?}");
        }
    }

    #[test]
    fn p_is_that_of_published_examples() {
        // Hollander, Wolfe and Chicken, table 3.1 (Hamilton depression scale, nine patients): T+ = 5, one-sided P = 0.020.
        let before = [1_830, 500, 1_620, 2_480, 1_680, 1_880, 1_550, 3_060, 1_300].map(f64::from);
        let after = [878, 647, 598, 2_050, 1_060, 1_290, 1_060, 3_140, 1_290].map(f64::from);
        let d: Vec<f64> = after.iter().zip(before).map(|(after, before)| (after - before) / 1e3).collect();
        assert!((sign_flip_p(&d) - 0.0390625).abs() < 1e-9, "{}", sign_flip_p(&d));
        // Their example 3.3: the estimate is -0.46, the interval of level 96.1 % (-0.786, -0.010).
        let estimate = hodges_lehmann(&d).unwrap();
        assert!((estimate.middle + 0.46).abs() < 1e-9, "{estimate:?}");
        assert!((estimate.low + 0.786).abs() < 1e-9 && (estimate.high + 0.010).abs() < 1e-9, "{estimate:?}");
        assert!((estimate.level - 0.9609375).abs() < 1e-9, "{estimate:?}");
    }

    #[test]
    fn critical_values_are_those_of_the_tables() {
        // Least sums of Wilcoxon's table at 5 %, two-sided: significant at W <= 0, 2, 3, 5, 8, 10, 13, ... 52, 137.
        for (n, critical) in [(6, 0), (7, 2), (8, 3), (9, 5), (10, 8), (11, 10), (12, 13), (20, 52), (30, 137)] {
            let (k, level) = order(n).unwrap();
            assert_eq!(k - 1, critical, "{n} pairs");
            assert!((0.95..0.97).contains(&level), "{level}");
        }
        assert_eq!(order(5), None, "of five pairs nothing can be said");
    }

    #[test]
    fn the_interval_leaves_out_nothing_exactly_where_the_test_finds_something() {
        let mut random = lasthop_testing::random::Random(11);
        for _ in 0..500 {
            let n = 6 + random.below(15) as usize;
            let shift = random.share() - 0.5;
            let d: Vec<f64> = (0..n).map(|_| random.share() - 0.5 + shift).collect();
            let estimate = hodges_lehmann(&d).unwrap();
            let is_out = estimate.low > 0.0 || estimate.high < 0.0;
            assert_eq!(is_out, sign_flip_p(&d) <= 0.05, "{d:?}");
        }
    }

    #[test]
    fn many_pairs_are_no_harder_and_nothing_is_no_difference() {
        let d: Vec<f64> = (0..720).map(|i| f64::from(i % 7) - 1.0).collect();
        assert!(sign_flip_p(&d) < 1e-9);
        assert!(hodges_lehmann(&d).unwrap().level < 0.951);
        assert_eq!((sign_flip_p(&[]), sign_flip_p(&[0.0; 12])), (1.0, 1.0));
        assert_eq!(hodges_lehmann(&[0.0; 5]), None);
    }

    #[test]
    fn coins_that_fall_alike_are_told_from_those_that_do_not() {
        assert_eq!(coins_p(0, 6), 2.0 / 64.0);
        assert_eq!((coins_p(3, 6), coins_p(0, 0)), (1.0, 1.0));
    }
}
