//! A packet costs no allocation once queues and histograms have reached their size.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use common::{AP, Numbered, g_stations, saturate_up, secs};
use lasthop_core::units::Time;
use lasthop_medium::{Event, Loss, Medium, MediumParams, NodeId};

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

#[test]
fn a_packet_costs_no_allocation_in_steady_state() {
    let params = MediumParams { loss: Loss::Fixed { rate: 0.1 }, ..MediumParams::default() };
    let mut medium = Medium::new(params, g_stations(8), 1);
    saturate_up(&mut medium, 8, 1500, secs(10));
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let mut delivered = 0;
    while let Some(event) = medium.poll(secs(20)) {
        let (at, node): (Time, NodeId) = match event {
            Event::Delivered { at, from, .. } => (at, from),
            Event::Dropped { at, node, .. } => (at, node),
        };
        delivered += 1;
        medium.on_packet(at, node, AP, Numbered { number: 0, bytes: 1500 });
    }
    let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
    assert!(delivered > 10_000, "{delivered}");
    // A sojourn in an octave not met before may cost one.
    assert!(allocations <= 8, "{allocations} allocations for {delivered} packets");
}
