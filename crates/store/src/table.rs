//! Rows of a plan: the varied keys, the seed, and figures of the reports, a column of one kind each.
//!
//! Which columns there are is read from all reports first, so that a table's bytes depend on nothing but the plan, the figures chosen
//! and the reports: columns stand in the order in which rows bring them, one that some rows lack is null there. `run.wall_s` is none:
//! how long a run took is not a part of what it gave.

use std::collections::HashMap;
use std::ops::Range;

use bytes::Bytes;
use serde_json::Value;

use crate::figures::row_of;
use crate::row::{self, Row};
use crate::{Chooser, Figures, Plan, StoreError};

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
    Ok(row_of(values, seed, all, chosen))
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
