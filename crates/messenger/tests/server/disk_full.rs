//! A disk that is full: refused, told, and everything kept stays.

use super::house::{House, body, fetch, list, offer, open, packets, refusal, send, settings, sha256};
use lasthop_messenger::protocol::{Refusal, Reply, Request};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

/// Runs `test` with a file system of `bytes` bytes that nobody else sees; as root, else it is skipped.
fn on_small_disk(bytes: u64, test: impl FnOnce(&Path) + Send) {
    use rustix::thread::{UnshareFlags, unshare_unsafe};
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: a file system of its own needs root");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    let mounted = move || {
        // SAFETY: this thread alone gets other mounts, and it and its children end before the test does.
        unsafe { unshare_unsafe(UnshareFlags::FS | UnshareFlags::NEWNS) }.unwrap();
        let options = std::ffi::CString::new(format!("size={bytes}")).unwrap();
        let flags = rustix::mount::MountPropagationFlags::REC | rustix::mount::MountPropagationFlags::PRIVATE;
        rustix::mount::mount_change("/", flags).unwrap();
        rustix::mount::mount("tmpfs", place, "tmpfs", rustix::mount::MountFlags::empty(), &*options).unwrap();
        test(place);
    };
    std::thread::scope(|scope| scope.spawn(mounted).join().unwrap());
}

/// Fills the disk up to the last byte; gone when the file is.
fn fill(path: &Path) {
    let mut ballast = File::create(path).unwrap();
    for piece in [1 << 16, 1 << 12, 1] {
        while ballast.write_all(&vec![0; piece]).is_ok() {}
    }
}

#[test]
fn an_upload_that_the_disk_has_no_room_for_is_refused_and_goes_on_later() {
    on_small_disk(8 << 20, |disk| {
        let house = House::open(&disk.join("store"), settings());
        let (anna, bert) = (house.account("anna"), house.account("bert"));
        let (small, large) = (body(10_000, 1), body(2_000_000, 2));
        let kept = send(&mut open(&anna), 1, "bert", &small).unwrap();
        assert_eq!(refusal(open(&anna).ask(&offer(2, "bert", "v", 9 << 20))), Refusal::DiskFull, "said at once");
        let of_bert = house.server.accounts().unwrap().into_iter().find(|account| account.name == "bert").unwrap();
        assert_eq!((of_bert.messages, of_bert.bytes), (1, 10_000), "and it takes no place in the mailbox");

        let mut session = open(&anna);
        assert_eq!(session.ask(&offer(3, "bert", "v", 2_000_000)).unwrap(), Reply::Continue { offset: 0 });
        fill(&disk.join("ballast"));
        let sent = packets(&mut session, 0, &large).map_err(|error| session.lost(error));
        sent.unwrap();
        assert_eq!(refusal(session.answer()), Refusal::DiskFull, "in the middle");
        session.say(&Request::Finish { sha256: sha256(&large) }).unwrap();
        assert_eq!(session.ask(&Request::Ping(1)).unwrap(), Reply::Pong(1), "and the connection goes on");

        let mut recipient = open(&bert);
        assert_eq!(fetch(&mut recipient, kept, 0).unwrap().0, small, "what was kept is there");
        let done = recipient.ask(&Request::Received { message: kept }).unwrap();
        assert_eq!(done, Reply::Done, "and can be deleted: the index has room of its own");
        fs::remove_file(disk.join("ballast")).unwrap();
        send(&mut session, 3, "bert", &large).unwrap();
        assert!(house.stop().disk_full >= 2);
    });
}

#[test]
fn an_index_that_cannot_grow_loses_nothing_and_goes_on_when_there_is_room() {
    on_small_disk(8 << 20, |disk| {
        let mut many = settings();
        (many.bounds.mailbox_messages, many.bounds.sender_messages) = (20_000, 20_000);
        let house = House::open(&disk.join("store"), many);
        let (anna, bert) = (house.account("anna"), house.account("bert"));
        let mut session = open(&anna);
        send(&mut session, 0, "bert", b"").unwrap();
        fill(&disk.join("ballast"));
        let mut kept = 1;
        let name = "x".repeat(255);
        let why = loop {
            let offered = session.ask(&offer(kept, "bert", &name, 0));
            match offered.and_then(|_| session.ask(&Request::Finish { sha256: sha256(b"") })) {
                Ok(_) => kept += 1,
                Err(error) => break refusal::<()>(Err(error)),
            }
            assert!(kept < 20_000, "the disk never was full");
        };
        assert_eq!(why, Refusal::DiskFull);
        println!("{kept} messages were kept until the index had no room");
        fs::remove_file(disk.join("ballast")).unwrap();
        assert_eq!(list_all(&mut open(&bert)), kept as usize, "all that were acknowledged");
        send(&mut open(&anna), kept, "bert", b"").unwrap();
        let folder = disk.join("store");
        drop(house);
        let again = House::open(&folder, settings());
        assert_eq!(again.server.swept().messages, kept as u64 + 1, "and nothing twice");
    });
}

/// How many messages there are, page by page.
fn list_all(session: &mut lasthop_messenger::client::Session) -> usize {
    let (mut count, mut after) = (0, None);
    loop {
        match session.ask(&Request::List { after }).unwrap() {
            Reply::Listing { messages, more } => {
                count += messages.len();
                after = messages.last().map(|listed| listed.message);
                if !more {
                    return count;
                }
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn room_that_is_to_be_left_to_others_is_left() {
    on_small_disk(32 << 20, |disk| {
        let mut settings = settings();
        settings.bounds.free_bytes = 24 << 20;
        let house = House::open(&disk.join("store"), settings);
        let anna = house.account("anna");
        assert_eq!(refusal(open(&anna).ask(&offer(1, "anna", "v", 20 << 20))), Refusal::DiskFull);
        send(&mut open(&anna), 2, "anna", &body(100_000, 1)).unwrap();
        assert_eq!(list(&mut open(&anna)).len(), 1);
    });
}
