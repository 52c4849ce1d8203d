//! What is packed for OpenWrt: the init script in a router's shell, the packages, the LuCI page in a browser.
//!
//! OpenWrt itself is not here: procd, uci and LuCI are stand-ins (`openwrt/functions.sh`, `openwrt/luci.js`). What was tried by hand with
//! OpenWrt's own is in the book's chapter "On OpenWrt".

#[path = "openwrt/page.rs"]
mod page;
mod programs;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use lasthop_live::config::{Capacity, Config, Queueing};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const INIT: &str = include_str!("../../../packaging/openwrt/net/lasthop/files/lasthop.init");
const CONFIG: &str = include_str!("../../../packaging/openwrt/net/lasthop/files/lasthop.config");
const FUNCTIONS: &str = include_str!("openwrt/functions.sh");

/// A router's folders, and what the init script did there.
struct Router {
    folder: tempfile::TempDir,
}

impl Router {
    /// One whose /etc/config/lasthop is `config`; `None`, and SKIPPED, without busybox.
    fn new(config: &str) -> Option<Self> {
        if Command::new("busybox").arg("true").output().is_err() {
            println!("SKIPPED: busybox: there is none, which has the shell of OpenWrt (tools/install-deps try)");
            return None;
        }
        let router = Self { folder: tempfile::tempdir().expect("a folder") };
        // Paths of a router become those of this folder; nothing else of the script is changed.
        let script = INIT.replace("/var/run/lasthop", text(&router.path("run")));
        std::fs::write(router.path("lasthop.init"), script).expect("written");
        std::fs::write(router.path("functions.sh"), FUNCTIONS).expect("written");
        router.configure(config);
        Some(router)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn configure(&self, config: &str) {
        std::fs::write(self.path("lasthop"), config).expect("written");
    }

    /// Lines that `function` of the init script said to procd.
    fn call(&self, function: &str) -> Vec<String> {
        let script = format!("set -e; . ./functions.sh; . ./lasthop.init; {function}");
        let output = Command::new("busybox")
            .args(["ash", "-c", &script])
            .current_dir(&self.folder)
            .env("UCI", self.folder.path())
            .output()
            .expect("busybox starts");
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        String::from_utf8(output.stdout).expect("UTF-8").lines().map(str::to_owned).collect()
    }

    /// The file that lasthopd is told to read.
    fn toml(&self) -> String {
        self.call("start_service");
        std::fs::read_to_string(self.path("run/lasthop.toml")).expect("the file")
    }

    fn read(&self) -> Result<Config, String> {
        self.call("start_service");
        Config::load(&self.path("run/lasthop.toml")).map_err(|error| error.to_string())
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn section(options: &str) -> String {
    format!("config lasthop 'main'\n\toption enabled '1'\n{options}")
}

#[test]
fn the_configuration_that_is_installed_becomes_the_usual_one_with_a_smaller_table() {
    let Some(router) = Router::new(CONFIG) else { return };
    let usual =
        "# Made from /etc/config/lasthop; a change here is lost.\nlan = \"auto\"\ncapacity = \"learn\"\nflows = 4096\n";
    assert_eq!(router.toml(), usual);
    assert_eq!(router.read(), Ok(Config { flows: 4096, ..Config::default() }));
}

#[test]
fn every_option_becomes_its_key() {
    let options = "list lan 'auto'\nlist lan 'br-lan'\nlist lan 'phy0-ap0'\noption wan 'eth0.2'\noption capacity '98%'\n\
                   option link '100Mbit/s'\noption queueing 'chap'\noption flows '1024'\noption dry_run 'on'\n";
    let Some(router) = Router::new(&section(options)) else { return };
    let wanted = Config {
        lan: vec!["br-lan".parse().unwrap(), "phy0-ap0".parse().unwrap()],
        wan: Some("eth0.2".parse().unwrap()),
        capacity: Capacity::Share(0.98),
        link: Some("100Mbit/s".parse().unwrap()),
        queueing: Queueing::Chap,
        flows: 1024,
        dry_run: true,
        ..Config::default()
    };
    assert_eq!(router.read(), Ok(wanted));
    router.configure(&section("option lan 'lan1'\n"));
    assert_eq!(router.read().unwrap().lan, ["lan1".parse().unwrap()], "one option in place of a list");
}

#[test]
fn no_text_of_a_user_becomes_anything_but_the_text_of_its_key() {
    let odd = [
        "\"",
        "\\",
        "40\"Mb\\it",
        "learn\"\nflows = 1\n\"",
        "a\tb\u{7f}\u{1}",
        "'$(reboot)`reboot`$HOME",
        "# none",
        "é ü 網",
        "*",
        "-n",
        "]",
    ];
    let Some(router) = Router::new(CONFIG) else { return };
    for value in odd {
        let quoted = value.replace('\'', "'\\''");
        let options =
            format!("list lan '{quoted}'\nlist lan 'lan2'\noption capacity '{quoted}'\noption flows '{quoted}'\n");
        router.configure(&section(&options));
        let text = router.toml();
        let read: toml::Table = toml::from_str(&text).unwrap_or_else(|error| panic!("{value:?}: {error}\n{text}"));
        let wanted = toml::Table::from_iter([
            ("lan".to_owned(), vec![value, "lan2"].into()),
            ("capacity".to_owned(), value.into()),
            ("flows".to_owned(), value.into()),
        ]);
        assert_eq!(read, wanted, "{text}");
        assert!(router.read().is_err(), "{value:?}");
    }
}

#[test]
fn what_lasthopd_refuses_it_names_by_line_and_key() {
    for (options, named) in [
        ("option capacity '20'\n", "lasthop.toml:3: capacity"),
        ("option flows '4096x'\n", "lasthop.toml:3: flows"),
        ("option flows '0x10'\n", "lasthop.toml:3: flows"),
        ("option flows '007'\n", "lasthop.toml:3: flows"),
        ("list lan 'no such interface at all'\n", "lasthop.toml:2: lan"),
    ] {
        let Some(router) = Router::new(&section(options)) else { return };
        let error = router.read().unwrap_err();
        assert!(error.contains(named), "{options}{error}");
        // The program itself ends so before it needs any right.
        let lasthopd = Path::new(programs::lasthop()).with_file_name("lasthopd");
        let output = Command::new(lasthopd).args(["run", "--config"]).arg(router.path("run/lasthop.toml")).output();
        assert_eq!(output.expect("lasthopd starts").status.code(), Some(2), "{options}");
    }
}

#[test]
fn procd_is_told_to_start_it_again_and_to_signal_a_changed_file() {
    let Some(router) = Router::new(CONFIG) else { return };
    let file = router.path("run/lasthop.toml");
    let file = text(&file);
    let wanted = [
        "open".to_owned(),
        format!("command [/usr/sbin/lasthopd] [run] [--config] [{file}]"),
        format!("file [{file}]"),
        "reload_signal [HUP]".to_owned(),
        "respawn [60] [5] [5]".to_owned(),
        "stdout [1]".to_owned(),
        "stderr [1]".to_owned(),
        "close".to_owned(),
    ];
    assert_eq!(router.call("start_service"), wanted);
    assert_eq!(router.call("start_service"), wanted, "a reload says the same: what changes is the file");
    let mode = router.path("run").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o022, 0, "nobody else may put locks there");
}

#[test]
fn no_change_of_the_network_starts_it_again_and_it_is_not_started_where_it_is_not_enabled() {
    let Some(router) = Router::new(&section("")) else { return };
    assert_eq!(router.call("service_triggers"), ["reload_trigger [lasthop]"]);
    assert!(!INIT.contains("netdev") && !INIT.contains("interface_trigger"));
    for off in ["config lasthop 'main'\n", "config lasthop 'main'\noption enabled '0'\n", "", "config other 'x'\n"] {
        router.configure(off);
        assert_eq!(router.call("start_service"), Vec::<String>::new(), "{off}");
        assert!(!router.path("run").exists());
    }
}

/// The head of a program for a machine: all that packing looks at.
fn program(machine: u8, flags: u16) -> Vec<u8> {
    let mut head = vec![0; 64];
    head[..4].copy_from_slice(b"\x7fELF");
    head[18] = machine;
    head[36..38].copy_from_slice(&flags.to_le_bytes());
    head
}

fn build(arch: &str, program: &[u8], out: &Path) -> Output {
    let binary = out.join("program");
    std::fs::write(&binary, program).expect("written");
    Command::new(format!("{ROOT}/packaging/openwrt/build"))
        .args(["--arch", arch, "--lasthopd"])
        .arg(binary)
        .arg("--out")
        .arg(out.join("dist"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("SOURCE_DATE_EPOCH", "1700000000")
        .output()
        .expect("python3 starts")
}

fn tar(arguments: &[&str], archive: &Path) -> String {
    let output = Command::new("tar").args(arguments).arg("-f").arg(archive).output().expect("tar starts");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Without python3 nothing is packed.
fn can_pack() -> bool {
    let is_there = Command::new("python3").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !is_there {
        println!("SKIPPED: python3: there is none to pack with");
    }
    is_there
}

#[test]
fn a_package_is_made_for_each_architecture_that_runs_the_program_and_for_no_other() {
    if !can_pack() {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let made = |output: &Output| {
        assert!(output.status.success(), "{output:?}");
        let lines = String::from_utf8_lossy(&output.stdout).into_owned();
        lines.lines().filter(|line| line.contains("/lasthop_")).count() / 2
    };
    assert_eq!(made(&build("x86_64", &program(62, 0), out.path())), 1);
    assert_eq!(made(&build("aarch64", &program(183, 0), out.path())), 4);
    assert_eq!(made(&build("armv7", &program(40, 0x400), out.path())), 7, "with a unit for floating point");
    assert_eq!(made(&build("armv7", &program(40, 0x200), out.path())), 9, "all");
    let refused = build("aarch64", &program(62, 0), out.path());
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("none of aarch64"), "{refused:?}");
}

#[test]
fn an_ipk_holds_what_opkg_needs_and_the_same_source_makes_the_same_bytes() {
    if !can_pack() {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    build("x86_64", &program(62, 0), out.path());
    let files = || {
        let all = std::fs::read_dir(out.path().join("dist")).unwrap().map(|entry| entry.unwrap().path());
        all.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect::<BTreeMap<_, _>>()
    };
    let first = files();
    assert_eq!(first.len(), 4);
    build("x86_64", &program(62, 0), out.path());
    assert!(files() == first);

    let ipk = first.keys().find(|path| text(path).ends_with("_x86_64.ipk")).unwrap();
    assert_eq!(tar(&["-tz"], ipk), "./\n./control.tar.gz\n./data.tar.gz\n./debian-binary\n");
    tar(&["-xz", "-C", text(out.path())], ipk);
    let listed = tar(&["-tvz", "--numeric-owner"], &out.path().join("data.tar.gz"));
    let shown: Vec<_> = listed.lines().map(|line| (&line[..10], line.rsplit(' ').next().unwrap())).collect();
    for wanted in [
        ("-rw-------", "./etc/config/lasthop"),
        ("-rwxr-xr-x", "./etc/init.d/lasthop"),
        ("-rwxr-xr-x", "./usr/sbin/lasthopd"),
    ] {
        assert!(shown.contains(&wanted), "{listed}");
    }
    assert!(listed.lines().all(|line| line.contains(" 0/0 ")), "{listed}");
    let control = tar(&["-xzO"], &out.path().join("control.tar.gz"));
    let version = env!("CARGO_PKG_VERSION");
    for wanted in [
        &format!("Package: lasthop\nVersion: {version}-r1\nDepends: kmod-sched-bpf, kmod-sched-core\n"),
        "\nArchitecture: x86_64\n",
        "/etc/config/lasthop\n",
        "default_postinst $0 $@\n",
        "default_prerm $0 $@\n",
        "/etc/init.d/lasthop restart\n",
    ] {
        assert!(control.contains(wanted), "`{wanted}` is not in\n{control}");
    }
}

/// `apk mkpkg` of apk-tools 3.0.6 made the same file of the same contents, with `--compression none`; its SHA-256. How it was called
/// stands in the book.
const BY_APK: &str = "579810e43af5a3d8ef0f32106f11ea49704de70905298b35f5b105a8481d2b13";

#[test]
fn an_apk_is_the_same_byte_for_byte_as_one_of_apk_tools() {
    if !can_pack() {
        return;
    }
    let make = "import hashlib, adb\n\
        info = {'name': 'reference', 'version': '1.2.3-r4', 'description': 'A package', 'arch': 'x86_64', 'license': 'MIT', \
                'origin': 'source'}\n\
        files = {'usr/sbin/program': (0o755, bytes(range(256)) * 400), 'etc/config/own': (0o600, b'config\\n'), \
                 'etc/config/same': (0o600, b'config\\n'), 'empty': (0o644, b''), 'etc/a': (0o644, b'a')}\n\
        scripts = {'post-install': '#!/bin/sh\\n' + 'exit 0\\n' * 50, 'pre-deinstall': '#!/bin/sh\\n'}\n\
        made = adb.package(info, ['kmod-two', 'kmod-one'], scripts, files, 1700000000, compress=False)\n\
        print(hashlib.sha256(made).hexdigest())";
    let mut python = Command::new("python3");
    python.args(["-B", "-c", make]).env("PYTHONPATH", format!("{ROOT}/packaging/openwrt"));
    let output = python.output().expect("python3 starts");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), BY_APK);
}
