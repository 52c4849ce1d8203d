//! FQ-CoDel for each of many members (stations, or stations and classes) with one limit for all: what is below the turns
//! that they take.
//!
//! When more than `limit` packets, or more than `memory` bytes, are held in all, the head of the longest flow queue of all
//! goes, in bytes (Hoiland-Jorgensen et al., "Ending the Anomaly", USENIX ATC 2017, Algorithm 1). One packet goes for one
//! that comes; Linux drops up to half of the flow, 32 at most, to look for it less often.

use super::Snapshot;
use super::flow_queues::{self, FlowQueues};
use super::metrics::Metrics;
use super::packets::Packets;
use crate::packet::Packet;
use crate::units::Time;

/// What a packet of `bytes` IP bytes takes of a Linux host's memory (`truesize`): its buffer, of a power of two, holds it with
/// Ethernet's header, headroom of 64 bytes and 320 bytes of `skb_shared_info`; the `sk_buff` itself has 256 bytes. 2304 for a
/// full packet, 768 for an acknowledgment.
#[must_use]
pub const fn memory_of(bytes: u32) -> u64 {
    (bytes as u64 + 14 + 64 + 320).next_power_of_two() + 256
}

/// See the module. Members are numbers from 0.
#[derive(Clone, Debug)]
pub struct StationQueues<P> {
    params: flow_queues::Params,
    limit: usize,
    memory_limit: u64,
    memory: u64,
    members: Vec<FlowQueues>,
    packets: Packets<P>,
    metrics: Metrics,
}

impl<P: Packet> StationQueues<P> {
    /// Empty ones of at most `limit` packets and `memory_limit` bytes of memory, made at `now`.
    #[must_use]
    pub fn new(params: flow_queues::Params, limit: usize, memory_limit: u64, now: Time) -> Self {
        let (members, packets, metrics) = (Vec::new(), Packets::default(), Metrics::new(now));
        Self { params, limit: limit.max(1), memory_limit, memory: 0, members, packets, metrics }
    }

    /// Takes a packet of the flow `key`; true: with it they hold too much, and [`Self::drop_from_longest`] is to follow.
    pub fn enqueue(&mut self, now: Time, packet: P, key: u64, member: usize) -> bool {
        if self.members.len() <= member {
            self.members.resize(member + 1, FlowQueues::new(self.params));
        }
        let bytes = packet.bytes();
        self.members[member].enqueue(now, packet, key, &mut self.packets);
        self.memory += memory_of(bytes);
        let is_over = self.packets.len() > self.limit || (self.memory > self.memory_limit && self.packets.len() > 1);
        self.metrics.on_enqueue(bytes, self.packets.len() - usize::from(is_over));
        is_over
    }

    /// The member's packet to be sent; those that CoDel drops first go to `lose`.
    pub fn dequeue(&mut self, now: Time, member: usize, mut lose: impl FnMut(P)) -> Option<P> {
        let flows = self.members.get_mut(member)?;
        let memory = &mut self.memory;
        let mut lose = |packet: P| {
            *memory -= memory_of(packet.bytes());
            lose(packet);
        };
        let packet = flows.dequeue(now, &mut self.packets, &mut self.metrics, &mut lose)?;
        self.memory -= memory_of(packet.bytes());
        Some(packet)
    }

    /// Drops the head of the longest flow of these members; of equal ones that of the first.
    pub fn drop_from_longest(&mut self, now: Time, members: impl Iterator<Item = u32>) -> Option<P> {
        let longest = |member: u32| self.members[member as usize].longest().map(|(flow, bytes)| (bytes, flow, member));
        let longer = |a: (u64, u32, u32), b: (u64, u32, u32)| if b.0 > a.0 { b } else { a };
        let (_, flow, member) = members.filter_map(longest).reduce(longer)?;
        let (arrived, packet) = self.members[member as usize].take_head(flow, &mut self.packets)?;
        self.memory -= memory_of(packet.bytes());
        self.metrics.on_drop(now, arrived, packet.bytes());
        Some(packet)
    }

    /// Whether a member holds a packet.
    #[must_use]
    pub fn has(&self, member: usize) -> bool {
        self.members.get(member).is_some_and(|flows| !flows.is_empty())
    }

    /// Members that ever held a packet are below this number.
    #[must_use]
    pub fn members(&self) -> u32 {
        self.members.len() as u32
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

    /// Whether they hold more packets than they may.
    #[must_use]
    pub fn is_over_limit(&self) -> bool {
        self.packets.len() > self.limit
    }

    /// Changes the limit; packets above a lower limit stay until they are served.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit.max(1);
    }

    /// The figures of all; the mean covers the time up to `now`.
    #[must_use]
    pub fn snapshot(&self, now: Time) -> Snapshot {
        self.metrics.snapshot(now, self.packets.iter().map(|(arrived, _)| arrived))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aqm::tests::{Sized, at_us};

    #[test]
    fn memory_is_that_of_linux_buffers() {
        // 1500 + 398 in 2048; 40 + 398 in 512; and 256 of the sk_buff.
        assert_eq!((memory_of(1500), memory_of(40)), (2304, 768));
    }

    #[test]
    fn too_much_memory_drops_from_the_longest_flow_of_all_members() {
        let mut queues = StationQueues::new(flow_queues::Params::default(), 100, 3 * 2304, Time::ZERO);
        for number in 0..2 {
            assert!(!queues.enqueue(Time::ZERO, Sized { number, ..Sized::of(1, 1500) }, 1, 0));
        }
        assert!(!queues.enqueue(Time::ZERO, Sized::of(2, 1500), 2, 5));
        assert!(queues.enqueue(at_us(1), Sized::of(3, 40), 3, 7));
        let gone = queues.drop_from_longest(at_us(1), 0..queues.members()).unwrap();
        assert_eq!((gone.flow, gone.number, queues.len(), queues.memory), (1, 0, 3, 2 * 2304 + 768));
        // What was dropped and sent no longer counts.
        while (0..8).any(|member| queues.dequeue(at_us(2), member, |_| ()).is_some()) {}
        assert_eq!((queues.memory, queues.len()), (0, 0));
    }

    #[test]
    fn what_codel_drops_gives_its_memory_back() {
        let mut queues = StationQueues::new(flow_queues::Params::default(), 1000, u64::MAX, Time::ZERO);
        for number in 0..300 {
            queues.enqueue(Time::ZERO, Sized { number, ..Sized::of(1, 1000) }, 1, 0);
        }
        let mut lost = 0;
        for ms in 0..250 {
            queues.dequeue(at_us(ms * 1000), 0, |_| lost += 1);
        }
        assert!(lost > 0);
        assert_eq!(queues.memory, queues.len() as u64 * memory_of(1000));
    }
}
