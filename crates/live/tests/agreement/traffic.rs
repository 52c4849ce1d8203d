//! Plausible connections in both directions, and what goes wrong with them.

use lasthop_core::packet::Direction;
use lasthop_core::wire::build::{Frame, LinkHeaders, Segment, Transport, option, v4};
use lasthop_core::wire::{Endpoint, Link, Merged, flag, protocol};

use crate::random::Random;

/// A packet that crosses the access point.
#[derive(Debug)]
pub struct Crossing {
    pub direction: Direction,
    pub link: Link,
    pub merged: Merged,
    pub frame: Vec<u8>,
}

/// Many connections, of which a random one sends next.
pub struct Traffic {
    pub random: Random,
    connections: Vec<Connection>,
    /// Whose packet came before.
    at: usize,
    made: u32,
}

/// One end of a connection, named by the direction that its packets take.
#[derive(Clone, Copy)]
struct End {
    at: Endpoint,
    nxt: u32,
    /// Next byte it expects.
    rcv: u32,
    /// Above a hole: received up to here.
    beyond: u32,
    scale: Option<u8>,
    clock: u32,
    heard: u32,
}

struct Connection {
    framing: LinkHeaders,
    extensions: Vec<(u8, Vec<u8>)>,
    ip_options: Vec<u8>,
    ends: [End; 2],
    timestamps: bool,
    sack: bool,
    signed: bool,
    /// Packets still to come; the first ones are the handshake.
    left: u32,
    step: u32,
}

const CONNECTIONS: usize = 60;
const LIFE: u32 = 250;
const MSS: u32 = 300;

impl Traffic {
    pub fn new(seed: u64) -> Self {
        Self { random: Random::new(seed), connections: Vec::new(), at: 0, made: 0 }
    }

    pub fn next(&mut self) -> Crossing {
        if self.connections.len() < CONNECTIONS {
            self.made += 1;
            self.connections.push(Connection::new(self.made, &mut self.random));
        }
        // Packets of a connection come in trains.
        if self.at >= self.connections.len() || self.random.percent(40) {
            self.at = self.random.below(self.connections.len() as u32) as usize;
        }
        let connection = &mut self.connections[self.at];
        let handshake = connection.step < 3;
        let mut crossing = connection.next(&mut self.random);
        if connection.left == 0 {
            self.connections.swap_remove(self.at);
        }
        // A damaged handshake would leave a connection without a scale, which many have anyway.
        if !handshake && self.random.percent(7) {
            self.damage(&mut crossing.frame);
        }
        crossing
    }

    fn damage(&mut self, frame: &mut Vec<u8>) {
        let random = &mut self.random;
        match random.below(3) {
            0 => frame.truncate(random.below(frame.len() as u32 + 1) as usize),
            1 => {
                // Lengths, versions and offsets lie in the first bytes.
                let at = random.below(frame.len().min(100) as u32) as usize;
                frame[at] = random.next() as u8;
            }
            _ => {
                let at = random.below(frame.len() as u32) as usize;
                frame[at] ^= 1 << random.below(8);
            }
        }
    }
}

impl Connection {
    fn new(number: u32, random: &mut Random) -> Self {
        let six = random.percent(40);
        let address = |side: u8| {
            let low = number.to_be_bytes();
            if six {
                let mut address = [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, side, 0, 0, 0, 0, 0, 0, 0, 0];
                address[12..].copy_from_slice(&low);
                address
            } else {
                v4([10 + side, low[1], low[2], low[3]])
            }
        };
        let scaled = !random.percent(6);
        let mut end = |side: u8| End {
            at: Endpoint { address: address(side), port: 1024 + (random.next() as u16 >> 1) },
            nxt: random.next() as u32,
            rcv: 0,
            beyond: 0,
            scale: scaled.then(|| ((number + u32::from(side)) % 15) as u8),
            clock: random.next() as u32 | 1,
            heard: 0,
        };
        // Packets to the station are sent by the remote end.
        let mut ends = [end(1), end(0)];
        ends[0].rcv = ends[1].nxt;
        ends[1].rcv = ends[0].nxt;
        Self {
            framing: framing(random),
            extensions: if random.percent(30) { extensions(random) } else { vec![] },
            ip_options: vec![1; 4 * random.pick(&[0, 0, 0, 1, 10])],
            ends,
            timestamps: random.percent(60),
            sack: random.percent(60),
            signed: random.percent(3),
            // Some are older than the access point.
            step: if random.percent(15) { 3 } else { 0 },
            left: 20 + random.below(LIFE),
        }
    }

    fn next(&mut self, random: &mut Random) -> Crossing {
        self.left -= 1;
        self.step += 1;
        match self.step {
            1 => self.syn(Direction::ToRemote, false, random),
            2 => self.syn(Direction::ToStation, true, random),
            3 => self.acknowledge(Direction::ToRemote, random),
            _ => self.established(random),
        }
    }

    fn established(&mut self, random: &mut Random) -> Crossing {
        let to_station = random.percent(70);
        let data = if to_station { Direction::ToStation } else { Direction::ToRemote };
        match random.below(100) {
            0..14 => self.send(data, random),
            14..85 => self.acknowledge(data.reverse(), random),
            85..89 => self.strange(data, random),
            89..98 => self.foreign(data, random),
            // Late, and mostly of a connection that is over already.
            _ if random.percent(20) => self.syn(data, random.percent(50), random),
            _ => self.segment(data, 0, flag::RST, 0, random),
        }
    }

    fn send(&mut self, d: Direction, random: &mut Random) -> Crossing {
        let segments = if random.percent(20) { 1 + random.below(6) } else { 1 };
        let last = 1 + random.below(MSS);
        let bytes = (segments - 1) * MSS + last;
        let [sender, receiver] = self.pair(d);
        let seq = if random.percent(5) { sender.nxt.wrapping_sub(bytes) } else { sender.nxt };
        if seq == sender.nxt {
            sender.nxt = sender.nxt.wrapping_add(bytes);
            let lost = random.percent(10);
            if receiver.beyond == receiver.rcv && !lost {
                receiver.rcv = sender.nxt;
            }
            receiver.beyond = sender.nxt;
        } else {
            receiver.rcv = receiver.beyond;
        }
        let end = if random.percent(2) { flag::FIN } else { 0 };
        let mut crossing = self.segment(d, seq, end | flag::ACK, bytes as usize, random);
        if segments > 1 {
            crossing.merged = Merged { segments, segment_bytes: random.pick(&[MSS, 0]) };
        }
        crossing
    }

    fn acknowledge(&mut self, d: Direction, random: &mut Random) -> Crossing {
        let nxt = self.ends[d.index()].nxt;
        // The hole closes at times.
        let end = &mut self.ends[d.index()];
        if random.percent(25) {
            end.rcv = end.beyond.max(end.rcv);
        }
        // What was acknowledged while more was on its way.
        let (rcv, late) = (end.rcv, if random.percent(30) { random.below(2 * MSS) } else { 0 });
        end.rcv = rcv.wrapping_sub(late);
        let crossing = self.segment(d, nxt, flag::ACK, 0, random);
        self.ends[d.index()].rcv = rcv;
        crossing
    }

    /// Segments of this connection that no decent end would send.
    fn strange(&mut self, d: Direction, random: &mut Random) -> Crossing {
        let nxt = self.ends[d.index()].nxt;
        let kept = self.ends[d.index()];
        match random.below(6) {
            0 => self.segment(d, random.next() as u32, flag::RST, 0, random),
            1 => self.segment(d, nxt, random.pick(&[0, flag::FIN, flag::PSH]), 10, random),
            2 => self.segment(d, nxt, random.next() as u8, 3, random),
            _ => {
                let end = &mut self.ends[d.index()];
                end.rcv = end.rcv.wrapping_add(random.pick(&[1_000_000, 0x7fff_ffff, 0x8000_0000, 0xfff0_0000, 1]));
                let crossing = self.segment(d, nxt, flag::ACK, 0, random);
                self.ends[d.index()] = kept;
                crossing
            }
        }
    }

    /// Packets that are no segments.
    fn foreign(&mut self, d: Direction, random: &mut Random) -> Crossing {
        let frame = self.frame(d, Transport::Udp, random.below(200) as usize);
        let mut merged = Merged::NOT;
        let mut frame = match random.below(6) {
            0 => Frame { transport: Transport::Other(random.pick(&[1, 58, 50, protocol::AH])), ..frame },
            1 => Frame { extensions: vec![(protocol::FRAGMENT, vec![0, 0, 0, 9, 0, 0, 0, 0])], ..frame },
            2 => Frame { extensions: vec![(protocol::DESTINATION, vec![0; 8]); 7], ..frame },
            3 => {
                merged = Merged { segments: 3, segment_bytes: 50 };
                frame
            }
            _ => frame,
        };
        frame.padding = random.below(8) as usize;
        let mut bytes = frame.bytes();
        if random.percent(15) && bytes.len() > 14 {
            bytes[12..14].copy_from_slice(&random.pick(&[0x0806u16, 0x88cc, 0x8864]).to_be_bytes());
        }
        Crossing { direction: d, link: self.link(), merged, frame: bytes }
    }

    fn syn(&mut self, d: Direction, answer: bool, random: &mut Random) -> Crossing {
        let mut options = option::mss(MSS as u16);
        let [sender, receiver] = self.pair(d);
        let seq = sender.nxt.wrapping_sub(u32::from(random.percent(50)));
        sender.nxt = seq.wrapping_add(1);
        receiver.rcv = sender.nxt;
        receiver.beyond = sender.nxt;
        let (ack, end) = (sender.rcv, *sender);
        if let Some(scale) = end.scale {
            options.extend(option::window_scale(scale));
        }
        if self.timestamps {
            options.extend(option::timestamps(end.clock, end.heard));
        }
        let flags = if answer { flag::SYN | flag::ACK } else { flag::SYN };
        let window = match random.below(100) {
            0..2 => 0,
            2..30 => 30_000 + random.below(35_000) as u16,
            _ => 500 + random.below(3_000) as u16,
        };
        let segment = Segment { seq, ack, flags, window, options };
        self.crossing(d, segment, 0)
    }

    fn segment(&mut self, d: Direction, seq: u32, flags: u8, bytes: usize, random: &mut Random) -> Crossing {
        let ticks = random.pick(&[0, 0, 1, 4]);
        let [sender, receiver] = self.pair(d);
        sender.clock = sender.clock.wrapping_add(ticks);
        receiver.heard = sender.clock;
        let end = *sender;
        let window = match random.below(100) {
            0..3 => 0,
            3..7 => 1 + random.below(100) as u16,
            7..13 => random.next() as u16,
            _ => 60_000,
        };
        let mut options = vec![];
        if self.timestamps {
            options.extend(option::timestamps(end.clock, end.heard));
        }
        if self.sack && end.beyond != end.rcv {
            let middle = end.rcv.wrapping_add(end.beyond.wrapping_sub(end.rcv) / 2);
            let first = (end.rcv.wrapping_add(1), middle);
            let blocks = [first, (1, random.next() as u32), (1, end.rcv), (middle, end.beyond)];
            // Four do not fit beside timestamps: then the list is malformed.
            let fit = if self.timestamps && !random.percent(3) { 3 } else { 4 };
            let count = 1 + random.below(fit) as usize;
            options.extend(option::sack(&blocks[4 - count..]));
        }
        if self.signed {
            options = random.pick(&[true, false]).then(option::md5).unwrap_or_else(option::ao);
        }
        self.crossing(d, Segment { seq, ack: end.rcv, flags, window, options }, bytes)
    }

    fn crossing(&self, d: Direction, segment: Segment, bytes: usize) -> Crossing {
        let frame = self.frame(d, Transport::Tcp(segment), bytes).bytes();
        Crossing { direction: d, link: self.link(), merged: Merged::NOT, frame }
    }

    fn frame(&self, d: Direction, transport: Transport, bytes: usize) -> Frame {
        Frame {
            link: self.framing.clone(),
            extensions: self.extensions.clone(),
            ip_options: self.ip_options.clone(),
            transport,
            ..Frame::udp(self.ends[d.index()].at, self.ends[d.reverse().index()].at, bytes)
        }
    }

    fn link(&self) -> Link {
        if self.framing == LinkHeaders::None { Link::Ip } else { Link::Ethernet }
    }

    /// The sender and the receiver of packets going `d`.
    fn pair(&mut self, d: Direction) -> [&mut End; 2] {
        let [to_station, to_remote] = &mut self.ends;
        match d {
            Direction::ToStation => [to_station, to_remote],
            Direction::ToRemote => [to_remote, to_station],
        }
    }
}

fn framing(random: &mut Random) -> LinkHeaders {
    let tags = random.pick(&[&[][..], &[], &[(0x8100, 5)], &[(0x88a8, 5), (0x8100, 6)]]);
    let tags = if random.percent(3) { &[(0x8100, 5); 3][..] } else { tags };
    let pppoe = random.percent(15).then_some(9);
    if random.percent(10) { LinkHeaders::None } else { LinkHeaders::Ethernet { tags: tags.to_vec(), pppoe } }
}

fn extensions(random: &mut Random) -> Vec<(u8, Vec<u8>)> {
    let one = |random: &mut Random| match random.below(4) {
        0 => (protocol::HOP_BY_HOP, vec![0; 8]),
        1 => (protocol::ROUTING, [&[0, 2][..], &[0; 22]].concat()),
        2 => (protocol::DESTINATION, [&[0, 1][..], &[0; 14]].concat()),
        _ => (protocol::FRAGMENT, vec![0; 8]),
    };
    (0..1 + random.below(4)).map(|_| one(random)).collect()
}
