//! Where frames lie while they are on a link or in the channel: fixed slots, bounded and counted.
//!
//! Queues, links and the channel hold a small Copy [`Frame`] that names a slot. The engine takes a slot when it reads a
//! frame from a TAP and gives it back after writing it to another, or when a model drops it. When none is free the
//! frame is lost and counted; the run is then not valid.

use crate::address::Port;
use crate::sys::Block;
use lasthop_core::credit::key;
use lasthop_core::dscp::Dscp;
use lasthop_core::packet::{AccessCategory, Direction, FlowId, FlowKind, Packet};
use lasthop_core::wire::{self, Link, ecn};
use std::io;

/// Link-layer header of a frame, bytes.
pub const ETHERNET: usize = 14;
/// Largest IP packet, bytes.
pub const MTU: usize = 1500;
/// Bytes of a slot: a full frame, rounded up to cache lines.
const SLOT: usize = 1536;

/// A frame in the arena with what the models and the observer need of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Index of its slot.
    pub slot: u32,
    /// Bytes of the frame, link-layer header included.
    pub len: u16,
    /// Where it is to be written on this leg of its way.
    pub to: Port,
    /// Whose packet it is.
    pub tag: Tag,
    /// Of a flow of the scenario to which late is as bad as lost.
    pub is_realtime: bool,
    /// What the queues of the last hop see in its headers.
    pub headers: Headers,
    /// A kernel left its checksum to its card, and vouches for it: it may be joined with others.
    pub is_sound: bool,
}

/// What queues ask of a frame's headers, read once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// Its flow's key, by connection and by hosts.
    keys: [u64; 2],
    /// The two bits of RFC 3168; the channel may set them to CE, and then they are written into the frame.
    ecn: u8,
    /// Where the air has classes.
    class: AccessCategory,
}

impl Headers {
    /// Of an Ethernet frame that goes in `direction`.
    #[must_use]
    pub fn of(frame: &[u8], direction: Direction) -> Self {
        let parsed = wire::parse(frame, Link::Ethernet);
        // Nobody out there chooses addresses here: the hash needs no secret.
        let keys = [FlowKind::Connection, FlowKind::Hosts].map(|kind| key::of(&parsed, direction, kind, 0));
        let class = wire::dscp(frame, Link::Ethernet).map_or(AccessCategory::Be, Dscp::access_category);
        Self { keys, ecn: ecn::of(frame, Link::Ethernet), class }
    }

    /// The class that its host chose, whatever its code point says.
    pub fn set_class(&mut self, class: AccessCategory) {
        self.class = class;
    }

    /// The frame met congestion in flight.
    #[must_use]
    pub const fn is_ce(self) -> bool {
        self.ecn == ecn::CE
    }
}

/// A packet's identity: the scenario's flow and its number within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// Not a packet of a flow of the scenario: an ACK, a program's traffic.
    Other,
    /// Data of flow number `flow`.
    Data {
        /// Index of the flow.
        flow: u16,
        /// UDP: the sequence number in its payload. TCP: the IP identification, which the kernel counts up per socket
        /// and packet, so that a retransmission has another one. QUIC: the end of its authentication tag.
        id: u32,
    },
}

impl Packet for Frame {
    fn flow(&self) -> FlowId {
        match self.tag {
            Tag::Other => FlowId(u32::MAX),
            Tag::Data { flow, .. } => FlowId(u32::from(flow)),
        }
    }
    fn bytes(&self) -> u32 {
        u32::from(self.len).saturating_sub(ETHERNET as u32)
    }
    fn is_realtime(&self) -> bool {
        self.is_realtime
    }
    fn access_category(&self) -> AccessCategory {
        self.headers.class
    }
    fn key(&self, kind: FlowKind) -> u64 {
        self.headers.keys[kind as usize]
    }
    fn mark_ce(&mut self) -> bool {
        let understands = self.headers.ecn != ecn::NOT_ECT;
        self.headers.ecn = if understands { ecn::CE } else { ecn::NOT_ECT };
        understands
    }
}

/// Fixed slots for frames.
pub struct Arena {
    block: Block,
    free: Vec<u32>,
    least_free: usize,
}

impl Arena {
    /// Room for `frames` frames.
    ///
    /// # Errors
    /// If the memory cannot be reserved.
    pub fn new(frames: usize) -> io::Result<Self> {
        Ok(Self { block: Block::new(frames * SLOT)?, free: (0..frames as u32).rev().collect(), least_free: frames })
    }

    /// A free slot.
    pub fn take(&mut self) -> Option<u32> {
        let slot = self.free.pop();
        self.least_free = self.least_free.min(self.free.len());
        slot
    }

    /// The slot's frame has left.
    pub fn give_back(&mut self, slot: u32) {
        self.free.push(slot);
    }

    /// All bytes of a slot, to be read into. One byte more than a frame may have, so that a longer one shows.
    pub fn slot(&mut self, slot: u32) -> &mut [u8] {
        let start = slot as usize * SLOT;
        &mut self.block[start..start + SLOT]
    }

    /// The frame's bytes.
    #[must_use]
    pub fn bytes(&self, frame: &Frame) -> &[u8] {
        let start = frame.slot as usize * SLOT;
        &self.block[start..start + usize::from(frame.len)]
    }

    /// The frame's bytes, to be changed.
    pub fn bytes_mut(&mut self, frame: &Frame) -> &mut [u8] {
        let start = frame.slot as usize * SLOT;
        &mut self.block[start..start + usize::from(frame.len)]
    }

    /// Fewest slots that were ever free.
    #[must_use]
    pub fn least_free(&self) -> usize {
        self.least_free
    }

    /// Slots in use.
    #[must_use]
    pub fn in_use(&self) -> usize {
        self.block.len() / SLOT - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arena_never_hands_out_more_than_it_has() {
        let mut arena = Arena::new(2).unwrap();
        let (a, b) = (arena.take().unwrap(), arena.take().unwrap());
        assert_ne!(a, b);
        assert_eq!(arena.take(), None);
        arena.slot(a).fill(1);
        arena.slot(b).fill(2);
        let frame = Frame {
            slot: a,
            len: 60,
            to: Port(0),
            tag: Tag::Other,
            is_realtime: false,
            headers: Headers::default(),
            is_sound: false,
        };
        assert!(arena.bytes(&frame).iter().all(|b| *b == 1));
        arena.give_back(b);
        assert_eq!((arena.in_use(), arena.least_free()), (1, 0));
        assert_eq!(arena.take(), Some(b));
    }
}
