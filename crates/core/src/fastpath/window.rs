//! Advertised-window control: what a sender may have outstanding follows the plan.
//!
//! Symbols, in bytes or sequence numbers: `W` window in force, `E` promised right edge, `D` delivered (cumulative
//! ACK, or highest SACK edge above it), `n` newly delivered by this ACK, `T = max(clamp, floor)`, `G` growth,
//! `s` scale, `raw` the window field, `offered = raw << s`.
//!
//! ```text
//! start      W = min(T, max(G, floor, 14600, in flight))           the first ACK under a plan
//! grow       W = min(T, W + max(1, min(n, n G / W)))                G per round trip
//! shrink     W = T                                                  when T < W
//! release    W = max(floor, min(W, G))                              an ACK with n > G that ends >= 3 duplicates
//! edge       E' = later(D + W, E)                                   never left
//! field      raw' = min(raw, max(1, ceil(floor / 2^s), min(E' - ack, offered) >> s))
//! promised   E = later(E, ack + (raw' << s))
//! ```
//!
//! Sources: SAP-LAW eq. (1) for the clamp; RFC 9293 section 3.8.6 (the edge does not move left); RFC 7323 sections
//! 2.3 and 2.4 (scaling; rounding may take back less than one quantum of 2^s); RFC 6928 (14,600 bytes to start with);
//! RFC 5681 section 2 (what a duplicate ACK is; one with another window is none, so nothing here changes the window
//! between two duplicates).
//!
//! Differs: the window grows additively towards the clamp instead of jumping there, so that slow start does not end
//! in a burst; it is counted from what is delivered rather than from the ACK, so that a hole with SACK keeps the
//! sender going and its end releases nothing at once.
//!
//! Not done: nothing is ever raised; a sender that ignores windows is not held.

use super::Verdict;
use super::layout::{Half, Plan, Reason};
use super::seq;
use crate::wire::{TcpFields, flag};

/// Where a new window starts at least, unless the clamp is lower: what any sender may send at first (RFC 6928).
pub const INITIAL_WINDOW: u32 = 14_600;

/// No window can be larger (RFC 7323 section 2.3); also keeps edges within reach of sequence comparison.
const LARGEST_WINDOW: u32 = 1 << 30;

/// Duplicates that show a hole (RFC 5681 section 3.2).
const HOLE: u8 = 3;

/// What an ACK brought.
#[derive(Clone, Copy)]
struct Progress {
    newly: u32,
    /// It ends a hole that SACK did not describe.
    closes_hole: bool,
}

/// The law, on an ACK with a known scale. `half` is the direction whose data it acknowledges.
pub fn clamp(half: &mut Half, tcp: &TcpFields, scale: u8, stale: bool, dry_run: bool) -> Verdict {
    let known = half.flags & Half::EDGE_KNOWN != 0;
    let seen = half.data_flags & Half::DATA_SEEN != 0;
    // Of data that nobody sent: its receiver will ignore the segment (RFC 9293 section 3.10.7.4), and so does the law.
    if seen && seq::after(tcp.ack, half.snd_nxt) {
        return Verdict::Pass(Reason::WithinPlan);
    }
    if !known {
        half.acked = tcp.ack;
        half.delivered = tcp.ack;
        half.edge = tcp.ack;
        half.window = 0;
        half.dup_acks = 0;
        half.flags |= Half::EDGE_KNOWN;
    }
    let progress = progress(half, tcp);
    half.last_window = tcp.window;
    if tcp.window == 0 {
        return Verdict::Pass(Reason::ZeroWindow);
    }
    let offered = u32::from(tcp.window) << scale;
    let plan = half.plan;
    if stale || plan.clamp_bytes == 0 {
        half.window = 0;
        half.edge = seq::later(half.edge, tcp.ack.wrapping_add(offered));
        return Verdict::Pass(if stale { Reason::Stale } else { Reason::NoPlan });
    }
    adapt(half, plan, progress);
    if !known {
        // What was promised before is not known; most likely it was this much.
        half.edge = tcp.ack.wrapping_add(offered);
        return Verdict::Pass(Reason::WithinPlan);
    }
    let edge = seq::later(half.delivered.wrapping_add(half.window), half.edge);
    let allowed = edge.wrapping_sub(tcp.ack).min(offered) >> scale;
    let least = plan.floor_bytes.min(LARGEST_WINDOW).div_ceil(1 << scale).max(1);
    let window = allowed.max(least).min(u32::from(tcp.window));
    let lower = window < u32::from(tcp.window);
    let let_through = if dry_run { offered } else { window << scale };
    half.edge = seq::later(half.edge, tcp.ack.wrapping_add(let_through));
    match (lower, dry_run) {
        (false, _) => Verdict::Pass(Reason::WithinPlan),
        (true, true) => Verdict::Pass(Reason::WouldRewrite),
        (true, false) => {
            half.rewritten = half.rewritten.wrapping_add(1);
            Verdict::Rewrite { window: window as u16 }
        }
    }
}

/// Moves `acked` and `delivered`, and counts duplicates.
fn progress(half: &mut Half, tcp: &TcpFields) -> Progress {
    let seen = half.data_flags & Half::DATA_SEEN != 0;
    let mut delivered = seq::later(tcp.ack, half.delivered);
    if let Some(edge) = tcp.sack_high.filter(|edge| seen && !seq::after(*edge, half.snd_nxt)) {
        delivered = seq::later(edge, delivered);
    }
    let newly = delivered.wrapping_sub(half.delivered);
    half.delivered = delivered;
    let mut closes_hole = false;
    if seq::after(tcp.ack, half.acked) {
        closes_hole = half.dup_acks >= HOLE && newly > half.plan.growth_bytes;
        half.acked = tcp.ack;
        half.dup_acks = 0;
    } else if tcp.ack == half.acked && newly == 0 && is_duplicate(half, tcp, seen) {
        half.dup_acks = half.dup_acks.saturating_add(1);
    }
    Progress { newly, closes_hole }
}

/// RFC 5681 section 2: no data, no FIN, the same window, something outstanding.
fn is_duplicate(half: &Half, tcp: &TcpFields, seen: bool) -> bool {
    let outstanding = seen && seq::after(half.snd_nxt, tcp.ack);
    tcp.payload_bytes == 0 && !tcp.has(flag::FIN) && tcp.window == half.last_window && outstanding
}

/// Moves the window in force.
fn adapt(half: &mut Half, plan: Plan, progress: Progress) {
    let floor = plan.floor_bytes.min(LARGEST_WINDOW);
    let growth = plan.growth_bytes.min(LARGEST_WINDOW);
    let target = plan.clamp_bytes.max(floor).min(LARGEST_WINDOW);
    if half.window == 0 {
        half.window = in_flight(half).max(growth).max(floor).max(INITIAL_WINDOW);
    } else if progress.closes_hole {
        half.window = half.window.min(growth).max(floor).max(1);
    } else if progress.newly > 0 {
        let share = u64::from(progress.newly) * u64::from(growth) / u64::from(half.window);
        let step = share.min(u64::from(progress.newly)).max(1) as u32;
        half.window = half.window.saturating_add(step);
    }
    half.window = half.window.min(target);
}

/// What is under way; 0 when no data was seen.
fn in_flight(half: &Half) -> u32 {
    let outstanding = half.data_flags & Half::DATA_SEEN != 0 && seq::after(half.snd_nxt, half.delivered);
    if outstanding { half.snd_nxt.wrapping_sub(half.delivered) } else { 0 }
}
