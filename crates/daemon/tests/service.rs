//! What `lasthopd run` tells a service manager: a real controller, a real datagram socket. Needs root, says SKIPPED without it.

use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

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
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Running(command.spawn().expect("the binary starts"))
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
    fn end(mut self) {
        kill_process(Pid::from_child(&self.0), Signal::TERM).expect("it is there");
        assert!(self.0.wait().expect("a child").success());
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
    assert!(Command::new("ip").args(["link", "add", "later0", "type", "dummy"]).status().expect("`ip`").success());
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
