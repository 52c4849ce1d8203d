//! Losses as ns-2.35's `Agent/TCP/Linux` repairs them, the sender of Linux's laws there (`tcp-linux.cc`, `scoreboard1.cc`).
//!
//! ```text
//! lost:            four segments beyond it, counted from the highest block (FACK)
//! lost again:      something first sent after its repetition has arrived
//! recovery:        most in flight = max(cwnd, h);  h = cwnd before the cut, min(h, in flight + 1) per ACK,
//!                  min(h, in flight - 1) per segment sent (rate halving)
//! after a timeout: what is lost then begins a recovery like any other, with the window that the law leaves
//! every ACK:       the timer starts anew, a duplicate's too
//! ```
//!
//! Nothing goes out that is not lost or new. Source: that code, beside which this was run. A law says that it is one of
//! these ([`crate::cc`]); it needs a receiver that reports blocks.

use lasthop_core::units::Time;

use super::{Phase, Sender};

/// Segments that have to be reported beyond one that is lost.
pub(super) const FACK: u64 = 4;

/// The bound of rate halving, segments; 0 outside of recovery.
#[derive(Debug, Default)]
pub(super) struct Halving(i64);

impl Sender {
    fn in_flight(&self) -> i64 {
        (self.flight.pipe() / u64::from(self.params.mss)) as i64
    }

    /// Recovery begins; the window is `cwnd` before it is cut.
    pub(super) fn halve_as_linux(&mut self, cwnd: f64) {
        if let Some(halving) = &mut self.linux {
            halving.0 = cwnd as i64;
        }
    }

    /// After a timeout, with blocks.
    #[cold]
    #[inline(never)]
    pub(super) fn look_again_as_linux(&mut self, now: Time) {
        if self.linux.is_none() || !self.sacking || self.phase != Phase::Resending {
            return;
        }
        let again = self.flight.give_up_repairs().is_some();
        if self.flight.mark_lost_beyond(FACK) || again {
            self.recover_now(now, false);
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn after_ack_as_linux(&mut self, now: Time) {
        let (most, recovers) = (self.in_flight() + 1, matches!(self.phase, Phase::Recovery { .. }));
        if let Some(halving) = &mut self.linux {
            halving.0 = if recovers { halving.0.min(most) } else { 0 };
        }
        self.restart_timer(now);
    }

    #[cold]
    #[inline(never)]
    pub(super) fn after_sent_as_linux(&mut self) {
        let most = (self.in_flight() - 1).max(1);
        if let Some(halving) = self.linux.as_mut().filter(|halving| halving.0 > most) {
            halving.0 = most;
            self.update_allowance();
        }
    }

    /// What rate halving allows beyond the window, bytes.
    pub(super) fn halving(&self) -> i64 {
        self.linux.as_ref().map_or(0, |halving| halving.0 * i64::from(self.params.mss))
    }
}
