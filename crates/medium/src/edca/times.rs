//! The air times of one data rate in a cell with classes, computed once.

use lasthop_core::units::Span;

use crate::phy::{ACK_BYTES, LLC_BYTES, Phy, Rate};

/// QoS header and FCS, bytes.
pub const QOS_BYTES: u32 = 26 + 4;
/// The same and LLC/SNAP.
pub const QOS_LLC_BYTES: u32 = QOS_BYTES + LLC_BYTES;
/// Before every MPDU of an A-MPDU.
pub const DELIMITER_BYTES: u32 = 4;
/// Header of an A-MSDU's subframe and LLC/SNAP.
pub const SUBFRAME_BYTES: u32 = 14 + LLC_BYTES;
/// Block ack request.
const REQUEST_BYTES: u32 = 24;
/// Block acks of windows up to 64 and 256 MPDUs.
const BLOCK_ACK_BYTES: [u32; 2] = [32, 56];
/// Windows up to this have the short one.
const SHORT_WINDOW: u16 = 64;

/// How long the symbols of a frame last together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Symbols {
    /// OFDM.
    Whole {
        /// Before the data, and the signal extension.
        around: u64,
        symbol: u64,
        bits: u64,
        /// Service and tail.
        extra_bits: u64,
        /// The symbols together are a multiple of this.
        multiple: u64,
    },
    /// DSSS and CCK.
    Any,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Times {
    phy: Phy,
    /// Of data frames.
    pub rate: Rate,
    /// Of all others.
    pub control: Rate,
    pub rts: Span,
    /// CTS or ACK.
    pub ack: Span,
    block_acks: [Span; 2],
    /// Block ack request.
    pub request: Span,
    /// See [`Phy::answer_timeout`].
    pub answer_timeout: Span,
    /// See [`Phy::nav_reset`].
    pub nav_reset: Span,
    /// See [`Phy::protection`].
    pub protection: Span,
    /// A single MPDU has a delimiter, too.
    pub delimits_one: bool,
    symbols: Symbols,
}

impl Times {
    /// Of frames sent at `rate`.
    pub fn new(phy: &Phy, rate: Rate) -> Self {
        let control = phy.control(rate);
        let control_frame = |bytes| phy.duration(control, bytes);
        Self {
            phy: *phy,
            rate,
            control,
            rts: phy.rts(rate),
            ack: control_frame(ACK_BYTES),
            block_acks: BLOCK_ACK_BYTES.map(control_frame),
            request: control_frame(REQUEST_BYTES),
            answer_timeout: phy.answer_timeout(control),
            nav_reset: phy.nav_reset(control),
            protection: phy.protection(rate),
            delimits_one: rate.mode().is_some_and(|mode| mode.always_delimits()),
            symbols: phy.symbols(rate).map_or(Symbols::Any, |of| Symbols::Whole {
                around: of.around.as_nanos(),
                symbol: of.symbol.as_nanos(),
                bits: of.bits,
                extra_bits: 22,
                multiple: of.multiple.as_nanos(),
            }),
        }
    }

    /// Block ack for a window of so many MPDUs.
    #[inline]
    pub fn block_ack(&self, window: u16) -> Span {
        self.block_acks[usize::from(window > SHORT_WINDOW)]
    }

    /// A data frame of a PSDU of so many bytes, CTS-to-self included.
    #[inline]
    pub fn data(&self, bytes: u32) -> Span {
        let Symbols::Whole { around, symbol, bits, extra_bits, multiple } = self.symbols else {
            return self.protection + self.phy.duration(self.rate, bytes);
        };
        let symbols = (extra_bits + 8 * u64::from(bytes)).div_ceil(bits) * symbol;
        let symbols = if multiple > 1 { symbols.div_ceil(multiple) * multiple } else { symbols };
        self.protection + Span::from_nanos(around + symbols)
    }

    /// Most bytes of a PSDU whose frame lasts at most so long, CTS-to-self not counted.
    pub fn bytes_within(&self, span: Span) -> u32 {
        let Symbols::Whole { around, symbol, bits, extra_bits, multiple } = self.symbols else {
            return self.phy.bytes_within(self.rate, span);
        };
        let nanos = span.as_nanos().saturating_sub(around);
        let symbols = nanos / multiple * multiple / symbol;
        ((symbols * bits).saturating_sub(extra_bits) / 8) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::Mode;
    use crate::params::MediumParams;
    use crate::phy::{Band, Standard, Timing};
    use proptest::prelude::*;

    fn rates() -> Vec<Rate> {
        let modes = [Standard::N, Standard::Ac, Standard::Ax].into_iter().flat_map(Mode::all);
        Rate::all(Standard::G).chain(modes.filter_map(Rate::of_mode)).collect()
    }

    proptest! {
        #[test]
        fn times_are_what_the_phy_says(
            rate in prop::sample::select(rates()), bytes in 0u32..70_000, us in 30u64..6_000, ns3 in any::<bool>(),
            five in any::<bool>(),
        ) {
            let timing = if ns3 { Timing::Ns3 } else { Timing::Standard };
            let band = if five && rate.is_ofdm() { Band::Ghz5 } else { Band::Ghz2 };
            let phy = MediumParams { standard: Standard::N, timing, band, ..MediumParams::default() }.phy(&[]);
            let times = Times::new(&phy, rate);
            prop_assert_eq!(times.data(bytes), phy.duration(rate, bytes));
            let span = Span::from_micros(us);
            let most = times.bytes_within(span);
            prop_assert_eq!(most, phy.bytes_within(rate, span));
            prop_assert!(phy.duration(rate, most + 1) > span);
        }
    }
}
