//! Where data goes: to stdout, or with the feature `results` into a file that appears whole or not at all.

use std::io::{self, Write};
use std::path::Path;

use crate::exit::{Failure, Outcome};

#[cfg(feature = "results")]
mod sink;

#[cfg(feature = "results")]
pub use sink::{Draft, Sink, beside, replace};

/// Prints to stdout; a reader that went away (`| head`) ends the output, not the program's good name.
pub fn print_out(text: &str) -> Outcome {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::work(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

/// A file written under sudo belongs to who called sudo. Best effort: a file of root's is still a result.
pub fn give_to_sudo_user(path: &Path) {
    let id = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
    if let (true, Some(uid), Some(gid)) = (rustix::process::geteuid().is_root(), id("SUDO_UID"), id("SUDO_GID")) {
        let _ = std::os::unix::fs::chown(path, Some(uid), Some(gid));
    }
}
