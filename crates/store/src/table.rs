//! Rows of a plan: the varied keys, the seed, and figures of the reports, a column of one kind each.
//!
//! Which columns there are is read from all reports first, so that a table's bytes depend on nothing but the plan, the figures chosen
//! and the reports: columns stand in the order in which rows bring them, one that some rows lack is null there. `run.wall_s` is none:
//! how long a run took is not a part of what it gave.

use std::collections::HashMap;
use std::ops::Range;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::row::{self, Row};
use crate::{Chooser, Figures, Key, Plan, Store, StoreError, parquet};

/// Rows of one batch, and of one row group of a file: of 400 columns 50 MB.
const ROWS: usize = 8192;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Counts and seeds, 64 bits without a sign.
    Count,
    /// 64 bits.
    Float,
    /// True or false.
    Flag,
    /// UTF-8.
    Text,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// As a sweep's CSV has it: `flows.ftp.goodput_bps`.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
}

/// Values of one column in a batch, one per row.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Of [`Kind::Count`].
    Count(Vec<Option<u64>>),
    /// Of [`Kind::Float`].
    Float(Vec<Option<f64>>),
    /// Of [`Kind::Flag`].
    Flag(Vec<Option<bool>>),
    /// Of [`Kind::Text`].
    Text(Vec<Option<Bytes>>),
}

impl Values {
    fn with_room(kind: Kind, rows: usize) -> Self {
        match kind {
            Kind::Count => Self::Count(Vec::with_capacity(rows)),
            Kind::Float => Self::Float(Vec::with_capacity(rows)),
            Kind::Flag => Self::Flag(Vec::with_capacity(rows)),
            Kind::Text => Self::Text(Vec::with_capacity(rows)),
        }
    }

    /// Nulls up to `row`, then `value`.
    fn put(&mut self, row: usize, value: &Value) {
        self.fill(row);
        match self {
            Self::Count(all) => all.push(value.as_u64()),
            Self::Float(all) => all.push(value.as_f64()),
            Self::Flag(all) => all.push(value.as_bool()),
            Self::Text(all) => all.push((!value.is_null()).then(|| row::cell(value).into())),
        }
    }

    fn fill(&mut self, rows: usize) {
        match self {
            Self::Count(all) => all.resize(rows, None),
            Self::Float(all) => all.resize(rows, None),
            Self::Flag(all) => all.resize(rows, None),
            Self::Text(all) => all.resize(rows, None),
        }
    }
}

/// Some rows of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// How many.
    pub rows: usize,
    /// In the order of [`Table::columns`].
    pub columns: Vec<Values>,
}

/// How a table gets at the report of a run, compact JSON.
pub type Reports<'a> = dyn FnMut(usize) -> Result<String, StoreError> + 'a;

/// The columns of a plan's rows, and how to get at those.
#[derive(Debug)]
pub struct Table {
    columns: Vec<Column>,
    places: HashMap<String, usize>,
    chosen: Chooser,
    rows: usize,
}

impl Table {
    /// Reads which columns the rows of `plan` have.
    ///
    /// # Errors
    /// Those of `reports`; a report that is none.
    pub fn new(plan: &Plan, figures: &Figures, reports: &mut Reports<'_>) -> Result<Self, StoreError> {
        let chosen = Chooser::new(figures.clone());
        let mut kinds: Vec<(String, Option<Kind>)> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for run in 0..plan.runs.len() {
            for (at, (name, value)) in row_of_run(plan, run, &chosen, reports)?.into_iter().enumerate() {
                let is_here = kinds.get(at).is_some_and(|(other, _)| *other == name);
                let place = if is_here { Some(at) } else { places.get(&name).copied() };
                let place = place.unwrap_or_else(|| {
                    places.insert(name.clone(), kinds.len());
                    kinds.push((name, None));
                    kinds.len() - 1
                });
                kinds[place].1 = merged(kinds[place].1, &value);
            }
        }
        let column = |(name, kind): (String, Option<Kind>)| Column { name, kind: kind.unwrap_or(Kind::Float) };
        let columns = kinds.into_iter().map(column).collect();
        Ok(Self { columns, places, chosen, rows: plan.runs.len() })
    }

    /// In their order.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The runs of each batch, in order.
    pub fn batches(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let rows = self.rows;
        (0..rows).step_by(ROWS).map(move |from| from..rows.min(from + ROWS))
    }

    /// The rows of these runs.
    ///
    /// # Errors
    /// Those of `reports`; a report that is none.
    pub fn batch(&self, plan: &Plan, runs: Range<usize>, reports: &mut Reports<'_>) -> Result<Batch, StoreError> {
        let rows = runs.len();
        let mut columns: Vec<Values> = self.columns.iter().map(|c| Values::with_room(c.kind, rows)).collect();
        for (row, run) in runs.enumerate() {
            for (at, (name, value)) in row_of_run(plan, run, &self.chosen, reports)?.into_iter().enumerate() {
                let is_here = self.columns.get(at).is_some_and(|column| column.name == name);
                if let Some(place) = if is_here { Some(at) } else { self.places.get(&name).copied() } {
                    columns[place].put(row, &value);
                }
            }
        }
        columns.iter_mut().for_each(|column| column.fill(rows));
        Ok(Batch { rows, columns })
    }
}

fn row_of_run(plan: &Plan, run: usize, chosen: &Chooser, reports: &mut Reports<'_>) -> Result<Row, StoreError> {
    let (cell, seed) = plan.runs[run];
    let report: Value = serde_json::from_str(&reports(run)?)
        .map_err(|error| StoreError::Strange(format!("the report of run {run} is no JSON: {error}")))?;
    let mut all = row::scalars_of(report);
    all.retain(|(name, _)| name != "run.wall_s");
    let values = plan.cells[cell as usize].values.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    Ok(row::row_of(values, seed, all, chosen))
}

/// The kind of a column that had `before` and has `value`, too.
fn merged(before: Option<Kind>, value: &Value) -> Option<Kind> {
    let now = match value {
        Value::Null => return before,
        Value::Bool(_) => Kind::Flag,
        Value::Number(number) if number.is_u64() => Kind::Count,
        Value::Number(_) => Kind::Float,
        _ => Kind::Text,
    };
    match (before, now) {
        (None, now) => Some(now),
        (Some(before), now) if before == now => Some(now),
        (Some(Kind::Count | Kind::Float), Kind::Count | Kind::Float) => Some(Kind::Float),
        _ => Some(Kind::Text),
    }
}

/// Packs what `plan` has in `store`, and writes its table to `path` and beside the store what it holds. Whether there was anything
/// to write.
///
/// # Errors
/// A run is missing, or a file cannot be written; what was there is there still.
pub fn write_table(
    store: &mut Store,
    plan: &Plan,
    figures: &Figures,
    (path, revision, scenario): (&std::path::Path, &str, Key),
) -> Result<bool, StoreError> {
    let manifest = store.root().join("manifest.json");
    let mut said = of_plan(plan, figures, revision, scenario);
    if is_written(&manifest, path, &said) {
        return Ok(false);
    }
    store.pack(plan.keys())?;
    let mut get = |run: usize| {
        let there = store.get(plan.key(run))?;
        there.ok_or_else(|| StoreError::Strange(format!("run {run} of the plan is not in {}", store.root().display())))
    };
    let table = Table::new(plan, figures, &mut get)?;
    let mut written = Vec::new();
    let temporary = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(std::path::Path::new("."));
    let file = tempfile::Builder::new()
        .prefix(".tmp")
        .tempfile_in(temporary)
        .map_err(StoreError::io(format!("{}: cannot be written", path.display())))?;
    parquet::write(file.as_file(), &table, plan, &mut get, path)?;
    let columns = |kind: Kind| format!("{kind:?}").to_lowercase();
    written.extend(table.columns.iter().map(|c| json!({"name": c.name, "kind": columns(c.kind)})));
    let bytes = file.as_file().metadata().map(|it| it.len()).unwrap_or_default();
    said.insert("columns".to_owned(), Value::Array(written));
    said.insert("table".to_owned(), json!({"bytes": bytes, "sha256": hash(file.as_file(), path)?.to_string()}));
    let failed = || StoreError::io(format!("{}: cannot be written", path.display()));
    let text = serde_json::to_vec_pretty(&said).map_err(|error| failed()(error.into()))?;
    file.as_file().sync_all().map_err(failed())?;
    #[cfg(unix)]
    let _ = file.as_file().set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
    file.persist(path).map_err(|error| failed()(error.error))?;
    store.replace(&manifest, |file| std::io::Write::write_all(file, &text))?;
    Ok(true)
}

fn hash(file: &std::fs::File, path: &std::path::Path) -> Result<Key, StoreError> {
    use std::io::{Read as _, Seek as _};
    let mut file = file;
    let mut all = Vec::new();
    let failed = || StoreError::io(format!("{}: cannot be read", path.display()));
    file.rewind().map_err(failed())?;
    file.read_to_end(&mut all).map_err(failed())?;
    Ok(Key::of_bytes(&all))
}

/// What the manifest says of a plan, before there is a table.
fn of_plan(plan: &Plan, figures: &Figures, revision: &str, scenario: Key) -> Map<String, Value> {
    let mut seeds: Vec<Vec<(u64, u64)>> = vec![Vec::new(); plan.cells.len()];
    for (cell, seed) in &plan.runs {
        match seeds[*cell as usize].last_mut() {
            Some((first, count)) if first.checked_add(*count) == Some(*seed) => *count += 1,
            _ => seeds[*cell as usize].push((*seed, 1)),
        }
    }
    let cell = |(cell, seeds): (&crate::Cell, Vec<(u64, u64)>)| {
        let values: Map<String, Value> = cell.values.iter().map(|(k, v)| (k.clone(), v.as_str().into())).collect();
        json!({"values": values, "sets": cell.sets, "seeds": seeds})
    };
    let cells: Vec<Value> = plan.cells.iter().zip(seeds).map(cell).collect();
    let figures = match figures {
        Figures::All => json!("all"),
        Figures::Chosen(names) => json!(names),
    };
    let said = json!({
        "format": 1,
        "revision": revision,
        "scenario": {"name": plan.cells.first().map(|cell| cell.home.name.clone()), "sha256": scenario.to_string()},
        "runs": plan.runs.len(),
        "keys_sha256": Key::of_keys(plan.keys()).to_string(),
        "figures": figures,
        "cells": cells,
    });
    match said {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Whether the table at `path` is the one that `said` would make; it is not read for that, its length alone is looked at.
fn is_written(manifest: &std::path::Path, path: &std::path::Path, said: &Map<String, Value>) -> bool {
    let Ok(text) = std::fs::read_to_string(manifest) else { return false };
    let Ok(Value::Object(there)) = serde_json::from_str(&text) else { return false };
    let same = said.iter().all(|(name, value)| there.get(name) == Some(value));
    let bytes = std::fs::metadata(path).map(|it| it.len()).ok();
    same && bytes.is_some() && there.get("table").and_then(|table| table.get("bytes")).and_then(Value::as_u64) == bytes
}
