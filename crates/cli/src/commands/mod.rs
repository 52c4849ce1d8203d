//! One file per command: its arguments, with help text that teaches, and what it does.

pub mod demo;
pub mod doctor;
pub mod emulate;
pub mod message;
pub mod run;
pub mod sim;
pub mod status;
pub mod sweep;
