//! Spans counted in log-linear buckets: quantiles of any number of samples in bounded memory.
//!
//! An octave `[2^k, 2^(k+1))` ns is cut into 1024 equal buckets, so that a quantile is within 1/1024 of the true
//! sample; octaves are allocated when first met (4 KiB each, at most 55). Count, minimum, maximum and mean are exact.

use crate::units::Span;

/// Buckets of one octave.
const SUB: usize = 1024;
const SUB_BITS: u32 = SUB.trailing_zeros();
/// Octave 0 holds the values below `SUB` exactly; the others double up to 2^64.
const OCTAVES: usize = 64 - SUB_BITS as usize + 1;

/// See the module.
#[derive(Clone, Debug)]
pub struct Histogram {
    octaves: [Option<Box<[u32; SUB]>>; OCTAVES],
    count: u64,
    sum_ns: u128,
    min: Span,
    max: Span,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { octaves: [const { None }; OCTAVES], count: 0, sum_ns: 0, min: Span::MAX, max: Span::ZERO }
    }
}

/// Octave and bucket of a value.
fn place(ns: u64) -> (usize, usize) {
    if ns < SUB as u64 {
        return (0, ns as usize);
    }
    let shift = 63 - ns.leading_zeros() - SUB_BITS;
    (shift as usize + 1, (ns >> shift) as usize - SUB)
}

/// The middle of a bucket, ns.
fn middle(octave: usize, bucket: usize) -> u64 {
    if octave == 0 {
        return bucket as u64;
    }
    let shift = octave - 1;
    (((SUB + bucket) as u64) << shift) + (1u64 << shift) / 2
}

impl Histogram {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts one sample.
    pub fn record(&mut self, sample: Span) {
        let (octave, bucket) = place(sample.as_nanos());
        let counts = self.octaves[octave].get_or_insert_with(|| Box::new([0; SUB]));
        counts[bucket] = counts[bucket].saturating_add(1);
        self.count += 1;
        self.sum_ns += u128::from(sample.as_nanos());
        self.min = self.min.min(sample);
        self.max = self.max.max(sample);
    }

    /// Number of samples.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Smallest sample, exact.
    #[must_use]
    pub fn min(&self) -> Option<Span> {
        (self.count > 0).then_some(self.min)
    }

    /// Largest sample, exact.
    #[must_use]
    pub fn max(&self) -> Option<Span> {
        (self.count > 0).then_some(self.max)
    }

    /// Mean, exact but for rounding to a nanosecond.
    #[must_use]
    pub fn mean(&self) -> Option<Span> {
        (self.count > 0).then(|| Span::from_nanos((self.sum_ns / u128::from(self.count)) as u64))
    }

    /// The smallest value with at least `q` of the samples at or below it, `q` in 0..=1.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<Span> {
        let rank = (libm::ceil(q * self.count as f64) as u64).clamp(1, self.count.max(1));
        if rank == self.count {
            return Some(self.max);
        }
        let mut below = 0;
        let occupied = self.octaves.iter().enumerate().filter_map(|(k, o)| Some((k, o.as_ref()?)));
        for (octave, counts) in occupied {
            for (bucket, n) in counts.iter().enumerate() {
                below += u64::from(*n);
                if *n > 0 && below >= rank {
                    return Some(Span::from_nanos(middle(octave, bucket)).clamp(self.min, self.max));
                }
            }
        }
        None
    }

    /// Share of samples at or below `limit`, 0..=1, to within one bucket; `None` without samples.
    #[must_use]
    pub fn share_within(&self, limit: Span) -> Option<f64> {
        let last = place(limit.as_nanos());
        let within: u64 = self
            .octaves
            .iter()
            .enumerate()
            .filter_map(|(k, o)| Some((k, o.as_ref()?)))
            .flat_map(|(k, counts)| counts.iter().enumerate().map(move |(b, n)| ((k, b), u64::from(*n))))
            .filter(|(at, _)| *at <= last)
            .map(|(_, n)| n)
            .sum();
        (self.count > 0).then(|| within as f64 / self.count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_empty_histogram_has_no_figures() {
        let h = Histogram::new();
        assert_eq!(
            (h.min(), h.max(), h.mean(), h.quantile(0.5), h.share_within(Span::MAX)),
            (None, None, None, None, None)
        );
    }

    #[test]
    fn the_largest_value_has_its_place() {
        let mut h = Histogram::new();
        h.record(Span::MAX);
        h.record(Span::ZERO);
        assert_eq!(h.quantile(1.0), Some(Span::MAX));
        assert_eq!(h.quantile(0.5), Some(Span::ZERO));
    }

    proptest! {
        #[test]
        fn a_quantile_is_within_one_part_in_1024_of_the_sorted_sample(
            mut samples in prop::collection::vec(0u64..10_000_000_000, 1..300), q in 0.0f64..=1.0,
        ) {
            let mut h = Histogram::new();
            samples.iter().for_each(|s| h.record(Span::from_nanos(*s)));
            samples.sort_unstable();
            let rank = (libm::ceil(q * samples.len() as f64) as usize).clamp(1, samples.len());
            let truth = samples[rank - 1];
            let found = h.quantile(q).unwrap().as_nanos();
            prop_assert!(found.abs_diff(truth) <= truth / 1024 + 1, "{found} for {truth}");
        }
    }
}
