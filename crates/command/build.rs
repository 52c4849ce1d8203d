//! What `--version` and reports say of the build, fixed here once for every binary of this package:
//!
//! | variable | for example | outside a checkout |
//! |---|---|---|
//! | `LASTHOP_REVISION` | `6cb530e12345`, `6cb530e12345-dirty` where a tracked file was changed | `unknown` |
//! | `LASTHOP_VERSION` | `0.2.0 (6cb530e12345, 2026-11-24)`: version, revision, the day of its commit | `0.2.0 (unknown)` |

use std::process::Command;

fn git(arguments: &[&str]) -> Option<String> {
    // Without refreshing the index, which is watched below: each fresh clone would be built twice.
    let output =
        Command::new("git").arg("--no-optional-locks").args(arguments).output().ok().filter(|o| o.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}

fn main() {
    // Tags are left out: the version says what they would.
    let revision = git(&["describe", "--always", "--dirty", "--exclude=*", "--abbrev=12"]);
    let day = git(&["show", "--no-patch", "--format=%cs", "HEAD"]);
    let revision = revision.as_deref().unwrap_or("unknown");
    let day = day.map(|day| format!(", {day}")).unwrap_or_default();
    println!("cargo::rustc-env=LASTHOP_REVISION={revision}");
    println!("cargo::rustc-env=LASTHOP_VERSION={} ({revision}{day})", env!("CARGO_PKG_VERSION"));
    println!("cargo::rerun-if-changed=build.rs");
    // HEAD changes on checkout, its log on every commit, the index on every add.
    for name in ["HEAD", "logs/HEAD", "index"] {
        if let Some(path) = git(&["rev-parse", "--git-path", name]).filter(|p| std::path::Path::new(p).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    // A change of these has the binaries built anew in any case, and is what makes a clean checkout a changed one.
    let crates = std::fs::read_dir("..").into_iter().flatten().flatten().map(|entry| entry.path().join("src"));
    for source in crates.filter(|path| path.is_dir()) {
        println!("cargo::rerun-if-changed={}", source.display());
    }
}
