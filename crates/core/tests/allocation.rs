//! A packet costs no allocation once tables, queues and histograms have reached their size.

use lasthop_core::aqm::chap::{Chap, Params, Served};
use lasthop_core::packet::{FlowId, Packet, mix};
use lasthop_core::units::{Span, Time};
use lasthop_testing::allocations::{Counting, allocations};

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
    let before = allocations();
    let sent = play(&mut chap, 400_000..800_000);
    let allocations = allocations() - before;
    let counters = chap.counters();
    assert!(sent > 200_000 && counters.evicted > 10_000, "{sent}, {counters:?}");
    // A sojourn in an octave not met before may cost one.
    assert!(allocations <= 4, "{allocations} allocations for {sent} packets, {counters:?}");
}
