//! Cost of the medium per transmission, one JSON line per cell.
//!
//! - `up`: every station's queue always has a packet of 1500 B for the access point.
//! - `down`: the access point's queue always has packets of 1500 B, station after station; every second one that
//!   arrives is answered by its station with one of 52 B, as TCP does.
//!
//! The medium is driven as hosts drive it: at its deadlines, with a packet of 32 bytes in memory.
//!
//! `cargo bench -p lasthop-medium --bench medium`: best of five, processor time as Linux accounts it, so that other work
//! on the machine disturbs little. `... -- up 64 2` runs one cell once, for 2 s of virtual time: what
//! `valgrind --tool=callgrind` counts instructions of.

use lasthop_core::packet::{FlowId, Packet};
use lasthop_core::units::{Span, Time};
use lasthop_medium::{Event, Medium, MediumParams, NodeId, StationParams};

const AP: NodeId = NodeId::ACCESS_POINT;

/// As large as a packet of the simulator.
#[derive(Clone, Copy)]
struct Sized {
    flow: FlowId,
    bytes: u32,
    /// Sequence number, time stamp, echo: what a simulator's packet carries besides.
    rest: [u64; 3],
}

impl Packet for Sized {
    fn flow(&self) -> FlowId {
        self.flow
    }
    fn bytes(&self) -> u32 {
        self.bytes
    }
}

fn sized(station: NodeId, bytes: u32) -> Sized {
    Sized { flow: FlowId(u32::from(station.0)), bytes, rest: [1, 2, 3] }
}

/// Who has something to send.
#[derive(Clone, Copy, PartialEq)]
enum Load {
    Up,
    Down,
}

/// A cell that is driven.
struct Cell {
    medium: Medium<Sized>,
    load: Load,
    stations: u16,
    /// Whose packet the access point gets next.
    turn: u16,
    /// Arrived and not yet answered, per station.
    unanswered: Vec<bool>,
    /// Of everything that arrived, so that nothing is optimised away.
    sum: u64,
}

impl Cell {
    fn new(load: Load, stations: u16) -> Self {
        let medium = Medium::new(MediumParams::default(), vec![StationParams::default(); usize::from(stations)], 1);
        let unanswered = vec![false; usize::from(stations) + 1];
        let mut cell = Self { medium, load, stations, turn: 0, unanswered, sum: 0 };
        for _ in 0..4 {
            // A queue of 50 takes 16 packets of the access point's, however many stations there are.
            let senders = if load == Load::Up { stations } else { 4 };
            (1..=senders).for_each(|station| cell.refill(Time::ZERO, NodeId(station)));
        }
        cell
    }

    fn refill(&mut self, at: Time, station: NodeId) {
        match self.load {
            Load::Up => self.medium.on_packet(at, station, AP, sized(station, 1500)),
            Load::Down => {
                self.turn = self.turn % self.stations + 1;
                let station = NodeId(self.turn);
                self.medium.on_packet(at, AP, station, sized(station, 1500));
            }
        }
    }

    fn drive(&mut self, end: Time) {
        while let Some(now) = self.medium.next_deadline().filter(|at| *at <= end) {
            while let Some(event) = self.medium.poll(now) {
                self.on_event(event);
            }
        }
    }

    fn on_event(&mut self, event: Event<Sized>) {
        match event {
            Event::Delivered { at, from, to, packet } => {
                self.sum += packet.rest[2] + u64::from(packet.bytes);
                if self.load == Load::Up || from == AP {
                    self.refill(at, from);
                }
                if self.load == Load::Down && from == AP {
                    let unanswered = &mut self.unanswered[usize::from(to.0)];
                    *unanswered = !*unanswered;
                    if !*unanswered {
                        self.medium.on_packet(at, to, AP, sized(to, 52));
                    }
                }
            }
            Event::Dropped { at, node, .. } => {
                if self.load == Load::Up || node == AP {
                    self.refill(at, node);
                }
            }
        }
    }
}

/// Delivered frames and transmissions of `seconds` in one cell.
fn run(load: Load, stations: u16, seconds: u64) -> (u64, u64) {
    let end = Time::ZERO + Span::from_secs(seconds);
    let mut cell = Cell::new(load, stations);
    cell.drive(end);
    std::hint::black_box(cell.sum);
    let nodes = cell.medium.snapshot(end).nodes;
    (nodes.iter().map(|n| n.frames).sum(), nodes.iter().map(|n| n.attempts).sum())
}

/// Nanoseconds this process has spent on a processor.
fn processor_ns() -> f64 {
    let schedstat = std::fs::read_to_string("/proc/self/schedstat").expect("Linux accounts processor time");
    schedstat.split(' ').next().and_then(|ns| ns.parse().ok()).expect("schedstat starts with nanoseconds")
}

fn measure(load: Load, stations: u16, seconds: u64, times: u32) {
    let mut best = f64::MAX;
    let mut counted = (0, 0);
    for _ in 0..times {
        let start = processor_ns();
        counted = run(load, stations, seconds);
        best = best.min(processor_ns() - start);
    }
    let (frames, attempts) = counted;
    let name = if load == Load::Up { "up" } else { "down" };
    println!(
        "{{\"bench\":\"medium\",\"load\":\"{name}\",\"stations\":{stations},\"frames\":{frames},\
         \"attempts\":{attempts},\"ns_per_frame\":{:.1},\"ns_per_attempt\":{:.1}}}",
        best / frames as f64,
        best / attempts as f64
    );
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let load = |word: &str| if word == "down" { Load::Down } else { Load::Up };
    if let [which, stations, seconds] = words.as_slice() {
        let number = |word: &str| word.parse().expect("a number of stations, a number of seconds");
        measure(load(which), number(stations) as u16, number(seconds), 1);
        return;
    }
    for which in [Load::Up, Load::Down] {
        for stations in [1, 4, 16, 64, 1024] {
            measure(which, stations, 50, 5);
        }
    }
}
