//! What the bytes of each station cost the channel, by what its driver says.

use std::collections::BTreeMap;

use super::{StationId, StationSample};

/// What a frame costs beside its bytes: contention, headers, the acknowledgment, and TCP's own, ns. 802.11g with two frames
/// of data per ACK.
const FRAME_NS: f64 = 250_000.0;
/// Payload of a frame that costs are told by, bits.
const FRAME_BITS: f64 = 1500.0 * 8.0;
/// No station costs more than this many times as much as the cheapest.
const DEAREST: f64 = 64.0;

/// Costs that are remembered: an 802.11 access point tells 2,007 stations apart.
const MOST_STATIONS: usize = 2_048;

/// What a byte to or from each station costs beside one of the cheapest that is known, by what its driver says.
///
/// ```text
/// cost = attempts x (1500 x 8 / R + frame)      [s]
/// ```
#[derive(Debug, Default)]
pub(super) struct Costs {
    frames: BTreeMap<StationId, f64>,
    /// Of the cheapest.
    least: f64,
}

impl Costs {
    pub(super) fn on_station(&mut self, sample: &StationSample) {
        let data_ns = FRAME_BITS * 1e9 / sample.rate.as_bps().max(1) as f64;
        if self.frames.len() >= MOST_STATIONS && !self.frames.contains_key(&sample.station) {
            // Far more than a radio can have: most are long gone, and those that are there are told again.
            self.frames.clear();
        }
        self.frames.insert(sample.station, sample.attempts.max(1.0) * (data_ns + FRAME_NS));
        self.least = self.frames.values().copied().fold(f64::MAX, f64::min);
    }

    pub(super) fn of(&self, station: StationId) -> f64 {
        self.frames.get(&station).map_or(1.0, |frame| (frame / self.least).clamp(1.0, DEAREST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::BitRate;

    #[test]
    fn a_station_at_six_mbps_costs_five_times_one_at_fifty_four() {
        let mut costs = Costs::default();
        let sample = |station, mbps, attempts| StationSample { station, rate: BitRate::mbps(mbps), attempts };
        costs.on_station(&sample(StationId(1), 54, 1.0));
        costs.on_station(&sample(StationId(2), 6, 1.0));
        costs.on_station(&sample(StationId(3), 54, 2.0));
        // 2.25 ms for 0.472 ms.
        assert!((costs.of(StationId(2)) - 4.76).abs() < 0.01);
        assert!((costs.of(StationId(3)) - 2.0).abs() < 1e-9);
        assert_eq!((costs.of(StationId(1)), costs.of(StationId(9))), (1.0, 1.0));
    }
}
