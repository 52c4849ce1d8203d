//! Results: into a file that appears whole or not at all, or to stdout for "-".

use std::fs::File;
use std::io::{self, BufWriter, Stdout, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Serialize;
use tempfile::NamedTempFile;

use super::{give_to_sudo_user, print_out};
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
            .map_err(Failure::request)?;
        if !existed {
            let _ = std::fs::remove_file(path); // an empty file must not look like a result if the work fails
        }
        Ok(Self::File(path.to_owned()))
    }

    /// Whether it is stdout.
    pub fn is_stdout(&self) -> bool {
        matches!(self, Self::Stdout)
    }

    /// Begins a result that is written bit by bit.
    pub fn draft(&self) -> Outcome<Draft> {
        match self {
            Self::Stdout => Ok(Draft(To::Stdout(BufWriter::new(io::stdout())))),
            Self::File(path) => Ok(Draft::of_file(path).with_context(|| format!("cannot write {}", path.display()))?),
        }
    }

    /// Writes `value` as indented JSON with a final newline.
    pub fn write_json(&self, value: &impl Serialize) -> Outcome {
        let mut text = serde_json::to_string_pretty(value).context("cannot write the result as JSON")?;
        text.push('\n');
        self.write_text(&text)
    }

    /// Writes `text` as it is.
    pub fn write_text(&self, text: &str) -> Outcome {
        if let Self::File(path) = self {
            let mut draft = self.draft()?;
            draft.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
            return draft.keep();
        }
        print_out(text)
    }
}

/// A result in flight. Until [`Draft::keep`] the file holds what it held before; dropped, nothing is left of it.
#[derive(Debug)]
pub struct Draft(To);

#[derive(Debug)]
enum To {
    Stdout(BufWriter<Stdout>),
    /// Not a plain file (a pipe, a device): there is nothing to put in its place.
    Device(BufWriter<File>, PathBuf),
    /// A file beside `PathBuf`, which takes its place.
    Beside(BufWriter<NamedTempFile>, PathBuf),
}

impl Draft {
    fn of_file(path: &Path) -> io::Result<Self> {
        // Behind a symbolic link the file is replaced, not the link.
        let path = if path.exists() { path.canonicalize()? } else { path.to_owned() };
        if path.exists() && !path.is_file() {
            let device = std::fs::OpenOptions::new().write(true).open(&path)?;
            return Ok(Self(To::Device(BufWriter::new(device), path)));
        }
        Ok(Self(To::Beside(BufWriter::new(beside(&path)?), path)))
    }

    /// Puts what was written in its place.
    pub fn keep(self) -> Outcome {
        let done = match self.0 {
            To::Stdout(mut out) => out.flush().context("cannot write to stdout"),
            To::Device(mut out, path) => out.flush().with_context(|| format!("cannot write {}", path.display())),
            To::Beside(out, path) => {
                let file = out.into_inner().map_err(io::IntoInnerError::into_error);
                file.and_then(|file| replace(file, &path)).with_context(|| format!("cannot write {}", path.display()))
            }
        };
        Ok(done?)
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            To::Stdout(out) => out.write(bytes),
            To::Device(out, _) => out.write(bytes),
            To::Beside(out, _) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            To::Stdout(out) => out.flush(),
            To::Device(out, _) => out.flush(),
            To::Beside(out, _) => out.flush(),
        }
    }
}

/// A file in the folder of `path` that goes when it is dropped.
pub fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let mut prefix = std::ffi::OsString::from(".");
    prefix.push(path.file_name().unwrap_or_default());
    tempfile::Builder::new()
        .prefix(&prefix)
        .suffix(".part")
        // Less what the umask takes, as for any file.
        .permissions(std::fs::Permissions::from_mode(0o666))
        .tempfile_in(folder)
}

/// Puts `file` in the place of `path`.
pub fn replace(file: NamedTempFile, path: &Path) -> io::Result<()> {
    file.persist(path).map_err(|error| error.error)?;
    give_to_sudo_user(path);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_takes_its_place_when_it_is_kept_and_leaves_nothing_when_it_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        std::fs::write(&path, "old").unwrap();
        let sink = Sink::open(&path).unwrap();
        let mut draft = sink.draft().unwrap();
        draft.write_all(b"new").unwrap();
        draft.flush().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        drop(draft);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        let mut draft = sink.draft().unwrap();
        draft.write_all(b"new").unwrap();
        draft.keep().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn behind_a_link_the_file_is_replaced_and_a_device_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        Sink::open(&link).unwrap().write_json(&7).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"7\n");
        assert!(link.is_symlink());
        Sink::open(Path::new("/dev/null")).unwrap().write_json(&7).unwrap();
        assert!(!Path::new("/dev/null").is_file());
    }
}
