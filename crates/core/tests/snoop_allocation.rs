//! A segment that Snoop keeps costs next to no allocation once its tables have reached their size.

use lasthop_core::packet::mix;
use lasthop_core::snoop::{Ack, Data, Params, Snoop};
use lasthop_core::units::{Span, Time};
use lasthop_testing::allocations::{Counting, allocations};

#[global_allocator]
static GLOBAL: Counting = Counting;

/// 300 connections, each with windows of segments, of which three in ten have a hole.
fn repair(snoop: &mut Snoop<u32>, rounds: std::ops::Range<u32>) -> u64 {
    const WINDOW: u32 = 20;
    let mut sent = 0;
    for round in rounds {
        for connection in 0..300u64 {
            let now = Time::from_nanos(u64::from(round) * 30_000_000 + connection * 50_000);
            let first = round * WINDOW;
            for segment in first..first + WINDOW {
                let data = Data { connection, seq: segment * 1_000, bytes: 1_000, ..Data::default() };
                snoop.on_data(now, &data, segment);
                sent += 1;
            }
            let lost = mix(u64::from(round) << 32 | connection) % 50;
            let hole = (first + lost as u32) * 1_000;
            let answers =
                if lost < 15 { &[hole, hole, hole, (first + WINDOW) * 1_000][..] } else { &[(first + WINDOW) * 1_000] };
            for ack in answers {
                let _ = snoop
                    .on_ack(now + Span::from_millis(5), &Ack { connection, ack: *ack, window: 9, ..Ack::default() });
                while snoop.poll(now + Span::from_millis(5)).is_some() {}
            }
        }
    }
    sent
}

#[test]
fn a_segment_that_is_kept_costs_next_to_no_allocation() {
    let mut snoop = Snoop::new(Params::default());
    repair(&mut snoop, 0..50);
    let before = allocations();
    let sent = repair(&mut snoop, 50..100);
    let allocations = allocations() - before;
    let seen = snoop.snapshot();
    assert!(seen.by_duplicates > 5_000 && seen.segments == 0, "{seen:?}");
    // The set of alarms grows and shrinks by a node now and then.
    assert!(allocations < sent / 250, "{allocations} allocations for {sent} segments, {seen:?}");
}
