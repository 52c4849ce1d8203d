//! Where data goes: into a file, or to stdout for "-".

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Serialize;

use crate::exit::{Failure, Outcome};

/// A place for a result, checked before the work starts.
#[derive(Clone, Debug)]
pub enum Sink {
    /// "-"
    Stdout,
    /// Anything else.
    File(PathBuf),
}

impl Sink {
    /// Reads the argument and makes sure that the file can be written, so that nobody waits a minute for an error.
    pub fn open(path: &Path) -> Outcome<Self> {
        if path == Path::new("-") {
            return Ok(Self::Stdout);
        }
        let existed = path.exists();
        std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .with_context(|| format!("cannot write {}", path.display()))
            .map_err(Failure::Request)?;
        if !existed {
            let _ = std::fs::remove_file(path); // an empty file must not look like a result if the work fails
        }
        Ok(Self::File(path.to_owned()))
    }

    /// Writes `value` as indented JSON with a final newline.
    pub fn write_json(&self, value: &impl Serialize) -> Outcome {
        let mut text = serde_json::to_string_pretty(value).context("cannot write the result as JSON")?;
        text.push('\n');
        match self {
            Self::Stdout => print_out(&text),
            Self::File(path) => {
                std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
                give_to_sudo_user(path);
                Ok(())
            }
        }
    }
}

/// Prints to stdout; a reader that went away (`| head`) ends the output, not the program's good name.
pub fn print_out(text: &str) -> Outcome {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::Work(anyhow::Error::new(error).context("cannot write to stdout")))
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
