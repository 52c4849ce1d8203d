//! The file of a sweep: whole lines are added as runs end, and read back when a sweep goes on.
//!
//! After `kill -9` the last line may be torn; it is cut off. A row whose run is not the next in order (after a failed
//! run, or when seeds were added) is written where the file ends, and [`Results::sort`] puts all in order at the end.
//! A CSV file gets a column when the first row that has it comes: then, as for sorting, the file is written anew beside
//! itself and put in its place, so that at no time less than all finished rows is there.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use lasthop_command::exit::{Failure, Outcome};
use lasthop_command::output;
use lasthop_store::Row;
use rustix::fs::{FlockOperation, flock};

use super::form::{Cells, Columns, Form};
use super::vary::Grid;

/// The file, open and locked.
#[derive(Debug)]
pub struct Results {
    path: PathBuf,
    form: Form,
    file: File,
    columns: Columns,
    /// Bytes of whole lines.
    length: u64,
    rows: Vec<RowPosition>,
}

/// A row of the file.
#[derive(Clone, Copy, Debug)]
struct RowPosition {
    run: usize,
    at: u64,
    bytes: u64,
}

/// What a row of the file must say of its run.
pub struct Expected<'a> {
    /// The sweep.
    pub grid: &'a Grid,
    /// Name of the scenario of a combination.
    pub scenario: &'a dyn Fn(usize) -> &'a str,
    /// Of this program.
    pub revision: &'a str,
}

impl Results {
    /// Opens the file, or makes it; a torn last line is cut off, or everything with `restart`.
    pub fn open(path: &Path, form: Form, restart: bool) -> Outcome<Self> {
        let refuse = |error: io::Error| {
            Failure::request(anyhow::Error::new(error).context(format!("cannot write {}", path.display())))
        };
        if path.exists() && !path.is_file() {
            return Err(Failure::request(anyhow!("{}: is not a file, from which a sweep could go on", path.display())));
        }
        let path = if path.exists() { path.canonicalize().map_err(refuse)? } else { path.to_owned() };
        let mut options = std::fs::OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(&path).map_err(refuse)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(Failure::work(anyhow!("{}: another sweep is writing it", path.display())));
        }
        output::give_to_sudo_user(&path);
        let columns = Columns::default();
        let mut results = Self { path, form, file, columns, length: 0, rows: Vec::new() };
        let end = if restart { 0 } else { results.end_of_whole_lines().map_err(refuse)? };
        results.file.set_len(end).map_err(refuse)?;
        results.length = end;
        Ok(results)
    }

    /// Behind the last line feed.
    fn end_of_whole_lines(&self) -> io::Result<u64> {
        let mut end = self.file.metadata()?.len();
        let mut block = vec![0; 64 * 1024];
        while end > 0 {
            let from = end.saturating_sub(block.len() as u64);
            let block = &mut block[..(end - from) as usize];
            self.file.read_exact_at(block, from)?;
            if let Some(at) = block.iter().rposition(|b| *b == b'\n') {
                return Ok(from + at as u64 + 1);
            }
            end = from;
        }
        Ok(0)
    }

    /// Reads the rows back. Returns the run and cells of the last one.
    pub fn read(&mut self, expected: &Expected<'_>) -> Outcome<Option<(usize, Cells)>> {
        let mut reader = BufReader::new(self.file.try_clone().context("cannot read what is there")?);
        reader.seek(SeekFrom::Start(0)).context("cannot read what is there")?;
        let mut reader = reader.take(self.length);
        let (mut at, mut number) = (0, 0);
        let mut last = None;
        let mut had = vec![false; expected.grid.len()];
        let mut line = Vec::new();
        loop {
            line.clear();
            let bytes = reader.read_until(b'\n', &mut line).context("cannot read what is there")? as u64;
            if bytes == 0 {
                return Ok(last);
            }
            number += 1;
            if number == 1 && self.form == Form::Csv {
                self.columns = Columns::read(&line).ok_or_else(|| self.refuse(number, "holds no headings"))?;
                let names = self.columns.names().iter().map(String::as_str);
                varied(names, expected.grid).map_err(|why| self.refuse(number, &why))?;
            } else {
                let cells = self.form.read(&line, &self.columns);
                let cells = cells.ok_or_else(|| self.refuse(number, "is not a row of a sweep"))?;
                let run = run_of(&cells, expected, self.form).map_err(|why| self.refuse(number, &why))?;
                if std::mem::replace(&mut had[run], true) {
                    return Err(self.refuse(number, &format!("has {} once more", expected.grid.name_of_run(run))));
                }
                self.rows.push(RowPosition { run, at, bytes });
                last = Some((run, cells));
            }
            at += bytes;
        }
    }

    fn refuse(&self, line: usize, why: &str) -> Failure {
        Failure::request(anyhow!("{}:{line}: {why}; {WHAT_TO_DO}", self.path.display()))
    }

    /// The runs that are there, in the order of the file.
    pub fn runs(&self) -> impl Iterator<Item = usize> {
        self.rows.iter().map(|row| row.run)
    }

    /// Adds rows in whole lines.
    pub fn append(&mut self, rows: &[(usize, Row)]) -> Outcome {
        self.try_append(rows).map_err(|error| {
            // What is left of a torn line would be cut off by the next start; nothing is lost if this fails.
            let _ = self.file.set_len(self.length);
            Failure::work(anyhow::Error::new(error).context(format!("cannot write {}", self.path.display())))
        })
    }

    fn try_append(&mut self, rows: &[(usize, Row)]) -> io::Result<()> {
        let before = self.columns.clone();
        if self.form == Form::Csv && rows.iter().fold(false, |wider, (_, row)| self.columns.extend(row) || wider) {
            match before.names() {
                [] => self.put(&self.columns.line()?)?,
                _ => self.widen(&before)?,
            }
        }
        let mut text = Vec::new();
        let mut places = Vec::new();
        for (run, row) in rows {
            let line = self.form.write(row, &self.columns)?;
            places.push(RowPosition { run: *run, at: self.length + text.len() as u64, bytes: line.len() as u64 });
            text.extend(line);
        }
        self.put(&text)?;
        self.rows.extend(places);
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, self.length)?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Writes the file anew with the columns it has now: rows end in as many empty cells more.
    fn widen(&mut self, before: &Columns) -> io::Result<()> {
        let more = ",".repeat(self.columns.names().len() - before.names().len());
        self.rewrite(|line| {
            line.pop();
            line.extend(more.as_bytes());
            line.push(b'\n');
        })
    }

    /// Puts the rows into the order of the runs, if they are not.
    pub fn sort(&mut self) -> Outcome {
        if self.rows.is_sorted_by_key(|row| row.run) {
            return Ok(());
        }
        self.rows.sort_by_key(|row| row.run);
        Ok(self.rewrite(|_| {}).with_context(|| format!("cannot write {}", self.path.display()))?)
    }

    /// Writes headings and rows, each changed by `change`, into a new file that takes this one's place.
    fn rewrite(&mut self, mut change: impl FnMut(&mut Vec<u8>)) -> io::Result<()> {
        let mut new = BufWriter::new(output::beside(&self.path)?);
        flock(new.get_ref(), FlockOperation::NonBlockingLockExclusive)?;
        let headings = if self.form == Form::Csv { self.columns.line()? } else { Vec::new() };
        new.write_all(&headings)?;
        let mut length = headings.len() as u64;
        let mut places = Vec::with_capacity(self.rows.len());
        let mut line = Vec::new();
        for row in &self.rows {
            line.resize(row.bytes as usize, 0);
            self.file.read_exact_at(&mut line, row.at)?;
            change(&mut line);
            new.write_all(&line)?;
            places.push(RowPosition { run: row.run, at: length, bytes: line.len() as u64 });
            length += line.len() as u64;
        }
        let new = new.into_inner().map_err(io::IntoInnerError::into_error)?;
        // The descriptor stays good when the file gets its name.
        let file = new.as_file().try_clone()?;
        output::replace(new, &self.path)?;
        (self.file, self.rows, self.length) = (file, places, length);
        Ok(())
    }
}

/// How to get past a file that does not fit.
pub const WHAT_TO_DO: &str = "give another file with -o, or --restart to begin anew and lose what is there";

/// Which run a row is of, or why it is of none.
fn run_of(cells: &Cells, expected: &Expected<'_>, form: Form) -> Result<usize, String> {
    let grid = expected.grid;
    if form == Form::Lines {
        varied(cells.iter().map(|(name, _)| name.as_str()), grid)?;
    }
    let get = |name: &str| {
        let found = cells.iter().find(|(n, _)| n == name);
        found.map(|(_, cell)| cell.as_str()).ok_or_else(|| format!("has no `{name}`"))
    };
    let values = grid.keys().map(&get).collect::<Result<Vec<_>, _>>()?;
    let seed = get("seed")?;
    let run = seed.parse().ok().and_then(|seed| grid.find(values.iter().copied(), seed)).ok_or_else(|| {
        let named: Vec<String> = grid.keys().zip(&values).map(|(key, value)| format!("{key}={value}, ")).collect();
        format!("is of a run that is not of this sweep: {}seed={seed}", named.concat())
    })?;
    let scenario = (expected.scenario)(grid.combination(run));
    for (name, now) in [("scenario", scenario), ("run.revision", expected.revision)] {
        let then = get(name)?;
        if then != now {
            return Err(format!("has `{name}` {then}, and now it is {now}"));
        }
    }
    Ok(run)
}

/// Whether `names` begin with what `grid` varies, and the seed.
fn varied<'a>(names: impl Iterator<Item = &'a str>, grid: &Grid) -> Result<(), String> {
    let there: Vec<&str> = names.take_while(|name| *name != "seed" && *name != "format").collect();
    let keys: Vec<&str> = grid.keys().collect();
    if there == keys {
        return Ok(());
    }
    let list = |keys: &[&str]| if keys.is_empty() { "nothing but seeds".to_owned() } else { keys.join(", ") };
    Err(format!("varies {}, and this sweep varies {}", list(&there), list(&keys)))
}
