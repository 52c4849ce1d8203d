//! Spans counted in log-linear buckets: quantiles of any number of samples in bounded memory.
//!
//! An octave `[2^k, 2^(k+1))` ns is cut into 1024 equal buckets, so that a quantile is within 1/1024 of the true
//! sample; octaves are allocated when first met (4 KiB each, at most 55). Count, minimum, maximum and mean are exact.
//! Samples are kept as they are until 64 have come together: many histograms filled in turn (the queue of every station
//! of a simulation) would otherwise fetch another page of buckets from memory for every packet.

use std::borrow::Cow;

use crate::units::Span;

/// Buckets of one octave.
const SUB: usize = 1024;
const SUB_BITS: u32 = SUB.trailing_zeros();
/// Octave 0 holds the values below `SUB` exactly; the others double up to 2^64.
const OCTAVES: usize = 64 - SUB_BITS as usize + 1;
/// Samples kept as they are.
const RECENT: usize = 64;
/// In place of a page: no sample fell into the octave yet.
const NO_PAGE: u8 = u8::MAX;

/// See the module. Small, since it stands among what is touched for every packet.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    /// Samples that are not in `sorted` yet.
    recent: Vec<Span>,
    /// Samples of zero, not in `sorted` either: packets that wait for nothing are so many that they are only counted.
    zeros: u64,
    sorted: Box<Sorted>,
}

/// Samples in their buckets.
#[derive(Clone, Debug)]
struct Sorted {
    count: u64,
    sum_ns: u128,
    min: Span,
    max: Span,
    /// `pages[page_of[octave] * SUB + bucket]`: samples there.
    pages: Vec<u32>,
    page_of: [u8; OCTAVES],
}

impl Default for Sorted {
    fn default() -> Self {
        Self { count: 0, sum_ns: 0, min: Span::MAX, max: Span::ZERO, pages: Vec::new(), page_of: [NO_PAGE; OCTAVES] }
    }
}

/// Octave and bucket of a value.
#[inline]
fn place(ns: u64) -> (usize, usize) {
    // Octaves 0 and 1 have buckets of 1 ns, hence the shift of zero for both.
    let shift = 63 - SUB_BITS - (ns | SUB as u64).leading_zeros();
    let at = ((shift as usize) << SUB_BITS) + (ns >> shift) as usize;
    (at / SUB, at % SUB)
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
    #[inline]
    pub fn record(&mut self, sample: Span) {
        self.recent.push(sample);
        if self.recent.len() == RECENT {
            self.sort_in();
        }
    }

    /// Counts one sample so many times.
    #[inline]
    pub fn record_times(&mut self, sample: Span, times: u32) {
        if times == 1 {
            return self.record(sample);
        }
        self.sorted.add_times(sample, times);
    }

    /// Counts one sample of zero.
    #[inline]
    pub fn record_zero(&mut self) {
        self.zeros += 1;
    }

    /// Counts the recent samples into their buckets.
    #[inline(never)]
    fn sort_in(&mut self) {
        self.sorted.add(&self.recent);
        self.recent.clear();
    }

    /// All samples in their buckets.
    fn sorted(&self) -> Cow<'_, Sorted> {
        if self.recent.is_empty() && self.zeros == 0 {
            return Cow::Borrowed(&self.sorted);
        }
        let mut sorted = self.sorted.clone();
        sorted.add(&self.recent);
        sorted.add_zeros(self.zeros);
        Cow::Owned(*sorted)
    }

    /// Number of samples.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.sorted.count + self.zeros + self.recent.len() as u64
    }

    /// Smallest sample, exact.
    #[must_use]
    pub fn min(&self) -> Option<Span> {
        let least = if self.zeros > 0 { Span::ZERO } else { self.sorted.min };
        (self.count() > 0).then_some(self.recent.iter().copied().fold(least, Span::min))
    }

    /// Largest sample, exact.
    #[must_use]
    pub fn max(&self) -> Option<Span> {
        (self.count() > 0).then_some(self.recent.iter().copied().fold(self.sorted.max, Span::max))
    }

    /// Mean, exact but for rounding to a nanosecond.
    #[must_use]
    pub fn mean(&self) -> Option<Span> {
        (self.count() > 0).then(|| Span::from_nanos((self.sum_ns() / u128::from(self.count())) as u64))
    }

    /// Sum of all samples, ns, exact.
    #[must_use]
    pub fn sum_ns(&self) -> u128 {
        self.sorted.sum_ns + self.recent.iter().map(|sample| u128::from(sample.as_nanos())).sum::<u128>()
    }

    /// The smallest value with at least `q` of the samples at or below it, `q` in 0..=1.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<Span> {
        self.sorted().quantile(q)
    }

    /// Share of samples at or below `limit`, 0..=1, to within one bucket; `None` without samples.
    #[must_use]
    pub fn share_within(&self, limit: Span) -> Option<f64> {
        self.sorted().share_within(limit)
    }
}

impl Sorted {
    fn add(&mut self, samples: &[Span]) {
        let (mut sum_ns, mut min, mut max) = (0, self.min, self.max);
        for sample in samples {
            self.count_in(*sample, 1);
            sum_ns += u128::from(sample.as_nanos());
            min = min.min(*sample);
            max = max.max(*sample);
        }
        self.count += samples.len() as u64;
        self.sum_ns += sum_ns;
        (self.min, self.max) = (min, max);
    }

    #[inline(never)]
    fn add_times(&mut self, sample: Span, times: u32) {
        if times == 0 {
            return;
        }
        self.count_in(sample, times);
        self.count += u64::from(times);
        self.sum_ns += u128::from(sample.as_nanos()) * u128::from(times);
        (self.min, self.max) = (self.min.min(sample), self.max.max(sample));
    }

    fn add_zeros(&mut self, zeros: u64) {
        if zeros > 0 {
            self.count_in(Span::ZERO, u32::try_from(zeros).unwrap_or(u32::MAX));
            self.count += zeros;
            self.min = Span::ZERO;
        }
    }

    #[inline]
    fn count_in(&mut self, sample: Span, times: u32) {
        let (octave, bucket) = place(sample.as_nanos());
        let page = usize::from(self.page_of[octave]);
        match self.pages.get_mut(page * SUB + bucket) {
            Some(samples) => *samples = samples.saturating_add(times),
            None => self.open(octave, bucket, times),
        }
    }

    /// The first sample of an octave.
    #[cold]
    fn open(&mut self, octave: usize, bucket: usize, times: u32) {
        let page = self.pages.len() / SUB;
        self.page_of[octave] = page as u8;
        self.pages.resize((page + 1) * SUB, 0);
        self.pages[page * SUB + bucket] = times;
    }

    /// Octaves with samples, smallest first, and the samples in their buckets.
    fn octaves(&self) -> impl Iterator<Item = (usize, &[u32])> {
        let page = |at: u8| (at != NO_PAGE).then(|| &self.pages[usize::from(at) * SUB..][..SUB]);
        self.page_of.iter().enumerate().filter_map(move |(octave, at)| Some((octave, page(*at)?)))
    }

    fn quantile(&self, q: f64) -> Option<Span> {
        let rank = (libm::ceil(q * self.count as f64) as u64).clamp(1, self.count.max(1));
        if rank == self.count {
            return Some(self.max);
        }
        let mut below = 0;
        for (octave, counts) in self.octaves() {
            for (bucket, n) in counts.iter().enumerate() {
                below += u64::from(*n);
                if *n > 0 && below >= rank {
                    return Some(Span::from_nanos(middle(octave, bucket)).clamp(self.min, self.max));
                }
            }
        }
        None
    }

    fn share_within(&self, limit: Span) -> Option<f64> {
        let last = place(limit.as_nanos());
        let buckets = |(k, counts): (usize, &[u32])| {
            let within = counts.iter().enumerate().filter(|(b, _)| (k, *b) <= last);
            within.map(|(_, n)| u64::from(*n)).sum::<u64>()
        };
        let within: u64 = self.octaves().map(buckets).sum();
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

    #[test]
    fn every_octave_begins_where_the_one_below_ends() {
        assert_eq!((place(0), place(1023), place(1024)), ((0, 0), (0, 1023), (1, 0)));
        assert_eq!((place(2047), place(2048), place(2050)), ((1, 1023), (2, 0), (2, 1)));
        assert_eq!(place(u64::MAX), (OCTAVES - 1, SUB - 1));
    }

    #[test]
    fn figures_are_the_same_before_and_after_samples_are_sorted_in() {
        let mut h = Histogram::new();
        for n in 1..=200u64 {
            h.record(Span::from_nanos(n));
            let middle = Span::from_nanos(n.div_ceil(2));
            assert_eq!((h.count(), h.quantile(0.5), h.mean()), (n, Some(middle), Some(middle)));
            assert_eq!((h.min(), h.max()), (Some(Span::from_nanos(1)), Some(Span::from_nanos(n))));
            assert_eq!(h.share_within(middle), Some(n.div_ceil(2) as f64 / n as f64));
        }
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
