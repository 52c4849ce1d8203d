//! Advertised-window control: what a sender may have outstanding follows the plan.
//!
//! Symbols, in bytes or sequence numbers: `W` window in force, `E` promised right edge, `D` delivered (cumulative
//! ACK, or highest SACK edge above it), `n` newly delivered by this ACK, `S` what an ACK usually brings, `c` credit,
//! `T = max(clamp, floor)`, `G` growth, `R` pace, `dt` time since the ACK before, `s` scale, `raw` the window field,
//! `offered = raw << s`.
//!
//! ```text
//! start      W = min(T, max(G, floor, 14600, in flight))           the first ACK under a plan; c = B
//! begin      W = max(floor, min(W, E - D))                         likewise, where its SYN was seen: what that promised
//! grow       W = min(T, W + max(1, min(n, n G / W)))                G per round trip
//! shrink     W = T                                                  when T < W
//! earn       c = min(B, c + R dt)                                   B = max(G, 2 S, 2^(s+1)); then S += (n - S) / 8
//! edge       E' = later(E, min(D + W, E + c))                       never left; an ACK that brings nothing moves nothing
//! field      raw' = min(raw, max(1, ceil(floor / 2^s), min(E' - ack, offered) >> s))
//! promised   E = later(E, ack + (raw' << s)), and c pays for the way it went
//! ```
//!
//! Sources: SAP-LAW eq. (1) for the clamp; RFC 9293 section 3.8.6 (the edge does not move left); RFC 7323 sections
//! 2.3 and 2.4 (scaling; rounding may take back less than one quantum of 2^s); RFC 6928 (14,600 bytes to start with);
//! RFC 5681 section 2 (what a duplicate ACK is; one with another window is none, so nothing here changes the window
//! between two duplicates).
//!
//! Differs: the window grows additively towards the clamp instead of jumping there, so that slow start does not end
//! in a burst. It is counted from what is delivered rather than from the ACK, so that a hole with SACK keeps the
//! sender going and its end releases nothing at once. The edge is paced a little above what the hop carries, so that ACKs which
//! waited for the air together, or one that closes a hole without SACK, do not come back as a burst of data.
//!
//! Not done: nothing is ever raised; a sender that ignores windows is not held. A pause of the ACKs longer than
//! `B / R` leaves its rest to the ACKs that follow.

use super::Verdict;
use super::layout::{Half, Plan, Reason};
use super::seq;
use crate::units::Time;
use crate::wire::TcpFields;

/// Where a new window starts at least, unless the clamp is lower: what any sender may send at first (RFC 6928).
pub const INITIAL_WINDOW: u32 = 14_600;

/// No window can be larger (RFC 7323 section 2.3); also keeps edges within reach of sequence comparison.
const LARGEST_WINDOW: u32 = 1 << 30;

/// A pause of the ACKs that is longer earns no more, ns; also keeps the product with the pace within 64 bits.
const LONGEST_PAUSE_NS: u64 = 1 << PACE_SHIFT;

/// `pace_bytes` counts per 2^30 ns.
const PACE_SHIFT: u32 = 30;

/// What the controller is up to.
#[derive(Clone, Copy, Debug)]
pub struct Mode {
    /// Its heartbeat is too old.
    pub stale: bool,
    /// It decides and changes nothing.
    pub dry_run: bool,
}

/// The law, on an ACK with a known scale. `half` is the direction whose data it acknowledges.
pub fn clamp(half: &mut Half, tcp: &TcpFields, scale: u8, mode: Mode, now: Time) -> Verdict {
    let known = half.flags & Half::EDGE_KNOWN != 0;
    let seen = half.data_flags & Half::DATA_SEEN != 0;
    // Of data that nobody sent: its receiver will ignore the segment (RFC 9293 section 3.10.7.4), and so does the law.
    if seen && seq::after(tcp.ack, half.snd_nxt) {
        return Verdict::Pass(Reason::WithinPlan);
    }
    if !known {
        half.delivered = tcp.ack;
        half.edge = tcp.ack;
        half.window = 0;
        half.flags |= Half::EDGE_KNOWN;
    }
    let promised_first = half.edge.wrapping_sub(half.delivered);
    let newly = progress(half, tcp);
    serve(half, newly, now);
    let moves = newly > 0 || tcp.window != half.last_window;
    half.last_window = tcp.window;
    if tcp.window == 0 {
        return Verdict::Pass(Reason::ZeroWindow);
    }
    let offered = u32::from(tcp.window) << scale;
    let plan = half.plan;
    if mode.stale || plan.clamp_bytes == 0 {
        half.window = 0;
        half.edge = seq::later(half.edge, tcp.ack.wrapping_add(offered));
        return Verdict::Pass(if mode.stale { Reason::Stale } else { Reason::NoPlan });
    }
    earn(half, plan, newly, scale, now);
    adapt(half, plan, newly, known.then_some(promised_first));
    if !known {
        // What was promised before is not known; most likely it was this much.
        half.edge = tcp.ack.wrapping_add(offered);
        return Verdict::Pass(Reason::WithinPlan);
    }
    let promised = half.edge;
    let mut edge = seq::later(promised, tcp.ack);
    if moves {
        let step = seq::later(half.delivered.wrapping_add(half.window), edge).wrapping_sub(edge);
        edge = edge.wrapping_add(if plan.pace_bytes == 0 { step } else { step.min(half.credit) });
    }
    let allowed = edge.wrapping_sub(tcp.ack).min(offered) >> scale;
    let least = plan.floor_bytes.min(LARGEST_WINDOW).div_ceil(1 << scale).max(1);
    let window = allowed.max(least).min(u32::from(tcp.window));
    let lower = window < u32::from(tcp.window);
    let let_through = if mode.dry_run { offered } else { window << scale };
    half.edge = seq::later(promised, tcp.ack.wrapping_add(let_through));
    half.credit = half.credit.saturating_sub(half.edge.wrapping_sub(promised));
    match (lower, mode.dry_run) {
        (false, _) => Verdict::Pass(Reason::WithinPlan),
        (true, true) => Verdict::Pass(Reason::WouldRewrite),
        (true, false) => {
            half.rewritten = half.rewritten.wrapping_add(1);
            Verdict::Rewrite { window: window as u16 }
        }
    }
}

/// Moves `delivered`; what this ACK brought, bytes.
fn progress(half: &mut Half, tcp: &TcpFields) -> u32 {
    let seen = half.data_flags & Half::DATA_SEEN != 0;
    let mut delivered = seq::later(tcp.ack, half.delivered);
    if let Some(edge) = tcp.sack_high.filter(|edge| seen && !seq::after(*edge, half.snd_nxt)) {
        delivered = seq::later(edge, delivered);
    }
    let newly = delivered.wrapping_sub(half.delivered);
    half.delivered = delivered;
    newly
}

/// Counts what arrived, and in what time, while more had been under way since the ACK before: the hop worked on this flow
/// all the time, so what arrived is what the hop gives it.
fn serve(half: &mut Half, newly: u32, now: Time) {
    if newly == 0 {
        return;
    }
    let now_ns = now.as_nanos();
    if half.waiting > newly {
        half.served_ns = half.served_ns.wrapping_add(now_ns.saturating_sub(half.acked_ns));
        half.served_bytes = half.served_bytes.wrapping_add(newly);
    }
    half.acked_ns = now_ns;
    half.waiting = in_flight(half);
}

/// Tops up the credit of the edge.
fn earn(half: &mut Half, plan: Plan, newly: u32, scale: u8, now: Time) {
    let now_ns = now.as_nanos();
    let bound = plan.growth_bytes.max(half.stretch.saturating_mul(2)).max(2 << scale);
    if half.window == 0 {
        half.credit = bound;
    } else {
        let pause_ns = now_ns.saturating_sub(half.paced_ns).min(LONGEST_PAUSE_NS);
        let earned = ((u64::from(plan.pace_bytes) * pause_ns) >> PACE_SHIFT) as u32;
        half.credit = half.credit.saturating_add(earned).min(bound);
    }
    half.paced_ns = now_ns;
    half.stretch = half.stretch - half.stretch / 8 + newly / 8;
}

/// Moves the window in force.
fn adapt(half: &mut Half, plan: Plan, newly: u32, promised: Option<u32>) {
    let floor = plan.floor_bytes.min(LARGEST_WINDOW);
    let growth = plan.growth_bytes.min(LARGEST_WINDOW);
    let target = plan.clamp_bytes.max(floor).min(LARGEST_WINDOW);
    if half.window == 0 {
        half.window = in_flight(half).max(growth).max(floor).max(INITIAL_WINDOW);
        if let Some(promised) = promised.filter(|_| half.flags & Half::SYN_SEEN != 0) {
            // Of a connection that begins: what its SYN promised is what it has.
            half.window = half.window.min(promised).max(floor);
        }
    } else if newly > 0 {
        let share = u64::from(newly) * u64::from(growth) / u64::from(half.window);
        let step = share.min(u64::from(newly)).max(1) as u32;
        half.window = half.window.saturating_add(step);
    }
    half.window = half.window.min(target);
}

/// What is under way; 0 when no data was seen.
fn in_flight(half: &Half) -> u32 {
    let outstanding = half.data_flags & Half::DATA_SEEN != 0 && seq::after(half.snd_nxt, half.delivered);
    if outstanding { half.snd_nxt.wrapping_sub(half.delivered) } else { 0 }
}
