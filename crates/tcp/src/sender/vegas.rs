//! Losses as Vegas tells them: a duplicate makes the sender look at its clock instead of counting to three.
//!
//! ```text
//! overdue:    now - sent >= 17/16 (SRTT + 2 D)                                   [s]
//! duplicate:  overdue, or the third: first segment sent again; the law cuts, once for what was sent before the last cut;
//!             cwnd += duplicates until then
//! further:    cwnd += 1 beyond the third
//! new ACK:    cwnd as the cut left it, where it was inflated; the first two after a cut look at the clock once more
//! ```
//!
//! SRTT and D: mean and mean deviation of the round trip of every segment that was sent once (1/8 and 1/4).
//!
//! Source: Brakmo and Peterson, "TCP Vegas: end to end congestion avoidance on a global Internet", IEEE JSAC 13 (1995),
//! section III.A, and ns-2.35's `Agent/TCP/Vegas` beside which this was run. With the conduct of the RFCs only the first of
//! these lines is in force, before NewReno's recovery and without blocks from the receiver.
//!
//! As ns-2 does it, and only with its conduct: transmissions are counted in a ring as long as the receiver's window, and what
//! an acknowledgment leaves uncleared because it crosses the ring's end counts as sent again the next time round; nothing goes out on the first two duplicates unless they repair; the window
//! stays inflated when no fourth duplicate comes; the retransmission timer backs off at a fast retransmit, too; when the
//! clock is looked at again and nothing is outstanding, the next segment counts as overdue and goes out twice.

use lasthop_core::units::{Span, Time};

use super::recovery::DUP_ACKS;
use super::{Phase, Sender};
use crate::cc::{LossEvent, Recovery};
use crate::segment::Segment;

/// New ACKs after a cut that look at the clock.
const LOOKS: u64 = 2;

/// What ns-2's agent keeps beside the coarse timer.
#[derive(Debug, Default)]
pub(super) struct Fine {
    /// Smoothed round trip, s.
    srtt: f64,
    /// Its mean deviation, s.
    deviation: f64,
    /// A segment is overdue after it, s; a loss lengthens it until the next sample.
    timeout: f64,
    /// New ACKs that will look at the clock.
    looks: u64,
    /// When the window was last cut.
    cut_at: Option<Time>,
    /// What the last cut left, segments.
    left: f64,
    /// Places of the ring that count a transmission too many; as long as the receiver's window, segments.
    stale: Vec<bool>,
}

/// Longest ring, segments.
const LONGEST_RING: u64 = 65_536;

impl Fine {
    /// The handshake took `rtt`.
    pub(super) fn on_open(&mut self, rtt: Span) {
        self.srtt = rtt.as_secs_f64();
        self.deviation = self.srtt / 4.0;
        self.timeout = self.srtt + 2.0 * self.deviation;
    }

    fn sample(&mut self, rtt: Span) {
        let off = rtt.as_secs_f64() - self.srtt;
        self.srtt += off / 8.0;
        self.deviation += (off.abs() - self.deviation) / 4.0;
        self.timeout = (self.srtt + 2.0 * self.deviation) * 17.0 / 16.0;
    }

    fn is_overdue(&self, now: Time, sent_at: Time) -> bool {
        now.since(sent_at).as_secs_f64() >= self.timeout
    }

    /// Segments from number `first` up to and with `last` are acknowledged; `window`: of the receiver, segments. Whether the
    /// count of the last one was too high.
    fn clear(&mut self, first: u64, last: u64, window: u64) -> bool {
        if self.stale.is_empty() {
            self.stale.resize(window.clamp(1, LONGEST_RING) as usize, false);
        }
        let length = self.stale.len() as u64;
        let was_stale = self.is_stale(last);
        let crosses = first % length > last % length;
        for number in first..=last.min(first + length) {
            self.stale[(number % length) as usize] = crosses;
        }
        was_stale
    }

    fn is_stale(&self, number: u64) -> bool {
        !self.stale.is_empty() && self.stale[(number % self.stale.len() as u64) as usize]
    }

    pub(super) fn on_timeout(&mut self, now: Time) {
        self.cut_at = Some(now);
        self.left = 0.0;
    }
}

impl Sender {
    /// With the conduct of the RFCs: whether a single duplicate tells that the first segment is lost.
    pub(super) fn is_overdue(&self, now: Time) -> bool {
        self.style == Recovery::Vegas
            && !self.flight.front_is_lost()
            && self.rtt.overdue().zip(self.flight.front()).is_some_and(|(wait, first)| now.since(first.sent_at) >= wait)
    }

    /// A new acknowledgment, as ns-2 takes it.
    #[cold]
    #[inline(never)]
    pub(super) fn on_new_as_vegas(&mut self, now: Time, offset: u64) {
        let Some(fine) = self.fine.as_mut() else { return };
        if self.dup_acks > DUP_ACKS && self.window.cwnd > fine.left {
            self.window.cwnd = fine.left.max(1.0);
            self.window.ssthresh = 2.0;
        }
        let mss = u64::from(self.params.mss);
        let acked = (offset - self.una) as f64 / mss as f64;
        // Its SYN is number 0.
        let first = self.una / mss + 1;
        let is_stale = fine.clear(first, offset.div_ceil(mss).max(first), (self.right_edge - offset) / mss);
        let learned = self.flight.acknowledge(offset);
        let sent_at = if is_stale { None } else { learned.sent_at };
        self.una = offset;
        self.timeouts_in_row = 0;
        self.dup_acks = 0;
        if self.phase == Phase::Resending && self.recover.is_none_or(|recover| offset >= recover) {
            self.phase = Phase::Open;
        }
        self.report_progress(now, sent_at);
        let event = self.feedback(now, acked, if learned.again { None } else { learned.sent_at });
        self.control.on_ack(&mut self.window, &event);
        self.restart_timer(now);
        self.look_at_clock(now, sent_at);
    }

    fn look_at_clock(&mut self, now: Time, sent_at: Option<Time>) {
        let Some(fine) = self.fine.as_mut() else { return };
        if let Some(sent_at) = sent_at {
            fine.sample(now.since(sent_at));
        }
        if fine.looks == 0 {
            return;
        }
        if self.flight.front().is_none_or(|first| fine.is_overdue(now, first.sent_at)) {
            fine.looks -= 1;
            self.dup_acks = DUP_ACKS;
            self.resend_front = true;
        } else {
            fine.looks = 0;
        }
    }

    /// A duplicate, as ns-2 takes it.
    #[cold]
    #[inline(never)]
    pub(super) fn on_duplicate_as_vegas(&mut self, now: Time) {
        self.dup_acks += 1;
        let Some((fine, first)) = self.fine.as_mut().zip(self.flight.front().copied()) else { return };
        if !fine.is_overdue(now, first.sent_at) && self.dup_acks != DUP_ACKS {
            if self.dup_acks > DUP_ACKS {
                self.window.cwnd += 1.0;
            }
            return;
        }
        if self.by_timeout && self.recover.is_some_and(|recover| self.una <= recover) {
            return;
        }
        self.by_timeout = false;
        self.recover = Some(self.next);
        let waiting = self.flight.pipe() / u64::from(self.params.mss);
        fine.looks = LOOKS.min(waiting + 1);
        let again = first.again || fine.is_stale(self.una / u64::from(self.params.mss) + 1);
        fine.timeout *= if again { 2.0 } else { 1.125 };
        if fine.cut_at.is_none_or(|cut_at| cut_at < first.sent_at) {
            let loss = LossEvent { again, ..self.loss() };
            self.control.on_loss(&mut self.window, &loss);
            if let Some(fine) = self.fine.as_mut() {
                fine.left = self.window.cwnd;
                fine.cut_at = Some(now);
            }
            self.window.cwnd += f64::from(self.dup_acks);
        }
        self.rtt.back_off();
        self.rtt.on_loss();
        self.restart_timer(now);
        self.counts.fast_retransmits += 1;
        self.resend_front = true;
        if !again {
            self.dup_acks = DUP_ACKS;
        }
    }

    /// What the first two duplicates take from the allowance: all of it.
    #[cold]
    #[inline(never)]
    pub(super) fn held_as_vegas(&self) -> i64 {
        if (1..DUP_ACKS).contains(&self.dup_acks) { i64::MIN / 2 } else { 0 }
    }

    /// What counts as overdue was never sent: it goes out now, and once more by the next `poll`.
    #[cold]
    #[inline(never)]
    pub(super) fn poll_unsent(&mut self, now: Time) -> Option<Segment> {
        let segment = self.poll_new(now);
        self.resend_front = segment.is_some();
        segment
    }
}
