//! What the connections of one hop whose data goes in one direction may begin with together, and at what pace trains of all of them move.
//!
//! Symbols, in bytes: `s` what is left for connections that begin, `S` depth, `R` rate, `dt` time since it was topped up.
//!
//! ```text
//! earn       s = min(S, s + R dt)                  at first S
//! SYN        w = min(3 s / 4, 14600)               at least the floor; s pays for what it does promise
//! train      what passes within half a round trip, and 30 ms, of what passed of the same connection before
//! bunch      three full segments or more that stations bring, or acknowledge, each less than 50 us after the one before
//! ```
//!
//! The window of a SYN, or SYN-ACK, is what the other end may send before anything comes back; it is never scaled (RFC 7323
//! section 2.2). One connection that begins alone may send what any may (RFC 6928). Of sixteen that begin in one moment the
//! later ones have their floor: sixteen initial windows would be 75 ms of 25 Mbit/s, and none of it could be taken back. A SYN
//! that is sent again advertises all that was advertised before, for the first may have arrived.
//!
//! The pace of trains is what a hop carries that nobody has filled yet: packet-pair dispersion (Keshav, 1991), of all
//! connections, for trains that come together share what the hop carries. A packet of a connection that paused ends no pause of
//! the hop's: between the ACK of a train and the next train a single small segment passes of somebody else, and the time until
//! it came is no time in which the hop carried.
//!
//! What comes in one bunch came in one frame of the medium (`ap::aggregates`): other frames are 100 us apart, and no acknowledgment
//! is for three full segments where packets are sent one by one.
//!
//! Packets on several CPUs write it at once, without a lock and without an atomic addition: each field is read once and written
//! once, so `s` never leaves 0 to S, and of two packets in the same nanoseconds one is forgotten. Then `s` has paid for one SYN
//! too few, 14,600 bytes at most, or it has earned the time between the two packets twice or not at all; a cumulative figure
//! misses one packet. A CPU that is stopped between the two may write what is milliseconds old: a cumulative figure may go back
//! by what came meanwhile, which its reader has to expect. On a 32-bit CPU a time or a figure may be read half old: the next SYN
//! earns up to S, or nothing.

use super::layout::{Control, Hop};
use super::measure::LONE_NS;
use super::window::INITIAL_WINDOW;
use crate::packet::Direction;
use crate::units::Time;

/// `rate_bytes` counts per 2^30 ns; a longer pause earns no more.
const RATE_SHIFT: u32 = 30;
/// What stations bring sooner than this after what they brought before came with it, ns: the packets of one frame take a few microseconds
/// each through the host, and between two frames lie an ACK, two SIFS, an AIFS and a preamble, 100 us together at least.
const AT_ONCE_NS: u64 = 50_000;
/// Three full segments, bytes: an acknowledgment is for less, wherever packets are sent one by one (RFC 9293 section 3.8.6.3: at least every
/// second full one, and what is not full beside them).
const BUNCH_BYTES: u64 = 3 * 1448;

/// What a connection whose data goes over this hop in this direction may advertise with its SYN, bytes, of the `offered`; `None`: what it likes.
pub(super) fn start(
    control: &mut Control,
    (hop, direction): (usize, Direction),
    offered: u32,
    now: Time,
) -> Option<u32> {
    let floor = control.default_plan[direction.index()].floor_bytes;
    let hop = &mut control.hops[hop][direction.index()];
    if hop.depth_bytes == 0 {
        return None;
    }
    earn(hop, now);
    let window = (hop.left_bytes - hop.left_bytes / 4).min(INITIAL_WINDOW).max(floor).max(1).min(offered);
    hop.left_bytes = hop.left_bytes.saturating_sub(window);
    Some(window)
}

fn earn(hop: &mut Hop, now: Time) {
    let now_ns = now.as_nanos();
    let pause_ns = now_ns.saturating_sub(hop.earned_ns).min(1 << RATE_SHIFT);
    let earned = match hop.earned_ns {
        0 => hop.depth_bytes,
        _ => ((u64::from(hop.rate_bytes) * pause_ns) >> RATE_SHIFT) as u32,
    };
    hop.left_bytes = hop.left_bytes.saturating_add(earned).min(hop.depth_bytes);
    hop.earned_ns = now_ns.max(1);
}

/// Longest pause of a connection within a train.
fn train_gap_ns(rtt_ns: u64) -> u64 {
    (rtt_ns / 2).min(u64::from(LONE_NS))
}

/// Payload came: `bytes`, of a connection whose own payload before came `gap_ns` ago and whose round trip to both sides is `rtt_ns`.
pub(super) fn came(hop: &mut Hop, bytes: u32, gap_ns: u64, rtt_ns: u64, now: Time) {
    let now_ns = now.as_nanos();
    if gap_ns <= train_gap_ns(rtt_ns) {
        hop.came_ns = hop.came_ns.wrapping_add(now_ns.saturating_sub(hop.data_ns));
        hop.came_bytes = hop.came_bytes.wrapping_add(u64::from(bytes));
    }
    hop.data_ns = now_ns;
}

/// An ACK brought `newly` bytes of a connection of which `waiting` had been in flight before, since something arrived `gap_ns` ago.
pub(super) fn served(hop: &mut Hop, (newly, waiting): (u32, u32), gap_ns: u64, rtt_ns: u64, now: Time) {
    if newly == 0 {
        return;
    }
    let now_ns = now.as_nanos();
    if waiting > newly && gap_ns <= train_gap_ns(rtt_ns) {
        hop.served_ns = hop.served_ns.wrapping_add(now_ns.saturating_sub(hop.acked_ns));
        hop.served_bytes = hop.served_bytes.wrapping_add(u64::from(newly));
    }
    hop.acked_ns = now_ns;
}

/// The stations brought `bytes` of this direction's data, or acknowledged as many. Three segments at once came in one
/// frame of the medium.
pub(super) fn brought(hop: &mut Hop, bytes: u32, now: Time) {
    if bytes == 0 {
        return;
    }
    let (now_ns, bytes) = (now.as_nanos(), u64::from(bytes));
    let before = if now_ns.saturating_sub(hop.brought_ns) < AT_ONCE_NS { hop.bunch_bytes } else { 0 };
    let together = before.wrapping_add(bytes);
    if together >= BUNCH_BYTES {
        let begins = before < BUNCH_BYTES;
        hop.bunches = hop.bunches.wrapping_add(u64::from(begins));
        hop.bunched_bytes = hop.bunched_bytes.wrapping_add(if begins { together } else { bytes });
    }
    hop.bunch_bytes = together;
    hop.brought_ns = now_ns;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Span;

    /// Bunches, and bytes in them, of what comes so long after one another, us.
    fn bunches(come: &[(u64, u32)]) -> (u64, u64) {
        let (mut hop, mut now) = (Hop::default(), Time::ZERO + Span::from_secs(1));
        for (after_us, bytes) in come {
            now += Span::from_micros(*after_us);
            brought(&mut hop, *bytes, now);
        }
        (hop.bunches, hop.bunched_bytes)
    }

    /// Payload of the connections 0 and 1, whose round trip is 40 ms: (us after what came before, connection, bytes). The hop's pace, bytes/s.
    fn pace(come: &[(u64, usize, u32)]) -> f64 {
        let (mut hop, mut now) = (Hop::default(), Time::ZERO + Span::from_secs(1));
        let mut own = [0; 2];
        for (after_us, connection, bytes) in come {
            now += Span::from_micros(*after_us);
            came(&mut hop, *bytes, now.as_nanos().saturating_sub(own[*connection]), 40_000_000, now);
            own[*connection] = now.as_nanos();
        }
        hop.came_bytes as f64 * 1e9 / hop.came_ns as f64
    }

    #[test]
    fn what_passes_of_others_in_a_pause_ends_no_train() {
        let train = [(900_000, 0, 1500), (1000, 0, 1500), (1000, 0, 1500)];
        assert_eq!(pace(&train), 1.5e6);
        // A single small segment in the pause after it, of who was silent: the pause is still none of the hop's work.
        assert_eq!(pace(&[&train[..], &[(6000, 1, 1), (900_000, 0, 1500)]].concat()), 1.5e6);
        // Two that come together share the hop.
        assert_eq!(pace(&[(900_000, 0, 1500), (500, 1, 1500), (500, 0, 1500), (500, 1, 1500)]), 3e6);
    }

    #[test]
    fn what_comes_at_once_is_a_bunch_from_three_segments_on() {
        let pair = 2 * 1448;
        // Acknowledgments of frames with one packet each, and with two.
        assert_eq!(bunches(&[(900, pair), (900, pair), (900, pair + 300), (900, 1448)]), (0, 0));
        // Of frames with ten, and with twelve of which a station tells by one.
        let tens = [(900, pair), (3, pair), (3, pair), (3, pair), (3, pair), (900, 12 * 1448), (900, pair)];
        assert_eq!(bunches(&tens), (2, 22 * 1448));
        // Nothing is acknowledged twice.
        assert_eq!(bunches(&[(900, pair), (3, 0), (3, 0)]), (0, 0));
    }
}
