//! What waits of each sender: one may not fill the mailboxes of others, nor the store, alone.

use super::record::{self, ACCOUNTS, MESSAGES, SENT, UPLOADS};
use super::{AccountId, Bounds, Failure};
use crate::protocol::Refusal;
use redb::{ReadableTable, WriteTransaction};
use std::collections::BTreeMap;

/// Counts a message of `bytes` on.
pub fn reserve(transaction: &WriteTransaction, from: AccountId, bytes: u64, bounds: &Bounds) -> Result<(), Failure> {
    let mut sent = transaction.open_table(SENT)?;
    let (messages, sum) = sent.get(from.0)?.map_or((0, 0), |value| value.value());
    let (messages, sum) = (messages + 1, sum.saturating_add(bytes));
    if messages > bounds.sender_messages || sum > bounds.sender_bytes {
        let (messages, bytes) = (bounds.sender_messages, bounds.sender_bytes);
        return Err(Refusal::SenderFull { messages, bytes }.into());
    }
    sent.insert(from.0, (messages, sum))?;
    Ok(())
}

/// Counts a message of `bytes` off.
pub fn release(transaction: &WriteTransaction, from: AccountId, bytes: u64) -> Result<(), Failure> {
    let mut sent = transaction.open_table(SENT)?;
    let (messages, sum) = sent.get(from.0)?.map_or((0, 0), |value| value.value());
    if messages <= 1 {
        sent.remove(from.0)?;
    } else {
        sent.insert(from.0, (messages - 1, sum.saturating_sub(bytes)))?;
    }
    Ok(())
}

/// The same of a message, which names its sender; nothing when that account is gone.
pub fn release_of(transaction: &WriteTransaction, message: &record::Message) -> Result<(), Failure> {
    let id = transaction.open_table(ACCOUNTS)?.get(&*message.from)?.map(|value| number(value.value())).transpose()?;
    id.map_or(Ok(()), |id| release(transaction, id, message.bytes))
}

/// Counts all of them anew.
pub fn count(transaction: &WriteTransaction) -> Result<(), Failure> {
    let mut sums: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    let mut add = |AccountId(id), bytes: u64| {
        let (messages, sum) = sums.entry(id).or_default();
        (*messages, *sum) = (*messages + 1, sum.saturating_add(bytes));
    };
    let accounts = transaction.open_table(ACCOUNTS)?;
    for entry in transaction.open_table(MESSAGES)?.iter()? {
        let message: record::Message = record::decode(entry?.1.value())?;
        if let Some(account) = accounts.get(&*message.from)? {
            add(number(account.value())?, message.bytes);
        }
    }
    for entry in transaction.open_table(UPLOADS)?.iter()? {
        let (key, upload) = entry?;
        add(AccountId(key.value().0), record::decode::<record::Upload>(upload.value())?.bytes);
    }
    let mut sent = transaction.open_table(SENT)?;
    sent.retain(|_, _| false)?;
    sums.into_iter().try_for_each(|(id, sum)| sent.insert(id, sum).map(drop))?;
    Ok(())
}

fn number(account: &[u8]) -> Result<AccountId, Failure> {
    Ok(record::decode::<record::Account>(account)?.id)
}
