//! How the program ends: 0 done, 1 the work failed, 2 the request was wrong, 128 + n ended by signal n; after programs that were
//! started on request, the code of the first that failed.
//!
//! The last is the shell's own convention (130 after Ctrl-C, 143 after SIGTERM); everything was cleaned up before.

use std::error::Error;
use std::io::Write as _;
use std::process::ExitCode;

use crate::terminal::{Look, Tone};

/// What went wrong, with its causes; text becomes one, too.
pub type Cause = Box<dyn Error + Send + Sync>;

/// Why a command did not do what was asked.
#[derive(Debug)]
pub enum Failure {
    /// The request was fine and the work failed.
    Work(Cause),
    /// The request was wrong: an argument, a scenario, a configuration.
    Request(Cause),
    /// A signal ended the work; nothing is left behind.
    Signal(i32),
    /// A signal ended the work; what was done is kept, and the text says how to go on.
    Paused(i32, String),
    /// The work is done, and a program that was started on request failed: its exit code, 1..=255, becomes ours. The text says which.
    Program(u8, String),
}

/// What every command returns.
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// The request was wrong for the reason that `cause` gives.
    pub fn request(cause: impl Into<Cause>) -> Self {
        Self::Request(cause.into())
    }

    /// The work failed for the reason that `cause` gives.
    pub fn work(cause: impl Into<Cause>) -> Self {
        Self::Work(cause.into())
    }

    /// What went wrong, with its causes, in one line.
    #[must_use]
    pub fn why(&self) -> String {
        match self {
            Self::Work(cause) | Self::Request(cause) => chain(&**cause),
            Self::Signal(_) => "stopped; nothing is left behind".to_owned(),
            Self::Paused(_, how) => format!("stopped; {how}"),
            Self::Program(_, which) => which.clone(),
        }
    }

    /// Says on stderr what went wrong, with its causes, and gives the exit code.
    #[must_use]
    pub fn tell(&self) -> ExitCode {
        let code = match self {
            Self::Work(_) => ExitCode::from(1),
            Self::Request(_) => ExitCode::from(2),
            Self::Signal(signal) | Self::Paused(signal, _) => by_signal(*signal),
            Self::Program(code, _) => ExitCode::from(*code),
        };
        // The code says it too when nobody reads this; `eprintln!` would panic and end with another one.
        let name = Look::stderr().paint(Tone::Bad, "lasthop:");
        let _ = writeln!(std::io::stderr(), "{name} {}", self.why());
        code
    }
}

fn by_signal(signal: i32) -> ExitCode {
    ExitCode::from(u8::try_from(128 + signal).unwrap_or(1))
}

impl<E: Into<Cause>> From<E> for Failure {
    fn from(cause: E) -> Self {
        Self::work(cause)
    }
}

/// An error with its causes, in one line.
#[must_use]
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}
