//! A segment and its acknowledgment cost no allocation once rings have reached their size.

mod common;

use common::path::{Link, Path};
use lasthop_core::units::{BitRate, Span, Time};
use lasthop_tcp::{Algorithm, SenderParams};
use lasthop_testing::allocations::{Counting, allocations};

#[global_allocator]
static GLOBAL: Counting = Counting;

/// 100 ms, 120 Mbit/s, 300 segments of window, and every `lose`-th segment lost; 0: none.
fn path(cc: Algorithm, sack: bool, lose: u64) -> Path {
    let link = Link::new(BitRate::mbps(120), Span::from_millis(50), usize::MAX);
    let mut path = Path::new(SenderParams { cc, sack, ..SenderParams::default() }, 300 * 1460, link);
    path.lose_every = lose;
    path
}

fn seconds(n: u64) -> Time {
    Time::from_nanos(n * 1_000_000_000)
}

#[test]
fn a_segment_costs_no_allocation_in_steady_state() {
    for cc in Algorithm::ALL {
        for sack in [false, true] {
            let mut path = path(cc, sack, 997);
            // WTCP adds a segment per round trip to its rate, and is long in flight.
            let warm = if cc == Algorithm::Wtcp { 60 } else { 20 };
            path.run(seconds(warm));
            let before = allocations();
            path.run(seconds(warm + 40));
            let allocations = allocations() - before;
            assert!(path.sender.snapshot().fast_retransmits > 20, "{cc:?}: {:?}", path.sender.snapshot());
            assert_eq!(allocations, 0, "{cc:?}, sack {sack}");
        }
    }
}

/// `cargo test --release -p lasthop-tcp --test allocation -- --ignored --nocapture`
#[test]
#[ignore = "measures"]
fn what_a_segment_costs() {
    for cc in Algorithm::ALL {
        for (sack, lose) in [(false, 0), (false, 997), (true, 997)] {
            let mut path = path(cc, sack, lose);
            path.run(seconds(20));
            let before = path.count;
            #[expect(clippy::disallowed_methods, reason = "a clock is what a measurement needs")]
            let start = std::time::Instant::now();
            path.run(seconds(1000));
            let each = start.elapsed().as_nanos() as f64 / (path.count - before) as f64;
            println!("{cc:?}, sack {sack}, one in {lose} lost: {each:.1} ns per segment, both ends and the path");
        }
    }
}
