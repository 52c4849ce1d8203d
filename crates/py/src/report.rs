//! A report as Python has it.

use std::sync::Arc;

use lasthop_home::report::{self, closest};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use serde_json::Value;

use crate::arrow::Table;
use crate::refused;
use crate::series::Tables;

#[doc = doc!("Report")]
#[pyclass(frozen, module = "lasthop")]
pub struct Report {
    pub report: Arc<report::Report>,
    pub trace: Option<Table>,
    pub series: Option<Tables>,
}

impl Report {
    /// As a store keeps it: compact JSON, without how long the run took.
    pub fn kept(&self) -> PyResult<String> {
        let mut report = (*self.report).clone();
        report.run.wall_s = 0.0;
        serde_json::to_string(&report).map_err(|error| refused(&error))
    }

    /// Every scalar and its name.
    fn scalars(&self) -> PyResult<lasthop_store::Row> {
        lasthop_store::scalars(&self.report).map_err(|error| refused(&error))
    }
}

#[pymethods]
impl Report {
    #[doc = doc!("Report.to_json")]
    fn to_json(&self) -> String {
        self.report.to_json()
    }

    #[doc = doc!("Report.to_dict")]
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = serde_json::to_string(&*self.report).map_err(|error| refused(&error))?;
        py.import("json")?.call_method1("loads", (text,))
    }

    /// The report as a store keeps it.
    fn _kept(&self) -> PyResult<String> {
        self.kept()
    }

    #[doc = doc!("Report.figures")]
    fn figures<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let figures = PyDict::new(py);
        for (name, value) in self.scalars()? {
            figures.set_item(name, object(py, &value)?)?;
        }
        Ok(figures)
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let scalars = self.scalars()?;
        let exactly = scalars.iter().find(|(own, _)| own == name);
        let called: Vec<_> = match exactly {
            Some(one) => vec![one],
            None => scalars.iter().filter(|(own, _)| lasthop_store::is_called(own, name)).collect(),
        };
        match called.as_slice() {
            [] => {}
            [(_, value)] => return object(py, value),
            several => {
                let names: Vec<&str> = several.iter().map(|(own, _)| own.as_str()).collect();
                return Err(PyKeyError::new_err(format!("`{name}` is {}; choose one", names.join(" and "))));
            }
        }
        let near = closest(name, scalars.iter().map(|(own, _)| own.as_str())).join(", ");
        Err(PyKeyError::new_err(format!("there is no figure `{name}`; near it are {near}")))
    }

    #[doc = doc!("Report.scenario")]
    #[getter]
    fn scenario(&self) -> &str {
        &self.report.scenario
    }

    #[doc = doc!("Report.seed")]
    #[getter]
    fn seed(&self) -> u64 {
        self.report.seed
    }

    #[doc = doc!("Report.flows")]
    #[getter]
    fn flows(&self) -> Vec<String> {
        self.report.flows.iter().map(|flow| flow.name.clone()).collect()
    }

    #[doc = doc!("Report.wall_s")]
    #[getter]
    fn wall_s(&self) -> f64 {
        self.report.run.wall_s
    }

    #[doc = doc!("Report.events")]
    #[getter]
    fn events(&self) -> u64 {
        self.report.run.events
    }

    #[doc = doc!("Report.trace")]
    #[getter]
    fn trace(&self) -> PyResult<Table> {
        self.trace.clone().ok_or_else(|| PyValueError::new_err("this run kept no trace; run(trace=True) does"))
    }

    #[doc = doc!("Report.series")]
    #[getter]
    fn series(&self) -> PyResult<Table> {
        self.series.as_ref().map(|it| it.flows.clone()).ok_or_else(no_series)
    }

    #[doc = doc!("Report.queue_series")]
    #[getter]
    fn queue_series(&self) -> PyResult<Table> {
        self.series.as_ref().map(|it| it.queue.clone()).ok_or_else(no_series)
    }

    #[doc = doc!("Report.delays")]
    #[getter]
    fn delays(&self) -> PyResult<Table> {
        self.series.as_ref().map(|it| it.delays.clone()).ok_or_else(no_series)
    }

    fn __repr__(&self) -> String {
        let flows = self.report.flows.len();
        format!("<lasthop.Report of {}, seed {}: {flows} flows>", self.report.scenario, self.report.seed)
    }

    fn _repr_html_<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("lasthop._notebook")?.call_method1("of_report", (slf,))
    }

    fn __eq__(&self, other: &Self) -> PyResult<bool> {
        Ok(self.kept()? == other.kept()?)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let make = py.get_type::<Self>().getattr("_of")?;
        let series = self.series.as_ref().map(|it| (it.flows.clone(), it.queue.clone(), it.delays.clone()));
        let text = serde_json::to_string(&*self.report).map_err(|error| refused(&error))?;
        Ok((make, (text, self.trace.clone(), series).into_pyobject(py)?))
    }

    #[staticmethod]
    #[pyo3(signature = (text, trace = None, series = None))]
    fn _of(
        text: &str,
        trace: Option<Bound<'_, Table>>,
        series: Option<(Bound<'_, Table>, Bound<'_, Table>, Bound<'_, Table>)>,
    ) -> PyResult<Self> {
        let report = serde_json::from_str(text).map_err(|error| refused(&error))?;
        let own = |table: Bound<'_, Table>| table.get().clone();
        let series =
            series.map(|(flows, queue, delays)| Tables { flows: own(flows), queue: own(queue), delays: own(delays) });
        Ok(Self { report: Arc::new(report), trace: trace.map(own), series })
    }
}

fn no_series() -> PyErr {
    PyValueError::new_err("this run kept no series; run(series=True) does")
}

/// A scalar of JSON as Python's.
pub fn object<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(flag) => flag.into_pyobject(py)?.to_owned().into_any(),
        Value::Number(number) => match number.as_u64() {
            Some(count) => count.into_pyobject(py)?.into_any(),
            None => number.as_f64().into_pyobject(py)?.into_any(),
        },
        Value::String(text) => text.into_pyobject(py)?.into_any(),
        list => py.import("json")?.call_method1("loads", (list.to_string(),))?,
    })
}
