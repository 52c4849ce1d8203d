//! Vegas as ns-2.35's agent has it.
//!
//! ```text
//! diff = round((o + 1) - RTTmin l / RTT)    o: outstanding, l: sent in the round       [segments]
//! ```
//!
//! What else is otherwise: the first segment goes out alone, and the initial window is for its acknowledgment to open; the window
//! grows by 1/cwnd per ACK, as it was at the end of the round, and only while at most two segments of it are unused; a
//! round without a sample lasts as long as it lasted; RTTmin is forgotten in a round of one segment; a timeout
//! leaves 2 segments.
//!
//! Source: ns-2.35 `Agent/TCP/Vegas`, run beside this (`tests/ns2.rs`).

use lasthop_core::units::{Span, Time};

use super::super::{AckEvent, CongestionControl, LossEvent, MIN_SSTHRESH, Progress, Recovery, Window};
use super::{ALPHA, BETA, GAMMA, LEAST};

/// After a timeout, segments.
const RESTART: f64 = 2.0;
/// Segments of the window that may be unused while it grows.
const UNUSED: f64 = 2.0;
/// Below it the cut leaves [`LEAST`], segments.
const SMALL: f64 = 3.0;

#[derive(Debug, Default)]
pub(super) struct Vegas {
    /// Until the first acknowledgment of data, segments.
    initial: Option<f64>,
    /// Least round trip, s.
    least: f64,
    /// Of the round: sum of round trips, s, and how many.
    sum: f64,
    samples: u32,
    /// The round is over when more than this is acknowledged.
    end: u64,
    began: Time,
    /// The window may double in this round of slow start.
    doubling: bool,
    /// What an acknowledgment adds, segments.
    step: f64,
    progress: Option<Progress>,
}

impl Vegas {
    fn end_round(&mut self, window: &mut Window, progress: &Progress) {
        let rtt = match self.samples {
            0 => progress.now.since(self.began).as_secs_f64(),
            n => self.sum / f64::from(n),
        };
        let length = (progress.next as f64 - self.end as f64) / progress.mss;
        if rtt < self.least || length <= 1.0 {
            self.least = rtt;
        }
        let expected = progress.outstanding() + 1.0;
        let queued = (expected - length / rtt * self.least + 0.5).trunc();
        if window.in_slow_start() {
            self.doubling = !self.doubling;
            self.step = if self.doubling && queued <= GAMMA { 1.0 } else { 0.0 };
            if self.doubling && queued > GAMMA {
                window.ssthresh = LEAST;
                window.cwnd = (window.cwnd * 7.0 / 8.0).max(LEAST);
            }
        } else if queued > BETA {
            window.cwnd = (window.cwnd - 1.0).max(LEAST);
            self.step = 0.0;
        } else {
            self.step = if queued < ALPHA { 1.0 / window.cwnd } else { 0.0 };
        }
        (self.sum, self.samples) = (0.0, 0);
        (self.end, self.began) = (progress.next, progress.now);
    }
}

impl CongestionControl for Vegas {
    fn recovery(&self) -> Recovery {
        Recovery::Vegas
    }

    fn watches(&self) -> bool {
        true
    }

    fn on_open(&mut self, now: Time, rtt: Span, window: &mut Window) {
        self.least = rtt.as_secs_f64();
        self.initial = Some(window.cwnd);
        self.began = now;
        window.cwnd = 1.0;
    }

    fn on_progress(&mut self, progress: &Progress) {
        self.progress = Some(*progress);
    }

    fn on_ack(&mut self, window: &mut Window, _ack: &AckEvent) {
        let Some(progress) = self.progress.take() else { return };
        if let Some(initial) = self.initial.take() {
            window.cwnd = initial;
        }
        if progress.una > self.end {
            self.end_round(window, &progress);
        }
        if self.step == 1.0 && !window.in_slow_start() {
            self.step = 0.0;
        }
        if self.step > 0.0 && window.cwnd - (progress.outstanding() + 1.0) <= UNUSED {
            window.cwnd += self.step;
        }
        if let Some(rtt) = progress.rtt {
            let rtt = rtt.as_secs_f64();
            self.sum += rtt;
            self.samples += 1;
            self.least = self.least.min(rtt);
        }
    }

    fn on_loss(&mut self, window: &mut Window, loss: &LossEvent) {
        let cwnd = loss.flight.floor();
        window.cwnd = match loss.again {
            _ if cwnd <= SMALL => LEAST,
            true => (cwnd / 2.0).floor(),
            false => cwnd - (cwnd / 4.0).floor(),
        };
    }

    fn on_timeout(&mut self, window: &mut Window, loss: &LossEvent) {
        window.ssthresh = (loss.flight / 2.0).floor().max(MIN_SSTHRESH);
        window.cwnd = RESTART;
    }
}
