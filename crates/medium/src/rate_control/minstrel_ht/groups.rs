//! Rates by streams, width and guard interval, each with the time of an average packet.
//!
//! `t = ceil(16 x 1200 x 8 / bits per symbol) x symbol / 16`: 16 packets of 1,200 bytes. Rates without aggregates have preamble and
//! SIFS in it.

use crate::mode::Mode;
use crate::phy::{Rate, Standard};
use crate::rate_control::Capability;

/// Most rates of a group.
pub(super) const RATES: usize = 12;
/// Bytes of an average packet.
const PACKET: u64 = 1200;
/// Packets of an average aggregate.
const AGGREGATE: u64 = 16;

/// A rate by group and place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Index(u16);

impl Index {
    pub(super) fn new(group: usize, rate: usize) -> Self {
        Self((group as u16) << 4 | rate as u16)
    }

    pub(super) fn group(self) -> usize {
        usize::from(self.0 >> 4)
    }

    pub(super) fn rate(self) -> usize {
        usize::from(self.0 & 15)
    }
}

/// A rate of a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupRate {
    pub(super) rate: Rate,
    /// Time of an average packet, ns.
    pub(super) duration_ns: u32,
}

/// Rates that differ in nothing but modulation and code.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) streams: u8,
    /// Rates of b or g, without aggregates.
    pub(super) is_legacy: bool,
    /// By MCS; those that the standard leaves out are none.
    pub(super) rates: [Option<GroupRate>; RATES],
    /// Best throughput first, as of the last update.
    pub(super) max_tp: [Index; 4],
    /// The most robust one, as of the last update.
    pub(super) max_prob: Index,
}

impl Group {
    fn new(number: usize, streams: u8, is_legacy: bool, rates: [Option<GroupRate>; RATES]) -> Self {
        let lowest = Index::new(number, rates.iter().position(Option::is_some).unwrap_or(0));
        Self { streams, is_legacy, rates, max_tp: [lowest; 4], max_prob: lowest }
    }

    /// The slowest rate of this group, which is group `number`.
    pub(super) fn lowest(&self, number: usize) -> Index {
        Index::new(number, self.rates.iter().position(Option::is_some).unwrap_or(0))
    }

    pub(super) fn rate(&self, index: Index) -> GroupRate {
        self.rates[index.rate()].unwrap_or(GroupRate { rate: Rate::OFDM_6, duration_ns: u32::MAX })
    }

    /// Whether this rate is one of them.
    pub(super) fn holds(&self, rate: Rate) -> bool {
        self.rates.iter().flatten().any(|own| own.rate == rate)
    }
}

/// The groups, slowest width first.
pub(super) fn of(capability: Capability) -> Vec<Group> {
    if !capability.standard.has_classes() {
        return legacy(capability.standard);
    }
    let mut modes = capability.modes().peekable();
    let mut groups = Vec::new();
    while let Some(first) = modes.peek().copied() {
        let mut rates = [None; RATES];
        let same = |m: &Mode| (m.width, m.guard, m.streams) == (first.width, first.guard, first.streams);
        while let Some(mode) = modes.next_if(same) {
            rates[usize::from(mode.mcs)] =
                Rate::of_mode(mode).map(|rate| GroupRate { rate, duration_ns: duration(&mode) });
        }
        groups.push(Group::new(groups.len(), first.streams, false, rates));
    }
    groups
}

fn duration(mode: &Mode) -> u32 {
    let symbols = (AGGREGATE * PACKET * 8).div_ceil(u64::from(mode.bits_per_symbol()));
    (symbols * mode.symbol().as_nanos() / AGGREGATE) as u32
}

/// One group of b's rates and one of g's.
fn legacy(standard: Standard) -> Vec<Group> {
    let mut groups = Vec::new();
    for is_ofdm in [false, true] {
        let mut rates = [None; RATES];
        for (place, rate) in rates.iter_mut().zip(Rate::all(standard).filter(|rate| rate.is_ofdm() == is_ofdm)) {
            *place = Some(GroupRate { rate, duration_ns: legacy_duration(rate) });
        }
        if rates[0].is_some() {
            groups.push(Group::new(groups.len(), 1, true, rates));
        }
    }
    groups
}

fn legacy_duration(rate: Rate) -> u32 {
    let bits = 8 * (PACKET + 4);
    let bps = rate.bit_rate().as_bps();
    let us = if rate.is_ofdm() {
        16 + 20 + 4 * ((16 + bits + 6) * 1_000_000 / (bps * 4))
    } else {
        10 + 192 + bits * 1_000_000 / bps
    };
    (us * 1_000) as u32
}
