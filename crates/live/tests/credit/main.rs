//! Credit and CHAP's order in Rust and in the C headers compiled for the host decide alike, to the last bit.

mod host;

use std::collections::HashMap;

use lasthop_core::aqm::chap::{Chap, Params};
use lasthop_core::credit::account::{Account, Bucket, is_exhausted};
use lasthop_core::credit::vectors::{self, Step};
use lasthop_core::packet::{FlowId, Packet, mix};
use lasthop_core::units::{BitRate, Span, Time};
use lasthop_live::program::LinkLayer;
use lasthop_live::qdisc::Settings;
use lasthop_live::qdisc::layout::FLOWS;
use proptest::prelude::*;

#[test]
fn the_shared_vectors_hold_in_c() {
    let mut steps = 0;
    for case in vectors::read(include_str!("../../../../tests/vectors/credit.txt")) {
        let mut increment_ns = 0;
        let mut account = Account { debt_ns: 1, boosts: 0 };
        let (mut bucket, mut interval_ns, mut burst_ns) = (Bucket::default(), 0, 0);
        for (line, step) in case.steps {
            let place = format!("{}, line {line}", case.name);
            match step {
                Step::Increment(ns) => increment_ns = ns,
                Step::Account(given) => account = given,
                Step::New(boosts, expected) => {
                    account = host::account_new(increment_ns, boosts);
                    assert_eq!(account, expected, "{place}");
                }
                Step::Charge(boosts, cost_ns, expected) => {
                    host::charge(&mut account, boosts, cost_ns);
                    assert_eq!(account, expected, "{place}");
                }
                Step::Look(boosts, seen) => {
                    assert_eq!(host::debt_at(&account, boosts), seen.debt_ns, "{place}");
                    assert_eq!(host::credit_at(&account, boosts, increment_ns), seen.credit_ns, "{place}");
                    assert_eq!(host::is_exhausted(seen.debt_ns, increment_ns), seen.exhausted, "{place}");
                }
                Step::Key(expected) => assert_eq!(host::key(&account), expected, "{place}"),
                Step::Bucket(given, interval, burst) => (bucket, interval_ns, burst_ns) = (given, interval, burst),
                Step::Take(now_ns, is_there, expected) => {
                    assert_eq!(host::bucket_take(&mut bucket, now_ns, interval_ns, burst_ns), is_there, "{place}");
                    assert_eq!(bucket, expected, "{place}");
                }
                Step::Mix(of, expected) => assert_eq!(host::mix(of), expected, "{place}"),
            }
            steps += 1;
        }
    }
    assert!(steps > 20);
}

/// Numbers of every size, the ends of the range among them.
fn any_size() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0u32..64).prop_map(|(number, shift)| number >> shift)
}

proptest! {
    #[test]
    fn the_arithmetic_is_the_same(
        debt_ns in any_size().prop_map(|debt| (debt >> 1).max(1)),
        boosts in any_size().prop_map(|boosts| boosts >> 1),
        later in any_size().prop_map(|later| later >> 1),
        cost_ns in any_size(),
        increment_ns in any_size().prop_map(|increment| (increment >> 2).max(1)),
        x: u64,
    ) {
        let account = Account { debt_ns, boosts };
        let now = boosts + later;
        prop_assert_eq!(host::account_new(increment_ns, boosts), Account::new(increment_ns, boosts));
        prop_assert_eq!(host::debt_at(&account, now), account.debt_at(now));
        prop_assert_eq!(host::credit_at(&account, now, increment_ns), account.credit_at(now, increment_ns));
        prop_assert_eq!(host::key(&account), account.key());
        prop_assert_eq!(host::is_exhausted(debt_ns, increment_ns), is_exhausted(debt_ns, increment_ns));
        let (mut rust, mut c) = (account, account);
        rust.charge(now, cost_ns);
        host::charge(&mut c, now, cost_ns);
        prop_assert_eq!(rust, c);
        prop_assert_eq!(host::mix(x), mix(x));
    }

    #[test]
    fn the_bucket_is_the_same(
        full_at_ns in any_size(), now_ns in any_size(), interval_ns in any_size(), burst_ns in any_size(),
    ) {
        let (mut rust, mut c) = (Bucket { full_at_ns }, Bucket { full_at_ns });
        let is_there = rust.take(now_ns, interval_ns, burst_ns);
        prop_assert_eq!(host::bucket_take(&mut c, now_ns, interval_ns, burst_ns), is_there);
        prop_assert_eq!(rust, c);
    }
}

#[derive(Clone, Copy, Debug)]
struct Numbered {
    number: u32,
    bytes: u32,
}

impl Packet for Numbered {
    fn flow(&self) -> FlowId {
        FlowId(0)
    }

    fn bytes(&self) -> u32 {
        self.bytes
    }
}

/// A rate at which a byte takes whole nanoseconds, so that both sides can compute a cost without rounding.
const RATE: BitRate = BitRate::mbps(20);
const BYTE_NS: u64 = 400;
const HEADER: u32 = 14;

/// One thing that happens: after a pause, packets of a flow come, or some are sent.
#[derive(Clone, Copy, Debug)]
enum Event {
    Come { flow: u64, station: u16, bytes: u32 },
    Send,
}

fn events() -> impl Strategy<Value = Vec<(u64, Event)>> {
    // Mostly microseconds; at times so long that flows are forgotten.
    let pause = prop_oneof![9 => 0u64..2_000_000, 1 => 0u64..12_000_000_000];
    let heavy = (0u64..4, 40u32..1_500).prop_map(|(flow, bytes)| Event::Come { flow, station: flow as u16 % 3, bytes });
    let many = (0u64..30, 40u32..1_500).prop_map(|(flow, bytes)| Event::Come { flow, station: flow as u16 % 3, bytes });
    let event = prop_oneof![5 => heavy, 3 => many, 4 => Just(Event::Send)];
    prop::collection::vec((pause, event), 1..600)
}

/// Plays the events on both, and compares every packet that is sent or dropped, and what was counted.
fn assert_alike(settings: Settings, events: &[(u64, Event)]) {
    let mut now = 1_000_000_000u64;
    let params = Params { increment: settings.increment, ..Params::default() };
    let mut rust = Chap::new(&params, settings.limit as usize, Time::from_nanos(now));
    let mut c = host::Order::new(settings.control(Time::from_nanos(now), RATE, LinkLayer::Ethernet, 0));
    // Which of our packets has which number there.
    let mut held: HashMap<u32, u32> = HashMap::new();
    let (mut came, mut sent, mut dropped) = (0, 0, 0);
    for (pause, event) in events {
        now += pause;
        let time = Time::from_nanos(now);
        match *event {
            Event::Come { flow, station, bytes } => {
                came += 1;
                let expected = rust.enqueue(time, Numbered { number: came, bytes }, flow, station);
                let (number, gone) = c.enqueue(now, flow, station, bytes + HEADER);
                assert_eq!(held.insert(number, came), None, "a number is given away twice");
                let gone = gone.map(|number| held.remove(&number).expect("it was held"));
                assert_eq!(gone, expected.map(|packet| packet.number));
                dropped += u64::from(gone.is_some());
            }
            Event::Send => {
                let expected = rust.dequeue(time).map(|served| {
                    let cost = u64::from(served.packet.bytes) * BYTE_NS + settings.packet_time.as_nanos();
                    rust.charge(served.account, Span::from_nanos(cost));
                    (served.packet.number, cost)
                });
                let found = c.dequeue(now).map(|(number, cost)| (held.remove(&number).expect("it was held"), cost));
                assert_eq!(found, expected);
                sent += u64::from(found.is_some());
            }
        }
        let (counted, metrics) = (rust.counters(), c.metrics());
        assert_eq!(
            (metrics.boosts, metrics.admitted, metrics.shared, metrics.over_cap, metrics.backlogged, metrics.queued),
            (
                counted.boosts,
                counted.admitted,
                counted.shared,
                counted.over_cap,
                counted.backlogged as u64,
                rust.len() as u64
            )
        );
        assert_eq!((metrics.no_room, metrics.evicted), (0, 0), "too few flows for that");
    }
    assert_eq!(u64::from(came), sent + dropped + rust.len() as u64);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn packets_are_sent_and_dropped_in_the_same_order(
        events in events(), limit in 1u32..60, increment_us in 100u64..20_000, packet_us in 0u64..3_000,
    ) {
        let settings = Settings {
            limit,
            increment: Span::from_micros(increment_us),
            packet_time: Span::from_micros(packet_us),
            ..Settings::default()
        };
        assert_alike(settings, &events);
    }
}

#[test]
fn a_flood_of_new_flows_stays_within_table_and_cap() {
    const STATIONS: u64 = 4;
    let mut c = host::Order::new(Settings::default().control(Time::ZERO, RATE, LinkLayer::Ethernet, 0));
    let start = 1_000_000_000u64;
    let (mut now, mut held) = (start, 0u64);
    // A packet each of 400,000 flows, twice as fast as they can be sent; every eighth time one of a game, too.
    for flow in 1..400_000u64 {
        now += 250_000;
        let station = (flow % STATIONS) as u16;
        held += u64::from(c.enqueue(now, flow, station, 1_000 + HEADER).1.is_none());
        if flow % 8 == 0 {
            held += u64::from(c.enqueue(now, 0, 9, 100 + HEADER).1.is_none());
        }
        if flow % 2 == 0 {
            held -= u64::from(c.dequeue(now).is_some());
        }
        assert!(held <= u64::from(Settings::default().limit));
    }
    let (metrics, seconds) = (c.metrics(), (now - start) / 1_000_000_000);
    assert_eq!(metrics.queued, held);
    // 16 at once and 12.5 a second of each station, and the game.
    assert!(metrics.admitted <= STATIONS * (16 + 25 * seconds / 2 + 1) + 1, "{metrics:?}");
    assert!(metrics.shared > 300_000 && metrics.flows <= u64::from(FLOWS), "{metrics:?}");
}
