//! Sizes, delays and rates of a tuning: text with a unit in files and on the command line, integers on the wire.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Text that is no such quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is no {what}: write it like {example}")]
pub struct ParseQuantityError {
    what: &'static str,
    found: String,
    example: &'static str,
}

/// Bytes of a socket buffer, 1 KiB to 1 GiB: what the application asks the kernel for, which books twice as much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(u32);

impl Size {
    /// Least and most bytes.
    pub const RANGE: std::ops::RangeInclusive<u32> = 1 << 10..=1 << 30;

    /// `None` out of range.
    #[must_use]
    pub fn new(bytes: u32) -> Option<Self> {
        Self::RANGE.contains(&bytes).then_some(Self(bytes))
    }

    /// In bytes.
    #[must_use]
    pub fn bytes(self) -> u32 {
        self.0
    }
}

/// Bytes of an application packet, 512 B to 1 MiB; 64 KiB by default: more gains little, on any storage measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PacketSize(u32);

impl PacketSize {
    /// Least and most bytes.
    pub const RANGE: std::ops::RangeInclusive<u32> = 512..=1 << 20;
    /// The most that one frame carries.
    pub const MOST_BYTES: usize = 1 << 20;

    /// `None` out of range.
    #[must_use]
    pub fn new(bytes: u32) -> Option<Self> {
        Self::RANGE.contains(&bytes).then_some(Self(bytes))
    }

    /// In bytes.
    #[must_use]
    pub fn bytes(self) -> usize {
        self.0 as usize
    }
}

impl Default for PacketSize {
    fn default() -> Self {
        Self(64 << 10)
    }
}

/// Inter-packet delay, 0 to 1 s in steps of a microsecond; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Delay(u32);

impl Delay {
    /// Most microseconds.
    pub const MOST_MICROS: u32 = 1_000_000;

    /// `None` out of range.
    #[must_use]
    pub fn micros(micros: u32) -> Option<Self> {
        (micros <= Self::MOST_MICROS).then_some(Self(micros))
    }

    /// How long to sleep.
    #[must_use]
    pub fn duration(self) -> Duration {
        Duration::from_micros(self.0.into())
    }
}

/// A pacing rate, 1 kB/s to 100 GB/s, in bytes per second: of TCP segments, headers left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(u64);

impl Rate {
    /// Least and most bytes per second.
    pub const RANGE: std::ops::RangeInclusive<u64> = 1_000..=100_000_000_000;

    /// `None` out of range.
    #[must_use]
    pub fn new(bytes_per_second: u64) -> Option<Self> {
        Self::RANGE.contains(&bytes_per_second).then_some(Self(bytes_per_second))
    }

    /// In bytes per second.
    #[must_use]
    pub fn bytes_per_second(self) -> u64 {
        self.0
    }
}

type Units = &'static [(&'static str, u64)];

const BYTES: Units = &[("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("kB", 1000), ("B", 1)];
const RATES: Units = &[("GB/s", 1_000_000_000), ("MB/s", 1_000_000), ("kB/s", 1000), ("B/s", 1)];
const TIMES: Units = &[("us", 1), ("ms", 1000), ("s", 1_000_000)];

/// A decimal number and a unit, as a whole number of the smallest unit.
fn parse(text: &str, units: Units) -> Option<u64> {
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic())?);
    let scale = units.iter().find(|(name, _)| *name == unit)?.1;
    let (whole, fraction) = number.trim_end().split_once('.').unwrap_or((number.trim_end(), ""));
    let is_number = |digits: &str| digits.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || fraction.len() > 9 || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let parts = if fraction.is_empty() { 0 } else { fraction.parse::<u64>().ok()? };
    let below = u64::try_from(u128::from(parts) * u128::from(scale) / 10_u128.pow(fraction.len() as u32)).ok()?;
    whole.parse::<u64>().ok()?.checked_mul(scale)?.checked_add(below)
}

/// The shortest exact text: with the largest unit that divides the value.
fn show(f: &mut fmt::Formatter<'_>, value: u64, units: Units) -> fmt::Result {
    let fits = |(_, scale): &&(&str, u64)| value.is_multiple_of(*scale);
    let largest = units.iter().filter(fits).max_by_key(|(_, scale)| if value == 0 { u64::MAX - scale } else { *scale });
    let (name, scale) = largest.copied().unwrap_or(("", 1));
    write!(f, "{}{name}", value / scale)
}

macro_rules! quantity {
    ($type:ident, $integer:ty, $make:expr, $units:expr, $what:literal, $example:literal) => {
        impl FromStr for $type {
            type Err = ParseQuantityError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let wrong =
                    || ParseQuantityError { what: $what, found: text.chars().take(60).collect(), example: $example };
                let value = parse(text, $units).ok_or_else(wrong)?;
                <$integer>::try_from(value).ok().and_then($make).ok_or_else(wrong)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                show(f, self.0.into(), $units)
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if serializer.is_human_readable() { serializer.collect_str(self) } else { self.0.serialize(serializer) }
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                use serde::de::Error;
                if deserializer.is_human_readable() {
                    String::deserialize(deserializer)?.parse().map_err(Error::custom)
                } else {
                    $make(<$integer>::deserialize(deserializer)?).ok_or_else(|| Error::custom(concat!("no ", $what)))
                }
            }
        }
    };
}

quantity!(Size, u32, Size::new, BYTES, "size of a buffer, 1 KiB to 1 GiB", "256KiB");
quantity!(PacketSize, u32, PacketSize::new, BYTES, "size of a packet, 512 B to 1 MiB", "64KiB");
quantity!(Delay, u32, Delay::micros, TIMES, "delay, 0 to 1 s", "10ms");
quantity!(Rate, u64, Rate::new, RATES, "rate, 1 kB/s to 100 GB/s", "400kB/s");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_reads_back_as_the_same() {
        for text in ["512B", "3072B", "64KiB", "1MiB"] {
            let size: PacketSize = text.parse().unwrap();
            assert_eq!(size.to_string().parse(), Ok(size), "{text}");
        }
        assert_eq!("65536B".parse::<PacketSize>().unwrap().to_string(), "64KiB");
        assert_eq!("0s".parse::<Delay>().unwrap().to_string(), "0us");
        assert_eq!("0.5ms".parse::<Delay>().unwrap().to_string(), "500us");
        assert_eq!("1.25MB/s".parse::<Rate>().unwrap(), Rate(1_250_000));
    }

    #[test]
    fn a_unit_is_needed_and_the_range_is_kept() {
        for bad in ["", "4096", "511B", "2MiB", "-1KiB", "1e3B", "64 KB", "B", ".5KiB", "99999999999999999999GiB"] {
            assert!(bad.parse::<PacketSize>().is_err(), "{bad}");
        }
        assert!("2s".parse::<Delay>().unwrap_err().to_string().contains("0 to 1 s"));
        assert!("1B/s".parse::<Rate>().is_err());
    }
}
