//! A law may say when, besides how much: segments go out at its rate. Where it does not, a sender that paces all the same (QUIC)
//! spreads its window over a round trip (RFC 9002 section 7.7).
//!
//! ```text
//! next = max(now, next) + bytes / rate          [s] = [bytes] / [bytes/s]
//! rate = 5/4 cwnd / SRTT
//! ```
//!
//! Repairs and probes of a closed window are paced as new data are; a segment that the retransmission timer asks for goes at
//! once. No credit is kept for time not used.

use lasthop_core::units::{Span, Time};

/// N of RFC 9002 section 7.7: enough that the window, and not the pace, limits.
pub(super) const GAIN: f64 = 1.25;

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
