//! A scenario file that is read once and made into many homes, each with `--set`s of its own.
//!
//! The file and every frame trace it names are read and parsed once; homes share their traces. So a sweep is of one
//! file, also when somebody edits it meanwhile.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::set::Written;
use super::traces::{Known, Traces};
use super::{Scenario, ScenarioError, build, read_home_file, read_trace, tree};

/// The file as written, before any `--set`.
#[derive(Debug)]
pub struct Template {
    file: String,
    written: Written,
    traces: Mutex<Known>,
}

impl Template {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// The file cannot be read or is not TOML; whether it is a scenario, [`Template::with`] says.
    pub fn load(path: &Path) -> Result<Self, ScenarioError> {
        let text = read_home_file(path).map_err(|source| ScenarioError::Read { path: path.to_owned(), source })?;
        Self::parse(&text, &path.display().to_string())
    }

    /// Reads `text` as the content of the file `file`; frame traces are looked for beside it.
    ///
    /// # Errors
    /// The text is not TOML.
    pub fn parse(text: &str, file: &str) -> Result<Self, ScenarioError> {
        let written = Written::new(tree::parse(text, file)?);
        Ok(Self { file: file.to_owned(), written, traces: Mutex::default() })
    }

    /// The home with `set` applied.
    ///
    /// # Errors
    /// Fails as [`Scenario::load`] does.
    pub fn with(&self, set: &[String]) -> Result<Scenario, ScenarioError> {
        let mut traces = Traces::new(&self.file, &read_trace);
        traces.known = self.known().clone();
        let known = traces.known.len();
        let scenario = build(self.written.clone(), &self.file, set, &mut traces);
        if traces.known.len() > known {
            self.known().extend(traces.known);
        }
        scenario
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.traces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME: &str = "format = 1\nname = \"t\"\nduration = \"10s\"\n[[server]]\nname = \"W\"\n[wifi]\nrate = \"54Mbit/s\"\n\
                        [[station]]\nname = \"N\"\n[[flow]]\nname = \"ftp\"\nfrom = \"W\"\nto = \"N\"\nkind = \"ftp\"\nstart_within = \"1s\"\n\
                        [[change]]\nat = \"5s\"\nset = { \"wifi.rate\" = \"6Mbit/s\" }\n";

    #[test]
    fn a_template_makes_the_homes_that_the_file_makes() {
        let template = Template::parse(HOME, "t.toml").unwrap();
        for set in [vec![], vec!["wifi.queue.limit=7".to_owned()], vec!["seed=9".to_owned()]] {
            assert_eq!(template.with(&set).unwrap(), Scenario::parse(HOME, "t.toml", &set).unwrap());
        }
        assert!(template.with(&["wifi.quue=7".to_owned()]).is_err());
    }

    #[test]
    fn another_seed_is_another_seed_after_a_change_too() {
        let home = Scenario::parse(HOME, "t.toml", &[]).unwrap();
        let nine = Scenario::parse(HOME, "t.toml", &["seed=9".to_owned()]).unwrap();
        let other = home.with_seed(9);
        assert_eq!((other.seed, other.changes[0].after.seed), (9, 9));
        assert_eq!(other.changes[0].after.flows, nine.changes[0].after.flows);
        // Its flows start as in the file with that seed, not as with the first one.
        assert_eq!(other.flows, nine.flows);
        assert_ne!(other.flows[0].start, home.flows[0].start);
    }
}
