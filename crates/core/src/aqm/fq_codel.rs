//! FQ-CoDel: flows take turns by bytes, whoever sends little goes first, and each flow's queue is under CoDel.
//!
//! Source: RFC 8290 section 4. When the queue is full, the head of the flow with the most bytes is dropped, as 4.1.2 says
//! (Linux drops up to 64 of its packets at once, to look for it less often). CoDel counts the bytes of the flow's own
//! queue. Not done: a flow queue is found by hash alone, without the set-associative search of CAKE.

use super::Snapshot;
use super::flow_queues::{FlowQueues, Params};
use super::metrics::Metrics;
use super::packets::Packets;
use crate::packet::Packet;
use crate::units::Time;

/// See the module.
#[derive(Clone, Debug)]
pub struct FqCodel<P> {
    limit: usize,
    queues: FlowQueues,
    packets: Packets<P>,
    metrics: Metrics,
}

impl<P: Packet> FqCodel<P> {
    /// An empty queue of at most `limit` packets, made at `now`.
    #[must_use]
    pub fn new(params: Params, limit: usize, now: Time) -> Self {
        let (queues, packets, metrics) = (FlowQueues::new(params), Packets::default(), Metrics::new(now));
        Self { limit: limit.max(1), queues, packets, metrics }
    }

    /// Takes a packet of the flow `key`; gives back the packet that had to go for it.
    pub fn enqueue(&mut self, now: Time, packet: P, key: u64) -> Option<P> {
        let bytes = packet.bytes();
        self.queues.enqueue(now, packet, key, &mut self.packets);
        let is_over = self.packets.len() > self.limit;
        self.metrics.on_enqueue(bytes, self.packets.len() - usize::from(is_over));
        if !is_over {
            return None;
        }
        let (number, _) = self.queues.longest()?;
        let (arrived, packet) = self.queues.take_head(number, &mut self.packets)?;
        self.metrics.on_drop(now, arrived, packet.bytes());
        Some(packet)
    }

    /// The packet to be sent now; those that CoDel drops first go to `lose`.
    pub fn dequeue(&mut self, now: Time, mut lose: impl FnMut(P)) -> Option<P> {
        self.queues.dequeue(now, &mut self.packets, &mut self.metrics, &mut lose)
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
        self.limit = limit.max(1);
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

    fn queue(limit: usize) -> FqCodel<Sized> {
        FqCodel::new(Params::default(), limit, Time::ZERO)
    }

    fn flows(queue: &mut FqCodel<Sized>, at: Time, packets: usize) -> Vec<u32> {
        (0..packets).map(|_| queue.dequeue(at, |_| panic!("a drop")).unwrap().flow).collect()
    }

    #[test]
    fn flows_take_turns_by_bytes() {
        let mut queue = queue(1000);
        for _each in 0..12 {
            queue.enqueue(Time::ZERO, Sized::of(0, 1500), 0);
            queue.enqueue(Time::ZERO, Sized::of(1, 500), 1);
        }
        // Deficits: 0 has 1514 and sends two (14 left, then -1486). 1 sends four (14 left after three, then -486).
        // Then 0: +1514 = 28, one more: -1472; 1: 1028, sends three: 528, 28, -472; 0: 42, one; 1: 1042, three; ...
        assert_eq!(flows(&mut queue, Time::ZERO, 14), [0, 0, 1, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1]);
    }

    #[test]
    fn a_sparse_flow_goes_before_those_that_build_a_queue() {
        let mut queue = queue(1000);
        for number in 0..20 {
            queue.enqueue(Time::ZERO, Sized { number, ..Sized::of(0, 1500) }, 0);
            queue.enqueue(Time::ZERO, Sized { number, ..Sized::of(1, 1500) }, 1);
        }
        assert_eq!(flows(&mut queue, Time::ZERO, 5), [0, 0, 1, 1, 0]);
        queue.enqueue(Time::ZERO, Sized::of(2, 200), 2);
        assert_eq!(flows(&mut queue, Time::ZERO, 3), [2, 1, 0]);
        // It stood in the old list behind both when it fell silent, and it left only when its turn came: it is not new.
        queue.enqueue(Time::ZERO, Sized::of(2, 200), 2);
        assert_eq!(flows(&mut queue, Time::ZERO, 2), [2, 1]);
    }

    #[test]
    fn a_full_queue_drops_the_head_of_the_flow_with_the_most_bytes() {
        let mut queue = queue(4);
        for number in 0..3 {
            queue.enqueue(Time::ZERO, Sized { number, ..Sized::of(0, 300) }, 0);
        }
        assert_eq!(queue.enqueue(Time::ZERO, Sized::of(1, 1500), 1), None);
        let gone = queue.enqueue(at_us(7), Sized::of(2, 40), 2).unwrap();
        assert_eq!((gone.flow, queue.len()), (1, 4));
        let gone = queue.enqueue(at_us(7), Sized::of(3, 40), 3).unwrap();
        assert_eq!((gone.flow, gone.number), (0, 0));
        assert_eq!((queue.snapshot(at_us(8)).dropped, queue.snapshot(at_us(8)).packets), (2, 4));
    }

    #[test]
    fn each_flow_has_codel_of_its_own() {
        let mut queue = queue(1000);
        let mut lost = Vec::new();
        let mut sent = [0; 2];
        for ms in 0..400u64 {
            // 0 sends three packets for each that is its share; 1 only every fourth.
            for _each in 0..3 {
                queue.enqueue(at_us(ms * 1000), Sized::of(0, 1000), 0);
            }
            if ms % 4 == 0 {
                queue.enqueue(at_us(ms * 1000), Sized::of(1, 1000), 1);
            }
            sent[queue.dequeue(at_us(ms * 1000), |packet| lost.push(packet.flow)).unwrap().flow as usize] += 1;
        }
        assert!(sent[1] >= 99, "{sent:?}");
        assert!(lost.len() > 3 && lost.iter().all(|flow| *flow == 0), "{lost:?}");
    }
}
