//! Queue disciplines of the last hop.

pub mod fifo;
pub mod figures;
pub mod packets;

pub use fifo::Snapshot;
