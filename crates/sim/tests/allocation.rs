//! A packet costs no allocation once rings, histograms and senders have reached their size.

mod common;

use lasthop_sim::Options;
use lasthop_testing::allocations::{Counting, allocations};

#[global_allocator]
static GLOBAL: Counting = Counting;

/// Allocations and events of a run of so many seconds.
fn cost(duration: &str) -> (u64, u64) {
    let flows = ["d W A ftp", "u B V ftp sack=true", "g W B game-server", "h B W game-client"];
    let home = common::home(&flows, &[&format!("duration={duration}")]);
    let before = allocations();
    let report = lasthop_sim::run(&home, &mut Options::default()).expect("the home runs");
    (allocations() - before, report.run.events)
}

#[test]
fn a_run_of_twice_the_length_allocates_hardly_more() {
    let (short, few) = cost("20s");
    let (long, many) = cost("40s");
    assert!(many > few + 50_000, "{few} and {many} events");
    // A span in an octave not met before, or a longer queue, may cost one.
    assert!(long <= short + 30, "{short} allocations for {few} events, {long} for {many}");
}
