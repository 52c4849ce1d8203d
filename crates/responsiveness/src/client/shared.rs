//! What the tasks of one load share.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use hyper::client::conn::http2::SendRequest;
use lasthop_core::units::Time;
use tokio::sync::Notify;

use super::discover::Server;
use super::error::Error;
use crate::algorithm::Algorithm;
use crate::body::Payload;
use crate::params::Direction;

/// The state of a load.
pub struct Shared {
    pub server: Server,
    /// The draft aborts a test when a connection of the load fails; a load that runs for an hour opens another one.
    pub ends_with_errors: bool,
    epoch: Instant,
    algorithm: Mutex<Algorithm>,
    connections: Mutex<Vec<(u64, SendRequest<Payload>)>>,
    /// Payload that went down and up since the algorithm was told.
    pub bytes: [Arc<AtomicU64>; 2],
    error: Mutex<Option<Error>>,
    pub wake: Notify,
    drawn: AtomicU64,
    random: RandomState,
}

impl Shared {
    /// A load that begins now, `Time::ZERO`.
    pub fn new(server: Server, algorithm: Algorithm, ends_with_errors: bool) -> Self {
        Self {
            server,
            ends_with_errors,
            epoch: Instant::now(),
            algorithm: Mutex::new(algorithm),
            connections: Mutex::default(),
            bytes: [Arc::default(), Arc::default()],
            error: Mutex::default(),
            wake: Notify::new(),
            drawn: AtomicU64::new(0),
            random: RandomState::new(),
        }
    }

    pub fn now(&self) -> Time {
        self.at(Instant::now())
    }

    /// `instant` on the algorithm's clock; what was before the load is its begin.
    pub fn at(&self, instant: Instant) -> Time {
        Time::from_nanos(instant.saturating_duration_since(self.epoch).as_nanos() as u64)
    }

    /// How long until `at`.
    pub fn until(&self, at: Time) -> Duration {
        Duration::from_nanos(at.since(self.now()).as_nanos())
    }

    pub fn algorithm(&self) -> MutexGuard<'_, Algorithm> {
        self.algorithm.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn connections(&self) -> MutexGuard<'_, Vec<(u64, SendRequest<Payload>)>> {
        self.connections.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Tells the algorithm what was carried since it was told last: before anything else that may end an interval. The time.
    pub fn count_bytes(&self) -> Time {
        let mut algorithm = self.algorithm();
        let now = self.now();
        for direction in Direction::ALL {
            let bytes = self.bytes[direction.index()].swap(0, Ordering::Relaxed);
            algorithm.on_bytes(now, direction, bytes);
        }
        now
    }

    /// A connection carries load from here on, and may be chosen for probes, until the returned one is dropped.
    pub fn carrying(self: &Arc<Self>, requests: SendRequest<Payload>) -> Carrying {
        let id = self.drawn.fetch_add(1, Ordering::Relaxed);
        self.connections().push((id, requests));
        Carrying { shared: Arc::clone(self), id }
    }

    /// One of the connections that carry the load, each as likely as the others.
    pub fn draw(&self) -> Option<SendRequest<Payload>> {
        let number = self.random.hash_one(self.drawn.fetch_add(1, Ordering::Relaxed));
        let connections = self.connections();
        let index = (u128::from(number) * connections.len() as u128) >> 64;
        connections.get(index as usize).map(|(_, requests)| requests.clone())
    }

    /// How many connections carry the load.
    pub fn carriers(&self) -> usize {
        self.connections().len()
    }

    /// Something failed; the first is kept.
    pub fn fail(&self, error: Error) {
        self.error.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(error);
        self.wake.notify_one();
    }

    pub fn take_error(&self) -> Option<Error> {
        self.error.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
    }
}

/// That a connection carries load.
pub struct Carrying {
    shared: Arc<Shared>,
    id: u64,
}

impl Drop for Carrying {
    fn drop(&mut self) {
        self.shared.connections().retain(|(id, _)| *id != self.id);
    }
}
