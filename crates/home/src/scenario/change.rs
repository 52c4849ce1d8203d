//! `[[change]]`: keys of the file, changed while it runs (walking away, interference, a neighbour).

use std::sync::Arc;

use lasthop_core::units::Span;

use super::read::Reader;
use super::renamed;
use super::set::Written;
use super::tree::{Location, Node, Origin, Table, Value};
use super::{Scenario, ScenarioError};

/// One change.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Since the start of the run.
    pub at: Span,
    /// The keys it changes, as written.
    pub keys: Vec<String>,
    /// The whole home from then on: hosts and flows are the same ones, in the same order.
    pub after: Arc<Scenario>,
}

/// A change as read: its time, and the keys with their values.
pub(crate) struct Step<'a> {
    pub(crate) at: Span,
    number: usize,
    place: &'a Origin,
    set: &'a Table,
}

/// Most changes of a scenario.
const MOST_CHANGES: usize = 1_000;

/// Most changes times (hosts + flows): each change holds the home anew.
pub(crate) const MOST_CHANGED: usize = 200_000;

/// Roots a change may reach; everything else is the same throughout a run.
const ROOTS: [&str; 8] = ["wan", "server", "wifi", "wireless_link", "bridge", "station", "flow", "control"];

/// The changes in order of time.
pub(crate) fn read_steps<'a>(root: &Reader<'a>, duration: Span) -> Result<Vec<Step<'a>>, ScenarioError> {
    let mut steps = Vec::new();
    let tables = root.tables("change")?;
    if tables.len() > MOST_CHANGES {
        return Err(root.wrong("change", format!("there are {} changes; {MOST_CHANGES} is the most", tables.len())));
    }
    for (i, (place, table)) in tables.into_iter().enumerate() {
        let path = format!("change.{}", i + 1);
        let change = Reader::new(root.source(), &path, place, table, &["at", "set"])?;
        let at = change.quantity("at")?;
        let at = change.required("at", at, "\"150s\"")?;
        if at >= duration {
            return Err(change.wrong("at", format!("{at} is not before the end of the run at {duration}")));
        }
        let set = change.inner("set")?.map(|(_, set)| set).filter(|set| !set.0.is_empty());
        let set = change.required("set", set, "{ \"station.N3.rate\" = \"6Mbit/s\" }")?;
        steps.push(Step { at, number: i + 1, place, set });
    }
    steps.sort_by_key(|step| step.at);
    Ok(steps)
}

impl Step<'_> {
    /// The keys it changes.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.set.0.keys().map(|key| renamed::current_key(key)).collect()
    }

    /// Changes `written`, the file as it stands before this step.
    pub(crate) fn apply(&self, written: &mut Written, file: &str) -> Result<(), ScenarioError> {
        for (key, node) in &self.set.0 {
            let refuse = |why: String| self.refuse(file, key, &why);
            let path = renamed::current(key.split('.').map(str::to_owned).collect());
            if path.len() < 2
                || path.len() > 8
                || path.iter().any(String::is_empty)
                || !ROOTS.contains(&path[0].as_str())
            {
                return Err(refuse(format!("cannot change while it runs; keys begin with {}", ROOTS.join(", "))));
            }
            let is_none = matches!(&node.value, Value::Text(text) if text == "none");
            let names_a_kind = path.last().is_some_and(|key| key == "kind");
            let value = if is_none && !names_a_kind { Value::Removed } else { node.value.clone() };
            written.put(&path, Node { at: node.at.clone(), value }).map_err(refuse)?;
        }
        Ok(())
    }

    /// An error about the change of `key`.
    pub(crate) fn refuse(&self, file: &str, key: &str, why: &str) -> ScenarioError {
        let place = Location { file, at: self.place }.to_string();
        ScenarioError::Wrong { place, key: format!("change.{}.set.{key}", self.number), why: why.to_owned() }
    }
}
