//! NewReno: fast recovery until all that was outstanding is acknowledged.
//!
//! `ssthresh = cwnd = max(flight / 2, 2)` after three duplicate ACKs.   [segments]
//!
//! Source: RFC 6582 (the recovery itself is in `sender::recovery`), RFC 5681 section 3.1.

use super::{AckEvent, CongestionControl, LossEvent, Recovery, Window, reno_family};

#[derive(Debug)]
pub(super) struct NewReno;

impl CongestionControl for NewReno {
    fn recovery(&self) -> Recovery {
        Recovery::NewReno
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
