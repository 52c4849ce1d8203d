//! Snoop between a sender and a receiver: it repairs the hop, hides no more than it may, and the stream arrives whole.

#[path = "common/flights.rs"]
mod flights;

use flights::Flights;
use lasthop_core::snoop::{self, Data, Params, Snapshot, Snoop, SnoopVerdict};
use lasthop_core::units::{BitRate, Span, Time};
use lasthop_tcp::{Ack, Algorithm, Receiver, ReceiverParams, SackBlocks, Segment, Sender, SenderParams};
use lasthop_testing::random::Random;
use proptest::prelude::*;

const MSS: u32 = 960;
const HEADERS: u64 = 40;

/// A segment as it travels: which connection's life it belongs to tells a copy of an older one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sent {
    segment: Segment,
    life: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// To the access point, from the sender.
    Down(Sent),
    /// To the receiver.
    Deliver(Sent),
    /// To the access point, from the receiver.
    Up(Ack, u32),
    /// To the sender.
    Answer(Ack, u32),
}

/// What a path does, each per mille.
#[derive(Clone, Copy, Debug, Default)]
struct Faults {
    lost: u64,
    late: u64,
    doubled: u64,
}

/// Sender - 20 ms - access point - 5 Mbit/s, 1 ms - receiver.
struct World {
    sender: Sender,
    receiver: Receiver,
    snoop: Option<Snoop<Sent>>,
    wire: Faults,
    hop: Faults,
    /// Acknowledgments made up by somebody, told to Snoop alone, per mille of those that are true.
    made_up: u64,
    random: Random,
    flying: Flights<Event>,
    busy_until: Time,
    life: u32,
    /// Sequence number of the first byte of this life.
    base: u32,
    fresh: u64,
}

impl World {
    fn new(sender: SenderParams, receiver: ReceiverParams, snoop: Option<Params>, seed: u64) -> Self {
        Self {
            sender: Sender::new(sender),
            receiver: Receiver::new(receiver),
            snoop: snoop.map(Snoop::new),
            wire: Faults::default(),
            hop: Faults::default(),
            made_up: 0,
            random: Random(seed),
            flying: Flights::new(),
            busy_until: Time::ZERO,
            life: 0,
            base: seed as u32,
            fresh: 0,
        }
    }

    /// Another connection of the same name over the same access point, later.
    fn open_again(&mut self, sender: SenderParams, receiver: ReceiverParams) {
        self.life += 1;
        self.base = self.random.next() as u32;
        self.fresh = 0;
        self.sender = Sender::new(sender);
        self.receiver = Receiver::new(receiver);
    }

    fn fly(&mut self, at: Time, faults: Faults, event: Event) {
        let copies = 1 + u64::from(self.random.below(1000) < faults.doubled);
        for _ in 0..copies {
            if self.random.below(1000) < faults.lost {
                continue;
            }
            let late = if self.random.below(1000) < faults.late { self.random.below(30) } else { 0 };
            self.flying.push(at + Span::from_millis(late), event);
        }
    }

    /// Over the hop, behind what is on it.
    fn over_the_hop(&mut self, now: Time, sent: Sent) {
        let takes = BitRate::mbps(5).time_for(u64::from(sent.segment.bytes) + HEADERS);
        self.busy_until = self.busy_until.max(now) + takes;
        self.fly(self.busy_until + Span::from_millis(1), self.hop, Event::Deliver(sent));
    }

    fn on_event(&mut self, now: Time, event: Event) {
        match event {
            Event::Down(sent) => self.down(now, sent),
            Event::Deliver(sent) => {
                assert!(sent.life <= self.life);
                if sent.life == self.life {
                    self.fresh += u64::from(self.receiver.on_segment(now, &sent.segment));
                }
            }
            Event::Up(ack, life) => self.up(now, ack, life),
            Event::Answer(ack, life) if life == self.life => self.sender.on_ack(now, &ack),
            Event::Answer(..) => {}
        }
        self.drain(now);
    }

    fn down(&mut self, now: Time, sent: Sent) {
        if let Some(snoop) = self.snoop.as_mut().filter(|_| sent.life == self.life) {
            let segment = sent.segment;
            let data = Data {
                seq: self.base.wrapping_add(segment.offset as u32),
                bytes: segment.bytes,
                syn: segment.syn,
                ..Data::default()
            };
            snoop.on_data(now, &data, sent);
        }
        self.over_the_hop(now, sent);
    }

    fn up(&mut self, now: Time, mut ack: Ack, life: u32) {
        if let Some(snoop) = self.snoop.as_mut().filter(|_| life == self.life) {
            if self.random.below(1000) < self.made_up {
                let near = |random: &mut Random| self.base.wrapping_add((ack.offset + random.below(200_000)) as u32);
                let blocks: Vec<_> = (0..4).map(|_| (near(&mut self.random), near(&mut self.random))).collect();
                let lie = snoop::Ack {
                    ack: if self.random.below(2) == 0 { near(&mut self.random) } else { self.random.next() as u32 },
                    window: self.random.below(3) as u32,
                    sack: &blocks[..self.random.below(5) as usize],
                    ..snoop::Ack::default()
                };
                let _ = snoop.on_ack(now, &lie);
            }
            let blocks: Vec<_> = ack.sack.as_slice().iter().map(|b| (b.0 as u32, b.1 as u32)).collect();
            let blocks: Vec<_> =
                blocks.iter().map(|b| (self.base.wrapping_add(b.0), self.base.wrapping_add(b.1))).collect();
            let verdict = snoop.on_ack(
                now,
                &snoop::Ack {
                    ack: self.base.wrapping_add(ack.offset as u32),
                    window: ack.window_bytes as u32,
                    sack: &blocks,
                    syn: ack.syn,
                    ..snoop::Ack::default()
                },
            );
            match verdict {
                SnoopVerdict::Forward => {}
                SnoopVerdict::Strip => ack.sack = SackBlocks::default(),
                SnoopVerdict::Suppress => return,
            }
        }
        self.fly(now + Span::from_millis(20), self.wire, Event::Answer(ack, life));
    }

    fn drain(&mut self, now: Time) {
        let life = self.life;
        while let Some(segment) = self.sender.poll(now) {
            self.fly(now + Span::from_millis(20), self.wire, Event::Down(Sent { segment, life }));
        }
        while let Some(sent) = self.snoop.as_mut().and_then(|snoop| snoop.poll(now)) {
            assert_eq!(sent.packet.life, life, "no copy of an older connection");
            self.over_the_hop(now, sent.packet);
        }
        while let Some(ack) = self.receiver.poll(now) {
            self.fly(now + Span::from_millis(1), self.hop, Event::Up(ack, life));
        }
    }

    /// Until the sender is done, or it is `until`.
    fn run(&mut self, from: Time, until: Time) -> Time {
        let mut now = from;
        self.drain(now);
        while !self.sender.is_done() && now < until {
            let snoop = self.snoop.as_ref().and_then(Snoop::next_deadline);
            let timers =
                [self.sender.next_deadline(), self.receiver.next_deadline(), snoop, self.flying.next_arrival()];
            now = timers.into_iter().flatten().min().expect("something wakes somebody").max(now);
            match self.flying.arrived(now) {
                Some(event) => {
                    self.on_event(now, event);
                }
                None => self.drain(now),
            }
        }
        now
    }
}

fn sender(cc: Algorithm, sack: bool, bytes: Option<u64>) -> SenderParams {
    SenderParams { cc, mss: MSS, sack, bytes, ..SenderParams::default() }
}

fn receiver(sack: bool, delayed_ack: bool) -> ReceiverParams {
    let window = Some(64 * u64::from(MSS));
    ReceiverParams { mss: MSS, sack, delayed_ack, window, ..ReceiverParams::default() }
}

/// An hour: what is not done by then never will be.
const NEVER: Time = Time::from_nanos(3_600_000_000_000);

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn the_stream_arrives_whole_whatever_paths_and_liars_do(
        // Whoever answers probes is not here: each loss would wait for three of them.
        cc in prop::sample::select(Algorithm::ALL.into_iter().filter(|cc| *cc != Algorithm::Probing).collect::<Vec<_>>()),
        sack in any::<(bool, bool)>(),
        habits in any::<(bool, bool)>(),
        lives in prop::collection::vec(1u64..120_000, 1..3),
        wire in (0u64..100, 0u64..200, 0u64..100),
        hop in (0u64..250, 0u64..300, 0u64..200),
        made_up in prop::sample::select(vec![0u64, 0, 100, 1000]),
        bounds in (1usize..200, 2_000u64..200_000, 1u32..4, 0u32..6),
        seed in any::<u64>(),
    ) {
        let (delayed_ack, ns2) = habits;
        let conduct = if ns2 { snoop::Conduct::Ns2 } else { snoop::Conduct::Standard };
        let (segments, connection_bytes, duplicates, retries) = bounds;
        let params = Params { segments, connection_bytes, duplicates, retries, conduct, ..Params::default() };
        let mut world =
            World::new(sender(cc, sack.0, Some(lives[0])), receiver(sack.1, delayed_ack), Some(params), seed);
        world.wire = Faults { lost: wire.0, late: wire.1, doubled: wire.2 };
        world.hop = Faults { lost: hop.0, late: hop.1, doubled: hop.2 };
        world.made_up = made_up;
        let mut now = Time::ZERO;
        for (life, bytes) in lives.into_iter().enumerate() {
            if life > 0 {
                world.open_again(sender(cc, sack.0, Some(bytes)), receiver(sack.1, delayed_ack));
            }
            now = world.run(now, NEVER);
            prop_assert!(world.sender.is_done(), "{:?}", world.sender);
            prop_assert_eq!(world.receiver.received(), bytes);
            prop_assert_eq!(world.fresh, bytes, "every byte was new exactly once");
            let snapshot = world.snoop.as_ref().map(Snoop::snapshot).unwrap_or_default();
            prop_assert!(snapshot.segments <= segments && snapshot.bytes <= connection_bytes, "{snapshot:?}");
        }
    }
}

/// Payload Mbit/s in a minute, and segments that the sender sent again.
fn a_minute(cc: Algorithm, sack: bool, delayed_ack: bool, snoop: Option<Params>, lost: u64) -> (f64, u64, Snapshot) {
    let mut world = World::new(sender(cc, sack, None), receiver(sack, delayed_ack), snoop, 1);
    world.hop.lost = lost;
    world.run(Time::ZERO, Time::ZERO + Span::from_secs(60));
    let sent = world.sender.snapshot();
    let seen = world.snoop.as_ref().map(Snoop::snapshot).unwrap_or_default();
    (sent.acked_bytes as f64 * 8.0 / 60e6, sent.retransmitted, seen)
}

/// 1 % of packets lost each direction.
#[test]
fn a_lossy_hop_carries_more_and_its_sender_repairs_less() {
    for (cc, sack) in [(Algorithm::Reno, false), (Algorithm::NewReno, false), (Algorithm::Cubic, true)] {
        for delayed_ack in [false, true] {
            let (alone, repaired_alone, _) = a_minute(cc, sack, delayed_ack, None, 10);
            let (helped, repaired, seen) = a_minute(cc, sack, delayed_ack, Some(Params::default()), 10);
            let case = format!("{cc:?}, sack {sack}, delayed {delayed_ack}: {alone} -> {helped} Mbit/s, {seen:?}");
            assert!(helped > 1.8 * alone, "{case}");
            assert!(repaired * 5 < repaired_alone, "{case}: {repaired_alone} -> {repaired}");
        }
    }
}

#[test]
fn a_hop_that_loses_nothing_is_left_alone() {
    for sack in [false, true] {
        let (without, ..) = a_minute(Algorithm::NewReno, sack, true, None, 0);
        let (with, repaired, seen) = a_minute(Algorithm::NewReno, sack, true, Some(Params::default()), 0);
        assert_eq!((with, repaired), (without, 0));
        assert_eq!((seen.by_duplicates, seen.by_timer, seen.suppressed, seen.stripped), (0, 0, 0, 0), "{seen:?}");
    }
}
