//! What client and server say to each other, inside TLS.
//!
//! ```text
//! frame   = length: u32 BE, of what follows | kind: u8 | body
//! control = kind 0, body: a `Request` (client) or a `Reply` (server) in postcard's encoding, at most 64 KiB
//! packet  = kind 1, body: offset: u64 BE | 1 to 1 MiB bytes of a message, as one application packet
//! ```
//!
//! | client | server |
//! |---|---|
//! | `Hello` | `Welcome` |
//! | `Offer` | `Continue { offset }`, then it takes packets from there on; or `Kept` when it has the message already |
//! | packets, `Finish { sha256 }` | `Kept { message }`: on disk, it will not be lost |
//! | `List` | `Listing` |
//! | `Fetch { message, offset }` | `Start`, packets from `offset` on, `End { sha256 }` |
//! | `Received { message }` | `Done`: the recipient has it, it is deleted here |
//! | `Ping` | `Pong` |
//! | `Source` | packets of no message, `Sent`: measures the downlink |
//! | `Sink`, packets, `Finish` | `Taken`: measures the uplink |
//!
//! A server may answer anything with `Refused`, which says why, and between the packets of an upload, too. A packet
//! belongs at exactly the offset where the one before it ended: one that is repeated, left out or out of order ends the
//! connection. TLS keeps others from repeating anything.

mod frame;
mod refusal;

pub use frame::{Decoded, FrameError, HEADER, LONGEST, control, decode, packet_header};
pub use refusal::Refusal;

use crate::tuning::End;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Version of the protocol; both ends must have the same.
pub const VERSION: u16 = 1;

/// Where a server listens unless told otherwise.
pub const PORT: u16 = 4774;

/// A message kept by a server, counted from 1 and never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MessageId(pub u64);

/// An upload, until it is acknowledged: 128 random bits chosen by the client, so that one that is taken up again is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TransferId(pub [u8; 16]);

/// SHA-256 of a message's bytes, made by the sender, checked by the server and by the recipient.
pub type Sha256 = [u8; 32];

/// What a client says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// The first frame.
    Hello {
        /// [`VERSION`].
        version: u16,
        /// Name of the account.
        account: String,
        /// Its secret.
        secret: Secret,
    },
    /// Wants to send a message.
    Offer {
        /// The same when it is taken up again.
        transfer: TransferId,
        /// Account that it is for.
        to: String,
        /// What it is called, without folders.
        name: String,
        /// Its length, in bytes.
        bytes: u64,
        /// What the server shall do as the receiver.
        receiver: End,
    },
    /// All packets of an `Offer` or a `Sink` have been sent.
    Finish {
        /// Of all bytes, those before the offset of a taken-up upload included; of a `Sink` not looked at.
        sha256: Sha256,
    },
    /// What is there for me, the oldest first?
    List {
        /// Go on behind this one.
        after: Option<MessageId>,
    },
    /// Wants a message.
    Fetch {
        /// Which.
        message: MessageId,
        /// From where on: what is before has been received.
        offset: u64,
        /// What the server shall do as the sender.
        sender: End,
    },
    /// The recipient has the message, whole, checked and in its storage.
    Received {
        /// Which.
        message: MessageId,
    },
    /// For the round trip.
    Ping(u64),
    /// Wants packets of no message, for some time.
    Source {
        /// How long, in milliseconds; at most what the server allows.
        millis: u32,
        /// At most as many bytes.
        bytes: u64,
        /// What the server shall do as the sender.
        sender: End,
    },
    /// Will send packets of no message, then `Finish`.
    Sink {
        /// What the server shall do as the receiver, storage left out.
        receiver: End,
    },
}

/// What a server says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// The account is known.
    Welcome {
        /// Longest message, in bytes.
        longest_message: u64,
    },
    /// Why it will not.
    Refused(Refusal),
    /// Go on from here; 0 for a new message.
    Continue {
        /// In bytes.
        offset: u64,
    },
    /// The message is on disk and will be delivered.
    Kept {
        /// Its number.
        message: MessageId,
    },
    /// Messages for this account.
    Listing {
        /// The oldest first.
        messages: Vec<Listed>,
        /// There are more behind the last of these.
        more: bool,
    },
    /// Packets follow.
    Start {
        /// Length of the whole message, in bytes.
        bytes: u64,
    },
    /// All packets of a `Fetch` have been sent.
    End {
        /// Of the whole message, as its sender made it.
        sha256: Sha256,
        /// The server's side of this connection.
        tcp: TcpMetrics,
    },
    /// The message is deleted here.
    Done,
    /// To a `Ping`.
    Pong(u64),
    /// All packets of a `Source` have been sent.
    Sent {
        /// The server's side of this connection.
        tcp: TcpMetrics,
    },
    /// What a `Sink` took.
    Taken {
        /// Of packets, in bytes.
        bytes: u64,
        /// From the first packet to the last, in microseconds.
        micros: u64,
    },
}

/// A message of a listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// Its number.
    pub message: MessageId,
    /// Account of its sender.
    pub from: String,
    /// What it is called; the sender's word, not to be trusted as a path.
    pub name: String,
    /// Its length, in bytes.
    pub bytes: u64,
    /// When the server had it, in seconds since 1970 by the server's clock.
    pub kept_at: u64,
}

/// What a sender's kernel says of a connection (TCP_INFO), since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpMetrics {
    /// Time in which data was in flight or waited to be, in microseconds.
    pub busy_us: u64,
    /// Of it: held back by the receiver's window.
    pub window_limited_us: u64,
    /// Of it: held back by the send buffer.
    pub send_buffer_limited_us: u64,
    /// Smallest round trip, in microseconds.
    pub least_rtt_us: u32,
    /// Smoothed round trip, in microseconds.
    pub srtt_us: u32,
    /// Segments sent again.
    pub retransmitted: u32,
    /// The congestion window, in segments.
    pub cwnd: u32,
}

/// A secret in flight. Never shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
