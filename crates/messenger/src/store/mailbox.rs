//! What waits for an account: listed, read, deleted.

use super::index::counter;
use super::record::{self, ACCOUNTS, BYTES_IN_ALL, COUNTERS, MESSAGES, MESSAGES_IN_ALL};
use super::{AccountId, Failure, Store, sender};
use crate::protocol::{Listed, MessageId, Refusal, Sha256};
use redb::{ReadableTable, WriteTransaction};
use std::fs::{self, File};

/// Messages of one listing: with the longest names it stays below the 64 KiB of a control frame.
const PAGE: usize = 100;

/// A message ready to be read.
#[derive(Debug)]
pub struct Stored {
    /// Its body, at its beginning.
    pub body: File,
    /// Length, in bytes; the file's, too.
    pub bytes: u64,
    /// What its sender said.
    pub sha256: Sha256,
}

impl Store {
    /// Messages for an account behind `after`, the oldest first, and whether there are more.
    ///
    /// # Errors
    /// Of the index.
    pub fn list(&self, mailbox: AccountId, after: Option<MessageId>) -> Result<(Vec<Listed>, bool), Failure> {
        let first = after.map_or(0, |MessageId(number)| number.saturating_add(1));
        self.index.read(|transaction| {
            let messages = transaction.open_table(MESSAGES)?;
            let mut listed = Vec::new();
            for entry in messages.range((mailbox.0, first)..=(mailbox.0, u64::MAX))? {
                if listed.len() == PAGE {
                    return Ok((listed, true));
                }
                let (key, value) = entry?;
                let record::Message { from, name, bytes, kept_at, .. } = record::decode(value.value())?;
                listed.push(Listed { message: MessageId(key.value().1), from, name, bytes, kept_at });
            }
            Ok((listed, false))
        })
    }

    /// Opens a message of an account.
    ///
    /// # Errors
    /// A refusal: no such message for this account, or its body is gone or has another length.
    pub fn fetch(&self, mailbox: AccountId, message: MessageId) -> Result<Stored, Failure> {
        let record::Message { body, bytes, sha256, .. } = self.message(mailbox, message)?;
        let Ok(file) = File::open(self.body(body)) else {
            // Another device of this account may just have received it.
            return Err(self.message(mailbox, message).map_or_else(|gone| gone, |_| Refusal::Damaged.into()));
        };
        if file.metadata().map_err(|_| Refusal::Damaged)?.len() != bytes {
            return Err(Refusal::Damaged.into());
        }
        Ok(Stored { body: file, bytes, sha256 })
    }

    fn message(&self, mailbox: AccountId, message: MessageId) -> Result<record::Message, Failure> {
        let found = self.index.read(|transaction| {
            let value = transaction.open_table(MESSAGES)?.get((mailbox.0, message.0))?;
            value.map(|value| record::decode(value.value())).transpose()
        })?;
        found.ok_or(Failure::Refused(Refusal::NoSuchMessage))
    }

    /// Deletes a message of an account.
    ///
    /// # Errors
    /// A refusal when there is no such message for this account.
    pub fn delete(&self, mailbox: AccountId, account: &str, message: MessageId) -> Result<(), Failure> {
        let body = self.index.write(|transaction| {
            let mut messages = transaction.open_table(MESSAGES)?;
            let removed = messages.remove((mailbox.0, message.0))?;
            let removed = removed.map(|value| record::decode::<record::Message>(value.value())).transpose()?;
            let Some(removed) = removed else { return Err(Refusal::NoSuchMessage.into()) };
            release(transaction, account, mailbox, removed.bytes)?;
            sender::release_of(transaction, &removed)?;
            Ok(removed.body)
        })?;
        self.remove_body(body);
        Ok(())
    }

    /// Removes a body that the index does not name any more; what fails here, the next start does.
    pub(super) fn remove_body(&self, body: u64) {
        let _ = fs::remove_file(self.body(body));
        self.left.lock().unwrap_or_else(std::sync::PoisonError::into_inner).remove(&body);
    }
}

/// Counts a message off its mailbox, when that is there, and off the whole store.
pub fn release(transaction: &WriteTransaction, account: &str, mailbox: AccountId, bytes: u64) -> Result<(), Failure> {
    count_in_all(transaction, -1, bytes)?;
    let mut accounts = transaction.open_table(ACCOUNTS)?;
    let found = accounts.get(account)?.map(|value| record::decode::<record::Account>(value.value())).transpose()?;
    if let Some(mut found) = found.filter(|found| found.id == mailbox) {
        found.messages = found.messages.saturating_sub(1);
        found.bytes = found.bytes.saturating_sub(bytes);
        accounts.insert(account, &*record::encode(&found))?;
    }
    Ok(())
}

/// Counts messages, one on or off, and their bytes in the whole store.
pub fn count_in_all(transaction: &WriteTransaction, messages: i64, bytes: u64) -> Result<(), Failure> {
    let mut counters = transaction.open_table(COUNTERS)?;
    let (count, sum) = (counter(&counters, MESSAGES_IN_ALL)?, counter(&counters, BYTES_IN_ALL)?);
    counters.insert(MESSAGES_IN_ALL, count.saturating_add_signed(messages))?;
    let sum = if messages < 0 { sum.saturating_sub(bytes) } else { sum.saturating_add(bytes) };
    counters.insert(BYTES_IN_ALL, sum)?;
    Ok(())
}
