//! Deficit round robin of stations by air time, each with FQ-CoDel inside: what mac80211 did in 2017.
//!
//! `deficit_s -= air time of frames to and from station s;  deficit_s += quantum per turn   [ns]`
//!
//! Stations take turns as FQ-CoDel's flows do, by air time in place of bytes, with the same favour for whoever comes new.
//! A station whose frames take long, or many attempts, gets fewer of them and no more of the channel.
//!
//! Source: Hoiland-Jorgensen et al., "Ending the Anomaly: Achieving Low Latency and Airtime Fairness in WiFi" (USENIX ATC
//! 2017), Algorithms 1 to 3. When the queue is full, the head of the longest flow queue of all goes (Algorithm 1).
//! Differs: flow queues are per station, not taken from one pool, so there is no overflow queue for those that collide;
//! no aggregates, one traffic class; a station that fell silent starts anew with a quantum. What Linux became since, with
//! classes and a limit of air time below the discipline, is [`super::mac80211`].

use super::Snapshot;
use super::flow_queues;
use super::station_queues::StationQueues;
use super::turns::Turns;
use crate::packet::Packet;
use crate::units::{Span, Time};

/// How stations take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Air time of a station's turn. 300 us: as ath9k has it, and less than a full frame at most rates.
    pub quantum: Span,
    /// Of each station's flows. A quantum of 300 B lets small packets by (the paper, as fq_codel in OpenWrt).
    pub flows: flow_queues::Params,
}

impl Default for Params {
    fn default() -> Self {
        let flows = flow_queues::Params { quantum: 300, flows: 256, ..flow_queues::Params::default() };
        Self { quantum: Span::from_micros(300), flows }
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Drr<P> {
    params: Params,
    stations: StationQueues<P>,
    turns: Turns,
}

impl<P: Packet> Drr<P> {
    /// An empty queue of at most `limit` packets, made at `now`.
    #[must_use]
    pub fn new(params: Params, limit: usize, now: Time) -> Self {
        Self { params, stations: StationQueues::new(params.flows, limit, u64::MAX, now), turns: Turns::default() }
    }

    /// Takes a packet of the flow `key` for `station`; gives back the packet that had to go for it.
    pub fn enqueue(&mut self, now: Time, packet: P, key: u64, station: u16) -> Option<P> {
        let is_over = self.stations.enqueue(now, packet, key, usize::from(station));
        self.turns.come(u32::from(station), self.quantum());
        if is_over { self.stations.drop_from_longest(now, self.turns.iter()) } else { None }
    }

    /// The packet to be sent now and its station; packets that CoDel drops first go to `lose`.
    pub fn dequeue(&mut self, now: Time, mut lose: impl FnMut(P)) -> Option<(P, u16)> {
        while let Some(station) = self.turns.next(self.quantum()) {
            if let Some(packet) = self.stations.dequeue(now, station as usize, &mut lose) {
                return Some((packet, station as u16));
            }
            self.turns.go(station);
        }
        None
    }

    /// A station used the channel, in either direction.
    pub fn charge(&mut self, station: u16, cost: Span) {
        self.turns.charge(u32::from(station), cost.as_nanos() as i64);
    }

    /// Packets held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.stations.len()
    }

    /// Whether it holds no packet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stations.is_empty()
    }

    /// Changes the limit; packets above a lower limit stay until they are served.
    pub fn set_limit(&mut self, limit: usize) {
        self.stations.set_limit(limit);
    }

    /// The queue's figures; the mean covers the time up to `now`.
    #[must_use]
    pub fn snapshot(&self, now: Time) -> Snapshot {
        self.stations.snapshot(now)
    }

    fn quantum(&self) -> i64 {
        self.params.quantum.as_nanos().max(1) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aqm::tests::{Sized, at_us};

    fn us(us: u64) -> Span {
        Span::from_micros(us)
    }

    /// Served packets per station while `send` packets leave and all stations always have some.
    fn serve(costs: &[Span], send: usize) -> Vec<(usize, Span)> {
        let mut queue = Drr::new(Params::default(), 10_000, Time::ZERO);
        for station in 0..costs.len() {
            for _each in 0..4 {
                queue.enqueue(Time::ZERO, Sized::of(station as u32, 1500), station as u64, station as u16);
            }
        }
        let mut served = vec![(0, Span::ZERO); costs.len()];
        let mut now = Time::ZERO;
        for _each in 0..send {
            let (packet, station) = queue.dequeue(now, |_| ()).unwrap();
            let cost = costs[usize::from(station)];
            queue.charge(station, cost);
            now += cost;
            served[usize::from(station)].0 += 1;
            served[usize::from(station)].1 += cost;
            queue.enqueue(now, packet, u64::from(station), station);
        }
        served
    }

    #[test]
    fn air_time_is_shared_and_not_packets() {
        // 54 and 6 Mbit/s: 0.3 and 2.2 ms a frame.
        let served = serve(&[us(300), us(300), us(2200)], 3000);
        let times: Vec<f64> = served.iter().map(|(_, time)| time.as_millis_f64()).collect();
        assert!(times.iter().all(|time| (time / times[0] - 1.0).abs() < 0.02), "{served:?}");
        assert!(served[0].0 > 7 * served[2].0, "{served:?}");
    }

    #[test]
    fn turns_follow_the_deficits() {
        let mut queue = Drr::new(Params::default(), 100, Time::ZERO);
        for station in [1, 2] {
            (0..9).for_each(|_| assert_eq!(queue.enqueue(Time::ZERO, Sized::of(9, 1500), 9, station), None));
        }
        // Quantum 300 us. 1 costs 200, 2 costs 500.
        // 1: 300, 100, -100 -> old +200. 2: 300, -200 -> old +100. 1: 200, 0 -> old +300. 2: 100, -400 -> -100.
        // 1: 300, 100, -100 -> 200. 2: -100 -> 200. 1: 200, 0 -> 300. 2: 200, -300 -> 0 -> 300 at its next two turns.
        let order: Vec<u16> = (0..9)
            .map(|_| {
                let (_, station) = queue.dequeue(Time::ZERO, |_| ()).unwrap();
                queue.charge(station, if station == 1 { us(200) } else { us(500) });
                station
            })
            .collect();
        assert_eq!(order, [1, 1, 2, 1, 2, 1, 1, 1, 2]);
    }

    #[test]
    fn what_a_station_sends_counts_as_its_time() {
        let mut queue = Drr::new(Params::default(), 100, Time::ZERO);
        for station in [1, 2] {
            (0..9).for_each(|_| assert_eq!(queue.enqueue(Time::ZERO, Sized::of(9, 1500), 9, station), None));
        }
        queue.charge(1, us(3000));
        let mut next = || {
            let (_, station) = queue.dequeue(Time::ZERO, |_| ()).unwrap();
            queue.charge(station, us(300));
            station
        };
        assert_eq!([next(), next(), next(), next()], [2, 2, 2, 2]);
    }

    #[test]
    fn a_full_queue_drops_from_the_longest_flow_of_all_stations() {
        let mut queue = Drr::new(Params::default(), 4, Time::ZERO);
        queue.enqueue(Time::ZERO, Sized::of(1, 1500), 1, 1);
        for number in 0..3 {
            queue.enqueue(Time::ZERO, Sized { number, ..Sized::of(2, 1000) }, 2, 2);
        }
        let gone = queue.enqueue(at_us(5), Sized::of(3, 40), 3, 3).unwrap();
        assert_eq!((gone.flow, gone.number, queue.len()), (2, 0, 4));
    }
}
