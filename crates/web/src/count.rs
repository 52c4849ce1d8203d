//! What was refused, and how many watch: every refusal has a counter.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

/// Why a request or a connection was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its Host header names another place: a page of somebody else may have had this address looked up (DNS rebinding).
    Host,
    /// A page of somebody else sent it.
    Origin,
    /// Without a token, or a session, that allows it.
    Right,
    /// A token that is none of ours.
    Token,
    /// Too many wrong tokens came from there lately.
    Tries,
    /// As many watch as may.
    Viewers,
    /// As many connections are open as may be, in all or from one address.
    Connections,
    /// A request that is no HTTP, too long, or did not arrive in time.
    Request,
    /// A connection that takes nothing of what it asked for.
    Slow,
    /// A TLS handshake that failed or did not end in time.
    Handshake,
}

impl Refusal {
    const COUNT: usize = 10;
}

/// Counters since the start.
#[derive(Debug, Default)]
pub struct Counts {
    refused: [AtomicU64; Refusal::COUNT],
    /// Requests that were let in.
    requests: AtomicU64,
}

/// What is told of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Told {
    /// Requests that were let in.
    pub requests: u64,
    /// Wrong Host header.
    pub refused_host: u64,
    /// Sent by somebody else's page.
    pub refused_origin: u64,
    /// Without the right.
    pub refused_right: u64,
    /// Wrong token.
    pub refused_token: u64,
    /// Too many wrong tokens before.
    pub refused_tries: u64,
    /// Too many viewers.
    pub refused_viewers: u64,
    /// Too many connections.
    pub refused_connections: u64,
    /// No HTTP, too long or too late.
    pub refused_request: u64,
    /// Reads nothing.
    pub refused_slow: u64,
    /// No TLS.
    pub refused_handshake: u64,
}

impl Counts {
    /// One more.
    pub fn refuse(&self, why: Refusal) {
        self.refused[why as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// One request more that was let in.
    pub fn let_in(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// All of them.
    #[must_use]
    pub fn told(&self) -> Told {
        let of = |why: Refusal| self.refused[why as usize].load(Ordering::Relaxed);
        Told {
            requests: self.requests.load(Ordering::Relaxed),
            refused_host: of(Refusal::Host),
            refused_origin: of(Refusal::Origin),
            refused_right: of(Refusal::Right),
            refused_token: of(Refusal::Token),
            refused_tries: of(Refusal::Tries),
            refused_viewers: of(Refusal::Viewers),
            refused_connections: of(Refusal::Connections),
            refused_request: of(Refusal::Request),
            refused_slow: of(Refusal::Slow),
            refused_handshake: of(Refusal::Handshake),
        }
    }
}
