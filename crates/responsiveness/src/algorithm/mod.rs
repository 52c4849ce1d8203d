//! The draft's algorithm without I/O: bytes and probes in; connections to open, probes to send, and the end out.
//!
//! Every interval: add connections; first wait until the moving average of the goodput is stable, then until the responsiveness of the
//! last MAD intervals is, then end (or, as a load without end, stay as it is).
//!
//! ```text
//! goodput(i) = bytes of the intervals i-MAD+1 ..= i / their length      stable: sd(last MAD) < SDT x last
//! rpm(i)     = score of the probes that ended in them                   stable: sd(last MAD) < SDT x last
//! ```
//!
//! Source: draft-ietf-ippm-responsiveness-09, "Final Algorithm" and "Confidence of Test-Results". Which choices were taken where it leaves
//! some stands at the head of this crate.

mod block;
mod interval;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use lasthop_core::units::{Span, Time};
use serde::Serialize;

pub use self::block::Report;
use self::interval::Interval;
use crate::params::{Direction, Directions, Params};
use crate::score::{Foreign, Score};
use crate::statistics::Stability;

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Open one more connection that carries load this way.
    Connect(Direction),
    /// Send a probe on a connection of its own.
    ProbeForeign,
    /// Send a probe on one of the connections that carry the load, chosen at random among all of them.
    ProbeSelf,
    /// The test is over: [`Algorithm::report`] has the result.
    Finish,
}

/// How far a test is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Waiting for the goodput to be stable.
    Goodput,
    /// Waiting for the responsiveness to be stable.
    Responsiveness,
    /// Stable, and (a load without end) kept so.
    Holding,
    /// Over.
    Finished,
}

/// How much a result is to be trusted, by the draft's definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Fewer than MAD intervals.
    Low,
    /// MAD intervals and more, which do not agree.
    Medium,
    /// Stable within SDT.
    High,
}

impl Confidence {
    fn of(stability: &Stability) -> Self {
        match (stability.is_reached(), stability.is_full()) {
            (true, _) => Self::High,
            (false, true) => Self::Medium,
            (false, false) => Self::Low,
        }
    }

    /// In one word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// How it stands, for who waits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Snapshot {
    /// What is waited for.
    pub stage: Stage,
    /// Intervals that are over.
    pub intervals: usize,
    /// Connections asked for, down and up.
    pub connections: [usize; 2],
    /// Moving averages of the goodput, down and up, bit/s.
    pub goodput_bps: [f64; 2],
    /// The responsiveness of the last MAD intervals, once there is one, round trips per minute.
    pub rpm: Option<f64>,
    /// Probes under way.
    pub outstanding: usize,
    /// Probes that were not sent because too many were under way.
    pub skipped: u64,
}

/// The algorithm.
#[derive(Debug)]
pub struct Algorithm {
    params: Params,
    directions: Directions,
    started: Time,
    stage: Stage,
    /// When the current interval is to end.
    ends: Time,
    current: Interval,
    past: VecDeque<Interval>,
    intervals: usize,
    asked: [usize; 2],
    goodput: [Stability; 2],
    goodput_confidence: Confidence,
    responsiveness: Stability,
    probe_gap: Option<Span>,
    next_probe: Option<Time>,
    /// Foreign and self probes take turns.
    foreign_is_next: bool,
    outstanding: usize,
    skipped: u64,
    actions: VecDeque<Action>,
}

impl Algorithm {
    /// A test or load in `directions` that starts at `now`.
    #[must_use]
    pub fn new(params: Params, directions: Directions, now: Time) -> Self {
        let stability = || Stability::new(params.moving_average_distance, params.tolerance);
        let mut algorithm = Self {
            params,
            directions,
            started: now,
            stage: Stage::Goodput,
            ends: now + params.interval,
            current: Interval::from(now),
            past: VecDeque::new(),
            intervals: 0,
            asked: [0; 2],
            goodput: [stability(), stability()],
            goodput_confidence: Confidence::Low,
            responsiveness: stability(),
            probe_gap: None,
            next_probe: None,
            foreign_is_next: true,
            outstanding: 0,
            skipped: 0,
            actions: VecDeque::new(),
        };
        algorithm.add_connections(params.initial_connections);
        algorithm
    }

    /// Payload that went this way since it was last said.
    pub fn on_bytes(&mut self, now: Time, direction: Direction, bytes: u64) {
        self.current.bytes[direction.index()] += bytes;
        self.advance(now);
    }

    /// A probe on a connection of its own came back.
    pub fn on_foreign(&mut self, now: Time, probe: Foreign) {
        self.outstanding = self.outstanding.saturating_sub(1);
        self.advance(now);
        self.current.foreign.push(probe);
    }

    /// A probe on a connection of the load came back after `took_ms`.
    pub fn on_self(&mut self, now: Time, took_ms: f64) {
        self.outstanding = self.outstanding.saturating_sub(1);
        self.advance(now);
        self.current.own.push(took_ms);
    }

    /// A probe did not come back, or could not be sent.
    pub fn on_lost_probe(&mut self, now: Time) {
        self.outstanding = self.outstanding.saturating_sub(1);
        self.advance(now);
        self.current.lost += 1;
    }

    /// What is to be done now; until `None`.
    pub fn poll(&mut self, now: Time) -> Option<Action> {
        self.advance(now);
        self.actions.pop_front()
    }

    /// When to poll next, at the latest; `None`: the test is over.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        match self.stage {
            Stage::Finished => None,
            _ => Some(self.next_probe.map_or(self.ends, |probe| probe.min(self.ends))),
        }
    }

    /// How it stands.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            stage: self.stage,
            intervals: self.intervals,
            connections: self.asked,
            goodput_bps: Direction::ALL.map(|direction| self.moving_average(direction) * 8.0),
            rpm: self.score().map(|score| score.rpm),
            outstanding: self.outstanding,
            skipped: self.skipped,
        }
    }

    fn advance(&mut self, now: Time) {
        if self.stage == Stage::Finished {
            return;
        }
        if now >= self.ends {
            self.end_interval(now);
        }
        if self.stage != Stage::Finished && self.next_probe.is_some_and(|at| at <= now) {
            self.send_probe(now);
        }
    }

    /// Late wake-ups do not send in a burst what was missed.
    fn send_probe(&mut self, now: Time) {
        let (Some(at), Some(gap)) = (self.next_probe, self.probe_gap) else { return };
        if self.outstanding < self.params.most_outstanding {
            self.outstanding += 1;
            self.actions.push_back(if self.foreign_is_next { Action::ProbeForeign } else { Action::ProbeSelf });
        } else {
            self.skipped += 1;
        }
        self.foreign_is_next = !self.foreign_is_next;
        let half = gap.mul_f64(0.5);
        self.next_probe = Some((at + half).max(now + half.mul_f64(0.5)));
    }

    fn end_interval(&mut self, now: Time) {
        while self.ends <= now {
            self.ends += self.params.interval;
        }
        let ended = std::mem::replace(&mut self.current, Interval::from(now));
        self.past.push_back(Interval { end: now, ..ended });
        if self.past.len() > self.params.kept_intervals.max(self.params.moving_average_distance) {
            self.past.pop_front();
        }
        self.intervals += 1;
        let are_stable = self.look_at_goodput();
        self.set_probe_rate(now);
        match self.stage {
            Stage::Goodput => self.wait_for_goodput(now, are_stable),
            Stage::Responsiveness => self.wait_for_responsiveness(),
            Stage::Holding | Stage::Finished => {}
        }
        let is_late = self.params.limit.is_some_and(|limit| now.since(self.started) >= limit);
        if is_late && self.stage != Stage::Finished {
            self.finish();
        }
        if matches!(self.stage, Stage::Goodput | Stage::Responsiveness) {
            self.add_connections(self.params.added_connections);
        }
    }

    fn look_at_goodput(&mut self) -> bool {
        let mut are_stable = true;
        for &direction in self.directions.each() {
            let average = self.moving_average(direction);
            are_stable &= self.goodput[direction.index()].push(average);
        }
        are_stable
    }

    fn wait_for_goodput(&mut self, now: Time, are_stable: bool) {
        let each = self.directions.each().iter().map(|direction| Confidence::of(&self.goodput[direction.index()]));
        self.goodput_confidence = each.min().unwrap_or(Confidence::Low);
        let has_waited = self.params.limit.is_some_and(|limit| now.since(self.started) >= limit.mul_f64(0.5));
        if are_stable || has_waited {
            self.stage = Stage::Responsiveness;
        }
    }

    fn wait_for_responsiveness(&mut self) {
        let Some(score) = self.score() else { return };
        if self.responsiveness.push(score.rpm) {
            match self.params.limit {
                Some(_) => self.finish(),
                None => self.stage = Stage::Holding,
            }
        }
    }

    fn finish(&mut self) {
        self.stage = Stage::Finished;
        self.next_probe = None;
        self.actions.push_back(Action::Finish);
    }

    fn add_connections(&mut self, count: usize) {
        for &direction in self.directions.each() {
            let asked = &mut self.asked[direction.index()];
            let more = count.min(self.params.most_connections.saturating_sub(*asked));
            *asked += more;
            self.actions.extend(std::iter::repeat_n(Action::Connect(direction), more));
        }
    }

    /// By the slower direction under load: probes must not fill that one.
    fn set_probe_rate(&mut self, now: Time) {
        let slowest =
            self.directions.each().iter().map(|&direction| self.moving_average(direction)).min_by(f64::total_cmp);
        self.probe_gap = self.params.pair_gap(slowest.unwrap_or(0.0));
        self.next_probe = match (self.probe_gap, self.next_probe) {
            // A next probe that was planned at a slower pace comes no later than the new pace has it.
            (Some(gap), Some(at)) => Some(at.min(now + gap.mul_f64(0.5))),
            (Some(_), None) => Some(now),
            (None, _) => None,
        };
    }

    /// The last MAD intervals.
    fn recent(&self) -> impl Iterator<Item = &Interval> + Clone {
        self.past.iter().skip(self.past.len().saturating_sub(self.params.moving_average_distance))
    }

    /// Goodput over the last MAD intervals, byte/s; 0 before the first is over.
    fn moving_average(&self, direction: Direction) -> f64 {
        interval::goodput(self.recent(), direction)
    }

    fn score(&self) -> Option<Score> {
        interval::score(self.recent(), self.params.trimmed_mean)
    }
}
