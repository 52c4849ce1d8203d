//! Who may change what is known of a connection: a segment that fits what both ends have shown.
//!
//! Symbols as in [`super::window`]: of the data that a segment carries, or acknowledges, `E` is the advertised right edge, `D` what is
//! delivered, `N` the end of the highest data that passed (`snd_nxt`), `r` how far a segment may lie beside that:
//!
//! ```text
//! data             D - r <= end  and  seq <= max(E, N) + r
//! acknowledgment   D - r <= ack <= N
//! timestamps       newest - 2^16 <= timestamp <= newest + t + 2^22; echo <= newest timestamp that the other end sent
//! SYN              only until the connection is assured; a SYN-ACK acknowledges the SYN that was seen
//! r                max(66000, twice the receiver's window); 2^30 unless both SYNs told its scale
//! ```
//!
//! A segment without ACK that is neither SYN nor RST fits nowhere. All modulo 2^32; what is not known yet bounds nothing, nor does data of which only a part passes here (`Half::ELSEWHERE`). What does not fit is [`Reason::Invalid`](super::layout::Reason::Invalid) and
//! changes nothing; it may be of another connection between the same ports, which has to be assured by itself. Whoever carries the
//! packets looks after that, and after checksums.
//!
//! **Assured** is a connection of which one end has acknowledged what the other was seen to send: then both ends are there, and both
//! take part. Who sends from one place alone, with addresses that are not his, cannot bring that about without the numbers.
//!
//! Source: Linux's connection tracking (`tcp_in_window`; Guido van Rooij, Real Stateful TCP Packet Filtering in IP Filter, 2001),
//! where the least `r` of acknowledgments is 66,000 as well; RFC 5961 for SYN and RST; RFC 7323 section 5 for timestamps.
//!
//! Differs: the bounds of data have that `r`, too, because windows in force are known here only as far as ACKs passed; and a receiver
//! compares with the timestamp of what it acknowledged last, which is not known here: segments that overtook each other are a little
//! older than the newest.

use super::handshake::end_of;
use super::layout::{FlowState, Half, Stamp};
use crate::packet::Direction;
use crate::units::{Span, Time};
use crate::wire::{TcpFields, flag, seq};

/// A segment may lie so far beside what is known in any case, bytes: a window without scaling, and some.
const REACH: u32 = 66_000;

/// Where the window scale is not known a segment may lie this far, and nowhere may it lie further, bytes.
const LARGEST_REACH: u32 = 1 << 30;

/// An acknowledgment so far below what was sent shows nothing: more is hardly ever in flight, and of numbers that are made up one in
/// 256 is nearer.
const LARGEST_FLIGHT: u32 = 1 << 24;

/// A timestamp may be so much older than the newest, ticks: 65 s of the usual clock, 65 ms of the finest (RFC 7323 section 5.4: 1 ms
/// to 1 s; Linux has one of 1 us).
const OVERTAKEN: u32 = 1 << 16;

/// A timestamp may be so much newer than the finest clock can have become since: 4 s of that, which the newest may have waited longer in flight.
const HELD_UP: u32 = 1 << 22;

/// Whether a receiver takes such a segment at all (RFC 9293 section 3.10.7.4): without an acknowledgment only one that begins or breaks
/// off a connection. So whoever guesses numbers has to guess both.
pub(super) const fn is_taken(tcp: &TcpFields) -> bool {
    tcp.has(flag::SYN | flag::RST | flag::ACK)
}

/// Whether the segment fits.
pub(super) fn fits(state: &FlowState, direction: Direction, tcp: &TcpFields, now: Time) -> bool {
    let data = &state.half[direction.index()];
    let acked = &state.half[direction.reverse().index()];
    if tcp.has(flag::SYN) {
        return state.assured == 0 && handshake_fits(data, acked, tcp);
    }
    if tcp.has(flag::RST) {
        // Its timestamp does not count (RFC 7323 section 5.2).
        return data_fits(data, tcp);
    }
    let idle = now.since(Time::from_nanos(state.last_seen_ns));
    data_fits(data, tcp) && timestamp_fits(data.rtt.ts_newest, idle, tcp, now) && acknowledgment_fits(acked, tcp)
}

/// Whether the other end hears what the segment acknowledges: not if all of it was acknowledged before (RFC 9293 section 3.10.7.4,
/// as Linux does; a RST is judged by its own rule). What it does not hear must not be repeated to it.
pub(super) const fn is_heard(data: &Half, tcp: &TcpFields) -> bool {
    let known = data.flags & Half::EDGE_KNOWN != 0 && data.data_flags & Half::ELSEWHERE == 0;
    !known || tcp.has(flag::RST) || !seq::after(data.acked, end_of(tcp))
}

/// Whether the segment, which fits, shows that both ends are there.
pub(super) fn assures(acked: &Half, tcp: &TcpFields) -> bool {
    let answers = tcp.has(flag::ACK) && !tcp.has(flag::SYN | flag::RST);
    answers && acked.data_flags & Half::DATA_SEEN != 0 && acked.snd_nxt.wrapping_sub(tcp.ack) < LARGEST_FLIGHT
}

/// Of a SYN that was seen, `delivered` is the number of what comes after it.
fn handshake_fits(data: &Half, acked: &Half, tcp: &TcpFields) -> bool {
    let answers = tcp.has(flag::ACK) && data.flags & Half::SYN_SEEN != 0;
    !answers || !seq::after(acked.delivered, tcp.ack) && !seq::after(tcp.ack, acked.snd_nxt)
}

fn data_fits(data: &Half, tcp: &TcpFields) -> bool {
    let known = data.flags & Half::EDGE_KNOWN != 0 && data.data_flags & Half::DATA_SEEN != 0;
    if !known || data.data_flags & Half::ELSEWHERE != 0 || is_in_flight(data, tcp.seq) {
        return true;
    }
    let reach = reach(data);
    let last = seq::later(data.edge, data.snd_nxt).wrapping_add(reach);
    !seq::after(data.delivered.wrapping_sub(reach), end_of(tcp)) && !seq::after(tcp.seq, last)
}

fn acknowledgment_fits(acked: &Half, tcp: &TcpFields) -> bool {
    if acked.data_flags & Half::ELSEWHERE != 0 {
        return true;
    }
    let (seen, known) = (acked.data_flags & Half::DATA_SEEN != 0, acked.flags & Half::EDGE_KNOWN != 0);
    let beyond = seen && seq::after(tcp.ack, acked.snd_nxt);
    let old = known && seq::after(acked.delivered.wrapping_sub(reach(acked)), tcp.ack);
    let fits = seen && known && is_in_flight(acked, tcp.ack) || !beyond && !old;
    fits && echo_fits(acked.rtt.ts_newest.value(), tcp)
}

/// Nearly every number of a segment is one from `D` to `N`.
const fn is_in_flight(half: &Half, number: u32) -> bool {
    let all = half.snd_nxt.wrapping_sub(half.delivered);
    all < LARGEST_REACH && number.wrapping_sub(half.delivered) <= all
}

/// `newest`: timestamp that this end sent; `idle`: how long nothing passed either way, which the clock of stamps may not tell.
fn timestamp_fits(newest: Stamp, idle: Span, tcp: &TcpFields, now: Time) -> bool {
    let Some((value, _)) = tcp.timestamps.filter(|_| newest.value() != 0) else { return true };
    if value.wrapping_sub(newest.value()) <= HELD_UP {
        return true;
    }
    let idle = (idle.as_nanos() >> Stamp::SHIFT).min(u64::from(LARGEST_REACH)) as u32;
    // Ticks of 1024 ns are a fortieth fewer than those of 1 us.
    let passed = newest.ticks(now).max(idle).min(LARGEST_REACH);
    let (oldest, latest) = (newest.value().wrapping_sub(OVERTAKEN), passed + passed / 32 + HELD_UP);
    !seq::after(oldest, value) && !seq::after(value, newest.value().wrapping_add(latest))
}

/// `newest`: timestamp that the other end sent; 0: none. An echo of 0 is none.
fn echo_fits(newest: u32, tcp: &TcpFields) -> bool {
    match tcp.timestamps {
        Some((_, echo)) => newest == 0 || echo == 0 || !seq::after(echo, newest),
        None => true,
    }
}

/// Only SYNs are believed: a scale that was told later may be too small, and would shut out those whose it is.
fn reach(half: &Half) -> u32 {
    if half.flags & Half::SCALE_KNOWN == 0 {
        return LARGEST_REACH;
    }
    (u32::from(half.last_window) << half.scale << 1).clamp(REACH, LARGEST_REACH)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: u32 = 1_000_000;
    const NOW: Time = Time::from_nanos(1 << 30);

    /// A download that has begun: 30,000 bytes passed, of which 10,000 are acknowledged; the window is 20,000 bytes.
    fn download() -> FlowState {
        let mut state = FlowState { assured: 1, ..FlowState::default() };
        state.half[0] = Half {
            flags: Half::EDGE_KNOWN | Half::SCALE_KNOWN,
            data_flags: Half::DATA_SEEN,
            delivered: DATA + 10_000,
            snd_nxt: DATA + 30_000,
            edge: DATA + 30_000,
            last_window: 20_000,
            ..Half::default()
        };
        state.half[1] = Half { data_flags: Half::DATA_SEEN, snd_nxt: 1, ..Half::default() };
        state
    }

    fn segment(seq: u32, ack: u32, bytes: u32) -> TcpFields {
        TcpFields { seq, ack, payload_bytes: bytes, flags: flag::ACK, ..TcpFields::default() }
    }

    #[test]
    fn data_fits_from_a_window_below_to_a_window_beyond() {
        let state = download();
        let fits = |seq: u32, bytes| fits(&state, Direction::ToStation, &segment(seq, 1, bytes), NOW);
        assert!(fits(DATA + 30_000, 1_000), "the next");
        assert!(fits(DATA + 10_000, 1_000), "sent again");
        // D - r = 10,000 - 66,000; the least end that fits is that number itself.
        assert!(fits(DATA + 10_000 - 66_000 - 1_000, 1_000));
        assert!(!fits(DATA + 10_000 - 66_000 - 1_001, 1_000));
        assert!(fits(DATA + 30_000 + 66_000, 1_000));
        assert!(!fits(DATA + 30_000 + 66_001, 1_000));
    }

    #[test]
    fn an_acknowledgment_fits_from_a_window_below_to_what_was_sent() {
        let state = download();
        let fits = |ack: u32| fits(&state, Direction::ToRemote, &segment(1, ack, 0), NOW);
        assert!(fits(DATA + 30_000));
        assert!(!fits(DATA + 30_001), "nobody sent that");
        assert!(fits(DATA + 10_000 - 66_000));
        assert!(!fits(DATA + 10_000 - 66_001));
    }

    #[test]
    fn a_larger_window_reaches_further_and_an_unknown_one_half_of_all_numbers() {
        let mut state = download();
        state.half[0].scale = 3;
        let least = |state: &FlowState| {
            (0..u32::BITS - 1).rev().find(|bit| {
                fits(state, Direction::ToRemote, &segment(1, (DATA + 10_000).wrapping_sub(1 << bit), 0), NOW)
            })
        };
        // 2 x 160,000 lie between 2^18 and 2^19.
        assert_eq!(least(&state), Some(18));
        state.half[0].flags &= !Half::SCALE_KNOWN;
        assert_eq!(least(&state), Some(30));
    }

    #[test]
    fn an_echo_of_what_was_never_sent_does_not_fit() {
        let mut state = download();
        state.half[0].rtt.ts_newest = Stamp::new(500, NOW);
        let fits = |echo| {
            let tcp = TcpFields { timestamps: Some((7, echo)), ..segment(1, DATA + 20_000, 0) };
            fits(&state, Direction::ToRemote, &tcp, NOW)
        };
        assert!(fits(500) && fits(499) && fits(0));
        assert!(!fits(501));
    }

    #[test]
    fn a_timestamp_may_be_overtaken_and_is_neither_old_nor_from_a_time_to_come() {
        let mut state = download();
        let newest = 7;
        state.half[0].rtt.ts_newest = Stamp::new(newest, NOW);
        state.last_seen_ns = NOW.as_nanos();
        let fits = |state: &FlowState, newer: i64, after: Span| {
            let value = newest.wrapping_add(newer as u32);
            let tcp = TcpFields { timestamps: Some((value, 0)), ..segment(DATA + 30_000, 1, 100) };
            fits(state, Direction::ToStation, &tcp, NOW + after)
        };
        assert!(fits(&state, 0, Span::ZERO) && fits(&state, -65_536, Span::ZERO));
        assert!(!fits(&state, -65_537, Span::ZERO));
        assert!(fits(&state, 1 << 22, Span::ZERO) && !fits(&state, (1 << 22) + 1, Span::ZERO));
        // A clock of 1 us, after 10 s; and one of 1 ms after as long as the clock of stamps takes to come around.
        assert!(fits(&state, 10_000_000, Span::from_secs(10)) && !fits(&state, 15_000_000, Span::from_secs(10)));
        assert!(fits(&state, 4_400_000, Span::from_nanos(1 << 42)));
    }

    #[test]
    fn a_syn_fits_only_before_and_its_answer_only_if_it_answers() {
        let mut state = download();
        let syn = |seq| TcpFields { seq, flags: flag::SYN, ..TcpFields::default() };
        let answer = |ack| TcpFields { seq: 77, ack, flags: flag::SYN | flag::ACK, ..TcpFields::default() };
        assert!(
            !fits(&state, Direction::ToRemote, &syn(0), NOW) && !fits(&state, Direction::ToStation, &answer(1), NOW)
        );
        state = FlowState::default();
        assert!(fits(&state, Direction::ToRemote, &syn(0), NOW));
        // The SYN 500 was seen, with 100 bytes (RFC 7413).
        state.half[0].flags = Half::SYN_SEEN;
        state.half[1] = Half { data_flags: Half::DATA_SEEN, delivered: 501, snd_nxt: 601, ..Half::default() };
        let answers = |ack| fits(&state, Direction::ToStation, &answer(ack), NOW);
        assert!(answers(501) && answers(601));
        assert!(!answers(500) && !answers(602));
        assert!(fits(&state, Direction::ToRemote, &syn(9), NOW), "another attempt");
    }

    #[test]
    fn an_acknowledgment_of_what_was_seen_assures_and_one_of_anything_else_does_not() {
        let state = download();
        let does = |ack, flags| assures(&state.half[0], &TcpFields { flags, ..segment(1, ack, 0) });
        assert!(does(DATA + 30_000, flag::ACK) && does((DATA + 30_001).wrapping_sub(1 << 24), flag::ACK));
        assert!(!does((DATA + 30_000).wrapping_sub(1 << 24), flag::ACK), "too long ago");
        assert!(!does(DATA + 30_001, flag::ACK), "nobody sent that");
        assert!(!does(DATA + 30_000, flag::ACK | flag::SYN) && !does(DATA + 30_000, flag::ACK | flag::RST));
        assert!(!assures(&Half::default(), &segment(1, 0, 0)), "nothing was seen");
    }

    #[test]
    fn an_acknowledgment_in_what_its_receiver_drops_is_not_heard() {
        let mut state = download();
        state.half[1] = Half { flags: Half::EDGE_KNOWN, acked: 5_001, ..state.half[1] };
        let heard = |seq, bytes, flags| is_heard(&state.half[1], &TcpFields { flags, ..segment(seq, DATA, bytes) });
        assert!(heard(5_001, 0, flag::ACK) && heard(4_001, 1_000, flag::ACK) && !heard(4_001, 999, flag::ACK));
        assert!(!heard(5_000, 0, flag::ACK), "as a probe");
        assert!(heard(5_000, 0, flag::RST), "which has a rule of its own");
    }

    #[test]
    fn what_passes_elsewhere_is_acknowledged_unseen() {
        let mut state = download();
        state.half[0].data_flags |= Half::ELSEWHERE;
        assert!(fits(&state, Direction::ToRemote, &segment(1, DATA + 900_000, 0), NOW));
    }
}
