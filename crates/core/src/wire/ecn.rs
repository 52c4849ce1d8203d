//! The two bits of congestion marks in an IP header, read and set in place.
//!
//! IPv4: the low bits of the second byte, and the header's checksum is mended (RFC 1624, as in `patch.rs`). IPv6: the low
//! bits of the traffic class, in the high half of the second byte. Source: RFC 3168 section 5, RFC 8200 section 3.

use super::patch::fold;
use super::{Link, be16, link};

/// Its ends do not understand marks.
pub const NOT_ECT: u8 = 0;
/// Congestion was met.
pub const CE: u8 = 3;

/// The bits of a frame; [`NOT_ECT`] when it is not IP or too short.
#[must_use]
pub fn of(frame: &[u8], link: Link) -> u8 {
    let Ok(ip) = link::strip(frame, link) else { return NOT_ECT };
    match (ip.version, frame.get(ip.at + 1)) {
        (4, Some(byte)) => byte & 3,
        (6, Some(byte)) => byte >> 4 & 3,
        _ => NOT_ECT,
    }
}

/// Marks a frame whose ends understand that. False: they do not, and it stays as it is.
pub fn set_ce(frame: &mut [u8], link: Link) -> bool {
    if of(frame, link) == NOT_ECT {
        return false;
    }
    let Ok(ip) = link::strip(frame, link) else { return false };
    if ip.version == 6 {
        frame[ip.at + 1] |= CE << 4;
        return true;
    }
    let Some(header) = frame.get_mut(ip.at..).and_then(|ip| ip.first_chunk_mut::<12>()) else { return false };
    let before = be16(header, 0);
    header[1] |= CE;
    let sum = u32::from(!be16(header, 10)) + u32::from(!before) + u32::from(be16(header, 0));
    header[10..].copy_from_slice(&(!fold(sum)).to_be_bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::super::patch::sum;
    use super::*;

    /// The example of RFC 1071's implementers: a header whose checksum is right.
    const HEADER: [u8; 20] = [
        0x45, 0x02, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0x5f, 0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8,
        0x00, 0xc7,
    ];

    #[test]
    fn a_marked_header_has_a_right_checksum() {
        assert_eq!((sum(&HEADER), of(&HEADER, Link::Ip)), (0xffff, 2));
        for tos in [1, 2, 3] {
            let mut header = HEADER;
            header[1] = tos;
            header[10..12].fill(0);
            let right = !sum(&header);
            header[10..12].copy_from_slice(&right.to_be_bytes());
            assert!(set_ce(&mut header, Link::Ip));
            assert_eq!((sum(&header), of(&header, Link::Ip)), (0xffff, CE), "{tos}");
        }
    }

    #[test]
    fn what_does_not_understand_marks_stays_as_it_is() {
        let mut header = HEADER;
        header[1] = 0xfc;
        let before = header;
        assert!(!set_ce(&mut header, Link::Ip));
        assert_eq!(header, before);
        let mut short = [0x45];
        assert!(!set_ce(&mut short, Link::Ip) && !set_ce(&mut [0u8; 14], Link::Ethernet));
    }

    #[test]
    fn the_traffic_class_of_ipv6_has_them_too() {
        let mut header = [0u8; 40];
        (header[0], header[1]) = (0x6a, 0x2f);
        assert_eq!(of(&header, Link::Ip), 2);
        assert!(set_ce(&mut header, Link::Ip));
        assert_eq!((header[0], header[1]), (0x6a, 0x3f));
    }
}
