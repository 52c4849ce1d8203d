//! What goes out next: the SYN, new bytes, probes.
//!
//! Whole segments only, but for the last of the stream (RFC 9293 section 3.8.6.2.1, the sender's silly window avoidance); a
//! window that stays smaller is used when the probe's timer expires.

use lasthop_core::units::Time;

use super::flight::SegmentRecord;
use super::recovery::DUP_ACKS;
use super::{Sender, Stage};
use crate::segment::Segment;

impl Sender {
    pub(super) fn poll_handshake(&mut self, now: Time, due: bool) -> Option<Segment> {
        let retries = match self.stage {
            Stage::Closed => 1,
            Stage::Opening { retries, .. } if due => retries + 1,
            _ => return None,
        };
        if retries > 1 {
            self.rtt.back_off();
        }
        self.stage = Stage::Opening { sent_at: now, retries };
        self.timer = Some(self.rtt.due(now));
        Some(Segment { offset: 0, bytes: 0, syn: true, fin: false, again: retries > 1 })
    }

    /// Whether the congestion window has room for `bytes`.
    #[inline]
    pub(super) fn has_room(&self, bytes: u32) -> bool {
        self.flight.pipe() as i64 + i64::from(bytes) <= self.allowance
    }

    /// To be called when windows or duplicates have changed.
    pub(super) fn update_allowance(&mut self) {
        let window = (self.window.cwnd * f64::from(self.params.mss)) as i64;
        self.allowance = (window + self.inflation + self.limited_transmit()).max(self.halving());
    }

    /// RFC 3042: a segment for each of the first two duplicates. With blocks `pipe` shrinks instead.
    fn limited_transmit(&self) -> i64 {
        if self.fine.is_some() {
            return self.held_as_vegas();
        }
        let due = self.params.limited_transmit && !self.sacking && self.dup_acks < DUP_ACKS;
        if due { i64::from(self.dup_acks) * i64::from(self.params.mss) } else { 0 }
    }

    #[inline(always)]
    pub(super) fn poll_new(&mut self, now: Time) -> Option<Segment> {
        let bytes = u64::from(self.params.mss).min(self.limit - self.next) as u32;
        if bytes == 0 && self.delivery.is_some() {
            self.note_limited();
        }
        if bytes == 0 || self.next + u64::from(bytes) > self.right_edge {
            return self.poll_last_resort(now);
        }
        if !self.has_room(bytes) {
            self.cwnd_limited = true;
            return None;
        }
        Some(self.send_new(now, bytes))
    }

    #[inline(always)]
    pub(super) fn send_new(&mut self, now: Time, bytes: u32) -> Segment {
        if self.outstanding() == 0 || self.timer.is_none() {
            self.timer = Some(self.rtt.due(now));
        }
        self.probes = 0;
        self.probe_due = false;
        let offset = self.next;
        let outstanding = self.outstanding() > 0;
        self.flight.push(offset, bytes, now);
        self.rtt.on_sent(now, offset);
        self.next += u64::from(bytes);
        self.counts.sent += 1;
        let segment = Segment { offset, bytes, syn: false, fin: self.is_end(self.next), again: false };
        if self.watched {
            self.on_sent(now, &segment, outstanding);
        }
        if self.linux.is_some() {
            self.after_sent_as_linux();
        }
        segment
    }

    /// There is room, and nothing to send.
    #[inline(never)]
    fn note_limited(&mut self) {
        let inflight = self.flight.pipe();
        if let Some(delivery) = self.delivery.as_mut().filter(|_| (inflight as i64) < self.allowance) {
            delivery.on_limited(inflight);
        }
    }

    /// Nothing outstanding, and the window does not take a segment: RFC 9293 section 3.8.6.1. A window smaller than a
    /// segment is used when the timer expires (section 3.8.6.2.1, the override timeout).
    pub(super) fn poll_probe(&mut self, now: Time) -> Option<Segment> {
        if self.outstanding() > 0 || self.next >= self.limit {
            return None;
        }
        if !self.probe_due {
            self.timer = self.timer.or_else(|| Some(now + self.rtt.backed_off(self.probes)));
            return None;
        }
        self.probe_due = false;
        let room = self.right_edge.saturating_sub(self.next);
        if room > 0 {
            let bytes = room.min(u64::from(self.params.mss)).min(self.limit - self.next) as u32;
            return Some(self.send_new(now, bytes));
        }
        self.probes += 1;
        self.timer = Some(now + self.rtt.backed_off(self.probes));
        Some(Segment { offset: self.una.saturating_sub(1), bytes: 0, syn: false, fin: false, again: true })
    }

    /// Whether nothing of the stream follows `offset`.
    fn is_end(&self, offset: u64) -> bool {
        offset >= self.limit && !self.params.fed
    }

    pub(super) fn sent_again(&mut self, now: Time, record: SegmentRecord) -> Segment {
        self.counts.retransmitted += 1;
        if self.timer.is_none() {
            self.timer = Some(self.rtt.due(now));
        }
        let fin = self.is_end(record.offset + u64::from(record.bytes));
        let segment = Segment { offset: record.offset, bytes: record.bytes, syn: false, fin, again: true };
        if self.watched {
            self.on_sent(now, &segment, true);
        }
        if self.linux.is_some() {
            self.after_sent_as_linux();
        }
        segment
    }
}
