//! The model of classes and aggregates against one that looks at the medium every microsecond, event by event.

use crate::common::edca_oracle::{Arrival, Oracle};
use crate::common::{Classed, us};
use lasthop_core::packet::AccessCategory;
use lasthop_core::units::Span;
use lasthop_medium::{
    ACCESS_POINT_EDCA, Ampdu, Band, Edca, Event, Guard, Loss, Medium, MediumParams, MissedBlockAck, Mode, NodeId, Rate,
    STATION_EDCA, Standard, StationParams, Width,
};
use proptest::prelude::*;

const END_US: u64 = 120_000;

fn stations() -> impl Strategy<Value = Vec<StationParams>> {
    let ampdu = prop::option::weighted(0.8, (1_500u32..65_536, 1u16..=64, 500u64..5_485)).prop_map(|limits| {
        limits.map(|(bytes, packets, us)| Ampdu { bytes, packets, time: Span::from_micros(us), window: 64 })
    });
    let windowed = (ampdu, prop::bool::weighted(0.3)).prop_map(|(ampdu, narrow)| {
        // A window that is smaller than what frames could hold.
        ampdu.map(|ampdu| Ampdu { window: if narrow { 8 } else { 64 }, ..ampdu })
    });
    let station = (0u8..8, prop::bool::weighted(0.2), windowed, 2usize..40, 1.0..14.0f64);
    prop::collection::vec(station, 1..5).prop_map(|stations| {
        let station = |(mcs, legacy, ampdu, queue_limit, distance_m)| {
            let mode = Mode { standard: Standard::N, width: Width::Mhz20, streams: 1, mcs, guard: Guard::Ns800 };
            let (standard, rate) =
                if legacy { (Standard::G, Rate::OFDM_24) } else { (Standard::N, Rate::of_mode(mode).unwrap()) };
            StationParams { standard, rate, ampdu, queue_limit, distance_m, ..StationParams::default() }
        };
        stations.into_iter().map(station).collect()
    })
}

fn edca(of: Edca) -> impl Strategy<Value = Edca> {
    let class = (any::<bool>(), prop::option::weighted(0.3, 1u32..5), prop::option::weighted(0.3, 2u64..20));
    prop::collection::vec(class, 4).prop_map(move |classes| {
        let mut edca = of;
        for (class, (aggregates, attempts, lifetime_ms)) in edca.iter_mut().zip(classes) {
            class.aggregates |= aggregates;
            class.attempts = attempts;
            class.lifetime = lifetime_ms.map(Span::from_millis);
        }
        edca
    })
}

fn cells() -> impl Strategy<Value = (MediumParams, Vec<StationParams>)> {
    let loss = prop_oneof![
        3 => Just(Loss::None),
        2 => (0.0..0.6f64).prop_map(|rate| Loss::Fixed { rate }),
        2 => Just(Loss::Shadowing { exponent: 4.0, deviation_db: 9.0 }),
    ];
    let limits = (2u32..8, any::<bool>(), prop_oneof![Just(65_535u32), 100u32..3_000], any::<bool>(), 2usize..60);
    (stations(), loss, limits, edca(ACCESS_POINT_EDCA), edca(STATION_EDCA)).prop_map(
        |(mut stations, loss, (attempts, bar, rts_threshold, rts_for_aggregates, queue_limit), own, edca)| {
            stations.iter_mut().for_each(|station| station.edca = edca);
            let params = MediumParams {
                standard: Standard::N,
                band: Band::Ghz5,
                attempts,
                missed_block_ack: if bar { MissedBlockAck::Bar } else { MissedBlockAck::Repeat },
                rts_threshold,
                rts_for_aggregates,
                queue_limit,
                edca: own,
                loss,
                ..MediumParams::default()
            };
            (params, stations)
        },
    )
}

fn arrivals() -> impl Strategy<Value = Vec<(u64, u16, bool, u32, usize)>> {
    // Bursts, so that aggregates form.
    let one = (0u64..END_US, 1u16..5, any::<bool>(), prop_oneof![Just(1500u32), 40u32..1500], 0usize..4, 1usize..30);
    prop::collection::vec(one, 1..40).prop_map(|bursts| {
        let burst = |(at, station, up, bytes, class, count)| {
            (0..count as u64).map(move |i| (at + i * (i % 3), station, up, bytes, class))
        };
        bursts.into_iter().flat_map(burst).collect()
    })
}

fn fast(params: &MediumParams, stations: &[StationParams], arrivals: &[Arrival], seed: u64) -> Vec<Event<Classed>> {
    let mut medium = Medium::new(params.clone(), stations.to_vec(), seed);
    let mut events = Vec::new();
    for arrival in arrivals {
        let at = us(arrival.at_us);
        events.extend(std::iter::from_fn(|| medium.poll(at)));
        medium.on_packet(at, NodeId(arrival.from), NodeId(arrival.to), arrival.packet);
    }
    events.extend(std::iter::from_fn(|| medium.poll(us(END_US))));
    events
}

/// Events of one moment have no order between nodes.
fn ordered(mut events: Vec<Event<Classed>>) -> Vec<Event<Classed>> {
    let key = |event: &Event<Classed>| match event {
        Event::Delivered { at, from, to, .. } => (*at, from.0, to.0, 0),
        Event::Dropped { at, node, packet, .. } => (*at, node.0, 0, 1 + packet.number),
    };
    events.sort_by_key(key);
    events
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn every_event_is_the_oracles(
        (params, stations) in cells(), arrivals in arrivals(), seed in any::<u64>(),
    ) {
        let count = stations.len() as u16;
        let arrival = |(at_us, station, up, bytes, class): (u64, u16, bool, u32, usize)| {
            let station = (station - 1) % count + 1;
            let (from, to) = if up { (station, 0) } else { (0, station) };
            let packet = Classed { number: 0, bytes, class: AccessCategory::ALL[class] };
            Arrival { at_us: at_us.min(END_US), from, to, packet }
        };
        let mut arrivals: Vec<Arrival> = arrivals.into_iter().map(arrival).collect();
        arrivals.sort_by_key(|arrival| arrival.at_us);
        arrivals.iter_mut().zip(0..).for_each(|(arrival, number)| arrival.packet.number = number);
        let mut oracle = Oracle::new(&params, &stations, seed);
        oracle.run(&arrivals, END_US);
        let (found, expected) = (ordered(fast(&params, &stations, &arrivals, seed)), ordered(oracle.events));
        for (found, expected) in found.iter().zip(&expected) {
            prop_assert_eq!(found, expected);
        }
        prop_assert_eq!(found.len(), expected.len());
    }
}
