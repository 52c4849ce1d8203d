//! A connection whose both ends do as RFC 9293 says: strangers mutate its packets (`odd`).

use lasthop_core::fastpath::layout::FlowKey;
use lasthop_core::packet::Direction;
use lasthop_core::wire::build::{Segment, option};
use lasthop_core::wire::{Endpoint, Merged, flag};

use crate::frame::Over;
use crate::headers::Found;
use crate::mutate::Crossing;
use crate::random::Random;
use crate::rig::key_of;

const MSS: u32 = 1_000;
/// Packets of its own that a connection has after its handshake.
const LIFE: u32 = 400;

/// One end of a connection. It takes what the other end sends in order, and nothing of strangers.
struct End {
    at: Endpoint,
    scale: u8,
    nxt: u32,
    /// Next byte it expects.
    rcv: u32,
    /// Its own right edge: what it has offered at most. Never moves left.
    limit: u32,
    /// The right edge that it was told as a sender, after the program had its way.
    told: Option<u32>,
    clock: u32,
    heard: u32,
}

pub struct Connection {
    over: Over,
    /// Station and remote end.
    ends: [End; 2],
    timestamps: bool,
    step: u32,
    /// Packets of its own still to come.
    pub left: u32,
}

impl Connection {
    pub fn new(number: u32, random: &mut Random) -> Self {
        let over = network(random);
        let mut ends = over.ends().map(|at| End {
            at,
            scale: random.below(15) as u8,
            nxt: random.next() as u32,
            rcv: 0,
            limit: 0,
            told: None,
            clock: random.next() as u32 | 1,
            heard: 0,
        });
        // Another key than any of those that live; one that is used again begins with a SYN.
        ends[0].at.port = 1_024 + (number % 60_000) as u16;
        Self { over, ends, timestamps: random.percent(50), step: 0, left: LIFE }
    }

    pub fn key(&self) -> FlowKey {
        key_of([self.ends[0].at, self.ends[1].at])
    }

    /// The next packet of the connection itself.
    pub fn next(&mut self, random: &mut Random) -> Crossing {
        self.step += 1;
        match self.step {
            1 => self.syn(Direction::ToRemote, flag::SYN, random),
            2 => self.syn(Direction::ToStation, flag::SYN | flag::ACK, random),
            3 => self.segment(Direction::ToRemote, 0, random),
            _ => {
                self.left -= 1;
                let direction = if random.percent(50) { Direction::ToStation } else { Direction::ToRemote };
                let room = self.room(direction);
                let payload = if random.percent(60) { room.min(1 + random.below(3 * MSS)) } else { 0 };
                self.segment(direction, payload, random)
            }
        }
    }

    /// What the sender of packets going `direction` may send.
    fn room(&self, direction: Direction) -> u32 {
        let end = &self.ends[sender(direction)];
        let room = end.told.map_or(0, |told| told.wrapping_sub(end.nxt));
        if room > 1 << 30 { 0 } else { room }
    }

    fn syn(&mut self, direction: Direction, flags: u8, random: &mut Random) -> Crossing {
        let [own, other] = self.pair(direction);
        let window = 1_000 + random.below(64_000);
        let segment = Segment {
            seq: own.nxt,
            ack: if flags & flag::ACK != 0 { own.rcv } else { 0 },
            flags,
            window: window as u16,
            options: [option::mss(MSS as u16), option::window_scale(own.scale)].concat(),
        };
        own.nxt = own.nxt.wrapping_add(1);
        other.rcv = own.nxt;
        own.limit = window;
        let timestamps = (own.clock, own.heard);
        other.heard = own.clock;
        self.crossing(direction, segment, timestamps, 0)
    }

    fn segment(&mut self, direction: Direction, payload: u32, random: &mut Random) -> Crossing {
        let [own, other] = self.pair(direction);
        // What it offers grows when its application reads; so a window of 0 is met, too.
        let grows = if random.percent(60) { random.below((3 * MSS) << (own.scale / 2)) } else { 0 };
        let most = own.rcv.wrapping_add(0xffff << own.scale);
        let wanted = own.limit.wrapping_add(grows);
        own.limit = if after(wanted, most) { own.limit } else { wanted };
        let window = own.limit.wrapping_sub(own.rcv) >> own.scale;
        let segment = Segment {
            seq: own.nxt,
            ack: own.rcv,
            flags: flag::ACK,
            window: window.min(0xffff) as u16,
            options: vec![],
        };
        own.clock = own.clock.wrapping_add(random.below(3));
        let timestamps = (own.clock, own.heard);
        own.nxt = own.nxt.wrapping_add(payload);
        other.rcv = own.nxt;
        other.heard = own.clock;
        self.crossing(direction, segment, timestamps, payload)
    }

    fn crossing(&self, direction: Direction, mut segment: Segment, stamps: (u32, u32), payload: u32) -> Crossing {
        if self.timestamps {
            segment.options.extend(option::timestamps(stamps.0, stamps.1));
        }
        let ends = [self.ends[0].at, self.ends[1].at];
        let frame = self.over.frame(ends, direction, segment, payload as usize).bytes();
        let merged = match payload.div_ceil(MSS) {
            0 | 1 => Merged::NOT,
            segments => Merged { segments, segment_bytes: MSS },
        };
        Crossing { direction, raw: self.over.raw, merged, frame }
    }

    /// The packet has passed, with this acknowledgment, window and flags. How far its edge is to the left of what was told, and a unit.
    pub fn arrive(&mut self, crossing: &Crossing, segment: (u32, u16, u8)) -> (u32, u32) {
        let (ack, window, flags) = segment;
        let [own, other] = self.pair(crossing.direction);
        let (scale, ack) = match flags & (flag::SYN | flag::ACK) {
            flag::SYN => (0, other.nxt.wrapping_add(1)),
            both if both & flag::SYN != 0 => (0, ack),
            _ => (own.scale, ack),
        };
        let edge = ack.wrapping_add(u32::from(window) << scale);
        if flags & flag::SYN != 0 {
            // What it offers later never is less than what its SYN was allowed to.
            own.limit = ack.wrapping_add(own.limit);
        }
        let told = other.told.unwrap_or(edge);
        let left = if after(told, edge) { told.wrapping_sub(edge) } else { 0 };
        other.told = Some(if after(edge, told) { edge } else { told });
        (left, 1 << scale)
    }

    /// Whether it is a reset that its receiver takes, whoever sent it (RFC 5961 section 3.2).
    pub fn is_ended_by(&mut self, crossing: &Crossing) -> bool {
        let Some(found) = Found::of(&crossing.frame, crossing.raw, crossing.merged.segments > 1) else { return false };
        let tcp = &crossing.frame[found.segment];
        let seq = u32::from_be_bytes(tcp[4..8].try_into().expect("four bytes"));
        let [_, receiver] = self.pair(crossing.direction);
        tcp[13] & flag::RST != 0 && seq == receiver.rcv
    }

    /// Who sends what goes `direction`, and the other end.
    fn pair(&mut self, direction: Direction) -> [&mut End; 2] {
        let [station, remote] = &mut self.ends;
        if sender(direction) == 0 { [station, remote] } else { [remote, station] }
    }
}

fn sender(direction: Direction) -> usize {
    1 - direction.index()
}

fn after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

fn network(random: &mut Random) -> Over {
    let mut over = Over { six: random.percent(50), raw: random.percent(15), ..Over::default() };
    if !over.raw {
        over.tags = random.pick(&[&[][..], &[], &[(0x8100, 5)], &[(0x88a8, 5), (0x8100, 6)]]).to_vec();
        over.pppoe = random.percent(15).then_some(9);
    }
    if over.six && random.percent(50) {
        let name = random.pick(&["hop-by-hop", "routing", "destination", "atomic-fragment"]);
        over.push_extension(name).expect("it is of IPv6");
    }
    if !over.six {
        over.ip_options = random.pick(&[0, 0, 4, 40]);
    }
    over
}
