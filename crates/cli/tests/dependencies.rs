//! The table of `book/src/dependencies.md` names every dependency of every crate with its reason, and no other.

mod workspace;

use std::collections::{BTreeMap, BTreeSet};

const BOOK: &str = include_str!("../../../book/src/dependencies.md");
const HEAD: &str =
    "| dependency | used by | used by tests, benches and build scripts of | what for |\n|---|---|---|---|\n";

/// Crates of ours that a dependency is linked into, and those whose tests, benches or build scripts alone need it.
type Users = (BTreeSet<String>, BTreeSet<String>);

fn of_the_manifests() -> BTreeMap<String, Users> {
    let mut found: BTreeMap<String, Users> = BTreeMap::new();
    for package in workspace::metadata()["packages"].as_array().expect("packages") {
        let user = package["name"].as_str().expect("a name").trim_start_matches("lasthop-").to_owned();
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let name = dependency["name"].as_str().expect("a name");
            if name.starts_with("lasthop-") {
                continue;
            }
            let users = found.entry(name.to_owned()).or_default();
            let place = if dependency["kind"].is_null() { &mut users.0 } else { &mut users.1 };
            place.insert(user.clone());
        }
    }
    found
}

fn of_the_book() -> BTreeMap<String, Users> {
    let (_, rows) = BOOK.split_once(HEAD).expect("the table's head");
    let crates =
        |cell: &str| cell.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect();
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [name, used_by, tests, what_for] = cells[..] else { panic!("four cells: {line}") };
        assert!(what_for.len() > 10, "a reason: {line}");
        (name.trim_matches('`').to_owned(), (crates(used_by), crates(tests)))
    };
    let lines: Vec<&str> = rows.lines().take_while(|line| line.starts_with('|')).collect();
    let rows: Vec<_> = lines.iter().map(|line| row(line)).collect();
    assert!(rows.is_sorted_by_key(|(name, _)| name.clone()), "rows stand in the order of the alphabet");
    let table: BTreeMap<_, _> = rows.into_iter().collect();
    assert_eq!(table.len(), lines.len(), "each dependency has one row");
    table
}

#[test]
fn the_books_table_names_every_dependency_with_its_users_and_no_other() {
    let (manifests, book) = (of_the_manifests(), of_the_book());
    for name in manifests.keys().chain(book.keys()) {
        assert_eq!(
            manifests.get(name),
            book.get(name),
            "{name}: (linked into, for tests alone) by Cargo.toml on the left, by book/src/dependencies.md on the right"
        );
    }
}
