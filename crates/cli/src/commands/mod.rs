//! One file per command: its arguments, with help text that teaches, and what it does.

pub mod demo;
pub mod emulate;
pub mod measure;
pub mod sim;
pub mod sweep;
