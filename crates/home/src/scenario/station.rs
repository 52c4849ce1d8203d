//! `[[station]]`: a wireless host, expanded from its count.

use lasthop_core::units::Span;
use lasthop_medium::rate_control::RateLaw;
use lasthop_medium::{Band, Edca, STATION_EDCA, Standard};

use super::ScenarioError;
use super::air::{LastHop, Loss, STANDARDS, Wifi, word};
use super::channel::{read_law, read_place};
use super::edca::read_edca;
use super::radio::{self, Sending};
use super::read::Reader;
use crate::quantity::{Decibel, Degrees, Metres, StorageRate, StorageSize, Watts};

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
    /// Data rate and aggregates, to and from it; without a channel, unused.
    pub sending: Sending,
    /// How its classes contend, where the air has classes.
    pub edca: Edca,
    /// What it speaks.
    pub standard: Standard,
    /// Transmit power.
    pub power: Watts,
    /// Between it and the access point.
    pub walls: u8,
    /// SNR in place of what follows from distance, walls and power.
    pub snr: Option<Decibel>,
    /// What chooses rates towards it and from it.
    pub rate_control: RateLaw,
    /// It belongs to another network on the same channel: what it sends occupies the air, and no controller sees it.
    pub neighbour: bool,
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

pub(crate) const STATION_KEYS: [&str; 19] = [
    "name",
    "count",
    "distance",
    "angle",
    "rate",
    "standard",
    "power",
    "storage",
    "width",
    "streams",
    "mcs",
    "guard_interval",
    "ampdu",
    "amsdu",
    "edca",
    "walls",
    "snr",
    "rate_control",
    "neighbour",
];

/// A station but for its name and, where the file gives none, its angle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Radio {
    pub(crate) distance: Metres,
    pub(crate) angle: Option<Degrees>,
    pub(crate) sending: Sending,
    pub(crate) edca: Edca,
    pub(crate) standard: Standard,
    pub(crate) power: Watts,
    pub(crate) walls: u8,
    pub(crate) snr: Option<Decibel>,
    pub(crate) rate_control: RateLaw,
    pub(crate) neighbour: bool,
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
    let distance = station.positive("distance")?.unwrap_or(Metres(10.0));
    let angle = station.quantity("angle")?;
    let LastHop::Wifi(wifi) = hop else {
        let of_air =
            ["rate", "standard", "power", "distance", "angle", "edca", "walls", "snr", "rate_control", "neighbour"]
                .into_iter()
                .chain(radio::KEYS);
        for key in of_air {
            if station.has(key) {
                return Err(station.wrong(key, "means something only with [wifi]; there is no air here"));
            }
        }
        let (sending, power) = (Sending::default(), Watts(0.0));
        return Ok(Radio {
            distance,
            angle,
            sending,
            edca: STATION_EDCA,
            standard: Standard::G,
            power,
            walls: 0,
            snr: None,
            rate_control: RateLaw::Fixed,
            neighbour: false,
            storage,
        });
    };
    let standard = station_standard(station, wifi)?;
    let sending = radio::read_station(station, standard, (wifi.standard, wifi.band, &wifi.sending))?;
    if !standard.has_classes() && station.has("edca") {
        let why = format!("{} has no such thing; it is of 802.11n, ac and ax", word(standard));
        return Err(station.wrong("edca", why));
    }
    let edca = read_edca(station, "edca", wifi.station_edca)?;
    let power = station.positive("power")?.unwrap_or(wifi.power);
    let knows_snr = matches!(wifi.loss, Loss::Snr(_));
    let (walls, snr) = read_place(station, knows_snr)?;
    let rate_control = read_law(station, wifi.standard, knows_snr)?.unwrap_or(wifi.rate_control);
    let neighbour = station.flag("neighbour")?.unwrap_or(false);
    Ok(Radio { distance, angle, sending, edca, standard, power, walls, snr, rate_control, neighbour, storage })
}

/// What a station speaks: nothing newer than the access point, and nothing of another band.
fn station_standard(station: &Reader<'_>, wifi: &Wifi) -> Result<Standard, ScenarioError> {
    let standard = read_standard(station)?.unwrap_or(wifi.standard);
    let home = word(wifi.standard);
    if standard > wifi.standard {
        let why = format!("speaks {home} in a home of {home}; leave the key out, or make [wifi] {}", word(standard));
        return Err(station.wrong("standard", why));
    }
    match (standard, wifi.band) {
        (Standard::B | Standard::G, Band::Ghz5) => {
            let why = format!("{} is of 2.4 GHz; write [wifi] band = \"2.4GHz\"", word(standard));
            Err(station.wrong("standard", why))
        }
        (Standard::Ac, Band::Ghz2) => {
            Err(station.wrong("standard", "802.11ac is of 5 GHz, and this home is at 2.4 GHz"))
        }
        _ => Ok(standard),
    }
}
