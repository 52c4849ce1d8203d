//! What every segment tells: bytes, RTT samples, whether the sender fills its window.
//!
//! Sequence match: a segment that advances `snd_nxt` leaves at t1, the ACK that covers its end comes at t2:
//! `sample = t2 - t1` [ns]. A retransmission below the awaited end drops the match (Karn).
//! A receiver acknowledges every second segment (RFC 9293 section 3.8.6.3), and one that comes alone after a while. So only one
//! of two segments is timed, and none that comes after a pause of 30 ms; an ACK that covers one segment more had waited for it:
//! it is no sample, and the other of two is timed from then on.
//! Timestamp match: a timestamp first seen leaving on a segment without payload at t1, its echo coming at t2 (RFC 7323 section
//! 4). So it measures the RTT of the side that sends the data.
//! One match of each kind is outstanding; after 4 s it is given up. Samples hold the peer's idle times: the minimum over an
//! epoch is what is near the path.
//!
//! The longest pause between payload and payload of an epoch tells a sender that always has something to send, and a hop that
//! always has something to serve, from trains and from frames.
//!
//! Limited by its window is a sender that goes to within one segment of the edge it knows of, or within what it sends at once: of
//! window W and round trip r that is W / r in a millisecond. What it knows is told
//! by the timestamp it echoes, for the access point knows of newer edges that are still in flight: one edge and its
//! timestamp are kept until the sender echoes a newer one. Without timestamps an edge counts as known a round trip to
//! the sender after it was advertised, and is compared with what arrives then; where that round trip is not known the
//! newest edge is compared, which sees a limited sender only when it is near.

use super::handshake::{advances, end_of};
use super::layout::{Half, Hop, RttMatch, Stamp};
use super::{Verdict, hop};
use crate::units::{Span, Time};
use crate::wire::{TcpFields, flag, seq};

/// Linux sends what its pace brings in a millisecond at once, 64 kB at most, and waits with what is less (`tcp_tso_autosize`,
/// `tcp_tso_should_defer`), here in 2^20 ns.
const BURST_SHIFT: u32 = 20;
const MOST_AT_ONCE: i32 = 1 << 16;

/// A match that has been outstanding for longer is given up.
const GIVEN_UP: Span = Span::from_secs(4);

/// A segment that comes so long after the one before is likely to wait for an acknowledgment by itself, ns.
pub(super) const LONE_NS: u32 = 30_000_000;

/// Takes the segment as data of `half`.
///
/// `sender_rtt_ns`: newest round trip to the segment's sender; 0: none.
pub(super) fn data(
    half: &mut Half,
    sender_rtt_ns: u32,
    (epoch, tick_ns): (u32, u64),
    train: Option<&mut Hop>,
    tcp: &TcpFields,
    now: Time,
    repeated_syn: bool,
) {
    if half.epoch != epoch {
        half.epoch = epoch;
        half.data_flags &= !Half::LIMITED;
        half.rtt.ts_soonest = Stamp::NONE;
        half.gap_ns = 0;
    }
    half.bytes = half.bytes.wrapping_add(u64::from(tcp.ip_bytes));
    half.packets = half.packets.wrapping_add(u64::from(tcp.segments));
    half.payload_bytes = half.payload_bytes.wrapping_add(u64::from(tcp.payload_bytes));
    if tcp.has(flag::RST) {
        // The other end takes only what has the number that it expects (RFC 5961 section 3.2).
        let expected = half.data_flags & Half::DATA_SEEN == 0
            || tcp.seq == half.snd_nxt
            || half.flags & Half::EDGE_KNOWN != 0 && tcp.seq == half.delivered;
        half.data_flags |= if expected { Half::RESET } else { 0 };
        return;
    }
    if tcp.payload_bytes > 0 && advances(half, tcp) {
        // Nobody sends beyond the end: whatever claimed one was not his.
        half.data_flags &= !(Half::CLOSING | Half::RESET);
    }
    if tcp.has(flag::FIN) {
        half.data_flags |= Half::CLOSING;
    }
    let mut gap_ns = u32::MAX;
    if tcp.payload_bytes > 0 {
        half.mss = half.mss.max(tcp.segment_bytes);
        gap_ns = now.as_nanos().saturating_sub(half.data_ns).min(u64::from(u32::MAX)) as u32;
        half.gap_ns = half.gap_ns.max(gap_ns);
        half.data_ns = now.as_nanos();
        if let Some(hop) = train {
            let rtt_ns = u64::from(half.rtt.last_ns) + u64::from(sender_rtt_ns);
            hop::came(hop, tcp.payload_bytes, u64::from(gap_ns), rtt_ns, now);
        }
        note_limit(half, sender_rtt_ns, tcp, now);
    }
    let odd = half.packets & 1 == 1;
    let acked_at_once = odd == (half.flags & Half::ODD != 0) && gap_ns < LONE_NS;
    let measurable = (tcp.payload_bytes > 0 && acked_at_once || tcp.has(flag::SYN)) && !repeated_syn;
    match_sequence(half, tcp, now, measurable);
    begin_timestamp(&mut half.rtt, tick_ns, tcp, now);
}

fn note_limit(half: &mut Half, sender_rtt_ns: u32, tcp: &TcpFields, now: Time) {
    let known = half.flags & Half::ADVERTISED != 0;
    let edge = match tcp.timestamps {
        Some((_, echo)) if known && echo == half.advertised_tsval => half.advertised_edge,
        None if half.rtt.ts_newest.value() != 0 => return,
        None if known => match age(half, sender_rtt_ns, now) {
            Age::Known => half.advertised_edge,
            Age::Fresh | Age::Old => return,
        },
        None if half.flags & Half::EDGE_KNOWN != 0 => half.edge,
        _ => return,
    };
    let left = edge.wrapping_sub(end_of(tcp)) as i32;
    if left < half.mss as i32 || is_at_once(half, sender_rtt_ns, left) {
        half.data_flags |= Half::LIMITED;
    }
}

/// A sender that is limited may leave so much of its window, for it is less than it sends at once.
fn is_at_once(half: &Half, sender_rtt_ns: u32, left: i32) -> bool {
    let rtt_ns = u64::from(half.rtt.last_ns) + u64::from(sender_rtt_ns);
    rtt_ns > 0 && left < MOST_AT_ONCE && left as u64 * rtt_ns < u64::from(half.window) << BURST_SHIFT
}

/// How long ago the edge was advertised that is kept without timestamps.
#[derive(PartialEq, Eq)]
enum Age {
    /// The sender cannot know it yet.
    Fresh,
    /// What arrives now was sent by one that has just learned of it.
    Known,
    /// It knows newer ones.
    Old,
}

fn age(half: &Half, sender_rtt_ns: u32, now: Time) -> Age {
    let (age, rtt) = (Stamp::clock(now).wrapping_sub(half.advertised_tsval), sender_rtt_ns >> Stamp::SHIFT);
    match age {
        age if age < rtt => Age::Fresh,
        age if age <= rtt + rtt / 16 + KNOWN_FOR => Age::Known,
        _ => Age::Old,
    }
}

/// An edge is compared for a sixteenth of the round trip and this much longer, about 1 ms: more would count a sender as
/// limited that has only gone on sending.
const KNOWN_FOR: u32 = 1 << 10;

fn match_sequence(half: &mut Half, tcp: &TcpFields, now: Time, measurable: bool) {
    let rtt = &mut half.rtt;
    let mut outstanding = !rtt.seq_sent.is_none() && rtt.seq_sent.value() != rtt.seq_done;
    if !advances(half, tcp) {
        let again = tcp.sequence_length() > 0 && seq::after(half.rtt.seq_sent.value(), tcp.seq);
        if outstanding && again {
            half.rtt.seq_sent = Stamp::NONE;
        }
        return;
    }
    half.data_flags |= Half::DATA_SEEN;
    half.snd_nxt = end_of(tcp);
    let rtt = &mut half.rtt;
    if outstanding && rtt.seq_sent.age(now) > GIVEN_UP {
        outstanding = false;
    }
    if measurable && !outstanding {
        rtt.seq_sent = Stamp::new(end_of(tcp), now);
    }
}

/// The newest timestamp passes.
fn stamp(rtt: &mut RttMatch, tick_ns: u64, value: u32, now: Time) {
    rtt.ts_newest = Stamp::new(value, now);
    let before = rtt.ts_soonest;
    let passed = i64::from(before.ticks(now)) << Stamp::SHIFT;
    let stamped = i64::from(value.wrapping_sub(before.value()) as i32).wrapping_mul(tick_ns as i64);
    if before.is_none() || tick_ns == 0 || passed < stamped {
        rtt.ts_soonest = rtt.ts_newest;
    }
}

fn begin_timestamp(rtt: &mut RttMatch, tick_ns: u64, tcp: &TcpFields, now: Time) {
    let Some((value, echo)) = tcp.timestamps else { return };
    if tcp.has(flag::ACK) && (rtt.echo_newest == 0 || seq::after(echo, rtt.echo_newest)) {
        rtt.echo_newest = echo;
    }
    let newest = rtt.ts_newest.value();
    let is_newer = newest == 0 || seq::after(value, newest);
    // Of a train with one timestamp the last has waited for all of it.
    if is_newer || value == newest && tcp.payload_bytes > 0 {
        stamp(rtt, tick_ns, value, now);
    }
    // The echo of data is the first segment's that waited, its acknowledgment that of the second.
    if !is_newer || tcp.payload_bytes > 0 {
        return;
    }
    let outstanding = !rtt.ts_sent.is_none() && rtt.ts_sent.value() != rtt.ts_done;
    if outstanding && rtt.ts_sent.age(now) <= GIVEN_UP {
        return;
    }
    rtt.ts_sent = rtt.ts_newest;
}

/// Takes the segment as an acknowledgment for `half`: ends what it answers.
pub(super) fn acknowledgment(half: &mut Half, epoch: u32, tcp: &TcpFields, now: Time) {
    let (seen, snd_nxt) = (half.data_flags & Half::DATA_SEEN != 0, half.snd_nxt);
    let rtt = &mut half.rtt;
    if rtt.epoch != epoch {
        rtt.epoch = epoch;
        rtt.min_ns = u32::MAX;
    }
    let (sent, end) = (rtt.seq_sent, rtt.seq_sent.value());
    let possible = seen && !seq::after(tcp.ack, snd_nxt);
    if !sent.is_none() && end != rtt.seq_done && possible && !seq::after(end, tcp.ack) {
        rtt.seq_done = end;
        let more = tcp.ack.wrapping_sub(end);
        if more == 0 || more > half.mss {
            sample(rtt, sent, tcp, now);
        } else {
            half.flags ^= Half::ODD;
        }
    }
    let Some((_, echo)) = tcp.timestamps else { return };
    let (sent, value) = (rtt.ts_sent, rtt.ts_sent.value());
    let possible = !seq::after(echo, rtt.ts_newest.value());
    if !sent.is_none() && value != rtt.ts_done && possible && !seq::after(value, echo) {
        rtt.ts_done = value;
        sample(rtt, sent, tcp, now);
    }
}

fn sample(rtt: &mut RttMatch, sent: Stamp, tcp: &TcpFields, now: Time) {
    rtt.answered = tcp.timestamps.map_or(Stamp::NONE, |(value, _)| sent.of(value));
    let capped = sent.age(now).as_nanos().min(u64::from(u32::MAX - 1)) as u32;
    rtt.total = rtt.total.add(sent.ticks(now));
    rtt.last_ns = capped;
    rtt.min_ns = rtt.min_ns.min(capped);
}

/// Remembers an edge and what will show that the sender knows it: a timestamp, or a time.
///
/// `sender_rtt_ns`: newest round trip to the sender of the data that is acknowledged; 0: none.
pub(super) fn on_advertised(half: &mut Half, sender_rtt_ns: u32, tcp: &TcpFields, verdict: Verdict, now: Time) {
    let known = half.flags & Half::ADVERTISED != 0;
    let (mark, again, awaited) = match tcp.timestamps {
        Some((value, _)) => {
            let again = known && half.advertised_tsval == value;
            (value, again, known && !again && !seq::after(half.rtt.echo_newest, half.advertised_tsval))
        }
        None if half.rtt.ts_newest.value() != 0 || sender_rtt_ns == 0 => return,
        None => (Stamp::clock(now), false, known && age(half, sender_rtt_ns, now) != Age::Old),
    };
    let advertises = tcp.has(flag::ACK) && !tcp.has(flag::SYN | flag::RST) && half.flags & Half::EDGE_KNOWN != 0;
    if awaited || !advertises {
        return;
    }
    let Some(scale) = half.known_scale() else { return };
    let window = match verdict {
        Verdict::Rewrite { window } => window,
        Verdict::Pass(_) => tcp.window,
    };
    let edge = tcp.ack.wrapping_add(u32::from(window) << scale);
    half.advertised_edge = if again { seq::later(edge, half.advertised_edge) } else { edge };
    half.advertised_tsval = mark;
    half.flags |= Half::ADVERTISED;
}
