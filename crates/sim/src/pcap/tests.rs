//! Captures read back: by this file, and by tshark where it is installed.

use std::process::{Command, Stdio};

use lasthop_core::wire::{self, Link, Merged, Parsed, checksum_is_valid};
use lasthop_medium::{AttemptFate, Band, Preamble, Standard, Timing};

use super::*;
use crate::packet::{Position, flag};

const G: Phy = Phy {
    standard: Standard::G,
    timing: Timing::Standard,
    preamble: Preamble::Long,
    protection: false,
    control_rate: None,
    band: Band::Ghz2,
};
const AP: NodeId = NodeId::ACCESS_POINT;
const N: NodeId = NodeId(1);
const STATION: HostId = HostId::Station(0);
const MIXED: Phy = Phy { protection: true, preamble: Preamble::Short, ..G };

fn flows() -> Vec<Ends> {
    let ends =
        Ends { from: HostId::Server(2), to: STATION, port: 20_000, mss: 1460, sack: true, window_scale: 7, turn: 0 };
    vec![ends, Ends { from: STATION, to: HostId::Server(0), port: 20_001, ..ends }]
}

fn packet(flow: u32, bytes: u16, flags: u32, offset: u64) -> SimPacket {
    let position = Position::new(offset, 0);
    SimPacket { sent: Time::ZERO, position, flow, sack: u32::MAX, bytes, window: 501, flags }
}

/// How far an exchange comes.
#[derive(Clone, Copy, PartialEq)]
enum Reached {
    Rts,
    Cts,
    Data,
    Ack,
}

/// An attempt as the medium makes it.
#[derive(Clone, Copy)]
struct Try {
    at_us: u64,
    from: NodeId,
    to: NodeId,
    packet: SimPacket,
    sacks: SackBlocks,
    rate: Rate,
    is_retry: bool,
    rts: bool,
    reached: Reached,
}

fn attempt(at_us: u64, from: NodeId, to: NodeId, packet: SimPacket) -> Try {
    let (sacks, rate) = (SackBlocks::default(), Rate::OFDM_54);
    Try { at_us, from, to, packet, sacks, rate, is_retry: false, rts: false, reached: Reached::Ack }
}

impl Try {
    fn on(&self, phy: &Phy) -> Attempt {
        let Self { from, to, packet, rate, is_retry, .. } = *self;
        let mut next = Time::ZERO + Span::from_micros(self.at_us);
        let mut send = |duration: Span, rate: Rate| {
            let frame = Frame { start: next, duration, rate };
            next = frame.end() + phy.sifs();
            frame
        };
        let control = phy.control(rate);
        let rts = self.rts.then(|| send(phy.rts(rate), control));
        let cts = (self.rts && self.reached != Reached::Rts).then(|| send(phy.answer(rate), control));
        let goes_on = matches!(self.reached, Reached::Data | Reached::Ack);
        let protects = goes_on && phy.protection(rate) > Span::ZERO;
        let cts_to_self = protects.then(|| send(phy.protection(rate) - phy.sifs(), phy.control(Rate::DSSS_11)));
        let data = goes_on.then(|| send(phy.data(rate, u32::from(packet.bytes)), rate));
        let ack = (self.reached == Reached::Ack).then(|| send(phy.answer(rate), control));
        let (fate, ip_bytes) = (AttemptFate::Acked, u32::from(packet.bytes));
        Attempt {
            from,
            to,
            is_retry,
            rts,
            cts,
            cts_to_self,
            data,
            ack,
            fate,
            packet,
            ip_bytes,
            class: None,
            aggregate: None,
        }
    }
}

/// A handshake, data that is lost and sent again, an ACK with SACK blocks, an upload datagram behind RTS and CTS.
fn story() -> Vec<Try> {
    let tcp = flag::TCP;
    let mut sacks = SackBlocks::default();
    sacks.push(2920, 4380);
    sacks.push(7300, 8760);
    let data = attempt(6_000, AP, N, packet(0, 1500, tcp, 1460));
    vec![
        attempt(1_000, AP, N, packet(0, 52, tcp | flag::SYN, 0)),
        attempt(2_000, N, AP, packet(0, 52, tcp | flag::SYN | flag::BACK, 0)),
        attempt(5_000, AP, N, packet(0, 1500, tcp, 0)),
        Try { reached: Reached::Data, ..data },
        Try { at_us: 7_000, is_retry: true, ..data },
        Try { sacks, ..attempt(8_000, N, AP, packet(0, 60, tcp | flag::BACK, 1460)) },
        Try { rts: true, ..attempt(9_000, N, AP, packet(1, 42, 0, 0)) },
        Try { rts: true, reached: Reached::Rts, ..attempt(10_000, N, AP, packet(1, 42, 0, 0)) },
        Try { rts: true, reached: Reached::Cts, is_retry: true, ..attempt(11_000, N, AP, packet(1, 42, 0, 0)) },
        Try { rate: Rate::DSSS_11, ..attempt(12_000, N, AP, packet(0, 40, tcp | flag::BACK | flag::FIN, 2920)) },
    ]
}

fn capture(phy: Phy) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut capture = Capture::new(&mut bytes, phy, flows()).unwrap();
    story().iter().for_each(|attempt| capture.attempt(&attempt.on(&phy), attempt.sacks).unwrap());
    bytes
}

/// A record as it reads back.
struct Record<'a> {
    ns: u64,
    original: usize,
    radiotap: &'a [u8],
    /// From the 802.11 header on.
    frame: &'a [u8],
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap())
}

fn records(bytes: &[u8]) -> Vec<Record<'_>> {
    assert_eq!((word(bytes, 0), half(bytes, 4), half(bytes, 6)), (0xa1b2_3c4d, 2, 4));
    assert_eq!(word(bytes, 20), 127);
    let mut rest = &bytes[24..];
    let mut list = Vec::new();
    while !rest.is_empty() {
        let captured = word(rest, 8) as usize;
        assert!(captured <= word(bytes, 16) as usize, "no record is longer than the snap length");
        let record = &rest[16..16 + captured];
        let (radiotap, frame) = record.split_at(usize::from(half(record, 2)));
        let ns = u64::from(word(rest, 0)) * 1_000_000_000 + u64::from(word(rest, 4));
        list.push(Record { ns, original: word(rest, 12) as usize, radiotap, frame });
        rest = &rest[16 + captured..];
    }
    list
}

/// Type and subtype of an 802.11 frame, as the first byte of its frame control.
fn kinds(records: &[Record<'_>]) -> Vec<&'static str> {
    let name = |r: &Record<'_>| match r.frame[0] {
        0x08 => "data",
        0xb4 => "rts",
        0xc4 => "cts",
        0xd4 => "ack",
        other => panic!("frame control {other:#x}"),
    };
    records.iter().map(name).collect()
}

/// The TCP header of a data frame, with the checksum verified over a payload of zeros.
fn tcp(record: &Record<'_>) -> wire::TcpFields {
    let mut packet = record.frame[32..].to_vec();
    packet.resize(record.original - record.radiotap.len() - 32, 0);
    let Parsed::Tcp(fields) = wire::parse_merged(&packet, Link::Ip, Merged::NOT) else { panic!("not TCP") };
    assert!(checksum_is_valid(&packet, &fields), "the checksum is right over a payload of zeros");
    fields
}

#[test]
fn every_frame_of_an_exchange_stands_at_its_time() {
    let bytes = capture(G);
    let records = records(&bytes);
    let acked = ["data", "ack"];
    let expected = [&acked[..], &acked, &acked, &["data"], &acked, &acked, &["rts", "cts", "data", "ack"]].concat();
    let expected = [&expected[..], &["rts"], &["rts", "cts"], &["data", "ack"]].concat();
    assert_eq!(kinds(&records), expected);
    // 1500 bytes at 54 Mbit/s last 254 us, then SIFS.
    assert_eq!((records[4].ns, records[5].ns), (5_000_000, 5_000_000 + 254_000 + 10_000));
    // RTS and CTS of 34 us, SIFS between all.
    let exchange: Vec<u64> = records[11..14].iter().map(|r| r.ns - 9_000_000).collect();
    assert_eq!(exchange, [0, 44_000, 88_000]);
    // The NAV of each frame ends with the ACK.
    let end = records[14].ns + 34_000;
    let lengths = [G.rts(Rate::OFDM_54), G.answer(Rate::OFDM_54), G.data(Rate::OFDM_54, 42)];
    for (record, length) in records[11..14].iter().zip(lengths) {
        assert_eq!(record.ns + length.as_nanos() + u64::from(half(record.frame, 2)) * 1000, end);
    }
}

#[test]
fn lengths_are_those_of_the_air_without_fcs_and_records_end_with_the_last_header() {
    let bytes = capture(G);
    for record in records(&bytes) {
        let on_channel = record.original - record.radiotap.len();
        match record.frame[0] {
            0xd4 | 0xc4 => assert_eq!((record.frame.len(), on_channel), (10, 10)),
            0xb4 => assert_eq!((record.frame.len(), on_channel), (16, 16)),
            _ => assert_eq!(on_channel - 32, usize::from(u16::from_be_bytes([record.frame[34], record.frame[35]]))),
        }
    }
}

#[test]
fn addresses_retry_and_sequence_follow_the_sender() {
    let bytes = capture(G);
    let records = records(&bytes);
    let (ap, station) = (lasthop_home::address::mac(HostId::AccessPoint), lasthop_home::address::mac(STATION));
    let down = &records[0].frame;
    assert_eq!((down[1], &down[4..10], &down[10..16], &down[16..22]), (2, &station[..], &ap[..], &ap[..]));
    let up = &records[2].frame;
    assert_eq!((up[1], &up[4..10], &up[10..16]), (1, &ap[..], &station[..]));
    assert_eq!(records[1].frame[4..10], ap, "an ACK goes to who sent the data");
    let (first, again) = (&records[6].frame, &records[7].frame);
    assert_eq!((first[1] & 8, again[1] & 8), (0, 8));
    assert_eq!((half(first, 22), half(again, 22)), (3 << 4, 3 << 4));
    assert_eq!(records[7].radiotap[22], 1, "retries");
}

#[test]
fn tcp_headers_say_what_the_simulator_knows() {
    let bytes = capture(G);
    let records = records(&bytes);
    let syn = tcp(&records[0]);
    assert_eq!((syn.flags, syn.seq, syn.source.port), (wire::flag::SYN, 0, 20_000));
    let answer = tcp(&records[2]);
    assert_eq!((answer.flags, answer.ack, answer.window_scale), (wire::flag::SYN | wire::flag::ACK, 1, Some(7)));
    let data = tcp(&records[4]);
    assert_eq!((data.seq, data.ack, data.payload_bytes), (1, 1, 1460));
    assert_eq!(data.source.address[12..], [10, 1, 1, 3]);
    let ack = tcp(&records[9]);
    assert_eq!((ack.ack, ack.window, ack.payload_bytes), (1461, 501, 0));
    let options = &records[9].frame[32 + 40..];
    assert_eq!(options[..4], [1, 1, 5, 18]);
    assert_eq!(options[4..8], 2921u32.to_be_bytes());
}

#[test]
fn a_mixed_cell_shows_cts_to_self_and_short_preambles() {
    let bytes = capture(MIXED);
    let records = records(&bytes);
    assert_eq!(kinds(&records)[..3], ["cts", "data", "ack"]);
    assert_eq!(
        records[0].frame[4..10],
        lasthop_home::address::mac(HostId::AccessPoint),
        "it is addressed to its sender"
    );
    assert_eq!(records[0].radiotap[16], 2, "short preamble");
    assert_eq!(records[1].radiotap[17], 108, "54 Mbit/s");
}

/// What tshark says of a capture, a line per frame; `None` where there is no tshark.
fn tshark(bytes: &[u8]) -> Option<String> {
    let mut child = Command::new("tshark")
        .args(["-r", "-", "-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE", "-T", "fields"])
        .args(["-e", "frame.protocols", "-e", "_ws.malformed", "-e", "_ws.expert.message", "-e", "_ws.col.Info"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn tshark_reads_every_frame() {
    for phy in [G, MIXED] {
        let bytes = capture(phy);
        let Some(text) = tshark(&bytes) else {
            println!("SKIPPED: there is no tshark here");
            return;
        };
        assert_eq!(text.lines().count(), records(&bytes).len(), "{text}");
        let lower = text.to_lowercase();
        assert!(!lower.contains("malformed") && !lower.contains("incorrect"), "{text}");
        assert!(text.contains("MSS=1460") && text.contains("WS=128") && text.contains("SLE=2921"), "{text}");
    }
}

/// The header that radiotap.org describes, field by field at its alignment.
#[test]
fn modes_and_aggregates_stand_in_radiotap_fields_of_their_own() {
    use lasthop_core::packet::AccessCategory;
    use lasthop_medium::{Guard, InAggregate, Mode, Width};
    let phy = Phy { standard: Standard::Ax, band: Band::Ghz5, ..G };
    let mode = |standard, width, streams, mcs, guard| Mode { standard, width, streams, mcs, guard };
    let header = |mode: Mode, aggregate| {
        let rate = Rate::of_mode(mode).unwrap();
        let sent = Frame { start: Time::ZERO + Span::from_micros(7), duration: Span::from_micros(90), rate };
        let mut out = vec![0xee; 3];
        let length = dot11::radiotap(&mut out, &phy, sent, Some(2), aggregate);
        assert_eq!(out.len(), 3 + length as usize);
        assert_eq!(u16::from_le_bytes([out[5], out[6]]), length as u16);
        let present = u32::from_le_bytes(out[7..11].try_into().unwrap());
        // TSFT, no rate, channel 36 with OFDM at 5 GHz, retries.
        assert_eq!((out[11], out[20], &out[21..26]), (7, 0, &[0x3c, 0x14, 0x40, 0x01, 2][..]));
        (present, out[26..].to_vec())
    };
    let base = 1 | 2 | 8 | 1 << 17;
    let n = mode(Standard::N, Width::Mhz40, 2, 5, Guard::Ns400);
    assert_eq!(header(n, None), (base | 1 << 19, vec![0x0f, 5, 13]));
    let last = Some(InAggregate { number: 0x0102, index: 3, mpdus: 4 });
    // 23 bytes before it, one of padding.
    let ac = mode(Standard::Ac, Width::Mhz80, 2, 9, Guard::Ns400);
    let (present, fields) = header(ac, last);
    assert_eq!(present, base | 1 << 20 | 1 << 21);
    assert_eq!(fields[..9], [0, 2, 1, 0, 0, 12, 0, 0, 0]);
    assert_eq!(fields[9..], [0x44, 0, 4, 4, 0x92, 0, 0, 0, 0, 0, 0, 0]);
    let ax = mode(Standard::Ax, Width::Mhz160, 4, 11, Guard::Ns1600);
    assert_eq!(header(ax, None), (base | 1 << 23, vec![0, 0x20, 0x40, 2, 0, 0, 11, 0, 0, 0x13, 0, 4, 0]));
    // A capture of an aggregate: data frames with the class's priority, and one block ack.
    let mut out = Vec::new();
    let mut capture = Capture::new(&mut out, phy, flows()).unwrap();
    let sent = Frame { start: Time::ZERO, duration: Span::from_micros(90), rate: Rate::of_mode(ac).unwrap() };
    let (start, rate) = (sent.end() + phy.sifs(), Rate::OFDM_24);
    let block_ack = Frame { start, duration: phy.duration(rate, 32), rate };
    for index in 0..2 {
        let whole = attempt(0, N, AP, packet(1, 42, 0, 0)).on(&phy);
        let aggregate = Some(InAggregate { number: 1, index, mpdus: 2 });
        let ack = (index == 1).then_some(block_ack);
        let attempt = Attempt { data: Some(sent), ack, class: Some(AccessCategory::Vo), aggregate, ..whole };
        capture.attempt(&attempt, SackBlocks::default()).unwrap();
    }
    let mut frames = Vec::new();
    let mut rest = &out[24..];
    while let Some(length) = rest.get(8..12) {
        let (captured, whole) = (u32::from_le_bytes(length.try_into().unwrap()) as usize, rest[12]);
        let record = &rest[16..16 + captured];
        frames.push((record[usize::from(record[2])..].to_vec(), u32::from(whole) - u32::from(record[2])));
        rest = &rest[16 + captured..];
    }
    assert_eq!(frames.iter().map(|(frame, _)| frame[0]).collect::<Vec<_>>(), [0x88, 0x88, 0x94]);
    // Priority 6 in the QoS control, before LLC/SNAP.
    assert_eq!(frames[0].0[24..28], [6, 0, 0xaa, 0xaa]);
    assert_eq!((frames[0].1, frames[2].1, frames[2].0.len()), (26 + 8 + 42, 28, 16));
}
