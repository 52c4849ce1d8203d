//! Whose packet is it? What of a frame names its flow and its number within it.
//!
//! Every flow (every copy) has one port of its own, used at both ends: [`FIRST_PORT`] + its index. Its data go from
//! `from` to `to`; what comes back (ACKs) is not counted. The identity must survive what happens on the way: forwarding
//! changes TTL and header checksum, the controller changes the window and the TCP checksum. A UDP player writes the
//! first 14 bytes of the payload: flow u16, sequence u32, time of sending u64, big-endian. TCP is known by the IP
//! identification, which Linux counts up per socket and packet, and by (sequence number, length). Of QUIC everything that
//! would tell one packet from another is encrypted; a packet is known by the last four bytes of its datagram, which are of
//! its authentication tag (RFC 9001, section 5.3) and so as good as drawn at random.

use crate::arena::{ETHERNET, Tag};
use std::net::Ipv4Addr;

/// Port of flow 0.
pub use lasthop_home::address::FIRST_PORT;
/// Most flows: ports end at 65,535.
pub const MOST_FLOWS: usize = 40_000;
/// Bytes of identity at the head of a UDP payload.
pub const MARK: usize = 14;
/// IPv4 and UDP headers, bytes.
pub const UDP_HEADERS: u32 = 28;

/// How a flow's data travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Marked datagrams.
    Udp,
    /// A byte stream.
    Tcp,
    /// A byte stream within encrypted datagrams.
    Quic,
}

/// Where a flow's data come from and go to, and as what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// Address of `from`.
    pub source: Ipv4Addr,
    /// Address of `to`.
    pub destination: Ipv4Addr,
    /// Protocol.
    pub transport: Transport,
    /// What a setting by class of traffic counts as real time.
    pub is_realtime: bool,
}

/// A data packet of a flow of the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Index of the flow.
    pub flow: u16,
    /// See [`Tag::Data`].
    pub id: u32,
    /// TCP sequence number of the first byte; 0 for UDP.
    pub seq: u32,
    /// Bytes of payload; 0 for QUIC, where the receiver alone knows.
    pub payload: u32,
    /// IP bytes.
    pub bytes: u32,
}

impl Data {
    /// What travels with the frame.
    #[must_use]
    pub fn tag(&self) -> Tag {
        Tag::Data { flow: self.flow, id: self.id }
    }
}

/// The mark of a UDP player.
#[must_use]
pub fn mark(flow: u16, seq: u32, sent_ns: u64) -> [u8; MARK] {
    let mut out = [0; MARK];
    out[..2].copy_from_slice(&flow.to_be_bytes());
    out[2..6].copy_from_slice(&seq.to_be_bytes());
    out[6..].copy_from_slice(&sent_ns.to_be_bytes());
    out
}

/// Recognises a data packet in an Ethernet frame; anything odd is simply nobody's.
#[must_use]
pub fn identify(frame: &[u8], flows: &[Endpoints]) -> Option<Data> {
    let ip = frame.get(ETHERNET..)?;
    let header = ip.first_chunk::<20>()?;
    if frame[12..14] != [8, 0] || header[0] >> 4 != 4 {
        return None;
    }
    let options_end = usize::from(header[0] & 15) * 4;
    let bytes = u16::from_be_bytes([header[2], header[3]]);
    let ip = ip.get(..usize::from(bytes))?;
    let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff;
    let segment = ip.get(options_end..).filter(|_| options_end >= 20 && fragment == 0)?;
    let ports = segment.first_chunk::<4>()?;
    let port = u16::from_be_bytes([ports[2], ports[3]]);
    let flow = port.checked_sub(FIRST_PORT)?;
    let known = flows.get(usize::from(flow))?;
    let addresses = (u32::from(known.source).to_be_bytes(), u32::from(known.destination).to_be_bytes());
    if ports[..2] != ports[2..] || header[12..16] != addresses.0 || header[16..20] != addresses.1 {
        return None;
    }
    let bytes = u32::from(bytes);
    match (known.transport, header[9]) {
        (Transport::Udp, 17) => {
            let payload = segment.get(8..)?;
            let mark = payload.first_chunk::<MARK>().filter(|m| m[..2] == flow.to_be_bytes())?;
            let id = u32::from_be_bytes([mark[2], mark[3], mark[4], mark[5]]);
            Some(Data { flow, id, seq: 0, payload: payload.len() as u32, bytes })
        }
        (Transport::Quic, 17) => {
            // Also of two packets in one datagram the last one ends in its tag.
            let id = segment.get(8..).and_then(<[u8]>::last_chunk::<4>).map(|tag| u32::from_be_bytes(*tag))?;
            Some(Data { flow, id, seq: 0, payload: 0, bytes })
        }
        (Transport::Tcp, 6) => {
            let tcp = segment.first_chunk::<20>()?;
            let payload = segment.len().checked_sub(usize::from(tcp[12] >> 4) * 4).filter(|n| *n > 0)?;
            let seq = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
            let id = u32::from(u16::from_be_bytes([header[4], header[5]]));
            Some(Data { flow, id, seq, payload: payload as u32, bytes })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: Ipv4Addr = Ipv4Addr::new(10, 1, 1, 1);
    const SINK: Ipv4Addr = Ipv4Addr::new(10, 2, 1, 1);

    fn flows() -> [Endpoints; 3] {
        [Transport::Udp, Transport::Tcp, Transport::Quic].map(|transport| Endpoints {
            source: SOURCE,
            destination: SINK,
            transport,
            is_realtime: false,
        })
    }

    fn frame(protocol: u8, port: u16, id: u16, segment: &[u8]) -> Vec<u8> {
        let mut out = vec![0; 12];
        out.extend([8, 0, 0x45, 0]);
        out.extend((24 + segment.len() as u16).to_be_bytes());
        out.extend(id.to_be_bytes());
        out.extend([0x40, 0, 64, protocol, 0, 0]);
        out.extend(SOURCE.octets());
        out.extend(SINK.octets());
        out.extend(port.to_be_bytes());
        out.extend(port.to_be_bytes());
        out.extend_from_slice(segment);
        out
    }

    fn datagram() -> Vec<u8> {
        let mut segment = vec![0; 4];
        segment.extend(mark(0, 77, 5));
        frame(17, FIRST_PORT, 9, &segment)
    }

    #[test]
    fn a_game_packet_of_42_bytes_carries_its_whole_identity() {
        let frame = datagram();
        assert_eq!(frame.len(), ETHERNET + 42);
        assert_eq!(identify(&frame, &flows()), Some(Data { flow: 0, id: 77, seq: 0, payload: 14, bytes: 42 }));
    }

    #[test]
    fn tcp_is_known_by_ip_identification_even_after_window_ttl_and_checksum_changed() {
        let mut segment = vec![0, 0, 0, 42, 0, 0, 0, 0, 5 << 4, 0x10, 1, 2, 3, 4, 0, 0];
        segment.extend([1; 100]);
        let mut frame = frame(6, FIRST_PORT + 1, 300, &segment);
        let expected = Some(Data { flow: 1, id: 300, seq: 42, payload: 100, bytes: 140 });
        assert_eq!(identify(&frame, &flows()), expected);
        for at in [22, 24, 25, 48, 49, 50, 51] {
            frame[at] ^= 0xff;
        }
        assert_eq!(identify(&frame, &flows()), expected);
    }

    #[test]
    fn quic_is_known_by_the_end_of_its_datagram() {
        let segment = [vec![0; 4], vec![7; 1200], vec![1, 2, 3, 4]].concat();
        let frame = frame(17, FIRST_PORT + 2, 0, &segment);
        let expected = Data { flow: 2, id: 0x0102_0304, seq: 0, payload: 0, bytes: 1232 };
        assert_eq!(identify(&frame, &flows()), Some(expected));
    }

    #[test]
    fn acks_strangers_fragments_and_cut_frames_are_nobodys() {
        let whole = datagram();
        for len in 0..whole.len() {
            assert_eq!(identify(&whole[..len], &flows()), None, "cut to {len}");
        }
        let change = |at: usize, to: u8| {
            let mut frame = whole.clone();
            frame[at] = to;
            identify(&frame, &flows())
        };
        assert_eq!(change(13, 6), None, "ARP");
        assert_eq!(change(14, 0x44), None, "header too short");
        assert_eq!(change(20, 0x20), None, "fragment");
        assert_eq!(change(23, 6), None, "wrong protocol");
        assert_eq!(change(26, 11), None, "wrong source");
        assert_eq!(change(35, 1), None, "source port differs");
        let ack = frame(6, FIRST_PORT + 1, 1, &[0, 0, 0, 0, 0, 0, 0, 0, 5 << 4, 0x10, 0, 0, 0, 0, 0, 0]);
        assert_eq!(identify(&ack, &flows()), None, "no payload");
    }
}
