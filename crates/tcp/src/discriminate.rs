//! Losses of the link told from losses of a queue by the gap between arrivals around them.
//!
//! ```text
//! n lost between two arrivals that are T apart:   of the link   when  (n + 1) Tmin <= T < (n + 2) Tmin
//!                                                 of a queue    otherwise                               [s]
//! ```
//!
//! Tmin: the least gap between arrivals so far. Where the last link is the slowest and carries this sender alone, packets
//! arrive Tmin apart; those lost on it leave exactly their places, those dropped before it leave none.
//!
//! Source: Biaz and Vaidya, "Discriminating congestion losses from wireless losses using inter-arrival times at the
//! receiver" (1999); for TFRC: Cen, Cosman and Voelker, "End-to-end differentiation of congestion and wireless losses" (2003).

use lasthop_core::units::Span;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BiazVaidya {
    /// None before two arrivals.
    least: Option<Span>,
}

impl BiazVaidya {
    /// Two packets arrived so far apart, one after the other.
    pub fn on_gap(&mut self, gap: Span) {
        self.least = Some(self.least.map_or(gap, |least| least.min(gap)));
    }

    /// Whether `lost` packets between two arrivals `gap` apart were lost on the link.
    pub fn is_of_the_link(&self, lost: u64, gap: Span) -> bool {
        let Some(least) = self.least else { return false };
        let times = |n: u64| u128::from(least.as_nanos()) * u128::from(n);
        let gap = u128::from(gap.as_nanos());
        times(lost + 1) <= gap && gap < times(lost + 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leaves_its_place_was_lost_on_the_link() {
        let mut rule = BiazVaidya::default();
        assert!(!rule.is_of_the_link(1, Span::from_millis(20)));
        [12, 10, 30].iter().for_each(|ms| rule.on_gap(Span::from_millis(*ms)));
        let of_the_link = |lost, ms| rule.is_of_the_link(lost, Span::from_millis(ms));
        assert!(of_the_link(1, 20) && of_the_link(1, 29) && of_the_link(3, 40));
        assert!(!of_the_link(1, 10) && !of_the_link(1, 19) && !of_the_link(1, 30) && !of_the_link(3, 20));
    }
}
