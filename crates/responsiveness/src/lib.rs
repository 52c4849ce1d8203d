//! An active probe: working conditions, probes beside and within them, and their round trips per minute (RPM); and its server.
//!
//! ```text
//! foreign = 60000 / ((TM(tcp_f) + TM(tls_f) + TM(http_f)) / 3)     TM: mean of the lowest 95 % [ms]
//! self    = 60000 / TM(http_l)                                     http_l: on the connections that carry the load
//! RPM     = (foreign + self) / 2
//! ```
//!
//! Source: "Responsiveness under Working Conditions", draft-ietf-ippm-responsiveness-09 (July 2026): the whole algorithm, its formula, its
//! confidence and its configuration. Where the draft leaves a choice, or says two things, this was taken:
//!
//! - The interval ID is 1 s, as in revisions 00 to 08 and in the reference client; revision 09 has 5 s "pending further investigation".
//!   [`Params::interval`] is the user's.
//! - MPS counts both kinds of probes: 50 pairs a second by default. That is what the draft's 2400 kbit/s are made of.
//! - PTC: a pair is taken for 6000 bytes, and the capacity for the goodput of the slower direction under load. Before the first interval
//!   has shown a goodput there are no probes.
//! - Standard deviations are those of a population (divided by n); the moving average of fewer than MAD intervals divides by those there are.
//! - Goodput is stable when that of every direction under load is. Where it is not after half of the time limit, the responsiveness is
//!   looked at all the same, with less confidence in the goodput: the draft's example gives each stage the same time.
//! - MNP counts each direction's connections. Once the responsiveness is stable, none is added any more.
//! - The trimmed mean leaves out the highest `floor(5 % of n)` values.
//! - Only TLS 1.3: its handshake is one round trip, so that there is nothing to normalise. Foreign connections resume nothing.
//! - A direction's goodput is the payload that the client received, or that it handed to a connection whose unsent data are bounded.
//! - One address of the server, the first that answers, is used for everything; its name is looked up once and before all measurement.
//! - Unsent data wait in the sender for 5 ms at most, by `TCP_NOTSENT_LOWAT`, as the draft asks for.
//! - A configuration that leads to another host than the one it came from is refused, and so is one of plain HTTP.
//!
//! Not done: HTTP/3, HTTP/1.1 at the client, discovery by DNS-SD, L4S. `params`, `score` and `algorithm` do no I/O and have no clock.

mod algorithm;
pub mod body;
mod client;
pub mod config;
mod pace;
mod params;
mod score;
mod server;
mod statistics;
mod trust;

pub use algorithm::{Action, Algorithm, Confidence, Report, Snapshot, Stage};
pub use client::{Error, Found, Load, Options, Target, measure};
pub use params::{Direction, Directions, Params};
pub use score::{Category, Foreign, Score};
pub use server::{Figures, Identity, ServeError, Server, Settings};
pub use trust::{Fingerprint, ParseFingerprintError, Trust, TrustError};
