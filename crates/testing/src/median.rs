//! Real runs beside a model: one says little on a busy machine, so that what all of them say has to differ by more than chance.

/// How often a home is played with real kernels before what they say counts as different.
pub const RUNS: usize = 5;

/// So many valid runs enclose their median 7 of 8 times.
pub const ENOUGH: usize = 4;

/// The middle of a few figures, and where the middle of all that could have been measured lies.
#[derive(Clone, Copy, Debug)]
pub struct Median {
    /// The middle one.
    pub value: f64,
    /// Most likely the true one is at least this.
    pub low: f64,
    /// And at most this.
    pub high: f64,
}

impl Median {
    /// The middle figure, or what lies between the middle two. Its interval is the sign test's, which asks nothing of the
    /// distribution: each figure is below the true median with one half, so that the k-th from either end encloses it unless
    /// fewer than k of the n figures fell on one side. It holds at least 93 of 100 times, the most that five figures can say
    /// (their least and their largest: 1 - 2 / 2^5), and less of fewer.
    #[must_use]
    pub fn of(mut metrics: Vec<f64>) -> Self {
        metrics.sort_by(f64::total_cmp);
        let n = metrics.len();
        let (mut outside, mut term, mut k) = (0.0, 0.5f64.powi(n as i32), 0);
        while 2.0 * (outside + term) <= 0.07 {
            outside += term;
            term *= (n - k) as f64 / (k + 1) as f64;
            k += 1;
        }
        let from_end = k.saturating_sub(1);
        Self {
            value: f64::midpoint(metrics[(n - 1) / 2], metrics[n / 2]),
            low: metrics[from_end],
            high: metrics[n - 1 - from_end],
        }
    }

    /// How far apart two are.
    #[must_use]
    pub fn apart(self, other: Self) -> f64 {
        (self.value - other.value).abs()
    }

    /// How far apart they are beyond what chance explains: the gap between the intervals.
    #[must_use]
    pub fn surely_apart(self, other: Self) -> f64 {
        (self.low - other.high).max(other.low - self.high).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_chance_explains_is_no_difference_and_a_shift_is_one() {
        let simulated = Median::of(vec![39.1, 39.9, 40.1, 40.4, 40.7, 40.9, 41.0, 41.1, 41.3]);
        // Five real runs of a busy machine, one of them all otherwise, and the same ones three milliseconds further off.
        let busy = [24.6, 40.7, 39.5, 39.7, 39.3];
        assert!(simulated.apart(Median::of(busy.to_vec())) > 1.0);
        assert!(simulated.surely_apart(Median::of(busy.to_vec())) < 1.0);
        assert!(simulated.surely_apart(Median::of(busy.map(|p95| p95 - 3.0).to_vec())) > 1.0);
        // Three that lie close together by chance say nothing of how far five spread.
        let close = [38.8, 38.9, 39.0, 39.4, 40.3];
        assert!(simulated.surely_apart(Median::of(close.to_vec())) < 1.0);
        // Ranks of the sign test: 8 and 18 of 25, 1 and 5 of 5 (tables of the binomial distribution).
        let ranks = |n: usize| {
            (Median::of((1..=n).map(|r| r as f64).collect()).low, Median::of((1..=n).map(|r| r as f64).collect()).high)
        };
        assert_eq!((ranks(25), ranks(5), ranks(8)), ((8.0, 18.0), (1.0, 5.0), (1.0, 8.0)));
    }
}
