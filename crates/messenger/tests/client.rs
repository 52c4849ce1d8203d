//! The client against a server that does what it is told, and over connections that are cut.

#[path = "client/peer.rs"]
mod peer;

use lasthop_messenger::client::{Client, ClientError, Event, Failure, Fetched, Outgoing, Sent, State, Wanted};
use lasthop_messenger::protocol::{MessageId, Refusal, Secret};
use lasthop_messenger::tuning::Profile;
use peer::{Peer, cutting_proxy};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tempfile::TempDir;

fn body(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i * i % 253) as u8).collect()
}

/// A client, and a folder for its state and files.
fn client(peer: &Peer, at: SocketAddr) -> (Client, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("in")).unwrap();
    (client_in(peer, at, folder.path()), folder)
}

fn client_in(peer: &Peer, at: SocketAddr, folder: &Path) -> Client {
    let mut profile = Profile::default();
    for set in ["send.sender.packet=1KiB", "fetch.sender.packet=1KiB", "fetch.receiver.packet=1KiB"] {
        profile.set(set).unwrap();
    }
    Client {
        account: peer.account(at),
        profile,
        state: State::open(&folder.join("state")).unwrap(),
        patience: Duration::from_secs(60),
        stop: Arc::new(AtomicBool::new(false)),
    }
}

fn ignore(_: Event<'_>) {}

fn send(client: &Client, file: &Path) -> Result<Sent, Failure> {
    client.send(&Outgoing { file, name: "a.wav", to: "ben" }, &mut ignore)
}

fn all(folder: &Path) -> Wanted {
    Wanted { messages: Vec::new(), into: folder.join("in"), keep: false }
}

fn fetch(client: &Client, wanted: &Wanted) -> Result<Vec<Fetched>, Failure> {
    let mut fetched = Vec::new();
    let mut collect = |event: Event<'_>| {
        if let Event::Fetched(message) = event {
            fetched.push(message.clone());
        }
    };
    client.fetch(wanted, &mut collect).map(|_| fetched)
}

fn files(folder: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(name).collect();
    names.sort();
    names
}

#[test]
fn a_file_is_sent_whole_and_sent_again_it_is_a_new_message() {
    let peer = Peer::start();
    let (client, folder) = client(&peer, peer.address);
    let path = folder.path().join("a.wav");
    for bytes in [10_000, 0, 1, 1024, 1025] {
        fs::write(&path, body(bytes)).unwrap();
        let first = send(&client, &path).unwrap();
        let second = send(&client, &path).unwrap();
        assert!(second.message > first.message);
        assert_eq!(peer.mailbox().kept[&second.message.0].bytes, body(bytes));
    }
    assert_eq!(peer.mailbox().kept.len(), 10);
    assert!(files(&folder.path().join("state")).is_empty(), "nothing is under way");
}

#[test]
fn an_upload_cut_anywhere_arrives_once_and_whole() {
    let peer = Peer::start();
    for cut in (1..9_000).step_by(450) {
        // The first two connections are cut, the later a little later; what was acknowledged goes on by itself.
        let (client, folder) = client(&peer, cutting_proxy(peer.address, vec![3_500 + cut, 3_500 + cut / 2]));
        let path = folder.path().join("a.wav");
        fs::write(&path, body(8_192)).unwrap();
        let before = peer.mailbox().kept.len();
        let sent = send(&client, &path).unwrap();
        assert_eq!(peer.mailbox().kept.len(), before + 1, "cut at {cut}");
        assert_eq!(peer.mailbox().kept[&sent.message.0].bytes, body(8_192), "cut at {cut}");
    }
}

#[test]
fn a_message_whose_acknowledgement_was_lost_is_not_sent_twice() {
    let peer = Peer::start();
    let (client, folder) = client(&peer, peer.address);
    let path = folder.path().join("a.wav");
    fs::write(&path, body(5_000)).unwrap();
    peer.mailbox().swallow = 1;
    send(&client, &path).unwrap();
    assert_eq!(peer.mailbox().kept.len(), 1);
    // The same, when the client did not live to try again.
    let impatient = Client { patience: Duration::ZERO, ..client_in(&peer, peer.address, folder.path()) };
    peer.mailbox().swallow = 1;
    assert!(matches!(send(&impatient, &path), Err(Failure::Client(ClientError::Lost(_)))));
    assert_eq!(send(&client, &path).unwrap().message, MessageId(2));
    assert_eq!(peer.mailbox().kept.len(), 2);
    assert_eq!(send(&client, &path).unwrap().message, MessageId(3), "sent again on purpose");
}

#[test]
fn a_refusal_while_packets_are_sent_is_heard_and_the_upload_goes_on_later() {
    let peer = Peer::start();
    let (client, folder) = client(&peer, peer.address);
    let path = folder.path().join("a.wav");
    fs::write(&path, body(4 << 20)).unwrap();
    peer.mailbox().refuse = Some((50_000, Refusal::DiskFull));
    let error = send(&client, &path).unwrap_err();
    assert!(matches!(error, Failure::Client(ClientError::Refused(Refusal::DiskFull))), "{error}");
    let sent = send(&client, &path).unwrap();
    assert!(sent.resumed >= 50_000, "{}", sent.resumed);
    assert_eq!(peer.mailbox().kept[&1].bytes, body(4 << 20));
}

#[test]
fn a_file_that_changes_while_it_is_sent_is_not_kept() {
    let peer = Peer::start();
    let (client, folder) = client(&peer, peer.address);
    let path = folder.path().join("a.wav");
    let grow = |more: &[u8]| fs::write(&path, [&body(5_000), more].concat()).unwrap();
    for change in [&b"longer"[..], b""] {
        grow(b"");
        let mut once = Some(change);
        let mut watch = |event: Event<'_>| {
            if let (Event::Moves { .. }, Some(change)) = (event, once.take()) {
                match change {
                    b"" => fs::write(&path, b"short").unwrap(),
                    more => grow(more),
                }
            }
        };
        let error = client.send(&Outgoing { file: &path, name: "a", to: "ben" }, &mut watch).unwrap_err();
        assert!(matches!(error, Failure::Changed { .. }), "{error}");
    }
    assert!(peer.mailbox().kept.is_empty());
}

#[test]
fn what_was_sent_of_another_content_of_same_length_and_time_is_sent_anew() {
    let peer = Peer::start();
    let (client, folder) = client(&peer, peer.address);
    let path = folder.path().join("a.wav");
    fs::write(&path, vec![1; 4 << 20]).unwrap();
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    peer.mailbox().refuse = Some((50_000, Refusal::DiskFull));
    send(&client, &path).unwrap_err();
    fs::write(&path, vec![2; 4 << 20]).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    send(&client, &path).unwrap();
    assert_eq!(peer.mailbox().kept[&1].bytes, vec![2; 4 << 20]);
}

#[test]
fn no_recipient_no_file_and_a_wrong_secret_are_said_and_leave_nothing() {
    let peer = Peer::start();
    let (mut client, folder) = client(&peer, peer.address);
    let path = folder.path().join("a.wav");
    fs::write(&path, "a").unwrap();
    let to_nobody = client.send(&Outgoing { file: &path, name: "a", to: "carla" }, &mut ignore).unwrap_err();
    assert_eq!(to_nobody.to_string(), "nobody is called `carla` on this server");
    assert!(files(&folder.path().join("state")).is_empty());
    assert!(matches!(send(&client, folder.path()), Err(Failure::NoFile { .. })));
    assert!(send(&client, &folder.path().join("b")).unwrap_err().to_string().starts_with("cannot read "));
    client.account.secret = Secret("k4".into());
    assert!(send(&client, &path).unwrap_err().to_string().contains("does not know this account"));
}

#[test]
fn messages_are_listed_and_fetched_the_oldest_first_and_deleted_at_the_server() {
    let peer = Peer::start();
    let (client, folder) = client(&peer, peer.address);
    for (name, bytes) in [("a.wav", 5_000), ("b", 0), ("a.wav", 1)] {
        peer.put(name, &body(bytes));
    }
    let listed = client.list(&mut ignore).unwrap();
    assert_eq!(listed.iter().map(|listed| listed.message.0).collect::<Vec<_>>(), [1, 2, 3]);
    let fetched = fetch(&client, &all(folder.path())).unwrap();
    let into = folder.path().join("in");
    assert_eq!(files(&into), ["a (2).wav", "a.wav", "b"]);
    assert_eq!(fs::read(into.join("a.wav")).unwrap(), body(5_000));
    assert_eq!(fs::read(into.join("a (2).wav")).unwrap(), body(1));
    assert_eq!(fetched[0].file, into.canonicalize().unwrap().join("a.wav"));
    assert!(fetched[0].metrics.took >= fetched[0].metrics.spent.network);
    assert_eq!(peer.mailbox().received, [1, 2, 3]);
    assert!(files(&folder.path().join("state")).is_empty());
    assert!(fetch(&client, &all(folder.path())).unwrap().is_empty());
}

#[test]
fn some_are_fetched_and_kept_at_the_server_and_nothing_is_overwritten() {
    let peer = Peer::start();
    let (client, folder) = client(&peer, peer.address);
    for name in ["a", "b", "c"] {
        peer.put(name, name.as_bytes());
    }
    let wanted = Wanted { messages: vec![MessageId(2)], keep: true, ..all(folder.path()) };
    let into = folder.path().join("in");
    std::os::unix::fs::symlink("/nonexistent", into.join("b")).unwrap();
    fetch(&client, &wanted).unwrap();
    fetch(&client, &wanted).unwrap();
    assert_eq!(files(&into), ["b", "b (2)", "b (3)"]);
    assert!(fs::symlink_metadata(into.join("b")).unwrap().is_symlink());
    assert_eq!(peer.mailbox().kept.len(), 3);
    let none = Wanted { messages: vec![MessageId(9)], ..wanted };
    assert!(matches!(fetch(&client, &none), Err(Failure::NotListed(9))));
}

#[test]
fn a_name_that_is_an_attack_stays_in_the_folder() {
    let peer = Peer::start();
    let (client, folder) = client(&peer, peer.address);
    for name in ["../../escaped", "/tmp/escaped", "..", ".bashrc", "a\n\x1b[2Jb", &"x".repeat(255)] {
        peer.put(name, b"evil");
    }
    fetch(&client, &all(folder.path())).unwrap();
    let long = "x".repeat(200);
    let names = ["_.._escaped", "_tmp_escaped", "a__[2Jb", "bashrc", "message-3", &long];
    assert_eq!(files(&folder.path().join("in")), names);
    assert_eq!(files(folder.path()), ["in", "state"]);
}

#[test]
fn a_download_cut_anywhere_arrives_once_and_whole() {
    let peer = Peer::start();
    for cut in (1..9_000).step_by(450) {
        peer.put("a", &body(8_192));
        let (client, folder) = client(&peer, cutting_proxy(peer.address, vec![3_500 + cut, 3_500 + cut / 2]));
        let fetched = fetch(&client, &all(folder.path())).unwrap();
        let into = folder.path().join("in");
        assert_eq!((fetched.len(), files(&into)), (1, vec!["a".to_owned()]), "cut at {cut}");
        assert_eq!(fs::read(into.join("a")).unwrap(), body(8_192), "cut at {cut}");
        assert!(peer.mailbox().kept.is_empty());
    }
}

#[test]
fn a_later_run_goes_on_where_an_earlier_one_ended() {
    let peer = Peer::start();
    peer.put("a", &body(200_000));
    let proxy = cutting_proxy(peer.address, vec![100_000, 50_000]);
    let (client, folder) = client(&peer, proxy);
    let impatient = Client { patience: Duration::ZERO, ..client_in(&peer, proxy, folder.path()) };
    for _ in 0..2 {
        assert!(matches!(fetch(&impatient, &all(folder.path())), Err(Failure::Client(ClientError::Lost(_)))));
    }
    let fetched = fetch(&client, &all(folder.path())).unwrap();
    assert!(fetched[0].resumed > 100_000, "{}", fetched[0].resumed);
    assert_eq!(fs::read(&fetched[0].file).unwrap(), body(200_000));
}

#[test]
fn a_message_whose_acknowledgement_was_lost_does_not_come_twice() {
    let peer = Peer::start();
    let (client, folder) = client(&peer, peer.address);
    peer.put("a", b"a");
    peer.mailbox().swallow = 1;
    fetch(&client, &all(folder.path())).unwrap();
    // The same, when the server did not hear it and the client did not live to say it again.
    let impatient = Client { patience: Duration::ZERO, ..client_in(&peer, peer.address, folder.path()) };
    let id = peer.put("b", b"b");
    peer.mailbox().swallow = 1;
    assert!(matches!(fetch(&impatient, &all(folder.path())), Err(Failure::Client(ClientError::Lost(_)))));
    let message = peer::Message { name: "b".into(), bytes: b"b".to_vec() };
    peer.mailbox().kept.insert(id.0, message);
    assert_eq!(fetch(&client, &all(folder.path())).unwrap()[0].resumed, 1, "it was there");
    assert_eq!(files(&folder.path().join("in")), ["a", "b"]);
    assert!(peer.mailbox().kept.is_empty());
    assert!(files(&folder.path().join("state")).is_empty());
}

#[test]
fn what_arrives_damaged_is_fetched_once_more_and_then_given_up_without_the_others() {
    let peer = Peer::start();
    let (client, folder) = client(&peer, peer.address);
    peer.put("a", &body(3_000));
    peer.mailbox().damage = 1;
    fetch(&client, &all(folder.path())).unwrap();
    assert_eq!(fs::read(folder.path().join("in/a")).unwrap(), body(3_000));
    peer.put("b", &body(3_000));
    peer.put("c", &body(3_000));
    peer.mailbox().damage = 2;
    let mut missed = Vec::new();
    let mut watch = |event: Event<'_>| {
        if let Event::Missed(listed, why) = event {
            missed.push((listed.name.clone(), why.to_string()));
        }
    };
    assert_eq!(client.fetch(&all(folder.path()), &mut watch).unwrap(), 1);
    assert!(missed[0].0 == "b" && missed[0].1.contains("damaged twice"), "{missed:?}");
    assert_eq!(files(&folder.path().join("in")), ["a", "c"]);
    assert_eq!(peer.mailbox().kept.len(), 1, "it stays at the server");
}

#[test]
fn a_part_that_is_longer_than_its_message_begins_anew() {
    let peer = Peer::start();
    peer.put("a", &body(100_000));
    let proxy = cutting_proxy(peer.address, vec![50_000]);
    let (client, folder) = client(&peer, proxy);
    let impatient = Client { patience: Duration::ZERO, ..client_in(&peer, proxy, folder.path()) };
    fetch(&impatient, &all(folder.path())).unwrap_err();
    let into = folder.path().join("in");
    let [part] = &files(&into)[..] else { panic!("{:?}", files(&into)) };
    assert!(part.starts_with("a.") && part.ends_with("-1.part"), "{part}");
    fs::write(into.join(part), vec![7; 100_001]).unwrap();
    fetch(&client, &all(folder.path())).unwrap();
    assert_eq!(fs::read(into.join("a")).unwrap(), body(100_000));
}

#[test]
fn messages_can_be_deleted_unfetched_and_leave_no_part_behind() {
    let peer = Peer::start();
    let proxy = cutting_proxy(peer.address, vec![50_000]);
    let (client, folder) = client(&peer, proxy);
    let impatient = Client { patience: Duration::ZERO, ..client_in(&peer, proxy, folder.path()) };
    for name in ["a", "b"] {
        peer.put(name, &body(100_000));
    }
    fetch(&impatient, &all(folder.path())).unwrap_err();
    let into = folder.path().join("in");
    fs::write(into.join("other.01234567-1.part"), "somebody else's").unwrap();
    assert_eq!(files(&into).len(), 2);
    peer.mailbox().swallow = 1;
    client.discard(&[MessageId(1)], &mut ignore).unwrap();
    assert!(matches!(client.discard(&[MessageId(1)], &mut ignore), Err(Failure::NotListed(1))));
    fetch(&client, &all(folder.path())).unwrap();
    assert_eq!(files(&into), ["b", "other.01234567-1.part"]);
}

#[test]
fn both_ends_are_told_what_to_do() {
    let peer = Peer::start();
    let (mut client, folder) = client(&peer, peer.address);
    for set in ["send.receiver.packet=3KiB", "fetch.sender.packet=5KiB", "fetch.sender.delay=1ms"] {
        client.profile.set(set).unwrap();
    }
    let path = folder.path().join("a.wav");
    fs::write(&path, body(5_000)).unwrap();
    send(&client, &path).unwrap();
    fetch(&client, &all(folder.path())).unwrap();
    assert_eq!(peer.mailbox().ends, [client.profile.send.receiver, client.profile.fetch.sender]);
}

#[test]
fn a_stop_ends_a_transfer_that_can_go_on() {
    let peer = Peer::start();
    let (client, folder) = client(&peer, peer.address);
    peer.put("a", &body(1 << 20));
    let stop = Arc::clone(&client.stop);
    let mut watch = |event: Event<'_>| {
        if matches!(event, Event::Moves { bytes: 100_000.., .. }) {
            stop.store(true, Ordering::Relaxed);
        }
    };
    assert!(client.fetch(&all(folder.path()), &mut watch).unwrap_err().is_stop());
    client.stop.store(false, Ordering::Relaxed);
    let fetched = fetch(&client, &all(folder.path())).unwrap();
    assert!(fetched[0].resumed >= 100_000);
    assert_eq!(fs::read(&fetched[0].file).unwrap(), body(1 << 20));
}

#[test]
fn patience_begins_anew_whenever_something_was_carried_and_ends_when_nothing_is() {
    let peer = Peer::start();
    let short = Duration::from_millis(600);
    let (client, folder) = client(&peer, cutting_proxy(peer.address, vec![5_000; 1_000]));
    let client = Client { patience: short, ..client };
    peer.put("a", &body(8_192));
    let mut waits = 0;
    let mut count = |event: Event<'_>| waits += u32::from(matches!(event, Event::Waits { .. }));
    client.fetch(&all(folder.path()), &mut count).unwrap();
    assert!(waits > 1, "pauses of half a second, more of them than one patience has");
    peer.put("b", &body(8_192));
    let dying = cutting_proxy(peer.address, [vec![5_000], vec![1_000; 1_000]].concat());
    let client = Client { patience: short, ..client_in(&peer, dying, folder.path()) };
    assert!(matches!(fetch(&client, &all(folder.path())), Err(Failure::Client(ClientError::Lost(_)))));
}
