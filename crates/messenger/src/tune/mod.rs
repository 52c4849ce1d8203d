//! Finds the tuning of a device: measures it, says what limits it, and proposes what to do about it.
//!
//! Measured (`storage`, `path`) -> what the law expects of settings (`law`) -> candidates (`advise`) -> each tried with the
//! code that fetches and sends (`trial`) -> the simplest one among the fastest (`advise`).

pub mod law;
pub mod storage;
