//! Kernel TCP through the attached programs, with what a made-up packet cannot have: TSO frames and CHECKSUM_PARTIAL.
//!
//! server -- wan [access point] lan -- station, in three namespaces that end with this process's children.

mod settings;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Child, Command, Stdio};

use lasthop_core::fastpath::layout::{FlowState, Plan, Reason};
use lasthop_core::packet::Direction;
use lasthop_core::units::Time;
use lasthop_live::program::{LinkLayer, LoadOptions, PLACES_OF_PORTS, Program};

const BYTES: usize = 12_000_000;
const CLAMP: u32 = 30_000;
const STATION: Ipv4Addr = Ipv4Addr::new(192, 168, 99, 2);

/// A network namespace that lives as long as the process that holds it.
struct Namespace(Child);

impl Namespace {
    fn new() -> std::io::Result<Self> {
        let mut child = Command::new("unshare")
            .args(["--net", "cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        // What comes back shows that `unshare` has done its work and `cat` runs.
        child.stdin.as_mut().expect("piped").write_all(b"x")?;
        child.stdout.as_mut().expect("piped").read_exact(&mut [0])?;
        let namespace = Self(child);
        namespace.inside(settings::apply);
        Ok(namespace)
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    /// Runs a command line inside.
    fn ip(&self, line: &str) {
        let mut command = Command::new("nsenter");
        command.args(["--net", "-t", &self.pid()]).args(line.split_whitespace());
        let output = command.output().expect("nsenter runs");
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Moves the calling thread inside.
    fn enter(&self) {
        let file = std::fs::File::open(format!("/proc/{}/ns/net", self.pid())).expect("the child is alive");
        // SAFETY: a descriptor of a namespace; it changes nothing but where this thread's next sockets live.
        assert_eq!(unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) }, 0);
    }

    /// Runs `work` on a thread inside.
    fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let inside = || {
            self.enter();
            work()
        };
        std::thread::scope(|scope| scope.spawn(inside).join()).expect("the thread ends")
    }

    /// Lets its kernel forward between its interfaces; a minimal Debian has no sysctl(8).
    fn forward(&self) {
        self.inside(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")).expect("forwarding can be turned on");
    }

    /// A counter of /proc/net/snmp as the calling thread's namespace sees it.
    fn tcp_counter(&self, name: &str) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/net/snmp", self.pid())).expect("snmp");
        let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
        let names = lines.next().expect("names").split(' ');
        let values = lines.next().expect("values").split(' ');
        let (_, value) = names.zip(values).find(|(n, _)| *n == name).expect("known counter");
        value.parse().expect("a number")
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Home {
    server: Namespace,
    access_point: Namespace,
    station: Namespace,
}

impl Home {
    fn new() -> Self {
        let new = || Namespace::new().expect("unshare --net");
        let home = Self { server: new(), access_point: new(), station: new() };
        let Self { server, access_point, station } = &home;
        access_point.ip(&format!("ip link add lan type veth peer name eth0 netns {}", station.pid()));
        access_point.ip(&format!("ip link add wan type veth peer name eth0 netns {}", server.pid()));
        access_point.ip("ip addr add 192.168.99.1/24 dev lan");
        access_point.ip("ip addr add 10.99.0.1/24 dev wan");
        station.ip("ip addr add 192.168.99.2/24 dev eth0");
        server.ip("ip addr add 10.99.0.2/24 dev eth0");
        for (namespace, device) in [(access_point, "lan"), (access_point, "wan"), (station, "eth0"), (server, "eth0")] {
            namespace.ip(&format!("ip link set {device} up"));
        }
        // Those that addresses brought along are not used beyond the access point.
        let words = settings::route();
        station.ip(&format!("ip route add default via 192.168.99.1 {words}"));
        server.ip(&format!("ip route add default via 10.99.0.1 {words}"));
        access_point.forward();
        home
    }
}

/// Turns checksum offload of a device off (ETHTOOL_STXCSUM): checksums are complete from there on.
fn without_checksum_offload(device: &str) {
    #[repr(C)]
    struct Value {
        command: u32,
        data: u32,
    }
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").expect("a socket in the namespace");
    let mut value = Value { command: 0x17, data: 0 };
    // SAFETY: an all-zero ifreq is a valid one.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(device.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = std::ptr::from_mut(&mut value).cast();
    // SAFETY: SIOCETHTOOL reads the name and the value, which both live until the call returns.
    let result = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

/// Attaches both programs to `lan` of the namespace the thread is in; the links hold until the process ends.
fn attach(program: &Program) -> Result<(), String> {
    let name = c"lan";
    // SAFETY: a string that ends in zero.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    let tcx = [(Direction::ToRemote, libbpf_sys::BPF_TCX_INGRESS), (Direction::ToStation, libbpf_sys::BPF_TCX_EGRESS)];
    for (direction, point) in tcx {
        let fd = program.prog_fd(direction, LinkLayer::Ethernet).as_raw_fd();
        // SAFETY: descriptors and an index; no options.
        let link = unsafe { libbpf_sys::bpf_link_create(fd, index as i32, point, std::ptr::null()) };
        if link < 0 {
            return Err(format!("tcx: {}", std::io::Error::from_raw_os_error(-link)));
        }
    }
    Ok(())
}

fn heartbeat_far_ahead(program: &Program) {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    program.control().heartbeat(Time::from_nanos((now.tv_sec as u64 + 3_600) * 1_000_000_000));
}

fn pattern(at: usize) -> u8 {
    (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0]
}

/// A download of `BYTES`, every one of them checked.
fn download(home: &Home) {
    std::thread::scope(|scope| {
        let (ready, listening) = std::sync::mpsc::channel();
        scope.spawn(move || {
            home.station.enter();
            let listener = TcpListener::bind((STATION, 5_001)).expect("bind");
            ready.send(()).expect("the other thread waits");
            let (mut stream, _) = listener.accept().expect("accept");
            let (mut buffer, mut at) = (vec![0; 1 << 16], 0);
            loop {
                let got = stream.read(&mut buffer).expect("read");
                if got == 0 {
                    break;
                }
                assert!(buffer[..got].iter().enumerate().all(|(i, byte)| *byte == pattern(at + i)), "at {at}");
                at += got;
            }
            assert_eq!(at, BYTES);
        });
        scope.spawn(move || {
            home.server.enter();
            let bytes: Vec<u8> = (0..BYTES).map(pattern).collect();
            listening.recv().expect("the other thread binds");
            let mut stream = TcpStream::connect(SocketAddr::from((STATION, 5_001))).expect("connect");
            stream.write_all(&bytes).expect("write");
        });
    });
}

/// `device` is where checksums become complete: before the program or behind it.
fn clamped_download(home: &Home, complete: (&Namespace, &str)) -> Result<(), String> {
    let program = Program::load(LoadOptions::default()).map_err(|error| format!("{error}"))?;
    heartbeat_far_ahead(&program);
    let plan = Plan { clamp_bytes: CLAMP, floor_bytes: 2_920, growth_bytes: 3_000, pace_bytes: 0 };
    program.control().set_default_plan(Direction::ToStation, plan);
    // Four bytes a nanosecond: of it only the SYN-ACK's window comes down.
    program.control().set_start(Direction::ToStation, 2 * CLAMP, u32::MAX);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            complete.0.enter();
            without_checksum_offload(complete.1);
        });
        let attached = scope.spawn(|| {
            home.access_point.enter();
            attach(&program)
        });
        attached.join().expect("no panic")
    })?;
    let places: [u8; PLACES_OF_PORTS] = std::array::from_fn(|bits| 1 + (bits % 2) as u8);
    program.set_hops(&places).expect("the map of hops");
    download(home);
    let flows = program.flows().expect("flows");
    let (_, state): &(_, FlowState) = flows.iter().max_by_key(|(_, state)| state.half[0].bytes).expect("a flow");
    let half = &state.half[0];
    eprintln!("{half:?}\n{:?}", program.counters());
    assert_eq!(half.window, CLAMP, "grown to the clamp");
    assert!(half.rewritten > 100, "{}", half.rewritten);
    assert!(half.payload_bytes >= BYTES as u64 && half.mss <= 1_460);
    // Merged frames count as what they are on the wire.
    let segments = BYTES as u64 / u64::from(half.mss);
    assert!(half.packets >= segments, "{} < {segments}", half.packets);
    assert!(half.bytes >= half.payload_bytes + 40 * segments);
    assert!(half.rtt.total.samples() > 10);
    let counters = program.counters().expect("counters");
    assert_eq!(counters.reason[Reason::Syn as usize], 1, "the answer to it came down: {counters:?}");
    let lan = std::thread::scope(|scope| {
        let number = scope.spawn(|| {
            home.access_point.enter();
            // SAFETY: a plain call with a C string.
            unsafe { libc::if_nametoindex(c"lan".as_ptr()) }
        });
        number.join().expect("no panic")
    });
    assert_eq!((state.port, state.hop), (lan, 1 + lan % 2), "where it left for the station");
    let carried = counters.hops[state.hop as usize];
    assert!(carried.ip_bytes[0] >= counters.tcp_bytes[0], "over one hop: {counters:?}");
    let all: u64 = counters.hops.iter().map(|hop| hop.ip_bytes[0]).sum();
    assert_eq!(all, counters.ip_bytes[0]);
    let hop = program.control().get().hops[state.hop as usize][0];
    assert!(hop.left_bytes <= 2 * CLAMP && hop.earned_ns > 0, "{hop:?}");
    assert!(hop.came_bytes > 0 && hop.came_bytes <= half.payload_bytes, "{hop:?}");
    assert!(hop.served_bytes <= BYTES as u64, "{hop:?}");
    assert_eq!(counters.reason[Reason::Malformed as usize], 0);
    for namespace in [&home.server, &home.station] {
        assert_eq!(namespace.tcp_counter("InCsumErrors"), 0);
        assert_eq!(namespace.tcp_counter("InErrs"), 0);
    }
    Ok(())
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn partial_checksums_stay_right_when_they_are_completed_behind_the_program() {
    if !is_root() {
        eprintln!("SKIPPED: namespaces and BPF need root");
        return;
    }
    let home = Home::new();
    if let Err(why) = clamped_download(&home, (&home.access_point, "wan")) {
        eprintln!("SKIPPED: {why}");
    }
}

#[test]
fn complete_checksums_stay_right() {
    if !is_root() {
        eprintln!("SKIPPED: namespaces and BPF need root");
        return;
    }
    let home = Home::new();
    if let Err(why) = clamped_download(&home, (&home.station, "eth0")) {
        eprintln!("SKIPPED: {why}");
    }
}
