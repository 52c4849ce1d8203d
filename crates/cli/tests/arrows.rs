//! Who may use whom: the arrows of ARCHITECTURE.md, held over `cargo metadata`, dev- and build-dependencies included.

mod workspace;

use std::collections::BTreeSet;

use serde_json::Value;

/// Crate, and the crates of this repository that it may use.
const ALLOWED: &[(&str, &[&str])] = &[
    ("command", &[]),
    ("core", &[]),
    ("files", &[]),
    ("medium", &["core"]),
    ("home", &["core", "medium", "files"]),
    ("tcp", &["core"]),
    ("sim", &["core", "medium", "home", "tcp"]),
    ("emu", &["core", "medium", "home"]),
    ("live", &["core", "files"]),
    ("daemon", &["command", "core", "live"]),
    ("messenger", &["files"]),
    ("message", &["command", "core", "messenger"]),
    // Of `live` and `messenger` its tests alone: what the other programs link, this one does not.
    ("cli", &["command", "core", "medium", "home", "tcp", "sim", "emu", "live", "messenger"]),
];

/// (package, what it depends on) for everything of ours that a package of the workspace names.
fn arrows(metadata: &Value) -> BTreeSet<(String, String)> {
    let packages = metadata["packages"].as_array().expect("packages");
    let mut found = BTreeSet::new();
    for package in packages {
        let user = short(&package["name"]).expect("every package of the workspace is called lasthop-..");
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            if let Some(used) = short(&dependency["name"]) {
                found.insert((user.clone(), used));
            }
        }
    }
    found
}

fn short(name: &Value) -> Option<String> {
    name.as_str().and_then(|n| n.strip_prefix("lasthop-")).map(str::to_owned)
}

#[test]
fn every_arrow_points_from_user_to_used() {
    let metadata = workspace::metadata();
    for (user, used) in arrows(&metadata) {
        let allowed = ALLOWED.iter().find(|(name, _)| *name == user);
        let (_, allowed) =
            allowed.unwrap_or_else(|| panic!("`{user}` is new: say in ARCHITECTURE.md and here whom it may use"));
        assert!(allowed.contains(&used.as_str()), "`{user}` must not use `{used}`; it may use {allowed:?}");
    }
}

#[test]
fn only_programs_use_anyhow_and_the_daemon_does_not() {
    for package in workspace::metadata()["packages"].as_array().expect("packages") {
        let is_ordinary = |d: &&Value| d["name"] == "anyhow" && d["optional"] == false;
        let uses = package["dependencies"].as_array().expect("dependencies").iter().any(|d| is_ordinary(&d));
        let may = ["lasthop-cli", "lasthop-message"].iter().any(|name| package["name"] == *name);
        assert!(!uses || may, "{} uses anyhow", package["name"]);
    }
}

#[test]
fn the_front_end_links_neither_the_controller_nor_the_messenger() {
    let metadata = workspace::metadata();
    let packages = metadata["packages"].as_array().expect("packages");
    let cli = packages.iter().find(|package| package["name"] == "lasthop-cli").expect("it is a package");
    for dependency in cli["dependencies"].as_array().expect("dependencies") {
        let is_of_another = ["lasthop-live", "lasthop-messenger"].iter().any(|name| dependency["name"] == *name);
        assert!(!is_of_another || dependency["kind"] == "dev", "{} is for tests alone", dependency["name"]);
    }
}
