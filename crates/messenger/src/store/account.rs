//! Accounts in the index.

use super::record::{self, ACCOUNTS, Account, HashedSecret, KEPT, KEPT_ORDER, MESSAGES, NEXT_ACCOUNT, SENT, UPLOADS};
use super::{AccountId, Failure, Store, mailbox, sender};
use crate::protocol::Refusal;
use redb::{ReadableTable, ReadableTableMetadata};

/// Most accounts of a store: what memory holds per account stays below a few megabytes.
pub const MOST_ACCOUNTS: u64 = 10_000;

/// An account as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct AccountSummary {
    /// What it is called.
    pub name: String,
    /// Messages for it, uploads in flight included.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Store {
    /// Makes an account.
    ///
    /// # Errors
    /// A refusal when there is one of that name, or too many.
    pub fn add_account(&self, name: &str, secret: HashedSecret) -> Result<AccountId, Failure> {
        let refused = |why: String| Err(Failure::Refused(Refusal::Failed { why }));
        if !super::is_account_name(name) {
            return refused("an account's name has 1 to 64 letters, digits, `.`, `_` or `-`".into());
        }
        self.index.write(|transaction| {
            let id = AccountId(record_number(super::index::take_number(transaction, NEXT_ACCOUNT)?)?);
            let mut accounts = transaction.open_table(ACCOUNTS)?;
            if accounts.get(name)?.is_some() {
                return refused(format!("there is an account `{name}` already; `--remove {name}` takes it away"));
            }
            if accounts.len()? >= MOST_ACCOUNTS {
                return refused(format!("there are {MOST_ACCOUNTS} accounts already"));
            }
            let account = Account { id, secret, messages: 0, bytes: 0, remembered: 0 };
            accounts.insert(name, &*record::encode(&account))?;
            Ok(id)
        })
    }

    /// Number and secret of an account; `None` if there is none.
    ///
    /// # Errors
    /// Of the index.
    pub fn account(&self, name: &str) -> Result<Option<(AccountId, HashedSecret)>, Failure> {
        self.index.read(|transaction| {
            let account = transaction.open_table(ACCOUNTS)?.get(name)?;
            let Some(account) = account else { return Ok(None) };
            let account: Account = record::decode(account.value())?;
            Ok(Some((account.id, account.secret)))
        })
    }

    /// Every account, in the order of their names.
    ///
    /// # Errors
    /// Of the index.
    pub fn accounts(&self) -> Result<Vec<AccountSummary>, Failure> {
        self.index.read(|transaction| {
            let summary = |entry: Result<_, redb::StorageError>| {
                let (name, account): (redb::AccessGuard<&str>, redb::AccessGuard<&[u8]>) = entry?;
                let Account { messages, bytes, .. } = record::decode(account.value())?;
                Ok(AccountSummary { name: name.value().to_owned(), messages, bytes })
            };
            transaction.open_table(ACCOUNTS)?.iter()?.map(summary).collect()
        })
    }

    /// Removes an account with all that waits for it and all that it has not sent to the end; what it has sent stays.
    /// Returns its number, and how many messages and uploads went.
    ///
    /// # Errors
    /// A refusal when there is no such account.
    pub fn remove_account(&self, name: &str) -> Result<(AccountId, u64), Failure> {
        let (id, bodies) = self.index.write(|transaction| {
            let account = transaction.open_table(ACCOUNTS)?.remove(name)?.map(|value| record::decode(value.value()));
            let Some(account) = account.transpose()? else {
                return Err(Failure::Refused(Refusal::NoSuchRecipient { name: name.to_owned() }));
            };
            let Account { id: AccountId(id), .. } = account;
            let mut bodies = Vec::new();
            let mut messages = transaction.open_table(MESSAGES)?;
            for entry in messages.extract_from_if((id, 0)..=(id, u64::MAX), |_, _| true)? {
                let message: record::Message = record::decode(entry?.1.value())?;
                mailbox::count_in_all(transaction, -1, message.bytes)?;
                sender::release_of(transaction, &message)?;
                bodies.push(message.body);
            }
            let mut uploads = transaction.open_table(UPLOADS)?;
            let mut others = Vec::new();
            let is_its = |(sender, _): (u32, u128), upload: &[u8]| {
                sender == id || record::decode::<record::Upload>(upload).is_ok_and(|u| u.mailbox == AccountId(id))
            };
            for entry in uploads.extract_if(is_its)? {
                let (key, value) = entry?;
                let upload: record::Upload = record::decode(value.value())?;
                others.push((AccountId(key.value().0), upload.bytes));
                mailbox::release(transaction, &upload.to, upload.mailbox, upload.bytes)?;
                bodies.push(upload.body);
            }
            others.into_iter().try_for_each(|(from, bytes)| sender::release(transaction, from, bytes))?;
            transaction.open_table(SENT)?.remove(id)?;
            transaction.open_table(KEPT)?.retain_in((id, 0)..=(id, u128::MAX), |_, _| false)?;
            transaction.open_table(KEPT_ORDER)?.retain_in((id, 0)..=(id, u64::MAX), |_, _| false)?;
            Ok((AccountId(id), bodies))
        })?;
        bodies.iter().for_each(|body| self.remove_body(*body));
        Ok((id, bodies.len() as u64))
    }
}

fn record_number(number: u64) -> Result<u32, Failure> {
    u32::try_from(number).map_err(|_| Failure::Refused(Refusal::Failed { why: "it has no numbers left".into() }))
}
