//! What the two ends of some laws tell each other beside the header, in options of their own.
//!
//! The host carries them: a sender's [`mark`](crate::Sender::mark) goes with the segment polled last, and the receiver hears of it
//! ([`on_mark`](crate::Receiver::on_mark)) before the segment; a receiver's [`note`](crate::Receiver::note) goes with the
//! acknowledgment polled last, and the sender hears of it ([`on_note`](crate::Sender::on_note)) before the acknowledgment. With
//! laws that have neither ([`Algorithm::reports`](crate::Algorithm::reports)) none of them need be called.

/// What a receiver watches for its sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Reports {
    /// Nothing: plain TCP.
    #[default]
    Nothing,
    /// The rate at which each wave arrives (TCP-Real).
    Waves,
    /// Probes, which it answers with their numbers (TCP probing).
    Probes,
    /// Which losses are the link's, by the arrivals around them (Biaz and Vaidya).
    Losses,
    /// How packets spread in flight (WTCP).
    Gaps,
}

/// What a receiver tells its sender with an acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// How fast the newest whole wave arrived (TCP-Real).
    Wave {
        /// Its number, as marked.
        wave: u32,
        /// Payload, bytes/s.
        rate: u64,
    },
    /// It answers a probe (TCP probing).
    Probe {
        /// Its number, as marked.
        number: u32,
    },
    /// What is missing at the offset it acknowledges was lost on the link, not in a queue.
    Corrupted {
        /// That offset.
        offset: u64,
    },
    /// How packets spread in flight, and how many are lost (WTCP).
    Gaps {
        /// Gap of arrivals over gap of sendings, a mean of few, 1/1000.
        short: u16,
        /// The ratio as a mean of many.
        long: u16,
        /// What a pair of packets showed of the path, payload bytes/s; 0: nothing yet.
        pair: u64,
        /// More are lost than is usual.
        heavy: bool,
    },
}
