//! What queues, air and schedulers need to know of a packet.

/// Names a flow within one host; the host chooses the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowId(pub u32);

/// What counts as one flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FlowKind {
    /// Addresses, ports and protocol: as a NAT sees flows.
    #[default]
    Connection,
    /// Source, destination and protocol, as CHAP's own queue discipline had it: six connections of a web page are one.
    Hosts,
}

/// One step of the hash that tells flows apart ([`crate::credit::key`] says what is hashed).
#[inline]
#[must_use]
pub const fn mix(x: u64) -> u64 {
    let y = (x ^ x >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    y ^ y >> 29
}

/// Class of traffic on the air (IEEE 802.11-2020, 10.2.3.2), the one that goes first first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum AccessCategory {
    /// Voice.
    Vo = 0,
    /// Video.
    Vi = 1,
    /// Best effort.
    #[default]
    Be = 2,
    /// Background.
    Bk = 3,
}

impl AccessCategory {
    /// All, in index order.
    pub const ALL: [Self; 4] = [Self::Vo, Self::Vi, Self::Be, Self::Bk];

    /// Index into arrays of four.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// In the simulator a small Copy struct of header fields; in the emulator and the userspace datapath an index into
/// a frame arena.
pub trait Packet {
    /// The flow the packet belongs to.
    fn flow(&self) -> FlowId;
    /// Length in IP bytes: header and payload of the network layer, no link-layer framing.
    fn bytes(&self) -> u32;
    /// Late is as bad as lost: games, calls, live video. What may be treated by class of traffic asks this.
    fn is_realtime(&self) -> bool {
        false
    }
    /// Its class on an air that has classes.
    fn access_category(&self) -> AccessCategory {
        AccessCategory::Be
    }
    /// What queues with a queue per flow tell flows apart by; the same for both directions of a connection.
    fn key(&self, kind: FlowKind) -> u64 {
        let _ = kind;
        mix(u64::from(self.flow().0) + 1)
    }
    /// Tells its receiver of congestion in place of a drop (RFC 3168, CE). False: its ends do not understand that.
    fn mark_ce(&mut self) -> bool {
        false
    }
}

/// Direction in which a packet crosses the access point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Direction {
    /// Towards the home's stations: downloads. Leaves through a LAN interface (tc egress).
    ToStation = 0,
    /// Towards the rest of the world: uploads. Enters through a LAN interface (tc ingress).
    ToRemote = 1,
}

impl Direction {
    /// Both, in index order.
    pub const BOTH: [Self; 2] = [Self::ToStation, Self::ToRemote];

    /// The return path.
    #[must_use]
    pub const fn reverse(self) -> Self {
        match self {
            Self::ToStation => Self::ToRemote,
            Self::ToRemote => Self::ToStation,
        }
    }

    /// Index into arrays of two.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}
