//! Sequence numbers of a connection, as its packets show them to whoever looks: the window control and captures.
//!
//! ```text
//! sender     SYN 0, byte at offset n  n + 1, FIN behind the last byte
//! receiver   SYN 0, turn k, from 1    1 + (k - 1) turn, `turn` numbers long: the payload of a request, or the one of its FIN
//! ```
//!
//! A packet says where it stands in both streams ([`crate::packet::Position`]), so nothing of the packets before it is needed: of one
//! that is lost, sent again, or was there before whoever looks, the numbers are the same. An acknowledgment names what has come
//! and nothing else. Source: RFC 9293 section 3.4.
//!
//! Not done: what a browser asks ([`crate::web`]) is no part of any stream; the sender's FIN goes with its last byte or not at all.

#[cfg(test)]
mod tests;

use crate::packet::{SimPacket, flag};

/// What has to be known of a connection besides its packets.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// Most payload of a segment, bytes.
    pub mss: u16,
    /// Scale of the windows that its receiver writes.
    pub scale: u8,
    /// Bytes of a packet of data beside its payload.
    pub headers: u8,
    /// What a turn of its receiver takes up in sequence numbers: the payload of its requests, bytes, or 1 where it closes its way; 0:
    /// it has nothing to say.
    pub turn: u16,
}

impl Connection {
    /// Payload of one of its packets, bytes.
    pub fn payload_bytes(&self, packet: &SimPacket) -> u32 {
        match (packet.has(flag::BACK), packet.has(flag::SYN), packet.has(flag::ASK)) {
            (true, _, true) => u32::from(self.turn),
            (false, false, false) => u32::from(packet.bytes) - u32::from(self.headers),
            _ => 0,
        }
    }
}

/// Of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// Of its first byte.
    pub seq: u32,
    /// What its sender expects next; `None`: it has heard nothing.
    pub ack: Option<u32>,
}

impl Numbers {
    /// Of a packet of TCP; `turn`: see [`Connection::turn`].
    pub fn of(packet: &SimPacket, turn: u16) -> Self {
        let syn = packet.has(flag::SYN);
        let offset = of_byte(packet.position.offset());
        if packet.has(flag::BACK) {
            return Self {
                seq: if syn { 0 } else { Self::of_receiver(packet, turn) },
                ack: Some(offset.wrapping_add(u32::from(packet.has(flag::ALL)))),
            };
        }
        let ack = (!syn).then(|| turn_end(packet.position.turns(), turn));
        Self { seq: if syn { 0 } else { offset }, ack }
    }

    /// A turn begins where the one before ended; what is none stands behind all of them.
    fn of_receiver(packet: &SimPacket, turn: u16) -> u32 {
        let turns = packet.position.turns();
        turn_end(if packet.has(flag::ASK | flag::FIN) { turns.saturating_sub(1) } else { turns }, turn)
    }
}

/// The number of a byte of the sender's stream.
pub const fn of_byte(offset: u64) -> u32 {
    (offset as u32).wrapping_add(1)
}

/// Where the receiver's stream of so many turns ends.
const fn turn_end(turns: u32, turn: u16) -> u32 {
    turns.wrapping_mul(turn as u32).wrapping_add(1)
}
