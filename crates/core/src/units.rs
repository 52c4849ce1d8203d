//! Quantities that carry their unit. Raw numbers cross only at the edge.
//!
//! A quantity is written as a string with a unit (`"20ms"`, `"18Mbit/s"`, `"30KiB"`); `FromStr` reads exactly that
//! form and `Display` writes it back. What people read in passing (a log, a status) is [`Rounded`]: "5.34 ms".

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};
use std::str::FromStr;

/// A point in time: nanoseconds from an arbitrary zero (equal to `bpf_ktime_get_ns` in the live host).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A length of time, never negative, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

/// A rate in bit/s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitRate(u64);

/// A size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

impl Time {
    /// The arbitrary zero.
    pub const ZERO: Self = Self(0);
    /// Later than every other time.
    pub const MAX: Self = Self(u64::MAX);

    /// `nanos` after zero.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since zero.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Time since `earlier`; zero when `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// Longer than every other span.
    pub const MAX: Self = Self(u64::MAX);

    /// From nanoseconds.
    #[must_use]
    pub const fn from_nanos(n: u64) -> Self {
        Self(n)
    }

    /// From microseconds.
    #[must_use]
    pub const fn from_micros(n: u64) -> Self {
        Self(n * 1_000)
    }

    /// From milliseconds.
    #[must_use]
    pub const fn from_millis(n: u64) -> Self {
        Self(n * 1_000_000)
    }

    /// From whole seconds.
    #[must_use]
    pub const fn from_secs(n: u64) -> Self {
        Self(n * 1_000_000_000)
    }

    /// From seconds, rounded to the nearest nanosecond; negative and NaN give zero.
    #[must_use]
    pub fn from_secs_f64(s: f64) -> Self {
        Self((s * 1e9).round() as u64)
    }

    /// In nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// In seconds.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// In milliseconds.
    #[must_use]
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The sum, the longest span when that is longer.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, zero when `other` is longer.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Scaled by a factor, rounded.
    #[must_use]
    pub fn mul_f64(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor).round() as u64)
    }
}

impl BitRate {
    /// A rate of zero.
    pub const ZERO: Self = Self(0);

    /// From bit/s.
    #[must_use]
    pub const fn bps(n: u64) -> Self {
        Self(n)
    }

    /// From Mbit/s (10^6 bit/s).
    #[must_use]
    pub const fn mbps(n: u64) -> Self {
        Self(n * 1_000_000)
    }

    /// From bit/s, rounded; negative and NaN give zero.
    #[must_use]
    pub fn from_bps_f64(bps: f64) -> Self {
        Self(bps.round() as u64)
    }

    /// In bit/s.
    #[must_use]
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// In Mbit/s.
    #[must_use]
    pub fn as_mbps_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// How long `bytes` take at this rate, rounded up to a nanosecond; `Span::MAX` at rate zero.
    #[must_use]
    pub fn time_for(self, bytes: u64) -> Span {
        if self.0 == 0 {
            return Span::MAX;
        }
        let nanos = (u128::from(bytes) * 8_000_000_000).div_ceil(u128::from(self.0));
        Span(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How many whole bytes fit into `span` at this rate.
    #[must_use]
    pub fn bytes_in(self, span: Span) -> u64 {
        let bytes = u128::from(self.0) * u128::from(span.0) / 8_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// The difference, zero when `other` is larger.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Scaled by a factor, rounded.
    #[must_use]
    pub fn mul_f64(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor).round() as u64)
    }
}

impl Add<Span> for Time {
    type Output = Self;
    fn add(self, d: Span) -> Self {
        Self(self.0.saturating_add(d.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, d: Span) {
        *self = *self + d;
    }
}

impl Sub<Span> for Time {
    type Output = Self;
    fn sub(self, d: Span) -> Self {
        Self(self.0.saturating_sub(d.0))
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, d: Self) -> Self {
        Self(self.0.saturating_add(d.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, d: Self) {
        *self = *self + d;
    }
}

impl Sub for Span {
    type Output = Self;
    fn sub(self, d: Self) -> Self {
        self.saturating_sub(d)
    }
}

impl SubAssign for Span {
    fn sub_assign(&mut self, d: Self) {
        *self = *self - d;
    }
}

impl Mul<u64> for Span {
    type Output = Self;
    fn mul(self, n: u64) -> Self {
        Self(self.0.saturating_mul(n))
    }
}

impl Div<u64> for Span {
    type Output = Self;
    fn div(self, n: u64) -> Self {
        Self(self.0 / n)
    }
}

/// A quantity that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is not a {what}; write a number and a unit ({units}), for example `{example}`")]
pub struct ParseQuantityError {
    /// What was expected: "time", "rate", "size".
    pub what: &'static str,
    /// The text that was found instead.
    pub found: String,
    /// Every unit of this kind, with commas between.
    pub units: String,
    /// A valid quantity of this kind.
    pub example: &'static str,
}

impl ParseQuantityError {
    /// `found` is none of the quantities that `what` names and `units` measure.
    #[must_use]
    pub fn new(what: &'static str, found: &str, units: &[(&str, f64)], example: &'static str) -> Self {
        let units = units.iter().map(|(unit, _)| *unit).collect::<Vec<_>>().join(", ");
        Self { what, found: found.to_owned(), units, example }
    }
}

/// Splits `text` into a finite, non-negative number and one of `units`, and returns number x unit.
///
/// Longer units must stand before the units they end with ("Mbit/s" before "bit/s").
pub fn parse_quantity(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    units.iter().find_map(|(unit, factor)| {
        let number = text.strip_suffix(unit)?.trim_end();
        let plain = number.starts_with(|c: char| c.is_ascii_digit())
            && number.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '-' | '+'));
        let value = number.parse::<f64>().ok().filter(|v| plain && v.is_finite() && *v >= 0.0)?;
        Some(value * factor)
    })
}

/// Largest quantity accepted in the base unit, so that sums stay far from the end of `u64`.
const LARGEST: f64 = 1e18;

fn read(
    text: &str,
    units: &[(&str, f64)],
    what: &'static str,
    example: &'static str,
) -> Result<u64, ParseQuantityError> {
    let value = parse_quantity(text, units).filter(|v| *v <= LARGEST);
    value.map(|v| v.round() as u64).ok_or_else(|| ParseQuantityError::new(what, text, units, example))
}

impl FromStr for Span {
    type Err = ParseQuantityError;
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9), ("h", 3600e9), ("d", 86_400e9)];
        read(s, &units, "time", "20ms").map(Self)
    }
}

impl FromStr for BitRate {
    type Err = ParseQuantityError;
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let units = [("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3), ("bit/s", 1.0)];
        read(s, &units, "rate", "18Mbit/s").map(Self)
    }
}

impl Bytes {
    /// What a size may be written in, and how many bytes each is.
    pub const UNITS: [(&str, f64); 7] = [
        ("GiB", 1_073_741_824.0),
        ("MiB", 1_048_576.0),
        ("KiB", 1024.0),
        ("GB", 1e9),
        ("MB", 1e6),
        ("kB", 1e3),
        ("B", 1.0),
    ];
}

impl FromStr for Bytes {
    type Err = ParseQuantityError;
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        read(s, &Self::UNITS, "size", "30KiB").map(Self)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n % 1_000_000_000 == 0 => write!(f, "{}s", n / 1_000_000_000),
            n if n % 1_000_000 == 0 => write!(f, "{}ms", n / 1_000_000),
            n if n % 1_000 == 0 => write!(f, "{}us", n / 1_000),
            n => write!(f, "{n}ns"),
        }
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n >= 1_000_000 => write!(f, "{}Mbit/s", n as f64 / 1e6),
            n if n >= 1_000 => write!(f, "{}kbit/s", n as f64 / 1e3),
            n => write!(f, "{n}bit/s"),
        }
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n != 0 && n % 1_048_576 == 0 => write!(f, "{}MiB", n / 1_048_576),
            n if n != 0 && n % 1024 == 0 => write!(f, "{}KiB", n / 1024),
            n => write!(f, "{n}B"),
        }
    }
}

/// A quantity for people: three significant digits and a unit, "19.9 Mbit/s", "5.34 ms", "14.5 kB". Not read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounded {
    /// In the smallest unit, rounded to three significant digits.
    value: u64,
    /// The smallest first, each with how many of the smallest it holds.
    units: &'static [(&'static str, u64)],
}

impl Rounded {
    const fn new(value: u64, units: &'static [(&'static str, u64)]) -> Self {
        Self { value: three_digits(value), units }
    }
}

/// `value` with everything after the third significant digit rounded to zeros.
const fn three_digits(value: u64) -> u64 {
    let mut unit = 1;
    while value / unit >= 1000 {
        unit *= 10;
    }
    // Half up; what does not fit any more is cut off.
    let rest = value % unit;
    let down = value - rest;
    if rest >= unit.div_ceil(2) && unit > 1 { down.saturating_add(unit) } else { down }
}

impl Span {
    /// For people.
    #[must_use]
    pub const fn rounded(self) -> Rounded {
        Rounded::new(self.0, &[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)])
    }
}

impl BitRate {
    /// For people.
    #[must_use]
    pub const fn rounded(self) -> Rounded {
        Rounded::new(self.0, &[("bit/s", 1), ("kbit/s", 1_000), ("Mbit/s", 1_000_000), ("Gbit/s", 1_000_000_000)])
    }
}

impl Bytes {
    /// For people, in powers of ten.
    #[must_use]
    pub const fn rounded(self) -> Rounded {
        Rounded::new(self.0, &[("B", 1), ("kB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000)])
    }
}

/// How many, for people: "7", "1234", "12.3 thousand", "1.02 million".
#[must_use]
pub const fn count(n: u64) -> Rounded {
    if n < 10_000 {
        return Rounded { value: n, units: &[("", 1)] };
    }
    Rounded::new(n, &[("", 1), ("thousand", 1_000), ("million", 1_000_000), ("billion", 1_000_000_000)])
}

impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = self.units.iter().rev().find(|(_, factor)| self.value >= *factor);
        let (unit, factor) = fits.or(self.units.first()).copied().unwrap_or(("", 1));
        let (whole, part) = (self.value / factor, self.value % factor);
        let mut text = whole.to_string();
        if part > 0 {
            // All digits of `part`, zeros before it included, none behind it.
            let digits = factor.ilog10() as usize;
            text.push('.');
            text.push_str(format!("{part:0digits$}").trim_end_matches('0'));
        }
        if !unit.is_empty() {
            text.push(' ');
            text.push_str(unit);
        }
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_told_three_digits_and_a_unit() {
        for (rounded, text) in [
            (BitRate::bps(19_856_652).rounded(), "19.9 Mbit/s"),
            (BitRate::mbps(20).rounded(), "20 Mbit/s"),
            (BitRate::bps(999_600).rounded(), "1 Mbit/s"),
            (BitRate::bps(4_004_999).rounded(), "4 Mbit/s"),
            (BitRate::bps(1_048_000_000).rounded(), "1.05 Gbit/s"),
            (BitRate::ZERO.rounded(), "0 bit/s"),
            (Span::from_nanos(5_340_292).rounded(), "5.34 ms"),
            (Span::from_nanos(60_949).rounded(), "60.9 us"),
            (Span::from_millis(12_345).rounded(), "12.3 s"),
            (Span::from_nanos(7).rounded(), "7 ns"),
            (Bytes(14_480).rounded(), "14.5 kB"),
            (count(1_234), "1234"),
            (count(12_345), "12.3 thousand"),
            (count(1_019_999), "1.02 million"),
        ] {
            assert_eq!(rounded.to_string(), text);
        }
        assert!(!Span::MAX.rounded().to_string().is_empty());
        assert_eq!(format!("{:>12}|", Span::from_millis(3).rounded()), "        3 ms|");
    }

    #[test]
    fn quantities_are_read_with_their_unit() {
        assert_eq!("20ms".parse(), Ok(Span::from_millis(20)));
        assert_eq!("1.5s".parse(), Ok(Span::from_millis(1500)));
        assert_eq!("90min".parse(), Ok(Span::from_secs(5400)));
        assert_eq!("2h".parse(), Ok(Span::from_secs(7200)));
        assert_eq!("1.5d".parse(), Ok(Span::from_secs(129_600)));
        assert_eq!("0.28Mbit/s".parse(), Ok(BitRate::bps(280_000)));
        assert_eq!("30KiB".parse(), Ok(Bytes(30 * 1024)));
    }

    #[test]
    fn a_number_without_a_unit_is_refused_with_an_example() {
        let error = "20".parse::<Span>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`20` is not a time; write a number and a unit (ns, us, ms, s, min, h, d), for example `20ms`"
        );
        for bad in ["", "ms", "2H", "1h30min", "1e9d", "-1ms", "nans", "infs", "1e300s", "20 m s", "20Ms"] {
            assert!(bad.parse::<Span>().is_err(), "{bad}");
        }
    }

    #[test]
    fn display_writes_what_from_str_reads() {
        for text in ["20ms", "180s", "7us", "3ns"] {
            assert_eq!(text.parse::<Span>().unwrap().to_string(), text);
        }
        assert_eq!("18Mbit/s".parse::<BitRate>().unwrap().to_string(), "18Mbit/s");
    }

    #[test]
    fn a_rate_turns_bytes_into_time_and_back() {
        let rate = BitRate::mbps(12);
        assert_eq!(rate.time_for(1500), Span::from_millis(1));
        assert_eq!(rate.bytes_in(Span::from_millis(1)), 1500);
        assert_eq!(BitRate::ZERO.time_for(1), Span::MAX);
    }
}
