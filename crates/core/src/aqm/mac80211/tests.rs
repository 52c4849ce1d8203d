//! Traces derived by hand from the rules of the module.

use super::*;
use crate::aqm::tests::{Sized, at_us};
use crate::packet::AccessCategory::{Be, Vo};
use crate::packet::FlowId;

/// A packet with a class.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Marked(Sized);

impl Packet for Marked {
    fn flow(&self) -> FlowId {
        self.0.flow()
    }
    fn bytes(&self) -> u32 {
        self.0.bytes()
    }
    fn mark_ce(&mut self) -> bool {
        self.0.mark_ce()
    }
}

fn us(us: u64) -> Span {
    Span::from_micros(us)
}

/// HT20 MCS7: 188 us of a full packet, 2 KiB/s at MCS0: 1912 us.
fn fast(_station: u16, bytes: u32) -> Pending {
    Estimate::new(260, Span::from_nanos(4000), 1, false, true).of(bytes)
}

fn slow(_station: u16, bytes: u32) -> Pending {
    Estimate::new(26, Span::from_nanos(4000), 1, false, true).of(bytes)
}

fn queue(params: Params) -> Mac80211<Marked> {
    Mac80211::new(params, 1000, Time::ZERO)
}

fn fill(queue: &mut Mac80211<Marked>, station: u16, class: AccessCategory, packets: u32) {
    for number in 0..packets {
        let packet = Marked(Sized { number, ..Sized::of(u32::from(station), 1500) });
        assert_eq!(queue.enqueue(Time::ZERO, packet, u64::from(station), station, class), None);
    }
}

/// Stations of the packets that leave until there are none, or `most` have left.
fn drain(
    queue: &mut Mac80211<Marked>,
    class: AccessCategory,
    estimate: impl Fn(u16, u32) -> Pending,
    most: usize,
) -> Vec<u16> {
    let mut stations = Vec::new();
    while stations.len() < most
        && let Some(taken) = queue.dequeue(at_us(1), class, &estimate, |_| panic!("a drop"))
    {
        stations.push(taken.station);
    }
    queue.rest(at_us(1), class);
    stations
}

fn runs(stations: &[u16]) -> Vec<(u16, usize)> {
    stations.chunk_by(|a, b| a == b).map(|run| (run[0], run.len())).collect()
}

#[test]
fn aql_lets_a_station_have_12_ms_alone_and_5_ms_among_many() {
    let mut alone = queue(Params::default());
    fill(&mut alone, 1, Be, 100);
    // Held from 12 ms on: ceil(12,000 / 188) = 64 packets, 12,032 us.
    assert_eq!(drain(&mut alone, Be, fast, 1000).len(), 64);
    assert_eq!((alone.pending(1, Be), alone.total_pending()), (us(12_032), us(12_032)));
    assert_eq!(alone.counters().held, 1);

    let mut many = queue(Params::default());
    for station in 1..=5 {
        fill(&mut many, station, Be, 100);
    }
    // Each came to the front: 5 is first. 64 packets each for 5 and 4, then the sum is 24,064 us: 5 ms for the others, 27 packets of
    // 188 us = 5,076 us.
    assert_eq!(runs(&drain(&mut many, Be, fast, 1000)), [(5, 64), (4, 64), (3, 27), (2, 27), (1, 27)]);
}

#[test]
fn what_is_settled_may_be_pending_again() {
    let mut queue = queue(Params::default());
    fill(&mut queue, 1, Be, 100);
    assert_eq!(drain(&mut queue, Be, fast, 1000).len(), 64);
    assert!(drain(&mut queue, Be, fast, 1000).is_empty());
    // Ten packets: 12,032 - 1,880 = 10,152; ten more make 12,032 again.
    (0..10).for_each(|_| queue.settle(1, Be, fast(1, 1500)));
    assert_eq!(drain(&mut queue, Be, fast, 1000).len(), 10);
    // More than there is comes back as what there is.
    (0..200).for_each(|_| queue.settle(1, Be, fast(1, 1500)));
    assert_eq!((queue.pending(1, Be), queue.total_pending()), (Span::ZERO, Span::ZERO));
}

#[test]
fn a_slow_packet_is_let_go_below_the_limit_whatever_its_own_time() {
    let mut queue = queue(Params::default());
    fill(&mut queue, 1, Be, 100);
    // 1,912 us each: below 12 ms after six (11,472), so seven leave.
    assert_eq!(drain(&mut queue, Be, slow, 1000).len(), 7);
    assert_eq!(queue.pending(1, Be), us(7 * 1912));
}

#[test]
fn classes_have_lines_and_limits_of_their_own() {
    let mut queue = queue(Params::default());
    fill(&mut queue, 1, Be, 100);
    fill(&mut queue, 1, Vo, 100);
    assert_eq!(drain(&mut queue, Be, fast, 1000).len(), 64);
    // 12,032 us of BE: 64 packets of VO reach 12 ms, too.
    assert_eq!(drain(&mut queue, Vo, fast, 1000).len(), 64);
    assert!(queue.has(Vo) && queue.has(Be));
    assert_eq!((queue.len(), queue.total_pending()), (72, us(24_064)));
}

#[test]
fn turns_follow_deficits_and_not_packets() {
    // No AQL, and a hardware that takes one packet at a time. 2 costs 200 us, 1 costs 500; both begin with 256 us.
    let mut queue = queue(Params { aql: None, ..Params::default() });
    fill(&mut queue, 1, Be, 20);
    fill(&mut queue, 2, Be, 20);
    // 2 came last and is first. 2: 256 -> 56 -> -144, gets 256 = 112, to the end. 1: 256 -> -244, gets 256 = 12, end.
    // 2: 112 -> -88 -> 168, end. 1: 12 -> -488 -> -232, end. 2: 168 -> -32 -> 224, end. 1: -232 -> 24, end.
    // 2: 224 -> 24 -> -176 -> 80, end. 1: 24.
    let order: Vec<u16> = (0..9)
        .map(|_| {
            let served = drain(&mut queue, Be, |_, _| Pending::default(), 1)[0];
            queue.charge(served, Be, us(if served == 2 { 200 } else { 500 }));
            served
        })
        .collect();
    assert_eq!(order, [2, 2, 1, 2, 1, 2, 2, 2, 1]);
}

/// Air time of two stations of 200 us a packet and one of 2000, all with packets, over a hardware that sends in the order in which
/// packets come to it and has room for `room` of them.
fn shares(params: Params, room: usize) -> Vec<f64> {
    let mut queue = queue(params);
    let cost = |station: u16| us(if station == 3 { 2000 } else { 200 });
    let estimate = |station: u16, bytes: u32| if station == 3 { slow(3, bytes) } else { fast(station, bytes) };
    let mut used = [Span::ZERO; 4];
    let mut hardware = std::collections::VecDeque::new();
    (1..=3).for_each(|station| fill(&mut queue, station, Be, 300));
    for number in 0..40_000 {
        while hardware.len() < room
            && let Some(taken) = queue.dequeue(at_us(1), Be, estimate, |_| panic!("a drop"))
        {
            hardware.push_back(taken);
        }
        queue.rest(at_us(1), Be);
        let taken: Taken<Marked> = hardware.pop_front().unwrap();
        let station = taken.station;
        queue.settle(station, Be, taken.pending);
        queue.charge(station, Be, cost(station));
        if number >= 5_000 {
            used[usize::from(station)] += cost(station);
        }
        assert_eq!(queue.enqueue(at_us(1), taken.packet, u64::from(station), station, Be), None);
    }
    let total: Span = used.iter().fold(Span::ZERO, |sum, time| sum + *time);
    used[1..].iter().map(|time| time.as_millis_f64() / total.as_millis_f64()).collect()
}

#[test]
fn air_time_is_shared_by_stations_of_any_rate() {
    let off = Params { aql: None, ..Params::default() };
    let third = |share: &f64, within: f64| (share * 3.0 - 1.0).abs() < within;
    let short = shares(off, 2);
    assert!(short.iter().all(|share| third(share, 0.01)), "{short:?}");
    // Where AQL holds everybody, every look for one that may send gives all of them a quantum, used or not: what is pending,
    // and how well it was estimated, decides besides the deficits.
    let held = shares(Params::default(), usize::MAX);
    assert!(held.iter().all(|share| third(share, 0.15)), "{held:?}");
    // A deep hardware queue in which everybody has packets shares by packets, whatever the discipline does.
    assert!(held[2] < 0.4 && shares(off, 890)[2] > 0.7);
}

#[test]
fn without_fairness_stations_take_turns_whatever_those_last() {
    let mut queue = queue(Params { aql: None, airtime_fairness: false, ..Params::default() });
    (1..=3).for_each(|station| fill(&mut queue, station, Be, 20));
    let mut served = Vec::new();
    for _each in 0..4 {
        let turn = drain(&mut queue, Be, |_, _| Pending::default(), 5);
        queue.charge(turn[0], Be, us(if turn[0] == 1 { 9000 } else { 100 }));
        served.extend(runs(&turn));
    }
    assert_eq!(served, [(1, 5), (2, 5), (3, 5), (1, 5)]);
}

#[test]
fn what_a_station_sends_counts_as_its_time() {
    let mut queue = queue(Params { aql: None, ..Params::default() });
    fill(&mut queue, 1, Be, 20);
    fill(&mut queue, 2, Be, 20);
    // 2 is first in line, but in debt by 3,000 - 256 us: 11 quanta. 1 costs 256 us a packet and has one quantum already: it
    // gets ten turns, of which the first has deficit 256 and the second 0; after each it lacks one.
    queue.charge(2, Be, us(3000));
    let mut served = Vec::new();
    for _each in 0..14 {
        let station = drain(&mut queue, Be, |_, _| Pending::default(), 1)[0];
        queue.charge(station, Be, us(256));
        served.push(station);
    }
    let first = served.iter().position(|station| *station == 2).unwrap();
    assert!((10..=12).contains(&first), "{served:?}");
    // Of another class nothing is known.
    fill(&mut queue, 2, Vo, 1);
    assert_eq!(drain(&mut queue, Vo, |_, _| Pending::default(), 1), [2]);
}

#[test]
fn a_station_without_packets_stays_in_line_until_its_debt_is_paid() {
    let mut queue = queue(Params { aql: None, ..Params::default() });
    let none = |_: u16, _: u32| Pending::default();
    fill(&mut queue, 2, Be, 40);
    fill(&mut queue, 1, Be, 1);
    assert_eq!(drain(&mut queue, Be, none, 1), [1]);
    // Ten quanta in all, of which it had one. Its turn had ended with the packet's leaving, before it was charged, and it
    // had left the line; the next packet brings it back, and finds it in debt by nine quanta.
    queue.charge(1, Be, us(2560));
    let left = |queue: &Mac80211<Marked>| queue.standings[member(1, Be)].deficit / 1000;
    assert_eq!((left(&queue), queue.lines[Be.index()].stations().count()), (-2304, 1));
    let packet = |number| Marked(Sized { number, ..Sized::of(1, 1500) });
    assert_eq!(queue.enqueue(at_us(1), packet(9), 1, 1, Be), None);
    // 2 uses a quantum with each packet: its 256 us are gone after the first, and both get one per turn of 2.
    for turn in 1..=9 {
        assert_eq!(drain(&mut queue, Be, none, 1), [2]);
        queue.charge(2, Be, us(257));
        assert_eq!(left(&queue), -2304 + 256 * turn);
    }
    assert_eq!(drain(&mut queue, Be, none, 1), [1]);
}

#[test]
fn sparse_flows_of_a_station_go_before_its_download() {
    let mut queue = queue(Params::default());
    fill(&mut queue, 1, Be, 50);
    assert_eq!(drain(&mut queue, Be, fast, 10).len(), 10);
    let call = Marked(Sized::of(77, 200));
    assert_eq!(queue.enqueue(at_us(2), call, 77, 1, Be), None);
    let taken = queue.dequeue(at_us(2), Be, fast, |_| panic!("a drop")).unwrap();
    assert_eq!(taken.packet, call);
}

#[test]
fn a_full_queue_drops_from_the_longest_flow_of_all_stations_and_classes() {
    let mut queue: Mac80211<Marked> = Mac80211::new(Params::default(), 4, Time::ZERO);
    fill(&mut queue, 1, Vo, 1);
    fill(&mut queue, 2, Be, 3);
    let gone = queue.enqueue(at_us(5), Marked(Sized::of(3, 40)), 3, 3, Be).unwrap();
    assert_eq!((gone.0.flow, gone.0.number, queue.len()), (2, 0, 4));
    let mut small: Mac80211<Marked> = Mac80211::new(Params { memory: 2 * 2304, ..Params::default() }, 1000, Time::ZERO);
    fill(&mut small, 2, Be, 2);
    assert!(small.enqueue(at_us(5), Marked(Sized::of(3, 40)), 3, 3, Be).is_some());
    let counters = |over_limit, over_memory| Counters { over_limit, over_memory, held: 0 };
    assert_eq!((queue.counters(), small.counters()), (counters(1, 0), counters(0, 1)));
}

/// The rule as it stands in the module's head, walked step by step.
fn walk(line: &mut std::collections::VecDeque<u16>, left: &mut [i64], may_send: &[bool], quantum: i64) -> Option<u16> {
    let (mut head, mut found) = (None, false);
    loop {
        let station = *line.front()?;
        let at = usize::from(station);
        if head == Some(station) {
            if !found {
                return None;
            }
            found = false;
        }
        head.get_or_insert(station);
        found |= may_send[at];
        let is_negative = left[at] < 0;
        if is_negative {
            left[at] += quantum;
        }
        if is_negative || !may_send[at] {
            line.rotate_left(1);
            continue;
        }
        return Some(station);
    }
}

proptest::proptest! {
    /// Quanta added at once give what walking the line gives, whose turn it is, the line's order and all deficits.
    #[test]
    fn nobody_needs_to_walk(
        stations in proptest::collection::vec((-5000i64..600, proptest::bool::ANY), 1..9), quantum in 1i64..700,
    ) {
        let n = stations.len() as u16;
        let mut queue = queue(Params { quantum: Span::from_nanos(quantum as u64), ..Params::default() });
        for station in (0..n).rev() {
            fill(&mut queue, station, Be, 1);
            let standing = &mut queue.standings[member(station, Be)];
            standing.deficit = stations[usize::from(station)].0;
        }
        let may_send: Vec<bool> = stations.iter().map(|(_, may)| *may).collect();
        let mut left: Vec<i64> = stations.iter().map(|(deficit, _)| *deficit).collect();
        let mut line: std::collections::VecDeque<u16> = (0..n).collect();
        let walked = walk(&mut line, &mut left, &may_send, quantum);
        // Whether AQL holds one is told by the deficit's neighbour: pending of a second is held, and does not count as time here.
        for station in 0..n {
            let at = member(station, Be);
            if !may_send[usize::from(station)] {
                queue.standings[at].pending = Span::from_secs(1);
                queue.standings[at].deficit += 1_000_000_000;
            }
        }
        let next = queue.next(Be);
        proptest::prop_assert_eq!(next, walked);
        let then: Vec<i64> = (0..n).map(|station| {
            let standing = &queue.standings[member(station, Be)];
            standing.deficit - standing.pending.as_nanos() as i64
        }).collect();
        proptest::prop_assert_eq!(then, left);
        let mut order: Vec<u16> = queue.lines[Be.index()].stations().collect();
        if next.is_some() {
            order.rotate_right(1);
        }
        proptest::prop_assert_eq!(order, Vec::from(line));
    }
}
