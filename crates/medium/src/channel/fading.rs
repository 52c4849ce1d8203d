//! Slow fading: what passes by, a door, a hand, moves the level of a link by some decibels for some seconds.
//!
//! `x(t + D) = a x(t) + sqrt(1 - a^2) s n`, `a = exp(-D / T)`, n ~ N(0, 1): a Gauss-Markov process of mean 0, standard
//! deviation s \[dB\] and correlation `exp(-t / T)`.
//! Source: M. Gudmundson, "Correlation model for shadow fading in mobile radio systems", Electronics Letters 27 (23),
//! 1991, with time in place of distance.
//!
//! It moves in steps D of a tenth of T, at least 10 and at most 50 ms, never per frame. Each step draws once from a stream of
//! the link, whether a frame wants it or not: traffic never moves the weather.

use lasthop_core::units::{Span, Time};

use crate::random::Stream;

/// How much and how slowly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fading {
    /// Standard deviation, dB.
    pub deviation_db: f64,
    /// Time after which the correlation is 1/e.
    pub correlation: Span,
}

impl Fading {
    /// Between moves.
    #[must_use]
    pub fn step(&self) -> Span {
        let tenth = self.correlation.as_nanos() / 10;
        Span::from_nanos(tenth.clamp(10_000_000, 50_000_000))
    }
}

/// The fading of one link.
#[derive(Clone, Debug)]
pub struct FadingState {
    stream: Stream,
    /// Of the process with deviation 1.
    level: f64,
    next: Time,
}

impl FadingState {
    /// Begins anywhere in its distribution.
    #[must_use]
    pub fn new(mut stream: Stream) -> Self {
        Self { level: stream.normal(0.0, 1.0), stream, next: Time::ZERO }
    }

    /// Takes the steps up to `now`; whether there was one.
    pub fn advance(&mut self, fading: &Fading, now: Time) -> bool {
        if now < self.next {
            return false;
        }
        let step = fading.step();
        let kept = libm::exp(-step.as_secs_f64() / fading.correlation.as_secs_f64().max(1e-3));
        let fresh = libm::sqrt(1.0 - kept * kept);
        while self.next <= now {
            self.level = kept * self.level + self.stream.normal(0.0, fresh);
            self.next += step;
        }
        true
    }

    /// dB above the mean.
    #[must_use]
    pub fn level_db(&self, fading: &Fading) -> f64 {
        self.level * fading.deviation_db
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FADING: Fading = Fading { deviation_db: 4.0, correlation: Span::from_millis(500) };

    fn path(every: Span, n: u64) -> Vec<f64> {
        let mut state = FadingState::new(Stream::named(3, "fading"));
        let moment = |i| Time::ZERO + Span::from_nanos(every.as_nanos() * i);
        (0..n).map(|i| (state.advance(&FADING, moment(i)), state.level_db(&FADING)).1).collect()
    }

    #[test]
    fn deviation_and_correlation_are_those_asked_for() {
        let levels = path(Span::from_millis(50), 200_000);
        let n = levels.len() as f64;
        let mean = levels.iter().sum::<f64>() / n;
        let variance = levels.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        let correlated = |lag: usize| {
            levels.iter().zip(&levels[lag..]).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / n / variance
        };
        assert!(mean.abs() < 0.2, "{mean}");
        assert!((variance.sqrt() - 4.0).abs() < 0.1, "{variance}");
        assert!((correlated(10) - (-1.0f64).exp()).abs() < 0.03, "{}", correlated(10));
        assert!((correlated(20) - (-2.0f64).exp()).abs() < 0.03, "{}", correlated(20));
    }

    #[test]
    fn whoever_looks_less_often_sees_the_same_path() {
        let often = path(Span::from_millis(10), 1000);
        let rarely = path(Span::from_millis(1000), 10);
        for (i, level) in rarely.iter().enumerate() {
            assert_eq!(*level, often[i * 100]);
        }
    }

    #[test]
    fn steps_stay_between_10_and_50_ms() {
        let step = |ms| Fading { correlation: Span::from_millis(ms), ..FADING }.step();
        assert_eq!([step(0), step(250), step(9_000)], [10, 25, 50].map(Span::from_millis));
    }
}
