//! Who is in line in one class, and whose turn it is.

use std::collections::VecDeque;

use crate::packet::AccessCategory;
use crate::units::{Span, Time};

/// How long a station without packets stays in line to get its deficit back (`AIRTIME_ACTIVE_DURATION`).
const KEPT: Span = Span::from_millis(100);

/// Where a station stands in one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    /// Air time it may still use, ns.
    pub(super) deficit: i64,
    /// Estimated air time of its packets below the discipline.
    pub(super) pending: Span,
    /// When it was last in line with packets.
    last_active: Time,
    /// The round in which it had its last turn; 0: none yet.
    round: u64,
    is_in_line: bool,
}

impl Standing {
    /// Of a station that is there from now on: it has a quantum.
    pub(super) fn new(quantum: i64) -> Self {
        Self { deficit: quantum, pending: Span::ZERO, last_active: Time::ZERO, round: 0, is_in_line: false }
    }

    /// What is left of its deficit when what is pending will have been sent.
    fn left(&self) -> i64 {
        self.deficit.saturating_sub_unsigned(self.pending.as_nanos())
    }
}

/// The line of one class.
#[derive(Clone, Debug)]
pub(super) struct Line {
    stations: VecDeque<u16>,
    /// Out of the line while it is its turn.
    at_turn: Option<u16>,
    round: u64,
}

impl Default for Line {
    fn default() -> Self {
        Self { stations: VecDeque::new(), at_turn: None, round: 1 }
    }
}

impl Line {
    /// A station has a packet: it goes to the front, unless it is in line; without fairness to the end.
    pub(super) fn come(&mut self, station: u16, standing: &mut Standing, now: Time, is_fair: bool) {
        if !standing.is_in_line && self.at_turn != Some(station) {
            standing.is_in_line = true;
            standing.last_active = now;
            if is_fair { self.stations.push_front(station) } else { self.stations.push_back(station) }
        }
    }

    /// Whose turn has begun.
    pub(super) fn at_turn(&self) -> Option<u16> {
        self.at_turn
    }

    /// Everybody in line, and whose turn it is.
    pub(super) fn stations(&self) -> impl Iterator<Item = u16> {
        self.stations.iter().copied().chain(self.at_turn)
    }

    /// Whose turn begins; `None`: nobody's, and the round is over.
    ///
    /// The line is walked until it comes to one that `may_send` and whose deficit is not negative; who is passed with a
    /// negative one gets a quantum. That one has as many quanta to get as any, so who is the first of those with the
    /// fewest is found without walking.
    pub(super) fn next(
        &mut self,
        standings: &mut [Standing],
        class: AccessCategory,
        quantum: i64,
        may_send: impl Fn(&Standing) -> bool,
    ) -> Option<u16> {
        let at = |station: u16| 4 * usize::from(station) + class.index();
        let lacking = |standing: &Standing| standing.left().min(0).unsigned_abs().div_ceil(quantum as u64);
        let ready = |(place, station): (usize, &u16)| {
            let standing = &standings[at(*station)];
            may_send(standing).then(|| (lacking(standing), place))
        };
        let Some((walks, place)) = self.stations.iter().enumerate().filter_map(ready).min() else {
            // All were passed once.
            self.stations.iter().for_each(|station| add(&mut standings[at(*station)], quantum, 1));
            self.end_round();
            return None;
        };
        for (i, station) in self.stations.iter().enumerate() {
            add(&mut standings[at(*station)], quantum, walks + u64::from(i < place));
        }
        self.stations.rotate_left(place);
        let station = *self.stations.front()?;
        let standing = &mut standings[at(station)];
        if standing.round == self.round {
            self.end_round();
            return None;
        }
        standing.round = self.round;
        standing.is_in_line = false;
        self.stations.pop_front();
        self.at_turn = Some(station);
        Some(station)
    }

    /// The turn is over: with packets the station is the first in line again, or without fairness the last; without any it may
    /// stay at the end.
    pub(super) fn end_turn(
        &mut self,
        standings: &mut [Standing],
        class: AccessCategory,
        now: Time,
        (has_packets, is_fair): (bool, bool),
    ) {
        let Some(station) = self.at_turn.take() else { return };
        let standing = &mut standings[4 * usize::from(station) + class.index()];
        if has_packets {
            standing.last_active = now;
            if is_fair { self.stations.push_front(station) } else { self.stations.push_back(station) }
        } else if standing.left() < 0 && now.since(standing.last_active) <= KEPT {
            self.stations.push_back(station);
        } else {
            return;
        }
        standing.is_in_line = true;
    }

    /// Everybody may have a turn again.
    pub(super) fn end_round(&mut self) {
        self.round += 1;
    }
}

/// Adds up to `most` quanta, as long as the deficit is negative.
fn add(standing: &mut Standing, quantum: i64, most: u64) {
    let lacking = standing.left().min(0).unsigned_abs().div_ceil(quantum as u64);
    standing.deficit = standing.deficit.saturating_add_unsigned(lacking.min(most).saturating_mul(quantum as u64));
}
