//! TCP probing: after a loss, two round trips without data decide how it is answered.
//!
//! ```text
//! loss (third duplicate, or timer) -> PROBE 1 -> its answer, rtt1 -> PROBE 2 -> its answer, rtt2 -> back to data
//!          ^------------ no answer within the timeout: from the start, doubled ------------'
//! rtt1 and rtt2 <= bound:   immediate recovery: ssthresh = cwnd, cwnd = min(cwnd, initial), what is lost goes out again
//! otherwise:                as Reno: half of the window, or slow start after the timer
//! bound: the smoothed round trip before the loss                                                    [s]
//! ```
//!
//! A probe is a header without payload, from just below the hole, so that the receiver answers at once; its number goes with
//! it and comes back ([`Note::Probe`](crate::Note)). As long as the path is dead nothing but probes is lost on it.
//!
//! Source: Tsaoussidis and Badr, "TCP-Probing: towards an error control schema with energy and throughput performance gains",
//! ICNP 2000. Ours: the bound, where the paper takes what lies between the best and the last round trip; the window
//! comes back by slow start, since two round trips of silence have stopped the clock of ACKs and all of it at once would flood a queue; an
//! ACK without a number that answers the third probe is of a receiver that does not know them: then as Reno.

use lasthop_core::units::{Span, Time};

use super::{Phase, Sender};
use crate::segment::Segment;

/// Probes without an answer after which a plain acknowledgment ends the cycle.
const PLAIN_AFTER: u32 = 2;

#[derive(Debug, Default)]
pub(super) struct Probing {
    cycle: Option<Cycle>,
    /// Number of the newest probe.
    number: u32,
}

#[derive(Clone, Copy, Debug)]
struct Cycle {
    /// The retransmission timer told the loss.
    by_timeout: bool,
    bound: Span,
    /// Round trip of the first probe, once it is answered.
    first: Option<Span>,
    /// When the newest probe went out; none: it goes next.
    sent_at: Option<Time>,
    /// Probes without an answer.
    unanswered: u32,
}

impl Sender {
    /// Whether a probe cycle begins instead of an answer to the loss.
    pub(super) fn begin_probing(&mut self, now: Time, by_timeout: bool) -> bool {
        let Some((probing, bound)) = self.probing.as_mut().zip(self.rtt.srtt()) else { return false };
        probing.number = probing.number.wrapping_add(1);
        probing.cycle = Some(Cycle { by_timeout, bound, first: None, sent_at: None, unanswered: 0 });
        self.phase = Phase::Probing;
        self.timer = Some(now);
        true
    }

    /// Probes, and nothing else.
    #[cold]
    #[inline(never)]
    pub(super) fn poll_probing(&mut self, now: Time) -> Option<Segment> {
        let probing = self.probing.as_mut()?;
        let cycle = probing.cycle.as_mut()?;
        if cycle.sent_at.is_some() {
            if self.timer.is_some_and(|timer| timer > now) {
                return None;
            }
            cycle.unanswered += 1;
            cycle.first = None;
            probing.number = probing.number.wrapping_add(1);
        }
        cycle.sent_at = Some(now);
        self.timer = Some(now + self.rtt.backed_off(cycle.unanswered));
        Some(Segment { offset: self.una.saturating_sub(1), bytes: 0, syn: false, fin: false, again: true })
    }

    /// What a segment carries: the number of the newest probe.
    pub(super) fn probe_number(&self) -> Option<u32> {
        Some(self.probing.as_ref()?.number)
    }

    /// A probe has come back.
    pub(super) fn on_probe_answer(&mut self, now: Time, number: u32) {
        let Some(probing) = self.probing.as_mut().filter(|probing| probing.number == number) else { return };
        let Some(cycle) = probing.cycle.as_mut() else { return };
        let Some(sent_at) = cycle.sent_at else { return };
        let rtt = now.since(sent_at);
        let Some(first) = cycle.first else {
            cycle.first = Some(rtt);
            cycle.sent_at = None;
            probing.number = probing.number.wrapping_add(1);
            self.timer = Some(now);
            return;
        };
        let (by_timeout, is_clear) = (cycle.by_timeout, first.max(rtt) <= cycle.bound);
        probing.cycle = None;
        self.end_probing(now, by_timeout, is_clear);
    }

    /// Something was late, not lost; when it was all, the cycle is over.
    #[cold]
    #[inline(never)]
    pub(super) fn on_new_while_probing(&mut self, now: Time) {
        self.dup_acks = 0;
        if self.outstanding() == 0 {
            self.take_cycle();
            self.end_probing(now, false, false);
        }
    }

    /// A duplicate came without a number; whether that ends the cycle.
    pub(super) fn on_plain_answer(&mut self, now: Time) -> bool {
        let cycle = self.probing.as_ref().and_then(|probing| probing.cycle);
        let Some(cycle) = cycle.filter(|cycle| cycle.unanswered >= PLAIN_AFTER && cycle.sent_at.is_some()) else {
            return false;
        };
        self.dup_acks += 1;
        self.take_cycle();
        self.end_probing(now, cycle.by_timeout, false);
        true
    }

    fn take_cycle(&mut self) {
        if let Some(probing) = &mut self.probing {
            probing.cycle = None;
        }
    }

    fn end_probing(&mut self, now: Time, by_timeout: bool, is_clear: bool) {
        self.phase = Phase::Open;
        if is_clear {
            self.window.ssthresh = self.window.cwnd;
            self.window.cwnd = self.window.cwnd.min(f64::from(self.params.initial_window));
        }
        if by_timeout && self.outstanding() > 0 {
            self.time_out(now, is_clear);
        } else if self.dup_acks > 0 && self.outstanding() > 0 {
            self.recover_now(now, is_clear);
        } else {
            // It was late, not lost.
            self.restart_timer(now);
        }
        self.update_allowance();
    }
}
