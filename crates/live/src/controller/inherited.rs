//! What a controller owes to the connections of the one before it: nobody stays held by a plan that nobody keeps.

use std::collections::BTreeSet;

use lasthop_core::ap::{DirectionSnapshot, QueuePlace};
use lasthop_core::fastpath::layout::{Control, FlowKey, FlowState, Half, Plan, UdpPlan};
use lasthop_core::packet::Direction;
use lasthop_core::units::{BitRate, Span, Time};

use super::Core;
use crate::clock::now;
use crate::handover::{Learned, Offer};

/// So long plans of the one before stand until there are own ones: twenty decisions, and no more than may be without control.
const STANDS: Span = Span::from_secs(1);

/// Directions of connections whose plan is of the controller before.
#[derive(Debug, Default)]
pub(super) struct Inherited {
    plans: BTreeSet<(FlowKey, Direction)>,
    until: Time,
}

impl Inherited {
    /// This one has a plan of its own.
    pub(super) fn replaced(&mut self, key: &FlowKey, direction: Direction) {
        if !self.plans.is_empty() {
            self.plans.remove(&(*key, direction));
        }
    }
}

/// Directions whose windows a plan holds.
fn held(state: &FlowState) -> impl Iterator<Item = Direction> {
    let holds = |plan: &Plan| plan.clamp_bytes != 0;
    Direction::BOTH.into_iter().filter(move |direction| holds(&state.half[direction.index()].plan))
}

impl Core {
    /// What this controller has to hand over: of a capacity that was given nothing.
    pub(super) fn offer(&self) -> Offer {
        let nothing = |direction: DirectionSnapshot| DirectionSnapshot { capacity: None, ..direction };
        let directions = self.ap.directions();
        self.offer_of(if self.capacity.is_none() { directions } else { directions.map(nothing) })
    }

    /// The same, of what is known of each direction.
    pub(super) fn offer_of(&self, directions: [DirectionSnapshot; 2]) -> Offer {
        let learned = directions.map(|direction| {
            let is_wan = direction.place == Some(QueuePlace::Wan);
            Some(Learned { bps: direction.capacity?.as_bps(), is_wan })
        });
        Offer { layout: lasthop_core::fastpath::layout::VERSION, flows: self.config.flows, learned }
    }

    /// Goes on with what another controller has handed over.
    pub(super) fn resume(&mut self, offer: &Offer) {
        if self.capacity.is_none() {
            for (direction, learned) in Direction::BOTH.into_iter().zip(offer.learned) {
                if let Some(Learned { bps, is_wan }) = learned {
                    self.ap.resume(direction, BitRate::bps(bps), is_wan);
                }
            }
        }
        self.inherited.until = now() + STANDS;
        let Ok(flows) = self.program.flows() else { return };
        for (key, state) in &flows {
            self.inherited.plans.extend(held(state).map(|direction| (*key, direction)));
            // What the thread before was asked, and this one was not: the next acknowledgment asks again.
            let asked = |half: &Half| half.flags & Half::ASKED != half.answered;
            if asked(&state.half[Direction::ToStation.index()])
                && let Ok(asks) = self.program.asks()
            {
                let _ = asks.released(key, Direction::ToStation);
            }
        }
        for (key, state) in self.program.udp_flows().unwrap_or_default() {
            for direction in
                Direction::BOTH.into_iter().filter(|way| state.half[way.index()].plan != UdpPlan::default())
            {
                let _ = self.program.set_udp_plan(&key, direction, UdpPlan::default());
            }
        }
    }

    /// Lets go whoever is still held by a plan of the controller before: there was no reason to hold it since.
    pub(super) fn let_inherited_go(&mut self, now: Time) {
        if self.inherited.plans.is_empty() || now < self.inherited.until {
            return;
        }
        let Control { default_plan, .. } = self.program.control().get();
        for (key, direction) in std::mem::take(&mut self.inherited.plans) {
            let _ = self.program.set_plan(&key, direction, default_plan[direction.index()]);
        }
    }
}
