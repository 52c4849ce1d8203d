//! What tests of several crates share.

pub mod allocations;
pub mod browser;
pub mod random;
