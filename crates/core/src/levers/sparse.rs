//! Which UDP flows to stations are sparse and real-time, and the class that each may have on the air.
//!
//! ```text
//! air  = packets x 250 us + 8 bytes / R                     of a second, smoothed over one                [s/s]
//! VO   : air <= 4 %, and at least half its bytes in packets that are not full, or found real-time
//! VI   : air <= 8 %, and found real-time
//! all  : 10 % of the air time; who has a class already comes first, then who takes least
//! ```
//!
//! R is the rate of the station, 6 Mbit/s where nobody says. Elastic flows ([`crate::elastic`]) have none, whatever they take; nor has what has
//! been seen for less than a second, or sends less than ten packets in it. Who exceeds a quarter more than that, or is found elastic, is out at once and for ten
//! seconds. So a flow that fills anything never has a class: what fills the air has more than 8 % of it, and the bound of all together
//! holds however many small flows somebody makes.
//!
//! 250 us are an exchange of one small packet: AIFS, mean backoff, preambles, SIFS, ACK at 24 Mbit/s, of any standard since 802.11a
//! (130 to 250 us; the mode in use makes the difference). 4 % of that are 160 packets a second: voice has 50 or 100 (RFC 3551), games up to 128. Ours: the bounds.
//!
//! Does not: look at ports or DSCP (a packet that brings its own class keeps it), or choose for packets from stations, which they class themselves.

use std::collections::BTreeMap;

use super::FlowSample;
use crate::ap::StationId;
use crate::elastic::Behaviour;
use crate::packet::{AccessCategory, FlowId};
use crate::units::{BitRate, Span, Time};

/// Beside the bytes, of each packet, s.
const EXCHANGE: f64 = 250e-6;
/// Air time of one flow in VO and in VI, and of all, 0..=1.
const VOICE: f64 = 0.04;
const VIDEO: f64 = 0.08;
const ALL: f64 = 0.10;
/// Who has a class keeps it up to so many times that.
const KEEPS: f64 = 1.25;
/// Looked at for so long, and for so many packets.
const WINDOW: Span = Span::from_secs(1);
const LEAST_PACKETS: f64 = 10.0;
/// Out for so long.
const BARRED: Span = Span::from_secs(10);
/// Forgotten after so long without a packet.
const SILENT: Span = Span::from_secs(10);
/// Flows that are watched; further ones keep the class that they have.
const MOST_FLOWS: usize = 4_096;
/// A station's rate where nobody says: the slowest of OFDM.
const SLOWEST: BitRate = BitRate::mbps(6);

#[derive(Clone, Debug)]
struct Watched {
    station: StationId,
    first: Time,
    at: Time,
    counted: [u64; 3],
    /// Packets, bytes and bytes in full packets of a second, smoothed.
    rates: [f64; 3],
    behaviour: Behaviour,
    last_packet: Time,
    barred: Option<Time>,
    class: AccessCategory,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Sparse {
    flows: BTreeMap<FlowId, Watched>,
    rates: BTreeMap<StationId, BitRate>,
    /// Samples of flows that there was no room for.
    pub untracked: u64,
}

impl Sparse {
    pub fn on_rate(&mut self, station: StationId, rate: BitRate) {
        if self.rates.len() < MOST_FLOWS || self.rates.contains_key(&station) {
            self.rates.insert(station, rate);
        }
    }

    pub fn on_flow(&mut self, now: Time, sample: &FlowSample) {
        let counts = [sample.packets, sample.bytes, sample.full_bytes];
        if !self.flows.contains_key(&sample.flow) && self.flows.len() >= MOST_FLOWS {
            self.untracked += 1;
            return;
        }
        let watched = self.flows.entry(sample.flow).or_insert_with(|| Watched {
            station: sample.station,
            first: now,
            at: now,
            counted: counts,
            rates: [0.0; 3],
            behaviour: sample.behaviour,
            last_packet: now,
            barred: None,
            class: AccessCategory::Be,
        });
        let span = now.since(watched.at).as_secs_f64();
        if span <= 0.0 {
            return;
        }
        let kept = libm::exp(-span / WINDOW.as_secs_f64());
        for ((rate, before), after) in watched.rates.iter_mut().zip(watched.counted).zip(counts) {
            // A count that goes back begins anew.
            let new = after.saturating_sub(before) as f64 / span;
            *rate = *rate * kept + new * (1.0 - kept);
        }
        if counts[0] > watched.counted[0] {
            watched.last_packet = now;
        }
        (watched.counted, watched.at, watched.behaviour, watched.station) =
            (counts, now, sample.behaviour, sample.station);
    }

    /// The flow is gone; whether it had a class.
    pub fn on_gone(&mut self, flow: FlowId) -> bool {
        self.flows.remove(&flow).is_some_and(|watched| watched.class != AccessCategory::Be)
    }

    /// Judges all of them; what changes goes to `set`.
    pub fn judge(&mut self, now: Time, mut set: impl FnMut(FlowId, AccessCategory)) {
        self.flows.retain(|flow, watched| {
            let is_gone = now.since(watched.last_packet) > SILENT;
            if is_gone && watched.class != AccessCategory::Be {
                set(*flow, AccessCategory::Be);
            }
            !is_gone
        });
        let rates = &self.rates;
        let mut wanted: Vec<(bool, f64, FlowId, AccessCategory)> = Vec::new();
        for (flow, watched) in &mut self.flows {
            let rate = rates.get(&watched.station).copied().unwrap_or(SLOWEST);
            let air = watched.air(rate);
            let class = watched.may_have(now, air);
            let has = watched.class != AccessCategory::Be;
            match class {
                AccessCategory::Be if has => {
                    watched.barred = Some(now + BARRED);
                    watched.class = AccessCategory::Be;
                    set(*flow, AccessCategory::Be);
                }
                AccessCategory::Be => {}
                class => wanted.push((!has, air, *flow, class)),
            }
        }
        wanted.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)));
        let mut sum = 0.0;
        for (_, air, flow, class) in wanted {
            sum += air;
            let class = if sum <= ALL { class } else { AccessCategory::Be };
            if let Some(watched) = self.flows.get_mut(&flow).filter(|watched| watched.class != class) {
                watched.class = class;
                set(flow, class);
            }
        }
    }

    /// Flows with a class of their own.
    pub fn classed(&self) -> impl Iterator<Item = (FlowId, StationId, AccessCategory)> {
        let all = self.flows.iter().map(|(flow, watched)| (*flow, watched.station, watched.class));
        all.filter(|(_, _, class)| *class != AccessCategory::Be)
    }
}

impl Watched {
    /// Part of the air time that it takes.
    fn air(&self, rate: BitRate) -> f64 {
        // An average over less than its time has so much less in it.
        let seen = 1.0 - libm::exp(-self.at.since(self.first).as_secs_f64() / WINDOW.as_secs_f64());
        let [packets, bytes, _] = self.rates.map(|rate| rate / seen.max(1e-3));
        packets * EXCHANGE + bytes * 8.0 / rate.as_bps().max(1) as f64
    }

    fn may_have(&self, now: Time, air: f64) -> AccessCategory {
        let [packets, bytes, full] = self.rates;
        let is_new = now.since(self.first) < WINDOW || packets < LEAST_PACKETS * 0.6;
        let is_out = self.behaviour == Behaviour::Elastic || self.barred.is_some_and(|until| now < until);
        let has = self.class != AccessCategory::Be;
        if is_out || (is_new && !has) {
            return AccessCategory::Be;
        }
        let margin = if has { KEEPS } else { 1.0 };
        let is_live = self.behaviour == Behaviour::RealTime;
        if air <= VOICE * margin && (is_live || full * 2.0 <= bytes) {
            return AccessCategory::Vo;
        }
        if air <= VIDEO * margin && is_live { AccessCategory::Vi } else { AccessCategory::Be }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const INTERVAL: Span = Span::from_millis(50);

    struct Home {
        sparse: Sparse,
        now: Time,
        counts: BTreeMap<u32, [u64; 3]>,
        class: BTreeMap<u32, AccessCategory>,
    }

    impl Home {
        fn new(rate: BitRate) -> Self {
            let mut sparse = Sparse::default();
            sparse.on_rate(StationId(0), rate);
            Self { sparse, now: Time::ZERO, counts: BTreeMap::new(), class: BTreeMap::new() }
        }

        /// Flows by number, packets an interval, bytes a packet and what they are taken for.
        fn pass(&mut self, intervals: u32, flows: &[(u32, f64, u64, Behaviour)]) {
            for n in 0..intervals {
                self.now += INTERVAL;
                for (flow, packets, bytes, behaviour) in flows {
                    let new = (packets * f64::from(n + 1)) as u64 - (packets * f64::from(n)) as u64;
                    let counts = self.counts.entry(*flow).or_default();
                    counts[0] += new;
                    counts[1] += new * bytes;
                    counts[2] += if *bytes >= 1200 { new * bytes } else { 0 };
                    let [packets, bytes, full_bytes] = *counts;
                    let sample = FlowSample {
                        flow: FlowId(*flow),
                        station: StationId(0),
                        packets,
                        bytes,
                        full_bytes,
                        behaviour: *behaviour,
                    };
                    self.sparse.on_flow(self.now, &sample);
                }
                let class = &mut self.class;
                self.sparse.judge(self.now, |flow, to| {
                    class.insert(flow.0, to);
                });
            }
        }

        fn class(&self, flow: u32) -> AccessCategory {
            self.class.get(&flow).copied().unwrap_or_default()
        }
    }

    #[test]
    fn a_call_and_a_game_are_voice_and_a_video_call_is_video() {
        let mut home = Home::new(BitRate::mbps(300));
        let live = Behaviour::RealTime;
        home.pass(60, &[(1, 2.5, 200, Behaviour::Unknown), (2, 1.0, 200, Behaviour::Unknown), (3, 10.0, 1250, live)]);
        assert_eq!(
            [1, 2, 3].map(|flow| home.class(flow)),
            [AccessCategory::Vo, AccessCategory::Vo, AccessCategory::Vi]
        );
        // One that becomes a download is out at once, and stays so for a while.
        home.pass(2, &[(3, 10.0, 1250, Behaviour::Elastic)]);
        assert_eq!(home.class(3), AccessCategory::Be);
        home.pass(100, &[(3, 10.0, 1250, live)]);
        assert_eq!(home.class(3), AccessCategory::Be);
        home.pass(200, &[(3, 10.0, 1250, live)]);
        assert_eq!(home.class(3), AccessCategory::Vi);
    }

    #[test]
    fn who_falls_silent_is_forgotten() {
        let mut home = Home::new(BitRate::mbps(300));
        home.pass(60, &[(1, 2.5, 200, Behaviour::Unknown)]);
        home.pass(210, &[(1, 0.0, 200, Behaviour::Unknown)]);
        assert_eq!(home.class(1), AccessCategory::Be);
        assert!(!home.sparse.on_gone(FlowId(1)));
    }

    #[test]
    fn odd_counts_promote_nobody() {
        let mut sparse = Sparse::default();
        let counts = [[u64::MAX; 3], [0; 3], [u64::MAX, 0, u64::MAX], [5, 4, 3]];
        for n in 0..200u64 {
            let [packets, bytes, full_bytes] = counts[n as usize % 4];
            let sample = FlowSample {
                flow: FlowId(1),
                station: StationId(9),
                packets,
                bytes,
                full_bytes,
                behaviour: Behaviour::Unknown,
            };
            // The clock stands still now and then, and goes back.
            sparse.on_flow(Time::from_nanos((n ^ 1) / 3 * 50_000_000), &sample);
            sparse.judge(Time::from_nanos(n * 20_000_000), |_, class| panic!("{class:?}"));
        }
    }

    #[test]
    fn there_is_an_end_to_the_flows_that_are_watched() {
        let mut home = Home::new(BitRate::mbps(300));
        let many: Vec<_> = (0..5_000).map(|flow| (flow, 1.0, 100, Behaviour::Unknown)).collect();
        home.pass(2, &many);
        assert_eq!((home.sparse.flows.len(), home.sparse.untracked), (MOST_FLOWS, 2 * (5_000 - MOST_FLOWS as u64)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Whatever flows there are, whoever takes more of the air than a sparse flow may has no class, and all together have a bounded part.
        #[test]
        fn what_fills_is_never_promoted(
            mbps in 1u64..1200,
            flows in proptest::collection::vec((0.1f64..200.0, 40u64..1500, 0u8..3), 1..40),
        ) {
            let mut home = Home::new(BitRate::mbps(mbps));
            let kinds = [Behaviour::Unknown, Behaviour::RealTime, Behaviour::Elastic];
            let all: Vec<_> =
                (0..).zip(&flows).map(|(i, (packets, bytes, kind))| (i, *packets, *bytes, kinds[usize::from(*kind)])).collect();
            home.pass(100, &all);
            let mut sum = 0.0;
            for (flow, packets, bytes, behaviour) in &all {
                // Packets are whole: one of a second may not be counted yet.
                let each = (packets * 20.0 - 1.0).max(0.0);
                let air = each * EXCHANGE + each * *bytes as f64 * 8.0 / (mbps as f64 * 1e6);
                let class = home.class(*flow);
                if class != AccessCategory::Be {
                    sum += air;
                    prop_assert!(air <= VIDEO * KEEPS && *behaviour != Behaviour::Elastic, "{flow} takes {air} in {class:?}");
                }
                if class == AccessCategory::Vo {
                    prop_assert!(air <= VOICE * KEEPS, "{flow} takes {air} in VO");
                }
            }
            prop_assert!(sum <= ALL * 1.1, "{sum}");
        }
    }
}
