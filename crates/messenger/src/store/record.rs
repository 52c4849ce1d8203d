//! What the index keeps: its tables, and their values in postcard's encoding.

use super::{AccountId, Failure};
use crate::protocol::Sha256;
use redb::TableDefinition;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Version of these tables.
pub const FORMAT: u64 = 1;

/// Counters, by the names below.
pub const COUNTERS: TableDefinition<&str, u64> = TableDefinition::new("counters");
/// [`Account`] by name.
pub const ACCOUNTS: TableDefinition<&str, &[u8]> = TableDefinition::new("accounts");
/// [`Message`] by mailbox and number.
pub const MESSAGES: TableDefinition<(u32, u64), &[u8]> = TableDefinition::new("messages");
/// [`Upload`] by sender and transfer.
pub const UPLOADS: TableDefinition<(u32, u128), &[u8]> = TableDefinition::new("uploads");
/// Number of the message by sender and transfer: what was acknowledged, so that one offered again is known.
pub const KEPT: TableDefinition<(u32, u128), u64> = TableDefinition::new("kept");
/// The same the other way round, the oldest first.
pub const KEPT_ORDER: TableDefinition<(u32, u64), u128> = TableDefinition::new("kept_order");

/// Messages and bytes of a sender that wait for anybody, uploads in flight included, by its number. Counted anew at every start:
/// stores of before this table was there need no other format.
pub const SENT: TableDefinition<u32, (u64, u64)> = TableDefinition::new("sent");

/// [`FORMAT`].
pub const VERSION: &str = "format";
/// Number of the next account.
pub const NEXT_ACCOUNT: &str = "next_account";
/// Number of the next message.
pub const NEXT_MESSAGE: &str = "next_message";
/// Number of the next body.
pub const NEXT_BODY: &str = "next_body";
/// Messages and uploads of the whole store.
pub const MESSAGES_IN_ALL: &str = "messages";
/// Their bytes.
pub const BYTES_IN_ALL: &str = "bytes";

/// An account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    pub id: AccountId,
    pub secret: HashedSecret,
    /// Messages for it, uploads in flight included.
    pub messages: u64,
    /// Their bytes, those that have not come yet included.
    pub bytes: u64,
    /// Transfers of it that are remembered.
    pub remembered: u64,
}

/// A secret as it is kept, with the argon2id parameters that made it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HashedSecret {
    /// Memory that hashing takes, in KiB.
    pub memory_kib: u32,
    /// Passes over it.
    pub passes: u32,
    /// Random.
    pub salt: [u8; 16],
    /// The outcome.
    pub hash: [u8; 32],
}

impl std::fmt::Debug for HashedSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HashedSecret(..)")
    }
}

/// A message that is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub body: u64,
    pub from: String,
    pub name: String,
    pub bytes: u64,
    pub sha256: Sha256,
    pub kept_at: u64,
}

/// A message that has not come whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upload {
    pub body: u64,
    pub to: String,
    pub mailbox: AccountId,
    pub name: String,
    pub bytes: u64,
}

/// A record as bytes.
pub fn encode<T: Serialize>(record: &T) -> Vec<u8> {
    postcard::to_allocvec(record).expect("a record can be encoded")
}

/// Bytes as a record.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Failure> {
    let corrupt = || Failure::Index(Box::new(redb::Error::Corrupted("a record is not understood".into())));
    postcard::from_bytes(bytes).map_err(|_| corrupt())
}
