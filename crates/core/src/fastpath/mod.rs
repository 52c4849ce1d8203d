//! The per-packet half of the controller: flow key, RTT match, window edge.
//!
//! Integers on header fields only. Rust in the simulator and in the userspace datapath, restated in C for tc
//! (`crates/live/src/bpf/`), which shares the layouts of [`layout`] byte for byte.

pub mod layout;
pub mod seq;
