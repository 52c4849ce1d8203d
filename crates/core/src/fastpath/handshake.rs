//! What SYN and SYN-ACK teach: window scales, the first advertised right edges, and that a new connection begins.
//!
//! A scale holds only if both SYNs carried the option (RFC 7323 section 2.2); a SYN-ACK without it settles that there
//! is no scaling. The window of a SYN itself is never scaled, and it already is a promise, which is kept when it is sent again.
//!
//! Not done: a SYN that is sent again forgets the scales until its answer is sent again too.

use super::Verdict;
use super::layout::{Half, RttMatch, Stamp};
use crate::wire::{TcpFields, flag, seq};

/// Forgets the connection that had this key before; true when this SYN is a repetition.
pub(super) fn begin(data: &mut Half, acked: &mut Half, tcp: &TcpFields) -> bool {
    let seen = data.data_flags & Half::DATA_SEEN != 0;
    let repeated = seen && data.snd_nxt == tcp.seq.wrapping_add(tcp.sequence_length());
    // A SYN begins anew in any case; a SYN-ACK only if it is not the answer to the SYN that was seen.
    if !tcp.has(flag::ACK) || (seen && !repeated) {
        for half in [data, acked] {
            // The other end may answer a SYN sent again by a SYN-ACK sent again: both keep what they advertised.
            let before = *half;
            forget(half);
            if repeated {
                half.window = advertised(&before, before.delivered);
                half.scale = before.scale;
                half.flags = before.flags & Half::SCALE_OFFERED;
            }
        }
    }
    repeated
}

/// What the receiver of `half` has advertised beyond `from` while the handshake lasts, bytes; 0: nothing.
///
/// Before the first number is known `window` holds it. Later it is the edge, which does not move left (RFC 9293 section 3.8.6);
/// then `window` is the one in force, which may be more or less.
pub(super) fn advertised(half: &Half, from: u32) -> u32 {
    if half.flags & Half::EDGE_KNOWN == 0 { half.window } else { seq::later(half.edge, from).wrapping_sub(from) }
}

/// Keeps what is cumulative and what the controller wants.
fn forget(half: &mut Half) {
    *half = Half {
        rtt: RttMatch {
            seq_sent: Stamp::NONE,
            ts_sent: Stamp::NONE,
            ts_newest: Stamp::NONE,
            echo_newest: 0,
            ..half.rtt
        },
        bytes: half.bytes,
        packets: half.packets,
        payload_bytes: half.payload_bytes,
        rewritten: half.rewritten,
        plan: half.plan,
        epoch: half.epoch,
        gap_ns: half.gap_ns,
        data_ns: half.data_ns,
        ..Half::default()
    };
}

/// `acked` is the half that the sender of this SYN receives; `data` the one it sends; `verdict` what became of its window.
pub(super) fn learn(data: &mut Half, acked: &mut Half, tcp: &TcpFields, verdict: Verdict) {
    let window = match verdict {
        Verdict::Rewrite { window } => {
            acked.rewritten = acked.rewritten.wrapping_add(1);
            window
        }
        Verdict::Pass(_) => tcp.window,
    };
    acked.flags |= Half::SYN_SEEN;
    // Of several SYNs of one connection nobody knows which one arrived: the scale that makes windows largest holds.
    let before = if acked.flags & Half::SCALE_OFFERED == 0 { 0 } else { acked.scale };
    acked.scale = before;
    if let Some(scale) = tcp.window_scale {
        acked.scale = scale.max(before);
        acked.flags |= Half::SCALE_OFFERED;
    }
    if !tcp.has(flag::ACK) {
        data.delivered = tcp.seq.wrapping_add(1);
    }
    if acked.flags & Half::EDGE_KNOWN == 0 {
        acked.window = acked.window.max(u32::from(window));
    } else if data_reaches(acked, tcp.ack) {
        // Sent again, and more of it let through than before: by a controller that has gone since, or was not there.
        acked.edge = seq::later(acked.edge, tcp.ack.wrapping_add(u32::from(window)));
    }
    if !tcp.has(flag::ACK) {
        return;
    }
    let both_seen = data.flags & Half::SYN_SEEN != 0;
    if acked.flags & Half::SCALE_OFFERED == 0 || (both_seen && data.flags & Half::SCALE_OFFERED == 0) {
        acked.scale = 0;
        data.scale = 0;
    } else if !both_seen {
        return;
    }
    acked.flags |= Half::SCALE_KNOWN;
    data.flags |= Half::SCALE_KNOWN;
    advertise(acked, tcp.ack, u32::from(window));
    if both_seen {
        // What the SYN advertised counts from the byte after this SYN-ACK, whose number is only known now.
        advertise(data, tcp.seq.wrapping_add(1), data.window);
    }
}

/// Whether so much was sent.
const fn data_reaches(half: &Half, ack: u32) -> bool {
    half.data_flags & Half::DATA_SEEN != 0 && !seq::after(ack, half.snd_nxt)
}

fn advertise(half: &mut Half, ack: u32, window: u32) {
    if half.flags & Half::EDGE_KNOWN == 0 {
        half.flags |= Half::EDGE_KNOWN;
        half.delivered = ack;
        half.acked = ack;
        half.edge = ack.wrapping_add(window);
        half.window = 0;
    }
}

/// The first number that `tcp` does not take up.
pub(super) const fn end_of(tcp: &TcpFields) -> u32 {
    tcp.seq.wrapping_add(tcp.sequence_length())
}

/// Whether `tcp` goes beyond everything that `half` has sent.
pub(super) const fn advances(half: &Half, tcp: &TcpFields) -> bool {
    half.data_flags & Half::DATA_SEEN == 0 || seq::after(end_of(tcp), half.snd_nxt)
}
