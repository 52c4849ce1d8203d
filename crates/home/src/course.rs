//! What a run does over time: a fixed number of stretches per quantity, however long the run and however many its packets.
//!
//! A stretch is `duration / STRETCHES`; of what falls into it the largest value, the sum and the number are kept. A mean is that of
//! the values in it, not over time. Memory: 14 kB per quantity, of [`MOST_FLOWS`] flows at most.

use std::collections::BTreeMap;

use lasthop_core::meter::histogram::Histogram;
use lasthop_core::units::Span;

use crate::scenario::Scenario;

/// Into how many stretches a run is divided: more than a screen tells apart.
pub const STRETCHES: usize = 600;
/// Flows whose course is kept, the scenario's first: nobody tells more curves apart.
pub const MOST_FLOWS: usize = 24;

/// One quantity over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Stretches {
    step: Span,
    cells: Vec<Cell>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Cell {
    count: u32,
    sum: f64,
    most: f64,
}

impl Stretches {
    /// Of a run that lasts `duration`.
    #[must_use]
    pub fn new(duration: Span) -> Self {
        let step = Span::from_nanos(duration.as_nanos().div_ceil(STRETCHES as u64).max(1));
        Self { step, cells: vec![Cell::default(); STRETCHES] }
    }

    /// `value` was seen, `since` the start of the run; what comes after its end counts to the last stretch.
    pub fn note(&mut self, since: Span, value: f64) {
        let at = (since.as_nanos() / self.step.as_nanos()).min(STRETCHES as u64 - 1);
        let cell = &mut self.cells[at as usize];
        cell.most = if cell.count == 0 { value } else { cell.most.max(value) };
        cell.count = cell.count.saturating_add(1);
        cell.sum += value;
    }

    /// How long a stretch is.
    #[must_use]
    pub fn step(&self) -> Span {
        self.step
    }

    /// Whether nothing was ever seen.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cells.iter().all(|cell| cell.count == 0)
    }

    /// The largest value of each stretch, where there was one.
    pub fn most(&self) -> impl Iterator<Item = Option<f64>> {
        self.cells.iter().map(|cell| (cell.count > 0).then_some(cell.most))
    }

    /// The mean of the values of each stretch, where there was one.
    pub fn mean(&self) -> impl Iterator<Item = Option<f64>> {
        self.cells.iter().map(|cell| (cell.count > 0).then(|| cell.sum / f64::from(cell.count)))
    }

    /// The sum of each stretch, by its length in seconds.
    pub fn per_second(&self) -> impl Iterator<Item = f64> {
        self.cells.iter().map(|cell| cell.sum / self.step.as_secs_f64())
    }
}

/// What became of the packets of a flow; a `FlowMeter` that was asked for it keeps it.
#[derive(Clone, Debug)]
pub struct Packets {
    /// One-way delay by the time of sending, ms.
    pub delay: Stretches,
    /// Payload that arrived for the first time, bytes, by the time of its arrival.
    pub arrived: Stretches,
    /// Delays of the packets that the figures proper count: the same population as `metrics.delay` of the report.
    pub delays: Histogram,
}

impl Packets {
    /// Of a run that lasts `duration`.
    #[must_use]
    pub fn new(duration: Span) -> Self {
        Self { delay: Stretches::new(duration), arrived: Stretches::new(duration), delays: Histogram::new() }
    }
}

/// What limits a TCP sender, bytes; `None` where it was not seen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Windows {
    /// Its own congestion window.
    pub congestion: Option<f64>,
    /// What its receiver advertises.
    pub offered: Option<f64>,
    /// What the access point left of that: what the sender reads.
    pub allowed: Option<f64>,
}

/// One flow of a [`Course`].
#[derive(Clone, Debug)]
pub struct FlowCourse {
    /// As the scenario calls it.
    pub name: String,
    /// `None` until the host gives it.
    pub packets: Option<Packets>,
    /// Congestion window of its sender, bytes.
    pub congestion: Stretches,
    /// What its receiver advertised, bytes.
    pub offered: Stretches,
    /// What the sender read of that, bytes.
    pub allowed: Stretches,
}

/// What a whole run did over time.
#[derive(Clone, Debug)]
pub struct Course {
    /// The first flows of the scenario, in its order.
    pub flows: Vec<FlowCourse>,
    /// Packets waiting at the access point for its stations.
    pub queue: Stretches,
    by_name: BTreeMap<String, usize>,
}

impl Course {
    /// Nothing has happened yet.
    #[must_use]
    pub fn new(scenario: &Scenario) -> Self {
        let none = || Stretches::new(scenario.duration);
        let flow = |name: &str| FlowCourse {
            name: name.to_owned(),
            packets: None,
            congestion: none(),
            offered: none(),
            allowed: none(),
        };
        let flows: Vec<_> = scenario.flows.iter().take(MOST_FLOWS).map(|one| flow(&one.name)).collect();
        let by_name = flows.iter().enumerate().map(|(i, flow)| (flow.name.clone(), i)).collect();
        Self { flows, queue: none(), by_name }
    }

    /// What limits the sender of the flow `name`, `since` the start of the run.
    pub fn on_windows(&mut self, since: Span, name: &str, windows: Windows) {
        let Some(flow) = self.by_name.get(name).map(|i| &mut self.flows[*i]) else { return };
        let kept = [&mut flow.congestion, &mut flow.offered, &mut flow.allowed];
        for (to, value) in kept.into_iter().zip([windows.congestion, windows.offered, windows.allowed]) {
            value.into_iter().for_each(|value| to.note(since, value));
        }
    }

    /// What became of the packets of each flow, in the order of the scenario.
    pub fn set_packets(&mut self, packets: impl IntoIterator<Item = Option<Packets>>) {
        self.flows.iter_mut().zip(packets).for_each(|(flow, packets)| flow.packets = packets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_keeps_the_largest_the_mean_and_the_sum() {
        let mut course = Stretches::new(Span::from_secs(60));
        assert_eq!(course.step(), Span::from_millis(100));
        for (ms, value) in [(0, -1.0), (99, -5.0), (100, 4.0), (60_000, 7.0), (99_000, 1.0)] {
            course.note(Span::from_millis(ms), value);
        }
        let most: Vec<_> = course.most().collect();
        assert_eq!((most[0], most[1], most[2], most[599]), (Some(-1.0), Some(4.0), None, Some(7.0)));
        assert_eq!(course.mean().next(), Some(Some(-3.0)));
        assert_eq!(course.per_second().nth(1), Some(40.0));
        assert_eq!(most.len(), STRETCHES);
    }

    #[test]
    fn the_shortest_and_the_longest_run_have_as_many_stretches() {
        for duration in [Span::ZERO, Span::from_nanos(1), Span::from_secs(1_000_000)] {
            let mut course = Stretches::new(duration);
            course.note(duration, 1.0);
            assert_eq!(course.most().filter(Option::is_some).count(), 1);
        }
    }
}
