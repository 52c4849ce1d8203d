//! The draft's parameters, by its names and with its defaults, and which directions are loaded.

use lasthop_core::units::Span;
use serde::Serialize;

/// Which way the data of a load go, seen from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the server: a download.
    Down,
    /// To the server: an upload.
    Up,
}

impl Direction {
    /// Both, in the order in which everything of two directions stands here.
    pub const ALL: [Self; 2] = [Self::Down, Self::Up];

    pub(crate) const fn index(self) -> usize {
        match self {
            Self::Down => 0,
            Self::Up => 1,
        }
    }
}

/// Which directions are loaded at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Directions {
    /// Downloads only.
    Down,
    /// Uploads only.
    Up,
    /// Both at once, which the draft prefers: so a home is used.
    #[default]
    Both,
}

impl Directions {
    /// The directions themselves.
    #[must_use]
    pub const fn each(self) -> &'static [Direction] {
        match self {
            Self::Down => &[Direction::Down],
            Self::Up => &[Direction::Up],
            Self::Both => &Direction::ALL,
        }
    }
}

/// The draft's parameters (its section "Test Parameters").
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// MAD: intervals that a moving average spans, and that have to agree.
    pub moving_average_distance: usize,
    /// ID: how long an interval is. 1 s until revision 08 of the draft, 5 s in revision 09, which calls that provisional.
    pub interval: Span,
    /// TMP: the part of the values, from the lowest, that a trimmed mean keeps, 0..=1.
    pub trimmed_mean: f64,
    /// SDT: the standard deviation, relative to the last value, up to which values agree.
    pub tolerance: f64,
    /// INP: connections that carry the load at the start, in each direction.
    pub initial_connections: usize,
    /// INC: connections that every interval adds, in each direction.
    pub added_connections: usize,
    /// MNP: the most connections, in each direction.
    pub most_connections: usize,
    /// MPS: the most probes a second; half of them foreign, half on the connections of the load.
    pub probes_per_second: u32,
    /// PTC: the part of the capacity that probes may take, 0..=1.
    pub probe_capacity: f64,
    /// The most probes that may be under way at once; further ones are skipped and counted. Keeps memory bounded on a path that stalls.
    pub most_outstanding: usize,
    /// How many intervals are remembered, for [`crate::Algorithm::between`]; at least MAD.
    pub kept_intervals: usize,
    /// When a test that does not become stable ends; `None`: it is a load that goes on until it is stopped, also when it is stable.
    pub limit: Option<Span>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            moving_average_distance: 4,
            interval: Span::from_secs(1),
            trimmed_mean: 0.95,
            tolerance: 0.05,
            initial_connections: 1,
            added_connections: 1,
            most_connections: 16,
            probes_per_second: 100,
            probe_capacity: 0.05,
            most_outstanding: 256,
            kept_intervals: 600,
            limit: Some(Span::from_secs(20)),
        }
    }
}

impl Params {
    /// The same for a load that goes on until it is stopped.
    #[must_use]
    pub fn without_end(self) -> Self {
        Self { limit: None, ..self }
    }

    /// How long after a pair of probes the next one may start, where the slower loaded direction carries `bytes_per_second`; `None`: none
    /// may.
    pub(crate) fn pair_gap(&self, bytes_per_second: f64) -> Option<Span> {
        let spare = bytes_per_second * self.probe_capacity;
        if spare <= 0.0 || self.probes_per_second == 0 {
            return None;
        }
        let by_capacity = PAIR_BYTES / spare;
        Some(Span::from_secs_f64(by_capacity.max(2.0 / f64::from(self.probes_per_second))))
    }
}

/// What the draft takes a foreign probe (5000) and one on a connection of the load (1000) to exchange, in bytes.
const PAIR_BYTES: f64 = 6000.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_take_no_more_than_their_part_of_the_capacity() {
        let params = Params::default();
        // 20 Mbit/s are 2.5 MB/s, of which 5 % are 125 kB/s: a pair of 6000 bytes every 48 ms.
        assert_eq!(params.pair_gap(2.5e6), Some(Span::from_millis(48)));
        assert_eq!(params.pair_gap(0.0), None);
    }

    #[test]
    fn a_fast_path_has_one_hundred_probes_a_second_which_are_fifty_pairs() {
        assert_eq!(Params::default().pair_gap(1e9), Some(Span::from_millis(20)));
    }
}
