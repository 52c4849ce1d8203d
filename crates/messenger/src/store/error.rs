//! What can be wrong with a store, and what to do then.

use crate::protocol::Refusal;
use std::io;
use std::path::{Path, PathBuf};

/// A store that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process works with it.
    #[error("{} is in use by another process: stop that one first", .0.display())]
    InUse(PathBuf),
    /// The folder is there, but it is no store.
    #[error("{} is no store of messages and not empty: give a new or an empty folder", .0.display())]
    NoStore(PathBuf),
    /// There are bodies, and the index is gone.
    #[error(
        "{}: the index (index.redb) is missing, and bodies are there: put it back from a backup, or move the folder \
         away and begin a new store; nothing was deleted", .0.display()
    )]
    NoIndex(PathBuf),
    /// The index has the form of redb 2.
    #[error(
        "{}: an earlier release of lasthop wrote this store, and this one cannot read its index (redb 2): have that \
         release serve it until every message is fetched, then move the folder away and begin a new store; nothing was \
         changed", .0.display()
    )]
    OlderRelease(PathBuf),
    /// The index cannot be read.
    #[error(
        "{}: the index is damaged ({why}): put the whole folder back from a backup, or move it away and begin a new \
         store; nothing was deleted", folder.display()
    )]
    Damaged {
        /// Of the store.
        folder: PathBuf,
        /// What was found.
        why: String,
    },
    /// The index is older than the bodies.
    #[error(
        "{}: body {body} is newer than the index, as after an index was put back alone: put the whole folder back \
         from one backup, or move this body away; nothing was deleted", folder.display()
    )]
    OlderIndex {
        /// Of the store.
        folder: PathBuf,
        /// The file in question.
        body: u64,
    },
    /// No room left, or none within the quota.
    #[error("the disk is full")]
    DiskFull,
    /// A file could not be read, written or synced.
    #[error("{}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
}

/// Why the store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The request cannot be granted.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The index failed; seen inside of a transaction only.
    #[error(transparent)]
    Index(Box<redb::Error>),
}

impl Failure {
    /// What the client is told: not where files are.
    #[must_use]
    pub fn refusal(&self) -> Refusal {
        match self {
            Self::Refused(refusal) => refusal.clone(),
            Self::Store(StoreError::DiskFull) => Refusal::DiskFull,
            Self::Store(StoreError::Io { cause, .. }) => Refusal::Failed { why: cause.kind().to_string() },
            Self::Store(StoreError::Damaged { .. }) => Refusal::Damaged,
            Self::Store(_) | Self::Index(_) => Refusal::Failed { why: "its store failed".into() },
        }
    }
}

impl StoreError {
    pub(crate) fn io(path: &Path, cause: io::Error) -> Self {
        if is_full(&cause) { Self::DiskFull } else { Self::Io { path: path.to_owned(), cause } }
    }
}

/// No room, or none within the quota.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

macro_rules! of_the_index {
    ($($error:ty),*) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::Index(Box::new(error.into()))
            }
        })*
    };
}

of_the_index!(redb::TransactionError, redb::TableError, redb::StorageError, redb::CommitError);
