//! Vegas: a window that leaves a few segments in the queue, told by round trips before anything is lost.
//!
//! ```text
//! diff = (cwnd / RTTmin - cwnd / RTT) RTTmin                              segments that wait in queues
//! per RTT:  cwnd += 1 where diff < 1,  cwnd -= 1 where diff > 3           [segments]
//! slow start:  doubles every other RTT; over, with cwnd -= cwnd / 8, where diff > 1
//! loss:     cwnd = 3/4 cwnd, 1/2 where the segment had been sent again    timeout: ssthresh = flight / 2, cwnd = 1
//! ```
//!
//! RTT: mean of the samples of a round. A round ends when something is acknowledged that was sent after its start.
//!
//! Source: Brakmo and Peterson, "TCP Vegas: end to end congestion avoidance on a global Internet", IEEE JSAC 13 (1995),
//! sections III.B and III.C; the constants are those of ns-2 and of the papers that were simulated with it (alpha 1, beta 3,
//! gamma 1). The cuts are those of the authors' code as ns-2 has them. How losses are told: `sender::vegas`.
//!
//! Differs: growth is a segment at the end of a round, not spread over its ACKs; no segment pairs in slow start.

mod ns2;

use lasthop_core::units::Span;

use super::{AckEvent, CongestionControl, LossEvent, MIN_SSTHRESH, Progress, Recovery, Window, reno_family};
use crate::conduct::Conduct;

/// Fewer in the queues: the window grows, segments.
const ALPHA: f64 = 1.0;
/// More in the queues: the window shrinks, segments.
const BETA: f64 = 3.0;
/// More in the queues: slow start is over, segments.
const GAMMA: f64 = 1.0;
/// Least window, segments.
const LEAST: f64 = 2.0;

pub(super) fn control(conduct: Conduct) -> Box<dyn CongestionControl> {
    match conduct {
        Conduct::Rfc | Conduct::Quic => Box::<Vegas>::default(),
        Conduct::Ns2 => Box::<ns2::Vegas>::default(),
    }
}

#[derive(Debug, Default)]
struct Vegas {
    least: Option<Span>,
    /// Of the round: sum of round trips, and how many.
    sum: Span,
    samples: u32,
    /// The round is over when more than this is acknowledged.
    end: u64,
    /// A round has ended with this acknowledgment.
    ended: bool,
    /// The window may double in this round of slow start.
    doubling: bool,
}

impl Vegas {
    /// Segments that wait in queues, by the round trips of this round.
    fn queued(&self, cwnd: f64) -> Option<f64> {
        let least = self.least?.as_secs_f64();
        let mean = self.sum.as_secs_f64() / f64::from(self.samples);
        (self.samples > 0).then(|| cwnd * (1.0 - least / mean))
    }

    fn end_round(&mut self, window: &mut Window, cwnd_limited: bool) {
        let queued = self.queued(window.cwnd);
        (self.sum, self.samples) = (Span::ZERO, 0);
        let Some(queued) = queued else { return };
        if window.in_slow_start() {
            self.doubling = !self.doubling;
            if queued > GAMMA {
                window.cwnd = (window.cwnd * 7.0 / 8.0).max(LEAST);
                window.ssthresh = window.cwnd;
            }
        } else if queued > BETA {
            window.cwnd = (window.cwnd - 1.0).max(LEAST);
            window.ssthresh = window.ssthresh.min(window.cwnd);
        } else if queued < ALPHA && cwnd_limited {
            window.cwnd += 1.0;
        }
    }
}

impl CongestionControl for Vegas {
    fn recovery(&self) -> Recovery {
        Recovery::Vegas
    }

    fn watches(&self) -> bool {
        true
    }

    fn on_progress(&mut self, progress: &Progress) {
        if let Some(rtt) = progress.rtt {
            self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
            self.sum += rtt;
            self.samples += 1;
        }
        self.ended |= progress.una > self.end;
        if progress.una > self.end {
            self.end = progress.next;
        }
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckEvent) {
        if std::mem::take(&mut self.ended) {
            self.end_round(window, ack.cwnd_limited);
        }
        if window.in_slow_start() && self.doubling {
            reno_family::grow(window, ack);
        }
    }

    fn on_loss(&mut self, window: &mut Window, loss: &LossEvent) {
        let left = if loss.again { 0.5 } else { 0.75 };
        window.ssthresh = (loss.flight * left).max(MIN_SSTHRESH);
        window.cwnd = window.ssthresh;
    }

    fn on_timeout(&mut self, window: &mut Window, loss: &LossEvent) {
        reno_family::restart(window, loss);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_core::units::Time;

    /// Rounds of `rtts`, in ms: an acknowledgment each, of what was sent when the round before it ended.
    fn rounds(law: &mut Vegas, window: &mut Window, rtts: &[u64]) -> Vec<f64> {
        let mut after = Vec::new();
        for (una, &rtt) in (law.end + 1..).zip(rtts) {
            let rtt = Some(Span::from_millis(rtt));
            let next = una;
            law.on_progress(&Progress { now: Time::ZERO, una, next, mss: 1.0, rtt });
            let srtt = Span::ZERO;
            law.on_ack(window, &AckEvent { now: Time::ZERO, acked: 1.0, counted: 1.0, rtt, srtt, cwnd_limited: true });
            after.push(window.cwnd);
        }
        after
    }

    /// Window 20 over 100 ms: at 104 ms 20 (1 - 100/104) = 0.77 wait, at 110 ms 1.8, at 120 ms 3.3.
    #[test]
    fn the_window_keeps_between_one_and_three_segments_in_the_queue() {
        let (mut law, mut window) = (Vegas::default(), Window { cwnd: 20.0, ssthresh: 2.0 });
        assert_eq!(rounds(&mut law, &mut window, &[100]), [21.0], "nothing waits");
        window.cwnd = 20.0;
        assert_eq!(rounds(&mut law, &mut window, &[104]), [21.0]);
        window.cwnd = 20.0;
        assert_eq!(rounds(&mut law, &mut window, &[110, 110]), [20.0, 20.0]);
        assert_eq!(rounds(&mut law, &mut window, &[120, 120, 120]), [19.0, 18.0, 18.0], "18 (1 - 100/120) = 3.0");
    }

    /// Slow start: a round grows, the next does not. At 16 segments and 107 ms 1.05 wait: 16 x 7/8 = 14.
    #[test]
    fn slow_start_grows_every_other_round_and_ends_when_a_segment_waits() {
        let (mut law, mut window) = (Vegas::default(), Window { cwnd: 4.0, ssthresh: f64::INFINITY });
        assert_eq!(rounds(&mut law, &mut window, &[100, 100, 100, 100]), [5.0, 5.0, 6.0, 6.0]);
        window.cwnd = 16.0;
        assert_eq!(rounds(&mut law, &mut window, &[107]), [14.0]);
        assert!(!window.in_slow_start());
    }

    /// Mean of a round, not the last of it: 100 and 120 ms make 110.
    #[test]
    fn a_round_is_judged_by_its_mean() {
        let mut law = Vegas::default();
        for (una, rtt) in [(1, 100), (1, 120)] {
            let rtt = Some(Span::from_millis(rtt));
            law.on_progress(&Progress { now: Time::ZERO, una, next: 50, mss: 1.0, rtt });
        }
        let queued = law.queued(22.0).unwrap_or_default();
        assert!((queued - 2.0).abs() < 1e-9, "22 (1 - 100/110) = 2: {queued}");
    }

    #[test]
    fn a_loss_takes_a_quarter_and_a_second_one_of_the_same_segment_half() {
        let (mut law, mut window) = (Vegas::default(), Window { cwnd: 20.0, ssthresh: 2.0 });
        law.on_loss(&mut window, &LossEvent { flight: 20.0, again: false, marked: false });
        assert_eq!((window.cwnd, window.ssthresh), (15.0, 15.0));
        law.on_loss(&mut window, &LossEvent { flight: 15.0, again: true, marked: false });
        assert_eq!(window.cwnd, 7.5);
    }
}
