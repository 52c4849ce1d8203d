//! Why a scenario was refused, and where.

use std::path::PathBuf;

/// A scenario that cannot be run as written. Each message names the file, the line and the key.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file could not be read.
    #[error("{}: cannot be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not TOML.
    #[error("{place}: {why}")]
    Syntax {
        /// `file:line`.
        place: String,
        /// What the TOML parser says.
        why: String,
    },
    /// A key is unknown, missing, or holds what it cannot hold.
    #[error("{place}: {key}: {why}")]
    Wrong {
        /// `file:line`, or the `--set` it came from.
        place: String,
        /// Path of the key, as `--set` writes it.
        key: String,
        /// What is wrong, and what would be right.
        why: String,
    },
    /// The key is right, but this host does not carry it yet.
    #[error("{place}: {key}: not yet: {why}")]
    NotYet {
        /// `file:line`, or the `--set` it came from.
        place: String,
        /// Path of the key, as `--set` writes it.
        key: String,
        /// What is missing.
        why: String,
    },
}
