//! TCP: the fields the controller reads, options included.

use super::ip::Transport;
use super::seq;
use super::{DEEPEST, Endpoint, Merged, Other, be16, be32};
use crate::layout::{LARGEST_SCALE, Reason};

/// Bits of [`TcpFields::flags`].
pub mod flag {
    /// No more data from the sender.
    pub const FIN: u8 = 1;
    /// Synchronises sequence numbers.
    pub const SYN: u8 = 2;
    /// Resets the connection.
    pub const RST: u8 = 4;
    /// Push.
    pub const PSH: u8 = 8;
    /// The acknowledgment field is valid.
    pub const ACK: u8 = 16;
}

/// Kinds of options.
mod option {
    pub const END: u8 = 0;
    pub const NOP: u8 = 1;
    pub const MSS: u8 = 2;
    pub const WINDOW_SCALE: u8 = 3;
    pub const SACK: u8 = 5;
    pub const TIMESTAMPS: u8 = 8;
    pub const MD5: u8 = 19;
    pub const AO: u8 = 29;
}

/// A TCP segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpFields {
    /// Where it comes from.
    pub source: Endpoint,
    /// Where it goes.
    pub destination: Endpoint,
    /// Sequence number of its first byte.
    pub seq: u32,
    /// Next byte its sender expects; valid with [`flag::ACK`].
    pub ack: u32,
    /// Window as written, before scaling.
    pub window: u16,
    /// Bits of [`flag`].
    pub flags: u8,
    /// A TCP-MD5 or TCP-AO option is there.
    pub authenticated: bool,
    /// Window scale, 0..=14, of a SYN.
    pub window_scale: Option<u8>,
    /// Maximum segment size, bytes, of a SYN.
    pub mss: Option<u16>,
    /// Timestamp and echoed timestamp.
    pub timestamps: Option<(u32, u32)>,
    /// Right edge of the highest SACK block above `ack`.
    pub sack_high: Option<u32>,
    /// Payload, bytes, of all merged packets together.
    pub payload_bytes: u32,
    /// Largest payload of one packet on the wire, bytes.
    pub segment_bytes: u32,
    /// Packets on the wire that the frame stands for.
    pub segments: u32,
    /// IP bytes on the wire, headers of merged packets included.
    pub ip_bytes: u32,
    /// TCP header with options, bytes.
    pub header_bytes: u32,
    /// Offset of the window field in the frame; the checksum follows it.
    pub window_at: u16,
}

impl TcpFields {
    /// Whether any of `flags` is set.
    #[must_use]
    pub const fn has(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }

    /// Sequence numbers it takes up: payload, SYN, FIN.
    #[must_use]
    pub const fn sequence_length(&self) -> u32 {
        self.payload_bytes + self.has(flag::SYN) as u32 + self.has(flag::FIN) as u32
    }
}

pub(super) fn fields(frame: &[u8], transport: &Transport, merged: Merged) -> Result<TcpFields, Other> {
    let malformed = transport.refuse(Reason::Malformed);
    let start = transport.start;
    if start + 20 > transport.end {
        return Err(malformed);
    }
    if start + 20 > DEEPEST {
        return Err(transport.refuse(Reason::OtherTransport));
    }
    let header = &frame[start..start + 20];
    let header_bytes = usize::from(header[12] >> 4) * 4;
    if header_bytes < 20 || start + header_bytes > transport.end {
        return Err(malformed);
    }
    let payload_bytes = (transport.end - start - header_bytes) as u32;
    let one = if merged.segments > 1 && merged.segment_bytes != 0 { merged.segment_bytes } else { payload_bytes };
    let mut tcp = TcpFields {
        source: Endpoint { address: transport.source, port: be16(header, 0) },
        destination: Endpoint { address: transport.destination, port: be16(header, 2) },
        seq: be32(header, 4),
        ack: be32(header, 8),
        window: be16(header, 14),
        flags: header[13],
        payload_bytes,
        segment_bytes: one,
        segments: merged.segments,
        ip_bytes: transport.bytes_on_the_wire(header_bytes, merged),
        header_bytes: header_bytes as u32,
        window_at: (start + 14) as u16,
        ..TcpFields::default()
    };
    // A SYN that also ends the connection contradicts itself, and must not teach anything.
    if tcp.has(flag::SYN) && tcp.has(flag::RST | flag::FIN) {
        return Err(malformed);
    }
    if !read_options(&frame[start + 20..start + header_bytes], &mut tcp) {
        return Err(malformed);
    }
    Ok(tcp)
}

/// False when an option does not fit. One of a known kind but the wrong length is stepped over, as Linux does; of
/// several of a kind the last counts.
fn read_options(mut options: &[u8], tcp: &mut TcpFields) -> bool {
    while let Some((&kind, after)) = options.split_first() {
        match kind {
            option::END => return true,
            option::NOP => {
                options = after;
                continue;
            }
            _ => {}
        }
        let Some(length) = after.first().map(|length| usize::from(*length)) else { return false };
        if length < 2 || length > options.len() {
            return false;
        }
        let (this, rest) = options.split_at(length);
        read_option(kind, this, tcp);
        options = rest;
    }
    true
}

fn read_option(kind: u8, option: &[u8], tcp: &mut TcpFields) {
    let syn = tcp.has(flag::SYN);
    match (kind, option.len()) {
        (option::MSS, 4) if syn => tcp.mss = Some(be16(option, 2)),
        (option::WINDOW_SCALE, 3) if syn => tcp.window_scale = Some(option[2].min(LARGEST_SCALE)),
        (option::TIMESTAMPS, 10) => tcp.timestamps = Some((be32(option, 2), be32(option, 6))),
        (option::SACK, 10 | 18 | 26 | 34) => {
            tcp.sack_high = None;
            for block in option[2..].chunks_exact(8) {
                let right = be32(block, 4);
                if seq::after(right, tcp.sack_high.unwrap_or(tcp.ack)) {
                    tcp.sack_high = Some(right);
                }
            }
        }
        (option::MD5 | option::AO, _) => tcp.authenticated = true,
        _ => {}
    }
}
