//! What AQL expects a packet to take of the air.
//!
//! `estimate = (bytes + 38) x 8 / rate + overhead / aggregated   [us], down to a multiple of 4, at least 4, at most 4092`
//!
//! overhead: preamble and SIFS, `36 us + 4 us x streams`; of radios before 802.11n `20 + 16 us` (OFDM), `192 + 10 us` (DSSS).
//! aggregated: how many packets are thought to share it, from the time `t` of 1 KiB: 2 above 400 us, 4 above 250, 8 above 150, 16
//! above 70, else 32; 64 for 802.11ax up to 20 us. In class VO one. Nothing of contention, answers and repetitions.
//!
//! Source: Linux, `net/mac80211/airtime.c`, `ieee80211_calc_expected_tx_airtime`; `tx_time_est` has 10 bits of 4 us each.

use crate::units::{BitRate, Span};

/// Ethernet header and what comes with it, bytes.
const HEADER_BYTES: u64 = 38;

/// Estimated air time that waits below the discipline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pending(u32);

impl Pending {
    /// From microseconds, rounded down to what can be kept of one packet.
    const fn of_packet(us: u64) -> Self {
        let units = us / 4;
        Self(if units < 1 {
            1
        } else if units > 1023 {
            1023
        } else {
            units as u32
        })
    }

    /// As time.
    #[must_use]
    pub const fn span(self) -> Span {
        Span::from_micros(4 * self.0 as u64)
    }
}

impl std::ops::AddAssign for Pending {
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0);
    }
}

/// What packets to one station at one rate are expected to take. See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Of the time of a byte, ps.
    byte_ps: u64,
    /// Per packet, ns.
    overhead_ns: u64,
}

impl Estimate {
    /// At a rate of 802.11n, ac or ax of so many bits in a symbol. `aggregates`: the class is not VO and the station
    /// takes aggregates.
    #[must_use]
    pub fn new(bits: u32, symbol: Span, streams: u8, is_ax: bool, aggregates: bool) -> Self {
        let byte_ps = symbol.as_nanos() * 8000 / u64::from(bits.max(1));
        let overhead_ns = (36 + 4 * u64::from(streams)) * 1000;
        let shift = match byte_ps * 1024 / 1_000_000 {
            _ if !aggregates => 0,
            400.. => 1,
            250.. => 2,
            150.. => 3,
            70.. => 4,
            20.. => 5,
            _ => 5 + u32::from(is_ax),
        };
        Self { byte_ps, overhead_ns: overhead_ns >> shift }
    }

    /// At a rate of 802.11b or g.
    #[must_use]
    pub fn legacy(rate: BitRate, is_ofdm: bool) -> Self {
        let overhead_ns = if is_ofdm { 36_000 } else { 202_000 };
        Self { byte_ps: rate.time_for(1_000_000).as_nanos() / 1000, overhead_ns }
    }

    /// Of a packet of `bytes` IP bytes.
    #[must_use]
    pub fn of(&self, bytes: u32) -> Pending {
        let ns = (u64::from(bytes) + HEADER_BYTES) * self.byte_ps / 1000 + self.overhead_ns;
        Pending::of_packet(ns / 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(pending: Pending) -> u64 {
        pending.span().as_nanos() / 1000
    }

    #[test]
    fn estimates_are_those_of_linux() {
        let (gi_800, gi_400, ax) = (Span::from_nanos(4000), Span::from_nanos(3600), Span::from_nanos(13_600));
        // HT20 MCS7: 1 KiB in 126 us: 16 share 40 us. 1538 x 8 / 65 = 189.3; + 2.5; down to 188.
        assert_eq!(us(Estimate::new(260, gi_800, 1, false, true).of(1500)), 188);
        // In VO none share: 229.3 -> 228.
        assert_eq!(us(Estimate::new(260, gi_800, 1, false, false).of(1500)), 228);
        // HT20 MCS0: 1 KiB in 1260 us: 2 share. 1538 x 8 / 6.5 = 1892.9 + 20 -> 1912.
        assert_eq!(us(Estimate::new(26, gi_800, 1, false, true).of(1500)), 1912);
        // VHT80 MCS9, 2 streams: 14.2 + 44 / 32 -> 12. Small packets: at least 4.
        assert_eq!(us(Estimate::new(3120, gi_400, 2, false, true).of(1500)), 12);
        assert_eq!(us(Estimate::new(3120, gi_400, 2, false, true).of(40)), 4);
        // HE80 MCS11, 2 streams: 64 share: 10.2 + 0.7 -> 8.
        assert_eq!(us(Estimate::new(16_333, ax, 2, true, true).of(1500)), 8);
        // 54 Mbit/s: 227.9 + 36 -> 260. 1 Mbit/s: 12,304 + 202 us is more than can be kept.
        assert_eq!(us(Estimate::legacy(BitRate::mbps(54), true).of(1500)), 260);
        assert_eq!(us(Estimate::legacy(BitRate::mbps(1), false).of(1500)), 4092);
    }

    #[test]
    fn what_is_added_is_what_is_given_back() {
        let estimate = Estimate::new(260, Span::from_nanos(4000), 1, false, true);
        let mut sum = Pending::default();
        (0..10).for_each(|_| sum += estimate.of(1500));
        assert_eq!(us(sum), 1880);
    }
}
