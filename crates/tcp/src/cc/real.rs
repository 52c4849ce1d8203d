//! TCP-Real: the receiver measures how fast waves of data arrive, and the sender moves by that.
//!
//! ```text
//! per wave:   rate >= last         cwnd += 1                           (slow start below ssthresh, as Reno)    [segments]
//!             rate >= 7/8 last     cwnd stays
//!             less                 cwnd = 7/8 cwnd, at least 2
//! at a loss:  ssthresh = cwnd = max(flight / 2, 2), timeout: cwnd = 1; and once the wave that had the loss has been measured:
//!             rate >= 7/8 most before      cwnd = ssthresh = as before the loss
//! ```
//!
//! rate: what [`Note::Wave`] says, payload bytes/s. A wave is what is sent until something of it is acknowledged: about a window.
//!
//! Source: Zhang and Tsaoussidis, "TCP-Real: improving real-time capabilities of TCP over heterogeneous networks", NOSSDAV
//! 2001; Tsaoussidis and Zhang, "TCP-Real: receiver-oriented congestion control", Computer Networks 40 (2002); the rule as
//! the Snoop paper has it, gamma = 1/8. Recovery is NewReno's.
//!
//! Ours, where the papers are silent: a loss is judged by the most of the
//! last eight waves, which among many flows is seldom reached again; a loss ends a wave, and the wave of its repairs is not judged; the same 1/8 tells a small decrease from a larger one, in a loss as well; a hundredth is no
//! decrease; slow start looks at no rate, and its
//! losses are believed: it goes on until a queue overflows.

use super::{AckEvent, CongestionControl, LossEvent, MIN_SSTHRESH, Progress, Window, reno_family};
use crate::note::Note;

/// gamma: of the window, and of the rate.
const GAMMA: f64 = 1.0 / 8.0;
/// A rate is not less when it is less by this share.
const NOISE: f64 = 0.01;

/// A loss is judged by the most of so many waves before it.
const RECENT: usize = 8;

/// A loss that is not told yet from another.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    /// The window before it, segments.
    cwnd: f64,
    /// Most of the rates before it, bytes/s.
    rate: f64,
    /// The first wave that tells.
    wave: u32,
}

#[derive(Debug, Default)]
pub(super) struct Real {
    /// The wave in flight.
    wave: u32,
    /// It is over when more than this is acknowledged.
    end: u64,
    /// The newest wave that the receiver has told of, and its rate, bytes/s.
    feedback: Option<(u32, f64)>,
    /// Rates of the last waves, bytes/s.
    recent: [f64; RECENT],
    /// The rate has decreased a little: the window stays.
    steady: bool,
    doubt: Option<Doubt>,
    /// A wave of repairs, with the pauses of recovery in it: its rate tells nothing.
    repairs: Option<u32>,
}

impl Real {
    fn doubt(&mut self, window: &Window) {
        // A second loss before the first was judged: what the first took stays in question.
        let cwnd = self.doubt.map_or(window.cwnd, |doubt| doubt.cwnd);
        let feedback = self.feedback.filter(|_| !window.in_slow_start());
        let most = self.recent.iter().copied().fold(0.0, f64::max);
        self.doubt = feedback.map(|_| Doubt { cwnd, rate: most, wave: self.wave });
        self.wave += 1;
        self.repairs = Some(self.wave);
    }
}

impl CongestionControl for Real {
    fn watches(&self) -> bool {
        true
    }

    fn on_progress(&mut self, progress: &Progress) {
        if progress.una > self.end {
            self.end = progress.next;
            self.wave += 1;
        }
    }

    fn mark(&self) -> u32 {
        self.wave
    }

    fn on_note(&mut self, window: &mut Window, note: &Note) {
        let Note::Wave { wave, rate } = *note else { return };
        let rate = rate as f64;
        let last = match self.feedback {
            Some((newest, _)) if wave <= newest => return,
            _ if self.repairs == Some(wave) => return,
            Some((_, last)) => last,
            None => rate,
        };
        self.feedback = Some((wave, rate));
        self.recent[wave as usize % RECENT] = rate;
        if let Some(doubt) = self.doubt {
            if wave < doubt.wave {
                return;
            }
            self.doubt = None;
            if rate >= (1.0 - GAMMA) * doubt.rate {
                window.cwnd = window.cwnd.max(doubt.cwnd);
                window.ssthresh = window.cwnd;
            }
            return;
        }
        self.steady = rate < (1.0 - NOISE) * last;
        if !window.in_slow_start() && rate < (1.0 - GAMMA) * last {
            window.cwnd = ((1.0 - GAMMA) * window.cwnd).max(MIN_SSTHRESH);
            window.ssthresh = window.ssthresh.min(window.cwnd);
        }
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckEvent) {
        if window.in_slow_start() || !self.steady {
            reno_family::grow(window, ack);
        }
    }

    fn on_loss(&mut self, window: &mut Window, loss: &LossEvent) {
        if !loss.marked {
            self.doubt(window);
        }
        reno_family::halve(window, loss);
    }

    fn on_timeout(&mut self, window: &mut Window, loss: &LossEvent) {
        self.doubt(window);
        reno_family::restart(window, loss);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_core::units::{Span, Time};

    fn wave(wave: u32, rate: u64) -> Note {
        Note::Wave { wave, rate }
    }

    /// What ten ACKs of a window of ten add.
    fn grown(law: &mut Real, window: &mut Window) -> f64 {
        let before = window.cwnd;
        let ack =
            AckEvent { now: Time::ZERO, acked: 1.0, counted: 1.0, rtt: None, srtt: Span::ZERO, cwnd_limited: true };
        (0..10).for_each(|_| law.on_ack(window, &ack));
        window.cwnd - before
    }

    #[test]
    fn the_rate_of_the_last_wave_decides() {
        let (mut law, mut window) = (Real::default(), Window { cwnd: 10.0, ssthresh: 2.0 });
        law.on_note(&mut window, &wave(1, 100_000));
        law.on_note(&mut window, &wave(2, 100_000));
        assert!((grown(&mut law, &mut window) - 1.0).abs() < 0.05, "not less: a segment per round trip");
        window.cwnd = 10.0;
        law.on_note(&mut window, &wave(3, 90_000));
        assert_eq!((window.cwnd, grown(&mut law, &mut window)), (10.0, 0.0), "a tenth less: stays");
        law.on_note(&mut window, &wave(4, 75_000));
        assert_eq!((window.cwnd, grown(&mut law, &mut window)), (8.75, 0.0), "a sixth less: 7/8");
        law.on_note(&mut window, &wave(4, 10));
        assert_eq!(window.cwnd, 8.75, "told once");
    }

    /// 10 before, half after; the wave with the loss comes at nine tenths of the rate, or at three quarters.
    #[test]
    fn a_loss_without_a_fall_of_the_rate_gives_the_window_back() {
        for (rate, left) in [(90_000, 10.0), (75_000, 5.0)] {
            for timeout in [false, true] {
                let (mut law, mut window) = (Real::default(), Window { cwnd: 10.0, ssthresh: 2.0 });
                law.on_progress(&Progress { now: Time::ZERO, una: 1, next: 10, mss: 1.0, rtt: None });
                law.on_progress(&Progress { now: Time::ZERO, una: 11, next: 20, mss: 1.0, rtt: None });
                assert_eq!(law.mark(), 2);
                law.on_note(&mut window, &wave(1, 100_000));
                let loss = LossEvent { flight: 10.0, again: false, marked: false };
                if timeout {
                    law.on_timeout(&mut window, &loss);
                } else {
                    law.on_loss(&mut window, &loss);
                }
                let cut = window.cwnd;
                law.on_note(&mut window, &wave(1, 100_000));
                assert_eq!(window.cwnd, cut, "that wave was before the loss");
                law.on_note(&mut window, &wave(2, rate));
                let expected = if left < 10.0 && timeout { 1.0 } else { left };
                assert_eq!((window.cwnd, window.ssthresh), (expected, left), "{rate} {timeout}");
            }
        }
    }

    /// A mark is a queue's word: no wave takes it back.
    #[test]
    fn a_mark_is_not_in_doubt() {
        let (mut law, mut window) = (Real::default(), Window { cwnd: 10.0, ssthresh: 2.0 });
        law.on_note(&mut window, &wave(1, 100_000));
        law.on_loss(&mut window, &LossEvent { flight: 10.0, again: false, marked: true });
        law.on_note(&mut window, &wave(2, 100_000));
        assert_eq!((window.cwnd, window.ssthresh), (5.0, 5.0));
    }
}
