//! The UDP flows that the fast path knows: names for the deciding half, samples, and who is to be forgotten.
//!
//! Only flows that ever sent a full packet are in the fast path's table (`core::fastpath::udp`): games and calls are not. They keep
//! their places there until they are forgotten here, so that a flood of others pushes out nobody who is window-limited; of a table that is
//! nearly full those that nobody holds go soon.

use std::collections::HashMap;

use lasthop_core::ap::{Ap, Tunnel, UdpSample};
use lasthop_core::fastpath::layout::{FlowKey, UdpPlan, UdpState};
use lasthop_core::packet::FlowId;
use lasthop_core::units::{Span, Time};

use super::hops::Hops;
use super::stations::Stations;
use super::table::Names;

/// Silence after which a flow is forgotten.
const SILENT: Span = Span::from_secs(60);
/// Silence after which a flow without a plan is forgotten in a table that is nearly full: who sends in bulk pauses for no longer.
const HURRIED: Span = Span::from_secs(2);
/// A table is nearly full with so many of sixteen parts.
const NEARLY_FULL: usize = 15;

#[derive(Default)]
pub(super) struct UdpTable {
    entries: HashMap<FlowKey, Entry>,
    round: u64,
    nearly_full: bool,
    forgotten: Vec<FlowKey>,
}

struct Entry {
    id: FlowId,
    round: u64,
    first_seen_ns: u64,
}

impl UdpTable {
    /// A reading of the fast path's table of so many places begins.
    pub(super) fn begin(&mut self, places: usize) {
        self.round += 1;
        self.nearly_full = self.entries.len() * 16 >= places * NEARLY_FULL;
    }

    fn is_over(&self, now: Time, state: &UdpState) -> bool {
        let is_window_limited = state.half.iter().any(|half| half.plan != UdpPlan::default());
        let patience = if self.nearly_full && !is_window_limited { HURRIED } else { SILENT };
        now.since(Time::from_nanos(state.last_seen_ns)) >= patience
    }

    /// Takes in what the fast path holds of one flow and hands it on.
    pub(super) fn on_flow(
        &mut self,
        now: Time,
        (key, state): (&FlowKey, &UdpState),
        (stations, hops): (&Stations, &Hops),
        names: &mut Names,
        ap: &mut Ap,
    ) {
        if self.is_over(now, state) {
            // The sweep at the end of the round takes it out of the entries.
            self.forgotten.push(*key);
            return;
        }
        let first_seen_ns = state.first_seen_ns;
        let again = self.entries.get(key).is_some_and(|entry| entry.first_seen_ns != first_seen_ns);
        if again && let Some(entry) = self.entries.remove(key) {
            ap.on_udp_gone(entry.id);
            names.forget(entry.id);
        }
        let new = || Entry { id: names.name(key), round: 0, first_seen_ns };
        let entry = self.entries.entry(*key).or_insert_with(new);
        entry.round = self.round;
        ap.on_udp(
            now,
            &UdpSample {
                flow: entry.id,
                station: stations.id(&key.station),
                hop: hops.of(state.port),
                tunnel: Tunnel::of_ports([key.station_port, key.remote_port]),
                state: *state,
            },
        );
    }

    /// The whole table was read: what was not in it is gone.
    pub(super) fn end(&mut self, names: &mut Names, ap: &mut Ap) {
        let round = self.round;
        self.entries.retain(|_, entry| {
            let there = entry.round == round;
            if !there {
                ap.on_udp_gone(entry.id);
                names.forget(entry.id);
            }
            there
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Flows that the fast path shall forget.
    pub(super) fn take_forgotten(&mut self) -> Vec<FlowKey> {
        std::mem::take(&mut self.forgotten)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_core::ap::Params;

    #[test]
    fn a_silent_flow_is_forgotten_and_one_that_vanished_loses_its_name() {
        let (mut table, mut names, mut ap) = (UdpTable::default(), Names::default(), Ap::new(Params::learning()));
        let stations = Stations::unknown();
        let begun = Time::ZERO + Span::from_secs(1_000);
        let keys = [1, 2].map(|station_port| FlowKey { station_port, ..FlowKey::default() });
        let mut look = |now: Time, flows: &[(FlowKey, UdpState)]| {
            table.begin(4);
            flows.iter().for_each(|(key, state)| {
                table.on_flow(now, (key, state), (&stations, &Hops::default()), &mut names, &mut ap)
            });
            table.end(&mut names, &mut ap);
            (table.entries.len(), names.keys.len(), table.take_forgotten())
        };
        let flows = keys.map(|key| (key, UdpState::new(begun)));
        assert_eq!(look(begun, &flows), (2, 2, vec![]));
        assert_eq!(look(begun, &flows[..1]), (1, 1, vec![]));
        assert_eq!(look(begun + SILENT, &flows[..1]), (0, 0, vec![keys[0]]));
    }

    #[test]
    fn a_nearly_full_table_forgets_who_pauses_but_nobody_who_is_held() {
        let (mut table, mut names, mut ap) = (UdpTable::default(), Names::default(), Ap::new(Params::learning()));
        let begun = Time::ZERO + Span::from_secs(1_000);
        let mut held = UdpState::new(begun);
        held.half[0].plan = UdpPlan { rate_bytes: 1, ..UdpPlan::default() };
        let flows = [(1, held), (2, UdpState::new(begun)), (3, UdpState::new(begun + HURRIED))]
            .map(|(station_port, state)| (FlowKey { station_port, ..FlowKey::default() }, state));
        let mut look = |now: Time, places: usize| {
            table.begin(places);
            let who = (&Stations::unknown(), &Hops::default());
            flows.iter().for_each(|(key, state)| table.on_flow(now, (key, state), who, &mut names, &mut ap));
            table.end(&mut names, &mut ap);
            table.take_forgotten().iter().map(|key| key.station_port).collect::<Vec<_>>()
        };
        assert!(look(begun + HURRIED, 4).is_empty());
        assert!(look(begun + HURRIED, 4).is_empty(), "3 of 4");
        assert_eq!(look(begun + HURRIED, 3), [2]);
    }
}
