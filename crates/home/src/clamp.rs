//! CLAMP in a home: the access point prices its queue, the receivers at the stations set their windows by it.
//!
//! The queue is all that the access point holds for stations, of every kind, the frame in service included, bytes. Its price
//! is that of the moment at which a data packet leaves for its station, and travels with it: since nothing lies between the
//! two in this home, the receiver looks it up when the packet arrives, and the packet carries nothing.
//!
//! Law and source: [`lasthop_core::clamp`].

use lasthop_core::clamp::{Clamp, ClampParams};
use lasthop_core::units::{BitRate, Time};

use crate::capacity;
use crate::scenario::{ClampControl as Wanted, Flow, HostId, Scenario};

/// See the module.
#[derive(Clone, Debug)]
pub struct ClampControl {
    params: ClampParams,
    capacity: BitRate,
    queued_bytes: u64,
    /// By flow of the scenario; those of TCP to a station have one.
    flows: Vec<Option<Clamp>>,
}

impl ClampControl {
    /// As the scenario wants it, with an empty queue.
    #[must_use]
    pub fn new(scenario: &Scenario, wanted: &Wanted) -> Self {
        let params = ClampParams::default();
        let clamp = |flow: &Flow| {
            let HostId::Station(_) = flow.to else { return None };
            let floor = 2 * flow.tcp()?.mss.0;
            Some(Clamp::new(ClampParams { floor, ..params }))
        };
        Self {
            params,
            capacity: capacity::rate(scenario, wanted.capacity),
            queued_bytes: 0,
            flows: scenario.flows.iter().map(clamp).collect(),
        }
    }

    /// The access point is given a packet for a station.
    pub fn on_queued(&mut self, bytes: u32) {
        self.queued_bytes += u64::from(bytes);
    }

    /// Such a packet has arrived or is lost.
    pub fn on_left(&mut self, bytes: u32) {
        self.queued_bytes -= u64::from(bytes);
    }

    /// A data packet of `flow` with so much new payload has arrived; the most its receiver may offer, bytes, where CLAMP
    /// has a say.
    pub fn on_segment(&mut self, now: Time, flow: usize, payload_bytes: u32) -> Option<u64> {
        let price = self.params.price(self.queued_bytes, self.capacity);
        self.flows[flow].as_mut().map(|clamp| clamp.on_segment(now, payload_bytes, price))
    }
}
