//! A grade by added delay, as a speed test gives it.
//!
//! Source: the scale of DSLReports' speed test ("Bufferbloat Grades", <https://www.dslreports.com/faq/17930>), which others took over, LibreQoS's
//! test among them. It grades how much longer a round trip is while a line is full than while it is idle: below 5 ms A+, below 30 ms A,
//! below 60 ms B, below 200 ms C, below 400 ms D, F from there on; there is no E.
//!
//! Differs: they take the mean over a test of less than a minute, of both directions; this is the 95th percentile of one direction, and
//! of pairs of blocks the median, so it is the stricter one.

use serde::{Deserialize, Serialize};

/// The scale, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Grade {
    /// Below 5 ms.
    #[serde(rename = "A+")]
    APlus,
    /// Below 30 ms.
    A,
    /// Below 60 ms.
    B,
    /// Below 200 ms.
    C,
    /// Below 400 ms.
    D,
    /// All above.
    F,
}

/// Added delay below which a grade is given, ms.
const BOUNDS: [(f64, Grade); 5] =
    [(5.0, Grade::APlus), (30.0, Grade::A), (60.0, Grade::B), (200.0, Grade::C), (400.0, Grade::D)];

/// Whose scale it is, for reports.
pub const SOURCE: &str = "scale of DSLReports' bufferbloat grades";

impl Grade {
    /// The grade of so much added delay, ms.
    #[must_use]
    pub fn of(added_ms: f64) -> Self {
        BOUNDS.iter().find(|(bound, _)| added_ms < *bound).map_or(Self::F, |(_, grade)| *grade)
    }

    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::APlus => "A+",
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
            Self::D => "D",
            Self::F => "F",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grades_are_those_of_the_published_scale() {
        let waits = [0.0, 4.99, 5.0, 29.9, 30.0, 59.9, 60.0, 199.0, 200.0, 399.0, 400.0, f64::INFINITY];
        let names: Vec<_> = waits.iter().map(|ms| Grade::of(*ms).name()).collect();
        assert_eq!(names, ["A+", "A+", "A", "A", "B", "B", "C", "C", "D", "D", "F", "F"]);
    }
}
