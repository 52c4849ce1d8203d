//! Messages from one account to another.

use super::house::{House, body, fetch, list, offer, open, packets, refusal, send, settings, sha256};
use lasthop_messenger::protocol::{MessageId, Refusal, Reply, Request, Secret};
use lasthop_messenger::server::Settings;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime};

fn files(folder: &std::path::Path) -> usize {
    std::fs::read_dir(folder.join("bodies")).unwrap().count()
}

#[test]
fn a_message_waits_is_delivered_and_is_gone_once_it_is_received() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), settings());
    let (anna, bert) = (house.account("anna"), house.account("bert"));
    let voice = body(300_000, 1);
    let message = send(&mut open(&anna), 7, "bert", &voice).unwrap();
    assert_eq!(send(&mut open(&anna), 7, "bert", &voice).unwrap(), message, "it is not kept twice");
    assert_eq!(list(&mut open(&anna)), [], "the sender has nothing");
    let mut session = open(&bert);
    let listed = list(&mut session);
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].message, &*listed[0].from, listed[0].bytes), (message, "anna", 300_000));
    assert_eq!(fetch(&mut session, message, 0).unwrap(), (voice.clone(), sha256(&voice)));
    assert_eq!(fetch(&mut session, message, 299_999).unwrap().0, voice[299_999..]);
    assert_eq!(fetch(&mut session, message, 300_000).unwrap().0, []);
    assert_eq!(files(folder.path()), 1);
    assert_eq!(session.ask(&Request::Received { message }).unwrap(), Reply::Done);
    assert_eq!(refusal(session.ask(&Request::Received { message })), Refusal::NoSuchMessage);
    assert_eq!((list(&mut session), files(folder.path())), (vec![], 0));
    assert_eq!(send(&mut open(&anna), 7, "bert", &voice).unwrap(), message, "nor after that");
    let counters = house.stop();
    assert_eq!((counters.kept, counters.kept_before, counters.sent, counters.received), (1, 2, 3, 1));
}

#[test]
fn somebody_elses_message_is_like_one_that_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), settings());
    let (anna, eve) = (house.account("anna"), house.account("eve"));
    house.account("bert");
    let message = send(&mut open(&anna), 7, "bert", b"for bert").unwrap();
    for account in [&anna, &eve] {
        let mut session = open(account);
        for number in [message, MessageId(0), MessageId(999), MessageId(u64::MAX)] {
            assert_eq!(refusal(fetch(&mut session, number, 0)), Refusal::NoSuchMessage);
            assert_eq!(refusal(session.ask(&Request::Received { message: number })), Refusal::NoSuchMessage);
        }
        assert_eq!(list(&mut session), []);
    }
    // Nor can she take up what anna sends: a transfer belongs to its sender.
    let mut session = open(&anna);
    session.ask(&offer(8, "bert", "a", 10)).unwrap();
    packets(&mut session, 0, b"abc").unwrap();
    assert_eq!(open(&eve).ask(&offer(8, "bert", "a", 10)).unwrap(), Reply::Continue { offset: 0 });
}

#[test]
fn an_upload_goes_on_where_it_was_cut_and_also_while_the_old_connection_hangs() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), settings());
    let (anna, bert) = (house.account("anna"), house.account("bert"));
    let voice = body(500_000, 2);
    let mut hanging = open(&anna);
    assert_eq!(hanging.ask(&offer(7, "bert", "v", 500_000)).unwrap(), Reply::Continue { offset: 0 });
    packets(&mut hanging, 0, &voice[..200_000]).unwrap();
    let mut session = open(&anna);
    let Reply::Continue { offset } = session.ask(&offer(7, "bert", "v", 500_000)).unwrap() else { panic!() };
    assert!(offset <= 200_000);
    packets(&mut session, offset, &voice[offset as usize..]).unwrap();
    let reply = session.ask(&Request::Finish { sha256: sha256(&voice) }).unwrap();
    let Reply::Kept { message } = reply else { panic!("{reply:?}") };
    assert_eq!(fetch(&mut open(&bert), message, 0).unwrap().0, voice);
    assert!(hanging.ask(&Request::Ping(1)).is_err(), "the old connection is cut");
}

#[test]
fn what_is_not_what_was_sent_is_not_kept_and_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), settings());
    let (anna, bert) = (house.account("anna"), house.account("bert"));
    let mut session = open(&anna);
    session.ask(&offer(7, "bert", "v", 3)).unwrap();
    packets(&mut session, 0, b"abd").unwrap();
    assert_eq!(refusal(session.ask(&Request::Finish { sha256: sha256(b"abc") })), Refusal::Mismatch);
    assert_eq!((list(&mut open(&bert)), files(folder.path())), (vec![], 0));
    assert_eq!(session.ask(&offer(7, "bert", "v", 3)).unwrap(), Reply::Continue { offset: 0 });
}

#[test]
fn a_wrong_secret_and_an_unknown_name_are_told_the_same_and_not_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), settings());
    let anna = house.account("anna");
    let try_as = |name: &str, secret: &str| {
        let account =
            lasthop_messenger::account::Account { account: name.into(), secret: Secret(secret.into()), ..anna.clone() };
        refusal(lasthop_messenger::client::Session::open(&account, None, super::house::IDLE).map(drop))
    };
    for name in ["anna", "nobody", "../anna"] {
        assert_eq!(try_as(name, "wrong"), Refusal::WrongSecret);
    }
    open(&anna).close();
    for _ in 0..5 {
        assert_eq!(try_as("anna", &"0".repeat(64)), Refusal::WrongSecret);
    }
    assert!(matches!(try_as("anna", "wrong"), Refusal::TooManyAttempts { seconds: 1..=61 }));
    assert!(matches!(try_as("anna", &anna.secret.0), Refusal::TooManyAttempts { .. }), "not even a right one");
    let counters = house.stop();
    assert_eq!((counters.wrong_secrets, counters.too_many_attempts), (8, 2));
}

#[test]
fn the_wall_clock_changes_what_a_listing_says_and_nothing_else() {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NOW: AtomicU64 = AtomicU64::new(0);
    let clock = || SystemTime::UNIX_EPOCH + Duration::from_secs(NOW.load(Ordering::Relaxed));
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), Settings { wall_clock: clock, ..settings() });
    let (anna, bert) = (house.account("anna"), house.account("bert"));
    let (mut sender, mut recipient) = (open(&anna), open(&bert));
    let mut began = open(&anna);
    began.ask(&offer(99, "bert", "v", 3)).unwrap();
    let years = 365 * 24 * 3600;
    for (transfer, now) in [(1, 50 * years), (2, 0), (3, 500 * years), (4, 50 * years - 1)] {
        NOW.store(now, Ordering::Relaxed);
        let message = send(&mut sender, transfer, "bert", b"abc").unwrap();
        let listed = list(&mut recipient);
        assert_eq!((listed.last().unwrap().message, listed.last().unwrap().kept_at), (message, now));
        assert_eq!(listed.len() as u128, transfer, "in the order in which they came");
        assert_eq!(recipient.ask(&Request::Ping(1)).unwrap(), Reply::Pong(1));
    }
    packets(&mut began, 0, b"abc").unwrap();
    assert!(matches!(began.ask(&Request::Finish { sha256: sha256(b"abc") }).unwrap(), Reply::Kept { .. }));
}

#[test]
fn nobody_else_can_read_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let house = House::open(&store, settings());
    let anna = house.account("anna");
    send(&mut open(&anna), 1, "anna", b"a note to myself").unwrap();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&store), mode(&store.join("bodies"))), (0o700, 0o700));
    assert_eq!((mode(&store.join("identity.pem")), mode(&store.join("bodies/1"))), (0o600, 0o600));
    assert_eq!(mode(&store.join("index.redb")), 0o600);
}
