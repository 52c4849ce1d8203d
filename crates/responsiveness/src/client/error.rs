//! What keeps a load from running.

use std::io;
use std::net::SocketAddr;

use crate::config::ConfigError;
use crate::trust::TrustError;

/// Why there is no load, or no more.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not a URL that can be used.
    #[error("{0:?} is no URL of https with a host")]
    Url(String),
    /// Nobody can be believed.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The name is not known.
    #[error("cannot look up {0}")]
    Lookup(String, #[source] io::Error),
    /// No address of it answers.
    #[error("cannot connect to {0}: is the server running, and is its port open?")]
    Connect(SocketAddr, #[source] io::Error),
    /// TLS failed.
    #[error("no TLS 1.3 with {0}: if its certificate is one of its own, give its --fingerprint or --ca")]
    Tls(String, #[source] io::Error),
    /// It speaks no HTTP/2.
    #[error("{0} does not speak HTTP/2")]
    NoHttp2(String),
    /// HTTP failed.
    #[error("{what}: the connection failed")]
    Http {
        /// At what.
        what: &'static str,
        /// Why.
        #[source]
        cause: hyper::Error,
    },
    /// Another answer than 200.
    #[error("{what}: the server answered {status}{}", if status.is_redirection() { "; redirects are not followed" } else { "" })]
    Status {
        /// What was asked for.
        what: &'static str,
        /// The answer.
        status: hyper::StatusCode,
    },
    /// No answer in time.
    #[error("{what}: no answer within {seconds} s")]
    Late {
        /// What was asked for.
        what: &'static str,
        /// How long was waited.
        seconds: u64,
    },
    /// What was to be one byte is longer.
    #[error("the server's small object has more than {0} bytes; it is to have one")]
    NotSmall(usize),
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The configuration leads elsewhere.
    #[error("the configuration of {asked} sends the load to {found}; give the URL of the configuration that is there")]
    Elsewhere {
        /// Whose configuration it is.
        asked: String,
        /// Where it leads.
        found: String,
    },
    /// The configuration leads to another address, and nobody has to prove who it is.
    #[error("the configuration names a test_endpoint; without a check of certificates (--insecure) it is not followed")]
    UnprovenEndpoint,
    /// Nothing can be run.
    #[error("cannot start threads for the load")]
    Threads(#[source] io::Error),
    /// A load's connections all ended.
    #[error("the load has no connection any more")]
    Gone(#[source] Option<Box<Error>>),
    /// No probe came back.
    #[error("no probe came back, so that there is no responsiveness; is the path carrying anything?")]
    NoProbes,
    /// Somebody stopped it.
    #[error("stopped")]
    Stopped,
}
