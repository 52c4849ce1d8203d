//! SSVP: a video stream whose gap between packets follows additive increase, multiplicative decrease.
//!
//! ```text
//! per report without a new loss event:  X = X + a s / R x (time since the last report) / R         [bytes/s]
//! at a loss event:                      X = min(b X, what arrived lately),  once per round trip
//! before the first one:                 X = 2 X per R, not above twice what was received
//! silence, max(4 R, 2 s / X):           X = X / 2
//! ```
//!
//! s: mean size of the segments, bytes. R: smoothed round trip, s. The gap between packets is s / X, the protocol's own
//! variable: packets are evenly spaced. (a, b) = (0.31, 0.875) is the TCP-friendly pair of AIMD, a = 4 (1 - b^2) / 3.
//!
//! Source: Papadimitriou and Tsaoussidis, "SSVP: A congestion control scheme for real-time video streaming", Computer
//! Networks 51 (2007); the pair: Yang and Lam, "General AIMD congestion control" (2000). Ours, where the project's sheet is
//! silent: start, silence, that X does not grow while the application sends less than it may, and that a loss leaves no more
//! than what arrived: a rate has no timeouts, and without this takes more and more of a path on which TCP lives on them.

use lasthop_core::units::Time;

use super::tfrc::{FIRST_SILENCE, LONGEST_GAP, initial_rate, silence};
use super::{Feedback, RateControl};
use crate::cc::Aimd;

/// See the module.
#[derive(Debug)]
pub(crate) struct Ssvp {
    mss: f64,
    /// a and b: packets per round trip that the rate grows by per round trip, and what a loss leaves.
    aimd: Aimd,
    /// X.
    rate: f64,
    rtt: Option<f64>,
    reported: Option<Time>,
    loss_events: u64,
    slow_start: bool,
    /// When a loss last cut the rate.
    cut: Option<Time>,
    deadline: Option<Time>,
}

impl Ssvp {
    pub fn new(mss: u32, aimd: Aimd) -> Self {
        let mss = f64::from(mss);
        Self {
            mss,
            aimd,
            rate: mss,
            rtt: None,
            reported: None,
            loss_events: 0,
            slow_start: true,
            cut: None,
            deadline: None,
        }
    }

    fn grow(&mut self, feedback: &Feedback<'_>, elapsed: f64) {
        if feedback.data_limited {
            return;
        }
        let round_trips = (elapsed / feedback.rtt).min(2.0);
        if self.slow_start {
            let doubled = self.rate * (1.0 + round_trips.min(1.0));
            self.rate = doubled.min((2.0 * feedback.report.receive_rate).max(self.rate));
        } else {
            self.rate += self.aimd.increase * feedback.size / feedback.rtt * round_trips;
        }
    }
}

impl RateControl for Ssvp {
    fn on_report(&mut self, feedback: &Feedback<'_>) {
        let now = feedback.now;
        let new_loss = feedback.report.loss_events > self.loss_events;
        self.loss_events = feedback.report.loss_events;
        match self.reported {
            None => self.rate = initial_rate(self.mss, feedback.rtt),
            // What was sent before the last cut tells nothing of the rate since.
            Some(_) if new_loss && self.cut.is_some_and(|cut| feedback.report.echo <= cut) => {}
            Some(_) if new_loss => {
                self.rate =
                    (self.aimd.decrease * self.rate).min(feedback.report.receive_rate).max(feedback.size / LONGEST_GAP);
                (self.cut, self.slow_start) = (Some(now), false);
            }
            Some(before) => self.grow(feedback, now.since(before).as_secs_f64()),
        }
        self.reported = Some(now);
        self.rtt = Some(feedback.rtt);
        self.deadline = Some(silence(now, feedback.rtt, feedback.size, self.rate));
    }

    fn on_silence(&mut self, now: Time, size: f64, idle: bool) {
        if !idle {
            self.rate = (self.rate / 2.0).max(size / LONGEST_GAP);
        }
        self.deadline = Some(self.rtt.map_or(now + FIRST_SILENCE, |rtt| silence(now, rtt, size, self.rate)));
    }

    fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    fn begin(&mut self, now: Time) {
        self.deadline = Some(now + FIRST_SILENCE);
    }

    fn rate(&self) -> f64 {
        self.rate
    }
}
