//! The SACK option of a segment: its blocks, and taking it out in place.
//!
//! Source: RFC 2018 section 3. What is taken out becomes NOPs, so that nothing else moves.

use super::patch::{fold, sum};
use super::{TcpFields, be16, be32};

const END: u8 = 0;
const NOP: u8 = 1;
const SACK: u8 = 5;
/// Offset of the checksum in a TCP header, and of its options.
const CHECKSUM_AT: usize = 16;
const OPTIONS_AT: usize = 20;

/// Blocks `[left, right)` as written, at most four.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [(u32, u32); 4],
    count: usize,
}

impl SackBlocks {
    /// In the order of the option.
    #[must_use]
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..self.count]
    }
}

/// The blocks of the segment in `frame` that `tcp` was parsed from; of several options the last.
#[must_use]
pub fn sack_blocks(frame: &[u8], tcp: &TcpFields) -> SackBlocks {
    let mut found = SackBlocks::default();
    let start = usize::from(tcp.window_at).saturating_sub(14);
    let Some(header) = frame.get(start..start + tcp.header_bytes as usize) else { return found };
    each_sack(header, |option| {
        found = SackBlocks::default();
        for block in option.chunks_exact(8) {
            found.blocks[found.count] = (be32(block, 0), be32(block, 4));
            found.count += 1;
        }
    });
    found
}

/// Takes the SACK options out of the segment in `frame` that `tcp` was parsed from, and mends the checksum (RFC 1624).
pub fn strip_sack(frame: &mut [u8], tcp: &TcpFields) {
    let start = usize::from(tcp.window_at).saturating_sub(14);
    let Some(header) = frame.get_mut(start..start + tcp.header_bytes as usize) else { return };
    let mut places = [(0, 0); 4];
    let mut count = 0;
    let base = header.as_ptr() as usize;
    each_sack(header, |option| {
        if let Some(place) = places.get_mut(count) {
            let at = option.as_ptr() as usize - base;
            *place = (at - 2, at + option.len());
            count += 1;
        }
    });
    if count == 0 {
        return;
    }
    let before = sum(&header[OPTIONS_AT..]);
    for (from, to) in &places[..count] {
        header[*from..*to].fill(NOP);
    }
    let after = sum(&header[OPTIONS_AT..]);
    let checksum = !fold(u32::from(!be16(header, CHECKSUM_AT)) + u32::from(!before) + u32::from(after));
    header[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&checksum.to_be_bytes());
}

/// Hands over the contents of each SACK option of a header.
fn each_sack(header: &[u8], mut with: impl FnMut(&[u8])) {
    let mut options = header.get(OPTIONS_AT..).unwrap_or_default();
    while let Some((&kind, after)) = options.split_first() {
        match kind {
            END => return,
            NOP => {
                options = after;
                continue;
            }
            _ => {}
        }
        let Some(length) = after.first().map(|length| usize::from(*length)) else { return };
        if length < 2 || length > options.len() {
            return;
        }
        let (this, rest) = options.split_at(length);
        if kind == SACK && matches!(length, 10 | 18 | 26 | 34) {
            with(&this[2..]);
        }
        options = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::build::{Frame, Segment, option, v4};
    use crate::wire::{Endpoint, Link, Parsed, checksum_is_valid, flag, parse};
    use proptest::prelude::*;

    fn frame(options: Vec<u8>) -> (Vec<u8>, TcpFields) {
        let end = |last, port| Endpoint { address: v4([192, 168, 1, last]), port };
        let segment = Segment { ack: 1_000, flags: flag::ACK, window: 77, options, ..Segment::default() };
        let bytes = Frame::tcp(end(20, 5_000), end(1, 443), segment, 0).bytes();
        let Parsed::Tcp(tcp) = parse(&bytes, Link::Ethernet) else { panic!("a segment") };
        (bytes, tcp)
    }

    #[test]
    fn blocks_are_read_in_their_order() {
        let blocks = [(3_000, 4_000), (5_000, 6_000)];
        let (bytes, tcp) = frame([option::timestamps(1, 2), option::sack(&blocks)].concat());
        assert_eq!(sack_blocks(&bytes, &tcp).as_slice(), blocks);
        let (bytes, tcp) = frame(option::timestamps(1, 2));
        assert_eq!(sack_blocks(&bytes, &tcp).as_slice(), []);
    }

    proptest! {
        #[test]
        fn without_its_blocks_it_is_the_same_segment(blocks in prop::collection::vec(any::<(u32, u32)>(), 0..4), stamps: (u32, u32)) {
            let options = [option::timestamps(stamps.0, stamps.1), option::sack(&blocks)].concat();
            let (mut bytes, before) = frame(if blocks.is_empty() { option::timestamps(stamps.0, stamps.1) } else { options });
            strip_sack(&mut bytes, &before);
            let Parsed::Tcp(tcp) = parse(&bytes, Link::Ethernet) else { panic!("a segment") };
            prop_assert_eq!(tcp, TcpFields { sack_high: None, ..before });
            prop_assert!(checksum_is_valid(&bytes, &tcp));
            prop_assert_eq!(sack_blocks(&bytes, &tcp), SackBlocks::default());
        }
    }
}
