//! TFRC: the rate that TCP would have at the loss event rate which the receiver sees.
//!
//! ```text
//! per report:  X = max(min(X_eq(p), limit), s / 64 s)                        once p > 0            [bytes/s]
//!              X = max(min(2 X, limit), W / R)                               before, once per R
//!              limit = 2 max(receive rates of the last 2 R)
//! data-limited: limit = 2 max(all of them so far), or 0.85 max(half of each) when p has grown
//! silence:     after max(4 R, 2 s / X) without a report the limit is halved
//! ```
//!
//! X_eq: [`equation`]. s: mean size of the segments, bytes. W: min(4 s, max(2 s, 4380 B)). p: the receiver's history.
//!
//! Source: RFC 5348 sections 4.2 to 4.4. Does not: reduce oscillations (section 4.5, optional), send several packets of
//! small size as one (RFC 4828).

mod equation;
mod history;

use lasthop_core::units::{Span, Time};

use super::{Feedback, RateControl};

pub use equation::throughput;
pub(crate) use history::History;

/// Longest gap between packets, s (t_mbi).
pub(crate) const LONGEST_GAP: f64 = 64.0;
/// Before the first report (section 4.2).
pub(crate) const FIRST_SILENCE: Span = Span::from_secs(2);

/// The rate after the first report: W / R (section 4.2, RFC 3390).
pub(crate) fn initial_rate(mss: f64, rtt: f64) -> f64 {
    (4.0 * mss).min((2.0 * mss).max(4380.0)) / rtt
}

/// When to expect no report any more.
pub(crate) fn silence(now: Time, rtt: f64, size: f64, rate: f64) -> Time {
    now + Span::from_secs_f64((4.0 * rtt).max(2.0 * size / rate))
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Tfrc {
    mss: f64,
    deadline: Option<Time>,
    /// None before the first report.
    path: Option<Path>,
    /// X before the first report: a packet per second, halved with each silence (sections 4.2 and 4.4).
    begun: f64,
}

/// After the first report.
#[derive(Debug)]
struct Path {
    /// X.
    rate: f64,
    /// X_Bps, what the equation allows; none while p is 0.
    allowed: Option<f64>,
    p: f64,
    rtt: f64,
    /// When X was last doubled (tld).
    doubled: Time,
    /// Receive rates (X_recv_set).
    received: Received,
}

impl Tfrc {
    pub fn new(mss: u32) -> Self {
        let mss = f64::from(mss);
        Self { mss, deadline: None, path: None, begun: mss }
    }
}

impl RateControl for Tfrc {
    fn on_report(&mut self, feedback: &Feedback<'_>) {
        let rate = match &mut self.path {
            Some(path) => {
                path.on_report(feedback, self.mss);
                path.rate
            }
            None => {
                let rate = initial_rate(self.mss, feedback.rtt);
                let received = Received::endless(feedback.now);
                let (now, rtt) = (feedback.now, feedback.rtt);
                self.path = Some(Path { rate, allowed: None, p: 0.0, rtt, doubled: now, received });
                rate
            }
        };
        self.deadline = Some(silence(feedback.now, feedback.rtt, feedback.size, rate));
    }

    fn on_silence(&mut self, now: Time, size: f64, idle: bool) {
        let Some(path) = &mut self.path else {
            self.begun = (self.begun / 2.0).max(self.mss / LONGEST_GAP);
            self.deadline = Some(now + FIRST_SILENCE);
            return;
        };
        path.on_silence(now, self.mss, size, idle);
        self.deadline = Some(silence(now, path.rtt, size, path.rate));
    }

    fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    fn begin(&mut self, now: Time) {
        self.deadline = Some(now + FIRST_SILENCE);
    }

    fn rate(&self) -> f64 {
        self.path.as_ref().map_or(self.begun, |path| path.rate)
    }
}

impl Path {
    /// Section 4.3, step 4.
    fn on_report(&mut self, feedback: &Feedback<'_>, mss: f64) {
        let (now, report) = (feedback.now, feedback.report);
        let grown = report.loss_event_rate > self.p;
        (self.p, self.rtt) = (report.loss_event_rate, feedback.rtt);
        let limit = match (feedback.data_limited, grown) {
            (true, true) => {
                self.received.halve();
                self.received.maximize(now, 0.85 * report.receive_rate)
            }
            (true, false) => 2.0 * self.received.maximize(now, report.receive_rate),
            (false, _) => 2.0 * self.received.update(now, report.receive_rate, feedback.rtt),
        };
        self.set(now, limit, mss, feedback.size);
    }

    fn set(&mut self, now: Time, limit: f64, mss: f64, size: f64) {
        if self.p > 0.0 {
            let allowed = throughput(size, self.rtt, self.p);
            self.allowed = Some(allowed);
            self.rate = allowed.min(limit).max(size / LONGEST_GAP);
        } else if now.since(self.doubled).as_secs_f64() >= self.rtt {
            self.rate = (2.0 * self.rate).min(limit).max(initial_rate(mss, self.rtt));
            self.doubled = now;
        }
    }

    /// Section 4.4.
    fn on_silence(&mut self, now: Time, mss: f64, size: f64, idle: bool) {
        let received = self.received.max();
        let recover = initial_rate(mss, self.rtt);
        let slow = match self.allowed {
            Some(_) => received < recover,
            None => self.rate < 2.0 * recover,
        };
        if slow && idle {
            return;
        }
        match self.allowed {
            None => self.rate = (self.rate / 2.0).max(size / LONGEST_GAP),
            Some(allowed) => {
                let limit = if allowed > 2.0 * received { received } else { allowed / 2.0 };
                let limit = limit.max(size / LONGEST_GAP);
                self.received = Received { rates: vec![(now, limit / 2.0)] };
                self.set(now, limit, mss, size);
            }
        }
    }
}

/// What arrived of late: when it was reported, bytes/s (X_recv_set).
#[derive(Debug)]
struct Received {
    rates: Vec<(Time, f64)>,
}

impl Received {
    /// At first nothing limits the rate.
    fn endless(now: Time) -> Self {
        Self { rates: vec![(now, f64::INFINITY)] }
    }

    fn max(&self) -> f64 {
        self.rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max)
    }

    fn halve(&mut self) {
        for (_, rate) in &mut self.rates {
            *rate /= 2.0;
        }
    }

    /// Keeps the largest alone, the endless one not counted.
    fn maximize(&mut self, now: Time, rate: f64) -> f64 {
        self.rates.retain(|(_, rate)| rate.is_finite());
        let max = self.max().max(rate);
        self.rates.clear();
        self.rates.push((now, max));
        max
    }

    /// Keeps those of the last two round trips.
    fn update(&mut self, now: Time, rate: f64, rtt: f64) -> f64 {
        self.rates.retain(|(at, _)| now.since(*at).as_secs_f64() <= 2.0 * rtt);
        self.rates.push((now, rate));
        self.max()
    }
}
