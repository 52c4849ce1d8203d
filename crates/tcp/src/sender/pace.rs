//! A law may say when, besides how much: segments go out at its rate.
//!
//! `next = max(now, next) + bytes / rate`        [s] = [bytes] / [bytes/s]
//!
//! Repairs and probes of a closed window are paced as new data are; a segment that the retransmission timer asks for goes at
//! once. No credit is kept for time not used.

use lasthop_core::units::{Span, Time};

#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Payload, bytes/s; none: not yet known.
    pub rate: Option<f64>,
    next: Time,
}

impl Pace {
    /// When the next segment may go.
    pub(super) fn next(&self) -> Time {
        self.next
    }

    pub(super) fn on_sent(&mut self, now: Time, bytes: u32) {
        let Some(rate) = self.rate.filter(|rate| *rate > 0.0) else { return };
        self.next = self.next.max(now) + Span::from_secs_f64(f64::from(bytes) / rate);
    }

    pub(super) fn on_timeout(&mut self) {
        self.next = Time::ZERO;
    }
}
