//! Westwood ABSE: adaptive bandwidth share estimation.
//!
//! ```text
//! Th_k  = 0.6 Th_{k-1} + 0.4 Th                       throughput: what arrived in the last RTT, over it [segments/s]
//! T_k   = T_min                                       where Th_k RTTmin >= cwnd (no queue), else
//!         RTT (cwnd - Th_k RTTmin) / cwnd             sample window [s]
//! b_k   = sum of d_j with t_j > t_k - T_k, over T_k   [segments/s]
//! U_k   = 0.6 U_{k-1} + 0.4 |s_k - s_{k-1}|           restlessness [segments/s]; U_max: the largest of the last 10
//! tau_k = RTT + N RTT U_{k-1} / U_max,  N = 10        [s]
//! s_k   = a_k s_{k-1} + (1 - a_k) (b_k + b_{k-1}) / 2,   a_k = (2 tau_k - dt) / (2 tau_k + dt)
//! ```
//!
//! At a loss as Westwood, with s_k. A duplicate ACK counts as one segment.
//! Source: Wang, Valla, Sanadidi, Gerla, "Adaptive bandwidth share estimation in TCP Westwood", GLOBECOM 2002, as
//! its formulas are restored here where the print garbles them.
//!
//! Ours: T_min is the time between the last two ACKs (the paper leaves the scheduler's tick); RTT is the smoothed one;
//! T_k is never under T_min, and neither it nor the round trip behind Th is longer than what has been seen; tau_k uses the U of the step before, since U_k needs s_k; a gap longer than tau_k is
//! filtered as one of tau_k, so that a_k stays positive; while U_max is zero tau_k = RTT.

use std::collections::VecDeque;

use lasthop_core::units::{Span, Time};

use super::westwood::{AckedCount, pipe};
use super::{AckEvent, CongestionControl, LossEvent, Window, reno_family};

/// Weight of the past in throughput and restlessness.
const KEEP: f64 = 0.6;
/// N: most round trips that the filter may add.
const MOST_ROUND_TRIPS: f64 = 10.0;
/// Over how many samples the largest restlessness is taken.
const RESTLESS_SAMPLES: usize = 10;
/// ACKs remembered, two round trips of a large window; more are forgotten from the oldest on.
const HISTORY: usize = 16_384;

#[derive(Debug, Default)]
pub(super) struct WestwoodAbse {
    count: AckedCount,
    /// Arrival of each ACK and the sum of segments up to and with it, over the last two round trips.
    history: VecDeque<(Time, f64)>,
    total: f64,
    /// The first ACK.
    start: Time,
    throughput: f64,
    /// b_{k-1}, segments/s.
    sample: f64,
    /// s_k, segments/s.
    estimate: Option<f64>,
    /// U_{k-1}, segments/s.
    restlessness: f64,
    recent: [f64; RESTLESS_SAMPLES],
    samples: usize,
    rtt_min: Option<Span>,
}

impl WestwoodAbse {
    /// Segments reported later than `since`.
    fn reported_after(&self, since: Time) -> f64 {
        let at = self.history.partition_point(|&(time, _)| time <= since);
        match at.checked_sub(1).and_then(|before| self.history.get(before)) {
            Some(&(_, total)) => self.total - total,
            None => self.total - self.history.front().map_or(0.0, |&(_, total)| total),
        }
    }

    fn sample_window(&self, cwnd: f64, srtt: f64, shortest: f64) -> f64 {
        let rtt_min = self.rtt_min.map_or(srtt, Span::as_secs_f64);
        let queued = cwnd - self.throughput * rtt_min;
        if queued <= 0.0 { shortest } else { (srtt * queued / cwnd).max(shortest) }
    }

    fn time_constant(&self, srtt: f64) -> f64 {
        let largest = self.recent.iter().copied().fold(0.0, f64::max);
        if largest == 0.0 { srtt } else { srtt + MOST_ROUND_TRIPS * srtt * self.restlessness / largest }
    }

    /// One step: `dt` s since the last one.
    fn filter(&mut self, sample: f64, srtt: f64, dt: f64) {
        let before = core::mem::replace(&mut self.sample, sample);
        let Some(last) = self.estimate else {
            self.estimate = Some(sample);
            return;
        };
        let tau = self.time_constant(srtt);
        let next = super::westwood::tustin(last, sample, before, tau, dt.min(tau));
        self.restlessness = KEEP * self.restlessness + (1.0 - KEEP) * (next - last).abs();
        self.recent[self.samples % RESTLESS_SAMPLES] = self.restlessness;
        self.samples += 1;
        self.estimate = Some(next);
    }

    fn remember(&mut self, now: Time, srtt: Span) {
        let horizon = now - srtt * 2;
        // One entry beyond the horizon stays: sums are differences to it.
        while self.history.len() >= HISTORY || self.history.get(1).is_some_and(|&(time, _)| time <= horizon) {
            self.history.pop_front();
        }
        self.history.push_back((now, self.total));
    }
}

impl CongestionControl for WestwoodAbse {
    fn on_feedback(&mut self, window: &Window, ack: &AckEvent) {
        if let Some(rtt) = ack.rtt {
            self.rtt_min = Some(self.rtt_min.map_or(rtt, |least| least.min(rtt)));
        }
        self.total += self.count.reported(ack);
        let Some(&(last, _)) = self.history.back() else {
            self.history.push_back((ack.now, self.total));
            self.start = ack.now;
            return;
        };
        let dt = ack.now.since(last).as_secs_f64();
        if dt == 0.0 {
            if let Some(newest) = self.history.back_mut() {
                newest.1 = self.total;
            }
            return;
        }
        self.remember(ack.now, ack.srtt);
        let srtt = ack.srtt.as_secs_f64().max(dt);
        let seen = ack.now.since(self.start).as_secs_f64();
        let round_trip = srtt.min(seen);
        let throughput = self.reported_after(ack.now - Span::from_secs_f64(round_trip)) / round_trip;
        self.throughput = KEEP * self.throughput + (1.0 - KEEP) * throughput;
        let length = self.sample_window(window.cwnd, srtt, dt).min(seen);
        let sample = self.reported_after(ack.now - Span::from_secs_f64(length)) / length;
        self.filter(sample, srtt, dt);
    }

    fn bandwidth(&self) -> Option<f64> {
        self.estimate
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckEvent) {
        reno_family::grow(window, ack);
    }

    fn on_loss(&mut self, window: &mut Window, loss: &LossEvent) {
        window.ssthresh = pipe(self.estimate, self.rtt_min, loss);
        window.cwnd = window.cwnd.min(window.ssthresh);
    }

    fn on_timeout(&mut self, window: &mut Window, loss: &LossEvent) {
        window.ssthresh = pipe(self.estimate, self.rtt_min, loss);
        window.cwnd = 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(milliseconds: u64) -> AckEvent {
        AckEvent {
            now: Time::from_nanos(milliseconds * 1_000_000),
            acked: 1.0,
            counted: 1.0,
            rtt: Some(Span::from_millis(100)),
            srtt: Span::from_millis(100),
            cwnd_limited: true,
        }
    }

    /// ACKs at 0, 10, 30 and 35 ms, RTT 100 ms, cwnd 5. By hand:
    ///
    /// 1. Th = 0.4 x 100 = 40; T = 0.1 x (5 - 4) / 5 = 0.02, but only 0.01 has been seen; b = 100 = s
    /// 2. Th = 24 + 0.4 x 2 / 0.03 = 50.6667, no queue; T = 0.02; b = 50; tau = 0.1, a = 0.18 / 0.22 = 0.818182;
    ///    s = 81.8182 + 0.181818 x 75 = 95.454545; U = 0.4 x 4.545455 = 1.818182
    /// 3. Th = 30.4 + 0.4 x 3 / 0.035 = 64.6857; T = 0.005; b = 200; tau = 0.1 + 1 x U / Umax = 1.1,
    ///    a = 2.195 / 2.205 = 0.995465; s = 95.021645 + 0.004535 x 125 = 95.588538; U = 1.090909 + 0.4 x 0.133993
    #[test]
    fn the_first_samples_by_hand() {
        let mut law = WestwoodAbse::default();
        let window = Window { cwnd: 5.0, ssthresh: f64::INFINITY };
        let steps = [(0, None), (10, Some(100.0)), (30, Some(95.454_545)), (35, Some(95.588_538))];
        for (milliseconds, expected) in steps {
            law.on_feedback(&window, &ack(1000 + milliseconds));
            match (law.estimate, expected) {
                (Some(found), Some(expected)) => {
                    let off: f64 = found - expected;
                    assert!(off.abs() < 1e-4, "at {milliseconds} ms: {found} {expected}");
                }
                (found, expected) => assert_eq!(found, expected),
            }
        }
        assert!((law.throughput - 64.685_7).abs() < 1e-3, "{}", law.throughput);
        assert!((law.restlessness - 1.144_506).abs() < 1e-4, "{}", law.restlessness);
    }

    /// 100 segments/s for long: b = s = 100, and with RTTmin 100 ms a pipe of 10.
    #[test]
    fn a_constant_rate_makes_the_threshold_the_pipe() {
        for cwnd in [5.0, 10.0, 30.0] {
            let mut law = WestwoodAbse::default();
            let mut window = Window { cwnd, ssthresh: f64::INFINITY };
            for n in 0..3000 {
                law.on_feedback(&window, &ack(1000 + 10 * n));
            }
            law.on_loss(&mut window, &LossEvent { flight: cwnd, again: false, marked: false });
            // With a queue the window T ends between two ACKs, which rounds the count up.
            assert!((window.ssthresh - 10.0).abs() < 1.2, "cwnd {cwnd}: {}", window.ssthresh);
        }
    }

    /// Without a queue the window is the time between two ACKs: the sample is what came with this ACK.
    #[test]
    fn the_sample_window_shrinks_to_the_ack_gap_without_a_queue() {
        let law = WestwoodAbse { throughput: 100.0, rtt_min: Some(Span::from_millis(100)), ..Default::default() };
        assert_eq!(law.sample_window(8.0, 0.1, 0.01), 0.01);
        // cwnd 20: half of it queues, so half a round trip
        assert!((law.sample_window(20.0, 0.1, 0.01) - 0.05).abs() < 1e-12);
    }

    /// tau = RTT + 10 RTT U / Umax.
    #[test]
    fn restlessness_slows_the_filter_up_to_eleven_round_trips() {
        let mut law = WestwoodAbse { restlessness: 5.0, ..Default::default() };
        assert_eq!(law.time_constant(0.1), 0.1, "before anything was restless");
        law.recent[3] = 10.0;
        assert!((law.time_constant(0.1) - 0.6).abs() < 1e-12);
        law.restlessness = 10.0;
        assert!((law.time_constant(0.1) - 1.1).abs() < 1e-12);
    }
}
