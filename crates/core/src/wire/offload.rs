//! What a network card does for its kernel: long TCP frames cut into segments, segments of one moment joined into a long
//! frame, and checksums filled in.
//!
//! A kernel hands over, and takes, a header of 10 bytes before each frame (virtio 1.2, section 5.1.6; `linux/virtio_net.h`):
//!
//! | bytes | field | |
//! |---|---|---|
//! | 0 | flags | 1: the checksum is to be filled in |
//! | 1 | kind of long frame | 0 none, 1 TCP over IPv4, 4 over IPv6 |
//! | 2..4 | bytes of all headers | |
//! | 4..6 | payload of a segment | |
//! | 6..8, 8..10 | where the sum begins, and where behind that it belongs | |
//!
//! **Cutting** (TSO): each segment has the headers of the whole with its own length, sequence number and IP identification (the
//! first one's, and one more each); PSH and FIN stay with the last one, CWR with the first.
//! **Joining** (GRO): a segment goes on with a run when it differs from the first one in nothing but length, checksums, IP
//! identification and sequence number, which go on where the one before ended, and PSH, which ends a run as a segment
//! shorter than the first does. Cutting what was joined gives the same frames back. Source: Linux, `tcp_gro_receive`,
//! `inet_gro_receive`.
//!
//! Not done: IP options and extension headers, tags, SYN, FIN, RST, URG and CWR are never joined; UDP neither.

use super::patch::{fold, sum};
use super::{be16, be32, flag, protocol};

/// Bytes before each frame.
pub const HEADER: usize = 10;
/// Longest headers of a segment: Ethernet, IPv6, and TCP with all its options, bytes.
pub const LONGEST_HEADERS: usize = 14 + 40 + 60;
/// Most segments that are joined.
pub const MOST: usize = 64;

const ETHERNET: usize = 14;
const NEEDS_CHECKSUM: u8 = 1;
const TCP_V4: u8 = 1;
const TCP_V6: u8 = 4;
/// Longest IP packet, bytes.
const LONGEST: usize = 65_535;
/// Of TCP's flags, those of congestion marks (RFC 3168 section 6.1).
const ECE: u8 = 64;
const CWR: u8 = 128;

/// What is left to be done to a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// A sum is to be filled in: from where on it is taken, and where behind that it belongs, bytes.
    pub checksum: Option<(u16, u16)>,
    /// Payload of each segment but the last, bytes; 0: the frame is one packet.
    pub segment_bytes: u16,
}

impl Offload {
    /// As the kernel wrote it.
    #[must_use]
    pub fn read(header: &[u8; HEADER]) -> Self {
        let word = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        let checksum = (header[0] & NEEDS_CHECKSUM != 0).then(|| (word(6), word(8)));
        Self { checksum, segment_bytes: if header[1] == 0 { 0 } else { word(4) } }
    }

    /// Fills in the checksum of a frame that is one packet. True: there was one to fill in.
    pub fn fill_in(&self, frame: &mut [u8]) -> bool {
        let Some((start, offset)) = self.checksum else { return false };
        let at = usize::from(start) + usize::from(offset);
        let Some(covered) = frame.get(usize::from(start)..) else { return false };
        let Some(value) = (at + 2 <= frame.len()).then(|| !sum(covered)) else { return false };
        // Of UDP, 0 would mean that there is none (RFC 768).
        let value = if value == 0 && offset == 6 { 0xffff } else { value };
        frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
        true
    }
}

/// A long frame, segment by segment.
#[derive(Clone, Debug)]
pub struct Segments<'a> {
    frame: &'a [u8],
    tcp_at: usize,
    payload_at: usize,
    segment_bytes: usize,
    /// Payload that has been handed out, bytes.
    done: usize,
    number: u16,
}

impl<'a> Segments<'a> {
    /// `None`: the frame is no long frame of TCP.
    #[must_use]
    pub fn of(frame: &'a [u8], offload: &Offload) -> Option<Self> {
        let tcp_at = usize::from(offload.checksum?.0);
        let (tcp, ip) = (frame.get(tcp_at..)?.first_chunk::<20>()?, frame.get(ETHERNET..tcp_at)?);
        let version = ip.first()? >> 4;
        let fits = (version == 4 && ip.len() >= 20) || (version == 6 && ip.len() >= 40);
        let payload_at = tcp_at + usize::from(tcp[12] >> 4) * 4;
        let is_long = fits && offload.segment_bytes > 0 && payload_at >= tcp_at + 20 && payload_at < frame.len();
        is_long.then_some(Self {
            frame,
            tcp_at,
            payload_at,
            segment_bytes: usize::from(offload.segment_bytes),
            done: 0,
            number: 0,
        })
    }

    /// Segments that are left.
    #[must_use]
    pub const fn left(&self) -> usize {
        (self.frame.len() - self.payload_at).saturating_sub(self.done).div_ceil(self.segment_bytes)
    }

    /// Writes the next segment, a whole frame with right checksums, and says how long it is. `None`: that was all, or there is
    /// no room for it.
    pub fn write_next(&mut self, out: &mut [u8]) -> Option<usize> {
        let payload = &self.frame[self.payload_at..];
        let left = payload.get(self.done..).filter(|left| !left.is_empty())?;
        let (piece, is_last) = (&left[..left.len().min(self.segment_bytes)], left.len() <= self.segment_bytes);
        let length = self.payload_at + piece.len();
        let out = out.get_mut(..length)?;
        out[..self.payload_at].copy_from_slice(&self.frame[..self.payload_at]);
        out[self.payload_at..].copy_from_slice(piece);
        let ip_bytes = length - ETHERNET;
        if out[ETHERNET] >> 4 == 4 {
            let id = be16(out, ETHERNET + 4).wrapping_add(self.number);
            out[ETHERNET + 2..ETHERNET + 4].copy_from_slice(&(ip_bytes as u16).to_be_bytes());
            out[ETHERNET + 4..ETHERNET + 6].copy_from_slice(&id.to_be_bytes());
            fill_in_v4(&mut out[ETHERNET..self.tcp_at]);
        } else {
            out[ETHERNET + 4..ETHERNET + 6].copy_from_slice(&((ip_bytes - 40) as u16).to_be_bytes());
        }
        let seq = be32(out, self.tcp_at + 4).wrapping_add(self.done as u32);
        out[self.tcp_at + 4..self.tcp_at + 8].copy_from_slice(&seq.to_be_bytes());
        let flags = &mut out[self.tcp_at + 13];
        *flags &= if is_last { 0xff } else { !(flag::PSH | flag::FIN) };
        *flags &= if self.number == 0 { 0xff } else { !CWR };
        out[self.tcp_at + 16..self.tcp_at + 18].fill(0);
        let value = !fold(u32::from(pseudo_header(out, self.tcp_at)) + u32::from(sum(&out[self.tcp_at..])));
        out[self.tcp_at + 16..self.tcp_at + 18].copy_from_slice(&value.to_be_bytes());
        self.done += piece.len();
        self.number = self.number.wrapping_add(1);
        Some(length)
    }
}

/// Segments that become one frame.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    tcp_at: usize,
    payload_at: usize,
    segment_bytes: usize,
    next_seq: u32,
    next_id: u16,
    /// Payload, bytes.
    bytes: usize,
    segments: usize,
    is_over: bool,
}

/// The headers of a frame that was joined.
#[derive(Clone, Copy, Debug)]
pub struct Joined {
    /// What stands before it.
    pub header: [u8; HEADER],
    /// Its own headers; the payloads of its segments follow.
    headers: [u8; LONGEST_HEADERS],
    length: usize,
}

impl Joined {
    /// Its own headers; the payloads of its segments follow.
    #[must_use]
    pub fn headers(&self) -> &[u8] {
        &self.headers[..self.length]
    }
}

impl Run {
    /// `None`: nothing may follow `first` in one frame.
    #[must_use]
    pub fn of(first: &[u8]) -> Option<Self> {
        let ip = first.get(ETHERNET..)?;
        let (tcp_at, length) = match (be16(first, 12), ip.first()?) {
            (0x0800, 0x45) if ip.len() >= 40 && ip[9] == protocol::TCP && be16(ip, 6) & 0x3fff == 0 => {
                (ETHERNET + 20, usize::from(be16(ip, 2)))
            }
            (0x86dd, 0x60..=0x6f) if ip.len() >= 60 && ip[6] == protocol::TCP => {
                (ETHERNET + 40, 40 + usize::from(be16(ip, 4)))
            }
            _ => return None,
        };
        let payload_at = tcp_at + usize::from(first[tcp_at + 12] >> 4) * 4;
        let segment_bytes = (ETHERNET + length).checked_sub(payload_at).filter(|bytes| *bytes > 0)?;
        let flags = first[tcp_at + 13];
        let is_plain = flags & !(flag::PSH | ECE) == flag::ACK && first.len() == ETHERNET + length;
        (is_plain && payload_at >= tcp_at + 20).then(|| Self {
            tcp_at,
            payload_at,
            segment_bytes,
            next_seq: be32(first, tcp_at + 4).wrapping_add(segment_bytes as u32),
            next_id: if tcp_at == ETHERNET + 20 { be16(ip, 4).wrapping_add(1) } else { 0 },
            bytes: segment_bytes,
            segments: 1,
            is_over: flags & flag::PSH != 0,
        })
    }

    /// Whether `next` goes on with the run that began with `first`; then it is a part of it.
    pub fn join(&mut self, first: &[u8], next: &[u8]) -> bool {
        let Some(own) = Self::of(next).filter(|own| (own.tcp_at, own.payload_at) == (self.tcp_at, self.payload_at))
        else {
            return false;
        };
        let is_v4 = self.tcp_at == ETHERNET + 20;
        let (tcp, end) = (self.tcp_at, self.payload_at);
        let same = |from: usize, to: usize| first[from..to] == next[from..to];
        let same_ip = if is_v4 { same(0, 16) && same(20, 24) && same(26, tcp) } else { same(0, 18) && same(20, tcp) };
        let push = |frame: &[u8]| frame[tcp + 13] & !flag::PSH;
        let same_tcp = same(tcp, tcp + 4) && same(tcp + 8, tcp + 13) && push(first) == push(next);
        let same_tcp = same_tcp && same(tcp + 14, tcp + 16) && same(tcp + 18, end);
        let follows = be32(next, tcp + 4) == self.next_seq && (!is_v4 || own.next_id == self.next_id.wrapping_add(1));
        let fits = own.segment_bytes <= self.segment_bytes
            && self.segments < MOST
            && end - ETHERNET + self.bytes + own.segment_bytes <= LONGEST;
        if self.is_over || !(same_ip && same_tcp && follows && fits) {
            return false;
        }
        self.is_over = own.is_over || own.segment_bytes < self.segment_bytes;
        (self.next_seq, self.next_id) = (own.next_seq, own.next_id);
        self.bytes += own.segment_bytes;
        self.segments += 1;
        true
    }

    /// Segments so far.
    #[must_use]
    pub const fn segments(&self) -> usize {
        self.segments
    }

    /// Where the payload of each of its segments begins.
    #[must_use]
    pub const fn payload_at(&self) -> usize {
        self.payload_at
    }

    /// The headers of all of it: those of `first`, with the length, the PSH of `last` and what is left to be done.
    #[must_use]
    pub fn joined(&self, first: &[u8], last: &[u8]) -> Joined {
        let (tcp, length) = (self.tcp_at, self.payload_at);
        let mut headers = [0; LONGEST_HEADERS];
        headers[..length].copy_from_slice(&first[..length]);
        let ip_bytes = length - ETHERNET + self.bytes;
        let is_v4 = tcp == ETHERNET + 20;
        if is_v4 {
            headers[ETHERNET + 2..ETHERNET + 4].copy_from_slice(&(ip_bytes as u16).to_be_bytes());
            fill_in_v4(&mut headers[ETHERNET..tcp]);
        } else {
            headers[ETHERNET + 4..ETHERNET + 6].copy_from_slice(&((ip_bytes - 40) as u16).to_be_bytes());
        }
        headers[tcp + 13] |= last[tcp + 13] & flag::PSH;
        let pseudo = pseudo_header(&headers, tcp);
        headers[tcp + 16..tcp + 18].copy_from_slice(&pseudo.to_be_bytes());
        let mut header = [0; HEADER];
        header[..2].copy_from_slice(&[NEEDS_CHECKSUM, if is_v4 { TCP_V4 } else { TCP_V6 }]);
        for (at, word) in [(2, length), (4, self.segment_bytes), (6, tcp), (8, 16)] {
            header[at..at + 2].copy_from_slice(&(word as u16).to_ne_bytes());
        }
        Joined { header, headers, length }
    }
}

/// One's complement sum of the pseudo header of the TCP segment at `tcp_at` in `frame`, by the length that its IP header says.
fn pseudo_header(frame: &[u8], tcp_at: usize) -> u16 {
    let ip = &frame[ETHERNET..];
    let (addresses, end) = match ip[0] >> 4 {
        4 => (&ip[12..20], usize::from(be16(ip, 2))),
        _ => (&ip[8..40], 40 + usize::from(be16(ip, 4))),
    };
    let length = (ETHERNET + end).saturating_sub(tcp_at) as u32;
    fold(u32::from(sum(addresses)) + u32::from(protocol::TCP) + (length >> 16) + (length & 0xffff))
}

/// Fills in the checksum of an IPv4 header.
fn fill_in_v4(header: &mut [u8]) {
    header[10..12].fill(0);
    let value = !sum(header);
    header[10..12].copy_from_slice(&value.to_be_bytes());
}

#[cfg(test)]
mod tests;
