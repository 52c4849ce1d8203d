//! How the program ends: 0 done, 1 the work failed, 2 the request was wrong, 128 + n ended by signal n.
//!
//! The last is the shell's own convention (130 after Ctrl-C, 143 after SIGTERM); everything was cleaned up before.

use std::io::Write as _;
use std::process::ExitCode;

/// Why a command did not do what was asked.
#[derive(Debug)]
pub enum Failure {
    /// The request was fine and the work failed.
    Work(anyhow::Error),
    /// The request was wrong: an argument, a scenario, a configuration.
    Request(anyhow::Error),
    /// A signal ended the work; nothing is left behind.
    Signal(i32),
    /// A signal ended the work; what was done is kept, and the text says how to go on.
    Paused(i32, String),
}

/// What every command returns.
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// The request was wrong for the reason `error` gives.
    pub fn request(error: impl Into<anyhow::Error>) -> Self {
        Self::Request(error.into())
    }

    /// Says on stderr what went wrong, with its causes, and gives the exit code.
    pub fn tell(&self) -> ExitCode {
        let (why, code) = match self {
            Self::Work(error) => (format!("{error:#}"), ExitCode::from(1)),
            Self::Request(error) => (format!("{error:#}"), ExitCode::from(2)),
            Self::Signal(signal) => ("stopped; nothing is left behind".to_owned(), by_signal(*signal)),
            Self::Paused(signal, how) => (format!("stopped; {how}"), by_signal(*signal)),
        };
        // The code says it too when nobody reads this; `eprintln!` would panic and end with another one.
        let _ = writeln!(std::io::stderr(), "lasthop: {why}");
        code
    }
}

fn by_signal(signal: i32) -> ExitCode {
    ExitCode::from(u8::try_from(128 + signal).unwrap_or(1))
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Work(error)
    }
}
