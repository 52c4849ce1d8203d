//! From the lines of a trace to the course of a run: windows and the queue.

use std::collections::BTreeMap;

use lasthop_core::units::Span;
use lasthop_home::course::{Course, Windows};
use lasthop_home::scenario::Scenario;
use lasthop_sim::TraceLine;

/// Payload bytes of a segment of each TCP flow.
pub fn segment_sizes(scenario: &Scenario) -> BTreeMap<&str, f64> {
    scenario.flows.iter().filter_map(|flow| Some((flow.name.as_str(), flow.tcp()?.mss.0 as f64))).collect()
}

/// Adds what `line` says. A window that was never read is 0 there, and none.
pub fn line(course: &mut Course, sizes: &BTreeMap<&str, f64>, line: &TraceLine) {
    let since = Span::from_secs_f64(line.t_s);
    line.queue_packets.into_iter().for_each(|packets| course.queue.note(since, packets as f64));
    let Some(size) = line.flow.as_deref().and_then(|name| sizes.get(name)) else { return };
    let bytes = |window: Option<u64>| window.filter(|bytes| *bytes > 0).map(|bytes| bytes as f64);
    let windows = Windows {
        congestion: line.cwnd.filter(|segments| segments.is_finite()).map(|segments| segments * size),
        offered: bytes(line.offered_window),
        allowed: bytes(line.clamped_window),
    };
    course.on_windows(since, line.flow.as_deref().unwrap_or_default(), windows);
}
