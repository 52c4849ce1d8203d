# shellcheck shell=bash
# shellcheck disable=SC2154
# A compiler that has the sources of its library, to compile that along for another machine. Sourced, with $tools (target/dist-tools) set:
# `use_compiler_with_sources` puts it first in PATH. Exit code 3: there is none, and why.

say() { printf '%s\n' "$*" >&2; }

has_sources() { [ -e "$1/lib/rustlib/src/rust/library/std/Cargo.toml" ]; }

# Debian's compiler, its sources and the libraries that they need and this system lacks.
unpack_compiler() {
    local archives=$tools/archives log=$tools/log
    command -v apt-get >/dev/null || { say "There is no Rust compiler with the sources of its library here: rustup component add rust-src"; exit 3; }
    say "Unpacking Debian's Rust compiler and its sources (140 MB) below $tools: nothing is installed."
    rm -rf "$tools/rust" "$archives"
    mkdir -p "$archives/partial" "$tools/unpacked"
    if ! apt-get -q -y -o "Dir::Cache::archives=$archives" -o Debug::NoLocking=true -o "APT::Sandbox::User=$(id -un)" --reinstall \
        --download-only --no-install-recommends install rustc-web cargo-web rust-web-src >"$log" 2>&1; then
        cat "$log" >&2
        say "apt-get could not fetch them; where its lists are old or absent, type: sudo apt-get update"
        exit 3
    fi
    for package in "$archives"/*.deb; do dpkg -x "$package" "$tools/unpacked"; done
    rm -rf "$archives" "$log"
    mv "$tools/unpacked" "$tools/rust"
}

use_compiler_with_sources() {
    local libraries
    has_sources "$(rustc --print sysroot 2>/dev/null)" && return
    has_sources "$tools/rust/usr" || unpack_compiler
    PATH=$tools/rust/usr/bin:$PATH
    libraries=$(dirname "$(find "$tools/rust/usr/lib" -name 'librustc_driver-*.so' | head -n 1)")
    export LD_LIBRARY_PATH=$libraries
}
