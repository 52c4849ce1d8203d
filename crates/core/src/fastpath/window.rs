//! Advertised-window control: what a sender may have outstanding follows the plan.
//!
//! Symbols, in bytes or sequence numbers: `W` window in force, `E` advertised right edge, `D` delivered (cumulative
//! ACK, or highest SACK edge above it), `n` newly delivered by this ACK, `S` what an ACK usually brings, `c` credit,
//! `T = max(clamp, floor)`, `G` growth, `R` pace, `dt` time since the ACK before, `s` scale, `raw` the window field,
//! `offered = raw << s`.
//!
//! ```text
//! start      W = min(T, max(G, floor, 14600, in flight))           the first ACK under a plan; c = B
//! begin      W = max(floor, min(W, E - D))                         likewise, where its SYN was seen: what that advertised
//! grow       W = min(T, W + max(1, min(n, n G / W)))                G per round trip
//! shrink     W = T                                                  when T < W
//! earn       c = min(B, c + R dt)                                   B = max(G, 2 S, 2^(s+1)); then S += (n - S) / 8
//!            B = Q + max(MSS, what R earns in 1 ms)                 where window updates are sent
//! edge       E' = later(E, min(D + W, E + c))                       never left; an ACK that brings nothing moves nothing
//! field      raw' = min(raw, max(1, ceil(floor / 2^s), min(E' - ack, offered) >> s))
//! advertised   E = later(E, ack + (raw' << s)), and c pays for the way it went
//! update     E' = min(D + W, E + c, ack + offered)                  once that is Q further: a window update tells it
//!            Q = max(2 MSS, 2^(s+1), what R earns in 1 ms, what the hop carries in 0.5 ms)
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
//! waited for the channel together, or one that closes a hole without SACK, do not come back as a burst of data.
//!
//! Where the host is silent for two of its intervals, R is 0 until it says that it lives: each ACK lets all of the window through.
//!
//! **Window updates.** ACKs come when the hop serves the flow: in trains, with most of a long round trip between them. What a
//! window gains, and what a train of ACKs brings faster than the pace, could be told only by them, all at once. So the host tells
//! it in between, by a segment of the receiver's that acknowledges nothing new and has a larger window (RFC 9293 section 3.8.6;
//! it is no duplicate, RFC 5681 section 2). Data then comes at the pace, whatever the round trip, while windows grow too. Where both
//! directions are full, that keeps apart what would wait together: acknowledgments that wait behind data of the other direction come
//! out at once, and without a pace so do the data that they release (Zhang, Shenker, Clark 1991). Not
//! while a hole is open, and never beyond what the receiver itself has offered.
//!
//! Not done: nothing is ever raised; a sender that ignores windows is not held. Where no window updates are sent, a pause of the
//! ACKs longer than `B / R` leaves its rest to the ACKs that follow.

use super::Verdict;
use super::layout::{Control, FlowState, HOPS, Half, Plan, Reason};
use crate::packet::Direction;
use crate::units::{BitRate, Span, Time};
use crate::wire::{TcpFields, seq};

/// Where a new window starts at least, unless the clamp is lower: what any sender may send at first (RFC 6928).
pub const INITIAL_WINDOW: u32 = 14_600;

/// No window can be larger (RFC 7323 section 2.3); also keeps edges within reach of sequence comparison.
const LARGEST_WINDOW: u32 = 1 << 30;

/// A pause of the ACKs that is longer earns no more, ns; also keeps the product with the pace within 64 bits.
const LONGEST_PAUSE_NS: u64 = 1 << PACE_SHIFT;

/// `pace_bytes` counts per 2^30 ns.
const PACE_SHIFT: u32 = 30;

/// Of what is counted per 2^30 ns, this shift leaves what counts per 2^20, about a millisecond.
const MILLISECOND_SHIFT: u32 = 10;

/// What the controller is up to.
#[derive(Clone, Copy, Debug)]
pub struct Mode {
    /// Why windows are left as they are, whatever the plan.
    pub left_alone: Option<Reason>,
    /// It has missed two of its intervals: who waits for its window updates waits in vain.
    pub silent: bool,
    /// It decides and changes nothing.
    pub dry_run: bool,
    /// What a window update tells at least, bytes; 0: the host sends none.
    pub updates: u32,
}

/// A segment that the receiver could have sent: it acknowledges nothing new and advertises more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update {
    /// Its sequence number: the next one of the receiver.
    pub seq: u32,
    /// What was acknowledged last.
    pub ack: u32,
    /// Its window, raw, before scaling.
    pub window: u16,
    /// Value and echo of the connection's newest timestamps; `None`: it has none.
    pub timestamps: Option<(u32, u32)>,
}

/// The law, on an ACK with a known scale. `half` is the direction whose data it acknowledges.
pub fn clamp(half: &mut Half, tcp: &TcpFields, scale: u8, mode: Mode, now: Time) -> Verdict {
    let known = half.flags & Half::EDGE_KNOWN != 0;
    // Of data that passes elsewhere.
    if half.data_flags & Half::DATA_SEEN != 0 && seq::after(tcp.ack, half.snd_nxt) {
        return Verdict::Pass(Reason::WithinPlan);
    }
    if !known {
        half.delivered = tcp.ack;
        half.edge = tcp.ack;
        half.window = 0;
        half.flags |= Half::EDGE_KNOWN;
    }
    let first_advertised = half.edge.wrapping_sub(half.delivered);
    let newly = progress(half, tcp);
    serve(half, newly, now);
    let moves = newly > 0 || tcp.window != half.last_window;
    half.last_window = tcp.window;
    half.acked = tcp.ack;
    if tcp.window == 0 && mode.left_alone != Some(Reason::Authenticated) {
        return Verdict::Pass(Reason::ZeroWindow);
    }
    let offered = u32::from(tcp.window) << scale;
    // What the pace keeps back nobody tells then: ACKs do, at the pace of data.
    let pace_bytes = if mode.silent { 0 } else { half.plan.pace_bytes };
    let plan = Plan { pace_bytes, ..half.plan };
    let left_alone = mode.left_alone.or((plan.clamp_bytes == 0).then_some(Reason::NoPlan));
    if let Some(reason) = left_alone {
        half.window = 0;
        half.edge = seq::later(half.edge, tcp.ack.wrapping_add(offered));
        return Verdict::Pass(reason);
    }
    earn(half, plan, bound(half, plan, scale, mode.updates), now);
    half.stretch = half.stretch - half.stretch / 8 + newly / 8;
    adapt(half, plan, newly, known.then_some(first_advertised));
    if !known {
        // What was advertised before is not known; most likely it was this much.
        half.edge = tcp.ack.wrapping_add(offered);
        return Verdict::Pass(Reason::WithinPlan);
    }
    let advertised = half.edge;
    let mut edge = seq::later(advertised, tcp.ack);
    if moves {
        let step = seq::later(half.delivered.wrapping_add(half.window), edge).wrapping_sub(edge);
        edge = edge.wrapping_add(if plan.pace_bytes == 0 { step } else { step.min(half.credit) });
    }
    let allowed = edge.wrapping_sub(tcp.ack).min(offered) >> scale;
    let least = plan.floor_bytes.min(LARGEST_WINDOW).div_ceil(1 << scale).max(1);
    let window = allowed.max(least).min(u32::from(tcp.window));
    let lower = window < u32::from(tcp.window);
    let let_through = if mode.dry_run { offered } else { window << scale };
    half.edge = seq::later(advertised, tcp.ack.wrapping_add(let_through));
    half.credit = half.credit.saturating_sub(half.edge.wrapping_sub(advertised));
    match (lower, mode.dry_run) {
        (false, _) => Verdict::Pass(Reason::WithinPlan),
        (true, true) => Verdict::Pass(Reason::WouldRewrite),
        (true, false) => {
            half.rewritten = half.rewritten.wrapping_add(1);
            Verdict::Rewrite { window: window as u16 }
        }
    }
}

/// What the window lets through beyond what was advertised, and what an update tells at least, bytes; `None`: nothing may be told.
fn unadvertised(state: &FlowState, control: &Control, direction: Direction) -> Option<(u32, u32)> {
    let half = &state.half[direction.index()];
    let plan = half.plan;
    let hop = &control.hops[state.hop as usize % HOPS][direction.index()];
    let applies = hop.updates != 0 && control.dry_run == 0 && !state.closing(direction);
    let knows = half.flags & Half::EDGE_KNOWN != 0 && half.data_flags & Half::DATA_SEEN != 0;
    let held = half.window != 0 && half.last_window != 0 && plan.clamp_bytes != 0 && plan.pace_bytes != 0;
    let whole =
        half.delivered == half.acked && state.half[direction.reverse().index()].data_flags & Half::DATA_SEEN != 0;
    let scale = half.known_scale().filter(|_| applies && knows && held && whole)?;
    let offered = u32::from(half.last_window) << scale;
    let edge = half.acked.wrapping_add(half.window.min(offered));
    let unadvertised = seq::later(edge, half.edge).wrapping_sub(half.edge);
    let least = worth_advertising(half, plan, scale, hop.updates);
    (unadvertised >= least).then_some((unadvertised, least))
}

/// When a window update for data that goes in `direction` is due; `None`: its ACKs advertise it.
#[must_use]
pub fn due(state: &FlowState, control: &Control, direction: Direction, now: Time) -> Option<Time> {
    let (_, least) = unadvertised(state, control, direction)?;
    let half = &state.half[direction.index()];
    let lacks = u64::from(least.saturating_sub(half.credit));
    let span = (lacks << PACE_SHIFT) / u64::from(half.plan.pace_bytes) + u64::from(lacks > 0);
    Some(now.max(Time::from_nanos(half.paced_ns) + Span::from_nanos(span)))
}

/// The window update that is due `now`, which the host has to send; `None`: none is, or the controller's heartbeat is too old.
pub fn update(state: &mut FlowState, control: &Control, direction: Direction, now: Time) -> Option<Update> {
    let (unadvertised, least) = unadvertised(state, control, direction).filter(|_| !super::is_stale(control, now))?;
    let updates = control.hops[state.hop as usize % HOPS][direction.index()].updates;
    let [to_station, to_remote] = &mut state.half;
    let (half, back) = match direction {
        Direction::ToStation => (to_station, to_remote),
        Direction::ToRemote => (to_remote, to_station),
    };
    let scale = half.known_scale()?;
    earn(half, half.plan, bound(half, half.plan, scale, updates), now);
    let step = unadvertised.min(half.credit);
    if step < least {
        return None;
    }
    let advertised = half.edge.wrapping_add(step).wrapping_sub(half.acked);
    let window = (advertised >> scale).min(u32::from(half.last_window));
    let edge = half.acked.wrapping_add(window << scale);
    if !seq::after(edge, half.edge) {
        return None;
    }
    half.credit = half.credit.saturating_sub(edge.wrapping_sub(half.edge));
    half.edge = edge;
    let timestamp = back.rtt.ts_newest.value();
    if half.flags & Half::ADVERTISED != 0 && (timestamp == 0 || half.advertised_tsval == timestamp) {
        half.advertised_edge = seq::later(edge, half.advertised_edge);
    }
    let timestamps = (timestamp != 0).then_some((timestamp, back.rtt.echo_newest));
    Some(Update { seq: back.snd_nxt, ack: half.acked, window: window as u16, timestamps })
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

/// Counts the time in which something arrived while more had been in flight since the ACK before: the hop worked on this flow
/// all the time.
fn serve(half: &mut Half, newly: u32, now: Time) {
    if newly == 0 {
        return;
    }
    let now_ns = now.as_nanos();
    if half.waiting > newly {
        half.served_ns = half.served_ns.wrapping_add(now_ns.saturating_sub(half.acked_ns));
    }
    half.acked_ns = now_ns;
    half.waiting = in_flight(half);
}

/// How far the edge may advance at once: by an update, which the host may send a millisecond late; and a segment more, or a window of
/// three segments, whose ACKs are for two, would never be told, for what it lacks is no update.
fn bound(half: &Half, plan: Plan, scale: u8, updates: u32) -> u32 {
    if updates != 0 && plan.pace_bytes != 0 {
        let least = worth_advertising(half, plan, scale, updates);
        return least.saturating_add(half.mss.max(plan.pace_bytes >> MILLISECOND_SHIFT));
    }
    plan.growth_bytes.max(half.stretch.saturating_mul(2)).max(2 << scale)
}

/// What a window update tells at least: two segments are acknowledged at once; so much that a millisecond sees one; and what the
/// hop's are to tell.
fn worth_advertising(half: &Half, plan: Plan, scale: u8, updates: u32) -> u32 {
    half.mss.saturating_mul(2).max(plan.pace_bytes >> MILLISECOND_SHIFT).max(2 << scale).max(updates)
}

/// What window updates of a hop that carries so much are to tell at least, bytes: what passes it in `QUANTUM`. Each costs a packet, and
/// however many connections there are, no more of them pass in a second than quanta fit into it.
#[must_use]
pub const fn quantum(hop: Option<BitRate>) -> u32 {
    let Some(hop) = hop else { return 1 };
    let bytes = hop.as_bps() as u128 / 8 * QUANTUM.as_nanos() as u128 / 1_000_000_000;
    if bytes > LARGEST_WINDOW as u128 {
        LARGEST_WINDOW
    } else if bytes == 0 {
        1
    } else {
        bytes as u32
    }
}

/// So much of the hop's time is told at once. What several connections send by it meets at random: as packets that arrive in lumps
/// (M\[X\]/D/1), with a load of `r` they wait for `r / (2 (1 - r))` lumps in the mean, and at 0.95 of a hop that is 5 ms. So it is as
/// little as the host can afford, 2,000 updates a second. With 2 ms four flows each way had 0.62 to 0.91 of a hop (`make both-ways`).
const QUANTUM: Span = Span::from_micros(500);

/// Tops up the credit of the edge.
fn earn(half: &mut Half, plan: Plan, bound: u32, now: Time) {
    let now_ns = now.as_nanos();
    if half.window == 0 {
        half.credit = bound;
    } else {
        let pause_ns = now_ns.saturating_sub(half.paced_ns).min(LONGEST_PAUSE_NS);
        let earned = ((u64::from(plan.pace_bytes) * pause_ns) >> PACE_SHIFT) as u32;
        half.credit = half.credit.saturating_add(earned).min(bound);
    }
    half.paced_ns = now_ns;
}

/// Moves the window in force.
fn adapt(half: &mut Half, plan: Plan, newly: u32, advertised: Option<u32>) {
    let floor = plan.floor_bytes.min(LARGEST_WINDOW);
    let growth = plan.growth_bytes.min(LARGEST_WINDOW);
    let target = plan.clamp_bytes.max(floor).min(LARGEST_WINDOW);
    if half.window == 0 {
        half.window = in_flight(half).max(growth).max(floor).max(INITIAL_WINDOW);
        if let Some(advertised) = advertised.filter(|_| half.flags & Half::SYN_SEEN != 0) {
            // Of a connection that begins: what its SYN advertised is what it has.
            half.window = half.window.min(advertised).max(floor);
        }
    } else if newly > 0 {
        let share = u64::from(newly) * u64::from(growth) / u64::from(half.window);
        let step = share.min(u64::from(newly)).max(1) as u32;
        half.window = half.window.saturating_add(step);
    }
    half.window = half.window.min(target);
}

/// What is in flight; 0 when no data was seen.
fn in_flight(half: &Half) -> u32 {
    let outstanding = half.data_flags & Half::DATA_SEEN != 0 && seq::after(half.snd_nxt, half.delivered);
    if outstanding { half.snd_nxt.wrapping_sub(half.delivered) } else { 0 }
}
