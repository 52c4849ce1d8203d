//! The words of labels, and the units.

use super::FlowCondition;
use super::text::Family;

/// Labels of `directions.down` and `directions.up`.
pub const DIRECTIONS: [&str; 2] = ["down", "up"];
/// Places of `waiting`; `all` is the sum over the others.
pub const WAITING_PLACES: [&str; 4] = ["all", "access-point", "firmware", "wan"];
/// Places of `queue_place`, and where nothing ever waited.
pub const PLACES: [&str; 4] = ["access-point", "firmware", "wan", "none"];
/// Words of `capacity_basis`.
pub const BASES: [&str; 3] = ["given", "measured", "estimate"];
/// Words of `taken_for`.
pub const TAKEN_FOR: [&str; 3] = ["unknown", "real-time", "elastic"];
/// Words of a flow's `state`.
pub const CONDITIONS: [(FlowCondition, &str); 7] = [
    (FlowCondition::WindowLimited, "window-limited"),
    (FlowCondition::Below, "below"),
    (FlowCondition::Idle, "idle"),
    (FlowCondition::Closing, "closing"),
    (FlowCondition::IgnoresWindows, "ignores-windows"),
    (FlowCondition::ScaleUnknown, "scale-unknown"),
    (FlowCondition::Paused, "paused"),
];

/// Upper bounds, s: every eighth of a status, 0.25 ms x 2^n.
pub const BUCKETS: [f64; 15] =
    [0.00025, 0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096];

/// Times of a status are in milliseconds.
pub fn seconds(ms: f64) -> f64 {
    ms / 1e3
}

/// Rates of a status are in bits.
pub fn bytes_per_second(bps: f64) -> f64 {
    bps / 8.0
}

/// A series for each of `words`, 1 for the one that is so.
pub fn one_hot(family: &mut Family<'_>, labels: &[(&str, &str)], name: &str, words: &[&str], so: Option<&str>) {
    for word in words {
        let labels: Vec<_> = labels.iter().copied().chain([(name, *word)]).collect();
        family.one(&labels, f64::from(so == Some(*word)));
    }
}
