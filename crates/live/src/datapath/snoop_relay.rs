//! Snoop over frames (`core::snoop`): what leaves for stations is kept until they acknowledge it; no clock, no I/O.
//!
//! Frames are kept when they leave the queue: what the queue drops was lost before Snoop, so senders hear of congestion as
//! ever. Bare acknowledgments come by [`SnoopRelay::on_answer`] and may be held back; whatever else stations send
//! ([`SnoopRelay::on_heard`]) is only listened to.

use std::sync::Arc;

use lasthop_core::credit::key;
use lasthop_core::packet::{Direction, FlowKind};
use lasthop_core::snoop::{Ack, Data, Params, Snapshot, Snoop, SnoopVerdict};
use lasthop_core::units::Time;
use lasthop_core::wire::{self, Link, Merged, Parsed, TcpFields, flag};

/// Bits of TCP's flags that no acknowledgment may lose: urgent data, congestion seen (RFC 3168), window cut.
const CARRIES_MORE: u8 = 0xe0;

/// See the module.
#[derive(Debug)]
pub struct SnoopRelay {
    snoop: Snoop<Arc<[u8]>>,
    link: Link,
    secret: u64,
}

impl SnoopRelay {
    /// For frames that begin with `link`.
    #[must_use]
    pub fn new(params: Params, link: Link, secret: u64) -> Self {
        Self { snoop: Snoop::new(params), link, secret }
    }

    /// A frame leaves for a station.
    pub fn on_leaving(&mut self, now: Time, frame: &[u8]) {
        let parsed = wire::parse(frame, self.link);
        let Parsed::Tcp(tcp) = parsed else { return };
        let ends = tcp.has(flag::SYN | flag::RST);
        if tcp.payload_bytes == 0 && !tcp.has(flag::FIN) && !ends {
            return;
        }
        let data = Data {
            connection: key::of(&parsed, Direction::ToStation, FlowKind::Connection, self.secret),
            seq: tcp.seq,
            bytes: tcp.payload_bytes,
            syn: tcp.has(flag::SYN),
            fin: tcp.has(flag::FIN),
            rst: tcp.has(flag::RST),
            queue_full: false,
        };
        self.snoop.on_data(now, &data, if ends { Arc::default() } else { Arc::from(frame) });
    }

    /// A bare acknowledgment of a station: false when it is to go no further. It may lose its blocks.
    pub fn on_answer(&mut self, now: Time, frame: &mut [u8]) -> bool {
        let parsed = wire::parse(frame, self.link);
        let Parsed::Tcp(tcp) = parsed else { return true };
        match self.on_ack(now, frame, &parsed, &tcp) {
            SnoopVerdict::Forward => true,
            SnoopVerdict::Strip => {
                wire::strip_sack(frame, &tcp);
                true
            }
            SnoopVerdict::Suppress => false,
        }
    }

    /// Anything that a station has sent, perhaps merged from several packets; it goes its own way. Bare acknowledgments
    /// come by [`Self::on_answer`].
    pub fn on_heard(&mut self, now: Time, frame: &[u8]) {
        let parsed = wire::parse_merged(frame, self.link, Merged { segments: 2, segment_bytes: 0 });
        let Parsed::Tcp(tcp) = parsed else { return };
        if tcp.payload_bytes == 0 && !tcp.has(flag::SYN | flag::FIN | flag::RST) {
            return;
        }
        let _ = self.on_ack(now, frame, &parsed, &tcp);
    }

    fn on_ack(&mut self, now: Time, frame: &[u8], parsed: &Parsed, tcp: &TcpFields) -> SnoopVerdict {
        let ends = tcp.has(flag::SYN | flag::RST);
        if !tcp.has(flag::ACK) && !ends {
            return SnoopVerdict::Forward;
        }
        let blocks = wire::sack_blocks(frame, tcp);
        let carries_more = tcp.payload_bytes > 0 || tcp.has(flag::FIN | CARRIES_MORE) || tcp.authenticated;
        let ack = Ack {
            connection: key::of(parsed, Direction::ToRemote, FlowKind::Connection, self.secret),
            ack: tcp.ack,
            window: u32::from(tcp.window),
            sack: blocks.as_slice(),
            carries_more,
            syn: tcp.has(flag::SYN),
            rst: tcp.has(flag::RST),
        };
        self.snoop.on_ack(now, &ack)
    }

    /// A frame that is to be sent once more.
    pub fn poll(&mut self, now: Time) -> Option<Arc<[u8]>> {
        self.snoop.poll(now).map(|again| again.packet)
    }

    /// When [`Self::poll`] may have something without being told anything.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        self.snoop.next_deadline()
    }

    /// What happened so far.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.snoop.snapshot()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_core::units::Span;
    use lasthop_core::wire::Endpoint;
    use lasthop_core::wire::build::{Frame, Segment, option, v4};

    const STATION: Endpoint = Endpoint { address: v4([192, 168, 1, 20]), port: 5_000 };
    const SERVER: Endpoint = Endpoint { address: v4([203, 0, 113, 5]), port: 443 };

    fn data(seq: u32) -> Vec<u8> {
        let segment = Segment { seq, ack: 1, flags: flag::ACK, window: 500, options: option::timestamps(9, 8) };
        Frame::tcp(SERVER, STATION, segment, 1_000).bytes()
    }

    fn ack(ack: u32, blocks: &[(u32, u32)], flags: u8, payload: usize) -> Vec<u8> {
        let options = if blocks.is_empty() { Vec::new() } else { option::sack(blocks) };
        let segment = Segment { seq: 1, ack, flags: flag::ACK | flags, window: 700, options };
        Frame::tcp(STATION, SERVER, segment, payload).bytes()
    }

    fn relay() -> (SnoopRelay, Time) {
        let mut relay = SnoopRelay::new(Params::default(), Link::Ethernet, 7);
        for segment in 0..5 {
            relay.on_leaving(Time::ZERO, &data(segment * 1_000));
        }
        (relay, Time::ZERO + Span::from_millis(10))
    }

    fn sent(relay: &mut SnoopRelay, now: Time) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| relay.poll(now)).map(|frame| frame.to_vec()).collect()
    }

    #[test]
    fn the_copy_of_a_lost_frame_is_sent_and_the_duplicate_goes_no_further() {
        let (mut relay, now) = relay();
        assert!(relay.on_answer(now, &mut ack(1_000, &[], 0, 0)));
        assert!(!relay.on_answer(now, &mut ack(1_000, &[(2_000, 3_000)], 0, 0)));
        assert_eq!(sent(&mut relay, now), [data(1_000)]);
    }

    #[test]
    fn an_acknowledgment_of_something_new_loses_its_blocks_and_stays_valid() {
        let (mut relay, now) = relay();
        let mut frame = ack(1_000, &[(2_000, 3_000)], 0, 0);
        assert!(relay.on_answer(now, &mut frame));
        let Parsed::Tcp(tcp) = wire::parse(&frame, Link::Ethernet) else { panic!("a segment") };
        assert!(wire::checksum_is_valid(&frame, &tcp));
        assert_eq!((tcp.ack, wire::sack_blocks(&frame, &tcp).as_slice().len()), (1_000, 0));
        assert_eq!(sent(&mut relay, now), [data(1_000)]);
    }

    #[test]
    fn congestion_echoed_urgent_data_and_authenticated_segments_pass_as_they_are() {
        let (mut relay, now) = relay();
        let _ = relay.on_answer(now, &mut ack(1_000, &[], 0, 0));
        for flags in [0x20, 0x40, 0x80] {
            let before = ack(1_000, &[(2_000, 3_000)], flags, 0);
            let mut frame = before.clone();
            assert!(relay.on_answer(now, &mut frame));
            assert_eq!(frame, before);
        }
    }

    #[test]
    fn what_carries_payload_is_listened_to() {
        let (mut relay, now) = relay();
        relay.on_heard(now, &ack(3_000, &[], 0, 200));
        assert_eq!(relay.snapshot().segments, 2);
        relay.on_heard(now, &ack(5_000, &[], 0, 0));
        assert_eq!(relay.snapshot().segments, 2, "bare ones come by another way");
        relay.on_heard(now, &ack(3_000, &[], flag::RST, 0));
        assert_eq!(relay.snapshot().connections, 0);
    }
}
