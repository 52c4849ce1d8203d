//! CLAMP at the access point of the simulated home ([`lasthop_home::clamp`]): the price of the queue reaches the receivers at
//! the stations with the data that arrive.

use lasthop_core::packet::{Direction, Packet as _};
use lasthop_core::units::Time;
use lasthop_home::clamp::ClampControl;
use lasthop_home::scenario::{ClampControl as Wanted, Scenario};

use super::{Context, Stage, StageVerdict};
use crate::flows::Flows;
use crate::packet::SimPacket;

/// See the module.
pub struct Clamp(ClampControl);

impl Clamp {
    /// As the scenario wants it.
    pub fn new(scenario: &Scenario, wanted: &Wanted) -> Self {
        Self(ClampControl::new(scenario, wanted))
    }
}

impl Stage for Clamp {
    fn follows(&self) -> bool {
        true
    }

    fn on_packet(
        &mut self,
        _: Time,
        direction: Direction,
        packet: &mut SimPacket,
        _: &mut Context<'_>,
    ) -> StageVerdict {
        if direction == Direction::ToStation {
            self.0.on_queued(packet.bytes());
        }
        StageVerdict::Forward
    }

    fn on_left(&mut self, _: Time, packet: &SimPacket) {
        self.0.on_left(packet.bytes());
    }

    fn on_segment(&mut self, now: Time, flow: usize, fresh: u32, flows: &mut Flows) -> Option<usize> {
        let limit = self.0.on_segment(now, flow, fresh)?;
        flows.connection(flow)?.receiver.set_limit(Some(limit));
        None
    }
}
