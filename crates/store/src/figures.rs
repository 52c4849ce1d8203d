//! `--figures`: which figures of a report a row holds.
//!
//! A column is chosen by its name (`flows.ftp.goodput_bps`), by a shorter one (no `flows.`, `stations.` or `queues.` in front, no
//! `_bps`, `_ms` or `_s` behind), or by a name that stands above it (`ftp.delay`); `*` stands for any part of a name. What was sent
//! before `measure_from` has to be asked for: `start_up` must be in the name.
//!
//! Without a choice a file has fewer than [`MOST_COLUMNS`] columns: three figures of each flow, or one where there are many, or none where
//! there are too many; then what the queue towards the stations, the controller and fairness say.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use lasthop_home::report::{Report, closest, for_a_moment};
use lasthop_home::scenario::Scenario;

use crate::row::{Row, scalars, typed};

/// A table has fewer columns unless others are asked for.
pub const MOST_COLUMNS: usize = 40;
/// What tells of which run a row is; always there, after the varied keys and the seed.
const ALWAYS: [&str; 2] = ["scenario", "run.revision"];
/// Of each flow, by default.
const OF_FLOW: [&str; 3] = ["goodput_bps", "added_delay.p99", "loss_rate"];
/// Of the rest, by default.
const OF_HOME: [&str; 9] = [
    "queues.AP to stations.mean_sojourn",
    "queues.AP to stations.p99_sojourn",
    "queues.AP to stations.dropped",
    // Of a half-duplex bridge.
    "queues.both ways.mean_sojourn",
    "queues.both ways.p99_sojourn",
    "queues.both ways.dropped",
    "fairness.goodput",
    "control.capacity_bps.mean",
    "control.rewritten",
];

/// The columns of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Figures {
    /// Every scalar of the report.
    All,
    /// What one of these chooses.
    Chosen(Vec<String>),
}

/// Reads the value of `--figures`.
///
/// # Errors
/// An empty name.
pub fn figures(text: &str) -> Result<Figures, String> {
    let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
    match names.as_slice() {
        [one] if one == "all" => Ok(Figures::All),
        names if names.iter().any(String::is_empty) => {
            Err("write names of figures with commas between: game.added_delay.p99,ftp.goodput; or all".to_owned())
        }
        _ => Ok(Figures::Chosen(names)),
    }
}

/// Chooses columns, and remembers of each what came out: rows have hundreds, and names with `*` are slow to compare.
#[derive(Debug)]
pub struct Chooser {
    figures: Figures,
    known: Mutex<HashMap<String, bool>>,
}

impl Chooser {
    /// Of these figures.
    #[must_use]
    pub fn new(figures: Figures) -> Self {
        Self { figures, known: Mutex::default() }
    }

    /// Leaves in `row` what stands in its first `own` places and what is chosen.
    pub fn keep(&self, row: &mut Row, own: usize) {
        let Figures::Chosen(names) = &self.figures else { return };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut at = 0;
        row.retain(|(column, _)| {
            at += 1;
            if at <= own || ALWAYS.contains(&&**column) {
                return true;
            }
            if let Some(is_kept) = known.get(column) {
                return *is_kept;
            }
            let is_kept = names.iter().any(|name| chooses(name, column));
            known.insert(column.clone(), is_kept);
            is_kept
        });
    }
}

/// The row of a run: the varied `values`, the seed, then the `chosen` of the scalars.
pub fn row_of<'a>(values: impl Iterator<Item = (&'a str, &'a str)>, seed: u64, all: Row, chosen: &Chooser) -> Row {
    let mut row: Row = Vec::with_capacity(all.len() + 8);
    row.extend(values.map(|(key, value)| (key.to_owned(), typed(value))));
    row.push(("seed".to_owned(), seed.into()));
    let own = row.len();
    row.extend(all);
    // A varied key and the seed stand there already.
    let leading: Vec<String> = row[..own].iter().map(|(name, _)| name.clone()).collect();
    let mut at = 0;
    row.retain(|(name, _)| {
        at += 1;
        at <= own || !leading.contains(name)
    });
    chosen.keep(&mut row, own);
    row
}

/// Every name that a row of the sweep may have.
pub struct Names {
    columns: BTreeSet<String>,
    flows: Vec<(String, bool)>,
    /// Varied keys and the seed.
    own: usize,
}

impl Names {
    /// Of every home that differs from the others in what it has: `simulate` plays it for a moment.
    ///
    /// # Errors
    /// Those of `simulate`.
    pub fn new<'a, E: From<std::io::Error>>(
        homes: impl Iterator<Item = &'a Scenario>,
        own: usize,
        simulate: impl Fn(&Scenario) -> Result<Report, E>,
    ) -> Result<Self, E> {
        let mut seen = BTreeSet::new();
        let mut names = Self { columns: BTreeSet::new(), flows: Vec::new(), own };
        for home in homes {
            let hosts: Vec<&str> = home.host_names().collect();
            let flows: Vec<&str> = home.flows.iter().map(|flow| flow.name.as_str()).collect();
            if !seen.insert(format!("{hosts:?} {flows:?} {:?} {}", home.queue_names(), home.wan.is_some())) {
                continue;
            }
            let report = simulate(&for_a_moment(home))?.with_every_field();
            for flow in &report.flows {
                let is_realtime = home.flows.iter().any(|own| own.name == flow.name && own.kind.is_realtime());
                if names.flows.iter().all(|(name, _)| *name != flow.name) {
                    names.flows.push((flow.name.clone(), is_realtime));
                }
            }
            let row = scalars(&report).map_err(std::io::Error::from)?;
            names.columns.extend(row.into_iter().map(|(name, _)| name));
        }
        Ok(names)
    }

    /// All of them, in the order of the alphabet.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(String::as_str)
    }

    /// Refuses what chooses nothing.
    ///
    /// # Errors
    /// A name, with those near it.
    pub fn check(&self, figures: &Figures) -> Result<(), String> {
        let Figures::Chosen(names) = figures else { return Ok(()) };
        let unknown = names.iter().find(|name| !self.columns.iter().any(|column| chooses(name, column)));
        unknown.map_or(Ok(()), |name| Err(self.nothing_called(name)))
    }

    /// The one column that `name` is.
    ///
    /// # Errors
    /// None or several are called so; with those near it.
    pub fn one(&self, name: &str) -> Result<&str, String> {
        if let Some(column) = self.columns.get(name) {
            return Ok(column);
        }
        let called: Vec<&str> = self.columns().filter(|column| is_called(column, name)).collect();
        match called.as_slice() {
            [one] => Ok(one),
            [] => Err(self.nothing_called(name)),
            several => Err(format!("`{name}` is {}; choose one", several.join(" and "))),
        }
    }

    fn nothing_called(&self, name: &str) -> String {
        let asks_for_start = name.contains("start_up");
        let short =
            self.columns.iter().filter(|column| is_of_start(column) == asks_for_start).map(|c| without_group(c));
        let near = closest(name, short).join(", ");
        let groups: BTreeSet<&str> = self.columns.iter().map(|c| c.split('.').next().unwrap_or(c)).collect();
        let flows: Vec<&str> = self.flows.iter().take(12).map(|(name, _)| name.as_str()).collect();
        let more = if self.flows.len() > flows.len() { ", .." } else { "" };
        format!(
            "there is no figure `{name}`; near it are {near}; the flows are {}{more}, and all groups {}",
            flows.join(", "),
            groups.into_iter().collect::<Vec<_>>().join(", ")
        )
    }

    /// Where nothing was chosen.
    #[must_use]
    pub fn usual(&self) -> Figures {
        let of_home = || OF_HOME.iter().map(|name| (*name).to_owned());
        let all = |(flow, _): &(String, bool)| OF_FLOW.map(|figure| format!("flows.{flow}.{figure}")).to_vec();
        let one = |(flow, is_realtime): &(String, bool)| {
            vec![format!("flows.{flow}.{}", if *is_realtime { "added_delay.p99" } else { "goodput_bps" })]
        };
        let fits = |names: &Vec<String>| {
            let there = self.columns.iter().filter(|column| names.contains(column)).count();
            self.own + ALWAYS.len() + there < MOST_COLUMNS
        };
        let levels: [Vec<String>; 2] = [
            self.flows.iter().flat_map(all).chain(of_home()).collect(),
            self.flows.iter().flat_map(one).chain(of_home()).collect(),
        ];
        Figures::Chosen(levels.into_iter().find(fits).unwrap_or_else(|| of_home().collect()))
    }
}

/// Whether `column` is called `name`: whole, or without its group or its unit.
#[must_use]
pub fn is_called(column: &str, name: &str) -> bool {
    [column, without_group(column)].into_iter().any(|form| form == name || without_unit(form) == name)
}

/// Whether `name` stands for `column`.
fn chooses(name: &str, column: &str) -> bool {
    if is_of_start(column) && !name.contains("start_up") {
        return false;
    }
    let is_or_stands_above =
        |form: &str| matches(name, form) || form.match_indices('.').any(|(dot, _)| matches(name, &form[..dot]));
    [column, without_group(column)]
        .into_iter()
        .any(|form| is_or_stands_above(form) || is_or_stands_above(without_unit(form)))
}

fn is_of_start(column: &str) -> bool {
    column.contains(".start_up.")
}

fn without_group(column: &str) -> &str {
    ["flows.", "stations.", "queues."].iter().find_map(|group| column.strip_prefix(group)).unwrap_or(column)
}

fn without_unit(column: &str) -> &str {
    ["_bps", "_ms", "_s"].iter().find_map(|unit| column.strip_suffix(unit)).unwrap_or(column)
}

/// Whether `text` is `pattern`, in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_figure_is_called_by_its_name_or_a_shorter_one() {
        let columns = ["flows.A.sent", "flows.ftp.delay.p99", "flows.ftp.goodput_bps", "stations.A.sent"];
        let names = Names { columns: columns.map(str::to_owned).into(), flows: Vec::new(), own: 1 };
        for name in ["flows.ftp.goodput_bps", "ftp.goodput_bps", "flows.ftp.goodput", "ftp.goodput"] {
            assert_eq!(names.one(name), Ok("flows.ftp.goodput_bps"));
        }
        assert_eq!(names.one("A.sent"), Err("`A.sent` is flows.A.sent and stations.A.sent; choose one".to_owned()));
        for name in ["ftp.delay", "ftp", "*.goodput_bps"] {
            assert!(names.one(name).is_err_and(|said| said.starts_with("there is no figure")), "{name}");
        }
    }

    #[test]
    fn a_figure_is_chosen_by_its_name_a_shorter_one_or_one_above_it() {
        for (name, column) in [
            ("flows.ftp.goodput_bps", "flows.ftp.goodput_bps"),
            ("ftp.goodput_bps", "flows.ftp.goodput_bps"),
            ("ftp.goodput", "flows.ftp.goodput_bps"),
            ("ftp.delay", "flows.ftp.delay.p99"),
            ("ftp", "flows.ftp.lost.wired"),
            ("*.added_delay.p99", "flows.game.1.added_delay.p99"),
            ("g*.sent", "flows.game.1.sent"),
            ("ftp.start_up.sent", "flows.ftp.start_up.sent"),
            ("control.capacity_bps", "control.capacity_bps.mean"),
            ("duration", "duration_s"),
        ] {
            assert!(chooses(name, column), "{name} {column}");
        }
        for (name, column) in [
            ("ftp", "flows.ftp2.sent"),
            ("ftp.sent", "flows.ftp.start_up.sent"),
            ("*.sent", "flows.ftp.start_up.sent"),
            ("ftp.good", "flows.ftp.goodput_bps"),
            ("delay.p99", "flows.ftp.delay.p99"),
            ("a*a", "a"),
        ] {
            assert!(!chooses(name, column), "{name} {column}");
        }
    }
}
