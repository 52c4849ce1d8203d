//! Westwood+ as ns-2.35's `Agent/TCP/Linux` runs it: Linux 2.6's `tcp_westwood.c` and `tcp_reno_cong_avoid`.
//!
//! ```text
//! per max(rtt, 50 ms):  b = d / T;  e = (7 e + b) / 8;  s = (7 s + e) / 8                        [bytes/ms]
//! rtt:                  the smoothed round trip; RTTmin: the least of it                         [ms]
//! loss:                 ssthresh = max(cwnd / 2, 2), cwnd = max(s RTTmin, 2)                     [segments]
//! recovery over:        cwnd = min(ssthresh, in flight + 3), if that is more
//! timeout:              ssthresh = max(cwnd / 2, 2), cwnd = 1
//! ```
//!
//! All of this is in whole numbers, rounded down: an estimate that comes from below may stay 14 bytes/ms too low, half of
//! what a stream over a long way carries. A loss may raise the window, and what follows recovery is half the window where the pipe is less. It grows in whole
//! segments, up to the receiver's, and only by acknowledgments that find it full: by one beyond the threshold for as many
//! segments acknowledged as it has (`sysctl_tcp_abc` = 1), those of the recovery before included.

use lasthop_core::units::{Span, Time};

use super::super::westwood::AckedCount;
use super::super::{AckEvent, CongestionControl, LossEvent, MIN_SSTHRESH, Window};

/// Shortest sample, ms.
const SHORTEST: u64 = 50;
/// `tcp_max_burst`: beyond what is in flight when recovery is over, segments.
const BURST: f64 = 3.0;
const MILLISECOND: u64 = 1_000_000;

#[derive(Debug)]
pub(super) struct WestwoodPlus {
    /// Bytes.
    mss: f64,
    count: AckedCount,
    /// When the sample in flight began, ms.
    began: u64,
    /// Reported since, segments.
    waiting: f64,
    /// After the first filter, and after the second, bytes/ms.
    estimate: (u64, u64),
    /// Ms.
    rtt_min: Option<u64>,
    /// The largest window, segments.
    most: f64,
    /// Acknowledged since the window grew or was cut, segments.
    credit: f64,
}

impl WestwoodPlus {
    /// `most`: the receiver's window, segments.
    pub(super) fn new(mss: u32, most: f64) -> Self {
        let (mss, count) = (f64::from(mss), AckedCount::default());
        Self { mss, count, began: 0, waiting: 0.0, estimate: (0, 0), rtt_min: None, most, credit: 0.0 }
    }

    fn sample(&mut self, sample: u64) {
        let (first, second) = self.estimate;
        self.estimate = if self.estimate == (0, 0) {
            (sample, sample)
        } else {
            let first = (7 * first + sample) / 8;
            (first, (7 * second + first) / 8)
        };
    }

    fn pipe(&self) -> f64 {
        let bytes = self.estimate.1 * self.rtt_min.unwrap_or(0);
        (bytes as f64 / self.mss).floor().max(MIN_SSTHRESH)
    }

    fn halve(window: &mut Window) {
        window.ssthresh = (window.cwnd / 2.0).floor().max(MIN_SSTHRESH);
    }
}

impl CongestionControl for WestwoodPlus {
    fn is_linux(&self) -> bool {
        true
    }

    fn on_open(&mut self, now: Time, _rtt: Span, _window: &mut Window) {
        self.began = now.as_nanos() / MILLISECOND;
    }

    fn on_feedback(&mut self, _window: &Window, ack: &AckEvent) {
        let (now, rtt) = (ack.now.as_nanos() / MILLISECOND, ack.srtt.as_nanos() / MILLISECOND);
        let length = now - self.began;
        if rtt > 0 && length > rtt.max(SHORTEST) {
            let bytes = std::mem::take(&mut self.waiting) * self.mss;
            self.sample(bytes as u64 / length);
            self.began = now;
        }
        self.credit += ack.acked;
        self.waiting += self.count.reported(ack);
        self.rtt_min = Some(self.rtt_min.map_or(rtt, |least| least.min(rtt)));
    }

    fn bandwidth(&self) -> Option<f64> {
        (self.estimate.1 > 0).then(|| self.estimate.1 as f64 * 1e3 / self.mss)
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckEvent) {
        if !ack.cwnd_limited {
            return;
        }
        let (price, left) =
            if window.cwnd > window.ssthresh { (window.cwnd, self.credit - window.cwnd) } else { (1.0, 0.0) };
        if self.credit < price {
            return;
        }
        self.credit = left;
        if window.cwnd < self.most {
            window.cwnd += 1.0;
        }
    }

    fn on_loss(&mut self, window: &mut Window, _loss: &LossEvent) {
        Self::halve(window);
        window.cwnd = self.pipe();
        self.credit = 0.0;
    }

    fn on_recovered(&mut self, window: &mut Window, in_flight: f64) -> bool {
        if window.cwnd < window.ssthresh {
            window.cwnd = window.ssthresh.min(in_flight + BURST);
        }
        true
    }

    fn on_timeout(&mut self, window: &mut Window, _loss: &LossEvent) {
        Self::halve(window);
        window.cwnd = 1.0;
        self.credit = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 100, then 200 three times: (700 + 200) / 8 = 112, (700 + 112) / 8 = 101; (784 + 200) / 8 = 123,
    /// (707 + 123) / 8 = 103; (861 + 200) / 8 = 132, (721 + 132) / 8 = 106. It ends 7 short of 200, then 7 short of that.
    #[test]
    fn filters_round_down_by_hand() {
        let mut law = WestwoodPlus::new(960, 64.0);
        law.sample(100);
        for expected in [(112, 101), (123, 103), (132, 106)] {
            law.sample(200);
            assert_eq!(law.estimate, expected);
        }
        (0..1000).for_each(|_| law.sample(200));
        assert_eq!(law.estimate, (193, 186));
        law.rtt_min = Some(47);
        assert_eq!(law.pipe(), 9.0, "186 x 47 / 960");
    }

    /// A lost SYN leaves a threshold of 2; the window is still bounded by the receiver's alone, here 4.
    #[test]
    fn a_lost_syn_does_not_bound_the_window() {
        let mut law = WestwoodPlus::new(960, 4.0);
        let mut window = Window { cwnd: 1.0, ssthresh: MIN_SSTHRESH };
        law.on_open(Time::ZERO, Span::from_millis(40), &mut window);
        for n in 1..=40 {
            let (now, rtt) = (Time::from_nanos(n * 10 * MILLISECOND), Span::from_millis(40));
            let ack = AckEvent { now, acked: 1.0, counted: 1.0, rtt: Some(rtt), srtt: rtt, cwnd_limited: true };
            law.on_feedback(&window, &ack);
            law.on_ack(&mut window, &ack);
        }
        assert_eq!(window.cwnd, 4.0);
    }
}
