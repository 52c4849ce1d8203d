//! The kernel's table of rates of a frame as a plan of ours, and the tries that were made as a table for the kernel.
//!
//! An entry names one of the band's rates (2.4 GHz: 1 to 11, then 6 to 54 Mbit/s; 5 GHz: 6 to 54), an MCS of n counted through
//! all streams, or one of ac with the streams in its upper half. Source: `struct ieee80211_tx_rate` in `net/mac80211.h`.

use lasthop_medium::rate_control::{RatePlan, Stage};
use lasthop_medium::{Guard, Mode, Rate, Standard, Width};

use crate::message::{STAGES, TxRate};

const USE_RTS: u16 = 1;
const MCS: u16 = 1 << 3;
const MHZ_40: u16 = 1 << 5;
const SHORT_GUARD: u16 = 1 << 7;
const VHT_MCS: u16 = 1 << 8;
const MHZ_80: u16 = 1 << 9;
const MHZ_160: u16 = 1 << 10;

/// The rate of an entry in the band of this frequency; `None`: there is no such rate.
#[must_use]
pub fn rate(entry: TxRate, frequency_mhz: u32) -> Option<Rate> {
    let index = u8::try_from(entry.index).ok()?;
    let has = |flag| entry.flags & flag != 0;
    let (standard, streams, mcs) = match (has(MCS), has(VHT_MCS)) {
        (true, _) => (Standard::N, index / 8 + 1, index % 8),
        (_, true) => (Standard::Ac, (index >> 4) + 1, index & 15),
        _ => {
            let first = if frequency_mhz < 4000 { 0 } else { 4 };
            return Rate::all(Standard::G).nth(first + usize::from(index));
        }
    };
    let width = match (has(MHZ_160), has(MHZ_80), has(MHZ_40)) {
        (true, ..) => Width::Mhz160,
        (_, true, _) => Width::Mhz80,
        (.., true) => Width::Mhz40,
        _ => Width::Mhz20,
    };
    let guard = if has(SHORT_GUARD) { Guard::Ns400 } else { Guard::Ns800 };
    Rate::of_mode(Mode { standard, width, streams, mcs, guard })
}

/// How a frame is tried; `None`: its table has no entry, or one that is no rate.
#[must_use]
pub fn plan(table: &[TxRate; STAGES], frequency_mhz: u32) -> Option<RatePlan> {
    let entries = table.iter().take_while(|entry| entry.index >= 0 && entry.count > 0);
    let stages: Option<Vec<Stage>> = entries
        .map(|entry| {
            let rts = entry.flags & USE_RTS != 0;
            rate(*entry, frequency_mhz).map(|rate| Stage { rate, tries: entry.count, rts })
        })
        .collect();
    RatePlan::of_stages(&stages?)
}

/// The entries that `tries` tries went through, each with how many of them it had.
#[must_use]
pub fn used(table: &[TxRate; STAGES], tries: u16) -> [TxRate; STAGES] {
    let mut left = tries;
    table.map(|entry| {
        let count = u16::from(entry.count).min(left) as u8;
        left -= u16::from(count);
        if count > 0 && entry.index >= 0 { TxRate { count, ..entry } } else { TxRate::NONE }
    })
}

/// As debugfs shows it: `VHT80 SGI 2 MCS9`, `6 Mbit/s`.
#[must_use]
pub fn name(rate: Rate) -> String {
    let Some(mode) = rate.mode() else { return format!("{} Mbit/s", rate.bit_rate().as_mbps_f64()) };
    let standard = if mode.standard == Standard::N { "HT" } else { "VHT" };
    let guard = if mode.guard == Guard::Ns400 { "SGI" } else { "LGI" };
    format!("{standard}{} {guard} {} MCS{}", mode.width.mhz(), mode.streams, mode.mcs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(index: i8, count: u8, flags: u16) -> TxRate {
        TxRate { index, count, flags }
    }

    #[test]
    fn entries_are_rates_of_their_band_and_modes() {
        let at = |index, flags, mhz| rate(entry(index, 1, flags), mhz).map(name);
        assert_eq!(at(0, 0, 5180).as_deref(), Some("6 Mbit/s"));
        assert_eq!(at(0, 0, 2437).as_deref(), Some("1 Mbit/s"));
        assert_eq!(at(8, 0, 5180), None);
        assert_eq!(at(12, MCS | MHZ_40 | SHORT_GUARD, 5180).as_deref(), Some("HT40 SGI 2 MCS4"));
        assert_eq!(at(0x19, VHT_MCS | MHZ_80, 5180).as_deref(), Some("VHT80 LGI 2 MCS9"));
        // MCS 9 with one stream in 20 MHz is none.
        assert_eq!(at(9, VHT_MCS, 5180), None);
        assert_eq!(at(-1, MCS, 5180), None);
    }

    #[test]
    fn a_table_is_a_plan_up_to_its_end() {
        let table = [entry(7, 2, MCS), entry(0, 3, MCS | USE_RTS), TxRate::NONE, entry(3, 1, MCS)];
        let plan = plan(&table, 5180).unwrap();
        assert_eq!((plan.tries(), plan.stages().len()), (5, 2));
        assert!(!plan.stages()[0].rts && plan.stages()[1].rts);
        assert_eq!(super::plan(&[TxRate::NONE; STAGES], 5180), None);
        assert_eq!(super::plan(&[entry(7, 1, MCS), entry(100, 1, 0), TxRate::NONE, TxRate::NONE], 5180), None);
    }

    #[test]
    fn what_was_tried_is_the_beginning_of_the_table() {
        let table = [entry(7, 2, MCS), entry(3, 3, MCS), TxRate::NONE, TxRate::NONE];
        assert_eq!(used(&table, 1), [entry(7, 1, MCS), TxRate::NONE, TxRate::NONE, TxRate::NONE]);
        assert_eq!(used(&table, 4), [entry(7, 2, MCS), entry(3, 2, MCS), TxRate::NONE, TxRate::NONE]);
        assert_eq!(used(&table, 9), table);
    }
}
