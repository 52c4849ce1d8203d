//! The air times and waits of one cell, computed once, since every transmission asks for them.

use lasthop_core::units::Span;

use crate::phy::{Phy, Rate};

/// What every node of a cell waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waits {
    /// See [`Phy::slot`].
    pub slot: Span,
    /// See [`Phy::sifs`].
    pub sifs: Span,
    /// See [`Phy::difs`].
    pub difs: Span,
    /// See [`Phy::eifs`].
    pub eifs: Span,
    /// No frame that carries a packet is shorter.
    pub shortest: Span,
    /// Backoffs of window CW are drawn from `0..CW + more`.
    more: u64,
    cw_max: u32,
    /// Whether ns-2's rules are followed.
    pub is_ns2: bool,
}

impl Waits {
    /// Of a cell.
    #[must_use]
    pub fn new(phy: &Phy) -> Self {
        Self {
            slot: phy.slot(),
            sifs: phy.sifs(),
            difs: phy.difs(),
            eifs: phy.eifs(),
            shortest: Rate::all(phy.standard).map(|rate| phy.data(rate, 0)).min().unwrap_or_default(),
            more: phy.backoff_values(0),
            cw_max: phy.cw_max(),
            is_ns2: phy.is_ns2(),
        }
    }

    /// How many values a backoff of window `cw` is drawn from.
    #[inline]
    #[must_use]
    pub fn backoff_values(&self, cw: u32) -> u64 {
        u64::from(cw) + self.more
    }

    /// The window after a failed attempt.
    #[inline]
    #[must_use]
    pub fn doubled(&self, cw: u32) -> u32 {
        (2 * cw + 1).min(self.cw_max)
    }
}

/// IP packets up to this length have their duration in a table.
const TABLE_BYTES: u32 = 1536;

/// What the air times of one data rate in one cell come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AirTimes {
    phy: Phy,
    /// Of the data frames.
    pub rate: Rate,
    /// Of ACK, RTS and CTS.
    pub control: Rate,
    /// RTS.
    pub rts: Span,
    /// ACK or CTS.
    pub answer: Span,
    /// What the NAV of a data frame announces: SIFS and ACK, as overhearers keep it.
    pub answer_nav: Span,
    /// See [`Phy::answer_timeout`].
    pub answer_timeout: Span,
    /// See [`Phy::nav_reset`].
    pub nav_reset: Span,
    /// See [`Phy::protection`].
    pub protection: Span,
    /// `data[ip_bytes]`, ns, CTS-to-self included.
    data: Vec<u32>,
}

impl AirTimes {
    /// Of frames sent at `rate`.
    #[must_use]
    pub fn new(phy: &Phy, rate: Rate) -> Self {
        let control = phy.control(rate);
        let protection = phy.protection(rate);
        let nanos = |bytes| (protection + phy.data(rate, bytes)).as_nanos() as u32;
        Self {
            phy: *phy,
            rate,
            control,
            rts: phy.rts(rate),
            answer: phy.answer(rate),
            answer_nav: phy.nav(phy.sifs() + phy.answer(rate)),
            answer_timeout: phy.answer_timeout(control),
            nav_reset: phy.nav_reset(control),
            protection,
            data: (0..=TABLE_BYTES).map(nanos).collect(),
        }
    }

    /// An IP packet's data frame, CTS-to-self included.
    #[inline]
    #[must_use]
    pub fn data(&self, ip_bytes: u32) -> Span {
        match self.data.get(ip_bytes as usize) {
            Some(nanos) => Span::from_nanos(u64::from(*nanos)),
            None => self.protection + self.phy.data(self.rate, ip_bytes),
        }
    }
}

/// Every rate in use, each with its times.
#[derive(Clone, Debug)]
pub struct Rates {
    phy: Phy,
    times: Vec<AirTimes>,
}

impl Rates {
    /// None yet.
    #[must_use]
    pub fn new(phy: &Phy) -> Self {
        Self { phy: *phy, times: Vec::new() }
    }

    /// Where the times of `rate` stand.
    pub fn find(&mut self, rate: Rate) -> u8 {
        let at = self.times.iter().position(|times| times.rate == rate).unwrap_or_else(|| {
            self.times.push(AirTimes::new(&self.phy, rate));
            self.times.len() - 1
        });
        at as u8
    }

    /// What [`Self::find`] found.
    #[inline]
    #[must_use]
    pub fn get(&self, at: u8) -> &AirTimes {
        &self.times[usize::from(at)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::MediumParams;
    use crate::phy::{Standard, Timing};

    #[test]
    fn the_table_says_what_the_formula_says() {
        for (timing, protection) in [(Timing::Standard, false), (Timing::Standard, true), (Timing::Ns2G, false)] {
            let phy = MediumParams { timing, protection, ..MediumParams::default() }.phy(&[]);
            for rate in Rate::all(Standard::G) {
                let times = AirTimes::new(&phy, rate);
                for bytes in [0, 1, 40, 1500, TABLE_BYTES, TABLE_BYTES + 1, 9000] {
                    assert_eq!(times.data(bytes), phy.protection(rate) + phy.data(rate, bytes), "{rate:?} {bytes}");
                }
            }
        }
    }
}
