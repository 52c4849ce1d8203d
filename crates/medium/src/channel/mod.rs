//! What a link of today's air is like: path loss, noise, slow fading, and the errors that follow.
//!
//! `SNR = P_t - PL(d) - walls x wall_loss + fading - N [dB]`
//! `PL(d) = PL(1 m) + 10 n log10(d)`, n the path loss exponent, `PL(1 m) = 20 log10(4 pi f / c)` (Friis), d at least 1 m
//! `N = -174 dBm/Hz + 10 log10(width) + noise figure`
//! Sources: log-distance model, T. S. Rappaport, "Wireless Communications", 2002, section 4.9; loss per wall as in the
//! residential scenario of IEEE 802.11-14/0980r16, 5 dB in the 5 GHz band; 290 K.
//!
//! SNR is kept in quarters of a decibel, and every error probability of a link is computed when one of SNR, rate or length
//! changes, never per frame. Errors: [`per`]. Fading: [`fading`].
//!
//! A link and its opposite share path and fading; powers may differ. Not modelled: interference, antennas, fading within a
//! frame, floors.

pub mod fading;
pub mod per;

use lasthop_core::units::Time;

use crate::mode::Width;
use crate::phy::Rate;
use crate::propagation::dbm;
use crate::random::Stream;
pub use fading::{Fading, FadingState};

/// Speed of light, m/s.
const LIGHT: f64 = 299_792_458.0;

/// What all links of a cell have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChannelParams {
    /// Path loss exponent. 3: rooms with furniture and people.
    pub exponent: f64,
    /// Path loss at 1 m, dB; `None`: Friis at the carrier.
    pub reference_db: Option<f64>,
    /// Carrier, Hz.
    pub frequency_hz: f64,
    /// Loss of each wall between, dB.
    pub wall_db: f64,
    /// What the receiver adds to thermal noise, dB. 7: ns-3's.
    pub noise_figure_db: f64,
    /// Slow fading; `None`: none.
    pub fading: Option<Fading>,
}

impl Default for ChannelParams {
    fn default() -> Self {
        Self {
            exponent: 3.0,
            reference_db: None,
            frequency_hz: 5.25e9,
            wall_db: 5.0,
            noise_figure_db: 7.0,
            fading: None,
        }
    }
}

/// Where a station is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// From the access point, m.
    pub distance_m: f64,
    /// In between.
    pub walls: u8,
    /// Mean SNR over the whole width of the channel, dB, in both directions, in place of what follows from the rest.
    pub snr_db: Option<f64>,
}

impl ChannelParams {
    /// Mean SNR at a receiver over this width, dB, without fading.
    #[must_use]
    pub fn mean_snr_db(&self, place: &Place, power_w: f64, width: Width) -> f64 {
        if let Some(snr) = place.snr_db {
            return snr;
        }
        let friis = 20.0 * libm::log10(4.0 * std::f64::consts::PI * self.frequency_hz / LIGHT);
        let loss = self.reference_db.unwrap_or(friis) + 10.0 * self.exponent * libm::log10(place.distance_m.max(1.0));
        dbm(power_w) - loss - f64::from(place.walls) * self.wall_db - self.noise_dbm(width)
    }

    /// Noise over this width, dBm.
    #[must_use]
    pub fn noise_dbm(&self, width: Width) -> f64 {
        const BOLTZMANN: f64 = 1.380_649e-23;
        dbm(BOLTZMANN * 290.0 * f64::from(width.mhz()) * 1e6) + self.noise_figure_db
    }
}

/// Between a station and the access point, both ways: what moves.
#[derive(Clone, Debug)]
pub struct Path {
    params: ChannelParams,
    place: Place,
    fading: FadingState,
    /// Power towards the station and back, W.
    power_w: [f64; 2],
    width: Width,
    /// SNR over this width at the station and at the access point, quarters of a decibel.
    snr: [i16; 2],
}

/// Which of the two receivers of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The station hears the access point.
    Down = 0,
    /// The access point hears the station.
    Up = 1,
}

impl Path {
    /// The path of station `number`, counted from 1, in the run with this seed.
    #[must_use]
    pub fn new(params: ChannelParams, place: Place, power_w: [f64; 2], width: Width, seed: u64, number: u16) -> Self {
        let fading = FadingState::new(Stream::numbered(seed, "wifi.fading", number));
        let mut path = Self { params, place, fading, power_w, width, snr: [0; 2] };
        path.refresh();
        path
    }

    /// Lets the channel move up to `now`; whether an SNR is another than before.
    #[inline]
    pub fn advance(&mut self, now: Time) -> bool {
        let Some(fading) = &self.params.fading else { return false };
        self.fading.advance(fading, now) && self.refresh()
    }

    /// SNR at the receiver over the whole width, quarters of a decibel.
    #[must_use]
    pub fn snr_quarters(&self, direction: Direction) -> i16 {
        self.snr[direction as usize]
    }

    /// Probability that an MPDU of `bytes` arrives with an error.
    #[must_use]
    pub fn per(&self, direction: Direction, rate: Rate, bytes: u32) -> f64 {
        per::scaled(self.per_of_reference(direction, rate), bytes)
    }

    /// The same of 1,458 bytes. A frame that fills half the width has 3 dB more.
    #[must_use]
    pub fn per_of_reference(&self, direction: Direction, rate: Rate) -> f64 {
        let fills = rate.mode().map_or(Width::Mhz20, |mode| mode.width);
        let narrower = (self.width as i16 - fills as i16).max(0);
        per::per_at(rate.modulation(), self.snr_quarters(direction).saturating_add(12 * narrower))
    }

    /// Moves the station, or a wall.
    pub fn set_place(&mut self, place: Place) -> bool {
        self.place = place;
        self.refresh()
    }

    /// The width of the channel is another.
    pub fn set_width(&mut self, width: Width) -> bool {
        self.width = width;
        self.refresh()
    }

    /// Changes what the channel is like; the fading goes on where it is.
    pub fn set_params(&mut self, params: ChannelParams) -> bool {
        self.params = params;
        self.refresh()
    }

    fn refresh(&mut self) -> bool {
        let faded = self.params.fading.map_or(0.0, |fading| self.fading.level_db(&fading));
        let snr = self.power_w.map(|power| quarters(self.params.mean_snr_db(&self.place, power, self.width) + faded));
        std::mem::replace(&mut self.snr, snr) != snr
    }
}

/// Decibels in quarters.
#[must_use]
pub fn quarters(db: f64) -> i16 {
    libm::round(db * 4.0) as i16
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_core::units::Span;

    use crate::mode::Modulation;
    use crate::mode::{Guard, Mode};
    use crate::phy::Standard;

    const HERE: Place = Place { distance_m: 10.0, walls: 0, snr_db: None };

    #[test]
    fn friis_at_one_metre_is_46_7_db_at_5_15_ghz() {
        // ns-3's log-distance model: 46.6777 dB.
        let params = ChannelParams { frequency_hz: 5.15e9, ..ChannelParams::default() };
        let place = Place { distance_m: 1.0, ..HERE };
        let loss = 20.0 - params.noise_dbm(Width::Mhz20) - params.mean_snr_db(&place, 0.1, Width::Mhz20);
        assert!((loss - 46.6777).abs() < 0.01, "{loss}");
    }

    #[test]
    fn noise_of_20_mhz_is_minus_94_dbm_and_doubles_with_the_width() {
        let params = ChannelParams::default();
        assert!((params.noise_dbm(Width::Mhz20) + 93.97).abs() < 0.01);
        assert!((params.noise_dbm(Width::Mhz160) - params.noise_dbm(Width::Mhz20) - 9.03).abs() < 0.01);
    }

    #[test]
    fn ten_times_the_distance_costs_ten_exponents_and_a_wall_its_loss() {
        let params = ChannelParams { exponent: 3.5, ..ChannelParams::default() };
        let snr = |place: Place| params.mean_snr_db(&place, 0.1, Width::Mhz20);
        let near = snr(Place { distance_m: 1.0, ..HERE });
        assert!((near - snr(HERE) - 35.0).abs() < 1e-9);
        assert!((snr(HERE) - snr(Place { walls: 3, ..HERE }) - 15.0).abs() < 1e-9);
        assert_eq!(near, snr(Place { distance_m: 0.1, ..HERE }));
    }

    #[test]
    fn directions_share_the_fading_and_have_their_own_powers() {
        let fading = Some(Fading { deviation_db: 6.0, correlation: Span::from_millis(200) });
        let params = ChannelParams { fading, ..ChannelParams::default() };
        let mut link = Path::new(params, HERE, [0.1, 0.025], Width::Mhz20, 7, 1);
        let mut seen = std::collections::BTreeSet::new();
        for ms in 0..2_000 {
            link.advance(Time::from_nanos(ms * 1_000_000));
            let (down, up) = (link.snr_quarters(Direction::Down), link.snr_quarters(Direction::Up));
            assert!((23..=25).contains(&(down - up)), "6 dB: {down} {up}");
            seen.insert(down);
        }
        assert!(seen.len() > 20, "{seen:?}");
    }

    #[test]
    fn half_the_width_has_half_the_noise() {
        let rate = |width| {
            let mode = Mode { standard: Standard::Ac, width, streams: 1, mcs: 4, guard: Guard::Ns800 };
            Rate::of_mode(mode).unwrap()
        };
        let place = Place { snr_db: Some(9.5), ..HERE };
        let link = Path::new(ChannelParams::default(), place, [0.1; 2], Width::Mhz80, 7, 1);
        let per = |width| link.per(Direction::Up, rate(width), 1458);
        assert_eq!(per(Width::Mhz80), 1.0);
        assert!((per(Width::Mhz40) - per::per_at(Modulation::Mcs(4), 50)).abs() < 1e-12);
        assert_eq!(per(Width::Mhz20), 0.0);
    }

    #[test]
    fn a_channel_without_fading_moves_only_when_told() {
        let mut link = Path::new(ChannelParams::default(), HERE, [0.1; 2], Width::Mhz80, 7, 1);
        let before = link.snr_quarters(Direction::Up);
        assert!(!link.advance(Time::from_nanos(5_000_000_000)));
        assert!(link.set_place(Place { walls: 1, ..HERE }));
        assert_eq!(before - link.snr_quarters(Direction::Up), 20);
        assert!(link.set_place(Place { snr_db: Some(7.0), ..HERE }));
        assert_eq!(link.snr_quarters(Direction::Down), 28);
    }
}
