//! What the control loop costs: processor time of its thread over 20 s, one JSON line per case on stdout.
//!
//! A controller as `lasthop run --lan lan0` has it (capacity learned, every 50 ms) in a network namespace of its own, with
//! 100 and 10,000 connections in its table. What the fast path would write of them is written into the map by a thread
//! beside it, whose time does not count: cumulative bytes, round trips, deliveries and the marks of the interval. An acknowledgment
//! of each that moved passes the program before, by BPF_PROG_TEST_RUN, so that the data path tells the controller.
//!
//! - `busy`: each connection has moved 3 kB whenever it is looked at, and half of them fill their windows.
//! - `some`: the same of 400 in 50 ms, one after the other: as many full packets as 100 Mbit/s carry.
//! - `quiet`: a home in which nobody loads anything: one connection after the other moves 300 bytes, 17 in a second, and a game
//!   sends and gets 50 packets in a second.
//! - `idle`: all are open, and silent for longer than the loop remembers.
//!
//! The time is what Linux accounts to the thread (`/proc/self/task/*/schedstat`), system calls included; the cost of the
//! programs per packet is another bench (`fastpath`). Needs root. `LASTHOP_BENCH_SECONDS` shortens it,
//! `LASTHOP_BENCH_ONLY` names some of its cases: `5-quiet 100-busy`.

use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lasthop_core::fastpath::layout::{Control, FlowKey, FlowState, Half, Stamp};
use lasthop_core::units::Time;
use lasthop_core::wire::Endpoint;
use lasthop_core::wire::build::{Frame, ack};
use lasthop_live::clock::now;
use lasthop_live::controller::Controller;
use lasthop_live::{Config, netlink};
use lasthop_status::query;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};

/// Longer than a silent connection is sampled.
const ASLEEP: Duration = Duration::from_secs(17);
const SETTLED: Duration = Duration::from_secs(2);
const MOVES: u64 = 3_000;
/// The same of a connection that is open and hardly used.
const LITTLE: u64 = 300;
/// Payload of a game's packet, and of one that is large enough to keep the controller awake.
const GAME: usize = 60;
const LARGE: usize = 1_000;
/// Connections that move in one round of the generator, where only some do.
const SOME: usize = 400;

/// Who moves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Load {
    Idle,
    Quiet,
    Some,
    Busy,
}

impl Load {
    const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Quiet => "quiet",
            Self::Some => "some",
            Self::Busy => "busy",
        }
    }
}

fn main() {
    let seconds = std::env::var("LASTHOP_BENCH_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    if let Err(why) = prepare() {
        eprintln!("SKIPPED: {why}");
        return;
    }
    let loads = [
        (5, Load::Quiet),
        (10, Load::Busy),
        (100, Load::Idle),
        (100, Load::Busy),
        (10_000, Load::Idle),
        (10_000, Load::Some),
        (10_000, Load::Busy),
    ];
    let only = std::env::var("LASTHOP_BENCH_ONLY").ok();
    let is_wanted = |case: &(u32, Load)| {
        let name = format!("{}-{}", case.0, case.1.name());
        only.as_ref().is_none_or(|only| only.split_whitespace().any(|word| word == name))
    };
    for (connections, load) in loads.into_iter().filter(is_wanted) {
        match case(connections, load, Duration::from_secs(seconds)) {
            Ok(line) => println!("{line}"),
            Err(why) => {
                eprintln!("SKIPPED: {why}");
                return;
            }
        }
    }
}

fn prepare() -> Result<(), String> {
    // SAFETY: moves this process, whose only thread this is, into a network of its own.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return Err(format!("no network namespace: {}", std::io::Error::last_os_error()));
    }
    for line in ["link add lan0 type veth peer name far0", "link set lan0 up", "link set far0 up"] {
        let output = Command::new("ip").args(line.split_whitespace()).output().map_err(|e| e.to_string())?;
        if !output.status.success() {
            return Err(format!("ip {line}: {}", String::from_utf8_lossy(&output.stderr)));
        }
    }
    netlink::Socket::open(libc::NETLINK_ROUTE).map(drop).map_err(|e| e.to_string())
}

fn wait(length: Duration) {
    let begun = Instant::now();
    while let Some(left) = length.checked_sub(begun.elapsed()).filter(|left| !left.is_zero()) {
        std::thread::park_timeout(left);
    }
}

fn cpu_ns(task: u64) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/self/task/{task}/schedstat")).unwrap_or_default();
    text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or_default()
}

fn case(connections: u32, load: Load, length: Duration) -> Result<String, String> {
    let folder = std::env::temp_dir().join(format!("lasthop-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let socket = folder.join("lasthop.sock");
    let config =
        Config { lan: vec!["lan0".parse().map_err(|e| format!("{e}"))?], socket: socket.clone(), ..Config::default() };
    let (stop, task) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (report, is_ready) = std::sync::mpsc::channel();
    let line = std::thread::scope(|scope| {
        // On a thread of its own, which gives up the rights that finding maps by their numbers takes.
        scope.spawn(|| {
            // SAFETY: a plain system call without arguments.
            task.store(unsafe { libc::gettid() } as u64, Ordering::Release);
            match Controller::new(config) {
                Ok(mut controller) => {
                    let _ = report.send(Ok(()));
                    controller.run(&stop);
                }
                Err(error) => drop(report.send(Err(error.to_string()))),
            }
        });
        is_ready.recv().map_err(|error| error.to_string())??;
        let generator = scope.spawn(|| Ok::<_, String>(generate(&Maps::own()?, connections, load, &stop)));
        wait(if load == Load::Idle { ASLEEP } else { SETTLED });
        let task = task.load(Ordering::Acquire);
        let decisions =
            || query(&socket).map(|s| (s.controller.intervals, s.controller.interval_ms, s.table.connections));
        let (before, begun, first) = (cpu_ns(task), Instant::now(), decisions());
        wait(length);
        let (used, lasted, last) = (cpu_ns(task) - before, begun.elapsed(), decisions());
        stop.store(true, Ordering::Release);
        let written = generator.join().map_err(|_| "the generator broke".to_owned())??;
        let ((first, ..), (last, interval_ms, known)) =
            (first.map_err(|e| e.to_string())?, last.map_err(|e| e.to_string())?);
        let decisions = (last - first).max(1);
        let load = load.name();
        Ok::<_, String>(format!(
            r#"{{"bench":"controller","connections":{connections},"load":"{load}","core_percent":{:.3},"us_per_decision":{:.0},"decisions":{decisions},"interval_ms":{interval_ms},"known":{known},"rounds_written":{written}}}"#,
            used as f64 / lasted.as_nanos() as f64 * 100.0,
            used as f64 / decisions as f64 / 1e3,
        ))
    });
    let _ = std::fs::remove_dir_all(&folder);
    line
}

/// Of this process's controller.
struct Maps {
    flows: MapHandle,
    control: MapHandle,
    /// What an acknowledgment of a station passes.
    ingress: OwnedFd,
}

impl Maps {
    fn own() -> Result<Self, String> {
        let ids = own_ids("map_id:");
        let own = |name: &str, kind: MapType| {
            let mut maps = libbpf_rs::query::MapInfoIter::default();
            let map = maps.find(|m| m.name.to_string_lossy() == name && m.ty == kind && ids.contains(&m.id));
            MapHandle::from_map_id(map.ok_or(format!("no map {name}"))?.id).map_err(|error| error.to_string())
        };
        Ok(Self {
            flows: own("flows", MapType::Hash)?,
            control: own(".bss.control", MapType::Array)?,
            ingress: own_program("lasthop_ingress")?,
        })
    }

    /// The epoch, and how often connections have been read.
    fn epoch_and_readings(&self) -> [u32; 2] {
        let control = self.control.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok().flatten().unwrap_or_default();
        let word = |at: usize| control.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_ne_bytes);
        [offset_of!(Control, epoch), offset_of!(Control, readings)].map(word)
    }
}

/// As the descriptors of this process tell: other controllers may run on this machine.
fn own_ids(kind: &str) -> Vec<u32> {
    let descriptors = std::fs::read_dir("/proc/self/fdinfo").into_iter().flatten().flatten();
    let id = |text: String| text.lines().find_map(|line| line.strip_prefix(kind)?.trim().parse().ok());
    descriptors.filter_map(|entry| id(std::fs::read_to_string(entry.path()).ok()?)).collect()
}

fn own_program(name: &str) -> Result<OwnedFd, String> {
    let ids = own_ids("prog_id:");
    let mut programs = libbpf_rs::query::ProgInfoIter::default();
    let program = programs.find(|p| p.name.to_string_lossy() == name && ids.contains(&p.id)).ok_or("no program")?;
    // SAFETY: a plain call; the descriptor is new and nobody else's.
    let fd = unsafe { libbpf_sys::bpf_prog_get_fd_by_id(program.id) };
    // SAFETY: as above.
    if fd < 0 { Err("the program cannot be had".to_owned()) } else { Ok(unsafe { OwnedFd::from_raw_fd(fd) }) }
}

/// An acknowledgment of this connection, of what has come, passes the data path.
fn pass(ingress: &OwnedFd, key: &FlowKey, state: &FlowState) {
    let [station, remote] = ends(key);
    pass_frame(ingress, &Frame::tcp(station, remote, ack(1, state.half[0].delivered, 512), 0).bytes());
}

/// A datagram of so much payload does.
fn pass_datagram(ingress: &OwnedFd, key: &FlowKey, payload: usize) {
    let [station, remote] = ends(key);
    pass_frame(ingress, &Frame::udp(station, remote, payload).bytes());
}

fn ends(key: &FlowKey) -> [Endpoint; 2] {
    [(key.station, key.station_port), (key.remote, key.remote_port)].map(|(address, port)| Endpoint { address, port })
}

fn pass_frame(ingress: &OwnedFd, frame: &[u8]) {
    // SAFETY: an all-zero value of that plain C struct is valid.
    let mut options: libbpf_sys::bpf_test_run_opts = unsafe { std::mem::zeroed() };
    options.sz = size_of::<libbpf_sys::bpf_test_run_opts>() as _;
    options.data_in = frame.as_ptr().cast();
    options.data_size_in = frame.len() as u32;
    options.repeat = 1;
    // SAFETY: the frame lives until the call is over.
    unsafe { libbpf_sys::bpf_prog_test_run_opts(ingress.as_raw_fd(), &raw mut options) };
}

fn key(number: u32) -> FlowKey {
    let mut key = FlowKey { station_port: 1_024 + (number % 60_000) as u16, remote_port: 443, ..FlowKey::default() };
    key.station[10..12].fill(0xff);
    key.station[12..].copy_from_slice(&[10, 9, 1, 2 + (number % 16) as u8]);
    key.remote[10..12].fill(0xff);
    key.remote[12..].copy_from_slice(&[192, 0, 2, 1]);
    key
}

/// Writes what the fast path would; how often it did.
fn generate(maps: &Maps, connections: u32, load: Load, stop: &AtomicBool) -> u64 {
    let keys: Vec<FlowKey> = (0..connections).map(key).collect();
    let mut states = vec![FlowState::new(&Control::default(), Time::from_nanos(1)); connections as usize];
    for (state, n) in states.iter_mut().zip(0u64..) {
        (state.first_seen_ns, state.assured) = (now().as_nanos() + n, 1);
        for half in &mut state.half {
            (half.flags, half.scale, half.mss) = (Half::SCALE_KNOWN | Half::EDGE_KNOWN, 7, 1_448);
        }
        move_on(state, [0; 2], n, 0, MOVES);
    }
    let (bytes, pause) = match load {
        Load::Quiet => (LITTLE, Duration::from_millis(60)),
        _ => (MOVES, Duration::from_millis(50)),
    };
    let mut rounds = 0;
    while !stop.load(Ordering::Acquire) {
        if rounds == 0 || load != Load::Idle {
            let at = maps.epoch_and_readings();
            let all = keys.len();
            let moves = match load {
                Load::Some if rounds > 0 => {
                    rounds as usize * SOME % all..(rounds as usize * SOME % all + SOME).min(all)
                }
                Load::Quiet if rounds > 0 => rounds as usize % all..rounds as usize % all + 1,
                _ => 0..all,
            };
            for n in moves.clone() {
                if rounds > 0 {
                    pass(&maps.ingress, &keys[n], &states[n]);
                }
                move_on(&mut states[n], at, n as u64, rounds, bytes);
            }
            match load {
                Load::Idle => {}
                Load::Quiet => (0..5).for_each(|_| pass_datagram(&maps.ingress, &keys[0], GAME)),
                Load::Some | Load::Busy => pass_datagram(&maps.ingress, &keys[0], LARGE),
            }
            write(&maps.flows, &keys[moves.clone()], &states[moves]);
            rounds += 1;
        }
        std::thread::park_timeout(pause);
    }
    rounds
}

/// So many bytes more came down, in time, and were acknowledged.
fn move_on(state: &mut FlowState, [epoch, readings]: [u32; 2], n: u64, round: u64, bytes: u64) {
    let at = now().as_nanos();
    (state.last_seen_ns, state.noted) = (at, readings);
    for (i, half) in state.half.iter_mut().enumerate() {
        // 12 to 14 ms at home, 20 to 36 ms beyond.
        let rtt = if i == 0 { 12_000_000 + (n + round) % 5 * 500_000 } else { 20_000_000 + n % 5 * 4_000_000 };
        let ticks = (rtt >> Stamp::SHIFT) as u32;
        half.rtt.total = half.rtt.total.add(ticks).add(ticks);
        half.rtt.min_ns = rtt as u32;
        half.rtt.last_ns = rtt as u32;
        half.rtt.epoch = epoch;
    }
    let half = &mut state.half[0];
    half.bytes += bytes + 104;
    half.packets += 2;
    half.payload_bytes += bytes;
    half.data_ns = at;
    half.acked_ns = at;
    half.served_ns += 1_000_000;
    half.delivered = half.delivered.wrapping_add(bytes as u32);
    half.snd_nxt = half.delivered;
    half.window = 65_536;
    half.last_window = 512;
    half.epoch = epoch;
    half.data_flags =
        if n.is_multiple_of(2) && bytes == MOVES { Half::DATA_SEEN | Half::LIMITED } else { Half::DATA_SEEN };
}

fn write(flows: &MapHandle, keys: &[FlowKey], states: &[FlowState]) {
    let mut count = keys.len() as u32;
    // SAFETY: both slices have `count` elements of the map's sizes, which the controller has checked.
    unsafe {
        libbpf_sys::bpf_map_update_batch(
            flows.as_fd().as_raw_fd(),
            keys.as_ptr().cast(),
            states.as_ptr().cast(),
            &raw mut count,
            std::ptr::null(),
        );
    }
}
