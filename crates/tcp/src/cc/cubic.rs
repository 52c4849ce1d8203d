//! CUBIC: the window is a cubic function of the time since the last loss.
//!
//! ```text
//! W_cubic(t) = C (t - K)^3 + W_max,   K = cbrt((W_max - cwnd_epoch) / C)              equations 1 and 2 [segments, s]
//! target     = W_cubic(t + RTT), within cwnd .. 1.5 cwnd
//! per ACK    : W_est += alpha n / cwnd,  alpha = 3 (1 - beta) / (1 + beta),            equation 4
//!              alpha = 1 once W_est reaches the window before the loss
//!              cwnd = W_est                       where W_cubic(t) < W_est             (Reno-friendly region)
//!              cwnd += (target - cwnd) / cwnd     elsewhere                            (concave and convex)
//! at a loss  : W_max = cwnd, or cwnd (1 + beta) / 2 when below the last W_max          (fast convergence)
//!              ssthresh = max(beta flight, 2),  cwnd = ssthresh;  after a timeout cwnd = 1
//! ```
//!
//! n: segments this ACK acknowledges. C = 0.4 segments/s^3, beta = 0.7.
//! Source: RFC 9438 sections 4.2 to 4.8. After a timeout the first congestion avoidance starts with K = 0 and
//! W_max = W_est = cwnd (section 4.8). Time in which the window was not what held the sender back does not count
//! (section 5.8). Slow start is that of RFC 5681: HyStart++ (RFC 9406) and the undoing of spurious losses (section 4.9)
//! are left out.

use lasthop_core::units::Time;

use super::{AckEvent, CongestionControl, LossEvent, MIN_SSTHRESH, Window, aimd};

/// Aggressiveness, segments/s^3.
const C: f64 = 0.4;
/// What a loss leaves.
const BETA: f64 = 0.7;
/// Growth of the Reno-friendly window, segments per round trip: as fast as Reno on average.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

#[derive(Debug, Default)]
pub(super) struct Cubic {
    /// Window before the last reduction, lowered by fast convergence; segments.
    w_max: f64,
    /// The same as it was; segments.
    cwnd_prior: f64,
    /// A timeout came since the last congestion avoidance.
    after_timeout: bool,
    epoch: Option<Epoch>,
}

/// One stretch of congestion avoidance.
#[derive(Debug)]
struct Epoch {
    start: Time,
    last_ack: Time,
    /// s.
    k: f64,
    /// Where the plateau lies, segments.
    origin: f64,
    /// Window of a Reno flow in our place, segments.
    w_est: f64,
}

impl Epoch {
    /// `seconds` into the stretch.
    fn w_cubic(&self, seconds: f64) -> f64 {
        let from_plateau = seconds - self.k;
        C * from_plateau * from_plateau * from_plateau + self.origin
    }
}

impl Cubic {
    fn begin(&mut self, now: Time, cwnd: f64) -> Epoch {
        let timeout = core::mem::take(&mut self.after_timeout);
        let origin = if timeout { cwnd } else { self.w_max.max(cwnd) };
        Epoch { start: now, last_ack: now, k: libm::cbrt((origin - cwnd) / C), origin, w_est: cwnd }
    }

    fn reduce(&mut self, window: &mut Window, loss: &LossEvent) {
        self.w_max = if window.cwnd < self.w_max { window.cwnd * (1.0 + BETA) / 2.0 } else { window.cwnd };
        self.cwnd_prior = window.cwnd;
        window.ssthresh = (loss.flight * BETA).max(MIN_SSTHRESH);
        self.epoch = None;
    }
}

impl CongestionControl for Cubic {
    fn on_ack(&mut self, window: &mut Window, ack: &AckEvent) {
        if window.in_slow_start() {
            aimd::grow(window, ack);
            return;
        }
        let mut epoch = match self.epoch.take() {
            Some(epoch) => epoch,
            None => self.begin(ack.now, window.cwnd),
        };
        let pause = ack.now.since(epoch.last_ack);
        epoch.last_ack = ack.now;
        if ack.limited {
            let seconds = ack.now.since(epoch.start).as_secs_f64();
            let alpha = if epoch.w_est >= self.cwnd_prior { 1.0 } else { ALPHA };
            epoch.w_est += alpha * ack.acked / window.cwnd;
            if epoch.w_cubic(seconds) < epoch.w_est {
                window.cwnd = window.cwnd.max(epoch.w_est);
            } else {
                let target = epoch.w_cubic(seconds + ack.srtt.as_secs_f64());
                let target = target.clamp(window.cwnd, 1.5 * window.cwnd);
                window.cwnd += (target - window.cwnd) / window.cwnd;
            }
        } else {
            epoch.start += pause;
        }
        self.epoch = Some(epoch);
    }

    fn on_loss(&mut self, window: &mut Window, loss: &LossEvent) {
        self.reduce(window, loss);
        window.cwnd = window.ssthresh;
    }

    fn on_timeout(&mut self, window: &mut Window, loss: &LossEvent) {
        self.reduce(window, loss);
        self.after_timeout = true;
        window.cwnd = 1.0;
    }
}
