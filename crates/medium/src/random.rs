//! Named streams of one named algorithm, so that a seed gives the same run on every machine.
//!
//! xoshiro256** (Blackman and Vigna, 2018), its four words filled by splitmix64 (Steele et al., 2014) from
//! `splitmix64(seed) xor fnv1a64(name)`. Every component draws from a stream of its own name, so that one component's
//! draws never move another's. Transcendental functions come from `libm`, not from the platform.

use std::ops::Range;

use lasthop_core::aqm::Discipline;

/// One stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream {
    state: [u64; 4],
}

fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn fnv1a64(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

impl Stream {
    /// The stream `name` of the run with this seed.
    #[must_use]
    pub fn named(seed: u64, name: &str) -> Self {
        let mut mixed = seed;
        let mut fill = splitmix64(&mut mixed) ^ fnv1a64(name);
        Self { state: std::array::from_fn(|_| splitmix64(&mut fill)) }
    }

    /// The same for one of many of a kind: the stream `name.number`.
    #[must_use]
    pub fn numbered(seed: u64, name: &str, number: u16) -> Self {
        Self::named(seed, &format!("{name}.{number}"))
    }

    /// Uniform over all of `u64`.
    #[inline]
    pub fn u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform over `[0, 1)`, 53 bits.
    pub fn f64(&mut self) -> f64 {
        (self.u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform over `0..n` without bias (Lemire, 2019); 0 when `n` is 0.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        let mut product = u128::from(self.u64()) * u128::from(n);
        if (product as u64) < n {
            let threshold = n.wrapping_neg() % n;
            while (product as u64) < threshold {
                product = u128::from(self.u64()) * u128::from(n);
            }
        }
        (product >> 64) as u64
    }

    /// Uniform over a range; its start when the range is empty.
    pub fn range(&mut self, range: Range<u64>) -> u64 {
        range.start + self.below(range.end.saturating_sub(range.start))
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.f64() < probability
    }

    /// Exponential with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.f64())
    }

    /// Normal with this mean and standard deviation (Box and Muller, 1958; the sine half is not kept).
    pub fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.f64()));
        mean + deviation * radius * libm::cos(std::f64::consts::TAU * self.f64())
    }
}

/// A node's queue discipline, with the random numbers that it has in the run with this seed.
pub fn seeded(mut discipline: Discipline, seed: u64, number: u16) -> Discipline {
    if let Discipline::Red(red) = &mut discipline {
        red.seed = Stream::numbered(seed, "wifi.red", number).u64();
    }
    discipline
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_gives_the_published_numbers() {
        let mut stream = Stream { state: [1, 2, 3, 4] };
        let first: [u64; 4] = std::array::from_fn(|_| stream.u64());
        assert_eq!(first, [11520, 0, 1_509_978_240, 1_215_971_899_390_074_240]);
        let mut state = 1_234_567;
        assert_eq!(splitmix64(&mut state), 6_457_827_717_110_365_317);
        assert_eq!(splitmix64(&mut state), 3_203_168_211_198_807_973);
        assert_eq!(fnv1a64("a"), 0xaf63_dc4c_8601_ec8c);
    }

    #[test]
    fn streams_differ_by_name_and_by_seed_and_repeat() {
        let first = |seed, name| Stream::named(seed, name).u64();
        assert_eq!(first(1, "backoff"), first(1, "backoff"));
        assert_ne!(first(1, "backoff"), first(2, "backoff"));
        assert_ne!(first(1, "backoff"), first(1, "loss"));
    }

    #[test]
    fn moments_are_right() {
        let mut stream = Stream::named(7, "moments");
        let n = 200_000;
        let mean = |draw: &mut dyn FnMut() -> f64| (0..n).map(|_| draw()).sum::<f64>() / f64::from(n);
        assert!((mean(&mut || stream.f64()) - 0.5).abs() < 0.003);
        assert!((mean(&mut || stream.exponential(3.0)) - 3.0).abs() < 0.03);
        assert!((mean(&mut || stream.normal(2.0, 5.0)) - 2.0).abs() < 0.05);
        assert!((mean(&mut || stream.normal(0.0, 5.0).powi(2)) - 25.0).abs() < 0.4);
        assert!((mean(&mut || stream.below(16) as f64) - 7.5).abs() < 0.05);
    }

    #[test]
    fn a_range_is_never_left() {
        let mut stream = Stream::named(7, "range");
        assert!((0..1000).all(|_| (3..9).contains(&stream.range(3..9))));
        assert_eq!(stream.range(4..4), 4);
        assert_eq!(stream.below(0), 0);
    }
}
