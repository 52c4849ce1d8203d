//! One connection, from `Hello` to its end.

use super::attempts::Wait;
use super::event::{Event, count};
use super::gate::Ticket;
use super::{Shared, measure};
use crate::channel::{Channel, ChannelError, Incoming};
use crate::protocol::{FrameError, LONGEST, Refusal, Reply, Request, Secret, VERSION};
use crate::store::{AccountId, Failure};
use std::io::Read;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Longest frame before the account is known, in bytes: a `Hello` has at most 180.
const LONGEST_HELLO: usize = 512;
/// How long what still comes is read and thrown away, so that a last word is not lost to a reset.
const LINGER: Duration = Duration::from_secs(2);

/// Why a session ends early.
#[derive(Debug)]
pub enum End {
    /// The connection.
    Channel(ChannelError),
    /// A last word, then the connection is closed.
    Word(Refusal),
}

impl From<ChannelError> for End {
    fn from(error: ChannelError) -> Self {
        Self::Channel(error)
    }
}

/// A frame that does not belong here.
pub fn bad_frame(why: impl Into<String>) -> End {
    End::Word(Refusal::BadFrame { why: why.into() })
}

/// A connection whose account is known.
pub struct Session<'a> {
    pub shared: &'a Shared,
    pub channel: Channel,
    pub ticket: Ticket<'a>,
    pub from: SocketAddr,
    pub id: AccountId,
    pub account: String,
}

/// Talks to a client until one of both has enough.
pub fn run(shared: &Shared, socket: TcpStream, from: SocketAddr, ticket: Ticket<'_>) {
    let Ok(copy) = socket.try_clone() else { return };
    let config = std::sync::Arc::clone(&shared.tls);
    let Ok(mut channel) = Channel::server(socket, config, shared.settings.greeting) else { return };
    channel.set_longest(LONGEST_HELLO);
    match welcome(shared, &mut channel, &ticket) {
        Ok((id, account)) => {
            shared.tell(&Event::Welcomed { from, account: account.clone() });
            let mut session = Session { shared, channel, ticket, from, id, account };
            let end = session.converse();
            let Session { channel, account, .. } = session;
            last_word(shared, channel, &copy, from, Some(account), end);
        }
        Err(end) => last_word(shared, channel, &copy, from, None, end),
    }
}

/// The first frame: who is there?
fn welcome(shared: &Shared, channel: &mut Channel, ticket: &Ticket<'_>) -> Result<(AccountId, String), End> {
    let Incoming::Control(Request::Hello { version, account, secret }) = channel.receive()? else {
        return Err(bad_frame("a connection begins with `Hello`"));
    };
    if version != VERSION {
        return Err(End::Word(Refusal::Version { server: VERSION }));
    }
    let id = authenticate(shared, &account, &secret, ticket)?;
    if !ticket.is_known(id) {
        return Err(End::Word(Refusal::Busy { seconds: 5 }));
    }
    // From here on the account's removal cuts the connection; it may have been removed while its secret was hashed.
    if shared.store.account(&account).map_err(|failure| shared.last(&failure))?.is_none_or(|(now, _)| now != id) {
        return Err(End::Word(Refusal::WrongSecret));
    }
    channel.set_longest(LONGEST);
    channel.set_idle(shared.settings.idle)?;
    channel.send(&Reply::Welcome { longest_message: shared.settings.bounds.longest_message })?;
    Ok((id, account))
}

/// The account of this name and secret. An unknown name takes as long as a wrong secret, and counts as one.
fn authenticate(shared: &Shared, name: &str, secret: &Secret, ticket: &Ticket<'_>) -> Result<AccountId, End> {
    // What can be nobody's name is one name: nothing of a stranger's is kept in mind but what a name can be.
    let name = if crate::store::is_account_name(name) { name } else { "" };
    let attempt = shared.attempts.begin(name, ticket.from, Instant::now()).map_err(|wait| match wait {
        Wait::Wrong(seconds) => End::Word(Refusal::TooManyAttempts { seconds }),
        Wait::Crowd => End::Word(Refusal::Busy { seconds: 1 }),
    })?;
    let found = shared.store.account(name).map_err(|failure| shared.last(&failure))?;
    let is_right = shared.hasher.is(secret, found.as_ref().map(|(_, kept)| kept), || !ticket.is_cut());
    match found.filter(|_| is_right) {
        Some((id, _)) => {
            attempt.succeeded();
            Ok(id)
        }
        None if ticket.is_cut() => Err(End::Channel(ChannelError::Closed)),
        None => {
            attempt.failed(Instant::now());
            Err(End::Word(Refusal::WrongSecret))
        }
    }
}

impl Session<'_> {
    /// Answers requests until the client hangs up.
    fn converse(&mut self) -> End {
        loop {
            let outcome = match self.channel.receive() {
                Ok(Incoming::Control(request)) => self.answer(request),
                Ok(Incoming::Packet { .. }) => Err(bad_frame("a packet of no message")),
                Err(error) => Err(error.into()),
            };
            if let Err(end) = outcome {
                return end;
            }
            if self.shared.is_stopping() {
                return End::Word(Refusal::Stopping);
            }
        }
    }

    fn answer(&mut self, request: Request) -> Result<(), End> {
        match request {
            Request::Hello { .. } => Err(bad_frame("`Hello` comes once")),
            Request::Finish { .. } => Err(bad_frame("`Finish` of nothing")),
            Request::Ping(word) => Ok(self.channel.send(&Reply::Pong(word))?),
            Request::Source { millis, bytes, sender } => measure::source(self, millis, bytes, &sender),
            Request::Sink { receiver } => measure::sink(self, &receiver),
            Request::Offer { transfer, to, name, bytes, receiver } => {
                let offer = crate::store::Offer { from: self.id, transfer, to, name, bytes };
                super::upload::take(self, &offer, &receiver)
            }
            Request::List { after } => match self.shared.store.list(self.id, after) {
                Ok((messages, more)) => Ok(self.channel.send(&Reply::Listing { messages, more })?),
                Err(failure) => self.refuse(&failure),
            },
            Request::Fetch { message, offset, sender } => super::download::give(self, message, offset, &sender),
            Request::Received { message } => match self.shared.store.delete(self.id, &self.account, message) {
                Ok(()) => {
                    count(&self.shared.counting.received);
                    self.shared.tell(&Event::Received { message, by: self.account.clone() });
                    Ok(self.channel.send(&Reply::Done)?)
                }
                Err(failure) => self.refuse(&failure),
            },
        }
    }

    /// Says that it will not, and goes on.
    pub fn refuse(&mut self, failure: &Failure) -> Result<(), End> {
        self.shared.tell_cause(failure);
        let refusal = failure.refusal();
        self.shared.count_refusal(&refusal);
        let event = Event::Refused { from: self.from, account: Some(self.account.clone()), refusal: refusal.clone() };
        self.shared.tell_seldom(&self.shared.lines.accounts, &event);
        Ok(self.channel.send(&Reply::Refused(refusal))?)
    }

    /// Tells of a transfer that ends before its end.
    pub fn tell_cut(&self, at: (u64, u64), why: impl ToString) {
        count(&self.shared.counting.cut);
        self.shared.tell(&Event::Cut { account: self.account.clone(), at, why: why.to_string() });
    }
}

/// Says why it ends, where that can be heard, and closes.
fn last_word(
    shared: &Shared,
    mut channel: Channel,
    socket: &TcpStream,
    from: SocketAddr,
    account: Option<String>,
    end: End,
) {
    let refusal = match end {
        End::Word(refusal) => refusal,
        End::Channel(_) if shared.is_stopping() => Refusal::Stopping,
        End::Channel(ChannelError::Idle) => Refusal::Idle { seconds: shared.settings.idle.as_secs() as u32 },
        End::Channel(ChannelError::Frame(error)) => Refusal::BadFrame { why: said(error) },
        End::Channel(_) => return channel.close(),
    };
    shared.count_refusal(&refusal);
    let lines = if account.is_some() { &shared.lines.accounts } else { &shared.lines.strangers };
    shared.tell_seldom(lines, &Event::Refused { from, account, refusal: refusal.clone() });
    let _ = channel.set_idle(LINGER);
    if channel.send(&Reply::Refused(refusal)).is_ok() {
        linger(socket);
    }
    channel.close();
}

fn said(error: FrameError) -> String {
    error.to_string()
}

/// Reads on for a while: closing a socket with something unread resets it, and the last word is lost.
fn linger(mut socket: &TcpStream) {
    let (since, mut waste) = (Instant::now(), [0; 16 << 10]);
    let _ = socket.shutdown(Shutdown::Write);
    while since.elapsed() < LINGER && socket.read(&mut waste).is_ok_and(|bytes| bytes > 0) {}
}
