//! `[[station]]`: a wireless host, expanded from its count.

use lasthop_core::units::Span;
use lasthop_medium::{Rate, Standard};

use super::ScenarioError;
use super::air::{LastHop, STANDARDS, read_rate, top_rate};
use super::read::Reader;
use crate::quantity::{Degrees, Metres, StorageRate, StorageSize, Watts};

/// A wireless host.
#[derive(Clone, Debug, PartialEq)]
pub struct Station {
    /// `N1`, or `S.3` where counted.
    pub name: String,
    /// The name of its table.
    pub table: String,
    /// From the access point.
    pub distance: Metres,
    /// Where on the circle; spread evenly where the file says nothing.
    pub angle: Degrees,
    /// Data rate in both directions; without a channel, unused.
    pub rate: Rate,
    /// What it speaks.
    pub standard: Standard,
    /// Transmit power.
    pub power: Watts,
    /// What a slow receiver drains and feeds.
    pub storage: Storage,
}

/// What a slow receiver drains and feeds (messages).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Storage {
    /// Into the device's storage.
    pub write: StorageRate,
    /// Out of it.
    pub read: StorageRate,
    /// What each call that reads or writes costs besides.
    pub operation: Span,
    /// What it holds; a write beyond it fails.
    pub size: StorageSize,
}

impl Storage {
    /// Whether reading or writing takes time.
    #[must_use]
    pub fn is_slow(&self) -> bool {
        *self != Self { size: self.size, ..Self::default() }
    }
}

pub(crate) const STATION_KEYS: [&str; 8] =
    ["name", "count", "distance", "angle", "rate", "standard", "power", "storage"];

/// A station but for its name and, where the file gives none, its angle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Radio {
    pub(crate) distance: Metres,
    pub(crate) angle: Option<Degrees>,
    pub(crate) rate: Rate,
    pub(crate) standard: Standard,
    pub(crate) power: Watts,
    pub(crate) storage: Storage,
}

/// The standard a station names, if any.
pub(crate) fn read_standard(station: &Reader<'_>) -> Result<Option<Standard>, ScenarioError> {
    station.choice("standard", &STANDARDS)
}

pub(crate) fn read_radio(station: &Reader<'_>, hop: &LastHop) -> Result<Radio, ScenarioError> {
    let storage = match station.table("storage", &["write", "read", "operation", "size"])? {
        None => Storage::default(),
        Some(t) => Storage {
            write: t.quantity("write")?.unwrap_or_default(),
            read: t.quantity("read")?.unwrap_or_default(),
            operation: t.quantity("operation")?.unwrap_or_default(),
            size: t.quantity("size")?.unwrap_or_default(),
        },
    };
    let (rate, standard, power) = match hop {
        LastHop::Wifi(wifi) => {
            let standard = read_standard(station)?.unwrap_or(wifi.standard);
            if standard == Standard::G && wifi.standard == Standard::B {
                let why = "a g station speaks 802.11b in a b home; leave the key out, or make [wifi] 802.11g";
                return Err(station.wrong("standard", why));
            }
            let usual = if standard == wifi.standard { wifi.rate } else { top_rate(standard) };
            let rate = read_rate(station, "rate", standard)?.unwrap_or(usual);
            (rate, standard, station.positive("power")?.unwrap_or(wifi.power))
        }
        LastHop::WirelessLink(_) | LastHop::Bridge(_) => {
            for key in ["rate", "standard", "power", "distance", "angle"] {
                if station.has(key) {
                    return Err(station.wrong(key, "means something only with [wifi]; there is no air here"));
                }
            }
            (top_rate(Standard::G), Standard::G, Watts(0.0))
        }
    };
    let distance = station.positive("distance")?.unwrap_or(Metres(10.0));
    Ok(Radio { distance, angle: station.quantity("angle")?, rate, standard, power, storage })
}
