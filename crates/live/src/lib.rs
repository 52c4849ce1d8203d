//! Host 3, a real access point: BPF measures and applies, this crate decides.

pub mod attach;
pub mod config;
pub mod conntrack;
pub mod interface;
pub mod netlink;
pub mod status;

/// Where a controller serves its status when nothing else is said.
pub const DEFAULT_SOCKET: &str = "/run/lasthop/lasthop.sock";
