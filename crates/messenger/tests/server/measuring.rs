//! Packets of no message.

use super::house::{House, open, packets, refusal, settings};
use lasthop_messenger::channel::Incoming;
use lasthop_messenger::protocol::{Refusal, Reply, Request};
use lasthop_messenger::tuning::End;
use lasthop_messenger::tuning::quantity::{Rate, Size};
use std::time::{Duration, Instant};

#[test]
fn a_ping_comes_back_and_a_source_gives_what_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), settings());
    let mut session = open(&house.account("anna"));
    assert_eq!(session.ask(&Request::Ping(9)).unwrap(), Reply::Pong(9));
    session.say(&Request::Source { millis: 60_000, bytes: 1_000_000, sender: End::default() }).unwrap();
    let mut got = 0;
    let tcp = loop {
        match session.channel().receive::<Reply>().unwrap() {
            Incoming::Packet { offset, bytes } => {
                assert_eq!(offset, got);
                got += bytes.len() as u64;
            }
            Incoming::Control(Reply::Sent { tcp }) => break tcp,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(got, 1_000_000);
    assert!(tcp.cwnd > 0 && tcp.srtt_us > 0, "{tcp:?}");
    assert_eq!(session.ask(&Request::Ping(10)).unwrap(), Reply::Pong(10));
}

#[test]
fn a_source_ends_with_its_time_whatever_it_may_give() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), settings());
    let mut session = open(&house.account("anna"));
    let sender = End { pacing: Rate::new(1_000_000), buffer: Size::new(65_536), ..End::default() };
    session.say(&Request::Source { millis: 200, bytes: u64::MAX, sender }).unwrap();
    let mut got = 0;
    let end = loop {
        match session.channel().receive::<Reply>().unwrap() {
            Incoming::Packet { bytes, .. } => got += bytes.len() as u64,
            Incoming::Control(end) => break end,
        }
    };
    assert!(got > 0 && matches!(end, Reply::Sent { .. }), "{end:?} after {got} bytes");
}

#[test]
fn a_sink_says_what_it_took_and_a_mistake_ends_the_connection() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), settings());
    let account = house.account("anna");
    let mut session = open(&account);
    let since = Instant::now();
    session.say(&Request::Sink { receiver: End::default() }).unwrap();
    packets(&mut session, 0, &[7; 123_456]).unwrap();
    match session.ask(&Request::Finish { sha256: [0; 32] }).unwrap() {
        Reply::Taken { bytes, micros } => {
            assert_eq!(bytes, 123_456);
            assert!(Duration::from_micros(micros) <= since.elapsed());
        }
        other => panic!("{other:?}"),
    }
    session.say(&Request::Sink { receiver: End::default() }).unwrap();
    packets(&mut session, 1, &[7]).unwrap();
    assert!(matches!(refusal(session.answer()), Refusal::BadFrame { .. }));
    assert!(session.answer().is_err(), "closed");
    assert_eq!(house.stop().bad_frames, 1);
}
