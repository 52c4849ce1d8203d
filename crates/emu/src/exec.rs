//! Programs of `--exec` and `--exec-as-root`: started when frames move between the hosts, ended with the scenario.

use crate::error::Error;
use crate::home::Home;
use crate::options::Options;
use crate::spawn::Child;
use crate::user::User;
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
pub struct Orders {
    programs: Vec<Order>,
    end_with: Option<String>,
}

struct Order {
    host: HostId,
    as_root: bool,
    end: ProgramEnd,
}

/// Programs that run.
pub struct Programs {
    children: Vec<(ProgramEnd, Child)>,
    end_with: Option<String>,
}

impl Orders {
    /// Looks the hosts up of what `options` asks for.
    ///
    /// # Errors
    /// [`Error::UnknownHost`], [`Error::NothingToEndWith`].
    pub fn new(scenario: &Scenario, options: &Options) -> Result<Self, Error> {
        let Options { exec, exec_as_root, end_with, .. } = options;
        let id = |host: &str| {
            let known = || scenario.host_names().take(20).collect::<Vec<_>>().join(", ");
            scenario.host(host).ok_or_else(|| Error::UnknownHost { found: host.to_owned(), known: known() })
        };
        let find = |((host, command), as_root): (&(String, String), bool)| {
            let end = ProgramEnd { host: host.clone(), command: command.clone(), code: None };
            Ok(Order { host: id(host)?, as_root, end })
        };
        // Those of root's are there first: they set up what the others play in.
        let all = exec_as_root.iter().map(|it| (it, true)).chain(exec.iter().map(|it| (it, false)));
        let programs: Vec<_> = all.map(find).collect::<Result<_, Error>>()?;
        if let Some(host) = end_with {
            id(host)?;
            if !programs.iter().any(|order| order.end.host == *host) {
                return Err(Error::NothingToEndWith { host: host.clone() });
            }
        }
        Ok(Self { programs, end_with: end_with.clone() })
    }

    /// Whether the run may be over before its time.
    #[must_use]
    pub fn may_end_the_run(&self) -> bool {
        self.end_with.is_some()
    }

    /// Starts them. They write to our standard error: standard output is for data.
    ///
    /// # Errors
    /// [`Error::Spawn`].
    pub fn start(self, home: &Home) -> Result<Programs, Error> {
        let user = User::who_typed();
        let start = |Order { host, as_root, end }: Order| {
            let mut command = Command::new("sh");
            command.args(["-c", &end.command]).stdin(Stdio::null());
            if let Ok(stderr) = io::stderr().as_fd().try_clone_to_owned() {
                command.stdout(Stdio::from(stderr));
            }
            let child = if as_root { home.spawn(host, command) } else { home.spawn_as(&user, host, command) };
            Ok((end, child?))
        };
        let children = self.programs.into_iter().map(start).collect::<Result<_, Error>>()?;
        Ok(Programs { children, end_with: self.end_with })
    }
}

impl Programs {
    /// Whether all programs that the run is to end with have ended. Without such, never.
    pub fn are_over(&mut self) -> bool {
        let Some(host) = &self.end_with else { return false };
        let mut own = self.children.iter_mut().filter(|(program, _)| program.host == *host);
        // One that cannot be asked is gone.
        own.all(|(_, child)| !matches!(child.try_wait(), Ok(None)))
    }

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
        self.children.into_iter().map(finish).collect()
    }
}
