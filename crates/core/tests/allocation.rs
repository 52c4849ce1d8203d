//! A packet costs no allocation once tables, queues and histograms have reached their size.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use lasthop_core::credit::key::mix;
use lasthop_core::credit::{Chap, Params, Served};
use lasthop_core::packet::{FlowId, Packet};
use lasthop_core::units::{Span, Time};

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

#[derive(Clone, Copy)]
struct Numbered(u32);

impl Packet for Numbered {
    fn flow(&self) -> FlowId {
        FlowId(self.0)
    }
    fn bytes(&self) -> u32 {
        1500
    }
}

/// 3,000 flows over a table of 1,000, so that flows come, leave for others and come back; a full queue half of the time.
fn play(chap: &mut Chap<Numbered>, numbers: std::ops::Range<u64>) -> u64 {
    let mut sent = 0;
    for number in numbers {
        let now = Time::from_nanos(number * 200_000);
        let flow = mix(number) % 3_000;
        let _ = chap.enqueue(now, Numbered(flow as u32), flow, 0);
        if number % 2_000 < 1_000 || number % 3 > 0 {
            let Some(Served { account, .. }) = chap.dequeue(now) else { continue };
            chap.charge(account, Span::from_nanos(300_000 + number % 100_000));
            sent += 1;
        }
    }
    sent
}

#[test]
fn a_packet_costs_no_allocation_in_steady_state() {
    let (increment, new_credit) = (Span::from_millis(4), Span::from_secs(40));
    let params = Params { increment, flows: 1_000, new_credit, burst: 1_000, ..Params::default() };
    let mut chap = Chap::new(&params, 200, Time::ZERO);
    play(&mut chap, 0..400_000);
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let sent = play(&mut chap, 400_000..800_000);
    let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
    let counters = chap.counters();
    assert!(sent > 200_000 && counters.evicted > 10_000, "{sent}, {counters:?}");
    // A sojourn in an octave not met before may cost one.
    assert!(allocations <= 4, "{allocations} allocations for {sent} packets, {counters:?}");
}
