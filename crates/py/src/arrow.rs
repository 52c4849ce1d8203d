//! Tables as Python has them: Arrow through the PyCapsule interface, which Polars, pandas, DuckDB and PyArrow read without a copy.
//!
//! Source: the Arrow C stream interface and its PyCapsule names, `arrow.apache.org/docs/format/CDataInterface`.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchReader, make_array};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, Schema};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList, PyString, PyTuple};

use crate::refused;

/// Named columns as a batch; each may hold nulls.
pub fn batch(columns: Vec<(&str, ArrayRef)>) -> PyResult<RecordBatch> {
    let field = |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), true);
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(Arc::new(schema), arrays).map_err(|error| refused(&error))
}

/// A capsule of the PyCapsule interface that gives what `reader` reads.
pub fn capsule<'py>(py: Python<'py>, reader: Box<dyn RecordBatchReader + Send>) -> PyResult<Bound<'py, PyCapsule>> {
    let stream = FFI_ArrowArrayStream::new(reader);
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

#[doc = doc!("Table")]
#[pyclass(frozen, module = "lasthop")]
#[derive(Clone)]
pub struct Table(RecordBatch);

impl Table {
    pub fn of(batch: RecordBatch) -> Self {
        Self(batch)
    }
}

/// One column of a pickle: its kind, its validity, its buffers; of a dictionary its values as such a column, too.
type Pickled<'py> = (String, usize, Option<Bound<'py, PyBytes>>, Vec<Bound<'py, PyBytes>>, Vec<Bound<'py, PyAny>>);

#[pymethods]
impl Table {
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A producer need not cast.
        drop(requested_schema);
        capsule(py, Box::new(RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema())))
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    #[doc = doc!("Table.columns")]
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    #[doc = doc!("Table.to_dict")]
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        for (name, array) in self.columns().into_iter().zip(self.0.columns()) {
            columns.set_item(name, list(py, array)?)?;
        }
        Ok(columns)
    }

    #[doc = doc!("Table.to_polars")]
    fn to_polars<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("lasthop._frames")?.call_method1("to_polars", (slf,))
    }

    #[doc = doc!("Table.to_pandas")]
    fn to_pandas<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("lasthop._frames")?.call_method1("to_pandas", (slf,))
    }

    #[doc = doc!("Table.to_arrow")]
    fn to_arrow<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("lasthop._frames")?.call_method1("to_arrow", (slf,))
    }

    fn __repr__(&self) -> String {
        format!("<lasthop.Table of {} rows: {}>", self.0.num_rows(), self.columns().join(", "))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let columns = self.0.columns().iter().map(|array| pickled(py, &array.to_data()));
        let columns = columns.collect::<PyResult<Vec<_>>>()?;
        let make = py.get_type::<Self>().getattr("_of")?;
        Ok((make, (self.columns(), columns).into_pyobject(py)?))
    }

    #[staticmethod]
    fn _of(names: Vec<String>, columns: Vec<Bound<'_, PyAny>>) -> PyResult<Self> {
        let arrays = columns.iter().map(|column| Ok(make_array(unpickled(column)?))).collect::<PyResult<Vec<_>>>()?;
        batch(names.iter().map(String::as_str).zip(arrays).collect()).map(Self)
    }
}

fn list<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Bound<'py, PyList>> {
    match array.data_type() {
        DataType::Float64 => PyList::new(py, array.as_primitive::<Float64Type>().iter()),
        DataType::UInt64 => PyList::new(py, array.as_primitive::<UInt64Type>().iter()),
        DataType::Dictionary(..) => {
            let names = array.as_dictionary::<Int32Type>();
            // One object of Python per name, not per row.
            let words: Vec<_> =
                names.values().as_string::<i32>().iter().map(|word| word.map(|w| PyString::new(py, w))).collect();
            PyList::new(py, names.keys().iter().map(|key| key.and_then(|at| words[at as usize].as_ref())))
        }
        other => Err(PyValueError::new_err(format!("a column of {other} has no list"))),
    }
}

fn pickled<'py>(py: Python<'py>, data: &ArrayData) -> PyResult<Bound<'py, PyAny>> {
    let kind = match data.data_type() {
        DataType::Float64 => "float",
        DataType::UInt64 => "count",
        DataType::Utf8 => "text",
        DataType::Dictionary(..) => "names",
        other => return Err(PyValueError::new_err(format!("a column of {other} cannot be pickled"))),
    };
    let bytes = |buffer: &Buffer| PyBytes::new(py, buffer.as_slice());
    // Built by ourselves, never cut: every buffer begins with the first row.
    let nulls = data.nulls().map(|nulls| bytes(nulls.buffer()));
    let children = data.child_data().iter().map(|child| pickled(py, child)).collect::<PyResult<Vec<_>>>()?;
    let buffers: Vec<_> = data.buffers().iter().map(bytes).collect();
    let column: Pickled<'py> = (kind.to_owned(), data.len(), nulls, buffers, children);
    Ok(column.into_pyobject(py)?.into_any())
}

fn unpickled(column: &Bound<'_, PyAny>) -> PyResult<ArrayData> {
    let (kind, rows, nulls, buffers, children): Pickled<'_> = column.extract()?;
    let kind = match kind.as_str() {
        "float" => DataType::Float64,
        "count" => DataType::UInt64,
        "text" => DataType::Utf8,
        "names" => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
        other => return Err(PyValueError::new_err(format!("there are no columns of `{other}`"))),
    };
    let buffer = |bytes: &Bound<'_, PyBytes>| Buffer::from(bytes.as_bytes());
    let mut data = ArrayData::builder(kind).len(rows).null_bit_buffer(nulls.as_ref().map(buffer));
    for bytes in &buffers {
        data = data.add_buffer(buffer(bytes));
    }
    for child in &children {
        data = data.add_child_data(unpickled(child)?);
    }
    data.align_buffers(true).build().map_err(|error| refused(&error))
}
