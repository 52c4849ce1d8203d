//! A bounded first-in first-out queue that drops what arrives at a full one (drop-tail), with its figures.
//!
//! `mean_packets = sum(n_i x dt_i) / T [packets]`, n_i packets held during dt_i, T since the queue was made
//! `sojourn = time of pop - time of push [s]`
//!
//! The frame that a medium has in service has left the queue and is not counted by the limit, as in ns-2.
//! Not done: marking, early drops, fairness between flows.

use std::collections::VecDeque;

use crate::meter::histogram::Histogram;
use crate::packet::Packet;
use crate::units::{Span, Time};

/// See the module.
#[derive(Clone, Debug)]
pub struct Fifo<P> {
    /// Packets in order, each with the time of its arrival.
    packets: VecDeque<(Time, P)>,
    /// Most packets held; what arrives beyond is refused.
    limit: usize,
    made: Time,
    max_packets: usize,
    bytes: u64,
    dropped: u64,
    sojourn: Histogram,
}

/// Metrics of a queue since it was made; `schema/report.md`, `queues[]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Snapshot {
    /// Packets held now.
    pub packets: usize,
    /// IP bytes held now.
    pub bytes: u64,
    /// Mean over time of the packets held.
    pub mean_packets: f64,
    /// Most packets held at once.
    pub max_packets: usize,
    /// Packets refused or thrown out.
    pub dropped: u64,
    /// Packets marked (ECN) in place of a drop.
    pub marked: u64,
    /// Mean time in the queue of the packets that left it, ms.
    pub mean_sojourn_ms: f64,
    /// 99th percentile of the same, ms.
    pub p99_sojourn_ms: f64,
}

impl<P: Packet> Fifo<P> {
    /// An empty queue of at most `limit` packets, made at `now`.
    #[must_use]
    pub fn new(limit: usize, now: Time) -> Self {
        Self {
            // Grown when needed: a ring no larger than what it holds stays in the cache.
            packets: VecDeque::new(),
            limit,
            made: now,
            max_packets: 0,
            bytes: 0,
            dropped: 0,
            sojourn: Histogram::new(),
        }
    }

    /// Takes a packet, or hands it back (and counts it) when the queue is full.
    #[inline]
    pub fn push(&mut self, now: Time, packet: P) -> Result<(), P> {
        if self.packets.len() >= self.limit {
            self.dropped += 1;
            return Err(packet);
        }
        self.bytes += u64::from(packet.bytes());
        self.packets.push_back((now, packet));
        self.max_packets = self.max_packets.max(self.packets.len());
        Ok(())
    }

    /// The oldest packet.
    #[inline]
    pub fn pop(&mut self, now: Time) -> Option<P> {
        let (arrived, packet) = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.bytes());
        self.sojourn.record(now.since(arrived));
        Some(packet)
    }

    /// The packet that [`Self::pop`] would give.
    #[inline]
    #[must_use]
    pub fn front(&self) -> Option<&P> {
        self.packets.front().map(|(_, packet)| packet)
    }

    /// A packet that went straight into service: it waited for nothing.
    #[inline]
    pub fn pass_by(&mut self) {
        self.sojourn.record_zero();
    }

    /// Packets held.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether it holds no packet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Changes the limit; packets above a lower limit stay until they are served.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// The queue's figures; the mean covers the time up to `now`.
    #[must_use]
    pub fn snapshot(&self, now: Time) -> Snapshot {
        // Each packet adds its time in the queue to the integral of the length: nothing is summed up on the way.
        let held: u128 = self.packets.iter().map(|(arrived, _)| u128::from(now.since(*arrived).as_nanos())).sum();
        let age = now.since(self.made).as_nanos().max(1);
        Snapshot {
            packets: self.packets.len(),
            bytes: self.bytes,
            mean_packets: (self.sojourn.sum_ns() + held) as f64 / age as f64,
            max_packets: self.max_packets,
            dropped: self.dropped,
            marked: 0,
            mean_sojourn_ms: self.sojourn.mean().map_or(0.0, Span::as_millis_f64),
            p99_sojourn_ms: self.sojourn.quantile(0.99).map_or(0.0, Span::as_millis_f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::FlowId;

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Numbered(u32);
    impl Packet for Numbered {
        fn flow(&self) -> FlowId {
            FlowId(0)
        }
        fn bytes(&self) -> u32 {
            100
        }
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn packets_leave_in_the_order_they_came() {
        let mut queue = Fifo::new(10, Time::ZERO);
        for n in 0..5 {
            queue.push(at(n), Numbered(n as u32)).unwrap();
        }
        assert_eq!(queue.snapshot(at(5)).bytes, 500);
        let order: Vec<u32> = std::iter::from_fn(|| queue.pop(at(9)).map(|p| p.0)).collect();
        assert_eq!(order, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_full_queue_hands_the_newcomer_back_and_counts_it() {
        let mut queue = Fifo::new(2, Time::ZERO);
        assert!(queue.push(at(0), Numbered(0)).is_ok());
        assert!(queue.push(at(0), Numbered(1)).is_ok());
        assert_eq!(queue.push(at(0), Numbered(2)), Err(Numbered(2)));
        assert_eq!((queue.len(), queue.snapshot(at(1)).dropped), (2, 1));
    }

    #[test]
    fn the_mean_length_is_weighted_by_time() {
        let mut queue = Fifo::new(10, Time::ZERO);
        queue.push(at(0), Numbered(0)).unwrap();
        queue.push(at(5), Numbered(1)).unwrap();
        let _ = queue.pop(at(8));
        // One packet for 5 ms, two for 3 ms, one for 2 ms.
        assert!((queue.snapshot(at(10)).mean_packets - 1.3).abs() < 1e-9);
        assert_eq!(queue.snapshot(at(10)).max_packets, 2);
    }

    #[test]
    fn sojourn_is_the_time_from_push_to_pop() {
        let mut queue = Fifo::new(10, Time::ZERO);
        queue.push(at(1), Numbered(0)).unwrap();
        let _ = queue.pop(at(5));
        assert!((queue.snapshot(at(5)).mean_sojourn_ms - 4.0).abs() < 0.01);
    }

    #[test]
    fn a_lower_limit_keeps_what_is_already_there() {
        let mut queue = Fifo::new(3, Time::ZERO);
        for n in 0..3 {
            queue.push(at(0), Numbered(n)).unwrap();
        }
        queue.set_limit(1);
        assert_eq!(queue.len(), 3);
        assert!(queue.push(at(1), Numbered(9)).is_err());
    }
}
