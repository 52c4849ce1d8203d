//! Cost of the credit scheduler per packet (enqueue, dequeue and charge), one JSON line per load.
//!
//! - `backlogged`: every flow has packets all the time; a packet comes for a flow drawn at random, one is sent.
//! - `sparse`: a flow has a packet now and then, and the queue is short.
//! - `overload`: two packets come for each that is sent, the queue is full, and one is dropped.
//!
//! `cargo bench -p lasthop-core --bench credit`: best of five, processor time as Linux accounts it, so that other work
//! on the machine disturbs little. `... -- backlogged 1000 1000000` runs one load once: what
//! `valgrind --tool=callgrind` counts instructions of.

use std::hint::black_box;

use lasthop_core::aqm::chap::{Chap, Params, Served};
use lasthop_core::packet::{FlowId, Packet, mix};
use lasthop_core::units::{Span, Time};

/// As large as a packet of the simulator.
#[derive(Clone, Copy)]
struct Sized {
    key: u64,
    rest: [u64; 3],
}

impl Packet for Sized {
    fn flow(&self) -> FlowId {
        FlowId(self.key as u32)
    }
    fn bytes(&self) -> u32 {
        1500
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Load {
    Backlogged,
    Sparse,
    Overload,
}

const LOADS: [(&str, Load); 3] =
    [("backlogged", Load::Backlogged), ("sparse", Load::Sparse), ("overload", Load::Overload)];

/// Packets sent and dropped.
fn run(load: Load, flows: u64, packets: u64) -> (u64, u64) {
    // Nobody is kept out: the flows are the load.
    let params = Params { new_credit: Span::from_secs(1_000_000), burst: 1 << 20, ..Params::default() };
    let mut chap = Chap::new(&params, flows as usize * 4, Time::ZERO);
    let packet = |number: u64, flow: u64| Sized { key: mix(flow + 1), rest: [number; 3] };
    let per_flow = if load == Load::Sparse { 0 } else { 4 };
    for number in 0..flows * per_flow {
        chap.enqueue(Time::ZERO, packet(number, number % flows), mix(number % flows + 1), 0);
    }
    let (mut now, mut sent, mut dropped) = (Time::ZERO, 0, 0);
    for number in 0..packets {
        for again in 0..if load == Load::Overload { 2 } else { 1 } {
            let flow = mix(number << 1 | again) % flows;
            let packet = packet(number, flow);
            dropped += u64::from(chap.enqueue(now, packet, packet.key, 0).is_some());
        }
        let Some(Served { packet, account }) = chap.dequeue(now) else { continue };
        // Attempts differ.
        let cost = Span::from_nanos(300_000 + (packet.rest[0] & 0x3ffff));
        now += cost;
        chap.charge(account, cost);
        sent += black_box(packet.rest[1]) & 1;
    }
    (sent, dropped)
}

fn processor_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or_default()
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if let [load, flows, packets] = &words[..] {
        let load = LOADS.iter().find(|(name, _)| name == load).expect("backlogged, sparse or overload").1;
        let (sent, dropped) = run(load, flows.parse().expect("flows"), packets.parse().expect("packets"));
        println!("{sent} {dropped}");
        return;
    }
    for (name, load) in LOADS {
        for flows in [10, 1_000, 10_000, 60_000] {
            let packets = 1_000_000;
            let once = || {
                let before = processor_ns();
                black_box(run(load, flows, packets));
                (processor_ns() - before) as f64 / packets as f64
            };
            let best = (0..5).map(|_| once()).fold(f64::INFINITY, f64::min);
            println!("{{\"load\":\"{name}\",\"flows\":{flows},\"ns_per_packet\":{best:.0}}}");
        }
    }
}
