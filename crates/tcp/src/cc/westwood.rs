//! Westwood: after a loss, what the path was seen to carry.
//!
//! ```text
//! per ACK:   b_k = d_k / (t_k - t_{k-1})                                    [segments/s]
//!            s_k = a_k s_{k-1} + (1 - a_k) (b_k + b_{k-1}) / 2,   a_k = (2 tau - dt) / (2 tau + dt)
//! loss:      ssthresh = max(s RTTmin, 2),  cwnd = min(cwnd, ssthresh)       [segments]
//! timeout:   ssthresh likewise,            cwnd = 1
//! ```
//!
//! d_k: segments that this ACK reports. A duplicate reports one; a later cumulative ACK is spared what duplicates have
//! reported before it. tau = 0.5 s: cut-off of the filter (Tustin's approximation of a first-order low pass).
//! Source: Casetti, Gerla, Mascolo, Sanadidi, Wang, "TCP Westwood: bandwidth estimation for enhanced transport over
//! wireless links", MobiCom 2001, sections 2 and 3: the filter, the count, and virtual samples of zero for every tau / 2
//! without an ACK, so that a_k never turns negative. Growth and recovery are NewReno's.
//!
//! Ours: ACKs of one instant count as one sample; before the first estimate a loss halves as NewReno.

use lasthop_core::units::{Span, Time};

use super::{AckEvent, CongestionControl, LossEvent, MIN_SSTHRESH, Window, reno_family};

/// Cut-off of the filter, s.
const TAU: f64 = 0.5;
/// Longest step of the filter, s: tau / m with m = 2.
const LONGEST_STEP: f64 = TAU / 2.0;
/// After so many empty steps nothing is left of an estimate (3^-64).
const EMPTY_STEPS: u32 = 64;

/// Which segments ACKs report, each once.
#[derive(Debug, Default)]
pub(super) struct AckedCount {
    /// Reported by duplicates and not yet by a cumulative ACK, segments.
    ahead: f64,
}

impl AckedCount {
    /// Segments that arrived according to this ACK.
    pub(super) fn reported(&mut self, ack: &AckEvent) -> f64 {
        if ack.acked == 0.0 {
            self.ahead += 1.0;
            return 1.0;
        }
        if ack.acked <= 1.0 {
            return ack.acked;
        }
        if self.ahead >= ack.acked {
            self.ahead -= ack.acked;
            // The segment that let the ACK advance is new, whatever was counted before.
            return 1.0;
        }
        ack.acked - core::mem::take(&mut self.ahead)
    }
}

/// One step of the low pass; `dt` in s.
pub(super) fn tustin(estimate: f64, sample: f64, last_sample: f64, tau: f64, dt: f64) -> f64 {
    let a = (2.0 * tau - dt) / (2.0 * tau + dt);
    a * estimate + (1.0 - a) * (sample + last_sample) / 2.0
}

/// A loss when the path carries `share` segments per second.
pub(super) fn pipe(share: Option<f64>, rtt_min: Option<Span>, loss: &LossEvent) -> f64 {
    match (share, rtt_min) {
        (Some(share), Some(rtt)) => (share * rtt.as_secs_f64()).max(MIN_SSTHRESH),
        _ => reno_family::halved(loss),
    }
}

#[derive(Debug, Default)]
pub(super) struct Westwood {
    count: AckedCount,
    /// When the last sample ended.
    last: Option<Time>,
    /// Reported since, segments.
    waiting: f64,
    /// b_{k-1}, segments/s.
    sample: f64,
    /// s_k, segments/s.
    estimate: Option<f64>,
    rtt_min: Option<Span>,
}

impl Westwood {
    fn filter(&mut self, mut dt: f64, segments: f64) {
        let sample = segments / dt;
        let Some(mut estimate) = self.estimate else {
            self.estimate = Some(sample);
            self.sample = sample;
            return;
        };
        let mut empty = 0;
        while dt > LONGEST_STEP && empty < EMPTY_STEPS {
            estimate = tustin(estimate, 0.0, self.sample, TAU, LONGEST_STEP);
            self.sample = 0.0;
            dt -= LONGEST_STEP;
            empty += 1;
        }
        let dt = dt.min(LONGEST_STEP);
        self.estimate = Some(tustin(estimate, sample, self.sample, TAU, dt));
        self.sample = sample;
    }
}

impl CongestionControl for Westwood {
    fn on_feedback(&mut self, _window: &Window, ack: &AckEvent) {
        if let Some(rtt) = ack.rtt {
            self.rtt_min = Some(self.rtt_min.map_or(rtt, |least| least.min(rtt)));
        }
        self.waiting += self.count.reported(ack);
        let Some(last) = self.last else {
            self.last = Some(ack.now);
            self.waiting = 0.0;
            return;
        };
        if ack.now > last {
            let segments = core::mem::take(&mut self.waiting);
            self.filter(ack.now.since(last).as_secs_f64(), segments);
            self.last = Some(ack.now);
        }
    }

    fn bandwidth(&self) -> Option<f64> {
        self.estimate
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckEvent) {
        reno_family::grow(window, ack);
    }

    fn on_loss(&mut self, window: &mut Window, loss: &LossEvent) {
        window.ssthresh = pipe(self.estimate, self.rtt_min, loss);
        window.cwnd = window.cwnd.min(window.ssthresh);
    }

    fn on_timeout(&mut self, window: &mut Window, loss: &LossEvent) {
        window.ssthresh = pipe(self.estimate, self.rtt_min, loss);
        window.cwnd = 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(milliseconds: u64, acked: f64, rtt: u64) -> AckEvent {
        AckEvent {
            now: Time::from_nanos(milliseconds * 1_000_000),
            acked,
            counted: acked,
            rtt: Some(Span::from_millis(rtt)),
            srtt: Span::from_millis(rtt),
            cwnd_limited: true,
        }
    }

    const WINDOW: Window = Window { cwnd: 50.0, ssthresh: f64::INFINITY };

    /// An ACK every 10 ms is 100 segments/s; with RTTmin 120 ms that is a pipe of 12.
    #[test]
    fn a_constant_rate_makes_the_threshold_the_pipe() {
        let mut law = Westwood::default();
        for n in 0..100 {
            law.on_feedback(&WINDOW, &ack(n * 10, 1.0, if n == 50 { 120 } else { 150 }));
        }
        let mut window = WINDOW;
        law.on_loss(&mut window, &LossEvent { flight: 50.0, again: false, marked: false });
        assert!((window.ssthresh - 12.0).abs() < 1e-6 && (window.cwnd - 12.0).abs() < 1e-6, "{window:?}");
        let mut small = Window { cwnd: 5.0, ..WINDOW };
        law.on_loss(&mut small, &LossEvent { flight: 5.0, again: false, marked: false });
        assert!((small.cwnd - 5.0).abs() < 1e-9, "a window below the pipe stays");
        law.on_timeout(&mut window, &LossEvent { flight: 12.0, again: false, marked: false });
        assert!((window.ssthresh - 12.0).abs() < 1e-6 && (window.cwnd - 1.0).abs() < 1e-9);
    }

    /// By hand, tau = 0.5 s: b = 100, then 200 segments/s. a = (1 - 0.01) / (1 + 0.01) = 0.980198 and (1 - 0.005) /
    /// (1 + 0.005) = 0.990050: s = 0.990050 x 100 + 0.009950 x (200 + 100) / 2 = 100.4975, then with b = 200 twice
    /// 0.990050 x 100.4975 + 0.009950 x 200 = 101.4876.
    #[test]
    fn the_filter_follows_tustin_by_hand() {
        let mut law = Westwood::default();
        for milliseconds in [0, 10, 20, 25, 30] {
            law.on_feedback(&WINDOW, &ack(milliseconds, 1.0, 100));
            let estimate = law.estimate.unwrap_or(0.0);
            let expected = match milliseconds {
                0 => 0.0,
                10 | 20 => 100.0,
                25 => 100.497_5,
                _ => 101.487_6,
            };
            assert!((estimate - expected).abs() < 1e-3, "at {milliseconds} ms: {estimate} {expected}");
        }
    }

    /// Half a second without an ACK: one virtual sample of zero per 250 ms, a = 0.6, before the one that came.
    #[test]
    fn silence_counts_as_zero() {
        let mut law = Westwood::default();
        law.on_feedback(&WINDOW, &ack(0, 1.0, 100));
        law.on_feedback(&WINDOW, &ack(10, 1.0, 100));
        law.on_feedback(&WINDOW, &ack(510, 1.0, 100));
        // 100 -> 0.6 x 100 + 0.4 x 50 = 80; the last step, of 250 ms too: b = 2, 0.6 x 80 + 0.4 x 1 = 48.4
        assert!((law.estimate.unwrap_or(0.0) - 48.4).abs() < 1e-6, "{:?}", law.estimate);
    }

    /// The count of MobiCom 2001: duplicates report one each, and the ACK that follows is spared them.
    #[test]
    fn what_duplicates_reported_is_not_counted_twice() {
        let mut count = AckedCount::default();
        let reported: Vec<f64> =
            [0.0, 0.0, 0.0, 5.0, 2.0].into_iter().map(|acked| count.reported(&ack(0, acked, 1))).collect();
        assert_eq!(reported, [1.0, 1.0, 1.0, 2.0, 2.0]);
        count = AckedCount { ahead: 6.0 };
        assert_eq!(count.reported(&ack(0, 3.0, 1)), 1.0, "a partial ACK");
        assert_eq!(count.ahead, 3.0);
    }

    #[test]
    fn before_anything_is_measured_a_loss_halves() {
        let mut window = WINDOW;
        Westwood::default().on_loss(&mut window, &LossEvent { flight: 50.0, again: false, marked: false });
        assert_eq!(window.ssthresh, 25.0);
    }
}
