//! A connection that is made again when it is lost, with pauses that double, while patience lasts.

use super::{Client, ClientError, Event, Failure, Session, Watch};
use crate::tuning::quantity::Size;
use std::thread;
use std::time::{Duration, Instant};

/// How long nothing may happen: longer than the longest inter-packet delay, the slowest packet, and than a server takes to
/// read again what it has of a message.
const IDLE: Duration = Duration::from_secs(120);
/// The first pause and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(8));
/// How often it is looked whether to stop.
const LOOK: Duration = Duration::from_millis(100);

/// See above.
pub(super) struct Link<'a> {
    client: &'a Client,
    receive_buffer: Option<Size>,
    session: Option<Session>,
    was_connected: bool,
    pause: Duration,
    /// When it went wrong first, since something was carried last.
    trouble: Option<Instant>,
    /// Time spent on making connections and waiting to.
    connecting: Duration,
}

/// What the work on a link tells.
pub(super) struct Notes<'w> {
    pub watch: Watch<'w>,
    /// Something has been carried that need not be carried again.
    pub moved: bool,
}

impl<'a> Link<'a> {
    pub fn new(client: &'a Client, receive_buffer: Option<Size>) -> Self {
        Self {
            client,
            receive_buffer,
            session: None,
            was_connected: false,
            pause: PAUSES.0,
            trouble: None,
            connecting: Duration::ZERO,
        }
    }

    /// Time spent on making connections and waiting to, so far.
    pub fn connecting(&self) -> Duration {
        self.connecting
    }

    /// Does `work`, again on a new connection when the one it had was lost.
    pub fn run<T>(
        &mut self,
        watch: Watch<'_>,
        mut work: impl FnMut(&mut Session, &mut Notes<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        loop {
            let mut notes = Notes { watch: &mut *watch, moved: false };
            let outcome = self.connected().and_then(|session| work(session, &mut notes));
            if outcome.is_ok() || notes.moved {
                (self.pause, self.trouble) = (PAUSES.0, None);
            }
            let failure = match outcome {
                Ok(done) => return Ok(done),
                Err(failure) => failure,
            };
            self.session = None;
            let Failure::Client(why) = &failure else { return Err(failure) };
            let Some(pause) = self.next_pause(why) else { return Err(failure) };
            watch(Event::Waits { why, pause });
            self.wait(pause)?;
        }
    }

    fn connected(&mut self) -> Result<&mut Session, Failure> {
        if self.session.is_none() {
            let since = Instant::now();
            let session = Session::open_until(&self.client.account, self.receive_buffer, IDLE, &self.client.stop);
            self.connecting += since.elapsed();
            self.session = Some(session?);
            self.was_connected = true;
        }
        self.session.as_mut().ok_or(Failure::Client(ClientError::Stopped))
    }

    /// How long to wait before another try; `None`: it does not help, or patience is at its end. A server that was never
    /// reached is not waited for: whoever asks is told at once. One that hung up has been reached, and may have had too many
    /// connections.
    fn next_pause(&mut self, why: &ClientError) -> Option<Duration> {
        let least = why.passes()?;
        if !self.was_connected && !why.was_reached() {
            return None;
        }
        let pause = self.pause.max(least);
        let trouble = self.trouble.get_or_insert_with(Instant::now);
        self.pause = (2 * self.pause).min(PAUSES.1);
        (trouble.elapsed() + pause <= self.client.patience).then_some(pause)
    }

    fn wait(&mut self, pause: Duration) -> Result<(), Failure> {
        let since = Instant::now();
        while since.elapsed() < pause && !self.client.is_stopped() {
            thread::sleep(LOOK.min(pause.saturating_sub(since.elapsed())));
        }
        self.connecting += since.elapsed();
        if self.client.is_stopped() { Err(ClientError::Stopped.into()) } else { Ok(()) }
    }

    /// Says goodbye.
    pub fn close(self) {
        if let Some(session) = self.session {
            session.close();
        }
    }
}
