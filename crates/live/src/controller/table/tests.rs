use super::*;
use lasthop_core::ap::Params;
use lasthop_core::fastpath::layout::{Control, Half};
use lasthop_core::units::BitRate;

struct Steps {
    table: Table,
    ap: Ap,
    now: Time,
}

fn steps() -> Steps {
    let now = Time::ZERO + Span::from_secs(1000);
    Steps { table: Table::new(&Config::default()), ap: Ap::new(Params::new(BitRate::mbps(20))), now }
}

impl Steps {
    fn look(&mut self, flows: &[(FlowKey, FlowState)]) {
        self.now += Span::from_millis(200);
        let stations = Stations::unknown();
        self.table.begin();
        for (key, state) in flows {
            self.table.on_flow((self.now, 0), key, state, (&stations, &Hops::default()), &mut self.ap);
        }
        self.table.end(&mut self.ap);
    }
}

fn key(port: u16) -> FlowKey {
    FlowKey { station_port: port, ..FlowKey::default() }
}

fn flow(seen: Time, payload: u64) -> FlowState {
    let mut state = FlowState::new(&Control::default(), Time::from_nanos(1));
    state.last_seen_ns = seen.as_nanos();
    let half = &mut state.half[0];
    half.bytes = payload + 100;
    half.payload_bytes = payload;
    half.flags = Half::SCALE_KNOWN;
    state
}

#[test]
fn a_half_open_connection_is_counted_but_not_decided_about() {
    let mut s = steps();
    let state = flow(s.now, 0);
    s.look(&[(key(1), state)]);
    assert_eq!(s.table.status().connections, 1);
    assert!(s.ap.snapshot().flows.is_empty());
}

#[test]
fn a_connection_that_vanished_is_known_no_more_after_a_walk_over_all() {
    let mut s = steps();
    let state = flow(s.now, 1000);
    s.look(&[(key(1), state), (key(2), state)]);
    assert_eq!(s.ap.snapshot().flows.len(), 2);
    s.look(&[(key(2), state)]);
    assert_eq!((s.table.known(), s.ap.snapshot().flows.len()), (1, 1));
}

#[test]
fn a_walk_over_all_takes_as_long_as_the_least_that_a_connection_is_remembered() {
    let mut s = steps();
    let state = flow(s.now, 0);
    assert_eq!(s.table.walks_every(), RESET);
    s.look(&(0..2_100).map(|port| (key(port), state)).collect::<Vec<_>>());
    assert_eq!(s.table.walks_every(), RESET / 3);
}

#[test]
fn one_that_moved_is_shown_once_in_an_interval_though_it_is_its_turn_in_the_walk() {
    let mut s = steps();
    let state = flow(s.now, 1000);
    s.look(&[(key(1), state), (key(1), FlowState { half: [flow(s.now, 9000).half[0]; 2], ..state })]);
    assert_eq!(s.table.controllable_bytes(), 1100);
}

#[test]
fn the_same_ports_again_are_another_connection() {
    let mut s = steps();
    let old = flow(s.now, 1000);
    s.look(&[(key(1), old)]);
    let first = s.ap.snapshot().flows[0].flow;
    let again = FlowState { first_seen_ns: 2, ..old };
    s.look(&[(key(1), again)]);
    assert_ne!(s.ap.snapshot().flows[0].flow, first);
    assert_eq!(s.table.key(first), None);
}

/// What a walk forgets of these after so much silence.
fn forgotten(s: &mut Steps, silence: Span, flows: &[(FlowKey, FlowState)]) -> Vec<u16> {
    s.now += silence;
    s.look(flows);
    s.table.take_over().iter().map(|(key, _)| key.station_port).collect()
}

fn stages(seen: Time) -> [(FlowKey, FlowState); 6] {
    let mut reset = flow(seen, 1000);
    reset.half[1].data_flags |= Half::RESET;
    let mut closed = flow(seen, 1000);
    closed.half.iter_mut().for_each(|half| half.data_flags |= Half::CLOSING);
    let mut half_closed = flow(seen, 1000);
    half_closed.half[1].data_flags |= Half::CLOSING;
    let half_open = flow(seen, 0);
    let mut silent = flow(seen, 0);
    silent.half.iter_mut().for_each(|half| half.flags |= Half::EDGE_KNOWN);
    let open = flow(seen, 1000);
    let all = [reset, closed, half_closed, half_open, silent, open];
    std::array::from_fn(|i| (key(i as u16 + 1), all[i]))
}

#[test]
fn each_stage_of_a_connection_is_forgotten_after_its_own_silence() {
    let mut s = steps();
    let mut all = stages(s.now).to_vec();
    let idle = Config::default().idle;
    assert_eq!(idle, Span::from_secs(7440), "RFC 5382 REQ-5");
    let mut passed = Span::ZERO;
    for (after, expected) in [
        (RESET, vec![1]),
        (CLOSED, vec![2]),
        (TRANSITORY, vec![3, 4]),
        (Span::from_secs(3600), vec![]),
        (idle, vec![5, 6]),
    ] {
        let still = forgotten(&mut s, after - passed - Span::from_secs(1), &all);
        assert!(still.is_empty(), "{still:?} a second before {after:?}");
        let gone = forgotten(&mut s, Span::from_secs(1), &all);
        assert_eq!(gone, expected, "after {after:?}");
        all.retain(|(key, _)| !gone.contains(&key.station_port));
        // Each look takes a fifth of a second.
        passed = after + Span::from_millis(400);
    }
}

#[test]
fn a_nearly_full_table_forgets_who_ended_or_never_began_at_once_and_nobody_who_is_open() {
    let config = Config { flows: 16, ..Config::default() };
    let mut s = Steps { table: Table::new(&config), ..steps() };
    let seen = s.now;
    let others = (100u16..108).map(|port| (key(port), flow(seen, 1000)));
    let mut all: Vec<_> = stages(seen).into_iter().chain(others).collect();
    assert!(forgotten(&mut s, Span::ZERO, &all).is_empty());
    assert!(forgotten(&mut s, HURRIED * 2, &all).is_empty(), "14 of 16");
    all.push((key(200), flow(seen, 1000)));
    assert!(forgotten(&mut s, Span::ZERO, &all).is_empty(), "15 are known now");
    assert_eq!(forgotten(&mut s, Span::ZERO, &all), [1, 2, 4]);
}

#[test]
fn a_silent_connection_sleeps_and_wakes_with_its_next_payload() {
    let mut s = steps();
    let quiet = flow(s.now, 1000);
    s.look(&[(key(1), quiet)]);
    s.now += SLEEP;
    s.look(&[(key(1), quiet)]);
    assert!(s.ap.snapshot().flows.is_empty());
    let awake = flow(s.now, 2000);
    s.look(&[(key(1), awake)]);
    assert_eq!(s.ap.snapshot().flows.len(), 1);
}

#[test]
fn a_pause_of_more_than_75_ms_makes_one_segment_late_and_no_index_is_told_of_a_few() {
    let mut s = steps();
    let shows = |s: &mut Steps, payload: u64, gap_ms: u32, epoch: u32| {
        let mut state = flow(s.now, payload);
        state.half[0].mss = 1000;
        (state.half[0].gap_ns, state.half[0].epoch) = (gap_ms * 1_000_000, epoch);
        s.look(&[(key(1), state)]);
        let id = s.ap.snapshot().flows[0].flow;
        s.table.carried(id).and_then(|(_, carrying)| carrying.timely_index(Direction::ToStation))
    };
    shows(&mut s, 1_000, 0, 0);
    assert_eq!(shows(&mut s, 100_000, 76, 0), None, "99 segments");
    assert_eq!(shows(&mut s, 201_000, 75, 0), Some(0.995));
    // What is of an older epoch was counted in it.
    assert_eq!(shows(&mut s, 401_000, 90, u32::MAX), Some(0.9975));
}
