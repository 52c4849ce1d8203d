//! One TCP connection of a scenario: its two ends, what their segments look like as packets, and its figures.

use lasthop_core::units::{Span, Time};
use lasthop_home::report::TcpReport;
use lasthop_home::scenario::Tcp;
use lasthop_tcp::{Ack, Aimd, Algorithm, Receiver, ReceiverParams, SackBlocks, Segment, Sender, SenderParams};

use crate::control;
use crate::packet::{Sacks, SimPacket, flag};

/// IPv4 and TCP headers without options, bytes.
const HEADERS: u32 = 40;

/// Options of a SYN, bytes: MSS, window scale, SACK permitted, padded.
const SYN_OPTIONS: u32 = 12;

/// What there is to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// There is always more.
    Endless,
    /// So many bytes.
    Bytes(u64),
    /// What it is given piece by piece.
    Fed,
}

/// See the module.
pub struct Connection {
    pub sender: Sender,
    pub receiver: Receiver,
    mss: u16,
    /// Of the windows that the receiver writes.
    scale: u8,
    /// Bits of [`flag`] that its data have: ECT when its ends understand congestion marks.
    flags: u32,
    cwnd: Cwnd,
    /// When the stretch that is being counted began.
    from: Totals,
    start_up: Option<TcpReport>,
}

impl Connection {
    /// Closed; the sender's first poll opens it. `ns2`: the sender has the habits of ns-2's agents. `flags`: bits of
    /// [`flag`] that all of its packets have.
    pub fn new(tcp: &Tcp, cc: Algorithm, ns2: bool, stream: Stream, flags: u32, now: Time) -> Self {
        let mss = tcp.mss.0 as u32;
        let window = tcp.window.map(|segments| u64::from(segments) * u64::from(mss));
        let receiver = Receiver::new(ReceiverParams {
            mss,
            sack: tcp.sack,
            delayed_ack: tcp.delayed_ack,
            window,
            ..ReceiverParams::default()
        });
        let habits = if ns2 { SenderParams::ns2(cc) } else { SenderParams { cc, ..SenderParams::default() } };
        let sender = Sender::new(SenderParams {
            mss,
            sack: tcp.sack,
            initial_window: tcp.initial_window,
            bytes: if let Stream::Bytes(bytes) = stream { Some(bytes) } else { None },
            fed: stream == Stream::Fed,
            aimd: Aimd { increase: tcp.aimd.0, decrease: tcp.aimd.1 },
            ..habits
        });
        Self {
            scale: receiver.window_scale(),
            sender,
            receiver,
            mss: mss as u16,
            flags: flags | flag::TCP | if tcp.ecn { flag::ECT } else { 0 },
            cwnd: Cwnd::new(now),
            from: Totals::default(),
            start_up: None,
        }
    }

    /// What the fast path has to know of it.
    pub const fn seen(&self) -> control::Connection {
        control::Connection { mss: self.mss, scale: self.scale }
    }

    /// The packet of a segment.
    pub fn data(&mut self, now: Time, flow: u32, segment: &Segment) -> SimPacket {
        let options = if segment.syn { SYN_OPTIONS } else { 0 };
        let mut flags = self.flags;
        flags |= if segment.syn { flag::SYN } else { 0 };
        flags |= if segment.fin { flag::FIN } else { 0 };
        if flags & flag::ECT != 0 {
            flags = self.with_marks(segment, flags);
        }
        SimPacket {
            sent: now,
            offset: segment.offset,
            flow,
            sack: Sacks::NONE,
            bytes: (HEADERS + options + segment.bytes) as u16,
            window: u16::MAX,
            flags,
        }
    }

    /// Only new data may be marked, and tell that the window was cut (RFC 3168 sections 6.1.4 and 6.1.5).
    #[cold]
    fn with_marks(&mut self, segment: &Segment, flags: u32) -> u32 {
        if segment.syn || segment.again || segment.bytes == 0 {
            return flags & !flag::ECT;
        }
        flags | if self.sender.take_cwr() { flag::CWR } else { 0 }
    }

    /// The segment of a packet that has arrived.
    pub fn segment(packet: &SimPacket) -> Segment {
        let syn = packet.has(flag::SYN);
        Segment {
            offset: packet.offset,
            bytes: if syn { 0 } else { u32::from(packet.bytes) - HEADERS },
            syn,
            fin: packet.has(flag::FIN),
            again: false,
        }
    }

    /// The packet of an acknowledgment. A window that the scale cannot express is rounded down.
    #[inline]
    pub fn ack(&self, now: Time, flow: u32, ack: &Ack, sacks: &mut Sacks) -> SimPacket {
        let blocks = ack.sack.as_slice().len() as u32;
        let options = match (ack.syn, blocks) {
            (true, _) => SYN_OPTIONS,
            (false, 0) => 0,
            // Two bytes of padding, kind, length, and eight bytes each.
            (false, n) => 4 + 8 * n,
        };
        let scale = if ack.syn { 0 } else { self.scale };
        SimPacket {
            sent: now,
            offset: ack.offset,
            flow,
            sack: sacks.keep(ack.sack),
            bytes: (HEADERS + options) as u16,
            window: (ack.window_bytes >> scale).min(u64::from(u16::MAX)) as u16,
            flags: self.ack_flags(ack.syn),
        }
    }

    #[inline]
    fn ack_flags(&self, syn: bool) -> u32 {
        let plain = self.flags | flag::BACK | if syn { flag::SYN } else { 0 };
        if plain & flag::ECT == 0 {
            return plain;
        }
        plain & !flag::ECT | if self.receiver.echoes() { flag::ECE } else { 0 }
    }

    /// The acknowledgment of a packet that has arrived.
    #[inline]
    pub fn acknowledgment(&self, packet: &SimPacket, sacks: &mut Sacks) -> Ack {
        let syn = packet.has(flag::SYN);
        let scale = if syn { 0 } else { self.scale };
        let window_bytes = u64::from(packet.window) << scale;
        let mut ack = Ack { offset: packet.offset, window_bytes, sack: SackBlocks::default(), syn };
        if packet.sack != Sacks::NONE {
            ack.sack = sacks.take(packet.sack);
        }
        ack
    }

    /// What the marks of a packet that has arrived tell its end; before the packet itself.
    #[inline]
    pub fn on_marks(&mut self, packet: &SimPacket) {
        if packet.has(flag::CE | flag::CWR | flag::ECE) {
            self.on_some_marks(packet);
        }
    }

    #[cold]
    fn on_some_marks(&mut self, packet: &SimPacket) {
        if packet.has(flag::BACK) {
            self.sender.on_congestion_echo();
        } else {
            self.receiver.on_marks(packet.has(flag::CE), packet.has(flag::CWR));
        }
    }

    /// After anything that may have moved the congestion window.
    pub fn note(&mut self, now: Time) {
        self.cwnd.note(now, self.sender.cwnd());
    }

    /// The start-up of the whole home begins: what came before counts nowhere.
    pub fn begin_start_up(&mut self, now: Time) {
        self.cwnd.restart(now);
        self.from = Totals::of(&self.sender);
    }

    /// The figures proper begin.
    pub fn begin_figures(&mut self, now: Time) {
        self.start_up = Some(self.finish(now));
        self.begin_start_up(now);
    }

    /// Figures of the start-up, if there was one, and of the stretch that ends at `now`.
    pub fn reports(&mut self, now: Time) -> (Option<TcpReport>, TcpReport) {
        (self.start_up, self.finish(now))
    }

    fn finish(&mut self, now: Time) -> TcpReport {
        let totals = Totals::of(&self.sender);
        let (cwnd_mean, cwnd_max) = self.cwnd.finish(now);
        TcpReport {
            acked_packets: (totals.acked_bytes - self.from.acked_bytes).div_ceil(u64::from(self.mss)),
            retransmitted: totals.retransmitted - self.from.retransmitted,
            timeouts: totals.timeouts - self.from.timeouts,
            fast_retransmits: totals.fast_retransmits - self.from.fast_retransmits,
            cwnd_max,
            cwnd_mean,
            srtt_ms: self.sender.snapshot().srtt.unwrap_or(Span::ZERO).as_millis_f64(),
            local_retransmitted: None,
        }
    }
}

/// Cumulative figures of a sender.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    acked_bytes: u64,
    retransmitted: u64,
    timeouts: u64,
    fast_retransmits: u64,
}

impl Totals {
    fn of(sender: &Sender) -> Self {
        let s = sender.snapshot();
        Self {
            acked_bytes: s.acked_bytes,
            retransmitted: s.retransmitted,
            timeouts: s.timeouts,
            fast_retransmits: s.fast_retransmits,
        }
    }
}

/// Mean over time and maximum of a congestion window, segments.
struct Cwnd {
    since: Time,
    changed: Time,
    now: f64,
    max: f64,
    /// Integral since `since`, segments x s.
    area: f64,
}

impl Cwnd {
    fn new(now: Time) -> Self {
        Self { since: now, changed: now, now: 0.0, max: 0.0, area: 0.0 }
    }

    fn note(&mut self, at: Time, cwnd: f64) {
        if cwnd == self.now {
            return;
        }
        self.area += self.now * at.since(self.changed).as_secs_f64();
        (self.changed, self.now) = (at, cwnd);
        self.max = self.max.max(cwnd);
    }

    fn restart(&mut self, at: Time) {
        *self = Self { since: at, changed: at, now: self.now, max: self.now, area: 0.0 };
    }

    fn finish(&mut self, at: Time) -> (f64, f64) {
        let area = self.area + self.now * at.since(self.changed).as_secs_f64();
        (area / at.since(self.since).as_secs_f64().max(1e-9), self.max)
    }
}
