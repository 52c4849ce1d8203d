//! Queue disciplines of the last hop, each on its own and all behind [`Queue`].

pub mod chap;
pub mod codel;
pub mod drr;
pub mod fifo;
pub mod flow_queues;
pub mod fq_codel;
pub mod mac80211;
pub mod metrics;
pub mod packets;
mod queue;
pub mod red;
pub mod station_queues;
#[cfg(test)]
mod tests;
pub mod turns;

pub use fifo::Snapshot;
pub use queue::{Discipline, Other, Queue};
