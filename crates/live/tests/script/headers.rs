//! Where TCP stands in a frame and whether its checksum holds, read from the RFCs once more and sharing no line with what is tested.
//!
//! RFC 791 and 8200 (IP), 9293 section 3.1 (TCP), 1071 (checksum), 2516 (PPPoE), IEEE 802.1Q (tags). Lenient on purpose: where
//! headers end is asked, not whether they are sensible, for nothing else may be changed in senseless ones either.

use std::ops::Range;

/// A TCP segment in a frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The segment.
    pub segment: Range<usize>,
    /// Both addresses, which follow each other.
    addresses: Range<usize>,
}

/// What may be changed of a segment: window and checksum, which follow each other.
const WINDOW: usize = 14;
const CHECKSUM: usize = 16;
const URGENT: usize = 18;

impl Found {
    /// The segment of a frame; `raw`: it begins with its IP header; `merged`: it may be longer than its IP header can say.
    pub fn of(frame: &[u8], raw: bool, merged: bool) -> Option<Self> {
        let (ip, end) = if raw { (0, frame.len()) } else { ip_of(frame)? };
        match frame.get(ip)? >> 4 {
            4 => of_v4(frame, ip, end, merged),
            6 => of_v6(frame, ip, end, merged),
            _ => None,
        }
    }

    /// Where the IP header says how long it is.
    pub fn length_at(&self) -> usize {
        // Before the addresses of IPv4 are 12 bytes, of IPv6 8.
        self.addresses.start - if self.addresses.len() == 8 { 10 } else { 4 }
    }

    pub fn window(&self, frame: &[u8]) -> Option<u16> {
        word(frame, self.segment.start + WINDOW)
    }

    /// What all words of the segment and of its pseudo header add up to: 0xffff where the checksum is right.
    pub fn sum(&self, frame: &[u8]) -> u16 {
        let length = self.segment.len() as u32;
        let pseudo = [&length.to_be_bytes()[..], &[0, 0, 0, 6]].concat();
        let parts = [&frame[self.addresses.clone()], &pseudo, &frame[self.segment.clone()]];
        let total: u64 = parts.iter().flat_map(|part| part.chunks(2)).map(in_order).sum();
        // Of ones' complement 0 has two forms; a frame of nothing but zeros is not a segment.
        let folded = total % 0xffff;
        if folded == 0 { 0xffff } else { folded as u16 }
    }

    /// Writes the checksum that is right.
    pub fn mend(&self, frame: &mut [u8]) {
        let at = self.segment.start + CHECKSUM;
        if at + 2 > self.segment.end {
            return;
        }
        frame[at..at + 2].fill(0);
        let checksum = !self.sum(frame);
        frame[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    }
}

/// What a program may have done to a frame: nothing, or a lower window in it, and a checksum that is as right as it was.
pub fn compare(before: &[u8], after: &[u8], found: Option<&Found>) -> Result<Option<u16>, String> {
    if before == after {
        return Ok(None);
    }
    if before.len() != after.len() {
        return Err(format!("{} bytes became {}", before.len(), after.len()));
    }
    let Some(found) = found else { return Err("something was changed where no segment of TCP is".to_owned()) };
    let field = found.segment.start + WINDOW..found.segment.start + URGENT;
    if let Some(at) = (0..before.len()).find(|at| before[*at] != after[*at] && !field.contains(at)) {
        return Err(format!("byte {at} was changed from {} to {}", before[at], after[at]));
    }
    let windows = (found.window(before), found.window(after));
    let (Some(was), Some(is)) = windows else { return Err("a window was written where none is".to_owned()) };
    if is >= was || is == 0 {
        return Err(format!("the window went from {was} to {is}"));
    }
    if found.sum(before) != found.sum(after) {
        return Err(format!(
            "segment and checksum added up to {:#x}, now to {:#x}",
            found.sum(before),
            found.sum(after)
        ));
    }
    Ok(Some(is))
}

fn in_order(pair: &[u8]) -> u64 {
    u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u64::from(*low))
}

fn word(frame: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(frame.get(at..at + 2)?.try_into().ok()?))
}

/// Begin of the IP header behind Ethernet, and where what it may hold ends.
fn ip_of(frame: &[u8]) -> Option<(usize, usize)> {
    let mut at = 12;
    while matches!(word(frame, at)?, 0x8100 | 0x88a8) {
        at += 4;
    }
    match word(frame, at)? {
        0x0800 | 0x86dd => Some((at + 2, frame.len())),
        // Six bytes of PPPoE, the last two of which are a length, and two of PPP.
        0x8864 => Some((at + 10, frame.len().min(at + 8 + usize::from(word(frame, at + 6)?)))),
        _ => None,
    }
}

fn of_v4(frame: &[u8], ip: usize, end: usize, merged: bool) -> Option<Found> {
    let total = match word(frame, ip + 2)? {
        0 if merged => end - ip,
        total => total.into(),
    };
    let begin = ip + usize::from(frame[ip] & 15) * 4;
    // Of a fragment the checksum covers what is not there: nothing of it may be changed.
    let is_fragment = word(frame, ip + 6)? & 0x3fff != 0;
    if is_fragment || *frame.get(ip + 9)? != 6 {
        return None;
    }
    found(begin..(ip + total).min(end), ip + 12..ip + 20)
}

fn of_v6(frame: &[u8], ip: usize, end: usize, merged: bool) -> Option<Found> {
    let total = match word(frame, ip + 4)? {
        0 if merged => end - ip,
        payload => 40 + usize::from(payload),
    };
    let (mut next, mut at) = (*frame.get(ip + 6)?, ip + 40);
    while matches!(next, 0 | 43 | 44 | 60) {
        if next == 44 && word(frame, at + 2)? & 0xfff9 != 0 {
            return None;
        }
        let units = if next == 44 { 0 } else { usize::from(*frame.get(at + 1)?) };
        next = *frame.get(at)?;
        at += 8 + 8 * units;
    }
    if next != 6 {
        return None;
    }
    found(at..(ip + total).min(end), ip + 8..ip + 40)
}

fn found(segment: Range<usize>, addresses: Range<usize>) -> Option<Found> {
    (segment.start + 20 <= segment.end && addresses.end <= segment.start).then_some(Found { segment, addresses })
}

/// The example of RFC 1071 section 3 adds up to ddf2; here the pseudo header comes to 6 and the length.
#[test]
fn sums_are_those_of_rfc_1071() {
    let words = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
    let found = Found { segment: 0..8, addresses: 8..8 };
    assert_eq!(found.sum(&words), 0xddf2 + 6 + 8);
    let odd = Found { segment: 0..7, addresses: 8..8 };
    assert_eq!(odd.sum(&words), 0xddf2 - 0xf7 + 6 + 7);
}
