//! Compiles the BPF object with clang, and the same C headers for the host so that tests can hold them equal to Rust.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

fn main() {
    println!("cargo::rerun-if-changed=src/bpf");
    println!("cargo::rerun-if-env-changed=LASTHOP_CLANG");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    for (source, object, flags) in [
        ("lasthop.bpf.c", "lasthop.bpf.o", &[][..]),
        ("lasthop.bpf.c", "test-clock.bpf.o", &["-DLASTHOP_TEST_CLOCK"]),
        ("bench.bpf.c", "bench.bpf.o", &[]),
    ] {
        compile_bpf(&clang(), &Path::new("src/bpf").join(source), &out.join(object), flags);
    }
    compile_bpf(&newer_clang(), Path::new("src/bpf/chap.bpf.c"), &out.join("chap.bpf.o"), &[]);
    cc::Build::new()
        .files(["src/bpf/host.c", "src/bpf/host_chap.c"])
        .flag("-std=gnu11")
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .cargo_metadata(false)
        .compile("lasthop_fastpath_host");
    // Only the search path: the test that compares the two asks for the library itself.
    println!("cargo::rustc-link-search=native={}", out.display());
}

fn clang() -> String {
    env::var("LASTHOP_CLANG").unwrap_or_else(|_| "clang".to_owned())
}

/// Older ones do not say that a pointer in a map holds a packet.
const NEWER: u32 = 19;

/// The queue discipline's compiler: `LASTHOP_CLANG` or `clang` where it is new enough, else one with its version in its name.
fn newer_clang() -> String {
    let names = std::iter::once(clang()).chain((NEWER..NEWER + 12).map(|version| format!("clang-{version}")));
    names.into_iter().find(|name| version(name).is_some_and(|version| version >= NEWER)).unwrap_or_else(|| {
        stop(&format!(
            "the queue discipline in BPF needs clang {NEWER} or later: apt install clang-{NEWER} (or set LASTHOP_CLANG \
             to its path)"
        ))
    })
}

/// "Debian clang version 19.1.7 (3~deb12u1)": 19.
fn version(clang: &str) -> Option<u32> {
    let output = Command::new(clang).arg("--version").output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.split_once("clang version ")?.1.split('.').next()?.parse().ok()
}

fn compile_bpf(clang: &str, source: &Path, object: &Path, flags: &[&str]) {
    let include = env::var("DEP_BPF_INCLUDE").expect("libbpf-sys says where its headers are");
    let mut command = Command::new(clang);
    command.args(["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-std=gnu11", "-Wall", "-Wextra", "-Werror"]).args(flags);
    command.arg("-I").arg(&include);
    // Debian keeps asm/types.h below the host's multiarch triple, which clang does not look into for this target.
    let arch = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    command.arg(format!("-I/usr/include/{arch}-linux-gnu"));
    command.arg("-c").arg(source).arg("-o").arg(object);
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => stop(&format!("{clang} could not compile {}: {status}", source.display())),
        Err(error) => stop(&format!(
            "cannot run {clang}: {error}. The BPF programs need clang 14 or later: apt install clang \
             (or set LASTHOP_CLANG to its path)"
        )),
    }
}

fn stop(why: &str) -> ! {
    println!("cargo::error={why}");
    exit(1)
}
