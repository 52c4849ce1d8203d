//! What can be wrong with a configuration, said so that the reader can mend it.

use std::io;

use crate::ports::Refusal;

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{file}: cannot be read; name a regular file after --config, or leave it out")]
    Unreadable {
        /// The file.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// The text is not TOML.
    #[error("{file}:{line}: {message}")]
    Syntax {
        /// The file.
        file: String,
        /// Line, counted from 1.
        line: usize,
        /// What the TOML parser says.
        message: String,
    },
    /// A key that does not exist.
    #[error("{file}:{line}: {key}: there is no such key; {right}")]
    UnknownKey {
        /// The file.
        file: String,
        /// Line, counted from 1.
        line: usize,
        /// The key as written.
        key: String,
        /// The nearest key, or where all stand.
        right: String,
    },
    /// A value that cannot be right.
    #[error("{file}:{line}: {key}: {wrong}; {right}")]
    Value {
        /// The file.
        file: String,
        /// Line, counted from 1.
        line: usize,
        /// The key.
        key: String,
        /// What is wrong.
        wrong: String,
        /// What would be right.
        right: String,
    },
    /// Capacity is a share of something unknown.
    #[error(
        "capacity is a share of the link, and the speed of {lan} is not known (radio, or a link that is down); \
         write `capacity = \"learn\"`, or `link = \"21Mbit/s\"` with what TCP alone reaches over it"
    )]
    UnknownCapacity {
        /// The LAN interfaces.
        lan: String,
    },
    /// Interfaces that cannot be what they are named as.
    #[error(transparent)]
    Ports(#[from] Refusal),
    /// Exact eq. (1) knows no other way.
    #[error(
        "share = \"equal\" divides a capacity that was given: write capacity = \"20Mbit/s\" too, or share = \"max-min\""
    )]
    EqualNeedsCapacity,
    /// Packets have to be kept.
    #[error(
        "snoop keeps copies of packets, which the kernel cannot: write datapath = \"user\", or leave it at \"auto\""
    )]
    KernelSnoop,
    /// A queue that the kernel has by another way.
    #[error(
        "fifo, codel and fq_codel are kept by this process alone: write datapath = \"user\", or take the kernel's own \
         (tc qdisc replace dev DEV root fq_codel)"
    )]
    KernelQueue,
}
