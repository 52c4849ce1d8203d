//! What can go wrong before and while a home runs.

use lasthop_home::scenario::ScenarioError;
use std::io;
use std::path::PathBuf;

/// Why a home could not be built or a run not be finished.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The scenario asks for what this host cannot do.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// Not enough rights.
    #[error("the emulator makes network namespaces and TAPs, which needs root; type: sudo lasthop ...")]
    NeedsRoot(#[source] io::Error),
    /// No TUN device.
    #[error("/dev/net/tun cannot be opened; type: sudo modprobe tun")]
    NoTun(#[source] io::Error),
    /// No FUSE device.
    #[error("the storage of {host} is served through /dev/fuse, which cannot be opened; type: sudo modprobe fuse")]
    NoFuse {
        /// Whose storage it would be.
        host: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// `ip` or `tc` is missing.
    #[error("the programs `ip` and `tc` cannot be run; type: sudo apt-get install iproute2")]
    NoIproute(#[source] io::Error),
    /// `socat` is missing.
    #[error(
        "the access point splits connections with the program `socat`, which cannot be run; type: sudo apt-get install socat"
    )]
    NoSocat(#[source] io::Error),
    /// `ip` or `tc` refused what we asked for.
    #[error("`ip` or `tc` in host {host} failed: {stderr}")]
    Configure {
        /// Whose network was configured.
        host: String,
        /// The last lines of what it said.
        stderr: String,
    },
    /// A system call failed in a way that has no better name.
    #[error("{what}")]
    System {
        /// What was attempted.
        what: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The stop flag was set.
    #[error("stopped before the end")]
    Stopped,
    /// `--exec` names a host that the scenario does not have.
    #[error("no host is called `{found}`; the scenario has {known}")]
    UnknownHost {
        /// What was asked for.
        found: String,
        /// The names that exist.
        known: String,
    },
    /// The run is to end with a program that nobody starts.
    #[error("the run cannot end with {host}: no program is started there")]
    NothingToEndWith {
        /// The host.
        host: String,
    },
    /// A program could not be started.
    #[error("`{program}` could not be started in host {host}")]
    Spawn {
        /// The program.
        program: String,
        /// The host.
        host: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The controller ended, or never answered on its socket.
    #[error("the controller {what}; its last words:\n{stderr}")]
    Controller {
        /// What happened.
        what: String,
        /// The end of its standard error.
        stderr: String,
    },
    /// A capture or a trace could not be written.
    #[error("cannot write {}", path.display())]
    Capture {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A flow's sockets failed.
    #[error("flow {flow}: {what}")]
    Flow {
        /// The flow.
        flow: String,
        /// What was attempted.
        what: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// Wraps a failed system call.
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::System { what, source }
    }
}
