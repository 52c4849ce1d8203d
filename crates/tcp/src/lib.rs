//! What the end hosts do: TCP senders and receivers, sans-IO.
//!
//! A [`Sender`] turns acknowledgments into segments, a [`Receiver`] segments into acknowledgments. Numbers of bytes
//! are offsets into the stream (0: its first byte), 64 bits wide and never wrapping; what a packet carries of them is
//! the host's business. The law of the project holds: after any `on_*`, drain `poll` until `None`, then read
//! `next_deadline`; early and late wake-ups are safe.

mod cc;
mod ranges;
mod receiver;
mod segment;
mod sender;

pub use cc::{Aimd, Algorithm};
pub use receiver::{Clamp, ClampParams, Receiver, ReceiverParams};
pub use segment::{Ack, SackBlocks, Segment};
pub use sender::{Conduct, Sender, SenderParams, SenderSnapshot};
