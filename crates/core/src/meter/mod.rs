//! What is measured of a flow or a link: rates, round trips, jitter, timeliness, fairness.
//!
//! Meters take times and sizes that the host hands in; none of them reads a clock.

pub mod fairness;
pub mod histogram;
pub mod jitter;
pub mod paired;
pub mod playability;
pub mod rate;
pub mod rtt;
pub mod timely;
