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

    /// A window that ends at `right_edge` is offered.
    pub(super) fn on_offer(&mut self, now: Time, next: u64, right_edge: u64) {
        // The answer to the SYN: the first byte that follows it ends the first measurement.
        let end = if next == 0 { 1 } else { right_edge };
        if next == 0 || self.watched.is_none() {
            self.watched = Some((now, end));
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
