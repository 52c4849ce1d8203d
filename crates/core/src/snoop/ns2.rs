//! The habits of ns-2.35's agent, for figures that stand beside its own. Seen by reading `tcp/snoop.cc` and running it.

use super::cache::Segment;
use super::connection::{Cause, Connection, Host};
use super::params::SnoopVerdict;
use crate::units::{Span, Time};
use crate::wire::seq;

/// `Snoop set g_`: the weight of what was, here of what is.
const GAIN: u64 = 8;

/// What its agent keeps of a connection beside the cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    srtt: Span,
    var: Span,
    /// Duplicates that are still to be held back; negative when it has lost count.
    expected: i64,
    /// The place in the cache from which on segments will cause duplicates.
    from: i64,
}

impl State {
    /// ns-default.tcl: `srtt_` 0.1 s, `rttvar_` 0.25 s.
    pub const NEW: Self = Self { srtt: Span::from_millis(100), var: Span::from_millis(250), expected: 0, from: 0 };

    pub fn timer(&self, least: Span) -> Span {
        (self.srtt + self.var * 4).max(least)
    }

    /// `g_` is 0.125, and weighs the past of the round trip but the present of its variation.
    fn on_sample(&mut self, sample: Span) {
        if sample == Span::ZERO {
            return;
        }
        self.srtt = (self.srtt + sample * (GAIN - 1)) / GAIN;
        let off = self.srtt.saturating_sub(sample) + sample.saturating_sub(self.srtt);
        self.var = if self.var == Span::ZERO { off } else { (off + self.var * (GAIN - 1)) / GAIN };
    }
}

impl<P> Connection<P> {
    /// What comes before what is there resets the count of duplicates; the timer starts anew when something is sent again.
    pub fn insert_as_ns2(&mut self, now: Time, mut segment: Segment<P>) {
        let resent = segment.by_sender;
        if let Some(same) = self.cache.same(segment.start, segment.end) {
            (same.retransmissions, same.by_sender, same.given_up, same.sent_at) = (0, true, false, now);
            self.deadline = None;
            return;
        }
        let start = segment.start;
        let is_first = self.cache.front().is_none_or(|front| seq::after(front.start, start));
        // In the middle, it is not told from one that is sent for the first time.
        segment.by_sender &= is_first;
        self.cache.insert(segment);
        if resent {
            self.ns2.from = self.cache.first_place();
            self.deadline = None;
        }
    }

    /// An acknowledgment that is not older than the newest.
    pub fn on_ack_as_ns2(&mut self, now: Time, ack: u32, host: &mut Host<'_>) -> SnoopVerdict {
        if self.acked == Some(ack) {
            return self.on_duplicate_as_ns2(now, ack, host);
        }
        self.acked = Some(ack);
        self.deadline = None;
        let mut sent_at = None;
        while let Some(segment) = self.cache.take_below(ack) {
            sent_at = Some(segment.sent_at);
        }
        // The timer is set with the round trip as it was.
        self.restart_timer(now, host.params);
        if let Some(sent_at) = sent_at {
            self.ns2.on_sample(now.since(sent_at));
        }
        self.ns2.expected = 0;
        self.ns2.from = self.cache.first_place();
        SnoopVerdict::Forward
    }

    fn on_duplicate_as_ns2(&mut self, now: Time, ack: u32, host: &mut Host<'_>) -> SnoopVerdict {
        let (first, end) = (self.cache.first_place(), self.cache.end_place());
        let Some(hole) = self.cache.front().filter(|front| front.holds(ack)) else { return SnoopVerdict::Forward };
        match self.ns2.expected {
            0 => {
                *host.ns2_signs ^= 1;
                if *host.ns2_signs == 1 || hole.by_sender {
                    return SnoopVerdict::Forward;
                }
                let is_first = hole.retransmissions == 0;
                self.ns2.expected = end - self.ns2.from - 2;
                self.ns2.from = first + 1;
                if is_first { self.retransmit_as_ns2(now, Cause::Duplicates, host) } else { SnoopVerdict::Forward }
            }
            1.. => {
                self.ns2.expected -= 1;
                SnoopVerdict::Suppress
            }
            -1 if hole.retransmissions < 2 => self.retransmit_as_ns2(now, Cause::Duplicates, host),
            _ => SnoopVerdict::Forward,
        }
    }

    pub fn on_timer_as_ns2(&mut self, now: Time, host: &mut Host<'_>) {
        let Some(front) = self.cache.front() else { return };
        // Before the first acknowledgment it waits for one of the first packet.
        let is_next = self.acked.is_none_or(|acked| front.holds(acked));
        if is_next && self.retransmit_as_ns2(now, Cause::Timer, host) == SnoopVerdict::Suppress {
            self.ns2.from = self.cache.first_place() + 1;
        }
    }

    fn retransmit_as_ns2(&mut self, now: Time, cause: Cause, host: &mut Host<'_>) -> SnoopVerdict {
        let number = self.number();
        let Some(front) = self.cache.front_mut() else { return SnoopVerdict::Forward };
        if front.retransmissions >= host.params.retries {
            host.counters.gave_up += u64::from(!front.given_up);
            front.given_up = true;
            return SnoopVerdict::Forward;
        }
        front.retransmissions += 1;
        front.sent_at = now;
        front.last = number;
        host.due.push(front.start);
        host.count(cause);
        self.restart_timer(now, host.params);
        SnoopVerdict::Suppress
    }
}
