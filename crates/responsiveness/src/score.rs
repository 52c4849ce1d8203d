//! From probes to round trips per minute.

use serde::Serialize;

use crate::statistics::trimmed_mean;

/// What one probe on a connection of its own took, in ms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Foreign {
    /// `tcp_f`: from SYN to SYN and ACK.
    pub tcp_ms: f64,
    /// `tls_f`: the handshake of TLS 1.3, one round trip.
    pub tls_ms: f64,
    /// `http_f`: from the request for the small object to its last byte.
    pub http_ms: f64,
}

/// The responsiveness, and what it is made of. Times are trimmed means in ms, rates are round trips per minute.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Score {
    /// The mean of the two below.
    pub rpm: f64,
    /// Of probes on connections of their own.
    pub foreign_rpm: f64,
    /// Of probes on the connections that carry the load.
    pub self_rpm: f64,
    /// `TM(tcp_f)`.
    pub tcp_ms: f64,
    /// `TM(tls_f)`.
    pub tls_ms: f64,
    /// `TM(http_f)`.
    pub http_ms: f64,
    /// `TM(http_l)`.
    pub self_ms: f64,
    /// Probes on connections of their own that are behind this.
    pub foreign_probes: usize,
    /// Probes on the connections that carry the load.
    pub self_probes: usize,
}

impl Score {
    /// Of these probes, with trimmed means that keep the lowest `kept` (0..=1) of the values; `None` where one kind has none.
    pub fn of<'a>(
        foreign: impl Iterator<Item = &'a Foreign> + Clone,
        own: impl Iterator<Item = f64>,
        kept: f64,
    ) -> Option<Self> {
        let own: Vec<f64> = own.collect();
        let column = |value: fn(&Foreign) -> f64| trimmed_mean(foreign.clone().map(value).collect(), kept);
        let (foreign_probes, self_probes) = (foreign.clone().count(), own.len());
        let (tcp_ms, tls_ms, http_ms) = (column(|f| f.tcp_ms)?, column(|f| f.tls_ms)?, column(|f| f.http_ms)?);
        let self_ms = trimmed_mean(own, kept)?;
        let foreign_rpm = 60_000.0 / ((tcp_ms + tls_ms + http_ms) / 3.0);
        let self_rpm = 60_000.0 / self_ms;
        let rpm = f64::midpoint(foreign_rpm, self_rpm);
        rpm.is_finite().then_some(Self {
            rpm,
            foreign_rpm,
            self_rpm,
            tcp_ms,
            tls_ms,
            http_ms,
            self_ms,
            foreign_probes,
            self_probes,
        })
    }

    /// The draft's word for it.
    #[must_use]
    pub fn category(&self) -> Category {
        match self.rpm {
            ..300.0 => Category::Poor,
            ..1000.0 => Category::Fair,
            ..6000.0 => Category::Good,
            _ => Category::Excellent,
        }
    }
}

/// The draft's four broad categories of responsiveness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Category {
    /// Less than 300 RPM: more than 200 ms.
    Poor,
    /// Less than 1000 RPM: more than 60 ms.
    Fair,
    /// Less than 6000 RPM: more than 10 ms.
    Good,
    /// The rest.
    Excellent,
}

impl Category {
    /// In one word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Poor => "poor",
            Self::Fair => "fair",
            Self::Good => "good",
            Self::Excellent => "excellent",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(foreign: &[(f64, f64, f64)], own: &[f64]) -> Option<Score> {
        let foreign: Vec<Foreign> =
            foreign.iter().map(|&(tcp_ms, tls_ms, http_ms)| Foreign { tcp_ms, tls_ms, http_ms }).collect();
        Score::of(foreign.iter(), own.iter().copied(), 0.95)
    }

    #[test]
    fn responsiveness_is_the_mean_of_foreign_and_self_by_the_formula_of_the_draft() {
        let score = score(&[(100.0, 200.0, 300.0)], &[400.0]).expect("both kinds");
        // 60000 / ((100 + 200 + 300) / 3) = 300; 60000 / 400 = 150; their mean is 225.
        assert_eq!((score.foreign_rpm, score.self_rpm, score.rpm), (300.0, 150.0, 225.0));
        assert_eq!(score.category(), Category::Poor);
    }

    #[test]
    fn each_component_is_trimmed_by_itself() {
        let mut foreign = vec![(10.0, 20.0, 30.0); 19];
        foreign.push((9000.0, 20.0, 30.0));
        foreign[0] = (10.0, 9000.0, 30.0);
        let score = score(&foreign, &[20.0; 20]).expect("both kinds");
        assert_eq!((score.tcp_ms, score.tls_ms, score.http_ms), (10.0, 20.0, 30.0));
        assert_eq!((score.rpm, score.foreign_probes, score.self_probes), (3000.0, 20, 20));
        assert_eq!(score.category(), Category::Good);
    }

    #[test]
    fn without_one_kind_of_probes_there_is_no_responsiveness() {
        assert_eq!(score(&[], &[10.0]), None);
        assert_eq!(score(&[(1.0, 1.0, 1.0)], &[]), None);
    }

    #[test]
    fn categories_change_where_the_draft_has_its_lines() {
        let of = |ms: f64| score(&[(ms, ms, ms)], &[ms]).expect("both kinds").category();
        assert_eq!(
            [201.0, 199.0, 61.0, 59.0].map(of),
            [Category::Poor, Category::Fair, Category::Fair, Category::Good]
        );
        assert_eq!([10.1, 9.9].map(of), [Category::Good, Category::Excellent]);
    }
}
