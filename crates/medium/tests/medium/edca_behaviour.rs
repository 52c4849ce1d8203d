//! What the model of classes and aggregates promises its hosts: every packet arrives once and in order or is dropped, captures
//! agree with figures, changes take effect, and one seed is one run.

use std::collections::BTreeMap;

use crate::common::{AP, Classed, saturate_up, secs, us};
use lasthop_core::aqm::{Discipline, chap, codel, drr, flow_queues};
use lasthop_core::packet::{AccessCategory, FlowKind};
use lasthop_core::units::{Span, Time};
use lasthop_medium::{
    Ampdu, AttemptFate, Band, DropPlace, Event, Guard, Loss, Medium, MediumParams, MissedBlockAck, Mode, NodeId, Rate,
    Standard, StationParams, Timing, Width,
};
use proptest::prelude::*;

fn rate(standard: Standard, width: Width, streams: u8, mcs: u8) -> Rate {
    Rate::of_mode(Mode { standard, width, streams, mcs, guard: Guard::Ns800 }).unwrap()
}

fn params() -> MediumParams {
    MediumParams { standard: Standard::Ac, band: Band::Ghz5, queue_limit: 400, ..MediumParams::default() }
}

fn station() -> StationParams {
    let (standard, ampdu) = (Standard::Ac, Ampdu::of(Standard::Ac));
    let rate = rate(standard, Width::Mhz80, 2, 8);
    StationParams { standard, rate, ampdu, queue_limit: 400, ..StationParams::default() }
}

fn packet(number: u32, bytes: u32) -> Classed {
    Classed { number, bytes, class: AccessCategory::Be }
}

fn drain(medium: &mut Medium<Classed>, until: Time) -> Vec<Event<Classed>> {
    std::iter::from_fn(|| medium.poll(until)).collect()
}

#[test]
fn a_lone_packet_goes_at_the_next_boundary_and_is_delivered_at_the_end_of_its_frame() {
    let mut medium = Medium::new(params(), vec![station()], 1);
    medium.on_packet(us(1000), NodeId(1), AP, packet(7, 1500));
    assert!(medium.next_deadline().is_some_and(|at| at <= us(1100)), "not later than what there is to see");
    // AIFS of 3 slots ended at 27 us; the next multiple of 9 us behind it after 1000 is 1008. 44 us of preamble and
    // ceil((22 + 8 x 1542) / 2808) = 5 symbols of 4 us.
    let delivered = Event::Delivered { at: us(1008 + 44 + 20), from: NodeId(1), to: AP, packet: packet(7, 1500) };
    assert_eq!(drain(&mut medium, us(5000)), [delivered]);
    assert_eq!(medium.next_deadline(), None);
}

#[test]
fn the_packets_of_a_frame_arrive_together_and_the_next_follow_in_one_frame() {
    let mut medium = Medium::new(params(), vec![station()], 1);
    (0..50).for_each(|number| medium.on_packet(us(1000), AP, NodeId(1), packet(number, 1500)));
    let events = drain(&mut medium, secs(1));
    let numbers: Vec<u32> = events
        .iter()
        .map(|event| match event {
            Event::Delivered { packet, .. } => packet.number,
            Event::Dropped { .. } => panic!("nothing is lost"),
        })
        .collect();
    assert_eq!(numbers, (0..50).collect::<Vec<_>>());
    // The first came alone; 42 fit into 65,535 bytes.
    let ends: Vec<usize> = events.chunk_by(|a, b| a.at() == b.at()).map(<[_]>::len).collect();
    assert_eq!(ends, [42, 8]);
}

fn disciplines() -> impl Strategy<Value = (Discipline, usize)> {
    let kind = FlowKind::Connection;
    prop_oneof![
        4 => Just((Discipline::Fifo, 0)),
        1 => (0usize..80).prop_map(|firmware| (Discipline::Codel(codel::Params::default()), firmware)),
        1 => (0usize..80).prop_map(move |firmware| (Discipline::FqCodel(flow_queues::Params::default(), kind), firmware)),
        1 => (0usize..80).prop_map(move |firmware| (Discipline::Drr(drr::Params::default(), kind), firmware)),
        1 => (0usize..80).prop_map(move |firmware| (Discipline::Chap(chap::Params::default(), kind), firmware)),
    ]
}

fn any_params() -> impl Strategy<Value = (MediumParams, Vec<StationParams>)> {
    let loss = prop_oneof![
        Just(Loss::None),
        (0.0..0.9f64).prop_map(|rate| Loss::Fixed { rate }),
        Just(Loss::Shadowing { exponent: 4.0, deviation_db: 9.0 }),
    ];
    let kind = (any::<bool>(), any::<bool>(), any::<bool>(), 1u32..8, prop_oneof![Just(65_535u32), 100u32..4000]);
    let drawn = (0u8..4, any::<bool>(), prop_oneof![Just(0u32), 3_000u32..11_406], 1.0..16.0f64, 1usize..60);
    let stations = prop::collection::vec(drawn, 1..5);
    (stations, loss, kind, disciplines(), prop::option::weighted(0.3, 1u64..30)).prop_map(
        |(stations, loss, (five, ns3, bar, attempts, rts_threshold), (queue, firmware_queue), lifetime)| {
            let stations = stations.into_iter().map(|(kind, aggregates, amsdu_bytes, distance_m, queue_limit)| {
                let (standard, rate) = match kind {
                    0 if !five => (Standard::B, Rate::DSSS_11),
                    0 | 1 => (Standard::G, Rate::OFDM_54),
                    2 => (Standard::N, rate(Standard::N, Width::Mhz40, 2, 5)),
                    _ => (Standard::Ax, rate(Standard::Ax, Width::Mhz20, 1, 9)),
                };
                let ampdu = Ampdu::of(standard).filter(|_| aggregates);
                let mut edca = lasthop_medium::STATION_EDCA;
                edca.iter_mut().for_each(|class| class.lifetime = lifetime.map(Span::from_millis));
                StationParams { standard, rate, ampdu, amsdu_bytes, distance_m, queue_limit, edca, ..station() }
            });
            let params = MediumParams {
                standard: Standard::Ax,
                band: if five { Band::Ghz5 } else { Band::Ghz2 },
                timing: if ns3 { Timing::Ns3 } else { Timing::Standard },
                missed_block_ack: if bar { MissedBlockAck::Bar } else { MissedBlockAck::Repeat },
                attempts,
                rts_threshold,
                queue,
                firmware_queue,
                queue_limit: 100,
                loss,
                ..MediumParams::default()
            };
            (params, stations.collect())
        },
    )
}

fn bursts() -> impl Strategy<Value = Vec<(u64, u16, bool, u32, usize, u64)>> {
    prop::collection::vec(
        (0u64..200_000, 1u16..5, any::<bool>(), prop_oneof![Just(1500u32), 20u32..2300], 0usize..4, 1u64..50),
        1..30,
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Also across changes of rate, distance, loss and limits.
    #[test]
    fn every_packet_arrives_once_and_in_order_or_is_dropped(
        (params, stations) in any_params(), mut bursts in bursts(), seed in any::<u64>(),
    ) {
        bursts.sort_unstable();
        let count = stations.len() as u16;
        let mut runs = Vec::new();
        for records in [true, false] {
            let mut medium = Medium::new(params.clone(), stations.clone(), seed);
            medium.record_attempts(records);
            let (mut events, mut came, mut seen) = (Vec::new(), Vec::new(), 0);
            let mut poll = |medium: &mut Medium<Classed>, at: Time| {
                while let Some(event) = medium.poll(at) {
                    assert!(event.at() <= at);
                    events.push(event);
                }
                while medium.poll_attempt().is_some() {
                    seen += 1;
                }
            };
            for (at, station, up, bytes, class, packets) in &bursts {
                let station = NodeId((station - 1) % count + 1);
                let (from, to) = if *up { (station, AP) } else { (AP, station) };
                poll(&mut medium, us(*at));
                for _ in 0..*packets {
                    let packet = Classed { number: came.len() as u32, bytes: *bytes, class: AccessCategory::ALL[*class] };
                    came.push((from, to, packet));
                    medium.on_packet(us(*at), from, to, packet);
                }
                match at % 7 {
                    0 => medium.set_station_rate(station, if params.band == Band::Ghz5 { Rate::OFDM_6 } else { Rate::DSSS_1 }),
                    1 => medium.set_distance(station, 4.0),
                    2 => medium.set_loss(Loss::Fixed { rate: 0.2 }),
                    3 => medium.set_queue_limit(from, 20),
                    4 => medium.set_attempts(3, Some(5)),
                    _ => {}
                }
            }
            // Every deadline is at or before the next event.
            while let Some(deadline) = medium.next_deadline() {
                if deadline > us(200_000) {
                    break;
                }
                poll(&mut medium, deadline);
            }
            poll(&mut medium, secs(10_000));
            let at = secs(10_000);
            for node in 0..=count {
                prop_assert_eq!(medium.backlog(NodeId(node)), 0);
                prop_assert_eq!(medium.snapshot(at).queues[usize::from(node)].packets, 0);
                prop_assert_eq!(medium.snapshot(at).queues[usize::from(node)].bytes, 0);
            }
            prop_assert!(events.is_sorted_by_key(Event::at));
            let told: u64 = medium.snapshot(at).nodes.iter().map(|node| node.attempts).sum();
            prop_assert!(!records || seen > 0 || told == 0);
            let mut fates: BTreeMap<u32, u32> = BTreeMap::new();
            let mut last: BTreeMap<(u16, u16, AccessCategory), u32> = BTreeMap::new();
            for event in &events {
                let packet = match event {
                    Event::Delivered { from, to, packet, .. } => {
                        let (of, there, sent) = &came[packet.number as usize];
                        prop_assert_eq!((of, there, sent), (from, to, packet));
                        let no_classes = !stations[usize::from(from.0.max(to.0)) - 1].standard.has_classes();
                        // A discipline orders flows, not classes; here all packets are of one flow.
                        let class = if no_classes { AccessCategory::Be } else { packet.class };
                        let before = last.insert((from.0, to.0, class), packet.number);
                        prop_assert!(before.is_none_or(|before| before < packet.number), "{before:?} then {packet:?}");
                        packet
                    }
                    Event::Dropped { packet, .. } => packet,
                };
                *fates.entry(packet.number).or_default() += 1;
            }
            prop_assert_eq!(fates.len(), came.len());
            prop_assert!(fates.values().all(|times| *times == 1));
            runs.push(events);
        }
        prop_assert!(runs[0] == runs[1], "one seed, two runs");
    }
}

#[test]
fn the_limit_of_attempts_holds_for_each_mpdu() {
    for (attempts, expected) in [(1, 0.5), (2, 0.25), (4, 0.0625)] {
        let params = MediumParams { attempts, loss: Loss::Fixed { rate: 0.5 }, ..params() };
        let mut medium = Medium::new(params, vec![station()], 5);
        let (mut dropped, mut all) = (0, 0);
        for number in 0..4000 {
            let at = us(5_000 * u64::from(number));
            (0..10).for_each(|_| medium.on_packet(at, NodeId(1), AP, packet(number, 1000)));
            for event in drain(&mut medium, at + Span::from_micros(4_999)) {
                all += 1;
                dropped += u32::from(matches!(event, Event::Dropped { place: DropPlace::Channel, .. }));
            }
        }
        let residual = f64::from(dropped) / f64::from(all);
        println!("{attempts} attempts: {residual:.4}");
        assert!(all >= 39_000 && (residual / expected - 1.0).abs() < 0.05, "{attempts} attempts: {residual}");
        assert_eq!(medium.snapshot(secs(20)).nodes[1].given_up, u64::from(dropped));
    }
}

#[test]
fn what_is_given_up_lets_go_of_what_waited_behind_it() {
    let params = MediumParams { attempts: 2, loss: Loss::Fixed { rate: 0.3 }, ..params() };
    let mut medium = Medium::new(params, vec![station()], 3);
    (0..40).for_each(|number| medium.on_packet(us(10), NodeId(1), AP, packet(number, 1000)));
    let events = drain(&mut medium, secs(1));
    let lost: Vec<_> = events.iter().filter(|event| matches!(event, Event::Dropped { .. })).collect();
    assert!(!lost.is_empty() && events.len() == 40);
    // Some delivery falls on the very moment of a drop: its packet was there before, and waited.
    let waited = |drop: &Event<Classed>| {
        events.iter().any(|event| matches!(event, Event::Delivered { .. }) && event.at() == drop.at())
    };
    assert!(lost.into_iter().any(waited));
}

#[test]
fn an_old_packet_is_dropped_for_its_age() {
    let mut params = params();
    params.edca[AccessCategory::Be.index()].lifetime = Some(Span::from_millis(5));
    params.attempts = 255;
    params.loss = Loss::Fixed { rate: 1.0 };
    let mut medium = Medium::new(params, vec![station()], 3);
    medium.on_packet(us(10), AP, NodeId(1), packet(0, 1000));
    let events = drain(&mut medium, secs(5));
    assert!(matches!(events[..], [Event::Dropped { at, .. }] if at > us(5_010) && at < us(25_000)), "{events:?}");
}

#[test]
fn an_a_msdu_carries_several_packets_in_one_mpdu() {
    let run = |amsdu_bytes, ampdu| {
        let station = StationParams { amsdu_bytes, ampdu, ..station() };
        let mut medium = Medium::new(params(), vec![station], 1);
        (0..12).for_each(|number| medium.on_packet(us(10), NodeId(1), AP, packet(number, 1000)));
        let events = drain(&mut medium, secs(1));
        let stats = medium.snapshot(secs(1)).classes[1][AccessCategory::Be.index()];
        (events.iter().map(Event::at).collect::<Vec<_>>(), stats.mpdus, stats.attempts)
    };
    // 22 bytes around each of 1000, padded to 4: three in 3,839.
    let (times, mpdus, ppdus) = run(3_839, None);
    assert_eq!((mpdus, ppdus), (4, 4));
    assert_eq!(times.chunk_by(|a, b| a == b).map(<[_]>::len).collect::<Vec<_>>(), [3, 3, 3, 3]);
    // A frame of one MPDU of 4 + 30 + 2 x 1024 + 1022 bytes: ceil((22 + 8 x 3104) / 2808) = 9 symbols.
    assert_eq!(times[0], us(18 + 9 + 44 + 36));
    let (times, mpdus, ppdus) = run(3_839, Ampdu::of(Standard::Ac));
    assert_eq!((mpdus, ppdus, times.len()), (4, 1, 12));
    assert_eq!(run(0, None).1, 12);
}

#[test]
fn after_a_missed_block_ack_a_request_costs_less_air_than_the_data() {
    let run = |missed_block_ack| {
        let loss = Loss::Shadowing { exponent: 4.0, deviation_db: 9.0 };
        let params = MediumParams { missed_block_ack, attempts: 100, loss, ..params() };
        let mut medium = Medium::new(params, vec![StationParams { distance_m: 12.0, ..station() }], 1);
        for number in 0..2_000 {
            let at = us(10_000 * u64::from(number));
            (0..30).for_each(|_| medium.on_packet(at, NodeId(1), AP, packet(number, 1500)));
            drain(&mut medium, at + Span::from_micros(9_999));
        }
        drain(&mut medium, secs(30));
        let stats = medium.snapshot(secs(30)).classes[1][AccessCategory::Be.index()];
        println!("{missed_block_ack:?}: {stats:?}");
        assert_eq!(stats.mpdus - stats.retries, 60_000);
        stats
    };
    let (repeat, bar) = (run(MissedBlockAck::Repeat), run(MissedBlockAck::Bar));
    assert_eq!(repeat.bars, 0);
    // Of the frames that miss their answer, about half had arrived: their MPDUs are not sent again.
    assert!(bar.bars > 200 && (bar.retries as f64) < 0.7 * repeat.retries as f64);
    assert!(bar.airtime < repeat.airtime);
}

#[test]
fn a_capture_shows_every_packet_of_a_frame_and_agrees_with_the_figures() {
    let loss = Loss::Fixed { rate: 0.2 };
    let params = MediumParams { loss, attempts: 50, rts_for_aggregates: true, ..params() };
    let mut medium = Medium::new(params, vec![station(); 3], 9);
    medium.record_attempts(true);
    let mut attempts = Vec::new();
    for number in 0..300u32 {
        let at = us(500 * u64::from(number));
        for node in 1..=3 {
            (0..5).for_each(|_| medium.on_packet(at, NodeId(node), AP, packet(number, 900)));
        }
        drain(&mut medium, at);
        attempts.extend(std::iter::from_fn(|| medium.poll_attempt()));
    }
    drain(&mut medium, secs(1));
    attempts.extend(std::iter::from_fn(|| medium.poll_attempt()));
    let snapshot = medium.snapshot(secs(1));
    for (number, node) in snapshot.nodes.iter().enumerate() {
        let own = || attempts.iter().filter(|a| a.from == NodeId(number as u16));
        assert_eq!(own().count() as u64, node.attempts);
        assert_eq!(own().filter(|a| a.is_retry).count() as u64, node.retries);
        assert_eq!(own().filter(|a| a.fate == AttemptFate::Collided).count() as u64, node.collisions);
    }
    assert!(attempts.is_sorted_by_key(|a| a.data.map(|data| data.start).unwrap_or(a.start())));
    let aggregates: Vec<_> = attempts
        .chunk_by(|a, b| a.aggregate.is_some() && a.aggregate.map(|x| x.number) == b.aggregate.map(|x| x.number))
        .collect();
    for frame in aggregates.iter().filter(|frame| frame[0].aggregate.is_some()) {
        let of = frame[0].aggregate.unwrap();
        assert_eq!((frame.len(), of.index), (usize::from(of.mpdus), 0));
        assert!(frame.iter().all(|a| a.data == frame[0].data && a.class == Some(AccessCategory::Be)));
        assert!(frame[0].rts.is_some() && frame[0].cts.is_some() && frame[1..].iter().all(|a| a.rts.is_none()));
        let answers = frame.iter().filter(|a| a.ack.is_some()).count();
        assert_eq!((answers, frame[frame.len() - 1].ack.is_some()), (1, true));
    }
    assert!(aggregates.iter().any(|frame| frame.iter().any(|a| a.fate == AttemptFate::Lost)));
}

#[test]
fn the_access_point_serves_a_plain_queue_in_order_of_arrival() {
    let mut medium = Medium::new(params(), vec![station(); 3], 1);
    for number in 0..90 {
        medium.on_packet(us(10 + u64::from(number)), AP, NodeId(1 + (number / 30) as u16), packet(number, 1500));
    }
    let mut order = Vec::new();
    for event in drain(&mut medium, secs(1)) {
        let Event::Delivered { to, .. } = event else { panic!("nothing is lost") };
        if order.last() != Some(&to) {
            order.push(to);
        }
    }
    assert_eq!(order, [NodeId(1), NodeId(2), NodeId(3)]);
}

#[test]
fn stations_of_b_and_g_live_beside_n() {
    // At 2.4 GHz; each station's queue full of packets of 1500 bytes.
    let n = StationParams { standard: Standard::N, rate: rate(Standard::N, Width::Mhz20, 1, 7), ..station() };
    let g = StationParams { standard: Standard::G, rate: Rate::OFDM_54, ampdu: None, ..station() };
    let b = StationParams { standard: Standard::B, rate: Rate::DSSS_11, ampdu: None, ..station() };
    let run = |stations: Vec<StationParams>| {
        let count = stations.len() as u16;
        let params = MediumParams { standard: Standard::N, ..MediumParams::default() };
        let mut medium = Medium::new(params, stations, 1);
        let delivered = saturate_up(&mut medium, count, 1500, secs(10));
        let stats = medium.snapshot(secs(10)).nodes;
        (delivered, stats.into_iter().map(|node| node.airtime.as_secs_f64()).collect::<Vec<_>>())
    };
    let (alone, _) = run(vec![n; 2]);
    let (with_g, _) = run(vec![n, g]);
    let (with_b, air) = run(vec![n, b]);
    println!("{alone:?} {with_g:?} {with_b:?} {air:?}");
    // Turns are shared evenly, so a slow station takes the air; protection and long slots cost n more.
    assert!(alone[1] > with_b[1] && with_g[1] > with_b[1] && with_b[2] > 500);
    assert!(air[2] > 3.0 * f64::from(with_b[2] as u32) * 1.3e-3 / 5.0);
}
