//! When a packet may leave, and what it costs.
//!
//! ```text
//! cost  = bytes * byte_ns + packet_ns                 [ns] of channel time
//! next  = max(next, now)                              [ns] when a packet comes to an empty queue: no burst after a pause
//! next' = max(next, now - slack) + cost               [ns] when the packet after one that leaves may leave
//! ```
//!
//! `bytes` are those of the IP packet, `slack` is how far a late timer is made up for while somebody waits. The queue
//! discipline in BPF has the same law with more slack (`chap_cost` and `chap_pace` of `bpf/chap.h`).

use lasthop_core::units::{Span, Time};

use crate::qdisc::layout::PacketCost;

/// A real-time thread's timer is late by tens of microseconds, in a virtual machine now and then by milliseconds. More than
/// that would leave in one burst, and a game's packet could stand behind it where nobody orders it.
const SLACK: Span = Span::from_millis(5);

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    cost: PacketCost,
    next: Time,
}

impl Pace {
    /// The first packet may leave at once.
    #[must_use]
    pub const fn new(cost: PacketCost) -> Self {
        Self { cost, next: Time::ZERO }
    }

    /// What packets cost from now on.
    pub const fn set_cost(&mut self, cost: PacketCost) {
        self.cost = cost;
    }

    /// Channel time of `packets` packets of together `bytes` bytes; at least 1 ns.
    #[must_use]
    pub fn cost(&self, bytes: u32, packets: u64) -> Span {
        let bytes = (u64::from(bytes).saturating_mul(self.cost.byte_ns_q16)) >> 16;
        Span::from_nanos(bytes.saturating_add(packets.saturating_mul(self.cost.packet_ns)).max(1))
    }

    /// When the next packet may leave.
    #[must_use]
    pub const fn next(&self) -> Time {
        self.next
    }

    /// A packet came when none waited.
    pub fn on_first(&mut self, now: Time) {
        self.next = self.next.max(now);
    }

    /// A packet of this cost leaves.
    pub fn on_sent(&mut self, now: Time, cost: Span) {
        let earliest = Time::from_nanos(now.as_nanos().saturating_sub(SLACK.as_nanos()));
        self.next = self.next.max(earliest) + cost;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_core::units::BitRate;

    #[test]
    fn a_backlog_leaves_at_the_rate_however_late_the_timer_is() {
        let mut pace = Pace::new(crate::qdisc::cost(BitRate::mbps(20), Span::from_micros(100)));
        let cost = pace.cost(1_500, 1);
        assert_eq!(cost, Span::from_micros(700));
        let mut now = Time::ZERO + Span::from_secs(1);
        let mut sent = 0u64;
        pace.on_first(now);
        while now < Time::ZERO + Span::from_secs(2) {
            while pace.next() <= now {
                pace.on_sent(now, cost);
                sent += 1;
            }
            now = pace.next() + Span::from_micros(700);
        }
        let expected = Span::from_secs(1).as_nanos() / cost.as_nanos();
        assert!((expected - 1..=expected + 1).contains(&sent), "{sent} {expected}");
    }

    #[test]
    fn a_pause_is_not_saved_up() {
        let mut pace = Pace::new(crate::qdisc::cost(BitRate::mbps(20), Span::ZERO));
        let now = Time::ZERO + Span::from_secs(60);
        pace.on_first(now);
        assert_eq!(pace.next(), now);
        pace.on_sent(now, Span::from_millis(1));
        assert_eq!(pace.next(), now + Span::from_millis(1));
        // Nor is what is owed forgotten when the queue runs empty.
        pace.on_first(now);
        assert_eq!(pace.next(), now + Span::from_millis(1));
    }
}
