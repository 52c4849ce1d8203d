//! The comparison with the program in the kernel, packet by packet (BPF_PROG_TEST_RUN).

use lasthop_core::fastpath::layout::{Control, Reason};
use lasthop_core::packet::Direction;
use lasthop_core::units::Time;
use lasthop_core::wire::Link;
use lasthop_live::program::{LinkLayer, LoadOptions, Program, TestPacket};

use crate::traffic::{Crossing, Traffic};
use crate::udp::Datagrams;
use crate::{Kept, PACKETS, Reference, SPELL, assert_the_hops, assert_the_mix, gap_ns, spell};

/// The kernel's test interface itself refuses what is too short for the header that the EtherType names.
fn is_runnable(frame: &[u8]) -> bool {
    let shortest = match frame.get(12..14) {
        Some([0x08, 0x00]) => 14 + 20,
        Some([0x86, 0xdd]) => 14 + 40,
        _ => 14,
    };
    frame.len() >= shortest
}

/// The program with a clock that the test sets: heartbeat plus the mark of the packet, ns.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/test-clock.bpf.o"));
const GO_ON: i32 = -1;
const TC_ACT_SHOT: i32 = 2;
/// How far a stale heartbeat lies back.
const STALE_NS: u32 = 3_000_000_000;

fn write_control(program: &Program, control: &Control) {
    program.control().heartbeat(Time::from_nanos(control.heartbeat_ns));
    program.control().set_epoch(control.epoch);
    program.control().set_dry_run(control.dry_run != 0);
    for direction in Direction::BOTH {
        let (plan, hop) = (control.default_plan[direction.index()], control.hop[direction.index()]);
        program.control().set_default_plan(direction, plan);
        program.control().set_start(direction, hop.depth_bytes, hop.rate_bytes);
    }
}

/// The same wishes of the controller on both sides.
fn change_flows(program: &Program, reference: &mut Reference) {
    let plan = reference.control.default_plan[1];
    for (key, state) in &mut reference.flows {
        program.set_plan(key, Direction::ToStation, plan).unwrap();
        state.half[0].plan = plan;
        if state.half[0].packets % 4 == 0 {
            continue;
        }
        for direction in Direction::BOTH {
            program.set_scale(key, direction, 7).unwrap();
            state.half[direction.index()].told_scale = 8;
        }
    }
}

fn assert_alike(program: &Program, reference: &mut Reference, crossing: &Crossing, mark: u32, out: &mut [u8]) {
    let Crossing { direction, link, merged, frame } = crossing;
    let layer = if *link == Link::Ip { LinkLayer::Ip } else { LinkLayer::Ethernet };
    let packet = TestPacket { bytes: frame, merged: *merged, mark };
    let now = Time::from_nanos(reference.control.heartbeat_ns + u64::from(mark));
    let mut bytes = frame.clone();
    let (reason, kept) = reference.pass(&mut bytes, *link, *merged, *direction, now);
    let run = program.run_on(program.prog_fd(*direction, layer), packet, out, 1);
    let run = run.unwrap_or_else(|error| panic!("{error:?} {crossing:?}"));
    assert_eq!(run.returned as i32, if reason == Reason::UdpDropped { TC_ACT_SHOT } else { GO_ON });
    assert_eq!(out[..run.length], bytes, "the packet {crossing:?}");
    assert_eq!(program.counters().unwrap(), reference.counters, "{reason:?} {crossing:?}");
    assert_eq!(program.control().get(), reference.control, "{reason:?} {crossing:?}");
    match kept {
        Kept::Tcp(key) => {
            let state = program.flow(&key).unwrap().expect("in the table");
            assert_eq!(state, reference.flows[&key], "{crossing:?}");
        }
        Kept::Udp(key) => {
            let state = program.udp_flow(&key).unwrap().expect("in the table");
            assert_eq!(state, reference.udp[&key], "{crossing:?}");
        }
        Kept::Not => {}
    }
}

#[test]
fn the_loaded_program_agrees_with_rust() {
    let program = match Program::load_object(OBJECT, LoadOptions::default()) {
        Ok(program) => program,
        Err(error) => {
            eprintln!("SKIPPED: {error}: {:?}", std::error::Error::source(&error));
            return;
        }
    };
    let mut traffic = Traffic::new(2);
    let mut reference = Reference::default();
    let mut out = vec![0; 8_192];
    let mut fresh = true;
    let mut passed = 0;
    let mut now_ns = 5_000_000_000;
    while passed < PACKETS {
        if passed % SPELL == 0 {
            fresh = spell(&mut reference.control, &mut traffic.random);
            change_flows(&program, &mut reference);
        }
        if passed % 64 == 0 || passed % SPELL == 0 {
            reference.control.heartbeat_ns = now_ns - if fresh { 0 } else { u64::from(STALE_NS) };
            write_control(&program, &reference.control);
        }
        now_ns += gap_ns(&mut traffic.random);
        let crossing = traffic.next();
        if is_runnable(&crossing.frame) {
            let mark = (now_ns - reference.control.heartbeat_ns) as u32;
            assert_alike(&program, &mut reference, &crossing, mark, &mut out);
            passed += 1;
        }
    }
    assert_the_mix(&reference.counters);
    assert_the_hops(&reference.control.hop);
}

#[test]
fn the_loaded_program_holds_udp_as_rust_does() {
    let program = match Program::load_object(OBJECT, LoadOptions::default()) {
        Ok(program) => program,
        Err(error) => {
            eprintln!("SKIPPED: {error}: {:?}", std::error::Error::source(&error));
            return;
        }
    };
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
