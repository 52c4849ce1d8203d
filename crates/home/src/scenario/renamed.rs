//! Keys that had another name. The old one is read for one version, in files and by `--set`; both at once are refused.

use super::ScenarioError;
use super::tree::{Location, Node, Table, Value};

/// Since 0.2: the path as it was, and what its last key is called now.
const RENAMED: [(&[&str], &str); 3] = [
    (&["line"], "wan"),
    (&["control", "law", "standing"], "standing_weight"),
    (&["control", "law", "stands"], "standing_threshold"),
];

/// The path as it is written now.
pub(crate) fn current(mut path: Vec<String>) -> Vec<String> {
    for (old, new) in RENAMED {
        if path.len() >= old.len() && path.iter().zip(old).all(|(key, old)| key == old) {
            new.clone_into(&mut path[old.len() - 1]);
        }
    }
    path
}

/// A key of `[[change]]`, as it is written now.
pub(crate) fn current_key(key: &str) -> String {
    current(key.split('.').map(str::to_owned).collect()).join(".")
}

/// Gives the keys of a file the names that they have now.
pub(crate) fn rename(root: &mut Table, file: &str) -> Result<(), ScenarioError> {
    for (old, new) in RENAMED {
        let [tables @ .., key] = old else { continue };
        let mut table = Some(&mut *root);
        for name in tables {
            table = table.and_then(|table| match table.0.get_mut(*name) {
                Some(Node { value: Value::Table(inner), .. }) => Some(inner),
                _ => None,
            });
        }
        let Some(table) = table else { continue };
        let Some(node) = table.0.remove(*key) else { continue };
        if table.0.contains_key(new) {
            let place = Location { file, at: &node.at }.to_string();
            let why = format!("is what `{new}` was called before 0.2, and `{new}` is there, too; keep that one");
            return Err(ScenarioError::Wrong { place, key: old.join("."), why });
        }
        table.0.insert(new.to_owned(), node);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::scenario::Scenario;

    const HOME: &str =
        "format = 1\nname = \"t\"\nduration = \"2s\"\n[wifi]\n[[server]]\nname = \"W\"\n[[station]]\nname = \"S\"\n";

    fn read(more: &str, set: &[&str]) -> Result<Scenario, String> {
        let set: Vec<String> = set.iter().map(|&set| set.to_owned()).collect();
        Scenario::parse(&format!("{HOME}{more}"), "t.toml", &set).map_err(|error| error.to_string())
    }

    #[test]
    fn an_old_name_means_what_the_new_one_means() {
        let control = "[control.window]\ncapacity = \"9Mbit/s\"\n[control.law]\n";
        let change = |key| format!("[[change]]\nat = \"1s\"\nset = {{ \"{key}.rate_up\" = \"2Mbit/s\" }}\n");
        let old = read(
            &format!("[line]\nrate_up = \"1Mbit/s\"\n{control}stands = 0.2\nstanding = 0.3\n{}", change("line")),
            &["line.delay=3ms", "control.law.stands=0.25"],
        );
        let new = read(
            &format!(
                "[wan]\nrate_up = \"1Mbit/s\"\n{control}standing_threshold = 0.2\nstanding_weight = 0.3\n{}",
                change("wan")
            ),
            &["wan.delay=3ms", "control.law.standing_threshold=0.25"],
        );
        let (old, new) = (old.unwrap(), new.unwrap());
        assert_eq!((old.wan, &old.control, &old.changes[0].keys), (new.wan, &new.control, &new.changes[0].keys));
        assert!(old.wan.is_some() && old.changes[0].after.wan == new.changes[0].after.wan);
    }

    #[test]
    fn both_names_at_once_are_refused() {
        let error = read("[line]\ndelay = \"1ms\"\n[wan]\ndelay = \"2ms\"\n", &[]).unwrap_err();
        assert!(error.contains("t.toml:9") && error.contains("line") && error.contains("`wan`"), "{error}");
    }
}
