//! What the BPF program costs per packet, by BPF_PROG_TEST_RUN: one JSON line per case on stdout.
//!
//! `ns` is the time of one run less what it took to make the packet new (see `bpf/bench.bpf.c`); `empty_ns` that of a
//! program that does nothing, measured beside it, and held in `ns` too: both hold the kernel's own loop. Each is the
//! median of rounds that take turns.
//!
//! `--write FOLDER` runs nothing: it writes the object and `cases.json` for who runs the cases on another machine
//! (`tools/study/small_router.py`), whatever that one can compile.

#[path = "../tests/common/compile.rs"]
mod compile;

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Barrier;

use lasthop_core::fastpath::layout::{Control, FlowKey, FlowState, Half, Plan, Reason};
use lasthop_core::packet::Direction;
use lasthop_core::units::Time;
use lasthop_core::wire::build::{Frame, Segment, option, v4};
use lasthop_core::wire::{self, Endpoint, Link, Merged, Parsed, flag};
use lasthop_live::program::{LoadOptions, Program, TestPacket};

const ROUNDS: usize = 15;
/// Runs per round: 1,448 bytes each stay below 2^30.
const RUNS: u32 = 200_000;
const STATION: Endpoint = Endpoint { address: v4([192, 168, 1, 20]), port: 50_000 };
const REMOTE: Endpoint = Endpoint { address: v4([203, 0, 113, 5]), port: 443 };

/// A packet, the program that makes it new each time and passes it, and the one that only makes it new.
struct Case {
    name: &'static str,
    frame: Vec<u8>,
    direction: Direction,
    program: &'static str,
    alone: &'static str,
    reason: Reason,
}

fn main() {
    let object = compile::clang().and_then(|clang| compile::object(&clang, "bench.bpf.c", &[]));
    let object = match object {
        Ok(object) => object,
        Err(why) => {
            eprintln!("SKIPPED: {why}");
            return;
        }
    };
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--write") {
        let folder = arguments.get(at + 1).expect("--write FOLDER");
        return write(Path::new(folder), &object).expect("the folder can be written to");
    }
    let program = match Program::load_object(&object, LoadOptions::default()) {
        Ok(program) => program,
        Err(error) => {
            eprintln!("SKIPPED: {error}: {:?}", std::error::Error::source(&error));
            return;
        }
    };
    for case in connections() {
        println!("{}", measure(&program, &case));
    }
    for (name, number) in [("one_connection_on_two_processors", 1), ("two_connections_on_two_processors", 2)] {
        println!("{}", measure_together(&program, name, together(number)));
    }
}

/// Packets of a connection that is under control.
fn connections() -> Vec<Case> {
    let segment = Segment { seq: 1, ack: 1, flags: flag::ACK, window: 60_000, options: option::timestamps(5, 0) };
    let with_sack = Segment { options: [segment.options.clone(), option::sack(&[(1, 2)])].concat(), ..segment.clone() };
    let up = |segment: &Segment| with_partial_checksum(Frame::tcp(STATION, REMOTE, segment.clone(), 0).bytes());
    let ack = |name, segment: &Segment| Case {
        name,
        frame: up(segment),
        direction: Direction::ToRemote,
        program: "bench_ack",
        alone: "bench_ack_alone",
        reason: Reason::Rewritten,
    };
    let data = Case {
        name: "data_measured_and_passed",
        frame: Frame::tcp(REMOTE, STATION, Segment { window: 40, ..segment.clone() }, 1_448).bytes(),
        direction: Direction::ToStation,
        program: "bench_data",
        alone: "bench_data_alone",
        reason: Reason::WithinPlan,
    };
    vec![data, ack("ack_rewritten", &segment), ack("ack_with_sack_rewritten", &with_sack)]
}

/// Data of one connection, and its acknowledgments, or those of another one over the same hop.
fn together(number: u16) -> [Case; 2] {
    let mut cases = connections();
    let mut ack = cases.swap_remove(1);
    let data = cases.swap_remove(0);
    // The source port of IPv4 without options. Nothing checks the checksum that a virtual link left out.
    ack.frame[34..36].copy_from_slice(&(STATION.port + number - 1).to_be_bytes());
    [data, ack]
}

/// Packets that are the same on every run: a game's datagram, a full one, one of neither TCP nor UDP.
fn others() -> Vec<Case> {
    let down = |name, frame, reason| Case {
        name,
        frame,
        direction: Direction::ToStation,
        program: "lasthop_egress",
        alone: "nothing",
        reason,
    };
    let datagram = |payload| Frame::udp(REMOTE, STATION, payload).bytes();
    let mut ping = datagram(56);
    ping[14 + 9] = 1; // the protocol: ICMP
    vec![
        down("udp_of_a_game", datagram(172), Reason::Udp),
        down("udp_full", datagram(1_472), Reason::Udp),
        down("neither_tcp_nor_udp", ping, Reason::OtherTransport),
    ]
}

/// All that BPF_PROG_TEST_RUN of another machine takes; numbers are in its byte order if that is little-endian.
fn write(folder: &Path, object: &[u8]) -> std::io::Result<()> {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let entry = |case: &Case| {
        let (key, state) = flow(case, Time::from_nanos(1_000_000_000));
        serde_json::json!({
            "name": case.name, "frame": hex(&case.frame), "program": case.program, "alone": case.alone,
            "reason": case.reason as u32, "key": hex(as_bytes(&key)), "state": hex(as_bytes(&state)),
        })
    };
    let mut cases: Vec<_> = connections().iter().map(entry).collect();
    for case in others() {
        let (name, frame) = (case.name, hex(&case.frame));
        cases.push(serde_json::json!({
            "name": name, "frame": frame, "program": case.program, "alone": case.alone, "reason": case.reason as u32,
        }));
    }
    // A controller that will be alive for as long as anybody runs them.
    let control = Control { heartbeat_ns: 1 << 62, ..Control::default() };
    let all = serde_json::json!({ "control": hex(as_bytes(&control)), "cases": cases });
    std::fs::write(folder.join("bench.bpf.o"), object)?;
    std::fs::write(folder.join("cases.json"), all.to_string())
}

/// A record as the maps hold it.
fn as_bytes<T>(record: &T) -> &[u8] {
    // SAFETY: records of the layout have no padding, and the bytes are borrowed for as long as the record is.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(record).cast(), size_of::<T>()) }
}

/// The sum of the pseudo header as checksum and, for the program that makes the packet new, as urgent pointer.
fn with_partial_checksum(mut frame: Vec<u8>) -> Vec<u8> {
    let Parsed::Tcp(tcp) = wire::parse(&frame, Link::Ethernet) else { panic!("not TCP") };
    let words = frame[26..34].chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum: u32 = words.sum::<u32>() + u32::from(wire::protocol::TCP) + tcp.header_bytes + tcp.payload_bytes;
    let partial = ((sum >> 16) + (sum & 0xffff)) as u16;
    for at in [16, 18] {
        frame[34 + at..][..2].copy_from_slice(&partial.to_be_bytes());
    }
    frame
}

fn measure(program: &Program, case: &Case) -> String {
    let (mut with, mut alone, mut empty) = (vec![], vec![], vec![]);
    for _round in 0..ROUNDS {
        let key = prepare(program, case);
        let before = program.counters().expect("counters").reason[case.reason as usize];
        with.push(run(program, case.program, &case.frame));
        let after = program.counters().expect("counters").reason[case.reason as usize];
        assert_eq!(after - before, u64::from(RUNS), "every run must be {:?}", case.reason);
        program.delete(&key).expect("the flow goes");
        alone.push(run(program, case.alone, &case.frame));
        empty.push(run(program, "nothing", &case.frame));
    }
    let [with, alone, empty] = [with, alone, empty].map(median);
    let ns = with - (alone - empty);
    let mut line = String::new();
    let _ = write!(line, r#"{{"bench":"bpf","case":"{}","ns":{ns},"empty_ns":{empty},"#, case.name);
    let _ = write!(line, r#""ratio":{:.2},"raw_ns":{with},"packet_ns":{},"#, ns / empty.max(1.0), alone - empty);
    let _ = write!(line, r#""runs":{RUNS},"rounds":{ROUNDS}}}"#);
    line
}

/// Data on one processor, and acknowledgments on another at the same time.
fn measure_together(program: &Program, name: &str, [data, ack]: [Case; 2]) -> String {
    let mut each = [vec![], vec![]];
    for _round in 0..ROUNDS {
        let cases = [&data, &ack];
        let keys = cases.map(|case| prepare(program, case));
        let start = Barrier::new(2);
        let took = std::thread::scope(|scope| {
            let running = [0, 1].map(|cpu| {
                let (case, start) = (cases[cpu], &start);
                scope.spawn(move || {
                    pin(cpu);
                    start.wait();
                    run(program, case.program, &case.frame)
                })
            });
            running.map(|thread| thread.join().expect("no panic"))
        });
        each.iter_mut().zip(took).for_each(|(all, took)| all.push(took));
        // Of one connection the second finds nothing to delete.
        keys.iter().for_each(|key| drop(program.delete(key)));
    }
    let [data, ack] = each.map(median);
    format!(
        r#"{{"bench":"bpf","case":"{name}","raw_data_ns":{data},"raw_ack_ns":{ack},"runs":{RUNS},"rounds":{ROUNDS}}}"#
    )
}

fn pin(cpu: usize) {
    // SAFETY: an all-zero value of that plain C struct is valid, and the call only reads it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
    }
}

/// A controller that is alive, and a flow that has been seen before.
fn prepare(program: &Program, case: &Case) -> FlowKey {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let now = Time::from_nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64);
    program.control().heartbeat(now);
    let (key, state) = flow(case, now);
    program.put(&key, &state).expect("room for one flow");
    key
}

/// What the table holds of a case's connection.
fn flow(case: &Case, now: Time) -> (FlowKey, FlowState) {
    let control = Control { heartbeat_ns: now.as_nanos(), ..Control::default() };
    let Parsed::Tcp(tcp) = wire::parse(&case.frame, Link::Ethernet) else { panic!("not TCP") };
    let key = wire::flow_key(&tcp, case.direction);
    let mut state = FlowState { assured: 1, ..FlowState::new(&control, now) };
    for half in &mut state.half {
        half.conntrack_scale = 8;
        half.data_flags = Half::DATA_SEEN;
        half.flags = Half::EDGE_KNOWN;
        half.delivered = 1;
        half.edge = 60_001;
        half.snd_nxt = 1;
        half.plan = Plan { clamp_bytes: 100_000, floor_bytes: 2_920, growth_bytes: 3_000, pace_bytes: 3_000_000 };
    }
    // The data that the ACKs acknowledge has been sent already.
    if case.direction == Direction::ToRemote {
        state.half[0].snd_nxt = 1 << 30;
    }
    (key, state)
}

fn run(program: &Program, name: &str, frame: &[u8]) -> f64 {
    let fd = program.program_fd(name).expect("the bench object has it");
    let mut out = vec![0; frame.len() + 64];
    let packet = TestPacket { bytes: frame, merged: Merged::NOT, mark: 0 };
    f64::from(program.run_on(fd, packet, &mut out, RUNS).expect("the kernel runs it").duration_ns)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
