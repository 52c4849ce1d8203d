//! How large the congestion window is: one law per file.
//!
//! A law sees every acknowledgment ([`CongestionControl::on_feedback`]), grows the window on those that acknowledge
//! something new outside of fast recovery, and cuts it at a loss. When a loss is detected and what is sent again is the
//! sender's business; windows are in segments.

mod aimd;
mod bbr;
mod brought;
mod cubic;
mod hystart;
mod newreno;
mod probing;
mod real;
mod reno;
mod reno_family;
mod tahoe;
mod vegas;
mod westwood;
mod westwood_abse;
mod westwood_plus;
mod wtcp;

use std::fmt;

use lasthop_core::units::{Span, Time};

use crate::conduct::Conduct;
use crate::note::{Note, Reports};

pub use aimd::Aimd;
pub(crate) use brought::Brought;
pub use brought::{Law, LawAck, LawWindow};

/// The laws there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Slow start after every loss.
    Tahoe,
    /// RFC 5681: leaves fast recovery on the first new acknowledgment.
    Reno,
    /// RFC 6582: stays in fast recovery until all of the window is repaired.
    #[default]
    NewReno,
    /// Bandwidth estimate after a loss.
    Westwood,
    /// Westwood with an adaptive sample window and filter.
    WestwoodAbse,
    /// RFC 9438.
    Cubic,
    /// Round trips tell what queues, before anything is lost.
    Vegas,
    /// Westwood with a bandwidth sample per round trip.
    WestwoodPlus,
    /// [`Aimd`]: additive increase and multiplicative decrease by any two numbers.
    Aimd,
    /// The receiver measures the rate of each wave.
    Real,
    /// A model of the path in place of losses.
    Bbr,
    /// Reno that probes before it answers a loss.
    Probing,
    /// A rate, moved by how packets spread in flight.
    Wtcp,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Tahoe,
        Self::Reno,
        Self::NewReno,
        Self::Westwood,
        Self::WestwoodAbse,
        Self::Cubic,
        Self::Vegas,
        Self::WestwoodPlus,
        Self::Aimd,
        Self::Real,
        Self::Bbr,
        Self::Probing,
        Self::Wtcp,
    ];

    /// What its receiver has to watch and to report.
    #[must_use]
    pub fn reports(self) -> Reports {
        match self {
            Self::Real => Reports::Waves,
            Self::Probing => Reports::Probes,
            Self::Wtcp => Reports::Gaps,
            _ => Reports::Nothing,
        }
    }

    pub(crate) fn control(self, params: &Params) -> Box<dyn CongestionControl> {
        match self {
            Self::Tahoe => Box::new(tahoe::Tahoe),
            Self::Reno => Box::new(reno::Reno),
            Self::NewReno => Box::new(newreno::NewReno),
            Self::Westwood => Box::<westwood::Westwood>::default(),
            Self::WestwoodAbse => Box::<westwood_abse::WestwoodAbse>::default(),
            Self::Cubic => Box::<cubic::Cubic>::default(),
            Self::Vegas => vegas::control(params.conduct),
            Self::WestwoodPlus => westwood_plus::control(params),
            Self::Aimd => Box::new(aimd::AimdControl(params.aimd)),
            Self::Real => Box::<real::Real>::default(),
            Self::Bbr => Box::<bbr::Bbr>::default(),
            Self::Probing => Box::new(probing::Probing),
            Self::Wtcp => Box::<wtcp::Wtcp>::default(),
        }
    }
}

/// What a law is made from; [`SenderParams`](crate::SenderParams) says what each is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Params {
    pub conduct: Conduct,
    pub mss: u32,
    pub initial_ssthresh: Option<f64>,
    pub aimd: Aimd,
}

/// Fewest segments the threshold is set to (RFC 5681 equation 4).
pub(crate) const MIN_SSTHRESH: f64 = 2.0;

/// What a law moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Window {
    /// Congestion window, segments, at least 1 (with ns-2's conduct 1/2).
    pub cwnd: f64,
    /// Slow start below it, segments; infinite at first.
    pub ssthresh: f64,
}

impl Window {
    pub(crate) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
}

/// What an acknowledgment tells of delivery.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    pub now: Time,
    /// Delivered in all, bytes.
    pub delivered: u64,
    /// Of it: by this acknowledgment, bytes.
    pub newly: u64,
    /// Delivered when the newest segment that it reports was sent, bytes; none without one.
    pub prior: Option<u64>,
    /// bytes/s; none without a measure.
    pub rate: Option<f64>,
    /// The application held the sender back.
    pub app_limited: bool,
    /// Round trip of that segment.
    pub rtt: Option<Span>,
    /// Thought to be in the network, bytes.
    pub inflight: u64,
    /// A loss is being repaired.
    pub recovering: bool,
    /// Payload of a full segment, bytes.
    pub mss: f64,
}

/// An acknowledgment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckEvent {
    pub now: Time,
    /// Acknowledged for the first time, segments; 0 for a duplicate.
    pub acked: f64,
    /// As much of it as counts towards growth, segments: all of it (RFC 3465), or one per ACK after a
    /// timeout and as in ns-2.
    pub counted: f64,
    /// Round trip of the newest segment it tells of that was sent once.
    pub rtt: Option<Span>,
    /// Smoothed round trip; zero before the first sample.
    pub srtt: Span,
    /// The congestion window, not the receiver's, held the sender back.
    pub cwnd_limited: bool,
}

/// How far a sender is when something new is acknowledged, for the laws that ask for it: offsets into the stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    pub now: Time,
    /// Everything below is acknowledged.
    pub una: u64,
    /// What goes out next: the lowest byte never sent, or after a timeout the lowest not sent since.
    pub next: u64,
    /// Payload of a full segment.
    pub mss: f64,
    /// Round trip of the newest segment acknowledged in order, if it was sent once.
    pub rtt: Option<Span>,
}

impl Progress {
    /// Segments.
    pub(crate) fn outstanding(&self) -> f64 {
        self.next.saturating_sub(self.una) as f64 / self.mss
    }
}

/// A loss, however detected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LossEvent {
    /// Outstanding when it was noticed, not more than the congestion window, segments. With ns-2's conduct that window,
    /// not more than the receiver's.
    pub flight: f64,
    /// Whether what is lost had been retransmitted.
    pub again: bool,
    /// Whether nothing is lost and a queue has marked instead.
    pub marked: bool,
}

/// What follows three duplicate acknowledgments when the receiver reports no blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recovery {
    /// No fast recovery: everything from the hole on is sent again in slow start.
    Tahoe,
    /// Until the first new acknowledgment.
    Reno,
    /// Until all that was outstanding is acknowledged.
    NewReno,
    /// The same, and one duplicate is enough when the segment is overdue. With ns-2's conduct: `sender::vegas`.
    Vegas,
}

/// One law. Windows are given, so that a law keeps only what is its own.
pub(crate) trait CongestionControl: fmt::Debug + Send {
    fn recovery(&self) -> Recovery {
        Recovery::NewReno
    }

    /// Wants [`on_progress`](Self::on_progress).
    fn watches(&self) -> bool {
        false
    }

    /// A loss is judged by probes before anything is cut.
    fn probes(&self) -> bool {
        false
    }

    /// Wants [`on_sample`](Self::on_sample).
    fn samples(&self) -> bool {
        false
    }

    /// Says when segments go, too: [`pace`](Self::pace).
    fn is_paced(&self) -> bool {
        false
    }

    /// Segments/s; none: as the window lets them.
    fn pace(&self) -> Option<f64> {
        None
    }

    /// What an acknowledgment tells of delivery, after all others have been called.
    fn on_sample(&mut self, _window: &mut Window, _sample: &Sample) {}

    /// The handshake is over, and its last try took `rtt`; `window` is the initial one.
    fn on_open(&mut self, _now: Time, _rtt: Span, _window: &mut Window) {}

    /// Something new was acknowledged, before the others are called.
    fn on_progress(&mut self, _progress: &Progress) {}

    /// Segments are marked with the time since the one before them, in place of [`mark`](Self::mark).
    fn marks_gaps(&self) -> bool {
        false
    }

    /// With ns-2's conduct: the law of its `Agent/TCP/Linux` ([`crate::sender`]'s module of that name).
    fn is_linux(&self) -> bool {
        false
    }

    /// With ns-2's conduct fast recovery is over, by an acknowledgment that leaves so many segments in flight. True: it is
    /// not to grow the window like any other.
    fn on_recovered(&mut self, _window: &mut Window, _in_flight: f64) -> bool {
        false
    }

    /// What goes with every segment to the receiver.
    fn mark(&self) -> u32 {
        0
    }

    /// What the receiver tells, before the acknowledgment that carries it.
    fn on_note(&mut self, _window: &mut Window, _note: &Note) {}

    /// Every acknowledgment, duplicates too, before the others are called.
    fn on_feedback(&mut self, _window: &Window, _ack: &AckEvent) {}

    /// What the law believes the path carries, segments/s, where it has an estimate.
    fn bandwidth(&self) -> Option<f64> {
        None
    }

    /// Something new was acknowledged, outside of fast recovery.
    fn on_ack(&mut self, window: &mut Window, ack: &AckEvent);

    /// Fast retransmit: sets the threshold and the window of fast recovery.
    fn on_loss(&mut self, window: &mut Window, loss: &LossEvent);

    /// The retransmission timer expired: sets the threshold; the window becomes one segment. Not called when it expires
    /// once more with nothing acknowledged in between, unless ns-2 is followed.
    fn on_timeout(&mut self, window: &mut Window, loss: &LossEvent);
}
