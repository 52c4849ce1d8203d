//! A packet: header fields only, small and passed by value. The simulator moves no bytes.

use lasthop_core::packet::{AccessCategory, FlowId, FlowKind, Packet, mix};
use lasthop_core::units::Time;
use lasthop_tcp::{Note, SackBlocks};

/// A packet of one flow, its data or the acknowledgment of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimPacket {
    /// When its sender's network interface took it.
    pub sent: Time,
    /// TCP: where it stands in the streams of both ends; else a number.
    pub position: Position,
    /// Index into the scenario's flows.
    pub flow: u32,
    /// An acknowledgment's: where its SACK blocks and its note are kept, [`Sacks::NONE`] without. With data that has
    /// [`flag::NOTE`]: its mark; with other data of TCP [`SimPacket::stamp`] of the newest acknowledgment its sender had.
    pub sack: u32,
    /// IP bytes.
    pub bytes: u16,
    /// TCP: window as written, before scaling.
    pub window: u16,
    /// Bits of [`flag`]; as wide as fills the struct, since one without holes is copied by whole words.
    pub flags: u32,
}

/// Bits of [`SimPacket::flags`].
pub mod flag {
    /// Goes against the flow: an acknowledgment.
    pub const BACK: u32 = 1;
    /// TCP.
    pub const TCP: u32 = 2;
    /// Opens a connection.
    pub const SYN: u32 = 4;
    /// Nothing follows.
    pub const FIN: u32 = 8;
    /// Of a game, a call or live video: worth little when late.
    pub const REALTIME: u32 = 16;
    /// Its ends understand congestion marks (ECT, RFC 3168).
    pub const ECT: u32 = 32;
    /// It met congestion (CE).
    pub const CE: u32 = 64;
    /// The receiver has seen a mark (ECE).
    pub const ECE: u32 = 128;
    /// The sender has cut its window (CWR).
    pub const CWR: u32 = 256;
    /// Of a browser, to its server: opens a connection, or asks for more ([`crate::web`]); `offset` is how far. Of a client
    /// ([`crate::exchange`]): its request; from its server: the acknowledgment of one.
    pub const ASK: u32 = 512;
    /// Carries what the two ends tell each other beside the header: data a mark, an acknowledgment a note.
    pub const NOTE: u32 = 1024;
    /// An acknowledgment of everything, the end of the stream included.
    pub const ALL: u32 = 2048;
    /// A local retransmission of what was not known to be lost: when it is lost, no packet is.
    pub const SPARE: u32 = 4096;
    /// From this bit on: its class on the air, two bits, none of them for best effort ([`super::class`]).
    pub const CLASS: u32 = 13;
    /// From this bit on: the number of its pair of hosts and protocol, modulo 2^16.
    pub const HOSTS: u32 = 16;
}

/// The flags of a packet of this class.
pub const fn class(class: AccessCategory) -> u32 {
    ((class as u32) ^ AccessCategory::Be as u32) << flag::CLASS
}

/// Where a packet stands in the streams of both ends, in one word: sequence number and acknowledgment follow from it
/// ([`crate::numbers`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position(u64);

impl Position {
    /// Bits of the offset: 10^12 bytes, for which the simulator works for hours. The others are those of the turns.
    const OFFSET_BITS: u32 = 40;
    const OFFSET: u64 = (1 << Self::OFFSET_BITS) - 1;

    /// `offset`: of the first byte of data, or of what is acknowledged. `turns`: how often the receiver has spoken itself, what
    /// this packet says included, or how many of these its sender has heard: requests, or its FIN.
    pub const fn new(offset: u64, turns: u32) -> Self {
        debug_assert!(offset <= Self::OFFSET);
        Self((turns as u64) << Self::OFFSET_BITS | offset)
    }

    /// See [`Self::new`].
    pub const fn offset(self) -> u64 {
        self.0 & Self::OFFSET
    }

    /// See [`Self::new`]; modulo 2^24.
    pub const fn turns(self) -> u32 {
        (self.0 >> Self::OFFSET_BITS) as u32
    }
}

impl SimPacket {
    /// Whether any of these bits is set.
    pub const fn has(&self, flags: u32) -> bool {
        self.flags & flags != 0
    }

    /// When it was sent in microseconds modulo 2^32: what a timestamp (RFC 7323) would say, without the room for one.
    pub const fn stamp(&self) -> u32 {
        (self.sent.as_nanos() / 1000) as u32
    }
}

impl Packet for SimPacket {
    fn flow(&self) -> FlowId {
        FlowId(self.flow)
    }
    fn bytes(&self) -> u32 {
        u32::from(self.bytes)
    }
    fn is_realtime(&self) -> bool {
        self.has(flag::REALTIME)
    }
    fn access_category(&self) -> AccessCategory {
        let bits = self.flags >> flag::CLASS & 3;
        AccessCategory::ALL[(bits ^ AccessCategory::Be as u32) as usize]
    }
    fn key(&self, kind: FlowKind) -> u64 {
        match kind {
            FlowKind::Connection => mix(u64::from(self.flow) + 1),
            FlowKind::Hosts => mix(u64::from(self.flags >> flag::HOSTS) + (1 << 32)),
        }
    }
    fn mark_ce(&mut self) -> bool {
        let is_ect = self.has(flag::ECT);
        self.flags |= if is_ect { flag::CE } else { 0 };
        is_ect
    }
}

const _: () = assert!(size_of::<SimPacket>() == 32);

/// SACK blocks and notes of the acknowledgments in flight: few have any, so packets need not carry the room for them.
#[derive(Clone, Debug, Default)]
pub struct Sacks {
    kept: Vec<(SackBlocks, Option<Note>)>,
    free: Vec<u32>,
}

impl Sacks {
    /// No blocks.
    pub const NONE: u32 = u32::MAX;

    /// Keeps `blocks` until [`Self::take`].
    pub fn keep(&mut self, blocks: SackBlocks) -> u32 {
        if blocks.is_empty() {
            return Self::NONE;
        }
        self.keep_with(blocks, None)
    }

    /// Keeps both.
    pub fn keep_with(&mut self, blocks: SackBlocks, note: Option<Note>) -> u32 {
        match self.free.pop() {
            Some(at) => {
                self.kept[at as usize] = (blocks, note);
                at
            }
            None => {
                self.kept.push((blocks, note));
                self.kept.len() as u32 - 1
            }
        }
    }

    /// The blocks of `packet`, which stay.
    pub fn of(&self, packet: &SimPacket) -> SackBlocks {
        match self.kept.get(packet.sack as usize) {
            Some((blocks, _)) if packet.has(flag::BACK) => *blocks,
            _ => SackBlocks::default(),
        }
    }

    /// The note that is kept at `at`, which stays.
    pub fn note(&self, at: u32) -> Option<Note> {
        self.kept.get(at as usize)?.1
    }

    /// Where what is kept at `at` is without its blocks: the note stays, if there is one.
    pub fn without_blocks(&mut self, at: u32) -> u32 {
        if self.note(at).is_none() {
            let _ = self.take(at);
            return Self::NONE;
        }
        self.kept[at as usize].0 = SackBlocks::default();
        at
    }

    /// What is kept at `at`, which is free again: its packet has arrived or is lost.
    pub fn take(&mut self, at: u32) -> SackBlocks {
        if at == Self::NONE {
            return SackBlocks::default();
        }
        self.free.push(at);
        self.kept[at as usize].0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_holds_both() {
        let (offset, turns) = ((1 << 40) - 1, (1 << 24) - 1);
        for (offset, turns) in [(0, 0), (offset, 0), (0, turns), (offset, turns), (1460, 3)] {
            let position = Position::new(offset, turns);
            assert_eq!((position.offset(), position.turns()), (offset, turns));
        }
    }

    #[test]
    fn a_class_stands_in_its_flags() {
        let of = |flags| SimPacket {
            sent: Time::ZERO,
            position: Position::default(),
            flow: 0,
            sack: Sacks::NONE,
            bytes: 40,
            window: 0,
            flags,
        };
        for one in AccessCategory::ALL {
            let flags = class(one) | flag::SPARE | 7 << flag::HOSTS;
            assert_eq!(of(flags).access_category(), one);
            assert!(of(flags).has(flag::SPARE) && flags >> flag::HOSTS == 7);
        }
        assert_eq!(of(0).access_category(), AccessCategory::Be);
    }

    #[test]
    fn a_place_is_used_again_when_its_packet_has_gone() {
        let mut sacks = Sacks::default();
        let mut blocks = SackBlocks::default();
        blocks.push(10, 20);
        let first = sacks.keep(blocks);
        assert_eq!(sacks.take(first).as_slice(), [(10, 20)]);
        assert_eq!(sacks.keep(blocks), first);
        assert_eq!(sacks.keep(SackBlocks::default()), Sacks::NONE);
        assert!(sacks.note(Sacks::NONE).is_none() && sacks.take(Sacks::NONE).is_empty());
    }
}
