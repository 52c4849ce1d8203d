//! Compiles the fast path's C headers for the host, so that tests can hold them equal to Rust. The BPF objects themselves are in
//! the repository (`src/bpf/object`, made by `make bpf`): whoever builds needs no clang.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=src/bpf");
    // For tests, benches and `make bpf`, which compile BPF programs.
    println!("cargo::rustc-env=LASTHOP_BPF_INCLUDE={}", env::var("DEP_BPF_INCLUDE").expect("libbpf-sys says it"));
    cc::Build::new()
        .files(["src/bpf/host.c", "src/bpf/host_chap.c"])
        .flag("-std=gnu11")
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .cargo_metadata(false)
        .compile("lasthop_fastpath_host");
    // Only the search path: the test that compares the two asks for the library itself.
    println!("cargo::rustc-link-search=native={}", env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
}
