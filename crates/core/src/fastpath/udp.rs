//! UDP, per packet: what tells bulk from frames is measured, and a flow that has a plan is held to it.
//!
//! **Measured**, per direction: bytes, full packets, and the rhythm. A gap of [`PAUSE_NS`] or more ends a train; the
//! distance `d` between the beginnings of two trains is regular when it is near their running mean `p`:
//!
//! ```text
//! regular    |d - p| <= p / 4;   then p += (d - p) / 4        distances up to 2^27 ns (134 ms)                 [ns]
//! ```
//!
//! **Held**, by a virtual queue that nothing waits in: `V` is what passed beyond the planned rate `R`, `D` the depth, `M` the most, `A` the time
//! in which an answer comes, `b` the packet, `dt` the time since the packet before:
//!
//! ```text
//! drain      V = max(V - R dt, 0)                                                                              [bytes]
//! next       N = max(D, V + D/2)          for A after it was told;          else N = max(D, min(N, V + D/2))
//! stop       drop                         when V >= M
//! tell       mark where the ends understand it, else drop; N = V + D/2          when V >= N
//! pass       otherwise
//! then       V += b                       unless dropped
//! ```
//!
//! Why so. A flow below its rate keeps `V` under `D` and is never touched. One that creeps over it is told once, and
//! again only when its answer should have come and it has run a further `D/2` ahead: a sender lowers its window once per round trip
//! whatever it loses, so more would only cost it more packets; and behind a bottleneck that has a queue its packets come at the
//! rate of that until the queue is gone, whatever it answers. One that does not listen, or doubles (slow start), meets `M`, beyond
//! which nothing passes that the rate does not carry, marks or not: so what all this lets through ahead of the rate is
//! bounded, that and one packet.
//!
//! Sources: AVQ (Kunniyur and Srikant 2001) for a virtual queue that decides on marks; RFC 3168 for marks; RFC 9002 section 7 for what a
//! QUIC sender makes of them, once per round trip. Differs: told by steps of the queue
//! rather than by a probability, so that the same packets give the same answers in Rust and in C; nothing in it is random.
//!
//! Not done: the flow's round trip is not known here, and packets are not delayed.

use super::layout::{Control, Reason, UdpHalf, UdpPlan, UdpState};
use crate::packet::Direction;
use crate::units::{Span, Time};
use crate::wire::{UdpFields, ecn};

/// A packet of at least this is full, IP bytes: QUIC never sends less where it has more to send (RFC 9000 section 14.1
/// with the headers of IPv4 is 1228), tunnels neither; a flow that never sends one is not kept at all.
pub const FULL_BYTES: u32 = 1200;
/// A gap that ends a train, ns. Between two frames of a video at 60 per second, sent at 5/2 of its rate, lie 10 ms.
pub const PAUSE_NS: u64 = 5_000_000;
/// Trains further apart have no rhythm: 7 frames per second, ns.
const LONGEST_PERIOD_NS: u64 = 1 << 27;
/// A longer gap drains no more, ns; keeps the product with the rate within 64 bits.
const LONGEST_GAP_NS: u64 = 1 << RATE_SHIFT;
/// `rate_bytes` counts per 2^30 ns.
const RATE_SHIFT: u32 = 30;
/// Plans beyond are taken as this, bytes: keeps the virtual queue within its field.
const LARGEST_DEPTH: u32 = 1 << 27;

/// What is seen of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// IP bytes on the wire.
    pub ip_bytes: u32,
    /// Packets on the wire.
    pub segments: u32,
    /// Its ends understand marks (ECT or CE).
    pub understands_marks: bool,
    /// It has the long header of QUIC.
    pub quic: bool,
}

/// What to do with a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UdpVerdict {
    /// Leave it as it is.
    Pass(Reason),
    /// Set CE ([`ecn::set_ce`]).
    Mark,
    /// Throw it away.
    Drop,
}

impl UdpVerdict {
    /// The reason that counts this verdict.
    #[must_use]
    pub const fn reason(self) -> Reason {
        match self {
            Self::Pass(reason) => reason,
            Self::Mark => Reason::UdpMarked,
            Self::Drop => Reason::UdpDropped,
        }
    }
}

impl Datagram {
    /// Of a parsed frame.
    #[must_use]
    pub const fn of(udp: &UdpFields) -> Self {
        let understands_marks = udp.ecn != ecn::NOT_ECT;
        Self { ip_bytes: udp.ip_bytes, segments: udp.segments, understands_marks, quic: udp.quic }
    }

    /// Whether it is full: only such a packet opens a flow, so that games, calls and name servers never take a place.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.ip_bytes as u64 >= FULL_BYTES as u64 * self.segments as u64
    }
}

/// The flow that a full packet opens.
#[must_use]
pub fn open(datagram: &Datagram, now: Time) -> UdpState {
    UdpState { quic: u32::from(datagram.quic), ..UdpState::new(now) }
}

/// Measures a datagram that crosses the access point in `direction`, and decides on it.
pub fn on_datagram(
    state: &mut UdpState,
    control: &Control,
    direction: Direction,
    datagram: &Datagram,
    now: Time,
) -> UdpVerdict {
    state.last_seen_ns = now.as_nanos();
    let half = &mut state.half[direction.index()];
    measure(half, datagram, now);
    let stale = now.since(Time::from_nanos(control.heartbeat_ns)) > Span::from_nanos(Control::STALE_NS);
    let verdict = decide(half, datagram, stale, control.dry_run != 0, now);
    half.last_ns = now.as_nanos();
    verdict
}

fn measure(half: &mut UdpHalf, datagram: &Datagram, now: Time) {
    half.bytes = half.bytes.wrapping_add(u64::from(datagram.ip_bytes));
    half.packets = half.packets.wrapping_add(u64::from(datagram.segments));
    if datagram.is_full() {
        half.full_bytes = half.full_bytes.wrapping_add(u64::from(datagram.ip_bytes));
    }
    let now_ns = now.as_nanos();
    let gap_ns = now_ns.saturating_sub(half.last_ns);
    if half.last_ns == 0 {
        half.train_ns = now_ns;
    } else if gap_ns >= PAUSE_NS {
        half.pause_ns = half.pause_ns.wrapping_add(gap_ns.min(LONGEST_GAP_NS));
        begin_train(half, now_ns);
    }
}

fn begin_train(half: &mut UdpHalf, now_ns: u64) {
    let distance_ns = now_ns.saturating_sub(half.train_ns);
    half.train_ns = now_ns;
    half.trains = half.trains.wrapping_add(1);
    if distance_ns > LONGEST_PERIOD_NS {
        return;
    }
    // Below 2^27, as is the mean of such.
    let (distance, period) = (distance_ns as u32, half.period_ns);
    if period == 0 {
        half.period_ns = distance;
        return;
    }
    let off = distance.abs_diff(period);
    if off <= period / 4 {
        half.regular = half.regular.wrapping_add(1);
    }
    half.period_ns = if distance > period { period + off / 4 } else { period - off / 4 };
}

fn decide(half: &mut UdpHalf, datagram: &Datagram, stale: bool, dry_run: bool, now: Time) -> UdpVerdict {
    let UdpPlan { rate_bytes, depth_bytes, most_bytes, answer_ns } = half.plan;
    if stale || rate_bytes == 0 {
        half.drained_ns = 0;
        return UdpVerdict::Pass(if rate_bytes == 0 { Reason::Udp } else { Reason::Stale });
    }
    let depth = depth_bytes.clamp(1, LARGEST_DEPTH);
    drain(half, rate_bytes, now);
    let ahead = half.level_bytes + depth / 2;
    let since_told = now.since(Time::from_nanos(half.told_ns));
    let answers = half.told_ns != 0 && since_told < Span::from_nanos(u64::from(answer_ns));
    half.next_bytes = if answers { ahead } else { half.next_bytes.min(ahead) }.max(depth);
    let stop = half.level_bytes >= most_bytes.clamp(1, LARGEST_DEPTH);
    let signal = stop || half.level_bytes >= half.next_bytes;
    if signal && !stop {
        half.told_ns = now.as_nanos();
        half.next_bytes = ahead;
    }
    let mark = signal && !stop && datagram.understands_marks;
    // A dry run does not add what it would have dropped either: so it ends when its flow slows down.
    if !signal || mark {
        half.level_bytes += datagram.ip_bytes.min(LARGEST_DEPTH);
    }
    match (signal, dry_run) {
        (false, _) => UdpVerdict::Pass(Reason::UdpWithinPlan),
        (true, true) => UdpVerdict::Pass(Reason::UdpWouldSteer),
        (true, false) if mark => {
            half.marked = half.marked.wrapping_add(datagram.segments);
            UdpVerdict::Mark
        }
        (true, false) => {
            half.dropped = half.dropped.wrapping_add(datagram.segments);
            half.dropped_bytes = half.dropped_bytes.wrapping_add(u64::from(datagram.ip_bytes));
            UdpVerdict::Drop
        }
    }
}

/// What the plan's rate carried since the packet before.
fn drain(half: &mut UdpHalf, rate_bytes: u32, now: Time) {
    let now_ns = now.as_nanos();
    if half.drained_ns == 0 {
        (half.level_bytes, half.next_bytes, half.told_ns) = (0, 0, 0);
    } else {
        let gap_ns = now_ns.saturating_sub(half.drained_ns).min(LONGEST_GAP_NS);
        let drained = (u64::from(rate_bytes) * gap_ns) >> RATE_SHIFT;
        half.level_bytes = u64::from(half.level_bytes).saturating_sub(drained) as u32;
    }
    half.drained_ns = now_ns.max(1);
}
