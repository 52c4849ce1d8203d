//! The receiving end: what arrived, what was lost, and a report of it once per round trip.
//!
//! ```text
//! receive rate = bytes that arrived in the last T / T,  T = max(R, since the last report)        [bytes/s]
//! ```
//!
//! A report goes out with the first datagram, when a loss event raises the loss event rate, and R after the last one if
//! something arrived since; when nothing did, with the next datagram.
//!
//! Source: RFC 5348 section 6. Differs: the receive rate is over R alone there, which counts a datagram that comes less
//! often than once per R at more than its rate; and a report that was due and had nothing to tell waits there for the
//! next multiple of R. A datagram with a congestion mark counts as lost for the loss events (section 5.2) and is delivered.

use std::collections::VecDeque;

use lasthop_core::units::{Span, Time};

use super::holes::Holes;
use super::tfrc::History;
use super::{Datagram, Report};
use crate::discriminate::BiazVaidya;

/// How a receiver behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateReceiverParams {
    /// Losses that the gap around them tells to be a link's own (Biaz and Vaidya) are no loss events.
    pub discriminate: bool,
}

/// A receiver.
#[derive(Debug)]
pub struct RateReceiver {
    holes: Holes,
    history: History,
    discrimination: Option<BiazVaidya>,
    /// What arrived lately: when, bytes.
    arrivals: VecDeque<(Time, u32)>,
    /// Mean of the datagrams, bytes.
    size: f64,
    /// The newest datagram, and when it arrived.
    newest: Option<(Datagram, Time)>,
    /// When the last report went out.
    reported: Option<Time>,
    /// Something arrived since.
    fresh: bool,
    due: bool,
    timer: Option<Time>,
}

impl RateReceiver {
    /// Before the first datagram.
    #[must_use]
    pub fn new(params: RateReceiverParams) -> Self {
        Self {
            holes: Holes::default(),
            history: History::default(),
            discrimination: params.discriminate.then(BiazVaidya::default),
            arrivals: VecDeque::new(),
            size: 0.0,
            newest: None,
            reported: None,
            fresh: false,
            due: false,
            timer: None,
        }
    }

    /// A datagram arrived; `marked`: with a congestion mark. Its bytes where it is new, else 0.
    pub fn on_datagram(&mut self, now: Time, datagram: &Datagram, marked: bool) -> u32 {
        if !self.holes.on_arrival(now, datagram.sequence) {
            return 0;
        }
        let bytes = f64::from(datagram.bytes);
        self.size = if self.newest.is_none() { bytes } else { self.size + (bytes - self.size) * super::SIZE_WEIGHT };
        if self.newest.is_none_or(|(newest, _)| newest.sequence < datagram.sequence) {
            if let (Some(rule), Some((_, before))) = (&mut self.discrimination, self.newest) {
                rule.on_gap(now.since(before));
            }
            self.due |= self.newest.is_none_or(|(newest, _)| newest.rtt == Span::ZERO) || self.timer.is_none();
            self.newest = Some((*datagram, now));
        }
        self.fresh = true;
        self.arrivals.push_back((now, datagram.bytes));
        self.forget(now);
        self.look_for_losses(now, datagram.rtt);
        if marked {
            self.on_loss(now, datagram.sequence, now, datagram.rtt);
        }
        datagram.bytes
    }

    fn look_for_losses(&mut self, now: Time, rtt: Span) {
        while let Some(hole) = self.holes.poll() {
            if self.discrimination.as_ref().is_some_and(|rule| rule.is_of_the_link(hole.count(), hole.gap())) {
                continue;
            }
            // What lies in the event of one that is looked at need not be: a hole of any size takes no longer than the round
            // trips it lasted.
            let mut sequence = hole.first;
            while sequence < hole.end {
                let at = hole.time_of(sequence);
                self.on_loss(now, sequence, at, rtt);
                sequence += match self.history.event_ends(rtt) {
                    Some(end) if rtt > Span::ZERO => hole.within(end.since(at)),
                    _ => hole.count(),
                };
            }
        }
    }

    fn on_loss(&mut self, now: Time, sequence: u64, at: Time, rtt: Span) {
        let before = self.loss_event_rate();
        // Only the first event asks for it.
        let rate = if self.history.events() == 0 { self.receive_rate(now) } else { 0.0 };
        if self.history.on_loss(sequence, at, rtt, rate, self.size) && self.loss_event_rate() > before {
            self.due = true;
        }
    }

    fn loss_event_rate(&self) -> f64 {
        self.history.loss_event_rate(self.holes.expected())
    }

    /// Over how long the receive rate is taken.
    fn window(&self, now: Time) -> Span {
        let rtt = self.newest.map_or(Span::ZERO, |(datagram, _)| datagram.rtt);
        self.reported.map_or(rtt, |at| rtt.max(now.since(at)))
    }

    fn forget(&mut self, now: Time) {
        let window = self.window(now);
        while self.arrivals.front().is_some_and(|(at, _)| now.since(*at) >= window && *at != now) {
            self.arrivals.pop_front();
        }
    }

    fn receive_rate(&self, now: Time) -> f64 {
        let window = self.window(now);
        if window == Span::ZERO {
            return 0.0;
        }
        let lately = self.arrivals.iter().rev().take_while(|(at, _)| now.since(*at) < window);
        lately.map(|(_, bytes)| f64::from(*bytes)).sum::<f64>() / window.as_secs_f64()
    }

    /// The next report, when there is one to send.
    pub fn poll(&mut self, now: Time) -> Option<Report> {
        let expired = self.timer.is_some_and(|at| at <= now);
        if expired {
            self.timer = None;
        }
        if !(self.due || expired && self.fresh) {
            return None;
        }
        let (datagram, arrived) = self.newest?;
        let report = Report {
            echo: datagram.sent,
            held: now.since(arrived),
            receive_rate: self.receive_rate(now),
            loss_event_rate: self.loss_event_rate(),
            loss_events: self.history.events(),
        };
        (self.due, self.fresh) = (false, false);
        self.reported = Some(now);
        self.timer = (datagram.rtt > Span::ZERO).then(|| now + datagram.rtt);
        Some(report)
    }

    /// When `poll` has something to do without being told anything.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        self.timer
    }

    /// Loss events so far.
    #[must_use]
    pub fn loss_events(&self) -> u64 {
        self.history.events()
    }
}
