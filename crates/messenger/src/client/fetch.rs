//! Listing and fetching.

use super::link::{Link, Notes};
use super::part::Part;
use super::session::unexpected;
use super::state::Mark;
use super::{Client, ClientError, Event, Failure, Metrics, Session, Watch};
use crate::protocol::{Listed, MessageId, Refusal, Reply, Request, Sha256, TcpMetrics};
use crate::transfer::{self, Hash, Progress, ReceiveError, Receiver};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What to fetch.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Which; none: all.
    pub messages: Vec<MessageId>,
    /// Into this folder.
    pub into: PathBuf,
    /// The server keeps them.
    pub keep: bool,
}

/// A message that is a file here.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// As it was listed.
    pub listed: Listed,
    /// The file.
    pub file: PathBuf,
    /// Bytes that an earlier run had received.
    pub resumed: u64,
    /// Where the time went.
    pub metrics: Metrics,
}

impl Client {
    /// What is there, the oldest first.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn list(&self, watch: Watch<'_>) -> Result<Vec<Listed>, Failure> {
        let mut link = Link::new(self, None);
        let listed = list(&mut link, watch)?;
        link.close();
        Ok(listed)
    }

    /// Deletes messages that nobody wants to fetch.
    ///
    /// # Errors
    /// [`Failure`]; [`Failure::NotListed`] when one of them is not there, the ones before it are deleted.
    pub fn discard(&self, messages: &[MessageId], watch: Watch<'_>) -> Result<(), Failure> {
        let mut link = Link::new(self, None);
        for message in messages {
            let mut again = false;
            link.run(watch, |session, _| match session.ask(&Request::Received { message: *message }) {
                Ok(Reply::Done) => Ok(()),
                Err(ClientError::Refused(Refusal::NoSuchMessage)) if again => Ok(()),
                Err(ClientError::Refused(Refusal::NoSuchMessage)) => Err(Failure::NotListed(message.0)),
                Ok(other) => Err(unexpected(&other).into()),
                Err(error) => {
                    again = true;
                    Err(error.into())
                }
            })?;
        }
        link.close();
        Ok(())
    }

    /// Fetches messages, the oldest first, and goes on where an earlier run ended. Each is told by
    /// [`Event::Fetched`] or, where the others can go on, [`Event::Missed`]. Returns how many were missed.
    ///
    /// # Errors
    /// [`Failure`]: what ended it; messages that were not fetched stay at the server.
    pub fn fetch(&self, wanted: &Wanted, watch: Watch<'_>) -> Result<usize, Failure> {
        let mut since = Instant::now();
        let mut link = Link::new(self, self.profile.fetch.receiver.buffer);
        let (mut marked, parts) = (self.state.all_marked(&self.account)?, Part::all(self, &wanted.into)?);
        let listed = list(&mut link, watch)?;
        // What was here before and is not listed now has been deleted there.
        let is_gone = |id: &MessageId| listed.iter().all(|listed| listed.message != *id);
        marked.retain(is_gone);
        marked.iter().try_for_each(|message| self.state.forget(&self.account, *message))?;
        parts.iter().filter(|(id, _)| is_gone(id)).try_for_each(|(_, path)| Part::discard(path))?;
        if let Some(absent) = wanted.messages.iter().find(|id| listed.iter().all(|listed| listed.message != **id)) {
            return Err(Failure::NotListed(absent.0));
        }
        let is_wanted = |listed: &&Listed| wanted.messages.is_empty() || wanted.messages.contains(&listed.message);
        let (mut missed, mut connecting) = (0, Duration::ZERO);
        for listed in listed.iter().filter(is_wanted) {
            let mut fetching = Fetching { client: self, wanted, listed, metrics: Metrics::default(), resumed: 0 };
            match fetching.run(&mut link, watch) {
                Ok(file) => {
                    let mut metrics = fetching.metrics;
                    metrics.took = since.elapsed();
                    metrics.connecting = link.connecting().saturating_sub(connecting);
                    let fetched = Fetched { listed: listed.clone(), file, resumed: fetching.resumed, metrics };
                    watch(Event::Fetched(&fetched));
                }
                Err(failure) if leaves_the_others(&failure) => {
                    watch(Event::Missed(listed, &failure));
                    missed += 1;
                }
                Err(failure) => return Err(failure),
            }
            (since, connecting) = (Instant::now(), link.connecting());
        }
        link.close();
        Ok(missed)
    }
}

fn leaves_the_others(failure: &Failure) -> bool {
    is_no_more(failure) || matches!(failure, Failure::InUse { .. } | Failure::File { .. })
}

/// Whether what there is of the message is of no use.
fn is_no_more(failure: &Failure) -> bool {
    match failure {
        Failure::Client(ClientError::Refused(why)) => matches!(why, Refusal::NoSuchMessage | Refusal::Damaged),
        failure => matches!(failure, Failure::Damaged { .. }),
    }
}

fn list(link: &mut Link<'_>, watch: Watch<'_>) -> Result<Vec<Listed>, Failure> {
    link.run(watch, |session, _| {
        let mut all: Vec<Listed> = Vec::new();
        loop {
            match session.ask(&Request::List { after: all.last().map(|listed| listed.message) })? {
                Reply::Listing { messages, more } => {
                    let ends = messages.is_empty() || !more;
                    all.extend(messages);
                    if ends {
                        return Ok(all);
                    }
                }
                other => return Err(unexpected(&other).into()),
            }
        }
    })
}

/// One message in flight.
struct Fetching<'a> {
    client: &'a Client,
    wanted: &'a Wanted,
    listed: &'a Listed,
    metrics: Metrics,
    resumed: u64,
}

impl Fetching<'_> {
    fn run(&mut self, link: &mut Link<'_>, watch: Watch<'_>) -> Result<PathBuf, Failure> {
        let (client, message) = (self.client, self.listed.message);
        watch(Event::Begins(self.listed));
        let marked = client.state.marked(&client.account, message)?;
        let file = match marked.and_then(Mark::file_in_place) {
            Some(file) => {
                self.resumed = self.listed.bytes;
                file
            }
            None => self.receive(link, watch)?,
        };
        if !self.wanted.keep {
            link.run(watch, |session, _| acknowledge(session, message))?;
        }
        client.state.forget(&client.account, message)?;
        Ok(file)
    }

    /// Receives the message, as often as twice if it arrives damaged.
    fn receive(&mut self, link: &mut Link<'_>, watch: Watch<'_>) -> Result<PathBuf, Failure> {
        let part = Part::open(self.client, &self.wanted.into, self.listed)?;
        let (mut hash, mut anew) = (Hash::new(), false);
        self.resumed = part.length()?;
        let outcome = loop {
            let received = link.run(watch, |session, notes| self.attempt(session, notes, &part, &mut hash));
            let (sent, tcp) = match received {
                Ok(ended) => ended,
                Err(failure) => break Err(failure),
            };
            self.metrics.tcp = tcp;
            if std::mem::take(&mut hash).finish() == sent {
                break Ok(());
            }
            part.cut()?;
            self.resumed = 0;
            if std::mem::replace(&mut anew, true) {
                break Err(Failure::Damaged { name: part.name.clone() });
            }
        };
        if let Err(failure) = outcome {
            if is_no_more(&failure) {
                part.remove()?;
            }
            return Err(failure);
        }
        watch(Event::Settles);
        let since = Instant::now();
        let file = part.take_place(self.client, self.listed)?;
        self.metrics.settling += since.elapsed();
        Ok(file)
    }

    /// Receives what is missing on one connection: what its sender's sum is, and what the server's kernel says.
    fn attempt(
        &mut self,
        session: &mut Session,
        notes: &mut Notes<'_>,
        part: &Part,
        hash: &mut Hash,
    ) -> Result<(Sha256, TcpMetrics), Failure> {
        let (client, tuning) = (self.client, self.client.profile.fetch);
        let Listed { message, bytes, .. } = *self.listed;
        let offset = part.length()?;
        let since = Instant::now();
        hash.move_to(&mut &part.file, offset).map_err(Failure::file("read", &part.path))?;
        self.metrics.rereading += since.elapsed();
        if offset > 0 {
            (notes.watch)(Event::GoesOn(offset));
        }
        match session.ask(&Request::Fetch { message, offset, sender: tuning.sender })? {
            Reply::Start { bytes: length } if length == bytes => {}
            other => return Err(unexpected(&other).into()),
        }
        let mut receiver = Receiver::new(&part.file, &tuning.receiver, offset, bytes, std::mem::take(hash));
        let mut look = |progress: &Progress| {
            (notes.watch)(Event::Moves { bytes: progress.bytes, of: bytes });
            if client.is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let ended = transfer::receive::<Reply, _>(session.channel(), &mut receiver, &mut look);
        let progress = receiver.progress();
        self.metrics.spent += progress.spent;
        notes.moved |= progress.bytes > offset;
        *hash = receiver.give_up().1;
        match ended {
            Ok(Reply::End { sha256, tcp }) if progress.bytes == bytes => Ok((sha256, tcp)),
            Ok(Reply::End { .. }) => Err(ClientError::Unexpected("`End` before the end").into()),
            Ok(Reply::Refused(why)) => Err(ClientError::Refused(why).into()),
            Ok(other) => Err(unexpected(&other).into()),
            Err(ReceiveError::Channel(error)) => Err(session.failed(error).into()),
            Err(ReceiveError::Storage(error)) => Err(part.unwritten(error)),
            Err(ReceiveError::Stopped) => Err(ClientError::Stopped.into()),
            Err(ReceiveError::OutOfPlace { .. } | ReceiveError::TooMuch) => {
                Err(ClientError::Unexpected("a packet out of place").into())
            }
        }
    }
}

/// Lets the server delete the message; that it is not there any more means that an earlier word of this has been heard.
fn acknowledge(session: &mut Session, message: MessageId) -> Result<(), Failure> {
    match session.ask(&Request::Received { message }) {
        Ok(Reply::Done) | Err(ClientError::Refused(Refusal::NoSuchMessage)) => Ok(()),
        Ok(other) => Err(unexpected(&other).into()),
        Err(error) => Err(error.into()),
    }
}
