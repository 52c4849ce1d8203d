//! HyStart: slow start ends when the round trip begins to grow or a round's ACKs last as long as the path, not at a loss.
//!
//! ```text
//! delay  end when  min(first 8 RTTs of a round) > D + clamp(D / 8, 4 ms, 16 ms)                 D: least RTT seen [s]
//! train  end when  ACKs of a round, at most 2 ms apart, have lasted for more than D / 2
//! ```
//!
//! A round ends when something is acknowledged that was sent after its start. From a window of 16 segments on.
//!
//! Source: Ha and Rhee, "Taming the elephants: new TCP slow start", Computer Networks 55 (2011), with the constants of
//! Linux (`tcp_cubic.c`). RFC 9438 section 4.10 asks for HyStart++ (RFC 9406), which leaves out the train and grows on
//! slowly: this is what the hosts of the emulator run.

use lasthop_core::units::{Span, Time};

use super::AckEvent;

/// Below this window it is silent, segments.
const LOW_WINDOW: f64 = 16.0;
/// Round trips of a round that are looked at.
const SAMPLES: u32 = 8;
/// Bounds of what a round trip may grow by.
const DELAY: (Span, Span) = (Span::from_millis(4), Span::from_millis(16));
/// ACKs that are farther apart are of two trains.
const GAP: Span = Span::from_millis(2);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct HyStart {
    /// Least round trip.
    least: Option<Span>,
    round: Option<Round>,
}

#[derive(Debug)]
struct Round {
    start: Time,
    /// Newest ACK of the train that began with the round.
    newest: Time,
    least: Option<Span>,
    samples: u32,
}

impl Round {
    const fn new(now: Time) -> Self {
        Self { start: now, newest: now, least: None, samples: 0 }
    }
}

impl HyStart {
    /// An acknowledgment in slow start; whether it should end.
    pub(super) fn on_ack(&mut self, cwnd: f64, ack: &AckEvent) -> bool {
        let Some(rtt) = ack.rtt else { return false };
        let least = self.least.map_or(rtt, |least| least.min(rtt));
        self.least = Some(least);
        let ended = self.round.as_ref().is_none_or(|round| round.start + rtt <= ack.now);
        if ended {
            self.round = Some(Round::new(ack.now));
        }
        let Some(round) = self.round.as_mut().filter(|_| cwnd >= LOW_WINDOW) else { return false };
        if ack.now.since(round.newest) <= GAP {
            round.newest = ack.now;
            if ack.now.since(round.start) > least / 2 {
                return true;
            }
        }
        if round.samples < SAMPLES {
            round.samples += 1;
            round.least = Some(round.least.map_or(rtt, |least| least.min(rtt)));
            return false;
        }
        let bound = least + (least / 8).clamp(DELAY.0, DELAY.1);
        round.least = round.least.map(|own| own.min(rtt));
        round.least.is_some_and(|own| own > bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(milliseconds: f64) -> Span {
        Span::from_secs_f64(milliseconds / 1000.0)
    }

    fn ack(at: f64, rtt: f64) -> AckEvent {
        let now = Time::ZERO + ms(at);
        AckEvent { now, acked: 1.0, counted: 1.0, rtt: Some(ms(rtt)), srtt: ms(rtt), cwnd_limited: true }
    }

    /// D = 80 ms: 10 ms more than it end slow start, once eight have been seen; 9 ms do not.
    #[test]
    fn a_round_that_takes_longer_ends_slow_start() {
        for (rtt, ends) in [(89.0, false), (91.0, true)] {
            let mut hystart = HyStart::default();
            assert!(!hystart.on_ack(20.0, &ack(0.0, 80.0)));
            let answers: Vec<bool> =
                (0..9).map(|n| hystart.on_ack(20.0, &ack(100.0 + 3.0 * f64::from(n), rtt))).collect();
            assert_eq!(answers, [vec![false; 8], vec![ends]].concat(), "{rtt}");
        }
    }

    #[test]
    fn a_train_of_half_a_round_trip_ends_slow_start_and_one_with_a_gap_does_not() {
        for (gap, ends) in [(0.0, true), (3.0, false)] {
            let mut hystart = HyStart::default();
            let at = |n: u32| 100.0 + f64::from(n) + if n > 20 { gap } else { 0.0 };
            let ended = (0..60).any(|n| hystart.on_ack(100.0, &ack(at(n), 80.0)));
            assert_eq!(ended, ends, "{gap}");
        }
    }

    #[test]
    fn a_small_window_is_left_alone() {
        let mut hystart = HyStart::default();
        assert!(!(0..60).any(|n| hystart.on_ack(15.0, &ack(f64::from(n), 80.0 + f64::from(n)))));
    }
}
