//! What is said to whoever watches.

use std::io::Write as _;

/// One line; never called per packet. Control goes on when nobody reads it any more, and `eprintln!` would panic.
pub(crate) fn log(line: &str) {
    let _ = writeln!(std::io::stderr(), "lasthop: {line}");
}
