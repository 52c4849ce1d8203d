//! What the fast path keeps, in the layout that `bpf/layout.h` states in C: same order, same sizes, no hidden padding.
//!
//! Sequence numbers are TCP's, modulo 2^32, in host order. Times are `bpf_ktime_get_ns`, in nanoseconds.

/// Names a TCP connection as the access point sees it: the station's end first, whichever way a packet goes.
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
}

/// RTT towards one side, matched two ways: data by sequence number, ACKs by the timestamp that comes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RttMatch {
    /// When the segment ending at `seq_end` left; 0: none outstanding.
    pub seq_sent_ns: u64,
    /// When `tsval` was first seen leaving; 0: none outstanding.
    pub ts_sent_ns: u64,
    /// Sum of all samples, ns, cumulative.
    pub sum_ns: u64,
    /// Number of all samples, cumulative.
    pub samples: u32,
    /// The ACK that ends the sequence match.
    pub seq_end: u32,
    /// The timestamp whose echo ends the timestamp match.
    pub tsval: u32,
    /// Smallest sample of the current epoch, ns, capped at `u32::MAX` - 1; `u32::MAX`: none.
    pub min_ns: u32,
    /// Newest sample, ns, capped likewise; 0: none yet.
    pub last_ns: u32,
    /// Explicit padding; always 0.
    pub pad: u32,
}

/// One direction of data of a connection: what has been sent, what the receiver has promised, what it is held to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Half {
    /// RTT towards the side this direction leads to.
    pub rtt: RttMatch,
    /// IP bytes that passed in this direction, cumulative, ACKs included.
    pub bytes: u64,
    /// Packets that passed in this direction, cumulative (a GRO-merged one counts its segments).
    pub packets: u64,
    /// TCP payload bytes that passed in this direction, cumulative, retransmissions included.
    pub payload_bytes: u64,
    /// ACKs for this direction's data whose window was lowered, cumulative.
    pub rewritten: u64,
    /// What the controller wants.
    pub plan: Plan,
    /// End of the highest data sent; valid with [`Half::DATA_SEEN`].
    pub snd_nxt: u32,
    /// Right edge promised to the sender so far: the largest ack + window that was let through.
    pub edge: u32,
    /// Highest byte known to have arrived: cumulative ACK, or the highest SACK edge above it.
    pub delivered: u32,
    /// Highest cumulative ACK seen.
    pub acked: u32,
    /// The window in force: grows from its start towards `plan.clamp_bytes`, bytes.
    pub window: u32,
    /// Largest payload of one segment seen, bytes.
    pub mss: u32,
    /// Epoch (`Control::epoch`) that `rtt.min_ns` and [`Half::LIMITED`] belong to.
    pub epoch: u32,
    /// Window scale of this direction's receiver, 0..=14; valid with [`Half::SCALE_KNOWN`].
    pub scale: u8,
    /// The bits below.
    pub flags: u8,
    /// Duplicate ACKs in a row, saturating.
    pub dup_acks: u8,
    /// Explicit padding; always 0.
    pub pad: [u8; 5],
}

impl Half {
    /// `scale` was learned from both SYNs, or told by conntrack.
    pub const SCALE_KNOWN: u8 = 1;
    /// The SYN of this direction's receiver was seen and carried a scale; it holds only if the other SYN had one too.
    pub const SCALE_OFFERED: u8 = 2;
    /// `edge`, `delivered`, `acked` and `window` are valid.
    pub const EDGE_KNOWN: u8 = 4;
    /// `snd_nxt` is valid.
    pub const DATA_SEEN: u8 = 8;
    /// In this epoch the sender filled the promised window to within one segment.
    pub const LIMITED: u8 = 16;
    /// The receiver of this direction sent a FIN or RST, or its sender did: the flow is ending.
    pub const CLOSING: u8 = 32;
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
    /// What a new connection starts with, per direction.
    pub default_plan: [Plan; 2],
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
    /// SYN: its window is never touched.
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
    /// TCP-MD5 or TCP-AO: a changed header would be refused.
    Authenticated = 12,
    /// UDP: measured, never touched.
    Udp = 13,
    /// Another transport (ICMP, ...).
    OtherTransport = 14,
    /// TCP without ACK.
    NoAck = 15,
    /// The flow table took no more.
    TableFull = 16,
}

impl Reason {
    /// How many there are.
    pub const COUNT: usize = 17;
}

/// Counts per [`Reason`] and what link and transports carried; one per CPU in BPF.
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
}
