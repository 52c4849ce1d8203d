//! What tests of several crates share.

pub mod allocations;
pub mod random;
