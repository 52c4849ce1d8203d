//! Exact SAP-LAW mode, eq. (1), for the papers: `ShareRule::Equal`.
//!
//! ```text
//! share  = (C - UDP) / n                      [bit/s]     C: given; UDP: its filtered rate; n: TCP flows that send
//! window = share x base_rtt x payload_share   [bytes]     in force from the next ACK on: no growth in steps, no pace
//! ```
//!
//! Source: SAP-LAW section 3.2 and eq. (1). A new connection has the window of one flow more, over 200 ms where round
//! trips are measured. UDP is all real-time, nothing is learned, and no queue is looked at.

use super::decide::{FIRST_RTT, PAYLOAD};
use super::record::{self, FlowRecord};
use super::window;
use super::{Action, Ap, Direction, RttSource, set_plan};
use crate::fastpath::layout::Plan;
use crate::units::{BitRate, Span, Time};

/// How often shares are computed, as in the paper.
pub(super) const INTERVAL: Span = Span::from_millis(200);
/// Least window: two segments keep delayed ACKs going, a third covers the one that is lost.
const FLOOR_SEGMENTS: u32 = 3;
/// The share of each of `flows`; nothing for no flows.
fn share(capacity: BitRate, udp: BitRate, flows: u64) -> BitRate {
    BitRate::bps(capacity.saturating_sub(udp).as_bps().checked_div(flows).unwrap_or(0))
}

fn window(share: BitRate, base_rtt: Span, (payload_share, mss): (f64, u32)) -> Plan {
    let floor_bytes = mss.saturating_mul(FLOOR_SEGMENTS);
    let clamp = share.mul_f64(payload_share).bytes_in(base_rtt);
    let clamp_bytes = window::saturate(clamp).max(floor_bytes).max(1);
    Plan { clamp_bytes, floor_bytes, growth_bytes: clamp_bytes, pace_bytes: 0 }
}

impl Ap {
    /// Closes an interval.
    pub(super) fn share_equally(&mut self, now: Time) {
        for record in self.flows.values_mut() {
            record.age(now, self.left_alone.windows.has(record.station()));
        }
        let (params, capacity, udp) = (self.params, self.params.capacity.unwrap_or_default(), self.udp.smooth());
        let active = self.flows.values().filter(|record| record.is_active()).count() as u64;
        let share = share(capacity, udp, active.max(1));
        // A minimum round trip to the station above this is a queue.
        let few = capacity.time_for(1500 * params.law.queue_packets as u64);
        let bound = Span::from_secs_f64(params.law.queue_target).max(few);
        let plan = |record: &FlowRecord| Some(window(share, record.base_rtt(&params, bound)?, record.payload()?));
        for (key, record) in &mut self.flows {
            let plan = match record.is_left_alone() {
                true => record.leave_alone(),
                // Without a round trip the plan that the flow began with stays.
                false => plan(record).and_then(|plan| record.give(share, plan)),
            };
            self.actions.extend(plan.map(|plan| set_plan(*key, plan)));
        }
        self.begin_equally(active + 1);
    }

    /// What new connections begin with, where so many share.
    pub(super) fn begin_equally(&mut self, flows: u64) {
        let base_rtt = match self.params.rtt {
            RttSource::Constant(rtt) => rtt,
            RttSource::Measured => FIRST_RTT,
        };
        let share = share(self.params.capacity.unwrap_or_default(), self.udp.smooth(), flows);
        let plan = match self.left_alone.windows.all {
            true => Plan::default(),
            false => window(share, base_rtt, (PAYLOAD, 1448)),
        };
        if record::differs(&self.default_plans[0], &plan) {
            self.default_plans = [plan; 2];
            self.actions.extend(Direction::BOTH.map(|direction| Action::SetDefault { direction, plan }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_udp_leaves_in_equal_parts() {
        assert_eq!(share(BitRate::mbps(18), BitRate::mbps(2), 4), BitRate::mbps(4));
        assert_eq!(share(BitRate::mbps(2), BitRate::mbps(18), 4), BitRate::ZERO);
        assert_eq!(share(BitRate::mbps(18), BitRate::ZERO, 0), BitRate::ZERO);
    }

    #[test]
    fn the_papers_home_gets_the_papers_window() {
        // SAP-LAW figure 9: C = 18 Mbit/s less 0.28 + 0.032 + 0.0056 + 0.124 Mbit/s of UDP, RTT 81.5 ms: 119 packets.
        let share = share(BitRate::mbps(18), BitRate::bps(441_600), 1);
        let plan = window(share, Span::from_micros(81_500), (1460.0 / 1500.0, 1460));
        assert_eq!(plan.clamp_bytes / 1460, 119);
        assert_eq!((plan.growth_bytes, plan.pace_bytes), (plan.clamp_bytes, 0));
    }

    #[test]
    fn a_share_of_nothing_is_three_segments() {
        let plan = window(BitRate::ZERO, Span::from_millis(80), (0.97, 1448));
        assert_eq!((plan.clamp_bytes, plan.floor_bytes), (3 * 1448, 3 * 1448));
    }
}
