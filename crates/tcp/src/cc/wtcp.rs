//! WTCP: a rate instead of a window, moved by how packets spread in flight; losses alone move nothing.
//!
//! ```text
//! start:    half of what a pair of packets shows
//! per RTT:  short and long > 1.05          rate = 3/4 rate, then a round trip of rest          [segments/s]
//!           neither                        rate += 1 / RTT
//!           one of them                    rate stays
//! losses:   short > 1.05, or heavy         rate = 1/2 rate, then a round trip of rest
//!           else                           repaired, and nothing else
//! cwnd = 2 rate RTT, at least 4: it bounds what is in the network and does not control it
//! ```
//!
//! short, long: means of (gap of arrivals / gap of sendings), heavy: more lost than is usual; all of the receiver
//! (`receiver::meter::gaps`). A timer that expires is a blackout: one segment probes, and the rate stays.
//!
//! Source: Sinha, Nandagopal, Venkitaraman, Sivakumar, Bharghavan, "WTCP: a reliable transport protocol for wireless wide-area
//! networks", Wireless Networks 8 (2002): the metric and its two means, additive increase and multiplicative decrease, losses
//! judged by what is usual, the packet pair.
//!
//! Ours: every constant; the receiver tells its means and the sender, which knows the round trip, moves the rate, where the
//! paper's receiver does; reliability is TCP's, with its timer.

use lasthop_core::units::Span;

use super::{AckEvent, CongestionControl, LossEvent, Progress, Window};
use crate::note::Note;

/// From this ratio on queues grow.
const GROWS: f64 = 1.05;
/// Left when they do, and at a loss that is congestion.
const SPREAD: f64 = 0.75;
const LOST: f64 = 0.5;
/// Of what a pair of packets shows.
const FIRST: f64 = 0.5;
/// Least window, segments, and round trips of the rate in it.
const LEAST: f64 = 4.0;
const ROUND_TRIPS: f64 = 2.0;
/// Least rate, segments per round trip.
const SLOWEST: f64 = 0.5;

#[derive(Debug, Default)]
pub(super) struct Wtcp {
    /// Segments/s; none before a pair has been seen.
    rate: Option<f64>,
    short: f64,
    long: f64,
    heavy: bool,
    /// Shown by a pair, payload bytes/s.
    pair: u64,
    srtt: Span,
    /// The round is over when more than this is acknowledged.
    end: u64,
    /// Rounds to wait until what was done shows.
    rest: u32,
}

impl Wtcp {
    fn cut(&mut self, left: f64) {
        if self.rest > 0 {
            return;
        }
        let slowest = SLOWEST / self.srtt.as_secs_f64().max(1e-3);
        self.rate = self.rate.map(|rate| (rate * left).max(slowest));
        self.rest = 2;
    }

    fn end_round(&mut self, mss: f64) {
        let Some(rate) = self.rate else {
            self.rate = (self.pair > 0).then(|| FIRST * self.pair as f64 / mss);
            return;
        };
        self.rest = self.rest.saturating_sub(1);
        match (self.short > GROWS, self.long > GROWS) {
            (true, true) => self.cut(SPREAD),
            (false, false) if self.rest == 0 && self.srtt > Span::ZERO => {
                self.rate = Some(rate + 1.0 / self.srtt.as_secs_f64());
            }
            _ => {}
        }
    }
}

impl CongestionControl for Wtcp {
    fn watches(&self) -> bool {
        true
    }

    fn is_paced(&self) -> bool {
        true
    }

    fn marks_gaps(&self) -> bool {
        true
    }

    fn pace(&self) -> Option<f64> {
        self.rate
    }

    fn on_note(&mut self, _window: &mut Window, note: &Note) {
        if let Note::Gaps { short, long, pair, heavy } = *note {
            (self.short, self.long) = (f64::from(short) / 1000.0, f64::from(long) / 1000.0);
            (self.pair, self.heavy) = (pair, heavy);
        }
    }

    fn on_progress(&mut self, progress: &Progress) {
        if progress.una > self.end {
            self.end = progress.next;
            self.end_round(progress.mss);
        }
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckEvent) {
        self.srtt = ack.srtt;
        window.ssthresh = f64::INFINITY;
        if let Some(rate) = self.rate {
            window.cwnd = (ROUND_TRIPS * rate * ack.srtt.as_secs_f64()).max(LEAST);
        }
    }

    fn on_loss(&mut self, window: &mut Window, loss: &LossEvent) {
        if loss.marked || self.short > GROWS || self.heavy {
            self.cut(LOST);
        }
        window.ssthresh = f64::INFINITY;
    }

    fn on_timeout(&mut self, window: &mut Window, _loss: &LossEvent) {
        window.ssthresh = f64::INFINITY;
        window.cwnd = 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_core::units::Time;

    /// A round trip of 100 ms with these means.
    fn round(law: &mut Wtcp, window: &mut Window, short: u16, long: u16) -> f64 {
        law.on_note(window, &Note::Gaps { short, long, pair: 1_000_000, heavy: false });
        let una = law.end + 1;
        law.on_progress(&Progress { now: Time::ZERO, una, next: una, mss: 1000.0, rtt: None });
        let srtt = Span::from_millis(100);
        law.on_ack(
            window,
            &AckEvent { now: Time::ZERO, acked: 1.0, counted: 1.0, rtt: None, srtt, cwnd_limited: true },
        );
        law.pace().unwrap_or(0.0)
    }

    /// A pair shows 1 MB/s, 1000 segments/s: 500 at first, and 10 more per round trip of 100 ms.
    #[test]
    fn the_spread_of_packets_moves_the_rate() {
        let (mut law, mut window) = (Wtcp::default(), Window { cwnd: 4.0, ssthresh: f64::INFINITY });
        assert_eq!(round(&mut law, &mut window, 1000, 1000), 500.0);
        assert_eq!(window.cwnd, 100.0, "twice 500 per second in 100 ms");
        assert_eq!(round(&mut law, &mut window, 1000, 1000), 510.0);
        assert_eq!(round(&mut law, &mut window, 1100, 1000), 510.0, "one mean of two");
        assert_eq!(round(&mut law, &mut window, 1100, 1100), 382.5, "both: three quarters");
        assert_eq!(round(&mut law, &mut window, 1100, 1100), 382.5, "a round trip of rest");
        assert!((round(&mut law, &mut window, 1100, 1100) - 286.875).abs() < 1e-9);
    }

    #[test]
    fn a_loss_counts_when_packets_spread_or_many_are_lost() {
        for (short, heavy, left) in [(1000, false, 500.0), (1100, false, 250.0), (1000, true, 250.0)] {
            let (mut law, mut window) = (Wtcp::default(), Window { cwnd: 4.0, ssthresh: f64::INFINITY });
            round(&mut law, &mut window, 1000, 1000);
            law.on_note(&mut window, &Note::Gaps { short, long: 1000, pair: 0, heavy });
            law.on_loss(&mut window, &LossEvent { flight: 50.0, again: false, marked: false });
            assert_eq!(law.pace(), Some(left), "{short} {heavy}");
        }
    }
}
