//! `--set key=value`: reaches any key of the file as written, before counts expand.
//!
//! `wifi.queue.limit=100`, `station.*.distance=5m` (`*` stands for any run of letters in a name),
//! `station.S.3.distance=5m` (one of a counted host), `control.window=none`. A missing table is created with its
//! defaults, "none" takes a table or a key away, the later `--set` wins. A value is read as the key asks; quotes,
//! `[` and `{` begin a TOML value.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ScenarioError;
use super::flow;
use super::read::nearest;
use super::renamed;
use super::tree::{Node, Origin, SourceMap, Table, Value, parse_value, shorten};

/// A file with `--set` applied: the tree as written, and what stands out of the counts.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub(crate) root: Table,
    /// Keys of one member of a counted host; a later entry wins.
    pub(crate) members: BTreeMap<Member, Vec<(Vec<String>, Node)>>,
}

/// One host of a counted table: `(table, name, index)`, counted from 1.
type Member = (String, String, u32);

/// Tables whose entries are reached by name.
const NAMED: [&str; 3] = ["server", "station", "flow"];

impl Written {
    pub(crate) fn new(root: Table) -> Self {
        Self { root, members: BTreeMap::new() }
    }

    /// Applies one `--set`.
    pub(crate) fn set(&mut self, text: &str) -> Result<(), ScenarioError> {
        let refuse = |key: &str, why: String| ScenarioError::Wrong {
            place: format!("--set '{}'", shorten(text)),
            key: shorten(key),
            why,
        };
        let Some((key, value)) = text.split_once('=') else {
            return Err(refuse(text, "there is no `=`; write --set key=value".to_owned()));
        };
        let (key, value) = (key.trim(), value.trim());
        let at = Origin::Set(Arc::from(text));
        self.assign(key, value, &at).map_err(|why| refuse(key, why))
    }

    /// Gives `key` the value written as `value`.
    pub(crate) fn assign(&mut self, key: &str, value: &str, at: &Origin) -> Result<(), String> {
        let path = renamed::current(key.split('.').map(str::to_owned).collect());
        if path.iter().any(String::is_empty) || path.len() > 8 {
            return Err("is not the path of a key; write for example wifi.queue.limit=100".to_owned());
        }
        let leaf = leaf(&path, value, at)?;
        self.put(&path, leaf)
    }

    /// Puts `leaf` at `path`, which may hold wildcards.
    pub(crate) fn put(&mut self, path: &[String], leaf: Node) -> Result<(), String> {
        let root = path[0].as_str();
        if NAMED.contains(&root) && path.len() >= 2 {
            return self.put_named(path, leaf);
        }
        if root == "change" && path.len() >= 2 {
            return self.put_change(path, leaf);
        }
        put_below(&mut self.root, path, leaf)
    }

    fn put_named(&mut self, path: &[String], leaf: Node) -> Result<(), String> {
        let (root, pattern, rest) = (path[0].as_str(), path[1].as_str(), &path[2..]);
        let mut items = match self.root.0.get_mut(root) {
            Some(Node { value: Value::Array(items), .. }) => std::mem::take(items),
            _ => return Err(format!("there is no [[{root}]]")),
        };
        let done = self.put_into(&mut items, (root, pattern, rest), leaf);
        if let Some(Node { value: Value::Array(slot), .. }) = self.root.0.get_mut(root) {
            *slot = items;
        }
        done
    }

    fn put_into(&mut self, items: &mut Vec<Node>, path: (&str, &str, &[String]), leaf: Node) -> Result<(), String> {
        let (root, pattern, rest) = path;
        let matched: Vec<usize> = (0..items.len()).filter(|i| matches(pattern, name_of(&items[*i]))).collect();
        if matched.is_empty() {
            let names: Vec<&str> = items.iter().filter_map(name_of).collect();
            return Err(format!("there is no {root} `{pattern}`; {}", nearest(pattern, &names)));
        }
        if rest.is_empty() {
            if !matches!(leaf.value, Value::Removed) {
                return Err(format!("is a whole {root}; give one of its keys, or none"));
            }
            let mut at = 0..;
            items.retain(|_| at.next().is_none_or(|i| matched.binary_search(&i).is_err()));
            return Ok(());
        }
        if let Some(index) = rest[0].parse::<u32>().ok().filter(|_| root != "flow") {
            let names = matched.iter().filter_map(|i| name_of(&items[*i]));
            let names: Vec<String> = names.map(str::to_owned).collect();
            return self.put_member(root, &names, index, &rest[1..], &leaf);
        }
        let carry: Vec<usize> = matched.iter().copied().filter(|i| carries(root, &items[*i], &rest[0])).collect();
        if carry.is_empty() && pattern.contains('*') {
            return Err(format!("no {root} that matches `{pattern}` has a key `{}`", rest[0]));
        }
        for i in if carry.is_empty() { matched } else { carry } {
            let name = name_of(&items[i]).unwrap_or_default().to_owned();
            let Value::Table(table) = &mut items[i].value else { continue };
            put_below(table, rest, leaf.clone())?;
            self.forget_members(root, &name, rest);
        }
        Ok(())
    }

    /// A later `--set` on a whole counted host wins over an earlier one on a member.
    fn forget_members(&mut self, root: &str, name: &str, path: &[String]) {
        let first = (root.to_owned(), name.to_owned(), 0);
        let last = (root.to_owned(), name.to_owned(), u32::MAX);
        for keys in self.members.range_mut(first..=last).map(|(_, keys)| keys) {
            keys.retain(|(key, _)| !key.starts_with(path));
        }
    }

    fn put_member(
        &mut self,
        root: &str,
        names: &[String],
        index: u32,
        rest: &[String],
        leaf: &Node,
    ) -> Result<(), String> {
        match rest.first().map(String::as_str) {
            None => return Err("is one of a counted host; give one of its keys".to_owned()),
            Some("count" | "name") => return Err("belongs to the whole counted host".to_owned()),
            Some(_) => {}
        }
        for name in names {
            let member = (root.to_owned(), name.clone(), index);
            self.members.entry(member).or_default().push((rest.to_vec(), leaf.clone()));
        }
        Ok(())
    }

    /// `change.2.at`, `change.*.at`, `change.1.set.station.N3.rate`.
    fn put_change(&mut self, path: &[String], leaf: Node) -> Result<(), String> {
        let Some(Node { value: Value::Array(items), .. }) = self.root.0.get_mut("change") else {
            return Err("there is no [[change]]".to_owned());
        };
        let mut keys = path[2..].to_vec();
        if keys.first().is_some_and(|k| k == "set") && keys.len() > 2 {
            keys = vec!["set".to_owned(), keys[1..].join(".")];
        }
        let count = items.len();
        let mut found = false;
        for (i, item) in items.iter_mut().enumerate() {
            let Value::Table(table) = &mut item.value else { continue };
            if !matches(&path[1], Some(&(i + 1).to_string())) {
                continue;
            }
            found = true;
            match keys.is_empty() {
                true if matches!(leaf.value, Value::Removed) => item.value = Value::Removed,
                true => return Err("is a whole change; give one of its keys, or none".to_owned()),
                false => put_below(table, &keys, leaf.clone())?,
            }
        }
        items.retain(|item| !matches!(item.value, Value::Removed));
        if found { Ok(()) } else { Err(format!("changes are numbered 1 to {count}")) }
    }

    /// The table of member `index` of the counted host `name`, where a `--set` made it differ.
    pub(crate) fn member(
        &self,
        root: &str,
        name: &str,
        index: u32,
        table: &Table,
    ) -> Result<Option<Table>, ScenarioError> {
        let Some(keys) = self.members.get(&(root.to_owned(), name.to_owned(), index)) else { return Ok(None) };
        let mut own = table.clone();
        for (path, leaf) in keys {
            put_below(&mut own, path, leaf.clone()).map_err(|why| ScenarioError::Wrong {
                place: SourceMap::default().show(&leaf.at),
                key: format!("{root}.{name}.{index}.{}", path.join(".")),
                why,
            })?;
        }
        Ok(Some(own))
    }
}

/// The value of a `--set` as a node: "none" removes, except where it is the name of something.
fn leaf(path: &[String], value: &str, at: &Origin) -> Result<Node, String> {
    let last = path.last().map_or("", String::as_str);
    let value = match value {
        "none" if !matches!(last, "kind" | "name") => Value::Removed,
        "" => return Err("there is no value; write --set key=value".to_owned()),
        v if v.starts_with(['"', '\'', '[', '{']) => parse_value(v, at)?,
        v => Value::Bare(v.to_owned()),
    };
    Ok(Node { at: at.clone(), value })
}

/// Walks `path` down from `table`, creating what is missing, and puts `leaf` there.
fn put_below(table: &mut Table, path: &[String], leaf: Node) -> Result<(), String> {
    let Some((key, rest)) = path.split_first() else { return Ok(()) };
    if rest.is_empty() {
        table.0.insert(key.clone(), leaf);
        return Ok(());
    }
    let empty = || Node { at: leaf.at.clone(), value: Value::Table(Table::default()) };
    let node = table.0.entry(key.clone()).or_insert_with(empty);
    if matches!(&node.value, Value::Removed)
        || matches!(&node.value, Value::Text(t) | Value::Bare(t) if t == "none" || t == "off")
    {
        *node = empty();
    }
    match &mut node.value {
        Value::Table(inner) => put_below(inner, rest, leaf),
        Value::Array(_) => Err(format!("`{key}` is a list of tables; it holds no key `{}`", rest[0])),
        other => Err(format!("`{key}` is {}, not a table", other.describe())),
    }
}

fn name_of(node: &Node) -> Option<&str> {
    match &node.value {
        Value::Table(table) => table.text("name"),
        _ => None,
    }
}

/// Whether the flow at `node` can carry `key` at all: a wildcard reaches only the flows that do.
fn carries(root: &str, node: &Node, key: &str) -> bool {
    let Value::Table(table) = &node.value else { return false };
    root != "flow" || flow::carries(table, key)
}

/// Whether `name` fits `pattern`, in which `*` stands for any run of characters.
fn matches(pattern: &str, name: Option<&str>) -> bool {
    let Some(name) = name else { return false };
    let Some((head, tail)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut rest) = name.strip_prefix(head) else { return false };
    let mut parts: Vec<&str> = tail.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}
