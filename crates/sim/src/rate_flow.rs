//! One flow over a rate-controlled transport: its two ends, what they look like as packets, and its figures.
//!
//! Packets are small and have no room for what a datagram and a report say. A datagram says the round trip as its sender
//! knows it, which changes with reports only: the changes are kept here until a datagram behind them arrives. Of reports,
//! those in flight are kept.

use std::collections::VecDeque;

use lasthop_core::units::{Span, Time};
use lasthop_home::report::RateReport;
use lasthop_home::scenario::Tcp;
use lasthop_tcp::{Aimd, Datagram, RateLaw, RateParams, RateReceiver, RateReceiverParams, RateSender, Report};

use crate::connection::Stream;
use crate::packet::{Position, Sacks, SimPacket, flag};

/// IPv4, UDP, and number, time and round trip of the datagram, bytes: as many as TCP's.
const HEADERS: u32 = 40;
/// IPv4, UDP, and time, delay, receive rate and loss event rate of the report, bytes.
const REPORT_BYTES: u16 = 44;

/// See the module.
pub struct RateFlow {
    pub sender: RateSender,
    pub receiver: RateReceiver,
    /// Bits of [`flag`] that its data have.
    flags: u32,
    /// From which datagram on the sender's round trip is which.
    round_trips: VecDeque<(u64, Span)>,
    /// Reports in flight, by number.
    reports: VecDeque<(u64, Report)>,
    next_report: u64,
    allowed: Mean,
    /// When the stretch that is being counted began.
    from: Totals,
    start_up: Option<RateReport>,
}

impl RateFlow {
    /// Before its first datagram. `flags`: bits of [`flag`] that all of its packets have.
    pub fn new(tcp: &Tcp, law: RateLaw, stream: Stream, flags: u32, now: Time) -> Self {
        let sender = RateSender::new(RateParams {
            law,
            aimd: Aimd { increase: tcp.aimd.0, decrease: tcp.aimd.1 },
            mss: tcp.mss.0 as u32,
            bytes: if let Stream::Bytes(bytes) = stream { Some(bytes) } else { None },
            fed: stream == Stream::Fed,
        });
        Self {
            sender,
            receiver: RateReceiver::new(RateReceiverParams { discriminate: tcp.loss_discrimination.is_some() }),
            flags: flags | if tcp.ecn { flag::ECT } else { 0 },
            round_trips: VecDeque::new(),
            reports: VecDeque::new(),
            next_report: 0,
            allowed: Mean::new(now),
            from: Totals::default(),
            start_up: None,
        }
    }

    /// The packet of a datagram that goes out now.
    pub fn data(&mut self, now: Time, flow: u32, datagram: &Datagram) -> SimPacket {
        if self.round_trips.back().is_none_or(|(_, rtt)| *rtt != datagram.rtt) {
            self.round_trips.push_back((datagram.sequence, datagram.rtt));
        }
        SimPacket {
            sent: now,
            position: Position::new(datagram.sequence, 0),
            flow,
            sack: Sacks::NONE,
            bytes: (HEADERS + datagram.bytes) as u16,
            window: 0,
            flags: self.flags,
        }
    }

    /// The datagram of a packet that has arrived.
    pub fn datagram(&mut self, packet: &SimPacket) -> Datagram {
        while self.round_trips.get(1).is_some_and(|(from, _)| *from <= packet.position.offset()) {
            self.round_trips.pop_front();
        }
        let rtt = self.round_trips.front().map_or(Span::ZERO, |(_, rtt)| *rtt);
        let bytes = u32::from(packet.bytes) - HEADERS;
        Datagram { sequence: packet.position.offset(), bytes, sent: packet.sent, rtt }
    }

    /// The packet of a report that goes out now.
    pub fn report(&mut self, now: Time, flow: u32, report: Report) -> SimPacket {
        self.reports.push_back((self.next_report, report));
        self.next_report += 1;
        SimPacket {
            sent: now,
            position: Position::new(self.next_report - 1, 0),
            flow,
            sack: Sacks::NONE,
            bytes: REPORT_BYTES,
            window: 0,
            flags: self.flags & !flag::ECT | flag::BACK,
        }
    }

    /// The report of a packet that has arrived; none when a newer one came before it.
    pub fn reported(&mut self, packet: &SimPacket) -> Option<Report> {
        while let Some((number, report)) = self.reports.pop_front() {
            if number == packet.position.offset() {
                return Some(report);
            }
            if number > packet.position.offset() {
                self.reports.push_front((number, report));
                return None;
            }
        }
        None
    }

    /// After anything that may have moved the rate.
    pub fn note(&mut self, now: Time) {
        self.allowed.note(now, self.sender.snapshot().rate * 8.0);
    }

    /// The start-up of the whole home begins: what came before counts nowhere.
    pub fn begin_start_up(&mut self, now: Time) {
        self.allowed.restart(now);
        self.from = self.totals();
    }

    /// The figures proper begin.
    pub fn begin_metrics(&mut self, now: Time) {
        self.start_up = Some(self.finish(now));
        self.begin_start_up(now);
    }

    /// Figures of the start-up, if there was one, and of the stretch that ends at `now`.
    pub fn reports(&self, now: Time) -> (Option<RateReport>, RateReport) {
        (self.start_up, self.finish(now))
    }

    fn finish(&self, now: Time) -> RateReport {
        let (sender, totals) = (self.sender.snapshot(), self.totals());
        RateReport {
            allowed_bps: self.allowed.finish(now),
            loss_events: totals.loss_events - self.from.loss_events,
            loss_event_rate: sender.loss_event_rate,
            silences: totals.silences - self.from.silences,
            srtt_ms: sender.rtt.unwrap_or(Span::ZERO).as_millis_f64(),
        }
    }

    fn totals(&self) -> Totals {
        Totals { loss_events: self.receiver.loss_events(), silences: self.sender.snapshot().silences }
    }
}

/// Cumulative figures.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    loss_events: u64,
    silences: u64,
}

/// Mean over time.
struct Mean {
    since: Time,
    changed: Time,
    now: f64,
    /// Integral since `since`.
    area: f64,
}

impl Mean {
    fn new(now: Time) -> Self {
        Self { since: now, changed: now, now: 0.0, area: 0.0 }
    }

    fn note(&mut self, at: Time, value: f64) {
        self.area += self.now * at.since(self.changed).as_secs_f64();
        (self.changed, self.now) = (at, value);
    }

    fn restart(&mut self, at: Time) {
        *self = Self { since: at, changed: at, now: self.now, area: 0.0 };
    }

    fn finish(&self, at: Time) -> f64 {
        let area = self.area + self.now * at.since(self.changed).as_secs_f64();
        area / at.since(self.since).as_secs_f64().max(1e-9)
    }
}
