//! Westwood+: Westwood with one bandwidth sample per round trip, which clustered ACKs cannot inflate.
//!
//! ```text
//! per RTT:   b = d / T                       d: segments reported in it, T: how long it was, s      [segments/s]
//!            s = 0.9 s + 0.1 b
//! loss:      ssthresh = max(s RTTmin, 2), cwnd = min(cwnd, ssthresh)       timeout: cwnd = 1        [segments]
//! ```
//!
//! Source: Mascolo, Grieco, Ferorelli, Camarda, Piccialli, "Performance evaluation of Westwood+ TCP congestion control",
//! Performance Evaluation 55 (2004); Grieco and Mascolo, ACM CCR 34 (2004). Counting is Westwood's, growth and recovery are
//! NewReno's.
//!
//! With ns-2's conduct it is Linux's, whose code ns-2's `Agent/TCP/Linux` runs ([`linux`]).
//!
//! Ours: a round trip is over when the smoothed one has passed; before the first estimate a loss halves.

use lasthop_core::units::{Span, Time};

mod linux;

use super::westwood::{AckedCount, pipe};
use super::{AckEvent, CongestionControl, LossEvent, Params, Window, reno_family};
use crate::conduct::Conduct;

/// Weight of the past.
const KEEP: f64 = 0.9;

#[derive(Debug, Default)]
struct WestwoodPlus {
    count: AckedCount,
    /// When the sample in flight began.
    began: Option<Time>,
    /// Reported since, segments.
    waiting: f64,
    /// Segments/s.
    estimate: Option<f64>,
    rtt_min: Option<Span>,
}

pub(super) fn control(params: &Params) -> Box<dyn CongestionControl> {
    match params.conduct {
        Conduct::Rfc | Conduct::Quic => Box::<WestwoodPlus>::default(),
        Conduct::Ns2 => {
            Box::new(linux::WestwoodPlus::new(params.mss, params.initial_ssthresh.unwrap_or(f64::INFINITY)))
        }
    }
}

impl WestwoodPlus {
    fn sample(&mut self, sample: f64) {
        self.estimate = Some(self.estimate.map_or(sample, |estimate| KEEP * estimate + (1.0 - KEEP) * sample));
    }

    fn threshold(&self, loss: &LossEvent) -> f64 {
        pipe(self.bandwidth(), self.rtt_min, loss)
    }
}

impl CongestionControl for WestwoodPlus {
    fn on_feedback(&mut self, _window: &Window, ack: &AckEvent) {
        if let Some(rtt) = ack.rtt {
            self.rtt_min = Some(self.rtt_min.map_or(rtt, |least| least.min(rtt)));
        }
        self.waiting += self.count.reported(ack);
        let Some(began) = self.began else {
            (self.began, self.waiting) = (Some(ack.now), 0.0);
            return;
        };
        let length = ack.now.since(began);
        if length >= ack.srtt && length > Span::ZERO {
            let segments = std::mem::take(&mut self.waiting);
            self.sample(segments / length.as_secs_f64());
            self.began = Some(ack.now);
        }
    }

    fn bandwidth(&self) -> Option<f64> {
        self.estimate
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckEvent) {
        reno_family::grow(window, ack);
    }

    fn on_loss(&mut self, window: &mut Window, loss: &LossEvent) {
        window.ssthresh = self.threshold(loss);
        window.cwnd = window.cwnd.min(window.ssthresh);
    }

    fn on_timeout(&mut self, window: &mut Window, loss: &LossEvent) {
        window.ssthresh = self.threshold(loss);
        window.cwnd = 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law() -> WestwoodPlus {
        WestwoodPlus::default()
    }

    /// `each` segments per ACK every 10 ms, for `rounds` round trips of 100 ms.
    fn feed(law: &mut WestwoodPlus, from: u64, rounds: u64, each: f64) {
        (1..=rounds * 10).for_each(|n| feed_one(law, from + 10 * n, each));
    }

    fn feed_one(law: &mut WestwoodPlus, milliseconds: u64, each: f64) {
        let now = Time::from_nanos(milliseconds * 1_000_000);
        let rtt = Span::from_millis(100);
        let window = Window { cwnd: 10.0, ssthresh: 2.0 };
        let ack = AckEvent { now, acked: each, counted: each, rtt: Some(rtt), srtt: rtt, cwnd_limited: true };
        law.on_feedback(&window, &ack);
    }

    fn near(found: Option<f64>, expected: f64) {
        assert!(found.is_some_and(|found| (found - expected).abs() < 1e-9), "{found:?} {expected}");
    }

    /// The first ACK, at 10 ms, begins a sample; ten more until 110 ms are 100 segments/s; twenty until 210 ms are 200, which
    /// make 0.9 x 100 + 0.1 x 200 = 110.
    #[test]
    fn a_round_trip_is_one_sample() {
        let mut law = law();
        feed(&mut law, 0, 1, 1.0);
        assert_eq!(law.bandwidth(), None);
        feed_one(&mut law, 110, 1.0);
        near(law.bandwidth(), 100.0);
        feed(&mut law, 110, 1, 2.0);
        near(law.bandwidth(), 110.0);
    }

    /// By hand: 0.9 x 100 + 0.1 x 200 = 110.
    #[test]
    fn the_filter_by_hand() {
        let mut law = law();
        law.sample(100.0);
        law.sample(200.0);
        near(law.bandwidth(), 110.0);
    }

    /// A bunch of ten ACKs at the end of each round trip is the same 100 segments/s: Westwood would see thousands.
    #[test]
    fn bunched_acks_do_not_inflate_the_estimate() {
        let mut law = law();
        let rtt = Span::from_millis(100);
        for round in 0..20 {
            for n in 0..10 {
                let now = Time::from_nanos((100 + round * 100) * 1_000_000 + n * 1000);
                let window = Window { cwnd: 10.0, ssthresh: 2.0 };
                let ack = AckEvent { now, acked: 1.0, counted: 1.0, rtt: Some(rtt), srtt: rtt, cwnd_limited: true };
                law.on_feedback(&window, &ack);
            }
        }
        assert!(law.bandwidth().is_some_and(|found| (found - 100.0).abs() < 2.0), "{:?}", law.bandwidth());
    }

    /// 100 segments/s x 100 ms.
    #[test]
    fn a_loss_falls_back_to_the_pipe() {
        let mut law = law();
        feed(&mut law, 0, 10, 1.0);
        let mut window = Window { cwnd: 30.0, ssthresh: f64::INFINITY };
        law.on_loss(&mut window, &LossEvent { flight: 30.0, again: false, marked: false });
        assert!((window.cwnd - 10.0).abs() < 1e-9 && window.ssthresh == window.cwnd, "{window:?}");
    }
}
