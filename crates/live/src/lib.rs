//! Host 3, a real access point: BPF measures and applies, this crate decides.

pub mod attach;
pub mod clock;
pub mod config;
pub mod confine;
pub mod conntrack;
pub mod controller;
pub mod datapath;
pub mod discipline;
pub mod doctor;
pub mod fdb;
pub mod handover;
pub mod interface;
pub mod levers;
pub mod log;
pub mod maps;
pub mod mdns;
pub mod medium;
pub mod monitor;
pub mod names;
pub mod neighbours;
pub mod netlink;
pub mod ports;
pub mod program;
pub mod qdisc;
pub mod rights;
pub mod service;
pub mod stations;
pub mod status;
pub mod topology;
pub mod updates;

pub use config::Config;
pub use controller::Controller;
pub use service::Service;
