//! Why a message was not sent or fetched, and what has become of it.

use super::{ClientError, StateError};
use std::io;
use std::path::PathBuf;

/// See above.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Between here and the server.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The state folder.
    #[error(transparent)]
    State(#[from] StateError),
    /// A file of the user's.
    #[error("cannot {} {}", deed, path.display())]
    File {
        /// What was tried: "read".
        deed: &'static str,
        /// Which.
        path: PathBuf,
        /// What failed.
        #[source]
        source: io::Error,
    },
    /// Not a file with a length.
    #[error("{} is no plain file", path.display())]
    NoFile {
        /// Which.
        path: PathBuf,
    },
    /// The file is not what it was when sending began.
    #[error("{} changed while it was sent: the server has not kept it; send it again when it is complete", path.display())]
    Changed {
        /// Which.
        path: PathBuf,
    },
    /// Another process does the same.
    #[error("another lasthop is at it: {} is in use", path.display())]
    InUse {
        /// The locked file.
        path: PathBuf,
    },
    /// No room for the message.
    #[error(
        "no space left for {name}: its first {bytes} bytes are kept in {}, and the message stays at the server. \
         Make room and fetch again, or fetch --into another folder", part.display()
    )]
    Full {
        /// The message's.
        name: String,
        /// Received so far.
        bytes: u64,
        /// What there is of it.
        part: PathBuf,
    },
    /// What came is not what was sent, twice.
    #[error("{name} arrived damaged twice (SHA-256 differs): what came is removed, the message stays at the server")]
    Damaged {
        /// The message's.
        name: String,
    },
    /// No such message is listed.
    #[error("there is no message {0} for this account: `lasthop message fetch --list` shows what there is")]
    NotListed(u64),
}

impl Failure {
    /// Of a file.
    pub(super) fn file(deed: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { deed, path, source }
    }

    /// Whether it was told to stop.
    #[must_use]
    pub fn is_stop(&self) -> bool {
        matches!(self, Self::Client(ClientError::Stopped))
    }
}
