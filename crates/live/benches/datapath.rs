//! CHAP in user space: cost per packet of the queue alone, and packets per second through the whole way, one JSON line per
//! case on stdout.
//!
//! - `queue`: a frame is copied into a slot, read, queued, taken out and charged; 1,000 flows that have frames all the time.
//!   Processor time as Linux accounts it, best of five.
//! - `way`: UDP from a socket over a veth pair, from as many ports as there are flows, as fast as the sender can; by the
//!   kernel alone, and through the TAP. What arrives is counted at the far end; `queue_ns` is the processor time of the
//!   thread that carries frames, per frame. Medians of rounds that take turns; needs root.

use std::net::UdpSocket;
use std::process::Command;
use std::time::{Duration, Instant};

use lasthop_core::packet::{Direction, mix};
use lasthop_core::units::{BitRate, Span, Time};
use lasthop_core::wire::Endpoint;
use lasthop_core::wire::build::{Frame, Segment, v4};
use lasthop_live::attach::Attachment;
use lasthop_live::clock::now;
use lasthop_live::config::AttachMode;
use lasthop_live::datapath::engine::Engine;
use lasthop_live::datapath::{Datapath, Egress, Kind};
use lasthop_live::interface::{self, InterfaceName};
use lasthop_live::netlink::Socket;
use lasthop_live::program::{LinkLayer, LoadOptions, Program};
use lasthop_live::qdisc::Settings;
use lasthop_live::qdisc::layout::PacketCost;

const FLOWS: u16 = 1_000;
const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_millis(1_500);
/// No pace: what is measured is what it can.
const RATE: BitRate = BitRate::mbps(100_000);

fn main() {
    queue();
    if let Err(why) = way() {
        eprintln!("SKIPPED: {why}");
    }
}

fn schedstat(path: &str) -> u64 {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or_default()
}

fn queue() {
    for payload in [60, 1_448] {
        let station = |port| Endpoint { address: v4([192, 168, 1, 20]), port };
        let remote = Endpoint { address: v4([203, 0, 113, 5]), port: 443 };
        let frame = |flow| Frame::tcp(remote, station(1_024 + flow), Segment::default(), payload).bytes();
        let frames: Vec<Vec<u8>> = (0..FLOWS).map(frame).collect();
        let best = (0..5).map(|_| ns_per_frame(&frames)).fold(f64::INFINITY, f64::min);
        println!(r#"{{"bench":"datapath","case":"queue","bytes":{},"flows":{FLOWS},"ns":{best:.0}}}"#, frames[0].len());
    }
}

fn ns_per_frame(frames: &[Vec<u8>]) -> f64 {
    const PACKETS: u64 = 500_000;
    let cost = PacketCost { byte_ns_q16: 400 << 16, packet_ns: 0 };
    // New flows of the one station are let in by the dozen per second: begin long enough before.
    let settings = Settings { limit: 4_000, increment: Span::from_micros(100), ..Settings::default() };
    let mut engine = Engine::new(Kind::Chap, &settings, LinkLayer::Ethernet, 1_500, cost, 7, Time::ZERO);
    let mut clock = Time::ZERO;
    let put = |engine: &mut Engine, clock: Time, number: u64| {
        let Some(slot) = engine.slot() else { return };
        let frame = &frames[(mix(number) % u64::from(FLOWS)) as usize];
        engine.bytes_mut(slot)[..frame.len()].copy_from_slice(frame);
        engine.on_frame(clock, slot, frame.len());
    };
    for number in 0..u64::from(FLOWS) * 3 {
        clock += Span::from_millis(3);
        put(&mut engine, clock, number);
    }
    let before = schedstat("/proc/thread-self/schedstat");
    for number in 0..PACKETS {
        put(&mut engine, clock, number);
        clock = engine.next_deadline().map_or(clock, |due| due.max(clock));
        if let Some(frame) = engine.poll(clock) {
            std::hint::black_box(engine.bytes(&frame));
            engine.give_back(frame.slot());
        }
    }
    let took = schedstat("/proc/thread-self/schedstat") - before;
    let counters = engine.snapshot(clock).credit;
    assert!(counters.flows > usize::from(FLOWS) * 9 / 10, "the flows have accounts of their own: {counters:?}");
    took as f64 / PACKETS as f64
}

/// Runs ip(8) in the namespace of this thread.
fn ip(line: &str) -> Result<(), String> {
    let output = Command::new("ip").args(line.split_whitespace()).output().map_err(|e| e.to_string())?;
    if output.status.success() {
        Ok(())
    } else {
        Err(format!("ip {line}: {}", String::from_utf8_lossy(&output.stderr)))
    }
}

fn way() -> Result<(), String> {
    // SAFETY: moves this process, whose only thread this is, into a network of its own.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return Err(format!("no network namespace: {}", std::io::Error::last_os_error()));
    }
    ip("link add lan0 type veth peer name far0")?;
    for device in ["lan0", "far0"] {
        ip(&format!("link set {device} up"))?;
    }
    ip("addr add 10.9.1.1/24 dev lan0")?;
    ip("neigh add 10.9.1.2 lladdr 02:00:00:00:00:02 dev lan0")?;
    let program =
        Program::load(LoadOptions { diverts: true, ..LoadOptions::default() }).map_err(|error| error.to_string())?;
    let lan0: InterfaceName = "lan0".parse().map_err(|error| format!("{error}"))?;
    let mut route = Socket::open(libc::NETLINK_ROUTE).map_err(|error| error.to_string())?;
    let ifindex = interface::state(&mut route, &lan0).ok().flatten().ok_or("no lan0")?.ifindex;
    let ingress = program.prog_fd(Direction::ToRemote, LinkLayer::Ethernet);
    let egress = program.prog_fd(Direction::ToStation, LinkLayer::Ethernet);
    let attached = Attachment::new(&lan0, ifindex, AttachMode::Auto, ingress, egress);
    let _attached = attached.map_err(|error| error.to_string())?;
    for payload in [60, 1_400] {
        let (mut kernel, mut user, mut thread_ns, mut lost) = (vec![], vec![], vec![], vec![]);
        for _round in 0..ROUNDS {
            kernel.push(arrived_per_second(&mut route, payload)?.0);
            let place = Egress { ifindex, layer: LinkLayer::Ethernet, mtu: 1_500, shares_channel: false, snoop: None };
            let settings = Settings { limit: 4_000, ..Settings::default() };
            let datapath = Datapath::new(&lan0, place, Kind::Chap, &settings, &program, now(), RATE);
            let datapath = datapath.map_err(|error| error.to_string())?;
            std::thread::park_timeout(Duration::from_millis(300));
            let (rate, ns) = arrived_per_second(&mut route, payload)?;
            std::thread::park_timeout(Duration::from_millis(300));
            let (counted, overrun) = (datapath.counted(), datapath.overrun());
            if counted.engine.sent_packets == 0 {
                return Err("nothing went through the queue".to_owned());
            }
            user.push(rate);
            thread_ns.push(ns);
            let gone = (counted.engine.queue.dropped + counted.refused + overrun) as f64;
            lost.push(gone / (gone + counted.engine.sent_packets as f64));
        }
        let [kernel, user, thread_ns, lost] = [kernel, user, thread_ns, lost].map(median);
        println!(
            r#"{{"bench":"datapath","case":"way","bytes":{},"flows":{FLOWS},"packets_per_s":{user:.0},"kernel_packets_per_s":{kernel:.0},"queue_ns":{thread_ns:.0},"lost":{lost:.3},"rounds":{ROUNDS}}}"#,
            payload + 42
        );
    }
    Ok(())
}

/// Packets that reach the far end per second, and processor time per packet of the thread that keeps the queue, if any.
fn arrived_per_second(route: &mut Socket, payload: usize) -> Result<(f64, f64), String> {
    let far0: InterfaceName = "far0".parse().map_err(|error| format!("{error}"))?;
    let mut arrived = || interface::state(route, &far0).ok().flatten().map(|s| s.received_packets).ok_or("no far0");
    let socket = UdpSocket::bind("10.9.1.1:0").map_err(|error| error.to_string())?;
    let packet = vec![0u8; payload];
    let (before, begun, thread_before) = (arrived()?, Instant::now(), thread_time());
    let mut number = 0u64;
    while begun.elapsed() < ROUND {
        for _each in 0..64 {
            let port = 1_024 + (mix(number) % u64::from(FLOWS)) as u16;
            let _ = socket.send_to(&packet, ("10.9.1.2".parse::<std::net::Ipv4Addr>().expect("an address"), port));
            number += 1;
        }
    }
    let (count, seconds) = ((arrived()? - before) as f64, begun.elapsed().as_secs_f64());
    Ok((count / seconds, (thread_time() - thread_before) as f64 / count.max(1.0)))
}

/// Processor time of the thread that keeps the queue, ns.
fn thread_time() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let mut paths = tasks.map(|task| task.path().display().to_string());
    let ours =
        paths.find(|path| std::fs::read_to_string(format!("{path}/comm")).is_ok_and(|c| c.trim() == "lasthop-queue"));
    ours.map_or(0, |path| schedstat(&format!("{path}/schedstat")))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
