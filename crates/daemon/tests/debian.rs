//! Debian's packages, made of programs that stand in for ours: what is in them, whose it is, what they ask for, what lintian says of them.
//! `make package-test` makes them of the real programs and installs them. Without debhelper it says SKIPPED.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// Any program will do; this one needs the C library alone.
const STAND_IN: &str = "/usr/bin/true";
const LABORATORY: [&str; 3] = ["lasthop", "lasthop-web", "lasthop-message"];
const PAGES: [&str; 5] = ["lasthop", "lasthop-web", "lasthop-message", "lasthopd", "lasthopd-run"];

/// This machine's architecture in Debian's words; none where there are no packages for it.
fn architecture() -> Option<&'static str> {
    match std::env::consts::ARCH {
        "x86_64" => Some("amd64"),
        "aarch64" => Some("arm64"),
        _ => None,
    }
}

/// Whether that program can be started; said where not.
fn there_is(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        println!("SKIPPED: Debian packages: no {program} here (tools/install-deps package)");
    }
    found
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A folder with what the script that makes packages is given: programs, pages and completions. None, said, where it cannot work.
fn input() -> Option<tempfile::TempDir> {
    if architecture().is_none() {
        println!("SKIPPED: Debian packages: there are none for {}", std::env::consts::ARCH);
        return None;
    }
    if !there_is("dh") {
        return None;
    }
    let made = tempfile::tempdir().expect("a folder");
    let folder = made.path();
    let put = |path: PathBuf, text: &str| {
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    };
    for name in LABORATORY.iter().chain(&["lasthopd"]) {
        put(folder.join("bin").join(name), "");
        fs::copy(STAND_IN, folder.join("bin").join(name)).expect("copied");
        for completion in [format!("{name}.bash"), format!("_{name}"), format!("{name}.fish")] {
            put(folder.join("man/completions").join(completion), "# words\n");
        }
    }
    for name in PAGES {
        let page = format!(".TH {name} 1\n.SH NAME\n{name} \\- stands in\n.SH SYNOPSIS\n{name}\n");
        put(folder.join(format!("man/man1/{name}.1")), &page);
    }
    Some(made)
}

/// Makes packages in `folder`, and returns their paths.
fn build(folder: &Path, out: &str, more: &[&str]) -> Vec<PathBuf> {
    let mut command = Command::new("packaging/debian/build");
    let architecture = architecture().expect("looked at before");
    command.current_dir(REPOSITORY).args(["--arch", architecture, "--lasthopd"]).arg(folder.join("bin/lasthopd"));
    command.arg("--manual").arg(folder.join("man")).arg("--out").arg(folder.join(out)).args(more);
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{}", said(&output));
    String::from_utf8_lossy(&output.stdout).lines().map(PathBuf::from).collect()
}

/// Mode, owner and name of each file, and where a link leads to.
fn contents(package: &Path) -> Vec<String> {
    let output = Command::new("dpkg-deb").arg("--contents").arg(package).output().expect("dpkg-deb");
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        format!("{} {} {}", words[0], words[1], words[5..].join(" "))
    };
    let mut all: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(line).collect();
    all.retain(|line| !line.ends_with('/'));
    all.sort();
    all
}

fn field(package: &Path, name: &str) -> String {
    let output = Command::new("dpkg-deb").arg("--field").arg(package).arg(name).output().expect("dpkg-deb");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn packages_hold_what_a_router_needs_and_what_a_laboratory_needs() {
    let Some(folder) = input() else { return };
    let laboratory = folder.path().join("bin");
    let more = ["--laboratory", laboratory.to_str().expect("utf-8"), "--version", "1.2.3-1"];
    let made = build(folder.path(), "first", &more);
    let [laboratory, daemon] = made.as_slice() else { panic!("{made:?}") };
    let ending = format!("_1.2.3-1_{}.deb", architecture().expect("one"));
    assert!(
        daemon.ends_with(format!("lasthop{ending}")) && laboratory.ends_with(format!("lasthop-laboratory{ending}"))
    );
    files_of_both(daemon, laboratory);
    assert!(field(daemon, "Depends").starts_with("libc6 (>= "), "what the binary needs: {}", field(daemon, "Depends"));
    assert!(field(laboratory, "Depends").contains("lasthop (= 1.2.3-1)"));
    unpacked(daemon, folder.path());
    let again = build(folder.path(), "second", &more[2..]);
    assert!(fs::read(daemon).expect("made") == fs::read(&again[0]).expect("made"), "the same input, the same bytes");
    lintian(&made);
}

/// Each file is where Debian has such files, root's, and nobody else can write to it.
fn files_of_both(daemon: &Path, laboratory: &Path) {
    let of_daemon = [
        "-rw-r--r-- root/root ./etc/lasthop/lasthop.toml",
        "-rw-r--r-- root/root ./lib/systemd/system/lasthop.service",
        "-rw-r--r-- root/root ./usr/share/bash-completion/completions/lasthopd",
        "-rw-r--r-- root/root ./usr/share/doc/lasthop/changelog.Debian.gz",
        "-rw-r--r-- root/root ./usr/share/doc/lasthop/changelog.gz",
        "-rw-r--r-- root/root ./usr/share/doc/lasthop/copyright",
        "-rw-r--r-- root/root ./usr/share/fish/vendor_completions.d/lasthopd.fish",
        "-rw-r--r-- root/root ./usr/share/man/man1/lasthopd-run.1.gz",
        "-rw-r--r-- root/root ./usr/share/man/man1/lasthopd.1.gz",
        "-rw-r--r-- root/root ./usr/share/zsh/vendor-completions/_lasthopd",
        "-rwxr-xr-x root/root ./usr/sbin/lasthopd",
    ];
    // Newer debhelpers put units below /usr.
    let units = |line: String| line.replace("./usr/lib/systemd", "./lib/systemd");
    let overrides = |line: &String| !line.contains("./usr/share/lintian/overrides/");
    assert_eq!(contents(daemon).into_iter().filter(overrides).map(units).collect::<Vec<_>>(), of_daemon);
    let of_laboratory = contents(laboratory);
    for name in LABORATORY {
        for line in [
            format!("-rwxr-xr-x root/root ./usr/bin/{name}"),
            format!("-rw-r--r-- root/root ./usr/share/man/man1/{name}.1.gz"),
            format!("-rw-r--r-- root/root ./usr/share/bash-completion/completions/{name}"),
            format!("-rw-r--r-- root/root ./usr/share/zsh/vendor-completions/_{name}"),
            format!("-rw-r--r-- root/root ./usr/share/fish/vendor_completions.d/{name}.fish"),
        ] {
            assert!(of_laboratory.contains(&line), "{line} of {of_laboratory:?}");
        }
    }
}

/// The configuration is that of the program, the service starts and stops with the package.
fn unpacked(package: &Path, folder: &Path) {
    let root = folder.join("root");
    let done = Command::new("dpkg-deb").arg("--raw-extract").args([package, &root]).status().expect("dpkg-deb");
    assert!(done.success());
    let read = |path: &str| fs::read_to_string(root.join(path)).expect(path);
    let printed =
        Command::new(env!("CARGO_BIN_EXE_lasthopd")).args(["run", "--print-config"]).output().expect("starts");
    assert_eq!(read("etc/lasthop/lasthop.toml"), String::from_utf8_lossy(&printed.stdout));
    assert_eq!(read("DEBIAN/conffiles").trim(), "/etc/lasthop/lasthop.toml");
    let after = read("DEBIAN/postinst");
    assert!(
        after.contains("deb-systemd-helper enable 'lasthop.service'") && after.contains("_dh_action=restart"),
        "{after}"
    );
    assert!(read("DEBIAN/prerm").contains("deb-systemd-invoke stop 'lasthop.service'"));
    assert!(read("DEBIAN/postrm").contains("deb-systemd-helper purge 'lasthop.service'"));
    let mode = fs::metadata(root.join("usr/sbin/lasthopd")).expect("there").permissions().mode();
    assert_eq!(mode & 0o7777, 0o755);
}

fn lintian(packages: &[PathBuf]) {
    if !there_is("lintian") {
        return;
    }
    let mut command = Command::new("lintian");
    command.args(["--allow-root", "--no-user-dirs", "--fail-on", "error,warning"]).args(packages);
    let output = command.output().expect("lintian starts");
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn without_the_laboratory_there_is_one_package_whose_version_is_newer_than_the_last_release() {
    let Some(folder) = input() else { return };
    let made = build(folder.path(), "out", &[]);
    let [daemon] = made.as_slice() else { panic!("{made:?}") };
    let version = field(daemon, "Version");
    let released = concat!(env!("CARGO_PKG_VERSION"), "-1");
    let compared = Command::new("dpkg").args(["--compare-versions", &version, "ge", released]).status().expect("dpkg");
    assert!(compared.success(), "{version}");
}
