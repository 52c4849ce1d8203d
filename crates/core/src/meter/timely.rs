//! Real-Time Performance Index: how much of what was sent arrived in time.
//!
//! `timely_index = timely / sent`, `delayed_rate = late / received`, `loss_rate = lost / sent` \[1\]; a packet is late
//! when it arrives more than `limit` (75 ms) after the previous arrival of its flow.
//! Source: SNOOP-RT section 4.

use crate::units::{Span, Time};

/// Gap between arrivals above which the second one is late.
pub const LIMIT: Span = Span::from_millis(75);

/// See the module.
#[derive(Clone, Debug)]
pub struct Timely {
    limit: Span,
    previous_arrival: Option<Time>,
    sent: u64,
    received: u64,
    late: u64,
    lost: u64,
}

impl Default for Timely {
    fn default() -> Self {
        Self::new(LIMIT)
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl Timely {
    /// With another limit than 75 ms.
    #[must_use]
    pub const fn new(limit: Span) -> Self {
        Self { limit, previous_arrival: None, sent: 0, received: 0, late: 0, lost: 0 }
    }

    /// A packet was handed to the network.
    pub fn on_sent(&mut self) {
        self.sent += 1;
    }

    /// A packet arrived.
    pub fn on_arrival(&mut self, at: Time) {
        self.received += 1;
        let gap = self.previous_arrival.map_or(Span::ZERO, |before| at.since(before));
        self.late += u64::from(gap > self.limit);
        self.previous_arrival = Some(at);
    }

    /// A packet of another population arrived: it ends a gap but is not counted.
    pub fn on_other_arrival(&mut self, at: Time) {
        self.previous_arrival = Some(at);
    }

    /// A packet was lost.
    pub fn on_lost(&mut self) {
        self.lost += 1;
    }

    /// Timely received / sent; `None` when nothing was sent.
    #[must_use]
    pub fn index(&self) -> Option<f64> {
        share(self.received - self.late, self.sent)
    }

    /// Late / received; `None` when nothing was received.
    #[must_use]
    pub fn delayed_rate(&self) -> Option<f64> {
        share(self.late, self.received)
    }

    /// Lost / sent; `None` when nothing was sent.
    #[must_use]
    pub fn loss_rate(&self) -> Option<f64> {
        share(self.lost, self.sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_of_more_than_75_ms_makes_the_packet_late() {
        let mut t = Timely::default();
        for at_ms in [0, 75, 151, 200] {
            t.on_sent();
            t.on_arrival(Time::from_nanos(at_ms * 1_000_000));
        }
        t.on_sent();
        t.on_lost();
        assert_eq!((t.index(), t.delayed_rate(), t.loss_rate()), (Some(0.6), Some(0.25), Some(0.2)));
    }
}
