//! How large the buffer is when nobody says.
//!
//! ```text
//! once per RTT:  window = max(window, 2 n + 16 MSS + 2 g),   g = (2 n + 16 MSS) (n - n') / n' while n grows
//! ```
//!
//! n, n': bytes that arrived in this round trip and, the most, in one before; from 64 KiB to 6 MiB.
//! Source: Fisk and Feng, "Dynamic right-sizing in TCP" (2001), and Linux, `tcp_rcv_space_adjust`: twice what arrived, so
//! that a sender in slow start is not held, and more while the rate still grows.
//!
//! RTT, as Linux without timestamps (`tcp_rcv_rtt_measure`): the least of the time from the answer to the SYN to the
//! first byte, and of the time a full window takes to arrive. *Ours*: nothing but that; a queue of more than the
//! bandwidth-delay product is therefore not filled, where Linux with timestamps would fill it.

use lasthop_core::units::{Span, Time};

/// Linux `tcp_rmem[1]`, half of it for the window, bytes.
const SMALLEST: u64 = 64 << 10;
/// Linux `tcp_rmem[2]`, bytes.
pub(super) const LARGEST: u64 = 6 << 20;

#[derive(Debug)]
pub(super) struct Autotune {
    mss: u64,
    window: u64,
    rtt: Option<Span>,
    /// When the window was offered whose end is watched, and that end.
    watched: Option<(Time, u64)>,
    /// Start of this round trip, and what had arrived then.
    round: (Time, u64),
    /// Most that arrived in a round trip, bytes.
    most: u64,
}

impl Autotune {
    pub(super) fn new(mss: u32) -> Self {
        Self {
            mss: u64::from(mss),
            window: SMALLEST,
            rtt: None,
            watched: None,
            round: (Time::ZERO, 0),
            most: SMALLEST / 2,
        }
    }

    pub(super) fn window(&self) -> u64 {
        self.window
    }

    /// The SYN is answered: the first byte that follows ends the first measurement.
    pub(super) fn on_syn(&mut self, now: Time) {
        self.watched = Some((now, 1));
    }

    /// A window that ends at `right_edge` is offered for the first time.
    pub(super) fn on_offer(&mut self, now: Time, right_edge: u64) {
        if self.watched.is_none() {
            self.watched = Some((now, right_edge));
        }
    }

    /// Everything below `next` has arrived.
    pub(super) fn on_progress(&mut self, now: Time, next: u64) {
        if let Some((since, _)) = self.watched.filter(|&(_, end)| next >= end) {
            let sample = now.since(since);
            self.rtt = Some(self.rtt.map_or(sample, |rtt| rtt.min(sample)));
            self.watched = None;
        }
        let (since, start) = self.round;
        let Some(rtt) = self.rtt.filter(|_| start > 0) else {
            self.round = (now, next);
            return;
        };
        if now.since(since) < rtt {
            return;
        }
        self.resize(next - start);
        self.round = (now, next);
    }

    fn resize(&mut self, arrived: u64) {
        if arrived <= self.most {
            return;
        }
        let wanted = 2 * arrived + 16 * self.mss;
        let growth = (u128::from(wanted) * u128::from(arrived - self.most) / u128::from(self.most)) as u64;
        self.window = (wanted + 2 * growth).clamp(self.window, LARGEST);
        self.most = arrived;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(milliseconds: u64) -> Time {
        Time::from_nanos(milliseconds * 1_000_000)
    }

    #[test]
    fn the_handshake_gives_the_first_round_trip_and_a_full_window_a_shorter_one() {
        let mut autotune = Autotune::new(1000);
        autotune.on_syn(ms(0));
        autotune.on_progress(ms(80), 1000);
        assert_eq!(autotune.rtt, Some(Span::from_millis(80)));
        autotune.on_offer(ms(80), 65_000);
        autotune.on_progress(ms(150), 64_000);
        autotune.on_progress(ms(155), 65_000);
        assert_eq!(autotune.rtt, Some(Span::from_millis(75)));
        autotune.on_offer(ms(155), 130_000);
        autotune.on_progress(ms(400), 130_000);
        assert_eq!(autotune.rtt, Some(Span::from_millis(75)), "the sender was slower than the window");
    }

    /// A round trip of 80 ms in which n bytes arrive, after one with half as many: 2 n + 16 MSS, and as much again times 2.
    #[test]
    fn growth_is_foreseen() {
        let mut autotune = Autotune::new(1000);
        autotune.resize(64 << 10);
        let wanted = 2 * 65_536 + 16_000;
        assert_eq!(autotune.window(), wanted + 2 * wanted, "32 KiB was the most before");
        autotune.resize(64 << 10);
        assert_eq!(autotune.window(), 3 * wanted, "no growth, no change");
    }
}
