use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;

use super::*;
use crate::credit::account::Bucket;
use crate::credit::vectors::{self, Seen, Step};
use crate::packet::{FlowId, mix};

/// Of flow `key`, the `number`th of all.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Numbered {
    key: u64,
    number: u64,
}

impl Packet for Numbered {
    fn flow(&self) -> FlowId {
        FlowId(self.key as u32)
    }
    fn bytes(&self) -> u32 {
        1500
    }
}

fn at(us: u64) -> Time {
    Time::ZERO + Span::from_micros(us)
}

#[test]
fn the_shared_vectors_hold() {
    for case in vectors::read(include_str!("../../../../../tests/vectors/credit.txt")) {
        let mut account = Account::new(1, 0);
        let (mut bucket, mut interval, mut burst) = (Bucket::default(), 0, 0);
        let mut increment = 0;
        for (line, step) in case.steps {
            let at = format!("{}, line {line}", case.name);
            match step {
                Step::Increment(ns) => increment = ns,
                Step::Account(given) => account = given,
                Step::New(boosts, expected) => {
                    account = Account::new(increment, boosts);
                    assert_eq!(account, expected, "{at}");
                }
                Step::Charge(boosts, cost, expected) => {
                    account.charge(boosts, cost);
                    assert_eq!(account, expected, "{at}");
                }
                Step::Look(boosts, expected) => {
                    let debt_ns = account.debt_at(boosts);
                    let credit_ns = account.credit_at(boosts, increment);
                    let exhausted = is_exhausted(debt_ns, increment);
                    assert_eq!(Seen { debt_ns, credit_ns, exhausted }, expected, "{at}");
                }
                Step::Key(expected) => assert_eq!(account.key(), expected, "{at}"),
                Step::Bucket(given, every, deep) => (bucket, interval, burst) = (given, every, deep),
                Step::Take(now, is_there, expected) => {
                    assert_eq!((bucket.take(now, interval, burst), bucket), (is_there, expected), "{at}");
                }
                Step::Mix(of, expected) => assert_eq!(mix(of), expected, "{at}"),
            }
        }
    }
}

/// What the scheduler should do, done the naive way: every boost walks over all flows, every choice looks at all of them.
struct Naive {
    increment: u64,
    limit: usize,
    active: Span,
    flows: BTreeMap<u64, NaiveFlow>,
}

#[derive(Default)]
struct NaiveFlow {
    debt: u64,
    /// Debt when the last boost was done, and what was used since.
    at_boost: u64,
    used: u64,
    queue: VecDeque<u64>,
    seen: Time,
}

impl Naive {
    fn new(increment: u64, limit: usize, active: Span) -> Self {
        Self { increment, limit, active, flows: BTreeMap::new() }
    }

    fn forget(&mut self, now: Time) {
        let active = self.active;
        self.flows.retain(|_, flow| !flow.queue.is_empty() || now.since(flow.seen) <= active);
    }

    /// Which packet goes for it: of any of the poorest flows, the first.
    fn enqueue(&mut self, now: Time, packet: Numbered) -> Vec<u64> {
        let flow = self.flows.entry(packet.key).or_insert_with(|| NaiveFlow {
            debt: self.increment,
            at_boost: self.increment,
            ..NaiveFlow::default()
        });
        flow.queue.push_back(packet.number);
        flow.seen = now;
        if self.flows.values().map(|flow| flow.queue.len()).sum::<usize>() <= self.limit {
            return Vec::new();
        }
        let backlogged = || self.flows.values().filter(|flow| !flow.queue.is_empty());
        let most = backlogged().map(|flow| flow.debt).max().unwrap();
        backlogged().filter(|flow| flow.debt == most).map(|flow| flow.queue[0]).collect()
    }

    /// Which packets may be sent next: the first of any of the richest flows.
    fn dequeue(&mut self) -> Vec<u64> {
        let least = |flows: &BTreeMap<u64, NaiveFlow>| {
            flows.values().filter(|flow| !flow.queue.is_empty()).map(|flow| flow.debt).min()
        };
        let Some(before) = least(&self.flows) else { return Vec::new() };
        // Looked at before the boost: it must not tell flows apart that were apart.
        let candidates = |flows: &BTreeMap<u64, NaiveFlow>, least| {
            let all = flows.values().filter(|flow| flow.debt == least && !flow.queue.is_empty());
            all.map(|flow| flow.queue[0]).collect()
        };
        let chosen = candidates(&self.flows, before);
        if before >= 2 * self.increment {
            for flow in self.flows.values_mut() {
                flow.debt = flow.debt.div_ceil(2);
                (flow.at_boost, flow.used) = (flow.debt, 0);
            }
        }
        chosen
    }

    fn take(&mut self, now: Time, packet: Numbered) {
        let flow = self.flows.get_mut(&packet.key).unwrap();
        assert_eq!(flow.queue.pop_front(), Some(packet.number), "a flow's packets leave in the order they came");
        flow.seen = now;
    }

    fn charge(&mut self, key: u64, cost: Span) {
        if let Some(flow) = self.flows.get_mut(&key) {
            flow.debt += cost.as_nanos();
            flow.used += cost.as_nanos();
        }
    }
}

/// No cap: what is new is let in.
fn uncapped(increment_ns: u64, active: Span) -> Params {
    let new_credit = Span::from_secs(1_000_000);
    Params { increment: Span::from_nanos(increment_ns), active, new_credit, burst: 1 << 20, ..Params::default() }
}

#[derive(Clone, Copy, Debug)]
enum Do {
    Enqueue(u64),
    Send(u64),
    Wait(u64),
    ChargeUpstream(u64, u64),
    Limit(usize),
}

fn anything() -> impl Strategy<Value = Do> {
    prop_oneof![
        6 => (0u64..12).prop_map(Do::Enqueue),
        5 => (0u64..700).prop_map(Do::Send),
        1 => (0u64..1500).prop_map(Do::Wait),
        1 => (0u64..12, 0u64..3000).prop_map(|(key, cost)| Do::ChargeUpstream(key, cost)),
        1 => (1usize..20).prop_map(Do::Limit),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Choice, boost, drop, order within a flow, work conservation, what is forgotten, all credits.
    #[test]
    fn it_does_what_the_naive_scheduler_does(steps in prop::collection::vec(anything(), 1..400), odd in 0u64..2) {
        let (increment, active) = (1000 + odd, Span::from_micros(1000));
        let mut chap = Chap::new(&uncapped(increment, active), 8, Time::ZERO);
        let mut naive = Naive::new(increment, 8, active);
        let mut now = Time::ZERO;
        let mut held = 0;
        for (number, step) in (0..).zip(steps) {
            match step {
                Do::Enqueue(key) => {
                    naive.forget(now);
                    let packet = Numbered { key, number };
                    let may_go = naive.enqueue(now, packet);
                    let gone = chap.enqueue(now, packet, key, 0);
                    prop_assert_eq!(gone.is_some(), !may_go.is_empty(), "lost only when full");
                    held += 1;
                    if let Some(gone) = gone {
                        prop_assert!(may_go.contains(&gone.number), "{:?} of {:?}", gone, may_go);
                        naive.take(now, gone);
                        held -= 1;
                    }
                }
                Do::Send(cost) => {
                    naive.forget(now);
                    let may_go = naive.dequeue();
                    let served = chap.dequeue(now);
                    prop_assert_eq!(served.is_some(), held > 0, "work conserving");
                    let Some(Served { packet, account }) = served else { continue };
                    prop_assert!(may_go.contains(&packet.number), "{:?} of {:?}", packet, may_go);
                    naive.take(now, packet);
                    held -= 1;
                    now += Span::from_nanos(cost);
                    naive.charge(packet.key, Span::from_nanos(cost));
                    chap.charge(account, Span::from_nanos(cost));
                }
                Do::Wait(us) => now += Span::from_micros(us),
                Do::ChargeUpstream(key, cost) => {
                    naive.forget(now);
                    if naive.flows.contains_key(&key) {
                        naive.charge(key, Span::from_nanos(cost));
                        prop_assert!(chap.charge_flow(key, Span::from_nanos(cost)));
                    }
                }
                Do::Limit(limit) => {
                    // A lower limit takes effect as packets leave.
                    if limit >= held {
                        naive.limit = limit;
                        chap.set_limit(limit);
                    }
                }
            }
            prop_assert_eq!(chap.len(), held);
            for (key, flow) in &naive.flows {
                if flow.queue.is_empty() && now.since(flow.seen) > active {
                    continue;
                }
                let credit = 2 * increment as i64 - flow.debt as i64;
                prop_assert_eq!(chap.credit_ns(*key), Some(credit), "flow {}", key);
            }
        }
    }

    /// "At equal activity, of two backlogged flows the one that used less since the last boost goes first."
    #[test]
    fn of_two_equal_flows_the_one_that_used_less_goes_first(costs in prop::collection::vec(1u64..900, 20..300)) {
        let increment = 1000;
        let mut chap = Chap::new(&uncapped(increment, Span::from_secs(10)), 10_000, Time::ZERO);
        let mut naive = Naive::new(increment, 10_000, Span::from_secs(10));
        for number in 0..costs.len() as u64 * 4 {
            let packet = Numbered { key: number % 4, number };
            naive.enqueue(Time::ZERO, packet);
            chap.enqueue(Time::ZERO, packet, packet.key, 0);
        }
        for cost in costs {
            naive.dequeue();
            let Some(Served { packet, account }) = chap.dequeue(Time::ZERO) else { break };
            let chosen = &naive.flows[&packet.key];
            for other in naive.flows.values().filter(|other| other.at_boost == chosen.at_boost) {
                prop_assert!(chosen.used <= other.used);
            }
            naive.take(Time::ZERO, packet);
            naive.charge(packet.key, Span::from_nanos(cost));
            chap.charge(account, Span::from_nanos(cost));
        }
    }

    /// The bound that the module derives, with flows that come back as soon as they fell silent.
    #[test]
    fn nobody_waits_longer_than_the_bound(
        flows in 2u64..12, increment in 500u64..3000, dearest in 1u64..1500, seed in any::<u64>(),
    ) {
        let mut chap = Chap::new(&uncapped(increment, Span::from_secs(10)), 100_000, Time::ZERO);
        let mut random = seed;
        let mut draw = |below: u64| { random = mix(random.wrapping_add(0x5851_f42d_4c95_7f2d)); random % below };
        // Packets held per flow; when its wait began, and its bound.
        let mut held = vec![0u32; flows as usize];
        let mut waits: Vec<(u64, u64)> = vec![(0, u64::MAX); flows as usize];
        let mut now = 0;
        for _each in 0..2000 {
            for key in 0..flows {
                // Flow 0 always has packets; the others come and go.
                if held[key as usize] == 0 && (key == 0 || draw(3) == 0) {
                    chap.enqueue(Time::from_nanos(now), Numbered { key, number: 0 }, key, 0);
                    held[key as usize] = 1;
                    let debt = 2 * increment as i64 - chap.credit_ns(key).unwrap();
                    let halvings = (0..64).find(|r| ((debt as u64 - 1) >> r) + 1 < 2 * increment).unwrap();
                    prop_assert!((debt as u64) < 2 * (increment + dearest), "a debt of {debt}");
                    waits[key as usize] = (now, (halvings + 1) * (flows - 1) * (2 * increment + dearest));
                }
            }
            let Some(Served { packet, account }) = chap.dequeue(Time::from_nanos(now)) else { break };
            let (since, bound) = waits[packet.key as usize];
            prop_assert!(now - since <= bound, "flow {} waited {} of {bound} ns", packet.key, now - since);
            held[packet.key as usize] -= 1;
            let cost = if draw(2) == 0 { dearest } else { 1 + draw(dearest) };
            now += cost;
            chap.charge(account, Span::from_nanos(cost));
        }
    }
}

#[test]
fn of_equal_flows_the_one_that_waits_longer_goes_first() {
    let mut chap = Chap::new(&uncapped(1000, Span::from_secs(10)), 100, Time::ZERO);
    for (number, key) in [5, 3, 9].into_iter().enumerate() {
        chap.enqueue(Time::ZERO, Numbered { key, number: number as u64 }, key, 0);
    }
    let order: Vec<u64> = std::iter::from_fn(|| chap.dequeue(Time::ZERO).map(|served| served.packet.key)).collect();
    assert_eq!(order, [5, 3, 9]);
}

#[test]
fn a_bad_link_drains_its_own_credit() {
    // Two downloads, one of packets of 0.4 ms, one of 4 ms (6 Mbit/s, many attempts): equal time, not equal packets.
    let mut chap = Chap::new(&Params::default(), 1000, Time::ZERO);
    let mut used = [0u64; 2];
    let mut sent = [0u64; 2];
    for key in 0..2 {
        (0..100).for_each(|number| assert_eq!(chap.enqueue(at(0), Numbered { key, number }, key, key as u16), None));
    }
    let mut now = at(0);
    for number in 0..5000 {
        let Served { packet, account } = chap.dequeue(now).unwrap();
        let cost = if packet.key == 0 { Span::from_micros(400) } else { Span::from_micros(4000) };
        now += cost;
        used[packet.key as usize] += cost.as_nanos();
        sent[packet.key as usize] += 1;
        chap.charge(account, cost);
        chap.enqueue(now, Numbered { number, ..packet }, packet.key, packet.key as u16);
    }
    assert!(used[0].abs_diff(used[1]) <= 2 * 4_000_000 + 4_000_000, "{used:?}");
    assert!(sent[0] > 9 * sent[1], "{sent:?}");
}

#[test]
fn a_flood_of_flows_of_one_packet_is_one_flow() {
    let mut chap = Chap::new(&Params::default(), 300, Time::ZERO);
    let cost = Span::from_micros(400);
    let (mut now, mut old, mut flood) = (at(0), 0u64, 0u64);
    // Station 1 downloads; station 2 is sent packets of ever new flows, ten for each packet that is sent.
    for number in 0..20_000u64 {
        for each in 0..10 {
            chap.enqueue(
                now,
                Numbered { key: 1 << 32 | (number * 10 + each), number },
                1 << 32 | (number * 10 + each),
                2,
            );
        }
        if number % 2 == 0 {
            chap.enqueue(now, Numbered { key: 1, number }, 1, 1);
        }
        let Served { packet, account } = chap.dequeue(now).unwrap();
        now += cost;
        *(if packet.key == 1 { &mut old } else { &mut flood }) += 1;
        chap.charge(account, cost);
        assert!(chap.len() <= 300);
    }
    // Half of the channel each, but for what the bucket let in (8 s x 50 ms/s and its burst, each I and a packet).
    let let_in = 8 * 50 + 16 * 4;
    assert!(old >= 10_000 - let_in * 10 / 4 * 11 / 10 - 20, "{old} and {flood}");
    let counters = chap.counters();
    assert!(counters.admitted <= 1 + 16 + 8 * 13, "{counters:?}");
    assert!(counters.over_cap > 0 && counters.shared > counters.over_cap, "{counters:?}");
}

#[test]
fn a_shared_account_keeps_the_order_of_each_flow_in_it() {
    let params = Params { burst: 1, new_credit: Span::from_millis(4), ..Params::default() };
    let mut chap = Chap::new(&params, 1000, Time::ZERO);
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    let mut now = at(0);
    for number in 0..5000u64 {
        let key = mix(number) % 7;
        // One more flow may come in every second: the queue is never empty for long.
        now += Span::from_millis(mix(number ^ 77) % 40);
        chap.enqueue(now, Numbered { key, number }, key, 0);
        if number % 3 > 0
            && let Some(Served { packet, account }) = chap.dequeue(now)
        {
            assert!(last.insert(packet.key, packet.number).is_none_or(|before| before < packet.number));
            chap.charge(account, Span::from_micros(400));
        }
    }
    assert!(chap.counters().over_cap > 0);
}

#[test]
fn a_full_table_forgets_who_fell_silent_first_and_then_shares() {
    let params = Params { flows: 3, ..Params::default() };
    let mut chap = Chap::new(&params, 100, Time::ZERO);
    let packet = |key| Numbered { key, number: key };
    for key in 0..3 {
        chap.enqueue(at(key), packet(key), key, 0);
        let served = chap.dequeue(at(key)).unwrap();
        chap.charge(served.account, Span::from_micros(400 * (key + 1)));
    }
    chap.enqueue(at(10), packet(3), 3, 0);
    assert_eq!((chap.credit_ns(0), chap.credit_ns(1)), (None, Some(16_000_000 - 800_000)));
    // Everybody in it has packets now: 4 and 5 share.
    (1..3).for_each(|key| assert_eq!(chap.enqueue(at(11), packet(key), key, 0), None));
    (4..6).for_each(|key| assert_eq!(chap.enqueue(at(12), packet(key), key, 0), None));
    let Counters { flows, backlogged, shared, no_room, evicted, .. } = chap.counters();
    assert_eq!((flows, backlogged, shared, no_room, evicted), (3, 4, 2, 1, 1));
}

#[test]
fn a_charge_does_not_reach_whoever_has_the_slot_next() {
    let params = Params { flows: 1, ..Params::default() };
    let mut chap = Chap::new(&params, 100, Time::ZERO);
    chap.enqueue(at(0), Numbered { key: 0, number: 0 }, 0, 0);
    let late = chap.dequeue(at(0)).unwrap();
    chap.enqueue(at(1), Numbered { key: 1, number: 1 }, 1, 0);
    chap.charge(late.account, Span::from_secs(1));
    assert_eq!(chap.credit_ns(1), Some(16_000_000));
}

#[test]
fn keys_made_to_collide_cost_a_bounded_walk() {
    let mut chap = Chap::new(&uncapped(4_000_000, Span::from_secs(10)), 20_000, Time::ZERO);
    // The inverse of the table's multiplier: all these keys have the same top bits of the product.
    let inverse = 0xf1de_83e1_9937_733du64;
    assert_eq!(inverse.wrapping_mul(0x9e37_79b9_7f4a_7c15), 1);
    for number in 0..10_000u64 {
        let key = number.wrapping_mul(inverse);
        assert_eq!(chap.enqueue(at(number), Numbered { key, number }, key, 0), None);
    }
    let counters = chap.counters();
    assert_eq!((counters.flows, counters.backlogged), (16, 17), "{counters:?}");
    let order: Vec<u64> = std::iter::from_fn(|| chap.dequeue(at(20_000)).map(|served| served.packet.number)).collect();
    assert_eq!(order.len(), 10_000);
}

#[test]
fn an_idle_flow_is_forgotten_after_ten_seconds_and_not_before() {
    let mut chap = Chap::new(&Params::default(), 100, Time::ZERO);
    let packet = Numbered { key: 1, number: 0 };
    chap.enqueue(at(0), packet, 1, 0);
    let served = chap.dequeue(at(0)).unwrap();
    chap.charge(served.account, Span::from_millis(1));
    chap.enqueue(at(10_000_000), packet, 1, 0);
    assert_eq!(chap.credit_ns(1), Some(15_000_000));
    let _ = chap.dequeue(at(10_000_000));
    chap.enqueue(at(20_000_001), packet, 1, 0);
    assert_eq!(chap.credit_ns(1), Some(16_000_000));
    assert_eq!(chap.counters().admitted, 2);
}
