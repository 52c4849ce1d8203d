//! Compiles the BPF programs as `make bpf` does: for `examples/bpf.rs`, the tests and the benches.
//!
//! `clang -O2 -target bpf`, then libbpf's linker, which leaves out DWARF. Nothing of this machine is in what comes out: no header of
//! the system is read, and paths are relative. So one version of clang gives one object, wherever it runs.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The compiler of the objects in `src/bpf/object`, as `clang --version` says it. Debian 12 and 13 have it as `clang-19`.
#[allow(dead_code, reason = "not everybody who compiles compares")]
pub const VERSION: &str = "19.1.7";

const NAME: &str = "clang-19";

/// The compiler to use, or why there is none: what `LASTHOP_CLANG` says, else the one of the objects, else the plain one.
pub fn clang() -> Result<String, String> {
    if let Ok(name) = env::var("LASTHOP_CLANG") {
        return version(&name).map(|_| name);
    }
    [NAME, "clang"].map(str::to_owned).into_iter().find(|name| version(name).is_ok()).ok_or_else(|| {
        format!("there is no {NAME}: apt-get install {NAME}, or set LASTHOP_CLANG to the path of clang 14 or later")
    })
}

/// "Debian clang version 19.1.7 (3~deb12u1)": 19.1.7.
pub fn version(clang: &str) -> Result<String, String> {
    let output =
        Command::new(clang).arg("--version").output().map_err(|error| format!("cannot run {clang}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.split_once("clang version ").and_then(|(_, rest)| rest.split([' ', '\n', '-']).next());
    version.map(str::to_owned).ok_or_else(|| format!("{clang} does not say which clang it is"))
}

/// Where the C sources are.
pub fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bpf")
}

/// The object of one source file.
pub fn object(clang: &str, source: &str, flags: &[&str]) -> Result<Vec<u8>, String> {
    let folder = tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
    let compiled = folder.path().join("compiled.o");
    let linked = folder.path().join("linked.o");
    let mut command = Command::new(clang);
    command.current_dir(sources());
    command.args(["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-std=gnu11", "-Wall", "-Wextra", "-Werror"]).args(flags);
    command.arg("-fdebug-compilation-dir=.");
    command.arg("-I").arg(env!("LASTHOP_BPF_INCLUDE")).args(["-c", source, "-o"]).arg(&compiled);
    let output = command.output().map_err(|error| format!("cannot run {clang}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{clang} could not compile {source}:\n{}", String::from_utf8_lossy(&output.stderr)));
    }
    let link = || {
        let mut linker = libbpf_rs::Linker::new(&linked)?;
        linker.add_file(&compiled)?;
        linker.link()
    };
    link().map_err(|error| format!("libbpf could not link {source}: {error}"))?;
    std::fs::read(&linked).map_err(|error| format!("what libbpf linked cannot be read: {error}"))
}
