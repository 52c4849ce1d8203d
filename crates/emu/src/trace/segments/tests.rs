use super::*;

const HOME: &str = include_str!("../../../tests/common/download.toml");

const PLAN: AddressPlan = AddressPlan { servers: 1, stations: 1 };
/// Initial numbers: close below the wrap, so that relative ones are not those of the header.
const SERVER_FIRST: u32 = u32::MAX - 100;
const STATION_FIRST: u32 = 5000;
/// Scale announced by the station, by the server.
const SCALES: (u8, u8) = (4, 7);

/// A connection from the station to the server, played by hand.
struct Play {
    segments: Segments,
    port: u16,
}

impl Play {
    /// As far as the data begin.
    fn new(port: u16) -> Self {
        let scenario = Scenario::parse(HOME, "test.toml", &[]).unwrap();
        let mut play = Self { segments: Segments::new(&scenario, PLAN), port };
        let syn = play.up(0, 0, 1000, flag::SYN);
        play.whole(0, 1, syn);
        let answer = play.down(0, 1, 2000, 0, flag::SYN | flag::ACK);
        play.whole(1, 2, answer);
        let third = play.up(1, 1, 1000, flag::ACK);
        play.whole(2, 3, third);
        play
    }

    fn endpoint(host: HostId, port: u16) -> Endpoint {
        Endpoint { address: AddressPlan::v4(host).to_ipv6_mapped().octets(), port }
    }

    /// From the station; `window` as written.
    fn up(&self, seq: u32, ack: u32, window: u16, flags: u8) -> TcpFields {
        TcpFields {
            source: Self::endpoint(HostId::Station(0), self.port),
            destination: Self::endpoint(HostId::Server(0), self.port),
            seq: STATION_FIRST.wrapping_add(seq),
            ack: SERVER_FIRST.wrapping_add(ack),
            window,
            flags,
            window_scale: (flags & flag::SYN != 0).then_some(SCALES.0),
            ..TcpFields::default()
        }
    }

    /// From the server.
    fn down(&self, seq: u32, ack: u32, window: u16, payload_bytes: u32, flags: u8) -> TcpFields {
        TcpFields {
            source: Self::endpoint(HostId::Server(0), self.port),
            destination: Self::endpoint(HostId::Station(0), self.port),
            seq: SERVER_FIRST.wrapping_add(seq),
            ack: STATION_FIRST.wrapping_add(ack),
            window,
            flags,
            payload_bytes,
            window_scale: (flags & flag::SYN != 0).then_some(SCALES.1),
            ..TcpFields::default()
        }
    }

    fn data(&self, seq: u32) -> TcpFields {
        self.down(seq, 1, 2000, 1000, flag::ACK)
    }

    fn on(&mut self, ms: u64, what: What, tcp: TcpFields) -> Option<Line> {
        self.segments.on_event(&Event { at: Time::ZERO + Span::from_millis(ms), what, tcp })
    }

    /// Sent and delivered, with nothing in between.
    fn whole(&mut self, sent_ms: u64, delivered_ms: u64, tcp: TcpFields) -> Line {
        assert_eq!(self.on(sent_ms, What::Sent, tcp), None);
        self.on(delivered_ms, What::Delivered, tcp).unwrap()
    }
}

#[test]
fn a_segment_has_the_names_of_its_ends_relative_numbers_and_a_scaled_window() {
    let mut play = Play::new(4000);
    let line = play.whole(10, 25, play.data(1));
    let expected = Line {
        t_s: 0.010,
        connection: "N:4000 W:4000".into(),
        direction: "down",
        seq: 1,
        ack: Some(1),
        bytes: 1000,
        offered_window: 2000 << SCALES.1,
        data_ms: Some(15.0),
        ..Line::default()
    };
    assert_eq!(line, expected);
    // Beyond the wrap of the header's numbers.
    let line = play.whole(30, 31, play.data(1001));
    assert_eq!((line.seq, line.data_ms), (1001, Some(1.0)));
}

#[test]
fn a_flow_of_the_scenario_is_named_and_windows_of_syns_are_not_scaled() {
    let mut play = Play::new(FIRST_PORT);
    assert_eq!(play.whole(10, 25, play.data(1)).flow.as_deref(), Some("ftp"));
    let mut again = Play::new(4000);
    let syn = again.up(0, 0, 1000, flag::SYN);
    let line = again.whole(5, 6, syn);
    assert_eq!((line.flags.as_deref(), line.offered_window, line.ack, line.flow), (Some("SYN"), 1000, None, None));
}

#[test]
fn an_acknowledgment_is_timed_from_the_last_arrival_that_it_is_the_first_to_cover() {
    let mut play = Play::new(4000);
    play.whole(10, 20, play.data(1));
    play.whole(10, 24, play.data(1001));
    let line = play.whole(64, 65, play.up(1, 2001, 900, flag::ACK));
    assert_eq!((line.ack_ms, line.acked_segments, line.t_s), (Some(40.0), 2, 0.064));
    assert_eq!((line.offered_window, line.window_update), (900 << SCALES.0, false));
    // Nothing new in it.
    let line = play.whole(70, 71, play.up(1, 2001, 900, flag::ACK));
    assert_eq!((line.ack_ms, line.acked_segments, line.window_update), (None, 0, false));
}

#[test]
fn a_hole_delays_the_acknowledgment_of_what_is_behind_it_not_its_response() {
    let mut play = Play::new(4000);
    play.on(10, What::Sent, play.data(1));
    play.whole(10, 20, play.data(1001));
    let line = play.on(21, What::Lost(LostAt::Channel), play.data(1)).unwrap();
    assert_eq!((line.lost, line.data_ms, line.seq), (Some("channel"), None, 1));
    let line = play.whole(50, 60, play.data(1));
    assert_eq!((line.retransmitted, line.data_ms), (true, Some(10.0)));
    let line = play.whole(61, 62, play.up(1, 2001, 900, flag::ACK));
    assert_eq!((line.ack_ms, line.acked_segments), (Some(1.0), 2));
}

#[test]
fn only_a_larger_window_without_news_is_a_window_update() {
    let mut play = Play::new(4000);
    play.whole(10, 20, play.data(1));
    let mut update = |ms, ack, window| play.whole(ms, ms + 1, play.up(1, ack, window, flag::ACK)).window_update;
    assert!(!update(30, 1001, 10), "it acknowledges");
    assert!(!update(31, 1001, 0), "it closes");
    assert!(update(32, 1001, 500));
    assert!(!update(33, 1001, 500), "it is a duplicate");
}

#[test]
fn what_the_access_point_made_of_a_window_stands_beside_what_was_offered() {
    let mut play = Play::new(4000);
    let offered = play.up(1, 1, 900, flag::ACK);
    play.on(10, What::Sent, offered);
    let line = play.on(12, What::Delivered, TcpFields { window: 100, ..offered }).unwrap();
    assert_eq!((line.offered_window, line.clamped_window), (900 << SCALES.0, Some(100 << SCALES.0)));
}

#[test]
fn what_has_no_beginning_no_sender_or_no_end_is_counted() {
    let mut play = Play::new(4000);
    play.port = 4001;
    assert_eq!(play.on(10, What::Sent, play.data(1)), None);
    assert_eq!(play.on(11, What::Delivered, play.data(1)), None);
    play.port = 4000;
    assert_eq!(play.on(12, What::Delivered, play.data(1)), None);
    play.on(13, What::Sent, play.data(1001));
    play.on(80_000, What::Sent, play.data(2001));
    let expected = Counters { missed: 0, unknown: 1, forgotten: 1, copies: 1 };
    assert_eq!(play.segments.counters(), expected);
}

#[test]
fn no_number_of_segments_and_connections_takes_more_than_its_room() {
    let mut play = Play::new(4000);
    for n in 0..SEGMENTS as u32 + 500 {
        play.on(10, What::Sent, play.data(1 + n));
    }
    assert_eq!(play.segments.counters().forgotten, 500);
    for n in 0..CONNECTIONS as u64 + 100 {
        play.port = n as u16;
        let syn = play.up(0, 0, 1000, flag::SYN);
        play.on(100 + n, What::Sent, syn);
    }
    assert_eq!(play.segments.connections.len(), CONNECTIONS);
}
