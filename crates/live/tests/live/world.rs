//! A station, a router with a slow last hop and a deep buffer, a server.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lasthop_core::units::BitRate;
use lasthop_live::config::{AttachMode, Capacity, Config};
use lasthop_live::program::{LoadError, LoadOptions, Program, Refusal};
use lasthop_live::{Controller, controller::ControllerError};
use lasthop_status::{Status, query};

use crate::line::Line;
use crate::namespace::Namespace;
use crate::settings;

/// What the last hop carries.
pub const RATE: BitRate = BitRate::mbps(20);
/// Its buffer: about 1000 full packets, as a careless access point has.
const BUFFER_BYTES: u32 = 1_514_000;

/// Why BPF cannot be used by this user, if it cannot.
static BPF_REFUSED: OnceLock<Option<String>> = OnceLock::new();

fn bpf_refused() -> Option<String> {
    match Program::load(LoadOptions { flows: 1024, ..LoadOptions::default() }) {
        Ok(_) => None,
        Err(error @ LoadError::Refused(Refusal::Rights(_))) => Some(error.to_string()),
        Err(error) => panic!("{error}: {:?}", std::error::Error::source(&error)),
    }
}

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

pub struct World {
    pub station: Namespace,
    pub router: Namespace,
    pub server: Namespace,
    folder: tempfile::TempDir,
    _line: Option<Line>,
    _turn: MutexGuard<'static, ()>,
}

/// A world whose server is next door, with all the offloads of a veth.
pub fn world(test: &str) -> Option<World> {
    make(test, Duration::ZERO)
}

/// A world whose server is `one_way` away.
pub fn far_world(test: &str, one_way: Duration) -> Option<World> {
    make(test, one_way)
}

/// A world, or `None` with a loud word where this machine cannot make one.
fn make(test: &str, one_way: Duration) -> Option<World> {
    let turn = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(why) = BPF_REFUSED.get_or_init(bpf_refused) {
        skipped(test, why);
        return None;
    }
    let spaces = (Namespace::new(), Namespace::new(), Namespace::new());
    let (Ok(station), Ok(router), Ok(server)) = spaces else {
        skipped(test, "no network namespaces; run as root");
        return None;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let line = if one_way.is_zero() {
        router.ip(&format!("link add wan0 type veth peer name s0 netns {}", server.path()));
        None
    } else {
        match Line::new((&router, "wan0"), (&server, "s0"), one_way) {
            Ok(line) => Some(line),
            Err(error) => {
                skipped(test, &format!("no TUN: {error}"));
                return None;
            }
        }
    };
    let world = World { station, router, server, folder, _line: line, _turn: turn };
    world.router.write("net/ipv4/ip_forward", "1");
    world.router.write("net/ipv6/conf/all/forwarding", "1");
    world.plug_station();
    for (space, device, net, host) in [(&world.router, "wan0", 2, 1), (&world.server, "s0", 2, 2)] {
        address(space, device, net, host);
    }
    routes(&world.server, 2);
    Some(world)
}

pub fn skipped(test: &str, why: &str) {
    eprintln!("SKIPPED: {test}: {why}");
}

/// Gives `device` its addresses, and the ways to its network.
pub fn address(space: &Namespace, device: &str, net: u8, host: u8) {
    space.ip(&format!("addr add 10.9.{net}.{host}/24 dev {device}"));
    space.ip(&format!("addr add fd09:{net}::{host}/64 dev {device} nodad"));
    space.ip(&format!("link set {device} up"));
    // The routes that addresses bring along know of no congestion control.
    let words = settings::route();
    space.ip(&format!("route replace 10.9.{net}.0/24 dev {device} scope link src 10.9.{net}.{host} {words}"));
    space.ip(&format!("-6 route replace fd09:{net}::/64 dev {device} metric 256 {words}"));
}

/// The way to everybody else.
pub fn routes(space: &Namespace, net: u8) {
    let words = settings::route();
    space.ip(&format!("route add default via 10.9.{net}.1 {words}"));
    space.ip(&format!("-6 route add default via fd09:{net}::1 {words}"));
}

impl World {
    pub const SERVER: &'static str = "10.9.2.2";
    pub const SERVER6: &'static str = "fd09:2::2";

    pub fn server_at(address: &str, port: u16) -> SocketAddr {
        SocketAddr::new(address.parse::<IpAddr>().expect("an address"), port)
    }

    /// Makes the last hop: also after it was pulled out.
    pub fn plug_station(&self) {
        self.router.ip(&format!("link add lan0 type veth peer name c0 netns {}", self.station.path()));
        address(&self.station, "c0", 1, 2);
        routes(&self.station, 1);
        self.set_up_lan();
    }

    /// Makes the last hop another one, over which packets go in bunches, once in `period`; without link headers.
    pub fn plug_bunching_station(&self, period: Duration) -> std::io::Result<Line> {
        self.router.ip("link del lan0");
        let hop = Line::bunching((&self.router, "lan0"), (&self.station, "c0"), period)?;
        address(&self.station, "c0", 1, 2);
        routes(&self.station, 1);
        self.router.ip("link set lan0 up");
        self.router.tool("tc", "qdisc del dev lan0 root");
        self.set_up_lan();
        Ok(hop)
    }

    /// Gives the router's end of the last hop its address and its queue: also after it was in another namespace, where both get lost.
    pub fn set_up_lan(&self) {
        address(&self.router, "lan0", 1, 1);
        let rate = RATE.as_bps();
        self.router.tool("tc", &format!("qdisc add dev lan0 root tbf rate {rate}bit burst 5kb limit {BUFFER_BYTES}"));
    }

    pub fn config(&self) -> Config {
        Config {
            lan: vec!["lan0".parse().expect("a name")],
            wan: Some("wan0".parse().expect("a name")),
            capacity: Capacity::Rate(RATE.mul_f64(0.97)),
            flows: 16_384,
            socket: self.socket(),
            ..Config::default()
        }
    }

    pub fn with(&self, attach: AttachMode) -> Config {
        Config { attach, ..self.config() }
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("lasthop.sock")
    }

    /// Starts a controller on a thread in the router.
    pub fn control(&self, config: Config) -> Result<Running, ControllerError> {
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, receiver) = mpsc::channel();
        let (flag, socket) = (stop.clone(), config.socket.clone());
        let thread = self.router.spawn(move || match Controller::new(config) {
            Ok(mut controller) => {
                sender.send(Ok(())).expect("the test listens");
                controller.run(&flag);
            }
            Err(error) => sender.send(Err(error)).expect("the test listens"),
        });
        receiver.recv().expect("an answer")?;
        Ok(Running { stop, thread: Some(thread), socket })
    }
}

/// A controller at work.
pub struct Running {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    socket: PathBuf,
}

impl Running {
    pub fn status(&self) -> Status {
        query(&self.socket).expect("a status")
    }

    /// Waits until the status says so, and returns it.
    pub fn wait_for(&self, what: &str, condition: impl Fn(&Status) -> bool) -> Status {
        wait_for(what, || Some(self.status()).filter(&condition))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Asks again until there is an answer; gives up only when something is clearly wrong.
pub fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "never came true: {what}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}
