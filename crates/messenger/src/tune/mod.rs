//! Finds the tuning of a device: measures it, says what limits it, and chooses what to do about it, in bounded time.
//!
//! Measured (`storage`, `path`) -> what the law expects of settings (`law`) -> candidates (`advise`) -> each tried with the
//! code that fetches and sends (`trial`) -> the simplest one among the fastest (`advise`) -> in words (`explain`).

pub mod advise;
pub mod explain;
pub mod law;
mod path;
pub mod storage;
#[cfg(test)]
mod tests;
mod trial;

use crate::account::Account;
use crate::client::{ClientError, Session};
use crate::tuning::quantity::Size;
use crate::tuning::{Profile, Tuning};
use advise::{MESSAGE_BYTES, Measured, Tried};
use law::{Direction, Limits};
use serde::Serialize;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use storage::{Nameless, ProbeError, probe};

/// Longest time that measuring may take.
pub const LONGEST: Duration = Duration::from_secs(20);
/// Shortest in which anything can be said.
pub const SHORTEST: Duration = Duration::from_secs(2);
/// Bytes that the file has which transfers are tried with.
const FILE_BYTES: u64 = 2 << 20;

/// How much longer than planned anything may take before it is cut.
const GRACE: Duration = Duration::from_millis(200);
/// How often it is looked whether to cut.
const LOOK: Duration = Duration::from_millis(20);

/// How the time is shared: parts of all of it.
const FOR_STORAGE: f64 = 0.16;
const FOR_PINGS: f64 = 0.03;
const PER_DIRECTION: f64 = 0.08;
const FOR_FETCH: f64 = 0.36;

/// What is to be tuned.
pub struct Request<'a> {
    /// With which server, as whom.
    pub account: &'a Account,
    /// Folder where messages go, and come from.
    pub storage: &'a Path,
    /// What there is.
    pub present: Profile,
    /// All of the time, [`SHORTEST`] to [`LONGEST`].
    pub limit: Duration,
}

/// Why a device could not be tuned.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// The server.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The storage.
    #[error("the storage cannot be measured")]
    Storage(#[source] ProbeError),
    /// The storage, later, or the socket.
    #[error("cannot measure")]
    Io(#[from] io::Error),
    /// Was told to stop.
    #[error("stopped")]
    Stopped,
    /// The path is too slow for this, or the time too short.
    #[error("the path is too slow to be measured in {} s; it may take up to {} s", .0.as_secs(), LONGEST.as_secs())]
    NoTime(Duration),
}

/// Settings of one direction, and what they give.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Settings {
    /// Themselves.
    pub tuning: Tuning,
    /// What the law says of them.
    pub limits: Limits,
    /// What a message of 1 MB is expected to take by the law, in seconds.
    pub expected_s: f64,
    /// What it takes as measured, in seconds, `fsync` left out; `None` when there was no time to try.
    pub measured_s: Option<f64>,
}

/// What was found for one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Found {
    /// What there was.
    pub before: Settings,
    /// What is proposed.
    pub after: Settings,
    /// Which of `tried` that is.
    pub chosen: usize,
    /// All that was tried, what there was first.
    pub tried: Vec<Tried>,
}

/// All that was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Before anything was tried.
    pub measured: Measured,
    /// Median round trip of the application, in seconds.
    pub median_rtt_s: f64,
    /// Messages to the device.
    pub fetch: Found,
    /// Messages from the device.
    pub send: Found,
    /// All of the time that it took, in seconds.
    pub took_s: f64,
}

impl Report {
    /// What is proposed.
    #[must_use]
    pub fn profile(&self) -> Profile {
        Profile { send: self.send.after.tuning, fetch: self.fetch.after.tuning }
    }
}

/// Measures, tries and chooses. `show` is told now and then what happens, and how much of the time is left. Nothing that
/// it writes is left behind.
///
/// # Errors
/// [`TuneError`]; `Stopped` soon after `stop` was set.
pub fn tune(
    request: &Request<'_>,
    stop: &Arc<AtomicBool>,
    show: &mut dyn FnMut(&str, Duration),
) -> Result<Report, TuneError> {
    let limit = request.limit.clamp(SHORTEST, LONGEST);
    let mut pace = Pace { since: Instant::now(), limit, stop, show, what: String::new(), connecting: Duration::ZERO };
    let account = request.account;
    pace.says("round trip");
    let (rtt_s, median_rtt_s) = path::round_trip(account, limit.mul_f64(FOR_PINGS), &mut pace)?;
    pace.says("storage");
    let unusable = |error| TuneError::Storage(ProbeError::Io(error));
    let mut file = Nameless::in_folder(request.storage, FILE_BYTES).map_err(unusable)?;
    let storage = probe(&mut file, limit.mul_f64(FOR_STORAGE), &mut || pace.go_on().is_ok());
    pace.go_on()?;
    let storage = storage.map_err(TuneError::Storage)?;
    pace.says("rate to the device");
    let down = path::down(account, rtt_s, limit.mul_f64(PER_DIRECTION), &mut pace)?;
    pace.says("rate from the device");
    let up = path::up(account, rtt_s, limit.mul_f64(PER_DIRECTION), &mut pace)?;
    let measured = Measured { storage, down, up };
    if !measured.storage.full {
        file.set_circle(FILE_BYTES);
    }
    let share = limit.mul_f64(FOR_FETCH);
    let fetch = find(request, Direction::Fetch, &measured, &mut file, share, &mut pace)?;
    let share = pace.left().mul_f64(0.95);
    let send = find(request, Direction::Send, &measured, &mut file, share, &mut pace)?;
    Ok(Report { measured, median_rtt_s, fetch, send, took_s: pace.since.elapsed().as_secs_f64() })
}

fn find(
    request: &Request<'_>,
    direction: Direction,
    measured: &Measured,
    file: &mut Nameless,
    share: Duration,
    pace: &mut Pace<'_>,
) -> Result<Found, TuneError> {
    let candidates = advise::candidates(direction, &direction.of(&request.present), measured);
    let tried = trial::try_all(request.account, direction, &candidates, file, share, pace)?;
    if tried.iter().all(|one| one.seconds.is_empty()) {
        return Err(TuneError::NoTime(request.limit));
    }
    let settings = |one: &Tried| Settings {
        tuning: one.candidate.tuning,
        limits: one.candidate.limits,
        expected_s: one.candidate.limits.seconds(MESSAGE_BYTES),
        measured_s: Some(one.median_s()).filter(|seconds| seconds.is_finite()),
    };
    let chosen = advise::choose(&tried);
    Ok(Found { before: settings(&tried[0]), after: settings(&tried[chosen]), chosen, tried })
}

/// The time, what happens in it, and whether to go on.
struct Pace<'a> {
    since: Instant,
    limit: Duration,
    stop: &'a Arc<AtomicBool>,
    show: &'a mut dyn FnMut(&str, Duration),
    what: String,
    /// The longest that it took to connect.
    connecting: Duration,
}

impl Pace<'_> {
    /// From here on this happens.
    fn says(&mut self, what: &str) {
        what.clone_into(&mut self.what);
        let left = self.left();
        (self.show)(&self.what, left);
    }

    /// An error when told to stop.
    fn go_on(&mut self) -> Result<(), TuneError> {
        let left = self.left();
        (self.show)(&self.what, left);
        if self.stop.load(Ordering::Relaxed) { Err(TuneError::Stopped) } else { Ok(()) }
    }

    fn left(&self) -> Duration {
        self.limit.saturating_sub(self.since.elapsed())
    }

    fn connecting_s(&self) -> f64 {
        self.connecting.as_secs_f64()
    }

    /// A session that is cut when told to stop, and after `longest`, or when all of the time is over.
    fn open(&mut self, account: &Account, buffer: Option<Size>, longest: Duration) -> Result<Session, TuneError> {
        let cut = cut_after(longest.min(self.left()) + GRACE, self.stop);
        let session = Session::open_until(account, buffer, path::IDLE, &cut);
        let session = session.map_err(|error| self.told(error))?;
        self.connecting = self.connecting.max(session.connecting());
        Ok(session)
    }

    /// Whether a session ended because its time was over.
    fn is_cut(&self, error: &ClientError) -> bool {
        matches!(error, ClientError::Stopped) && !self.stop.load(Ordering::Relaxed)
    }

    /// A cut where nothing can be made of what there is.
    fn told(&self, error: ClientError) -> TuneError {
        if self.is_cut(&error) { TuneError::NoTime(self.limit) } else { error.into() }
    }
}

/// Set once `stop` is, or when `longest` is over; not looked at any more when nobody else holds it.
fn cut_after(longest: Duration, stop: &Arc<AtomicBool>) -> Arc<AtomicBool> {
    let (cut, stop, since) = (Arc::new(AtomicBool::new(false)), Arc::clone(stop), Instant::now());
    let held = Arc::downgrade(&cut);
    thread::spawn(move || {
        while let Some(cut) = held.upgrade() {
            cut.store(since.elapsed() >= longest || stop.load(Ordering::Relaxed), Ordering::Relaxed);
            drop(cut);
            thread::sleep(LOOK);
        }
    });
    cut
}
