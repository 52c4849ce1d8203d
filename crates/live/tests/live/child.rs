//! A controller in a process of its own, to be killed: this test binary, started again.

use std::process::{Child, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lasthop_core::units::Span;
use lasthop_live::clock::now;
use lasthop_live::config::AttachMode;
use lasthop_live::program::LinkLayer;
use lasthop_live::{Config, Controller};
use lasthop_status::{Status, query};

use crate::updates::pace;
use crate::world::{World, wait_for};

const CONFIG: &str = "LASTHOP_TEST_CONFIG";
const TAKES_OVER: &str = "LASTHOP_TEST_TAKES_OVER";
const PACES: &str = "LASTHOP_TEST_PACES";

/// Not a test: what the child runs. Without its variable it does nothing.
#[test]
fn child_controls_until_it_is_killed() {
    let Ok(text) = std::env::var(CONFIG) else { return };
    let config = Config::parse(&text, "the test").expect("a configuration");
    if std::env::var(PACES).is_ok() {
        pace_on(&config);
    }
    let start = if std::env::var(TAKES_OVER).is_ok() { Controller::take_over } else { Controller::new };
    start(config).expect("a controller").run(&AtomicBool::new(false));
}

/// No decisions, one plan, and every 50 ms what a controller says: window updates are to be expected for two such intervals more.
fn pace_on(config: &Config) -> ! {
    let (_attachment, _updates, program) = pace(config, LinkLayer::Ip);
    loop {
        program.control().set_silent(now() + Span::from_millis(100));
        std::thread::park_timeout(Duration::from_millis(50));
    }
}

pub struct Process {
    child: Child,
    world_socket: std::path::PathBuf,
}

impl Process {
    pub fn start(world: &World, attach: AttachMode) -> Self {
        Self::with(world, attach, "capacity = \"19Mbit/s\"\n")
    }

    /// With more keys of the configuration.
    pub fn with(world: &World, attach: AttachMode, more: &str) -> Self {
        Self::spawn(world, attach, more, None)
    }

    /// The same, taking over from the one that runs there.
    pub fn taking_over(world: &World, attach: AttachMode, more: &str) -> Self {
        Self::spawn(world, attach, more, Some(TAKES_OVER))
    }

    /// No controller, but what paces downloads by one plan, on a lan0 without link headers.
    pub fn pacing(world: &World) -> Self {
        Self::spawn(world, AttachMode::Auto, "", Some(PACES))
    }

    fn spawn(world: &World, attach: AttachMode, more: &str, how: Option<&str>) -> Self {
        let attach = match attach {
            AttachMode::Auto => "auto",
            AttachMode::Tcx => "tcx",
            AttachMode::Clsact => "clsact",
        };
        let socket = world.socket();
        let flows = if more.contains("flows") { "" } else { "flows = 4096\n" };
        let config = format!(
            "{more}lan = [\"lan0\"]\ninterval = \"50ms\"\n{flows}attach = \"{attach}\"\n\
             socket = \"{}\"\n",
            socket.display()
        );
        let this = std::env::current_exe().expect("this binary");
        let mut command = world.router.command(this.to_str().expect("a plain path"));
        command.args(["--exact", "child::child_controls_until_it_is_killed", "--nocapture"]);
        if let Some(how) = how {
            command.env(how, "yes");
        }
        command.env(CONFIG, config).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { child: command.spawn().expect("a process"), world_socket: socket }
    }

    /// Waits until this very process is at work and `condition` holds.
    pub fn wait_for(&self, what: &str, condition: impl Fn(&Status) -> bool) -> Status {
        let pid = self.child.id();
        wait_for(what, || query(&self.world_socket).ok().filter(|s| s.pid == pid && condition(s)))
    }

    /// What it has had of processors, and what it has of memory.
    pub fn spent(&self) -> (Duration, u64) {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("it lives");
        // Fields 14, 15 and 24 of proc(5), by 100 ticks a second; the name, which is the second, may hold spaces.
        let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
        let field = |number: usize| fields[number - 3].parse::<u64>().expect("a number");
        (Duration::from_millis(10 * (field(14) + field(15))), field(24) * 4096)
    }

    /// How often its threads have waited for something so far.
    pub fn waits(&self) -> u64 {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("it lives");
        let waits = tasks.flatten().filter_map(|task| {
            let text = std::fs::read_to_string(task.path().join("status")).ok()?;
            text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")?.trim().parse::<u64>().ok())
        });
        waits.sum()
    }

    /// Stands still until [`Self::go_on`].
    pub fn stop(&self) {
        self.signal(libc::SIGSTOP);
    }

    pub fn go_on(&self) {
        self.signal(libc::SIGCONT);
    }

    fn signal(&self, signal: i32) {
        // SAFETY: a plain call; the process is our child and not yet waited for.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }

    /// Waits until it ends by itself; whether all went well.
    pub fn ends(&mut self) -> bool {
        wait_for("it ends", || self.child.try_wait().expect("it is ours")).success()
    }

    /// kill -9, and until it is gone.
    pub fn kill(mut self) {
        self.child.kill().expect("it is ours");
        self.child.wait().expect("it was a child");
    }
}
