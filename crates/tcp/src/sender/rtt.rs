//! The retransmission timeout.
//!
//! ```text
//! first sample R:  SRTT = R, RTTVAR = R / 2
//! each further R:  RTTVAR = 3/4 RTTVAR + 1/4 |SRTT - R|,  SRTT = 7/8 SRTT + 1/8 R
//! RTO = max(min_rto, SRTT + max(G, 4 RTTVAR)) x 2^backoff, at most 60 s          [ns]
//! ```
//!
//! Source: RFC 6298 section 2; the backoff stays until a segment that was sent once has been measured (Karn; RFC 6298
//! sections 3 and 5). The minimum is a parameter: the RFC says 1 s, Linux and ns-2 use 200 ms.
//!
//! Ours: one sample per round trip enters the averages, as with the classic single timed segment (and ns-2): a sample
//! counts when its segment was sent after the previous sample had been taken. The gains 1/8 and 1/4 assume that
//! (RFC 6298 section 3, RFC 7323 appendix G).
//!
//! ns-2, as BSD, counts round trips in ticks of 10 ms, in whole numbers ([`Ticks`]): its timeout stays 30 ms or more above
//! SRTT however even the round trips are, where the above comes down to G.

use lasthop_core::units::{Span, Time};

/// Clock granularity G.
const GRANULARITY: Span = Span::from_millis(1);
/// Largest timeout, with its backoff.
const MAX_RTO: Span = Span::from_secs(60);
/// Before anything has been measured (RFC 6298 rule 2.1).
const INITIAL_RTO: Span = Span::from_secs(1);
/// After a handshake that needed its timer (RFC 6298 rule 5.7).
const RTO_AFTER_LOST_SYN: Span = Span::from_secs(3);
/// After so many doublings in a row ns-2, as BSD, measures from the start (RFC 6298 section 5 allows it).
const NS2_FORGETS: u32 = 4;
/// For so long a receiver of QUIC may delay acknowledgments, unless it says something else (RFC 9000 section 18.2).
const MAX_ACK_DELAY: Span = Span::from_millis(25);
/// 2^6 times any timeout of a second reaches the maximum, and 200 ms nearly; as ns-2.
const MAX_BACKOFF: u32 = 9;

/// How round trips are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    /// As the module says.
    Fine,
    /// ns-2's agents.
    Bsd,
    /// Its `Agent/TCP/Linux`: ticks of 1 ms, and a round trip shorter than the average hardly widens RTTVAR.
    Linux,
}

/// Averages in whole ticks, as BSD and ns-2's `rtt_update` keep them.
#[derive(Clone, Copy, Debug)]
struct Ticks {
    /// ns-2's `tcpTick_`.
    tick: Span,
    linux: bool,
    /// Eight times SRTT; 0 before the first sample.
    srtt: u64,
    /// Four times RTTVAR.
    rttvar: u64,
}

impl Ticks {
    const fn new(linux: bool) -> Self {
        Self { tick: Span::from_millis(if linux { 1 } else { 10 }), linux, srtt: 0, rttvar: 0 }
    }

    /// Of a round trip that began at `sent_at`; what it makes the timeout without its least.
    fn sample(&mut self, now: Time, sent_at: Time) -> Span {
        let tick = |at: Time| at.as_nanos() / self.tick.as_nanos();
        let ticks = (tick(now) - tick(sent_at)).max(1);
        if self.srtt == 0 {
            (self.srtt, self.rttvar) = (8 * ticks, 2 * ticks);
        } else {
            let srtt = self.srtt / 8;
            self.srtt = (self.srtt + ticks - srtt).max(1);
            let (off, var) = (ticks.abs_diff(srtt), self.rttvar / 4);
            self.rttvar = if self.linux && ticks < srtt && off > var {
                self.rttvar + (off - var) / 8
            } else {
                (self.rttvar + off - var).max(1)
            };
        }
        self.tick * ((8 * self.rttvar + self.srtt) / 8)
    }

    fn forget(&mut self) {
        self.rttvar += self.srtt / 8;
        self.srtt = 0;
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct RttEstimator {
    min_rto: Span,
    /// So much longer a receiver may wait before it acknowledges.
    ack_delay: Span,
    ns2: bool,
    /// Smoothed; none before the first sample.
    srtt: Option<Span>,
    rttvar: Span,
    /// Without backoff.
    base: Span,
    /// Doublings in force.
    backoff: u32,
    /// With backoff.
    rto: Span,
    /// When the last sample was taken.
    sampled_at: Time,
    /// ns-2: the one segment that is timed, by its first byte, and when it was sent.
    timed: Option<(u64, Time)>,
    /// ns-2: the averages that make the timeout.
    ticks: Ticks,
}

impl RttEstimator {
    /// With ns-2's clocks the first timeout is 3 s, RFC 2988's.
    pub(super) fn new(min_rto: Span, clock: Clock) -> Self {
        let ns2 = clock != Clock::Fine;
        let initial = if ns2 { RTO_AFTER_LOST_SYN } else { INITIAL_RTO };
        Self {
            min_rto,
            ack_delay: Span::ZERO,
            ns2,
            srtt: None,
            rttvar: Span::ZERO,
            base: initial,
            backoff: 0,
            rto: initial,
            sampled_at: Time::ZERO,
            timed: None,
            ticks: Ticks::new(clock == Clock::Linux),
        }
    }

    /// The probe timeout of RFC 9002 section 6.2.1.
    pub(super) fn quic() -> Self {
        Self { ack_delay: MAX_ACK_DELAY, ..Self::new(Span::ZERO, Clock::Fine) }
    }

    /// ns-2: the segment from `offset` on was sent for the first time. It is timed when no other is: behind a hole that
    /// somebody else repairs its round trip is as long as the repair.
    #[inline]
    pub(super) fn on_sent(&mut self, now: Time, offset: u64) {
        if self.ns2 && self.timed.is_none() {
            self.timed = Some((offset, now));
        }
    }

    /// Everything below `offset` is acknowledged; `sent_at`: the newest of it that was sent once.
    #[inline]
    pub(super) fn on_acked(&mut self, now: Time, offset: u64, sent_at: Option<Time>) {
        if !self.ns2 {
            sent_at.into_iter().for_each(|sent_at| self.sample(now, sent_at));
        } else if let Some((_, sent_at)) = self.timed.filter(|(timed, _)| *timed < offset) {
            self.timed = None;
            self.sample(now, sent_at);
        }
    }

    /// A loss was noticed: what is timed tells of the repair.
    pub(super) fn on_loss(&mut self) {
        self.timed = None;
    }

    /// A segment sent once, at `sent_at`, was acknowledged now.
    pub(super) fn sample(&mut self, now: Time, sent_at: Time) {
        self.backoff = 0;
        let rtt = now.since(sent_at);
        match self.srtt {
            None => {
                self.srtt = Some(rtt);
                self.rttvar = rtt / 2;
            }
            Some(_) if sent_at < self.sampled_at => {
                self.rto = self.base;
                return;
            }
            Some(srtt) => {
                let off = if rtt > srtt { rtt - srtt } else { srtt - rtt };
                self.rttvar = Span::from_nanos((self.rttvar.as_nanos() * 3 + off.as_nanos()) / 4);
                self.srtt = Some(Span::from_nanos((srtt.as_nanos() * 7 + rtt.as_nanos()) / 8));
            }
        }
        self.sampled_at = now;
        let timeout = if self.ns2 {
            self.ticks.sample(now, sent_at)
        } else {
            self.srtt.unwrap_or_default() + (self.rttvar * 4).max(GRANULARITY)
        };
        self.base = (timeout + self.ack_delay).max(self.min_rto);
        self.rto = self.base;
    }

    /// The SYN had to be repeated: its round trip cannot be told. With ns-2 the timeout stays as it was doubled.
    pub(super) fn after_lost_syn(&mut self) {
        if self.ns2 {
            return;
        }
        self.base = RTO_AFTER_LOST_SYN;
        self.backoff = 0;
        self.rto = self.base;
    }

    pub(super) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(MAX_BACKOFF);
        if self.ns2 && self.backoff >= NS2_FORGETS {
            self.srtt = None;
            self.ticks.forget();
        }
        self.rto = self.backed_off(self.backoff);
    }

    /// When a timer that starts now expires. In ns-2 times are sums of floating-point numbers: whether 0.2 s end before or
    /// after something else of the same instant is as good as random, and where round trips are whole packet times it decides
    /// who finds the last place of a queue.
    pub(super) fn due(&self, now: Time) -> Time {
        let at = now + self.rto;
        if !self.ns2 {
            return at;
        }
        let rounds_up = now.as_nanos().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63 == 1;
        if rounds_up { at + Span::from_nanos(1) } else { Time::from_nanos(at.as_nanos() - 1) }
    }

    /// The timeout in force.
    pub(super) fn rto(&self) -> Span {
        self.rto
    }

    /// The timeout after `doublings` of its own, for what backs off apart from retransmissions.
    pub(super) fn backed_off(&self, doublings: u32) -> Span {
        (self.base * (1 << doublings.min(MAX_BACKOFF))).min(MAX_RTO)
    }

    /// What Vegas waits for before it believes a single duplicate: 17/16 (SRTT + 2 RTTVAR), without a minimum; none
    /// before the first sample.
    pub(super) fn overdue(&self) -> Option<Span> {
        let wait = self.srtt? + self.rttvar * 2;
        Some(wait + wait / 16)
    }

    pub(super) fn srtt(&self) -> Option<Span> {
        self.srtt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Time {
        Time::from_nanos(n * 1_000_000)
    }

    /// By hand: 100 ms gives SRTT 100, RTTVAR 50, RTO 300; then 140 ms: RTTVAR = 37.5 + 10 = 47.5, SRTT = 87.5 + 17.5 =
    /// 105, RTO = 105 + 190 = 295.
    #[test]
    fn the_timeout_follows_rfc_6298_by_hand() {
        let mut rtt = RttEstimator::new(Span::from_millis(200), Clock::Fine);
        assert_eq!(rtt.rto(), Span::from_secs(1));
        rtt.sample(ms(100), ms(0));
        assert_eq!(rtt.rto(), Span::from_millis(300));
        rtt.sample(ms(240), ms(100));
        assert_eq!(rtt.srtt(), Some(Span::from_millis(105)));
        assert_eq!(rtt.rto(), Span::from_millis(295));
    }

    /// ns-2, by hand: 100 ms are 10 ticks, SRTT 80 eighths, RTTVAR 20 fourths: (8 x 20 + 80) / 8 = 30 ticks. From then on the
    /// same again: RTTVAR 20 - 20 / 4 = 15, 15 - 3 = 12, .., 4, 3, and there it stays: 10 + 3 ticks, under the minimum; a round
    /// trip of 299 ms that begins at a tick is 29 ticks, from 3 ms before it 30.
    #[test]
    fn ticks_keep_the_timeout_above_the_round_trip() {
        let mut ticks = Ticks::new(false);
        assert_eq!(ticks.sample(ms(100), ms(0)), Span::from_millis(300));
        assert_eq!(ticks.sample(ms(200), ms(100)), Span::from_millis(250));
        let last = (2..20).map(|n| ticks.sample(ms(100 * n + 100), ms(100 * n))).last();
        assert_eq!(last, Some(Span::from_millis(130)));
        let (mut even, mut across) = (Ticks::new(false), Ticks::new(false));
        assert_eq!(even.sample(ms(299), ms(0)), Span::from_millis(870));
        assert_eq!(across.sample(ms(306), ms(7)), Span::from_millis(900));
        even.forget();
        assert_eq!((even.srtt, even.rttvar), (0, 58 + 29));
    }

    #[test]
    fn the_minimum_holds_and_backoff_doubles_it_up_to_a_minute() {
        let mut rtt = RttEstimator::new(Span::from_millis(200), Clock::Fine);
        rtt.sample(ms(10), ms(0));
        assert_eq!(rtt.rto(), Span::from_millis(200));
        for doubled in [400, 800, 1600, 3200, 6400, 12_800, 25_600, 51_200, 60_000, 60_000] {
            rtt.back_off();
            assert_eq!(rtt.rto(), Span::from_millis(doubled));
        }
        rtt.sample(ms(90_010), ms(90_000));
        assert_eq!(rtt.rto(), Span::from_millis(200), "a fresh sample ends the backoff");
    }

    #[test]
    fn one_sample_per_round_trip_counts() {
        let mut rtt = RttEstimator::new(Span::from_millis(200), Clock::Fine);
        rtt.sample(ms(100), ms(0));
        rtt.sample(ms(101), ms(1));
        assert_eq!(rtt.srtt(), Some(Span::from_millis(100)), "sent before the first was taken");
    }
}
