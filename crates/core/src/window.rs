//! From a share of the last hop to what the per-packet half needs: no TCP flow may queue at the last hop.
//!
//! `clamp = share x base_rtt x payload_share x trim`   [bytes] = [bytes/s] x [s] x [1] x [1]
//! `growth = share x growth_time`                       [bytes] per round trip
//! `pace = pace_gain x hop`                             [bytes/s]
//!
//! `base_rtt` is the round trip without queueing; `payload_share` = MSS / (MSS + headers), because shares count IP
//! bytes and windows payload. Source: SAP-LAW section 3.2.
//! Ours: growth. Whatever a window gains within one round trip arrives on top of what the hop carries, so the queue
//! that growth builds is at most the growth itself: `growth_time` is that queue in time.

use crate::fastpath::layout::Plan;
use crate::fastpath::window::INITIAL_WINDOW;
use crate::units::{BitRate, Span};

/// `Plan::pace_bytes` counts per 2^30 ns.
const PACE_SPAN: Span = Span::from_nanos(1 << 30);

/// Time of the hop that connections which begin in one moment may take.
const START_TIME: Span = Span::from_millis(12);
/// Part of the room that they may have.
const START_RATE: f64 = 1.0;
/// Where nothing is known windows grow to so many times what they were in a round trip.
pub const UNKNOWN_GROWTH: f64 = 1.5;
/// Room of a hop that nothing is known of.
const UNKNOWN: BitRate = BitRate::mbps(100);

/// What bounds every window, whatever the share.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// A window never falls below this many segments: two keep delayed ACKs going (RFC 9293 section 3.8.6.3), a third
    /// covers the one that is lost.
    pub floor_segments: u32,
    /// Queue that the growth of all windows together may build at the last hop.
    pub growth_time: Span,
    /// On a long path as a part of the round trip: what queues is gone long before the next growth comes.
    pub growth_part: f64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { floor_segments: 3, growth_time: Span::from_millis(5), growth_part: 0.0 }
    }
}

/// What is known of the flow.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// What it may use, in IP bits per second.
    pub share: BitRate,
    /// What each flow would have if all wanted the same; growth goes by it where the share is less, so that a flow that
    /// has little may come to more. Zero: by the share alone.
    pub fair: BitRate,
    /// What the hop carries of TCP altogether, in IP bits per second.
    pub hop: BitRate,
    /// Its round trip without queueing.
    pub base_rtt: Span,
    /// Payload / IP bytes of full segments, 0..=1.
    pub payload_share: f64,
    /// Correction of the window from what was achieved, about 1.
    pub trim: f64,
    /// How much faster than `hop` its promised edge may advance, above 1.
    pub pace_gain: f64,
    /// Largest payload of a segment, bytes.
    pub mss: u32,
}

/// The plan that holds `flow` to its share.
#[must_use]
pub fn plan(flow: &Flow, bounds: &Bounds) -> Plan {
    let payload_rate = flow.share.mul_f64(flow.payload_share);
    let clamp = payload_rate.mul_f64(flow.trim).bytes_in(flow.base_rtt);
    let growth = flow
        .share
        .max(flow.fair)
        .mul_f64(flow.payload_share)
        .bytes_in(bounds.growth_time.max(flow.base_rtt.mul_f64(bounds.growth_part)));
    let pace = flow.hop.mul_f64(flow.payload_share * flow.pace_gain);
    let floor_bytes = flow.mss.saturating_mul(bounds.floor_segments);
    Plan {
        clamp_bytes: saturate(clamp).max(floor_bytes).max(1),
        floor_bytes,
        growth_bytes: saturate(growth).max(flow.mss.saturating_mul(2)),
        pace_bytes: u32::try_from(pace.bytes_in(PACE_SPAN)).unwrap_or(u32::MAX).max(1),
    }
}

/// How far a window, bytes, may grow in a round trip before anything is known of a hop, of one of `flows`: by half more, and ten
/// packets at least, of all flows together; `part`: of a round trip, where it is shorter than an interval.
#[must_use]
pub fn unknown(window: u32, flows: u32, part: f64) -> u32 {
    let growth = f64::from(window) * (UNKNOWN_GROWTH - 1.0);
    (growth.max(f64::from(INITIAL_WINDOW / flows.max(1))) * part.clamp(0.0, 1.0)) as u32 + 1
}

/// What a connection starts with at a hop that nothing is known of: what it may send at first, and no more until the
/// first train has shown something.
#[must_use]
pub const fn first() -> Plan {
    Plan { clamp_bytes: (1 << 30) - 1, floor_bytes: 3 * 1448, growth_bytes: 1, pace_bytes: 0 }
}

/// What the connections that begin may promise at once, bytes, and what comes back of it in 2^30 ns, bytes, where the hop has
/// `room`.
#[must_use]
pub fn start(room: Option<BitRate>) -> (u32, u32) {
    let room = room.unwrap_or(UNKNOWN);
    let least = 2 * 3 * 1448;
    let depth = saturate(room.bytes_in(START_TIME)).clamp(least, INITIAL_WINDOW * 2);
    (depth, saturate(room.mul_f64(START_RATE).bytes_in(PACE_SPAN)))
}

/// How far a window may grow in a round trip that is still below its `plan`: to twice what it is, as in slow start.
#[must_use]
pub fn growing(plan: Plan, window: u32) -> Plan {
    let room = plan.clamp_bytes.saturating_sub(window);
    Plan { growth_bytes: plan.growth_bytes.max(window.min(room)), ..plan }
}

/// The same window without our growth and pace, as eq. (1) to the letter has it: in force from the next ACK on.
#[must_use]
pub const fn at_once(plan: Plan) -> Plan {
    Plan { growth_bytes: plan.clamp_bytes, pace_bytes: 0, ..plan }
}

/// Windows end at 2^30 - 1 (RFC 7323 section 2.3).
fn saturate(bytes: u64) -> u32 {
    bytes.min((1 << 30) - 1) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_home_gets_the_papers_window() {
        // SAP-LAW figure 9: C = 18 Mbit/s less 0.28 + 0.032 + 0.0056 + 0.124 Mbit/s of UDP, RTT 81.5 ms: 119 packets.
        let flow = Flow {
            share: BitRate::bps(18_000_000 - 441_600),
            fair: BitRate::ZERO,
            hop: BitRate::bps(18_000_000 - 441_600),
            base_rtt: "81.5ms".parse().unwrap(),
            payload_share: 1460.0 / 1500.0,
            trim: 1.0,
            pace_gain: 1.1,
            mss: 1460,
        };
        let plan = plan(&flow, &Bounds::default());
        assert_eq!(plan.clamp_bytes / 1460, 119);
        assert_eq!(plan.growth_bytes, 10_681);
    }

    #[test]
    fn a_flow_among_others_is_paced_by_the_hop_and_not_by_its_share() {
        let alone = Flow {
            share: BitRate::mbps(20),
            fair: BitRate::ZERO,
            hop: BitRate::mbps(20),
            base_rtt: Span::from_millis(80),
            payload_share: 1.0,
            trim: 1.0,
            pace_gain: 1.1,
            mss: 1448,
        };
        let among_ten = Flow { share: BitRate::mbps(2), ..alone };
        let pace = |flow| plan(flow, &Bounds::default()).pace_bytes;
        assert_eq!(pace(&alone), pace(&among_ten));
        // 22 Mbit/s are 2.75 MB/s, and 2^30 ns are 1.0737 s.
        assert_eq!(pace(&alone), 2_952_790);
    }

    #[test]
    fn a_tiny_share_still_has_the_floor_and_a_huge_one_ends_at_the_largest_window() {
        let mut flow = Flow {
            share: BitRate::bps(1000),
            fair: BitRate::ZERO,
            hop: BitRate::mbps(20),
            base_rtt: Span::from_millis(10),
            payload_share: 0.97,
            trim: 1.0,
            pace_gain: 1.1,
            mss: 1448,
        };
        assert_eq!(plan(&flow, &Bounds::default()).clamp_bytes, 3 * 1448);
        flow.share = BitRate::mbps(1_000_000);
        flow.base_rtt = Span::from_secs(10);
        assert_eq!(plan(&flow, &Bounds::default()).clamp_bytes, (1 << 30) - 1);
    }
}
