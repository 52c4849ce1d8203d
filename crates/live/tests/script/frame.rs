//! The frames that the packets of a script are.

use lasthop_core::packet::Direction;
use lasthop_core::wire::build::{Frame, LinkHeaders, Segment, Transport, option, v4};
use lasthop_core::wire::{Endpoint, Merged, flag, protocol};

use crate::parse::{Mark, Packet, TcpOption};

/// What lies below TCP.
#[derive(Clone, Debug, Default)]
pub struct Over {
    pub six: bool,
    /// No link header.
    pub raw: bool,
    /// EtherType and tag control, outermost first.
    pub tags: Vec<(u16, u16)>,
    pub pppoe: Option<u16>,
    /// Bytes of IPv4 options, a multiple of 4.
    pub ip_options: usize,
    /// Protocol and bytes.
    pub extensions: Vec<(u8, Vec<u8>)>,
}

impl Over {
    /// One more extension header of IPv6, by its name.
    pub fn push_extension(&mut self, name: &str) -> Result<(), String> {
        // Their second byte is the length beyond 8 bytes, in units of 8 (RFC 8200 section 4); of the authentication header beyond
        // 8, in units of 4 (RFC 4302 section 2.2).
        let extension = match name {
            "hop-by-hop" => (protocol::HOP_BY_HOP, vec![0; 8]),
            "routing" => (protocol::ROUTING, [&[0, 2][..], &[0; 22]].concat()),
            "destination" => (protocol::DESTINATION, [&[0, 1][..], &[0; 14]].concat()),
            "atomic-fragment" => (protocol::FRAGMENT, vec![0; 8]),
            "authentication" => (protocol::AH, [&[0, 4][..], &[0; 22]].concat()),
            _ => return Err(format!("`{name}` is nothing that packets go over")),
        };
        if !self.six {
            return Err(format!("{name} is of IPv6"));
        }
        self.extensions.push(extension);
        Ok(())
    }

    fn link(&self) -> LinkHeaders {
        if self.raw {
            return LinkHeaders::None;
        }
        LinkHeaders::Ethernet { tags: self.tags.clone(), pppoe: self.pppoe }
    }

    /// Station and remote end.
    pub fn ends(&self) -> [Endpoint; 2] {
        let address = |last: u8| {
            if self.six {
                [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, last, 0, 0, 0, 0, 0, 0, 0, last]
            } else {
                v4([192, 0, 2, last])
            }
        };
        [Endpoint { address: address(1), port: 40_000 }, Endpoint { address: address(2), port: 443 }]
    }

    /// What a segment is on this network, with right lengths and checksums.
    pub fn frame(&self, ends: [Endpoint; 2], direction: Direction, segment: Segment, payload: usize) -> Frame {
        let [station, remote] = ends;
        let (source, destination) = match direction {
            Direction::ToRemote => (station, remote),
            Direction::ToStation => (remote, station),
        };
        Frame {
            link: self.link(),
            ip_options: vec![1; self.ip_options],
            extensions: self.extensions.clone(),
            ..Frame::tcp(source, destination, segment, payload)
        }
    }
}

impl Packet {
    pub fn direction(&self) -> Direction {
        if self.to_remote { Direction::ToRemote } else { Direction::ToStation }
    }

    /// Its bytes, and what was merged. `begin`: first numbers and timestamps of station and remote end.
    pub fn frame(&self, over: &Over, begin: [u32; 2]) -> (Vec<u8>, Merged) {
        let [own, other] = if self.to_remote { begin } else { [begin[1], begin[0]] };
        // The field of a segment without ACK says nothing, and stays 0.
        let ack = if self.flags & flag::ACK != 0 { other.wrapping_add(self.ack) } else { self.ack };
        let options = self.options.iter().flat_map(|option| option.bytes([own, other])).collect();
        let segment = Segment { seq: own.wrapping_add(self.seq), ack, flags: self.flags, window: self.window, options };
        let mut frame = over.frame(over.ends(), self.direction(), segment, self.payload);
        let mut merged = Merged::NOT;
        for mark in &self.marks {
            match *mark {
                Mark::Gso(segment_bytes) => {
                    merged = Merged { segments: (self.payload as u32).div_ceil(segment_bytes), segment_bytes };
                }
                Mark::Padding(bytes) => frame.padding = bytes,
                Mark::Fragment { offset, more } if over.six => {
                    let [high, low] = (offset << 3 | u16::from(more)).to_be_bytes();
                    frame.extensions.push((protocol::FRAGMENT, vec![0, 0, high, low, 0, 0, 0, 7]));
                }
                Mark::Fragment { .. } | Mark::BadChecksum | Mark::Longer(_) => {}
            }
        }
        let mut bytes = frame.bytes();
        self.spoil(&frame, &mut bytes);
        (bytes, merged)
    }

    /// What no builder of right frames makes.
    fn spoil(&self, frame: &Frame, bytes: &mut [u8]) {
        let transport = match &frame.transport {
            Transport::Tcp(segment) => 20 + segment.options.len().next_multiple_of(4) + self.payload,
            Transport::Udp | Transport::Other(_) => return,
        };
        let tcp = bytes.len() - frame.padding - transport;
        let extensions: usize = frame.extensions.iter().map(|(_, bytes)| bytes.len()).sum();
        let (ip, length) = if frame.source.address[0] == 0 {
            (tcp - 20 - frame.ip_options.len(), 2)
        } else {
            (tcp - 40 - extensions, 4)
        };
        let mut change = |at: usize, to: &dyn Fn(u16) -> u16| {
            let was = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
            bytes[at..at + 2].copy_from_slice(&to(was).to_be_bytes());
        };
        for mark in &self.marks {
            match *mark {
                Mark::BadChecksum => change(tcp + 16, &|checksum| checksum ^ 1),
                Mark::Longer(by) => change(ip + length, &|length| length.wrapping_add_signed(by)),
                // RFC 791: MF is the third bit of the word.
                Mark::Fragment { offset, more } if extensions == 0 => {
                    change(ip + 6, &|_| offset | u16::from(more) << 13)
                }
                Mark::Fragment { .. } | Mark::Gso(_) | Mark::Padding(_) => {}
            }
        }
    }
}

impl TcpOption {
    /// `begin`: first numbers and timestamps of who sends it, and of the other end.
    fn bytes(&self, [own, other]: [u32; 2]) -> Vec<u8> {
        match self {
            Self::Mss(bytes) => option::mss(*bytes),
            Self::Scale(scale) => vec![3, 3, *scale],
            Self::SackPermitted => vec![4, 2],
            Self::Nop => vec![1],
            Self::Md5 => option::md5(),
            Self::Ao => option::ao(),
            // The echo of a SYN is 0 (RFC 7323 section 3.2).
            Self::Timestamps(value, 0) => option::timestamps(own.wrapping_add(*value), 0)[2..].to_vec(),
            Self::Timestamps(value, echo) => {
                option::timestamps(own.wrapping_add(*value), other.wrapping_add(*echo))[2..].to_vec()
            }
            // Blocks name what the other end sent.
            Self::Sack(blocks) => {
                let from = |(left, right): &(u32, u32)| (other.wrapping_add(*left), other.wrapping_add(*right));
                option::sack(&blocks.iter().map(from).collect::<Vec<_>>())[2..].to_vec()
            }
        }
    }
}
