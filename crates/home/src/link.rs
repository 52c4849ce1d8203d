//! One direction of a wired link: a sender that takes `bytes / rate` per packet, a drop-tail buffer in front of it,
//! and a delay behind it.
//!
//! `free = max(now, free) + 8 bytes / rate`, `arrival = max(now, free - 8 burst / rate) + delay   [s]`
//!
//! With a burst of 0 each packet takes its time on a wire. With one, packets leave through a token bucket of that depth: at once while
//! it holds tokens for them, then at the rate (GCRA: ITU-T I.371).
//!
//! The buffer counts waiting packets; the one being sent has left it, as in ns-2 (a queue of 140 holds 141 packets
//! of a busy link). Without a rate nothing waits. First in, first out at a known rate: what becomes of a packet is
//! known when it comes, so none is touched twice. Times are exact: a late `poll` moves nothing.

use std::collections::VecDeque;

use lasthop_core::aqm::fifo;
use lasthop_core::meter::histogram::Histogram;
use lasthop_core::packet::Packet;
use lasthop_core::units::{Span, Time};

use crate::scenario::Wire;

/// See the module.
#[derive(Clone, Debug)]
pub struct Link<P> {
    wire: Wire,
    /// When the last packet that came has been sent; of a token bucket, when it would be full again.
    free_at: Time,
    /// How long a token bucket takes to fill.
    depth: Span,
    /// In order, each with its arrival: waiting, being sent, or in flight.
    packets: VecDeque<(Time, P)>,
    /// When the first of them arrives; [`Time::MAX`] without any.
    first: Time,
    /// When the last packet that came arrives.
    last: Time,
    /// When each packet leaves the buffer that had to wait, those included whose turn has come since the last one came.
    turns: VecDeque<Time>,
    /// The transmission time of a packet of this size, which the next one mostly has, too.
    busy: (u32, Span),
    metrics: Metrics,
}

#[derive(Clone, Debug)]
struct Metrics {
    made: Time,
    /// Packets that waited for nothing.
    passed: u64,
    waited: Histogram,
    max_packets: usize,
    dropped: u64,
}

impl<P: Packet> Link<P> {
    /// An idle link, made at `now`.
    #[must_use]
    pub fn new(wire: Wire, now: Time) -> Self {
        Self {
            depth: depth(&wire),
            wire,
            free_at: now,
            packets: VecDeque::new(),
            first: Time::MAX,
            last: now,
            turns: VecDeque::new(),
            busy: (0, Span::ZERO),
            metrics: Metrics { made: now, passed: 0, waited: Histogram::new(), max_packets: 0, dropped: 0 },
        }
    }

    /// Takes a packet, or hands it back when the buffer is full.
    ///
    /// # Errors
    /// The packet, which is lost (and counted) here.
    #[inline]
    pub fn on_packet(&mut self, now: Time, packet: P) -> Result<(), P> {
        let Some(arrives) = self.pass(now, packet.bytes()) else { return Err(packet) };
        self.first = self.first.min(arrives);
        self.packets.push_back((arrives, packet));
        Ok(())
    }

    /// When a packet arrives that is not handed over but only passes; `None`: the buffer is full, and it is lost (and
    /// counted) here. Each packet of a link either passes or is handed over, and it cannot be told to wait any longer by
    /// [`Self::set_wire`].
    #[inline]
    pub fn pass(&mut self, now: Time, bytes: u32) -> Option<Time> {
        let turn = self.free_at - self.depth;
        if turn <= now {
            self.metrics.passed += 1;
        } else {
            self.wait(now, turn)?;
        }
        let (free_at, sent) = self.leaves(now, bytes);
        self.free_at = free_at;
        self.last = (sent + self.wire.delay).max(self.last);
        Some(self.last)
    }

    /// Of a packet that comes at `now`: what [`Self::free_at`] is after it, and when it has been sent.
    #[inline]
    fn leaves(&mut self, now: Time, bytes: u32) -> (Time, Time) {
        if self.busy.0 != bytes {
            self.time(bytes);
        }
        let free_at = self.free_at.max(now) + self.busy.1;
        (free_at, (free_at - self.depth).max(now))
    }

    /// A packet finds the link busy until `turn`, its own, if there is room for it. Out of line, so that the packets of an idle link,
    /// nearly all of them, do not pay for it.
    #[inline(never)]
    fn wait(&mut self, now: Time, turn: Time) -> Option<()> {
        while self.turns.front().is_some_and(|turn| *turn <= now) {
            self.turns.pop_front();
        }
        if self.turns.len() >= self.wire.buffer as usize {
            self.metrics.dropped += 1;
            return None;
        }
        self.turns.push_back(turn);
        self.metrics.max_packets = self.metrics.max_packets.max(self.turns.len());
        self.metrics.waited.record(turn.since(now));
        Some(())
    }

    /// The next packet that has arrived by `now`, with the exact time of its arrival.
    #[inline]
    pub fn poll(&mut self, now: Time) -> Option<(Time, P)> {
        if self.first > now {
            return None;
        }
        let arrived = self.packets.pop_front()?;
        self.first = self.packets.front().map_or(Time::MAX, |(at, _)| *at);
        Some(arrived)
    }

    /// When a packet would arrive that came at `now`, if there is room for it.
    #[inline]
    pub fn look_ahead(&mut self, now: Time, bytes: u32) -> Time {
        (self.leaves(now, bytes).1 + self.wire.delay).max(self.last)
    }

    /// The next packet to arrive.
    #[must_use]
    #[inline]
    pub fn front(&self) -> Option<&P> {
        self.packets.front().map(|(_, packet)| packet)
    }

    /// When the next packet arrives; sending from the buffer needs no wake-up of its own.
    #[must_use]
    #[inline]
    pub fn next_deadline(&self) -> Option<Time> {
        (self.first != Time::MAX).then_some(self.first)
    }

    /// Another rate, delay and buffer, for packets whose turn has not come by `now`.
    ///
    /// A shorter delay lets nothing overtake: a packet arrives no earlier than the one before it.
    pub fn set_wire(&mut self, now: Time, wire: Wire) {
        let waiting = self.waiting(now).count().min(self.packets.len());
        let mut turn = self.turns.iter().copied().find(|turn| *turn > now).unwrap_or(self.free_at - self.depth);
        (self.wire, self.depth, self.busy) = (wire, depth(&wire), (0, Span::ZERO));
        let again = self.packets.split_off(self.packets.len() - waiting);
        self.last = self.packets.back().map_or(now, |(at, _)| *at);
        self.turns.clear();
        for (_, packet) in again {
            self.turns.push_back(turn);
            self.time(packet.bytes());
            turn += self.busy.1;
            self.last = (turn + self.wire.delay).max(self.last);
            self.packets.push_back((self.last, packet));
        }
        self.free_at = turn + self.depth;
        self.first = self.packets.front().map_or(Time::MAX, |(at, _)| *at);
    }

    /// Figures of the buffer.
    #[must_use]
    pub fn snapshot(&self, now: Time) -> fifo::Snapshot {
        let waiting = self.waiting(now).count();
        let held = self.packets.iter().rev().take(waiting);
        let Metrics { made, passed, waited, max_packets, dropped } = &self.metrics;
        let packets = passed + waited.count();
        let total_s = waited.mean().unwrap_or_default().as_secs_f64() * waited.count() as f64;
        // The queue's length adds up over time to the time that packets wait; some of it is still to come.
        let to_come_s: f64 = self.waiting(now).map(|turn| turn.since(now).as_secs_f64()).sum();
        let rank = libm::ceil(0.99 * packets as f64) as u64;
        let beyond = rank.saturating_sub(*passed) as f64 / waited.count().max(1) as f64;
        let p99 = if rank <= *passed { Span::ZERO } else { waited.quantile(beyond).unwrap_or_default() };
        fifo::Snapshot {
            packets: waiting,
            bytes: held.map(|(_, packet)| u64::from(packet.bytes())).sum(),
            mean_packets: (total_s - to_come_s).max(0.0) / now.since(*made).as_secs_f64().max(1e-9),
            max_packets: *max_packets,
            dropped: *dropped,
            marked: 0,
            mean_sojourn_ms: total_s * 1e3 / packets.max(1) as f64,
            p99_sojourn_ms: p99.as_millis_f64(),
        }
    }

    /// Turns of the packets that wait at `now`.
    fn waiting(&self, now: Time) -> impl Iterator<Item = Time> {
        self.turns.iter().copied().filter(move |turn| *turn > now)
    }

    #[inline(never)]
    fn time(&mut self, bytes: u32) {
        self.busy = (bytes, self.wire.rate.map_or(Span::ZERO, |rate| rate.time_for(u64::from(bytes))));
    }
}

/// How long the token bucket of a wire takes to fill.
fn depth(wire: &Wire) -> Span {
    wire.rate.map_or(Span::ZERO, |rate| rate.time_for(u64::from(wire.burst)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_core::packet::FlowId;
    use lasthop_core::units::BitRate;

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
        let wire = Wire { rate: Some(BitRate::mbps(12)), delay: Span::from_millis(10), buffer, burst: 0 };
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
        let mut link = Link::new(Wire { rate: None, delay: Span::from_millis(7), buffer: 1, burst: 0 }, Time::ZERO);
        for i in 0..50 {
            link.on_packet(ms(1), Numbered(i)).unwrap();
        }
        let arrivals: Vec<_> = std::iter::from_fn(|| link.poll(ms(8))).collect();
        assert_eq!(arrivals.len(), 50);
        assert!(arrivals.iter().all(|(at, _)| *at == ms(8)));
    }

    #[test]
    fn what_only_passes_waits_and_is_lost_like_what_is_handed_over() {
        let (mut kept, mut passing) = (link(2), link(2));
        for (at, n) in [(0, 0), (0, 1), (0, 2), (0, 3), (2, 4), (9, 5)] {
            let handed_over = kept.on_packet(ms(at), Numbered(n)).ok().map(|()| kept.last);
            assert_eq!(passing.pass(ms(at), 1500), handed_over, "packet {n}");
        }
        let (kept, passed) = (kept.snapshot(ms(10)), passing.snapshot(ms(10)));
        assert_eq!((kept.mean_packets, kept.dropped, kept.max_packets), (passed.mean_packets, 1, 2));
    }

    /// Arrivals, ms, of packets that come at 100 ms, and as many at 104, over 12 Mbit/s; those that are lost are left out.
    fn through_a_bucket(packets: u32, burst: u32, buffer: u32) -> Vec<u64> {
        let wire = Wire { rate: Some(BitRate::mbps(12)), delay: Span::ZERO, buffer, burst };
        let mut link = Link::new(wire, Time::ZERO);
        for at in [100, 104] {
            (0..packets).for_each(|i| _ = link.on_packet(ms(at), Numbered(i)));
        }
        std::iter::from_fn(|| link.poll(ms(500))).map(|(at, _)| at.as_nanos() / 1_000_000).collect()
    }

    #[test]
    fn a_token_bucket_lets_its_burst_pass_at_once_and_fills_at_the_rate() {
        assert_eq!(through_a_bucket(3, 0, 9), [101, 102, 103, 105, 106, 107], "a wire");
        // Three packets' worth: the third group's tokens are what four milliseconds brought, no more than the bucket holds.
        assert_eq!(through_a_bucket(4, 4500, 9), [100, 100, 100, 101, 104, 104, 104, 105]);
        // Half a packet's: the first has to wait for the rest of its tokens.
        assert_eq!(through_a_bucket(1, 750, 9), [100, 104]);
        // Five come at once, of which two pass, one begins to be sent and one may wait.
        assert_eq!(through_a_bucket(5, 3000, 1), [100, 100, 101, 102, 104, 104, 105, 106]);
        assert_eq!(through_a_bucket(4, 100_000, 1), [100, 100, 100, 100, 104, 104, 104, 104]);
    }

    /// UDP of 1,472 bytes through `tc qdisc add .. tbf rate 12112kbit burst B`, B 3, 2 and 6 frames of 1,514 bytes, between two namespaces of
    /// Linux 6.18: arrivals after the first, rounded to ms.
    #[test]
    fn a_token_bucket_lets_pass_what_tc_tbf_does() {
        let after_the_first = |packets, burst| through_a_bucket(packets, burst, 99).into_iter().map(|at| at - 100);
        let tbf: [(u32, u32, &[u64]); 3] = [
            (4, 3, &[0, 0, 0, 1, 4, 4, 4, 5]),
            (5, 2, &[0, 0, 1, 2, 3, 4, 5, 6, 7, 8]),
            (8, 6, &[0, 0, 0, 0, 0, 0, 1, 2, 4, 4, 5, 6, 7, 8, 9, 10]),
        ];
        for (packets, frames, arrivals) in tbf {
            assert!(after_the_first(packets, frames * 1500).eq(arrivals.iter().copied()), "{packets} and {frames}");
        }
    }

    #[test]
    fn a_token_bucket_keeps_its_rate_when_the_wire_changes() {
        let wire = |burst| Wire { rate: Some(BitRate::mbps(12)), delay: Span::ZERO, buffer: 9, burst };
        let mut link = Link::new(wire(3000), Time::ZERO);
        (0..5).for_each(|i| link.on_packet(ms(100), Numbered(i)).unwrap());
        link.set_wire(ms(101), wire(0));
        link.on_packet(ms(101), Numbered(5)).unwrap();
        let arrivals: Vec<_> =
            std::iter::from_fn(|| link.poll(ms(500))).map(|(at, _)| at.as_nanos() / 1_000_000).collect();
        assert_eq!(arrivals, [100, 100, 101, 102, 103, 104]);
    }

    #[test]
    fn a_shorter_delay_lets_nothing_overtake() {
        let mut link = link(5);
        link.on_packet(ms(0), Numbered(0)).unwrap();
        let wire = Wire { rate: Some(BitRate::mbps(12)), delay: Span::from_millis(1), buffer: 5, burst: 0 };
        link.set_wire(ms(2), wire);
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
        let metrics = link.snapshot(ms(100));
        assert!((metrics.mean_sojourn_ms - 1.0).abs() < 0.01, "{metrics:?}");
        assert!((metrics.mean_packets - 0.03).abs() < 1e-9, "{metrics:?}");
    }
}
