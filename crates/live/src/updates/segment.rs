//! A window update as an IP packet: a pure acknowledgment of the receiver's, with a larger window.
//!
//! `ack, window, options NOP NOP timestamps` (RFC 9293 section 3.1; RFC 7323 section 3.2 and appendix A), IPv4 (RFC 791) with
//! "do not fragment" and its checksum, or IPv6 (RFC 8200). TTL 64.

use lasthop_core::fastpath::layout::FlowKey;
use lasthop_core::fastpath::window::Update;
use lasthop_core::packet::Direction;
use lasthop_core::wire::{flag, protocol};

/// IPv6 header, TCP header, timestamps.
const LONGEST: usize = 40 + 20 + TIMESTAMPS;
const TIMESTAMPS: usize = 12;
const TTL: u8 = 64;

/// Bytes of a packet, from its IP header on.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    bytes: [u8; LONGEST],
    length: usize,
}

impl Packet {
    /// From the receiver of what goes in `direction` to its sender.
    #[must_use]
    pub fn new(key: &FlowKey, direction: Direction, update: &Update) -> Self {
        let ends = [(&key.station, key.station_port), (&key.remote, key.remote_port)];
        let [(from, from_port), (to, to_port)] = match direction {
            Direction::ToStation => ends,
            Direction::ToRemote => [ends[1], ends[0]],
        };
        let options = if update.timestamps.is_some() { TIMESTAMPS } else { 0 };
        let mut tcp = [0; 20 + TIMESTAMPS];
        tcp[..2].copy_from_slice(&from_port.to_be_bytes());
        tcp[2..4].copy_from_slice(&to_port.to_be_bytes());
        tcp[4..8].copy_from_slice(&update.seq.to_be_bytes());
        tcp[8..12].copy_from_slice(&update.ack.to_be_bytes());
        tcp[12] = ((20 + options) as u8) << 2;
        tcp[13] = flag::ACK;
        tcp[14..16].copy_from_slice(&update.window.to_be_bytes());
        if let Some((value, echo)) = update.timestamps {
            tcp[20..24].copy_from_slice(&[1, 1, 8, 10]);
            tcp[24..28].copy_from_slice(&value.to_be_bytes());
            tcp[28..].copy_from_slice(&echo.to_be_bytes());
        }
        let tcp = &mut tcp[..20 + options];
        let pseudo = u32::from(protocol::TCP) + tcp.len() as u32;
        let sum = checksum(pseudo, &[from, to, tcp]);
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());

        let mut bytes = [0; LONGEST];
        let header = if let (Some(from), Some(to)) = (v4(from), v4(to)) {
            let total = 20 + tcp.len() as u16;
            bytes[..4].copy_from_slice(&[0x45, 0, (total >> 8) as u8, total as u8]);
            bytes[6] = 0x40; // do not fragment
            bytes[8] = TTL;
            bytes[9] = protocol::TCP;
            bytes[12..16].copy_from_slice(from);
            bytes[16..20].copy_from_slice(to);
            let sum = checksum(0, &[&bytes[..20]]);
            bytes[10..12].copy_from_slice(&sum.to_be_bytes());
            20
        } else {
            bytes[0] = 0x60;
            bytes[5] = tcp.len() as u8;
            bytes[6] = protocol::TCP;
            bytes[7] = TTL;
            bytes[8..24].copy_from_slice(from);
            bytes[24..40].copy_from_slice(to);
            40
        };
        bytes[header..header + tcp.len()].copy_from_slice(tcp);
        Self { bytes, length: header + tcp.len() }
    }

    /// From the IP header on.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// The four bytes of an IPv4 address in its mapped form.
pub fn v4(address: &[u8; 16]) -> Option<&[u8; 4]> {
    let (prefix, rest) = address.split_first_chunk::<12>()?;
    (*prefix == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]).then(|| rest.first_chunk())?
}

/// One's complement sum of 16-bit words over all parts, of which a checksum is 0, and `begin`. The prefixes of mapped IPv4 addresses add
/// 0xffff each: nothing.
fn checksum(begin: u32, parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks_exact(2));
    let sum: u32 = words.map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    let sum = sum + begin;
    let once = (sum >> 16) + (sum & 0xffff);
    !((once >> 16) + (once & 0xffff)) as u16
}

#[cfg(test)]
mod tests {
    use lasthop_core::wire::{Link, Parsed, checksum_is_valid, flow_key, parse};

    use super::*;

    fn of(station: [u8; 16], remote: [u8; 16], timestamps: Option<(u32, u32)>) {
        let key = FlowKey { station, remote, station_port: 50_123, remote_port: 443 };
        let update = Update { seq: 0xffff_fff0, ack: 0x8123_4567, window: 0xfedc, timestamps };
        for direction in Direction::BOTH {
            let packet = Packet::new(&key, direction, &update);
            let Parsed::Tcp(tcp) = parse(packet.bytes(), Link::Ip) else { panic!("{packet:?}") };
            assert_eq!(flow_key(&tcp, direction.reverse()), key, "it goes where acknowledgments go");
            let said = (tcp.seq, tcp.ack, tcp.window, tcp.timestamps);
            assert_eq!(said, (update.seq, update.ack, update.window, timestamps));
            assert_eq!((tcp.flags, tcp.payload_bytes, tcp.ip_bytes as usize), (flag::ACK, 0, packet.bytes().len()));
            assert!(checksum_is_valid(packet.bytes(), &tcp), "{packet:?}");
            let is_v4 = packet.bytes()[0] == 0x45;
            assert!(!is_v4 || checksum(0, &[&packet.bytes()[..20]]) == 0, "that of its header, too: {packet:?}");
        }
    }

    #[test]
    fn a_packet_is_what_the_update_says_and_its_checksum_is_right() {
        let mapped = |address: [u8; 4]| lasthop_core::wire::build::v4(address);
        let six = |last| [0x20, 1, 0xd, 0xb8, 0xff, 0xff, 0xee, 0xdd, 0, 0, 0, 0, 0, 0, 0x80, last];
        for timestamps in [None, Some((0xffff_0001, 7))] {
            of(mapped([192, 168, 255, 254]), mapped([203, 0, 113, 5]), timestamps);
            of(six(1), six(0xff), timestamps);
        }
    }
}
