//! Typed reading of one table: each getter gives `None` for an absent key, and for a wrong value an error that says
//! what would be right.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::ScenarioError;
use super::tree::{Node, Origin, SourceMap, Table, Value};

/// One table of the scenario and the path that leads to it.
pub(crate) struct Reader<'a> {
    source: &'a SourceMap,
    path: String,
    at: &'a Origin,
    table: &'a Table,
}

/// What stands at a key that is a table or "off".
pub(crate) enum Given<'a> {
    /// Nothing.
    Nothing,
    /// "off".
    Off,
    /// A table.
    Table(Reader<'a>),
}

impl<'a> Reader<'a> {
    /// Opens `table` at `path` ("" at the root) and refuses keys that are not among `known`.
    pub(crate) fn new(
        source: &'a SourceMap,
        path: &str,
        at: &'a Origin,
        table: &'a Table,
        known: &[&str],
    ) -> Result<Self, ScenarioError> {
        let reader = Self { source, path: path.to_owned(), at, table };
        reader.refuse_unknown(known, &[])?;
        Ok(reader)
    }

    /// As `new`, for a table whose `kind` decides which keys it has. Where `--set` changed the kind, the keys of the
    /// kind that stood in the file before are passed over; every other foreign key is refused.
    pub(crate) fn of_kind(
        source: &'a SourceMap,
        path: &str,
        at: &'a Origin,
        table: &'a Table,
        known: &[&str],
        of_other_kinds: &[&str],
    ) -> Result<Self, ScenarioError> {
        let reader = Self { source, path: path.to_owned(), at, table };
        reader.refuse_unknown(known, of_other_kinds)?;
        Ok(reader)
    }

    fn refuse_unknown(&self, known: &[&str], of_other_kinds: &[&str]) -> Result<(), ScenarioError> {
        for (key, node) in &self.table.0 {
            let foreign = of_other_kinds.contains(&key.as_str());
            if known.contains(&key.as_str()) || (foreign && self.is_stale(key)) {
                continue;
            }
            let kind = self.table.text("kind").filter(|_| foreign);
            let why = match kind {
                Some(kind) => format!("a {kind} has no such key; its keys are {}", known.join(", ")),
                None => format!("unknown key; {}", nearest(key, known)),
            };
            return Err(self.error_at(&node.at, key, why));
        }
        Ok(())
    }

    /// Whether `key` stands in the file while `--set` changed the kind: it may have been meant for the kind before.
    pub(crate) fn is_stale(&self, key: &str) -> bool {
        let at = |key| self.table.0.get(key).map(|node| &node.at);
        matches!((at("kind"), at(key)), (Some(Origin::Set(_)), Some(Origin::Line(_))))
    }

    /// Path of `key`, as `--set` writes it.
    pub(crate) fn path_of(&self, key: &str) -> String {
        match (self.path.is_empty(), key.is_empty()) {
            (true, _) => key.to_owned(),
            (false, true) => self.path.clone(),
            (false, false) => format!("{}.{key}", self.path),
        }
    }

    fn error_at(&self, at: &Origin, key: &str, why: impl Display) -> ScenarioError {
        ScenarioError::Wrong { place: self.source.show(at), key: self.path_of(key), why: why.to_string() }
    }

    /// An error about `key`: at its place, or at the table's where it is absent.
    pub(crate) fn wrong(&self, key: &str, why: impl Display) -> ScenarioError {
        let at = self.table.get(key).map_or(self.at, |node| &node.at);
        self.error_at(at, key, why)
    }

    fn mismatch(&self, key: &str, found: &Value, right: impl Display) -> ScenarioError {
        self.wrong(key, format!("{} stands here; {right}", found.describe()))
    }

    /// Whether `key` was written.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.table.get(key).is_some()
    }

    /// The value, or an error that asks for it.
    pub(crate) fn required<T>(&self, key: &str, value: Option<T>, example: &str) -> Result<T, ScenarioError> {
        value.ok_or_else(|| self.wrong(key, format!("is missing; write for example {key} = {example}")))
    }

    /// Text.
    pub(crate) fn text(&self, key: &str) -> Result<Option<&'a str>, ScenarioError> {
        match self.table.get(key).map(|node| &node.value) {
            None => Ok(None),
            Some(Value::Text(text) | Value::Bare(text)) => Ok(Some(text)),
            Some(other) => Err(self.mismatch(key, other, "write text in quotes")),
        }
    }

    /// A name of a host or a flow: letters, digits, `-` and `_`.
    pub(crate) fn name(&self) -> Result<&'a str, ScenarioError> {
        let name = self.required("name", self.text("name")?, "\"N1\"")?;
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
        if name.is_empty() || name.len() > 64 || !plain {
            return Err(self.wrong("name", "a name is 1 to 64 letters, digits, `-` and `_`; it holds no dot"));
        }
        Ok(name)
    }

    /// A quantity in quotes, with its unit.
    pub(crate) fn quantity<T>(&self, key: &str) -> Result<Option<T>, ScenarioError>
    where
        T: FromStr,
        T::Err: Display,
    {
        let text = match self.table.get(key).map(|node| &node.value) {
            None => return Ok(None),
            Some(Value::Text(text) | Value::Bare(text)) => text.clone(),
            Some(Value::Integer(n)) => n.to_string(),
            Some(Value::Float(n)) => n.to_string(),
            Some(other) => other.describe(),
        };
        text.parse().map(Some).map_err(|why| self.wrong(key, why))
    }

    /// A quantity that must be more than nothing.
    pub(crate) fn positive<T>(&self, key: &str) -> Result<Option<T>, ScenarioError>
    where
        T: FromStr + PartialOrd + Default,
        T::Err: Display,
    {
        match self.quantity::<T>(key)? {
            Some(value) if value <= T::default() => Err(self.wrong(key, "must be more than zero")),
            other => Ok(other),
        }
    }

    /// An integer within `range`.
    pub(crate) fn integer(&self, key: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, ScenarioError> {
        let Some(node) = self.table.get(key) else { return Ok(None) };
        let right = || match *range.end() {
            u64::MAX => format!("write an integer from {}", range.start()),
            end => format!("write an integer from {} to {end}", range.start()),
        };
        let number = match &node.value {
            Value::Integer(n) => u64::try_from(*n).ok(),
            Value::Bare(text) => text.parse().ok(),
            _ => None,
        };
        match number.filter(|n| range.contains(n)) {
            Some(n) => Ok(Some(n)),
            None => Err(self.mismatch(key, &node.value, right())),
        }
    }

    /// A small count within `range`.
    pub(crate) fn count(&self, key: &str, range: RangeInclusive<u32>) -> Result<Option<u32>, ScenarioError> {
        let wide = u64::from(*range.start())..=u64::from(*range.end());
        Ok(self.integer(key, wide)?.map(|n| n as u32))
    }

    /// A plain number within `range`.
    pub(crate) fn number(&self, key: &str, range: RangeInclusive<f64>) -> Result<Option<f64>, ScenarioError> {
        let Some(node) = self.table.get(key) else { return Ok(None) };
        let number = match &node.value {
            Value::Integer(n) => Some(*n as f64),
            Value::Float(n) => Some(*n),
            Value::Bare(text) => text.parse().ok(),
            _ => None,
        };
        number.filter(|n| range.contains(n)).map(Some).ok_or_else(|| {
            self.mismatch(key, &node.value, format!("write a number from {} to {}", range.start(), range.end()))
        })
    }

    /// `true` or `false`.
    pub(crate) fn flag(&self, key: &str) -> Result<Option<bool>, ScenarioError> {
        match self.table.get(key).map(|node| &node.value) {
            None => Ok(None),
            Some(Value::Flag(b)) => Ok(Some(*b)),
            Some(Value::Bare(text)) if text == "true" => Ok(Some(true)),
            Some(Value::Bare(text)) if text == "false" => Ok(Some(false)),
            Some(other) => Err(self.mismatch(key, other, "write true or false")),
        }
    }

    /// One of a few words.
    pub(crate) fn choice<T: Clone>(&self, key: &str, words: &[(&str, T)]) -> Result<Option<T>, ScenarioError> {
        let Some(node) = self.table.get(key) else { return Ok(None) };
        let found = match &node.value {
            Value::Text(text) | Value::Bare(text) => words.iter().find(|(word, _)| word == text),
            _ => None,
        };
        let all = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
        match found {
            Some((_, value)) => Ok(Some(value.clone())),
            None => Err(self.mismatch(key, &node.value, format!("write one of {}", all()))),
        }
    }

    /// Words in an array, or one by itself; none where "none" stands.
    pub(crate) fn words(&self, key: &str) -> Result<Option<Vec<&'a str>>, ScenarioError> {
        let Some(node) = self.table.get(key) else { return Ok(None) };
        let word = |value: &'a Value| match value {
            Value::Text(text) | Value::Bare(text) => Ok(text.as_str()),
            other => Err(self.mismatch(key, other, "write words in quotes, in an array")),
        };
        match &node.value {
            Value::Removed => Ok(None),
            Value::Text(text) if text == "none" => Ok(None),
            Value::Array(items) => items.iter().map(|item| word(&item.value)).collect::<Result<_, _>>().map(Some),
            one => Ok(Some(vec![word(one)?])),
        }
    }

    /// A table below this one as its place and content; "none" is the same as leaving it out.
    pub(crate) fn inner(&self, key: &str) -> Result<Option<(&'a Origin, &'a Table)>, ScenarioError> {
        match self.table.get(key) {
            None => Ok(None),
            Some(Node { value: Value::Text(text) | Value::Bare(text), .. }) if text == "none" => Ok(None),
            Some(Node { at, value: Value::Table(table) }) => Ok(Some((at, table))),
            Some(node) => Err(self.mismatch(key, &node.value, "write a table, or \"none\"")),
        }
    }

    /// A table below this one, of fixed keys.
    pub(crate) fn table(&self, key: &str, known: &[&str]) -> Result<Option<Self>, ScenarioError> {
        let Some((at, table)) = self.inner(key)? else { return Ok(None) };
        Self::new(self.source, &self.path_of(key), at, table, known).map(Some)
    }

    /// A table below this one, of fixed keys, or the word "off".
    pub(crate) fn table_or_off(&self, key: &str, known: &[&str]) -> Result<Given<'a>, ScenarioError> {
        match self.table.get(key) {
            Some(Node { value: Value::Text(text) | Value::Bare(text), .. }) if text == "off" => Ok(Given::Off),
            Some(node @ Node { value: Value::Text(text) | Value::Bare(text), .. }) if text != "none" => {
                Err(self.mismatch(key, &node.value, "write a table, or \"off\""))
            }
            _ => Ok(self.table(key, known)?.map_or(Given::Nothing, Given::Table)),
        }
    }

    /// The tables of `[[key]]`.
    pub(crate) fn tables(&self, key: &str) -> Result<Vec<(&'a Origin, &'a Table)>, ScenarioError> {
        let items = match self.table.get(key).map(|node| &node.value) {
            None => return Ok(Vec::new()),
            Some(Value::Array(items)) => items,
            Some(other) => return Err(self.mismatch(key, other, format!("write [[{key}]] tables"))),
        };
        let each = |node: &'a Node| match &node.value {
            Value::Table(table) => Ok((&node.at, table)),
            other => Err(self.mismatch(key, other, format!("write [[{key}]] tables"))),
        };
        items.iter().map(each).collect()
    }

    /// Where the table stands.
    pub(crate) fn at(&self) -> &'a Origin {
        self.at
    }

    /// The source map behind this table.
    pub(crate) fn source(&self) -> &'a SourceMap {
        self.source
    }

    /// The table itself.
    pub(crate) fn raw(&self) -> &'a Table {
        self.table
    }
}

/// "did you mean `x`?" where something is near enough, else the nearest and what else there is.
pub(crate) fn nearest(key: &str, known: &[&str]) -> String {
    let best = known.iter().map(|k| (strsim::jaro_winkler(key, k), k)).max_by(|a, b| a.0.total_cmp(&b.0));
    match best {
        None => "there are none here".to_owned(),
        Some((likeness, k)) if likeness >= 0.65 => format!("did you mean `{k}`?"),
        Some((_, k)) if known.len() > 30 => format!("the nearest is `{k}`"),
        Some(_) => format!("known are {}", known.join(", ")),
    }
}
