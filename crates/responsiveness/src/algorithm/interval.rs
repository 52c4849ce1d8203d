//! What happened in one interval, and what several amount to.

use lasthop_core::units::Time;

use crate::params::Direction;
use crate::score::{Foreign, Score};

/// One interval. Probes stand in that in which they ended. Bounded: probes are, per second.
#[derive(Clone, Debug)]
pub struct Interval {
    pub start: Time,
    pub end: Time,
    /// Payload, down and up.
    pub bytes: [u64; 2],
    pub foreign: Vec<Foreign>,
    /// What probes on the connections of the load took, ms.
    pub own: Vec<f64>,
    pub lost: usize,
}

impl Interval {
    /// One that begins.
    pub fn from(start: Time) -> Self {
        Self { start, end: start, bytes: [0; 2], foreign: Vec::new(), own: Vec::new(), lost: 0 }
    }
}

/// The goodput over all of these, byte/s; 0 over none.
pub fn goodput<'a>(intervals: impl Iterator<Item = &'a Interval>, direction: Direction) -> f64 {
    let (bytes, seconds) = intervals.fold((0, 0.0), |(bytes, seconds), interval| {
        (bytes + interval.bytes[direction.index()], seconds + interval.end.since(interval.start).as_secs_f64())
    });
    if seconds > 0.0 { bytes as f64 / seconds } else { 0.0 }
}

/// The responsiveness by the probes of all of these.
pub fn score<'a>(intervals: impl Iterator<Item = &'a Interval> + Clone, kept: f64) -> Option<Score> {
    let foreign = intervals.clone().flat_map(|interval| &interval.foreign);
    Score::of(foreign, intervals.flat_map(|interval| interval.own.iter().copied()), kept)
}
