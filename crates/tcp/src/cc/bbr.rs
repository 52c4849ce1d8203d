//! BBR: a model of the path, its bandwidth and its round trip, in place of losses.
//!
//! ```text
//! B: most of the delivery rates of the last 10 rounds [bytes/s]      R: least round trip of the last 10 s [s]
//! pace = 0.99 g B        cwnd = h B R + 3 segments, at least 4
//!
//! startup    g = h = 2.885 (2 / ln 2)         until B has grown by less than 1/4 in three rounds
//! drain      g = 1 / 2.885                    until not more than B R is in the network
//! probe bw   h = 2; g = 5/4, 3/4, 1, 1, 1, 1, 1, 1, about R each
//! probe rtt  cwnd = 4 for 200 ms and a round  when R is 10 s old
//! ```
//!
//! A round is over when something is delivered that was sent after its start. A loss: for a round, a segment for each that is
//! delivered (packet conservation), then the window as before.
//!
//! Source: draft-cardwell-iccrg-bbr-congestion-control-00 (version 1) and Linux `tcp_bbr.c`; delivery rates:
//! `sender::delivery`, pacing: `sender::pace`.
//!
//! Does not: tell policers (Linux's long-term rate), allow for aggregated acknowledgments, react to marks. Ours: the phase in
//! which probing begins comes from the clock instead of a random number.

use lasthop_core::units::{Span, Time};

use super::{AckEvent, CongestionControl, LossEvent, Sample, Window};

/// 2 / ln 2: the least gain that doubles the rate each round.
const HIGH_GAIN: f64 = 2.885;
/// Of the window while probing.
const CWND_GAIN: f64 = 2.0;
/// Of the pace while probing, a round trip each.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// The pace stays under the estimate by a hundredth (Linux), lest the queue never empties.
const MARGIN: f64 = 0.99;
/// Rounds that the bandwidth is the most of.
const BANDWIDTH_ROUNDS: u64 = 10;
/// The pipe is full when the bandwidth has grown by less in so many rounds.
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// How long a round trip is believed.
const RTT_LIFE: Span = Span::from_secs(10);
const PROBE_RTT: Span = Span::from_millis(200);
/// Least window, segments.
const LEAST: f64 = 4.0;
/// For acknowledgments that come late or together, segments.
const QUANTA: f64 = 3.0;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum State {
    #[default]
    Startup,
    Drain,
    ProbeBw {
        phase: usize,
        since: Time,
    },
    ProbeRtt {
        /// Set once the window is empty enough.
        until: Option<Time>,
        round_done: bool,
    },
}

#[derive(Debug, Default)]
pub(super) struct Bbr {
    state: State,
    /// Best rate of each of the last rounds, bytes/s, with the number of the round; the best first.
    rates: Vec<(u64, f64)>,
    rtt_min: Option<Span>,
    rtt_min_at: Time,
    /// Rounds so far.
    rounds: u64,
    /// The round is over when something is delivered that was sent after so much had been, bytes.
    round_end: u64,
    /// Bandwidth when it last grew enough, bytes/s, and rounds since.
    full_rate: f64,
    full_rounds: u32,
    full: bool,
    /// Segments/s.
    pace: Option<f64>,
    /// Window before a loss or before probing the round trip, segments.
    saved: f64,
    recovering: bool,
    /// A loss was told with the acknowledgment whose sample comes next.
    entering: bool,
    conserving: bool,
    initial: f64,
    mss: f64,
}

impl Bbr {
    fn rate(&self) -> Option<f64> {
        self.rates.first().map(|&(_, rate)| rate)
    }

    /// `gain` times the pipe, segments.
    fn pipe(&self, gain: f64) -> Option<f64> {
        Some(gain * self.rate()? * self.rtt_min?.as_secs_f64() / self.mss)
    }

    fn gains(&self) -> (f64, f64) {
        match self.state {
            State::Startup => (HIGH_GAIN, HIGH_GAIN),
            State::Drain => (1.0 / HIGH_GAIN, HIGH_GAIN),
            State::ProbeBw { phase, .. } => (CYCLE[phase], CWND_GAIN),
            State::ProbeRtt { .. } => (1.0, 1.0),
        }
    }

    /// Whether a round begins.
    fn count_rounds(&mut self, sample: &Sample) -> bool {
        let begins = sample.prior.is_some_and(|prior| prior >= self.round_end);
        if begins {
            self.round_end = sample.delivered;
            self.rounds += 1;
            self.conserving = false;
        }
        if std::mem::take(&mut self.entering) {
            self.round_end = sample.delivered;
            self.conserving = true;
        }
        begins
    }

    fn learn_rate(&mut self, sample: &Sample) {
        let Some(rate) = sample.rate.filter(|rate| !sample.app_limited || self.rate().is_none_or(|best| *rate >= best))
        else {
            return;
        };
        let oldest = self.rounds.saturating_sub(BANDWIDTH_ROUNDS - 1);
        // What is not newer or not more than `rate` will never again be the most.
        self.rates.retain(|&(round, other)| round >= oldest && other > rate);
        self.rates.push((self.rounds, rate));
    }

    fn check_full(&mut self, begins: bool, sample: &Sample) {
        if self.full || !begins || sample.app_limited {
            return;
        }
        let rate = self.rate().unwrap_or_default();
        if rate >= self.full_rate * FULL_GROWTH {
            (self.full_rate, self.full_rounds) = (rate, 0);
            return;
        }
        self.full_rounds += 1;
        self.full = self.full_rounds >= FULL_ROUNDS;
    }

    fn begin_probing(&mut self, now: Time) {
        // Any phase but the one that drains what was not filled.
        let phase = [0, 2, 3, 4, 5, 6, 7][(now.as_nanos() / 1000 % 7) as usize];
        self.state = State::ProbeBw { phase, since: now };
    }

    fn move_on(&mut self, sample: &Sample) {
        let inflight = sample.inflight as f64 / self.mss;
        let is_drained = self.pipe(1.0).is_some_and(|pipe| inflight <= pipe);
        match self.state {
            State::Startup if self.full => self.state = State::Drain,
            State::Drain if is_drained => self.begin_probing(sample.now),
            State::ProbeBw { phase, since } => {
                let is_long = sample.now.since(since) > self.rtt_min.unwrap_or_default();
                let is_over = match CYCLE[phase] {
                    gain if gain > 1.0 => {
                        is_long && (sample.recovering || self.pipe(gain).is_some_and(|pipe| inflight >= pipe))
                    }
                    gain if gain < 1.0 => is_long || is_drained,
                    _ => is_long,
                };
                if is_over {
                    self.state = State::ProbeBw { phase: (phase + 1) % CYCLE.len(), since: sample.now };
                }
            }
            _ => {}
        }
    }

    fn learn_rtt(&mut self, window: &Window, begins: bool, sample: &Sample) {
        let is_old = self.rtt_min.is_some() && sample.now > self.rtt_min_at + RTT_LIFE;
        if let Some(rtt) = sample.rtt.filter(|rtt| is_old || self.rtt_min.is_none_or(|least| *rtt <= least)) {
            (self.rtt_min, self.rtt_min_at) = (Some(rtt), sample.now);
        }
        if is_old && !matches!(self.state, State::ProbeRtt { .. }) {
            self.saved = if self.recovering { self.saved.max(window.cwnd) } else { window.cwnd };
            self.state = State::ProbeRtt { until: None, round_done: false };
        }
        let State::ProbeRtt { until, round_done } = self.state else { return };
        match until {
            None if sample.inflight as f64 <= LEAST * self.mss => {
                self.round_end = sample.delivered;
                self.state = State::ProbeRtt { until: Some(sample.now + PROBE_RTT), round_done: false };
            }
            Some(until) if (round_done || begins) && sample.now > until => {
                self.rtt_min_at = sample.now;
                if self.full { self.begin_probing(sample.now) } else { self.state = State::Startup }
            }
            Some(until) => {
                self.state = State::ProbeRtt { until: Some(until), round_done: round_done || begins };
            }
            None => {}
        }
    }

    fn set_pace(&mut self) {
        let Some(rate) = self.rate() else { return };
        let pace = MARGIN * self.gains().0 * rate / self.mss;
        if self.full || self.pace.is_none_or(|old| pace > old) {
            self.pace = Some(pace);
        }
    }

    fn set_window(&mut self, window: &mut Window, was_probing_rtt: bool, sample: &Sample) {
        let (newly, inflight) = (sample.newly as f64 / self.mss, sample.inflight as f64 / self.mss);
        let was_recovering = std::mem::replace(&mut self.recovering, sample.recovering);
        if was_recovering && !sample.recovering {
            self.conserving = false;
            window.cwnd = window.cwnd.max(self.saved);
        }
        if was_probing_rtt && !matches!(self.state, State::ProbeRtt { .. }) {
            window.cwnd = window.cwnd.max(self.saved);
        }
        if self.conserving {
            window.cwnd = window.cwnd.max(inflight + newly);
        } else if let Some(target) = self.pipe(self.gains().1).map(|pipe| pipe + QUANTA) {
            if self.full {
                window.cwnd = (window.cwnd + newly).min(target);
            } else if window.cwnd < target || (sample.delivered as f64) < self.initial * self.mss {
                window.cwnd += newly;
            }
            // After a timeout it grows from one, as slow start.
            window.cwnd = window.cwnd.max(if sample.recovering { 1.0 } else { LEAST });
        }
        if matches!(self.state, State::ProbeRtt { .. }) {
            window.cwnd = window.cwnd.min(LEAST);
        }
    }
}

impl CongestionControl for Bbr {
    fn samples(&self) -> bool {
        true
    }

    fn is_paced(&self) -> bool {
        true
    }

    fn pace(&self) -> Option<f64> {
        self.pace
    }

    fn bandwidth(&self) -> Option<f64> {
        self.rate().map(|rate| rate / self.mss)
    }

    fn on_open(&mut self, now: Time, rtt: Span, window: &mut Window) {
        self.initial = window.cwnd;
        let rtt = rtt.max(Span::from_millis(1));
        (self.rtt_min, self.rtt_min_at) = (Some(rtt), now);
        self.pace = Some(HIGH_GAIN * window.cwnd / rtt.as_secs_f64());
    }

    fn on_sample(&mut self, window: &mut Window, sample: &Sample) {
        self.mss = sample.mss;
        window.ssthresh = f64::INFINITY;
        let was_probing_rtt = matches!(self.state, State::ProbeRtt { .. });
        let begins = self.count_rounds(sample);
        self.learn_rate(sample);
        self.check_full(begins, sample);
        self.move_on(sample);
        self.learn_rtt(window, begins, sample);
        self.set_pace();
        self.set_window(window, was_probing_rtt, sample);
    }

    fn on_ack(&mut self, _window: &mut Window, _ack: &AckEvent) {}

    fn on_loss(&mut self, window: &mut Window, loss: &LossEvent) {
        if loss.marked {
            return;
        }
        if !self.recovering && !matches!(self.state, State::ProbeRtt { .. }) {
            self.saved = window.cwnd;
        }
        self.recovering = true;
        self.entering = true;
        window.ssthresh = f64::INFINITY;
        window.cwnd = loss.flight.max(1.0);
    }

    fn on_timeout(&mut self, window: &mut Window, _loss: &LossEvent) {
        if !self.recovering && !matches!(self.state, State::ProbeRtt { .. }) {
            self.saved = window.cwnd;
        }
        self.recovering = true;
        self.conserving = false;
        window.ssthresh = f64::INFINITY;
        window.cwnd = 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: f64 = 1000.0;

    /// A path of 1 MB/s and 100 ms, 100 segments: a round per call, that delivers `rate` x 100 ms and leaves `inflight` segments.
    struct Path {
        law: Bbr,
        window: Window,
        now: Time,
        delivered: u64,
    }

    impl Path {
        fn new() -> Self {
            let (mut law, mut window) = (Bbr::default(), Window { cwnd: 10.0, ssthresh: f64::INFINITY });
            let now = Time::from_nanos(100_000_000);
            law.on_open(now, Span::from_millis(100), &mut window);
            Self { law, window, now, delivered: 0 }
        }

        fn round(&mut self, rate: f64, inflight: f64) {
            self.now += Span::from_millis(100);
            let newly = (rate * 0.1) as u64;
            let prior = Some(self.delivered);
            self.delivered += newly;
            let sample = Sample {
                now: self.now,
                delivered: self.delivered,
                newly,
                prior,
                rate: Some(rate),
                rtt: Some(Span::from_millis(100)),
                inflight: (inflight * MSS) as u64,
                mss: MSS,
                ..Sample::default()
            };
            self.law.on_sample(&mut self.window, &sample);
        }

        /// Through startup and the drain.
        fn probing() -> Self {
            let mut path = Self::new();
            for rate in [1e5, 2e5, 4e5, 8e5, 1e6, 1e6, 1e6, 1e6] {
                path.round(rate, 200.0);
            }
            path.round(1e6, 90.0);
            path
        }
    }

    /// Pace and window at the gains of the draft; three rounds without a quarter more end startup.
    #[test]
    fn startup_doubles_until_three_rounds_grow_by_less_than_a_quarter() {
        let mut path = Path::new();
        assert!((path.law.pace().unwrap_or(0.0) - 2.885 * 100.0).abs() < 1e-6, "10 segments per 100 ms at first");
        for rate in [1e5, 2e5, 4e5, 8e5, 1e6] {
            path.round(rate, 100.0);
            assert!((path.law.pace().unwrap_or(0.0) - (0.99 * 2.885 * rate / MSS).max(288.5)).abs() < 1e-6);
        }
        for _ in 0..2 {
            path.round(1e6, 200.0);
            assert_eq!(path.law.state, State::Startup);
        }
        path.round(1e6, 200.0);
        assert_eq!(path.law.state, State::Drain);
        assert!((path.law.pace().unwrap_or(0.0) - 0.99 / 2.885 * 1000.0).abs() < 1e-6);
        path.round(1e6, 101.0);
        assert_eq!(path.law.state, State::Drain, "the pipe is 100");
        path.round(1e6, 100.0);
        assert!(matches!(path.law.state, State::ProbeBw { .. }));
    }

    /// Eight phases of a round trip: one at 5/4, then one at 3/4, then six at 1. The window is twice the pipe and three.
    #[test]
    fn probing_goes_round_in_eight_and_holds_twice_the_pipe() {
        let mut path = Path::probing();
        let mut paces = Vec::new();
        for _ in 0..24 {
            // 101 ms, more than R; at 5/4 the pipe is filled to 125.
            path.now += Span::from_millis(1);
            path.round(1e6, 126.0);
            paces.push((path.law.pace().unwrap_or(0.0) / 0.99).round());
        }
        let at = paces.iter().position(|pace| *pace == 1250.0).expect("it probes");
        assert_eq!(paces[at..at + 9], [1250.0, 750.0, 1000.0, 1000.0, 1000.0, 1000.0, 1000.0, 1000.0, 1250.0]);
        assert!((path.window.cwnd - 203.0).abs() < 1e-6, "{:?}", path.window);
    }

    #[test]
    fn a_rate_is_forgotten_after_ten_rounds() {
        let mut path = Path::probing();
        path.round(2e6, 100.0);
        (0..9).for_each(|_| path.round(5e5, 100.0));
        assert_eq!(path.law.rate(), Some(2e6));
        path.round(5e5, 100.0);
        assert_eq!(path.law.rate(), Some(5e5));
    }

    /// After 10 s without a shorter round trip: four segments until 200 ms and a round have passed, then the window as before.
    #[test]
    fn an_old_round_trip_is_measured_again_with_four_segments() {
        let mut path = Path::probing();
        path.law.rtt_min = Some(Span::from_millis(99));
        let rounds = (0..200).find(|_| {
            path.round(1e6, 100.0);
            matches!(path.law.state, State::ProbeRtt { .. })
        });
        assert!(rounds.is_some() && path.window.cwnd == 4.0, "{:?}", path.law);
        for _ in 0..3 {
            path.round(4e4, 4.0);
            assert_eq!(path.window.cwnd, 4.0);
        }
        path.round(4e4, 4.0);
        assert!(path.window.cwnd > 190.0 && matches!(path.law.state, State::ProbeBw { .. }), "{:?}", path.law);
        assert_eq!(path.law.rtt_min, Some(Span::from_millis(100)));
    }

    /// In the first round of recovery what is delivered is replaced; after it the window is as before.
    #[test]
    fn a_loss_conserves_packets_for_a_round_and_gives_the_window_back() {
        let mut path = Path::probing();
        (0..5).for_each(|_| path.round(1e6, 100.0));
        let before = path.window.cwnd;
        path.law.on_loss(&mut path.window, &LossEvent { flight: 90.0, again: false, marked: false });
        let (newly, now) = (2000, path.now);
        let sample = |delivered, recovering| Sample {
            now,
            delivered,
            newly,
            prior: Some(0),
            inflight: 88_000,
            recovering,
            mss: MSS,
            ..Sample::default()
        };
        let delivered = path.delivered + newly;
        path.law.on_sample(&mut path.window, &sample(delivered, true));
        assert_eq!(path.window.cwnd, 90.0, "88 in the network, and 2 for the 2 that left");
        path.law.on_sample(&mut path.window, &sample(delivered + newly, false));
        assert!(path.window.cwnd >= before, "{} {before}", path.window.cwnd);
    }
}
