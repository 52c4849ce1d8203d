//! The medium against oracles, ns-2, ns-3 and theory. One program, for its generic code is compiled with each.

mod aggregates;
mod air_ns3;
mod attempts;
mod behaviour;
mod classes;
#[path = "../common/mod.rs"]
mod common;
mod edca_behaviour;
mod edca_exactness;
mod exactness;
mod hidden;
mod lead;
mod rates;
mod saturation;
