//! What every queue discipline counts.

use super::Snapshot;
use crate::meter::histogram::Histogram;
use crate::units::{Span, Time};

/// Metrics since the queue was made.
#[derive(Clone, Debug)]
pub struct Metrics {
    made: Time,
    bytes: u64,
    max_packets: usize,
    dropped: u64,
    marked: u64,
    /// Time in the queue of packets that were dropped after it, ns.
    dropped_sojourn_ns: u128,
    sojourn: Histogram,
}

impl Metrics {
    /// Of a queue made at `now`.
    #[must_use]
    pub fn new(now: Time) -> Self {
        Self {
            made: now,
            bytes: 0,
            max_packets: 0,
            dropped: 0,
            marked: 0,
            dropped_sojourn_ns: 0,
            sojourn: Histogram::new(),
        }
    }

    /// A packet came; with it the queue holds `packets`.
    #[inline]
    pub fn on_enqueue(&mut self, bytes: u32, packets: usize) {
        self.bytes += u64::from(bytes);
        self.max_packets = self.max_packets.max(packets);
    }

    /// A packet left to be sent.
    #[inline]
    pub fn on_dequeue(&mut self, now: Time, arrived: Time, bytes: u32) {
        self.bytes -= u64::from(bytes);
        self.sojourn.record(now.since(arrived));
    }

    /// Packets that came together left to be sent together.
    #[inline]
    pub fn on_dequeue_all(&mut self, now: Time, arrived: Time, bytes: u64, packets: u32) {
        self.bytes -= bytes;
        self.sojourn.record_times(now.since(arrived), packets);
    }

    /// A packet that was held is dropped.
    pub fn on_drop(&mut self, now: Time, arrived: Time, bytes: u32) {
        self.bytes -= u64::from(bytes);
        self.dropped += 1;
        self.dropped_sojourn_ns += u128::from(now.since(arrived).as_nanos());
    }

    /// A packet is refused.
    pub fn on_refuse(&mut self) {
        self.dropped += 1;
    }

    /// A packet is marked (ECN) instead of dropped.
    pub fn on_mark(&mut self) {
        self.marked += 1;
    }

    /// IP bytes held.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// With `held`, the arrivals of the packets held.
    #[must_use]
    pub fn snapshot(&self, now: Time, held: impl Iterator<Item = Time>) -> Snapshot {
        // Each packet adds its time in the queue to the integral of the length: nothing is summed up on the way.
        let (mut packets, mut sojourn_ns) = (0, self.dropped_sojourn_ns);
        for arrived in held {
            packets += 1;
            sojourn_ns += u128::from(now.since(arrived).as_nanos());
        }
        let age = now.since(self.made).as_nanos().max(1);
        Snapshot {
            packets,
            bytes: self.bytes,
            mean_packets: (self.sojourn.sum_ns() + sojourn_ns) as f64 / age as f64,
            max_packets: self.max_packets,
            dropped: self.dropped,
            marked: self.marked,
            mean_sojourn_ms: self.sojourn.mean().map_or(0.0, Span::as_millis_f64),
            p99_sojourn_ms: self.sojourn.quantile(0.99).map_or(0.0, Span::as_millis_f64),
        }
    }
}
