//! A packet costs no allocation once queues and histograms have reached their size.

mod common;

use common::{AP, Numbered, g_stations, saturate_up, secs};
use lasthop_core::units::Time;
use lasthop_medium::{Event, Loss, Medium, MediumParams, NodeId};
use lasthop_testing::allocations::{Counting, allocations};

#[global_allocator]
static GLOBAL: Counting = Counting;

#[test]
fn a_packet_costs_no_allocation_in_steady_state() {
    let params = MediumParams { loss: Loss::Fixed { rate: 0.1 }, ..MediumParams::default() };
    let mut medium = Medium::new(params, g_stations(8), 1);
    saturate_up(&mut medium, 8, 1500, secs(10));
    let before = allocations();
    let mut delivered = 0;
    while let Some(event) = medium.poll(secs(20)) {
        let (at, node): (Time, NodeId) = match event {
            Event::Delivered { at, from, .. } => (at, from),
            Event::Dropped { at, node, .. } => (at, node),
        };
        delivered += 1;
        medium.on_packet(at, node, AP, Numbered { number: 0, bytes: 1500 });
    }
    let allocations = allocations() - before;
    assert!(delivered > 10_000, "{delivered}");
    // A sojourn in an octave not met before may cost one.
    assert!(allocations <= 8, "{allocations} allocations for {delivered} packets");
}
