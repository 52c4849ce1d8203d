//! How QUIC repairs losses (RFC 9002), where it differs from TCP.
//!
//! ```text
//! lost:            kPacketThreshold = 3 packets were delivered beyond it                              (section 6.1.1)
//! timer:           PTO = SRTT + max(4 RTTVAR, 1 ms) + max_ack_delay, doubled each time                (section 6.2.1)
//! timer expires:   two probes go out whatever the window says, new data if there is any; nothing is lost, nothing is cut (6.2.4, 7.5)
//! persistent congestion:  after kPersistentCongestionThreshold = 3 PTOs without an acknowledgment all is lost and the window
//!                  is kMinimumWindow = 2 packets                                                      (section 7.6)
//! ```
//!
//! A probe that is acknowledged tells what was lost before it. What is sent again has another packet number, so that it is lost again
//! when something that was sent later has arrived (as RFC 8985 has it for TCP), and cuts the window again if it was sent after
//! the cut before (section 7.3.2).
//!
//! Ours: a packet number is its first byte's place in the stream, which it is for what is sent once. Persistent congestion is found when the
//! timer has expired twice, after PTO + 2 PTO, and does again, not when an acknowledgment comes.
//! Does not: the time threshold of section 6.1.2, whose place the probes take.

use lasthop_core::units::Time;

use super::Sender;
use crate::conduct::Conduct;
use crate::segment::Segment;

/// kPacketThreshold.
pub(super) const PACKET_THRESHOLD: u64 = 3;
/// Expirations before the one that finds persistent congestion: 1 + 2 PTOs.
pub(super) const PROBED: u32 = 2;
/// kMinimumWindow, segments.
pub(super) const LEAST_WINDOW: f64 = 2.0;
/// Probes of an expiration: one may be lost, too.
const PROBES: u32 = 2;

impl Sender {
    /// The timer has expired: whether that asks for probes and for nothing else.
    pub(super) fn probe_as_quic(&mut self, now: Time) -> bool {
        if self.params.conduct != Conduct::Quic || self.timeouts_in_row >= PROBED {
            return false;
        }
        self.counts.timeouts += 1;
        self.timeouts_in_row += 1;
        self.rtt.back_off();
        self.timer = Some(self.rtt.due(now));
        self.probing_segments = PROBES;
        true
    }

    /// Something was delivered, if not in order: the timer starts anew (RFC 9002 section 6.2.1), and congestion does not persist.
    #[inline]
    pub(super) fn on_delivered_as_quic(&mut self, now: Time) {
        if self.params.conduct == Conduct::Quic {
            (self.timeouts_in_row, self.probing_segments) = (0, 0);
            self.restart_timer(now);
        }
    }

    /// Something was sent again at `newest` and is lost again: what was sent after recovery began is another congestion event.
    #[inline]
    pub(super) fn cut_again_as_quic(&mut self, now: Time, newest: Option<Time>) {
        if self.params.conduct == Conduct::Quic && newest.is_some_and(|sent_at| sent_at >= self.recovering_since) {
            self.cut();
            self.recovering_since = now;
        }
    }

    /// A probe that is due: new data, or what has waited longest for its acknowledgment.
    #[inline]
    pub(super) fn poll_quic_probe(&mut self, now: Time) -> Option<Segment> {
        if self.probing_segments == 0 {
            return None;
        }
        self.probing_segments -= 1;
        let bytes = u64::from(self.params.mss).min(self.limit - self.next) as u32;
        if bytes > 0 && self.next + u64::from(bytes) <= self.right_edge {
            return Some(self.send_new(now, bytes));
        }
        self.probing_segments = 0;
        let record = self.flight.resend_front(now)?;
        Some(self.sent_again(now, record))
    }
}
