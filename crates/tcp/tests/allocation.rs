//! A segment and its acknowledgment cost no allocation once rings have reached their size.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::path::{Link, Path};
use lasthop_core::units::{BitRate, Span, Time};
use lasthop_tcp::{Algorithm, SenderParams};

struct Counting;

thread_local! {
    /// Of this thread: what the harness does beside the test is not counted.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is handed to the system's allocator unchanged; only a counter is added.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`, which is the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `alloc` above, that is from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

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
            let before = ALLOCATIONS.get();
            path.run(seconds(warm + 40));
            let allocations = ALLOCATIONS.get() - before;
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
