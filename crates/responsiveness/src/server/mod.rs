//! The server: a small object, a large one, a place for uploads, and its configuration, over TLS 1.3 and HTTP/2 (HTTP/1.1 for clients
//! whose probes speak that).
//!
//! Nothing is sent to anybody who has not done a TLS handshake from his address, so that it amplifies nothing; but whoever reaches it can
//! fill the line to it. It is to be reached from home only. Connections and loads are bounded, refusals are counted, and who asks
//! for nothing for 5 s, or makes no progress for a minute, is disconnected. It needs no rights.

mod answer;
mod identity;
mod listen;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;
use tokio::runtime::Runtime;

pub use self::identity::Identity;
use crate::client::runtime;
use crate::trust::Fingerprint;

/// How a server is to be run.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The most connections at once; further ones are closed at once.
    pub connections: usize,
    /// The most downloads and uploads at once; further ones are answered with 503.
    pub loads: usize,
    /// How long a connection may ask for nothing. Some clients leave those of their probes open.
    pub idle: Duration,
    /// How long a connection whose requests are being answered may make no progress: no further request, and no byte of a load.
    pub patience: Duration,
}

impl Settings {
    /// With bounds for a home: two clients with 16 connections in each direction, and those of 100 probes a second that are left open for
    /// 5 s.
    #[must_use]
    pub const fn on(listen: SocketAddr) -> Self {
        Self { listen, connections: 1000, loads: 64, idle: Duration::from_secs(5), patience: Duration::from_secs(60) }
    }
}

/// What keeps a server from running.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// It cannot listen there.
    #[error("cannot listen on {0}: is the port in use, or below 1024?")]
    Listen(SocketAddr, #[source] io::Error),
    /// No certificate can be made.
    #[error("cannot make a certificate")]
    Make(#[source] rcgen::Error),
    /// The files are no PEM.
    #[error("{0} is no PEM with what is needed")]
    Pem(&'static str, #[source] rustls::pki_types::pem::Error),
    /// Certificate and key are of no use.
    #[error("certificate and key cannot be used together")]
    Unusable(#[source] rustls::Error),
    /// Nothing can be run.
    #[error("cannot start threads for the server")]
    Threads(#[source] io::Error),
}

/// What a server did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// Connections that were accepted.
    pub connections: u64,
    /// Connections that were closed at once, because there were too many.
    pub refused_connections: u64,
    /// Connections whose TLS handshake failed or took too long.
    pub failed_handshakes: u64,
    /// Connections that asked for nothing and were closed.
    pub idle_connections: u64,
    /// Connections that made no progress and were closed.
    pub stalled_connections: u64,
    /// Requests.
    pub requests: u64,
    /// Downloads and uploads that were refused, because there were too many.
    pub refused_loads: u64,
    /// Payload of downloads, in bytes.
    pub sent_bytes: u64,
    /// Payload of uploads, in bytes.
    pub received_bytes: u64,
}

/// [`Figures`], as they grow.
#[derive(Debug, Default)]
struct Counters {
    connections: AtomicU64,
    refused_connections: AtomicU64,
    failed_handshakes: AtomicU64,
    idle_connections: AtomicU64,
    stalled_connections: AtomicU64,
    requests: AtomicU64,
    refused_loads: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// A server that runs until it is dropped.
pub struct Server {
    runtime: Option<Runtime>,
    address: SocketAddr,
    fingerprint: Fingerprint,
    counters: Arc<Counters>,
}

impl Server {
    /// Listens and answers, in threads of its own.
    ///
    /// # Errors
    /// Where it cannot.
    pub fn start(settings: Settings, identity: &Identity) -> Result<Self, ServeError> {
        let runtime = runtime("lasthop-serve").map_err(ServeError::Threads)?;
        let tls = identity.server_config()?;
        let cannot = |error| ServeError::Listen(settings.listen, error);
        let listener = runtime.block_on(listen::listener(settings.listen)).map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let counters = Arc::new(Counters::default());
        runtime.spawn(listen::accept(listener, tls, settings, Arc::clone(&counters)));
        Ok(Self { runtime: Some(runtime), address, fingerprint: identity.fingerprint(), counters })
    }

    /// Where it listens: the port is known now if it was 0.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What clients know its certificate by.
    #[must_use]
    pub const fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// What it did so far.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let now = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &*self.counters;
        Figures {
            connections: now(&counters.connections),
            refused_connections: now(&counters.refused_connections),
            failed_handshakes: now(&counters.failed_handshakes),
            idle_connections: now(&counters.idle_connections),
            stalled_connections: now(&counters.stalled_connections),
            requests: now(&counters.requests),
            refused_loads: now(&counters.refused_loads),
            sent_bytes: now(&counters.sent),
            received_bytes: now(&counters.received),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(1));
        }
    }
}
