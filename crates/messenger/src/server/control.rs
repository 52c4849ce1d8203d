//! Orders of the store's owner: accounts made, removed and listed, while a server runs or not.
//!
//! One process works with a store. A server that runs listens on a socket in the folder of its store, which nobody but its
//! owner can reach, and carries orders out; where none runs, the order opens the store itself.

use super::{Server, ServerError, Settings};
use crate::account::Account;
use crate::protocol::Refusal;
use crate::store::{AccountSummary, Failure, StoreError};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// Longest order, in bytes.
const LONGEST_ORDER: u64 = 4 << 10;
/// Longest answer, in bytes: every account with the longest name.
const LONGEST_ANSWER: u64 = 2 << 20;
/// How long an order may take to come, and its answer to go.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often an order tries when a server is just starting or ending, and how long it waits in between.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(100);

/// What is to be done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Order {
    /// Make an account.
    Add {
        /// What it is called.
        name: String,
        /// Host and port by which its owner reaches the server.
        address: String,
    },
    /// Remove an account and all that waits for it.
    Remove {
        /// What it is called.
        name: String,
    },
    /// List all accounts.
    Accounts,
}

/// What was done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Ordered {
    /// The account, to be handed to its owner.
    Added(Account),
    /// How many messages and uploads went with it.
    Removed(u64),
    /// All accounts.
    Accounts(Vec<AccountSummary>),
    /// Why it was not done.
    Failed(String),
}

/// An order that was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    /// No server runs, and the store cannot be opened.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The server that runs did not answer.
    #[error("the running server does not answer")]
    NoAnswer(#[source] io::Error),
}

/// Has an order carried out, by the server that runs with this store or, when none does, here.
///
/// # Errors
/// [`OrderError`].
pub fn order(folder: &Path, order: &Order) -> Result<Ordered, OrderError> {
    let mut tries = 0;
    loop {
        tries += 1;
        if let Ok(socket) = path(folder).and_then(|(_folder, path)| UnixStream::connect(path)) {
            return ask(socket, order).map_err(OrderError::NoAnswer);
        }
        match Server::open(folder, Settings::default()) {
            Ok(server) => return Ok(server.carry_out(order.clone())),
            Err(ServerError::Store(StoreError::InUse(_))) if tries < TRIES => thread::sleep(PAUSE),
            Err(error) => return Err(error.into()),
        }
    }
}

fn ask(mut socket: UnixStream, order: &Order) -> io::Result<Ordered> {
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.write_all(&postcard::to_allocvec(order).map_err(io::Error::other)?)?;
    socket.shutdown(Shutdown::Write)?;
    let mut answer = Vec::new();
    socket.take(LONGEST_ANSWER).read_to_end(&mut answer)?;
    postcard::from_bytes(&answer).map_err(io::Error::other)
}

/// The socket's path: short enough for a socket wherever the folder is, as long as the folder is held open.
fn path(folder: &Path) -> io::Result<(File, PathBuf)> {
    let folder = File::open(folder)?;
    let path = format!("/proc/self/fd/{}/control", folder.as_raw_fd()).into();
    Ok((folder, path))
}

/// The socket of a running server; removed when dropped.
pub struct Control {
    listener: UnixListener,
    path: PathBuf,
}

impl Control {
    pub fn bind(folder: &Path) -> io::Result<Self> {
        let (_folder, short) = path(folder)?;
        // One that is there is of a server that was killed: the store's lock is ours.
        let _ = fs::remove_file(&short);
        let listener = UnixListener::bind(&short)?;
        // The folder is its owner's alone, and so is this, whatever the umask is.
        fs::set_permissions(&short, fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, path: folder.join("control") })
    }

    /// Carries orders out until the server stops.
    pub fn listen(&self, server: &Server) {
        while !server.shared.is_stopping() {
            let outcome = match super::is_readable(&self.listener, super::TICK) {
                Ok(false) => continue,
                Ok(true) => self.listener.accept().and_then(|(socket, _)| answer(socket, server)),
                Err(error) => Err(error),
            };
            if let Err(error) = outcome {
                server.shared.tell(&super::Event::Failed { why: format!("an order of the owner: {error}") });
                // No descriptors left, or the like: others will end.
                thread::sleep(super::TICK);
            }
        }
    }
}

fn answer(mut socket: UnixStream, server: &Server) -> io::Result<()> {
    socket.set_nonblocking(false)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    let mut order = Vec::new();
    (&socket).take(LONGEST_ORDER).read_to_end(&mut order)?;
    let ordered = match postcard::from_bytes(&order) {
        Ok(order) => server.carry_out(order),
        Err(_) => Ordered::Failed("the running server is of another release: stop it first".into()),
    };
    socket.write_all(&postcard::to_allocvec(&ordered).map_err(io::Error::other)?)
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl Server {
    fn carry_out(&self, order: Order) -> Ordered {
        let failed = |failure: Failure| match failure {
            Failure::Refused(Refusal::Failed { why }) => Ordered::Failed(why),
            other => Ordered::Failed(other.to_string()),
        };
        match order {
            Order::Add { name, address } => self.add_account(&name, &address).map_or_else(failed, Ordered::Added),
            Order::Remove { name } => self.remove_account(&name).map_or_else(failed, Ordered::Removed),
            Order::Accounts => self.accounts().map_or_else(failed, Ordered::Accounts),
        }
    }
}
