//! A report as one row: every scalar under a name of its own.
//!
//! Names are joined with dots; the entries of `flows`, `stations` and `queues` go by their names, so that
//! `flows.ftp.delay.p99` is the figure of the flow `ftp`. A figure without a population is null. A list of plain
//! numbers (the load times of a page) gives its first.

use lasthop_home::report::Report;
use serde_json::Value;

/// Column and value, in the order of the file: every varied key, the seed, then the report's.
pub type Row = Vec<(String, Value)>;

/// Every scalar of a report.
///
/// # Errors
/// None that a report of ours brings about.
pub fn scalars(report: &Report) -> Result<Row, serde_json::Error> {
    Ok(scalars_of(serde_json::to_value(report)?))
}

/// The same, of a report's JSON.
pub(crate) fn scalars_of(report: Value) -> Row {
    let mut row = Row::new();
    flatten(&mut String::new(), report, &mut row);
    row
}

/// The number that `report`, compact JSON, has under `name`; none where it has no such figure or that is no number.
#[must_use]
pub fn scalar_of(report: &str, name: &str) -> Option<f64> {
    let row = scalars_of(serde_json::from_str(report).ok()?);
    row.iter().find(|(own, _)| own == name)?.1.as_f64()
}

/// What a cell of a CSV file holds.
#[must_use]
pub fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A number or a flag where `text` is how one is written, else text.
#[must_use]
pub fn typed(text: &str) -> Value {
    match serde_json::from_str::<Value>(text) {
        Ok(value @ (Value::Number(_) | Value::Bool(_))) if cell(&value) == text => value,
        _ => text.into(),
    }
}
fn flatten(name: &mut String, value: Value, row: &mut Row) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                below(name, &key, |name| flatten(name, value, row));
            }
        }
        // A page is loaded once, if at all: its list is its time, or nothing.
        Value::Array(items) if items.iter().all(Value::is_number) => {
            row.push((name.clone(), items.into_iter().next().unwrap_or(Value::Null)));
        }
        Value::Array(items) => {
            for item in items {
                let Value::Object(mut fields) = item else { return };
                let Some(Value::String(key)) = fields.shift_remove("name") else { return };
                below(name, &key, |name| flatten(name, Value::Object(fields), row));
            }
        }
        scalar => row.push((name.clone(), scalar)),
    }
}

/// Lengthens `name` by `key` for `then`.
fn below(name: &mut String, key: &str, then: impl FnOnce(&mut String)) {
    let length = name.len();
    if length > 0 {
        name.push('.');
    }
    name.push_str(key);
    then(name);
    name.truncate(length);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_a_number_where_it_is_written_as_one() {
        assert_eq!(
            ["7", "0.25", "true", "07", "9dB", "1e3", "null", "\"7\""].map(typed),
            [
                Value::from(7),
                0.25.into(),
                true.into(),
                "07".into(),
                "9dB".into(),
                "1e3".into(),
                "null".into(),
                "\"7\"".into(),
            ]
        );
        for text in ["7", "0.25", "true", "07", "9dB", "1e3", "null"] {
            assert_eq!(cell(&typed(text)), text, "what was typed can be read back");
        }
    }
}
