//! One direction of a wired link: a sender that takes `bytes / rate` per packet, a drop-tail buffer in front of it,
//! and a delay behind it.
//!
//! `arrival = max(now, link free) + 8 bytes / rate + delay   [s]`
//!
//! The buffer counts waiting packets; the one being sent has left it, as in ns-2 (a queue of 140 holds 141 packets
//! of a busy link). Without a rate nothing waits. Times are exact: a late `poll` moves nothing.

use std::collections::VecDeque;

use lasthop_core::aqm::fifo::{self, Fifo};
use lasthop_core::packet::Packet;
use lasthop_core::units::{BitRate, Span, Time};

use crate::scenario::Wire;

/// See the module.
#[derive(Clone, Debug)]
pub struct Link<P> {
    rate: Option<BitRate>,
    delay: Span,
    buffer: Fifo<P>,
    /// When the packet being sent is sent.
    free_at: Time,
    /// Sent, on their way, in order of arrival.
    under_way: VecDeque<(Time, P)>,
}

impl<P: Packet> Link<P> {
    /// An idle link, made at `now`.
    #[must_use]
    pub fn new(wire: Wire, now: Time) -> Self {
        Self {
            rate: wire.rate,
            delay: wire.delay,
            buffer: Fifo::new(wire.buffer as usize, now),
            free_at: now,
            under_way: VecDeque::new(),
        }
    }

    /// Takes a packet, or hands it back when the buffer is full.
    ///
    /// # Errors
    /// The packet, which is lost (and counted) here.
    pub fn on_packet(&mut self, now: Time, packet: P) -> Result<(), P> {
        self.advance(now);
        if self.buffer.is_empty() && self.free_at <= now {
            self.buffer.pass_by();
            self.send(now, packet);
            return Ok(());
        }
        self.buffer.push(now, packet)
    }

    /// Another rate, delay and buffer, for packets whose turn has not come by `now`.
    ///
    /// A shorter delay lets nothing overtake: a packet arrives no earlier than the one before it.
    pub fn set_wire(&mut self, now: Time, wire: Wire) {
        self.advance(now);
        (self.rate, self.delay) = (wire.rate, wire.delay);
        self.buffer.set_limit(wire.buffer as usize);
    }

    /// The next packet that has arrived by `now`, with the exact time of its arrival.
    pub fn poll(&mut self, now: Time) -> Option<(Time, P)> {
        self.advance(now);
        match self.under_way.front() {
            Some((at, _)) if *at <= now => self.under_way.pop_front(),
            _ => None,
        }
    }

    /// When the next packet arrives; sending from the buffer needs no wake-up of its own.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        // While packets wait, one is being sent and stands in `under_way`, so its arrival comes first.
        self.under_way.front().map(|(at, _)| *at)
    }

    /// Figures of the buffer.
    #[must_use]
    pub fn snapshot(&self, now: Time) -> fifo::Snapshot {
        self.buffer.snapshot(now)
    }

    /// Lets every packet whose turn came by `now` leave the buffer, at the time its turn came.
    fn advance(&mut self, now: Time) {
        while self.free_at <= now && !self.buffer.is_empty() {
            let turn = self.free_at;
            let Some(packet) = self.buffer.pop(turn) else { return };
            self.send(turn, packet);
        }
    }

    fn send(&mut self, at: Time, packet: P) {
        let busy = self.rate.map_or(Span::ZERO, |rate| rate.time_for(u64::from(packet.bytes())));
        self.free_at = at + busy;
        let before = self.under_way.back().map_or(Time::ZERO, |(at, _)| *at);
        self.under_way.push_back(((self.free_at + self.delay).max(before), packet));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_core::packet::FlowId;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Numbered(u32);

    impl Packet for Numbered {
        fn flow(&self) -> FlowId {
            FlowId(0)
        }
        fn bytes(&self) -> u32 {
            1500
        }
    }

    fn ms(n: u64) -> Time {
        Time::from_nanos(n * 1_000_000)
    }

    /// 1500 B take 1 ms at 12 Mbit/s.
    fn link(buffer: u32) -> Link<Numbered> {
        let wire = Wire { rate: Some(BitRate::mbps(12)), delay: Span::from_millis(10), buffer };
        Link::new(wire, Time::ZERO)
    }

    #[test]
    fn a_packet_arrives_after_its_transmission_and_the_delay() {
        let mut link = link(5);
        link.on_packet(ms(3), Numbered(1)).unwrap();
        assert_eq!(link.next_deadline(), Some(ms(14)));
        assert_eq!(link.poll(ms(13)), None);
        assert_eq!(link.poll(ms(14)), Some((ms(14), Numbered(1))));
        assert_eq!((link.poll(ms(14)), link.next_deadline()), (None, None));
    }

    #[test]
    fn the_packet_being_sent_is_not_counted_by_the_buffer() {
        let mut link = link(2);
        let sent: Vec<bool> = (0..4).map(|i| link.on_packet(ms(0), Numbered(i)).is_ok()).collect();
        assert_eq!(sent, [true, true, true, false]);
        assert_eq!(link.snapshot(ms(0)).dropped, 1);
    }

    #[test]
    fn a_late_poll_moves_nothing() {
        let mut link = link(9);
        for i in 0..3 {
            link.on_packet(ms(0), Numbered(i)).unwrap();
        }
        let arrivals: Vec<_> = std::iter::from_fn(|| link.poll(ms(500))).collect();
        assert_eq!(arrivals, [(ms(11), Numbered(0)), (ms(12), Numbered(1)), (ms(13), Numbered(2))]);
    }

    #[test]
    fn without_a_rate_only_the_delay_is_left() {
        let mut link = Link::new(Wire { rate: None, delay: Span::from_millis(7), buffer: 1 }, Time::ZERO);
        for i in 0..50 {
            link.on_packet(ms(1), Numbered(i)).unwrap();
        }
        let arrivals: Vec<_> = std::iter::from_fn(|| link.poll(ms(8))).collect();
        assert_eq!(arrivals.len(), 50);
        assert!(arrivals.iter().all(|(at, _)| *at == ms(8)));
    }

    #[test]
    fn a_shorter_delay_lets_nothing_overtake() {
        let mut link = link(5);
        link.on_packet(ms(0), Numbered(0)).unwrap();
        link.set_wire(ms(2), Wire { rate: Some(BitRate::mbps(12)), delay: Span::from_millis(1), buffer: 5 });
        link.on_packet(ms(2), Numbered(1)).unwrap();
        let arrivals: Vec<_> = std::iter::from_fn(|| link.poll(ms(50))).collect();
        assert_eq!(arrivals, [(ms(11), Numbered(0)), (ms(11), Numbered(1))]);
    }

    #[test]
    fn the_buffer_counts_how_long_packets_waited() {
        let mut link = link(9);
        for i in 0..3 {
            link.on_packet(ms(0), Numbered(i)).unwrap();
        }
        while link.poll(ms(100)).is_some() {}
        // 0, 1 and 2 ms waited; (2 x 1 ms + 1 x 1 ms) of packets over 100 ms.
        let figures = link.snapshot(ms(100));
        assert!((figures.mean_sojourn_ms - 1.0).abs() < 0.01, "{figures:?}");
        assert!((figures.mean_packets - 0.03).abs() < 1e-9, "{figures:?}");
    }
}
