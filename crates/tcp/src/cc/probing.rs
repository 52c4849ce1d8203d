//! TCP probing: Reno's window, and probe cycles that decide whether a loss counts (`sender::probing`).
//!
//! Source: Tsaoussidis and Badr, ICNP 2000. Recovery is NewReno's.

use super::{AckEvent, CongestionControl, LossEvent, Window, reno_family};

#[derive(Debug)]
pub(super) struct Probing;

impl CongestionControl for Probing {
    fn probes(&self) -> bool {
        true
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
