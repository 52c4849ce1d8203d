//! Two network namespaces and a link whose queue has a known length. The namespaces live as long as a process inside each, which ends
//! with the test, however that ends.

use std::process::{Child, Command, Stdio};

use lasthop_core::units::{BitRate, Span};

/// A namespace.
pub struct Namespace(Child);

impl Namespace {
    fn new() -> Option<Self> {
        let hold = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "unshare", "--net", "sleep", "300"])
            .stdin(Stdio::null())
            .spawn()
            .ok()?;
        let namespace = Self(hold);
        let of = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/net")).ok();
        // The process is in its namespace a moment after it started, or not at all.
        for _ in 0..200 {
            if of(&namespace.0.id().to_string()).is_some_and(|own| Some(own) != of("self")) {
                return Some(namespace);
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        None
    }

    /// A command that will run inside.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.0.id())).arg("--").arg(program);
        command
    }

    fn does(&self, words: &str) -> bool {
        let mut words = words.split(' ');
        let mut command = self.command(words.next().unwrap_or_default());
        let output = command.args(words).stdin(Stdio::null()).output();
        output.is_ok_and(|output| {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            if !said.trim().is_empty() {
                println!("{command:?}: {said}");
            }
            output.status.success()
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How long the queues of a link are.
#[derive(Clone, Copy)]
pub struct Shape {
    queue: Span,
}

impl Shape {
    /// What both directions carry, headers included.
    pub const RATE: BitRate = BitRate::mbps(20);

    /// A full queue takes this long to leave, each way.
    pub const fn queue_of_ms(ms: u64) -> Self {
        Self { queue: Span::from_millis(ms) }
    }
}

/// A server and a client with a router between. The queues are the router's: those of an end host are filled by its kernel no further
/// than it likes (TCP small queues).
pub struct Shaped {
    pub server: Namespace,
    pub client: Namespace,
    _router: Namespace,
}

impl Shaped {
    /// The server's address.
    pub const SERVER: &str = "192.0.2.1";

    /// A path of each shape; says SKIPPED where this machine cannot.
    pub fn pairs<const N: usize>(shapes: [Shape; N]) -> Option<[Self; N]> {
        if !rustix::process::geteuid().is_root() {
            println!("SKIPPED: queues of a known length: need root");
            return None;
        }
        let made: Option<Vec<Self>> = shapes.into_iter().map(Self::new).collect();
        if made.is_none() {
            println!("SKIPPED: queues of a known length: no namespace, veth, tbf or cubic here");
        }
        made?.try_into().ok()
    }

    fn new(shape: Shape) -> Option<Self> {
        let (server, router, client) = (Namespace::new()?, Namespace::new()?, Namespace::new()?);
        let limit = Shape::RATE.bytes_in(shape.queue);
        let tbf = format!("tbf rate {}bit burst 5000 limit {limit}", Shape::RATE.as_bps());
        let side = |host: &Namespace, name: &str, network: &str, number: u8| {
            router.does(&format!("ip link add {name} type veth peer name v0 netns {}", host.0.id()))
                && host.does(&format!("ip addr add {network}.{number}/24 dev v0"))
                && router.does(&format!("ip addr add {network}.254/24 dev {name}"))
                && host.does("ip link set lo up")
                && host.does("ip link set v0 up")
                && router.does(&format!("ip link set {name} up"))
                // What fills a queue; by route, because a namespace's own setting takes only what the machine allows everybody.
                && host.does(&format!("ip route add default via {network}.254 congctl cubic"))
                && router.does(&format!("tc qdisc add dev {name} root {tbf}"))
        };
        let is_made = router.does("sysctl -qw net.ipv4.ip_forward=1")
            && side(&server, "s0", "192.0.2", 1)
            && side(&client, "c0", "198.51.100", 2);
        is_made.then_some(Self { server, client, _router: router })
    }
}
