//! Bounded memory of what is in flight and of what has arrived.

use lasthop_core::units::Time;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    InFlight,
    Arrived,
    Lost,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    id: u32,
    sent: Time,
    fate: Fate,
}

/// What an arrival means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The first copy; it was sent at this time.
    First(Time),
    /// A further copy of one packet.
    Again,
    /// Never sent, or forgotten.
    Unknown,
}

/// Packets of one flow between sending and arrival, found by their number; the newest [`InFlight::new`] many.
#[derive(Clone, Debug)]
pub struct InFlight {
    entries: Vec<Option<Entry>>,
    forgotten: u64,
}

impl InFlight {
    /// Remembers `room` packets, rounded up to a power of two.
    #[must_use]
    pub fn new(room: usize) -> Self {
        Self { entries: vec![None; room.next_power_of_two()], forgotten: 0 }
    }

    /// How many are remembered.
    #[must_use]
    pub fn room(&self) -> usize {
        self.entries.len()
    }

    /// Packet `id` left its sender.
    pub fn on_sent(&mut self, id: u32, sent: Time) {
        let entry = self.entry(id);
        let forgets = matches!(entry, Some(old) if old.fate == Fate::InFlight);
        *entry = Some(Entry { id, sent, fate: Fate::InFlight });
        self.forgotten += u64::from(forgets);
    }

    /// Packet `id` reached its receiver.
    pub fn on_arrived(&mut self, id: u32) -> Arrival {
        match self.entry(id) {
            Some(entry) if entry.id == id && entry.fate == Fate::InFlight => {
                entry.fate = Fate::Arrived;
                Arrival::First(entry.sent)
            }
            Some(entry) if entry.id == id && entry.fate == Fate::Arrived => Arrival::Again,
            _ => Arrival::Unknown,
        }
    }

    /// Packet `id` is gone; when it was sent, unless that is forgotten.
    pub fn on_lost(&mut self, id: u32) -> Option<Time> {
        match self.entry(id) {
            Some(entry) if entry.id == id && entry.fate == Fate::InFlight => {
                entry.fate = Fate::Lost;
                Some(entry.sent)
            }
            _ => None,
        }
    }

    /// Packets sent before `limit` of which nothing was heard.
    #[must_use]
    pub fn silent_since(&self, limit: Time) -> u64 {
        self.entries.iter().flatten().filter(|e| e.fate == Fate::InFlight && e.sent < limit).count() as u64
    }

    /// Packets whose place was needed while they were in flight.
    #[must_use]
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    fn entry(&mut self, id: u32) -> &mut Option<Entry> {
        let mask = self.entries.len() - 1;
        &mut self.entries[id as usize & mask]
    }
}

/// Numbers for packets that carry none that can be read: in the order of sending, by what they are known by.
#[derive(Clone, Debug, Default)]
pub struct Numbers {
    of: HashMap<u32, u32>,
    order: VecDeque<u32>,
    next: u32,
}

impl Numbers {
    /// The packet known by `print` is sent: its number. The oldest of more than `room` is forgotten.
    pub fn on_sent(&mut self, print: u32, room: usize) -> u32 {
        if self.order.len() >= room
            && let Some(oldest) = self.order.pop_front()
        {
            self.of.remove(&oldest);
        }
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.of.insert(print, number);
        self.order.push_back(print);
        number
    }

    /// Its number, while it is remembered.
    #[must_use]
    pub fn of(&self, print: u32) -> Option<u32> {
        self.of.get(&print).copied()
    }
}

/// Most holes remembered in a byte stream; beyond that the oldest counts as filled.
const HOLES: usize = 4096;

/// Which bytes of a TCP stream have arrived.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// Everything before this is there; unwrapped sequence number. `None` before the first segment.
    next: Option<u64>,
    /// Ranges beyond: start to end, apart from each other.
    beyond: BTreeMap<u64, u64>,
}

impl Stream {
    /// A segment was sent; the first one tells where the stream begins, even if it never arrives.
    pub fn on_sent(&mut self, seq: u32) {
        self.next.get_or_insert(1 << 32 | u64::from(seq));
    }

    /// A segment arrived. Returns how many of its bytes are new.
    pub fn on_segment(&mut self, seq: u32, len: u32) -> u32 {
        self.on_sent(seq);
        let Some((start, next)) = self.place(seq) else { return 0 };
        let end = start + u64::from(len);
        let fresh = self.insert(start.max(next), end);
        self.advance();
        fresh
    }

    /// Where `seq` lies in the stream, and up to where that has arrived; `None`: nothing of it was sent.
    #[must_use]
    pub fn place(&self, seq: u32) -> Option<(u64, u64)> {
        let next = self.next?;
        Some((next.saturating_add_signed(i64::from(seq.wrapping_sub(next as u32).cast_signed())), next))
    }

    fn insert(&mut self, start: u64, end: u64) -> u32 {
        if start >= end {
            return 0;
        }
        let (mut low, mut high, mut known) = (start, end, 0);
        while let Some((&s, &e)) = self.beyond.range(..=high).next_back().filter(|(_, e)| **e >= start) {
            known += e.min(end).saturating_sub(s.max(start));
            low = low.min(s);
            high = high.max(e);
            self.beyond.remove(&s);
        }
        self.beyond.insert(low, high);
        (end - start - known) as u32
    }

    fn advance(&mut self) {
        loop {
            let full = self.beyond.len() > HOLES;
            let Some(range) = self.beyond.first_entry() else { return };
            if !full && self.next.is_some_and(|next| *range.key() > next) {
                return;
            }
            let end = range.remove();
            self.next = self.next.map(|next| next.max(end));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Time = Time::from_nanos(9);

    #[test]
    fn a_packet_arrives_once_and_then_again() {
        let mut flight = InFlight::new(4);
        flight.on_sent(5, AT);
        assert_eq!(flight.on_arrived(6), Arrival::Unknown);
        assert_eq!(flight.on_arrived(5), Arrival::First(AT));
        assert_eq!(flight.on_arrived(5), Arrival::Again);
        assert_eq!(flight.on_lost(5), None);
    }

    #[test]
    fn memory_is_bounded_and_what_is_forgotten_is_counted() {
        let mut flight = InFlight::new(4);
        for id in 0..6 {
            flight.on_sent(id, AT);
        }
        assert_eq!(flight.forgotten(), 2);
        assert_eq!(flight.on_arrived(0), Arrival::Unknown);
        assert_eq!(flight.on_lost(4), Some(AT));
        assert_eq!(flight.silent_since(Time::MAX), 3);
    }

    #[test]
    fn what_cannot_be_read_is_numbered_in_the_order_of_sending() {
        let mut numbers = Numbers::default();
        assert_eq!([77, 5, 9].map(|print| numbers.on_sent(print, 2)), [0, 1, 2]);
        assert_eq!([77, 5, 9].map(|print| numbers.of(print)), [None, Some(1), Some(2)]);
    }

    #[test]
    fn only_new_bytes_of_a_stream_count() {
        let mut stream = Stream::default();
        assert_eq!(stream.on_segment(u32::MAX - 9, 10), 10);
        assert_eq!(stream.on_segment(20, 10), 10, "beyond a hole, after the wrap");
        assert_eq!(stream.on_segment(20, 10), 0, "again");
        assert_eq!(stream.on_segment(0, 25), 20, "fills the hole and overlaps");
        assert_eq!(stream.on_segment(u32::MAX - 9, 10), 0, "old");
        assert_eq!(stream.on_segment(30, 5), 5);
        assert!(stream.beyond.is_empty());
    }

    #[test]
    fn ranges_that_touch_become_one() {
        let mut stream = Stream::default();
        stream.on_segment(0, 1);
        for seq in [10, 30, 20, 5] {
            stream.on_segment(seq, 10);
        }
        assert_eq!(stream.beyond.len(), 1);
        assert_eq!(stream.on_segment(5, 40), 5);
    }
}
