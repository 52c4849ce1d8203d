//! What waits in mac80211's flow queues, and whether downloads are left to them.
//!
//! ```text
//! left there = AQL and mac80211's queues (Radio::below), sparse flows have a class (Levers::fair_queue), nothing queues before them,
//!              and drivers tell what waits                                                  at each hooked interface of the hop
//! waits      = bytes of all stations and traffic identifiers                              [bytes]
//! ```
//!
//! Bytes come with what drivers are asked of their stations every half second anyway ([`super::air_time_cost`]): nobody is asked more
//! for them. Core believes after a second that a queue is elsewhere: it takes two answers at the wrong times to make it err.

use std::collections::BTreeMap;

use lasthop_core::units::{Span, Time};

use crate::stations::Station;

/// Four answers that did not come: nobody knows.
const STALE: Span = Span::from_secs(2);

/// When it was told, and what waits; by the numbers of interfaces.
#[derive(Debug, Default)]
pub(super) struct FlowQueues {
    told: BTreeMap<u32, (Time, u64)>,
}

impl FlowQueues {
    /// The driver of an interface told of its stations, each of which has a queue of its own.
    pub(super) fn on_stations(&mut self, now: Time, ifindex: u32, stations: &[Station]) {
        match stations.iter().map(|station| station.waits).sum::<Option<u64>>() {
            Some(waits) => self.told.insert(ifindex, (now, waits)),
            None => self.told.remove(&ifindex),
        };
    }

    /// It is only these interfaces.
    pub(super) fn follow(&mut self, is_there: impl Fn(u32) -> bool) {
        self.told.retain(|ifindex, _| is_there(*ifindex));
    }

    /// What waits there, bytes; none where a driver does not tell, or has not told of late.
    pub(super) fn waits(&self, now: Time, ifindex: u32) -> Option<u64> {
        self.told.get(&ifindex).filter(|(at, _)| now.since(*at) < STALE).map(|(_, waits)| *waits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn station(waits: Option<u64>) -> Station {
        let mac = [2, 0, 0, 0, 1, 0];
        Station { mac, rate: None, bytes: 0, packets: 0, retries: 0, failed: 0, airtime: None, weight: None, waits }
    }

    #[test]
    fn what_waits_is_what_drivers_told_and_nothing_when_one_does_not() {
        let mut queues = FlowQueues::default();
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        let mut told = |ms, stations: &[Option<u64>]| {
            let stations: Vec<_> = stations.iter().map(|waits| station(*waits)).collect();
            queues.on_stations(at(ms), 3, &stations);
            queues.waits(at(ms), 3)
        };
        assert_eq!(told(0, &[]), Some(0), "no station");
        assert_eq!(told(500, &[Some(30_000), Some(1_500)]), Some(31_500));
        assert_eq!(told(1_000, &[Some(0), Some(1_500)]), Some(1_500));
        assert_eq!(told(2_000, &[Some(9_000), None]), None, "one has none: another driver");
        assert_eq!(told(2_500, &[Some(9_000)]), Some(9_000));
        assert_eq!([4_499, 4_500].map(|ms| queues.waits(at(ms), 3)), [Some(9_000), None], "it is silent");
        assert_eq!(queues.waits(at(2_500), 4), None, "another interface");
        queues.follow(|ifindex| ifindex != 3);
        assert_eq!(queues.waits(at(2_500), 3), None, "it is gone");
    }
}
