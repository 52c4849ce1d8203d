//! The client: a load that runs while somebody measures, and a test by itself.

mod connect;
mod discover;
mod driver;
mod error;
mod exchange;
mod load;
mod shared;

use hyper::Uri;
use lasthop_core::units::Span;

use crate::algorithm::{Report, Snapshot};
use crate::config::shortened;
use crate::params::{Directions, Params};
use crate::trust::Trust;

pub use self::error::Error;
pub use self::load::Load;
pub(crate) use self::load::runtime;

/// The server.
#[derive(Clone, Debug)]
pub struct Target {
    /// Of its configuration, https. Without a path: `/.well-known/nq`.
    pub url: Uri,
    /// Whose certificates are believed.
    pub trust: Trust,
}

impl Target {
    /// The server at `url`, for which https is put where no scheme is.
    ///
    /// # Errors
    /// Where it is no URL of https with a host.
    pub fn new(url: &str, trust: Trust) -> Result<Self, Error> {
        let whole = if url.contains("://") { url.to_owned() } else { format!("https://{url}") };
        let wrong = || Error::Url(shortened(url));
        let url: Uri = whole.parse().map_err(|_| wrong())?;
        discover::parts(&url).map_err(|_| wrong())?;
        Ok(Self { url, trust })
    }
}

/// What a load does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The draft's parameters.
    pub params: Params,
    /// Which directions are loaded.
    pub directions: Directions,
}

/// The test of the draft by itself: until it is stable or [`Params::limit`] is over, or until `is_stopped` says so. Calls `progress` about
/// five times a second.
///
/// # Errors
/// Where the server cannot be used or a connection of the load ends with an error: the draft aborts the test then.
/// [`Error::Stopped`] where `is_stopped` said so; [`Error::NoProbes`] where no probe came back.
pub fn measure(
    target: &Target,
    options: Options,
    mut progress: impl FnMut(&Snapshot),
    is_stopped: impl Fn() -> bool,
) -> Result<Found, Error> {
    let limit = options.params.limit.unwrap_or(Span::from_secs(20));
    let params = Params { limit: Some(limit), ..options.params };
    let load = Load::begin(target, Options { params, ..options }, true)?;
    loop {
        if is_stopped() {
            return Err(Error::Stopped);
        }
        if let Some(error) = load.take_error() {
            return Err(error);
        }
        if load.is_finished() {
            break;
        }
        progress(&load.snapshot());
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    let idle_ms = load.idle_ms();
    let report = load.report().ok_or(Error::NoProbes)?;
    Ok(Found { report, idle_ms })
}

/// What a test found.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Found {
    /// The result under load.
    #[serde(flatten)]
    pub report: Report,
    /// What a TCP handshake took before there was a load, ms.
    pub idle_ms: f64,
}
