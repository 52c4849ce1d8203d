//! The table of a sweep as a file, and beside it what it holds; both have the same bytes whenever the same plan was run.

use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::{Cell, Figures, Key, Kind, Plan, Store, StoreError, Table, parquet};

/// Packs what `plan` has in `store`, and writes its table to `path` and beside the store what it holds. Whether there was anything
/// to write.
///
/// # Errors
/// A run is missing, or a file cannot be written; what was there is there still.
pub fn write_table(
    store: &mut Store,
    plan: &Plan,
    figures: &Figures,
    (path, revision, scenario): (&Path, &str, Key),
) -> Result<bool, StoreError> {
    let manifest = store.root().join("manifest.json");
    let mut said = of_plan(plan, figures, revision, scenario);
    if is_written(&manifest, path, &said) {
        return Ok(false);
    }
    store.pack(plan.keys())?;
    let mut get = |run: usize| {
        let there = store.get(plan.key(run))?;
        there.ok_or_else(|| StoreError::Strange(format!("run {run} of the plan is not in {}", store.root().display())))
    };
    let table = Table::new(plan, figures, &mut get)?;
    let mut written = Vec::new();
    let temporary = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = tempfile::Builder::new()
        .prefix(".tmp")
        .tempfile_in(temporary)
        .map_err(StoreError::io(format!("{}: cannot be written", path.display())))?;
    parquet::write(file.as_file(), &table, plan, &mut get, path)?;
    let columns = |kind: Kind| format!("{kind:?}").to_lowercase();
    written.extend(table.columns().iter().map(|c| json!({"name": c.name, "kind": columns(c.kind)})));
    let bytes = file.as_file().metadata().map(|it| it.len()).unwrap_or_default();
    said.insert("columns".to_owned(), Value::Array(written));
    said.insert("table".to_owned(), json!({"bytes": bytes, "sha256": hash(file.as_file(), path)?.to_string()}));
    let failed = || StoreError::io(format!("{}: cannot be written", path.display()));
    let text = serde_json::to_vec_pretty(&said).map_err(|error| failed()(error.into()))?;
    file.as_file().sync_all().map_err(failed())?;
    #[cfg(unix)]
    let _ = file.as_file().set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
    file.persist(path).map_err(|error| failed()(error.error))?;
    store.replace(&manifest, |file| file.write_all(&text))?;
    Ok(true)
}

fn hash(mut file: &File, path: &Path) -> Result<Key, StoreError> {
    let failed = || StoreError::io(format!("{}: cannot be read", path.display()));
    file.rewind().map_err(failed())?;
    Key::of_reader(file).map_err(failed())
}

/// What the manifest says of a plan, before there is a table.
fn of_plan(plan: &Plan, figures: &Figures, revision: &str, scenario: Key) -> Map<String, Value> {
    let mut seeds: Vec<Vec<(u64, u64)>> = vec![Vec::new(); plan.cells.len()];
    for (cell, seed) in &plan.runs {
        match seeds[*cell as usize].last_mut() {
            Some((first, count)) if first.checked_add(*count) == Some(*seed) => *count += 1,
            _ => seeds[*cell as usize].push((*seed, 1)),
        }
    }
    let cell = |(cell, seeds): (&Cell, Vec<(u64, u64)>)| {
        let values: Map<String, Value> = cell.values.iter().map(|(k, v)| (k.clone(), v.as_str().into())).collect();
        json!({"values": values, "sets": cell.sets, "seeds": seeds})
    };
    let cells: Vec<Value> = plan.cells.iter().zip(seeds).map(cell).collect();
    let figures = match figures {
        Figures::All => json!("all"),
        Figures::Chosen(names) => json!(names),
    };
    let said = json!({
        "format": 1,
        "revision": revision,
        "scenario": {"name": plan.cells.first().map(|cell| cell.home.name.clone()), "sha256": scenario.to_string()},
        "runs": plan.runs.len(),
        "keys_sha256": Key::of_keys(plan.keys()).to_string(),
        "figures": figures,
        "cells": cells,
    });
    match said {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Whether the table at `path` is the one that `said` would make; it is not read for that, its length alone is looked at.
fn is_written(manifest: &Path, path: &Path, said: &Map<String, Value>) -> bool {
    let Ok(text) = std::fs::read_to_string(manifest) else { return false };
    let Ok(Value::Object(there)) = serde_json::from_str(&text) else { return false };
    let same = said.iter().all(|(name, value)| there.get(name) == Some(value));
    let bytes = std::fs::metadata(path).map(|it| it.len()).ok();
    same && bytes.is_some() && there.get("table").and_then(|table| table.get("bytes")).and_then(Value::as_u64) == bytes
}
