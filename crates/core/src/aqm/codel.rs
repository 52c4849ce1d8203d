//! CoDel: drops from the head when packets have stood in the queue for longer than `target` for a whole `interval`.
//!
//! `drop_next = t + interval / sqrt(count)   [s]`
//!
//! While it drops, each next drop comes earlier by the square root of their number, until the sojourn is below `target`
//! or no more than one full packet is left. A drop soon after the last dropping state goes on with its rate.
//!
//! Source: RFC 8289 section 5 (pseudo-code, kept step by step). A packet whose ends understand ECN is marked instead,
//! which ends the turn, as in Linux. Differs: the square root is computed, not approximated.

use super::Snapshot;
use super::metrics::Metrics;
use super::packets::{List, Packets};
use crate::packet::Packet;
use crate::units::{Span, Time};

/// The law's two times, and when it does not apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Standing sojourn it allows. 5 ms: 5 to 10 % of `interval` (RFC 8289 4.3).
    pub target: Span,
    /// How long the sojourn must stand above it. 100 ms: the longest usual round trip (RFC 8289 4.3).
    pub interval: Span,
    /// No more than this left behind a packet, in IP bytes, and it is sent. 1500: one full packet (RFC 8289, `maxpacket_`).
    pub mtu: u32,
}

impl Default for Params {
    fn default() -> Self {
        Self { target: Span::from_millis(5), interval: Span::from_millis(100), mtu: 1500 }
    }
}

/// State of the law, of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct Law {
    /// When the sojourn will have been above target for an interval; `None`: it is below.
    first_above: Option<Time>,
    drop_next: Time,
    count: u32,
    last_count: u32,
    dropping: bool,
}

/// The head of a queue that was taken.
pub struct Popped<P> {
    /// When it came.
    pub arrived: Time,
    /// It.
    pub packet: P,
    /// IP bytes left behind it.
    pub left_bytes: u64,
}

/// What became of heads that are not sent as they are.
pub enum CodelVerdict<P> {
    /// The packet is dropped; the time is that of its arrival.
    Dropped(Time, P),
    /// The packet is marked and sent on.
    Marked,
}

impl Law {
    /// The packet to be sent, out of a queue whose heads `pop` takes; `report` is told of each drop and mark.
    pub fn dequeue<P: Packet>(
        &mut self,
        params: &Params,
        now: Time,
        mut pop: impl FnMut() -> Option<Popped<P>>,
        mut report: impl FnMut(CodelVerdict<P>),
    ) -> Option<Popped<P>> {
        let mut head = pop();
        let may_drop = self.is_above(params, now, head.as_ref());
        if self.dropping {
            self.dropping = may_drop;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                if self.mark(head.as_mut(), &mut report) {
                    self.drop_next = control_law(params, self.drop_next, self.count);
                    break;
                }
                head = replace(head, &mut pop, &mut report);
                self.dropping = self.is_above(params, now, head.as_ref());
                if self.dropping {
                    self.drop_next = control_law(params, self.drop_next, self.count);
                }
            }
        } else if may_drop {
            if !self.mark(head.as_mut(), &mut report) {
                head = replace(head, &mut pop, &mut report);
                self.is_above(params, now, head.as_ref());
            }
            self.dropping = true;
            let delta = self.count - self.last_count;
            let is_soon = now.since(self.drop_next) < params.interval * 16;
            self.count = if delta > 1 && is_soon { delta } else { 1 };
            self.drop_next = control_law(params, now, self.count);
            self.last_count = self.count;
        }
        head
    }

    /// `dodequeue` of the RFC: whether the head may be dropped.
    fn is_above<P>(&mut self, params: &Params, now: Time, head: Option<&Popped<P>>) -> bool {
        let stands =
            |head: &&Popped<P>| now.since(head.arrived) >= params.target && head.left_bytes > u64::from(params.mtu);
        if head.filter(stands).is_none() {
            self.first_above = None;
            return false;
        }
        now >= *self.first_above.get_or_insert(now + params.interval)
    }

    fn mark<P: Packet>(&self, head: Option<&mut Popped<P>>, report: &mut impl FnMut(CodelVerdict<P>)) -> bool {
        let marked = head.is_some_and(|head| head.packet.mark_ce());
        if marked {
            report(CodelVerdict::Marked);
        }
        marked
    }
}

/// Drops the head and takes the next one.
fn replace<P>(
    head: Option<Popped<P>>,
    pop: &mut impl FnMut() -> Option<Popped<P>>,
    report: &mut impl FnMut(CodelVerdict<P>),
) -> Option<Popped<P>> {
    if let Some(Popped { arrived, packet, .. }) = head {
        report(CodelVerdict::Dropped(arrived, packet));
    }
    pop()
}

fn control_law(params: &Params, from: Time, count: u32) -> Time {
    from + params.interval.mul_f64(1.0 / libm::sqrt(f64::from(count.max(1))))
}

/// One queue under the law.
#[derive(Clone, Debug)]
pub struct Codel<P> {
    params: Params,
    limit: usize,
    law: Law,
    list: List,
    packets: Packets<P>,
    metrics: Metrics,
}

impl<P: Packet> Codel<P> {
    /// An empty queue of at most `limit` packets, made at `now`.
    #[must_use]
    pub fn new(params: Params, limit: usize, now: Time) -> Self {
        let (law, list, packets) = (Law::default(), List::EMPTY, Packets::default());
        Self { params, limit, law, list, packets, metrics: Metrics::new(now) }
    }

    /// Takes a packet, or gives it back when the queue is full.
    pub fn enqueue(&mut self, now: Time, packet: P) -> Option<P> {
        if self.packets.len() >= self.limit {
            self.metrics.on_refuse();
            return Some(packet);
        }
        self.metrics.on_enqueue(packet.bytes(), self.packets.len() + 1);
        self.packets.push(&mut self.list, now, packet);
        None
    }

    /// The packet to be sent now; those that the law drops first go to `lose`.
    pub fn dequeue(&mut self, now: Time, mut lose: impl FnMut(P)) -> Option<P> {
        let Self { law, params, list, packets, metrics, .. } = self;
        let mut left_bytes = metrics.bytes();
        let pop = || {
            let (arrived, packet) = packets.pop(list)?;
            left_bytes -= u64::from(packet.bytes());
            Some(Popped { arrived, packet, left_bytes })
        };
        let head = law.dequeue(params, now, pop, |verdict| match verdict {
            CodelVerdict::Dropped(arrived, packet) => {
                metrics.on_drop(now, arrived, packet.bytes());
                lose(packet);
            }
            CodelVerdict::Marked => metrics.on_mark(),
        })?;
        self.metrics.on_dequeue(now, head.arrived, head.packet.bytes());
        Some(head.packet)
    }

    /// Packets held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether it holds no packet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Changes the limit; packets above a lower limit stay until they are served.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// The queue's figures; the mean covers the time up to `now`.
    #[must_use]
    pub fn snapshot(&self, now: Time) -> Snapshot {
        self.metrics.snapshot(now, self.packets.iter().map(|(arrived, _)| arrived))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aqm::tests::{Sized, at_us};

    /// A queue that 400 packets of 1000 B came into at time 0, emptied one per millisecond.
    fn standing(ect: bool) -> Codel<Sized> {
        let mut queue = Codel::new(Params::default(), 1000, Time::ZERO);
        for number in 0..400 {
            assert_eq!(queue.enqueue(Time::ZERO, Sized { number, ect, ..Sized::of(0, 1000) }), None);
        }
        queue
    }

    /// When packets were dropped, in ms.
    fn drops(queue: &mut Codel<Sized>, until_ms: u64) -> Vec<u64> {
        let mut drops = Vec::new();
        for ms in 0..until_ms {
            queue.dequeue(at_us(ms * 1000), |_| drops.push(ms));
        }
        drops
    }

    #[test]
    fn drops_follow_the_control_law() {
        // The sojourn reaches the target at 5 ms and stands for 100 ms: first drop at 105. From there, to the next whole ms:
        // 105 + 100/sqrt(1) = 205; + 100/sqrt(2) = 275.7; + 100/sqrt(3) = 333.4; + 100/sqrt(4) = 383.4; no more are left.
        let mut queue = standing(false);
        assert_eq!(drops(&mut queue, 420), [105, 205, 276, 334, 384]);
        assert_eq!((queue.len(), queue.snapshot(at_us(420_000)).dropped), (0, 5));
    }

    #[test]
    fn a_packet_that_understands_is_marked_where_another_is_dropped() {
        let mut queue = standing(true);
        let marked: Vec<u64> =
            (0..400).filter(|ms| queue.dequeue(at_us(ms * 1000), |_| panic!("a drop")).unwrap().ce).collect();
        assert_eq!(marked, [105, 205, 276, 334, 384]);
        assert_eq!(queue.snapshot(at_us(400_000)).marked, 5);
    }

    #[test]
    fn a_sojourn_below_the_target_ends_the_dropping_and_its_rate_is_remembered() {
        let mut queue = standing(false);
        assert_eq!(drops(&mut queue, 300), [105, 205, 276]);
        // count is 3 now, drop_next 333.4. An empty queue at 300 ends the state.
        while queue.dequeue(at_us(300_000), |_| ()).is_some() {}
        for number in 0..400 {
            queue.enqueue(at_us(300_000), Sized { number, ..Sized::of(0, 1000) });
        }
        // Above the target from 305, for an interval at 405: within 16 intervals, count = 3 - 1 = 2: next after
        // 100/sqrt(2), at 475.7; then count 3: 533.4.
        let mut drops = Vec::new();
        for ms in 300..540 {
            queue.dequeue(at_us(ms * 1000), |_| drops.push(ms));
        }
        assert_eq!(drops, [405, 476, 534]);
    }

    #[test]
    fn a_queue_of_one_full_packet_is_never_dropped_from() {
        let mut queue = Codel::new(Params::default(), 1000, Time::ZERO);
        for ms in 0..1000u64 {
            // Packets stand for 8 ms each, but never more than one behind the head.
            queue.enqueue(at_us(ms * 8000), Sized::of(0, 1500));
            if queue.len() > 1 {
                assert!(queue.dequeue(at_us(ms * 8000 + 7900), |_| panic!("a drop")).is_some());
            }
        }
    }

    #[test]
    fn a_full_queue_hands_the_newcomer_back() {
        let mut queue = Codel::new(Params::default(), 1, Time::ZERO);
        assert_eq!(queue.enqueue(Time::ZERO, Sized::of(0, 100)), None);
        assert_eq!(queue.enqueue(Time::ZERO, Sized::of(7, 100)), Some(Sized::of(7, 100)));
        assert_eq!(queue.snapshot(at_us(1)).dropped, 1);
    }
}
