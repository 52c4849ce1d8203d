//! Queue disciplines of the last hop.

pub mod fifo;
