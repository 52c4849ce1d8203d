//! What the bytes of each station cost the channel, by what its driver says.

use std::collections::BTreeMap;

use super::{HopId, StationId, StationSample};

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
/// cost = attempts x (1500 x 8 / R + e frame)      [s]         e: frames for two packets (`aggregates`)
/// ```
#[derive(Debug, Default)]
pub(super) struct Costs {
    /// Attempts per frame, and time of a packet's bits, ns.
    stations: BTreeMap<StationId, (f64, f64)>,
    /// Of each hop that sends several packets in a frame: e, and the cheapest packet, ns.
    hops: BTreeMap<HopId, (f64, f64)>,
    /// The cheapest packet where each is a frame, ns.
    least: f64,
}

impl Costs {
    pub(super) fn on_station(&mut self, sample: &StationSample) {
        let data_ns = FRAME_BITS * 1e9 / sample.rate.as_bps().max(1) as f64;
        if self.stations.len() >= MOST_STATIONS && !self.stations.contains_key(&sample.station) {
            // Far more than a radio can have: most are long gone, and those that are there are told again.
            self.stations.clear();
        }
        self.stations.insert(sample.station, (sample.attempts.max(1.0), data_ns));
        self.least = self.cheapest(1.0);
        let hops: Vec<_> = self.hops.iter().map(|(hop, (frames, _))| (*hop, *frames)).collect();
        hops.into_iter().for_each(|(hop, frames)| self.set_frames(hop, frames));
    }

    /// Two packets of this hop are sent in so many frames.
    pub(super) fn set_frames(&mut self, hop: HopId, frames: f64) {
        self.hops.insert(hop, (frames, self.cheapest(frames)));
    }

    /// Forgets the other hops.
    pub(super) fn retain(&mut self, is_there: impl Fn(HopId) -> bool) {
        self.hops.retain(|hop, _| is_there(*hop));
    }

    fn cheapest(&self, frames: f64) -> f64 {
        self.stations.values().map(|station| packet(*station, frames)).fold(f64::MAX, f64::min)
    }

    /// Of a byte to or from a station over a hop.
    pub(super) fn of(&self, hop: HopId, station: StationId) -> f64 {
        let (frames, least) = self.hops.get(&hop).copied().unwrap_or((1.0, self.least));
        let of = |station: &(f64, f64)| (packet(*station, frames) / least).clamp(1.0, DEAREST);
        self.stations.get(&station).map_or(1.0, of)
    }

    /// Highest rate that frames are sent at, bit/s.
    pub(super) fn fastest(&self) -> Option<f64> {
        let least = self.stations.values().map(|(_, data_ns)| *data_ns).reduce(f64::min)?;
        Some(FRAME_BITS * 1e9 / least)
    }
}

fn packet((attempts, data_ns): (f64, f64), frames: f64) -> f64 {
    attempts * (data_ns + frames * FRAME_NS)
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
        assert!((costs.of(HopId(0), StationId(2)) - 4.76).abs() < 0.01);
        assert!((costs.of(HopId(0), StationId(3)) - 2.0).abs() < 1e-9);
        assert_eq!((costs.of(HopId(0), StationId(1)), costs.of(HopId(0), StationId(9))), (1.0, 1.0));
        // Where frames carry 28 packets their bits are what counts: 2.02 ms for 0.24.
        costs.set_frames(HopId(1), 1.0 / 14.0);
        assert!((costs.of(HopId(1), StationId(2)) - 8.41).abs() < 0.01, "{}", costs.of(HopId(1), StationId(2)));
        assert!((costs.of(HopId(0), StationId(2)) - 4.76).abs() < 0.01, "over another hop each is a frame");
        costs.on_station(&sample(StationId(4), 540, 1.0));
        assert!((costs.of(HopId(1), StationId(2)) - 50.35).abs() < 0.01, "beside a cheaper one");
        assert_eq!(costs.fastest(), Some(540e6));
    }
}
