//! What Snoop is told, and what it tells.

use crate::units::{Span, Time};

/// Whose habits Snoop has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Conduct {
    /// The law of the module.
    #[default]
    Standard,
    /// ns-2.35's `LL/LLSnoop`, seen by reading and running it: every second sign of a hole, counted over all connections
    /// together, is let through and does nothing; as many duplicates are held back as segments were outstanding, the next
    /// one passes; the timer does not back off and knows neither Karn's rule nor `2 x srtt`; blocks (SACK) are not read; the
    /// A SYN is cached and repaired as data are.
    Ns2,
}

/// How much Snoop holds, and how long it tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Most connections known at a time, at least 1; the one used longest ago leaves. 16,384: the table then takes some
    /// 4 MB.
    pub connections: usize,
    /// Most segments cached of one connection, at least 1: what is looked at with each duplicate. 1,024.
    pub segments: usize,
    /// Most bytes cached of one connection. 1 MiB: 35 ms of a hop's round trip at 240 Mbit/s; a hop's product is what
    /// matters, since what the station acknowledged is not cached.
    pub connection_bytes: u64,
    /// Most bytes cached in all. 32 MiB: what a small router can spare.
    pub bytes: u64,
    /// Most local retransmissions of a segment. 4: with 5 % of packets lost that leaves one hole in three million, and by
    /// the time the fourth has failed (1.5 s of doubled timers) the sender's own timer has long taken over. ns-2: 10.
    pub retries: u32,
    /// Least time after which the timer retransmits. 100 ms: over a delayed acknowledgment (40 ms in Linux) and the queue of
    /// the hop, under the least retransmission timeout of senders (200 ms in Linux). ns-2: 100 ms.
    pub least_timer: Span,
    /// Duplicate acknowledgments that make a hole, at least 1. 1: a hop does not reorder.
    pub duplicates: u32,
    /// See [`Conduct`].
    pub conduct: Conduct,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            connections: 16_384,
            segments: 1_024,
            connection_bytes: 1 << 20,
            bytes: 32 << 20,
            retries: 4,
            least_timer: Span::from_millis(100),
            duplicates: 1,
            conduct: Conduct::Standard,
        }
    }
}

impl Params {
    /// As ns-2.35: its conduct, 10 retries, 100 segments.
    #[must_use]
    pub fn ns2() -> Self {
        Self { segments: 100, retries: 10, conduct: Conduct::Ns2, ..Self::default() }
    }
}

/// A packet of TCP on its way to a wireless host, as its header says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Data {
    /// Names the connection, the same for both directions; the host chooses.
    pub connection: u64,
    /// Sequence number of the first byte, modulo 2^32.
    pub seq: u32,
    /// Payload, bytes; 0 for a bare acknowledgment.
    pub bytes: u32,
    /// Opens a connection: what was known of an earlier one with the same name is forgotten. Takes one sequence number.
    pub syn: bool,
    /// The last of its direction; takes one sequence number.
    pub fin: bool,
    /// Ends the connection.
    pub rst: bool,
    /// The queue below will not take it, or hardly: it is not cached, so that its loss is the sender's business. False
    /// where Snoop stands below the queue.
    pub queue_full: bool,
}

/// A packet of TCP that comes from a wireless host, as its header says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack<'a> {
    /// As in [`Data::connection`].
    pub connection: u64,
    /// Next byte the wireless host expects, modulo 2^32.
    pub ack: u32,
    /// Window as written or scaled: it is compared with that of the acknowledgment before, and with zero.
    pub window: u32,
    /// Blocks `[start, end)` in the order of the option (RFC 2018), a report of a duplicate (RFC 2883) included.
    pub sack: &'a [(u32, u32)],
    /// It carries more than an acknowledgment: payload, FIN, urgent data, an echo of congestion (ECE). Never held back.
    pub carries_more: bool,
    /// Opens a connection: what was known of an earlier one is forgotten.
    pub syn: bool,
    /// Ends the connection.
    pub rst: bool,
}

/// What becomes of an acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum SnoopVerdict {
    /// It is forwarded unchanged.
    Forward,
    /// It goes on without its SACK blocks: it acknowledges something new, and every hole that the blocks tell of is being
    /// repaired here. Forwarding it as it is does no harm but to the sender's window.
    Strip,
    /// It is dropped: a duplicate that tells of nothing but holes that are being repaired here.
    Suppress,
}

/// A cached packet to be sent to the wireless host once more, ahead of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retransmission<P> {
    /// The connection that it belongs to.
    pub connection: u64,
    /// The copy.
    pub packet: P,
}

/// What happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Snapshot {
    /// Connections known now.
    pub connections: usize,
    /// Segments cached now.
    pub segments: usize,
    /// Bytes cached now.
    pub bytes: u64,
    /// Most bytes cached at a time.
    pub most_bytes: u64,
    /// Segments cached so far, a sender's retransmissions included.
    pub cached: u64,
    /// Segments that senders sent again.
    pub sent_again: u64,
    /// Segments not cached because their connection had its share.
    pub refused_connection: u64,
    /// Segments not cached because all memory was taken by connections in use.
    pub refused: u64,
    /// Segments left to their sender because the queue below was full or dropped them.
    pub queue_full: u64,
    /// Connections forgotten, with what was cached of them, to make room for others.
    pub evicted: u64,
    /// Local retransmissions because of duplicate acknowledgments or blocks.
    pub by_duplicates: u64,
    /// Local retransmissions because of the timer.
    pub by_timer: u64,
    /// Acknowledgments dropped.
    pub suppressed: u64,
    /// Acknowledgments that lost their blocks.
    pub stripped: u64,
    /// Segments left to their sender after the last retry.
    pub gave_up: u64,
    /// Acknowledgments of what was never sent, and blocks that make no sense.
    pub strange: u64,
}

/// Of one connection, for those who look closely.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionSnapshot {
    /// Segments cached.
    pub segments: usize,
    /// Bytes cached.
    pub bytes: u64,
    /// Smoothed round trip of the hop; none before the first sample.
    pub srtt: Option<Span>,
    /// When the timer goes off.
    pub deadline: Option<Time>,
}
