//! What a packet to a station costs in air time, learned from what the driver says.
//!
//! ```text
//! cost   = factor x (bytes x 8 / R + packet_time)           [s]
//! factor = air time used / air time of single attempts      where the driver measures air time
//!        = 1 + retransmissions / frames                     elsewhere
//! ```
//!
//! R [bit/s] is the rate that the driver sends at, low-pass filtered as time per byte; all attempts count. A byte never
//! costs less than at the pace of the whole link: R leaves contention and acknowledgments out, and what is let out faster
//! than the channel carries waits in the driver, where nobody orders it. So a good station costs what `capacity` says, and a
//! distant or lossy one what it really uses.

use std::collections::BTreeMap;
use std::io;

use lasthop_core::units::{BitRate, Span, Time};

use crate::qdisc::layout::PacketCost;
use crate::stations::{Mac, Nl80211, Station};

/// Drivers update what they tell every now and then.
const ASK_EVERY: Span = Span::from_millis(500);
/// Weight of the newest sample.
const WEIGHT: f64 = 0.3;
/// Fewer frames say nothing about losses.
const ENOUGH: u32 = 20;
/// A driver that reports more than this counts something else.
const LARGEST_FACTOR: f64 = 20.0;

/// The drivers to ask, and when to ask them.
pub(super) struct Drivers {
    /// None: this kernel has no Wi-Fi.
    wifi: Option<Nl80211>,
    asked: Option<Time>,
}

impl Drivers {
    pub(super) fn new() -> Self {
        Self { wifi: Nl80211::open().ok(), asked: None }
    }

    /// Whether there is anything to ask, and it was long enough ago.
    pub(super) fn is_time(&mut self, now: Time) -> bool {
        let is_time = self.wifi.is_some() && self.asked.is_none_or(|asked| now.since(asked) >= ASK_EVERY);
        if is_time {
            self.asked = Some(now);
        }
        is_time
    }

    /// What the driver of an interface that is there says.
    pub(super) fn stations(&mut self, ifindex: Option<u32>) -> io::Result<Vec<Station>> {
        match (&mut self.wifi, ifindex) {
            (Some(wifi), Some(ifindex)) => wifi.stations(ifindex),
            _ => Ok(Vec::new()),
        }
    }
}

/// The stations of one interface.
#[derive(Debug, Default)]
pub(super) struct AirTimeCost {
    stations: BTreeMap<Mac, Learned>,
}

#[derive(Clone, Copy, Debug)]
struct Learned {
    before: Station,
    /// Time of a byte at the driver's rate, one attempt, ns.
    byte_ns: Option<f64>,
    factor: f64,
}

impl AirTimeCost {
    /// Takes in what the driver says now; who is not there any more is forgotten.
    pub(super) fn on_stations(&mut self, stations: &[Station], packet_time: Span) {
        self.stations.retain(|mac, _| stations.iter().any(|station| station.mac == *mac));
        for station in stations {
            let first = Learned { before: *station, byte_ns: None, factor: 1.0 };
            self.stations.entry(station.mac).or_insert(first).on_sample(station, packet_time);
        }
    }

    /// What the driver says of each station: the rate that it sends at, and attempts per frame.
    pub(super) fn rates(&self) -> impl Iterator<Item = (Mac, BitRate, f64)> {
        let rate = |byte_ns: f64| BitRate::from_bps_f64(8e9 / byte_ns);
        self.stations.iter().filter_map(move |(mac, learned)| Some((*mac, rate(learned.byte_ns?), learned.factor)))
    }

    /// What each station's packets cost beside a link of this cost; those of whom nothing is known yet are left out.
    pub(super) fn costs(&self, link: PacketCost) -> impl Iterator<Item = (Mac, PacketCost)> {
        self.stations.iter().filter_map(move |(mac, learned)| Some((*mac, learned.cost(link)?)))
    }
}

impl Learned {
    fn on_sample(&mut self, now: &Station, packet_time: Span) {
        let smooth = |old: f64, new: f64| old + WEIGHT * (new - old);
        if let Some(rate) = now.rate {
            let sample = 8e9 / rate.as_bps() as f64;
            self.byte_ns = Some(self.byte_ns.map_or(sample, |old| smooth(old, sample)));
        }
        let packets = now.packets.wrapping_sub(self.before.packets);
        if packets > u32::MAX / 2 || now.bytes < self.before.bytes {
            // Its counters began anew.
            self.before = *now;
            return;
        }
        if packets < ENOUGH {
            return;
        }
        let attempts = 1.0 + f64::from(now.retries.wrapping_sub(self.before.retries)) / f64::from(packets);
        let bytes = (now.bytes - self.before.bytes) as f64;
        let single = bytes * self.byte_ns.unwrap_or(0.0) + f64::from(packets) * packet_time.as_nanos() as f64;
        let used = now.airtime.zip(self.before.airtime).map(|(now, before)| now.saturating_sub(before));
        let sample = match used {
            Some(used) if used > Span::ZERO && single > 0.0 => used.as_nanos() as f64 / single,
            _ => attempts,
        };
        self.factor = smooth(self.factor, sample.clamp(1.0, LARGEST_FACTOR));
        self.before = *now;
    }

    fn cost(&self, link: PacketCost) -> Option<PacketCost> {
        let byte_ns_q16 = (self.byte_ns? * self.factor * 65_536.0) as u64;
        let packet_ns = (link.packet_ns as f64 * self.factor) as u64;
        Some(PacketCost { byte_ns_q16: byte_ns_q16.max(link.byte_ns_q16), packet_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: Mac = [2, 0, 0, 0, 1, 0];
    /// 40 Mbit/s: 200 ns a byte.
    const LINK: PacketCost = PacketCost { byte_ns_q16: 200 << 16, packet_ns: 100_000 };

    fn station(mbps: u64, packets: u32, retries: u32, airtime: Option<Span>) -> Station {
        let bytes = u64::from(packets) * 1_500;
        Station {
            mac: MAC,
            rate: Some(BitRate::mbps(mbps)),
            bytes,
            packets,
            retries,
            failed: 0,
            airtime,
            weight: None,
            waits: None,
        }
    }

    fn cost(samples: impl Iterator<Item = Station>) -> PacketCost {
        let mut air = AirTimeCost::default();
        for sample in samples {
            air.on_stations(&[sample], Span::from_micros(100));
        }
        air.costs(LINK).next().unwrap().1
    }

    #[test]
    fn a_fast_station_costs_what_the_link_says_and_a_slow_one_its_own_rate() {
        let at = |mbps| cost((0..5).map(|n| station(mbps, n * 100, 0, None)));
        assert_eq!(at(300), LINK);
        // 6 Mbit/s: 1333 ns a byte.
        assert_eq!(at(6).byte_ns_q16 >> 16, 1_333);
    }

    #[test]
    fn rate_and_attempts_are_handed_on() {
        let mut air = AirTimeCost::default();
        for n in 0..60 {
            air.on_stations(&[station(6, n * 100, n * 50, None)], Span::ZERO);
        }
        let (mac, rate, attempts) = air.rates().next().unwrap();
        assert_eq!((mac, rate.as_mbps_f64().round()), (MAC, 6.0));
        assert!((attempts - 1.5).abs() < 0.01, "{attempts}");
    }

    #[test]
    fn losses_are_paid_for_by_whom_they_befall() {
        // Every second frame is sent twice.
        let lossy = cost((0..60).map(|n| station(6, n * 100, n * 50, None)));
        assert!((1_990..=2_000).contains(&(lossy.byte_ns_q16 >> 16)), "{lossy:?}");
        assert!((149_000..=150_000).contains(&lossy.packet_ns), "{lossy:?}");
    }

    #[test]
    fn measured_air_time_is_believed_before_retries() {
        // 1500 bytes at 6 Mbit/s are 2 ms, and 0.1 ms for the packet: three times as much was used.
        let air = |n: u32| Some(Span::from_micros(u64::from(n) * 100 * 6_300));
        let measured = cost((0..60).map(|n| station(6, n * 100, 0, air(n))));
        assert!((3_980..=4_000).contains(&(measured.byte_ns_q16 >> 16)), "{measured:?}");
    }

    #[test]
    fn a_station_that_comes_again_with_new_counters_is_no_loss() {
        let again = [station(6, 1_000, 10, None), station(6, 100, 0, None), station(6, 200, 0, None)];
        assert_eq!(cost(again.into_iter()).byte_ns_q16 >> 16, 1_333);
    }

    #[test]
    fn who_is_gone_is_forgotten() {
        let mut air = AirTimeCost::default();
        air.on_stations(&[station(6, 0, 0, None)], Span::ZERO);
        air.on_stations(&[], Span::ZERO);
        assert_eq!(air.costs(LINK).count(), 0);
    }
}
