//! What is known of one rate, in units of 1/4096.

/// Certainty.
pub(super) const ONE: u32 = 1 << 12;
/// Of the filter: `a1 = exp(-pi sqrt(2) / 16)`, c2 = 2 a1 cos(sqrt(2) 2 pi / 16), c3 = -a1^2; as Linux rounds them.
const C2: i64 = 0x1499;
const C3: i64 = -0x092e;
const C1: i64 = ONE as i64 - C2 - C3;

/// A fraction.
pub(super) fn frac(part: u32, of: u32) -> u32 {
    (u64::from(part) * u64::from(ONE) / u64::from(of.max(1))) as u32
}

/// A quarter new.
pub(super) fn ewma(old: u32, new: u32) -> u32 {
    (i64::from(old) + (128 - 96) * (i64::from(new) - i64::from(old)) / 128) as u32
}

/// Of one rate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RateStats {
    /// MPDUs since the last update, each as often as it was sent.
    pub(super) attempts: u32,
    /// Of these, arrived.
    pub(super) successes: u32,
    /// The filter's last two values; 0: none yet.
    filtered: [u32; 2],
    attempted: u64,
    succeeded: u64,
    /// Updates since it was last tried.
    without: u32,
}

impl RateStats {
    /// Takes in what was sent since the last time, as before Linux 5.12: an average that moves by a quarter.
    pub(super) fn fold_average(&mut self) {
        if self.attempts == 0 {
            self.without = self.without.saturating_add(1);
            return;
        }
        let sample = frac(self.successes, self.attempts);
        let value = if self.attempted == 0 { sample } else { ewma(self.filtered[0], sample) };
        self.filtered[0] = value;
        self.without = 0;
        self.attempted += u64::from(self.attempts);
        self.succeeded += u64::from(self.successes);
        (self.attempts, self.successes) = (0, 0);
    }

    /// Updates since it was last tried.
    pub(super) fn updates_without(&self) -> u32 {
        self.without
    }

    /// Takes in what was sent since the last time, as since 5.12. `faster`: the best probability of the faster rates of the group, which
    /// grows with this one's, or stands for it where it was never tried.
    pub(super) fn fold(&mut self, faster: &mut u32) {
        if self.attempts > 0 {
            self.filter(frac(self.successes, self.attempts));
            self.attempted += u64::from(self.attempts);
            self.succeeded += u64::from(self.successes);
            (self.attempts, self.successes) = (0, 0);
        }
        let known = self.filtered[0].max(*faster);
        if self.attempted > 0 { *faster = known } else { self.filtered[0] = known }
    }

    fn filter(&mut self, sample: u32) {
        let sample = i64::from(sample.max(1));
        let [last, before] = self.filtered.map(i64::from);
        if last == 0 {
            self.filtered = [sample as u32; 2];
            return;
        }
        let value = (C1 * sample + C2 * last + C3 * before) >> 12;
        let value = if value < 0 { 1 } else { value.min(i64::from(ONE)) };
        self.filtered = [value as u32, last as u32];
    }

    /// That an MPDU arrives.
    pub(super) fn probability(&self) -> u32 {
        self.filtered[0]
    }

    pub(super) fn all_attempts(&self) -> u64 {
        self.attempted + u64::from(self.attempts)
    }

    pub(super) fn all_successes(&self) -> u64 {
        self.succeeded + u64::from(self.successes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(successes: &[u32]) -> Vec<u32> {
        let mut stats = RateStats::default();
        let each = successes.iter().map(|arrived| {
            (stats.attempts, stats.successes) = (100, *arrived);
            stats.fold(&mut 0);
            stats.probability()
        });
        each.collect()
    }

    #[test]
    fn the_filter_is_the_low_pass_that_its_constants_describe() {
        use std::f64::consts::{PI, SQRT_2};
        let a1 = (-PI * SQRT_2 / 16.0).exp();
        let [c2, c3] = [2.0 * a1 * (SQRT_2 * 2.0 * PI / 16.0).cos(), -a1 * a1];
        assert!((C2 as f64 / 4096.0 - c2).abs() < 1e-3, "{c2}");
        assert!((C3 as f64 / 4096.0 - c3).abs() < 1e-3, "{c3}");
        // Gain 1 at rest, and the step of a second-order filter: past the goal and back.
        let path = after(&[&[50; 5][..], &[80; 60][..]].concat());
        let goal = frac(80, 100);
        assert_eq!(path[4], frac(50, 100));
        assert!(path.iter().copied().max().unwrap() > goal + 20);
        assert!(path[64].abs_diff(goal) < 20, "{}", path[64]);
    }

    #[test]
    fn the_first_figure_is_taken_as_it_is_and_none_is_not_zero() {
        assert_eq!(after(&[25]), [frac(1, 4)]);
        assert_eq!(after(&[0]), [1]);
        assert!(after(&[100, 0, 0, 0, 0, 0, 0, 0, 0]).iter().all(|p| *p <= ONE));
    }

    #[test]
    fn a_rate_never_tried_is_as_good_as_the_best_faster_one() {
        let (mut fast, mut slow, mut best) = (RateStats::default(), RateStats::default(), 0);
        (fast.attempts, fast.successes) = (10, 7);
        fast.fold(&mut best);
        slow.fold(&mut best);
        assert_eq!(slow.probability(), frac(7, 10));
        assert_eq!(slow.all_attempts(), 0);
    }

    #[test]
    fn an_average_moves_by_a_quarter() {
        assert_eq!(ewma(ONE, 9 * ONE), 3 * ONE);
        assert_eq!(ewma(8 * ONE, 4 * ONE), 7 * ONE);
    }
}
