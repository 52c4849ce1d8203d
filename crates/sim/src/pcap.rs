//! A capture of the channel for Wireshark: every frame that was sent, as a monitor beside the access point hears it.
//!
//! pcap with nanoseconds (magic 0xa1b23c4d, link type 127): radiotap, 802.11, LLC/SNAP, IPv4, UDP or TCP. Virtual time 0
//! is 1970-01-01 00:00:00, so that a frame's time is the time of the run; it is that of the frame's first bit. Payload
//! is never there, for the simulator moves none: a record ends with the last header and its length is the true one.
//! Radiotap says that no FCS is there, and lengths count none.
//!
//! | layer | what stands there |
//! |---|---|
//! | radiotap | TSFT, flags (short preamble), rate or the mode of n, ac, ax, channel 1 or 36 with the modulation, data retries; of an MPDU in an A-MPDU its frame's number |
//! | 802.11 | to-DS or from-DS, addresses of [`lasthop_home::address`], retry, sequence number per sender, NAV |
//! | IPv4 | a count per capture as identification, TTL 64 less one behind the access point, checksum |
//! | UDP, TCP | port of the flow at both ends; TCP sequence numbers of [`crate::numbers`]; MSS, window scale and SACK permitted in SYNs, SACK blocks; checksum over a payload of zeros |
//!
//! Sources: pcap-savefile(5), radiotap.org, IEEE 802.11-2016 clause 9.
//! Frames that were lost or collided are there like all others: they were on the channel. Every MPDU of an A-MPDU is a frame of its own at the
//! time of the first one; a repeated MPDU has the sequence number of the sender's newest. A block ack ends with its addresses, and block ack
//! requests are not there.

mod dot11;
mod ip;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

use lasthop_core::units::{Span, Time};
use lasthop_home::address::FIRST_PORT;
use lasthop_home::scenario::{Flow, HostId, Scenario};
use lasthop_medium::phy::Phy;
use lasthop_medium::{Frame, NodeId, Rate};
use lasthop_tcp::SackBlocks;

use crate::numbers;
use crate::packet::SimPacket;

/// `LINKTYPE_IEEE802_11_RADIOTAP`.
const RADIOTAP: u32 = 127;
/// Time and lengths before a record.
const RECORD_BYTES: usize = 16;
/// Most bytes of a record: radiotap 44, 802.11 26, LLC 8, IPv4 20, TCP 60.
const SNAP: u32 = 256;

/// One attempt of the medium at a packet.
type Attempt = lasthop_medium::Attempt<SimPacket>;

/// What a capture says of a flow's two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Where its data starts.
    pub from: HostId,
    /// Where its data ends.
    pub to: HostId,
    /// At both ends.
    pub port: u16,
    /// TCP: what both SYNs say of segments, bytes.
    pub mss: u16,
    /// TCP: whether both SYNs permit SACK.
    pub sack: bool,
    /// TCP: window scale of the receiver's SYN; the sender's own is 0.
    pub window_scale: u8,
    /// TCP: see [`numbers::Connection::turn`].
    pub turn: u16,
}

impl Ends {
    /// Of every flow of `scenario`, in its order. `seen`: what has to be known of a flow's connection.
    #[must_use]
    pub fn of(scenario: &Scenario, seen: impl Fn(usize) -> Option<numbers::Connection>) -> Vec<Self> {
        let ends = |(i, flow): (usize, &Flow)| {
            let (mss, sack) = flow.transport().map_or((0, false), |tcp| (tcp.mss.0 as u16, tcp.sack));
            // Beyond the last port the first comes again.
            let port = FIRST_PORT + (i % usize::from(u16::MAX - FIRST_PORT)) as u16;
            let (window_scale, turn) = seen(i).map_or((0, 0), |connection| (connection.scale, connection.turn));
            Self { from: flow.from, to: flow.to, port, mss, sack, window_scale, turn }
        };
        scenario.flows.iter().enumerate().map(ends).collect()
    }
}

/// A frame as it is written.
struct ChannelFrame<'a> {
    from: HostId,
    to: HostId,
    sent: Frame,
    /// How long others keep silent after it.
    nav: Span,
    kind: Kind<'a>,
}

enum Kind<'a> {
    /// Carries the packet of the attempt, and its SACK blocks.
    Data(&'a Attempt, SackBlocks),
    Ack,
    /// Of so many bytes.
    BlockAck(u32),
    Rts,
    Cts,
}

/// What is kept of a sender.
#[derive(Clone, Copy, Debug, Default)]
struct Sender {
    /// 802.11 sequence number of the packet it is at, 12 bits.
    sequence: u16,
    /// Attempts at it before this one.
    retries: u8,
    /// Of the last data frame.
    rate: Option<Rate>,
}

/// Writes a capture. One per run.
pub struct Capture<'a> {
    out: &'a mut dyn Write,
    phy: Phy,
    flows: Vec<Ends>,
    /// The access point, then the stations.
    senders: Vec<Sender>,
    /// Identification of the newest packet.
    identification: u16,
    record: Vec<u8>,
}

impl<'a> Capture<'a> {
    /// Writes the head of the file. `flows` in the order of the scenario.
    ///
    /// # Errors
    /// The write's.
    pub fn new(out: &'a mut dyn Write, phy: Phy, flows: Vec<Ends>) -> io::Result<Self> {
        let mut head = Vec::with_capacity(24);
        for word in [0xa1b2_3c4d, 4 << 16 | 2, 0, 0, SNAP, RADIOTAP] {
            head.extend(u32::to_le_bytes(word));
        }
        out.write_all(&head)?;
        let record = Vec::with_capacity(SNAP as usize);
        Ok(Self { out, phy, flows, senders: Vec::new(), identification: 0, record })
    }

    /// Writes the frames of an attempt at a packet with these SACK blocks. Attempts come in the order in which they began; frames of attempts that
    /// collided stand in the order of the attempts.
    ///
    /// # Errors
    /// The write's.
    pub fn attempt(&mut self, attempt: &Attempt, sacks: SackBlocks) -> io::Result<()> {
        let Attempt { rts, cts, cts_to_self, data, ack, .. } = *attempt;
        let (from, to) = (host(attempt.from), host(attempt.to));
        let sender = self.begin(attempt);
        let nav_end = self.nav_end(attempt, sender.rate);
        let until_end = |sent: Frame| nav_end.since(sent.end());
        let frames = [
            rts.map(|sent| ChannelFrame { from, to, sent, nav: until_end(sent), kind: Kind::Rts }),
            cts.map(|sent| ChannelFrame { from: to, to: from, sent, nav: until_end(sent), kind: Kind::Cts }),
            cts_to_self.map(|sent| ChannelFrame { from, to: from, sent, nav: until_end(sent), kind: Kind::Cts }),
            data.map(|sent| ChannelFrame { from, to, sent, nav: until_end(sent), kind: Kind::Data(attempt, sacks) }),
            ack.map(|sent| ChannelFrame {
                from: to,
                to: from,
                sent,
                nav: Span::ZERO,
                kind: self.answer(attempt, sent),
            }),
        ];
        frames.iter().flatten().try_for_each(|frame| self.write(frame, sender))
    }

    /// What answers: of an aggregate a block ack, whose length tells which.
    fn answer(&self, attempt: &Attempt, sent: Frame) -> Kind<'static> {
        if attempt.aggregate.is_none() {
            return Kind::Ack;
        }
        let [short, long] = dot11::BLOCK_ACK_BYTES;
        Kind::BlockAck(if sent.duration > self.phy.duration(sent.rate, short) { long } else { short })
    }

    /// Counts a packet or an attempt at it.
    fn begin(&mut self, attempt: &Attempt) -> Sender {
        let number = usize::from(attempt.from.0);
        if self.senders.len() <= number {
            self.senders.resize(number + 1, Sender::default());
        }
        let sender = &mut self.senders[number];
        sender.rate = attempt.data.map(|data| data.rate).or(sender.rate);
        if attempt.is_retry {
            sender.retries = sender.retries.saturating_add(1);
        } else {
            sender.sequence = (sender.sequence + 1) & 0xfff;
            sender.retries = 0;
            self.identification = self.identification.wrapping_add(1);
        }
        *sender
    }

    /// When the exchange would be over: what RTS and CTS announce, also where no data followed. The data's rate is then
    /// that of the sender's last.
    fn nav_end(&self, attempt: &Attempt, last: Option<Rate>) -> Time {
        let phy = &self.phy;
        let answer = |rate: Rate| match attempt.aggregate {
            Some(_) => phy.duration(phy.control(rate), dot11::BLOCK_ACK_BYTES[0]),
            None => phy.answer(rate),
        };
        let after = |data_end: Time, rate: Rate| data_end + phy.sifs() + answer(rate);
        match (attempt.data, attempt.rts) {
            (Some(data), _) => after(data.end(), data.rate),
            (None, Some(rts)) => {
                let rate = last.unwrap_or(rts.rate);
                let cts_end = rts.end() + phy.sifs() + phy.answer(rate);
                after(cts_end + phy.sifs() + phy.data(rate, u32::from(attempt.packet.bytes)), rate)
            }
            (None, None) => Time::ZERO,
        }
    }

    fn write(&mut self, frame: &ChannelFrame<'_>, sender: Sender) -> io::Result<()> {
        let record = &mut self.record;
        record.clear();
        record.extend([0; RECORD_BYTES]);
        let retries = matches!(frame.kind, Kind::Data(..)).then_some(sender.retries);
        let (aggregate, class) = match frame.kind {
            Kind::Data(attempt, _) => (attempt.aggregate, attempt.class),
            _ => (None, None),
        };
        let radiotap = dot11::radiotap(record, &self.phy, frame.sent, retries, aggregate);
        let on_channel = match frame.kind {
            Kind::Ack | Kind::BlockAck(_) | Kind::Cts | Kind::Rts => dot11::control(record, frame),
            Kind::Data(Attempt { packet, .. }, ref sacks) => {
                let header = dot11::data(record, frame, sender, class);
                let Some(ends) = self.flows.get(packet.flow as usize) else { return Ok(()) };
                let identification = self.identification;
                header + ip::Packet { ends, packet, sacks, identification, sender: frame.from }.write(record)
            }
        };
        let captured = (record.len() - RECORD_BYTES) as u32;
        let ns = frame.sent.start.as_nanos();
        let words = [(ns / 1_000_000_000) as u32, (ns % 1_000_000_000) as u32, captured, radiotap + on_channel];
        for (word, place) in words.iter().zip(record.chunks_exact_mut(4)) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        self.out.write_all(record)
    }
}

fn host(node: NodeId) -> HostId {
    node.0.checked_sub(1).map_or(HostId::AccessPoint, |station| HostId::Station(usize::from(station)))
}
