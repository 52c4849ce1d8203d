//! A capture of the air for Wireshark: every frame that was sent, as a monitor beside the access point hears it.
//!
//! pcap with nanoseconds (magic 0xa1b23c4d, link type 127): radiotap, 802.11, LLC/SNAP, IPv4, UDP or TCP. Virtual time 0
//! is 1970-01-01 00:00:00, so that a frame's time is the time of the run; it is that of the frame's first bit. Payload
//! is never there, for the simulator moves none: a record ends with the last header and its length is the true one.
//! Radiotap says that no FCS is there, and lengths count none.
//!
//! | layer | what stands there |
//! |---|---|
//! | radiotap | TSFT, flags (short preamble), rate, channel 1 with the modulation, data retries |
//! | 802.11 | to-DS or from-DS, addresses of [`lasthop_home::address`], retry, sequence number per sender, NAV |
//! | IPv4 | a count per capture as identification, TTL 64 less one behind the access point, checksum |
//! | UDP, TCP | port of the flow at both ends; TCP sequence numbers from 0 (the SYN), so the byte at offset n is n + 1; MSS, window scale and SACK permitted in SYNs, SACK blocks; checksum over a payload of zeros |
//!
//! Sources: pcap-savefile(5), radiotap.org, IEEE 802.11-2016 clause 9.
//! Frames that were lost or collided are there like all others: they were on the air. A TCP header whose options need
//! more than the simulator counted makes its packet longer here than it was.

mod dot11;
mod ip;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

use lasthop_core::units::{Span, Time};
use lasthop_home::scenario::HostId;
use lasthop_tcp::SackBlocks;
use lasthop_wifi::Rate;
use lasthop_wifi::phy::{ACK_BYTES, Phy, RTS_BYTES};

use crate::packet::SimPacket;

/// `LINKTYPE_IEEE802_11_RADIOTAP`.
const RADIOTAP: u32 = 127;
/// Most bytes of a record: radiotap 23, 802.11 24, LLC 8, IPv4 20, TCP 60.
const SNAP: u32 = 256;

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
}

/// A frame of the air.
#[derive(Clone, Copy, Debug)]
pub struct AirFrame {
    /// Its first bit.
    pub at: Time,
    /// The access point or a station.
    pub from: HostId,
    /// Likewise; a CTS-to-self goes to its own sender.
    pub to: HostId,
    /// What it is sent at.
    pub rate: Rate,
    /// How long others keep silent after it.
    pub nav: Span,
    /// What it is.
    pub kind: Kind,
}

/// What a frame is.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Carries a packet.
    Data {
        /// Which.
        packet: SimPacket,
        /// Its SACK blocks.
        sacks: SackBlocks,
        /// How often it was sent before.
        retries: u8,
    },
    /// Answers data.
    Ack,
    /// Announces data.
    Rts,
    /// Answers an RTS, or announces the sender's own data.
    Cts,
}

/// How far the exchange of an attempt came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// The first frame alone was sent (RTS, or data where there is none): lost or collided.
    First,
    /// RTS and CTS were sent, the CTS was lost.
    Cts,
    /// Data was sent and not received.
    Data,
    /// The ACK was sent, whether it was received or not.
    Ack,
}

/// One attempt of the medium at a packet: its frames follow.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// When it began.
    pub at: Time,
    /// Who sent.
    pub from: HostId,
    /// To whom.
    pub to: HostId,
    /// Rate of the data frame.
    pub rate: Rate,
    /// What.
    pub packet: SimPacket,
    /// Its SACK blocks.
    pub sacks: SackBlocks,
    /// Attempts at it before this one.
    pub retries: u8,
    /// Whether an RTS went before it.
    pub rts: bool,
    /// How far it came.
    pub reached: Reached,
}

/// Writes a capture. One per run.
pub struct Capture<'a> {
    out: &'a mut dyn Write,
    phy: Phy,
    flows: Vec<Ends>,
    /// Next 802.11 sequence number of each sender, 12 bits; the access point, then the stations.
    sequence: Vec<u16>,
    /// Identification of the next packet.
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
        Ok(Self { out, phy, flows, sequence: Vec::new(), identification: 0, record: Vec::with_capacity(SNAP as usize) })
    }

    /// Writes the frames of an attempt, each at its time. An attempt that comes after another in time may be written
    /// after it; frames of collided attempts then stand in the order of the attempts.
    ///
    /// # Errors
    /// The write's.
    pub fn attempt(&mut self, attempt: &Attempt) -> io::Result<()> {
        let Attempt { at, from, to, rate, .. } = *attempt;
        let phy = self.phy;
        let control = phy.control(rate);
        let (sifs, answer) = (phy.sifs(), phy.answer(rate));
        let data = phy.data(rate, u32::from(attempt.packet.bytes));
        let after_data = sifs + answer;
        let mut at = at;
        if attempt.rts {
            let nav = sifs + answer + sifs + data + after_data;
            self.frame(&AirFrame { at, from, to, rate: control, nav, kind: Kind::Rts })?;
            if attempt.reached == Reached::First {
                return Ok(());
            }
            at = at + phy.rts(rate) + sifs;
            let nav = sifs + data + after_data;
            self.frame(&AirFrame { at, from: to, to: from, rate: control, nav, kind: Kind::Cts })?;
            if attempt.reached == Reached::Cts {
                return Ok(());
            }
            at = at + answer + sifs;
        } else if phy.protection(rate) > Span::ZERO {
            let nav = sifs + data + after_data;
            let rate = phy.control(Rate::DSSS_11);
            self.frame(&AirFrame { at, from, to: from, rate, nav, kind: Kind::Cts })?;
            at += phy.protection(attempt.rate);
        }
        let kind = Kind::Data { packet: attempt.packet, sacks: attempt.sacks, retries: attempt.retries };
        self.frame(&AirFrame { at, from, to, rate, nav: after_data, kind })?;
        if attempt.reached == Reached::Ack {
            let at = at + data + sifs;
            self.frame(&AirFrame { at, from: to, to: from, rate: control, nav: Span::ZERO, kind: Kind::Ack })?;
        }
        Ok(())
    }

    /// Writes one frame.
    ///
    /// # Errors
    /// The write's.
    pub fn frame(&mut self, frame: &AirFrame) -> io::Result<()> {
        self.record.clear();
        self.record.extend([0; 16]);
        let retries = match frame.kind {
            Kind::Data { retries, .. } => Some(retries),
            _ => None,
        };
        dot11::radiotap(&mut self.record, &self.phy, frame, retries);
        let on_air = match &frame.kind {
            Kind::Ack | Kind::Cts | Kind::Rts => dot11::control(&mut self.record, frame),
            Kind::Data { packet, sacks, retries } => self.data(frame, packet, sacks, *retries),
        };
        let radiotap = u32::from(self.record[18]);
        let captured = self.record.len() as u32 - 16;
        let ns = frame.at.as_nanos();
        let words = [(ns / 1_000_000_000) as u32, (ns % 1_000_000_000) as u32, captured, radiotap + on_air];
        for (word, place) in words.iter().zip(self.record.chunks_exact_mut(4)) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        self.out.write_all(&self.record)
    }

    /// Adds a data frame; returns its length on the air, FCS not counted.
    fn data(&mut self, frame: &AirFrame, packet: &SimPacket, sacks: &SackBlocks, retries: u8) -> u32 {
        let number = match frame.from {
            HostId::Station(i) => i + 1,
            _ => 0,
        };
        if self.sequence.len() <= number {
            self.sequence.resize(number + 1, 0);
        }
        let sequence = &mut self.sequence[number];
        if retries == 0 {
            *sequence = (*sequence + 1) & 0xfff;
            self.identification = self.identification.wrapping_add(1);
        }
        dot11::data(&mut self.record, frame, *sequence, retries > 0);
        let Some(ends) = self.flows.get(packet.flow as usize) else { return dot11::DATA_BYTES };
        let packet = ip::Packet { ends, packet, sacks, identification: self.identification, sender: frame.from };
        dot11::DATA_BYTES + packet.write(&mut self.record)
    }
}

/// Bytes of a control frame without its FCS.
fn control_bytes(kind: &Kind) -> u32 {
    match kind {
        Kind::Rts => RTS_BYTES - 4,
        _ => ACK_BYTES - 4,
    }
}
