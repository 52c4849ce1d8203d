//! What the two ends tell each other.

/// What a sender sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Offset of its first byte.
    pub offset: u64,
    /// Payload, bytes; 0 for a SYN.
    pub bytes: u32,
    /// It opens the connection; the window of its answer is not scaled.
    pub syn: bool,
    /// Nothing follows it: the last byte of the stream is in it.
    pub fin: bool,
    /// It was sent before.
    pub again: bool,
}

/// What a receiver answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// Everything before this offset has arrived.
    pub offset: u64,
    /// Receive window: bytes beyond `offset` that may be outstanding.
    pub window_bytes: u64,
    /// What has arrived beyond a hole.
    pub sack: SackBlocks,
    /// It answers a SYN.
    pub syn: bool,
}

/// Up to three ranges `[start, end)` beyond the cumulative acknowledgment, the newest first (RFC 2018 section 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [(u64, u64); 3],
    count: u8,
}

impl SackBlocks {
    /// Adds a range behind those that are there; a fourth is left out.
    pub fn push(&mut self, start: u64, end: u64) {
        if let Some(free) = self.blocks.get_mut(usize::from(self.count)) {
            *free = (start, end);
            self.count += 1;
        }
    }

    /// None.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The ranges, the newest first.
    #[must_use]
    pub fn as_slice(&self) -> &[(u64, u64)] {
        &self.blocks[..usize::from(self.count)]
    }
}
