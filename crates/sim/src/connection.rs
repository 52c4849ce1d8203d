//! One connection of a scenario, over TCP or over QUIC: its two ends, what they say as packets, and its figures.
//!
//! A QUIC connection is that of TCP within, with congestion control, SACK and delayed ACKs, and no window but its
//! sender's; on the outside both ends send UDP ([`Dress`]). Differs from RFC 9000: three ranges of an ACK are seen as in
//! TCP, not all of them; a packet that is sent again has its old number; nothing of the handshake but its round trip.

use lasthop_core::units::{Bytes, Span, Time};
use lasthop_home::report::TcpReport;
use lasthop_home::scenario::{Quic, Tcp};
use lasthop_tcp::{
    Ack, Aimd, Algorithm, Conduct, Receiver, ReceiverParams, Reports, SackBlocks, Segment, Sender, SenderParams,
};

use crate::numbers;
use crate::packet::{Position, Sacks, SimPacket, flag};

/// IPv4 and TCP headers without options, bytes.
const HEADERS: u32 = 40;

/// A note in an acknowledgment: padding, kind, length, and eight bytes. A mark takes no room: it is one of the fields that data
/// of a stream one way leave unused.
const NOTE_OPTION: u16 = 12;

/// Options of a SYN, bytes: MSS, window scale, SACK permitted, padded.
const SYN_OPTIONS: u32 = 12;

/// How long a receiver that has closed its way waits for the acknowledgment of its FIN.
const CLOSE_AGAIN: Span = Span::from_secs(1);

/// What packets look like that are not TCP's, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dress {
    /// A packet that opens the connection, and the answer to it.
    open: u16,
    /// Of a packet with data, all but its payload.
    headers: u32,
    /// An acknowledgment.
    ack: u16,
    /// Each further range of it.
    range: u16,
}

impl Dress {
    /// Largest payload of a datagram over UDP where the path's is not searched for (RFC 9000 section 14).
    const DATAGRAM: u32 = 1200;

    /// RFC 9000: IPv4 20 and UDP 8; a short header 11 (flags 1, connection id 8, packet number 2) and the AEAD's tag 16; a
    /// STREAM frame's header 9 (type 1, stream 1, offset 5, length 2), or an ACK frame 7 (type 1, largest 2, delay 2, count 1,
    /// range 1) with 4 for each gap and further range. Datagrams with Initial packets are full at both ends (section 14.1).
    pub const QUIC: Self = Self { open: 28 + Self::DATAGRAM as u16, headers: 28 + 27 + 9, ack: 28 + 27 + 7, range: 4 };

    /// The TCP within a QUIC connection.
    pub fn beneath_quic(quic: &Quic) -> Tcp {
        let mss = Self::DATAGRAM + 28 - Self::QUIC.headers;
        Tcp {
            cc: quic.cc,
            aimd: (0.0, 0.0),
            loss_discrimination: None,
            half_close: false,
            sack: true,
            ecn: quic.ecn,
            delayed_ack: true,
            initial_window: quic.initial_window,
            // Near the most that a scaled window can say: never what holds the sender back.
            window: Some(700_000),
            mss: Bytes(u64::from(mss)),
        }
    }
}

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
    /// Bytes of a packet of data beside its payload; none where ns-2's Vegas is followed, which adds them to no packet.
    headers: u32,
    /// Of the windows that the receiver writes.
    scale: u8,
    /// `None`: as TCP.
    dress: Option<Dress>,
    /// When the newest acknowledgment that came was sent, as [`SimPacket::stamp`]; data carry it back.
    echo: u32,
    /// Bits of [`flag`] that its data have: ECT when its ends understand congestion marks, NOTE when its receiver reports.
    flags: u32,
    /// Payload of a request of its receiver; 0: it makes none.
    request: u16,
    /// How often its receiver has spoken itself ([`Position`]), and how many of these its sender has heard.
    turns: u32,
    heard: u32,
    /// The receiver closes its own direction with its first acknowledgments, and with one from then on unless its sender has heard.
    closes: Option<Time>,
    cwnd: Cwnd,
    /// When the stretch that is being counted began.
    from: Totals,
    start_up: Option<TcpReport>,
}

impl Connection {
    /// Closed; the sender's first poll opens it. `conduct`: how the sender repairs losses. `flags`: bits of
    /// [`flag`] that all of its packets have.
    pub fn new(tcp: &Tcp, cc: Algorithm, conduct: Conduct, stream: Stream, flags: u32, now: Time) -> Self {
        let mss = tcp.mss.0 as u32;
        let window = tcp.window.map(|segments| u64::from(segments) * u64::from(mss));
        let reports = if tcp.loss_discrimination.is_some() { Reports::Losses } else { cc.reports() };
        let receiver = Receiver::new(ReceiverParams {
            mss,
            sack: tcp.sack,
            delayed_ack: tcp.delayed_ack,
            window,
            reports,
            ..ReceiverParams::default()
        });
        let ns2 = conduct == Conduct::Ns2;
        let habits = if ns2 {
            SenderParams::ns2(cc)
        } else {
            SenderParams { cc, conduct, paced: conduct == Conduct::Quic, ..SenderParams::default() }
        };
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
            headers: if ns2 && cc == Algorithm::Vegas { 0 } else { HEADERS },
            dress: None,
            echo: Sacks::NONE,
            flags: flags
                | flag::TCP
                | if tcp.ecn { flag::ECT } else { 0 }
                | if reports == Reports::Nothing { 0 } else { flag::NOTE },
            request: 0,
            turns: 0,
            heard: 0,
            closes: tcp.half_close.then_some(now),
            cwnd: Cwnd::new(now),
            from: Totals::default(),
            start_up: None,
        }
    }

    /// This connection with packets that are not TCP's.
    pub fn dressed(mut self, dress: Dress) -> Self {
        (self.headers, self.dress) = (dress.headers, Some(dress));
        self.flags &= !flag::TCP;
        self
    }

    /// This connection with a receiver that makes requests of so many bytes.
    pub const fn asking(mut self, request: u16) -> Self {
        self.request = request;
        self
    }

    /// What the fast path has to know of it, where its packets are TCP's.
    pub const fn seen(&self) -> numbers::Connection {
        numbers::Connection { mss: self.mss, scale: self.scale, headers: self.headers as u8, turn: self.turn() }
    }

    /// What a turn of its receiver takes up in sequence numbers.
    const fn turn(&self) -> u16 {
        if self.closes.is_some() { 1 } else { self.request }
    }

    /// Its receiver has made `n` requests: what it sends from here on says so.
    pub const fn on_asked(&mut self, n: u32) {
        self.turns = n;
    }

    /// The newest request of its receiver, which acknowledges what has come.
    pub fn request(&mut self, now: Time, flow: u32, sacks: &mut Sacks) -> SimPacket {
        let ack = self.receiver.acknowledge(now);
        let ack = Ack { sack: SackBlocks::default(), ..ack };
        let mut packet = self.ack(now, flow, &ack, sacks);
        packet.bytes += self.request;
        packet.flags |= flag::ASK;
        packet
    }

    /// The sender's acknowledgment of a request that it has not answered yet.
    pub fn heard(&self, now: Time, flow: u32) -> SimPacket {
        let sent = self.sender.snapshot();
        SimPacket {
            sent: now,
            position: Position::new(sent.acked_bytes + sent.outstanding, self.heard),
            flow,
            sack: self.echo,
            bytes: HEADERS as u16,
            window: u16::MAX,
            flags: self.flags & !(flag::ECT | flag::NOTE) | flag::ASK,
        }
    }

    /// A request has come: what the sender sends from here on says so.
    pub const fn on_request(&mut self, n: u32) {
        self.heard = n;
    }

    /// The packet of a segment.
    pub fn data(&mut self, now: Time, flow: u32, segment: &Segment) -> SimPacket {
        let headers = if segment.syn { self.opening() } else { self.headers };
        let mut flags = self.flags;
        flags |= if segment.syn { flag::SYN } else { 0 };
        flags |= if segment.fin { flag::FIN } else { 0 };
        let mut sack = self.echo;
        if flags & (flag::ECT | flag::NOTE) != 0 {
            (flags, sack) = self.with_marks(segment, flags);
        }
        SimPacket {
            sent: now,
            position: Position::new(segment.offset, self.heard),
            flow,
            sack,
            bytes: (headers + segment.bytes).max(1) as u16,
            window: u16::MAX,
            flags,
        }
    }

    /// IP bytes of the packet that opens the connection.
    fn opening(&self) -> u32 {
        self.dress.map_or(HEADERS + SYN_OPTIONS, |dress| u32::from(dress.open))
    }

    /// Only new data may be marked, and tell that the window was cut (RFC 3168 sections 6.1.4 and 6.1.5). The mark for a
    /// receiver that reports stands in the place of blocks, which data have not.
    #[cold]
    fn with_marks(&mut self, segment: &Segment, flags: u32) -> (u32, u32) {
        let mark = if flags & flag::NOTE != 0 { self.sender.mark() } else { self.echo };
        if flags & flag::ECT == 0 {
            return (flags, mark);
        }
        if segment.syn || segment.again || segment.bytes == 0 {
            return (flags & !flag::ECT, mark);
        }
        (flags | if self.sender.take_cwr() { flag::CWR } else { 0 }, mark)
    }

    /// The segment of a packet that has arrived.
    pub fn segment(&self, packet: &SimPacket) -> Segment {
        let syn = packet.has(flag::SYN);
        Segment {
            offset: packet.position.offset(),
            bytes: if syn { 0 } else { u32::from(packet.bytes) - self.headers },
            syn,
            fin: packet.has(flag::FIN),
            again: false,
        }
    }

    /// The packet of an acknowledgment. A window that the scale cannot express is rounded down.
    #[inline]
    pub fn ack(&mut self, now: Time, flow: u32, ack: &Ack, sacks: &mut Sacks) -> SimPacket {
        let blocks = ack.sack.as_slice().len() as u32;
        let options = match (ack.syn, blocks) {
            (true, _) => SYN_OPTIONS,
            (false, 0) => 0,
            // Two bytes of padding, kind, length, and eight bytes each.
            (false, n) => 4 + 8 * n,
        };
        let scale = if ack.syn { 0 } else { self.scale };
        let mut packet = SimPacket {
            sent: now,
            position: Position::new(ack.offset, self.turns),
            flow,
            sack: Sacks::NONE,
            bytes: (HEADERS + options) as u16,
            window: (ack.window_bytes >> scale).min(u64::from(u16::MAX)) as u16,
            flags: self.ack_flags(ack.syn),
        };
        if self.closes.is_some() && !ack.syn {
            self.close(now, &mut packet);
        }
        if let Some(dress) = &self.dress {
            packet.bytes = if ack.syn { dress.open } else { dress.ack + dress.range * blocks as u16 };
        }
        if packet.has(flag::NOTE) {
            self.add_note(&mut packet, ack.sack, sacks);
        } else {
            packet.sack = sacks.keep(ack.sack);
        }
        packet
    }

    /// The receiver's FIN goes with its first acknowledgments, and again after a while (RFC 6298 section 2).
    #[cold]
    fn close(&mut self, now: Time, packet: &mut SimPacket) {
        let again = self.closes.is_some_and(|at| at <= now);
        if again || packet.position.offset() <= 2 * u64::from(self.mss) {
            packet.flags |= flag::FIN;
            self.turns = 1;
            self.closes = self.closes.map(|at| at.max(now + CLOSE_AGAIN));
        }
        packet.position = Position::new(packet.position.offset(), self.turns);
    }

    #[cold]
    fn add_note(&self, packet: &mut SimPacket, blocks: SackBlocks, sacks: &mut Sacks) {
        let note = self.receiver.note();
        packet.bytes += if note.is_some() { NOTE_OPTION } else { 0 };
        packet.flags &= if note.is_some() { !0 } else { !flag::NOTE };
        packet.sack = match note {
            None => sacks.keep(blocks),
            note => sacks.keep_with(blocks, note),
        };
    }

    #[inline]
    fn ack_flags(&self, syn: bool) -> u32 {
        let mut plain = self.flags | flag::BACK | if syn { flag::SYN } else { 0 };
        plain |= if self.receiver.is_finished() { flag::ALL } else { 0 };
        if plain & flag::ECT == 0 {
            return plain;
        }
        plain & !flag::ECT | if self.receiver.echoes() { flag::ECE } else { 0 }
    }

    /// The acknowledgment of a packet that has arrived.
    #[inline]
    pub fn acknowledgment(&mut self, packet: &SimPacket, sacks: &mut Sacks) -> Ack {
        self.echo = packet.stamp();
        let syn = packet.has(flag::SYN);
        let scale = if syn { 0 } else { self.scale };
        let window_bytes = u64::from(packet.window) << scale;
        let mut ack = Ack { offset: packet.position.offset(), window_bytes, sack: SackBlocks::default(), syn };
        if packet.sack != Sacks::NONE {
            ack.sack = sacks.take(packet.sack);
        }
        ack
    }

    /// What the marks and the note of a packet that has arrived tell its end; before the packet itself.
    #[inline]
    pub fn on_marks(&mut self, now: Time, packet: &SimPacket, sacks: &Sacks) {
        if packet.has(flag::CE | flag::CWR | flag::ECE | flag::NOTE) || self.closes.is_some() {
            self.on_some_marks(now, packet, sacks);
        }
    }

    #[cold]
    fn on_some_marks(&mut self, now: Time, packet: &SimPacket, sacks: &Sacks) {
        if packet.has(flag::BACK) {
            if packet.has(flag::FIN) {
                self.heard = packet.position.turns();
            }
            if packet.has(flag::ECE) {
                self.sender.on_congestion_echo();
            }
            if let Some(note) = sacks.note(packet.sack) {
                self.sender.on_note(now, &note);
            }
            return;
        }
        if self.closes.is_some() && self.turns > 0 && packet.position.turns() == self.turns {
            self.closes = Some(Time::MAX);
        }
        if packet.has(flag::NOTE) {
            self.receiver.on_mark(packet.sack);
        }
        if packet.has(flag::CE | flag::CWR) {
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
    pub fn begin_metrics(&mut self, now: Time) {
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

#[cfg(test)]
mod tests {
    use lasthop_core::units::Bytes;
    use lasthop_home::scenario::{CongestionControl, Tcp};
    use lasthop_tcp::Note;

    use super::*;

    fn connection(algorithm: Algorithm) -> Connection {
        let tcp = Tcp {
            cc: CongestionControl::Reno,
            aimd: (1.0, 0.5),
            loss_discrimination: None,
            half_close: false,
            sack: true,
            ecn: false,
            delayed_ack: false,
            initial_window: 4,
            window: None,
            mss: Bytes(1000),
        };
        Connection::new(&tcp, algorithm, Conduct::Rfc, Stream::Endless, 0, Time::ZERO)
    }

    /// What the ends say to each other until the sender is silent, a millisecond per segment; the acknowledgments.
    fn round(connection: &mut Connection, sacks: &mut Sacks, now: &mut Time) -> Vec<SimPacket> {
        let mut acks = Vec::new();
        let segments: Vec<_> = std::iter::from_fn(|| connection.sender.poll(*now)).collect();
        for segment in segments {
            let data = connection.data(*now, 0, &segment);
            *now += Span::from_millis(1);
            connection.on_marks(*now, &data, sacks);
            let segment = connection.segment(&data);
            connection.receiver.on_segment(*now, &segment);
            while let Some(ack) = connection.receiver.poll(*now) {
                acks.push(connection.ack(*now, 0, &ack, sacks));
            }
        }
        for ack in &acks {
            connection.on_marks(*now, ack, sacks);
            let ack = connection.acknowledgment(ack, sacks);
            connection.sender.on_ack(*now, &ack);
        }
        acks
    }

    /// A segment of 1000 B per millisecond is 1 MB/s, told with the first segment of the next wave and not before.
    #[test]
    fn a_note_goes_with_its_acknowledgment_and_leaves_others_as_they_are() {
        for (algorithm, notes) in [(Algorithm::Real, true), (Algorithm::Reno, false)] {
            let (mut connection, mut sacks, mut now) = (connection(algorithm), Sacks::default(), Time::ZERO);
            let syn = round(&mut connection, &mut sacks, &mut now);
            let first = round(&mut connection, &mut sacks, &mut now);
            let second = round(&mut connection, &mut sacks, &mut now);
            assert_eq!((syn.len(), first.len(), second.len()), (1, 4, 8));
            assert!(syn.iter().chain(&first).all(|ack| !ack.has(flag::NOTE) && ack.sack == Sacks::NONE));
            assert!(second.iter().all(|ack| ack.has(flag::NOTE) == notes && ack.bytes == if notes { 52 } else { 40 }));
            let found = second.last().and_then(|ack| sacks.note(ack.sack));
            assert_eq!(found, notes.then_some(Note::Wave { wave: 0, rate: 1_000_000 }));
        }
    }
}
