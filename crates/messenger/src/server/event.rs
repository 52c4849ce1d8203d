//! What a server tells of: an event as it happens, and a counter of each kind at the end. Never a secret.

use crate::protocol::{MessageId, Refusal};
use serde::Serialize;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A connection has said who it is.
    Welcomed {
        /// Where it comes from.
        from: SocketAddr,
        /// Its account.
        account: String,
    },
    /// A connection was not granted something.
    Refused {
        /// Where it comes from.
        from: SocketAddr,
        /// Its account, once known.
        account: Option<String>,
        /// Why.
        refusal: Refusal,
    },
    /// A connection was cut or turned away before it said who it is: there are too many of them.
    TurnedAway {
        /// Where the one came from for which there was no place.
        from: SocketAddr,
    },
    /// Refusals, and what else comes as often as strangers want it to, that no event told of: too many.
    NotTold {
        /// How many.
        events: u64,
    },
    /// A message is kept.
    Kept {
        /// Its number.
        message: MessageId,
        /// Account that sent it.
        from: String,
        /// Account it is for.
        to: String,
        /// Its length, in bytes.
        bytes: u64,
    },
    /// A message was sent to its recipient, which has not said yet that it has it.
    Sent {
        /// Its number.
        message: MessageId,
        /// Account it is for.
        to: String,
        /// Bytes that went now.
        bytes: u64,
    },
    /// The recipient has it; it is deleted.
    Received {
        /// Its number.
        message: MessageId,
        /// Account it was for.
        by: String,
    },
    /// A message is not what was kept.
    Damaged {
        /// Which one, and how.
        what: String,
    },
    /// A connection ended in the middle of a transfer, which can be taken up again.
    Cut {
        /// Its account.
        account: String,
        /// At how many bytes of how many.
        at: (u64, u64),
        /// Why.
        why: String,
    },
    /// Uploads that nobody went on with are dropped.
    Dropped {
        /// How many.
        uploads: u64,
    },
    /// The server itself could not.
    Failed {
        /// What.
        why: String,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Welcomed { from, account } => write!(f, "{account} is here, from {from}"),
            Self::Refused { from, account: Some(account), refusal } => {
                write!(f, "{account} ({from}) refused: {refusal}")
            }
            Self::Refused { from, account: None, refusal } => write!(f, "{from} refused: {refusal}"),
            Self::TurnedAway { from } => {
                write!(f, "too many connections that do not say who they are: one was cut when {from} came")
            }
            Self::NotTold { events } => write!(f, "refusals and failures that were too many to be told: {events}"),
            Self::Kept { message, from, to, bytes } => {
                write!(f, "message {message} from {from} for {to} is kept, {bytes} bytes")
            }
            Self::Sent { message, to, bytes } => write!(f, "message {message} was sent to {to}, {bytes} bytes"),
            Self::Received { message, by } => write!(f, "{by} has message {message}: deleted here"),
            Self::Damaged { what } => write!(f, "damaged, not sent and not deleted: {what}"),
            Self::Cut { account, at: (at, of), why } => {
                write!(f, "a transfer of {account} was cut at {at} of {of} bytes ({why}); it can be resumed")
            }
            Self::Dropped { uploads } => write!(f, "uploads dropped, as nobody went on with them: {uploads}"),
            Self::Failed { why } => write!(f, "failed: {why}"),
        }
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// How often what happened since the start.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
        }

        /// The same while it counts.
        #[derive(Default)]
        pub(super) struct Counting {
            $(pub $name: AtomicU64,)*
        }

        impl Counting {
            pub fn read(&self) -> Counters {
                Counters { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counters! {
    /// Connections that came.
    connections,
    /// Closed without a word, before they said who they are: too many of them.
    turned_away,
    /// Told that there is no place.
    busy,
    /// Names and secrets that do not belong together.
    wrong_secrets,
    /// Not even compared: too many wrong ones before.
    too_many_attempts,
    /// Of what was kept in mind of wrong secrets: forgotten to make place.
    forgotten_attempts,
    /// Refusals and failures that no event told of.
    not_told,
    /// Did not say who they are in time.
    late,
    /// Connections ended by a frame that does not belong there.
    bad_frames,
    /// Connections ended because nothing came.
    idle,
    /// Messages kept.
    kept,
    /// Messages offered again that were kept already.
    kept_before,
    /// Messages sent whole.
    sent,
    /// Messages received and deleted.
    received,
    /// Transfers cut, to be resumed.
    cut,
    /// Uploads that were not what their sender had sent.
    mismatches,
    /// Messages not sent because they are damaged here.
    damaged,
    /// Uploads and deletions that a full disk refused.
    disk_full,
    /// Any other refusal.
    refused,
}

/// One more.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
