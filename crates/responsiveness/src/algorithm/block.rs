//! Results: of a whole test, and of the part of a load between two instants.

use lasthop_core::units::Time;
use serde::Serialize;

use super::interval::{Interval, goodput, score};
use super::{Algorithm, Confidence, Stage};
use crate::params::Direction;
use crate::score::Score;
use crate::statistics::Stability;

/// A result. Without probes of both kinds there is none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The responsiveness and its components.
    #[serde(flatten)]
    pub score: Score,
    /// Goodput of downloads, bit/s, where there were some.
    pub goodput_down_bps: Option<f64>,
    /// Goodput of uploads, bit/s, where there were some.
    pub goodput_up_bps: Option<f64>,
    /// Connections that carried load, down and up.
    pub connections: [usize; 2],
    /// Whether goodput and responsiveness both became stable.
    pub stable: bool,
    /// How far the responsiveness is to be trusted.
    pub confidence: Confidence,
    /// How far the goodput is to be trusted.
    pub goodput_confidence: Confidence,
    /// Probes that did not come back.
    pub lost_probes: usize,
    /// Intervals behind this result.
    pub intervals: usize,
    /// How long they were together, s.
    pub seconds: f64,
}

impl Algorithm {
    /// The test's result by its last MAD intervals, also while it is not over; `None` before there were probes of both kinds.
    #[must_use]
    pub fn report(&self) -> Option<Report> {
        let recent: Vec<&Interval> = self.recent().collect();
        let confidence = Confidence::of(&self.responsiveness);
        let report = self.of(&recent, confidence, self.goodput_confidence)?;
        let seconds = self.past.back()?.end.since(self.started).as_secs_f64();
        Some(Report { intervals: self.intervals, seconds, ..report })
    }

    /// The result of the intervals that lie within `from` and `until` whole: all their bytes and probes. The confidence is that of these
    /// intervals alone, as though the test had begun with them. `None` where they have no probes of both kinds.
    #[must_use]
    pub fn between(&self, from: Time, until: Time) -> Option<Report> {
        let within: Vec<&Interval> =
            self.past.iter().filter(|interval| interval.start >= from && interval.end <= until).collect();
        let (goodput, confidence) = self.confidence_in(&within);
        self.of(&within, confidence, goodput)
    }

    fn of(&self, intervals: &[&Interval], confidence: Confidence, goodput_confidence: Confidence) -> Option<Report> {
        let each = || intervals.iter().copied();
        let rate = |direction| self.directions.each().contains(&direction).then(|| goodput(each(), direction) * 8.0);
        Some(Report {
            score: score(each(), self.params.trimmed_mean)?,
            goodput_down_bps: rate(Direction::Down),
            goodput_up_bps: rate(Direction::Up),
            connections: self.asked,
            stable: (confidence, goodput_confidence) == (Confidence::High, Confidence::High),
            confidence,
            goodput_confidence,
            lost_probes: each().map(|interval| interval.lost).sum(),
            intervals: intervals.len(),
            seconds: each().map(|interval| interval.end.since(interval.start).as_secs_f64()).sum(),
        })
    }

    /// Of goodput and responsiveness, as the last of these intervals has it.
    fn confidence_in(&self, intervals: &[&Interval]) -> (Confidence, Confidence) {
        let distance = self.params.moving_average_distance;
        let stability = || Stability::new(distance, self.params.tolerance);
        let (mut rates, mut scores) = ([stability(), stability()], stability());
        for last in 0..intervals.len() {
            let window = || intervals[(last + 1).saturating_sub(distance)..=last].iter().copied();
            for &direction in self.directions.each() {
                rates[direction.index()].push(goodput(window(), direction));
            }
            if let Some(score) = score(window(), self.params.trimmed_mean) {
                scores.push(score.rpm);
            }
        }
        let each = self.directions.each().iter().map(|direction| Confidence::of(&rates[direction.index()]));
        (each.min().unwrap_or(Confidence::Low), Confidence::of(&scores))
    }

    /// Whether the test is over.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.stage == Stage::Finished
    }
}
