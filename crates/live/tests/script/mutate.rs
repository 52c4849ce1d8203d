//! What strangers make of a packet: any field of any header, lengths, options, flags, checksums.

use lasthop_core::packet::Direction;
use lasthop_core::wire::build::option;
use lasthop_core::wire::{Merged, flag};

use crate::headers::Found;
use crate::random::Random;

/// A packet that crosses the access point.
#[derive(Clone, Debug)]
pub struct Crossing {
    pub direction: Direction,
    /// It begins with its IP header.
    pub raw: bool,
    pub merged: Merged,
    pub frame: Vec<u8>,
}

/// What a stranger makes of a packet, and what that is called.
pub fn mutate(of: &Crossing, random: &mut Random) -> (Crossing, &'static str) {
    let mut odd = of.clone();
    let found = Found::of(&of.frame, of.raw, of.merged.segments > 1).expect("it is of the connection");
    let tcp = found.segment.start;
    let kind = match random.below(19) {
        0 => number(&mut odd.frame, tcp + 4, "sequence number", random),
        1 => number(&mut odd.frame, tcp + 8, "acknowledgment", random),
        2 => byte(&mut odd.frame, tcp + 14 + random.below(2) as usize, "window", random),
        3 => byte(&mut odd.frame, tcp + 13, "flags", random),
        4 | 5 => control_flags(&mut odd.frame, tcp + 13, random),
        6 => byte(&mut odd.frame, tcp + 12, "data offset", random),
        7 => byte(&mut odd.frame, tcp + random.below(4) as usize, "port", random),
        8 | 9 => options(&mut odd.frame, tcp, found.segment.end, random),
        10 => byte(&mut odd.frame, random.below(tcp as u32 + 20) as usize, "header", random),
        11 => {
            let length = odd.frame.len() as u32;
            byte(&mut odd.frame, random.below(length) as usize, "anything", random)
        }
        12 => flip(&mut odd.frame, random),
        13 => {
            odd.frame.truncate(random.below(of.frame.len() as u32) as usize);
            "truncation"
        }
        14 => {
            odd.frame.extend((0..1 + random.below(64)).map(|_| random.next() as u8));
            "padding"
        }
        15 => {
            odd.merged = Merged { segments: 1 + random.below(40), segment_bytes: random.below(3_000) };
            "merging"
        }
        16 => {
            odd.direction = of.direction.reverse();
            "reflection"
        }
        17 => {
            let at = found.length_at();
            let length = (random.below(found.segment.len() as u32 + 80) as u16).to_be_bytes();
            odd.frame[at..at + 2].copy_from_slice(&length);
            "length"
        }
        // Once more, or late.
        _ => "repetition",
    };
    if random.percent(60)
        && let Some(found) = Found::of(&odd.frame, odd.raw, odd.merged.segments > 1)
    {
        found.mend(&mut odd.frame);
    }
    (odd, kind)
}

fn byte(frame: &mut [u8], at: usize, kind: &'static str, random: &mut Random) -> &'static str {
    frame[at] = random.next() as u8;
    kind
}

fn flip(frame: &mut [u8], random: &mut Random) -> &'static str {
    let at = random.below(frame.len() as u32) as usize;
    frame[at] ^= 1 << random.below(8);
    "bit"
}

fn control_flags(frame: &mut [u8], at: usize, random: &mut Random) -> &'static str {
    const FLAGS: [u8; 8] = [
        flag::SYN,
        flag::SYN | flag::ACK,
        flag::RST,
        flag::RST | flag::ACK,
        flag::FIN | flag::ACK,
        flag::FIN,
        0,
        flag::ACK,
    ];
    frame[at] = random.pick(&FLAGS);
    "control flags"
}

fn number(frame: &mut [u8], at: usize, kind: &'static str, random: &mut Random) -> &'static str {
    let was = u32::from_be_bytes(frame[at..at + 4].try_into().expect("four bytes"));
    let is = match random.below(4) {
        0 => random.next() as u32,
        1 => was.wrapping_add(random.below(5_000)),
        2 => was.wrapping_sub(random.below(5_000)),
        _ => was.wrapping_add(random.pick(&[0x3fff_ffff, 0x7fff_ffff, 0x8000_0000, 0xc000_0000])),
    };
    frame[at..at + 4].copy_from_slice(&is.to_be_bytes());
    kind
}

/// Other options, some of them where payload was.
fn options(frame: &mut [u8], tcp: usize, end: usize, random: &mut Random) -> &'static str {
    let words = random.below(11).min((end - tcp - 20) as u32 / 4) as usize;
    let mut bytes = Vec::new();
    while bytes.len() < words * 4 {
        bytes.extend(match random.below(7) {
            0 => option::timestamps(random.next() as u32, random.next() as u32),
            1 => option::sack(&[(random.next() as u32, random.next() as u32)]),
            2 => option::window_scale(random.next() as u8),
            3 => option::md5(),
            4 => option::ao(),
            5 => vec![random.next() as u8, random.below(12) as u8],
            _ => vec![1],
        });
    }
    bytes.truncate(words * 4);
    frame[tcp + 12] = ((5 + words) << 4) as u8;
    frame[tcp + 20..tcp + 20 + bytes.len()].copy_from_slice(&bytes);
    "options"
}
