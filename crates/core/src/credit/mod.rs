//! The arithmetic of CHAP's credit, the key that tells its flows apart, and vectors that Rust and C are held to. What is done with
//! them is [`crate::aqm::chap`].

pub mod account;
pub mod key;
pub mod vectors;
