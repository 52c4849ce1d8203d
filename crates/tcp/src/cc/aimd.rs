//! AIMD(a, b): additive increase and multiplicative decrease by any two numbers.
//!
//! ```text
//! per RTT:  cwnd += a                         below ssthresh as slow start       [segments]
//! at a loss: ssthresh = cwnd = max(b flight, 2)     timeout: cwnd = 1            0 < b < 1
//! as much as AIMD(1, 1/2) of the same path:  a = 4 (1 - b^2) / 3
//! ```
//!
//! Source: Yang and Lam, "General AIMD congestion control", ICNP 2000, equation 4 of its section 4 (timeouts counted) for the
//! friendly pair; (0.31, 0.875) is theirs. Recovery is NewReno's.
//!
//! (0.31, 0.875) is what the papers use; 4 (1 - 0.875^2) / 3 = 0.3125.

use super::{AckEvent, CongestionControl, LossEvent, MIN_SSTHRESH, Window, reno_family};

/// The two numbers of [`Algorithm::Aimd`](super::Algorithm::Aimd).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aimd {
    /// Added per round trip, segments, positive.
    pub increase: f64,
    /// Left by a loss, share of the window, 0 to 1.
    pub decrease: f64,
}

impl Default for Aimd {
    /// As friendly as Reno: (0.31, 0.875).
    fn default() -> Self {
        Self { increase: 0.31, decrease: 0.875 }
    }
}

#[derive(Debug)]
pub(super) struct AimdControl(pub Aimd);

impl AimdControl {
    fn left(&self, loss: &LossEvent) -> f64 {
        (self.0.decrease * loss.flight).max(MIN_SSTHRESH)
    }
}

impl CongestionControl for AimdControl {
    fn on_ack(&mut self, window: &mut Window, ack: &AckEvent) {
        if window.in_slow_start() {
            reno_family::grow(window, ack);
        } else if ack.cwnd_limited {
            window.cwnd += self.0.increase * ack.counted / window.cwnd;
        }
    }

    fn on_loss(&mut self, window: &mut Window, loss: &LossEvent) {
        window.ssthresh = self.left(loss);
        window.cwnd = window.ssthresh;
    }

    fn on_timeout(&mut self, window: &mut Window, loss: &LossEvent) {
        window.ssthresh = self.left(loss);
        window.cwnd = 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_core::units::{Span, Time};

    /// Ten ACKs over a window of 10 add 0.31; 0.875 x 16 = 14.
    #[test]
    fn a_round_trip_adds_a_and_a_loss_leaves_b() {
        let (mut law, mut window) = (AimdControl(Aimd::default()), Window { cwnd: 10.0, ssthresh: 2.0 });
        let ack =
            AckEvent { now: Time::ZERO, acked: 1.0, counted: 1.0, rtt: None, srtt: Span::ZERO, cwnd_limited: true };
        (0..10).for_each(|_| law.on_ack(&mut window, &ack));
        assert!((window.cwnd - 10.31).abs() < 5e-3, "{window:?}");
        law.on_loss(&mut window, &LossEvent { flight: 16.0, again: false, marked: false });
        assert_eq!((window.cwnd, window.ssthresh), (14.0, 14.0));
        law.on_timeout(&mut window, &LossEvent { flight: 2.0, again: false, marked: false });
        assert_eq!((window.cwnd, window.ssthresh), (1.0, 2.0), "not under two");
    }
}
