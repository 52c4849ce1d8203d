//! CUBIC: the window is a cubic function of the time since the last loss.
//!
//! ```text
//! W_cubic(t) = C (t - K)^3 + W_max,   K = cbrt((W_max - cwnd_epoch) / C)              section 4.2 [segments, s]
//! target     = W_cubic(t + RTT), within cwnd .. 1.5 cwnd
//! per ACK    : W_est += alpha n / cwnd,  alpha = 3 (1 - beta) / (1 + beta),            section 4.3
//!              alpha = 1 once W_est reaches the window before the loss
//!              cwnd = W_est                       where W_cubic(t) < W_est             (Reno-friendly)
//!              cwnd += (target - cwnd) / cwnd     elsewhere                            sections 4.4 and 4.5
//! at a loss  : W_max = cwnd, or cwnd (1 + beta) / 2 when below the last W_max          section 4.7
//!              ssthresh = max(beta flight, 2),  cwnd = ssthresh;  after a timeout cwnd = 1   section 4.6
//! ```
//!
//! n: segments this ACK acknowledges. C = 0.4 segments/s^3, beta = 0.7.
//! Source: RFC 9438 sections 4.2 to 4.8. After a timeout the first congestion avoidance starts with K = 0 and
//! W_max = W_est = cwnd (section 4.8). Time in which the window was not what held the sender back does not count
//! (section 5.8). The first slow start ends before its loss by [`super::hystart`] (section 4.10; Linux's, not HyStart++). The
//! undoing of spurious losses (section 4.9) is left out.

use lasthop_core::units::Time;

use super::hystart::HyStart;
use super::{AckEvent, CongestionControl, LossEvent, MIN_SSTHRESH, Window, reno_family};

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
    hystart: HyStart,
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
            if self.hystart.on_ack(window.cwnd, ack) {
                window.ssthresh = window.cwnd;
            } else {
                reno_family::grow(window, ack);
            }
            return;
        }
        let mut epoch = match self.epoch.take() {
            Some(epoch) => epoch,
            None => self.begin(ack.now, window.cwnd),
        };
        let pause = ack.now.since(epoch.last_ack);
        epoch.last_ack = ack.now;
        if ack.cwnd_limited {
            let seconds = ack.now.since(epoch.start).as_secs_f64();
            let alpha = if epoch.w_est >= self.cwnd_prior { 1.0 } else { ALPHA };
            epoch.w_est += alpha * ack.counted / window.cwnd;
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
        self.hystart = HyStart::default();
        window.cwnd = 1.0;
    }
}

#[cfg(test)]
mod tests {
    use lasthop_core::units::Span;

    use super::*;

    fn at(seconds: f64) -> Time {
        Time::from_nanos((seconds * 1e9) as u64)
    }

    fn ack(now: Time, rtt: f64) -> AckEvent {
        AckEvent { now, acked: 1.0, counted: 1.0, rtt: None, srtt: Span::from_secs_f64(rtt), cwnd_limited: true }
    }

    /// A loss at window 100 has left 70.
    fn after_a_loss_at(cwnd: f64) -> (Cubic, Window) {
        let mut cubic = Cubic::default();
        let mut window = Window { cwnd, ssthresh: f64::INFINITY };
        cubic.on_loss(&mut window, &LossEvent { flight: cwnd, again: false, marked: false });
        (cubic, window)
    }

    /// Acknowledges round after round of `rtt` seconds, evenly, until `end`.
    fn run(cubic: &mut Cubic, window: &mut Window, rtt: f64, end: f64) {
        let mut now = 0.0;
        cubic.on_ack(window, &ack(at(now), rtt));
        while now < end {
            now += rtt / window.cwnd;
            cubic.on_ack(window, &ack(at(now), rtt));
        }
    }

    /// By hand, W_max = 100: K = cbrt(30 / 0.4) = 4.21716 s; W(0) = 70; W(2) = 0.4 (2 - 4.21716)^3 + 100 = 95.6403;
    /// W(K) = 100; W(6) = 0.4 (1.78284)^3 + 100 = 102.2667.
    #[test]
    fn the_cubic_passes_through_its_points() {
        let (mut cubic, window) = after_a_loss_at(100.0);
        assert!((window.cwnd - 70.0).abs() < 1e-9 && (window.ssthresh - 70.0).abs() < 1e-9);
        let epoch = cubic.begin(at(0.0), window.cwnd);
        assert!((epoch.k - 4.217_163).abs() < 1e-5, "{}", epoch.k);
        for (seconds, expected) in [(0.0, 70.0), (2.0, 95.640_34), (4.217_163, 100.0), (6.0, 102.266_7)] {
            let found = epoch.w_cubic(seconds);
            assert!((found - expected).abs() < 1e-3, "W({seconds}) = {found}");
        }
    }

    /// RTT 200 ms, so that the Reno-friendly window stays below: a window in flight from W(t) to W(t + RTT), concave up to the plateau at K and convex beyond. By hand
    /// as above, for example W(8.2) = 0.4 x 3.98284^3 + 100 = 125.271.
    #[test]
    fn the_window_follows_the_cubic() {
        let points = [
            (1.0, 86.681, 89.014),
            (2.0, 95.640, 96.717),
            (4.217, 100.0, 100.003),
            (6.0, 102.267, 103.118),
            (8.0, 121.656, 125.271),
        ];
        for (seconds, low, high) in points {
            let (mut cubic, mut window) = after_a_loss_at(100.0);
            run(&mut cubic, &mut window, 0.2, seconds);
            let within = low - 0.2..=high + 0.2;
            assert!(within.contains(&window.cwnd), "at {seconds} s: {} not in {low}..{high}", window.cwnd);
        }
    }

    /// W_max = 10, window 7, RTT 10 ms: the cubic needs seconds, Reno's equal adds alpha = 3 x 0.3 / 1.7 = 0.52941 per
    /// round. The first ACK: 7 + 0.52941 / 7 = 7.07563; the second: + 0.52941 / 7.07563 = 7.15045.
    #[test]
    fn small_windows_grow_as_reno_would() {
        let (mut cubic, mut window) = after_a_loss_at(10.0);
        assert!((window.cwnd - 7.0).abs() < 1e-9);
        cubic.on_ack(&mut window, &ack(at(0.0), 0.01));
        assert!((window.cwnd - 7.075_63).abs() < 1e-4, "{}", window.cwnd);
        cubic.on_ack(&mut window, &ack(at(0.001), 0.01));
        assert!((window.cwnd - 7.150_45).abs() < 1e-4, "{}", window.cwnd);
    }

    /// Past the window before the loss, alpha is 1: a segment per round, as Reno.
    #[test]
    fn beyond_the_old_window_the_reno_friendly_window_grows_by_one_per_round() {
        let (mut cubic, mut window) = after_a_loss_at(10.0);
        run(&mut cubic, &mut window, 0.01, 0.08);
        let before = window.cwnd;
        assert!(before > 10.5, "{before}");
        let mut now = 0.09;
        for _ in 0..before as u32 {
            now += 0.001;
            cubic.on_ack(&mut window, &ack(at(now), 0.01));
        }
        assert!((window.cwnd - before - 1.0).abs() < 0.1, "{before} {}", window.cwnd);
    }

    /// A loss at 80 after one at 100: W_max = 80 x 1.7 / 2 = 68.
    #[test]
    fn a_shrinking_window_makes_room_fast() {
        let (mut cubic, mut window) = after_a_loss_at(100.0);
        window.cwnd = 80.0;
        cubic.on_loss(&mut window, &LossEvent { flight: 80.0, again: false, marked: false });
        assert!((cubic.w_max - 68.0).abs() < 1e-9);
        assert!((window.cwnd - 56.0).abs() < 1e-9);
    }

    /// RFC 9438 section 4.8: K = 0 and W_max = cwnd, so the curve is convex from where slow start ends.
    #[test]
    fn after_a_timeout_the_curve_starts_at_its_plateau() {
        let mut cubic = Cubic::default();
        let mut window = Window { cwnd: 100.0, ssthresh: f64::INFINITY };
        cubic.on_timeout(&mut window, &LossEvent { flight: 100.0, again: false, marked: false });
        assert!((window.cwnd - 1.0).abs() < 1e-9 && (window.ssthresh - 70.0).abs() < 1e-9);
        while window.in_slow_start() {
            cubic.on_ack(&mut window, &ack(at(0.0), 0.1));
        }
        let epoch = cubic.begin(at(1.0), window.cwnd);
        assert!(epoch.k == 0.0 && (epoch.origin - 70.0).abs() < 1e-9);
        assert!((epoch.w_cubic(2.0) - 73.2).abs() < 1e-9, "70 + 0.4 x 8");
    }

    #[test]
    fn time_without_a_full_window_does_not_count() {
        let (mut cubic, mut window) = after_a_loss_at(100.0);
        run(&mut cubic, &mut window, 0.1, 1.0);
        let before = window.cwnd;
        let idle = AckEvent { cwnd_limited: false, ..ack(at(31.0), 0.1) };
        cubic.on_ack(&mut window, &idle);
        cubic.on_ack(&mut window, &ack(at(31.001), 0.1));
        assert!(window.cwnd - before < 0.1, "{before} {}", window.cwnd);
    }
}
