//! What many connections begin with together, and that no edge of theirs moves left, whatever their packets do.

use super::*;
use crate::fastpath::layout::{HOPS, Hop};

/// Where the numbers of the two ends start, by the direction of the data.
const START: [u32; 2] = [1_000, 0];
const SCALE: u8 = 7;
/// Small, so that little passes by it alone, bytes.
const FLOOR: u32 = 300;

/// One direction of the data of a connection, as its ends know it.
#[derive(Clone, Copy, Debug, Default)]
struct Expected {
    /// Next number of the sender.
    sent: u32,
    /// Its receiver has acknowledged everything below.
    acked: u32,
    /// The furthest edge that its sender was advertised.
    edge: u32,
    /// A window was advertised.
    begun: bool,
}

#[derive(Clone, Copy)]
struct Connection {
    state: FlowState,
    half: [Expected; 2],
    /// SYN, SYN-ACK, and what comes after.
    syn: [bool; 2],
    established: bool,
}

/// Connections at one hop.
struct Home {
    control: Control,
    connections: Vec<Connection>,
    now: Time,
    began: Time,
    /// Promised by SYNs so far, all together, by the direction of the data; bytes.
    advertised: [u64; 2],
    /// Of that only because of a floor.
    floors: [u64; 2],
}

impl Home {
    fn new(hop: Hop) -> Self {
        let plan = Plan { clamp_bytes: 200_000, floor_bytes: FLOOR, growth_bytes: 3_000, pace_bytes: 0 };
        let now = Time::from_nanos(1_000_000_000);
        let control = Control {
            heartbeat_ns: now.as_nanos(),
            default_plan: [plan; 2],
            hops: [[hop; 2]; HOPS],
            ..Control::default()
        };
        let half = START.map(|start| Expected { sent: start, acked: start, edge: start, begun: false });
        let state = FlowState::new(&control, now);
        let connection = Connection { state, half, syn: [false; 2], established: false };
        let connections = vec![connection; 12];
        Self { control, connections, now, began: now, advertised: [0; 2], floors: [0; 2] }
    }

    /// A random end of a random connection sends.
    fn step(&mut self, which: usize, what: u8, wait_us: u32, bytes: u16) {
        self.now += Span::from_micros(u64::from(wait_us));
        if self.control.heartbeat_ns != 1 {
            self.control.heartbeat_ns = self.now.as_nanos();
        }
        let which = which % self.connections.len();
        let connection = self.connections[which];
        let direction = if what & 1 == 0 { Direction::ToRemote } else { Direction::ToStation };
        match what % 16 {
            // A SYN, or once more.
            0 | 2 if !connection.established => self.syn(which, Direction::ToRemote),
            1 | 3 if !connection.established && connection.syn[0] => self.syn(which, Direction::ToStation),
            _ if !connection.syn.iter().all(|seen| *seen) => {}
            14 | 15 => {
                self.connections[which].established = true;
                self.send(which, direction, 0, bytes);
            }
            4 | 6 | 8 if direction == Direction::ToRemote && bytes.is_multiple_of(3) => {
                self.connections[which].established = true;
                self.send(which, direction, u32::from(bytes % 4_000), bytes);
            }
            _ if !connection.established => {}
            5 | 7 | 9 => self.send(which, direction, u32::from(bytes % 20_000), bytes),
            _ => self.send(which, direction, 0, bytes),
        }
    }

    /// Station's SYN, or the answer to it; sent again if it was sent.
    fn syn(&mut self, which: usize, direction: Direction) {
        let (d, answers) = (direction.index(), direction == Direction::ToStation);
        // Sent again, a SYN begins anew: the answer must come again too.
        self.connections[which].syn = [true, answers];
        let tcp = TcpFields {
            seq: START[d].wrapping_sub(1),
            ack: if answers { START[1 - d] } else { 0 },
            flags: if answers { flag::SYN | flag::ACK } else { flag::SYN },
            window: 64_240,
            window_scale: Some(SCALE),
            segments: 1,
            ip_bytes: 60,
            ..TcpFields::default()
        };
        self.pass(which, direction, &tcp, 0);
    }

    /// Data and an acknowledgment of all that was sent in the other direction, or of a part of it.
    fn send(&mut self, which: usize, direction: Direction, bytes: u32, window: u16) {
        let (d, connection) = (direction.index(), &mut self.connections[which]);
        let acked = &mut connection.half[1 - d];
        let in_flight = acked.sent.wrapping_sub(acked.acked);
        acked.acked = acked.acked.wrapping_add(if window.is_multiple_of(5) { in_flight / 2 } else { in_flight });
        let ack = acked.acked;
        let data = &mut connection.half[d];
        // Never beyond what it was told.
        let bytes = bytes.min(data.edge.wrapping_sub(data.sent).min(1 << 20));
        let seq = data.sent;
        data.sent = seq.wrapping_add(bytes);
        // Its receiver takes back nothing either.
        let least = (connection.half[1 - d].edge.wrapping_sub(ack) + 127) >> SCALE;
        let window = u32::from(window % 2_000).max(least).min(65_535) as u16;
        let tcp = TcpFields { seq, payload_bytes: bytes, segment_bytes: bytes.min(MSS), ..acknowledge(ack, window) };
        self.pass(which, direction, &tcp, SCALE);
    }

    fn pass(&mut self, which: usize, direction: Direction, tcp: &TcpFields, scale: u8) {
        let (data, connection) = (direction.reverse().index(), &mut self.connections[which]);
        let verdict = on_packet(&mut connection.state, &mut self.control, passage(direction), tcp, self.now);
        let window = match verdict {
            Verdict::Rewrite { window } => {
                assert!(window < tcp.window && window > 0);
                window
            }
            Verdict::Pass(_) => tcp.window,
        };
        let ack = if tcp.has(flag::ACK) { tcp.ack } else { START[data] };
        let half = &mut connection.half[data];
        let edge = ack.wrapping_add(u32::from(window) << scale);
        if half.begun {
            assert!(seq::after(edge.wrapping_add(1 << scale), half.edge), "left: {verdict:?} of {tcp:?}");
        }
        half.begun = true;
        // A floor is rounded up to whole quanta.
        let least = seq::later(ack.wrapping_add(FLOOR.next_multiple_of(1 << scale)), half.edge);
        let edge = seq::later(edge, half.edge);
        if tcp.has(flag::SYN) {
            self.advertised[data] += u64::from(edge.wrapping_sub(half.edge));
            self.floors[data] += u64::from(least.wrapping_sub(half.edge).min(edge.wrapping_sub(half.edge)));
        }
        half.edge = edge;
    }

    /// What the hop had to give until now, bytes.
    fn given(&self) -> u64 {
        let hop = self.control.hops[0][0];
        u64::from(hop.depth_bytes) + ((u64::from(hop.rate_bytes) * self.now.since(self.began).as_nanos()) >> 30)
    }
}

type Steps = Vec<(usize, u8, u32, u16)>;

fn steps() -> impl Strategy<Value = Steps> {
    prop::collection::vec(
        (0..12usize, any::<u8>(), prop_oneof![Just(0), 0..300u32, 0..20_000u32], any::<u16>()),
        1..400,
    )
}

proptest! {
    /// Many connections begin with no more than the hop earned, its depth, and their floors; no edge moves left by a quantum.
    #[test]
    fn all_together_begin_with_what_the_hop_gives(
        steps in steps(),
        depth_bytes in 1u32..300_000,
        rate_bytes in prop_oneof![Just(0), 0u32..5_000_000],
    ) {
        let mut home = Home::new(Hop { depth_bytes, rate_bytes, ..Hop::default() });
        for (which, what, wait_us, bytes) in steps {
            home.step(which, what, wait_us, bytes);
            for d in 0..2 {
                let most = home.given() + home.floors[d];
                prop_assert!(home.advertised[d] <= most, "{} of {most} after {what}", home.advertised[d]);
            }
        }
    }

    /// Neither does one where the controller comes and goes.
    #[test]
    fn no_edge_moves_left_whoever_comes_and_goes(
        steps in steps(),
        moods in prop::collection::vec((any::<bool>(), any::<bool>(), 0u32..100_000, 0u32..5_000_000), 1..8),
    ) {
        let mut home = Home::new(Hop::default());
        let each = steps.len() / moods.len() + 1;
        for (steps, (stale, dry_run, depth_bytes, rate_bytes)) in steps.chunks(each).zip(moods) {
            home.control.heartbeat_ns = if stale { 1 } else { home.now.as_nanos() };
            home.control.dry_run = u32::from(dry_run);
            home.control.hops[0].iter_mut().for_each(|hop| (hop.depth_bytes, hop.rate_bytes) = (depth_bytes, rate_bytes));
            for (which, what, wait_us, bytes) in steps {
                home.step(*which, *what, *wait_us, *bytes);
            }
        }
    }
}
