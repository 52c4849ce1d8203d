//! The client: sends messages, lists and fetches them, as the holder of an account.
//!
//! Both directions go on where a connection ended, by themselves while the client runs and for as long as its patience lasts,
//! and when the same is asked for again later. What must be remembered for that is in a folder, [`State`].
//!
//! - Sending, the *transfer id* is chosen once, kept until the server acknowledges, and says to the server that it is the same
//!   message; so nothing is kept twice there, and a file that is sent again after that is a new message.
//! - Fetching, a message comes into a *part file*, takes its place under its own name when it is whole, checked and on disk,
//!   and only then the server is told to delete it. A *mark* made before that says after a crash which message the file is.

mod error;
mod failure;
mod fetch;
mod link;
mod name;
mod part;
mod send;
mod session;
pub mod sound;
mod state;

pub use error::ClientError;
pub use failure::Failure;
pub use fetch::{Fetched, Wanted};
pub use name::{clean, printable};
pub use send::{Outgoing, Sent};
pub use session::Session;
pub use state::{State, StateError};

use crate::account::Account;
use crate::protocol::{Listed, TcpMetrics};
use crate::transfer::Spent;
use crate::tuning::Profile;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Who sends and fetches, and how.
pub struct Client {
    /// The account.
    pub account: Account,
    /// What both ends do.
    pub profile: Profile,
    /// What is remembered.
    pub state: State,
    /// How long to try again after a connection was lost, from when something was carried last.
    pub patience: Duration,
    /// Set from outside: end in order.
    pub stop: Arc<AtomicBool>,
}

impl Client {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// What happens while a client works.
#[derive(Debug)]
pub enum Event<'a> {
    /// A message begins to be fetched.
    Begins(&'a Listed),
    /// A message goes on here, in bytes, since earlier connections carried what is before.
    GoesOn(u64),
    /// A message is so far.
    Moves {
        /// How many bytes have been carried.
        bytes: u64,
        /// How many it has.
        of: u64,
    },
    /// All bytes have been carried: they are being made safe.
    Settles,
    /// It did not go well and will be tried again.
    Waits {
        /// What happened.
        why: &'a ClientError,
        /// How long to wait.
        pause: Duration,
    },
    /// The message has been sent. It is forgotten here only after this: who is killed before has not heard of it, and the same
    /// command hears it then; who is killed after it knows.
    Sent(&'a Sent),
    /// A message has been fetched.
    Fetched(&'a Fetched),
    /// A message could not be fetched; the others are tried.
    Missed(&'a Listed, &'a Failure),
}

/// Who wants to know what happens.
pub type Watch<'a> = &'a mut dyn FnMut(Event<'_>);

/// Where the time of one message went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// From the first request until the server acknowledged (for a fetched message that stays there: until it was in its
    /// place).
    pub took: Duration,
    /// Of it: making connections, and waiting to make them again.
    pub connecting: Duration,
    /// Of it, at this end, while packets were carried.
    pub spent: Spent,
    /// Of it, sending: from the last packet until the server has acknowledged. Fetching: making the file safe in storage
    /// (fsync, its name).
    pub settling: Duration,
    /// Of it: reading again what an earlier connection carried, for the sum.
    pub rereading: Duration,
    /// What the kernel of the end that sent the packets says of the last connection.
    pub tcp: TcpMetrics,
}
