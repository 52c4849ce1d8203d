//! Reno: fast recovery until the first new acknowledgment.
//!
//! `ssthresh = cwnd = max(flight / 2, 2)` after three duplicate ACKs.   [segments]
//!
//! Source: RFC 5681 sections 3.1 and 3.2. A second loss in the same window needs three more duplicates and halves
//! again, or ends in a timeout.

use super::{AckEvent, CongestionControl, LossEvent, Recovery, Window, reno_family};

#[derive(Debug)]
pub(super) struct Reno;

impl CongestionControl for Reno {
    fn recovery(&self) -> Recovery {
        Recovery::Reno
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckEvent) {
        reno_family::grow(window, ack);
    }

    fn on_loss(&mut self, window: &mut Window, loss: &LossEvent) {
        reno_family::halve(window, loss);
    }

    fn on_timeout(&mut self, window: &mut Window, loss: &LossEvent) {
        reno_family::restart(window, loss);
    }
}
