//! Why a server will not do what it is asked.

use serde::{Deserialize, Serialize};

/// Why a server will not do it. Says what the client can do; never what belongs to somebody else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    /// Another version of the protocol.
    #[error("the server speaks version {server} of the protocol: use the same release of lasthop on both sides")]
    Version {
        /// The server's.
        server: u16,
    },
    /// Name or secret, not said which.
    #[error("the server does not know this account with this secret: see the account file")]
    WrongSecret,
    /// Too many wrong secrets from there.
    #[error("too many wrong secrets from this address: try again in {seconds} s")]
    TooManyAttempts {
        /// When to come again.
        seconds: u32,
    },
    /// As many connections as it takes.
    #[error("the server is busy: try again in {seconds} s")]
    Busy {
        /// When to come again.
        seconds: u32,
    },
    /// No such account.
    #[error("nobody is called `{name}` on this server")]
    NoSuchRecipient {
        /// As offered.
        name: String,
    },
    /// The message is too long.
    #[error("the message is too long: this server takes at most {most} bytes")]
    TooLong {
        /// In bytes.
        most: u64,
    },
    /// The message's name cannot be used.
    #[error("the name of a message has 1 to 255 bytes, no slash and no control characters")]
    BadName,
    /// The recipient has as much as may wait.
    #[error("the recipient's mailbox is full: it must fetch messages first")]
    MailboxFull,
    /// The sender sends too many.
    #[error("too many messages in a short time: try again in {seconds} s")]
    TooManyMessages {
        /// When to come again.
        seconds: u32,
    },
    /// The server's disk is full; nothing that it acknowledged is lost.
    #[error("the server's disk is full: nothing of this message is lost on your side; tell who runs the server")]
    DiskFull,
    /// The message has changed in flight, or while it was sent.
    #[error("what arrived is not what was sent (SHA-256 differs): send it again")]
    Mismatch,
    /// This account has no such message.
    #[error("there is no such message for this account")]
    NoSuchMessage,
    /// The message is damaged in the server's store.
    #[error("the server's store is damaged: this message cannot be had from it any more")]
    Damaged,
    /// A frame that does not belong here.
    #[error("the server did not understand: {why}")]
    BadFrame {
        /// What was wrong.
        why: String,
    },
    /// Nothing came for too long.
    #[error("nothing was heard for {seconds} s")]
    Idle {
        /// How long.
        seconds: u32,
    },
    /// The server is going down.
    #[error("the server is being stopped: try again later")]
    Stopping,
    /// Something failed over there.
    #[error("the server could not: {why}")]
    Failed {
        /// What.
        why: String,
    },
    /// The sender has as much waiting as one may have.
    #[error(
        "too much of what you sent waits on this server, which keeps at most {messages} messages and {bytes} bytes of one \
         sender: its recipients must fetch messages first"
    )]
    SenderFull {
        /// Messages that may wait.
        messages: u64,
        /// Their bytes.
        bytes: u64,
    },
}
