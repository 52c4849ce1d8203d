//! Uploads: offered, written, taken up again, and made a message.

use super::index::{counter, take_number};
use super::record::{self, ACCOUNTS, BYTES_IN_ALL, COUNTERS, KEPT, KEPT_ORDER, MESSAGES, MESSAGES_IN_ALL};
use super::record::{NEXT_BODY, NEXT_MESSAGE, UPLOADS};
use super::{AccountId, Failure, Store, StoreError, mailbox, sender};
use crate::protocol::{MessageId, Refusal, Sha256, TransferId};
use crate::transfer::Hash;
use redb::{ReadableTable, WriteTransaction};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Acknowledged transfers that are remembered, per sender: a client keeps its own for a month, 130 messages a day.
const REMEMBERED: u64 = 4096;

/// After so many bytes the kernel is asked to begin to write them out: the sync at the end, which the sender waits for, then
/// has that much left to do and not the whole message.
const WRITE_OUT: u64 = 8 << 20;

/// Uploads left behind whose SHA-256 so far is remembered, some 300 bytes each.
const REMEMBERED_SUMS: usize = 256;

/// An upload that nobody goes on with for now.
pub struct Left {
    since: Instant,
    /// Of what is there: on slow storage, reading a long body again takes longer than its sender waits.
    sum: Option<Hash>,
}

/// Whether somebody writes the upload of this account just now.
pub type IsActive<'a> = &'a dyn Fn(AccountId, TransferId) -> bool;

/// How much may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Longest message, in bytes.
    pub longest_message: u64,
    /// Messages per mailbox.
    pub mailbox_messages: u64,
    /// Bytes per mailbox.
    pub mailbox_bytes: u64,
    /// Messages of one sender that wait for anybody.
    pub sender_messages: u64,
    /// Bytes of one sender that wait for anybody.
    pub sender_bytes: u64,
    /// Messages in the whole store.
    pub store_messages: u64,
    /// Bytes in the whole store.
    pub store_bytes: u64,
    /// Uploads that one account has begun and not ended; the oldest goes for one more.
    pub uploads: usize,
    /// Bytes of the disk that are left to others.
    pub free_bytes: u64,
}

/// A message somebody wants to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Its sender.
    pub from: AccountId,
    /// The sender's word for it.
    pub transfer: TransferId,
    /// Account it is for.
    pub to: String,
    /// What it is called.
    pub name: String,
    /// Its length, in bytes.
    pub bytes: u64,
}

/// What the store says to an offer.
#[derive(Debug)]
pub enum Offered {
    /// It has the message already.
    Kept(MessageId),
    /// Go on; [`Upload::offset`] says from where.
    Upload(Box<Upload>),
}

/// A message in flight into the store: what is written goes to the end of its body. When the disk is full, what was there
/// of this message is given up, so that others go on; it begins at 0 when it is taken up again.
pub struct Upload {
    from: AccountId,
    transfer: u128,
    body: u64,
    path: PathBuf,
    file: File,
    bytes: u64,
    offset: u64,
    sum: Option<Hash>,
}

impl std::fmt::Debug for Upload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Upload {{ body: {}, offset: {}, bytes: {} }}", self.body, self.offset, self.bytes)
    }
}

impl Upload {
    /// Bytes that are there.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Length of the message, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of its body: no two connections may write it.
    #[must_use]
    pub fn body(&self) -> u64 {
        self.body
    }

    /// SHA-256 of what is there; reads it, unless it is remembered from when the upload was left.
    ///
    /// # Errors
    /// Of the file.
    pub fn hash(&mut self) -> Result<Hash, StoreError> {
        if let Some(sum) = self.sum.take().filter(|sum| sum.bytes() == self.offset) {
            return Ok(sum);
        }
        // What is written goes to the end wherever this descriptor reads.
        let mut file = &self.file;
        let hash = file.rewind().and_then(|()| Hash::of_prefix(&mut file, self.offset));
        hash.map_err(|cause| StoreError::io(&self.path, cause))
    }

    /// Whether what is there is on disk now: only then may its sum be remembered in place of being read again.
    #[must_use]
    pub fn is_on_disk(&self) -> bool {
        self.file.sync_data().is_ok()
    }

    /// Has the kernel begin to write out the piece that begins at `start`; a hint, of which nothing depends.
    fn write_out(&self, start: u64) {
        let (start, length) = (start as libc::off64_t, WRITE_OUT as libc::off64_t);
        // SAFETY: the descriptor is open; the call takes numbers only.
        unsafe { libc::sync_file_range(self.file.as_raw_fd(), start, length, libc::SYNC_FILE_RANGE_WRITE) };
    }
}

impl Write for Upload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.file.write(bytes) {
            Ok(written) => {
                let piece = self.offset / WRITE_OUT;
                self.offset += written as u64;
                if self.offset / WRITE_OUT > piece {
                    self.write_out(piece * WRITE_OUT);
                }
                Ok(written)
            }
            Err(error) => {
                if super::error::is_full(&error) {
                    let _ = self.file.set_len(0);
                    self.offset = 0;
                }
                Err(error)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Store {
    /// Takes up an offer. `is_active` says which uploads are being written just now.
    ///
    /// # Errors
    /// A refusal, by `bounds` or for what was offered.
    pub fn offer(&self, offer: &Offer, bounds: &Bounds, is_active: IsActive<'_>) -> Result<Offered, Failure> {
        let transfer = u128::from_be_bytes(offer.transfer.0);
        let known = self.index.read(|transaction| {
            let kept = transaction.open_table(KEPT)?.get((offer.from.0, transfer))?.map(|number| number.value());
            Ok((kept, record_of(&transaction.open_table(UPLOADS)?, offer.from, transfer)?))
        })?;
        let upload = match known {
            (Some(number), _) => return Ok(Offered::Kept(MessageId(number))),
            (None, Some(upload)) if upload.is_for(offer) => upload,
            _ => {
                check(offer, bounds)?;
                // Before it takes a place in the mailbox.
                self.has_room(offer.bytes, bounds)?;
                self.begin(offer, transfer, bounds, is_active)?
            }
        };
        let file = self.open_body(upload.body)?;
        let path = self.body(upload.body);
        let io = |cause| StoreError::io(&path, cause);
        let mut offset = file.metadata().map_err(io)?.len();
        if offset > upload.bytes {
            // Not ours any more: somebody else has written to it.
            file.set_len(0).map_err(io)?;
            offset = 0;
        }
        self.has_room(upload.bytes - offset, bounds)?;
        let sum = self.left().remove(&upload.body).and_then(|left| left.sum);
        let (from, body, bytes) = (offer.from, upload.body, upload.bytes);
        Ok(Offered::Upload(Box::new(Upload { from, transfer, body, path, file, bytes, offset, sum })))
    }

    fn has_room(&self, bytes: u64, bounds: &Bounds) -> Result<(), StoreError> {
        let is_there = self.free_bytes()? >= bytes.saturating_add(bounds.free_bytes);
        if is_there { Ok(()) } else { Err(StoreError::DiskFull) }
    }

    fn open_body(&self, body: u64) -> Result<File, StoreError> {
        let path = self.body(body);
        let file = OpenOptions::new().create(true).read(true).append(true).mode(0o600).open(&path);
        file.map_err(|cause| StoreError::io(&path, cause))
    }

    /// A new upload in the index.
    fn begin(
        &self,
        offer: &Offer,
        transfer: u128,
        bounds: &Bounds,
        is_active: IsActive<'_>,
    ) -> Result<record::Upload, Failure> {
        let mut gone = Vec::new();
        let upload = self.index.write(|transaction| {
            let other = record_of(&transaction.open_table(UPLOADS)?, offer.from, transfer)?;
            if let Some(other) = other {
                gone.push(drop_upload(transaction, offer.from, transfer, &other)?);
            }
            if let Some((oldest, upload)) = one_too_many(transaction, offer.from, bounds.uploads, is_active)? {
                gone.push(drop_upload(transaction, offer.from, oldest, &upload)?);
            }
            let mailbox = reserve(transaction, offer, bounds)?;
            let body = take_number(transaction, NEXT_BODY)?;
            let Offer { to, name, bytes, .. } = offer.clone();
            let upload = record::Upload { body, to, mailbox, name, bytes };
            transaction.open_table(UPLOADS)?.insert((offer.from.0, transfer), &*record::encode(&upload))?;
            Ok(upload)
        })?;
        gone.into_iter().for_each(|body| self.remove_body(body));
        Ok(upload)
    }

    /// Makes a message of an upload that is whole, of the SHA-256 `sha256`: on disk when this returns, whatever happens
    /// then. `from`: name of the sender; `now`: in seconds since 1970.
    ///
    /// # Errors
    /// A refusal: sender or recipient has gone; or of the disk.
    pub fn finish(&self, upload: &Upload, from: &str, sha256: Sha256, now: u64) -> Result<MessageId, Failure> {
        let synced = upload.file.sync_all().and_then(|()| File::open(self.folder().join("bodies"))?.sync_all());
        if let Err(cause) = synced {
            // After a failed sync nobody knows what is on disk.
            let _ = upload.file.set_len(0);
            return Err(StoreError::io(&upload.path, cause).into());
        }
        self.index.write(|transaction| {
            let key = (upload.from.0, upload.transfer);
            let mut uploads = transaction.open_table(UPLOADS)?;
            let removed = uploads.remove(key)?;
            let removed = removed.map(|value| record::decode::<record::Upload>(value.value())).transpose()?;
            // An upload that somebody writes goes with one of its two accounts only.
            let Some(record::Upload { body, mailbox, name, bytes, .. }) = removed.filter(|r| r.body == upload.body)
            else {
                return Err(Refusal::Failed { why: "sender or recipient was removed meanwhile".into() }.into());
            };
            let number = take_number(transaction, NEXT_MESSAGE)?;
            let message = record::Message { body, from: from.to_owned(), name, bytes, sha256, kept_at: now };
            transaction.open_table(MESSAGES)?.insert((mailbox.0, number), &*record::encode(&message))?;
            remember(transaction, (upload.from, from), upload.transfer, number)?;
            Ok(MessageId(number))
        })
    }

    /// Drops an upload for good: what came is not what was sent.
    ///
    /// # Errors
    /// Of the index.
    pub fn forget(&self, upload: &Upload) -> Result<(), Failure> {
        let removed = self.index.write(|transaction| {
            let found = record_of(&transaction.open_table(UPLOADS)?, upload.from, upload.transfer)?;
            let Some(found) = found.filter(|found| found.body == upload.body) else { return Ok(None) };
            drop_upload(transaction, upload.from, upload.transfer, &found).map(Some)
        })?;
        if let Some(body) = removed {
            self.remove_body(body);
        }
        Ok(())
    }

    /// An upload that is not gone on with for now; `sum`: that of what is there, where it is known.
    pub fn leave(&self, body: u64, sum: Option<Hash>, now: Instant) {
        let mut left = self.left();
        let has_room = left.values().filter(|left| left.sum.is_some()).count() < REMEMBERED_SUMS;
        let sum = sum.filter(|_| has_room).map(Hash::without_marks);
        left.insert(body, Left { since: now, sum });
    }

    /// Drops uploads that nobody has gone on with for `longest`, by the time that this process ran. Returns how many.
    ///
    /// # Errors
    /// Of the index.
    pub fn expire(&self, now: Instant, longest: Duration, is_active: IsActive<'_>) -> Result<u64, Failure> {
        let uploads = self.index.read(|transaction| {
            let key = |entry: Result<_, redb::StorageError>| {
                let (key, value): (redb::AccessGuard<(u32, u128)>, redb::AccessGuard<&[u8]>) = entry?;
                Ok::<_, Failure>((key.value(), record::decode::<record::Upload>(value.value())?))
            };
            transaction.open_table(UPLOADS)?.iter()?.map(key).collect::<Result<Vec<_>, _>>()
        })?;
        let since: Vec<_> = {
            let mut left = self.left();
            left.retain(|body, _| uploads.iter().any(|(_, upload)| upload.body == *body));
            uploads
                .into_iter()
                .map(|(key, upload)| {
                    (left.entry(upload.body).or_insert(Left { since: now, sum: None }).since, key, upload)
                })
                .collect()
        };
        let mut dropped = 0;
        for (since, (from, transfer), upload) in since {
            let transfer_id = TransferId(transfer.to_be_bytes());
            if now.saturating_duration_since(since) < longest || is_active(AccountId(from), transfer_id) {
                continue;
            }
            // Meanwhile it may have been gone on with, and have become a message, whose body is the same file.
            let dropped_body = self.index.write(|transaction| {
                let now_there = record_of(&transaction.open_table(UPLOADS)?, AccountId(from), transfer)?;
                let is_taken_up = is_active(AccountId(from), transfer_id)
                    || self.left().get(&upload.body).is_none_or(|left| left.since != since);
                let Some(same) = now_there.filter(|same| *same == upload && !is_taken_up) else { return Ok(None) };
                drop_upload(transaction, AccountId(from), transfer, &same).map(Some)
            })?;
            if let Some(body) = dropped_body {
                self.remove_body(body);
                dropped += 1;
            }
        }
        Ok(dropped)
    }

    fn left(&self) -> MutexGuard<'_, HashMap<u64, Left>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl record::Upload {
    fn is_for(&self, offer: &Offer) -> bool {
        (&self.to, &self.name, self.bytes) == (&offer.to, &offer.name, offer.bytes)
    }
}

/// What can be said of an offer by itself.
fn check(offer: &Offer, bounds: &Bounds) -> Result<(), Refusal> {
    if !super::is_message_name(&offer.name) {
        return Err(Refusal::BadName);
    }
    if offer.bytes > bounds.longest_message {
        return Err(Refusal::TooLong { most: bounds.longest_message });
    }
    if !super::is_account_name(&offer.to) {
        return Err(Refusal::NoSuchRecipient { name: offer.to.chars().take(64).collect() });
    }
    Ok(())
}

fn record_of(
    uploads: &impl ReadableTable<(u32, u128), &'static [u8]>,
    from: AccountId,
    transfer: u128,
) -> Result<Option<record::Upload>, Failure> {
    uploads.get((from.0, transfer))?.map(|value| record::decode(value.value())).transpose()
}

fn account(transaction: &WriteTransaction, name: &str) -> Result<Option<record::Account>, Failure> {
    let found = transaction.open_table(ACCOUNTS)?.get(name)?.map(|value| record::decode(value.value()));
    found.transpose()
}

/// Takes an upload out of the index and gives its place back. Returns its body.
fn drop_upload(
    transaction: &WriteTransaction,
    from: AccountId,
    transfer: u128,
    upload: &record::Upload,
) -> Result<u64, Failure> {
    transaction.open_table(UPLOADS)?.remove((from.0, transfer))?;
    mailbox::release(transaction, &upload.to, upload.mailbox, upload.bytes)?;
    sender::release(transaction, from, upload.bytes)?;
    Ok(upload.body)
}

/// The oldest upload of a sender that nobody writes, when there is no place for one more.
fn one_too_many(
    transaction: &WriteTransaction,
    from: AccountId,
    most: usize,
    is_active: IsActive<'_>,
) -> Result<Option<(u128, record::Upload)>, Failure> {
    let mut its = Vec::new();
    for entry in transaction.open_table(UPLOADS)?.range((from.0, 0)..=(from.0, u128::MAX))? {
        let (key, value) = entry?;
        its.push((key.value().1, record::decode::<record::Upload>(value.value())?));
    }
    if its.len() < most {
        return Ok(None);
    }
    let oldest = its
        .into_iter()
        .filter(|(transfer, _)| !is_active(from, TransferId(transfer.to_be_bytes())))
        .min_by_key(|(_, upload)| upload.body);
    oldest.map(Some).ok_or(Failure::Refused(Refusal::Busy { seconds: 30 }))
}

/// Takes the place of a message in its mailbox and in the whole store.
fn reserve(transaction: &WriteTransaction, offer: &Offer, bounds: &Bounds) -> Result<AccountId, Failure> {
    let Some(mut found) = account(transaction, &offer.to)? else {
        return Err(Refusal::NoSuchRecipient { name: offer.to.clone() }.into());
    };
    found.messages += 1;
    found.bytes = found.bytes.saturating_add(offer.bytes);
    let (count, sum) = {
        let counters = transaction.open_table(COUNTERS)?;
        (counter(&counters, MESSAGES_IN_ALL)? + 1, counter(&counters, BYTES_IN_ALL)?.saturating_add(offer.bytes))
    };
    if found.messages > bounds.mailbox_messages || found.bytes > bounds.mailbox_bytes {
        return Err(Refusal::MailboxFull.into());
    }
    if count > bounds.store_messages || sum > bounds.store_bytes {
        return Err(Refusal::DiskFull.into());
    }
    transaction.open_table(ACCOUNTS)?.insert(&*offer.to, &*record::encode(&found))?;
    mailbox::count_in_all(transaction, 1, offer.bytes)?;
    sender::reserve(transaction, offer.from, offer.bytes, bounds)?;
    Ok(found.id)
}

/// Keeps in mind that a transfer was acknowledged, and forgets the oldest of too many.
fn remember(
    transaction: &WriteTransaction,
    (from, name): (AccountId, &str),
    transfer: u128,
    number: u64,
) -> Result<(), Failure> {
    let (mut kept, mut order) = (transaction.open_table(KEPT)?, transaction.open_table(KEPT_ORDER)?);
    kept.insert((from.0, transfer), number)?;
    order.insert((from.0, number), transfer)?;
    let Some(mut sender) = account(transaction, name)?.filter(|sender| sender.id == from) else { return Ok(()) };
    sender.remembered += 1;
    if sender.remembered > REMEMBERED {
        let oldest = order.range((from.0, 0)..=(from.0, u64::MAX))?.next().transpose()?;
        if let Some((key, transfer)) = oldest.map(|(key, value)| (key.value(), value.value())) {
            order.remove(key)?;
            kept.remove((from.0, transfer))?;
            sender.remembered -= 1;
        }
    }
    transaction.open_table(ACCOUNTS)?.insert(name, &*record::encode(&sender))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use redb::ReadableTableMetadata;

    fn store(folder: &std::path::Path) -> (Store, AccountId) {
        Store::create(folder).unwrap();
        let store = Store::open(folder).unwrap().0;
        let secret = record::HashedSecret { memory_kib: 8, passes: 1, salt: [0; 16], hash: [0; 32] };
        let anna = store.add_account("anna", secret).unwrap();
        (store, anna)
    }

    #[test]
    fn the_oldest_of_too_many_acknowledged_transfers_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let (store, anna) = store(folder.path());
        let remember_all = |transaction: &WriteTransaction| {
            let more = 0..REMEMBERED + 10;
            more.clone().try_for_each(|n| remember(transaction, (anna, "anna"), u128::from(n), n))
        };
        store.index.write(remember_all).unwrap();
        let (count, known) = store
            .index
            .read(|transaction| {
                let kept = transaction.open_table(KEPT)?;
                let is_known = |n: u64| Ok::<_, Failure>(kept.get((anna.0, u128::from(n)))?.is_some());
                Ok((kept.len()?, [is_known(0)?, is_known(9)?, is_known(10)?, is_known(REMEMBERED + 9)?]))
            })
            .unwrap();
        assert_eq!((count, known), (REMEMBERED, [false, false, true, true]));
    }

    #[test]
    fn an_upload_that_nobody_goes_on_with_is_dropped_by_the_time_the_server_ran() {
        let folder = tempfile::tempdir().unwrap();
        let (store, anna) = store(folder.path());
        let bounds = Bounds { free_bytes: 0, ..Bounds::default() };
        let offer = Offer { from: anna, transfer: TransferId([1; 16]), to: "anna".into(), name: "a".into(), bytes: 10 };
        let Ok(Offered::Upload(mut upload)) = store.offer(&offer, &bounds, &|_, _| false) else { panic!() };
        upload.write_all(b"abc").unwrap();
        let (now, longest) = (Instant::now(), Duration::from_secs(100));
        store.leave(upload.body(), None, now);
        let at = |seconds: u64, is_active: bool| {
            store.expire(now + Duration::from_secs(seconds), longest, &|_, _| is_active).unwrap()
        };
        assert_eq!((at(99, false), at(101, true)), (0, 0), "not yet, and not while somebody writes it");
        let body = folder.path().join("bodies/1");
        assert!(body.exists());
        assert_eq!((at(101, false), body.exists()), (1, false));
        assert_eq!(store.accounts().unwrap()[0].messages, 0, "its place is given back");
    }
}
