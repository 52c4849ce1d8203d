//! What the controller says now: read once per tick for all who watch, and only while somebody does.
//!
//! A reading is put into words once, as one event of Server-Sent Events, and every viewer gets the same bytes. The channel keeps the
//! newest alone: who reads slowly loses what he missed and holds up nobody.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use lasthop_status::QueryError;
use lasthop_status::command::{self, Answer, Request};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::{Mutex, Notify, watch};
use tokio::time::timeout;

use crate::follow::Log;

/// Longest status, bytes: one with all of its flows has 300 kB.
const LONGEST: u64 = 2 << 20;
/// Who does not answer for so long does not answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Where nobody answers, he is asked no more often.
const REST: Duration = Duration::from_secs(1);
/// A log that has not grown for so long is told to stand still.
const STANDS_STILL: Duration = Duration::from_secs(3);

/// Where statuses come from.
#[derive(Debug)]
pub enum From {
    /// The status socket of a controller.
    Socket(PathBuf),
    /// The log of an emulation.
    Log(PathBuf),
}

/// One event as it goes to the page: `data: {..}` and an empty line.
#[derive(Debug, Serialize)]
struct Event<'a> {
    /// Absent where nobody answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'a RawValue>,
    /// Why there is none, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    nobody: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log: Option<OfLog<'a>>,
}

/// Of an emulation.
#[derive(Debug, Serialize)]
struct OfLog<'a> {
    /// Seconds into the scenario.
    t_s: f64,
    /// What the controller said last, and when.
    said: Vec<&'a (f64, String)>,
}

/// A reading, made an event.
#[derive(Clone, Debug)]
pub struct Reading {
    /// For viewers.
    pub event: Bytes,
    /// Somebody answered.
    pub is_status: bool,
}

#[derive(Debug)]
struct State {
    last: Option<(Instant, Reading)>,
    log: Option<Log>,
    grew_at: Instant,
}

/// See the module.
#[derive(Debug)]
pub struct Source {
    from: From,
    every: Duration,
    /// What is said beside "nobody answers".
    meanwhile: Option<String>,
    state: Mutex<State>,
    newest: watch::Sender<Bytes>,
    viewers: AtomicUsize,
    somebody_came: Notify,
}

/// Somebody who watches, until it is dropped.
#[derive(Debug)]
pub struct Viewer {
    source: Arc<Source>,
    /// The newest event.
    pub events: watch::Receiver<Bytes>,
}

impl Source {
    /// One that is read at most once in `every`.
    #[must_use]
    pub fn new(from: From, every: Duration, meanwhile: Option<String>) -> Self {
        let log = match &from {
            From::Log(path) => Some(Log::new(path)),
            From::Socket(_) => None,
        };
        Self {
            from,
            every,
            meanwhile,
            state: Mutex::new(State { last: None, log, grew_at: Instant::now() }),
            newest: watch::Sender::new(Bytes::new()),
            viewers: AtomicUsize::new(0),
            somebody_came: Notify::new(),
        }
    }

    /// Whether it is an emulation's log.
    #[must_use]
    pub fn is_log(&self) -> bool {
        matches!(self.from, From::Log(_))
    }

    /// Time between two readings.
    #[must_use]
    pub fn every(&self) -> Duration {
        self.every
    }

    /// How many watch.
    #[must_use]
    pub fn viewers(&self) -> usize {
        self.viewers.load(Ordering::Relaxed)
    }

    /// One viewer more; `None` where `most` watch already.
    #[must_use]
    pub fn watch(self: &Arc<Self>, most: usize) -> Option<Viewer> {
        if self.viewers() >= most {
            return None;
        }
        self.viewers.fetch_add(1, Ordering::Relaxed);
        self.somebody_came.notify_one();
        Some(Viewer { source: Arc::clone(self), events: self.newest.subscribe() })
    }

    /// The newest reading, of now or of this tick.
    pub async fn latest(&self) -> Reading {
        self.read(self.every).await
    }

    /// One of before, if it is younger than this.
    async fn read(&self, than: Duration) -> Reading {
        let mut state = self.state.lock().await;
        if let Some((at, reading)) = &state.last
            && at.elapsed() < than
        {
            return reading.clone();
        }
        let reading = match &self.from {
            From::Socket(path) => of_socket(query(path).await, self.meanwhile.as_deref()),
            From::Log(path) => of_log(path, &mut state, self.meanwhile.as_deref()),
        };
        state.last = Some((Instant::now(), reading.clone()));
        reading
    }

    /// Reads and tells, for ever.
    pub async fn run(&self) {
        loop {
            if self.viewers() == 0 {
                // What was told last is old when the next one comes.
                self.newest.send_replace(Bytes::new());
                self.somebody_came.notified().await;
                continue;
            }
            let begun = Instant::now();
            // A tick that comes early by a hair reads as well; what somebody who came a moment ago had read is of this tick.
            let reading = self.read(self.every / 2).await;
            let rest = if reading.is_status { self.every } else { self.every.max(REST) };
            self.newest.send_replace(reading.event);
            tokio::time::sleep(rest.saturating_sub(begun.elapsed())).await;
        }
    }

    /// The status as JSON, for one who asks once.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn status(&self) -> Result<Vec<u8>, String> {
        match &self.from {
            From::Socket(path) => {
                // The controller serves eight at once: those who ask here come one after the other.
                let _one = self.state.lock().await;
                query(path).await.map_err(|error| error.to_string())
            }
            From::Log(_) => {
                self.latest().await;
                let state = self.state.lock().await;
                let status = state.log.as_ref().and_then(|log| log.lines.status.as_ref());
                status
                    .map(|status| status.get().as_bytes().to_vec())
                    .ok_or_else(|| "the log has no status yet".to_owned())
            }
        }
    }

    /// Asks the controller to do something.
    ///
    /// # Errors
    /// Nobody was asked, and why.
    pub async fn command(&self, request: &Request) -> Result<Answer, String> {
        let From::Socket(path) = &self.from else {
            return Err(
                "a log takes no commands; watch the emulation by its socket: lasthop emulate --socket PATH".to_owned()
            );
        };
        let path = command::path(path);
        let failed = |error| failure(&path, error).to_string();
        let asked = async {
            let mut stream = UnixStream::connect(&path).await?;
            let mut line = serde_json::to_vec(request).map_err(io::Error::from)?;
            line.push(b'\n');
            stream.write_all(&line).await?;
            stream.shutdown().await?;
            whole(stream).await
        };
        let text = patiently(asked).await.map_err(failed)?;
        serde_json::from_slice(&text)
            .map_err(|source| QueryError::NotAStatus { path: path.clone(), source }.to_string())
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        self.source.viewers.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn query(path: &Path) -> Result<Vec<u8>, QueryError> {
    let asked = async { whole(UnixStream::connect(path).await?).await };
    let text = patiently(asked).await.map_err(|error| failure(path, error))?;
    lasthop_status::whole(path, &text)?;
    Ok(text)
}

async fn patiently<T>(asked: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(PATIENCE, asked).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

async fn whole(stream: UnixStream) -> io::Result<Vec<u8>> {
    let mut text = Vec::with_capacity(16 << 10);
    stream.take(LONGEST).read_to_end(&mut text).await?;
    Ok(text)
}

fn failure(path: &Path, source: io::Error) -> QueryError {
    match source.kind() {
        io::ErrorKind::PermissionDenied => QueryError::NotAllowed { path: path.to_owned() },
        _ => QueryError::NobodyThere { path: path.to_owned(), source },
    }
}

fn of_socket(answer: Result<Vec<u8>, QueryError>, meanwhile: Option<&str>) -> Reading {
    let said = answer.as_ref().ok().and_then(|text| serde_json::from_slice::<&RawValue>(text).ok());
    let status = said.filter(|text| text.get().starts_with('{'));
    let nobody = match (&answer, status, meanwhile) {
        (_, Some(_), _) => None,
        (Err(QueryError::NobodyThere { .. }), None, Some(meanwhile)) => Some(meanwhile.to_owned()),
        (Err(error), ..) => Some(error.to_string()),
        (Ok(_), None, _) => Some("what answers at the socket is no controller".to_owned()),
    };
    event(&Event { status, nobody, log: None })
}

fn of_log(path: &Path, state: &mut State, meanwhile: Option<&str>) -> Reading {
    let Some(log) = &mut state.log else { return event(&Event { status: None, nobody: None, log: None }) };
    let nobody = match log.read() {
        Ok(true) => {
            state.grew_at = Instant::now();
            None
        }
        Ok(false) if state.grew_at.elapsed() < STANDS_STILL => None,
        Ok(false) => Some(format!("{} does not grow: the emulation has ended, or stands still", path.display())),
        Err(error) => Some(match meanwhile {
            Some(meanwhile) => meanwhile.to_owned(),
            None => format!("the log {} cannot be read: {error}", path.display()),
        }),
    };
    let nobody = nobody.or_else(|| log.lines.status.is_none().then(|| "the log has no status yet".to_owned()));
    let status = log.lines.status.as_deref().filter(|_| nobody.is_none());
    event(&Event { status, nobody, log: Some(OfLog { t_s: log.lines.t_s, said: log.lines.said.iter().collect() }) })
}

/// One line of data: what ends a line within JSON is only ever space.
fn event(event: &Event<'_>) -> Reading {
    let mut text = Vec::with_capacity(event.status.map_or(0, |status| status.get().len()) + 1024);
    text.extend_from_slice(b"data: ");
    // Text and numbers, which cannot fail.
    let _ = serde_json::to_writer(&mut text, event);
    text.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
    text.extend_from_slice(b"\n\n");
    Reading { event: text.into(), is_status: event.status.is_some() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(reading: &Reading) -> &str {
        std::str::from_utf8(&reading.event).unwrap()
    }

    #[test]
    fn a_status_goes_to_the_page_as_it_is_in_one_line() {
        let reading = of_socket(Ok(b"{\n  \"pid\": 7,\r\n \"a\": \"b\\nc\" }".to_vec()), None);
        assert_eq!(text(&reading), "data: {\"status\":{   \"pid\": 7,   \"a\": \"b\\nc\" }}\n\n");
    }

    #[test]
    fn what_is_no_status_is_said() {
        for odd in ["7", "[]"] {
            let reading = of_socket(Ok(odd.as_bytes().to_vec()), None);
            assert!(!reading.is_status && text(&reading).contains("no controller"), "{odd}");
        }
        let gone = || QueryError::NobodyThere { path: "/x".into(), source: io::ErrorKind::NotFound.into() };
        assert!(text(&of_socket(Err(gone()), None)).contains("lasthop run"));
        assert_eq!(text(&of_socket(Err(gone()), Some("soon"))), "data: {\"nobody\":\"soon\"}\n\n");
    }
}
