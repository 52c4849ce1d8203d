//! A table as a Parquet file: every column optional, pages packed by gzip, no statistics of the machine or the day in it.
//!
//! Source: the format's specification, `github.com/apache/parquet-format`. One batch of the table is one row group, so that no more
//! than one is held in memory.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, GzipLevel, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

use crate::table::{Reports, Table};
use crate::{Column, Kind, Plan, StoreError, Values};

/// Writes `table` into `file`, which errors call `path`.
pub fn write(
    file: &File,
    table: &Table,
    plan: &Plan,
    reports: &mut Reports<'_>,
    path: &Path,
) -> Result<(), StoreError> {
    let failed = |error: ParquetError| {
        StoreError::io(format!("{}: cannot be written", path.display()))(std::io::Error::other(error))
    };
    let fields = table.columns().iter().map(field).collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let schema = Type::group_type_builder("runs").with_fields(fields).build().map_err(failed)?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::GZIP(GzipLevel::default()))
        .set_created_by("lasthop".to_owned())
        .build();
    let mut writer =
        SerializedFileWriter::new(BufWriter::new(file), Arc::new(schema), Arc::new(properties)).map_err(failed)?;
    for runs in table.batches() {
        let batch = table.batch(plan, runs, reports)?;
        let mut group = writer.next_row_group().map_err(failed)?;
        for values in &batch.columns {
            if let Some(mut column) = group.next_column().map_err(failed)? {
                put(&mut column, values).map_err(failed)?;
                column.close().map_err(failed)?;
            }
        }
        group.close().map_err(failed)?;
    }
    writer.close().map_err(failed)?;
    Ok(())
}

fn field(column: &Column) -> Result<Arc<Type>, ParquetError> {
    let (physical, logical) = match column.kind {
        Kind::Count => (Physical::INT64, Some(LogicalType::integer(64, false))),
        Kind::Float => (Physical::DOUBLE, None),
        Kind::Flag => (Physical::BOOLEAN, None),
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let builder = Type::primitive_type_builder(&column.name, physical).with_repetition(Repetition::OPTIONAL);
    builder.with_logical_type(logical).build().map(Arc::new)
}

fn put(column: &mut SerializedColumnWriter<'_>, values: &Values) -> Result<(), ParquetError> {
    fn levels<T>(all: &[Option<T>]) -> Vec<i16> {
        all.iter().map(|value| i16::from(value.is_some())).collect()
    }
    match values {
        Values::Count(all) => {
            // The bits of a number without a sign, as the logical type says.
            let there: Vec<i64> = all.iter().flatten().map(|value| value.cast_signed()).collect();
            column.typed::<Int64Type>().write_batch(&there, Some(&levels(all)), None)?;
        }
        Values::Float(all) => {
            let there: Vec<f64> = all.iter().flatten().copied().collect();
            column.typed::<DoubleType>().write_batch(&there, Some(&levels(all)), None)?;
        }
        Values::Flag(all) => {
            let there: Vec<bool> = all.iter().flatten().copied().collect();
            column.typed::<BoolType>().write_batch(&there, Some(&levels(all)), None)?;
        }
        Values::Text(all) => {
            let there: Vec<ByteArray> = all.iter().flatten().map(|value| ByteArray::from(value.clone())).collect();
            column.typed::<ByteArrayType>().write_batch(&there, Some(&levels(all)), None)?;
        }
    }
    Ok(())
}
