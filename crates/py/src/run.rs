//! One run, without the interpreter's lock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use lasthop_command::REVISION;
use lasthop_home::scenario::Scenario;
use lasthop_sim::{Options, Progress, SimError, TraceLine};
use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyRuntimeError};
use pyo3::prelude::*;

use crate::law::Makers;
use crate::refused;
use crate::report::Report;
use crate::series::Series;
use crate::trace::Trace;

#[doc = doc!("Stop")]
#[pyclass(frozen, module = "lasthop")]
#[derive(Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

#[pymethods]
impl Stop {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    #[doc = doc!("Stop.set")]
    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What is wanted besides the report.
#[derive(Clone, Copy)]
pub struct Wanted {
    pub trace: bool,
    pub series: bool,
}

/// Runs `home` to its end, or until `stop`, or until a signal that Python answers with an exception.
pub fn run(
    py: Python<'_>,
    home: &Scenario,
    wanted: Wanted,
    stop: Option<Arc<AtomicBool>>,
    laws: Option<&Makers>,
) -> PyResult<Report> {
    // Python handles signals in the main thread alone; the others need not wait for its lock to learn that there are none.
    let threading = py.import("threading")?;
    let is_main = threading.call_method0("current_thread")?.is(&threading.call_method0("main_thread")?);
    py.detach(|| simulate(home, wanted, is_main, stop.as_deref(), laws))
}

fn simulate(
    home: &Scenario,
    wanted: Wanted,
    is_main: bool,
    stop: Option<&AtomicBool>,
    laws: Option<&Makers>,
) -> PyResult<Report> {
    let mut raised = None;
    let of_law = laws.map(Makers::raised).unwrap_or_default();
    let mut take = || of_law.lock().unwrap_or_else(PoisonError::into_inner).take();
    let mut goes_on = |_: Progress| {
        if is_main {
            raised = Python::attach(|py| py.check_signals()).err();
        }
        raised = raised.take().or_else(&mut take);
        raised.is_none() && !stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    };
    let mut trace = wanted.trace.then(|| Trace::new(home));
    let mut series = wanted.series.then(|| Series::new(home));
    let mut packets = Vec::new();
    let mut line = |line: &TraceLine| {
        series.iter_mut().for_each(|series| series.line(line));
        trace.as_mut().map_or(Ok(()), |trace| trace.line(line))
    };
    let since = Instant::now();
    let mut options = Options { progress: Some(&mut goes_on), revision: REVISION, ..Options::default() };
    if wanted.trace || wanted.series {
        options.trace = Some(&mut line);
    }
    let mut make = |flow: &str| laws.and_then(|laws| laws.make(flow));
    if laws.is_some() {
        options.laws = Some(&mut make);
    }
    options.packets = wanted.series.then_some(&mut packets);
    let ended = lasthop_sim::run(home, &mut options);
    if let Some(error) = raised.take().or_else(take) {
        return Err(error);
    }
    let wall = since.elapsed().as_secs_f64();
    let mut report = ended.map_err(|error| match error {
        SimError::Stopped => PyKeyboardInterrupt::new_err("stopped before the end"),
        SimError::Scenario(error) => refused(&error),
        SimError::Write(error) if error.kind() == std::io::ErrorKind::OutOfMemory => {
            PyMemoryError::new_err(error.to_string())
        }
        error => PyRuntimeError::new_err(crate::sentence(&error)),
    })?;
    report.run.wall_s = wall;
    let trace = trace.map(Trace::finish).transpose()?;
    let series = series.map(|series| series.finish(packets)).transpose()?;
    Ok(Report { report: Arc::new(report), trace, series })
}
