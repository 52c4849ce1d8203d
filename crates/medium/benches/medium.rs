//! Cost of the medium per transmission, one JSON line per cell.
//!
//! - `up`: every station's queue always has a packet of 1500 B for the access point.
//! - `down`: the access point's queue always has packets of 1500 B, station after station; every second one that
//!   arrives is answered by its station with one of 52 B, as TCP does.
//! - `n`, `ac`, `ax` and `n-single`: as `up`, with 802.11n HT20 MCS 7, 802.11ac VHT80 MCS 9 and 802.11ax HE80 MCS 11 of two streams and
//!   their aggregates (28, 42 and 42 MPDUs), and 802.11n without; `n-lossy`: with every tenth MPDU lost.
//!
//! The medium is driven as hosts drive it: at its deadlines, with a packet of 32 bytes in memory.
//!
//! `cargo bench -p lasthop-medium --bench medium`: best of five, processor time as Linux accounts it, so that other work
//! on the machine disturbs little. `... -- up 64 2` runs one cell once, for 2 s of virtual time: what
//! `valgrind --tool=callgrind` counts instructions of.

use lasthop_core::packet::{FlowId, Packet};
use lasthop_core::units::{Span, Time};
use lasthop_medium::{
    Ampdu, Band, Event, Guard, Loss, Medium, MediumParams, Mode, NodeId, Rate, Standard, StationParams, Width,
};

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
    /// [`Load::Up`] with classes of traffic, and aggregates or not.
    Air(Standard, bool),
    Lossy,
}

impl Load {
    const ALL: [(&str, Self); 7] = [
        ("up", Self::Up),
        ("down", Self::Down),
        ("n-single", Self::Air(Standard::N, false)),
        ("n", Self::Air(Standard::N, true)),
        ("ac", Self::Air(Standard::Ac, true)),
        ("ax", Self::Air(Standard::Ax, true)),
        ("n-lossy", Self::Lossy),
    ];

    fn is_up(self) -> bool {
        self != Self::Down
    }

    fn cell(self) -> (MediumParams, StationParams) {
        let (standard, aggregates) = match self {
            Self::Up | Self::Down => return (MediumParams::default(), StationParams::default()),
            Self::Air(standard, aggregates) => (standard, aggregates),
            Self::Lossy => (Standard::N, true),
        };
        let mode = |width, streams, mcs, guard| Mode { standard, width, streams, mcs, guard };
        let mode = match standard {
            Standard::Ac => mode(Width::Mhz80, 2, 9, Guard::Ns400),
            Standard::Ax => mode(Width::Mhz80, 2, 11, Guard::Ns800),
            _ => mode(Width::Mhz20, 1, 7, Guard::Ns800),
        };
        let loss = if self == Self::Lossy { Loss::Fixed { rate: 0.1 } } else { Loss::None };
        let params =
            MediumParams { standard, band: Band::Ghz5, loss, rts_threshold: 1 << 24, ..MediumParams::default() };
        let rate = Rate::of_mode(mode).expect("a mode of the standard");
        let ampdu = Ampdu::of(standard).filter(|_| aggregates);
        (params, StationParams { standard, rate, ampdu, queue_limit: 200, ..StationParams::default() })
    }
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
        let (params, station) = load.cell();
        let medium = Medium::new(params, vec![station; usize::from(stations)], 1);
        let unanswered = vec![false; usize::from(stations) + 1];
        let mut cell = Self { medium, load, stations, turn: 0, unanswered, sum: 0 };
        for _ in 0..if matches!(load, Load::Up | Load::Down) { 4 } else { 100 } {
            // A queue of 50 takes 16 packets of the access point's, however many stations there are.
            let senders = if load.is_up() { stations } else { 4 };
            (1..=senders).for_each(|station| cell.refill(Time::ZERO, NodeId(station)));
        }
        cell
    }

    fn refill(&mut self, at: Time, station: NodeId) {
        if self.load.is_up() {
            return self.medium.on_packet(at, station, AP, sized(station, 1500));
        }
        self.turn = self.turn % self.stations + 1;
        let station = NodeId(self.turn);
        self.medium.on_packet(at, AP, station, sized(station, 1500));
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
                if self.load.is_up() || from == AP {
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
                if self.load.is_up() || node == AP {
                    self.refill(at, node);
                }
            }
        }
    }
}

/// What one cell did in `seconds`.
#[derive(Clone, Copy, Default)]
struct Counted {
    frames: u64,
    /// Of b and g transmissions, else those of MPDUs.
    attempts: u64,
    /// With classes.
    ppdus: u64,
}

fn run(load: Load, stations: u16, seconds: u64) -> Counted {
    let end = Time::ZERO + Span::from_secs(seconds);
    let mut cell = Cell::new(load, stations);
    cell.drive(end);
    std::hint::black_box(cell.sum);
    let seen = cell.medium.snapshot(end);
    Counted {
        frames: seen.nodes.iter().map(|n| n.frames).sum(),
        attempts: seen.nodes.iter().map(|n| n.attempts).sum(),
        ppdus: seen.classes.iter().flatten().map(|c| c.attempts).sum(),
    }
}

/// Nanoseconds this process has spent on a processor.
fn processor_ns() -> f64 {
    let schedstat = std::fs::read_to_string("/proc/self/schedstat").expect("Linux accounts processor time");
    schedstat.split(' ').next().and_then(|ns| ns.parse().ok()).expect("schedstat starts with nanoseconds")
}

fn measure((name, load): (&str, Load), stations: u16, seconds: u64, times: u32) {
    let mut best = f64::MAX;
    let mut counted = Counted::default();
    for _ in 0..times {
        let start = processor_ns();
        counted = run(load, stations, seconds);
        best = best.min(processor_ns() - start);
    }
    let Counted { frames, attempts, ppdus } = counted;
    let each = |what: u64| best / what as f64;
    if ppdus > 0 {
        println!(
            "{{\"bench\":\"medium\",\"load\":\"{name}\",\"stations\":{stations},\"mpdus\":{attempts},\"ppdus\":{ppdus},\
             \"mpdus_per_ppdu\":{:.1},\"ns_per_ppdu\":{:.1},\"ns_per_mpdu\":{:.1}}}",
            attempts as f64 / ppdus as f64,
            each(ppdus),
            each(attempts)
        );
        return;
    }
    println!(
        "{{\"bench\":\"medium\",\"load\":\"{name}\",\"stations\":{stations},\"frames\":{frames},\
         \"attempts\":{attempts},\"ns_per_frame\":{:.1},\"ns_per_attempt\":{:.1}}}",
        each(frames),
        each(attempts)
    );
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if let [which, stations, seconds] = words.as_slice() {
        let number = |word: &str| word.parse().expect("a number of stations, a number of seconds");
        let load = Load::ALL.into_iter().find(|(name, _)| name == which).expect("a load that is named in this file");
        measure(load, number(stations) as u16, number(seconds), 1);
        return;
    }
    for load in Load::ALL {
        for stations in [1, 4, 16, 64, 1024] {
            measure(load, stations, 50, 5);
        }
    }
}
