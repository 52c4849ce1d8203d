//! A law that the caller brings: what it does with the window, and NewReno's recovery around it.
//!
//! When a loss is detected and what is sent again is the sender's business, as for every law (RFC 6582 without blocks of the receiver,
//! RFC 6675 with them). What the law makes of the window is held to be a window: at least one segment, finite.

use std::fmt;

use lasthop_core::units::{Span, Time};

use super::{AckEvent, CongestionControl, LossEvent, MIN_SSTHRESH, Window};

/// Most segments that a brought law's window holds: more than the receiver's can.
const MOST: f64 = 1e6;

/// What a law moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LawWindow {
    /// Congestion window, segments, at least 1.
    pub cwnd: f64,
    /// Slow start below it, segments; infinite at first.
    pub ssthresh: f64,
}

/// An acknowledgment of something new, outside of fast recovery.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LawAck {
    /// When it came.
    pub now: Time,
    /// Acknowledged for the first time, segments.
    pub acked: f64,
    /// As much of it as counts towards growth, segments: all of it (RFC 3465), or one after a timeout and where ns-2 is followed.
    pub counted: f64,
    /// Round trip of the newest segment it tells of that was sent once.
    pub rtt: Option<Span>,
    /// Smoothed round trip; zero before the first sample.
    pub srtt: Span,
    /// The congestion window, not the receiver's, held the sender back: a window that was not used should not grow.
    pub cwnd_limited: bool,
}

/// See the module; [`Sender::set_law`](crate::Sender::set_law) takes one.
pub trait Law: fmt::Debug + Send {
    /// Something new was acknowledged, outside of fast recovery.
    fn on_ack(&mut self, window: &mut LawWindow, ack: &LawAck);

    /// Three duplicate acknowledgments, or a queue has marked: sets the threshold and the window. So many segments were outstanding.
    fn on_loss(&mut self, window: &mut LawWindow, flight: f64, marked: bool);

    /// The retransmission timer expired: sets the threshold; the window becomes one segment.
    fn on_timeout(&mut self, window: &mut LawWindow, flight: f64);
}

#[derive(Debug)]
pub(crate) struct Brought(pub Box<dyn Law>);

impl Brought {
    fn with(&mut self, window: &mut Window, change: impl FnOnce(&mut dyn Law, &mut LawWindow)) {
        let mut own = LawWindow { cwnd: window.cwnd, ssthresh: window.ssthresh };
        change(&mut *self.0, &mut own);
        if own.cwnd.is_finite() {
            window.cwnd = own.cwnd.clamp(1.0, MOST);
        }
        if !own.ssthresh.is_nan() {
            window.ssthresh = own.ssthresh.max(MIN_SSTHRESH);
        }
    }
}

impl CongestionControl for Brought {
    fn on_ack(&mut self, window: &mut Window, ack: &AckEvent) {
        let AckEvent { now, acked, counted, rtt, srtt, cwnd_limited } = *ack;
        self.with(window, |law, own| law.on_ack(own, &LawAck { now, acked, counted, rtt, srtt, cwnd_limited }));
    }

    fn on_loss(&mut self, window: &mut Window, loss: &LossEvent) {
        self.with(window, |law, own| law.on_loss(own, loss.flight, loss.marked));
    }

    fn on_timeout(&mut self, window: &mut Window, loss: &LossEvent) {
        self.with(window, |law, own| law.on_timeout(own, loss.flight));
        window.cwnd = 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives what it is told to give.
    #[derive(Debug)]
    struct Told(LawWindow);

    impl Law for Told {
        fn on_ack(&mut self, window: &mut LawWindow, _: &LawAck) {
            *window = self.0;
        }

        fn on_loss(&mut self, window: &mut LawWindow, _: f64, _: bool) {
            *window = self.0;
        }

        fn on_timeout(&mut self, window: &mut LawWindow, _: f64) {
            *window = self.0;
        }
    }

    #[test]
    fn what_a_law_gives_is_held_to_be_a_window() {
        let ack =
            AckEvent { now: Time::ZERO, acked: 1.0, counted: 1.0, rtt: None, srtt: Span::ZERO, cwnd_limited: true };
        for (cwnd, ssthresh, held) in [
            (7.5, 3.0, (7.5, 3.0)),
            (0.0, 0.0, (1.0, MIN_SSTHRESH)),
            (-3.0, -3.0, (1.0, MIN_SSTHRESH)),
            (1e9, f64::INFINITY, (MOST, f64::INFINITY)),
            // What is no number changes nothing.
            (f64::NAN, f64::NAN, (10.0, 20.0)),
            (f64::INFINITY, 4.0, (10.0, 4.0)),
        ] {
            let mut window = Window { cwnd: 10.0, ssthresh: 20.0 };
            Brought(Box::new(Told(LawWindow { cwnd, ssthresh }))).on_ack(&mut window, &ack);
            assert_eq!((window.cwnd, window.ssthresh), held, "{cwnd}, {ssthresh}");
        }
    }
}
