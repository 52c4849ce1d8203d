//! Quantities that only a scenario needs: lengths, levels, powers, frequencies, angles, shares.
//!
//! As in `lasthop_core::units`, each is written as a string with a unit and read by `FromStr`.

use std::str::FromStr;

use lasthop_core::units::{BitRate, Bytes, ParseQuantityError, parse_quantity};

/// A length in metres.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Metres(pub f64);

/// A ratio in decibels; may be negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Decibel(pub f64);

/// A power in watts.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Watts(pub f64);

/// A frequency in hertz.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Hertz(pub f64);

/// An angle in degrees, counted from the x axis, 0..360.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Degrees(pub f64);

/// A share of a whole, 0..=1, written in per cent.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Share(pub f64);

/// What a slow receiver drains or feeds, written in bytes/s ("800kB/s"); `None` is "unlimited".
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct StorageRate(pub Option<BitRate>);

/// What a storage holds, written in bytes ("64MiB"); `None` is "unlimited".
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct StorageSize(pub Option<Bytes>);

fn read(
    text: &str,
    units: &[(&str, f64)],
    what: &'static str,
    example: &'static str,
) -> Result<f64, ParseQuantityError> {
    let (sign, digits) = text.strip_prefix('-').map_or((1.0, text), |rest| (-1.0, rest));
    parse_quantity(digits, units)
        .filter(|v| v.is_finite() && *v <= 1e15)
        .map(|v| sign * v)
        .ok_or_else(|| ParseQuantityError::new(what, text, units, example))
}

fn read_positive(
    text: &str,
    units: &[(&str, f64)],
    what: &'static str,
    example: &'static str,
) -> Result<f64, ParseQuantityError> {
    read(text, units, what, example).and_then(|v| match v.is_sign_negative() {
        false => Ok(v),
        true => Err(ParseQuantityError::new(what, text, units, example)),
    })
}

impl FromStr for Metres {
    type Err = ParseQuantityError;
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        read_positive(s, &[("km", 1e3), ("cm", 1e-2), ("m", 1.0)], "length", "10m").map(Self)
    }
}

impl FromStr for Decibel {
    type Err = ParseQuantityError;
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        read(s, &[("dB", 1.0)], "level", "9dB").map(Self)
    }
}

impl FromStr for Watts {
    type Err = ParseQuantityError;
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let units = [("pW", 1e-12), ("nW", 1e-9), ("uW", 1e-6), ("mW", 1e-3), ("W", 1.0)];
        read_positive(s, &units, "power", "1mW").map(Self)
    }
}

impl FromStr for Hertz {
    type Err = ParseQuantityError;
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let units = [("GHz", 1e9), ("MHz", 1e6), ("kHz", 1e3), ("Hz", 1.0)];
        read_positive(s, &units, "frequency", "914MHz").map(Self)
    }
}

impl FromStr for Degrees {
    type Err = ParseQuantityError;
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        read(s, &[("deg", 1.0)], "angle", "90deg").map(|v| Self(v.rem_euclid(360.0)))
    }
}

impl FromStr for Share {
    type Err = ParseQuantityError;
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let units = [("%", 0.01)];
        let wrong = || ParseQuantityError::new("share", s, &units, "98%");
        read_positive(s, &units, "share", "98%").and_then(|v| if v <= 1.0 { Ok(Self(v)) } else { Err(wrong()) })
    }
}

impl FromStr for StorageRate {
    type Err = ParseQuantityError;
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let wrong = || {
            let units = Bytes::UNITS.map(|(unit, _)| format!("{unit}/s")).join(", ");
            ParseQuantityError { what: "storage rate", found: s.to_owned(), units, example: "800kB/s" }
        };
        if s == "unlimited" {
            return Ok(Self(None));
        }
        let Bytes(bytes) = s.strip_suffix("/s").and_then(|size| size.parse().ok()).ok_or_else(wrong)?;
        bytes.checked_mul(8).filter(|b| *b > 0).map(|bits| Self(Some(BitRate::bps(bits)))).ok_or_else(wrong)
    }
}

impl FromStr for StorageSize {
    type Err = ParseQuantityError;
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let wrong = || ParseQuantityError::new("storage size", s, &Bytes::UNITS, "64MiB");
        if s == "unlimited" {
            return Ok(Self(None));
        }
        s.parse().ok().filter(|Bytes(bytes)| *bytes > 0).map(|size| Self(Some(size))).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_is_read_with_its_unit() {
        assert_eq!("10m".parse(), Ok(Metres(10.0)));
        assert_eq!("1mW".parse(), Ok(Watts(1e-3)));
        assert_eq!("3.652e-10W".parse(), Ok(Watts(3.652e-10)));
        assert_eq!("914MHz".parse(), Ok(Hertz(914e6)));
        assert_eq!("-3dB".parse(), Ok(Decibel(-3.0)));
        assert_eq!("-90deg".parse(), Ok(Degrees(270.0)));
        assert_eq!("98%".parse(), Ok(Share(0.98)));
        assert_eq!("1kB/s".parse(), Ok(StorageRate(Some(BitRate::bps(8000)))));
        assert_eq!("unlimited".parse(), Ok(StorageRate(None)));
        assert_eq!("64KiB".parse(), Ok(StorageSize(Some(Bytes(64 << 10)))));
        assert_eq!("unlimited".parse(), Ok(StorageSize(None)));
    }

    #[test]
    fn a_wrong_quantity_says_what_would_be_right() {
        let error = "10".parse::<Metres>().unwrap_err();
        assert_eq!(error.to_string(), "`10` is not a length; write a number and a unit (km, cm, m), for example `10m`");
        assert!("-1m".parse::<Metres>().is_err());
        assert!("--1dB".parse::<Decibel>().is_err());
        assert!("101%".parse::<Share>().is_err());
        assert!("0B/s".parse::<StorageRate>().is_err());
        assert!("0B".parse::<StorageSize>().is_err());
    }
}
