//! What the driver of the simulated access point says of its stations, as nl80211 does of real ones: at which rate it sent to each of
//! late, and how often.
//!
//! `rate = MPDUs / sum of (MPDUs at a rate / that rate)`, of those that were sent since it was asked before; a station to which fewer
//! than twenty were has what it had. Where every rate stays as it is, that of the scenario holds, and nothing is repeated.

use std::collections::BTreeMap;

use lasthop_core::units::{BitRate, Span, Time};
use lasthop_medium::{Medium, NodeId};

use crate::packet::SimPacket;

/// How often it is asked.
const ASKED: Span = Span::from_secs(1);
/// Of fewer MPDUs nothing is said.
const LEAST: u64 = 20;

/// What was sent to a station of late.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sent {
    /// Index of the station.
    pub station: usize,
    /// Mean rate, by time.
    pub rate: BitRate,
    /// Of the MPDUs, those that were not acknowledged, 0..1.
    pub loss: f64,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Driver {
    asked: Time,
    /// By station and rate, bit/s: MPDUs sent and acknowledged so far.
    counts: BTreeMap<(NodeId, u64), [u64; 2]>,
}

impl Driver {
    /// What is new, once a second.
    pub fn ask(&mut self, now: Time, medium: &Medium<SimPacket>) -> Vec<Sent> {
        if now.since(self.asked) < ASKED {
            return Vec::new();
        }
        self.asked = now;
        let mut late: BTreeMap<NodeId, (u64, u64, f64)> = BTreeMap::new();
        for own in medium.snapshot(now).rates.iter().filter(|rate| rate.from == NodeId::ACCESS_POINT) {
            let bps = own.rate.bit_rate().as_bps();
            let before = self.counts.insert((own.to, bps), [own.mpdus, own.acked]).unwrap_or_default();
            let (mpdus, acked) = (own.mpdus.saturating_sub(before[0]), own.acked.saturating_sub(before[1]));
            let sum = late.entry(own.to).or_default();
            *sum = (sum.0 + mpdus, sum.1 + acked, sum.2 + mpdus as f64 / bps.max(1) as f64);
        }
        let said = late.into_iter().filter(|(_, (mpdus, ..))| *mpdus >= LEAST);
        said.map(|(to, (mpdus, acked, time))| Sent {
            station: usize::from(to.0) - 1,
            rate: BitRate::from_bps_f64(mpdus as f64 / time),
            loss: 1.0 - acked as f64 / mpdus as f64,
        })
        .collect()
    }
}
