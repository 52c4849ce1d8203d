//! The receiver's history of loss events.
//!
//! ```text
//! a loss begins an event when it comes more than R after the beginning of the last one
//! I_i: packets from the beginning of an event to that of the next;  I_0: those since the last one
//! p = min(W_tot0 / I_tot0, W_tot1 / I_tot1)
//! I_tot0 = w_0 I_0 + sum(w_i DF_i DF I_i, i = 1..7),   I_tot1 = sum(w_{i-1} DF_i I_i, i = 1..8), W_tot: the same without I
//! w = 1, 1, 1, 1, 0.8, 0.6, 0.4, 0.2;   DF = max(2 I_mean / I_0, 0.25) where I_0 > 2 I_mean = 2 I_tot1 / W_tot1, else 1
//! ```
//!
//! With a new event each DF_i becomes DF_i x DF. Before the first event nothing is known of an interval: it is given the length
//! at which the equation would allow the rate that was received (half a packet per round trip where that is unknown).
//!
//! Source: RFC 5348 sections 5.2 to 5.5 and 6.3.1.

use lasthop_core::units::{Span, Time};

use super::equation;

/// Closed intervals that count.
const KEPT: usize = 8;
const WEIGHTS: [f64; KEPT] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
/// Least discount in one go.
const THRESHOLD: f64 = 0.25;

/// An interval that has ended.
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    packets: f64,
    /// DF_i.
    discount: f64,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// The newest event: its first packet, and when that was lost.
    start: Option<(u64, Time)>,
    /// The newest first.
    closed: [Interval; KEPT],
    count: usize,
    events: u64,
}

impl History {
    /// Packet `sequence` was lost at `at`; whether that begins an event. `rtt`: of the sender, `rate`: what was received,
    /// bytes/s, `size`: of a packet, bytes.
    pub fn on_loss(&mut self, sequence: u64, at: Time, rtt: Span, rate: f64, size: f64) -> bool {
        let packets = match self.start {
            Some((_, start)) if at <= start + rtt => return false,
            Some((first, _)) => sequence.saturating_sub(first) as f64,
            None => first_interval(rtt, rate, size),
        };
        let discount = self.discount(sequence);
        for interval in &mut self.closed[..self.count] {
            interval.discount *= discount;
        }
        self.count = KEPT.min(self.count + 1);
        self.closed[..self.count].rotate_right(1);
        self.closed[0] = Interval { packets, discount: 1.0 };
        self.start = Some((sequence, at));
        self.events += 1;
        true
    }

    /// Losses until then are of the newest event.
    pub fn event_ends(&self, rtt: Span) -> Option<Time> {
        self.start.map(|(_, at)| at + rtt)
    }

    /// Loss events so far.
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// p, when every number below `expected` has been sent; 0 before the first event.
    pub fn loss_event_rate(&self, expected: u64) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let (open, discount) = (self.open(expected), self.discount(expected));
        let (mut total, mut weight) = (WEIGHTS[0] * open, WEIGHTS[0]);
        for (interval, w) in self.closed[..self.count.min(KEPT - 1)].iter().zip(&WEIGHTS[1..]) {
            let w = w * interval.discount * discount;
            total += w * interval.packets;
            weight += w;
        }
        let (closed_total, closed_weight) = self.closed_totals();
        (weight / total.max(1.0)).min(closed_weight / closed_total.max(1.0)).min(1.0)
    }

    /// I_0.
    fn open(&self, expected: u64) -> f64 {
        self.start.map_or(0.0, |(first, _)| expected.saturating_sub(first) as f64)
    }

    /// I_tot1 and W_tot1.
    fn closed_totals(&self) -> (f64, f64) {
        let each = self.closed[..self.count].iter().zip(&WEIGHTS);
        each.fold((0.0, 0.0), |(total, weight), (interval, w)| {
            let w = w * interval.discount;
            (total + w * interval.packets, weight + w)
        })
    }

    /// DF.
    fn discount(&self, expected: u64) -> f64 {
        let (total, weight) = self.closed_totals();
        if weight == 0.0 {
            return 1.0;
        }
        let (open, twice) = (self.open(expected), 2.0 * total / weight);
        if open > twice { (twice / open).max(THRESHOLD) } else { 1.0 }
    }
}

/// What stands for the interval before the first event, packets.
fn first_interval(rtt: Span, rate: f64, size: f64) -> f64 {
    if rtt == Span::ZERO || size <= 0.0 {
        return 1.0;
    }
    let rtt = rtt.as_secs_f64();
    let rate = if rate > 0.0 { rate } else { 0.5 * size / rtt };
    1.0 / equation::loss_event_rate(size, rtt, rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Span = Span::from_millis(100);

    fn ms(n: u64) -> Time {
        Time::from_nanos(n * 1_000_000)
    }

    /// A packet a millisecond, the given ones lost.
    fn after(lost: impl IntoIterator<Item = u64>) -> History {
        let mut history = History::default();
        for sequence in lost {
            // What was received allows an interval of 1 / 0.01.
            let rate = equation::throughput(1000.0, 0.1, 0.01);
            history.on_loss(sequence, ms(sequence), RTT, rate, 1000.0);
        }
        history
    }

    fn close(found: f64, right: f64) -> bool {
        (found / right - 1.0).abs() < 1e-6
    }

    #[test]
    fn losses_within_a_round_trip_are_one_event() {
        let history = after([200, 210, 300]);
        assert_eq!(history.events(), 1);
        assert_eq!(after([200, 210, 301]).events(), 2);
        assert!(close(history.loss_event_rate(201), 0.01), "{}", history.loss_event_rate(201));
    }

    #[test]
    fn equal_intervals_give_their_inverse_and_an_open_one_can_only_lower_it() {
        let history = after((1..20).map(|n| n * 200));
        assert!(close(history.loss_event_rate(3801), 1.0 / 200.0));
        assert!(close(history.loss_event_rate(3800 + 200), 1.0 / 200.0));
        // 300 of weight 1, and 200 seven times of weights that sum up to 5.
        assert!(close(history.loss_event_rate(3800 + 300), 6.0 / (300.0 + 5.0 * 200.0)));
    }

    #[test]
    fn the_newest_four_intervals_count_fully() {
        // Seven of 200 packets after one of 600, then one more: the long one has weight 0.2.
        let ends = [1000, 1600, 1800, 2000, 2200, 2400, 2600, 2800, 3000];
        let history = after(ends);
        let mean = (200.0 * 5.8 + 600.0 * 0.2) / 6.0;
        assert!(close(history.loss_event_rate(3001), 1.0 / mean), "{}", 1.0 / history.loss_event_rate(3001));
    }

    #[test]
    fn a_long_interval_without_loss_takes_weight_from_the_old_ones() {
        let history = after((1..20).map(|n| n * 200));
        // I_0 = 800 is four means: DF = 0.5. (800 + 0.5 x 5 x 200) / (1 + 0.5 x 5), the weights 1..7 sum up to 5.
        let rate = history.loss_event_rate(3800 + 800);
        assert!(close(rate, 3.5 / (800.0 + 0.5 * 5.0 * 200.0)), "{}", 1.0 / rate);
        // At its end the discount stays with the old ones, which count on from the second place: 6 - 1 = 5.
        let mut ended = history;
        ended.on_loss(4600, ms(4600), RTT, 0.0, 1000.0);
        let rate = ended.loss_event_rate(4601);
        assert!(close(rate, (1.0 + 0.5 * 5.0) / (800.0 + 0.5 * 5.0 * 200.0)), "{}", 1.0 / rate);
    }
}
