//! Cost of the medium: ns per delivered frame in saturated cells, one JSON line per size of cell.
//!
//! `cargo bench -p lasthop-wifi --bench medium`; best of five, processor time as Linux accounts it, so that other work
//! on the machine disturbs little.

use lasthop_core::packet::{FlowId, Packet};
use lasthop_core::units::{Span, Time};
use lasthop_wifi::{Event, Medium, MediumParams, NodeId, StationParams};

#[derive(Clone, Copy)]
struct Full;

impl Packet for Full {
    fn flow(&self) -> FlowId {
        FlowId(0)
    }
    fn bytes(&self) -> u32 {
        1500
    }
}

/// Delivered frames and transmissions of `seconds` in a cell of `stations` that always have something to send.
fn run(stations: u16, seconds: u64) -> (u64, u64) {
    let end = Time::ZERO + Span::from_secs(seconds);
    let mut medium = Medium::new(MediumParams::default(), vec![StationParams::default(); usize::from(stations)], 1);
    for station in 1..=stations {
        for _ in 0..4 {
            medium.on_packet(Time::ZERO, NodeId(station), NodeId::ACCESS_POINT, Full);
        }
    }
    while let Some(event) = medium.poll(end) {
        let (Event::Delivered { at, from: node, .. } | Event::Dropped { at, node, .. }) = event;
        medium.on_packet(at, node, NodeId::ACCESS_POINT, Full);
    }
    let nodes = medium.snapshot(end).nodes;
    (nodes.iter().map(|n| n.frames).sum(), nodes.iter().map(|n| n.attempts).sum())
}

/// Nanoseconds this process has spent on a processor.
fn processor_ns() -> f64 {
    let schedstat = std::fs::read_to_string("/proc/self/schedstat").expect("Linux accounts processor time");
    schedstat.split(' ').next().and_then(|ns| ns.parse().ok()).expect("schedstat starts with nanoseconds")
}

fn main() {
    for stations in [1, 4, 16, 64] {
        let mut best = f64::MAX;
        let mut counted = (0, 0);
        for _ in 0..5 {
            let start = processor_ns();
            counted = run(stations, 100);
            best = best.min(processor_ns() - start);
        }
        let (frames, attempts) = counted;
        println!(
            "{{\"bench\":\"medium\",\"stations\":{stations},\"frames\":{frames},\"attempts\":{attempts},\
             \"ns_per_frame\":{:.1},\"ns_per_attempt\":{:.1}}}",
            best / frames as f64,
            best / attempts as f64
        );
    }
}
