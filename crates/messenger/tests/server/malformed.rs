//! Bytes and frames that do not belong there: the connection ends, nothing else does.

use super::house::{House, IDLE, fetch, list, offer, open, packets, refusal, send, settings};
use lasthop_messenger::account::Account;
use lasthop_messenger::channel::Incoming;
use lasthop_messenger::client::Session;
use lasthop_messenger::protocol::{
    Decoded, MessageId, Refusal, Reply, Request, Secret, VERSION, control, decode, packet_header,
};
use lasthop_messenger::tls::client_config;
use lasthop_messenger::tuning::End;
use proptest::prelude::*;
use rustls::{ClientConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::TcpStream;

/// A connection on which anything can be said.
fn raw(account: &Account) -> StreamOwned<ClientConnection, TcpStream> {
    let (config, name) = client_config(account.pin);
    let socket = TcpStream::connect(&account.server).unwrap();
    socket.set_read_timeout(Some(IDLE)).unwrap();
    socket.set_write_timeout(Some(IDLE)).unwrap();
    StreamOwned::new(ClientConnection::new(config, name).unwrap(), socket)
}

fn hello(account: &Account) -> Vec<u8> {
    let (account, secret) = (account.account.clone(), account.secret.clone());
    control(&Request::Hello { version: VERSION, account, secret })
}

/// Everything the server says to `said` until it hangs up, as frames; packets are left out.
fn answers(account: &Account, said: &[u8]) -> Vec<Reply> {
    let mut stream = raw(account);
    // It may hang up while it is spoken to.
    let _ = stream.write_all(said).and_then(|()| stream.flush());
    stream.conn.send_close_notify();
    let _ = stream.flush();
    let mut heard = Vec::new();
    let mut buffer = [0; 16 << 10];
    while let Ok(bytes) = stream.read(&mut buffer) {
        if bytes == 0 {
            break;
        }
        heard.extend_from_slice(&buffer[..bytes]);
    }
    let (mut replies, mut rest) = (Vec::new(), &heard[..]);
    loop {
        match decode::<Reply>(rest).expect("what a server says can be understood") {
            Decoded::Needs(_) => return replies,
            Decoded::Control(reply, took) => {
                replies.push(reply);
                rest = &rest[took..];
            }
            Decoded::Packet { took, .. } => rest = &rest[took..],
        }
    }
}

fn house() -> (tempfile::TempDir, House, Account) {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), settings());
    let anna = house.account("anna");
    (folder, house, anna)
}

fn is_bad_frame(reply: Option<&Reply>) -> bool {
    matches!(reply, Some(Reply::Refused(Refusal::BadFrame { .. })))
}

#[test]
fn before_it_is_known_who_it_is_nothing_but_a_short_hello_is_heard() {
    let (_folder, house, anna) = house();
    let long = Secret("x".repeat(600));
    let long = Request::Hello { version: VERSION, account: "anna".into(), secret: long };
    let packet = [&packet_header(0, 1 << 20)[..], &[0; 100]].concat();
    for said in [control(&Request::Ping(1)), control(&long), packet, vec![0xff; 40], b"GET / HTTP/1.1\r\n".to_vec()] {
        let replies = answers(&anna, &said);
        assert!(replies.len() == 1 && is_bad_frame(replies.last()), "{replies:?}");
    }
    let other = Request::Hello { version: VERSION + 1, account: "anna".into(), secret: anna.secret.clone() };
    assert_eq!(answers(&anna, &control(&other)), [Reply::Refused(Refusal::Version { server: VERSION })]);
    assert_eq!(house.stop().bad_frames, 5);
}

#[test]
fn a_frame_that_is_repeated_left_out_or_out_of_order_ends_the_connection() {
    let (_folder, house, anna) = house();
    let offer = || control(&offer(1, "anna", "v", 10));
    let packet = |offset: u64, bytes: &[u8]| [&packet_header(offset, bytes.len())[..], bytes].concat();
    let finish = || control(&Request::Finish { sha256: [0; 32] });
    for said in [
        vec![hello(&anna)],
        vec![finish()],
        vec![packet(0, b"x")],
        vec![offer(), packet(0, b"abc"), packet(0, b"abc")],
        vec![offer(), packet(0, b"abc"), packet(4, b"abc")],
        vec![offer(), packet(0, b"abc"), finish()],
        vec![offer(), packet(0, b"abcdefghijk")],
        vec![offer(), offer()],
        vec![offer(), control(&Request::Ping(1))],
        vec![control(&Request::Sink { receiver: End::default() }), packet(5, b"abc")],
        vec![control(&Request::Fetch { message: MessageId(1), offset: 0, sender: End::default() }), finish()],
    ] {
        let mut all = hello(&anna);
        said.iter().for_each(|frame| all.extend_from_slice(frame));
        let replies = answers(&anna, &all);
        assert!(is_bad_frame(replies.last()), "{replies:?}");
    }
    assert_eq!(list(&mut open(&anna)), []);
    assert_eq!(house.stop().bad_frames, 11);
}

#[test]
fn a_fetch_beyond_the_end_and_a_word_in_the_middle_of_one_end_the_connection() {
    let (_folder, house, anna) = house();
    let message = send(&mut open(&anna), 1, "anna", &[7; 1000]).unwrap();
    let mut session = open(&anna);
    assert!(matches!(refusal(fetch(&mut session, message, 1001)), Refusal::BadFrame { .. }));
    let mut session = open(&anna);
    session.say(&Request::Source { millis: 10_000, bytes: u64::MAX, sender: End::default() }).unwrap();
    session.say(&Request::Ping(1)).unwrap();
    let why = loop {
        match session.channel().receive::<Reply>().unwrap() {
            Incoming::Packet { .. } => {}
            Incoming::Control(reply) => break reply,
        }
    };
    assert!(is_bad_frame(Some(&why)), "{why:?}");
    assert_eq!(house.stop().bad_frames, 2);
}

#[test]
fn what_was_recorded_on_the_wire_says_nothing_a_second_time() {
    let (_folder, house, anna) = house();
    // A record of a whole session, as somebody in between sees it, said again to the server byte by byte.
    let (to_client, relay) = relay(&house.address);
    let through = Account { server: to_client, ..anna.clone() };
    let mut session = Session::open(&through, None, IDLE).unwrap();
    send(&mut session, 1, "anna", b"once").unwrap();
    session.close();
    let record = relay.join().unwrap();
    assert!(record.len() > 500);
    let mut socket = TcpStream::connect(&house.address).unwrap();
    socket.set_read_timeout(Some(IDLE)).unwrap();
    socket.write_all(&record).unwrap();
    let _ = socket.shutdown(std::net::Shutdown::Write);
    let mut rest = Vec::new();
    let _ = socket.read_to_end(&mut rest);
    assert_eq!(list(&mut open(&anna)).len(), 1);
    let counters = house.stop();
    assert_eq!((counters.kept, counters.kept_before), (1, 0));
}

/// Passes one connection on, and returns what the client said.
fn relay(server: &str) -> (String, std::thread::JoinHandle<Vec<u8>>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, server) = (listener.local_addr().unwrap().to_string(), server.to_owned());
    let relay = move || {
        let mut client = listener.accept().unwrap().0;
        let mut server = TcpStream::connect(server).unwrap();
        let (mut from_server, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
        let back = std::thread::spawn(move || std::io::copy(&mut from_server, &mut to_client));
        let mut record = Vec::new();
        let mut buffer = [0; 4096];
        while let Ok(bytes) = client.read(&mut buffer) {
            if bytes == 0 || server.write_all(&buffer[..bytes]).is_err() {
                break;
            }
            record.extend_from_slice(&buffer[..bytes]);
        }
        let _ = server.shutdown(std::net::Shutdown::Write);
        let _ = back.join();
        record
    };
    (address, std::thread::spawn(relay))
}

/// Requests as a client might make them, in any order.
fn any_request() -> impl Strategy<Value = Vec<u8>> {
    let end = End::default();
    prop_oneof![
        (0..3_u128, 0..20_u64).prop_map(|(transfer, bytes)| control(&offer(transfer, "anna", "v", bytes))),
        any::<[u8; 32]>().prop_map(|sha256| control(&Request::Finish { sha256 })),
        Just(control(&Request::Finish { sha256: super::house::sha256(&[0; 10]) })),
        Just(control(&Request::List { after: None })),
        (0..4_u64, 0..20_u64).prop_map(move |(message, offset)| {
            control(&Request::Fetch { message: MessageId(message), offset, sender: end })
        }),
        (0..4_u64).prop_map(|message| control(&Request::Received { message: MessageId(message) })),
        any::<u64>().prop_map(|word| control(&Request::Ping(word))),
        (0..5_u32).prop_map(move |millis| control(&Request::Source { millis, bytes: 1000, sender: end })),
        Just(control(&Request::Sink { receiver: end })),
        (0..20_u64, 1..12_usize)
            .prop_map(|(offset, bytes)| [&packet_header(offset, bytes)[..], &vec![0; bytes]].concat()),
        Just([&packet_header(0, 10)[..], &[0; 10]].concat()),
        proptest::collection::vec(any::<u8>(), 0..30),
    ]
}

#[test]
fn whatever_is_said_is_answered_or_ends_the_connection_and_others_are_served() {
    let (_folder, _house, anna) = house();
    let config = ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let some = proptest::collection::vec(any_request(), 0..12);
    let outcome = runner.run(&some, |frames| {
        let said = [hello(&anna), frames.concat()].concat();
        let replies = answers(&anna, &said);
        prop_assert!(matches!(replies.first(), Some(Reply::Welcome { .. })), "{:?}", replies);
        // At most one answer to each frame, and one last word.
        prop_assert!(replies.len() <= 2 * frames.len() + 2, "{:?}", replies);
        Ok(())
    });
    outcome.unwrap();
    let mut session = open(&anna);
    for listed in list(&mut session) {
        fetch(&mut session, listed.message, 0).unwrap();
    }
    let bytes = [9; 100];
    session.ask(&offer(77, "anna", "v", 100)).unwrap();
    packets(&mut session, 0, &bytes).unwrap();
    session.ask(&Request::Finish { sha256: super::house::sha256(&bytes) }).unwrap();
}
