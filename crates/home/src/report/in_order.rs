//! What an application gets of a byte stream, and when: packets are handed on in order, so one that waits for an earlier one is
//! handed on with it, and is late when the handing before was more than 75 ms ago.
//!
//! `timely_in_order = packets handed on timely / packets sent`: the Real-Time Performance Index of SNOOP-RT section 4, asked of
//! handings in place of arrivals. What arrived in time behind a hole counts there and not here.

use std::collections::VecDeque;

use lasthop_core::meter::timely::LIMIT;
use lasthop_core::units::Time;

use super::meter::Which;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct InOrder {
    /// Packets that wait for an earlier one and where they begin in the stream, in that order. At most a window of them; nearly all
    /// come in order, so they are put at the end, and the memory is kept.
    waiting: VecDeque<(u64, Which)>,
    previous: Option<Time>,
    /// Handed on timely: of those sent before measuring began, and after.
    start_up: u64,
    metrics: u64,
}

impl InOrder {
    /// A packet of the population `which` that begins at `seq` has arrived at `at`; everything before `next` has, too.
    pub(super) fn on_packet(&mut self, which: Which, at: Time, seq: u64, next: u64) {
        if next < seq {
            let place = self.waiting.iter().rposition(|(own, _)| *own < seq).map_or(0, |before| before + 1);
            self.waiting.insert(place, (seq, which));
            return;
        }
        let timely = self.previous.is_none_or(|before| at.since(before) <= LIMIT);
        self.previous = Some(at);
        self.count(which, timely);
        while let Some((_, which)) = self.waiting.front().copied().filter(|(first, _)| *first <= next) {
            self.waiting.pop_front();
            self.count(which, timely);
        }
    }

    /// Packets handed on timely, of a population; `None` where nothing was handed on: it is no stream.
    pub(super) fn timely(&self, which: Which) -> Option<u64> {
        self.previous?;
        match which {
            Which::Neither => None,
            Which::StartUp => Some(self.start_up),
            Which::Metrics => Some(self.metrics),
        }
    }

    fn count(&mut self, which: Which, timely: bool) {
        let counted = match which {
            Which::Neither => return,
            Which::StartUp => &mut self.start_up,
            Which::Metrics => &mut self.metrics,
        };
        *counted += u64::from(timely);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_core::units::Span;

    #[test]
    fn what_waits_behind_a_hole_is_as_late_as_what_fills_it() {
        let mut in_order = InOrder::default();
        let at = |ms: u64| Time::ZERO + Span::from_millis(ms);
        let mut arrives = |ms, seq, next| in_order.on_packet(Which::Metrics, at(ms), seq, next);
        // 100 is lost; its retransmission comes when 200 and 300 have been there for 60 and 40 ms.
        arrives(0, 0, 100);
        arrives(20, 200, 100);
        arrives(40, 300, 100);
        arrives(80, 100, 400);
        // One handing of three, 80 ms after the one before; the next is timely again.
        arrives(150, 400, 500);
        assert_eq!((in_order.timely(Which::Metrics), in_order.timely(Which::StartUp)), (Some(2), Some(0)));
    }

    #[test]
    fn a_second_hole_holds_back_what_is_behind_it() {
        let mut in_order = InOrder::default();
        let at = |ms: u64| Time::ZERO + Span::from_millis(ms);
        for (ms, seq, next) in [(0, 0, 100), (10, 200, 100), (20, 400, 100), (30, 100, 300), (40, 300, 500)] {
            in_order.on_packet(Which::StartUp, at(ms), seq, next);
        }
        assert_eq!(in_order.timely(Which::StartUp), Some(5));
        assert!(in_order.waiting.is_empty());
    }
}
