//! From a share of the last hop to what the per-packet half needs: no TCP flow may queue at the last hop.
//!
//! ```text
//! clamp = share x base_rtt x payload_share             [bytes] = [bytes/s] x [s] x [1]; a segment more where pace < share
//! growth = share x growth_time                         [bytes] per round trip
//! ```
//!
//! `base_rtt` is the round trip without queueing; `payload_share` = MSS / (MSS + headers), because shares count IP
//! bytes and windows payload. Source: SAP-LAW section 3.2.
//! Ours: growth. Whatever a window gains within one round trip arrives on top of what the hop carries, so the queue
//! that growth builds is at most the growth itself: `growth_time` is that queue in time.

use super::Law;
use crate::fastpath::layout::Plan;
use crate::fastpath::window::INITIAL_WINDOW;
use crate::units::{BitRate, Span};

/// A window never falls below so many segments: two keep delayed ACKs going (RFC 9293 section 3.8.6.3).
const FLOOR_SEGMENTS: u32 = 2;

/// `Plan::pace_bytes` counts per 2^30 ns.
const PACE_SPAN: Span = Span::from_nanos(1 << 30);

/// Time of the hop that connections which begin in one moment may take.
const START_TIME: Span = Span::from_millis(12);
/// Where nothing is known windows grow to so many times what they were in a round trip: as slow start does whose ACKs are for two
/// segments (RFC 3465 section 1). Beyond it an upload fills a slow WAN link before anything came back (`slow_lines` of the simulator).
pub const UNKNOWN_GROWTH: f64 = 1.5;
/// Room of a hop that nothing is known of.
const UNKNOWN: BitRate = BitRate::mbps(100);

/// What is known of the flow.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// What it may use, in IP bits per second.
    pub share: BitRate,
    /// What each flow would have if all wanted the same; growth goes by it where the share is less, so that a flow that
    /// has little may come to more. Zero: by the share alone.
    pub fair: BitRate,
    /// What its right edge may bring, in IP bits per second.
    pub pace: BitRate,
    /// Its round trip without queueing.
    pub base_rtt: Span,
    /// Payload / IP bytes of full segments, 0..=1.
    pub payload_share: f64,
    /// Largest payload of a segment, bytes.
    pub mss: u32,
}

/// The plan that holds `flow` to its share.
#[must_use]
pub fn plan(flow: &Flow, law: &Law) -> Plan {
    // Where the pace is to hold it, what an update keeps back must not.
    let kept_back = if flow.pace < flow.share { u64::from(flow.mss) } else { 0 };
    let clamp = flow.share.mul_f64(flow.payload_share).bytes_in(flow.base_rtt) + kept_back;
    let growth_time = Span::from_secs_f64(law.growth_time).max(flow.base_rtt.mul_f64(law.growth_part));
    let growth = flow.share.max(flow.fair).mul_f64(flow.payload_share).bytes_in(growth_time);
    let pace = flow.pace.mul_f64(flow.payload_share);
    let floor_bytes = flow.mss.saturating_mul(FLOOR_SEGMENTS);
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

/// `plan` with a part of a segment of `mss` more, by a `phase` of 0..1. A sender sends whole segments (RFC 9293 section 3.8.6.2.1): many
/// flows with equal windows of 2.7 segments would all send two, and three in the same moment when R has risen so far. With phases
/// spread evenly seven of ten send three, and what they send together follows R (dither, Roberts 1962).
#[must_use]
pub fn dithered(plan: Plan, mss: u32, phase: f64) -> Plan {
    let part = (f64::from(mss) * phase) as u64;
    Plan { clamp_bytes: saturate(u64::from(plan.clamp_bytes) + part), ..plan }
}

/// What a connection starts with at a hop that nothing is known of: what it may send at first, and no more until the
/// first train has shown something.
#[must_use]
pub const fn first() -> Plan {
    Plan { clamp_bytes: Plan::UNLIMITED, floor_bytes: 3 * 1448, growth_bytes: 1, pace_bytes: 0 }
}

/// What the connections that begin may advertise at once, bytes, and what comes back of it in 2^30 ns, bytes, where the hop has
/// `room`.
#[must_use]
pub fn start(room: Option<BitRate>) -> (u32, u32) {
    let room = room.unwrap_or(UNKNOWN);
    let least = 2 * 3 * 1448;
    let depth = saturate(room.bytes_in(START_TIME)).clamp(least, INITIAL_WINDOW * 2);
    (depth, saturate(room.bytes_in(PACE_SPAN)))
}

/// How far a window may grow in a round trip that is still below its `plan`: to twice what it is, as in slow start.
#[must_use]
pub fn growing(plan: Plan, window: u32) -> Plan {
    let room = plan.clamp_bytes.saturating_sub(window);
    Plan { growth_bytes: plan.growth_bytes.max(window.min(room)), ..plan }
}

/// Windows end at 2^30 - 1 (RFC 7323 section 2.3).
pub(crate) fn saturate(bytes: u64) -> u32 {
    bytes.min((1 << 30) - 1) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: Flow = Flow {
        share: BitRate::mbps(20),
        fair: BitRate::ZERO,
        pace: BitRate::mbps(22),
        base_rtt: Span::from_millis(80),
        payload_share: 1.0,
        mss: 1448,
    };

    #[test]
    fn a_pace_counts_payload_and_where_it_holds_the_window_is_a_segment_wider() {
        let plan = |flow| plan(&flow, &Law::default());
        let alone = plan(Flow { payload_share: 0.9, ..ALONE });
        // 22 Mbit/s are 2.75 MB/s, and 2^30 ns are 1.0737 s.
        assert_eq!((alone.pace_bytes, alone.clamp_bytes), (2_657_511, 180_000));
        let paced = plan(Flow { payload_share: 0.9, pace: BitRate::mbps(19), ..ALONE });
        assert_eq!(paced.clamp_bytes, 181_448);
    }

    #[test]
    fn growth_is_a_part_of_a_long_round_trip_and_a_time_on_a_short_one() {
        let growth = |flow: Flow| plan(&flow, &Law::default()).growth_bytes;
        assert_eq!(growth(ALONE), 16_666, "a twelfth of 80 ms at 2.5 MB/s");
        assert_eq!(growth(Flow { base_rtt: Span::from_millis(10), ..ALONE }), 12_500, "5 ms");
    }

    #[test]
    fn a_tiny_share_still_has_the_floor_and_a_huge_one_ends_at_the_largest_window() {
        let clamp = |flow: Flow| plan(&flow, &Law::default()).clamp_bytes;
        let short = Span::from_millis(10);
        assert_eq!(clamp(Flow { share: BitRate::bps(1000), base_rtt: short, ..ALONE }), 2 * 1448);
        let huge = BitRate::mbps(1_000_000);
        assert_eq!(clamp(Flow { share: huge, base_rtt: Span::from_secs(10), ..ALONE }), (1 << 30) - 1);
    }
}
