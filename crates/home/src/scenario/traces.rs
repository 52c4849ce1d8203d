//! The frame traces that a scenario names, each read once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::ReadFile;
use crate::trace::Frames;

/// By path as written: where it was found, and what it holds.
pub(super) type Known = BTreeMap<String, (PathBuf, Arc<Frames>)>;

/// Frame traces by their path as written.
pub(super) struct Traces<'a> {
    folder: &'a Path,
    read: &'a ReadFile<'a>,
    pub(super) known: Known,
}

impl<'a> Traces<'a> {
    pub(super) fn new(file: &'a str, read: &'a ReadFile<'a>) -> Self {
        Self { folder: Path::new(file).parent().unwrap_or(Path::new("")), read, known: Known::new() }
    }

    /// Looks in the scenario's folder, then in the one above it.
    pub(super) fn load(&mut self, written: &str) -> Result<(PathBuf, Arc<Frames>), String> {
        if let Some(known) = self.known.get(written) {
            return Ok(known.clone());
        }
        let beside = self.folder.join(written);
        let above = self.folder.parent().map(|folder| folder.join(written));
        let (path, text) = match (self.read)(&beside) {
            Ok(text) => (beside, text),
            Err(error) => match above.and_then(|path| (self.read)(&path).ok().map(|text| (path, text))) {
                Some(found) => found,
                None => {
                    return Err(format!("{}: {error}; the path counts from the scenario's folder", beside.display()));
                }
            },
        };
        let frames = Frames::parse(&text).map_err(|why| format!("{}:{why}", path.display()))?;
        let found = (path, Arc::new(frames));
        self.known.insert(written.to_owned(), found.clone());
        Ok(found)
    }
}
