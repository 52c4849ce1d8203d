//! How losses are told and repaired.
//!
//! Without blocks from the receiver (RFC 5681, 6582, ns-2's `Agent/TCP/Newreno`):
//!
//! ```text
//! third duplicate:     the law cuts; first segment sent again; inflation = 3 MSS; timer restarted
//! each further one:    inflation += MSS
//! Reno, new ACK:       inflation = 0, cwnd = min(cwnd, ssthresh), over
//! NewReno, partial:    next hole sent again; inflation -= acked - MSS (acked when less than one); the timer is
//!                      restarted by the first partial ACK only (the impatient variant)
//! NewReno, all of it:  as Reno's new ACK
//! Tahoe:               everything from the hole on is sent again in slow start, from cwnd = 1
//! ```
//!
//! No fast retransmit before something sent after the last loss is acknowledged (RFC 6582's `recover`, ns-2's
//! `bugFix_`); with Reno only after a timeout, since RFC 5681 lets it halve once per loss. What else ns-2 does otherwise:
//! [`Conduct::Ns2`].
//!
//! With blocks (RFC 6675), for every law but Tahoe's: `pipe` instead of inflation, NextSeg in its four steps, over when
//! all that was outstanding at the start is acknowledged; what is lost a second time is sent a third (RFC 8985). Acknowledgments that advance restart the timer.
//!
//! The law is told `flight = min(outstanding, cwnd)`: what limited transmit and inflation add does not count (RFC 5681
//! equation 4 and its note), and a second loss in one window halves again (ns-2). ns-2's agents cut the window, whatever of
//! it is in use: `flight = min(cwnd, receiver's window)`.
//!
//! Ours: the rescue retransmission is left out when the last segment has just been sent again; when something sent in
//! recovery is lost too, the next recovery starts as the last one ends.

use lasthop_core::units::Time;

use super::flight::Learned;
use super::linux::FACK;
use super::quic::{LEAST_WINDOW, PACKET_THRESHOLD, PROBED};
use super::{Conduct, Phase, Sender, Stage};
use crate::cc::{AckEvent, LossEvent, MIN_SSTHRESH, Recovery};
use crate::segment::Segment;

/// So many duplicates tell a loss (RFC 5681).
pub(super) const DUP_ACKS: u32 = 3;

impl Sender {
    pub(super) fn on_duplicate(&mut self, now: Time, sacked: Learned) {
        if self.phase == Phase::Probing && self.on_plain_answer(now) {
            return;
        }
        // RFC 6675: a duplicate is an ACK with news in its blocks.
        if self.sacking && sacked.bytes == 0 {
            return;
        }
        self.dup_acks += 1;
        let sent_at = if sacked.again { None } else { sacked.sent_at };
        self.feedback(now, 0.0, sent_at);
        self.on_delivered_as_quic(now);
        match self.phase {
            Phase::Recovery { .. } if !self.sacking => self.inflation += i64::from(self.params.mss),
            Phase::Recovery { .. } => self.mark_lost(now),
            Phase::Probing => {}
            Phase::Open if self.sacking => self.look_for_losses(now),
            Phase::Resending if self.linux.is_some() => self.look_again_as_linux(now),
            Phase::Open | Phase::Resending => {
                if (self.dup_acks == DUP_ACKS || self.is_overdue(now)) && self.may_recover() {
                    self.enter_recovery(now);
                }
            }
        }
    }

    /// Blocks tell a loss: three duplicates, or enough sacked above the first segment.
    pub(super) fn look_for_losses(&mut self, now: Time) {
        if !self.sacking || self.phase != Phase::Open {
            return self.look_again_as_linux(now);
        }
        self.find_lost();
        let counted = self.dup_acks >= DUP_ACKS && self.linux.is_none();
        if (counted || self.flight.front_is_lost()) && self.may_recover() {
            self.enter_recovery(now);
        }
    }

    fn find_lost(&mut self) {
        if self.linux.is_some() {
            self.flight.mark_lost_beyond(FACK);
        } else if self.params.conduct == Conduct::Quic {
            self.flight.mark_lost_beyond(PACKET_THRESHOLD);
        } else {
            self.flight.mark_lost();
        }
    }

    /// In fast recovery, by blocks. ns-2 does not look at what it has sent again, but for its Linux.
    fn mark_lost(&mut self, now: Time) {
        self.find_lost();
        if !self.as_ns2() || self.linux.is_some() {
            let newest = self.flight.give_up_repairs();
            self.cut_again_as_quic(now, newest);
        }
    }

    pub(super) fn may_recover(&self) -> bool {
        match self.recover {
            None => true,
            Some(recover) if self.sacking => self.una >= recover,
            Some(recover) => self.una > recover || self.may_halve_again(),
        }
    }

    /// RFC 5681 lets Reno halve once per loss of a window; ns-2's `bugFix_` does not.
    fn may_halve_again(&self) -> bool {
        self.style == Recovery::Reno && !self.by_timeout && !self.as_ns2()
    }

    pub(super) fn loss(&self) -> LossEvent {
        let most = if self.as_ns2() { self.right_edge.saturating_sub(self.una) } else { self.outstanding() };
        let flight = most as f64 / f64::from(self.params.mss);
        let again = self.flight.front().is_some_and(|first| first.again);
        LossEvent { flight: flight.min(self.window.cwnd), again, marked: false }
    }

    fn enter_recovery(&mut self, now: Time) {
        if self.begin_probing(now, false) {
            return;
        }
        let is_spared = self.is_corrupted();
        self.recover_now(now, is_spared);
    }

    /// What is missing was lost on the link, as far as the receiver can tell.
    fn is_corrupted(&self) -> bool {
        self.corrupted == Some(self.una)
    }

    pub(super) fn cut(&mut self) {
        let loss = self.loss();
        self.control.on_loss(&mut self.window, &loss);
        self.round_threshold();
        if self.as_ns2() && self.window.cwnd == MIN_SSTHRESH && self.linux.is_none() {
            self.window.cwnd = (loss.flight / 2.0).min(MIN_SSTHRESH);
        }
    }

    /// Fast recovery begins; `is_spared`: without a cut.
    pub(super) fn recover_now(&mut self, now: Time, is_spared: bool) {
        self.halve_as_linux(self.window.cwnd);
        self.spared = is_spared;
        if is_spared {
            // What ends recovery is not to be the threshold of an older loss.
            self.window.ssthresh = self.window.ssthresh.max(self.window.cwnd);
        } else {
            self.cut();
        }
        self.counts.fast_retransmits += 1;
        self.recovering_since = now;
        if self.linux.is_none() {
            self.rtt.on_loss();
        }
        self.recover = Some(self.next);
        self.by_timeout = false;
        if self.style == Recovery::Tahoe {
            self.inflation = 0;
            self.phase = Phase::Resending;
            self.flight.give_up_all();
        } else {
            self.inflation = if self.sacking { 0 } else { i64::from(self.dup_acks * self.params.mss) };
            self.phase = Phase::Recovery { partial: false };
            self.resend_front =
                self.linux.is_none() && (!self.flight.front_is_lost() || !self.flight.front_is_resent());
            self.rescue = None;
            self.flight.rewind();
        }
        self.restart_timer(now);
    }

    /// The receiver has seen a mark (ECE, RFC 3168 section 6.1.2): the law cuts as at a loss, once per window of data and
    /// not in recovery; nothing is sent again. A loss in the same window cuts once more. To be called before the
    /// acknowledgment itself.
    pub fn on_congestion_echo(&mut self) {
        let is_new = self.marked_until.is_none_or(|end| self.una >= end);
        if self.stage != Stage::Open || self.phase != Phase::Open || !is_new || self.outstanding() == 0 {
            return;
        }
        let loss = LossEvent { marked: true, ..self.loss() };
        self.control.on_loss(&mut self.window, &loss);
        self.round_threshold();
        self.marked_until = Some(self.next);
        self.cwr = true;
        self.update_allowance();
    }

    /// Whether the next new segment is to say that the window was cut (CWR); then it has said so.
    pub fn take_cwr(&mut self) -> bool {
        std::mem::take(&mut self.cwr)
    }

    pub(super) fn on_new_in_recovery(&mut self, ack: &AckEvent, acked: u64, partial: bool) {
        let now = ack.now;
        if self.spared
            && self.corrupted.is_some()
            && self.outstanding() > 0
            && self.una < self.recover.unwrap_or(0)
            && !self.is_corrupted()
        {
            // The next hole is a queue's.
            self.spared = false;
            self.cut();
        }
        let all = self.recover.is_none_or(|recover| self.una >= recover);
        if all || (self.style == Recovery::Reno && !self.sacking) {
            self.leave_recovery(ack);
        } else if self.sacking {
            self.mark_lost(now);
            self.restart_timer(now);
        } else {
            let mss = i64::from(self.params.mss);
            let acked = acked as i64;
            self.inflation -= if acked >= mss { acked - mss } else { acked };
            if self.as_ns2() && self.inflation < mss {
                let debt = (mss - self.inflation) as f64 / mss as f64;
                self.window.cwnd = (self.window.cwnd - debt).max(1.0);
                self.inflation = mss;
            }
            self.resend_front = true;
            self.phase = Phase::Recovery { partial: true };
            if !partial {
                self.restart_timer(now);
            }
        }
    }

    pub(super) fn as_ns2(&self) -> bool {
        self.params.conduct == Conduct::Ns2
    }

    fn round_threshold(&mut self) {
        if self.as_ns2() {
            self.window.ssthresh = self.window.ssthresh.floor();
        }
    }

    fn leave_recovery(&mut self, ack: &AckEvent) {
        let now = ack.now;
        self.phase = Phase::Open;
        self.dup_acks = 0;
        self.inflation = 0;
        self.resend_front = false;
        if self.as_ns2() {
            let in_flight = self.flight.pipe() as f64 / f64::from(self.params.mss);
            if !self.control.on_recovered(&mut self.window, in_flight) {
                self.control.on_ack(&mut self.window, ack);
            }
        } else {
            self.window.cwnd = self.window.cwnd.min(self.window.ssthresh);
        }
        self.restart_timer(now);
        self.look_for_losses(now);
    }

    pub(super) fn on_timeout(&mut self, now: Time) {
        if !self.probe_as_quic(now) && !self.begin_probing(now, true) {
            self.time_out(now, false);
        }
    }

    /// Everything is sent again; `is_spared`: without a cut.
    pub(super) fn time_out(&mut self, now: Time, is_spared: bool) {
        let before = if self.params.conduct == Conduct::Quic { PROBED } else { 0 };
        if !is_spared && (self.timeouts_in_row == before || self.as_ns2()) {
            let loss = self.loss();
            self.control.on_timeout(&mut self.window, &loss);
            self.round_threshold();
            if self.params.conduct == Conduct::Quic {
                self.window.cwnd = self.window.cwnd.max(LEAST_WINDOW);
            }
        }
        if let Some(fine) = &mut self.fine {
            fine.on_timeout(now);
        }
        if let Some(pace) = &mut self.pace {
            pace.on_timeout();
        }
        self.counts.timeouts += 1;
        self.timeouts_in_row += 1;
        self.rtt.back_off();
        self.rtt.on_loss();
        self.recover = Some(self.next);
        self.by_timeout = true;
        self.phase = Phase::Resending;
        self.dup_acks = 0;
        self.inflation = 0;
        self.resend_front = false;
        self.flight.give_up_all();
        self.timer = Some(self.rtt.due(now));
        self.update_allowance();
    }

    /// What goes out again: the first segment at once, then what is lost as the window allows.
    pub(super) fn poll_resend(&mut self, now: Time) -> Option<Segment> {
        if self.resend_front {
            if self.fine.is_some() && self.outstanding() == 0 {
                return self.poll_unsent(now);
            }
            self.resend_front = false;
            let record = self.flight.resend_front(now)?;
            return Some(self.sent_again(now, record));
        }
        if self.phase == Phase::Open {
            return None;
        }
        let (at, bytes) = self.flight.next_lost()?;
        self.resend_if_room(now, at, bytes)
    }

    /// Nothing is lost for sure and nothing new may go: RFC 6675 NextSeg rules 3 and 4.
    pub(super) fn poll_last_resort(&mut self, now: Time) -> Option<Segment> {
        if !self.sacking
            || self.linux.is_some()
            || !matches!(self.phase, Phase::Recovery { .. })
            || !self.has_room(self.params.mss)
        {
            return None;
        }
        if let Some((at, bytes)) = self.flight.next_unsacked() {
            return self.resend_if_room(now, at, bytes);
        }
        if self.rescue.is_some_and(|rescue| self.una <= rescue) {
            return None;
        }
        let at = self.flight.last_unsacked()?;
        self.rescue = self.recover;
        let record = self.flight.rescue(at, now)?;
        Some(self.sent_again(now, record))
    }

    fn resend_if_room(&mut self, now: Time, at: usize, bytes: u32) -> Option<Segment> {
        if !self.has_room(bytes) {
            self.cwnd_limited = true;
            return None;
        }
        let record = self.flight.resend(at, now)?;
        Some(self.sent_again(now, record))
    }
}
