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
    /// When the newest segment went out, and the one before it.
    sent: Option<(Time, Time)>,
}

impl Pace {
    /// When the next segment may go.
    pub(super) fn next(&self) -> Time {
        self.next
    }

    pub(super) fn on_sent(&mut self, now: Time, bytes: u32) {
        self.sent = Some((now, self.sent.map_or(now, |(newest, _)| newest)));
        let Some(rate) = self.rate.filter(|rate| *rate > 0.0) else { return };
        self.next = self.next.max(now) + Span::from_secs_f64(f64::from(bytes) / rate);
    }

    /// Between the newest segment and the one before it, µs.
    pub(super) fn gap(&self) -> u32 {
        let gap = self.sent.map_or(Span::ZERO, |(newest, before)| newest.since(before));
        u32::try_from(gap.as_nanos() / 1000).unwrap_or(u32::MAX)
    }

    pub(super) fn on_timeout(&mut self) {
        self.next = Time::ZERO;
    }
}
