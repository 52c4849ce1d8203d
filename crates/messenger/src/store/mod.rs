//! Messages on disk: one that was acknowledged is there until its recipient has it, whatever happens to the process.
//!
//! ```text
//! DIR/lock            held by the one process that works with the store
//! DIR/index.redb      what is complete, what is in flight, who may fetch: a transaction is on disk before it is answered
//! DIR/bodies/N        a body, from its first byte to its deletion under the same name
//! DIR/identity.pem    certificate and key of the server
//! DIR/control         socket of the running server, for the commands that change accounts
//! ```
//!
//! A body becomes a message by one transaction of the index, after the body and its folder were synced: there is no
//! moment at which a message is half kept. It ceases to be one by a transaction, too, and its file goes after that: what
//! a kill leaves behind is a file that the index does not name, and the next start removes it.
//!
//! What the index does not understand is never deleted. Bodies are read as they are sent, against their SHA-256.

mod account;
mod error;
mod folder;
mod index;
mod mailbox;
mod record;
mod sender;
mod upload;

pub use account::{AccountSummary, MOST_ACCOUNTS};
pub use error::{Failure, StoreError};
pub use folder::{Store, Swept};
pub use mailbox::Stored;
pub use record::HashedSecret;
pub use upload::{Bounds, IsActive, Offer, Offered, Upload};

/// Number of an account; never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct AccountId(pub u32);

/// Whether a name can be an account's: 1 to 64 of a-z, A-Z, 0-9, `.`, `_`, `-`, not beginning with a dot or a dash.
#[must_use]
pub fn is_account_name(name: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    (1..=64).contains(&name.len()) && name.bytes().all(fits) && !name.starts_with(['.', '-'])
}

/// Whether a name can be a message's: 1 to 255 bytes, no slash, no control characters, neither `.` nor `..`.
#[must_use]
pub fn is_message_name(name: &str) -> bool {
    (1..=255).contains(&name.len()) && !name.chars().any(|c| c == '/' || c.is_control()) && !matches!(name, "." | "..")
}
