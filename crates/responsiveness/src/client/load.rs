//! A load that runs in threads of its own while somebody measures.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lasthop_core::units::Time;
use tokio::runtime::{Builder, Runtime};

use super::discover::discover;
use super::driver::drive;
use super::error::Error;
use super::shared::Shared;
use super::{Options, Target};
use crate::algorithm::{Algorithm, Report, Snapshot};
use crate::params::Params;

/// How long the end of a load may take.
const FAREWELL: Duration = Duration::from_secs(1);

/// Working conditions that are kept until this is stopped or dropped.
pub struct Load {
    runtime: Option<Runtime>,
    shared: Arc<Shared>,
}

impl Load {
    /// Fetches the server's configuration and starts the load, which grows for some intervals and goes on until it is stopped, whatever
    /// [`Params::limit`] says. A connection that fails is opened again.
    ///
    /// # Errors
    /// Where the server cannot be reached or used; after at most about half a minute.
    pub fn start(target: &Target, options: Options) -> Result<Self, Error> {
        Self::begin(target, Options { params: options.params.without_end(), ..options }, false)
    }

    pub(super) fn begin(target: &Target, options: Options, ends_with_errors: bool) -> Result<Self, Error> {
        let runtime = runtime("lasthop-load").map_err(Error::Threads)?;
        let server = runtime.block_on(discover(target))?;
        let params = Params { most_connections: options.params.most_connections.min(64), ..options.params };
        let algorithm = Algorithm::new(params, options.directions, Time::ZERO);
        let shared = Arc::new(Shared::new(server, algorithm, ends_with_errors));
        runtime.spawn(drive(Arc::clone(&shared)));
        Ok(Self { runtime: Some(runtime), shared })
    }

    /// The responsiveness from `from` until now: that of all intervals within, whole. `None` where they have no probes of both kinds.
    #[must_use]
    pub fn responsiveness_since(&self, from: Instant) -> Option<Report> {
        self.responsiveness_between(from, Instant::now())
    }

    /// The responsiveness between two instants: that of all intervals within, whole, so that up to one interval at each end is left
    /// out. As far back as [`Params::kept_intervals`] go.
    #[must_use]
    pub fn responsiveness_between(&self, from: Instant, until: Instant) -> Option<Report> {
        self.shared.algorithm().between(self.shared.at(from), self.shared.at(until))
    }

    /// How it stands.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.shared.algorithm().snapshot()
    }

    /// Connections that carry load right now.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.carriers()
    }

    /// Why there is no load any more, once: for half a minute no connection was left.
    #[must_use]
    pub fn take_error(&self) -> Option<Error> {
        self.shared.take_error()
    }

    /// What a TCP handshake took before there was a load, ms.
    #[must_use]
    pub fn idle_ms(&self) -> f64 {
        self.shared.server.idle_ms
    }

    /// Ends the load and all of its connections.
    pub fn stop(self) {}

    pub(super) fn is_finished(&self) -> bool {
        self.shared.algorithm().is_finished()
    }

    pub(super) fn report(&self) -> Option<Report> {
        self.shared.algorithm().report()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(FAREWELL);
        }
    }
}

/// Probes and load share the threads; two at least, so that neither waits for the other's cryptography.
pub(crate) fn runtime(name: &str) -> std::io::Result<Runtime> {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    Builder::new_multi_thread().worker_threads(cores.clamp(2, 4)).thread_name(name).enable_all().build()
}
