//! The store itself, where two things happen at once.

use super::house::{body, sha256};
use lasthop_messenger::protocol::TransferId;
use lasthop_messenger::server::Settings;
use lasthop_messenger::store::{AccountId, Bounds, HashedSecret, Offer, Offered, Store, Upload};
use lasthop_messenger::transfer::Hash;
use std::cell::Cell;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const DAY: Duration = Duration::from_secs(24 * 3600);

fn bounds() -> Bounds {
    Bounds { free_bytes: 0, ..Settings::default().bounds }
}

/// A store in which anna has an account.
fn store(folder: &Path) -> (Store, AccountId) {
    Store::create(folder).unwrap();
    let (store, _) = Store::open(folder).unwrap();
    let secret = HashedSecret { memory_kib: 64, passes: 1, salt: [0; 16], hash: [0; 32] };
    let anna = store.add_account("anna", secret).unwrap();
    (store, anna)
}

fn body_of(folder: &Path, upload: &Upload) -> PathBuf {
    folder.join("bodies").join(upload.body().to_string())
}

/// An upload of 1000 bytes, begun or gone on with.
fn upload(store: &Store, from: AccountId, transfer: u8) -> Upload {
    let (to, name) = ("anna".to_owned(), "v".to_owned());
    let offer = Offer { from, transfer: TransferId([transfer; 16]), to, name, bytes: 1000 };
    match store.offer(&offer, &bounds(), &|_, _| false).unwrap() {
        Offered::Upload(upload) => *upload,
        Offered::Kept(message) => panic!("kept as {message}"),
    }
}

#[test]
fn an_upload_that_ends_while_old_ones_are_dropped_stays_a_message() {
    let folder = tempfile::tempdir().unwrap();
    let (store, anna) = store(folder.path());
    let (voice, begun) = (body(1000, 1), Instant::now());
    for transfer in [1, 2] {
        let mut upload = upload(&store, anna, transfer);
        upload.write_all(&voice[..600]).unwrap();
        store.leave(upload.body(), None, begun);
    }
    // While the first is looked at, the second is taken up and ended.
    let kept = Cell::new(None);
    let takes_up_the_second = |_, _| {
        if kept.get().is_none() {
            let mut second = upload(&store, anna, 2);
            assert_eq!(second.offset(), 600);
            second.write_all(&voice[600..]).unwrap();
            kept.set(Some(store.finish(&second, "anna", sha256(&voice), 0).unwrap()));
        }
        false
    };
    assert_eq!(store.expire(begun + 2 * DAY, DAY, &takes_up_the_second).unwrap(), 1, "the first alone");
    let mut stored = store.fetch(anna, kept.get().unwrap()).unwrap();
    let mut bytes = Vec::new();
    stored.body.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, voice);
    assert_eq!(store.accounts().unwrap()[0].messages, 1);
}

#[test]
fn a_body_longer_than_its_message_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (store, anna) = store(folder.path());
    let body = body_of(folder.path(), &upload(&store, anna, 1));
    OpenOptions::new().write(true).open(&body).unwrap().set_len(1001).unwrap();
    assert_eq!(upload(&store, anna, 1).offset(), 0);
    assert_eq!(std::fs::metadata(&body).unwrap().len(), 0);
}

#[test]
fn the_sum_of_an_upload_that_was_left_is_not_read_again_and_not_believed_of_another_length() {
    let folder = tempfile::tempdir().unwrap();
    let (store, anna) = store(folder.path());
    let mut first = upload(&store, anna, 1);
    first.write_all(&[1; 600]).unwrap();
    let sum = first.hash().unwrap();
    store.leave(first.body(), Some(sum.clone()), Instant::now());
    let path = body_of(folder.path(), &first);
    // It would be read as something else.
    std::fs::write(&path, [2; 600]).unwrap();
    assert_eq!(upload(&store, anna, 1).hash().unwrap().finish(), sum.clone().finish());
    store.leave(first.body(), Some(sum), Instant::now());
    std::fs::write(&path, [2; 599]).unwrap();
    let read = Hash::of_prefix(&mut &[2; 599][..], 599).unwrap();
    assert_eq!(upload(&store, anna, 1).hash().unwrap().finish(), read.finish());
}
