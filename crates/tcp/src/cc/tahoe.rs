//! Tahoe: every loss ends in slow start.
//!
//! `ssthresh = max(flight / 2, 2)`, `cwnd = 1` after three duplicate ACKs as after a timeout.   [segments]
//!
//! Source: Jacobson, "Congestion avoidance and control" (1988); ns-2's `Agent/TCP`, which like this one sends
//! everything again from the hole on. Growth is that of RFC 5681.

use super::{AckEvent, CongestionControl, LossEvent, Recovery, Window, reno_family};

#[derive(Debug)]
pub(super) struct Tahoe;

impl CongestionControl for Tahoe {
    fn recovery(&self) -> Recovery {
        Recovery::Tahoe
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckEvent) {
        reno_family::grow(window, ack);
    }

    fn on_loss(&mut self, window: &mut Window, loss: &LossEvent) {
        reno_family::restart(window, loss);
    }

    fn on_timeout(&mut self, window: &mut Window, loss: &LossEvent) {
        reno_family::restart(window, loss);
    }
}
