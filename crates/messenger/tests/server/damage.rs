//! Stores that are damaged: said, refused, and nothing deleted.

use super::house::{House, body, fetch, list, open, refusal, send, settings};
use lasthop_messenger::account::Account;
use lasthop_messenger::protocol::{MessageId, Refusal, Reply, Request};
use lasthop_messenger::server::{Event, Server, ServerError};
use lasthop_messenger::store::StoreError;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A store with messages of these lengths for bert, who has an account.
fn store(folder: &Path, lengths: &[usize]) -> Account {
    let house = House::open(folder, settings());
    let (anna, bert) = (house.account("anna"), house.account("bert"));
    let mut session = open(&anna);
    for (number, length) in lengths.iter().enumerate() {
        send(&mut session, number as u128, "bert", &body(*length, 3)).unwrap();
    }
    bert
}

/// Every file of a store, the lock's left out.
fn files(folder: &Path) -> BTreeMap<String, u64> {
    let of = |folder: &Path| fs::read_dir(folder).unwrap().map(Result::unwrap).collect::<Vec<_>>();
    let entries = of(folder).into_iter().chain(of(&folder.join("bodies")));
    entries.map(|e| (e.file_name().into_string().unwrap(), e.metadata().unwrap().len())).collect()
}

fn cut(path: &Path, length: u64) {
    OpenOptions::new().write(true).open(path).unwrap().set_len(length).unwrap();
}

#[test]
fn a_body_that_is_cut_gone_or_changed_is_refused_and_the_others_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let bert = store(folder.path(), &[1000, 2000, 300_000, 4000, 0]);
    let bodies = folder.path().join("bodies");
    cut(&bodies.join("1"), 999);
    fs::remove_file(bodies.join("2")).unwrap();
    let mut changed = fs::read(bodies.join("3")).unwrap();
    changed[299_999] ^= 1;
    fs::write(bodies.join("3"), changed).unwrap();

    let house = House::open(folder.path(), settings());
    assert_eq!(house.server.swept().damaged.len(), 2, "{:?}", house.server.swept());
    let bert = Account { server: house.address.clone(), ..bert };
    let mut session = open(&bert);
    assert_eq!(list(&mut session).len(), 5);
    for number in [1, 2, 3] {
        assert_eq!(refusal(fetch(&mut session, MessageId(number), 0)), Refusal::Damaged, "message {number}");
    }
    assert_eq!(refusal(fetch(&mut session, MessageId(3), 200_000)), Refusal::Damaged, "a later part of it neither");
    assert_eq!(fetch(&mut session, MessageId(4), 0).unwrap().0, body(4000, 3));
    assert_eq!(fetch(&mut session, MessageId(5), 0).unwrap().0, []);
    let told = house.events.lock().unwrap().iter().filter(|e| matches!(e, Event::Damaged { .. })).count();
    assert_eq!(told, 4);
    assert!(bodies.join("1").exists() && bodies.join("3").exists());
    assert_eq!(session.ask(&Request::Received { message: MessageId(1) }).unwrap(), Reply::Done, "its owner may");
    assert_eq!(house.stop().damaged, 4);
}

#[test]
fn an_index_cut_anywhere_is_said_with_what_to_do_and_nothing_is_deleted() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path(), &[1000; 20]);
    let index = folder.path().join("index.redb");
    let whole = fs::read(&index).unwrap();
    let mut served = 0;
    for part in 0..40 {
        // Into the header, then through all of it.
        let length = if part < 8 { part * 64 } else { whole.len() * part / 40 };
        fs::write(&index, &whole[..length]).unwrap();
        let before = files(folder.path());
        match Server::open(folder.path(), settings()) {
            Ok(server) => {
                served += 1;
                assert_eq!(server.swept().messages, 20, "cut at {length}: all or an error");
            }
            Err(ServerError::Store(error)) => {
                assert!(error.to_string().contains("nothing was deleted"), "cut at {length}: {error}");
            }
            Err(error) => panic!("cut at {length}: {error}"),
        }
        let after = files(folder.path());
        assert!(before.keys().all(|name| after.contains_key(name)), "cut at {length}");
    }
    println!("{served} of 40 cuts were repaired");
    fs::write(&index, &whole).unwrap();
    assert_eq!(Server::open(folder.path(), settings()).unwrap().swept().messages, 20);
}

#[test]
fn an_index_with_flipped_bytes_is_never_believed() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path(), &[1000; 20]);
    let index = folder.path().join("index.redb");
    let whole = fs::read(&index).unwrap();
    let used: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] != 0).collect();
    for at in used.iter().step_by(used.len() / 30) {
        let mut changed = whole.clone();
        changed[*at] ^= 0x55;
        fs::write(&index, &changed).unwrap();
        let before = files(folder.path());
        if let Ok(server) = Server::open(folder.path(), settings()) {
            assert_eq!(server.swept().messages, 20, "byte {at}");
        }
        assert_eq!(files(folder.path()).len(), before.len(), "byte {at}");
    }
}

#[test]
fn a_missing_index_an_older_index_and_a_foreign_folder_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let bert = store(folder.path(), &[10]);
    let index = folder.path().join("index.redb");
    let (first, moved) = (fs::read(&index).unwrap(), folder.path().join("moved"));
    fs::rename(&index, &moved).unwrap();
    let failure = |folder: &Path| match Server::open(folder, settings()) {
        Err(ServerError::Store(error)) => error,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was opened"),
    };
    assert!(matches!(failure(folder.path()), StoreError::NoIndex(_)));
    fs::rename(&moved, &index).unwrap();

    let house = House::open(folder.path(), settings());
    let bert = Account { server: house.address.clone(), ..bert };
    send(&mut open(&bert), 9, "bert", b"newer").unwrap();
    drop(house);
    fs::write(&index, first).unwrap();
    assert!(matches!(failure(folder.path()), StoreError::OlderIndex { body: 2, .. }));
    assert!(folder.path().join("bodies/2").exists());

    let foreign = tempfile::tempdir().unwrap();
    fs::write(foreign.path().join("thesis.tex"), "x").unwrap();
    assert!(matches!(failure(foreign.path()), StoreError::NoStore(_)));
    assert_eq!(fs::read_dir(foreign.path()).unwrap().count(), 1);
}

/// The first page of an index that redb 2.6.4 wrote, as far as it holds something, and how long the file was.
const OF_REDB_2: (&[u8], u64) = (include_bytes!("index-of-redb-2"), 4_755_456);

#[test]
fn a_store_of_an_earlier_release_is_refused_with_what_to_do_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path(), &[10]);
    let index = folder.path().join("index.redb");
    fs::write(&index, OF_REDB_2.0).unwrap();
    cut(&index, OF_REDB_2.1);
    let before = files(folder.path());
    let Err(ServerError::Store(error)) = Server::open(folder.path(), settings()) else { panic!("it was opened") };
    assert!(matches!(error, StoreError::OlderRelease(_)), "{error}");
    assert!(error.to_string().contains("until every message is fetched"), "{error}");
    assert_eq!(files(folder.path()), before);
    assert!(fs::read(&index).unwrap().starts_with(OF_REDB_2.0), "its first page is as it was");
}

#[test]
fn a_store_is_one_processs_and_its_certificate_is_not_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path(), &[]);
    let server = Server::open(folder.path(), settings()).unwrap();
    assert!(matches!(Server::open(folder.path(), settings()), Err(ServerError::Store(StoreError::InUse(_)))));
    drop(server);
    fs::remove_file(folder.path().join("identity.pem")).unwrap();
    assert!(matches!(Server::open(folder.path(), settings()), Err(ServerError::NoIdentity)));
    fs::write(folder.path().join("identity.pem"), "no certificate").unwrap();
    let Err(error) = Server::open(folder.path(), settings()) else { panic!("a key that others can read") };
    let why = std::error::Error::source(&error).expect("a cause").to_string();
    assert!(why.contains("chmod 600"), "{why}");
    fs::set_permissions(folder.path().join("identity.pem"), fs::Permissions::from_mode(0o600)).unwrap();
    assert!(matches!(Server::open(folder.path(), settings()), Err(ServerError::Identity(_))));
}

#[test]
fn bodies_that_belong_to_nothing_go_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let bert = store(folder.path(), &[10, 20]);
    let orphan = folder.path().join("bodies/1");
    let copy = fs::read(&orphan).unwrap();
    let house = House::open(folder.path(), settings());
    let bert = Account { server: house.address.clone(), ..bert };
    open(&bert).ask(&Request::Received { message: MessageId(1) }).unwrap();
    drop(house);
    // As if it had been killed between the transaction and the removal.
    fs::write(&orphan, copy).unwrap();
    let server = Server::open(folder.path(), settings()).unwrap();
    assert_eq!((server.swept().removed, server.swept().messages), (1, 1));
    assert!(!orphan.exists() && folder.path().join("bodies/2").exists());
}
