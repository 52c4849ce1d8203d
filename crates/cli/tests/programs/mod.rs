//! The programs that tests start: `lasthop`, and `lasthopd`, `lasthop-message` and `lasthop-web`, which it becomes.
//!
//! Cargo builds the programs of a test's own package only. So `cargo test` has the others built here, in the same profile; where
//! no cargo started the test (`tools/test`) they have to be there.

use std::path::Path;
use std::process::Command;
use std::sync::Once;

/// The path of `lasthop`, which finds the others beside it.
pub fn lasthop() -> &'static str {
    static READY: Once = Once::new();
    let own = env!("CARGO_BIN_EXE_lasthop");
    READY.call_once(|| prepare(Path::new(own).parent().expect("a folder")));
    own
}

fn prepare(folder: &Path) {
    const PACKAGES: [&str; 6] = ["-p", "lasthop-daemon", "-p", "lasthop-message", "-p", "lasthop-web"];
    if let (Some(cargo), Some(target)) = (std::env::var_os("CARGO"), folder.parent()) {
        let profile = match folder.file_name().and_then(|name| name.to_str()) {
            Some("debug") | None => "dev",
            Some(profile) => profile,
        };
        let mut build = Command::new(cargo);
        build.args(["build", "--quiet", "--locked", "--profile", profile]).args(PACKAGES);
        build.arg("--target-dir").arg(target).current_dir(env!("CARGO_MANIFEST_DIR"));
        let done = build.status().expect("cargo starts");
        assert!(done.success(), "{build:?} failed");
    }
    for program in ["lasthopd", "lasthop-message", "lasthop-web"] {
        let path = folder.join(program);
        assert!(path.is_file(), "there is no {}: cargo build {} makes it", path.display(), PACKAGES.join(" "));
    }
}
