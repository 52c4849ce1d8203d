//! How long frames last on the channel, and the waits around them, in exact nanoseconds.
//!
//! DSSS/CCK (802.11b): `header + 8 n / R`, header 192 us (long preamble) or 96 us (short; never at 1 Mbit/s).
//! ERP-OFDM (802.11g): `20 us + 4 us x ceil((16 + 8 n + 6) / N_DBPS) + 6 us`, N_DBPS = 4 us x R, 6 us signal extension.
//! 802.11n, ac, ax: `preamble + ceil((22 + 8 n) / N_DBPS) x symbol` ([`crate::mode`]), at 2.4 GHz 6 us more.
//! n counts the bytes of the MAC frame: 28 of header and FCS, 8 of LLC/SNAP, the IP packet; ACK and CTS 14, RTS 20.
//! `EIFS = SIFS + ACK at the lowest basic rate + DIFS`, `ACK timeout = SIFS + slot + PHY header`.
//! Source: IEEE 802.11-2016 clauses 10.3, 15, 16, 18.
//!
//! A b station in a g cell (or `protection`) makes the slot 20 us and every OFDM data frame is preceded by a
//! CTS-to-self at 1 or 2 Mbit/s and a SIFS.
//!
//! [`Timing::Ns2G`] is ns-2's departure for 802.11g: SIFS 16 us with the signal extension folded in, no rounding to
//! symbols, header 20 us, control frames at 6 Mbit/s. It and [`Timing::Ns2B`]: 34 bytes of MAC header and no LLC/SNAP,
//! ACK timeout = SIFS + ACK + 4 us, NAV rounded up to whole microseconds, a DIFS after every EIFS, which an answer that
//! follows does not end, backoff from `0..CW-1`; an arrival into an idle medium waits DIFS and a backoff; a sender of a
//! collision that still hears another's frame end waits EIFS like everybody.

use lasthop_core::units::{BitRate, Span};

use crate::mode::{Guard, Mode, Modulation};

/// Generation of the radio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standard {
    /// 802.11b: DSSS and CCK, 1 to 11 Mbit/s.
    B,
    /// 802.11g: ERP-OFDM, 6 to 54 Mbit/s, and the rates of 802.11b.
    #[default]
    G,
    /// 802.11n (HT): [`Mode`]s of 20 and 40 MHz, classes of traffic, aggregates.
    N,
    /// 802.11ac (VHT): at 5 GHz, up to 160 MHz.
    Ac,
    /// 802.11ax (HE), one user at a time.
    Ax,
}

impl Standard {
    /// Knows classes of traffic and aggregates.
    #[must_use]
    pub const fn has_classes(self) -> bool {
        matches!(self, Self::N | Self::Ac | Self::Ax)
    }
}

/// Where in the spectrum a cell is: the SIFS, and the signal extension of OFDM frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Band {
    /// 2.4 GHz: SIFS 10 us, 6 us after every OFDM frame.
    #[default]
    Ghz2,
    /// 5 GHz: SIFS 16 us.
    Ghz5,
}

/// Preamble of DSSS frames at 2 Mbit/s and above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preamble {
    /// 192 us of preamble and header.
    #[default]
    Long,
    /// 96 us.
    Short,
}

/// Whose timing rules are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timing {
    /// The standard's.
    #[default]
    Standard,
    /// ns-3.37's, for 802.11n, ac and ax: the standard's but for four things. No VHT-SIG-B in the preamble of ac (4 us),
    /// HE-LTFs of 8 us, frames with the short guard interval are not rounded up to 4 us, and receivers lock on one of the
    /// frames of a collision: EIFS counts from the end of that one, and the rest of an aggregate arrives whose beginning
    /// collided with a shorter frame.
    Ns3,
    /// ns-2.35's, for 802.11g; see the module.
    Ns2G,
    /// ns-2.35's, for 802.11b.
    Ns2B,
}

/// A data rate of 802.11b or 802.11g in bit/s, or the code of a [`Mode`]; cannot hold another. Comparing two modes says
/// nothing of which is faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(u32);

/// Rates of 802.11b, bit/s.
const DSSS: [u32; 4] = [1_000_000, 2_000_000, 5_500_000, 11_000_000];
/// Rates of 802.11g, bit/s.
const OFDM: [u32; 8] = [6_000_000, 9_000_000, 12_000_000, 18_000_000, 24_000_000, 36_000_000, 48_000_000, 54_000_000];
/// Mandatory rates at which control frames are sent, bit/s.
const DSSS_BASIC: [u32; 2] = [1_000_000, 2_000_000];
const OFDM_BASIC: [u32; 3] = [6_000_000, 12_000_000, 24_000_000];

impl Rate {
    /// 1 Mbit/s DSSS.
    pub const DSSS_1: Self = Self(DSSS[0]);
    /// 11 Mbit/s CCK.
    pub const DSSS_11: Self = Self(DSSS[3]);
    /// 6 Mbit/s OFDM.
    pub const OFDM_6: Self = Self(OFDM[0]);
    /// 24 Mbit/s OFDM.
    pub const OFDM_24: Self = Self(OFDM[4]);
    /// 54 Mbit/s OFDM.
    pub const OFDM_54: Self = Self(OFDM[7]);

    /// The rate, if a radio of this standard has it.
    #[must_use]
    pub fn of(standard: Standard, rate: BitRate) -> Option<Self> {
        Self::all(standard).find(|r| r.bit_rate() == rate)
    }

    /// Every rate in bit/s of a standard, for messages; what n, ac and ax have besides, [`Mode::all`] lists.
    pub fn all(standard: Standard) -> impl Iterator<Item = Self> {
        let ofdm: &[u32] = if standard == Standard::B { &[] } else { &OFDM };
        DSSS.iter().chain(ofdm).map(|bps| Self(*bps))
    }

    /// The rate of a mode; `None`: its standard does not have it.
    #[must_use]
    pub fn of_mode(mode: Mode) -> Option<Self> {
        mode.exists().then(|| Self(mode.code()))
    }

    /// How it is sent, where that is with 802.11n, ac or ax.
    #[must_use]
    pub fn mode(self) -> Option<Mode> {
        Mode::of_code(self.0)
    }

    /// In bit/s with its unit.
    #[must_use]
    pub fn bit_rate(self) -> BitRate {
        self.mode().map_or(BitRate::bps(u64::from(self.0)), |mode| mode.bit_rate())
    }

    /// What errors depend on.
    #[must_use]
    pub fn modulation(self) -> Modulation {
        if let Some(mode) = self.mode() {
            return Modulation::Mcs(mode.mcs);
        }
        match self.0 {
            1_000_000 => Modulation::Dbpsk,
            2_000_000 => Modulation::Dqpsk,
            5_500_000 => Modulation::Cck5,
            11_000_000 => Modulation::Cck11,
            9_000_000 => Modulation::Bpsk34,
            12_000_000 => Modulation::Mcs(1),
            18_000_000 => Modulation::Mcs(2),
            24_000_000 => Modulation::Mcs(3),
            36_000_000 => Modulation::Mcs(4),
            48_000_000 => Modulation::Mcs(5),
            54_000_000 => Modulation::Mcs(6),
            _ => Modulation::Mcs(0),
        }
    }

    /// The rate without HT that answers are chosen by: its own, or that of the same modulation and coding.
    #[must_use]
    pub fn reference(self) -> Self {
        self.mode().map_or(self, |mode| mode.reference())
    }

    /// Sent with OFDM, not DSSS or CCK.
    #[must_use]
    pub fn is_ofdm(self) -> bool {
        self.mode().is_some() || OFDM.contains(&self.0)
    }
}

/// MAC header and FCS, bytes.
pub const MAC_BYTES: u32 = 28;
/// LLC/SNAP, bytes.
pub const LLC_BYTES: u32 = 8;
/// ACK and CTS, bytes.
pub const ACK_BYTES: u32 = 14;
/// RTS, bytes.
pub const RTS_BYTES: u32 = 20;
/// ns-2's MAC header, bytes.
const NS2_MAC_BYTES: u32 = 34;

/// What the duration of an OFDM frame follows from: `around + ceil((22 + 8 n) / bits) x symbol`, the symbols together a
/// multiple of `multiple`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Symbols {
    /// Preamble and signal extension.
    pub around: Span,
    pub symbol: Span,
    /// Data bits of a symbol.
    pub bits: u64,
    pub multiple: Span,
}

/// What the air times of one cell follow from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phy {
    /// Generation of the access point.
    pub standard: Standard,
    /// Whose rules.
    pub timing: Timing,
    /// Of DSSS frames.
    pub preamble: Preamble,
    /// CTS-to-self before OFDM data, 20 us slots.
    pub protection: bool,
    /// Control frames are never sent faster than this; `None`: the highest basic rate not above the data rate.
    pub control_rate: Option<Rate>,
    /// Where in the spectrum.
    pub band: Band,
}

impl Phy {
    /// One slot of backoff.
    #[must_use]
    pub fn slot(&self) -> Span {
        let short = self.is_ns2_g() || (self.standard != Standard::B && !self.protection);
        Span::from_micros(if short { 9 } else { 20 })
    }

    /// Between the frames of one exchange.
    #[must_use]
    pub fn sifs(&self) -> Span {
        Span::from_micros(if self.is_ns2_g() || self.band == Band::Ghz5 { 16 } else { 10 })
    }

    /// Idle time before contention.
    #[must_use]
    pub fn difs(&self) -> Span {
        self.sifs() + self.slot() * 2
    }

    /// Idle time before contention after a frame that could not be decoded.
    #[must_use]
    pub fn eifs(&self) -> Span {
        let lowest = if self.slot() == Span::from_micros(9) { Rate::OFDM_6 } else { Rate::DSSS_1 };
        let eifs = self.sifs() + self.duration(lowest, ACK_BYTES) + self.difs();
        // ns-2 sets a NAV of its EIFS (which holds a DIFS), in whole microseconds, and waits a DIFS after it.
        if self.is_ns2() { whole_micros(eifs) + self.difs() } else { eifs }
    }

    /// How long after the end of its frame a sender waits for an answer sent at `control`.
    #[must_use]
    pub fn answer_timeout(&self, control: Rate) -> Span {
        if self.is_ns2() {
            return self.sifs() + self.duration(control, ACK_BYTES) + Span::from_micros(4);
        }
        self.sifs() + self.slot() + self.header(control)
    }

    /// How long a NAV that an RTS set holds when nothing follows it (IEEE 802.11-2016, 10.3.2.4).
    #[must_use]
    pub fn nav_reset(&self, control: Rate) -> Span {
        self.sifs() * 2 + self.duration(control, ACK_BYTES) + self.header(control) + self.slot() * 2
    }

    /// A NAV of this length as overhearers keep it.
    #[must_use]
    pub fn nav(&self, length: Span) -> Span {
        if self.is_ns2() { whole_micros(length) } else { length }
    }

    /// First contention window of a radio of this standard, slots.
    #[must_use]
    pub fn cw_min(&self, standard: Standard) -> u32 {
        if standard == Standard::B && !self.is_ns2_g() { 31 } else { 15 }
    }

    /// Largest contention window, slots.
    #[must_use]
    pub fn cw_max(&self) -> u32 {
        1023
    }

    /// How many values a backoff of window `cw` is drawn from.
    #[must_use]
    pub fn backoff_values(&self, cw: u32) -> u64 {
        u64::from(cw) + u64::from(!self.is_ns2())
    }

    /// Rate of the ACK or CTS that answers a frame of this rate.
    #[must_use]
    pub fn control(&self, data: Rate) -> Rate {
        if self.is_ns2() && self.control_rate.is_none() {
            return if data.is_ofdm() { Rate::OFDM_6 } else { Rate::DSSS_1 };
        }
        let data = data.reference();
        let cap = self.control_rate.map_or(data, |c| c.min(data));
        let basic: &[u32] = if data.is_ofdm() { &OFDM_BASIC } else { &DSSS_BASIC };
        if cap.is_ofdm() == data.is_ofdm() && self.control_rate == Some(cap) {
            return cap;
        }
        Rate(basic.iter().rev().find(|bps| **bps <= cap.0).copied().unwrap_or(basic[0]))
    }

    /// Length of the MAC frame of an IP packet, bytes; what `rts_threshold` is compared with.
    #[must_use]
    pub fn frame_bytes(&self, ip_bytes: u32) -> u32 {
        ip_bytes + if self.is_ns2() { NS2_MAC_BYTES } else { MAC_BYTES + LLC_BYTES }
    }

    /// An IP packet's data frame, CTS-to-self not included.
    #[must_use]
    pub fn data(&self, rate: Rate, ip_bytes: u32) -> Span {
        self.duration(rate, self.frame_bytes(ip_bytes))
    }

    /// CTS-to-self and the SIFS after it, where a data frame of this rate needs them; else nothing.
    #[must_use]
    pub fn protection(&self, rate: Rate) -> Span {
        if !self.protection || self.is_ns2() || !rate.is_ofdm() {
            return Span::ZERO;
        }
        let cts = self.control(Rate::DSSS_11);
        self.duration(cts, ACK_BYTES) + self.sifs()
    }

    /// ACK or CTS that answers a frame sent at `rate`.
    #[must_use]
    pub fn answer(&self, rate: Rate) -> Span {
        self.duration(self.control(rate), ACK_BYTES)
    }

    /// RTS that precedes a data frame of this rate.
    #[must_use]
    pub fn rts(&self, rate: Rate) -> Span {
        self.duration(self.control(rate), RTS_BYTES)
    }

    /// How OFDM frames of this rate last; `None`: they are no whole symbols.
    pub(crate) fn symbols(&self, rate: Rate) -> Option<Symbols> {
        let extension = self.signal_extension();
        if let Some(mode) = rate.mode() {
            let (ns3, short) = (self.timing == Timing::Ns3, mode.guard == Guard::Ns400);
            return Some(Symbols {
                around: if ns3 { mode.ns3_preamble() } else { mode.preamble() } + extension,
                symbol: mode.symbol(),
                bits: u64::from(mode.bits_per_symbol()),
                multiple: if short && !ns3 { Span::from_micros(4) } else { Span::from_nanos(1) },
            });
        }
        (rate.is_ofdm() && !self.is_ns2()).then(|| Symbols {
            around: Span::from_micros(20) + extension,
            symbol: Span::from_micros(4),
            bits: u64::from(rate.0) * 4 / 1_000_000,
            multiple: Span::from_nanos(1),
        })
    }

    /// A frame of `bytes` MAC bytes at `rate`, preamble to last symbol (and signal extension).
    #[must_use]
    pub fn duration(&self, rate: Rate, bytes: u32) -> Span {
        if let Some(mode) = rate.mode() {
            return self.mode_duration(&mode, bytes);
        }
        let bits = u64::from(bytes) * 8;
        let plain = || self.header(rate) + Span::from_nanos((bits * 1_000_000_000).div_ceil(u64::from(rate.0)));
        if self.is_ns2() || !rate.is_ofdm() {
            return plain();
        }
        let bits_per_symbol = u64::from(rate.0) * 4 / 1_000_000;
        let symbols = (16 + bits + 6).div_ceil(bits_per_symbol);
        Span::from_micros(20 + 4 * symbols) + self.signal_extension()
    }

    /// The same with 802.11n, ac or ax: `preamble + ceil((22 + 8 n) / N_DBPS) x symbol`, the symbols together rounded up to
    /// 4 us where the guard interval is short.
    fn mode_duration(&self, mode: &Mode, bytes: u32) -> Span {
        let bits = 22 + 8 * u64::from(bytes);
        let symbols = mode.symbol() * bits.div_ceil(u64::from(mode.bits_per_symbol()));
        if self.timing == Timing::Ns3 {
            return mode.ns3_preamble() + symbols + self.signal_extension();
        }
        let four_us = if mode.guard == Guard::Ns400 { 4_000 } else { 1 };
        let symbols = Span::from_nanos(symbols.as_nanos().div_ceil(four_us) * four_us);
        mode.preamble() + symbols + self.signal_extension()
    }

    /// Most bytes of a frame of at most this duration.
    #[must_use]
    pub fn bytes_within(&self, rate: Rate, duration: Span) -> u32 {
        let (mut fits, mut does_not) = (0u32, 1 << 23);
        while does_not - fits > 1 {
            let middle = fits.midpoint(does_not);
            if self.duration(rate, middle) <= duration { fits = middle } else { does_not = middle }
        }
        fits
    }

    /// Nothing at 5 GHz.
    fn signal_extension(&self) -> Span {
        Span::from_micros(if self.band == Band::Ghz2 { 6 } else { 0 })
    }

    /// Preamble and PHY header.
    fn header(&self, rate: Rate) -> Span {
        let micros = match (rate.is_ofdm() || self.is_ns2_g(), self.preamble) {
            (true, _) => 20,
            (false, Preamble::Short) if rate != Rate::DSSS_1 => 96,
            (false, _) => 192,
        };
        Span::from_micros(micros)
    }

    /// Whether ns-2's rules are followed.
    #[must_use]
    pub fn is_ns2(&self) -> bool {
        matches!(self.timing, Timing::Ns2G | Timing::Ns2B)
    }

    fn is_ns2_g(&self) -> bool {
        self.timing == Timing::Ns2G
    }
}

fn whole_micros(span: Span) -> Span {
    Span::from_nanos(span.as_nanos().div_ceil(1_000) * 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const G: Phy = Phy {
        standard: Standard::G,
        timing: Timing::Standard,
        preamble: Preamble::Long,
        protection: false,
        control_rate: None,
        band: Band::Ghz2,
    };
    const B: Phy = Phy { standard: Standard::B, ..G };
    const NS2: Phy = Phy { timing: Timing::Ns2G, ..G };

    fn us(n: u64) -> Span {
        Span::from_micros(n)
    }

    fn dsss(mbps_tenths: u32) -> Rate {
        Rate::of(Standard::B, BitRate::bps(u64::from(mbps_tenths) * 100_000)).unwrap()
    }

    #[test]
    fn ofdm_frames_last_whole_symbols_plus_signal_extension() {
        // (16 + 8 x 1536 + 6) / 216 = 56.99 symbols.
        assert_eq!(G.data(Rate::OFDM_54, 1500), us(20 + 4 * 57 + 6));
        // (16 + 8 x 1536 + 6) / 24 = 512.9.
        assert_eq!(G.data(Rate::OFDM_6, 1500), us(20 + 4 * 513 + 6));
        // 134 bits: 2 symbols of 96 at 24 Mbit/s, 6 of 24 at 6 Mbit/s.
        assert_eq!(G.answer(Rate::OFDM_54), us(34));
        assert_eq!(G.answer(Rate::OFDM_6), us(50));
        // 182 bits at 24 Mbit/s.
        assert_eq!(G.rts(Rate::OFDM_54), us(34));
    }

    #[test]
    fn dsss_frames_last_header_plus_bits() {
        // 12288 bits at 11 Mbit/s are 1117.0909.. us.
        assert_eq!(B.data(Rate::DSSS_11, 1500), Span::from_nanos(192_000 + 1_117_091));
        assert_eq!(B.data(Rate::DSSS_1, 1500), us(192 + 12288));
        assert_eq!(B.data(dsss(20), 1500), us(192 + 6144));
        // 12288 / 5.5 = 2234.1818.. us.
        assert_eq!(B.data(dsss(55), 1500), Span::from_nanos(192_000 + 2_234_182));
        assert_eq!(B.answer(Rate::DSSS_11), us(192 + 56));
        assert_eq!(B.answer(Rate::DSSS_1), us(192 + 112));
        assert_eq!(B.rts(Rate::DSSS_11), us(192 + 80));
    }

    #[test]
    fn the_short_preamble_halves_the_header_but_not_at_1_mbit() {
        let short = Phy { preamble: Preamble::Short, ..B };
        assert_eq!(short.data(dsss(20), 100), us(96 + 136 * 4));
        assert_eq!(short.answer(Rate::DSSS_11), us(96 + 56));
        assert_eq!(short.answer(Rate::DSSS_1), us(192 + 112));
    }

    #[test]
    fn waits_are_those_of_the_table() {
        assert_eq!((B.slot(), B.sifs(), B.difs(), B.eifs()), (us(20), us(10), us(50), us(364)));
        assert_eq!((G.slot(), G.sifs(), G.difs(), G.eifs()), (us(9), us(10), us(28), us(88)));
        assert_eq!((B.cw_min(Standard::B), G.cw_min(Standard::G), G.cw_max()), (31, 15, 1023));
        assert_eq!(G.answer_timeout(Rate::OFDM_24), us(39));
        assert_eq!(B.answer_timeout(Rate::DSSS_1), us(222));
    }

    #[test]
    fn protection_makes_long_slots_and_a_cts_to_self() {
        let mixed = Phy { protection: true, ..G };
        assert_eq!((mixed.slot(), mixed.difs(), mixed.eifs()), (us(20), us(50), us(364)));
        assert_eq!(mixed.protection(Rate::OFDM_54), us(192 + 56 + 10));
        assert_eq!(mixed.protection(Rate::DSSS_11), Span::ZERO);
        assert_eq!((mixed.cw_min(Standard::G), mixed.cw_min(Standard::B)), (15, 31));
        let slow = Phy { control_rate: Some(Rate::DSSS_1), ..mixed };
        assert_eq!(slow.protection(Rate::OFDM_54), us(192 + 112 + 10));
    }

    #[test]
    fn control_frames_use_the_highest_basic_rate_not_above_the_data_rate() {
        let ofdm = |mbps| Rate::of(Standard::G, BitRate::mbps(mbps)).unwrap();
        for (data, control) in [(54, 24), (36, 24), (24, 24), (18, 12), (12, 12), (9, 6), (6, 6)] {
            assert_eq!(G.control(ofdm(data)), ofdm(control), "{data}");
        }
        assert_eq!(G.control(Rate::DSSS_11), dsss(20));
        let capped = Phy { control_rate: Some(Rate::OFDM_6), ..G };
        assert_eq!(capped.control(Rate::OFDM_54), Rate::OFDM_6);
        let capped = Phy { control_rate: Some(Rate::OFDM_24), ..G };
        assert_eq!(capped.control(ofdm(9)), Rate::OFDM_6);
        assert_eq!(capped.control(Rate::DSSS_11), dsss(20));
        let capped = Phy { control_rate: Some(Rate::DSSS_1), ..B };
        assert_eq!(capped.control(Rate::DSSS_11), Rate::DSSS_1);
        let capped = Phy { control_rate: Some(dsss(55)), ..B };
        assert_eq!(capped.control(Rate::DSSS_11), dsss(55));
    }

    #[test]
    fn ns2_timing_is_that_of_the_reference_runs() {
        assert_eq!((NS2.slot(), NS2.sifs(), NS2.difs()), (us(9), us(16), us(34)));
        // 8 x 1534 bits at 54 Mbit/s: 227.26 us.
        assert_eq!(NS2.data(Rate::OFDM_54, 1500), Span::from_nanos(20_000 + 227_260));
        assert_eq!(NS2.answer(Rate::OFDM_54), Span::from_nanos(20_000 + 18_667));
        // SIFS + DIFS + ACK = 88.67 us, rounded up, then DIFS.
        assert_eq!(NS2.eifs(), us(89 + 34));
        assert_eq!(NS2.nav(NS2.sifs() + NS2.answer(Rate::OFDM_54)), us(55));
        assert_eq!(NS2.backoff_values(15), 15);
        assert_eq!(G.backoff_values(15), 16);
    }

    #[test]
    fn ns2_timing_of_802_11b_is_that_of_the_reference_runs() {
        let b = Phy { timing: Timing::Ns2B, ..B };
        assert_eq!((b.slot(), b.sifs(), b.difs(), b.cw_min(Standard::B)), (us(20), us(10), us(50), 31));
        // 8 x 1034 bits at 11 Mbit/s; the ACK, 14 bytes at 1 Mbit/s; each after a header of 192 us.
        assert_eq!(b.data(Rate::DSSS_11, 1000), Span::from_nanos(192_000 + 752_000));
        assert_eq!(b.answer(Rate::DSSS_11), us(304));
        assert_eq!(b.eifs(), us(10 + 50 + 304 + 50));
        assert_eq!(b.answer_timeout(Rate::DSSS_1), us(10 + 304 + 4));
    }

    #[test]
    fn a_rate_belongs_to_its_standard() {
        assert_eq!(Rate::of(Standard::B, BitRate::mbps(54)), None);
        assert_eq!(Rate::of(Standard::G, BitRate::mbps(54)), Some(Rate::OFDM_54));
        assert_eq!(Rate::of(Standard::G, BitRate::mbps(7)), None);
        assert_eq!(Rate::all(Standard::G).count(), 12);
    }
}
