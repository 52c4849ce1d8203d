//! Programs of `--exec`: started with the scenario, ended with it.

use crate::error::Error;
use crate::home::Home;
use crate::spawn::Child;
use lasthop_home::scenario::{HostId, Scenario};
use std::io;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::time::Duration;

/// What a program gets between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_millis(500);

/// What became of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramEnd {
    /// Name of its host, as asked for.
    pub host: String,
    /// Its command line.
    pub command: String,
    /// Exit code, 128 + n after signal n; `None`: it still ran at the end and was stopped.
    pub code: Option<i32>,
}

/// Programs whose hosts exist.
pub struct Orders(Vec<(HostId, ProgramEnd)>);

/// Programs that run.
pub struct Programs(Vec<(ProgramEnd, Child)>);

impl Orders {
    /// Looks the hosts up.
    ///
    /// # Errors
    /// [`Error::UnknownHost`].
    pub fn new(scenario: &Scenario, exec: Vec<(String, String)>) -> Result<Self, Error> {
        let find = |(host, command): (String, String)| match scenario.host(&host) {
            Some(id) => Ok((id, ProgramEnd { host, command, code: None })),
            None => {
                let known: Vec<_> = scenario.host_names().take(20).collect();
                Err(Error::UnknownHost { found: host, known: known.join(", ") })
            }
        };
        exec.into_iter().map(find).collect::<Result<_, _>>().map(Self)
    }

    /// Starts them. They write to our standard error: standard output is for data.
    ///
    /// # Errors
    /// [`Error::Spawn`].
    pub fn start(self, home: &Home) -> Result<Programs, Error> {
        let start = |(host, end): (HostId, ProgramEnd)| {
            let mut command = Command::new("sh");
            command.args(["-c", &end.command]).stdin(Stdio::null());
            if let Ok(stderr) = io::stderr().as_fd().try_clone_to_owned() {
                command.stdout(Stdio::from(stderr));
            }
            Ok((end, home.spawn(host, command)?))
        };
        self.0.into_iter().map(start).collect::<Result<_, _>>().map(Programs)
    }
}

impl Programs {
    /// Ends those that still run.
    #[must_use]
    pub fn finish(self) -> Vec<ProgramEnd> {
        let finish = |(mut end, mut child): (ProgramEnd, Child)| {
            match child.try_wait() {
                Ok(Some(status)) => end.code = status.code(),
                _ => child.stop(GRACE),
            }
            end
        };
        self.0.into_iter().map(finish).collect()
    }
}
