//! What the end hosts do, sans-IO: TCP senders and receivers, and rate-controlled ones (TFRC, SSVP).
//!
//! A [`Sender`] turns acknowledgments into segments, a [`Receiver`] segments into acknowledgments. Numbers of bytes
//! are offsets into the stream (0: its first byte), 64 bits wide and never wrapping; what a packet carries of them is
//! the host's business. The law of the project holds: after any `on_*`, drain `poll` until `None`, then read
//! `next_deadline`; early and late wake-ups are safe.

mod cc;
mod conduct;
mod discriminate;
mod note;
mod ranges;
mod rate;
mod receiver;
mod segment;
mod sender;

pub use cc::{Aimd, Algorithm, Law, LawAck, LawWindow};
pub use conduct::Conduct;
pub use note::{Note, Reports};
pub use rate::tfrc_throughput;
pub use rate::{Datagram, RateLaw, RateParams, RateReceiver, RateReceiverParams, RateSender, RateSnapshot, Report};
pub use receiver::{Receiver, ReceiverParams};
pub use segment::{Ack, SackBlocks, Segment};
pub use sender::{Sender, SenderParams, SenderSnapshot};
