//! Additive increase, multiplicative decrease: what Tahoe, Reno and NewReno share.
//!
//! ```text
//! per new ACK:  cwnd += 1          below ssthresh  (equation 2, at most one segment per ACK)
//!               cwnd += 1 / cwnd   from it on      (equation 3)      [segments]
//! at a loss:    ssthresh = max(flight / 2, 2)      (equation 4)
//! ```
//!
//! Source: RFC 5681 section 3.1. The window does not grow while it is not what holds the sender back (RFC 7661
//! section 3 in spirit, as Linux); the sender decides that and can be told otherwise.

use super::{AckEvent, LossEvent, MIN_SSTHRESH, Window};

pub(super) fn grow(window: &mut Window, ack: &AckEvent) {
    if !ack.limited {
        return;
    }
    window.cwnd += if window.in_slow_start() { ack.acked.min(1.0) } else { 1.0 / window.cwnd };
}

/// Half of what is outstanding.
pub(super) fn halved(loss: &LossEvent) -> f64 {
    (loss.flight / 2.0).max(MIN_SSTHRESH)
}

/// Fast retransmit.
pub(super) fn halve(window: &mut Window, loss: &LossEvent) {
    window.ssthresh = halved(loss);
    window.cwnd = window.ssthresh;
}

/// Retransmission timeout.
pub(super) fn restart(window: &mut Window, loss: &LossEvent) {
    window.ssthresh = halved(loss);
    window.cwnd = 1.0;
}
