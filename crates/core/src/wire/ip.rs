//! IPv4 with options and IPv6 with extension headers: where the transport header starts, and how long all is.

use super::link::{IpStart, refuse};
use super::{DEEPEST, Merged, Other, be16};
use crate::layout::Reason;

/// IP protocol numbers that matter here.
pub mod protocol {
    /// IPv6 hop-by-hop options.
    pub const HOP_BY_HOP: u8 = 0;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// IPv6 routing header.
    pub const ROUTING: u8 = 43;
    /// IPv6 fragment header.
    pub const FRAGMENT: u8 = 44;
    /// IPsec authentication header: what follows it may not be changed.
    pub const AH: u8 = 51;
    /// IPv6 destination options.
    pub const DESTINATION: u8 = 60;
    /// Reserved by IANA; stands for "not known" here.
    pub const UNKNOWN: u8 = 255;
}

/// Extension headers that are stepped over before a chain is given up.
const CHAIN: usize = 6;

/// A transport header's place.
#[derive(Clone, Copy)]
pub(super) struct Transport {
    pub source: [u8; 16],
    pub destination: [u8; 16],
    pub protocol: u8,
    /// Offset of the transport header in the frame.
    pub start: usize,
    /// Offset of the packet's end in the frame.
    pub end: usize,
    /// Length of the IP packet as it lies in the frame.
    pub ip_bytes: u32,
    /// The two bits of congestion marks ([`super::ecn`]).
    pub ecn: u8,
}

impl Transport {
    pub fn refuse(&self, reason: Reason) -> Other {
        let Self { source, destination, protocol, ip_bytes, .. } = *self;
        Other { reason, ip_bytes, protocol, source, destination }
    }

    /// IP bytes with the headers that merging left out.
    pub fn bytes_on_the_wire(&self, header: usize, merged: Merged) -> u32 {
        let headers = self.ip_bytes - (self.end - self.start) as u32 + header as u32;
        self.ip_bytes.wrapping_add(merged.segments.saturating_sub(1).wrapping_mul(headers))
    }
}

pub(super) fn walk(frame: &[u8], ip: IpStart, merged: Merged) -> Result<Transport, Other> {
    let bytes = &frame[..ip.end];
    if ip.version == 4 { v4(bytes, ip.at, merged) } else { v6(bytes, ip.at, merged) }
}

fn v4(frame: &[u8], at: usize, merged: Merged) -> Result<Transport, Other> {
    let malformed = refuse(Reason::Malformed);
    let header = frame.get(at..).and_then(|ip| ip.first_chunk::<20>()).ok_or(malformed)?;
    let header_bytes = usize::from(header[0] & 15) * 4;
    let total = match usize::from(be16(header, 2)) {
        0 if merged.segments > 1 => frame.len() - at,
        total => total,
    };
    if header[0] >> 4 != 4 || header_bytes < 20 || total < header_bytes || at + total > frame.len() {
        return Err(malformed);
    }
    let transport = Transport {
        source: mapped(header, 12),
        destination: mapped(header, 16),
        protocol: header[9],
        start: at + header_bytes,
        end: at + total,
        ip_bytes: total as u32,
        ecn: header[1] & 3,
    };
    // More fragments, or an offset.
    if be16(header, 6) & 0x3fff != 0 {
        return Err(transport.refuse(Reason::Fragment));
    }
    Ok(transport)
}

fn mapped(header: &[u8; 20], at: usize) -> [u8; 16] {
    let mut address = [0; 16];
    address[10..12].fill(0xff);
    address[12..].copy_from_slice(&header[at..at + 4]);
    address
}

fn v6(frame: &[u8], at: usize, merged: Merged) -> Result<Transport, Other> {
    let malformed = refuse(Reason::Malformed);
    let header = frame.get(at..).and_then(|ip| ip.first_chunk::<40>()).ok_or(malformed)?;
    let total = match usize::from(be16(header, 4)) {
        0 if merged.segments > 1 => frame.len() - at,
        payload => 40 + payload,
    };
    if header[0] >> 4 != 6 || at + total > frame.len() {
        return Err(malformed);
    }
    let mut transport = Transport {
        source: [0; 16],
        destination: [0; 16],
        protocol: header[6],
        start: at + 40,
        end: at + total,
        ip_bytes: total as u32,
        ecn: header[1] >> 4 & 3,
    };
    transport.source.copy_from_slice(&header[8..24]);
    transport.destination.copy_from_slice(&header[24..40]);
    for _header in 0..CHAIN {
        if !extension(frame, &mut transport)? {
            return Ok(transport);
        }
    }
    Err(transport.refuse(Reason::OtherTransport))
}

/// Steps over one extension header; false when there is none.
fn extension(frame: &[u8], transport: &mut Transport) -> Result<bool, Other> {
    let this = transport.protocol;
    if !matches!(this, protocol::HOP_BY_HOP | protocol::ROUTING | protocol::DESTINATION | protocol::FRAGMENT) {
        return Ok(false);
    }
    transport.protocol = protocol::UNKNOWN;
    if transport.start + 8 > transport.end {
        return Err(transport.refuse(Reason::Malformed));
    }
    if transport.start + 8 > DEEPEST {
        return Err(transport.refuse(Reason::OtherTransport));
    }
    let header = &frame[transport.start..transport.start + 8];
    transport.protocol = header[0];
    if this == protocol::FRAGMENT {
        // An atomic fragment (offset 0, no more to come) is a whole packet.
        if be16(header, 2) & 0xfff9 != 0 {
            return Err(transport.refuse(Reason::Fragment));
        }
        transport.start += 8;
    } else {
        transport.start += (usize::from(header[1]) + 1) * 8;
    }
    Ok(true)
}
