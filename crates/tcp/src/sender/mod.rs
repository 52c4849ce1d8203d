//! The sending end.
//!
//! ```text
//! may send a segment of b bytes when  pipe + b <= cwnd x MSS + inflation   and   next + b <= right edge     [bytes]
//! right edge = ack + window of the newest acknowledgment
//! ```
//!
//! The congestion window is a law's (`cc`), what is lost and sent again is in `recovery`, the timer in `rtt`, what is
//! outstanding in `flight`.
//!
//! Source: RFC 9293 (handshake, window, probes), RFC 5681 (slow start, fast retransmit), RFC 6298 (timer), RFC 3042
//! (limited transmit), RFC 6582 and 6675 (recovery). After a timeout everything from the hole on is sent again in slow
//! start (go-back-N, RFC 5681 section 3.1; ns-2), without what the receiver reported.
//!
//! An acknowledgment that does not advance is a duplicate if its window is the one before (RFC 5681 section 2), or if it brings
//! SACK blocks (RFC 6675): one with another window is a window update, as an access point may send it.
//!
//! Differs on purpose: a probe of a closed window carries no byte, from just below the hole, as Linux does, so that segments stay whole.
//!
//! Does not: urgent data, Nagle's delay (the stream is always full or at its end), path MTU discovery, ECN, keep-alive,
//! closing handshakes, timestamps, pacing with laws that do not ask for it, restart after idleness.

mod delivery;
mod flight;
mod linux;
mod output;
mod pace;
mod params;
mod probing;
mod quic;
mod recovery;
mod rtt;
mod vegas;

use lasthop_core::units::{BitRate, Span, Time};

use crate::cc::{AckEvent, Algorithm, Brought, CongestionControl, Law, MIN_SSTHRESH, Progress, Recovery, Window};
use crate::conduct::Conduct;
use crate::note::Note;
use crate::segment::{Ack, Segment};
use delivery::Delivery;
use flight::Flight;
use linux::Halving;
use pace::{GAIN, Pace};
use probing::Probing;
use rtt::{Clock, RttEstimator};
use vegas::Fine;

pub use params::{SenderParams, SenderSnapshot};

/// The handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Closed,
    /// The SYN went out, for the `retries`-th time.
    Opening {
        sent_at: Time,
        retries: u32,
    },
    Open,
}

/// After a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// None.
    Open,
    /// Fast recovery.
    Recovery {
        /// A partial acknowledgment has restarted the timer.
        partial: bool,
    },
    /// After a loss that is not judged yet: no data ([`probing`]).
    Probing,
    /// After a timeout, and with Tahoe after every loss: slow start over what is sent again.
    Resending,
}

/// A sender. Closed at first: the first [`poll`](Self::poll) gives the SYN.
#[derive(Debug)]
pub struct Sender {
    params: SenderParams,
    control: Box<dyn CongestionControl>,
    style: Recovery,
    window: Window,
    /// The law wants to know how far the sender is.
    watched: bool,
    /// Kept for a law that goes by delivery.
    delivery: Option<Box<Delivery>>,
    /// Kept for a law that says when.
    pace: Option<Box<Pace>>,
    /// The pace alone stopped the last `poll`, until then.
    paced_until: Option<Time>,
    /// Kept for a law that probes.
    probing: Option<Box<Probing>>,
    /// Vegas as in ns-2.
    fine: Option<Box<Fine>>,
    /// Linux's laws as in ns-2.
    linux: Option<Box<Halving>>,
    stage: Stage,
    phase: Phase,
    /// End of the stream.
    limit: u64,
    /// Lowest byte not acknowledged.
    una: u64,
    /// Lowest byte never sent.
    next: u64,
    /// First byte that the receiver does not offer to take.
    right_edge: u64,
    /// An acknowledgment after that of the SYN, whose window is not scaled, has told it.
    feedback: bool,
    flight: Flight,
    /// The receiver has reported blocks.
    sacking: bool,
    rtt: RttEstimator,
    /// Retransmission, or, when nothing is outstanding, probe of a window.
    timer: Option<Time>,
    /// Probes of the closed window so far.
    probes: u32,
    probe_due: bool,
    dup_acks: u32,
    /// What duplicate ACKs add to the window in fast recovery, less what partial ones take away, bytes.
    inflation: i64,
    /// Bytes that may be in the network: window, inflation and limited transmit.
    allowance: i64,
    /// Where the newest byte was when the last loss was noticed.
    recover: Option<u64>,
    /// Whether that loss was detected by the timer.
    by_timeout: bool,
    /// What is missing there was lost on the link, says the receiver.
    corrupted: Option<u64>,
    /// The loss that is being repaired has cut nothing.
    spared: bool,
    /// The first segment goes out next, whatever the windows say.
    resend_front: bool,
    /// How far HighACK must come before a rescue retransmission is allowed again (RFC 6675).
    rescue: Option<u64>,
    /// Timeouts since something was last acknowledged.
    timeouts_in_row: u32,
    /// When the loss that is being repaired was noticed, or something lost again has cut the window once more.
    recovering_since: Time,
    /// Segments that the timer has asked for, whatever the window says (RFC 9002).
    probing_segments: u32,
    /// The congestion window stopped the last `poll`.
    cwnd_limited: bool,
    usage: Usage,
    /// A mark has cut the window: not again before this is acknowledged.
    marked_until: Option<u64>,
    /// The receiver is to be told of that.
    cwr: bool,
    counts: Counts,
}

/// How much of the congestion window is used.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    /// It held the sender in the round trip that ends with this byte.
    limited: bool,
    end: u64,
    /// Most that was outstanding in it, bytes.
    most: u64,
    /// Something was sent since this was looked at.
    has_sent: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    sent: u64,
    retransmitted: u64,
    timeouts: u64,
    fast_retransmits: u64,
}

impl Sender {
    /// Closed.
    #[must_use]
    pub fn new(params: SenderParams) -> Self {
        let params = SenderParams { mss: params.mss.max(1), initial_window: params.initial_window.max(1), ..params };
        let control = params.cc.control(&params.law());
        let is_paced = control.is_paced() || params.paced;
        let clock = match params.conduct {
            Conduct::Rfc | Conduct::Quic => Clock::Fine,
            Conduct::Ns2 if control.is_linux() => Clock::Linux,
            Conduct::Ns2 => Clock::Bsd,
        };
        Self {
            style: control.recovery(),
            watched: control.watches() || control.samples() || is_paced,
            delivery: control.samples().then(Box::default),
            pace: is_paced.then(Box::default),
            paced_until: None,
            probing: control.probes().then(Box::default),
            fine: (control.recovery() == Recovery::Vegas && params.conduct == Conduct::Ns2).then(Box::default),
            linux: (control.is_linux() && params.conduct == Conduct::Ns2).then(Box::default),
            control,
            window: Window {
                cwnd: f64::from(params.initial_window),
                ssthresh: params.initial_ssthresh.unwrap_or(f64::INFINITY),
            },
            stage: Stage::Closed,
            phase: Phase::Open,
            limit: params.bytes.unwrap_or(if params.fed { 0 } else { u64::MAX }),
            una: 0,
            next: 0,
            right_edge: 0,
            feedback: false,
            flight: Flight::new(params.mss),
            sacking: false,
            rtt: match params.conduct {
                Conduct::Quic => RttEstimator::quic(),
                Conduct::Rfc | Conduct::Ns2 => RttEstimator::new(params.min_rto, clock),
            },
            timer: None,
            probes: 0,
            probe_due: false,
            dup_acks: 0,
            inflation: 0,
            allowance: 0,
            recover: None,
            by_timeout: false,
            corrupted: None,
            spared: false,
            resend_front: false,
            rescue: None,
            timeouts_in_row: 0,
            recovering_since: Time::ZERO,
            probing_segments: 0,
            cwnd_limited: false,
            usage: Usage::default(),
            marked_until: None,
            cwr: false,
            counts: Counts::default(),
            params,
        }
    }

    /// Puts `law` in the place of the one that it was made with, whatever that was; before it opens.
    pub fn set_law(&mut self, law: Box<dyn Law>) {
        *self = Self {
            control: Box::new(Brought(law)),
            ..Self::new(SenderParams { cc: Algorithm::NewReno, ..self.params })
        };
    }

    /// An acknowledgment arrived.
    pub fn on_ack(&mut self, now: Time, ack: &Ack) {
        match self.stage {
            Stage::Open if !ack.syn => {}
            Stage::Opening { sent_at, retries } if ack.syn => return self.open(now, ack, sent_at, retries),
            _ => return,
        }
        if ack.offset < self.una || ack.offset > self.next {
            return;
        }
        let same_window = !self.feedback || ack.offset + ack.window_bytes == self.right_edge;
        self.feedback = true;
        self.right_edge = ack.offset + ack.window_bytes;
        let advanced = ack.offset > self.una;
        let mut learned = flight::Learned::default();
        if self.params.sack && !ack.sack.is_empty() {
            self.sacking = true;
            learned = self.flight.sack(ack.offset, self.next, &ack.sack);
        }
        if ack.offset > self.una {
            self.on_new(now, ack.offset, learned);
        } else if self.fine.is_some() {
            self.on_duplicate_as_vegas(now);
        } else if self.outstanding() > 0 && (same_window || !ack.sack.is_empty()) {
            self.on_duplicate(now, learned);
        }
        if self.watched {
            self.sample_delivery(now, ack, advanced);
            self.update_pace();
        }
        if self.linux.is_some() {
            self.after_ack_as_linux(now);
        }
        self.update_allowance();
    }

    /// What its receiver has told ([`crate::Reports`]): before the acknowledgment that carries it.
    pub fn on_note(&mut self, now: Time, note: &Note) {
        if self.stage != Stage::Open {
            return;
        }
        match *note {
            Note::Probe { number } => self.on_probe_answer(now, number),
            Note::Corrupted { offset } => self.corrupted = Some(offset),
            Note::Wave { .. } | Note::Gaps { .. } => self.control.on_note(&mut self.window, note),
        }
    }

    /// What the segment polled last carries for a receiver that reports.
    #[must_use]
    pub fn mark(&self) -> u32 {
        if self.control.marks_gaps() {
            return self.pace.as_ref().map_or(0, |pace| pace.gap());
        }
        self.probe_number().unwrap_or_else(|| self.control.mark())
    }

    /// The application has given so many bytes in all ([`SenderParams::fed`]).
    pub fn extend(&mut self, bytes: u64) {
        if self.params.fed {
            self.limit = self.limit.max(bytes);
        }
    }

    /// No new bytes from now on; what is outstanding is still repaired.
    pub fn stop(&mut self) {
        self.params.fed = false;
        self.limit = self.limit.min(self.next);
        if self.una == self.next {
            self.timer = None;
        }
    }

    /// The next segment to go out; does first what the timer asks for when its time has come.
    #[inline]
    pub fn poll(&mut self, now: Time) -> Option<Segment> {
        if self.is_window_limited(now) {
            self.cwnd_limited = true;
            self.validate();
            return None;
        }
        let segment = self.poll_any(now);
        match segment {
            Some(_) => self.usage.has_sent = true,
            None => self.validate(),
        }
        segment
    }

    /// All is sent that may be: whether the congestion window is used (`tcp_cwnd_validate` of Linux, RFC 7661 section 4.3). Who was
    /// held by it once in a round trip uses it.
    #[inline]
    fn validate(&mut self) {
        if !std::mem::take(&mut self.usage.has_sent) {
            return;
        }
        let (limited, outstanding) = (self.cwnd_limited, self.next - self.una);
        let usage = &mut self.usage;
        if limited || self.una >= usage.end || (!usage.limited && outstanding > usage.most) {
            *usage = Usage { limited, most: outstanding, end: self.next, has_sent: false };
        }
    }

    /// The congestion window is what holds it, or will in a round trip of slow start (`tcp_is_cwnd_limited`).
    fn uses_window(&self) -> bool {
        let half = self.window.cwnd * f64::from(self.params.mss) / 2.0;
        self.usage.limited || self.window.in_slow_start() && self.usage.most as f64 > half
    }

    /// Nothing is to be repaired and the congestion window is full: what every last `poll` after an acknowledgment finds,
    /// and what is therefore found out without a call.
    #[inline]
    fn is_window_limited(&self, now: Time) -> bool {
        let end = self.next + u64::from(self.params.mss);
        self.stage == Stage::Open
            && self.phase == Phase::Open
            && !self.resend_front
            && self.probing_segments == 0
            && self.paced_until.is_none()
            && self.timer.is_some_and(|timer| timer > now)
            && self.una < self.next
            && end <= self.right_edge
            && end <= self.limit
            && !self.has_room(self.params.mss)
    }

    #[inline(never)]
    fn poll_any(&mut self, now: Time) -> Option<Segment> {
        if self.is_done() {
            (self.timer, self.paced_until) = (None, None);
            return None;
        }
        let due = self.timer.is_some_and(|timer| timer <= now);
        if self.stage != Stage::Open {
            return self.poll_handshake(now, due);
        }
        if due && self.phase != Phase::Probing {
            if self.outstanding() > 0 {
                self.on_timeout(now);
            } else {
                self.probe_due = true;
                self.timer = None;
            }
        }
        self.cwnd_limited = false;
        if self.phase == Phase::Probing {
            return self.poll_probing(now);
        }
        if self.pace.is_some() && self.is_paced(now) {
            return None;
        }
        if let Some(probe) = self.poll_quic_probe(now) {
            return Some(probe);
        }
        let segment = self.poll_resend(now);
        if segment.is_some() || self.cwnd_limited {
            return segment;
        }
        self.poll_new(now).or_else(|| self.poll_probe(now))
    }

    /// The handshake is over.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.stage == Stage::Open
    }

    /// All of the stream, or of what was sent before it was stopped, is acknowledged.
    #[must_use]
    pub fn is_done(&self) -> bool {
        !self.params.fed && self.una >= self.limit && (self.stage == Stage::Open || self.limit == 0)
    }

    /// When `poll` has something to do without being told anything; none before the first `poll` and when done.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        match self.paced_until {
            None => self.timer,
            Some(at) => Some(self.timer.map_or(at, |timer| timer.min(at))),
        }
    }

    /// Congestion window, segments, without the inflation of fast recovery.
    #[must_use]
    pub const fn cwnd(&self) -> f64 {
        self.window.cwnd
    }

    /// What its law believes the path carries, payload.
    fn bandwidth(&self) -> Option<BitRate> {
        let segments = self.control.bandwidth()?;
        Some(BitRate::from_bps_f64(segments * f64::from(self.params.mss) * 8.0))
    }

    /// Where it stands.
    #[must_use]
    pub fn snapshot(&self) -> SenderSnapshot {
        SenderSnapshot {
            cwnd: self.window.cwnd,
            ssthresh: self.window.ssthresh,
            offered_window: self.right_edge.saturating_sub(self.una),
            inflight: self.flight.pipe(),
            outstanding: self.outstanding(),
            srtt: self.rtt.srtt(),
            rto: self.rtt.rto(),
            acked_bytes: self.una,
            bandwidth: self.bandwidth(),
            sent: self.counts.sent,
            retransmitted: self.counts.retransmitted,
            timeouts: self.counts.timeouts,
            fast_retransmits: self.counts.fast_retransmits,
            recovering: matches!(self.phase, Phase::Recovery { .. }),
        }
    }

    fn open(&mut self, now: Time, ack: &Ack, sent_at: Time, retries: u32) {
        self.stage = Stage::Open;
        self.timer = None;
        self.right_edge = ack.window_bytes;
        if retries > 1 {
            self.rtt.after_lost_syn();
            self.window.cwnd = 1.0;
            if self.params.conduct == Conduct::Ns2 {
                self.window.ssthresh = MIN_SSTHRESH;
            }
        } else {
            self.rtt.sample(now, sent_at);
        }
        let rtt = now.since(sent_at);
        if let Some(fine) = &mut self.fine {
            fine.on_open(rtt);
        }
        self.control.on_open(now, rtt, &mut self.window);
        self.update_pace();
        self.update_allowance();
    }

    fn on_new(&mut self, now: Time, offset: u64, sacked: flight::Learned) {
        if self.fine.is_some() {
            return self.on_new_as_vegas(now, offset);
        }
        let acked = offset - self.una;
        let in_order = self.flight.acknowledge(offset);
        self.una = offset;
        (self.timeouts_in_row, self.probing_segments) = (0, 0);
        // What waited behind a repaired hole tells of the repair, not of the path.
        let sent_at = if in_order.again || sacked.again { None } else { in_order.sent_at.max(sacked.sent_at) };
        let mss = u64::from(self.params.mss);
        let segments = if acked == mss { 1.0 } else { acked as f64 / mss as f64 };
        if self.watched {
            self.report_progress(now, sent_at);
        }
        let event = self.feedback(now, segments, sent_at);
        match self.phase {
            Phase::Recovery { partial } => self.on_new_in_recovery(&event, acked, partial),
            Phase::Probing => self.on_new_while_probing(now),
            Phase::Resending | Phase::Open => {
                self.dup_acks = 0;
                if self.phase == Phase::Resending && self.recover.is_none_or(|recover| offset >= recover) {
                    self.phase = Phase::Open;
                }
                self.control.on_ack(&mut self.window, &event);
                self.restart_timer(now);
                self.look_for_losses(now);
            }
        }
    }

    /// Tells the law, and measures the round trip of what was sent at `sent_at`.
    fn feedback(&mut self, now: Time, acked: f64, sent_at: Option<Time>) -> AckEvent {
        self.rtt.on_acked(now, self.una, sent_at);
        // Over what is sent again an ACK may tell of much that had arrived before (RFC 3465 section 2.3).
        let one_per_ack = self.phase == Phase::Resending || self.params.conduct == Conduct::Ns2;
        let event = AckEvent {
            now,
            acked,
            counted: if one_per_ack { acked.min(1.0) } else { acked },
            rtt: sent_at.map(|sent_at| now.since(sent_at)),
            srtt: self.rtt.srtt().unwrap_or_default(),
            cwnd_limited: self.uses_window() || (self.params.conduct == Conduct::Ns2 && self.linux.is_none()),
        };
        self.control.on_feedback(&self.window, &event);
        event
    }

    /// Whether the next segment has to wait for its time.
    #[inline(never)]
    fn is_paced(&mut self, now: Time) -> bool {
        let Some(pace) = &self.pace else { return false };
        let next = pace.next();
        self.paced_until = Some(next).filter(|next| *next > now);
        self.paced_until.is_some()
    }

    #[inline(never)]
    fn update_pace(&mut self) {
        let Some(pace) = &mut self.pace else { return };
        let of_window = |srtt: Span| GAIN * self.window.cwnd / srtt.as_secs_f64();
        let rate = self.control.pace().or_else(|| self.rtt.srtt().filter(|_| self.params.paced).map(of_window));
        pace.rate = rate.map(|segments| segments * f64::from(self.params.mss));
    }

    /// A segment with payload goes out.
    #[inline(never)]
    fn on_sent(&mut self, now: Time, segment: &Segment, outstanding: bool) {
        if let Some(delivery) = &mut self.delivery {
            delivery.on_sent(now, segment, outstanding);
        }
        if let Some(pace) = &mut self.pace {
            pace.on_sent(now, segment.bytes);
        }
    }

    /// Tells the law how far the sender is.
    #[inline(never)]
    fn report_progress(&mut self, now: Time, sent_at: Option<Time>) {
        let (una, mss) = (self.una, f64::from(self.params.mss));
        let next = if self.phase == Phase::Resending { una + self.flight.pipe() } else { self.next };
        let rtt = sent_at.map(|sent_at| now.since(sent_at));
        self.control.on_progress(&Progress { now, una, next, mss, rtt });
    }

    fn outstanding(&self) -> u64 {
        self.next - self.una
    }

    fn restart_timer(&mut self, now: Time) {
        self.timer = (self.outstanding() > 0).then(|| self.rtt.due(now));
    }
}
