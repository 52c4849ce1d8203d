//! Classes of traffic: who goes first and what the others pay, against ns-3.37 and against rules that hold by themselves.

use crate::common::{AP, Classed, secs, us};
use lasthop_core::packet::AccessCategory;
use lasthop_core::units::{Span, Time};
use lasthop_medium::{
    Ampdu, Band, EdcaClass, Event, Guard, Medium, MediumParams, Mode, NodeId, Rate, STATION_EDCA, Standard,
    StationParams, Timing, Width,
};

fn n_mode() -> Rate {
    let mode = Mode { standard: Standard::N, width: Width::Mhz20, streams: 1, mcs: 7, guard: Guard::Ns800 };
    Rate::of_mode(mode).unwrap()
}

/// HT20, MCS 7, 5 GHz.
fn params() -> MediumParams {
    MediumParams {
        standard: Standard::N,
        band: Band::Ghz5,
        timing: Timing::Ns3,
        attempts: 1_000_000,
        rts_threshold: 65_535_000,
        ..MediumParams::default()
    }
}

fn station() -> StationParams {
    let (standard, ampdu) = (Standard::N, Ampdu::of(Standard::N));
    // Reference runs have no TXOP limits.
    let edca = STATION_EDCA.map(|class| EdcaClass { txop_limit: Span::ZERO, ..class });
    StationParams { edca, standard, rate: n_mode(), queue_limit: 1000, ampdu, ..StationParams::default() }
}

/// Delays in ms of a packet of 200 B every 10 ms from the last of `n + 1` stations, sorted; the others' Mbit/s of UDP payload.
fn voice_beside(n: u16, class: AccessCategory, seconds: u64, seed: u64) -> (Vec<f64>, f64) {
    let mut medium = Medium::new(params(), vec![station(); usize::from(n) + 1], seed);
    let bulk = |number| Classed { number, bytes: 1500, class: AccessCategory::Be };
    for station in 1..=n {
        (0..600).for_each(|number| medium.on_packet(Time::ZERO, NodeId(station), AP, bulk(number)));
    }
    let (warm, end) = (secs(1), secs(1 + seconds));
    let start = |number: u32| us(10_000 * u64::from(number) + 7);
    let (mut delays, mut bytes, mut next) = (Vec::new(), 0, 0);
    while start(next) < end {
        let at = start(next);
        while let Some(event) = medium.poll(at) {
            let Event::Delivered { at, from, packet, .. } = event else { panic!("nothing is lost") };
            if from.0 == n + 1 {
                delays.push(at.since(start(packet.number)).as_millis_f64());
            } else {
                bytes += if at > warm { 1472 } else { 0 };
                medium.on_packet(at, from, AP, bulk(0));
            }
        }
        medium.on_packet(at, NodeId(n + 1), AP, Classed { number: next, bytes: 200, class });
        next += 1;
    }
    delays.sort_by(f64::total_cmp);
    (delays, bytes as f64 * 8.0 / seconds as f64 / 1e6)
}

fn quantile(sorted: &[f64], q: f64) -> f64 {
    sorted[(sorted.len() as f64 * q) as usize]
}

#[test]
fn voice_beside_best_effort_waits_as_in_ns3() {
    // Reference sheet c: 5 saturated uploads of n and a packet of 200 B every 10 ms, marked VO.
    let (mut delays, mut mbps) = (Vec::new(), 0.0);
    for seed in 1..=3 {
        let (more, rate) = voice_beside(5, AccessCategory::Vo, 60, seed);
        delays.extend(more);
        mbps += rate / 3.0;
    }
    delays.sort_by(f64::total_cmp);
    for (q, expected, within) in [(0.5, 4.79, 0.08), (0.95, 18.7, 0.15), (0.99, 28.4, 0.15)] {
        let found = quantile(&delays, q);
        println!("p{}: {found:.2} ms, ns-3 {expected}", q * 100.0);
        assert!((found / expected - 1.0).abs() < within, "p{}: {found} for {expected}", q * 100.0);
    }
    println!("{mbps:.2} Mbit/s, ns-3 48.44");
    assert!((mbps / 48.44 - 1.0).abs() < 0.02, "{mbps}");
}
