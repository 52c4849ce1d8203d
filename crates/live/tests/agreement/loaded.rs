//! The comparison with the program in the kernel, packet by packet (BPF_PROG_TEST_RUN).

use lasthop_core::fastpath::layout::{Control, FlowState};
use lasthop_core::packet::Direction;
use lasthop_core::units::Time;
use lasthop_core::wire::Link;
use lasthop_live::program::{LinkLayer, LoadOptions, Program, TestPacket};

use crate::traffic::{Crossing, Traffic};
use crate::{PACKETS, Reference, SPELL, assert_the_mix, spell};

/// The kernel's test interface itself refuses what is too short for the header that the EtherType names.
fn is_runnable(frame: &[u8]) -> bool {
    let shortest = match frame.get(12..14) {
        Some([0x08, 0x00]) => 14 + 20,
        Some([0x86, 0xdd]) => 14 + 40,
        _ => 14,
    };
    frame.len() >= shortest
}

/// What depends on the moment at which the kernel looked at its clock.
fn without_times(mut state: FlowState) -> FlowState {
    state.first_seen_ns = 0;
    state.last_seen_ns = 0;
    for half in &mut state.half {
        half.rtt.seq_sent_ns = half.rtt.seq_sent_ns.min(1);
        half.rtt.ts_sent_ns = half.rtt.ts_sent_ns.min(1);
        half.rtt.sum_ns = 0;
        half.rtt.last_ns = 0;
        half.rtt.min_ns = u32::from(half.rtt.min_ns == u32::MAX);
    }
    state
}

fn monotonic() -> Time {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Time::from_nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

fn write_control(program: &Program, control: &Control) {
    program.control().heartbeat(Time::from_nanos(control.heartbeat_ns));
    program.control().set_epoch(control.epoch);
    program.control().set_dry_run(control.dry_run != 0);
    for direction in Direction::BOTH {
        program.control().set_default_plan(direction, control.default_plan[direction.index()]);
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

fn assert_alike(program: &Program, reference: &mut Reference, crossing: &Crossing, out: &mut [u8]) {
    let Crossing { direction, link, merged, frame } = crossing;
    let layer = if *link == Link::Ip { LinkLayer::Ip } else { LinkLayer::Ethernet };
    let packet = TestPacket { bytes: frame, merged: *merged };
    let mut bytes = frame.clone();
    let (reason, key) = reference.pass(&mut bytes, *link, *merged, *direction, monotonic());
    let run = program.run_on(program.prog_fd(*direction, layer), packet, out, 1);
    let run = run.unwrap_or_else(|error| panic!("{error:?} {crossing:?}"));
    assert_eq!(run.returned as i32, -1);
    assert_eq!(out[..run.length], bytes, "the packet {crossing:?}");
    assert_eq!(program.counters().unwrap(), reference.counters, "{reason:?} {crossing:?}");
    if let Some(key) = key {
        let state = program.flow(&key).unwrap().expect("in the table");
        assert_eq!(without_times(state), without_times(reference.flows[&key]), "{crossing:?}");
    }
}

#[test]
fn the_loaded_program_agrees_with_rust() {
    let program = match Program::load(LoadOptions::default()) {
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
    while passed < PACKETS {
        if passed % SPELL == 0 {
            fresh = spell(&mut reference.control, &mut traffic.random);
            change_flows(&program, &mut reference);
        }
        if passed % 64 == 0 || passed % SPELL == 0 {
            let now = monotonic().as_nanos();
            reference.control.heartbeat_ns = if fresh { now } else { now.saturating_sub(3_000_000_000) };
            write_control(&program, &reference.control);
        }
        let crossing = traffic.next();
        if is_runnable(&crossing.frame) {
            assert_alike(&program, &mut reference, &crossing, &mut out);
            passed += 1;
        }
    }
    assert_the_mix(&reference.counters);
}
