//! What 802.11n, ac and ax send data with: bits per symbol, symbols, preambles.
//!
//! ```text
//! N_DBPS = floor(N_SD x N_BPSCS x N_SS x R)   [bits per symbol]
//! ```
//!
//! | | n, ac | ax |
//! |---|---|---|
//! | data subcarriers N_SD at 20, 40, 80, 160 MHz | 52, 108, 234, 468 | 234, 468, 980, 1960 |
//! | symbol without guard interval | 3.2 us | 12.8 us |
//! | guard intervals | 400, 800 ns | 800, 1600, 3200 ns |
//! | MCS | n 0..7, ac 0..9 | 0..11 |
//!
//! N_BPSCS and R by MCS: BPSK 1/2, QPSK 1/2 and 3/4, 16-QAM 1/2 and 3/4, 64-QAM 2/3, 3/4 and 5/6, 256-QAM 3/4 and 5/6,
//! 1024-QAM 3/4 and 5/6. Preambles, N_LTF = 1, 2, 4, 4 for 1 to 4 streams:
//!
//! ```text
//! n   8 + 8 + 4 + 8 + 4 + 4 N_LTF          L-STF, L-LTF, L-SIG, HT-SIG, HT-STF, HT-LTF
//! ac  8 + 8 + 4 + 8 + 4 + 4 N_LTF + 4      .., VHT-SIG-A, VHT-STF, VHT-LTF, VHT-SIG-B
//! ax  8 + 8 + 4 + 4 + 8 + 4 + T_LTF N_LTF  .., RL-SIG, HE-SIG-A, HE-STF; T_LTF 7.2, 8, 16 us by the guard interval
//! ```
//!
//! Source: IEEE 802.11-2020 clauses 19 and 21, 802.11ax-2021 clause 27. An HE-LTF is the shortest that each guard interval
//! must have (2x, 2x, 4x). Not modelled: greenfield preambles, 1x HE-LTF, packet extension, space-time coding, dual carriers.

use lasthop_core::units::{BitRate, Span};

use crate::phy::{Rate, Standard};

/// What a frame is sent with, as far as errors are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modulation {
    /// Of n, ac and ax: 0 to 11.
    Mcs(u8),
    /// BPSK with code 3/4, which no MCS has: 9 Mbit/s.
    Bpsk34,
    /// 1 Mbit/s.
    Dbpsk,
    /// 2 Mbit/s.
    Dqpsk,
    /// 5.5 Mbit/s.
    Cck5,
    /// 11 Mbit/s.
    Cck11,
}

/// Width of the channel that a frame fills.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Width {
    /// 20 MHz.
    #[default]
    Mhz20,
    /// 40 MHz.
    Mhz40,
    /// 80 MHz.
    Mhz80,
    /// 160 MHz.
    Mhz160,
}

impl Width {
    /// Each, narrowest first.
    pub const ALL: [Self; 4] = [Self::Mhz20, Self::Mhz40, Self::Mhz80, Self::Mhz160];

    /// In MHz.
    #[must_use]
    pub const fn mhz(self) -> u32 {
        20 << self as u32
    }
}

/// What stands before every symbol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Guard {
    /// 400 ns: n and ac.
    Ns400,
    /// 800 ns: all.
    #[default]
    Ns800,
    /// 1600 ns: ax.
    Ns1600,
    /// 3200 ns: ax.
    Ns3200,
}

impl Guard {
    /// Each, shortest first.
    pub const ALL: [Self; 4] = [Self::Ns400, Self::Ns800, Self::Ns1600, Self::Ns3200];

    /// In ns.
    #[must_use]
    pub const fn nanos(self) -> u32 {
        400 << self as u32
    }
}

/// How a frame of 802.11n, ac or ax is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mode {
    /// N, Ac or Ax.
    pub standard: Standard,
    /// Of the channel.
    pub width: Width,
    /// 1 to 4.
    pub streams: u8,
    /// Modulation and coding of one stream: n 0 to 7, ac 0 to 9, ax 0 to 11.
    pub mcs: u8,
    /// Between symbols.
    pub guard: Guard,
}

/// Coded bits per subcarrier and stream, and the code's rate, by MCS.
const CODING: [(u32, u32, u32); 12] = [
    (1, 1, 2),
    (2, 1, 2),
    (2, 3, 4),
    (4, 1, 2),
    (4, 3, 4),
    (6, 2, 3),
    (6, 3, 4),
    (6, 5, 6),
    (8, 3, 4),
    (8, 5, 6),
    (10, 3, 4),
    (10, 5, 6),
];

/// The rate without HT of the same modulation and coding, Mbit/s: what answers are chosen by (IEEE 802.11-2020, 10.6.11).
const REFERENCE_MBPS: [u32; 12] = [6, 12, 18, 24, 36, 48, 54, 54, 54, 54, 54, 54];

/// HT, VHT-LTFs or HE-LTFs for this many streams.
const LONG_TRAINING_FIELDS: [u64; 5] = [0, 1, 2, 4, 4];

impl Mode {
    /// Whether the standard has it.
    #[must_use]
    pub fn exists(&self) -> bool {
        let (mcs, width, guards) = match self.standard {
            Standard::B | Standard::G => return false,
            Standard::N => (7, Width::Mhz40, Guard::Ns400..=Guard::Ns800),
            Standard::Ac => (9, Width::Mhz160, Guard::Ns400..=Guard::Ns800),
            Standard::Ax => (11, Width::Mhz160, Guard::Ns800..=Guard::Ns3200),
        };
        let in_range =
            self.mcs <= mcs && self.width <= width && guards.contains(&self.guard) && (1..=4).contains(&self.streams);
        in_range && !self.is_excluded()
    }

    /// Modes of 802.11ac whose bits do not fill the encoders evenly (clause 21.5).
    fn is_excluded(&self) -> bool {
        let Self { standard, width, streams, mcs, .. } = *self;
        standard == Standard::Ac
            && matches!(
                (width, mcs, streams),
                (Width::Mhz20, 9, 1 | 2 | 4) | (Width::Mhz80, 6, 3) | (Width::Mhz160, 9, 3)
            )
    }

    /// Every mode of a standard.
    pub fn all(standard: Standard) -> impl Iterator<Item = Self> {
        let modes = Width::ALL.into_iter().flat_map(move |width| {
            (1..=4u8).flat_map(move |streams| {
                (0..12u8).flat_map(move |mcs| {
                    Guard::ALL.into_iter().map(move |guard| Self { standard, width, streams, mcs, guard })
                })
            })
        });
        modes.filter(Self::exists)
    }

    /// Data bits of one symbol, all streams together.
    #[must_use]
    pub fn bits_per_symbol(&self) -> u32 {
        let subcarriers = match (self.standard, self.width) {
            (Standard::Ax, Width::Mhz20) => 234,
            (Standard::Ax, Width::Mhz40) => 468,
            (Standard::Ax, Width::Mhz80) => 980,
            (Standard::Ax, Width::Mhz160) => 1960,
            (_, Width::Mhz20) => 52,
            (_, Width::Mhz40) => 108,
            (_, Width::Mhz80) => 234,
            (_, Width::Mhz160) => 468,
        };
        let (bits, of, parts) = CODING[usize::from(self.mcs)];
        subcarriers * bits * u32::from(self.streams) * of / parts
    }

    /// One symbol with its guard interval.
    #[must_use]
    pub fn symbol(&self) -> Span {
        let bare = if self.standard == Standard::Ax { 12_800 } else { 3_200 };
        Span::from_nanos(bare + u64::from(self.guard.nanos()))
    }

    /// Everything before the data, as the standard has it.
    #[must_use]
    pub fn preamble(&self) -> Span {
        let fields = LONG_TRAINING_FIELDS[usize::from(self.streams)];
        match self.standard {
            Standard::Ac => Span::from_micros(36 + 4 * fields),
            Standard::Ax => Span::from_micros(36) + self.he_training_field() * fields,
            _ => Span::from_micros(32 + 4 * fields),
        }
    }

    /// As ns-3.37 has it: no VHT-SIG-B, HE-LTFs of 8 us whatever the guard interval.
    pub(crate) fn ns3_preamble(&self) -> Span {
        let fields = LONG_TRAINING_FIELDS[usize::from(self.streams)];
        match self.standard {
            Standard::Ax => Span::from_micros(36 + 8 * fields),
            _ => Span::from_micros(32 + 4 * fields),
        }
    }

    fn he_training_field(&self) -> Span {
        Span::from_nanos(match self.guard {
            Guard::Ns3200 => 16_000,
            Guard::Ns1600 => 8_000,
            Guard::Ns400 | Guard::Ns800 => 7_200,
        })
    }

    /// What it carries, bit/s; as the tables of the standards, but for their rounding.
    #[must_use]
    pub fn bit_rate(&self) -> BitRate {
        BitRate::bps(u64::from(self.bits_per_symbol()) * 1_000_000_000 / self.symbol().as_nanos())
    }

    /// The OFDM rate of the same modulation and coding.
    #[must_use]
    pub fn reference(&self) -> Rate {
        let mbps = REFERENCE_MBPS[usize::from(self.mcs)];
        Rate::of(Standard::G, BitRate::mbps(u64::from(mbps))).unwrap_or(Rate::OFDM_6)
    }

    /// Every data frame is an A-MPDU, one of a single MPDU included.
    #[must_use]
    pub fn always_delimits(&self) -> bool {
        self.standard != Standard::N
    }
}

/// Marks a rate as the code of a mode; no rate in bit/s of b or g has this bit.
const CODE: u32 = 1 << 31;

impl Mode {
    /// Fields in the order in which rates are compared.
    pub(crate) fn code(self) -> u32 {
        let Self { standard, width, streams, mcs, guard } = self;
        CODE | (standard as u32) << 16
            | (width as u32) << 12
            | u32::from(streams) << 8
            | u32::from(mcs) << 4
            | guard as u32
    }

    pub(crate) fn of_code(code: u32) -> Option<Self> {
        if code & CODE == 0 {
            return None;
        }
        let standard = [Standard::N, Standard::Ac, Standard::Ax]
            .into_iter()
            .find(|standard| *standard as u32 == code >> 16 & 15)?;
        Some(Self {
            standard,
            width: Width::ALL[(code >> 12 & 3) as usize],
            streams: (code >> 8 & 15) as u8,
            mcs: (code >> 4 & 15) as u8,
            guard: Guard::ALL[(code & 3) as usize],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(standard: Standard, width: Width, streams: u8, mcs: u8, guard: Guard) -> Mode {
        Mode { standard, width, streams, mcs, guard }
    }

    #[test]
    fn rates_are_those_of_the_standards_tables() {
        use Guard::{Ns400, Ns800, Ns1600, Ns3200};
        use Standard::{Ac, Ax, N};
        use Width::{Mhz20, Mhz40, Mhz80, Mhz160};
        // IEEE 802.11-2020 tables 19-27 to 19-34 and 21-30 to 21-61, 802.11ax-2021 tables 27-55 to 27-110; Mbit/s.
        for (mode, mbps) in [
            (mode(N, Mhz20, 1, 0, Ns800), 6.5),
            (mode(N, Mhz20, 1, 7, Ns800), 65.0),
            (mode(N, Mhz20, 2, 7, Ns400), 144.4),
            (mode(N, Mhz40, 4, 7, Ns400), 600.0),
            (mode(Ac, Mhz20, 1, 8, Ns800), 78.0),
            (mode(Ac, Mhz40, 3, 9, Ns800), 540.0),
            (mode(Ac, Mhz80, 2, 9, Ns400), 866.7),
            (mode(Ac, Mhz160, 4, 9, Ns400), 3466.7),
            (mode(Ax, Mhz20, 1, 0, Ns3200), 7.3),
            (mode(Ax, Mhz20, 1, 11, Ns800), 143.4),
            (mode(Ax, Mhz80, 2, 11, Ns800), 1201.0),
            (mode(Ax, Mhz160, 4, 11, Ns1600), 4537.0),
        ] {
            let found = mode.bit_rate().as_mbps_f64();
            assert!((found - mbps).abs() < 0.06 + mbps * 1e-4, "{mode:?}: {found} for {mbps}");
        }
    }

    #[test]
    fn preambles_are_those_of_the_table() {
        let us = |mode: Mode| mode.preamble().as_nanos() as f64 / 1000.0;
        assert_eq!(us(mode(Standard::N, Width::Mhz20, 1, 7, Guard::Ns800)), 36.0);
        assert_eq!(us(mode(Standard::N, Width::Mhz20, 3, 7, Guard::Ns800)), 48.0);
        let ac = mode(Standard::Ac, Width::Mhz80, 2, 9, Guard::Ns400);
        assert_eq!((us(ac), ac.ns3_preamble()), (44.0, Span::from_micros(40)));
        let ax = mode(Standard::Ax, Width::Mhz80, 2, 11, Guard::Ns800);
        assert_eq!((us(ax), ax.ns3_preamble()), (50.4, Span::from_micros(52)));
    }

    #[test]
    fn a_code_holds_a_mode_and_refuses_what_does_not_exist() {
        let mut count = 0;
        for mode in [Standard::N, Standard::Ac, Standard::Ax].into_iter().flat_map(Mode::all) {
            assert_eq!(Mode::of_code(mode.code()), Some(mode));
            assert_eq!(Rate::of_mode(mode).and_then(Rate::mode), Some(mode));
            count += 1;
        }
        // n: 2 widths x 4 x 8 x 2; ac: (4 x 4 x 10 - 5) x 2; ax: 4 x 4 x 12 x 3.
        assert_eq!(count, 128 + 310 + 576);
        assert_eq!(Rate::of_mode(mode(Standard::Ac, Width::Mhz20, 1, 9, Guard::Ns800)), None);
        assert_eq!(Rate::of_mode(mode(Standard::N, Width::Mhz80, 1, 0, Guard::Ns800)), None);
        assert_eq!(Rate::OFDM_54.mode(), None);
    }

    #[test]
    fn a_mode_without_a_fraction_of_a_bit_is_exact() {
        for mode in Mode::all(Standard::Ac) {
            let (bits, of, parts) = CODING[usize::from(mode.mcs)];
            let all = mode.bits_per_symbol() * parts;
            assert_eq!(all % (bits * of), 0, "{mode:?}");
        }
    }
}
