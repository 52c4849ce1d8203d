use super::*;
use crate::wire::build::{Frame, Segment, option, v4};
use crate::wire::{Endpoint, Link, Parsed, checksum_is_valid, parse};

fn ends(is_v4: bool) -> [Endpoint; 2] {
    let address = |n: u8| if is_v4 { v4([10, 1, 1, n]) } else { [0xfd, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, n] };
    [Endpoint { address: address(1), port: 80 }, Endpoint { address: address(2), port: 4000 }]
}

fn segment(seq: u32, flags: u8, is_v4: bool, payload: &[u8]) -> Vec<u8> {
    let [source, destination] = ends(is_v4);
    let options = option::timestamps(7, 8);
    let segment = Segment { seq, ack: 99, flags, window: 500, options };
    let mut frame = Frame::tcp(source, destination, segment, payload.len());
    frame.payload = payload.to_vec();
    frame.bytes()
}

/// As a kernel hands it over: a whole of `payload`, its identification at `id`.
fn whole(seq: u32, flags: u8, is_v4: bool, id: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = segment(seq, flags, is_v4, payload);
    if is_v4 {
        frame[ETHERNET + 4..ETHERNET + 6].copy_from_slice(&id.to_be_bytes());
        fill_in_v4(&mut frame[ETHERNET..ETHERNET + 20]);
    }
    frame
}

fn cut(frame: &[u8], offload: Offload) -> Vec<Vec<u8>> {
    let mut segments = Segments::of(frame, &offload).unwrap();
    let mut out = [0; 1600];
    std::iter::from_fn(|| segments.write_next(&mut out).map(|length| out[..length].to_vec())).collect()
}

fn payload_of(frame: &[u8]) -> Vec<u8> {
    let Parsed::Tcp(tcp) = parse(frame, Link::Ethernet) else { panic!("no TCP") };
    assert!(checksum_is_valid(frame, &tcp));
    frame[frame.len() - tcp.payload_bytes as usize..].to_vec()
}

#[test]
fn cutting_and_joining_give_the_same_frames_back() {
    let mut state = 26_u64;
    // Knuth's MMIX.
    let mut below = |limit: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) % limit
    };
    for case in 0..400 {
        let is_v4 = case % 2 == 0;
        let segment_bytes = 1 + below(1448) as u16;
        let bytes = 1 + below((u64::from(segment_bytes) * (MOST as u64 - 1)).min(60_000)) as usize;
        let payload: Vec<u8> = (0..bytes).map(|_| below(256) as u8).collect();
        let (seq, id) = (below(1 << 32) as u32, below(1 << 16) as u16);
        let flags = flag::ACK | if below(2) == 0 { flag::PSH } else { 0 };
        let frame = whole(seq, flags, is_v4, id, &payload);
        let tcp_at = if is_v4 { 34 } else { 54 };
        let pieces = cut(&frame, Offload { checksum: Some((tcp_at, 16)), segment_bytes });
        assert!(pieces.iter().flat_map(|piece| payload_of(piece)).collect::<Vec<_>>() == payload, "{case}");
        let mut run = Run::of(&pieces[0]).unwrap();
        assert!(pieces[1..].iter().all(|piece| run.join(&pieces[0], piece)), "{case}: {} pieces", pieces.len());
        let joined = run.joined(&pieces[0], &pieces[pieces.len() - 1]);
        let mut again = joined.headers().to_vec();
        pieces.iter().for_each(|piece| again.extend_from_slice(&piece[run.payload_at()..]));
        let offload = Offload::read(&joined.header);
        assert_eq!(offload, Offload { checksum: Some((tcp_at, 16)), segment_bytes: segment_bytes.min(bytes as u16) });
        // What a network card adds makes it the frame that was there first.
        let mut summed = again.clone();
        assert!(offload.fill_in(&mut summed) && summed == frame);
        if bytes > usize::from(segment_bytes) {
            assert!(cut(&again, offload) == pieces, "{case}");
        }
    }
}

#[test]
fn only_what_continues_a_run_is_joined() {
    let first = segment(1000, flag::ACK, true, &[1; 100]);
    let next = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut next = whole(1100, flag::ACK, true, 1, &[2; 100]);
        change(&mut next);
        next
    };
    let joins = |next: &[u8]| Run::of(&first).unwrap().join(&first, next);
    assert!(joins(&next(&|_| {})));
    assert!(joins(&whole(1100, flag::ACK | flag::PSH, true, 1, &[2; 40])));
    let bytes = [
        (0, "another receiver"),
        (15, "a mark, or another code point"),
        (19, "a gap in identifications"),
        (20, "a fragment"),
        (22, "another time to live"),
        (29, "another source"),
        (35, "another port"),
        (41, "a gap"),
        (45, "another acknowledgment"),
        (49, "another window"),
        (60, "another time stamp"),
    ];
    for (at, what) in bytes {
        assert!(!joins(&next(&|next| next[at] ^= if at == 20 { 0x20 } else { 1 })), "{what}");
    }
    for flags in [flag::SYN, flag::FIN, flag::RST, 32, CWR, ECE] {
        assert!(!joins(&whole(1100, flag::ACK | flags, true, 1, &[2; 100])), "{flags}");
    }
    assert!(!joins(&whole(1100, flag::ACK, true, 1, &[2; 101])), "longer than the first");
    assert!(!joins(&segment(1100, flag::ACK, false, &[2; 100])), "another version of IP");
    assert!(Run::of(&segment(1, flag::ACK, true, &[])).is_none(), "no payload");
}

#[test]
fn a_run_ends_with_a_push_and_with_a_shorter_segment() {
    for (flags, bytes) in [(flag::ACK | flag::PSH, 100), (flag::ACK, 99)] {
        let first = segment(1000, flag::ACK, true, &[1; 100]);
        let second = whole(1100, flags, true, 1, &vec![2; bytes]);
        let third = whole(1100 + bytes as u32, flag::ACK, true, 2, &[3; 10]);
        let mut run = Run::of(&first).unwrap();
        assert!(run.join(&first, &second) && !run.join(&first, &third));
        assert_eq!(run.segments(), 2);
    }
}

#[test]
fn fin_stays_with_the_last_segment_and_cwr_with_the_first() {
    let frame = whole(0, flag::ACK | flag::FIN | flag::PSH | CWR, true, 5, &[0; 250]);
    let pieces = cut(&frame, Offload { checksum: Some((34, 16)), segment_bytes: 100 });
    let flags: Vec<u8> = pieces.iter().map(|piece| piece[47]).collect();
    assert_eq!(flags, [flag::ACK | CWR, flag::ACK, flag::ACK | flag::FIN | flag::PSH]);
    let ids: Vec<u16> = pieces.iter().map(|piece| be16(piece, ETHERNET + 4)).collect();
    assert_eq!(ids, [5, 6, 7]);
}

#[test]
fn a_checksum_that_is_left_to_the_card_is_filled_in() {
    let right = segment(1, flag::ACK, true, &[9; 11]);
    let mut frame = right.clone();
    let pseudo = pseudo_header(&frame, 34);
    frame[50..52].copy_from_slice(&pseudo.to_be_bytes());
    assert!(Offload { checksum: Some((34, 16)), segment_bytes: 0 }.fill_in(&mut frame) && frame == right);
    for checksum in [None, Some((34, 60)), Some((500, 0)), Some((u16::MAX, u16::MAX))] {
        assert!(!Offload { checksum, segment_bytes: 0 }.fill_in(&mut frame) && frame == right);
    }
}
