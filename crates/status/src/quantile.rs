//! Quantiles of a histogram of waiting times, and the histogram of a span of time.

use super::WaitingStatus;

/// Buckets are so many times as wide as the one before: eight an octave.
const RATIO: f64 = 1.090_507_732_665_257_7;

impl WaitingStatus {
    /// What waited between `before` and now. Where counters fell, the controller is another one: all that it has.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        if before.count > self.count {
            return self.clone();
        }
        let was = |upper: &Option<f64>| before.buckets.iter().find(|(bound, _)| bound == upper).map_or(0, |(_, n)| *n);
        let left = self.buckets.iter().map(|(upper, n)| (*upper, n.saturating_sub(was(upper))));
        Self {
            place: self.place.clone(),
            count: self.count - before.count,
            sum_ms: self.sum_ms - before.sum_ms,
            buckets: left.filter(|(_, n)| *n > 0).collect(),
        }
    }

    /// The wait that this part of all does not exceed, ms: within a bucket evenly in its logarithm. `None` of nothing; of what is longer
    /// than all bounds, the longest bound.
    #[must_use]
    pub fn quantile(&self, part: f64) -> Option<f64> {
        let all: u64 = self.buckets.iter().map(|(_, n)| n).sum();
        let mut left = part.clamp(0.0, 1.0) * all as f64;
        let mut longest = 0.0;
        for (upper, n) in &self.buckets {
            let Some(upper) = upper else { break };
            longest = *upper;
            let n = *n as f64;
            if left <= n && n > 0.0 {
                // The first bucket begins at nothing: as if it were as wide as the others.
                return Some(upper * RATIO.powf(left / n - 1.0));
            }
            left -= n;
        }
        (all > 0).then_some(longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(buckets: &[(Option<f64>, u64)]) -> WaitingStatus {
        let count = buckets.iter().map(|(_, n)| n).sum();
        WaitingStatus { place: "all".to_owned(), count, sum_ms: 0.0, buckets: buckets.to_vec() }
    }

    #[test]
    fn a_quantile_is_in_the_bucket_that_it_falls_into() {
        let waits = waits(&[(Some(1.0), 90), (Some(8.0), 10), (None, 0)]);
        assert_eq!(waits.quantile(0.9), Some(1.0));
        assert_eq!(waits.quantile(1.0), Some(8.0));
        let middle = waits.quantile(0.95).unwrap();
        assert!((middle - 8.0 / RATIO.sqrt()).abs() < 1e-9, "{middle}");
    }

    #[test]
    fn of_nothing_there_is_no_quantile_and_of_the_longest_waits_the_longest_bound() {
        assert_eq!(waits(&[]).quantile(0.5), None);
        assert_eq!(waits(&[(Some(4_096.0), 1), (None, 9)]).quantile(0.95), Some(4_096.0));
    }

    #[test]
    fn a_span_of_time_is_a_difference_and_another_controller_begins_anew() {
        let (before, now) = (waits(&[(Some(1.0), 5)]), waits(&[(Some(1.0), 5), (Some(2.0), 3)]));
        assert_eq!(now.since(&before).buckets, [(Some(2.0), 3)]);
        assert_eq!(before.since(&now), before);
    }
}
