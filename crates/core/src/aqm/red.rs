//! RED: drops, or marks, arrivals by chance, the more the longer the queue is on average.
//!
//! ```text
//! avg = (1 - w) avg + w q        [packets] per arrival; after an idle time avg = (1 - w)^m avg, m = idle / packet_time
//! p_b = max_p (avg - min) / (max - min),  p_a = p_b / (1 - count p_b)      for min <= avg < max
//! avg >= max: every arrival is dropped; gentle: p_b = max_p + (1 - max_p) (avg - max) / max up to 2 max
//! ```
//! `count`: arrivals since the last one dropped or marked, which spreads them evenly.
//!
//! Source: Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance" (ToN 1993), figure 2; gentle:
//! Floyd, "Recommendation on using the gentle_ variant of RED" (2000). Packets, not bytes. A packet whose ends understand
//! ECN is marked where another would be dropped by chance; beyond `max` (gentle: beyond twice that) and when the queue is
//! full all are dropped (RFC 3168 section 7).

use super::Snapshot;
use super::fifo::Fifo;
use crate::packet::{Packet, mix};
use crate::units::{Span, Time};

/// How early.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Below this average nothing is dropped, packets. 5.
    pub min: f64,
    /// From this average on everything is dropped, or the gentle rise begins, packets; above `min`. 15: three times `min`.
    pub max: f64,
    /// p_b at `max`, 0..=1. 0.1 (the paper tried 0.02; ns-2 and later advice have 0.1).
    pub max_p: f64,
    /// w, 0..=1. 0.002: a queue of 500 packets' time.
    pub weight: f64,
    /// Rises to 1 at twice `max` instead of at once.
    pub gentle: bool,
    /// A typical packet's time on the link: how fast the average of an idle queue falls. 400 us: 1500 B at 54 Mbit/s.
    pub packet_time: Span,
    /// Of the chances.
    pub seed: u64,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            min: 5.0,
            max: 15.0,
            max_p: 0.1,
            weight: 0.002,
            gentle: false,
            packet_time: Span::from_micros(400),
            seed: 0,
        }
    }
}

/// What becomes of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Enter,
    /// By chance: marked if its ends understand that.
    Early,
    Drop,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Red<P> {
    params: Params,
    queue: Fifo<P>,
    average: f64,
    /// -1: the average is below `min`.
    count: i64,
    /// Since when the queue is empty.
    idle_since: Option<Time>,
    random: u64,
    dropped_early: u64,
    marked: u64,
}

impl<P: Packet> Red<P> {
    /// An empty queue of at most `limit` packets, made at `now`.
    #[must_use]
    pub fn new(params: Params, limit: usize, now: Time) -> Self {
        Self {
            params,
            queue: Fifo::new(limit, now),
            average: 0.0,
            count: -1,
            idle_since: Some(now),
            random: params.seed,
            dropped_early: 0,
            marked: 0,
        }
    }

    /// Takes a packet, marked perhaps, or gives it back.
    pub fn enqueue(&mut self, now: Time, mut packet: P) -> Option<P> {
        self.measure(now);
        let fate = self.fate();
        if fate == Fate::Early && packet.mark_ce() {
            self.marked += 1;
        } else if fate != Fate::Enter {
            self.dropped_early += 1;
            return Some(packet);
        }
        self.idle_since = None;
        self.queue.push(now, packet).err()
    }

    /// The packet to be sent now.
    pub fn dequeue(&mut self, now: Time) -> Option<P> {
        let packet = self.queue.pop(now);
        if self.queue.is_empty() && packet.is_some() {
            self.idle_since = Some(now);
        }
        packet
    }

    /// Packets held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether it holds no packet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Changes the limit; packets above a lower limit stay until they are served.
    pub fn set_limit(&mut self, limit: usize) {
        self.queue.set_limit(limit);
    }

    /// The queue's figures; the mean covers the time up to `now`.
    #[must_use]
    pub fn snapshot(&self, now: Time) -> Snapshot {
        let metrics = self.queue.snapshot(now);
        Snapshot { dropped: metrics.dropped + self.dropped_early, marked: self.marked, ..metrics }
    }

    fn measure(&mut self, now: Time) {
        let Params { weight, packet_time, .. } = self.params;
        match self.idle_since {
            Some(since) => {
                let missed = now.since(since).as_secs_f64() / packet_time.as_secs_f64().max(1e-9);
                self.average *= libm::pow(1.0 - weight, missed);
            }
            None => self.average = (1.0 - weight) * self.average + weight * self.queue.len() as f64,
        }
    }

    fn fate(&mut self) -> Fate {
        let Params { min, max, max_p, gentle, .. } = self.params;
        let average = self.average;
        if average < min {
            self.count = -1;
            return Fate::Enter;
        }
        let end = if gentle { 2.0 * max } else { max };
        if average >= end {
            self.count = 0;
            return Fate::Drop;
        }
        self.count += 1;
        let base = if average < max {
            max_p * (average - min) / (max - min)
        } else {
            max_p + (1.0 - max_p) * (average - max) / max
        };
        let spread = 1.0 - self.count as f64 * base;
        let chance = if spread > 0.0 { base / spread } else { 1.0 };
        if self.draw() >= chance {
            return Fate::Enter;
        }
        self.count = 0;
        Fate::Early
    }

    /// 0..1, from a Weyl sequence, hashed twice.
    fn draw(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (mix(mix(self.random)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aqm::tests::{Sized, at_us};

    fn queue(params: Params) -> Red<Sized> {
        Red::new(params, 1000, Time::ZERO)
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn the_average_follows_the_queue_and_falls_while_it_is_idle() {
        let mut red = queue(Params { weight: 0.5, ..Params::default() });
        let mut averages = Vec::new();
        for _each in 0..4 {
            red.enqueue(at_us(0), Sized::of(0, 100));
            averages.push(red.average);
        }
        // Lengths found: 0 (idle), 1, 2, 3: 0, 0.5, 1.25, 2.125.
        assert_eq!(averages, [0.0, 0.5, 1.25, 2.125]);
        while red.dequeue(at_us(100)).is_some() {}
        // 800 us: two packets' time; 2.125 / 4.
        red.enqueue(at_us(900), Sized::of(0, 100));
        assert!(close(red.average, 0.53125), "{}", red.average);
    }

    #[test]
    fn drops_by_chance_come_as_often_as_the_formula_says() {
        // The average stands at 10, half way: p_b = 0.05. The first arrival after a drop has count 1: p_a = 0.05 / 0.95,
        // then 0.05 / 0.9, and so on to 1: gaps are uniform on 1..=19, with mean 10.
        let params = Params { weight: 0.0, ..Params::default() };
        let mut red = queue(params);
        red.average = 10.0;
        red.idle_since = None;
        let (mut gaps, mut gap) = (Vec::new(), 0);
        for _each in 0..20_000 {
            gap += 1;
            red.measure(at_us(0));
            if red.fate() == Fate::Early {
                gaps.push(gap);
                gap = 0;
            }
        }
        let mean = 20_000.0 / gaps.len() as f64;
        assert!((mean - 10.0).abs() < 0.3, "{mean}");
        // The first arrival may have one more: count begins at -1.
        assert!(gaps[1..].iter().all(|gap| (1..=19).contains(gap)), "{gaps:?}");
        let short = gaps.iter().filter(|gap| **gap <= 5).count() as f64 / gaps.len() as f64;
        assert!((short - 5.0 / 19.0).abs() < 0.03, "{short}");
    }

    #[test]
    fn beyond_the_maximum_all_are_dropped_unless_it_is_gentle() {
        let mut red = queue(Params { weight: 0.0, ..Params::default() });
        (red.average, red.idle_since) = (15.0, None);
        assert!((0..100).all(|_| red.fate() == Fate::Drop));
        // p_b = 0.1 + 0.9 x 0.75 / 15 = 0.145 at 15.75; at count 1 p_a = 0.145 / 0.855.
        let mut red = queue(Params { weight: 0.0, gentle: true, ..Params::default() });
        (red.average, red.idle_since) = (15.75, None);
        let mut first = || {
            red.count = 0;
            red.fate() == Fate::Early
        };
        let hits = (0..10_000).filter(|_| first()).count() as f64 / 10_000.0;
        assert!((hits - 0.145 / 0.855).abs() < 0.012, "{hits}");
        red.average = 30.0;
        assert_eq!(red.fate(), Fate::Drop);
    }

    #[test]
    fn a_packet_that_understands_is_marked_and_never_dropped_by_chance() {
        let mut red = queue(Params { weight: 0.0, ..Params::default() });
        (red.average, red.idle_since) = (10.0, None);
        for number in 0..200 {
            assert_eq!(red.enqueue(at_us(0), Sized { ect: true, number, ..Sized::of(0, 100) }), None);
        }
        let marked = std::iter::from_fn(|| red.dequeue(at_us(1))).filter(|packet| packet.ce).count();
        assert!((10..30).contains(&marked), "{marked}");
        assert_eq!(red.snapshot(at_us(2)).marked, marked as u64);
    }

    #[test]
    fn below_the_minimum_it_is_a_plain_queue() {
        let mut red = queue(Params::default());
        for number in 0..1000 {
            assert_eq!(red.enqueue(at_us(number), Sized::of(0, 100)), None);
            let _ = red.dequeue(at_us(number));
        }
        assert_eq!(red.snapshot(at_us(1000)).dropped, 0);
    }
}
