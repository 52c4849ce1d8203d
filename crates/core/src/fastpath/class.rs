//! Which datagrams to stations go ahead on the air: those of flows that send little, in the class that waits least.
//!
//! A radio has four classes (IEEE 802.11, EDCA), and most games and calls are sent without a mark, so that they wait among
//! downloads. What sends little loses nothing to others by going first and takes nothing from them, as in FQ-CoDel (RFC 8290
//! section 4.1: a queue that empties within its turn is sparse); so it is told by what a flow sends, and by nothing that it says:
//!
//! ```text
//! c      = IP bytes + 256 n                                       [bytes]    n: packets on the wire
//! drain  F = max(F - R dt, 0),  A = max(A - S dt, 0)              [bytes]
//! flow   F = min(F + c, 2 D)
//! ahead  when F <= D and A + c <= B and no packet is full;  then A += c
//! ```
//!
//! F belongs to one flow (to what its name hashes to), A to all flows behind one interface. Each packet counts 256 bytes beside its own:
//! alone on the air it takes contention, preamble and acknowledgment, some 100 us, which is 256 bytes at 20 Mbit/s.
//!
//! Why so. F grows by what is not let ahead, too, up to 2 D: a flow above its rate is never ahead, instead of being ahead with a part
//! of its packets, which would turn their order round. So it is let ahead again only D / R after it became silent. A bounds what all
//! together take, whoever sends it: without it a flood of small datagrams to many ports would have the air to itself. Full packets are
//! bulk or video, and stay where aggregates are; what they carry counts all the same.
//!
//! A packet that its sender marked for another class than best effort keeps the class that it asked for.
//!
//! Source: the user priority by `skb->priority` is `cfg80211_classify8021d`'s (Linux, `net/wireless/util.c`): 256 + UP is taken before
//! DSCP. Not done: TCP, which may not be turned round either, and never was real-time at an access point.

use super::udp::FULL_BYTES;
use crate::layout::FlowKey;
use crate::units::Time;

/// Counted beside the bytes of each packet.
const EACH_BYTES: u64 = 256;
/// Rates are bytes in 2^30 ns; a longer gap drains no more, so that the product stays within 64 bits.
const RATE_SHIFT: u32 = 30;
/// How many places flows share, by their names; a power of two.
pub const PLACES: usize = 1024;

/// What goes ahead at one interface. All zero: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Ahead {
    /// User priority (IEEE 802.1D, 1 to 7) of what goes ahead; 0: nothing does.
    pub user_priority: u32,
    /// R: what one flow may send, bytes in 2^30 ns (1.07 s).
    pub flow_rate_bytes: u32,
    /// D: how far one flow may run ahead of that, bytes.
    pub flow_depth_bytes: u32,
    /// S: what all flows together may send ahead, bytes in 2^30 ns.
    pub all_rate_bytes: u32,
    /// B: how far they may run ahead of that, bytes.
    pub all_depth_bytes: u32,
    /// Explicit padding; always 0.
    pub pad: u32,
    /// A. Written by the fast path.
    pub all: Level,
}

/// What was sent beyond a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Level {
    /// When it was last drained; 0: never.
    pub drained_ns: u64,
    /// Bytes.
    pub bytes: u32,
    /// Explicit padding; always 0.
    pub pad: u32,
}

const _: () = assert!(size_of::<Level>() == 16 && size_of::<Ahead>() == 6 * 4 + 16);

impl Ahead {
    /// What a game or a call needs: R is twice what a game of 128 updates per second of 400 bytes sends; D are twenty of its
    /// packets. S is four times the R of one flow's half: about 700 packets per second of the smallest, at 200 us each a seventh
    /// of the air, and no more.
    pub const USUAL: Self = Self {
        user_priority: 6,
        flow_rate_bytes: 1 << 17,
        flow_depth_bytes: 1 << 14,
        all_rate_bytes: 1 << 18,
        all_depth_bytes: 1 << 15,
        pad: 0,
        all: Level { drained_ns: 0, bytes: 0, pad: 0 },
    };
}

impl Level {
    fn drain(&mut self, rate_bytes: u32, now_ns: u64) {
        let gap = now_ns.saturating_sub(self.drained_ns).min(1 << RATE_SHIFT);
        let drained = (u64::from(rate_bytes) * gap) >> RATE_SHIFT;
        self.bytes = u64::from(self.bytes).saturating_sub(drained) as u32;
        self.drained_ns = now_ns;
    }
}

/// What counts of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sparse {
    /// IP bytes on the wire.
    pub ip_bytes: u32,
    /// Packets on the wire.
    pub segments: u32,
    /// Its traffic class or type of service, without the two bits of congestion marks: 0 is best effort.
    pub dscp: u8,
}

/// Place of a flow among [`PLACES`]. Who shares a place with one that sends much is not let ahead, as before there were classes.
#[must_use]
pub fn place(key: &FlowKey) -> usize {
    let mut hash = 0u32;
    let mut word = |word: u16| {
        hash = (hash ^ u32::from(word)).wrapping_mul(2_654_435_761);
        hash ^= hash >> 16;
    };
    for pair in key.station.chunks_exact(2).chain(key.remote.chunks_exact(2)) {
        word(u16::from_le_bytes([pair[0], pair[1]]));
    }
    word(key.station_port);
    word(key.remote_port);
    // The upper bits of a product depend on all of the lower ones (Knuth, volume 3, section 6.4), and are handed down each time.
    hash as usize & (PLACES - 1)
}

/// Whether this datagram to a station goes ahead; `flow` is the level at the place of its flow.
pub fn goes_ahead(ahead: &mut Ahead, flow: &mut Level, packet: Sparse, now: Time) -> bool {
    let now_ns = now.as_nanos();
    let depth = u64::from(ahead.flow_depth_bytes.min(1 << 30));
    let cost = u64::from(packet.ip_bytes) + EACH_BYTES * u64::from(packet.segments);
    flow.drain(ahead.flow_rate_bytes, now_ns);
    ahead.all.drain(ahead.all_rate_bytes, now_ns);
    flow.bytes = (u64::from(flow.bytes) + cost).min(2 * depth) as u32;
    let all = u64::from(ahead.all.bytes) + cost;
    let is_full = u64::from(packet.ip_bytes) >= u64::from(FULL_BYTES) * u64::from(packet.segments);
    let fits = u64::from(flow.bytes) <= depth && all <= u64::from(ahead.all_depth_bytes);
    if ahead.user_priority == 0 || packet.dscp != 0 || is_full || !fits {
        return false;
    }
    ahead.all.bytes = all as u32;
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Span;

    /// Packets of `bytes` every `gap` for `seconds`: how many came, and how many went ahead.
    fn sent(ahead: &mut Ahead, flow: &mut Level, bytes: u32, gap: Span, seconds: u64) -> (u64, u64) {
        let begun = Time::from_nanos(5_000_000_000);
        let count = Span::from_secs(seconds).as_nanos() / gap.as_nanos();
        let packet = Sparse { ip_bytes: bytes, segments: 1, dscp: 0 };
        let is_ahead = |n: &u64| goes_ahead(ahead, flow, packet, begun + gap * *n);
        (count, (0..count).filter(is_ahead).count() as u64)
    }

    #[test]
    fn games_and_calls_go_ahead_with_every_packet() {
        for (bytes, gap) in [(400, Span::from_micros(7_812)), (200, Span::from_millis(20)), (90, Span::from_millis(16))]
        {
            let (all, ahead) = sent(&mut Ahead::USUAL.clone(), &mut Level::default(), bytes, gap, 20);
            assert_eq!(ahead, all, "{bytes} bytes every {gap}");
        }
    }

    #[test]
    fn what_sends_more_than_its_rate_is_ahead_with_no_packet_after_its_first_burst() {
        // 1,000 packets of 300 bytes a second: 300 kB/s, 556 kB/s as they count.
        let mut ahead = Ahead::USUAL;
        let mut flow = Level::default();
        let (_, first) = sent(&mut ahead, &mut flow, 300, Span::from_millis(1), 1);
        assert!(first < 60, "{first}");
        let packet = Sparse { ip_bytes: 300, segments: 1, dscp: 0 };
        let later = Time::from_nanos(6_000_000_000);
        let more = (0..5_000).filter(|n| goes_ahead(&mut ahead, &mut flow, packet, later + Span::from_millis(1) * *n));
        assert_eq!(more.count(), 0);
        // Silent for D / R and a little, it is new again.
        let silent = later + Span::from_millis(5_000) + Span::from_millis(150);
        assert!(goes_ahead(&mut ahead, &mut flow, packet, silent));
    }

    #[test]
    fn a_flood_from_many_ports_has_no_more_than_what_all_may_have() {
        let mut ahead = Ahead::USUAL;
        let mut flows = vec![Level::default(); PLACES];
        let packet = Sparse { ip_bytes: 60, segments: 1, dscp: 0 };
        let begun = Time::from_nanos(5_000_000_000);
        // 20,000 packets a second for 10 s.
        let is_ahead = |n: &u64| {
            let flow = &mut flows[(*n % PLACES as u64) as usize];
            goes_ahead(&mut ahead, flow, packet, begun + Span::from_micros(50) * *n)
        };
        let bytes = (0..200_000).filter(is_ahead).count() as u64 * (60 + EACH_BYTES);
        let most = (u64::from(Ahead::USUAL.all_rate_bytes) * 10_000_000_000 >> RATE_SHIFT) + (1 << 15);
        assert!(bytes <= most && bytes > most / 2, "{bytes} of {most}");
    }

    #[test]
    fn full_packets_and_those_marked_otherwise_stay_and_count() {
        let now = Time::from_nanos(5_000_000_000);
        let (mut ahead, mut flow) = (Ahead::USUAL, Level::default());
        let full = Sparse { ip_bytes: 1_200, segments: 1, dscp: 0 };
        assert!(!goes_ahead(&mut ahead, &mut flow, full, now));
        assert_eq!((flow.bytes, ahead.all.bytes), (1_456, 0));
        let marked = Sparse { ip_bytes: 100, segments: 1, dscp: 8 };
        assert!(!goes_ahead(&mut ahead, &mut flow, marked, now));
        assert!(goes_ahead(&mut ahead, &mut flow, Sparse { dscp: 0, ..marked }, now));
    }

    #[test]
    fn nothing_goes_ahead_where_nothing_was_told() {
        let packet = Sparse { ip_bytes: 100, segments: 1, dscp: 0 };
        assert!(!goes_ahead(&mut Ahead::default(), &mut Level::default(), packet, Time::from_nanos(1)));
    }

    #[test]
    fn places_of_flows_that_differ_in_one_port_differ() {
        let key = |port| FlowKey { station_port: port, ..FlowKey::default() };
        let places: std::collections::BTreeSet<_> = (0..200).map(|port| place(&key(port))).collect();
        assert!(places.len() > 150, "{}", places.len());
        assert!(places.iter().all(|place| *place < PLACES));
    }
}
