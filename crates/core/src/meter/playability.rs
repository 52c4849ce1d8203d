//! Playability: the share of a game's packets that arrive within 150 ms.
//!
//! Source: CHAP section 5; L. Pantel, L. Wolf, NOSSDAV 2002 (150 ms is the most that players endure). A lost packet
//! never arrives and so counts against it.

use super::histogram::Histogram;
use crate::units::Span;

/// The delay that players endure.
pub const LIMIT: Span = Span::from_millis(150);

/// Share of `sent` packets whose one-way `delays` are within [`LIMIT`], 0..=1; `None` when nothing was sent.
#[must_use]
pub fn playability(delays: &Histogram, sent: u64) -> Option<f64> {
    let within = delays.share_within(LIMIT).unwrap_or(0.0) * delays.count() as f64;
    (sent > 0).then(|| within / sent as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_and_lost_packets_are_not_playable() {
        let mut delays = Histogram::new();
        for ms in [20, 149, 400] {
            delays.record(Span::from_millis(ms));
        }
        assert_eq!(playability(&delays, 4), Some(0.5));
        assert_eq!(playability(&delays, 0), None);
    }
}
