//! A packet costs no allocation once rings, histograms and senders have reached their size.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use lasthop_sim::Options;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is handed to the system's allocator unchanged; only a counter is added.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
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

/// Allocations and events of a run of so many seconds.
fn cost(duration: &str) -> (u64, u64) {
    let flows = ["d W A ftp", "u B V ftp sack=true", "g W B game-server", "h B W game-client"];
    let home = common::home(&flows, &[&format!("duration={duration}")]);
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let report = lasthop_sim::run(&home, &mut Options::default()).expect("the home runs");
    (ALLOCATIONS.load(Ordering::Relaxed) - before, report.run.events)
}

#[test]
fn a_run_of_twice_the_length_allocates_hardly_more() {
    let (short, few) = cost("20s");
    let (long, many) = cost("40s");
    assert!(many > few + 50_000, "{few} and {many} events");
    // A span in an octave not met before, or a longer queue, may cost one.
    assert!(long <= short + 30, "{short} allocations for {few} events, {long} for {many}");
}
