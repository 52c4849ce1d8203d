//! What the fast path keeps, in the layout that `bpf/layout.h` states in C: same order, same sizes, no hidden padding.
//!
//! Sequence numbers are TCP's, modulo 2^32, in host order. Times are `bpf_ktime_get_ns`, in nanoseconds.

use core::mem::offset_of;

use crate::packet::Direction;
use crate::units::{Span, Time};

/// Which layout and meaning of the records this is: of the text that states them, this file (FNV-1a). Who finds records of another
/// version does not read them.
pub const VERSION: u64 = fnv(include_bytes!("layout.rs"));

const fn fnv(bytes: &[u8]) -> u64 {
    let (mut hash, mut at) = (0xcbf2_9ce4_8422_2325u64, 0);
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        at += 1;
    }
    hash
}

/// A window scale above this counts as this (RFC 7323 section 2.3).
pub const LARGEST_SCALE: u8 = 14;

/// Names a TCP connection or a UDP flow (each has its own table) as the access point sees it: the station's end first,
/// whichever way a packet goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(C)]
pub struct FlowKey {
    /// Station's address; IPv4 as `::ffff:a.b.c.d`.
    pub station: [u8; 16],
    /// The other end's address, likewise.
    pub remote: [u8; 16],
    /// Station's port, host order.
    pub station_port: u16,
    /// The other end's port, host order.
    pub remote_port: u16,
}

/// What the controller wants of one direction of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Plan {
    /// Most the receiver may have outstanding, in bytes, before scaling: share x base RTT. 0: leave the flow alone.
    pub clamp_bytes: u32,
    /// Never less than this, in bytes, so that delayed ACKs and silly-window avoidance cannot stall the flow.
    pub floor_bytes: u32,
    /// How far the window may grow in one round trip, in bytes: the queue that growth can build at the last hop.
    pub growth_bytes: u32,
    /// How far the advertised right edge may advance in 2^30 ns (1.07 s), in bytes; 0: not paced.
    pub pace_bytes: u32,
}

impl Plan {
    /// A [`Self::clamp_bytes`] that limits nobody: the largest window of RFC 7323.
    pub const UNLIMITED: u32 = (1 << 30) - 1;

    /// Most the receiver may have outstanding, in bytes, where that is limited.
    #[must_use]
    pub fn limit(&self) -> Option<u32> {
        Some(self.clamp_bytes).filter(|clamp| (1..Self::UNLIMITED).contains(clamp))
    }
}

/// A number that a packet carried and when it passed, in one word, so that another CPU reads both of the same packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Stamp(u64);

impl Stamp {
    /// No packet passed.
    pub const NONE: Self = Self(0);
    /// Its clock ticks in 2^10 ns: it is good for 73 minutes. Who has waited for longer is taken for one that waited less, which shows
    /// as a short round trip once in `4,400 s / round trip` such waits.
    pub const SHIFT: u32 = 10;

    /// `value` passes at `now`.
    #[must_use]
    pub const fn new(value: u32, now: Time) -> Self {
        Self((value as u64) << 32 | Self::clock(now) as u64)
    }

    /// `value` at the same time.
    #[must_use]
    pub const fn of(self, value: u32) -> Self {
        Self((value as u64) << 32 | self.0 & u32::MAX as u64)
    }

    /// The clock that stamps are kept by: `now` in its units.
    #[must_use]
    pub const fn clock(now: Time) -> u32 {
        (now.as_nanos() >> Self::SHIFT) as u32
    }

    /// No packet passed.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// The number; 0 where there is none.
    #[must_use]
    pub const fn value(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// For how long it has been there, in ticks.
    #[must_use]
    pub const fn ticks(self, now: Time) -> u32 {
        Self::clock(now).wrapping_sub(self.0 as u32)
    }

    /// For how long it has been there.
    #[must_use]
    pub const fn age(self, now: Time) -> Span {
        Span::from_nanos((self.ticks(now) as u64) << Self::SHIFT)
    }

    /// For how long it had been there at `now`, as who reads records sees it: packets go on passing while they are read, so that a stamp
    /// may be later than `now`. Beyond half of the clock's circle it is that and no old one.
    #[must_use]
    pub const fn seen_age(self, now: Time) -> Span {
        if self.ticks(now) > u32::MAX / 2 { Span::ZERO } else { self.age(now) }
    }

    /// When it passed, before or after `now`, within half of the clock's circle.
    #[must_use]
    pub const fn at(self, now: Time) -> Time {
        let tick = now.as_nanos() >> Self::SHIFT << Self::SHIFT;
        let ahead = (self.0 as u32).wrapping_sub(Self::clock(now));
        Time::from_nanos(if ahead <= u32::MAX / 2 {
            tick + ((ahead as u64) << Self::SHIFT)
        } else {
            tick.saturating_sub(self.age(now).as_nanos())
        })
    }
}

/// Sum and number of all samples of a round trip, in one word likewise; both begin anew when they are full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct RttTotal(u64);

impl RttTotal {
    /// So many bits hold the sum, in ticks of [`Stamp`]: 13 days; the others the number.
    pub const SUM_BITS: u32 = 40;
    const SUM: u64 = (1 << Self::SUM_BITS) - 1;

    /// With one more.
    #[must_use]
    pub const fn add(self, ticks: u32) -> Self {
        let samples = (self.0 & !Self::SUM).wrapping_add(1 << Self::SUM_BITS);
        Self(samples | (self.0.wrapping_add(ticks as u64) & Self::SUM))
    }

    /// How many there were.
    #[must_use]
    pub const fn samples(self) -> u32 {
        self.samples_since(Self(0))
    }

    /// How many there were since.
    #[must_use]
    pub const fn samples_since(self, before: Self) -> u32 {
        let most = u32::MAX >> (Self::SUM_BITS - 32);
        ((self.0 >> Self::SUM_BITS) as u32).wrapping_sub((before.0 >> Self::SUM_BITS) as u32) & most
    }

    /// The mean of those.
    #[must_use]
    pub fn mean_since(self, before: Self) -> Option<Span> {
        let sum = self.0.wrapping_sub(before.0) & Self::SUM;
        (sum << Stamp::SHIFT).checked_div(u64::from(self.samples_since(before))).map(Span::from_nanos)
    }
}

/// RTT towards one side, matched in two ways: data by sequence number, ACKs by the timestamp that comes back.
///
/// A match is outstanding while there is a stamp whose number differs from its `done`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RttMatch {
    /// The ACK that ends the sequence match, and when its segment left. Written by packets this way.
    pub seq_sent: Stamp,
    /// The timestamp whose echo ends the timestamp match, and when it was first seen leaving. Written by packets this way.
    pub ts_sent: Stamp,
    /// Newest timestamp seen leaving, and when data carried it last; only a newer one can start a match, for its first leaving is
    /// known. One of 0 counts as none. Written by packets this way.
    pub ts_newest: Stamp,
    /// Of all that `ts_newest` was in the epoch of its [`Half`], the one that came soonest after it was stamped. Written by packets this way.
    pub ts_soonest: Stamp,
    /// Newest timestamp that packets this way echoed; 0: none. Written by packets this way.
    pub echo_newest: u32,
    /// Epoch (`Control::epoch`) that `min_ns` belongs to. From here on: written by packets of the other direction.
    pub epoch: u32,
    /// The timestamp of the packet that ended the newest match, and when left what it answered; none: no packet that carried one.
    pub answered: Stamp,
    /// All samples.
    pub total: RttTotal,
    /// Smallest sample of `epoch`, ns, capped at `u32::MAX` - 1; `u32::MAX`: none.
    pub min_ns: u32,
    /// Newest sample, ns, capped likewise; 0: none yet.
    pub last_ns: u32,
    /// The number of the newest `seq_sent` whose match has ended.
    pub seq_done: u32,
    /// The timestamp of the newest `ts_sent` whose match has ended.
    pub ts_done: u32,
}

/// One direction of data of a connection: what has been sent, what the receiver has advertised, what it is held to.
///
/// A packet of each direction may pass on two CPUs at once, and an LRU map takes no lock. So every field has one writer:
/// packets of this direction (the data), packets of the other direction (its ACKs), or the controller. Only a handshake writes across.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Half {
    /// IP bytes that passed in this direction, cumulative, ACKs included. Written by packets in this direction.
    pub bytes: u64,
    /// Packets that passed in this direction, cumulative (a GRO-merged one counts its segments). Written by packets in this direction.
    pub packets: u64,
    /// TCP payload bytes that passed in this direction, cumulative, retransmissions included. Written by packets in this direction.
    pub payload_bytes: u64,
    /// When payload last passed. Written by packets this way.
    pub data_ns: u64,
    /// Epoch (`Control::epoch`) that [`Half::LIMITED`] and `gap_ns` belong to. Written by packets in this direction.
    pub epoch: u32,
    /// Longest pause between payload and payload in `epoch`. Written by packets in this direction.
    pub gap_ns: u32,
    /// End of the highest data sent; valid with [`Half::DATA_SEEN`]. Written by packets this way.
    pub snd_nxt: u32,
    /// Largest payload of one segment seen, bytes. Written by packets this way.
    pub mss: u32,
    /// Of the bits below: those that packets this way write.
    pub data_flags: u8,
    /// Scale told by conntrack, plus one; 0: not told. Written by the controller.
    pub conntrack_scale: u8,
    /// [`Half::ASKED`] as it was when whoever was asked let go. Written by them: the program around the fast path.
    pub answered: u8,
    /// Explicit padding; always 0.
    pub pad: [u8; 5],
    /// RTT towards the side this direction leads to.
    pub rtt: RttMatch,
    /// ACKs for this direction's data whose window was lowered, cumulative. Written by packets of the other direction.
    pub rewritten: u64,
    /// When `credit` was last topped up. Written by packets of the other direction.
    pub paced_ns: u64,
    /// When the newest ACK came that brought something. Written by packets in the other direction.
    pub acked_ns: u64,
    /// How long data arrived while more of it waited or was in flight (`fastpath::window`), cumulative. Written by packets in the other direction.
    pub served_ns: u64,
    /// What the controller wants. Written by the controller.
    pub plan: Plan,
    /// Right edge advertised to the sender so far: the largest ack + window that was let through.
    /// From here on to `flags`: written by packets of the other direction.
    pub edge: u32,
    /// Highest byte known to have arrived: cumulative ACK, or the highest SACK edge above it.
    pub delivered: u32,
    /// The window in force: grows from its start towards `plan.clamp_bytes`, bytes; 0: no plan was in force yet.
    /// Before `edge` is valid it holds what the SYN or SYN-ACK advertised.
    pub window: u32,
    /// How far the edge may advance now, bytes.
    pub credit: u32,
    /// What an ACK usually brings, bytes; the mean of about the last eight.
    pub stretch: u32,
    /// What was in flight after the newest ACK that brought something, bytes.
    pub waiting: u32,
    /// The newest acknowledgment; valid with [`Half::EDGE_KNOWN`].
    pub acked: u32,
    /// Right edge advertised by the newest ACK that carried `advertised_tsval`; valid with [`Half::ADVERTISED`].
    pub advertised_edge: u32,
    /// The timestamp whose echo shows that the sender knows `advertised_edge`; in a connection without timestamps when it was
    /// advertised, in ticks of [`Stamp`].
    pub advertised_tsval: u32,
    /// Window of the newest ACK as the receiver wrote it: one that changed it is no duplicate (RFC 5681).
    pub last_window: u16,
    /// Window scale of this direction's receiver, 0..=14; valid with [`Half::SCALE_KNOWN`].
    pub scale: u8,
    /// Of the bits below: those that packets in the other direction write.
    pub flags: u8,
}

impl Half {
    /// In `flags`: `scale` was learned from both SYNs.
    pub const SCALE_KNOWN: u8 = 1;
    /// In `flags`: the SYN of this direction's receiver carried a scale; it holds only if the other SYN had one too.
    pub const SCALE_OFFERED: u8 = 2;
    /// In `flags`: `edge` and `delivered` are valid.
    pub const EDGE_KNOWN: u8 = 4;
    /// In `flags`: `advertised_edge` and `advertised_tsval` are valid.
    pub const ADVERTISED: u8 = 8;
    /// In `flags`: the SYN or SYN-ACK of this direction's receiver was seen.
    pub const SYN_SEEN: u8 = 16;
    /// In `flags`: turned over each time somebody is asked to see to its window updates; while `answered` differs, they do.
    /// Written by the program around the fast path.
    pub const ASKED: u8 = 64;
    /// In `flags`: of two segments the one that is acknowledged at once is the one with an odd number.
    pub const ODD: u8 = 32;
    /// In `data_flags`: `snd_nxt` is valid.
    pub const DATA_SEEN: u8 = 32;
    /// In `data_flags`: in `epoch` the sender filled the window it knew of to within what it sends at once.
    pub const LIMITED: u8 = 64;
    /// In `data_flags`: this direction's sender sent a FIN, and nothing beyond it since.
    pub const CLOSING: u8 = 128;
    /// In `data_flags`: of this direction's data only bare acknowledgments pass here, and the rest by another way.
    pub const ELSEWHERE: u8 = 8;
    /// In `data_flags`: it sent a RST that the other end takes (RFC 5961 section 3.2), and nothing new since.
    pub const RESET: u8 = 16;

    /// Smallest RTT of `epoch` towards the side this direction leads to.
    #[must_use]
    pub const fn rtt_min(&self, epoch: u32) -> Option<Span> {
        if self.rtt.epoch != epoch || self.rtt.min_ns == u32::MAX {
            return None;
        }
        Some(Span::from_nanos(self.rtt.min_ns as u64))
    }

    /// Whether the sender filled the window it knew of in `epoch`.
    #[must_use]
    pub const fn window_limited(&self, epoch: u32) -> bool {
        self.epoch == epoch && self.data_flags & Self::LIMITED != 0
    }

    /// Longest pause between payload and payload in `epoch`, the one that lasts at `now` included.
    #[must_use]
    pub fn longest_gap(&self, epoch: u32, now: Time) -> Span {
        let lasts = now.since(Time::from_nanos(self.data_ns));
        if self.epoch == epoch { lasts.max(Span::from_nanos(u64::from(self.gap_ns))) } else { lasts }
    }

    /// Scale of the windows that this direction's receiver advertises, if both SYNs or conntrack told it.
    #[must_use]
    pub const fn known_scale(&self) -> Option<u8> {
        if self.flags & Self::SCALE_KNOWN != 0 {
            Some(self.scale)
        } else if self.conntrack_scale != 0 {
            let scale = self.conntrack_scale - 1;
            Some(if scale > LARGEST_SCALE { LARGEST_SCALE } else { scale })
        } else {
            None
        }
    }
}

/// One connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct FlowState {
    /// Indexed by [`crate::packet::Direction::index`].
    pub half: [Half; 2],
    /// When a packet of this connection last passed.
    pub last_seen_ns: u64,
    /// When the first one passed.
    pub first_seen_ns: u64,
    /// Number (ifindex) of the interface towards the station that the newest packet passed; 0: not known.
    pub port: u32,
    /// Which of [`Control::hops`] that is.
    pub hop: u32,
    /// 1: one end has acknowledged what the other was seen to send (`fastpath::gate`).
    pub assured: u32,
    /// [`Control::readings`] when it was last noted that a packet of it had passed.
    pub noted: u32,
}

impl FlowState {
    /// A connection whose first packet passes now.
    #[must_use]
    pub fn new(control: &Control, now: Time) -> Self {
        let fresh = |plan| Half {
            plan,
            epoch: control.epoch,
            rtt: RttMatch { min_ns: u32::MAX, epoch: control.epoch, ..RttMatch::default() },
            ..Half::default()
        };
        let [to_station, to_remote] = control.default_plan;
        let now_ns = now.as_nanos();
        Self {
            half: [fresh(to_station), fresh(to_remote)],
            last_seen_ns: now_ns,
            first_seen_ns: now_ns,
            ..Self::default()
        }
    }

    /// Whether the data that goes in `direction` has ended: its sender has no more, or one of the two ends the connection.
    #[must_use]
    pub const fn closing(&self, direction: Direction) -> bool {
        let (own, other) = (self.half[direction.index()].data_flags, self.half[direction.reverse().index()].data_flags);
        own & Half::CLOSING != 0 || (own | other) & Half::RESET != 0
    }
}

/// What the controller wants of one direction of a UDP flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct UdpPlan {
    /// IP bytes that may pass in 2^30 ns (1.07 s); 0: leave the flow alone.
    pub rate_bytes: u32,
    /// How far it may run ahead of that rate before it is told, bytes: a usual burst.
    pub depth_bytes: u32,
    /// How far at most, bytes: beyond it nothing passes that the rate does not carry.
    pub most_bytes: u32,
    /// Within so long its answer comes, ns: it is told no more than once in that time.
    pub answer_ns: u32,
}

/// One direction of a UDP flow. Written by packets this way, but for the plan, which the controller writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct UdpHalf {
    /// IP bytes that arrived in this direction, cumulative, dropped ones included.
    pub bytes: u64,
    /// Packets, likewise (a GRO-merged one counts its segments).
    pub packets: u64,
    /// IP bytes of those that were full, likewise.
    pub full_bytes: u64,
    /// IP bytes that were dropped, cumulative.
    pub dropped_bytes: u64,
    /// Time in pauses between trains, ns, cumulative; one longer than 2^30 ns counts as that.
    pub pause_ns: u64,
    /// When the newest packet passed; 0: none yet.
    pub last_ns: u64,
    /// When the newest train began.
    pub train_ns: u64,
    /// When the virtual queue was last drained; 0: no plan was in force.
    pub drained_ns: u64,
    /// When the flow was told last; 0: it was not.
    pub told_ns: u64,
    /// Trains so far: packets without a pause between them.
    pub trains: u32,
    /// Of those, how many began about one period after the one before.
    pub regular: u32,
    /// Running mean of the distance between the beginnings of trains, ns; 0: not known yet.
    pub period_ns: u32,
    /// Packets that were marked, cumulative; in a dry run none.
    pub marked: u32,
    /// Packets that were dropped, likewise.
    pub dropped: u32,
    /// The virtual queue, bytes: what passed beyond the rate of the plan.
    pub level_bytes: u32,
    /// The flow is told again when its virtual queue comes to this, bytes.
    pub next_bytes: u32,
    /// What the controller wants. Written by the controller.
    pub plan: UdpPlan,
    /// Explicit padding; always 0.
    pub pad: u32,
}

/// One UDP flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct UdpState {
    /// Indexed by [`crate::packet::Direction::index`].
    pub half: [UdpHalf; 2],
    /// When a packet of this flow last passed.
    pub last_seen_ns: u64,
    /// When the first one passed.
    pub first_seen_ns: u64,
    /// The port that it crossed last, as in [`FlowState::port`].
    pub port: u32,
    /// The hop that it crossed last, as in [`FlowState::hop`].
    pub hop: u32,
    /// 1: its first full packet began a QUIC connection.
    pub quic: u32,
    /// Explicit padding; always 0.
    pub pad: u32,
}

impl UdpState {
    /// A flow whose first full packet passes now, and began no QUIC connection.
    #[must_use]
    pub fn new(now: Time) -> Self {
        let now_ns = now.as_nanos();
        Self { last_seen_ns: now_ns, first_seen_ns: now_ns, ..Self::default() }
    }
}

/// How many hops towards stations are told apart; a power of two. The first is that of all interfaces that have none of their own.
pub const HOPS: usize = 16;

/// The connections of one hop whose data goes in one direction: what they may begin with together, and at what pace they move
/// (`fastpath::hop`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Hop {
    /// What comes back of `left_bytes` in 2^30 ns (1.07 s), bytes. Written by the controller.
    pub rate_bytes: u32,
    /// What SYNs may advertise at once, bytes; 0: what they like. Written by the controller.
    pub depth_bytes: u32,
    /// What they may promise now, bytes. From here on, but where said: written by the fast path.
    pub left_bytes: u32,
    /// What a window update tells at least that [`crate::fastpath::window::due`] asks the host for, bytes; 0: the host sends none. Written by the
    /// controller.
    pub updates: u32,
    /// When `left_bytes` was last topped up; 0: never.
    pub earned_ns: u64,
    /// Explicit padding; always 0. What data write lies in a line of the processor's cache of its own, as what acknowledgments write does.
    pub pad_start: [u64; 5],
    /// When payload last came to the access point.
    pub data_ns: u64,
    /// How long payload took to come, without the pauses between trains, cumulative.
    pub came_ns: u64,
    /// What came in that time, bytes.
    pub came_bytes: u64,
    /// Explicit padding; always 0.
    pub pad_came: [u64; 5],
    /// When an ACK last brought something.
    pub acked_ns: u64,
    /// How long payload took to arrive while more was in flight, without the pauses between trains, cumulative.
    pub served_ns: u64,
    /// What arrived in that time, bytes.
    pub served_bytes: u64,
    /// When the stations last brought data of this direction, or acknowledged some.
    pub brought_ns: u64,
    /// What came in bunches, three segments or more that they brought at once (`fastpath::hop`), cumulative, bytes.
    pub bunched_bytes: u64,
    /// How often they brought as many, cumulative.
    pub bunches: u64,
    /// What they have brought since they last paused, bytes.
    pub bunch_bytes: u64,
    /// Explicit padding; always 0.
    pub pad_served: u64,
}

/// What the controller tells the fast path, in one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Control {
    /// When the controller last said that it is alive; older than [`Control::STALE_NS`]: pass everything.
    pub heartbeat_ns: u64,
    /// Current measuring epoch; a change restarts the per-epoch minima.
    pub epoch: u32,
    /// 1: decide and count, rewrite nothing.
    pub dry_run: u32,
    /// From then on no window updates are to be expected: its next decision is late by an interval; 0: nobody said.
    pub silent_ns: u64,
    /// When whoever sends window updates looks by itself whether one is asked for; an ask that can wait until then wakes nobody.
    pub looks_ns: u64,
    /// Tick of most senders' timestamp clocks, ns: by it the soonest of an interval is found; 0: not known, the newest counts.
    pub tick_ns: u64,
    /// What a new connection starts with, per direction of its data.
    pub default_plan: [Plan; 2],
    /// How often the controller has begun to read connections: the first packet after that notes its connection for the next time.
    pub readings: u32,
    /// Explicit padding; always 0.
    pub pad: [u32; 13],
    /// All of one hop together, by direction of their data.
    pub hops: [[Hop; 2]; HOPS],
}

impl Control {
    /// Age of a heartbeat after which the data path fails open.
    pub const STALE_NS: u64 = 2_000_000_000;
}

/// What became of a packet. One counter each; the numbers are shared with C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Reason {
    /// The window of the ACK was lowered.
    Rewritten = 0,
    /// Controlled, and the window was already low enough.
    WithinPlan = 1,
    /// Dry run: it would have been lowered.
    WouldRewrite = 2,
    /// SYN: its window is within what a new connection may promise, or nobody says what that is.
    Syn = 3,
    /// RST.
    Rst = 4,
    /// Zero window: the receiver's own stop sign.
    ZeroWindow = 5,
    /// Window scale unknown: the connection is older than the controller and conntrack did not know it.
    ScaleUnknown = 6,
    /// No plan for this direction.
    NoPlan = 7,
    /// The controller's heartbeat is too old.
    Stale = 8,
    /// IP fragment.
    Fragment = 9,
    /// A header is truncated or contradicts itself.
    Malformed = 10,
    /// Not IP (ARP, ...), or a link header that is not understood.
    NotIp = 11,
    /// TCP-MD5, TCP-AO or IPsec AH: a changed header would be refused.
    Authenticated = 12,
    /// UDP that no plan holds: measured, not touched.
    Udp = 13,
    /// Another transport (ICMP, ...).
    OtherTransport = 14,
    /// TCP without ACK.
    NoAck = 15,
    /// The flow table took no more.
    TableFull = 16,
    /// UDP of a flow that is held to a plan, and within it.
    UdpWithinPlan = 17,
    /// UDP beyond its plan: marked in its IP header (RFC 3168, CE).
    UdpMarked = 18,
    /// UDP beyond its plan whose ends do not understand marks, or too far beyond: dropped.
    UdpDropped = 19,
    /// Dry run: it would have been marked or dropped.
    UdpWouldSteer = 20,
    /// TCP that does not fit what the two ends have shown, or whose checksum is wrong: nothing was learned from it.
    Invalid = 21,
    /// The window would have been lowered, and the kernel could not change the packet.
    Unwritable = 22,
}

impl Reason {
    /// How many there are.
    pub const COUNT: usize = 23;

    /// Every one, in the order of their numbers.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Rewritten,
        Self::WithinPlan,
        Self::WouldRewrite,
        Self::Syn,
        Self::Rst,
        Self::ZeroWindow,
        Self::ScaleUnknown,
        Self::NoPlan,
        Self::Stale,
        Self::Fragment,
        Self::Malformed,
        Self::NotIp,
        Self::Authenticated,
        Self::Udp,
        Self::OtherTransport,
        Self::NoAck,
        Self::TableFull,
        Self::UdpWithinPlan,
        Self::UdpMarked,
        Self::UdpDropped,
        Self::UdpWouldSteer,
        Self::Invalid,
        Self::Unwritable,
    ];

    /// The name that status and report use for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rewritten => "rewritten",
            Self::WithinPlan => "within-plan",
            Self::WouldRewrite => "would-rewrite",
            Self::Syn => "syn",
            Self::Rst => "rst",
            Self::ZeroWindow => "zero-window",
            Self::ScaleUnknown => "scale-unknown",
            Self::NoPlan => "no-plan",
            Self::Stale => "stale-heartbeat",
            Self::Fragment => "fragment",
            Self::Malformed => "malformed",
            Self::NotIp => "not-ip",
            Self::Authenticated => "authenticated",
            Self::Udp => "udp",
            Self::OtherTransport => "other-transport",
            Self::NoAck => "no-ack",
            Self::TableFull => "table-full",
            Self::UdpWithinPlan => "udp-within-plan",
            Self::UdpMarked => "udp-marked",
            Self::UdpDropped => "udp-dropped",
            Self::UdpWouldSteer => "udp-would-steer",
            Self::Invalid => "invalid",
            Self::Unwritable => "unwritable",
        }
    }

    /// The flow is under control: a packet that met this was held to its plan, or needed no holding.
    #[must_use]
    pub const fn is_controlled(self) -> bool {
        self.is_of_a_window() || self.is_of_a_virtual_queue()
    }

    /// TCP whose window is held to a plan.
    #[must_use]
    pub const fn is_of_a_window(self) -> bool {
        matches!(self, Self::Rewritten | Self::WouldRewrite | Self::WithinPlan)
    }

    /// UDP whose rate is held to a plan.
    #[must_use]
    pub const fn is_of_a_virtual_queue(self) -> bool {
        matches!(self, Self::UdpWithinPlan | Self::UdpMarked | Self::UdpDropped | Self::UdpWouldSteer)
    }
}

/// What one hop carried, by direction; what was dropped is no part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct HopCounters {
    /// IP bytes, everything.
    pub ip_bytes: [u64; 2],
    /// IP bytes of UDP.
    pub udp_bytes: [u64; 2],
    /// Packets of UDP.
    pub udp_packets: [u64; 2],
}

impl HopCounters {
    /// Adds what another CPU counted.
    fn add(&mut self, other: &Self) {
        let sum = |mine: &mut [u64; 2], theirs: &[u64; 2]| {
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine = mine.wrapping_add(*theirs));
        };
        sum(&mut self.ip_bytes, &other.ip_bytes);
        sum(&mut self.udp_bytes, &other.udp_bytes);
        sum(&mut self.udp_packets, &other.udp_packets);
    }
}

/// Counts per [`Reason`] and what link and transports carried (what was dropped is no part of that); one per CPU in BPF.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counters {
    /// Packets by reason, indexed by `Reason as usize`.
    pub reason: [u64; Reason::COUNT],
    /// IP bytes by direction, everything.
    pub ip_bytes: [u64; 2],
    /// IP bytes of UDP by direction.
    pub udp_bytes: [u64; 2],
    /// IP bytes of TCP by direction.
    pub tcp_bytes: [u64; 2],
    /// Packets by direction.
    pub packets: [u64; 2],
    /// Packets of UDP by direction.
    pub udp_packets: [u64; 2],
    /// What each hop carried of that.
    pub hops: [HopCounters; HOPS],
}

impl Counters {
    /// Adds what another CPU counted.
    pub fn add(&mut self, other: &Self) {
        let pairs = [
            (&mut self.reason[..], &other.reason[..]),
            (&mut self.ip_bytes, &other.ip_bytes),
            (&mut self.udp_bytes, &other.udp_bytes),
            (&mut self.tcp_bytes, &other.tcp_bytes),
            (&mut self.packets, &other.packets),
            (&mut self.udp_packets, &other.udp_packets),
        ];
        for (mine, theirs) in pairs {
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine = mine.wrapping_add(*theirs));
        }
        self.hops.iter_mut().zip(&other.hops).for_each(|(mine, theirs)| mine.add(theirs));
    }
}

// What `bpf/layout.h` asserts too; with the sums of the fields these leave no room for hidden padding.
const _: () = {
    assert!(size_of::<FlowKey>() == 16 + 16 + 2 + 2);
    assert!(size_of::<Plan>() == 4 * 4);
    assert!(size_of::<RttMatch>() == 6 * 8 + 6 * 4);
    assert!(size_of::<Half>() == size_of::<RttMatch>() + 8 * 8 + size_of::<Plan>() + 13 * 4 + 12);
    assert!(size_of::<FlowState>() == 2 * size_of::<Half>() + 2 * 8 + 4 * 4);
    assert!(size_of::<UdpPlan>() == 4 * 4);
    assert!(size_of::<UdpHalf>() == 9 * 8 + 7 * 4 + size_of::<UdpPlan>() + 4);
    assert!(size_of::<UdpState>() == 2 * size_of::<UdpHalf>() + 2 * 8 + 4 * 4);
    assert!(size_of::<Hop>() == 3 * 64);
    assert!(offset_of!(Hop, data_ns) == 64 && offset_of!(Hop, acked_ns) == 2 * 64);
    assert!(offset_of!(Control, hops).is_multiple_of(64));
    assert!(size_of::<Control>() == 8 + 2 * 4 + 3 * 8 + 2 * size_of::<Plan>() + 14 * 4 + HOPS * 2 * size_of::<Hop>());
    assert!(size_of::<HopCounters>() == 3 * 2 * 8);
    assert!(size_of::<Counters>() == (Reason::COUNT + 5 * 2) * 8 + HOPS * size_of::<HopCounters>());
    assert!(HOPS.is_power_of_two());
};
