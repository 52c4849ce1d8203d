//! A report as one row: every scalar under a name of its own.
//!
//! Names are joined with dots; the entries of `flows`, `stations` and `queues` go by their names, so that
//! `flows.ftp.delay.p99` is the figure of the flow `ftp`. A figure without a population is null. A list of plain
//! numbers (the load times of a page) gives its first.

use lasthop_home::report::Report;
use serde_json::Value;

use super::figures::Figures;
use super::vary::Grid;

/// Column and value, in the order of the file: every varied key, the seed, then the report's.
pub type Row = Vec<(String, Value)>;

/// Every scalar of a report.
pub fn figures(report: &Report) -> Result<Row, serde_json::Error> {
    let mut row = Row::new();
    flatten(&mut String::new(), serde_json::to_value(report)?, &mut row);
    Ok(row)
}

/// The row of a run, with these figures of its report.
pub fn row(grid: &Grid, run: usize, report: &Report, chosen: &Figures) -> Result<Row, serde_json::Error> {
    let mut row: Row = Vec::with_capacity(64 * (2 + report.flows.len()));
    for (key, value) in grid.values(grid.combination(run)) {
        row.push((key.to_owned(), typed(value)));
    }
    row.push(("seed".to_owned(), grid.seed(run).into()));
    let own = row.len();
    row.extend(figures(report)?);
    // A varied key and the seed stand there already.
    let leading: Vec<String> = row[..own].iter().map(|(name, _)| name.clone()).collect();
    let mut at = 0;
    row.retain(|(name, _)| {
        at += 1;
        at <= own || !leading.contains(name)
    });
    chosen.keep(&mut row, own);
    Ok(row)
}

/// What a cell of a CSV file holds.
pub fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A number or a flag where `text` is how one is written, else text.
fn typed(text: &str) -> Value {
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
    use super::super::fake;
    use super::super::vary::{Grid, vary};
    use super::*;

    #[test]
    fn a_row_holds_the_varied_keys_the_seed_and_every_scalar() {
        let grid =
            Grid::new(&[vary("wifi.attempts=2").unwrap(), vary("wifi.loss.deviation=9dB").unwrap()], 3, 1).unwrap();
        let row = row(&grid, 0, &fake::report("t", 3, 2), &Figures::All).unwrap();
        let names: Vec<&str> = row.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names[..6], ["wifi.attempts", "wifi.loss.deviation", "seed", "format", "scenario", "duration_s"]);
        let get = |name: &str| {
            row.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone()).unwrap_or_else(|| panic!("{name} in {names:?}"))
        };
        assert_eq!(get("wifi.attempts"), 2);
        assert_eq!(get("wifi.loss.deviation"), "9dB");
        assert_eq!(get("flows.ftp.from"), "W");
        assert_eq!(get("flows.ftp.lost.channel"), 0);
        assert_eq!(get("flows.ftp.delay"), Value::Null);
        assert_eq!(get("stations.AP.airtime_share"), 0.5);
        assert_eq!(get("queues.AP.dropped"), 0);
        assert_eq!(get("control.capacity_bps.mean"), 2e7);
        assert_eq!(get("control.clamps.ftp"), 9000);
        for name in ["run.wall_s", "run.revision", "run.valid", "flows.ftp.start_up.sent", "fairness.goodput"] {
            get(name);
        }
        let mut unique = names.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), names.len(), "no column twice: {names:?}");
    }

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
