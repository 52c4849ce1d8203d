//! What the programs have in common, `lasthop`, `lasthopd`, `lasthop-message` and `lasthop-web`: how they end, where their output goes, what
//! signals do, how they show progress and tables, and what a terminal can show.

pub mod exit;
pub mod output;
pub mod progress;
pub mod root;
pub mod signals;
pub mod table;
pub mod terminal;

/// What was built: `git describe` at build time.
pub const REVISION: &str = env!("LASTHOP_REVISION");

/// What `--version` says: the release, and what was built.
pub const VERSION: &str = env!("LASTHOP_VERSION");
