//! The two forms of a row in the file: CSV, or a JSON object per line. Neither ever holds a line feed but at its end.

use std::collections::HashMap;
use std::path::Path;

use lasthop_store::{Row, cell};

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// With a line of headings.
    Csv,
    /// One object per line.
    Lines,
}

/// Columns that hold something, and what: as a CSV file holds it, whatever the form.
pub type Cells = Vec<(String, String)>;

impl Form {
    /// The form that the ending of `path` asks for.
    pub fn of(path: &Path, json_lines: bool) -> Result<Self, String> {
        let ending = path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase);
        match ending.as_deref() {
            _ if json_lines => Ok(Self::Lines),
            Some("csv") => Ok(Self::Csv),
            Some("jsonl" | "ndjson" | "json") => Ok(Self::Lines),
            _ => Err(format!(
                "{}: the ending says the form: .csv, or .jsonl, .ndjson or .json for a JSON object per line (or give \
                 --json-lines), .parquet or a folder (FOLDER/) for a store of runs",
                path.display()
            )),
        }
    }

    /// What stands in a line, empty cells left out. `columns` are those of the headings.
    pub fn read(self, line: &[u8], columns: &Columns) -> Option<Cells> {
        match self {
            Self::Csv => {
                let cells = fields(line)?;
                let filled = |(name, cell): (&String, String)| (!cell.is_empty()).then(|| (name.clone(), cell));
                (cells.len() == columns.names.len())
                    .then(|| columns.names.iter().zip(cells).filter_map(filled).collect())
            }
            Self::Lines => {
                let fields: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(line).ok()?;
                Some(filled(fields))
            }
        }
    }

    /// The line of a row.
    pub fn write(self, row: &Row, columns: &Columns) -> std::io::Result<Vec<u8>> {
        match self {
            Self::Csv => {
                let mut cells = vec![String::new(); columns.names.len()];
                for (at, (name, value)) in row.iter().enumerate() {
                    if let Some(at) = columns.find(at, name) {
                        cells[at] = cell(value);
                    }
                }
                line_of(&cells)
            }
            Self::Lines => {
                let fields: serde_json::Map<_, _> = row.iter().cloned().collect();
                let mut line = serde_json::to_vec(&fields)?;
                line.push(b'\n');
                Ok(line)
            }
        }
    }
}

/// What is in a row, as [`Form::read`] gives it.
pub fn filled(row: impl IntoIterator<Item = (String, serde_json::Value)>) -> Cells {
    let cells = row.into_iter().map(|(name, value)| (name, cell(&value)));
    cells.filter(|(_, cell)| !cell.is_empty()).collect()
}

/// The headings of a CSV file.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    names: Vec<String>,
    places: HashMap<String, usize>,
}

impl Columns {
    /// Reads the line of headings.
    pub fn read(line: &[u8]) -> Option<Self> {
        let mut columns = Self::default();
        fields(line)?.iter().for_each(|name| columns.add(name));
        Some(columns)
    }

    /// The line of headings.
    pub fn line(&self) -> std::io::Result<Vec<u8>> {
        line_of(&self.names)
    }

    /// In their order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Adds what `row` has and the headings lack; whether there was any.
    pub fn extend(&mut self, row: &Row) -> bool {
        let known = self.names.len();
        for (at, (name, _)) in row.iter().enumerate() {
            if self.find(at, name).is_none() {
                self.add(name);
            }
        }
        self.names.len() > known
    }

    fn add(&mut self, name: &str) {
        self.places.insert(name.to_owned(), self.names.len());
        self.names.push(name.to_owned());
    }

    /// Where the column `name` is; mostly it is at `guess`.
    fn find(&self, guess: usize, name: &str) -> Option<usize> {
        if self.names.get(guess).is_some_and(|n| n == name) {
            return Some(guess);
        }
        self.places.get(name).copied()
    }
}

/// The fields of one line of CSV.
pub fn fields(line: &[u8]) -> Option<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(line);
    let mut records = reader.records();
    let record = records.next()?.ok()?;
    records.next().is_none().then(|| record.iter().map(str::to_owned).collect())
}

/// A line of CSV with these fields.
pub fn line_of(fields: &[String]) -> std::io::Result<Vec<u8>> {
    let mut writer = csv::WriterBuilder::new().from_writer(Vec::new());
    writer.write_record(fields)?;
    writer.into_inner().map_err(|error| std::io::Error::other(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[(&str, serde_json::Value)]) -> Row {
        cells.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    #[test]
    fn a_row_reads_back_in_either_form() {
        let row = row(&[("a", 1.into()), ("q", "x, \"y\"".into()), ("n", serde_json::Value::Null), ("f", 0.1.into())]);
        let mut columns = Columns::default();
        columns.extend(&row);
        for form in [Form::Csv, Form::Lines] {
            let line = form.write(&row, &columns).unwrap();
            assert_eq!(line.iter().filter(|b| **b == b'\n').count(), 1);
            let cells = form.read(&line, &columns).unwrap();
            assert_eq!(cells, filled(row.clone()), "{form:?}");
            assert_eq!(cells.len(), 3);
        }
        let headings = Columns::read(&columns.line().unwrap()).unwrap();
        assert_eq!(headings.names(), ["a", "q", "n", "f"]);
    }

    #[test]
    fn what_is_no_row_is_none() {
        let mut columns = Columns::default();
        columns.extend(&row(&[("a", 1.into()), ("b", 2.into())]));
        for line in ["1\n", "1,2,3\n", "1,\"2\n"] {
            let cells = Form::Csv.read(line.as_bytes(), &columns);
            assert!(cells.is_none_or(|c| c.len() < 3 && line.contains('"')), "{line}");
        }
        for line in ["[1]\n", "{\"a\": 1\n", "7\n", "\n"] {
            assert!(Form::Lines.read(line.as_bytes(), &columns).is_none(), "{line}");
        }
    }

    #[test]
    fn the_ending_says_the_form() {
        let of = |path: &str, lines| Form::of(Path::new(path), lines).ok();
        assert_eq!(of("a.CSV", false), Some(Form::Csv));
        assert_eq!([of("a.jsonl", false), of("a.ndjson", false), of("a.json", false)], [Some(Form::Lines); 3]);
        assert_eq!((of("a", true), of("a", false), of("-", false)), (Some(Form::Lines), None, None));
    }
}
