//! Rate-controlled transport: datagrams at even gaps, and reports of the receiver that set their rate.
//!
//! ```text
//! gap after a datagram of b bytes = b / X                              [s] = [bytes] / [bytes/s]
//! RTT sample = now - (sent, as the report echoes) - held               [s]
//! R = 0.9 R + 0.1 sample                                               [s]
//! ```
//!
//! X is a law's ([`tfrc`], [`ssvp`]); what is lost and how it is counted is the receiver's. Nothing is sent
//! again. Bytes are payload. The gap follows X at once: the next datagram is due `b / X` after the last one for the X of now.
//! Time that passes with nothing to send is not made up for.
//!
//! Source: RFC 5348 section 4.3 (RTT, q = 0.9), section 4.6 (gap), section 8.2.1 (data-limited). Differs: without the
//! granularity of a timer there is nothing to send early for. The size of segments is the mean of what is sent.

mod holes;
mod receiver;
mod ssvp;
mod tfrc;

use std::fmt;

use lasthop_core::units::{Span, Time};

use crate::cc::Aimd;

pub use receiver::{RateReceiver, RateReceiverParams};
pub use tfrc::throughput as tfrc_throughput;

/// What a sender sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Its number, from 0.
    pub sequence: u64,
    /// Payload.
    pub bytes: u32,
    /// When.
    pub sent: Time,
    /// The round trip as the sender knows it; zero: it does not.
    pub rtt: Span,
}

/// What a receiver reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report {
    /// When the newest datagram that arrived was sent.
    pub echo: Time,
    /// Since its arrival.
    pub held: Span,
    /// What arrived lately, bytes/s.
    pub receive_rate: f64,
    /// Loss events per datagram; 0 before the first.
    pub loss_event_rate: f64,
    /// Loss events so far.
    pub loss_events: u64,
}

/// The laws there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RateLaw {
    /// TCP-friendly rate control, RFC 5348.
    Tfrc,
    /// Scalable streaming video protocol: AIMD of the rate.
    Ssvp,
}

/// How a sender behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateParams {
    /// Law of the rate.
    pub law: RateLaw,
    /// What [`RateLaw::Ssvp`] adds per round trip and keeps at a loss.
    pub aimd: Aimd,
    /// Payload of a full datagram, bytes, at least 1.
    pub mss: u32,
    /// So many bytes are sent, and no more. None: there is always more.
    pub bytes: Option<u64>,
    /// The application gives its bytes piece by piece ([`RateSender::extend`]).
    pub fed: bool,
}

/// What a law is told with a report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Feedback<'a> {
    pub now: Time,
    pub report: &'a Report,
    /// Smoothed, this report's sample included, s.
    pub rtt: f64,
    /// Mean of the datagrams, bytes.
    pub size: f64,
    /// The application, not the rate, held the sender back while what is reported was sent.
    pub data_limited: bool,
}

/// One law.
pub(crate) trait RateControl: fmt::Debug + Send {
    /// A report arrived.
    fn on_report(&mut self, feedback: &Feedback<'_>);

    /// [`Self::deadline`] has come without a report. `idle`: nothing was sent since it was set.
    fn on_silence(&mut self, now: Time, size: f64, idle: bool);

    /// When no report has come for too long.
    fn deadline(&self) -> Option<Time>;

    /// The first datagram goes out.
    fn begin(&mut self, now: Time);

    /// The allowed rate, bytes/s, more than 0.
    fn rate(&self) -> f64;
}

/// Where a sender stands.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RateSnapshot {
    /// Allowed rate, payload bytes/s.
    pub rate: f64,
    /// Smoothed round trip; none before the first report.
    pub rtt: Option<Span>,
    /// The newest that was reported.
    pub loss_event_rate: f64,
    /// The same.
    pub loss_events: u64,
    /// Times no report came for too long.
    pub silences: u64,
    /// Datagrams sent.
    pub sent: u64,
}

/// Weight of what was known in the smoothed round trip (RFC 5348 section 4.3, q).
const RTT_FILTER: f64 = 0.9;
/// Weight of a datagram in their mean size: about the last hundred of them.
const SIZE_WEIGHT: f64 = 0.01;

/// A sender. The first datagram goes out with the first [`poll`](Self::poll) that has bytes to send.
#[derive(Debug)]
pub struct RateSender {
    params: RateParams,
    control: Box<dyn RateControl>,
    /// End of what there is to send, and what was sent of it, bytes.
    limit: u64,
    next: u64,
    sequence: u64,
    /// The last datagram: when, bytes.
    last: Option<(Time, u32)>,
    /// Something was sent since the law's deadline was set.
    busy: bool,
    rtt: Option<f64>,
    size: f64,
    limited: Limited,
    newest: Option<Report>,
    silences: u64,
}

impl RateSender {
    /// Before its first datagram.
    #[must_use]
    pub fn new(params: RateParams) -> Self {
        let params = RateParams { mss: params.mss.max(1), ..params };
        let control: Box<dyn RateControl> = match params.law {
            RateLaw::Tfrc => Box::new(tfrc::Tfrc::new(params.mss)),
            RateLaw::Ssvp => Box::new(ssvp::Ssvp::new(params.mss, params.aimd)),
        };
        Self {
            control,
            limit: params.bytes.unwrap_or(if params.fed { 0 } else { u64::MAX }),
            next: 0,
            sequence: 0,
            last: None,
            busy: false,
            rtt: None,
            size: f64::from(params.mss),
            limited: Limited::default(),
            newest: None,
            silences: 0,
            params,
        }
    }

    /// A report arrived.
    pub fn on_report(&mut self, now: Time, report: &Report) {
        if self.last.is_none_or(|(at, _)| report.echo > at)
            || self.newest.is_some_and(|newest| report.echo < newest.echo)
        {
            return;
        }
        let sample = now.since(report.echo).saturating_sub(report.held).as_secs_f64().max(1e-9);
        let rtt = self.rtt.map_or(sample, |rtt| RTT_FILTER * rtt + (1.0 - RTT_FILTER) * sample);
        self.rtt = Some(rtt);
        let data_limited = self.limited.covers(now, report.echo);
        self.control.on_report(&Feedback { now, report, rtt, size: self.size, data_limited });
        self.busy = false;
        self.newest = Some(*report);
    }

    /// The application has given so many bytes in all ([`RateParams::fed`]).
    pub fn extend(&mut self, bytes: u64) {
        if self.params.fed {
            self.limit = self.limit.max(bytes);
        }
    }

    /// No new bytes from now on.
    pub fn stop(&mut self) {
        self.params.fed = false;
        self.limit = self.next;
    }

    /// The next datagram, when its time has come; does first what silence asks for.
    pub fn poll(&mut self, now: Time) -> Option<Datagram> {
        if self.control.deadline().is_some_and(|at| at <= now) {
            self.control.on_silence(now, self.size, !self.busy);
            self.silences += 1;
            self.busy = false;
        }
        let bytes = u64::from(self.params.mss).min(self.limit - self.next) as u32;
        if bytes == 0 {
            return None;
        }
        if self.due().is_some_and(|due| due > now) {
            self.limited.note(now);
            return None;
        }
        if self.last.is_none() {
            self.control.begin(now);
        }
        self.size += SIZE_WEIGHT * (f64::from(bytes) - self.size);
        self.next += u64::from(bytes);
        self.sequence += 1;
        self.last = Some((now, bytes));
        self.busy = true;
        Some(Datagram { sequence: self.sequence - 1, bytes, sent: now, rtt: self.rtt_span().unwrap_or_default() })
    }

    /// When the datagram after the last one may go out.
    fn due(&self) -> Option<Time> {
        let (at, bytes) = self.last?;
        Some(at + Span::from_secs_f64(f64::from(bytes) / self.control.rate()))
    }

    /// When `poll` has something to do without being told anything.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        let due = if self.next < self.limit { self.due() } else { None };
        let silence = if self.is_done() { None } else { self.control.deadline() };
        due.into_iter().chain(silence).min()
    }

    /// All was sent.
    #[must_use]
    pub fn is_done(&self) -> bool {
        !self.params.fed && self.next >= self.limit
    }

    fn rtt_span(&self) -> Option<Span> {
        self.rtt.map(Span::from_secs_f64)
    }

    /// Where it stands.
    #[must_use]
    pub fn snapshot(&self) -> RateSnapshot {
        RateSnapshot {
            rate: self.control.rate(),
            rtt: self.rtt_span(),
            loss_event_rate: self.newest.map_or(0.0, |report| report.loss_event_rate),
            loss_events: self.newest.map_or(0, |report| report.loss_events),
            silences: self.silences,
            sent: self.sequence,
        }
    }
}

/// Whether the rate or the application held the sender back over the time that a report covers: the first moment of
/// waiting for the rate that may fall into this report, and the first that may fall into the next one.
#[derive(Clone, Copy, Debug, Default)]
struct Limited {
    first: Option<Time>,
    second: Option<Time>,
    /// Up to where the last report told: when its newest datagram was sent.
    covered: Option<Time>,
    /// When it came.
    reported: Option<Time>,
}

impl Limited {
    /// The sender has something to send and must wait for its rate.
    fn note(&mut self, now: Time) {
        if self.first.is_none_or(|first| Some(first) <= self.covered) {
            self.first = Some(now);
        } else if self.second.is_none_or(|second| Some(second) <= self.reported) {
            self.second = Some(now);
        }
    }

    /// A report of what was sent until `echo`: whether the application alone held the sender back until then.
    fn covers(&mut self, now: Time, echo: Time) -> bool {
        let old = self.covered.replace(echo);
        self.reported = Some(now);
        let within = |at: Option<Time>| at.is_some_and(|at| Some(at) > old && at <= echo);
        let data_limited = !within(self.first) && !within(self.second);
        if self.first.is_some_and(|first| first <= echo) && self.second.is_some_and(|second| second > echo) {
            self.first = self.second;
        }
        data_limited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Time {
        Time::from_nanos(n * 1_000_000)
    }

    /// Reports come at 100, 200, 300 ms on what was sent until 50, 150, 250 ms.
    #[test]
    fn a_report_is_data_limited_when_the_rate_held_nothing_back_in_what_it_covers() {
        let covers = |waits: &[u64]| {
            let mut limited = Limited::default();
            [100, 200, 300].map(|now| {
                let new = waits.iter().filter(|at| (now - 100..now).contains(*at));
                new.for_each(|at| limited.note(ms(*at)));
                limited.covers(ms(now), ms(now - 50))
            })
        };
        assert_eq!(covers(&[]), [true, true, true]);
        assert_eq!(covers(&[10]), [false, true, true]);
        // Sent after what the first report covers: the second one's.
        assert_eq!(covers(&[70]), [true, false, true]);
        assert_eq!(covers(&[10, 70]), [false, false, true]);
        assert_eq!(covers(&[110, 240]), [true, false, false]);
        assert_eq!(covers(&[20, 120, 220]), [false, false, false]);
    }
}
