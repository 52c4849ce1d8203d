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
fn a_connection_that_vanished_was_pushed_out() {
    let mut s = steps();
    let state = flow(s.now, 1000);
    s.look(&[(key(1), state), (key(2), state)]);
    assert_eq!(s.ap.snapshot().flows.len(), 2);
    s.look(&[(key(2), state)]);
    assert_eq!((s.table.status().evicted, s.ap.snapshot().flows.len()), (1, 1));
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

#[test]
fn closed_connections_are_forgotten_after_a_while_and_half_closed_ones_later() {
    let mut s = steps();
    let mut closed = flow(s.now, 1000);
    closed.half.iter_mut().for_each(|half| half.data_flags |= Half::CLOSING);
    let mut half_closed = flow(s.now, 1000);
    half_closed.half[1].data_flags |= Half::CLOSING;
    let both = [(key(1), closed), (key(2), half_closed)];
    s.look(&both);
    assert!(s.table.take_forgotten().is_empty());
    s.now += CLOSED;
    s.look(&both);
    assert_eq!(s.table.take_forgotten(), [key(1)]);
    s.now += HALF;
    s.look(&both[1..]);
    assert_eq!(s.table.take_forgotten(), [key(2)]);
    assert_eq!(s.table.status().evicted, 0, "forgetting is not eviction");
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
