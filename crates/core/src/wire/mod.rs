//! Views of headers as they lie in a frame, and the changes that are made to them.
//!
//! [`parse`] walks Ethernet, up to two 802.1Q/802.1ad tags, PPPoE session, IPv4 with options, IPv6 with extension
//! headers, TCP with options, UDP. It never panics: what it cannot follow is a counted [`Reason`]. [`patch_window`]
//! lowers the window of a TCP header and mends its checksum; [`strip_sack`] takes SACK blocks out of one.
//!
//! Sources: IEEE 802.1Q-2018 9.6; RFC 2516 (PPPoE); RFC 791; RFC 8200 (IPv6), RFC 6946 (atomic fragments);
//! RFC 9293 3.1 (TCP), RFC 7323 (window scale, timestamps), RFC 2018 (SACK), RFC 2385 (MD5), RFC 5925 (AO).
//! `crates/live/src/bpf/wire.h` restates this module in C.
//!
//! Not done: checksums are not verified, fragments not reassembled, PPP protocol-field compression not understood;
//! behind a routing header with segments left, the address is that of the next hop.

pub mod build;
pub mod ecn;
mod ip;
mod key;
mod link;
pub mod offload;
mod patch;
mod sack;
pub mod seq;
mod tcp;
#[cfg(test)]
mod tests;

pub use ip::protocol;
pub use key::{Endpoint, flow_key, udp_flow_key};
pub use patch::{checksum_is_valid, is_intact, patch_window};
pub use sack::{SackBlocks, sack_blocks, strip_sack};
pub use tcp::{TcpFields, flag};

use crate::dscp::Dscp;
use crate::layout::Reason;

/// No header is looked for beyond this offset in a frame, bytes: deeper chains are [`Reason::OtherTransport`].
/// The BPF verifier needs the bound, and real chains end far before it.
pub const DEEPEST: usize = 512;

/// What a frame begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// An Ethernet header.
    Ethernet,
    /// The IP header itself.
    Ip,
}

/// What an offload engine merged into one frame (GRO, TSO).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Merged {
    /// Packets on the wire that the frame stands for; at least 1.
    pub segments: u32,
    /// Payload of each of them but the last, bytes; 0: not known.
    pub segment_bytes: u32,
}

impl Merged {
    /// One frame is one packet.
    pub const NOT: Self = Self { segments: 1, segment_bytes: 0 };
}

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A whole TCP segment.
    Tcp(TcpFields),
    /// A whole UDP datagram.
    Udp(UdpFields),
    /// Anything else.
    Other(Other),
}

/// A UDP datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpFields {
    /// Where it comes from.
    pub source: Endpoint,
    /// Where it goes.
    pub destination: Endpoint,
    /// IP bytes on the wire, headers of merged packets included.
    pub ip_bytes: u32,
    /// Packets on the wire.
    pub segments: u32,
    /// The two bits of congestion marks ([`ecn`]).
    pub ecn: u8,
    /// Its header ends beyond [`DEEPEST`]: counted, but no flow is kept of it.
    pub deep: bool,
    /// It has the long header of QUIC ([`begins_quic`]).
    pub quic: bool,
}

/// A frame that the fast path has nothing to do with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Other {
    /// Why.
    pub reason: Reason,
    /// IP bytes; 0 when the IP header itself cannot be believed.
    pub ip_bytes: u32,
    /// The IP protocol carried, as far as it is known; [`protocol::UNKNOWN`] otherwise.
    pub protocol: u8,
    /// IPv6, or IPv4 as `::ffff:a.b.c.d`; zeros when the IP header itself cannot be believed.
    pub source: [u8; 16],
    /// The destination address, in the form of `source`.
    pub destination: [u8; 16],
}

impl Parsed {
    /// IP bytes on the wire; 0 when it is not IP.
    #[must_use]
    pub const fn ip_bytes(&self) -> u32 {
        match self {
            Self::Tcp(tcp) => tcp.ip_bytes,
            Self::Udp(udp) => udp.ip_bytes,
            Self::Other(other) => other.ip_bytes,
        }
    }

    /// The IP protocol carried; [`protocol::UNKNOWN`] where that is not known.
    #[must_use]
    pub const fn protocol(&self) -> u8 {
        match self {
            Self::Tcp(_) => protocol::TCP,
            Self::Udp(_) => protocol::UDP,
            Self::Other(other) => other.protocol,
        }
    }

    /// Packets on the wire that the frame stands for.
    #[must_use]
    pub const fn segments(&self) -> u32 {
        match self {
            Self::Tcp(tcp) => tcp.segments,
            Self::Udp(udp) => udp.segments,
            Self::Other(_) => 1,
        }
    }
}

/// Says what `frame` is; any bytes are allowed.
#[must_use]
pub fn parse(frame: &[u8], link: Link) -> Parsed {
    parse_merged(frame, link, Merged::NOT)
}

/// As [`parse`], for a frame that stands for several packets. Only such a frame may leave the IP length at 0.
#[must_use]
pub fn parse_merged(frame: &[u8], link: Link, merged: Merged) -> Parsed {
    let transport = link::strip(frame, link).and_then(|start| ip::walk(frame, start, merged));
    let result = transport.and_then(|transport| match transport.protocol {
        protocol::TCP => tcp::fields(frame, &transport, merged).map(Parsed::Tcp),
        protocol::UDP => udp_fields(frame, &transport, merged).map(Parsed::Udp),
        protocol::AH => Err(transport.refuse(Reason::Authenticated)),
        _ => Err(transport.refuse(Reason::OtherTransport)),
    });
    result.unwrap_or_else(Parsed::Other)
}

fn udp_fields(frame: &[u8], transport: &ip::Transport, merged: Merged) -> Result<UdpFields, Other> {
    const HEADER: usize = 8;
    let malformed = transport.refuse(Reason::Malformed);
    let header = frame.get(transport.start..transport.end).and_then(|udp| udp.first_chunk::<HEADER>());
    let header = header.ok_or(malformed)?;
    Ok(UdpFields {
        source: Endpoint { address: transport.source, port: be16(header, 0) },
        destination: Endpoint { address: transport.destination, port: be16(header, 2) },
        ip_bytes: transport.bytes_on_the_wire(HEADER, merged),
        segments: merged.segments,
        ecn: transport.ecn,
        deep: transport.start + HEADER > DEEPEST,
        quic: frame.get(transport.start + HEADER..transport.end).is_some_and(begins_quic),
    })
}

/// Whether a datagram's payload has the long header of QUIC 1 or 2, as the first of each connection has: the form and the fixed bit, then the
/// version (RFC 9000 section 17.2, RFC 9369 section 3.1). What else shares ports with QUIC begins otherwise (RFC 9443).
#[must_use]
pub fn begins_quic(payload: &[u8]) -> bool {
    const LONG: u8 = 0xc0;
    const VERSIONS: [u32; 2] = [1, 0x6b33_43cf];
    payload.first_chunk::<5>().is_some_and(|head| head[0] & LONG == LONG && VERSIONS.contains(&be32(head, 1)))
}

/// The code point of a frame's IP header; `None`: it is not IP, or too short.
#[must_use]
pub fn dscp(frame: &[u8], link: Link) -> Option<Dscp> {
    let ip = link::strip(frame, link).ok()?;
    let [first, second] = *frame.get(ip.at..)?.first_chunk()?;
    Dscp::new(if ip.version == 6 { (first & 15) << 2 | second >> 6 } else { second >> 2 })
}

/// Big-endian 16 bits at `at`, which the caller has made sure of.
fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Big-endian 32 bits at `at`, which the caller has made sure of.
fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
