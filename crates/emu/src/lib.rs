//! Host 2, real time: namespaces, TAPs and the channel, with real packets.
//!
//! One process owns one TAP per host, each host in its own anonymous network namespace: servers, the access point
//! (kernel forwarding between `wan0` and `wlan0`), stations. Between the TAPs, wires and the 802.11 medium are the
//! models of `home` and `wifi`, run against CLOCK_MONOTONIC; everything above is real: kernel TCP, kernel routing, the
//! controller, the user's programs. [`run`] plays a scenario and returns its report; [`Home`] is the network alone.
//!
//! Nothing has a name outside this process, so nothing outlives it: namespaces and TAPs go with their descriptors,
//! programs with the box they were started in. Runs do not repeat by seed, as simulations do: take five and medians.

pub mod address;
pub mod arena;
pub mod clock;
pub mod controller;
pub mod engine;
pub mod network;
pub mod observe;
pub mod pcap;
pub mod players;
pub mod trace;

mod error;
mod exec;
mod home;
mod host;
mod log;
mod medium;
mod netns;
mod options;
mod proxy;
mod record;
mod refuse;
mod report;
mod run;
mod running;
mod spawn;
mod spool;
mod stage;
mod storage;
mod sys;
mod tap;
mod user;

pub use controller::ControllerCommand;
pub use error::Error;
pub use exec::ProgramEnd;
pub use home::Home;
pub use netns::Namespace;
pub use observe::Recent;
pub use options::{Options, Progress, Second};
pub use refuse::check;
pub use run::{Outcome, run};
pub use spawn::Child;
pub use storage::FOLDER as STORAGE;
pub use tap::Tap;
pub use user::User;
