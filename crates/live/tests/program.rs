//! The object loads into this kernel and its typed access works.

use std::time::Duration;

use lasthop_core::fastpath::layout::{FlowKey, FlowState, HOPS, Hop, Plan, Reason};
use lasthop_core::packet::Direction;
use lasthop_core::units::{Span, Time};
use lasthop_core::wire::build::{Frame, ack, v4};
use lasthop_core::wire::{Endpoint, Merged};
use lasthop_live::clock::now;
use lasthop_live::maps::{PlanOf, READS};
use lasthop_live::program::{
    Batch, LinkLayer, LoadError, LoadOptions, Program, ProgramError, Refusal, TestPacket, Walk,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

fn loaded(flows: u32) -> Option<Program> {
    load(LoadOptions { flows, ..LoadOptions::default() })
}

fn load(options: LoadOptions) -> Option<Program> {
    match Program::load(options) {
        Ok(program) => Some(program),
        Err(error @ LoadError::Refused(Refusal::Rights(_))) => {
            eprintln!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn key(port: u16) -> FlowKey {
    FlowKey { station: [1; 16], remote: [2; 16], station_port: port, remote_port: 443 }
}

#[test]
fn every_direction_and_link_layer_has_a_program_whatever_is_asked_of_them() {
    for (diverts, catches) in [(false, false), (true, false), (true, true)] {
        let Some(program) = load(LoadOptions { flows: 64, diverts, catches }) else { return };
        for direction in Direction::BOTH {
            for link in [LinkLayer::Ethernet, LinkLayer::Ip] {
                let _ = program.prog_fd(direction, link);
            }
        }
    }
}

#[test]
fn a_plan_changes_a_flow_in_place_and_only_there() {
    let Some(mut program) = loaded(64) else { return };
    let state = FlowState { last_seen_ns: 7, ..FlowState::default() };
    program.put(&key(1), &state).unwrap();
    let plan = Plan { clamp_bytes: 100_000, floor_bytes: 2_920, growth_bytes: 3_000, pace_bytes: 0 };
    program.set_plan(&key(1), Direction::ToRemote, plan).unwrap();
    program.set_scale(&key(1), Direction::ToStation, 9).unwrap();
    let mut expected = state;
    expected.half[1].plan = plan;
    expected.half[0].conntrack_scale = 10;
    assert_eq!(program.flow(&key(1)).unwrap(), Some(expected));
    assert_eq!(program.flows().unwrap(), [(key(1), expected)]);
}

/// More than one call takes; every third has left.
#[test]
fn many_connections_are_read_and_told_their_plans_at_once() {
    let Some(mut program) = loaded(1024) else { return };
    let keys: Vec<_> = (0..2 * READS as u16 + 3).map(key).collect();
    let is_there = |key: &FlowKey| !key.station_port.is_multiple_of(3);
    let there: Vec<_> = keys.iter().copied().filter(is_there).collect();
    let state = |key: &FlowKey| FlowState { last_seen_ns: key.station_port.into(), ..FlowState::default() };
    there.iter().for_each(|key| program.put(key, &state(key)).unwrap());
    let plan = |key: &FlowKey| Plan { clamp_bytes: 1_000 + u32::from(key.station_port), ..Plan::default() };
    let plans: Vec<_> = keys.iter().map(|key| PlanOf::new(*key, Direction::ToRemote, plan(key))).collect();
    assert_eq!(program.set_plans(&plans).unwrap(), there.len() as u64);
    let mut read = Vec::new();
    program.read_some(&keys, |key, state| read.push((*key, *state))).unwrap();
    let expected = there.iter().map(|key| {
        let mut state = state(key);
        state.half[1].plan = plan(key);
        (*key, state)
    });
    assert_eq!(read, expected.collect::<Vec<_>>());
    program.read_some(&[], |_, _| panic!("nobody was asked for")).unwrap();
}

/// More than one call takes; every third was seen again since.
#[test]
fn only_connections_that_were_not_seen_again_are_removed() {
    let Some(mut program) = loaded(1024) else { return };
    let keys: Vec<_> = (0..2 * READS as u16 + 3).map(key).collect();
    let was_seen = |key: &FlowKey| key.station_port.is_multiple_of(3);
    let at = |nanos| FlowState { last_seen_ns: nanos, ..FlowState::default() };
    keys.iter().for_each(|key| program.put(key, &at(if was_seen(key) { 8 } else { 7 })).unwrap());
    let mut over: Vec<_> = keys.iter().map(|key| (*key, Time::from_nanos(7))).collect();
    over.push((key(5000), Time::from_nanos(7)));
    let alive = keys.iter().filter(|key| was_seen(key)).count();
    assert_eq!(program.remove(&over).unwrap(), (keys.len() - alive) as u64);
    let left = program.flows().unwrap();
    assert!(left.len() == alive && left.iter().all(|(key, _)| was_seen(key)), "{left:?}");
    assert_eq!(program.remove(&[]).unwrap(), 0);
}

#[test]
fn a_walk_shows_every_connection_once_and_begins_anew() {
    let Some(program) = loaded(8192) else { return };
    let keys: Vec<_> = (0..5000).map(key).collect();
    keys.iter().for_each(|key| program.put(key, &FlowState::default()).unwrap());
    let (mut walk, mut batch) = (Walk::default(), Batch::default());
    for _ in 0..2 {
        let (mut shown, mut steps) = (Vec::new(), 1);
        while !program.walk_flows(&mut walk, &mut batch, |key, _| shown.push(*key)).unwrap() {
            steps += 1;
        }
        shown.sort_unstable();
        assert_eq!(shown, keys);
        assert!((5..=7).contains(&steps), "{steps} steps of 1024");
    }
}

/// Whoever came first stays, and a packet that finds no place passes as it is.
#[test]
fn newcomers_to_a_full_table_are_counted_by_packet_and_by_connection() {
    let Some(program) = loaded(64) else { return };
    let station = Endpoint { address: v4([10, 0, 0, 2]), port: 4000 };
    let pass = |port: u16| {
        let remote = Endpoint { address: v4([192, 0, 2, 1]), port };
        let data = Frame::tcp(remote, station, ack(1, 1, 1_000), 100).bytes();
        let answer = Frame::tcp(station, remote, ack(1, 101, 1_000), 0).bytes();
        for (frame, direction) in [(data, Direction::ToStation), (answer, Direction::ToRemote)] {
            let packet = TestPacket { bytes: &frame, merged: Merged::NOT, mark: 0 };
            let hook = program.prog_fd(direction, LinkLayer::Ethernet);
            program.run_on(hook, packet, &mut vec![0; frame.len()], 1).expect("the kernel runs it");
        }
    };
    (0..64).for_each(pass);
    let first = program.flows().unwrap();
    assert_eq!((first.len(), program.refused().take()), (64, 0));
    (64..3064).for_each(pass);
    let mut ports: Vec<_> = program.flows().unwrap().iter().map(|(key, _)| key.remote_port).collect();
    ports.sort_unstable();
    assert_eq!(ports, (0..64).collect::<Vec<_>>());
    assert_eq!(program.counters().unwrap().reason[Reason::TableFull as usize], 3_000);
    let refused = program.refused().take();
    // Ports one after the other share slots less often than chance has it.
    assert!((2_700..=3_300).contains(&refused), "{refused}");
    assert_eq!(program.refused().take(), 0, "those of before are not counted again");
}

/// Each has 20 bytes of IP and 8 of UDP.
#[test]
fn a_large_packet_is_noted_with_its_time_and_wakes_after_a_pause_and_a_smaller_one_does_neither() {
    let Some(program) = loaded(64) else { return };
    let wakes = program.wakes().unwrap();
    let wakes_somebody = || {
        let mut waits = [PollFd::from_borrowed_fd(wakes.waits_for(), PollFlags::IN)];
        let is_ready = poll(&mut waits, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() > 0;
        assert_eq!(wakes.take(), is_ready);
        is_ready
    };
    let [remote, station] =
        [[192, 0, 2, 1], [10, 0, 0, 2]].map(|address| Endpoint { address: v4(address), port: 4000 });
    let passes = |payload: usize| {
        let frame = Frame::udp(remote, station, payload).bytes();
        let hook = program.prog_fd(Direction::ToStation, LinkLayer::Ethernet);
        let packet = TestPacket { bytes: &frame, merged: Merged::NOT, mark: 0 };
        program.run_on(hook, packet, &mut vec![0; frame.len()], 1).unwrap();
        program.last_large()
    };
    assert_eq!(passes(576 - 28 - 1), Time::ZERO);
    assert!(!wakes_somebody());
    let before = now();
    let noted = passes(576 - 28);
    assert!((before..=now()).contains(&noted), "{noted:?}");
    assert!(wakes_somebody());
    assert_eq!(passes(576 - 28 - 1), noted);
    std::thread::sleep(Duration::from_millis(10));
    let pause = passes(576 - 28).since(noted);
    assert_eq!(wakes_somebody(), pause >= Span::from_millis(900), "else somebody is awake");
    std::thread::sleep(Duration::from_millis(900));
    passes(576 - 28 - 1);
    assert!(!wakes_somebody());
    passes(576 - 28);
    assert!(wakes_somebody());
}

#[test]
fn a_connection_that_moves_is_noted_once_in_a_reading_and_not_by_a_forged_segment() {
    let Some(program) = loaded(64) else { return };
    let moved = program.moved().unwrap();
    let [remote, station] =
        [[192, 0, 2, 1], [10, 0, 0, 2]].map(|address| Endpoint { address: v4(address), port: 4000 });
    let pass = |seq: u32, payload: usize, direction: Direction| {
        let frame = match direction {
            Direction::ToStation => Frame::tcp(remote, station, ack(seq, 1, 1_000), payload).bytes(),
            Direction::ToRemote => Frame::tcp(station, remote, ack(1, seq, 1_000), payload).bytes(),
        };
        let hook = program.prog_fd(direction, LinkLayer::Ethernet);
        let packet = TestPacket { bytes: &frame, merged: Merged::NOT, mark: 0 };
        program.run_on(hook, packet, &mut vec![0; frame.len()], 1).expect("the kernel runs it");
    };
    let mut keys = Vec::new();
    let mut noted = || {
        assert!(moved.take(&mut keys));
        keys.len()
    };
    pass(1, 100, Direction::ToStation);
    assert_eq!(noted(), 0, "nobody has answered yet");
    pass(101, 0, Direction::ToRemote);
    assert_eq!(noted(), 1, "both ends are there");
    pass(101, 100, Direction::ToStation);
    pass(201, 0, Direction::ToRemote);
    assert_eq!(noted(), 0, "it is known to have moved");
    program.control().begin_reading();
    assert_eq!(noted(), 0);
    pass(1 << 30, 0, Direction::ToRemote);
    assert_eq!(noted(), 0, "acknowledged is what nobody sent");
    pass(201, 100, Direction::ToStation);
    pass(301, 0, Direction::ToRemote);
    assert_eq!(noted(), 1);
}

#[test]
fn a_flow_that_left_the_table_is_reported() {
    let Some(mut program) = loaded(64) else { return };
    program.delete(&key(1)).unwrap();
    assert!(matches!(program.set_plan(&key(1), Direction::ToRemote, Plan::default()), Err(ProgramError::NoSuchFlow)));
}

#[test]
fn the_control_page_reads_back_what_was_written() {
    let Some(program) = loaded(64) else { return };
    program.control().heartbeat(Time::from_nanos(5));
    program.control().set_epoch(3);
    program.control().begin_reading();
    program.control().set_dry_run(true);
    let plan = Plan { clamp_bytes: 1, floor_bytes: 2, growth_bytes: 3, pace_bytes: 4 };
    program.control().set_default_plan(Direction::ToRemote, plan);
    program.control().set_start(Direction::ToStation, 6, 7);
    let control = program.control().get();
    assert_eq!((control.heartbeat_ns, control.epoch, control.readings, control.dry_run), (5, 3, 1, 1));
    assert_eq!(control.default_plan, [Plan::default(), plan]);
    assert_eq!(control.hops, [[Hop { depth_bytes: 6, rate_bytes: 7, ..Hop::default() }, Hop::default()]; HOPS]);
}

#[test]
fn what_one_station_sends_to_another_is_counted_once_at_its_egress() {
    let Some(program) = loaded(64) else { return };
    let [one, other] = [2, 3].map(|host| Endpoint { address: v4([10, 0, 0, host]), port: 7 });
    let data = Frame::tcp(one, other, ack(1, 1, 1_000), 1_000).bytes();
    let bare = Frame::tcp(one, other, ack(1, 1, 1_000), 0).bytes();
    let mac = data[..6].try_into().expect("six bytes");
    let pass = |frame: &[u8], direction| {
        let packet = TestPacket { bytes: frame, merged: Merged::NOT, mark: 0 };
        let fd = program.prog_fd(direction, LinkLayer::Ethernet);
        program.run_on(fd, packet, &mut [0; 2_000], 1).expect("the kernel runs it");
        program.counters().expect("counters").packets
    };
    assert_eq!(program.set_locals(&[(mac, 5)], &[], 1), 0);
    assert_eq!(pass(&data, Direction::ToRemote), [0, 0], "not at its ingress");
    assert_eq!(pass(&data, Direction::ToStation), [1, 0], "but at its egress");
    let key = FlowKey { station: one.address, remote: other.address, station_port: 7, remote_port: 7 };
    assert_eq!(pass(&bare, Direction::ToRemote), [1, 0]);
    assert!(program.opening(&key).unwrap().is_some(), "an acknowledgment is looked at, where a window is lowered");
    assert_eq!(program.set_locals(&[], &[mac], 0), 0);
    assert_eq!(pass(&data, Direction::ToRemote), [1, 1], "it has gone");
}

/// What one station sends another passes as a whole only at the other's port; at its own the bare acknowledgments do, and what
/// comes back acknowledges all of it.
#[test]
fn what_passes_elsewhere_may_be_acknowledged() {
    let Some(program) = loaded(64) else { return };
    let [station, other] = [2, 3].map(|host| Endpoint { address: v4([10, 0, 0, host]), port: 7 });
    let key = FlowKey { station: station.address, remote: other.address, station_port: 7, remote_port: 7 };
    let from_station = |seq, ack_number, bytes| Frame::tcp(station, other, ack(seq, ack_number, 1_000), bytes).bytes();
    let to_station = |seq, ack_number, bytes| Frame::tcp(other, station, ack(seq, ack_number, 1_000), bytes).bytes();
    let mac = from_station(1, 1, 0)[..6].try_into().expect("six bytes");
    assert_eq!(program.set_locals(&[(mac, 5)], &[], 1), 0);
    let invalid = || program.counters().expect("counters").reason[Reason::Invalid as usize];
    let pass = |frame: &[u8], direction| {
        let packet = TestPacket { bytes: frame, merged: Merged::NOT, mark: 0 };
        let fd = program.prog_fd(direction, LinkLayer::Ethernet);
        program.run_on(fd, packet, &mut [0; 2_000], 1).expect("the kernel runs it");
    };
    pass(&to_station(1_000, 1, 100), Direction::ToStation);
    pass(&from_station(1, 1_100, 0), Direction::ToRemote);
    assert_eq!(program.flow(&key).unwrap().map(|state| state.assured), Some(1));
    pass(&to_station(1_100, 501, 100), Direction::ToStation);
    assert_eq!(invalid(), 1, "nobody was seen to send that");
    pass(&from_station(1, 1_100, 500), Direction::ToRemote);
    pass(&to_station(1_100, 501, 100), Direction::ToStation);
    assert_eq!(invalid(), 1);
    assert_eq!(program.flow(&key).unwrap().map(|state| state.half[0].snd_nxt), Some(1_200));
}
