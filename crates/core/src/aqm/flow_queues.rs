//! Queues of flows, told apart by a hash, each under CoDel, served in turns by bytes: the inside of FQ-CoDel.

use super::codel::{self, CodelVerdict, Law, Popped};
use super::metrics::Metrics;
use super::packets::{List, Packets};
use super::turns::Turns;
use crate::packet::{Packet, mix};
use crate::units::Time;

/// How flows are queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Of each flow's queue.
    pub codel: codel::Params,
    /// IP bytes that a flow may send per turn. 1514: a full Ethernet frame (RFC 8290 5.2.4).
    pub quantum: u32,
    /// Number of queues that flows are hashed into. 1024 (RFC 8290 5.2.5).
    pub flows: u32,
}

impl Default for Params {
    fn default() -> Self {
        Self { codel: codel::Params::default(), quantum: 1514, flows: 1024 }
    }
}

#[derive(Clone, Debug)]
struct Queue {
    law: Law,
    list: List,
    bytes: u64,
}

/// See the module. The packets and the figures are the owner's.
#[derive(Clone, Debug)]
pub struct FlowQueues {
    params: Params,
    /// Where the queue of a hash is in `queues`, plus one; 0: it was not needed so far.
    places: Vec<u32>,
    /// Queues of flows, as many as were needed so far.
    queues: Vec<Queue>,
    turns: Turns,
    packets: usize,
}

impl FlowQueues {
    /// Empty ones.
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self { params, places: Vec::new(), queues: Vec::new(), turns: Turns::default(), packets: 0 }
    }

    /// Takes a packet.
    pub fn enqueue<P: Packet>(&mut self, now: Time, packet: P, key: u64, packets: &mut Packets<P>) {
        let number = self.number(key);
        let queue = &mut self.queues[number as usize];
        queue.bytes += u64::from(packet.bytes());
        packets.push(&mut queue.list, now, packet);
        self.packets += 1;
        self.turns.come(number, i64::from(self.params.quantum));
    }

    /// The queue of a flow.
    fn number(&mut self, key: u64) -> u32 {
        let hash = ((u128::from(mix(key)) * u128::from(self.params.flows.max(1))) >> 64) as usize;
        if self.places.len() <= hash {
            self.places.resize(hash + 1, 0);
        }
        let place = &mut self.places[hash];
        if *place == 0 {
            self.queues.push(Queue { law: Law::default(), list: List::EMPTY, bytes: 0 });
            *place = self.queues.len() as u32;
        }
        *place - 1
    }

    /// The packet to be sent; those that CoDel drops first go to `lose`.
    pub fn dequeue<P: Packet>(
        &mut self,
        now: Time,
        packets: &mut Packets<P>,
        metrics: &mut Metrics,
        lose: &mut impl FnMut(P),
    ) -> Option<P> {
        let quantum = i64::from(self.params.quantum.max(1));
        while let Some(number) = self.turns.next(quantum) {
            let Queue { law, list, bytes } = &mut self.queues[number as usize];
            let held = &mut self.packets;
            let pop = || {
                let (arrived, packet) = packets.pop(list)?;
                *bytes -= u64::from(packet.bytes());
                *held -= 1;
                Some(Popped { arrived, packet, left_bytes: *bytes })
            };
            let head = law.dequeue(&self.params.codel, now, pop, |verdict| match verdict {
                CodelVerdict::Dropped(arrived, packet) => {
                    metrics.on_drop(now, arrived, packet.bytes());
                    lose(packet);
                }
                CodelVerdict::Marked => metrics.on_mark(),
            });
            let Some(Popped { arrived, packet, .. }) = head else {
                self.turns.go(number);
                continue;
            };
            self.turns.charge(number, i64::from(packet.bytes()));
            metrics.on_dequeue(now, arrived, packet.bytes());
            return Some(packet);
        }
        None
    }

    /// The longest queue in bytes: its number and its length. It asks every flow that has packets.
    #[must_use]
    pub fn longest(&self) -> Option<(u32, u64)> {
        // Of equal ones the first in turn, lest the order of asking matter.
        let bytes = |number: u32| self.queues[number as usize].bytes;
        let longer = |a: u32, b: u32| if bytes(b) > bytes(a) { b } else { a };
        self.turns.iter().reduce(longer).map(|number| (number, bytes(number)))
    }

    /// The head of a queue, to be dropped; with its arrival.
    pub fn take_head<P: Packet>(&mut self, number: u32, packets: &mut Packets<P>) -> Option<(Time, P)> {
        let queue = &mut self.queues[number as usize];
        let (arrived, packet) = packets.pop(&mut queue.list)?;
        queue.bytes -= u64::from(packet.bytes());
        self.packets -= 1;
        Some((arrived, packet))
    }

    /// Packets held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.packets
    }

    /// Whether it holds no packet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets == 0
    }
}
