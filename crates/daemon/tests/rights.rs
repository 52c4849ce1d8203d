//! What `lasthopd run` may do once it runs, and who may keep it from running. Needs root, says SKIPPED without it.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use lasthop_status::{Status, query};
use rustix::process::{Pid, Signal, kill_process};

const LASTHOPD: &str = env!("CARGO_BIN_EXE_lasthopd");
const LOCKS: &str = "/run/lasthop";
/// Capabilities by their numbers in linux/capability.h.
const NET_ADMIN: u64 = 1 << 12;
const NET_RAW: u64 = 1 << 13;
const SYS_NICE: u64 = 1 << 23;
const SYS_RESOURCE: u64 = 1 << 24;
const PERFMON: u64 = 1 << 38;
const BPF: u64 = 1 << 39;

/// A network namespace, which the calling thread is in from now on, with one interface towards a station that is not there.
struct World {
    folder: tempfile::TempDir,
    ifindex: u32,
    namespace: u64,
}

impl World {
    /// None, said loudly, where this machine cannot have one.
    fn enter() -> Option<Self> {
        // SAFETY: only the network of this test's own thread changes.
        if !rustix::process::geteuid().is_root() || unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            println!("SKIPPED: needs root");
            return None;
        }
        for line in ["link add lan0 type veth peer name c0", "link set lan0 up", "link set c0 up"] {
            let done = Command::new("ip").args(line.split(' ')).status().expect("`ip` is there");
            assert!(done.success(), "ip {line}");
        }
        let link = Command::new("ip").args(["-o", "link", "show", "lan0"]).output().expect("`ip` is there");
        let text = String::from_utf8(link.stdout).expect("utf-8");
        let ifindex = text.split(':').next().and_then(|number| number.parse().ok()).expect("its number");
        let namespace = std::fs::metadata("/proc/thread-self/ns/net").expect("a namespace").ino();
        Some(Self { folder: tempfile::tempdir().expect("a folder"), ifindex, namespace })
    }

    fn socket(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn lock(&self) -> PathBuf {
        Path::new(LOCKS).join(format!("{}-{}.lock", self.namespace, self.ifindex))
    }

    fn command(&self, socket: &str, more: &[&str]) -> Command {
        let mut command = Command::new(LASTHOPD);
        command
            .args(["run", "--lan", "lan0", "--capacity", "20Mbit/s", "--socket"])
            .arg(self.socket(socket))
            .args(more);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// A controller at work, and what it says of itself.
    fn start(&self, socket: &str, more: &[&str]) -> (Running, Status) {
        let mut running = Running(self.command(socket, more).spawn().expect("the binary starts"));
        let pid = running.0.id();
        let begun = Instant::now();
        loop {
            let status = query(&self.socket(socket)).ok().filter(|status| status.pid == pid);
            if let Some(status) = status.filter(|status| status.controller.intervals > 1) {
                return (running, status);
            }
            if let Ok(Some(ended)) = running.0.try_wait() {
                panic!("it ended, {ended}: {}", running.said());
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "it never was at work");
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    /// One that is not let.
    fn refused(&self, socket: &str) -> Output {
        self.command(socket, &[]).output().expect("the binary starts")
    }
}

struct Running(Child);

impl Running {
    fn said(&mut self) -> String {
        let mut said = String::new();
        let _ = self.0.stderr.take().expect("piped").read_to_string(&mut said);
        said
    }

    /// Effective and bounding capabilities of each thread, all of which gain none by programs.
    fn rights(&self) -> BTreeMap<String, (u64, u64)> {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.0.id())).expect("it runs");
        let of_thread = |path: PathBuf| {
            let text = std::fs::read_to_string(path.join("status")).expect("a thread");
            let field =
                |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).expect("a field").trim().to_owned();
            let set = |key: &str| u64::from_str_radix(&field(key), 16).expect("a set");
            assert_eq!(field("NoNewPrivs:"), "1", "{text}");
            assert_eq!((set("CapPrm:"), set("CapInh:"), set("CapAmb:")), (set("CapEff:"), 0, 0), "{text}");
            (field("Name:"), (set("CapEff:"), set("CapBnd:")))
        };
        threads.map(|thread| of_thread(thread.expect("a thread").path())).collect()
    }

    fn end(mut self, signal: Signal) -> ExitStatus {
        kill_process(Pid::from_child(&self.0), signal).expect("it is there");
        self.0.wait().expect("it was a child")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the main thread keeps. Where this process may raise no limits, that of priorities neither, CAP_SYS_NICE is left.
fn of_its_own() -> u64 {
    let all = rustix::thread::capabilities(None).expect("its own").effective.bits();
    NET_ADMIN | NET_RAW | PERFMON | BPF | if all & SYS_RESOURCE == 0 { all & SYS_NICE } else { 0 }
}

/// What `ip` says of queue disciplines, and whether a program is hooked.
fn interface() -> String {
    let shown = |program: &str, line: &str| {
        let output = Command::new(program).args(line.split(' ')).output().expect("iproute2 is there");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    shown("tc", "qdisc show dev lan0") + &shown("ip", "-d link show dev lan0")
}

#[test]
fn a_running_controller_keeps_only_the_rights_that_control_needs() {
    let Some(world) = World::enter() else { return };
    let before = interface();
    let (running, status) = world.start("a.sock", &["--queue", "fq_codel", "--datapath", "user"]);
    assert!(status.window_updates.on, "{:?}", status.window_updates);
    assert_eq!(status.queues.len(), 1, "{:?}", status.queues);
    let rights = running.rights();
    let own = (of_its_own(), 0);
    let expected = [("lasthopd", own), ("lasthop-queue", (BPF, 0)), ("window updates", (BPF, 0))];
    assert_eq!(rights, expected.map(|(name, rights)| (name.to_owned(), rights)).into());
    assert!(running.end(Signal::INT).success());
    assert_eq!(interface(), before, "it takes everything off with what it has");
    assert!(!world.lock().exists() && !world.socket("a.sock").exists());
}

#[test]
fn a_controller_that_takes_over_needs_no_more_rights_and_neither_does_the_one_before() {
    let Some(world) = World::enter() else { return };
    for attach in ["tcx", "clsact"] {
        let config = world.folder.path().join("lasthop.toml");
        std::fs::write(&config, format!("attach = \"{attach}\"\n")).expect("written");
        let more = ["--config", config.to_str().expect("utf-8")];
        let (mut before, _) = world.start("a.sock", &more);
        let (after, status) = world.start("a.sock", &[more[0], more[1], "--take-over"]);
        assert!(before.0.wait().expect("a child").success(), "{}", before.said());
        assert_eq!(status.interfaces[0].attached.map(|by| by.name()), Some(attach));
        assert_eq!(after.rights()["lasthopd"].0, of_its_own());
        assert_eq!(std::fs::read_to_string(world.lock()).expect("a lock").trim(), after.0.id().to_string());
        assert!(after.end(Signal::INT).success());
        assert!(!interface().contains("clsact"), "{attach}: {}", interface());
    }
}

#[test]
fn an_address_that_anybody_may_bind_keeps_no_controller_from_starting() {
    let Some(world) = World::enter() else { return };
    let name = format!("lasthop/controls/{}", world.ifindex);
    let address = SocketAddr::from_abstract_name(name).expect("a name");
    let _bound = UnixListener::bind_addr(&address).expect("nobody else has it");
    let (running, _) = world.start("a.sock", &[]);
    assert!(running.end(Signal::TERM).success());
}

#[test]
fn one_controller_at_a_time_and_the_next_is_told_which_it_is() {
    let Some(world) = World::enter() else { return };
    let (running, _) = world.start("a.sock", &[]);
    let lock = std::fs::metadata(world.lock()).expect("a lock");
    assert_eq!((lock.mode() & 0o777, lock.uid()), (0o600, 0), "nobody else can hold it");
    assert_eq!(std::fs::metadata(LOCKS).expect("a folder").mode() & 0o777, 0o755);
    let refused = world.refused("b.sock");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success());
    assert!(said.contains(&format!("lan0 already has a controller, process {}", running.0.id())), "{said}");
    assert!(!running.end(Signal::KILL).success());
    assert!(world.lock().exists(), "kill -9 leaves the file");
    let (running, _) = world.start("b.sock", &[]);
    assert!(running.end(Signal::INT).success(), "which keeps nobody away");
    assert!(!world.lock().exists());
}

#[test]
fn the_unit_in_the_book_is_the_packages_and_as_narrow_as_the_book_says() {
    let book = include_str!("../../../book/src/rights.md");
    let unit = book.split_once("```ini\n").and_then(|(_, rest)| rest.split_once("```")).expect("a unit").0;
    assert_eq!(unit, include_str!("../../../packaging/debian/lasthop.service"));
    let ansible = include_str!("../../../contrib/ansible/roles/lasthop/templates/lasthop.service.j2");
    let written = ansible.split_once('\n').map(|(_, rest)| rest.replace("/usr/local/sbin/", "/usr/sbin/"));
    assert_eq!(written.as_deref(), Some(unit), "but for where the static program is");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("lasthop.service");
    std::fs::write(&path, unit).expect("written");
    let mut command = Command::new("systemd-analyze");
    // Tenths.
    command.args(["security", "--offline=true", "--no-pager", "--threshold=30"]).arg(&path);
    match command.output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
            if !said.contains("Overall exposure") {
                return println!("SKIPPED: systemd-analyze of another version: {said}");
            }
            assert!(output.status.success(), "{said}");
        }
        Err(error) => println!("SKIPPED: systemd-analyze cannot be run: {error}"),
    }
}
