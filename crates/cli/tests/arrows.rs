//! Who may use whom: the arrows of ARCHITECTURE.md, held over `cargo metadata`, dev- and build-dependencies included.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

/// Crate, and the crates of this repository that it may use.
const ALLOWED: &[(&str, &[&str])] = &[
    ("core", &[]),
    ("files", &[]),
    ("medium", &["core"]),
    ("home", &["core", "medium", "files"]),
    ("tcp", &["core"]),
    ("sim", &["core", "medium", "home", "tcp"]),
    ("emu", &["core", "medium", "home"]),
    ("live", &["core", "files"]),
    ("messenger", &["files"]),
    ("cli", &["core", "medium", "home", "tcp", "sim", "emu", "live", "messenger"]),
];

fn metadata() -> Value {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps", "--locked", "--offline"])
        .current_dir(root)
        .output()
        .expect("cargo metadata starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata writes JSON")
}

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
    let metadata = metadata();
    for (user, used) in arrows(&metadata) {
        let allowed = ALLOWED.iter().find(|(name, _)| *name == user);
        let (_, allowed) =
            allowed.unwrap_or_else(|| panic!("`{user}` is new: say in ARCHITECTURE.md and here whom it may use"));
        assert!(allowed.contains(&used.as_str()), "`{user}` must not use `{used}`; it may use {allowed:?}");
    }
}

#[test]
fn only_cli_uses_anyhow() {
    for package in metadata()["packages"].as_array().expect("packages") {
        let uses = package["dependencies"].as_array().expect("dependencies").iter().any(|d| d["name"] == "anyhow");
        assert!(!uses || package["name"] == "lasthop-cli", "{} uses anyhow", package["name"]);
    }
}
