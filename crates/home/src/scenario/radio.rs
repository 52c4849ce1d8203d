//! What radios of 802.11n, ac and ax have besides those of b and g: modes in place of a rate, and aggregates.
//!
//! `[wifi]` says it for the cell, `[[station]]` for one, frames to and from it. Where a station has another standard than
//! the access point, it takes over what its own has of the cell's: the width up to its widest, the guard interval if it knows it,
//! aggregates up to its limits; its MCS is then the highest.

use lasthop_core::units::{Bytes, Span};
use lasthop_medium::{Ampdu, Band, Guard, Mode, Rate, Standard, Width};

use super::ScenarioError;
use super::air::{read_rate, top_rate, word};
use super::read::{Given, Reader};

/// Keys of `[wifi]` and `[[station]]` that only radios with classes have.
pub(crate) const KEYS: [&str; 6] = ["width", "streams", "mcs", "guard_interval", "ampdu", "amsdu"];

const WIDTHS: [(&str, Width); 4] =
    [("20MHz", Width::Mhz20), ("40MHz", Width::Mhz40), ("80MHz", Width::Mhz80), ("160MHz", Width::Mhz160)];

const GUARDS: [(&str, Guard); 4] =
    [("400ns", Guard::Ns400), ("800ns", Guard::Ns800), ("1600ns", Guard::Ns1600), ("3200ns", Guard::Ns3200)];

const BANDS: [(&str, Band); 2] = [("2.4GHz", Band::Ghz2), ("5GHz", Band::Ghz5)];

/// Longest A-MSDU, bytes: 802.11n's, and ac's and ax's.
const LONGEST_AMSDU: (u64, u64) = (7_935, 11_406);

/// How a radio sends its data, and what it aggregates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sending {
    /// Data rate, or the code of the mode.
    pub rate: Rate,
    /// A-MPDUs; `None`: every frame carries one MPDU.
    pub ampdu: Option<Ampdu>,
    /// Longest A-MSDU, bytes; 0: none.
    pub amsdu: u32,
    /// What the mode is made of, for stations that take it over.
    pub(crate) shape: Shape,
}

impl Default for Sending {
    /// A radio of 802.11g.
    fn default() -> Self {
        let shape = Shape { width: Width::Mhz20, streams: 1, guard: Guard::Ns800, mcs: None };
        Self { rate: top_rate(Standard::G), ampdu: None, amsdu: 0, shape }
    }
}

/// A mode as it is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shape {
    width: Width,
    streams: u8,
    guard: Guard,
    /// `None`: the highest.
    mcs: Option<u8>,
}

/// The band of a cell.
pub(crate) fn read_band(wifi: &Reader<'_>, standard: Standard) -> Result<Band, ScenarioError> {
    let usual = if standard.has_classes() { Band::Ghz5 } else { Band::Ghz2 };
    let band = wifi.choice("band", &BANDS)?.unwrap_or(usual);
    match (standard, band) {
        (Standard::B | Standard::G, Band::Ghz5) => {
            Err(wifi
                .wrong("band", format!("{} is of 2.4 GHz; leave the key out, or choose n, ac or ax", word(standard))))
        }
        (Standard::Ac, Band::Ghz2) => {
            Err(wifi.wrong("band", "802.11ac is of 5 GHz; at 2.4 GHz write standard = \"802.11n\" or \"802.11ax\""))
        }
        _ => Ok(band),
    }
}

/// The cell's, without stations.
pub(crate) fn read_cell(wifi: &Reader<'_>, standard: Standard, band: Band) -> Result<Sending, ScenarioError> {
    let width = match (standard, band) {
        (Standard::Ac | Standard::Ax, Band::Ghz5) => Width::Mhz80,
        _ => Width::Mhz20,
    };
    let usual = Sending {
        rate: top_rate(standard),
        ampdu: Ampdu::of(standard),
        amsdu: 0,
        shape: Shape { width, streams: 1, guard: Guard::Ns800, mcs: None },
    };
    read(wifi, standard, band, usual)
}

/// A station's, in a cell with the radio `cell`.
pub(crate) fn read_station(
    station: &Reader<'_>,
    standard: Standard,
    cell: (Standard, Band, &Sending),
) -> Result<Sending, ScenarioError> {
    let (cell_standard, band, sending) = cell;
    let usual = if standard == cell_standard {
        *sending
    } else {
        let shape = Shape {
            width: sending.shape.width.min(widest(standard, band)),
            streams: sending.shape.streams,
            guard: if guards(standard).contains(&sending.shape.guard) { sending.shape.guard } else { Guard::Ns800 },
            mcs: None,
        };
        let ampdu = sending.ampdu.and_then(|ampdu| within(ampdu, standard));
        Sending { rate: top_rate(standard), ampdu, amsdu: sending.amsdu.min(longest_amsdu(standard) as u32), shape }
    };
    let own = read(station, standard, band, usual)?;
    let cell_width = sending.shape.width;
    if standard.has_classes() && own.shape.width > cell_width {
        let why = format!("the cell is {}MHz wide; make [wifi] as wide, or the station narrower", cell_width.mhz());
        return Err(station.wrong("width", why));
    }
    Ok(own)
}

fn read(radio: &Reader<'_>, standard: Standard, band: Band, usual: Sending) -> Result<Sending, ScenarioError> {
    if !standard.has_classes() {
        if let Some(key) = KEYS.into_iter().find(|key| radio.has(key)) {
            let why = format!("{} has no such thing; it is of 802.11n, ac and ax", word(standard));
            return Err(radio.wrong(key, why));
        }
        let rate = read_rate(radio, "rate", standard)?.unwrap_or(usual.rate);
        return Ok(Sending { rate, ampdu: None, amsdu: 0, ..usual });
    }
    if radio.has("rate") {
        let why = format!("the rate of {} follows from mcs, streams, width and guard_interval", word(standard));
        return Err(radio.wrong("rate", why));
    }
    let shape = read_shape(radio, standard, band, usual.shape)?;
    let rate = mode(radio, standard, shape)?;
    let ampdu = read_ampdu(radio, standard, usual.ampdu)?;
    Ok(Sending { rate, ampdu, amsdu: read_amsdu(radio, standard, usual.amsdu)?, shape })
}

fn widest(standard: Standard, band: Band) -> Width {
    match (standard, band) {
        (Standard::N, _) | (_, Band::Ghz2) => Width::Mhz40,
        _ => Width::Mhz160,
    }
}

fn guards(standard: Standard) -> &'static [Guard] {
    if standard == Standard::Ax { &Guard::ALL[1..] } else { &Guard::ALL[..2] }
}

fn longest_amsdu(standard: Standard) -> u64 {
    if standard == Standard::N { LONGEST_AMSDU.0 } else { LONGEST_AMSDU.1 }
}

/// Largest A-MPDU in bytes, and the largest window.
fn limits(standard: Standard) -> (u32, u16) {
    match standard {
        Standard::Ax => ((1 << 22) - 1, 256),
        Standard::Ac => ((1 << 20) - 1, 64),
        _ => (65_535, 64),
    }
}

fn read_shape(radio: &Reader<'_>, standard: Standard, band: Band, usual: Shape) -> Result<Shape, ScenarioError> {
    let width = radio.choice("width", &WIDTHS)?.unwrap_or(usual.width);
    let widest = widest(standard, band);
    if width > widest {
        let place = if band == Band::Ghz2 { " at 2.4 GHz" } else { "" };
        let why = format!("{} is at most {}MHz wide{place}", word(standard), widest.mhz());
        return Err(radio.wrong("width", why));
    }
    let guard = radio.choice("guard_interval", &GUARDS)?.unwrap_or(usual.guard);
    if !guards(standard).contains(&guard) {
        let known: Vec<&str> =
            GUARDS.iter().filter(|(_, guard)| guards(standard).contains(guard)).map(|(word, _)| *word).collect();
        let why =
            format!("{} has no guard interval of {}ns; it has {}", word(standard), guard.nanos(), known.join(", "));
        return Err(radio.wrong("guard_interval", why));
    }
    let streams = radio.count("streams", 1..=4)?.map_or(usual.streams, |streams| streams as u8);
    let mcs = radio.count("mcs", 0..=31)?.map(|mcs| mcs as u8).or(usual.mcs);
    Ok(Shape { width, streams, guard, mcs })
}

/// The mode of this shape.
fn mode(radio: &Reader<'_>, standard: Standard, shape: Shape) -> Result<Rate, ScenarioError> {
    let Shape { width, streams, guard, mcs } = shape;
    let rate = |mcs| Rate::of_mode(Mode { standard, width, streams, mcs, guard });
    let all: Vec<u8> = (0..12).filter(|mcs| rate(*mcs).is_some()).collect();
    let chosen = mcs.or(all.last().copied()).unwrap_or(0);
    rate(chosen).ok_or_else(|| {
        let top = all.last().copied().unwrap_or(0);
        let gap = (0..top).find(|mcs| !all.contains(mcs)).map_or(String::new(), |gap| format!(" but {gap}"));
        let of = format!("at {}MHz with {streams} streams", width.mhz());
        let hint = match standard == Standard::N && (8..32).contains(&chosen) {
            true => format!("; for HT MCS {chosen} write mcs = {} and streams = {}", chosen % 8, chosen / 8 + 1),
            false => String::new(),
        };
        radio.wrong("mcs", format!("{} has no MCS {chosen} {of}; it has 0 to {top}{gap}{hint}", word(standard)))
    })
}

/// What of an A-MPDU a standard has, too.
fn within(ampdu: Ampdu, standard: Standard) -> Option<Ampdu> {
    let (bytes, window) = limits(standard);
    let window = ampdu.window.min(window);
    let ampdu = Ampdu { bytes: ampdu.bytes.min(bytes), packets: ampdu.packets.min(window), window, ..ampdu };
    standard.has_classes().then_some(ampdu)
}

fn read_ampdu(radio: &Reader<'_>, standard: Standard, usual: Option<Ampdu>) -> Result<Option<Ampdu>, ScenarioError> {
    let table = match radio.table_or_off("ampdu", &["bytes", "packets", "time", "window"])? {
        Given::Nothing => return Ok(usual),
        Given::Off => return Ok(None),
        Given::Table(table) => table,
    };
    let Some(usual) = usual.or(Ampdu::of(standard)) else { return Ok(None) };
    let (most_bytes, most_window) = limits(standard);
    let bytes = table.count("bytes", 1..=most_bytes)?.unwrap_or(usual.bytes);
    let window = table.count("window", 1..=256)?.map_or(usual.window, |window| window as u16);
    if window != 64 && window != 256 || window > most_window {
        let right = if most_window > 64 { "64 or 256" } else { "64" };
        return Err(table.wrong("window", format!("{} has windows of {right} MPDUs", word(standard))));
    }
    let packets = table.count("packets", 1..=256)?.map_or(usual.packets.min(window), |packets| packets as u16);
    if packets > window {
        let why = format!("{packets} MPDUs do not fit into the block-ack window of {window}");
        return Err(table.wrong("packets", why));
    }
    let time = table.positive::<Span>("time")?.unwrap_or(usual.time);
    if time > Ampdu::LONGEST {
        return Err(table.wrong("time", format!("{time} is longer than a frame may be, {}", Ampdu::LONGEST)));
    }
    Ok(Some(Ampdu { bytes, packets, time, window }))
}

fn read_amsdu(radio: &Reader<'_>, standard: Standard, usual: u32) -> Result<u32, ScenarioError> {
    if radio.text("amsdu").is_ok_and(|text| text == Some("off")) {
        return Ok(0);
    }
    let Some(bytes) = radio.quantity::<Bytes>("amsdu")? else { return Ok(usual) };
    let most = longest_amsdu(standard);
    if bytes.0 > most {
        let why = format!("{} has A-MSDUs of at most {most}B; write 3839B, {most}B or \"off\"", word(standard));
        return Err(radio.wrong("amsdu", why));
    }
    Ok(bytes.0 as u32)
}
