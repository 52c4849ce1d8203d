//! Changing the window of a TCP header in place.
//!
//! `HC' = ~(~HC + ~m + m')`, one's complement sums of 16 bits: HC the old checksum, m the old field, m' the new one.
//! Source: RFC 1624 section 3, equation 3. It needs neither the payload nor the pseudo header.

use super::{TcpFields, be16, flag};

/// Writes `window` (raw, before scaling) into the segment that `tcp` was parsed from, and mends the checksum.
///
/// A frame that is not the one `tcp` came from may be changed in the wrong place but never panics.
pub fn patch_window(frame: &mut [u8], tcp: &TcpFields, window: u16) {
    let at = usize::from(tcp.window_at);
    let Some(fields) = frame.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<4>()) else { return };
    let sum = u32::from(!be16(fields, 2)) + u32::from(!be16(fields, 0)) + u32::from(window);
    let checksum = !fold(sum);
    fields[..2].copy_from_slice(&window.to_be_bytes());
    fields[2..].copy_from_slice(&checksum.to_be_bytes());
}

/// Whether the checksum of the segment in `frame` is right, over pseudo header, header and payload.
#[must_use]
pub fn checksum_is_valid(frame: &[u8], tcp: &TcpFields) -> bool {
    let start = usize::from(tcp.window_at) - 14;
    let segment = frame.get(start..start + tcp.header_bytes as usize + tcp.payload_bytes as usize);
    segment.is_some_and(|segment| {
        let addresses = pseudo_header(&tcp.source.address, &tcp.destination.address, super::protocol::TCP, segment);
        fold(addresses) == 0xffff
    })
}

/// Header and payload of the longest segment that the program in the kernel adds up, bytes: the verifier bounds its loop.
const LONGEST_SUMMED: u32 = 2048;

/// Whether a segment by which a connection begins, ends or lets its sender go on has a right checksum; or the part of it that a
/// sender leaves whose network card, or nobody on a virtual link, adds the rest: the sum of the pseudo header. True of all other
/// segments, of merged ones, which were verified before, and of those that are longer than a usual link carries: the program in
/// the kernel cannot add up all of them.
#[must_use]
pub fn is_intact(frame: &[u8], tcp: &TcpFields) -> bool {
    let counts = tcp.payload_bytes == 0 || tcp.has(flag::SYN | flag::FIN | flag::RST);
    let longer = tcp.header_bytes + tcp.payload_bytes > LONGEST_SUMMED;
    tcp.segments > 1 || longer || !counts || checksum_is_valid(frame, tcp) || checksum_is_partial(frame, tcp)
}

fn checksum_is_partial(frame: &[u8], tcp: &TcpFields) -> bool {
    let length = tcp.header_bytes + tcp.payload_bytes;
    let protocol = u32::from(super::protocol::TCP);
    let rest = u32::from(fold(protocol + (length >> 16) + (length & 0xffff)));
    let pseudo = fold(rest + u32::from(sum(&tcp.source.address)) + u32::from(sum(&tcp.destination.address)));
    let at = usize::from(tcp.window_at) + 2;
    frame.get(at..at + 2).is_some_and(|field| be16(field, 0) == pseudo)
}

/// One's complement sum of the pseudo header and the segment. Mapped IPv4 addresses give IPv4's sum but for the
/// prefixes `::ffff`, which add 0xffff twice: nothing.
pub(super) fn pseudo_header(source: &[u8; 16], destination: &[u8; 16], protocol: u8, segment: &[u8]) -> u32 {
    let length = segment.len() as u32;
    let mut total = u32::from(fold(u32::from(protocol) + (length >> 16) + (length & 0xffff)));
    for part in [&source[..], &destination[..], segment] {
        total += u32::from(sum(part));
    }
    total
}

/// One's complement sum of 16-bit words; an odd byte counts as the high half of a word.
pub(super) fn sum(bytes: &[u8]) -> u16 {
    // Of 32 bits at a time, since 2^32 is 1 modulo 2^16 - 1: every packet of the emulator's comes by here.
    let (words, rest) = bytes.as_chunks::<4>();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    let total: u64 = words.iter().chain([&last]).map(|word| u64::from(u32::from_be_bytes(*word))).sum();
    let once = (total >> 32) + (total & 0xffff_ffff);
    fold(fold32(once))
}

const fn fold32(sum: u64) -> u32 {
    ((sum >> 32) + (sum & 0xffff_ffff)) as u32
}

pub(super) const fn fold(sum: u32) -> u16 {
    let once = (sum >> 16) + (sum & 0xffff);
    ((once >> 16) + (once & 0xffff)) as u16
}
