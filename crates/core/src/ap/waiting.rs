//! Histograms of waiting times: what was added to the paths of those who send all the time, by direction and place.
//!
//! Buckets are spaced evenly in the logarithm, eight an octave (each 9 % wider than the one before), from 0.25 ms to 4 s: a
//! quantile of them errs by less than a twentieth. Counts only grow, so that the histogram of any span of time is the difference of two.
//!
//! An interval counts once. In a queue that is deeper than an interval no round trip ends in some of them: what was measured last counts on
//! for as long as it says that packets wait, for after that time they have left and tell of it.

use super::QueuePlace;
use crate::units::Span;

/// Upper bound of the first bucket.
pub const FIRST: Span = Span::from_micros(250);
/// Buckets in an octave.
pub const PER_OCTAVE: usize = 8;
/// Buckets with an upper bound; the last of those is 4.096 s.
pub const BOUNDED: usize = 14 * PER_OCTAVE + 1;

/// Waiting times at one place.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    counts: [u64; BOUNDED + 1],
    count: u64,
    sum: Span,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: [0; BOUNDED + 1], count: 0, sum: Span::ZERO }
    }
}

impl Histogram {
    /// One more wait.
    pub fn on_wait(&mut self, wait: Span) {
        self.counts[bucket(wait)] += 1;
        self.count += 1;
        self.sum += wait;
    }

    /// Number of waits.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Their sum.
    #[must_use]
    pub const fn sum(&self) -> Span {
        self.sum
    }

    /// Buckets that are not empty, the shortest waits first: upper bound (`None`: longer than all), and number of waits.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<Span>, u64)> {
        self.counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(i, count)| (upper(i), *count))
    }
}

/// Upper bound of a bucket, which belongs to it; `None` of the last.
fn upper(bucket: usize) -> Option<Span> {
    (bucket < BOUNDED).then(|| FIRST.mul_f64((bucket as f64 / PER_OCTAVE as f64).exp2()))
}

fn bucket(wait: Span) -> usize {
    if wait <= FIRST {
        return 0;
    }
    let octaves = (wait.as_secs_f64() / FIRST.as_secs_f64()).log2();
    let near = (octaves * PER_OCTAVE as f64).ceil() as usize;
    // Bounds are rounded to nanoseconds, and so is what is compared with them.
    let near = near.min(BOUNDED);
    if near > 0 && upper(near - 1).is_some_and(|below| wait <= below) { near - 1 } else { near }
}

/// The queues that data of one direction met in an interval, each mean, s; `None`: not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Queued {
    pub(super) hop: Option<f64>,
    pub(super) wan: Option<f64>,
}

/// Waiting times of one direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waiting {
    all: Histogram,
    places: [Histogram; 3],
    /// What was measured last of the hop and of the WAN link, s, and how long ago, s.
    last: [Option<(f64, f64)>; 2],
}

/// In the order of [`Waiting::place`].
const PLACES: [QueuePlace; 3] = [QueuePlace::AccessPoint, QueuePlace::Firmware, QueuePlace::Wan];

impl Waiting {
    /// An interval of `dt`, s; `own`: of what waits at the hop most is in the access point's own queue.
    pub(super) fn on_interval(&mut self, queued: Queued, own: bool, dt: f64) {
        for (last, queue) in self.last.iter_mut().zip([queued.hop, queued.wan]) {
            let still = |(wait, ago): (f64, f64)| (ago + dt <= wait).then_some((wait, ago + dt));
            *last = queue.map(|wait| (wait.max(0.0), 0.0)).or(last.and_then(still));
        }
        let hop = if own { QueuePlace::AccessPoint } else { QueuePlace::Firmware };
        let known = self.last.map(|last| last.map(|(wait, _)| wait));
        for (place, wait) in [hop, QueuePlace::Wan].into_iter().zip(known) {
            if let Some(wait) = wait {
                self.places[index(place)].on_wait(Span::from_secs_f64(wait));
            }
        }
        if let Some(all) = known.into_iter().flatten().reduce(|a, b| a + b) {
            self.all.on_wait(Span::from_secs_f64(all));
        }
    }

    /// At one place.
    #[must_use]
    pub fn place(&self, place: QueuePlace) -> &Histogram {
        &self.places[index(place)]
    }

    /// At all places together.
    #[must_use]
    pub const fn all(&self) -> &Histogram {
        &self.all
    }

    /// By name of the place, `all` first; those where nothing was ever measured are left out.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, &Histogram)> {
        let places = PLACES.into_iter().map(|place| (place.name(), self.place(place)));
        std::iter::once(("all", &self.all)).chain(places).filter(|(_, histogram)| histogram.count > 0)
    }
}

fn index(place: QueuePlace) -> usize {
    match place {
        QueuePlace::AccessPoint => 0,
        QueuePlace::Firmware => 1,
        QueuePlace::Wan => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Half open from below: (bound before, bound], whatever floating point does.
        #[test]
        fn a_wait_is_in_the_bucket_whose_bounds_enclose_it(nanos in 0u64..20_000_000_000) {
            let wait = Span::from_nanos(nanos);
            let at = bucket(wait);
            prop_assert!(upper(at).is_none_or(|upper| wait <= upper), "{nanos} in {at}");
            prop_assert!(at == 0 || upper(at - 1).is_some_and(|below| wait > below), "{nanos} in {at}");
        }
    }

    #[test]
    fn bounds_are_in_their_own_buckets_and_the_last_is_four_seconds() {
        for i in 0..BOUNDED {
            assert_eq!(bucket(upper(i).unwrap()), i);
        }
        assert_eq!(upper(BOUNDED - 1), Some(Span::from_micros(4_096_000)));
        assert_eq!((bucket(Span::ZERO), bucket(Span::from_secs(60)), upper(BOUNDED)), (0, BOUNDED, None));
    }

    #[test]
    fn a_queue_deeper_than_an_interval_counts_in_those_without_a_measurement_and_no_longer_than_it_is() {
        let mut waiting = Waiting::default();
        waiting.on_interval(Queued { hop: Some(0.2), wan: None }, true, 0.05);
        for _ in 0..20 {
            // The other half tells of nothing: the sum is of both all the same.
            waiting.on_interval(Queued { hop: None, wan: Some(0.0) }, true, 0.05);
        }
        let own: Vec<_> = waiting.place(QueuePlace::AccessPoint).buckets().map(|(_, n)| n).collect();
        let all: Vec<_> = waiting.all().buckets().map(|(_, n)| n).collect();
        assert_eq!((own, all), (vec![5], vec![16, 5]));
    }

    #[test]
    fn an_interval_counts_once_at_each_place_that_was_measured_and_once_for_all() {
        let mut waiting = Waiting::default();
        waiting.on_interval(Queued::default(), false, 0.05);
        assert_eq!(waiting.named().count(), 0);
        waiting.on_interval(Queued { hop: Some(0.004), wan: Some(0.006) }, true, 0.05);
        // What is shorter than the path was is no wait.
        waiting.on_interval(Queued { hop: Some(-0.001), wan: None }, false, 0.05);
        let counts: Vec<_> = waiting.named().map(|(name, at)| (name, at.count(), at.sum())).collect();
        let expected = [("all", 2, 10), ("access-point", 1, 4), ("firmware", 1, 0), ("wan", 1, 6)];
        assert_eq!(counts, expected.map(|(name, count, ms)| (name, count, Span::from_millis(ms))));
    }
}
