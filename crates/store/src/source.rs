//! A scenario's text and the contents of the traces that it names, so that a home can be made of them anywhere.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lasthop_files::Terms;
use lasthop_home::scenario::{Scenario, ScenarioError};

use crate::Recipe;

/// Largest frame trace that is read, in bytes: as of a scenario that is read from its file.
const LARGEST_TRACE: u64 = 64 << 20;

/// By where they were looked for: what was there.
type Traces = BTreeMap<PathBuf, Arc<str>>;

/// See the module.
#[derive(Debug)]
pub struct Source {
    file: String,
    text: Arc<str>,
    traces: Mutex<Traces>,
    /// No trace is read but those that came along: a copy on another machine must not find others there.
    is_sealed: bool,
}

impl Source {
    /// Reads the file at `path`; frame traces are looked for beside it when they are asked for.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn load(path: &Path) -> Result<Self, ScenarioError> {
        let text = lasthop_files::read_text(path, Terms::FOR_ITS_USER)
            .map_err(|source| ScenarioError::Read { path: path.to_owned(), source })?;
        Ok(Self::new(&text, &path.display().to_string()))
    }

    /// `text` as the content of the file `file`, beside which traces are looked for.
    #[must_use]
    pub fn new(text: &str, file: &str) -> Self {
        Self { file: file.to_owned(), text: text.into(), traces: Mutex::default(), is_sealed: false }
    }

    /// As [`Source::new`] with all the `traces` that there are, as [`Source::traces`] gave them.
    #[must_use]
    pub fn sealed(text: &str, file: &str, traces: BTreeMap<String, String>) -> Self {
        let traces = traces.into_iter().map(|(path, contents)| (path.into(), contents.into())).collect();
        Self { traces: Mutex::new(traces), is_sealed: true, ..Self::new(text, file) }
    }

    /// The name of the file, as errors say it.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The scenario as written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Every trace that was read so far, by its path.
    #[must_use]
    pub fn traces(&self) -> BTreeMap<String, String> {
        self.known().iter().map(|(path, text)| (path.display().to_string(), text.to_string())).collect()
    }

    fn known(&self) -> MutexGuard<'_, Traces> {
        self.traces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        if let Some(known) = self.known().get(path) {
            return Ok(known.to_string());
        }
        if self.is_sealed {
            return Err(io::Error::new(io::ErrorKind::NotFound, "it did not come along with the scenario"));
        }
        let text = lasthop_files::read_text(path, Terms { most_bytes: LARGEST_TRACE, ..Terms::CONFIGURATION })?;
        self.known().insert(path.to_owned(), text.as_str().into());
        Ok(text)
    }

    /// The home with `sets` applied, the later of two winning.
    ///
    /// # Errors
    /// Names the file, the line, the key, and what would be right.
    pub fn home(&self, sets: &[String]) -> Result<Scenario, ScenarioError> {
        Scenario::parse_with(&self.text, &self.file, sets, &|path| self.read(path))
    }

    /// The home, what of `sets` its key holds, and what the keys of its runs by the program of `revision` are made of.
    ///
    /// Of two that set one key the later alone is kept, a seed is not, and they stand in the order of the alphabet where that order
    /// makes the same home, else as given.
    ///
    /// # Errors
    /// As [`Source::home`].
    pub fn cell(&self, sets: &[String], revision: &str) -> Result<(Scenario, Vec<String>, Recipe), ScenarioError> {
        let used = Mutex::new(Traces::new());
        let home = Scenario::parse_with(&self.text, &self.file, sets, &|path| {
            let contents = self.read(path)?;
            used.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned(), contents.as_str().into());
            Ok(contents)
        })?;
        let sets = self.canonical(&home, sets);
        let used = used.into_inner().unwrap_or_else(PoisonError::into_inner);
        let traces: BTreeMap<String, Arc<str>> =
            used.into_iter().map(|(path, contents)| (self.as_written(&path), contents)).collect();
        let recipe = Recipe::new(
            revision,
            &self.text,
            &sets,
            traces.iter().map(|(name, contents)| (name.as_str(), &**contents)),
        );
        Ok((home, sets, recipe))
    }

    fn canonical(&self, home: &Scenario, sets: &[String]) -> Vec<String> {
        let mut kept: Vec<String> = Vec::new();
        for set in sets {
            let Some((key, value)) = set.split_once('=') else { continue };
            let key = key.trim();
            kept.retain(|other| other.split_once('=').is_none_or(|(own, _)| own != key));
            kept.push(format!("{key}={}", value.trim()));
        }
        kept.retain(|set| !set.starts_with("seed="));
        if sets == kept && kept.len() < 2 {
            return kept;
        }
        let mut sorted = kept.clone();
        sorted.sort_unstable();
        let same = |list: &[String]| self.home(list).is_ok_and(|other| is_same(&other.with_seed(home.seed), home));
        [sorted, kept].into_iter().find(|list| same(list)).unwrap_or_else(|| sets.to_vec())
    }

    /// The path of a trace as the scenario writes it: it counts from the scenario's folder, or from the one above.
    fn as_written(&self, path: &Path) -> String {
        let folder = Path::new(&self.file).parent().unwrap_or(Path::new(""));
        let above = folder.parent();
        let below = path.strip_prefix(folder).ok().or_else(|| path.strip_prefix(above?).ok());
        below.unwrap_or(path).display().to_string()
    }
}

/// Whether two homes are the same but for where their keys were written.
fn is_same(one: &Scenario, other: &Scenario) -> bool {
    let bare = |home: &Scenario| {
        let mut home = home.clone();
        home.source = Arc::default();
        for change in &mut home.changes {
            Arc::make_mut(&mut change.after).source = Arc::default();
        }
        home
    };
    bare(one) == bare(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME: &str = "format = 1\nname = \"t\"\nduration = \"1s\"\n[[server]]\nname = \"W\"\n[wifi]\n[[station]]\nname = \"A\"\n\
                        [[station]]\nname = \"B\"\n[[flow]]\nname = \"v\"\nfrom = \"W\"\nto = \"A\"\nkind = \"video\"\ntrace = \"v.txt\"\n";

    fn list(sets: &[&str]) -> Vec<String> {
        sets.iter().map(|set| (*set).to_owned()).collect()
    }

    fn source(trace: &str) -> Source {
        Source::sealed(HOME, "homes/t.toml", BTreeMap::from([("homes/v.txt".to_owned(), trace.to_owned())]))
    }

    #[test]
    fn sets_are_sorted_unless_their_order_says_something() {
        let source = source("1 I 0 2000\n2 P 40 500\n");
        let sets = |given: &[&str]| source.cell(&list(given), "r").unwrap().1;
        assert_eq!(
            sets(&["wifi.queue.limit=9", "seed=4", "duration=2s", "duration = 3s"]),
            ["duration=3s", "wifi.queue.limit=9"]
        );
        // Sorted, the station's own would win.
        let given = ["station.B.distance=5m", "station.*.distance=9m"];
        assert_eq!(sets(&given), given);
        let other = ["station.*.distance=9m", "station.B.distance=5m"];
        assert_eq!(sets(&other), other);
    }

    #[test]
    fn a_recipe_knows_contents_and_not_places() {
        let key = |source: &Source, sets: &[&str]| source.cell(&list(sets), "r").unwrap().2.key(1);
        let frames = "1 I 0 2000\n2 P 40 500\n";
        let one = key(&source(frames), &[]);
        let elsewhere = Source::sealed(HOME, "/x/t.toml", BTreeMap::from([("/x/v.txt".to_owned(), frames.to_owned())]));
        let above = Source::sealed(HOME, "/x/y/t.toml", BTreeMap::from([("/x/v.txt".to_owned(), frames.to_owned())]));
        assert_eq!([key(&elsewhere, &[]), key(&above, &[])], [one, one]);
        assert_ne!(key(&source("1 I 0 2001\n2 P 40 500\n"), &[]), one);
        assert_ne!(key(&source(frames), &["wifi.queue.limit=9"]), one);
        assert_eq!(key(&source(frames), &["seed=9"]), one, "the seed is the run's");
    }

    #[test]
    fn a_sealed_source_reads_nothing_else() {
        let error = Source::sealed(HOME, "homes/t.toml", BTreeMap::new()).home(&[]).unwrap_err();
        assert!(error.to_string().contains("did not come along"), "{error}");
    }
}
