//! Sender and receiver over a channel that loses, reorders and doubles: the stream arrives whole.

#[path = "common/flights.rs"]
mod flights;

use flights::Flights;
use lasthop_core::units::{Span, Time};
use lasthop_tcp::{Ack, Algorithm, Conduct, Note, Receiver, ReceiverParams, Segment, Sender, SenderParams};
use lasthop_testing::random::Random;
use proptest::prelude::*;

const MSS: u32 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packet {
    Segment(Segment, u32),
    Ack(Ack, Option<Note>),
}

/// What the channel does, each in percent.
#[derive(Clone, Copy, Debug)]
struct Faults {
    lost: u64,
    late: u64,
    doubled: u64,
}

struct World {
    sender: Sender,
    receiver: Receiver,
    faults: Faults,
    /// Segments that the window never falls below: ns-2 halves one of a single segment, too (`Conduct::Ns2`).
    least_window: f64,
    random: Random,
    flying: Flights<Packet>,
    /// Which bytes the receiver has claimed to be new.
    fresh: u64,
    /// Furthest edge that the receiver has offered and the sender has heard of.
    offered: u64,
    trace: Vec<(Time, Segment)>,
}

impl World {
    fn new(sender: SenderParams, receiver: ReceiverParams, faults: Faults, seed: u64) -> Self {
        let least_window = if sender.conduct == Conduct::Ns2 { 0.5 } else { 1.0 };
        Self {
            sender: Sender::new(sender),
            receiver: Receiver::new(receiver),
            faults,
            least_window,
            random: Random(seed),
            flying: Flights::new(),
            fresh: 0,
            offered: 0,
            trace: Vec::new(),
        }
    }

    fn send(&mut self, now: Time, packet: Packet) {
        let copies = 1 + u64::from(self.random.below(100) < self.faults.doubled);
        for _ in 0..copies {
            if self.random.below(100) < self.faults.lost {
                continue;
            }
            let late = if self.random.below(100) < self.faults.late { self.random.below(100) } else { 0 };
            self.flying.push(now + Span::from_millis(20 + late), packet);
        }
    }

    fn drain(&mut self, now: Time) {
        while let Some(segment) = self.sender.poll(now) {
            let end = segment.offset + u64::from(segment.bytes);
            assert!(segment.again || end <= self.offered, "new bytes stay in the window: {segment:?}");
            assert!(segment.bytes <= MSS);
            self.trace.push((now, segment));
            self.send(now, Packet::Segment(segment, self.sender.mark()));
        }
        while let Some(ack) = self.receiver.poll(now) {
            self.send(now, Packet::Ack(ack, self.receiver.note()));
        }
        assert!(self.sender.snapshot().cwnd >= self.least_window);
        assert!(self.sender.is_done() || self.sender.next_deadline().is_some(), "nothing would wake the sender");
    }

    /// Until the sender is done.
    fn run(&mut self) -> Time {
        let mut now = Time::ZERO;
        self.drain(now);
        for _ in 0..1_000_000 {
            if self.sender.is_done() {
                return now;
            }
            let timers = [self.sender.next_deadline(), self.receiver.next_deadline(), self.flying.next_arrival()];
            now = timers.into_iter().flatten().min().expect("a deadline").max(now);
            while let Some(packet) = self.flying.arrived(now) {
                match packet {
                    Packet::Segment(segment, mark) => {
                        self.receiver.on_mark(mark);
                        self.fresh += u64::from(self.receiver.on_segment(now, &segment));
                    }
                    Packet::Ack(ack, note) => {
                        self.offered = self.offered.max(ack.offset + ack.window_bytes);
                        if let Some(note) = note {
                            self.sender.on_note(now, &note);
                        }
                        self.sender.on_ack(now, &ack);
                    }
                }
                self.drain(now);
            }
            self.drain(now);
        }
        panic!("no end in sight at {now:?}: {:?}", self.sender);
    }
}

fn params(cc: Algorithm, sack: bool, bytes: u64) -> SenderParams {
    SenderParams { cc, mss: MSS, sack, bytes: Some(bytes), ..SenderParams::default() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn the_stream_arrives_whole_whatever_the_channel_does(
        cc in prop::sample::select(Algorithm::ALL.to_vec()),
        sack in any::<(bool, bool)>(),
        bytes in 1u64..300_000,
        window in prop::option::of(300u64..200_000),
        faults in (0u64..30, 0u64..50, 0u64..20),
        habits in any::<(bool, bool, bool)>(),
        seed in any::<u64>(),
    ) {
        let faults = Faults { lost: faults.0, late: faults.1, doubled: faults.2 };
        let (delayed_ack, limited_transmit, ns2) = habits;
        let conduct = if ns2 { Conduct::Ns2 } else { Conduct::Rfc };
        let sender = SenderParams {
            limited_transmit, conduct, ..params(cc, sack.0, bytes)
        };
        let receiver = ReceiverParams {
            mss: MSS, sack: sack.1, delayed_ack, window, reports: cc.reports(), ..ReceiverParams::default()
        };
        let mut world = World::new(sender, receiver, faults, seed);
        world.run();
        prop_assert_eq!(world.receiver.received(), bytes);
        prop_assert_eq!(world.fresh, bytes, "every byte was new exactly once");
        prop_assert!(world.receiver.is_finished());
        prop_assert_eq!(world.sender.snapshot().outstanding, 0);
    }
}

#[test]
fn a_clean_channel_needs_nothing_twice() {
    for cc in Algorithm::ALL {
        for sack in [false, true] {
            let receiver = ReceiverParams { mss: MSS, sack, reports: cc.reports(), ..ReceiverParams::default() };
            let clean = Faults { lost: 0, late: 0, doubled: 0 };
            let mut world = World::new(params(cc, sack, 1_000_000), receiver, clean, 1);
            world.run();
            assert_eq!(world.sender.snapshot().retransmitted, 0, "{cc:?}");
            assert_eq!(world.sender.snapshot().sent, 1000, "{cc:?}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_segments() {
    for cc in Algorithm::ALL {
        let once = || {
            let receiver = ReceiverParams { mss: MSS, sack: true, reports: cc.reports(), ..ReceiverParams::default() };
            let mut world =
                World::new(params(cc, true, 200_000), receiver, Faults { lost: 5, late: 20, doubled: 5 }, 7);
            world.run();
            world.trace
        };
        assert_eq!(once(), once(), "{cc:?}");
    }
}
