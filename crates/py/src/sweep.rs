//! Plans and stores as Python has them; `python/lasthop/_sweep.py` runs what they say is missing.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::builder::{BooleanBuilder, Float64Builder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use lasthop_command::REVISION;
use lasthop_store::{Batch, Cell, Figures, Key, Kind, MOST_RUNS, Names, StoreError, Values};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::arrow::capsule;
use crate::home::Home;
use crate::run::Stop;
use crate::{of_store, refused};

#[doc = doc!("Plan")]
#[pyclass(frozen, module = "lasthop")]
pub struct Plan {
    plan: Arc<lasthop_store::Plan>,
    scenario: Key,
}

/// (key, value) of what a cell varies.
type Varied = Vec<(String, String)>;

#[pymethods]
impl Plan {
    /// `cells` are what each varies of `home`, all the same keys.
    #[new]
    fn new(py: Python<'_>, home: &Bound<'_, Home>, cells: Vec<Varied>) -> PyResult<Self> {
        let home = home.get();
        let scenario = Key::of_bytes(home.source.text().as_bytes());
        let cells = py.detach(|| {
            let cell = |values: Varied| {
                let named: Vec<String> = values.iter().map(|(key, value)| format!("{key}={value}")).collect();
                let wrong = |error: &dyn std::error::Error| match named.is_empty() {
                    true => refused(error),
                    false => PyValueError::new_err(format!("with {}: {}", named.join(", "), crate::sentence(error))),
                };
                let cell = Cell::new(&home.source, &home.sets, values, REVISION).map_err(|error| wrong(&error))?;
                lasthop_sim::check(&cell.home).map_err(|error| wrong(&error))?;
                Ok(cell)
            };
            cells.into_iter().map(cell).collect::<PyResult<Vec<Cell>>>()
        })?;
        Ok(Self { plan: Arc::new(lasthop_store::Plan { cells, runs: Vec::new() }), scenario })
    }

    #[doc = doc!("Plan.with_seeds")]
    fn with_seeds(&self, seeds: Vec<Vec<u64>>) -> PyResult<Self> {
        let runs: usize = seeds.iter().map(Vec::len).sum();
        if seeds.len() != self.plan.cells.len() || runs > MOST_RUNS {
            return Err(PyValueError::new_err(format!("a sweep has at most {MOST_RUNS} runs; divide it into several")));
        }
        let of_cell = |(cell, seeds): (usize, Vec<u64>)| seeds.into_iter().map(move |seed| (cell as u32, seed));
        let runs = seeds.into_iter().enumerate().flat_map(of_cell).collect();
        let plan = lasthop_store::Plan { cells: self.plan.cells.clone(), runs };
        Ok(Self { plan: Arc::new(plan), scenario: self.scenario })
    }

    fn __len__(&self) -> usize {
        self.plan.runs.len()
    }

    #[doc = doc!("Plan.seed")]
    #[getter]
    fn seed(&self) -> u64 {
        self.plan.cells.first().map_or(1, |cell| cell.home.seed)
    }

    #[doc = doc!("Plan.run")]
    fn run(&self, run: usize) -> PyResult<(u32, u64)> {
        self.plan.runs.get(run).copied().ok_or_else(|| PyValueError::new_err("there is no such run"))
    }

    #[doc = doc!("Plan.key")]
    fn key(&self, run: usize) -> PyResult<String> {
        self.run(run)?;
        Ok(self.plan.key(run).to_string())
    }

    #[doc = doc!("Plan.values")]
    fn values(&self, cell: usize) -> PyResult<Varied> {
        let cell = self.plan.cells.get(cell).ok_or_else(|| PyValueError::new_err("there is no such cell"))?;
        Ok(cell.values.clone())
    }

    #[doc = doc!("Plan.digest")]
    fn digest(&self) -> String {
        Key::of_keys(self.plan.keys()).to_string()
    }

    #[doc = doc!("Plan.figures")]
    #[pyo3(signature = (chosen = None))]
    fn figures(&self, py: Python<'_>, chosen: Option<Vec<String>>) -> PyResult<Vec<String>> {
        if chosen.as_ref().is_some_and(|names| names.len() == 1 && names[0] == "all") {
            return Ok(vec!["all".to_owned()]);
        }
        py.detach(|| {
            let names = self.names()?;
            let figures = chosen.map_or_else(|| names.usual(), Figures::Chosen);
            if let Figures::Chosen(chosen) = &figures {
                let is_usual = names.usual() == figures;
                if !is_usual {
                    names.check(&figures).map_err(PyValueError::new_err)?;
                }
                return Ok(chosen.clone());
            }
            Ok(vec!["all".to_owned()])
        })
    }

    #[doc = doc!("Plan.figure")]
    fn figure(&self, py: Python<'_>, name: &str) -> PyResult<String> {
        py.detach(|| self.names()?.one(name).map(str::to_owned).map_err(PyValueError::new_err))
    }
}

impl Plan {
    fn names(&self) -> PyResult<Names> {
        let simulate = |home: &_| lasthop_sim::run(home, &mut lasthop_sim::Options::default());
        let own = self.plan.cells.first().map_or(0, |cell| cell.values.len()) + 1;
        Names::new(self.plan.cells.iter().map(|cell| &cell.home), own, simulate).map_err(|error| refused(&error))
    }
}

fn figures(names: Vec<String>) -> Figures {
    if names.len() == 1 && names[0] == "all" { Figures::All } else { Figures::Chosen(names) }
}

#[doc = doc!("Store")]
#[pyclass(frozen, module = "lasthop")]
pub struct Store {
    store: Arc<Mutex<lasthop_store::Store>>,
    #[doc = doc!("Store.root")]
    root: PathBuf,
}

impl Store {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut lasthop_store::Store) -> Result<T, StoreError> + Send,
    ) -> PyResult<T> {
        py.detach(|| work(&mut self.store.lock().unwrap_or_else(PoisonError::into_inner)))
            .map_err(|error| of_store(&error))
    }
}

fn parsed(text: &str) -> PyResult<Key> {
    text.parse().map_err(|()| PyValueError::new_err("a key is 64 hexadecimal digits"))
}

#[pymethods]
impl Store {
    #[new]
    fn new(py: Python<'_>, root: PathBuf) -> PyResult<Self> {
        let store = py.detach(|| lasthop_store::Store::open(&root)).map_err(|error| of_store(&error))?;
        Ok(Self { store: Arc::new(Mutex::new(store)), root })
    }

    #[doc = doc!("Store.PACK")]
    #[classattr]
    const PACK: usize = lasthop_store::Store::PACK;

    #[doc = doc!("Store.is_at")]
    #[staticmethod]
    fn is_at(root: PathBuf) -> bool {
        lasthop_store::Store::is_at(&root)
    }

    #[doc = doc!("Store.root")]
    #[getter]
    fn root(&self) -> PathBuf {
        self.root.clone()
    }

    #[doc = doc!("Store.missing")]
    fn missing(&self, py: Python<'_>, plan: &Bound<'_, Plan>) -> PyResult<Vec<usize>> {
        let plan = Arc::clone(&plan.get().plan);
        self.with(py, move |store| store.missing(plan.keys()))
    }

    #[doc = doc!("Store.put")]
    fn put(&self, py: Python<'_>, key: &str, report: &str) -> PyResult<()> {
        let key = parsed(key)?;
        self.with(py, |store| store.put(key, report))
    }

    #[doc = doc!("Store.get")]
    fn get(&self, py: Python<'_>, key: &str) -> PyResult<Option<String>> {
        let key = parsed(key)?;
        self.with(py, |store| store.get(key))
    }

    #[doc = doc!("Store.pack")]
    fn pack(&self, py: Python<'_>, plan: &Bound<'_, Plan>, stretch: usize) -> PyResult<()> {
        let plan = Arc::clone(&plan.get().plan);
        let size = lasthop_store::Store::PACK;
        let runs = stretch.saturating_mul(size)..stretch.saturating_add(1).saturating_mul(size).min(plan.runs.len());
        self.with(py, move |store| store.pack(runs.map(|run| plan.key(run))))
    }

    #[doc = doc!("Store.values")]
    fn values(&self, py: Python<'_>, plan: &Bound<'_, Plan>, name: &str) -> PyResult<Vec<Option<f64>>> {
        let plan = Arc::clone(&plan.get().plan);
        let store = Arc::clone(&self.store);
        py.detach(|| {
            let value = |run| Ok(lasthop_store::scalar_of(&report_of(&store, &plan, run)?, name));
            (0..plan.runs.len()).map(value).collect::<Result<_, StoreError>>()
        })
        .map_err(|error| of_store(&error))
    }

    #[doc = doc!("Store.write_table")]
    fn write_table(&self, py: Python<'_>, plan: &Bound<'_, Plan>, names: Vec<String>, path: PathBuf) -> PyResult<bool> {
        let (scenario, plan) = (plan.get().scenario, Arc::clone(&plan.get().plan));
        let figures = figures(names);
        self.with(py, move |store| lasthop_store::write_table(store, &plan, &figures, (&path, REVISION, scenario)))
    }

    #[doc = doc!("Store.work")]
    #[staticmethod]
    #[pyo3(signature = (home, seeds, root = None, mark = None, stop = None))]
    fn work(
        py: Python<'_>,
        home: &Bound<'_, Home>,
        seeds: Vec<u64>,
        root: Option<PathBuf>,
        mark: Option<String>,
        stop: Option<Bound<'_, Stop>>,
    ) -> PyResult<Option<Vec<String>>> {
        let home = home.get();
        let stop = stop.map(|stop| stop.get().flag());
        let root = root.filter(|root| mark.as_ref().is_some_and(|mark| root.join(mark).is_file()));
        let mut reports = Vec::new();
        for seed in seeds {
            let key = home.cell.key(seed);
            if let Some(root) = &root
                && lasthop_store::Store::is_put_at(root, key).map_err(|error| of_store(&error))?
            {
                continue;
            }
            let wanted = crate::run::Wanted { trace: false, series: false };
            let report = crate::run::run(py, &home.scenario().with_seed(seed), wanted, stop.clone(), None)?.kept()?;
            match &root {
                Some(root) => {
                    py.detach(|| lasthop_store::Store::put_at(root, key, &report)).map_err(|error| of_store(&error))?
                }
                None => reports.push(report),
            }
        }
        Ok(root.is_none().then_some(reports))
    }

    #[doc = doc!("Store.stream")]
    fn stream<'py>(
        &self,
        py: Python<'py>,
        plan: &Bound<'_, Plan>,
        names: Vec<String>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let plan = Arc::clone(&plan.get().plan);
        let store = Arc::clone(&self.store);
        let reader = py.detach(|| Rows::new(store, plan, &figures(names))).map_err(|error| of_store(&error))?;
        capsule(py, Box::new(reader))
    }
}

/// Rows of a plan as batches of Arrow.
struct Rows {
    store: Arc<Mutex<lasthop_store::Store>>,
    plan: Arc<lasthop_store::Plan>,
    table: lasthop_store::Table,
    schema: SchemaRef,
    left: Box<dyn Iterator<Item = std::ops::Range<usize>> + Send>,
}

fn report_of(
    store: &Mutex<lasthop_store::Store>,
    plan: &lasthop_store::Plan,
    run: usize,
) -> Result<String, StoreError> {
    let there = store.lock().unwrap_or_else(PoisonError::into_inner).get(plan.key(run))?;
    there.ok_or_else(|| StoreError::Strange(format!("run {run} of the sweep is not in its store")))
}

impl Rows {
    fn new(
        store: Arc<Mutex<lasthop_store::Store>>,
        plan: Arc<lasthop_store::Plan>,
        figures: &Figures,
    ) -> Result<Self, StoreError> {
        let table = lasthop_store::Table::new(&plan, figures, &mut |run| report_of(&store, &plan, run))?;
        let field = |column: &lasthop_store::Column| {
            let kind = match column.kind {
                Kind::Count => DataType::UInt64,
                Kind::Float => DataType::Float64,
                Kind::Flag => DataType::Boolean,
                Kind::Text => DataType::Utf8,
            };
            Field::new(&column.name, kind, true)
        };
        let schema = Arc::new(Schema::new(table.columns().iter().map(field).collect::<Vec<_>>()));
        let left = Box::new(table.batches());
        Ok(Self { store, plan, table, schema, left })
    }
}

impl Iterator for Rows {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let runs = self.left.next()?;
        let (store, plan) = (&self.store, &self.plan);
        let batch = self.table.batch(plan, runs, &mut |run| report_of(store, plan, run));
        let made = batch.map_err(|error| ArrowError::ExternalError(Box::new(error)));
        Some(made.and_then(|batch| RecordBatch::try_new(Arc::clone(&self.schema), arrays(batch))))
    }
}

impl RecordBatchReader for Rows {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

fn arrays(batch: Batch) -> Vec<ArrayRef> {
    let array = |values: Values| -> ArrayRef {
        match values {
            Values::Count(all) => {
                let mut to = UInt64Builder::with_capacity(all.len());
                all.into_iter().for_each(|value| to.append_option(value));
                Arc::new(to.finish())
            }
            Values::Float(all) => {
                let mut to = Float64Builder::with_capacity(all.len());
                all.into_iter().for_each(|value| to.append_option(value));
                Arc::new(to.finish())
            }
            Values::Flag(all) => {
                let mut to = BooleanBuilder::with_capacity(all.len());
                all.into_iter().for_each(|value| to.append_option(value));
                Arc::new(to.finish())
            }
            Values::Text(all) => {
                let mut to = StringBuilder::new();
                all.iter()
                    .for_each(|value| to.append_option(value.as_deref().and_then(|v| std::str::from_utf8(v).ok())));
                Arc::new(to.finish())
            }
        }
    };
    batch.columns.into_iter().map(array).collect()
}
