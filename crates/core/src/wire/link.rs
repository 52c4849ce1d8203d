//! Link headers: where the IP header starts.

use super::{Link, Other, be16, protocol};
use crate::layout::Reason;

/// EtherTypes and PPP protocol numbers.
pub(super) mod ethertype {
    pub const IPV4: u16 = 0x0800;
    pub const IPV6: u16 = 0x86dd;
    pub const VLAN: u16 = 0x8100;
    pub const SERVICE_VLAN: u16 = 0x88a8;
    pub const PPPOE_SESSION: u16 = 0x8864;
    pub const PPP_IPV4: u16 = 0x0021;
    pub const PPP_IPV6: u16 = 0x0057;
}

/// Where an IP packet lies in a frame.
#[derive(Clone, Copy)]
pub(super) struct IpStart {
    pub at: usize,
    pub version: u8,
    /// End of what the link layer says it carries: padding lies behind it.
    pub end: usize,
}

pub(super) const fn refuse(reason: Reason) -> Other {
    Other { reason, ip_bytes: 0, protocol: protocol::UNKNOWN, source: [0; 16], destination: [0; 16] }
}

/// Steps over Ethernet, up to two tags, and PPPoE.
pub(super) fn strip(frame: &[u8], link: Link) -> Result<IpStart, Other> {
    if link == Link::Ip {
        let version = frame.first().ok_or(refuse(Reason::Malformed))? >> 4;
        return match version {
            4 | 6 => Ok(IpStart { at: 0, version, end: frame.len() }),
            _ => Err(refuse(Reason::NotIp)),
        };
    }
    let (mut at, mut kind) = (14, field(frame, 12)?);
    for _tag in 0..2 {
        if kind == ethertype::VLAN || kind == ethertype::SERVICE_VLAN {
            kind = field(frame, at + 2)?;
            at += 4;
        }
    }
    match kind {
        ethertype::IPV4 => Ok(IpStart { at, version: 4, end: frame.len() }),
        ethertype::IPV6 => Ok(IpStart { at, version: 6, end: frame.len() }),
        ethertype::PPPOE_SESSION => pppoe(frame, at),
        _ => Err(refuse(Reason::NotIp)),
    }
}

/// RFC 2516 section 4: version 1, type 1, code 0, session, length of what follows; then the PPP protocol.
fn pppoe(frame: &[u8], at: usize) -> Result<IpStart, Other> {
    let ppp = field(frame, at + 6)?;
    if field(frame, at)? != 0x1100 {
        return Err(refuse(Reason::NotIp));
    }
    let length = usize::from(field(frame, at + 4)?);
    let end = at + 6 + length;
    if length < 2 || end > frame.len() {
        return Err(refuse(Reason::Malformed));
    }
    match ppp {
        ethertype::PPP_IPV4 => Ok(IpStart { at: at + 8, version: 4, end }),
        ethertype::PPP_IPV6 => Ok(IpStart { at: at + 8, version: 6, end }),
        _ => Err(refuse(Reason::NotIp)),
    }
}

fn field(frame: &[u8], at: usize) -> Result<u16, Other> {
    frame.get(at..at + 2).map(|bytes| be16(bytes, 0)).ok_or(refuse(Reason::Malformed))
}
