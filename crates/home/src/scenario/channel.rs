//! What the channel of today's air does, and what chooses rates in it: `loss = { kind = "snr", .. }`, `rate_control`, and a
//! station's `walls` and `snr`.

use lasthop_core::units::Span;
use lasthop_medium::channel::{ChannelParams, Fading};
use lasthop_medium::rate_control::{RateLaw, Scheme};
use lasthop_medium::{Band, Standard};

use super::ScenarioError;
use super::read::Reader;
use crate::quantity::{Decibel, Hertz};

/// Errors by signal-to-noise ratio ([`lasthop_medium::channel`]).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SnrLoss {
    /// Path loss exponent.
    pub exponent: f64,
    /// Path loss at 1 m; `None`: Friis.
    pub reference: Option<Decibel>,
    /// Of each wall between.
    pub wall: Decibel,
    /// Of the receivers.
    pub noise_figure: Decibel,
    /// Standard deviation of the slow fading; 0: none.
    pub fading: Decibel,
    /// Its correlation falls to 1/e in this time.
    pub correlation: Span,
}

/// Keys of `loss = { kind = "snr" }` besides `kind`.
pub(crate) const SNR_KEYS: [&str; 7] =
    ["kind", "exponent", "reference", "wall", "noise_figure", "fading", "correlation"];

/// Words of `rate_control`.
const LAWS: [(&str, RateLaw); 4] = [
    ("fixed", RateLaw::Fixed),
    ("ideal", RateLaw::Ideal { per: 0.1 }),
    ("minstrel_ht", RateLaw::MinstrelHt(Scheme::Share)),
    ("minstrel_ht_5.12", RateLaw::MinstrelHt(Scheme::Kinds)),
];

/// Channels in the middle of the two bands.
const MIDDLE_2_GHZ: f64 = 2.437e9;
const MIDDLE_5_GHZ: f64 = 5.25e9;

/// Slowest fading; a longer one is a mean.
const LONGEST_CORRELATION: Span = Span::from_secs(3_600);

impl SnrLoss {
    /// As the medium takes it. `frequency`: what the file says, if anything.
    pub(crate) fn params(&self, frequency: Option<Hertz>, band: Band) -> ChannelParams {
        let middle = if band == Band::Ghz2 { MIDDLE_2_GHZ } else { MIDDLE_5_GHZ };
        let fading = Fading { deviation_db: self.fading.0, correlation: self.correlation };
        ChannelParams {
            exponent: self.exponent,
            reference_db: self.reference.map(|db| db.0),
            frequency_hz: frequency.map_or(middle, |hertz| hertz.0),
            wall_db: self.wall.0,
            noise_figure_db: self.noise_figure.0,
            fading: (self.fading.0 > 0.0).then_some(fading),
        }
    }
}

/// Reads the table of `loss` when its kind is `snr`.
pub(crate) fn read_snr(loss: &Reader<'_>) -> Result<SnrLoss, ScenarioError> {
    let usual = ChannelParams::default();
    let level = |key: &str, usual: f64| -> Result<Decibel, ScenarioError> {
        let level = loss.quantity(key)?.unwrap_or(Decibel(usual));
        if !(0.0..=200.0).contains(&level.0) {
            return Err(loss.wrong(key, format!("{} dB is not between 0dB and 200dB", level.0)));
        }
        Ok(level)
    };
    let correlation = loss.positive("correlation")?.unwrap_or(Span::from_secs(2));
    if correlation > LONGEST_CORRELATION {
        return Err(loss.wrong("correlation", format!("{correlation} is longer than {LONGEST_CORRELATION}")));
    }
    Ok(SnrLoss {
        exponent: loss.number("exponent", 0.0..=10.0)?.unwrap_or(usual.exponent),
        reference: if loss.has("reference") { Some(level("reference", 0.0)?) } else { None },
        wall: level("wall", usual.wall_db)?,
        noise_figure: level("noise_figure", usual.noise_figure_db)?,
        fading: level("fading", 0.0)?,
        correlation,
    })
}

/// Reads `rate_control` of a radio of this standard. `knows_snr`: the channel has one.
pub(crate) fn read_law(
    reader: &Reader<'_>,
    standard: Standard,
    knows_snr: bool,
) -> Result<Option<RateLaw>, ScenarioError> {
    let law = reader.choice("rate_control", &LAWS)?;
    match law {
        Some(RateLaw::Ideal { .. } | RateLaw::MinstrelHt(_)) if !standard.has_classes() => {
            let why = "needs an access point of 802.11n, 802.11ac or 802.11ax; write \"fixed\", or another standard";
            Err(reader.wrong("rate_control", why))
        }
        Some(RateLaw::Ideal { .. }) if !knows_snr => {
            let why = "\"ideal\" follows the SNR, and this channel has none; write loss = { kind = \"snr\" } in [wifi]";
            Err(reader.wrong("rate_control", why))
        }
        law => Ok(law),
    }
}

/// Reads a station's `walls` and `snr`. `knows_snr`: the channel has one.
pub(crate) fn read_place(station: &Reader<'_>, knows_snr: bool) -> Result<(u8, Option<Decibel>), ScenarioError> {
    for key in ["walls", "snr"] {
        if station.has(key) && !knows_snr {
            let why = "means something only where errors follow from the SNR: loss = { kind = \"snr\" } in [wifi]";
            return Err(station.wrong(key, why));
        }
    }
    let snr = station.quantity::<Decibel>("snr")?;
    if let Some(out) = snr.filter(|snr| !(-50.0..=100.0).contains(&snr.0)) {
        return Err(station.wrong("snr", format!("{} dB is not between -50dB and 100dB", out.0)));
    }
    for key in ["distance", "walls"] {
        if snr.is_some() && station.has(key) {
            return Err(station.wrong(key, "stands beside snr, which takes its place; keep one of them"));
        }
    }
    Ok((station.count("walls", 0..=50)?.unwrap_or(0) as u8, snr))
}
