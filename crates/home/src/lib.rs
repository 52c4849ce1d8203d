//! What a home is: the scenario, its traffic, its report.
//!
//! [`scenario`] turns a scenario file into types that cannot hold a wrong value, [`traffic`] turns a flow into the
//! times and sizes of its packets, [`link`] is a wire, [`capacity`] says what TCP alone gets over the channel, and
//! [`report`] holds every figure of a run, [`course`] what it did over time; [`retune`] changes the channel while one goes on, [`address`] says which host has
//! which address. Nothing here reads a clock; randomness comes from `lasthop_medium::random`.

pub mod address;
pub mod capacity;
pub mod clamp;
pub mod course;
pub mod link;
pub(crate) mod normal;
pub mod quantity;
pub mod report;
pub mod retune;
pub mod scenario;
pub mod trace;
pub mod traffic;
