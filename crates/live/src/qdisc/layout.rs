//! What the controller and the queue discipline tell each other; `bpf/chap_layout.h` states the same.
//!
//! Times are nanoseconds, of CLOCK_MONOTONIC where they are points in time. Every record is integers without padding.

/// Stations that have a cost, and a shared account, of their own.
pub const STATIONS: usize = 64;
/// Packets that it can hold, one for the newcomer not counted.
pub const LARGEST_LIMIT: u32 = 4_095;
/// Flows that it can remember.
pub const FLOWS: u32 = 4_032;

/// What a packet costs: channel time of each byte, and of each packet whatever its size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct PacketCost {
    /// Of a byte, 2^-16 ns; 0: no cost of its own.
    pub byte_ns_q16: u64,
    /// Of a packet, ns.
    pub packet_ns: u64,
}

/// What the controller says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Control {
    /// When it was last alive.
    pub heartbeat_ns: u64,
    /// I of CHAP.
    pub increment_ns: u64,
    /// How long a flow without packets is remembered.
    pub active_ns: u64,
    /// In which the credit of one new flow comes in, per station.
    pub interval_ns: u64,
    /// In which an empty bucket of that credit becomes full.
    pub burst_ns: u64,
    /// How far the pace may catch up after a late timer, while somebody waits.
    pub slack_ns: u64,
    /// Of the hash of addresses.
    pub secret: u64,
    /// Packets held at most, 1 to [`LARGEST_LIMIT`].
    pub limit: u32,
    /// 0: connections; 1: hosts.
    pub flow_kind: u32,
    /// Link header before the IP header: 14 on Ethernet and Wi-Fi, 0 on tun, ppp and the like.
    pub header_bytes: u32,
    /// 0.
    pub pad: u32,
    /// Of stations that have none.
    pub cost: PacketCost,
    /// By station, see `chap_station` of `bpf/chap.h`.
    pub station: [PacketCost; STATIONS],
}

/// What the queue discipline counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Metrics {
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes of them, link headers included.
    pub sent_bytes: u64,
    /// Channel time of them.
    pub sent_ns: u64,
    /// Dropped because the queue was full.
    pub dropped: u64,
    /// Lost for any other reason; stays 0.
    pub lost: u64,
    /// Boosts of all active flows.
    pub boosts: u64,
    /// Flows known now.
    pub flows: u64,
    /// Flows that were given an account of their own.
    pub admitted: u64,
    /// Packets that went to a station's shared account.
    pub shared: u64,
    /// Of those, because the station's new flows had used up their credit.
    pub over_cap: u64,
    /// Of those, because the flow's set was full of flows with packets.
    pub no_room: u64,
    /// Flows that left for others while they were active.
    pub evicted: u64,
    /// Packets that an offload engine had merged from several.
    pub merged: u64,
    /// How often the pace made somebody wait.
    pub waits: u64,
    /// Packets sent without pace because the controller was silent.
    pub unpaced: u64,
    /// Packets held now.
    pub queued: u64,
    /// Flows with packets now.
    pub backlogged: u64,
    /// Most packets held at once.
    pub most_queued: u64,
}

const _: () = assert!(size_of::<PacketCost>() == 2 * 8);
const _: () = assert!(size_of::<Control>() == 7 * 8 + 4 * 4 + (1 + STATIONS) * size_of::<PacketCost>());
const _: () = assert!(size_of::<Metrics>() == 18 * 8);
