//! Host 3, a real access point: BPF measures and applies, this crate decides.

pub mod control;
pub mod program;
