//! Sending a file.

use super::link::{Link, Notes};
use super::session::unexpected;
use super::state::{Upload, UploadKey};
use super::{Client, ClientError, Event, Failure, Metrics, Session, Watch};
use crate::protocol::{MessageId, Refusal, Reply, Request};
use crate::transfer::{self, Hash, Progress, SendError};
use rustix::fs::{Mode, OFlags};
use std::fs::{File, Metadata};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// What to send.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// A plain file.
    pub file: &'a Path,
    /// What the message is called.
    pub name: &'a str,
    /// Account that it is for.
    pub to: &'a str,
}

/// A message that the server has acknowledged: it will not be lost.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Its number.
    pub message: MessageId,
    /// Its length, in bytes.
    pub bytes: u64,
    /// Of them: carried by an earlier run.
    pub resumed: u64,
    /// Where the time went.
    pub metrics: Metrics,
}

impl Client {
    /// Sends a message, and goes on where an earlier run ended. Returns when the server has acknowledged it, which is told by
    /// [`Event::Sent`] first.
    ///
    /// # Errors
    /// [`Failure`]; the message can be sent again with the same arguments, and goes on then if the server kept a part.
    pub fn send(&self, what: &Outgoing<'_>, watch: Watch<'_>) -> Result<Sent, Failure> {
        let mut sending = Sending::new(self, what)?;
        let mut upload = sending.upload()?;
        let mut link = Link::new(self, None);
        let mut anew = false;
        loop {
            let outcome = link.run(watch, |session, notes| sending.attempt(session, notes, &upload));
            match outcome {
                Ok(message) => {
                    sending.metrics.took = sending.since.elapsed();
                    sending.metrics.connecting = link.connecting();
                    let (bytes, resumed) = (sending.bytes, sending.resumed.unwrap_or(0));
                    let sent = Sent { message, bytes, resumed, metrics: sending.metrics };
                    watch(Event::Sent(&sent));
                    upload.forget()?;
                    link.close();
                    return Ok(sent);
                }
                // What an earlier run sent was something else, though length and time are the same: all of it once more.
                Err(Failure::Client(ClientError::Refused(Refusal::Mismatch))) if sending.reached > 0 && !anew => {
                    upload.forget()?;
                    upload = sending.upload()?;
                    (sending.reached, sending.resumed, anew) = (0, Some(0), true);
                }
                Err(failure) => {
                    if is_final(&failure) {
                        upload.forget()?;
                    }
                    return Err(failure);
                }
            }
        }
    }
}

/// Whether there is nothing to go on with.
fn is_final(failure: &Failure) -> bool {
    use Refusal::{BadName, Mismatch, NoSuchRecipient, TooLong};
    match failure {
        Failure::Client(ClientError::Refused(why)) => {
            matches!(why, BadName | Mismatch | NoSuchRecipient { .. } | TooLong { .. })
        }
        failure => matches!(failure, Failure::Changed { .. }),
    }
}

/// A file in flight.
struct Sending<'a> {
    client: &'a Client,
    what: &'a Outgoing<'a>,
    file: File,
    /// As it was when it was opened.
    before: Metadata,
    bytes: u64,
    hash: Hash,
    /// How much the server has said that it has.
    reached: u64,
    /// What it had at first.
    resumed: Option<u64>,
    since: Instant,
    metrics: Metrics,
}

impl<'a> Sending<'a> {
    fn new(client: &'a Client, what: &'a Outgoing<'a>) -> Result<Self, Failure> {
        // Without waiting for the other end, should it be a named pipe.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::open(what.file, flags, Mode::empty()).map_err(io::Error::from);
        let file = File::from(opened.map_err(Failure::file("read", what.file))?);
        let before = file.metadata().map_err(Failure::file("read", what.file))?;
        if !before.is_file() {
            return Err(Failure::NoFile { path: what.file.to_owned() });
        }
        let bytes = before.len();
        let (hash, since, metrics) = (Hash::new(), Instant::now(), Metrics::default());
        Ok(Self { client, what, file, before, bytes, hash, reached: 0, resumed: None, since, metrics })
    }

    fn upload(&self) -> Result<Upload, Failure> {
        let path = self.what.file.canonicalize().map_err(Failure::file("read", self.what.file))?;
        let key = UploadKey {
            to: self.what.to,
            name: self.what.name,
            file: path.as_os_str().as_bytes(),
            bytes: self.bytes,
            changed: (self.before.mtime(), self.before.mtime_nsec()),
        };
        self.client.state.upload(&self.client.account, &key)
    }

    /// Sends what is missing on one connection.
    fn attempt(&mut self, session: &mut Session, notes: &mut Notes<'_>, upload: &Upload) -> Result<MessageId, Failure> {
        let tuning = self.client.profile.send;
        session.channel().prepare_sender(&tuning.sender).map_err(ClientError::Lost)?;
        let offer = Request::Offer {
            transfer: upload.transfer,
            to: self.what.to.to_owned(),
            name: self.what.name.to_owned(),
            bytes: self.bytes,
            receiver: tuning.receiver,
        };
        let offset = match session.ask(&offer)? {
            Reply::Continue { offset } if offset <= self.bytes => offset,
            Reply::Kept { message } => {
                self.resumed.get_or_insert(self.bytes);
                return Ok(message);
            }
            other => return Err(unexpected(&other).into()),
        };
        self.resumed.get_or_insert(offset);
        notes.moved |= offset > self.reached;
        self.reached = offset;
        if offset > 0 {
            (notes.watch)(Event::GoesOn(offset));
        }
        let since = Instant::now();
        self.hash.move_to(&mut self.file, offset).map_err(|error| self.unread(error))?;
        self.metrics.rereading += since.elapsed();
        self.packets(session, notes, offset)?;
        self.check_unchanged()?;
        (notes.watch)(Event::Settles);
        let since = Instant::now();
        let message = match session.ask(&Request::Finish { sha256: self.hash.clone().finish() })? {
            Reply::Kept { message } => message,
            other => return Err(unexpected(&other).into()),
        };
        self.metrics.settling += since.elapsed();
        // Asked for now, since before something may still have waited in the send buffer.
        self.metrics.tcp = session.channel().metrics().unwrap_or_default();
        Ok(message)
    }

    fn packets(&mut self, session: &mut Session, notes: &mut Notes<'_>, offset: u64) -> Result<(), Failure> {
        let (client, of) = (self.client, self.bytes);
        let mut last = transfer::Spent::default();
        let mut look = |progress: &Progress| {
            (notes.watch)(Event::Moves { bytes: progress.bytes, of });
            last = progress.spent;
            if client.is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let end = &client.profile.send.sender;
        let sent = transfer::send(session.channel(), &mut self.file, offset..of, end, Some(&mut self.hash), &mut look);
        self.metrics.spent += *sent.as_ref().unwrap_or(&last);
        match sent {
            Ok(_) => Ok(()),
            Err(SendError::Channel(error)) => Err(session.lost(error).into()),
            Err(SendError::Interrupted) => match session.answer() {
                Ok(reply) => Err(unexpected(&reply).into()),
                Err(error) => Err(error.into()),
            },
            Err(SendError::Stopped) => Err(ClientError::Stopped.into()),
            Err(SendError::Shorter) => Err(Failure::Changed { path: self.what.file.to_owned() }),
            Err(SendError::Storage(source)) => Err(self.unread(source)),
        }
    }

    fn unread(&self, source: io::Error) -> Failure {
        match source.kind() {
            io::ErrorKind::UnexpectedEof => Failure::Changed { path: self.what.file.to_owned() },
            _ => Failure::file("read", self.what.file)(source),
        }
    }

    /// Before the server may keep it: a file that somebody writes to is no message.
    fn check_unchanged(&self) -> Result<(), Failure> {
        let state = |m: &Metadata| (m.len(), m.mtime(), m.mtime_nsec());
        let now = self.file.metadata().map_err(Failure::file("read", self.what.file))?;
        if state(&now) == state(&self.before) {
            return Ok(());
        }
        Err(Failure::Changed { path: self.what.file.to_owned() })
    }
}

impl Metrics {
    /// How long it took without making connections.
    #[must_use]
    pub fn connected(&self) -> Duration {
        self.took.saturating_sub(self.connecting)
    }
}
