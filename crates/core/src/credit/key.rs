//! What a flow is: the host computes a key of 64 bits from a packet's header, and packets of one key are one flow.
//!
//! ```text
//! h = mix(..mix(mix(secret ^ w_0) ^ w_1).. ^ w_4)
//! w = source (2 words), destination (2 words), protocol | source port << 16 | destination port << 32,
//!     as they are in packets towards the station; of packets from it, the other way round
//! mix(x) = y ^ y >> 29, y = (x ^ x >> 32) * 0x9e3779b97f4a7c15 mod 2^64
//! ```
//!
//! Addresses are 16 bytes in network order (IPv4 as `::ffff:a.b.c.d`), two big-endian words. Ports are 0 where there are
//! none, and where a flow is all that two hosts exchange. Both directions have one key, as in a NAT's table, so that what a
//! station sends can be charged to the account that its answers are sent from.
//!
//! By chance two of 65,536 flows share a key once in 10^10; they are one flow then, and that is all. The secret is drawn
//! by the host when it starts, lest somebody far away choose addresses to make many do so.

use crate::packet::{Direction, FlowKind, mix};
use crate::wire::Parsed;

/// The key of a packet that goes in `direction`; frames without believable addresses have one key together.
#[must_use]
pub fn of(parsed: &Parsed, direction: Direction, kind: FlowKind, secret: u64) -> u64 {
    let (source, destination, ports) = match parsed {
        Parsed::Tcp(tcp) => (tcp.source.address, tcp.destination.address, (tcp.source.port, tcp.destination.port)),
        Parsed::Udp(udp) => (udp.source.address, udp.destination.address, (udp.source.port, udp.destination.port)),
        Parsed::Other(other) => (other.source, other.destination, (0, 0)),
    };
    let (source, destination, ports) = match direction {
        Direction::ToStation => (source, destination, ports),
        Direction::ToRemote => (destination, source, (ports.1, ports.0)),
    };
    let ports = match kind {
        FlowKind::Connection => u64::from(ports.0) << 16 | u64::from(ports.1) << 32,
        FlowKind::Hosts => 0,
    };
    let [source, destination] = [words(source), words(destination)];
    let rest = ports | u64::from(parsed.protocol());
    [source[0], source[1], destination[0], destination[1], rest].iter().fold(secret, |h, word| mix(h ^ word))
}

fn words(address: [u8; 16]) -> [u64; 2] {
    let whole = u128::from_be_bytes(address);
    [(whole >> 64) as u64, whole as u64]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::build::{Frame, Segment, v4};
    use crate::wire::{Endpoint, Link, TcpFields, parse};

    const DOWN: Direction = Direction::ToStation;

    fn frame(source_port: u16, destination_port: u16) -> Parsed {
        let source = Endpoint { address: v4([203, 0, 113, 5]), port: source_port };
        let destination = Endpoint { address: v4([192, 168, 1, 20]), port: destination_port };
        parse(&Frame::tcp(source, destination, Segment::default(), 100).bytes(), Link::Ethernet)
    }

    #[test]
    fn connections_differ_by_port_and_hosts_do_not() {
        let (a, b) = (frame(443, 50_000), frame(443, 50_001));
        assert!(matches!(a, Parsed::Tcp(_)));
        assert_ne!(of(&a, DOWN, FlowKind::Connection, 1), of(&b, DOWN, FlowKind::Connection, 1));
        assert_eq!(of(&a, DOWN, FlowKind::Hosts, 1), of(&b, DOWN, FlowKind::Hosts, 1));
        assert_ne!(of(&a, DOWN, FlowKind::Connection, 1), of(&a, DOWN, FlowKind::Connection, 2));
    }

    #[test]
    fn both_directions_of_a_connection_have_one_key() {
        let Parsed::Tcp(tcp) = frame(443, 50_000) else { panic!("a segment") };
        let back = TcpFields { source: tcp.destination, destination: tcp.source, ..tcp };
        let key = of(&Parsed::Tcp(tcp), DOWN, FlowKind::Connection, 0x5eed);
        assert_eq!(of(&Parsed::Tcp(back), Direction::ToRemote, FlowKind::Connection, 0x5eed), key);
        // With big integers elsewhere, by the formula above.
        assert_eq!(key, 0x19df_6c1b_bc58_0135);
        assert_eq!(of(&Parsed::Tcp(tcp), DOWN, FlowKind::Hosts, 0x5eed), 0x3aea_9461_83bd_85dc);
    }

    #[test]
    fn fragments_and_other_protocols_are_told_apart_by_their_addresses() {
        let ping = |last| {
            let mut packet = [0u8; 28];
            (packet[0], packet[3], packet[9]) = (0x45, 28, 1);
            packet[12..16].copy_from_slice(&[203, 0, 113, 5]);
            packet[16..20].copy_from_slice(&[192, 168, 1, last]);
            parse(&packet, Link::Ip)
        };
        let key = |last| of(&ping(last), DOWN, FlowKind::Connection, 7);
        assert!(matches!(ping(1), Parsed::Other(_)));
        assert_ne!(key(1), key(2));
        assert_eq!(key(1), key(1));
    }
}
