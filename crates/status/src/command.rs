//! What a running controller can be asked to do: pause something, and resume it.
//!
//! The command socket is beside the status socket ([`path`]) and its owner's alone. A client writes one [`Request`] as JSON in one line
//! and reads one [`Answer`] until the end. What is paused goes on by itself after the time that was asked for, so that a client
//! that dies leaves nothing behind.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{PATIENCE, PauseStatus, QueryError};

/// Longest request, bytes.
pub const LONGEST_REQUEST: usize = 1024;
/// Longest pause that ends by itself, s: a week.
pub const LONGEST_PAUSE: f64 = 7.0 * 86_400.0;
/// Most pauses at once.
pub const MOST_PAUSES: usize = 256;

/// A part of control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// TCP's windows are lowered.
    Windows,
    /// Windows are advertised between acknowledgments.
    Updates,
    /// UDP flows that behave like downloads are marked, or dropped where they take no marks.
    Udp,
    /// Levers and MAC settings of radios ([`super::LeverStatus`]) are moved; paused, they stand as they were found.
    Levers,
    /// Other settings of levers are tried; paused, what was decided stays in force.
    Trials,
}

impl What {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Windows, Self::Updates, Self::Udp, Self::Levers, Self::Trials];
    /// What control consists of: with these paused nothing is acted on.
    pub const CONTROL: [Self; 4] = [Self::Windows, Self::Updates, Self::Udp, Self::Levers];

    /// Whether it can be paused for one device.
    #[must_use]
    pub const fn is_of_devices(self) -> bool {
        matches!(self, Self::Windows | Self::Udp)
    }

    /// As messages name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Windows => "window control",
            Self::Updates => "window updates",
            Self::Udp => "UDP marking",
            Self::Levers => "moving levers",
            Self::Trials => "trying levers",
        }
    }
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Leave it alone for a while. What is paused already is paused for the new time.
    Pause {
        /// What.
        what: What,
        /// [`super::DeviceStatus::id`] of a device, or its name; absent: for all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        device: Option<String>,
        /// For how long, s; absent: until it is resumed, or the controller ends.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        for_s: Option<f64>,
    },
    /// Go on with it now. What is not paused is no error.
    Resume {
        /// What.
        what: What,
        /// As in [`Request::Pause`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        device: Option<String>,
    },
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// It is done; what is paused now.
    Done(Vec<PauseStatus>),
    /// It cannot be done, and why.
    Refused(String),
}

/// Where a controller that serves its status at `status` takes commands.
#[must_use]
pub fn path(status: &Path) -> PathBuf {
    let mut path = OsString::from(status);
    path.push(".command");
    PathBuf::from(path)
}

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// Nobody could be asked.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// It was refused.
    #[error("the controller refused: {0}")]
    Refused(String),
}

/// Asks the controller that serves its status at `status`; what is paused then.
///
/// # Errors
/// Says what the caller can do.
pub fn ask(status: &Path, request: &Request) -> Result<Vec<PauseStatus>, CommandError> {
    let path = path(status);
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::PermissionDenied => QueryError::NotAllowed { path: path.clone() },
        _ => QueryError::NobodyThere { path: path.clone(), source },
    };
    let not_an_answer = |source| QueryError::NotAStatus { path: path.clone(), source };
    let mut stream = UnixStream::connect(&path).map_err(failed)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    let mut line = serde_json::to_vec(request).map_err(not_an_answer)?;
    line.push(b'\n');
    stream.write_all(&line).map_err(failed)?;
    stream.shutdown(Shutdown::Write).map_err(failed)?;
    let mut text = Vec::new();
    stream.read_to_end(&mut text).map_err(failed)?;
    match serde_json::from_slice(&text).map_err(not_an_answer)? {
        Answer::Done(paused) => Ok(paused),
        Answer::Refused(why) => Err(CommandError::Refused(why)),
    }
}
