//! IPv4, UDP and TCP headers of a packet that has no bytes.

use lasthop_core::wire::{flag as tcp_flag, protocol};
use lasthop_home::address;
use lasthop_home::scenario::HostId;
use lasthop_tcp::SackBlocks;

use super::Ends;
use crate::numbers::{Numbers, of_byte};
use crate::packet::{SimPacket, flag};

const IPV4: usize = 20;
const UDP: usize = 8;
const TCP: usize = 20;

/// Flags of RFC 3168.
const ECE: u8 = 0x40;
const CWR: u8 = 0x80;

/// What a data sender offers in return: it never receives data, so the field means nothing.
const SENDERS_WINDOW: u16 = u16::MAX;

/// A packet, and who sends it now.
pub(super) struct Packet<'a> {
    pub ends: &'a Ends,
    pub packet: &'a SimPacket,
    pub sacks: &'a SackBlocks,
    pub identification: u16,
    /// Of the frame it is in.
    pub sender: HostId,
}

impl Packet<'_> {
    /// Adds the headers; returns the length of the packet.
    pub fn write(&self, out: &mut Vec<u8>) -> u32 {
        let back = self.packet.has(flag::BACK);
        let (from, to) = if back { (self.ends.to, self.ends.from) } else { (self.ends.from, self.ends.to) };
        let (source, destination) = (address::near(from, to).octets(), address::near(to, from).octets());
        let is_tcp = self.packet.has(flag::TCP);
        let mut place = [0; 40];
        let length = if is_tcp { self.options(&mut place) } else { 0 };
        let options = &place[..length];
        let headers = IPV4 + if is_tcp { TCP + options.len() } else { UDP };
        let total = self.packet.bytes.max(headers as u16);

        let at = out.len();
        // ECT(0), or CE.
        let ecn = [0, 2, 3][usize::from(self.packet.has(flag::ECT)) + usize::from(self.packet.has(flag::CE))];
        out.extend([0x45, ecn]);
        out.extend(total.to_be_bytes());
        out.extend(self.identification.to_be_bytes());
        let hops = u8::from(from != self.sender);
        let number = if is_tcp { protocol::TCP } else { protocol::UDP };
        out.extend([0x40, 0, 64 - hops, number, 0, 0]);
        out.extend(source);
        out.extend(destination);
        let sum = checksum(&out[at..], 0);
        out[at + 10..at + 12].copy_from_slice(&sum.to_be_bytes());

        let segment = out.len();
        let length = total - IPV4 as u16;
        out.extend(self.ends.port.to_be_bytes());
        out.extend(self.ends.port.to_be_bytes());
        let sum_at = if is_tcp { self.tcp(out, options) } else { udp(out, length) };
        // The pseudo header: addresses, protocol, length.
        let pseudo = u64::from(length) + u64::from(number) + words(&source) + words(&destination);
        let sum = match checksum(&out[segment..], pseudo) {
            0 if !is_tcp => u16::MAX,
            sum => sum,
        };
        out[segment + sum_at..segment + sum_at + 2].copy_from_slice(&sum.to_be_bytes());
        u32::from(total)
    }

    /// Everything behind the ports; returns where the checksum stands in the header.
    fn tcp(&self, out: &mut Vec<u8>, options: &[u8]) -> usize {
        let p = self.packet;
        let (back, syn) = (p.has(flag::BACK), p.has(flag::SYN));
        let numbers = Numbers::of(p, self.ends.turn);
        let mut flags = 0;
        for (set, bit) in [
            (numbers.ack.is_some(), tcp_flag::ACK),
            (syn, tcp_flag::SYN),
            (p.has(flag::FIN), tcp_flag::FIN),
            (p.has(flag::ECE), ECE),
            (p.has(flag::CWR), CWR),
        ] {
            flags |= if set { bit } else { 0 };
        }
        out.extend(numbers.seq.to_be_bytes());
        out.extend(numbers.ack.unwrap_or_default().to_be_bytes());
        out.extend([((TCP + options.len()) as u8) << 2, flags]);
        out.extend((if back { p.window } else { SENDERS_WINDOW }).to_be_bytes());
        out.extend([0; 4]);
        out.extend(options);
        16
    }

    /// Fills in the options; returns their length, a multiple of 4. What else of a packet without payload the simulator
    /// counted is filled with no-operations.
    fn options(&self, place: &mut [u8; 40]) -> usize {
        let mut length = 0;
        let mut put = |bytes: &[u8]| {
            place[length..length + bytes.len()].copy_from_slice(bytes);
            length += bytes.len();
        };
        if self.packet.has(flag::SYN) {
            let [high, low] = self.ends.mss.to_be_bytes();
            put(&[2, 4, high, low]);
            if self.ends.sack {
                put(&[1, 1, 4, 2]);
            }
            put(&[1, 3, 3, if self.packet.has(flag::BACK) { self.ends.window_scale } else { 0 }]);
        } else if !self.sacks.is_empty() {
            let blocks = self.sacks.as_slice();
            put(&[1, 1, 5, 2 + 8 * blocks.len() as u8]);
            for edge in blocks.iter().flat_map(|(start, end)| [*start, *end]) {
                put(&of_byte(edge).to_be_bytes());
            }
        }
        let counted = usize::from(self.packet.bytes).saturating_sub(IPV4 + TCP).min(place.len()) & !3;
        if self.packet.has(flag::SYN | flag::BACK) && counted > length {
            place[length..counted].fill(1);
            length = counted;
        }
        length
    }
}

/// Everything behind the ports; returns where the checksum stands in the header.
fn udp(out: &mut Vec<u8>, length: u16) -> usize {
    out.extend(length.to_be_bytes());
    out.extend([0, 0]);
    6
}

/// The sum of 16-bit words.
fn words(bytes: &[u8]) -> u64 {
    bytes.chunks(2).map(|pair| u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u64::from(*low))).sum()
}

/// The Internet checksum (RFC 1071) of `bytes` and of what was summed before.
fn checksum(bytes: &[u8], before: u64) -> u16 {
    let mut sum = words(bytes) + before;
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}
