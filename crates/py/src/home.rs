//! A home as Python has it: a scenario's text, its traces, and what was set; never changed once it is made.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use lasthop_command::REVISION;
use lasthop_home::scenario::Scenario;
use lasthop_store::{Cell, Source};
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::law::Makers;
use crate::refused;
use crate::report::Report;
use crate::run::{self, Stop, Wanted};

#[doc = doc!("Home")]
#[pyclass(frozen, module = "lasthop")]
pub struct Home {
    pub source: Arc<Source>,
    pub sets: Vec<String>,
    pub cell: Arc<Cell>,
}

impl Home {
    fn new(source: Arc<Source>, sets: Vec<String>) -> PyResult<Self> {
        let cell = Cell::new(&source, &sets, Vec::new(), REVISION).map_err(|error| refused(&error))?;
        Ok(Self { source, sets, cell: Arc::new(cell) })
    }

    pub fn scenario(&self) -> &Scenario {
        &self.cell.home
    }

    /// The seed that was given, or the scenario's.
    fn seed_or_own(&self, given: Option<Bound<'_, PyAny>>) -> PyResult<u64> {
        let Some(given) = given else { return Ok(self.scenario().seed) };
        given.extract().map_err(|error: PyErr| match error.is_instance_of::<PyOverflowError>(given.py()) {
            true => PyValueError::new_err(format!("seed: {given} stands here; write an integer from 0 to 2**64-1")),
            false => error,
        })
    }
}

#[pymethods]
impl Home {
    #[doc = doc!("Home.load")]
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| {
            let source = Source::load(&path).map_err(|error| refused(&error))?;
            Self::new(Arc::new(source), Vec::new())
        })
    }

    #[doc = doc!("Home.parse")]
    #[staticmethod]
    #[pyo3(signature = (text, file = "scenario.toml"))]
    fn parse(text: &str, file: &str) -> PyResult<Self> {
        Self::new(Arc::new(Source::new(text, file)), Vec::new())
    }

    #[staticmethod]
    fn _sealed(text: &str, file: &str, traces: BTreeMap<String, String>, sets: Vec<String>) -> PyResult<Self> {
        Self::new(Arc::new(Source::sealed(text, file, traces)), sets)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let make = py.get_type::<Self>().getattr("_sealed")?;
        let state = (self.source.text(), self.source.file(), self.source.traces(), self.sets.clone());
        Ok((make, state.into_pyobject(py)?))
    }

    /// The same home with more set, each `key=value`.
    fn _with(&self, py: Python<'_>, sets: Vec<String>) -> PyResult<Self> {
        let all = self.sets.iter().cloned().chain(sets).collect();
        py.detach(|| Self::new(Arc::clone(&self.source), all))
    }

    #[doc = doc!("Home.set")]
    #[pyo3(signature = (keys = None, **named))]
    fn set<'py>(
        slf: Bound<'py, Self>,
        keys: Option<Bound<'py, PyAny>>,
        named: Option<Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let named = named.unwrap_or_else(|| PyDict::new(py));
        py.import("lasthop._home")?.call_method1("change", (slf, keys, named))
    }

    fn _repr_html_<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("lasthop._notebook")?.call_method1("of_home", (slf,))
    }

    fn __repr__(&self) -> String {
        let home = self.scenario();
        let sets = if self.sets.is_empty() { String::new() } else { format!(" with {}", self.sets.join("; ")) };
        format!("<lasthop.Home {}, {}, {} flows{sets}>", home.name, home.duration, home.flows.len())
    }

    #[doc = doc!("Home.check")]
    fn check(&self) -> PyResult<()> {
        lasthop_sim::check(self.scenario()).map_err(|error| refused(&error))
    }

    #[doc = doc!("Home.run")]
    #[pyo3(signature = (seed = None, trace = false, series = false, laws = None, stop = None))]
    fn run(
        &self,
        py: Python<'_>,
        seed: Option<Bound<'_, PyAny>>,
        trace: bool,
        series: bool,
        laws: Option<Bound<'_, PyDict>>,
        stop: Option<Bound<'_, Stop>>,
    ) -> PyResult<Report> {
        let stop = stop.map(|stop| stop.get().flag());
        let laws = laws.map(|laws| Makers::new(&laws, self.scenario())).transpose()?;
        let home = self.scenario().with_seed(self.seed_or_own(seed)?);
        run::run(py, &home, Wanted { trace, series }, stop, laws.as_ref())
    }

    #[doc = doc!("Home.key")]
    #[pyo3(signature = (seed = None))]
    fn key(&self, seed: Option<Bound<'_, PyAny>>) -> PyResult<String> {
        Ok(self.cell.key(self.seed_or_own(seed)?).to_string())
    }

    #[doc = doc!("Home.name")]
    #[getter]
    fn name(&self) -> &str {
        &self.scenario().name
    }

    #[doc = doc!("Home.file")]
    #[getter]
    fn file(&self) -> &str {
        self.source.file()
    }

    #[doc = doc!("Home.text")]
    #[getter]
    fn text(&self) -> &str {
        self.source.text()
    }

    #[doc = doc!("Home.sets")]
    #[getter]
    fn sets(&self) -> Vec<String> {
        self.sets.clone()
    }

    #[doc = doc!("Home.seed")]
    #[getter]
    fn seed(&self) -> u64 {
        self.scenario().seed
    }

    #[doc = doc!("Home.duration_s")]
    #[getter]
    fn duration_s(&self) -> f64 {
        self.scenario().duration.as_secs_f64()
    }

    #[doc = doc!("Home.measure_from_s")]
    #[getter]
    fn measure_from_s(&self) -> f64 {
        self.scenario().measure_from.as_secs_f64()
    }

    #[doc = doc!("Home.flows")]
    #[getter]
    fn flows(&self) -> Vec<(String, String, String, String, f64)> {
        let home = self.scenario();
        let host = |id| home.host_name(id).to_owned();
        let flow = |flow: &lasthop_home::scenario::Flow| {
            (flow.name.clone(), host(flow.from), host(flow.to), flow.kind.name().to_owned(), flow.start.as_secs_f64())
        };
        home.flows.iter().map(flow).collect()
    }

    #[doc = doc!("Home.stations")]
    #[getter]
    fn stations(&self) -> Vec<String> {
        self.scenario().stations.iter().map(|station| station.name.clone()).collect()
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.cell.key(self.scenario().seed) == other.cell.key(other.scenario().seed)
    }

    fn __hash__(&self) -> u64 {
        let key = self.cell.key(self.scenario().seed).0;
        u64::from_le_bytes([key[0], key[1], key[2], key[3], key[4], key[5], key[6], key[7]])
    }
}
