//! What a server does not take.

use super::house::{House, body, list, offer, open, packets, refusal, send, settings, sha256};
use lasthop_messenger::account::Account;
use lasthop_messenger::client::Session;
use lasthop_messenger::protocol::{Refusal, Reply, Request};
use lasthop_messenger::server::{Event, Settings};
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

fn with(change: impl FnOnce(&mut Settings)) -> (tempfile::TempDir, House, Account, Account) {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings();
    change(&mut settings);
    let house = House::open(folder.path(), settings);
    let (anna, bert) = (house.account("anna"), house.account("bert"));
    (folder, house, anna, bert)
}

#[test]
fn a_message_that_is_too_long_or_badly_named_is_refused_before_it_is_sent() {
    let (_folder, _house, anna, _) = with(|settings| settings.bounds.longest_message = 1000);
    let mut session = open(&anna);
    assert_eq!(session.longest_message(), 1000);
    assert_eq!(refusal(session.ask(&offer(1, "bert", "v", 1001))), Refusal::TooLong { most: 1000 });
    for name in ["", "a/b", "..", "a\nb", "\u{1b}[31m", &"x".repeat(256)] {
        assert_eq!(refusal(session.ask(&offer(1, "bert", name, 1))), Refusal::BadName, "{name:?}");
    }
    let nobody = refusal(session.ask(&offer(1, "nobody", "v", 1)));
    assert_eq!(nobody, Refusal::NoSuchRecipient { name: "nobody".into() });
    send(&mut session, 1, "bert", &body(1000, 1)).unwrap();
}

#[test]
fn a_full_mailbox_takes_messages_again_once_some_are_received() {
    let (_folder, _house, anna, bert) = with(|settings| {
        settings.bounds.mailbox_messages = 2;
        settings.bounds.mailbox_bytes = 1000;
    });
    let mut session = open(&anna);
    let first = send(&mut session, 1, "bert", &[1; 600]).unwrap();
    assert_eq!(refusal(session.ask(&offer(2, "bert", "v", 401))), Refusal::MailboxFull, "too many bytes");
    send(&mut session, 3, "bert", &[1; 400]).unwrap();
    assert_eq!(refusal(session.ask(&offer(4, "bert", "v", 0))), Refusal::MailboxFull, "too many messages");
    send(&mut session, 5, "anna", &[1; 1000]).unwrap();
    open(&bert).ask(&Request::Received { message: first }).unwrap();
    send(&mut session, 6, "bert", &[1; 600]).unwrap();
}

#[test]
fn one_sender_fills_no_mailbox_alone_and_is_told_so() {
    let (folder, house, anna, bert) = with(|settings| {
        settings.bounds.sender_messages = 3;
        settings.bounds.sender_bytes = 1000;
    });
    let (mut session, full) = (open(&anna), Refusal::SenderFull { messages: 3, bytes: 1000 });
    let first = send(&mut session, 1, "bert", &[1; 600]).unwrap();
    assert_eq!(refusal(session.ask(&offer(2, "anna", "v", 401))), full, "too many bytes, for whomever");
    send(&mut session, 3, "bert", &[1; 100]).unwrap();
    session.ask(&offer(4, "bert", "v", 300)).unwrap();
    packets(&mut session, 0, &[0; 10]).unwrap();
    drop(session);
    let mut session = open(&anna);
    assert_eq!(refusal(session.ask(&offer(5, "bert", "v", 0))), full, "too many messages, one of them under way");
    send(&mut open(&bert), 1, "bert", &[1; 1000]).unwrap();
    // The same after a restart, by what is there.
    drop((session, house));
    let mut settings = settings();
    (settings.bounds.sender_messages, settings.bounds.sender_bytes) = (3, 1000);
    let house = House::open(folder.path(), settings);
    let at = |account: Account| Account { server: house.address.clone(), ..account };
    let (mut session, mut bert) = (open(&at(anna)), open(&at(bert)));
    assert_eq!(refusal(session.ask(&offer(6, "anna", "v", 0))), full);
    bert.ask(&Request::Received { message: first }).unwrap();
    send(&mut session, 7, "bert", &[1; 600]).unwrap();
    assert_eq!(refusal(bert.ask(&offer(2, "anna", "v", 1))), full);
}

#[test]
fn uploads_in_flight_take_their_place_and_give_it_back() {
    let (folder, _house, anna, bert) = with(|settings| {
        settings.bounds.mailbox_bytes = 1000;
        settings.bounds.uploads = 3;
    });
    let mut session = open(&anna);
    session.ask(&offer(1, "bert", "v", 900)).unwrap();
    packets(&mut session, 0, &[0; 10]).unwrap();
    assert_eq!(refusal(open(&anna).ask(&offer(2, "bert", "v", 900))), Refusal::MailboxFull);
    drop(session);
    // The oldest of too many goes, when nobody writes it.
    for transfer in 3..6 {
        let mut other = open(&anna);
        assert_eq!(other.ask(&offer(transfer, "anna", "v", 10)).unwrap(), Reply::Continue { offset: 0 });
        packets(&mut other, 0, &[0; 5]).unwrap();
        drop(other);
    }
    let deadline = std::time::Instant::now() + super::house::IDLE;
    while send(&mut open(&anna), 2, "bert", &[2; 900]).is_err() {
        assert!(std::time::Instant::now() < deadline, "the place was never given back");
    }
    assert_eq!(list(&mut open(&bert)).len(), 1);
    assert!(std::fs::read_dir(folder.path().join("bodies")).unwrap().count() <= 4);
}

#[test]
fn the_whole_store_has_a_limit_and_so_has_a_minute() {
    let (_folder, house, anna, _) = with(|settings| {
        settings.bounds.store_messages = 3;
        settings.messages_per_minute = 5;
    });
    let mut session = open(&anna);
    for transfer in 0..3 {
        send(&mut session, transfer, "bert", b"x").unwrap();
    }
    assert_eq!(refusal(session.ask(&offer(4, "anna", "v", 1))), Refusal::DiskFull);
    session.ask(&offer(0, "bert", "voice.wav", 1)).unwrap();
    assert_eq!(refusal(session.ask(&offer(0, "bert", "v", 1))), Refusal::TooManyMessages { seconds: 12 });
    assert_eq!(house.stop().kept, 3);
}

#[test]
fn connections_beyond_the_limit_are_told_and_places_are_given_back() {
    let (_folder, house, anna, _) = with(|settings| settings.connections_per_address = 2);
    let (first, _second) = (open(&anna), open(&anna));
    let busy = refusal(Session::open(&anna, None, super::house::IDLE).map(drop));
    assert!(matches!(busy, Refusal::Busy { .. }));
    first.close();
    let deadline = std::time::Instant::now() + super::house::IDLE;
    while Session::open(&anna, None, super::house::IDLE).is_err() {
        assert!(std::time::Instant::now() < deadline, "the place was never given back");
    }
    assert!(house.stop().busy >= 1);
}

#[test]
fn who_does_not_say_who_it_is_is_cut() {
    let (_folder, house, ..) = with(|settings| settings.greeting = Duration::from_millis(300));
    let mut silent = TcpStream::connect(&house.address).unwrap();
    silent.set_read_timeout(Some(super::house::IDLE)).unwrap();
    assert_eq!(silent.read(&mut [0; 16]).unwrap_or(0), 0, "closed, not timed out");
    let counters = house.stop();
    assert_eq!(counters.late + counters.idle, 1);
}

#[test]
fn who_says_nothing_any_more_is_cut_in_the_middle_of_an_upload_too() {
    // Long enough for a busy machine to say the next word.
    let (_folder, house, anna, _) = with(|settings| settings.idle = Duration::from_secs(2));
    let mut session = open(&anna);
    assert!(matches!(refusal(session.answer()), Refusal::Idle { .. }));
    let mut session = open(&anna);
    session.ask(&offer(1, "bert", "v", 100)).unwrap();
    assert!(matches!(refusal(session.answer()), Refusal::Idle { .. }), "in the middle of an upload");
    let counters = house.stop();
    assert_eq!((counters.idle, counters.cut), (2, 1));
}

#[test]
fn a_server_that_is_stopped_says_so_and_the_upload_goes_on_with_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), settings());
    let (anna, bert) = (house.account("anna"), house.account("bert"));
    let voice = body(400_000, 5);
    let mut session = open(&anna);
    session.ask(&offer(1, "bert", "v", 400_000)).unwrap();
    packets(&mut session, 0, &voice[..300_000]).unwrap();
    let mut waiting = open(&bert);
    assert_eq!(waiting.ask(&Request::Ping(1)).unwrap(), Reply::Pong(1));
    drop(house);
    assert_eq!(refusal(waiting.answer()), Refusal::Stopping);
    assert_eq!(refusal(session.answer()), Refusal::Stopping);

    let house = House::open(folder.path(), settings());
    assert_eq!(house.server.swept().uploads, 1);
    let mut session = open(&Account { server: house.address.clone(), ..anna });
    let Reply::Continue { offset } = session.ask(&offer(1, "bert", "v", 400_000)).unwrap() else { panic!() };
    packets(&mut session, offset, &voice[offset as usize..]).unwrap();
    assert!(matches!(session.ask(&Request::Finish { sha256: sha256(&voice) }).unwrap(), Reply::Kept { .. }));
}

#[test]
fn a_peer_of_ipv4_is_told_as_one_on_a_socket_of_both_families() {
    let Ok(listener) = TcpListener::bind("[::]:0") else {
        println!("SKIPPED: this machine has no IPv6");
        return;
    };
    let port = listener.local_addr().unwrap().port();
    let folder = tempfile::tempdir().unwrap();
    let house = House::listening(folder.path(), settings(), listener);
    let anna = Account { server: format!("127.0.0.1:{port}"), ..house.account("anna") };
    open(&anna).close();
    let heard = std::sync::Arc::clone(&house.events);
    house.stop();
    let events = heard.lock().unwrap();
    let Some(Event::Welcomed { from, .. }) = events.first() else { panic!("{events:?}") };
    assert_eq!(from.ip(), Ipv4Addr::LOCALHOST);
}
