//! Fixes the revision at build time: what `git describe` says of the checkout, or "unknown" without git.

use std::process::Command;

fn git(arguments: &[&str]) -> Option<String> {
    // Without refreshing the index, which is watched below: each fresh clone would be built twice.
    let output =
        Command::new("git").arg("--no-optional-locks").args(arguments).output().ok().filter(|o| o.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}

fn main() {
    let revision = git(&["describe", "--always", "--dirty", "--tags", "--abbrev=12"]);
    println!("cargo::rustc-env=LASTHOP_REVISION={}", revision.as_deref().unwrap_or("unknown"));
    println!("cargo::rerun-if-changed=build.rs");
    // HEAD changes on checkout, its log on every commit, the index on every add.
    for name in ["HEAD", "logs/HEAD", "index"] {
        if let Some(path) = git(&["rev-parse", "--git-path", name]).filter(|p| std::path::Path::new(p).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}
