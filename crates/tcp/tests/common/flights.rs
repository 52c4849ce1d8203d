//! What is in the channel between two ends, by arrival and then by the order of sending.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use lasthop_core::units::Time;

pub struct Flights<T> {
    heap: BinaryHeap<Flight<T>>,
    sent: u64,
}

struct Flight<T> {
    at: Time,
    number: u64,
    what: T,
}

impl<T> Flights<T> {
    pub fn new() -> Self {
        Self { heap: BinaryHeap::new(), sent: 0 }
    }

    pub fn push(&mut self, at: Time, what: T) {
        self.sent += 1;
        self.heap.push(Flight { at, number: self.sent, what });
    }

    pub fn next_arrival(&self) -> Option<Time> {
        self.heap.peek().map(|flight| flight.at)
    }

    /// What has arrived by `now`, the earliest first.
    pub fn arrived(&mut self, now: Time) -> Option<T> {
        self.next_arrival().filter(|at| *at <= now)?;
        self.heap.pop().map(|flight| flight.what)
    }
}

impl<T> Ord for Flight<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl<T> PartialOrd for Flight<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Flight<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Flight<T> {}
