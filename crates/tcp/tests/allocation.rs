//! A segment and its acknowledgment cost no allocation once rings have reached their size.

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use lasthop_core::units::{Span, Time};
use lasthop_tcp::{Ack, Algorithm, Receiver, ReceiverParams, Segment, Sender, SenderParams};

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

/// A path of 100 ms that carries a segment in a tenth of a millisecond and loses every `lose`-th.
struct Path {
    sender: Sender,
    receiver: Receiver,
    segments: VecDeque<(Time, Segment)>,
    acks: VecDeque<(Time, Ack)>,
    free_at: Time,
    now: Time,
    lose: u64,
    carried: u64,
}

impl Path {
    fn new(cc: Algorithm, sack: bool, lose: u64) -> Self {
        let sender = SenderParams { cc, sack, initial_window: 10, ..SenderParams::default() };
        let receiver = ReceiverParams { sack, delayed_ack: false, window: Some(300 * 1460), ..Default::default() };
        Self {
            sender: Sender::new(sender),
            receiver: Receiver::new(receiver),
            segments: VecDeque::with_capacity(1024),
            acks: VecDeque::with_capacity(1024),
            free_at: Time::ZERO,
            now: Time::ZERO,
            lose,
            carried: 0,
        }
    }

    fn send(&mut self) {
        while let Some(segment) = self.sender.poll(self.now) {
            self.free_at = self.free_at.max(self.now) + Span::from_micros(100);
            self.carried += 1;
            if segment.syn || !self.carried.is_multiple_of(self.lose) {
                self.segments.push_back((self.free_at + Span::from_millis(50), segment));
            }
        }
    }

    fn run(&mut self, segments: u64) {
        let end = self.carried + segments;
        self.send();
        while self.carried < end {
            let flying = [self.segments.front().map(|s| s.0), self.acks.front().map(|a| a.0)];
            let timers = [self.sender.next_deadline(), self.receiver.next_deadline()];
            self.now = flying.into_iter().chain(timers).flatten().min().expect("a deadline").max(self.now);
            while let Some((_, segment)) = self.segments.front().copied().filter(|s| s.0 <= self.now) {
                self.segments.pop_front();
                self.receiver.on_segment(self.now, &segment);
                while let Some(ack) = self.receiver.poll(self.now) {
                    self.acks.push_back((self.now + Span::from_millis(50), ack));
                }
            }
            while let Some((_, ack)) = self.acks.front().copied().filter(|a| a.0 <= self.now) {
                self.acks.pop_front();
                self.sender.on_ack(self.now, &ack);
                self.send();
            }
            self.send();
        }
    }
}

#[test]
fn a_segment_costs_no_allocation_in_steady_state() {
    for cc in Algorithm::ALL {
        for sack in [false, true] {
            let mut path = Path::new(cc, sack, 997);
            path.run(20_000);
            let before = ALLOCATIONS.load(Ordering::Relaxed);
            path.run(50_000);
            let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
            assert!(path.sender.snapshot().fast_retransmits > 20, "{cc:?}");
            assert_eq!(allocations, 0, "{cc:?}, sack {sack}");
        }
    }
}

/// `cargo test --release -p lasthop-tcp --test allocation -- --ignored --nocapture`
#[test]
#[ignore = "measures"]
fn what_a_segment_costs() {
    for cc in Algorithm::ALL {
        for (sack, lose) in [(false, u64::MAX), (false, 997), (true, 997)] {
            let mut path = Path::new(cc, sack, lose);
            path.run(20_000);
            #[expect(clippy::disallowed_methods, reason = "a clock is what a measurement needs")]
            let start = std::time::Instant::now();
            path.run(5_000_000);
            let each = start.elapsed().as_nanos() as f64 / 5e6;
            println!("{cc:?}, sack {sack}, one in {lose} lost: {each:.1} ns per segment, both ends and the path");
        }
    }
}
