//! Builds frames, for tests, benches, vectors and tools. Nothing in the data path uses it.
//!
//! A [`Frame`] says what every layer should be; [`Frame::bytes`] lays it out with correct lengths and checksums.

use super::patch::{fold, pseudo_header, sum};
use super::{Endpoint, flag, protocol};

/// Link headers before the IP header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkHeaders {
    /// None: the frame is an IP packet.
    None,
    /// Ethernet with these tags (EtherType, tag control), outermost first, and PPPoE with this session if any.
    Ethernet {
        /// 0x8100 or 0x88a8, and the tag control information.
        tags: Vec<(u16, u16)>,
        /// PPPoE session.
        pppoe: Option<u16>,
    },
}

/// A frame to be.
#[derive(Clone, Debug)]
pub struct Frame {
    /// What lies before IP.
    pub link: LinkHeaders,
    /// Sender; two mapped addresses make an IPv4 packet, otherwise it is IPv6.
    pub source: Endpoint,
    /// Receiver.
    pub destination: Endpoint,
    /// IPv4 options, a multiple of 4 bytes; not used with IPv6.
    pub ip_options: Vec<u8>,
    /// IPv6 extension headers: protocol and bytes, whose first is overwritten with the next header.
    pub extensions: Vec<(u8, Vec<u8>)>,
    /// The transport.
    pub transport: Transport,
    /// What the transport carries.
    pub payload: Vec<u8>,
    /// The two bits of congestion marks.
    pub ecn: u8,
    /// Bytes behind the IP packet, as short Ethernet frames have.
    pub padding: usize,
}

/// A transport header.
#[derive(Clone, Debug)]
pub enum Transport {
    /// A TCP segment.
    Tcp(Segment),
    /// A UDP datagram.
    Udp,
    /// Any other protocol, without a header.
    Other(u8),
}

/// A TCP header.
#[derive(Clone, Debug, Default)]
pub struct Segment {
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// Bits of [`flag`].
    pub flags: u8,
    /// Window before scaling.
    pub window: u16,
    /// Options; padded with END to a multiple of 4 bytes, at most 40.
    pub options: Vec<u8>,
}

/// The mapped form of an IPv4 address.
#[must_use]
pub const fn v4(address: [u8; 4]) -> [u8; 16] {
    let [a, b, c, d] = address;
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d]
}

/// TCP options.
pub mod option {
    /// Maximum segment size.
    #[must_use]
    pub fn mss(bytes: u16) -> Vec<u8> {
        [&[2, 4][..], &bytes.to_be_bytes()].concat()
    }

    /// Window scale.
    #[must_use]
    pub fn window_scale(scale: u8) -> Vec<u8> {
        vec![1, 3, 3, scale]
    }

    /// Timestamps, as Linux lays them out: two NOPs before.
    #[must_use]
    pub fn timestamps(value: u32, echo: u32) -> Vec<u8> {
        [&[1, 1, 8, 10][..], &value.to_be_bytes(), &echo.to_be_bytes()].concat()
    }

    /// SACK blocks (left, right edge).
    #[must_use]
    pub fn sack(blocks: &[(u32, u32)]) -> Vec<u8> {
        let mut bytes = vec![1, 1, 5, (2 + 8 * blocks.len()) as u8];
        for (left, right) in blocks {
            bytes.extend(left.to_be_bytes());
            bytes.extend(right.to_be_bytes());
        }
        bytes
    }

    /// TCP-MD5 (RFC 2385), with a digest of zeros.
    #[must_use]
    pub fn md5() -> Vec<u8> {
        [&[19, 18][..], &[0; 16]].concat()
    }

    /// TCP-AO (RFC 5925), with a MAC of zeros.
    #[must_use]
    pub fn ao() -> Vec<u8> {
        [&[29, 16][..], &[0; 14]].concat()
    }
}

impl Frame {
    /// An untagged Ethernet frame with a TCP segment.
    #[must_use]
    pub fn tcp(source: Endpoint, destination: Endpoint, segment: Segment, payload: usize) -> Self {
        Self {
            link: LinkHeaders::Ethernet { tags: vec![], pppoe: None },
            source,
            destination,
            ip_options: vec![],
            extensions: vec![],
            transport: Transport::Tcp(segment),
            payload: vec![0x55; payload],
            ecn: 0,
            padding: 0,
        }
    }

    /// The same with a UDP datagram.
    #[must_use]
    pub fn udp(source: Endpoint, destination: Endpoint, payload: usize) -> Self {
        Self { transport: Transport::Udp, ..Self::tcp(source, destination, Segment::default(), payload) }
    }

    /// The bytes of the frame.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let packet = if self.is_v4() { self.v4() } else { self.v6() };
        let mut frame = self.link_headers(packet.len());
        frame.extend(packet);
        frame.extend(std::iter::repeat_n(0, self.padding));
        frame
    }

    fn is_v4(&self) -> bool {
        let mapped = |address: &[u8; 16]| address[..12] == v4([0; 4])[..12];
        mapped(&self.source.address) && mapped(&self.destination.address)
    }

    fn link_headers(&self, packet_bytes: usize) -> Vec<u8> {
        let LinkHeaders::Ethernet { tags, pppoe } = &self.link else { return vec![] };
        let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        for (kind, control) in tags {
            bytes.extend(kind.to_be_bytes());
            bytes.extend(control.to_be_bytes());
        }
        let (ether, ppp) = if self.is_v4() { (0x0800u16, 0x0021u16) } else { (0x86dd, 0x0057) };
        let Some(session) = pppoe else {
            bytes.extend(ether.to_be_bytes());
            return bytes;
        };
        bytes.extend([0x88, 0x64, 0x11, 0]);
        bytes.extend(session.to_be_bytes());
        bytes.extend((packet_bytes as u16 + 2).to_be_bytes());
        bytes.extend(ppp.to_be_bytes());
        bytes
    }

    fn v4(&self) -> Vec<u8> {
        let (number, segment) = self.transport_bytes();
        let header_bytes = 20 + self.ip_options.len();
        let total = (header_bytes + segment.len()) as u16;
        let mut packet = vec![0x40 | (header_bytes / 4) as u8, self.ecn & 3];
        packet.extend(total.to_be_bytes());
        packet.extend([0, 0, 0x40, 0, 64, number, 0, 0]);
        packet.extend(&self.source.address[12..]);
        packet.extend(&self.destination.address[12..]);
        packet.extend(&self.ip_options);
        let checksum = !sum(&packet);
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        packet.extend(segment);
        packet
    }

    fn v6(&self) -> Vec<u8> {
        let (number, segment) = self.transport_bytes();
        let following: Vec<u8> = self.extensions.iter().map(|(kind, _)| *kind).chain([number]).collect();
        let chain: usize = self.extensions.iter().map(|(_, bytes)| bytes.len()).sum();
        let mut packet = vec![0x60, (self.ecn & 3) << 4, 0, 0];
        packet.extend(((chain + segment.len()) as u16).to_be_bytes());
        packet.extend([following[0], 64]);
        packet.extend(self.source.address);
        packet.extend(self.destination.address);
        for ((_, bytes), next) in self.extensions.iter().zip(&following[1..]) {
            packet.push(*next);
            packet.extend(&bytes[1..]);
        }
        packet.extend(segment);
        packet
    }

    fn transport_bytes(&self) -> (u8, Vec<u8>) {
        let (number, mut segment, checksum_at) = match &self.transport {
            Transport::Other(number) => return (*number, self.payload.clone()),
            Transport::Udp => (protocol::UDP, self.udp_header(), 6),
            Transport::Tcp(segment) => (protocol::TCP, self.tcp_header(segment), 16),
        };
        segment.extend(&self.payload);
        let total = pseudo_header(&self.source.address, &self.destination.address, number, &segment);
        let checksum = !fold(total);
        segment[checksum_at..checksum_at + 2].copy_from_slice(&checksum.to_be_bytes());
        (number, segment)
    }

    fn udp_header(&self) -> Vec<u8> {
        let mut header = [self.source.port.to_be_bytes(), self.destination.port.to_be_bytes()].concat();
        header.extend((8 + self.payload.len() as u16).to_be_bytes());
        header.extend([0, 0]);
        header
    }

    fn tcp_header(&self, segment: &Segment) -> Vec<u8> {
        let mut options = segment.options.clone();
        options.resize(options.len().next_multiple_of(4).min(40), 0);
        let mut header = [self.source.port.to_be_bytes(), self.destination.port.to_be_bytes()].concat();
        header.extend(segment.seq.to_be_bytes());
        header.extend(segment.ack.to_be_bytes());
        header.extend([((20 + options.len()) as u8) << 2, segment.flags]);
        header.extend(segment.window.to_be_bytes());
        header.extend([0; 4]);
        header.extend(options);
        header
    }
}

/// A pure acknowledgment.
#[must_use]
pub fn ack(seq: u32, ack: u32, window: u16) -> Segment {
    Segment { seq, ack, window, flags: flag::ACK, options: vec![] }
}
