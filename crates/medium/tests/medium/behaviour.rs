//! What the medium promises its hosts: packets are conserved, losses have the stated shares, changes take effect.

use std::collections::BTreeMap;

use crate::common::{AP, Numbered, g_stations, saturate_up, secs, us};
use lasthop_core::aqm::Discipline;
use lasthop_core::packet::FlowKind;
use lasthop_core::units::{Span, Time};
use lasthop_medium::{
    DropPlace, Event, Loss, Medium, MediumParams, NodeId, Radio, Rate, Standard, StationParams, Timing,
};
use proptest::prelude::*;

fn packet(number: u32, bytes: u32) -> Numbered {
    Numbered { number, bytes }
}

fn drain(medium: &mut Medium<Numbered>, until: Time) -> Vec<Event<Numbered>> {
    std::iter::from_fn(|| medium.poll(until)).collect()
}

/// Sends `count` packets up from station 1, one at a time; how many were delivered and dropped.
fn one_by_one(medium: &mut Medium<Numbered>, count: u32) -> (u32, u32) {
    let (mut delivered, mut dropped) = (0, 0);
    for number in 0..count {
        let start = secs(u64::from(number));
        medium.on_packet(start, NodeId(1), AP, packet(number, 1000));
        for event in drain(medium, start + Span::from_millis(999)) {
            match event {
                Event::Delivered { .. } => delivered += 1,
                Event::Dropped { .. } => dropped += 1,
            }
        }
    }
    (delivered, dropped)
}

#[test]
fn a_lone_packet_is_delivered_at_the_end_of_its_frame() {
    let mut medium = Medium::new(MediumParams::default(), g_stations(1), 1);
    medium.on_packet(us(1000), NodeId(1), AP, packet(7, 1500));
    assert!(medium.next_deadline().is_some_and(|at| at <= us(1254)), "not later than what there is to see");
    let delivered = Event::Delivered { at: us(1254), from: NodeId(1), to: AP, packet: packet(7, 1500) };
    assert_eq!(drain(&mut medium, us(5000)), [delivered]);
    assert_eq!(medium.next_deadline(), None);
}

#[test]
fn an_answer_stamped_with_the_delivery_is_on_time_however_late_the_poll() {
    let answer_at = |poll_at: Time| {
        let mut medium = Medium::new(MediumParams::default(), g_stations(1), 1);
        medium.on_packet(us(1000), AP, NodeId(1), packet(1, 1500));
        let at = medium.poll(poll_at).unwrap().at();
        medium.on_packet(at, NodeId(1), AP, packet(2, 52));
        medium.poll(us(9000)).unwrap().at()
    };
    assert_eq!(answer_at(us(1254)), answer_at(us(4000)));
}

#[test]
fn a_stamp_older_than_what_is_committed_counts_as_now() {
    let mut medium = Medium::new(MediumParams::default(), g_stations(2), 1);
    medium.on_packet(us(1000), NodeId(1), AP, packet(1, 1500));
    assert_eq!(drain(&mut medium, us(5000)).len(), 1);
    medium.on_packet(us(500), NodeId(2), AP, packet(2, 1500));
    assert!(drain(&mut medium, us(5000))[0].at() > us(1254));
}

#[test]
fn a_loss_rate_p_with_k_attempts_leaves_p_to_the_k() {
    for (attempts, expected) in [(1, 0.5), (2, 0.25), (4, 0.0625)] {
        let params = MediumParams { attempts, loss: Loss::Fixed { rate: 0.5 }, ..MediumParams::default() };
        let (delivered, dropped) = one_by_one(&mut Medium::new(params, g_stations(1), 5), 40_000);
        assert_eq!(delivered + dropped, 40_000);
        let residual = f64::from(dropped) / 40_000.0;
        println!("{attempts} attempts: {residual}");
        assert!((residual / expected - 1.0).abs() < 0.05, "{attempts} attempts: {residual}");
    }
}

#[test]
fn short_frames_have_attempts_of_their_own() {
    let params = MediumParams {
        attempts: 1,
        short_attempts: Some(3),
        rts_threshold: 500,
        loss: Loss::Fixed { rate: 1.0 },
        ..MediumParams::default()
    };
    let mut medium = Medium::new(params, g_stations(1), 1);
    medium.on_packet(us(0), NodeId(1), AP, packet(1, 400));
    medium.on_packet(us(0), NodeId(1), AP, packet(2, 1400));
    assert_eq!(drain(&mut medium, secs(1)).len(), 2);
    let stats = medium.snapshot(secs(1)).nodes[1];
    assert_eq!((stats.frames, stats.attempts, stats.retries, stats.given_up), (2, 4, 2, 2));
}

#[test]
fn real_time_packets_have_attempts_of_their_own() {
    let params = MediumParams {
        attempts: 5,
        realtime_attempts: Some(2),
        loss: Loss::Fixed { rate: 1.0 },
        ..MediumParams::default()
    };
    let mut medium = Medium::new(params, g_stations(1), 1);
    let mut attempts_of = |number: u32, at: Time| {
        let before = medium.snapshot(at).nodes[1].attempts;
        medium.on_packet(at, NodeId(1), AP, packet(number, 400));
        assert_eq!(drain(&mut medium, at + Span::from_millis(999)).len(), 1);
        medium.snapshot(at).nodes[1].attempts - before
    };
    assert_eq!((attempts_of(1, secs(0)), attempts_of(1_000_000, secs(1))), (5, 2));
    medium.set_realtime_attempts(None);
    medium.on_packet(secs(2), NodeId(1), AP, packet(1_000_001, 400));
    drain(&mut medium, secs(3));
    assert_eq!(medium.snapshot(secs(3)).nodes[1].attempts, 5 + 2 + 5);
}

#[test]
fn shadowed_frames_are_lost_as_often_as_the_papers_radios_say() {
    let sap_law = MediumParams {
        attempts: 1,
        loss: Loss::Shadowing { exponent: 4.0, deviation_db: 9.0 },
        ..MediumParams::default()
    };
    let arq = MediumParams {
        standard: Standard::B,
        attempts: 1,
        power_w: 1e-3,
        loss: Loss::Shadowing { exponent: 2.0, deviation_db: 7.5 },
        ..MediumParams::default()
    };
    let arq_station =
        StationParams { standard: Standard::B, rate: Rate::DSSS_11, power_w: 1e-3, ..StationParams::default() };
    for (params, stations, expected) in [(sap_law, g_stations(1), 0.028), (arq, vec![arq_station], 0.045)] {
        let (_, dropped) = one_by_one(&mut Medium::new(params, stations, 3), 50_000);
        let share = f64::from(dropped) / 50_000.0;
        println!("lost {share}, expected {expected}");
        assert!((share - expected).abs() < 0.003, "{share} for {expected}");
    }
}

#[test]
fn a_lost_ack_neither_duplicates_nor_drops_the_packet() {
    let params = MediumParams { attempts: 3, loss: Loss::Fixed { rate: 0.6 }, ..MediumParams::default() };
    let mut medium = Medium::new(params, g_stations(1), 9);
    let (delivered, dropped) = one_by_one(&mut medium, 20_000);
    assert_eq!(delivered + dropped, 20_000);
    let stats = medium.snapshot(secs(20_000)).nodes[1];
    assert!(stats.given_up > u64::from(dropped), "some packets arrive although their sender gives up");
}

#[test]
fn capture_lets_the_near_station_through() {
    let cell = |capture_db| MediumParams {
        attempts: 1_000,
        loss: Loss::Shadowing { exponent: 4.0, deviation_db: 1.0 },
        radio: Radio { capture_db, ..Radio::default() },
        ..MediumParams::default()
    };
    let stations = || {
        let mut stations = g_stations(2);
        (stations[0].distance_m, stations[1].distance_m) = (2.0, 10.0);
        stations
    };
    let collided = |capture_db| {
        let mut medium = Medium::new(cell(capture_db), stations(), 1);
        let delivered = saturate_up(&mut medium, 2, 1500, secs(20));
        let nodes = medium.snapshot(secs(20)).nodes;
        assert_eq!(nodes[1].collisions, nodes[2].collisions);
        (nodes[1].retries, nodes[2].retries, delivered)
    };
    // 28 dB apart: the near one always survives at 10 dB, never at 90 dB.
    let (near, far, _) = collided(10.0);
    assert!(near == 0 && far > 1000, "{near} {far}");
    let (near, far, _) = collided(90.0);
    assert!(near > 1000 && far > 1000, "{near} {far}");
}

#[test]
fn a_slower_station_takes_longer_from_its_next_frame_on() {
    let mut medium = Medium::new(MediumParams::default(), g_stations(1), 1);
    medium.set_station_rate(NodeId(1), Rate::OFDM_6);
    medium.on_packet(us(0), AP, NodeId(1), packet(1, 1500));
    assert_eq!(drain(&mut medium, secs(1))[0].at(), us(20 + 4 * 513 + 6));
}

#[test]
fn a_station_that_walks_away_loses_its_frames() {
    let loss = Loss::Shadowing { exponent: 4.0, deviation_db: 9.0 };
    let mut medium = Medium::new(MediumParams { loss, ..MediumParams::default() }, g_stations(1), 1);
    medium.set_distance(NodeId(1), 1000.0);
    medium.on_packet(us(0), NodeId(1), AP, packet(1, 1500));
    assert!(matches!(drain(&mut medium, secs(1))[..], [Event::Dropped { place: DropPlace::Channel, .. }]));
}

#[test]
fn a_full_queue_drops_and_the_frame_in_service_is_not_counted() {
    let mut medium = Medium::new(MediumParams { queue_limit: 2, ..MediumParams::default() }, g_stations(1), 1);
    for number in 0..4 {
        medium.on_packet(us(0), AP, NodeId(1), packet(number, 1500));
    }
    assert_eq!(medium.backlog(AP), 3);
    let dropped = Event::Dropped { at: us(0), node: AP, place: DropPlace::Queue, packet: packet(3, 1500) };
    assert_eq!(medium.poll(us(0)), Some(dropped));
    medium.set_queue_limit(AP, 3);
    medium.on_packet(us(0), AP, NodeId(1), packet(4, 1500));
    assert_eq!(drain(&mut medium, secs(1)).len(), 4);
    assert_eq!(medium.snapshot(secs(1)).queues[0].dropped, 1);
}

/// The discipline may only order what the firmware has no room for, in either model of the channel.
#[test]
fn the_firmware_takes_packets_as_they_leave_the_discipline_and_keeps_their_order() {
    for hidden in [false, true] {
        let queue = Discipline::Chap(lasthop_core::aqm::chap::Params::default(), FlowKind::Connection);
        let params = MediumParams { queue, queue_limit: 30, firmware_queue: 10, hidden, ..MediumParams::default() };
        let mut medium = Medium::new(params, g_stations(1), 1);
        (0..41).for_each(|number| medium.on_packet(us(0), AP, NodeId(1), packet(number, 1500)));
        // One in service, ten in the firmware.
        assert_eq!((medium.backlog(AP), medium.discipline_backlog()), (41, 30));
        medium.on_packet(us(0), AP, NodeId(1), packet(41, 1500));
        let gone: Vec<_> = drain(&mut medium, us(0)).iter().map(Event::at).collect();
        assert_eq!(gone, [us(0)], "it is full");
        let events = drain(&mut medium, secs(1));
        assert_eq!((events.len(), medium.backlog(AP)), (41, 0));
        let queue = medium.snapshot(secs(1)).queues[0];
        assert_eq!((queue.max_packets, queue.dropped, queue.packets), (40, 1, 0));
        assert!(queue.mean_sojourn_ms > 4.0 && queue.p99_sojourn_ms < 25.0, "{queue:?}");
    }
}

#[test]
fn firmware_behind_a_plain_queue_lengthens_it() {
    let params = MediumParams { queue_limit: 2, firmware_queue: 3, ..MediumParams::default() };
    let mut medium = Medium::new(params, g_stations(1), 1);
    (0..6).for_each(|number| medium.on_packet(us(0), AP, NodeId(1), packet(number, 1500)));
    assert_eq!((medium.backlog(AP), medium.discipline_backlog()), (6, 2));
    medium.set_queue_limit(AP, 3);
    (6..8).for_each(|number| medium.on_packet(us(0), AP, NodeId(1), packet(number, 1500)));
    assert_eq!(drain(&mut medium, secs(1)).len(), 8);
    assert_eq!(medium.snapshot(secs(1)).queues[0].dropped, 1);
}

#[test]
fn an_rts_shields_the_data_from_collisions() {
    let cell = |rts_threshold| MediumParams { rts_threshold, attempts: 1_000, ..MediumParams::default() };
    let throughput = |threshold, n: u16| {
        let mut medium = Medium::new(cell(threshold), g_stations(usize::from(n)), 1);
        saturate_up(&mut medium, n, 1500, secs(10)).iter().sum::<u64>()
    };
    assert!(throughput(500, 1) < throughput(65_535, 1), "alone it only costs");
    // DIFS 28, backoff 67.5, RTS 34, CTS 34, data 254, ACK 34, 3 SIFS: 481.5 us.
    let expected = 10.0 / 481.5e-6;
    assert!((throughput(500, 1) as f64 / expected - 1.0).abs() < 0.003);
    assert!(throughput(500, 40) > throughput(65_535, 40), "in a crowd it pays");
}

#[test]
fn a_b_station_makes_everybody_slower() {
    let alone = saturate_up(&mut Medium::new(MediumParams::default(), g_stations(1), 1), 1, 1500, secs(5))[1];
    let mut stations = g_stations(2);
    stations[1].standard = Standard::B;
    let mut medium = Medium::new(MediumParams::default(), stations, 1);
    // The b station is silent; its presence costs a CTS-to-self and long slots.
    let mixed = saturate_up(&mut medium, 1, 1500, secs(5))[1];
    // DIFS 50, backoff 150, CTS 248, data 254, ACK 34, 2 SIFS.
    let expected = 5.0 / 756e-6;
    assert!((mixed as f64 / expected - 1.0).abs() < 0.01, "{mixed} for {expected}");
    assert!(mixed < alone);
}

/// What happened to each packet, per pair; asserts order along the way.
fn follow(events: &[Event<Numbered>], seen: &mut BTreeMap<u32, &'static str>) {
    let mut last_at = Time::ZERO;
    let mut last_number = BTreeMap::new();
    for event in events {
        assert!(event.at() >= last_at, "events are in order of time");
        last_at = event.at();
        let (number, what) = match event {
            Event::Delivered { from, to, packet, .. } => {
                let before = last_number.insert((*from, *to), packet.number);
                assert!(before < Some(packet.number), "a pair's packets stay in order");
                (packet.number, "delivered")
            }
            Event::Dropped { packet, .. } => (packet.number, "dropped"),
        };
        assert_eq!(seen.insert(number, what), None, "packet {number} appears once");
    }
}

fn loss() -> impl Strategy<Value = Loss> {
    prop_oneof![
        Just(Loss::None),
        (0.0f64..0.8).prop_map(|rate| Loss::Fixed { rate }),
        (2.0f64..4.0, 0.0f64..12.0).prop_map(|(exponent, deviation_db)| Loss::Shadowing { exponent, deviation_db }),
    ]
}

proptest! {
    #[test]
    fn no_packet_is_lost_twice_duplicated_or_reordered(
        loss in loss(), ns2 in any::<bool>(), attempts in 1u32..5, queue_limit in 0usize..10,
        rts_threshold in prop::sample::select(vec![65_535, 300]), stations in 1u16..8, seed in any::<u64>(),
        traffic in prop::collection::vec((0u64..800_000, 0u16..9, 1u32..1500, 0u64..3_000_000), 1..200),
    ) {
        let timing = if ns2 { Timing::Ns2G } else { Timing::Standard };
        let params = MediumParams { loss, timing, attempts, queue_limit, rts_threshold, ..MediumParams::default() };
        let mut medium = Medium::new(params, g_stations(usize::from(stations)), seed);
        let mut seen = BTreeMap::new();
        let mut now = Time::ZERO;
        let mut events = Vec::new();
        for (number, (gap, node, bytes, late)) in traffic.iter().enumerate() {
            now += Span::from_nanos(*gap);
            let station = NodeId(1 + node % stations);
            let (from, to) = if node % 2 == 0 { (AP, station) } else { (station, AP) };
            // The host wakes up late, and stamps some packets with the past.
            events.extend(drain(&mut medium, now + Span::from_nanos(late / 10)));
            medium.on_packet(now, from, to, packet(number as u32, *bytes));
        }
        events.extend(drain(&mut medium, now + Span::from_millis(1)));
        follow(&events, &mut seen);
        let left: usize = (0..=stations).map(|n| medium.backlog(NodeId(n))).sum();
        prop_assert_eq!(seen.len() + left, traffic.len());
        events.extend(drain(&mut medium, now + Span::from_secs(3600)));
        seen.clear();
        follow(&events, &mut seen);
        prop_assert_eq!(seen.len(), traffic.len());
        prop_assert_eq!(medium.next_deadline(), None);
    }
}
