//! The UDP flows that the fast path knows: names for the deciding half, samples, and who is to be forgotten.

use std::collections::HashMap;

use lasthop_core::ap::{Ap, UdpSample};
use lasthop_core::elastic::Behaviour;
use lasthop_core::fastpath::layout::{FlowKey, UdpState};
use lasthop_core::packet::FlowId;
use lasthop_core::units::{Span, Time};

use super::stations::Stations;
use crate::program::Program;

/// Names of UDP flows begin here, those of connections at 0.
const FIRST_NAME: u32 = 1 << 31;
/// Silence after which a UDP flow is forgotten: NATs do likewise (RFC 4787 section 4.3 asks for two minutes).
const IDLE: Span = Span::from_secs(120);
/// Silence after which it is no longer sampled.
const SLEEP: Span = Span::from_secs(5);

#[derive(Default)]
pub(super) struct Datagrams {
    entries: HashMap<FlowKey, Entry>,
    keys: HashMap<FlowId, FlowKey>,
    made: u32,
    round: u64,
    elastic_bytes: u64,
}

struct Entry {
    id: FlowId,
    first_seen_ns: u64,
    bytes: [u64; 2],
    round: u64,
}

impl Datagrams {
    /// Reads the table and shows it to `ap`; how many calls the kernel refused.
    pub(super) fn on_interval(&mut self, now: Time, program: &Program, stations: &Stations, ap: &mut Ap) -> u64 {
        let Ok(flows) = program.udp_flows() else { return 1 };
        self.round += 1;
        let mut refused = 0;
        for (key, state) in &flows {
            let silent = now.since(Time::from_nanos(state.last_seen_ns));
            if silent > IDLE {
                refused += u64::from(program.delete_udp(key).is_err());
            } else {
                self.on_flow(now, key, state, silent, stations, ap);
            }
        }
        let (round, keys) = (self.round, &mut self.keys);
        self.entries.retain(|_, entry| {
            let is_there = entry.round == round;
            if !is_there {
                ap.on_gone(entry.id);
                keys.remove(&entry.id);
            }
            is_there
        });
        self.count(ap);
        refused
    }

    fn on_flow(&mut self, now: Time, key: &FlowKey, state: &UdpState, silent: Span, stations: &Stations, ap: &mut Ap) {
        let (made, keys) = (&mut self.made, &mut self.keys);
        let entry = self.entries.entry(*key).or_insert_with(|| {
            let id = FlowId(FIRST_NAME | *made);
            *made = made.wrapping_add(1) % FIRST_NAME;
            keys.insert(id, *key);
            Entry { id, first_seen_ns: state.first_seen_ns, bytes: [0; 2], round: 0 }
        });
        entry.round = self.round;
        if entry.first_seen_ns != state.first_seen_ns {
            // Pushed out and back again: it begins anew, without a plan.
            ap.on_gone(entry.id);
            (entry.first_seen_ns, entry.bytes) = (state.first_seen_ns, [0; 2]);
        }
        if silent < SLEEP {
            ap.on_udp(now, &UdpSample { flow: entry.id, station: stations.id(&key.station), state: *state });
        }
    }

    /// What passed of elastic flows counts as controllable.
    fn count(&mut self, ap: &Ap) {
        for flow in ap.udp_flows() {
            let Some(entry) = self.keys.get(&flow.flow).and_then(|key| self.entries.get_mut(key)) else { continue };
            let before = std::mem::replace(&mut entry.bytes[flow.direction.index()], flow.bytes);
            if flow.behaviour == Behaviour::Elastic {
                self.elastic_bytes += flow.bytes.saturating_sub(before);
            }
        }
    }

    /// The flow of that name, if it is still there.
    pub(super) fn key(&self, flow: FlowId) -> Option<FlowKey> {
        self.keys.get(&flow).copied()
    }

    /// IP bytes of elastic flows so far.
    pub(super) const fn elastic_bytes(&self) -> u64 {
        self.elastic_bytes
    }
}
