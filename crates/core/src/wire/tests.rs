use proptest::prelude::*;

use super::build::{Frame, LinkHeaders, Segment, Transport, option, v4};
use super::*;
use crate::packet::Direction;

fn station() -> Endpoint {
    Endpoint { address: v4([192, 168, 1, 20]), port: 50_000 }
}

fn server() -> Endpoint {
    Endpoint { address: v4([203, 0, 113, 5]), port: 443 }
}

fn v6(last: u8) -> Endpoint {
    let mut address = [0x20; 16];
    address[15] = last;
    Endpoint { address, port: 1000 + u16::from(last) }
}

fn segment() -> Segment {
    let options = [option::timestamps(7, 9), option::sack(&[(300, 400), (200, 260)])].concat();
    Segment { seq: 5, ack: 100, flags: flag::ACK, window: 1_000, options }
}

fn tcp_of(frame: &[u8], link: Link) -> TcpFields {
    match parse(frame, link) {
        Parsed::Tcp(tcp) => tcp,
        other => panic!("not TCP: {other:?}"),
    }
}

fn reason_of(frame: &[u8]) -> Reason {
    match parse(frame, Link::Ethernet) {
        Parsed::Other(other) => other.reason,
        other => panic!("not refused: {other:?}"),
    }
}

fn framings() -> Vec<LinkHeaders> {
    let tagged = |tags: &[(u16, u16)], pppoe| LinkHeaders::Ethernet { tags: tags.to_vec(), pppoe };
    vec![
        LinkHeaders::None,
        tagged(&[], None),
        tagged(&[(0x8100, 7)], None),
        tagged(&[(0x88a8, 7), (0x8100, 8)], None),
        tagged(&[], Some(3)),
        tagged(&[(0x8100, 7)], Some(3)),
    ]
}

fn link_of(framing: &LinkHeaders) -> Link {
    if *framing == LinkHeaders::None { Link::Ip } else { Link::Ethernet }
}

#[test]
fn a_segment_reads_the_same_behind_every_link_header() {
    for framing in framings() {
        for (source, destination) in [(station(), server()), (v6(1), v6(2))] {
            let link = link_of(&framing);
            let frame = Frame { link: framing.clone(), ..Frame::tcp(source, destination, segment(), 10) };
            let tcp = tcp_of(&frame.bytes(), link);
            assert_eq!((tcp.source, tcp.destination), (source, destination));
            assert_eq!((tcp.seq, tcp.ack, tcp.window, tcp.payload_bytes), (5, 100, 1_000, 10));
            assert_eq!((tcp.timestamps, tcp.sack_high), (Some((7, 9)), Some(400)));
            assert!(checksum_is_valid(&frame.bytes(), &tcp));
        }
    }
}

#[test]
fn ip_options_and_extension_headers_are_stepped_over() {
    let with_options = Frame { ip_options: vec![1; 12], ..Frame::tcp(station(), server(), segment(), 10) };
    assert_eq!(tcp_of(&with_options.bytes(), Link::Ethernet).payload_bytes, 10);
    let extensions = vec![
        (protocol::HOP_BY_HOP, vec![0, 0, 1, 4, 0, 0, 0, 0]),
        (protocol::DESTINATION, [&[0, 1][..], &[1; 14]].concat()),
        (protocol::FRAGMENT, vec![0; 8]),
    ];
    let chained = Frame { extensions, ..Frame::tcp(v6(1), v6(2), segment(), 10) };
    assert_eq!(tcp_of(&chained.bytes(), Link::Ethernet).ip_bytes, 40 + 8 + 16 + 8 + 20 + 12 + 20 + 10);
}

#[test]
fn fragments_are_told_apart_from_atomic_ones() {
    let mut frame = Frame::tcp(station(), server(), segment(), 10).bytes();
    frame[14 + 6] = 0x20;
    assert_eq!(reason_of(&frame), Reason::Fragment);
    let extensions = vec![(protocol::FRAGMENT, vec![0, 0, 0, 1, 0, 0, 0, 0])];
    let frame = Frame { extensions, ..Frame::tcp(v6(1), v6(2), segment(), 10) };
    assert_eq!(reason_of(&frame.bytes()), Reason::Fragment);
}

#[test]
fn everything_that_is_not_tcp_has_its_reason() {
    let udp = Frame::udp(station(), server(), 200).bytes();
    assert!(matches!(parse(&udp, Link::Ethernet), Parsed::Udp(UdpFields { ip_bytes: 228, .. })));
    let other = |number| Frame {
        transport: Transport::Other(number),
        ..Frame::tcp(station(), server(), Segment::default(), 20)
    };
    assert_eq!(reason_of(&other(1).bytes()), Reason::OtherTransport);
    assert_eq!(reason_of(&other(protocol::AH).bytes()), Reason::Authenticated);
    let mut arp = other(1).bytes();
    arp[12..14].copy_from_slice(&[0x08, 0x06]);
    assert_eq!(reason_of(&arp), Reason::NotIp);
    let tags = vec![(0x8100, 1); 3];
    let deep = Frame { link: LinkHeaders::Ethernet { tags, pppoe: None }, ..other(1) };
    assert_eq!(reason_of(&deep.bytes()), Reason::NotIp);
}

#[test]
fn every_truncation_is_malformed() {
    for frame in [
        Frame::tcp(station(), server(), segment(), 10),
        Frame::tcp(v6(1), v6(2), segment(), 10),
        Frame { link: framings().pop().unwrap(), ..Frame::tcp(station(), server(), segment(), 10) },
    ] {
        let bytes = frame.bytes();
        for length in 0..bytes.len() {
            assert_eq!(reason_of(&bytes[..length]), Reason::Malformed, "{length}");
        }
    }
}

#[test]
fn contradicting_headers_are_malformed() {
    let syn_fin = Segment { flags: flag::SYN | flag::FIN, ..segment() };
    assert_eq!(reason_of(&Frame::tcp(station(), server(), syn_fin, 0).bytes()), Reason::Malformed);
    for options in [vec![8, 1, 0, 0], vec![8, 11, 0, 0], vec![1, 1, 1, 2]] {
        let bad = Segment { options, ..segment() };
        assert_eq!(reason_of(&Frame::tcp(station(), server(), bad, 0).bytes()), Reason::Malformed);
    }
    let mut short_header = Frame::tcp(station(), server(), segment(), 0).bytes();
    short_header[14 + 20 + 12] = 0x40;
    assert_eq!(reason_of(&short_header), Reason::Malformed);
}

#[test]
fn only_a_syn_carries_a_scale_and_it_is_at_most_fourteen() {
    let options = [option::mss(1460), option::window_scale(15)].concat();
    let syn = Segment { flags: flag::SYN, options, ..Segment::default() };
    let tcp = tcp_of(&Frame::tcp(station(), server(), syn.clone(), 0).bytes(), Link::Ethernet);
    assert_eq!((tcp.window_scale, tcp.mss), (Some(14), Some(1460)));
    let later = Segment { flags: flag::ACK, ..syn };
    assert_eq!(tcp_of(&Frame::tcp(station(), server(), later, 0).bytes(), Link::Ethernet).window_scale, None);
}

#[test]
fn md5_and_ao_mark_a_segment_as_authenticated() {
    for options in [option::md5(), option::ao()] {
        let signed = Segment { options, ..segment() };
        assert!(tcp_of(&Frame::tcp(station(), server(), signed, 0).bytes(), Link::Ethernet).authenticated);
    }
}

#[test]
fn a_merged_frame_counts_the_headers_that_merging_left_out() {
    let bytes = Frame::tcp(station(), server(), build::ack(1, 2, 3), 3_000).bytes();
    let merged = Merged { segments: 3, segment_bytes: 1_000 };
    let Parsed::Tcp(tcp) = parse_merged(&bytes, Link::Ethernet, merged) else { panic!("not TCP") };
    assert_eq!((tcp.ip_bytes, tcp.segment_bytes, tcp.payload_bytes), (3_000 + 3 * 40, 1_000, 3_000));
    let mut big = bytes;
    big[16..18].fill(0);
    let Parsed::Tcp(tcp) = parse_merged(&big, Link::Ethernet, merged) else { panic!("not TCP") };
    assert_eq!(tcp.payload_bytes, 3_000);
    assert_eq!(reason_of(&big), Reason::Malformed);
}

#[test]
fn the_station_comes_first_in_the_key_whichever_way_a_packet_goes() {
    let up = tcp_of(&Frame::tcp(station(), server(), segment(), 0).bytes(), Link::Ethernet);
    let down = tcp_of(&Frame::tcp(server(), station(), segment(), 0).bytes(), Link::Ethernet);
    assert_eq!(flow_key(&up, Direction::ToRemote), flow_key(&down, Direction::ToStation));
    assert_eq!(flow_key(&up, Direction::ToRemote).station_port, 50_000);
}

#[test]
fn the_checksum_example_of_rfc_1624_holds() {
    // Section 4: HC 0xdd2f, field 0x5555 -> 0x3285 gives 0x0000, not 0xffff.
    let mut fields = [0x55, 0x55, 0xdd, 0x2f];
    patch_window(&mut fields, &TcpFields { window_at: 0, ..TcpFields::default() }, 0x3285);
    assert_eq!(fields, [0x32, 0x85, 0x00, 0x00]);
}

proptest! {
    #[test]
    fn any_bytes_are_parsed_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse(&bytes, Link::Ethernet);
        let _ = parse_merged(&bytes, Link::Ip, Merged { segments: 70_000, segment_bytes: 1 });
    }

    #[test]
    fn damaged_frames_are_parsed_without_a_panic(
        damage in prop::collection::vec((0usize..150, any::<u8>()), 1..6),
        length in 0usize..150,
        framing in 0usize..6,
        six: bool,
    ) {
        let link = framings()[framing].clone();
        let ends = if six { (v6(1), v6(2)) } else { (station(), server()) };
        let mut bytes = Frame { link, ..Frame::tcp(ends.0, ends.1, segment(), 30) }.bytes();
        for (at, value) in damage {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        bytes.truncate(length);
        for link in [Link::Ethernet, Link::Ip] {
            if let Parsed::Tcp(tcp) = parse(&bytes, link) {
                patch_window(&mut bytes.clone(), &tcp, 1);
            }
        }
    }

    #[test]
    fn a_patched_window_keeps_the_checksum_valid(before: u16, after in 1u16.., payload in 0usize..60, six: bool) {
        let ends = if six { (v6(1), v6(2)) } else { (station(), server()) };
        let frame = Frame::tcp(ends.0, ends.1, Segment { window: before, ..segment() }, payload);
        let mut bytes = frame.bytes();
        let tcp = tcp_of(&bytes, Link::Ethernet);
        patch_window(&mut bytes, &tcp, after);
        let patched = tcp_of(&bytes, Link::Ethernet);
        prop_assert_eq!(patched, TcpFields { window: after, ..tcp });
        prop_assert!(checksum_is_valid(&bytes, &patched));
    }
}

#[test]
fn the_first_packet_of_a_quic_connection_is_known() {
    // RFC 9001 appendix A.2 and RFC 9369 appendix A.2: a client's Initial, protected; A.4 of the former: a Retry.
    for initial in
        [[0xc0, 0, 0, 0, 1, 8], [0xc3, 0, 0, 0, 1, 8], [0xd7, 0x6b, 0x33, 0x43, 0xcf, 8], [0xff, 0, 0, 0, 1, 0]]
    {
        assert!(begins_quic(&initial), "{initial:?}");
    }
    // A short header, a version that nobody knows, version negotiation; RTP, STUN, DTLS, WireGuard and OpenVPN.
    for other in [
        [0x4c, 0, 0, 0, 1, 0],
        [0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 8],
        [0xc0, 0, 0, 0, 0, 8],
        [0x80, 0, 0, 0, 1, 0],
        [0, 1, 0, 0, 0x21, 0x12],
        [22, 0xfe, 0xfd, 0, 0, 0],
        [4, 0, 0, 0, 1, 0],
        [0x38, 0, 0, 0, 1, 0],
    ] {
        assert!(!begins_quic(&other), "{other:?}");
    }
    assert!(!begins_quic(&[0xc0, 0, 0, 0]));
}
