//! Odd packets: mutations of real connections, both directions, against the loaded program.
//!
//! None is corrupted: at most the window of TCP and its checksum differ, the window only ever goes down, and a checksum is as right
//! as it was (RFC 1624). And whatever strangers send in between, the right edge that is told to a sender never moves left by a unit
//! of `2^scale` or more (RFC 9293 section 3.8.6, RFC 7323 section 2.4): its ends take the packets of the connection itself alone.
//!
//! `ODD_PACKETS=1000000 ODD_SEED=7 tools/test -p lasthop-live -- odd` is a longer form, and another one.

use std::env;

use lasthop_core::fastpath::layout::{Plan, Reason};
use lasthop_core::packet::Direction;
use lasthop_core::units::Time;
use lasthop_live::program::ProgramError;

use crate::connection::Connection;
use crate::has_gate;
use crate::headers::Found;
use crate::mutate::{Crossing, mutate};
use crate::random::Random;
use crate::rig::Rig;
use crate::runnable::is_runnable;

const SEED: u64 = 11;
/// Odd ones in the short form.
const PACKETS: u64 = 20_000;
/// Percent of all packets.
const STRANGERS: u32 = 50;
const CONNECTIONS: usize = 24;
const FIRST_NS: u64 = 5_000_000_000;

/// A connection, its handshake and its newest packet, and what strangers sent.
struct Life {
    connection: Connection,
    /// SYN, SYN-ACK, and the newest. Strangers come once all three are there: before, whoever sends what fits is the other end.
    known: Vec<Crossing>,
    odd: Vec<&'static str>,
    /// An edge of it moved left: once is enough.
    retracted: bool,
}

/// The world in which odd packets pass.
struct World {
    rig: Rig,
    random: Random,
    /// Of 100 packets so many are odd.
    strangers: u32,
    lives: Vec<Life>,
    /// Connections so far.
    made: u32,
    now_ns: u64,
    heartbeat_ns: u64,
    /// Odd ones so far.
    packets: u64,
    /// Windows that were written, of the connections' own packets and of odd ones.
    written: [u64; 2],
    /// Each connection whose edge moved left, and what strangers had sent before.
    retractions: Vec<String>,
}

impl World {
    fn load(seed: u64, strangers: u32) -> Option<Self> {
        let rig = Rig::load()?;
        rig.forget();
        Some(Self {
            rig,
            random: Random::new(seed),
            strangers,
            lives: Vec::new(),
            made: 0,
            now_ns: FIRST_NS,
            heartbeat_ns: 0,
            packets: 0,
            written: [0; 2],
            retractions: Vec::new(),
        })
    }

    /// Other plans, and at times no sign of life.
    fn spell(&mut self) {
        let random = &mut self.random;
        self.heartbeat_ns = self.now_ns - if random.percent(8) { 3_000_000_000 } else { 0 };
        let control = self.rig.program.control();
        control.heartbeat(Time::from_nanos(self.heartbeat_ns));
        let plan = Plan {
            clamp_bytes: random.pick(&[0, 2_000, 20_000, 60_000, 300_000]),
            floor_bytes: random.pick(&[0, 2_000, 4_000]),
            growth_bytes: random.pick(&[0, 3_000, 50_000]),
            pace_bytes: random.pick(&[0, 0, 1_000_000, 100_000_000]),
        };
        let direction = random.pick(&Direction::BOTH);
        control.set_default_plan(direction, plan);
        control.set_start(direction, random.pick(&[0, 20_000]), 1_000_000);
        for life in self.lives.iter().filter(|_| random.percent(30)) {
            let key = life.connection.key();
            match self.rig.program.set_plan(&key, direction, plan) {
                Ok(()) | Err(ProgramError::NoSuchFlow) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn pass(&mut self, crossing: &Crossing) -> Result<Option<u16>, String> {
        let mark = (self.now_ns - self.heartbeat_ns) as u32;
        self.rig.pass(crossing.direction, crossing.raw, &crossing.frame, crossing.merged, mark)
    }

    /// The next packet of one of the connections itself.
    fn own(&mut self, at: usize) -> Result<(), String> {
        let crossing = self.lives[at].connection.next(&mut self.random);
        let written = self.pass(&crossing)?;
        self.written[0] += u64::from(written.is_some());
        let found = Found::of(&crossing.frame, crossing.raw, crossing.merged.segments > 1).expect("it is its own");
        let tcp = &crossing.frame[found.segment.clone()];
        let ack = u32::from_be_bytes(tcp[8..12].try_into().expect("four bytes"));
        let window = written.unwrap_or_else(|| u16::from_be_bytes([tcp[14], tcp[15]]));
        let flags = tcp[13];
        let life = &mut self.lives[at];
        let (left, unit) = life.connection.arrive(&crossing, (ack, window, flags));
        if left >= unit && !life.retracted {
            life.retracted = true;
            let last = &life.odd[life.odd.len().saturating_sub(6)..];
            self.retractions.push(format!("packet {}: {left} bytes, unit {unit}, after {last:?}", self.packets));
        }
        life.known.truncate(2);
        life.known.push(crossing);
        if life.connection.left == 0 {
            self.lives.swap_remove(at);
        }
        Ok(())
    }

    /// What a stranger makes of one.
    fn odd(&mut self, at: usize) -> Result<(), String> {
        let life = &mut self.lives[at];
        let [syn, syn_ack, newest] = &life.known[..] else { return Ok(()) };
        let (odd, kind) = mutate(self.random.pick(&[newest, newest, newest, newest, syn, syn_ack]), &mut self.random);
        if !is_runnable(&odd.frame) {
            return Ok(());
        }
        life.odd.push(kind);
        self.packets += 1;
        let written = self.pass(&odd).map_err(|what| format!("{kind}: {what}\n{odd:02x?}"))?;
        self.written[1] += u64::from(written.is_some());
        if self.lives[at].connection.is_ended_by(&odd) {
            self.lives.swap_remove(at);
        }
        Ok(())
    }

    fn step(&mut self, number: u64) -> Result<(), String> {
        self.now_ns += u64::from(self.random.below(2_000_000));
        if number.is_multiple_of(64) {
            self.spell();
        }
        if self.lives.len() < CONNECTIONS {
            self.made += 1;
            let connection = Connection::new(self.made, &mut self.random);
            self.lives.push(Life { connection, known: vec![], odd: vec![], retracted: false });
        }
        let at = self.random.below(self.lives.len() as u32) as usize;
        if self.random.percent(self.strangers) { self.odd(at) } else { self.own(at) }
    }
}

/// As many packets as are asked for; `None` where nothing can be loaded.
fn pass_packets(strangers: u32) -> Option<World> {
    let number = |name: &str, default| env::var(name).map_or(default, |value| value.parse().expect("a number"));
    let (seed, packets) = (number("ODD_SEED", SEED), number("ODD_PACKETS", PACKETS));
    let mut world = World::load(seed, strangers)?;
    let mut steps = 0;
    // Where there are no strangers all packets are counted.
    while (if strangers == 0 { steps } else { world.packets }) < packets {
        let step = world.step(steps);
        step.unwrap_or_else(|what| panic!("seed {seed}, odd packet {}: {what}", world.packets));
        steps += 1;
    }
    let World { packets, made, written, .. } = &world;
    eprintln!("seed {seed}: {packets} odd packets of {steps}, {made} connections, windows written: {written:?}");
    Some(world)
}

fn assert_no_retraction(world: &World) {
    let retractions = &world.retractions;
    assert!(retractions.is_empty(), "{} retractions:\n{}", retractions.len(), retractions.join("\n"));
}

#[test]
fn no_odd_packet_is_corrupted() {
    let Some(world) = pass_packets(STRANGERS) else { return };
    assert!(world.written.iter().all(|written| *written > world.packets / 50), "{:?}", world.written);
    let reasons = world.rig.program.counters().expect("they can be read").reason;
    let met = [Reason::Rewritten, Reason::WithinPlan, Reason::Syn, Reason::Rst, Reason::ZeroWindow, Reason::Stale];
    let met = [&met[..], &[Reason::Malformed, Reason::NotIp, Reason::Fragment, Reason::Authenticated]].concat();
    let unmet: Vec<_> = met.iter().filter(|reason| reasons[**reason as usize] == 0).collect();
    assert!(unmet.is_empty(), "never met: {unmet:?}");
}

/// What the next test asks of connections with strangers, of those without: it tells a wrong law from a wrong gate.
#[test]
fn no_edge_moves_left_where_nobody_interferes() {
    let Some(world) = pass_packets(0) else { return };
    assert!(world.written[0] > 1_000, "{:?}", world.written);
    assert_no_retraction(&world);
}

#[test]
fn no_odd_packet_moves_an_edge_to_the_left() {
    if !has_gate() {
        eprintln!("SKIPPED: the fast path has no gate yet: a stranger's SYN makes it forget what was promised");
        return;
    }
    let Some(world) = pass_packets(STRANGERS) else { return };
    assert_no_retraction(&world);
}
