//! How classes of traffic contend, and what an aggregate may be, as a host configures it.
//!
//! | class | AIFSN, CWmin, CWmax, TXOP limit of stations | of an access point with hostapd |
//! |---|---|---|
//! | VO | 2, 3, 7, 1504 us | 1, 3, 7, 1504 us |
//! | VI | 2, 7, 15, 3008 us | 1, 7, 15, 3008 us |
//! | BE | 3, 15, 1023, 0 | 3, 15, 63, 0 |
//! | BK | 7, 15, 1023, 0 | 7, 15, 1023, 0 |
//!
//! Source: IEEE 802.11-2020 table 9-155 (OFDM: aCWmin 15); hostapd.conf, `wmm_ac_*` (what stations are told) and
//! `tx_queue_data*` (its own).

use lasthop_core::units::Span;

use crate::phy::Standard;

/// One class of one radio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdcaClass {
    /// Slots of idle time after a SIFS, before contention; 1 to 15.
    pub aifsn: u8,
    /// First contention window, slots.
    pub cw_min: u16,
    /// Largest contention window, slots.
    pub cw_max: u16,
    /// How long it may send once it has the channel; zero: one exchange.
    pub txop_limit: Span,
    /// Its frames are aggregated into A-MPDUs where the station has them. Linux does not aggregate VO.
    pub aggregates: bool,
    /// Transmissions of one MPDU in all; `None`: as [`crate::MediumParams::attempts`] and its exceptions say.
    pub attempts: Option<u32>,
    /// An MPDU that was not acknowledged this long after it came to the radio is dropped; `None`: never for its age.
    pub lifetime: Option<Span>,
}

/// The four classes of a radio, by [`lasthop_core::packet::AccessCategory::index`].
pub type Edca = [EdcaClass; 4];

/// A class without attempts or lifetime of its own.
const fn class(aifsn: u8, cw_min: u16, cw_max: u16, txop_us: u64) -> EdcaClass {
    let txop_limit = Span::from_micros(txop_us);
    EdcaClass { aifsn, cw_min, cw_max, txop_limit, aggregates: true, attempts: None, lifetime: None }
}

/// Without A-MPDUs.
const fn voice(aifsn: u8) -> EdcaClass {
    EdcaClass { aggregates: false, ..class(aifsn, 3, 7, 1504) }
}

/// What hostapd tells stations.
pub const STATION_EDCA: Edca = [voice(2), class(2, 7, 15, 3008), class(3, 15, 1023, 0), class(7, 15, 1023, 0)];

/// What hostapd has its own access point do.
pub const ACCESS_POINT_EDCA: Edca = [voice(1), class(1, 7, 15, 3008), class(3, 15, 63, 0), class(7, 15, 1023, 0)];

impl EdcaClass {
    /// Of a radio without classes, under DCF: DIFS is SIFS and two slots.
    #[must_use]
    pub const fn dcf(cw_min: u16) -> Self {
        EdcaClass { aggregates: false, ..class(2, cw_min, 1023, 0) }
    }
}

/// Limits of an A-MPDU, whichever is met first, and the window of the block acks that answer it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ampdu {
    /// Bytes of the A-MPDU: delimiters, headers and padding included. 65,535: n's largest; ac has up to 1,048,575.
    pub bytes: u32,
    /// MPDUs; at most the window.
    pub packets: u16,
    /// Duration of its frame. 5,484 us: the longest that L-SIG can say.
    pub time: Span,
    /// MPDUs from the first that is not acknowledged to the last that may be sent: 64 or 256.
    pub window: u16,
}

impl Ampdu {
    /// The longest frame.
    pub const LONGEST: Span = Span::from_micros(5_484);

    /// What radios of this standard agree on unless told otherwise; `None`: it has none.
    #[must_use]
    pub const fn of(standard: Standard) -> Option<Self> {
        let window = match standard {
            Standard::B | Standard::G => return None,
            Standard::N | Standard::Ac => 64,
            Standard::Ax => 256,
        };
        Some(Self { bytes: 65_535, packets: window, time: Self::LONGEST, window })
    }
}

/// What a sender does when no block ack came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissedBlockAck {
    /// It sends the MPDUs again.
    #[default]
    Repeat,
    /// It asks with a block ack request what has arrived. ns-3's default.
    Bar,
}
