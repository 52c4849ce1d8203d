//! The extension module of the Python package `lasthop`: `lasthop._lasthop`, whose types `python/lasthop` gives its users.
//!
//! A run holds no lock of the interpreter; Ctrl-C ends one that the main thread waits for. What Python reads of a run in bulk goes as
//! Arrow through the PyCapsule interface, without a copy. Types and docstrings: `python/lasthop/_lasthop.pyi`.

/// The docstring of a class or of its member, as the stubs have it (`build.rs`).
macro_rules! doc {
    ($name:literal) => {
        include_str!(concat!(env!("OUT_DIR"), "/", $name))
    };
}

mod arrow;
mod home;
mod law;
mod report;
mod run;
mod series;
mod sweep;
mod trace;

use lasthop_store::StoreError;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

/// What `lasthop` is made of that is not Python.
#[pymodule(name = "_lasthop")]
fn extension(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("REVISION", lasthop_command::REVISION)?;
    module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<home::Home>()?;
    module.add_class::<report::Report>()?;
    module.add_class::<arrow::Table>()?;
    module.add_class::<law::Ack>()?;
    module.add_class::<law::Window>()?;
    module.add_class::<run::Stop>()?;
    module.add_class::<sweep::Plan>()?;
    module.add_class::<sweep::Store>()?;
    Ok(())
}

/// An error and its causes in one line, as the commands say it.
fn sentence(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

fn refused(error: &dyn std::error::Error) -> PyErr {
    PyValueError::new_err(sentence(error))
}

fn of_store(error: &StoreError) -> PyErr {
    match error {
        StoreError::Io { source, .. } => match source.raw_os_error() {
            Some(number) => PyOSError::new_err((number, sentence(error))),
            None => PyOSError::new_err(sentence(error)),
        },
        StoreError::Strange(_) => refused(error),
    }
}
