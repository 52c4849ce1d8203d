//! The static binaries for routers that `tools/router-binary` has built, read as ELF files: nothing of them is linked when they start, and
//! none is larger than it was found to be. Where one has not been built the test says so: a build takes minutes, and Python packages.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Architecture, its number in an ELF header, and the most that its file may take, bytes: a twentieth more than was measured, so that
/// who makes it larger notices. The aim is 1.8 MB.
const ROUTERS: [(&str, u16, u64); 3] =
    [("x86_64", 62, 2_126_000), ("aarch64", 183, 1_841_000), ("armv7", 40, 1_670_000)];
/// Types of program headers: what the kernel would have to start in its place, and what a dynamic linker would read.
const INTERPRETER: u32 = 3;
const DYNAMIC: u32 = 2;

/// `target/dist/ARCH/lasthopd`, beside the programs of this build.
fn built(arch: &str) -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_BIN_EXE_lasthopd")).ancestors().nth(2).expect("target/PROFILE/lasthopd");
    let binary = target.join("dist").join(arch).join("lasthopd");
    let exists = binary.exists();
    if !exists {
        println!("SKIPPED: lasthopd for a router, {arch}: it has not been built (make router ARCH={arch})");
    }
    exists.then_some(binary)
}

/// A number of `width` bytes at `at`, little-endian.
fn number(file: &[u8], at: usize, width: usize) -> u64 {
    file[at..at + width].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// The machine that an ELF file is for, and the types of its program headers.
fn headers(file: &[u8]) -> (u16, Vec<u32>) {
    assert_eq!(&file[..4], b"\x7fELF");
    let is_64_bit = file[4] == 2;
    // Where the program headers begin, their size and their number.
    let (begin, size, count) = match is_64_bit {
        true => (number(file, 32, 8), number(file, 54, 2), number(file, 56, 2)),
        false => (number(file, 28, 4), number(file, 42, 2), number(file, 44, 2)),
    };
    let types = (0..count).map(|n| number(file, (begin + n * size) as usize, 4) as u32).collect();
    (number(file, 18, 2) as u16, types)
}

#[test]
fn a_binary_for_a_router_links_nothing_when_it_starts_and_is_small() {
    for (arch, machine, most_bytes) in ROUTERS {
        let Some(binary) = built(arch) else { continue };
        let file = std::fs::read(&binary).expect("it can be read");
        let (found, types) = headers(&file);
        assert_eq!(found, machine, "{}", binary.display());
        assert!(!types.iter().any(|kind| [INTERPRETER, DYNAMIC].contains(kind)), "{arch} links dynamically: {types:?}");
        assert!(file.len() as u64 <= most_bytes, "{arch}: {} bytes, at most {most_bytes}", file.len());
    }
}

#[test]
fn a_binary_for_a_router_like_this_machine_starts() {
    let arch = std::env::consts::ARCH;
    let Some(binary) = ROUTERS.iter().any(|(of, ..)| *of == arch).then(|| built(arch)).flatten() else { return };
    let said = Command::new(binary).arg("--version").output().expect("it starts");
    let version = format!("lasthopd {} ", env!("CARGO_PKG_VERSION"));
    assert!(said.status.success() && said.stdout.starts_with(version.as_bytes()), "{said:?}");
}

/// The reader of headers finds what it looks for where it is.
#[test]
fn a_test_that_links_dynamically_is_seen_to() {
    let file = std::fs::read(std::env::current_exe().expect("this test has a name")).expect("it can be read");
    let (_, types) = headers(&file);
    if cfg!(target_env = "gnu") {
        assert!([INTERPRETER, DYNAMIC].iter().all(|kind| types.contains(kind)), "{types:?}");
    }
}
