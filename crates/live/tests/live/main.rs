//! The controller on real interfaces: kernel TCP through a router in throw-away network namespaces.
//!
//! Everything needs root and BPF; without, each test says `SKIPPED` and passes. Ratios and states are asserted, never
//! durations. One test at a time: they share the machine's processors.

mod attaching;
mod attacks;
mod child;
mod datapath;
mod flood;
mod following;
mod forged;
mod handover;
#[path = "../script/headers.rs"]
#[allow(dead_code, reason = "scripts compare whole frames")]
mod headers;
mod line;
mod machine;
#[path = "../script/mutate.rs"]
mod mutate;
mod namespace;
mod odd;
mod older;
mod pausing;
#[path = "../agreement/random.rs"]
mod random;
mod reload;
#[path = "../settings/mod.rs"]
mod settings;
mod smooth;
mod survival;
mod tracking;
mod traffic;
mod updates;
mod world;
