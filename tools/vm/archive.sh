# Debian's archive, read apart from this system's own lists. Sourced by what fetches packages to unpack them.
#
# The archive is the one this system uses itself: its address comes from apt's own configuration, only the suite is another.
# `what` names what is wanted, for the one that reads why it cannot be had.
# shellcheck disable=SC2154 # what: see above
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

say() { printf '%s\n' "$*" >&2; }
unavailable() { say "No $what: $*"; exit 3; }

# archive_address: of this system's Debian archive.
archive_address() {
    command -v apt-get >/dev/null || unavailable "this system has no apt-get."
    [ -r "$keyring" ] || unavailable "there is no $keyring (package debian-archive-keyring)."
    archive=$(apt-get indextargets 'Created-By: Packages' 'Origin: Debian' 'Component: main' --format '$(RELEASE) $(SITE)' |
        awk '$1 !~ /-/ { print $2; exit }')
    [ -n "$archive" ] || unavailable "none of this system's package sources is a Debian archive whose lists are there (apt-get update)."
}

# open_archive FOLDER ARCHITECTURE SUITE: reads its lists. $apt is then a folder for files, which goes when the script ends.
open_archive() {
    archive_address
    apt=$(mktemp -d "$1/apt.XXXXXX")
    trap 'rm -rf "$apt"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
    : >"$apt/status"
    printf 'deb [signed-by=%s] %s %s main\n' "$keyring" "$archive" "$3" >"$apt/sources.list"
    options=(-q -o "Dir::Etc::SourceList=$apt/sources.list" -o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$apt/lists"
        -o "Dir::State::status=$apt/status" -o "Dir::Cache=$apt/cache" -o "APT::Sandbox::User=$(id -un)" -o Acquire::Retries=2
        -o "APT::Architecture=$2" -o "APT::Architectures=$2")
    if ! apt-get "${options[@]}" update >"$apt/log" 2>&1; then
        cat "$apt/log" >&2
        unavailable "$3 cannot be read from this system's Debian archive; what apt-get said stands above."
    fi
}

apt_cache() { apt-cache "${options[@]}" "$@"; }

# download PACKAGE..: into $apt.
download() {
    if ! (cd "$apt" && apt-get "${options[@]}" download "$@") >"$apt/log" 2>&1; then
        cat "$apt/log" >&2
        unavailable "apt-get could not download $*; what it said stands above."
    fi
}
