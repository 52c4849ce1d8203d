//! Additive increase, multiplicative decrease: what Tahoe, Reno and NewReno share.
//!
//! ```text
//! per new ACK:  cwnd += min(n, 2)  below ssthresh  (equation 2, RFC 3465 section 2.3)
//!               cwnd += n / cwnd   from it on      (equation 3, RFC 3465 section 2.1)      [segments]
//! at a loss:    ssthresh = max(flight / 2, 2)      (equation 4)
//! ```
//!
//! n: segments this ACK acknowledges, so that delayed ACKs slow nothing down (RFC 5681 recommends it, Linux does it); 1
//! where ns-2 is followed.
//!
//! Source: RFC 5681 section 3.1, RFC 3465. The window does not grow while it is not what holds the sender back (RFC 7661
//! section 3 in spirit); the sender decides that, as Linux does (`tcp_is_cwnd_limited`), and can be told otherwise.

use super::{AckEvent, LossEvent, MIN_SSTHRESH, Window};

/// Segments that one ACK counts for in slow start: what a delayed one acknowledges, and no burst (RFC 3465 section 2.3).
const MOST_COUNTED: f64 = 2.0;

pub(super) fn grow(window: &mut Window, ack: &AckEvent) {
    if !ack.cwnd_limited {
        return;
    }
    window.cwnd += if window.in_slow_start() { ack.counted.min(MOST_COUNTED) } else { ack.counted / window.cwnd };
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
