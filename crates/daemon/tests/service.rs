//! What `lasthopd run` tells a service manager: a real controller, a real datagram socket. Needs root, says SKIPPED without it.

use std::io::Read as _;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use lasthop_status::{ConfigurationStatus, query};
use rustix::process::{Pid, Signal, kill_process};

const LASTHOPD: &str = env!("CARGO_BIN_EXE_lasthopd");

/// A network namespace, which the calling thread is in from now on, and a manager's socket.
struct World {
    folder: tempfile::TempDir,
    manager: UnixDatagram,
}

impl World {
    /// None, said loudly, where this machine cannot have one.
    fn enter() -> Option<Self> {
        // SAFETY: only the network of this test's own thread changes.
        if !rustix::process::geteuid().is_root() || unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            println!("SKIPPED: needs root");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let manager = UnixDatagram::bind(folder.path().join("notify")).expect("a socket");
        // Something is wrong then, whatever the machine does.
        manager.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
        Some(Self { folder, manager })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn start(&self, more: &[&str]) -> Running {
        let mut command = Command::new(LASTHOPD);
        command.args(["run", "--socket"]).arg(self.path("lasthop.sock")).args(more);
        command.env("NOTIFY_SOCKET", self.path("notify")).env("WATCHDOG_USEC", "800000");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        Running(command.spawn().expect("the binary starts"))
    }

    /// Writes the configuration, has it read again, and waits until it was; what became of it.
    fn reload(&self, running: &Running, text: &str) -> ConfigurationStatus {
        std::fs::write(self.path("lasthop.toml"), text).expect("written");
        running.signal(Signal::HUP);
        let reloading = self.next_that_starts("RELOADING=1\nMONOTONIC_USEC=");
        assert!(reloading.split('=').nth(2).is_some_and(|us| us.parse::<u64>().is_ok()), "{reloading}");
        self.next_that_starts("READY=1");
        query(&self.path("lasthop.sock")).expect("a status").configuration
    }

    fn next(&self) -> String {
        let mut room = [0; 4096];
        let n = self.manager.recv(&mut room).expect("it says something in time");
        String::from_utf8_lossy(&room[..n]).into_owned()
    }

    /// The next message that starts so, others left out.
    fn next_that_starts(&self, with: &str) -> String {
        loop {
            let said = self.next();
            if said.starts_with(with) {
                return said;
            }
        }
    }
}

struct Running(Child);

impl Running {
    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).expect("it is there");
    }

    /// Ends it; what it said.
    fn end(mut self) -> String {
        self.signal(Signal::TERM);
        let mut said = String::new();
        self.0.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
        assert!(self.0.wait().expect("a child").success(), "{said}");
        said
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_manager_hears_that_it_is_ready_lives_and_stops_also_while_it_waits_for_an_interface() {
    let Some(world) = World::enter() else { return };
    let running = world.start(&["--lan", "later0"]);
    let ready = world.next();
    assert!(ready.starts_with("READY=1\nSTATUS=controlling later0 as soon as it can be hooked"), "{ready}");
    for _ in 0..3 {
        world.next_that_starts("WATCHDOG=1");
    }
    assert!(
        Command::new("ip")
            .args(["link", "add", "later0", "type", "veth", "peer", "name", "c0"])
            .status()
            .expect("`ip`")
            .success()
    );
    let line = world.next_that_starts("STATUS=controlling later0 by ");
    assert!(line.contains("capacity down unknown, up unknown"), "{line}");
    running.end();
    world.next_that_starts("STOPPING=1");
}

#[test]
fn a_manager_hears_both_sides_of_a_hand_over() {
    let Some(world) = World::enter() else { return };
    let mut before = world.start(&["--lan", "later0"]);
    world.next_that_starts("READY=1");
    let after = world.start(&["--lan", "later0", "--take-over"]);
    let is_sign_of_life = |said: &String| said.starts_with("WATCHDOG=1") || said.starts_with("STATUS=");
    let mut of_both: Vec<_> = std::iter::repeat_with(|| world.next()).filter(|s| !is_sign_of_life(s)).take(2).collect();
    of_both.sort();
    assert!(of_both[0].starts_with("READY=1") && of_both[1] == "STOPPING=1", "{of_both:?}");
    assert!(before.0.wait().expect("a child").success());
    after.end();
    world.next_that_starts("STOPPING=1");
}

#[test]
fn a_reload_is_taken_or_refused_with_file_line_and_key_and_control_goes_on() {
    let Some(world) = World::enter() else { return };
    let config = world.path("lasthop.toml");
    std::fs::write(&config, "lan = [\"later0\"]\nqueue = \"2ms\"\n").expect("written");
    let running = world.start(&["--config", config.to_str().expect("utf-8"), "--log-format", "json"]);
    world.next_that_starts("READY=1");
    let broken = world.reload(&running, "lan = [\"later0\"]\nqueue = \"fast\"\n");
    let why = format!("{}:2: queue: `fast` is not a time", config.display());
    assert!(broken.reloads == 0 && broken.refused.as_ref().is_some_and(|said| said.starts_with(&why)), "{broken:?}");
    world.next_that_starts("WATCHDOG=1");
    let taken = world.reload(&running, "lan = [\"later0\"]\nqueue = \"4ms\"\nflows = 2048\n");
    let expected = ConfigurationStatus { reloads: 1, refused: None, waits_for_restart: vec!["flows".to_owned()] };
    assert_eq!(taken, expected);
    world.next_that_starts("WATCHDOG=1");
    std::fs::remove_file(&config).expect("it is there");
    running.signal(Signal::HUP);
    world.next_that_starts("READY=1");
    let said = running.end();
    let lines: Vec<serde_json::Value> = said.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let with = |level: &str, part: &str| {
        let is_it = |line: &&serde_json::Value| line["message"].as_str().is_some_and(|text| text.contains(part));
        let found = lines.iter().find(is_it).unwrap_or_else(|| panic!("{part} is not in {said}"));
        assert_eq!(found["level"], level, "{found}");
        assert!(found["time"].as_str().is_some_and(|time| time.len() == 24 && time.ends_with('Z')), "{found}");
    };
    with("info", "controlling later0 as soon as it can be hooked");
    with("warning", &why);
    with("info", "configuration: queue: \"2ms\" -> \"4ms\"");
    with("warning", "configuration: flows: 16384 -> 2048; this waits for a restart");
    with("warning", "cannot be read");
    with("info", "stopping");
}

#[test]
fn a_configuration_is_checked_without_a_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("lasthop.toml");
    for (text, code) in [("queue = \"2ms\"\n", 0), ("[law]\nstanding = 0.5\n", 0), ("queue = 2\n", 2)] {
        std::fs::write(&config, text).expect("written");
        let output =
            Command::new(LASTHOPD).args(["run", "--check", "--config"]).arg(&config).output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{said}");
        let expected = if text.starts_with("[law]") {
            ":2: law.standing: this key is called `law.standing_weight` now"
        } else {
            ""
        };
        assert!(said.contains(expected), "{said}");
    }
}
