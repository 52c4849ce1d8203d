//! A scenario file as a tree of values that remember the line they stood on, so that `--set` can be applied to the
//! file as written and every error names its place.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use super::ScenarioError;
use super::renamed;

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A line of the file, from 1.
    Line(usize),
    /// A `--set`, its text.
    Set(Arc<str>),
}

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) at: Origin,
    pub(crate) value: Value,
}

/// What TOML holds, plus the two forms that only `--set` makes.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Table(Table),
    Array(Vec<Node>),
    Text(String),
    Integer(i64),
    Float(f64),
    Flag(bool),
    /// Unquoted text of a `--set`: its type is what the key asks for.
    Bare(String),
    /// Taken away by `--set key=none`; readers see an absent key, yet an unknown key is still noticed.
    Removed,
}

impl Value {
    /// What stands there, for an error message.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Table(_) => "a table".to_owned(),
            Self::Array(_) => "an array".to_owned(),
            Self::Text(text) | Self::Bare(text) => format!("`{}`", shorten(text)),
            Self::Integer(n) => format!("`{n}`"),
            Self::Float(n) => format!("`{n}`"),
            Self::Flag(b) => format!("`{b}`"),
            Self::Removed => "nothing".to_owned(),
        }
    }
}

/// At most 60 characters of `text`, so that a message stays a line.
pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(60) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

/// Keys and values; sorted by key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table(pub(crate) BTreeMap<String, Node>);

impl Table {
    /// The value of `key`, unless it was removed.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.0.get(key).filter(|node| !matches!(node.value, Value::Removed))
    }

    /// The text of `key`, where it is text.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match &self.get(key)?.value {
            Value::Text(text) | Value::Bare(text) => Some(text),
            _ => None,
        }
    }
}

/// Reads `text` as TOML.
pub(crate) fn parse(text: &str, file: &str) -> Result<Table, ScenarioError> {
    let lines = Lines::new(text);
    let document = DeTable::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| lines.at(span.start));
        ScenarioError::Syntax { place: format!("{file}:{line}"), why: error.message().to_owned() }
    })?;
    let mut root = table(document.get_ref(), &lines)
        .map_err(|(line, why)| ScenarioError::Syntax { place: format!("{file}:{line}"), why })?;
    renamed::rename(&mut root, file)?;
    Ok(root)
}

/// Reads one TOML value that a `--set` holds.
pub(crate) fn parse_value(text: &str, at: &Origin) -> Result<Value, String> {
    let parsed = DeValue::parse(text).map_err(|error| error.message().to_owned())?;
    let mut node = value(parsed.get_ref(), 0, &Lines::new(text)).map_err(|(_, why)| why)?;
    stamp(&mut node, at);
    Ok(node.value)
}

/// Gives `node` and everything below it the place `at`.
fn stamp(node: &mut Node, at: &Origin) {
    node.at = at.clone();
    match &mut node.value {
        Value::Table(table) => table.0.values_mut().for_each(|n| stamp(n, at)),
        Value::Array(items) => items.iter_mut().for_each(|n| stamp(n, at)),
        _ => {}
    }
}

type Refused = (usize, String);

fn table(parsed: &DeTable<'_>, lines: &Lines) -> Result<Table, Refused> {
    let mut out = BTreeMap::new();
    for (key, item) in parsed {
        out.insert(key.get_ref().to_string(), value(item.get_ref(), key.span().start, lines)?);
    }
    Ok(Table(out))
}

fn value(parsed: &DeValue<'_>, start: usize, lines: &Lines) -> Result<Node, Refused> {
    let line = lines.at(start);
    let value = match parsed {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Boolean(b) => Value::Flag(*b),
        DeValue::Integer(n) => i64::from_str_radix(n.as_str(), n.radix())
            .map(Value::Integer)
            .map_err(|_| (line, format!("`{}` is too large an integer", shorten(n.as_str()))))?,
        DeValue::Float(n) => n
            .as_str()
            .parse()
            .map(Value::Float)
            .map_err(|_| (line, format!("`{}` is not a number", shorten(n.as_str()))))?,
        DeValue::Datetime(d) => return Err((line, format!("a scenario holds no dates; `{d}` stands here"))),
        DeValue::Array(items) => Value::Array(
            items.iter().map(|item| self::value(item.get_ref(), item.span().start, lines)).collect::<Result<_, _>>()?,
        ),
        DeValue::Table(inner) => Value::Table(table(inner, lines)?),
    };
    Ok(Node { at: Origin::Line(line), value })
}

/// Offsets at which lines begin.
struct Lines(Vec<usize>);

impl Lines {
    fn new(text: &str) -> Self {
        Self(std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect())
    }

    fn at(&self, offset: usize) -> usize {
        self.0.partition_point(|start| *start <= offset).max(1)
    }
}

/// Path of every key that was written, to the place where it was.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    pub(crate) file: String,
    pub(crate) keys: BTreeMap<String, Origin>,
}

impl SourceMap {
    pub(crate) fn new(file: &str, root: &Table) -> Self {
        let mut map = Self { file: file.to_owned(), keys: BTreeMap::new() };
        map.add("", root);
        map
    }

    fn add(&mut self, path: &str, table: &Table) {
        for (key, node) in &table.0 {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            match &node.value {
                Value::Table(inner) => self.add(&path, inner),
                Value::Array(items) => self.add_items(&path, items),
                Value::Removed => continue,
                _ => {}
            }
            self.keys.entry(path).or_insert_with(|| node.at.clone());
        }
    }

    fn add_items(&mut self, path: &str, items: &[Node]) {
        for (i, item) in items.iter().enumerate() {
            if let Value::Table(table) = &item.value {
                let name = table.text("name").map_or_else(|| (i + 1).to_string(), str::to_owned);
                let path = format!("{path}.{name}");
                self.add(&path, table);
                self.keys.entry(path).or_insert_with(|| item.at.clone());
            }
        }
    }

    /// `file:line` of `key`, or the `--set` that gave it; where it was left out, the place of the table around it.
    #[must_use]
    pub fn place(&self, key: &str) -> String {
        let mut path = key;
        loop {
            if let Some(at) = self.keys.get(path) {
                return self.show(at);
            }
            match path.rfind('.') {
                Some(dot) => path = &path[..dot],
                None => return self.file.clone(),
            }
        }
    }

    /// Whether `key` was written, in the file or by `--set`.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.keys.contains_key(key)
    }

    pub(crate) fn show(&self, at: &Origin) -> String {
        Location { file: &self.file, at }.to_string()
    }
}

/// A place as a message shows it.
pub(crate) struct Location<'a> {
    pub(crate) file: &'a str,
    pub(crate) at: &'a Origin,
}

impl fmt::Display for Location<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Origin::Line(line) => write!(f, "{}:{line}", self.file),
            Origin::Set(text) => write!(f, "--set '{}'", shorten(text)),
        }
    }
}
