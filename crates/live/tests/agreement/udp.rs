//! Datagrams of a few flows, in frames, trains and floods, and plans that hold them.

use lasthop_core::fastpath::layout::{Counters, FlowKey, Reason, UdpPlan};
use lasthop_core::fastpath::light::LightFlow;
use lasthop_core::fastpath::udp::Datagram;
use lasthop_core::packet::Direction;
use lasthop_core::units::Time;
use lasthop_core::wire::build::{Frame, LinkHeaders, v4};
use lasthop_core::wire::{self, Endpoint, Link, Merged, Parsed, protocol};

use crate::random::Random;
use crate::traffic::Crossing;
use crate::{Reference, assert_alike, host};

/// A made-up home.
pub struct Datagrams {
    pub random: Random,
    now_ns: u64,
    /// The rhythm of the day: gaps are about this, ns.
    gap_ns: u64,
    stale: bool,
    passed: u32,
}

/// Flows at a time.
const FLOWS: u32 = 12;

impl Datagrams {
    pub fn new(seed: u64) -> Self {
        Self { random: Random::new(seed), now_ns: 9_000_000_000, gap_ns: 1_000_000, stale: false, passed: 0 }
    }

    /// The next one, and when; tells the controller's mood to `reference`.
    pub fn next(&mut self, reference: &mut Reference) -> (Crossing, u64) {
        let random = &mut self.random;
        if self.passed.is_multiple_of(250) {
            self.gap_ns = random.pick(&[20_000, 300_000, 2_000_000, 8_000_000, 40_000_000]);
            self.stale = random.percent(6);
            reference.control.dry_run = u32::from(random.percent(8));
        }
        self.passed += 1;
        let gap = random.pick(&[self.gap_ns / 10, self.gap_ns, self.gap_ns, self.gap_ns + self.gap_ns / 3]);
        self.now_ns += gap;
        if random.percent(1) {
            self.now_ns += random.pick(&[120_000_000, 140_000_000, 1_300_000_000]);
        }
        reference.control.heartbeat_ns = self.now_ns - if self.stale { 2_500_000_000 } else { 500_000_000 };
        (self.crossing(), self.now_ns)
    }

    fn crossing(&mut self) -> Crossing {
        let random = &mut self.random;
        let flow = random.below(FLOWS);
        let direction = if random.percent(70) { Direction::ToStation } else { Direction::ToRemote };
        let six = flow.is_multiple_of(3);
        let address = |side: u8| match six {
            true => [0x20, 1, 0xd, 0xb8, 0, 0, 0, side, 0, 0, 0, 0, 0, 0, 0, flow as u8],
            false => v4([10, side, 0, flow as u8]),
        };
        let station = Endpoint { address: address(1), port: 5_000 + flow as u16 };
        let remote = Endpoint { address: address(2), port: 443 };
        let (source, destination) = match direction {
            Direction::ToStation => (remote, station),
            Direction::ToRemote => (station, remote),
        };
        let payload = match random.below(10) {
            0 => random.below(1_500) as usize,
            1 => 60,
            _ => random.pick(&[1_152, 1_172, 1_180, 1_452]),
        };
        let mut frame = Frame { ecn: random.pick(&[0, 0, 1, 2, 3]), ..Frame::udp(source, destination, payload) };
        frame.link = match flow % 4 {
            0 => LinkHeaders::None,
            1 => LinkHeaders::Ethernet { tags: vec![], pppoe: None },
            2 => LinkHeaders::Ethernet { tags: vec![(0x8100, 5)], pppoe: None },
            _ => LinkHeaders::Ethernet { tags: vec![], pppoe: Some(9) },
        };
        if random.percent(3) {
            // Past what is looked at, or nearly.
            let length = random.pick(&[54, 56, 57, 58]);
            frame.extensions = vec![(protocol::DESTINATION, [&[0, length][..], &[0; 6 + 8 * 58]].concat())];
            let kept = 8 * (usize::from(length) + 1);
            frame.extensions[0].1.truncate(kept);
        }
        // The long header of a QUIC connection, or nearly.
        let head = [random.pick(&[0xc0, 0xc3, 0xff, 0x80, 0x40, 0x7f]), 0, 0, 0, random.pick(&[1, 1, 2])];
        let second = [head[0], 0x6b, 0x33, 0x43, random.pick(&[0xcf, 0xcf, 0xce])];
        let head = random.pick(&[head, head, second]);
        frame.payload.iter_mut().zip(head).for_each(|(byte, of_head)| *byte = of_head);
        let merged = match random.below(12) {
            0 => Merged { segments: 3, segment_bytes: random.pick(&[500, 0]) },
            _ => Merged::NOT,
        };
        let link = if frame.link == LinkHeaders::None { Link::Ip } else { Link::Ethernet };
        let mut bytes = frame.bytes();
        if random.percent(2) {
            let at = random.below(bytes.len().min(60) as u32) as usize;
            bytes[at] ^= 1 << random.below(8);
        }
        Crossing { direction, link, merged, frame: bytes }
    }

    /// Now and then a new plan for the flow that comes next, if it is kept.
    pub fn replan(&mut self, next: &Crossing, reference: &mut Reference) -> Option<(FlowKey, UdpPlan)> {
        let random = &mut self.random;
        if !random.percent(4) {
            return None;
        }
        let Parsed::Udp(udp) = wire::parse_merged(&next.frame, next.link, next.merged) else { return None };
        let key = wire::udp_flow_key(&udp, next.direction);
        let plan = UdpPlan {
            rate_bytes: random.pick(&[0, 1, 10_000, 300_000, 2_000_000, 2_000_000, u32::MAX]),
            depth_bytes: random.pick(&[0, 1_500, 18_000, 18_000, u32::MAX]),
            most_bytes: random.pick(&[0, 36_000, 36_000, 300_000, u32::MAX]),
            answer_ns: random.pick(&[0, 1_000_000, 200_000_000, 200_000_000, u32::MAX]),
        };
        let state = reference.udp.get_mut(&key)?;
        state.half.iter_mut().for_each(|half| half.plan = plan);
        Some((key, plan))
    }
}

/// Everything that can become of UDP has.
pub fn assert_the_mix(counters: &Counters) {
    for reason in Reason::ALL.into_iter().filter(|reason| reason.is_of_a_virtual_queue()).chain([Reason::Udp]) {
        let count = counters.reason[reason as usize];
        eprintln!("  {reason:?}: {count}");
        assert!(count > 100, "{reason:?}");
    }
}

#[test]
fn the_header_for_udp_compiled_for_the_host_agrees_with_rust() {
    let mut datagrams = Datagrams::new(4);
    let mut reference = Reference::default();
    for _ in 0..40_000 {
        let (crossing, now_ns) = datagrams.next(&mut reference);
        datagrams.replan(&crossing, &mut reference);
        let linear = datagrams.random.below(crossing.frame.len() as u32 + 1) as usize;
        assert_alike(&mut reference, &crossing, linear, Time::from_nanos(now_ns));
    }
    assert_the_mix(&reference.counters);
}

#[test]
fn the_header_for_classes_compiled_for_the_host_agrees_with_rust() {
    let mut random = Random::new(26);
    let mut flows = [LightFlow::default(); 2];
    let mut given = 0;
    for n in 0..20_000u64 {
        if n % 500 == 0 {
            let user_priority = random.pick(&[0, 0, 1, 5, 6, 7, 8, u32::MAX]);
            flows.iter_mut().for_each(|flow| flow.user_priority = user_priority);
        }
        let ip_bytes = random.pick(&[0, 40, 200, 1_199, 1_200, 65_535, u32::MAX]);
        let datagram =
            Datagram { ip_bytes, segments: random.pick(&[1, 1, 2, 40]), understands_marks: false, quic: false };
        let (dscp, port, now) = (random.pick(&[0, 0, 8, 46]), random.below(9), Time::from_nanos(n * 1_000));
        let [rust, c] = &mut flows;
        let told = rust.on_datagram(&datagram, dscp, port, now);
        assert_eq!(host::light(c, &datagram, dscp, port, now), told, "{n}: {datagram:?}");
        assert_eq!(rust, c, "{n}: {datagram:?}");
        given += u32::from(told.is_some());
    }
    assert!(given > 2_000 && given < 18_000, "{given}");
}
