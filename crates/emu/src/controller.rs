//! The controller as the emulator sees it: a program in the access point that answers on a Unix socket.
//!
//! Hosts of the project do not know each other: what comes back is raw JSON, which `cli` understands.

use crate::error::Error;
use crate::home::Home;
use crate::log::Log;
use crate::spawn::Child;
use lasthop_home::scenario::HostId;
use rustix::fs::{Mode, OFlags, open};
use std::io::{BufRead, BufReader, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How to start it and where it answers.
#[derive(Debug)]
pub struct ControllerCommand {
    /// For example `lasthop run --lan wlan0 --socket PATH`.
    pub command: Command,
    /// Connect, read until the end: one JSON object. Its path may go once the scenario runs.
    pub socket: PathBuf,
}

/// How long it may take to load its programs and answer.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long it may take to leave in good order.
const GRACE: Duration = Duration::from_secs(3);
/// Bytes of standard error that are kept.
const TAIL: usize = 4096;

/// A running controller.
pub struct Controller {
    child: Child,
    /// By descriptor once it has answered, so that its path can go and nothing is left after `kill -9`.
    socket: PathBuf,
    held: Option<OwnedFd>,
    last_words: Arc<Mutex<Vec<u8>>>,
}

impl Controller {
    /// Starts it in the access point and waits until it answers; what it says goes into `log`, too.
    ///
    /// # Errors
    /// [`Error::Controller`] when it ends or stays silent, [`Error::Stopped`] when `stop` is set meanwhile.
    pub fn start(home: &Home, it: ControllerCommand, log: Option<Arc<Log>>, stop: &AtomicBool) -> Result<Self, Error> {
        let ControllerCommand { mut command, socket } = it;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = home.spawn(HostId::AccessPoint, command)?;
        let last_words = Arc::new(Mutex::new(Vec::new()));
        if let Some(stderr) = child.take_stderr() {
            let words = Arc::clone(&last_words);
            let listen = move || keep_tail(stderr, &words, log.as_deref());
            thread::Builder::new()
                .name("controller".into())
                .spawn(listen)
                .map_err(Error::system("cannot start a thread"))?;
        }
        let mut controller = Self { child, socket, held: None, last_words };
        let deadline = Instant::now() + PATIENCE;
        while controller.status().is_none() {
            controller.check()?;
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Stopped);
            }
            if Instant::now() > deadline {
                return Err(controller.error(format!("did not answer on {}", controller.socket.display())));
            }
            thread::sleep(Duration::from_millis(20));
        }
        controller.hold_socket()?;
        Ok(controller)
    }

    /// connect(2) follows `/proc/self/fd/N` to the socket itself, which needs no name any more.
    fn hold_socket(&mut self) -> Result<(), Error> {
        let held = open(&self.socket, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| Error::system("cannot hold the controller's socket")(errno.into()))?;
        self.socket = PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()));
        self.held = Some(held);
        Ok(())
    }

    /// What it says of itself now; `None` when it does not answer.
    #[must_use]
    pub fn status(&self) -> Option<serde_json::Value> {
        ask(&self.socket)
    }

    /// Whether it still runs.
    ///
    /// # Errors
    /// [`Error::Controller`] when it ended.
    pub fn check(&mut self) -> Result<(), Error> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => {
                // Its last words may still be in the pipe.
                thread::sleep(Duration::from_millis(50));
                Err(self.error(format!("ended early ({status})")))
            }
            Err(error) => Err(self.error(format!("cannot be waited for ({error})"))),
        }
    }

    /// Ends it.
    pub fn stop(mut self) {
        self.child.stop(GRACE);
    }

    fn error(&self, what: String) -> Error {
        let words = self.last_words.lock().unwrap_or_else(PoisonError::into_inner);
        Error::Controller { what, stderr: String::from_utf8_lossy(&words).trim().to_owned() }
    }
}

fn ask(socket: &Path) -> Option<serde_json::Value> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(1))).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

fn keep_tail(from: impl Read, into: &Mutex<Vec<u8>>, log: Option<&Log>) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    // A line of more than TAIL bytes counts as several.
    while let Ok(1..) = from.by_ref().take(TAIL as u64).read_until(b'\n', &mut line) {
        if let Some(log) = log {
            log.say(String::from_utf8_lossy(&line).trim_end());
        }
        let mut words = into.lock().unwrap_or_else(PoisonError::into_inner);
        words.append(&mut line);
        let surplus = words.len().saturating_sub(TAIL);
        words.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_words_are_kept() {
        let words = Mutex::new(Vec::new());
        let said = format!("{}end", "x".repeat(10_000));
        keep_tail(said.as_bytes(), &words, None);
        let words = words.into_inner().unwrap();
        assert_eq!(words.len(), TAIL);
        assert!(words.ends_with(b"xend"));
    }

    #[test]
    fn a_socket_answers_by_its_descriptor_after_its_name_is_gone() {
        use std::io::Write as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let held = open(&path, OFlags::PATH, Mode::empty()).unwrap();
        drop(folder);
        let answer = thread::spawn(move || listener.accept().unwrap().0.write_all(b"{\"a\":1}").unwrap());
        let by_descriptor = PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()));
        assert_eq!(ask(&by_descriptor), Some(serde_json::json!({ "a": 1 })));
        answer.join().unwrap();
    }

    #[test]
    fn a_socket_that_is_not_there_gives_no_status() {
        assert_eq!(ask(Path::new("/nonexistent/lasthop.sock")), None);
    }
}
