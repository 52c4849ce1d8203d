//! The comparison with the program in the kernel, packet by packet (BPF_PROG_TEST_RUN).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use lasthop_core::fastpath::layout::{Control, FlowKey, FlowState, Half, Plan, Reason};
use lasthop_core::packet::Direction;
use lasthop_core::units::{Span, Time};
use lasthop_core::wire::build::{Frame, ack, v4};
use lasthop_core::wire::{Endpoint, Link, Merged};
use lasthop_live::program::{
    Answer, Asks, LinkLayer, LoadError, LoadOptions, PLACES_OF_PORTS, Program, Refusal, TestPacket,
};

use crate::compile;
use crate::runnable::is_runnable;
use crate::traffic::{Crossing, Traffic};
use crate::udp::Datagrams;
use crate::{
    Kept, PACKETS, PORT, Reference, SPELL, assert_the_hops, assert_the_mix, assert_the_updates, gap_ns, owe, spell,
    whim_of_a_host,
};

/// The program with a clock that the test sets: heartbeat plus the mark of the packet, ns.
fn load() -> Option<Program> {
    let clang = match compile::clang() {
        Ok(clang) => clang,
        Err(why) => {
            eprintln!("SKIPPED: {why}");
            return None;
        }
    };
    let object = compile::object(&clang, "lasthop.bpf.c", &["-DLASTHOP_TEST_CLOCK"]).expect("it compiles");
    match Program::load_object(&object, LoadOptions::default()) {
        Ok(program) => {
            // What is made up passes the loopback interface.
            let mut places = [0; PLACES_OF_PORTS];
            places[PORT.0 as usize] = PORT.1 as u8;
            program.set_hops(&places).unwrap();
            Some(program)
        }
        Err(error @ LoadError::Refused(Refusal::Rights(_))) => {
            eprintln!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}
const GO_ON: i32 = -1;
const TC_ACT_SHOT: i32 = 2;
/// How far a stale heartbeat lies back.
const STALE_NS: u32 = 3_000_000_000;

fn write_control(program: &Program, control: &Control) {
    program.control().heartbeat(Time::from_nanos(control.heartbeat_ns));
    program.control().set_epoch(control.epoch);
    program.control().set_dry_run(control.dry_run != 0);
    program.control().set_silent(Time::from_nanos(control.silent_ns));
    program.control().set_tick(Span::from_nanos(control.tick_ns));
    for direction in Direction::BOTH {
        let (plan, hop) = (control.default_plan[direction.index()], control.hops[0][direction.index()]);
        program.control().set_default_plan(direction, plan);
        program.control().set_start(direction, hop.depth_bytes, hop.rate_bytes);
        program.control().set_updates(direction, hop.updates);
    }
}

/// The same wishes of the controller on both sides.
fn change_flows(program: &mut Program, reference: &mut Reference) {
    let plan = reference.control.default_plan[1];
    for (key, state) in &mut reference.flows {
        program.set_plan(key, Direction::ToStation, plan).unwrap();
        state.half[0].plan = plan;
        if state.half[0].packets % 4 == 0 {
            continue;
        }
        for direction in Direction::BOTH {
            program.set_scale(key, direction, 7).unwrap();
            state.half[direction.index()].conntrack_scale = 8;
        }
    }
}

/// The newest asks in the ring, and the same calls of the controller on both sides.
fn assert_updates_alike(
    asks: &Asks,
    program: &Program,
    reference: &mut Reference,
    key: &FlowKey,
    whim: (Direction, Time),
    lets_go: bool,
) {
    let (direction, at) = whim;
    if lets_go {
        asks.released(key, direction).unwrap();
    }
    let (update, due) = if lets_go { (None, None) } else { reference.update(key, direction, at) };
    let stale = at.as_nanos() > reference.control.heartbeat_ns + 2_000_000_000;
    let next = due.filter(|_| !stale);
    if next.is_none() {
        let half = &mut reference.flows.get_mut(key).unwrap().half[direction.index()];
        half.answered = half.flags & Half::ASKED;
    }
    if !lets_go {
        assert_eq!(asks.answer_at(key, direction, at).unwrap(), Answer { update, next });
    }
    assert_eq!(program.flow(key).unwrap().expect("in the table"), reference.flows[key]);
}

fn assert_alike(program: &Program, reference: &mut Reference, crossing: &Crossing, mark: u32, out: &mut [u8]) -> Kept {
    let Crossing { direction, link, merged, frame } = crossing;
    let layer = if *link == Link::Ip { LinkLayer::Ip } else { LinkLayer::Ethernet };
    let packet = TestPacket { bytes: frame, merged: *merged, mark };
    let now = Time::from_nanos(reference.control.heartbeat_ns + u64::from(mark));
    let mut bytes = frame.clone();
    let (reason, kept) = reference.pass(&mut bytes, *link, *merged, (*direction, PORT), now);
    let run = program.run_on(program.prog_fd(*direction, layer), packet, out, 1);
    let run = run.unwrap_or_else(|error| panic!("{error:?} {crossing:?}"));
    assert_eq!(run.returned as i32, if reason == Reason::UdpDropped { TC_ACT_SHOT } else { GO_ON });
    assert_eq!(out[..run.length], bytes, "the packet {crossing:?}");
    assert_eq!(program.counters().unwrap(), reference.counters, "{reason:?} {crossing:?}");
    assert_eq!(program.control().get(), reference.control, "{reason:?} {crossing:?}");
    match kept {
        Kept::Tcp(key) => {
            assert_eq!(program.flow(&key).unwrap(), reference.flows.get(&key).copied(), "{crossing:?}");
            let opening = reference.opening.as_ref().and_then(|opening| opening.get(&key)).copied();
            assert_eq!(program.opening(&key).unwrap(), opening, "{crossing:?}");
        }
        Kept::Udp(key) => {
            let state = program.udp_flow(&key).unwrap().expect("in the table");
            assert_eq!(state, reference.udp[&key], "{crossing:?}");
        }
        Kept::Not => {}
    }
    kept
}

#[test]
fn the_loaded_program_agrees_with_rust() {
    let Some(mut program) = load() else { return };
    let mut traffic = Traffic::new(2);
    let mut reference = Reference { asks: Some(Vec::new()), opening: Some(HashMap::new()), ..Reference::default() };
    let asks = program.asks().unwrap();
    let (asked, mut of_the_ring) = (RefCell::new(Vec::new()), 0);
    let ring = asks
        .reader(|ask| asked.borrow_mut().push((ask.key, ask.direction, ask.due, ask.link.bytes().to_vec())))
        .unwrap();
    let mut out = vec![0; 8_192];
    let mut fresh = true;
    let mut passed = 0;
    let mut now_ns = 5_000_000_000;
    while passed < PACKETS {
        if passed % SPELL == 0 {
            fresh = spell(&mut reference.control, &mut traffic.random);
            change_flows(&mut program, &mut reference);
        }
        if passed % 64 == 0 || passed % SPELL == 0 {
            reference.control.heartbeat_ns = now_ns - if fresh { 0 } else { u64::from(STALE_NS) };
            write_control(&program, &reference.control);
        }
        now_ns += gap_ns(&mut traffic.random);
        let crossing = traffic.next();
        if is_runnable(&crossing.frame) {
            let mark = (now_ns - reference.control.heartbeat_ns) as u32;
            let kept = assert_alike(&program, &mut reference, &crossing, mark, &mut out);
            passed += 1;
            ring.consume().unwrap();
            of_the_ring += asked.borrow().len();
            assert_eq!(reference.asks.as_mut().map(std::mem::take).unwrap(), asked.take(), "{crossing:?}");
            let now = Time::from_nanos(now_ns);
            if let (Kept::Tcp(key), Some(whim)) = (kept, whim_of_a_host(now, &mut traffic.random)) {
                let Some(state) = reference.flows.get_mut(&key) else { continue };
                if traffic.random.percent(15) {
                    owe(state, whim.0, &mut traffic.random);
                    program.put(&key, state).unwrap();
                }
                let lets_go = traffic.random.percent(10);
                assert_updates_alike(&asks, &program, &mut reference, &key, whim, lets_go);
            }
        }
    }
    eprintln!("{of_the_ring} asks");
    assert!(of_the_ring > 100);
    assert_the_updates(&reference);
    assert_the_mix(&reference.counters);
    assert_the_hops(&[reference.control.hops[PORT.1 as usize]]);
}

/// A flow that owes its sender 49,000 bytes, and an ACK of it that brings nothing.
fn owing() -> (FlowKey, FlowState, Vec<u8>) {
    let [station, remote] = [[10, 0, 0, 2], [192, 0, 2, 1]].map(|address| Endpoint { address: v4(address), port: 7 });
    let key = FlowKey { station: station.address, remote: remote.address, station_port: 7, remote_port: 7 };
    let data = Half { data_flags: Half::DATA_SEEN, snd_nxt: 1_000, ..Half::default() };
    let plan = Plan { clamp_bytes: 50_000, pace_bytes: 3_000_000, ..Plan::default() };
    let flags = Half::EDGE_KNOWN | Half::SCALE_KNOWN;
    let half =
        Half { flags, plan, mss: 1_000, delivered: 1_000, edge: 2_000, window: 50_000, last_window: 60_000, ..data };
    let state = FlowState { half: [half, data], ..FlowState::default() };
    (key, state, Frame::tcp(station, remote, ack(1_000, 1_000, 60_000), 0).bytes())
}

#[test]
fn a_full_ring_leaves_it_to_the_next_ack_to_ask() {
    let Some(program) = load() else { return };
    let (key, state, frame) = owing();
    program.control().heartbeat(Time::from_nanos(1_000_000_000));
    program.control().set_updates(Direction::ToStation, 1);
    let asks = program.asks().unwrap();
    let mut out = vec![0; 256];
    let mut asks_when_it_passes = || {
        program.put(&key, &state).unwrap();
        let packet = TestPacket { bytes: &frame, merged: Merged::NOT, mark: 0 };
        program.run_on(program.prog_fd(Direction::ToRemote, LinkLayer::Ethernet), packet, &mut out, 1).unwrap();
        let half = program.flow(&key).unwrap().expect("in the table").half[0];
        half.flags & Half::ASKED != half.answered
    };
    let room = (0..10_000).take_while(|_| asks_when_it_passes()).count();
    assert!((1_600..1_700).contains(&room), "{room}");
    let read = Cell::new(0);
    asks.reader(|_| read.set(read.get() + 1)).unwrap().consume().unwrap();
    assert_eq!(read.get(), room);
    assert!(asks_when_it_passes(), "there is room again");
    asks.released(&key, Direction::ToStation).unwrap();
    let half = program.flow(&key).unwrap().expect("in the table").half[0];
    assert_eq!(half.flags & Half::ASKED, half.answered, "let go, whatever is due");
}

#[test]
fn the_loaded_program_holds_udp_as_rust_does() {
    let Some(program) = load() else { return };
    let mut datagrams = Datagrams::new(3);
    let mut reference = Reference::default();
    let mut out = vec![0; 8_192];
    for _ in 0..40_000 {
        let (crossing, now_ns) = datagrams.next(&mut reference);
        if let Some((key, plan)) = datagrams.replan(&crossing, &mut reference) {
            for direction in Direction::BOTH {
                program.set_udp_plan(&key, direction, plan).unwrap();
            }
        }
        write_control(&program, &reference.control);
        let mark = (now_ns - reference.control.heartbeat_ns) as u32;
        if is_runnable(&crossing.frame) {
            assert_alike(&program, &mut reference, &crossing, mark, &mut out);
        }
    }
    crate::udp::assert_the_mix(&reference.counters);
}
