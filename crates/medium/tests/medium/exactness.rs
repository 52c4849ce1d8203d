//! The medium against a brute-force DCF that looks at every node every microsecond: the same events, to the nanosecond.

use crate::common::oracle::{Arrival, Oracle};
use crate::common::{Numbered, us};
use lasthop_core::units::BitRate;
use lasthop_medium::{
    AfterCollision, Event, Loss, Medium, MediumParams, NodeId, Rate, Standard, StationParams, Timing,
};
use proptest::prelude::*;

/// Rates at which every frame lasts whole microseconds.
const RATES: [u64; 8] = [6, 9, 12, 18, 24, 36, 48, 54];

fn station() -> impl Strategy<Value = StationParams> {
    (0usize..10, 0usize..20).prop_map(|(kind, queue_limit)| {
        let (standard, mbps) = match kind {
            8 => (Standard::B, 1),
            9 => (Standard::B, 2),
            kind => (Standard::G, RATES[kind]),
        };
        let rate = Rate::of(standard, BitRate::mbps(mbps)).unwrap();
        StationParams { standard, rate, queue_limit, ..StationParams::default() }
    })
}

prop_compose! {
    fn cell()(
        attempts in 1u32..6,
        short_attempts in prop::option::of(1u32..6),
        rts_threshold in prop::sample::select(vec![65_535, 500]),
        queue_limit in 0usize..20,
        rate in prop::sample::select(vec![0.0, 0.1, 0.4]),
        eifs in any::<bool>(),
    ) -> MediumParams {
        let after_collision = if eifs { AfterCollision::Eifs } else { AfterCollision::Standard };
        let loss = Loss::Fixed { rate };
        MediumParams {
            attempts, short_attempts, rts_threshold, queue_limit, loss, after_collision, ..MediumParams::default()
        }
    }
}

/// A cell under ns-2's rules, whose frames last whole microseconds at 1 and 2 Mbit/s only.
fn ns2_cell() -> impl Strategy<Value = MediumParams> {
    cell().prop_map(|cell| MediumParams {
        timing: Timing::Ns2G,
        control_rate: Some(Rate::DSSS_1),
        after_collision: AfterCollision::Standard,
        ..cell
    })
}

fn ns2_station() -> impl Strategy<Value = StationParams> {
    (1u64..3, 0usize..20).prop_map(|(mbps, queue_limit)| {
        let rate = Rate::of(Standard::G, BitRate::mbps(mbps)).unwrap();
        StationParams { rate, queue_limit, ..StationParams::default() }
    })
}

/// (gap in us, node, other end, bytes); bursts where the gap is zero.
fn traffic(busy: bool) -> impl Strategy<Value = Vec<(u64, u16, u16, u32)>> {
    let gap = if busy {
        prop_oneof![Just(0u64), 0u64..300, 0u64..40]
    } else {
        prop_oneof![Just(0u64), 0u64..3000, 0u64..600]
    };
    prop::collection::vec((gap, 0u16..6, 1u16..6, 1u32..1500), 1..100)
}

fn arrivals(traffic: &[(u64, u16, u16, u32)], stations: u16) -> Vec<Arrival> {
    let mut at_us = 0;
    let arrival = |(number, (gap, node, other, bytes)): (usize, &(u64, u16, u16, u32))| {
        at_us += gap;
        let station = (other - 1) % stations + 1;
        let (from, to) = if *node == 0 { (0, station) } else { ((*node - 1) % stations + 1, 0) };
        Arrival { at_us, from, to, packet: Numbered { number: number as u32, bytes: *bytes } }
    };
    traffic.iter().enumerate().map(arrival).collect()
}

/// How the host wakes up.
#[derive(Clone, Copy)]
enum Polling {
    /// At every deadline.
    Timely,
    /// Only when packets arrive, and at the end.
    Late,
}

fn run(medium: &mut Medium<Numbered>, arrivals: &[Arrival], until_us: u64, polling: Polling) -> Vec<Event<Numbered>> {
    let mut events = Vec::new();
    for arrival in arrivals {
        let now = us(arrival.at_us);
        if matches!(polling, Polling::Timely) {
            while let Some(deadline) = medium.next_deadline().filter(|d| *d <= now) {
                events.extend(medium.poll(deadline));
            }
        }
        medium.on_packet(now, NodeId(arrival.from), NodeId(arrival.to), arrival.packet);
    }
    while matches!(polling, Polling::Timely)
        && let Some(deadline) = medium.next_deadline().filter(|d| *d <= us(until_us))
    {
        events.extend(medium.poll(deadline));
    }
    events.extend(std::iter::from_fn(|| medium.poll(us(until_us))));
    events
}

fn compare(cell: &MediumParams, stations: &[StationParams], arrivals: &[Arrival], seed: u64) {
    let until = arrivals.last().map_or(0, |a| a.at_us) + 60_000;
    let mut oracle = Oracle::new(cell, stations, seed);
    oracle.run(arrivals, until);
    let mut medium = Medium::new(cell.clone(), stations.to_vec(), seed);
    let events = run(&mut medium, arrivals, until, Polling::Timely);
    for (found, expected) in events.iter().zip(&oracle.events) {
        assert_eq!(found, expected);
    }
    assert_eq!(events.len(), oracle.events.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_medium_does_what_a_brute_force_dcf_does_under_load(
        cell in cell(), stations in prop::collection::vec(station(), 1..6), traffic in traffic(true), seed in any::<u64>(),
    ) {
        compare(&cell, &stations, &arrivals(&traffic, stations.len() as u16), seed);
    }

    #[test]
    fn the_medium_does_what_a_brute_force_dcf_does_when_mostly_idle(
        cell in cell(), stations in prop::collection::vec(station(), 1..6), traffic in traffic(false), seed in any::<u64>(),
    ) {
        compare(&cell, &stations, &arrivals(&traffic, stations.len() as u16), seed);
    }

    #[test]
    fn late_polling_gives_the_events_of_timely_polling(
        cell in cell(), stations in prop::collection::vec(station(), 1..6), traffic in traffic(false), seed in any::<u64>(),
    ) {
        let arrivals = arrivals(&traffic, stations.len() as u16);
        let until = arrivals.last().map_or(0, |a| a.at_us) + 60_000;
        let medium = Medium::new(cell, stations, seed);
        let timely = run(&mut medium.clone(), &arrivals, until, Polling::Timely);
        let late = run(&mut medium.clone(), &arrivals, until, Polling::Late);
        prop_assert_eq!(timely, late);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn under_ns2s_rules_the_medium_does_what_a_brute_force_dcf_does(
        cell in ns2_cell(), stations in prop::collection::vec(ns2_station(), 1..6), gaps in 1u64..20,
        traffic in traffic(false), seed in any::<u64>(),
    ) {
        // Frames last up to 12 ms: the gaps between packets too.
        let slow: Vec<_> =
            traffic.iter().map(|(gap, node, other, bytes)| (gap * gaps, *node, *other, *bytes)).collect();
        compare(&cell, &stations, &arrivals(&slow[..slow.len().min(30)], stations.len() as u16), seed);
    }
}

#[test]
fn saturated_cells_do_what_a_brute_force_dcf_does() {
    for n in [1u16, 2, 3, 8, 20] {
        for (seed, after_collision) in [(1, AfterCollision::Standard), (2, AfterCollision::Eifs)] {
            let cell = MediumParams { after_collision, attempts: 4, ..MediumParams::default() };
            let stations = vec![StationParams { queue_limit: 400, ..StationParams::default() }; usize::from(n)];
            let traffic: Vec<_> = (0..400u32).map(|i| (0, 1 + (i as u16 % n), 1, 1500)).collect();
            compare(&cell, &stations, &arrivals(&traffic, n), seed);
        }
    }
}
