//! What a capture of the channel shows: every attempt to send a frame, with the times of all its frames.

use lasthop_core::units::{Span, Time};

use crate::medium::NodeId;
use crate::phy::Rate;

/// One frame on the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its first symbol.
    pub start: Time,
    /// Preamble to last symbol.
    pub duration: Span,
    /// It is sent at.
    pub rate: Rate,
}

impl Frame {
    /// After its last symbol.
    #[must_use]
    pub fn end(&self) -> Time {
        self.start + self.duration
    }
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptFate {
    /// Its sender has the ACK.
    Acked,
    /// The RTS (where no data follows) or the data did not arrive.
    Lost,
    /// The same, because others sent too.
    Collided,
    /// The CTS did not arrive.
    CtsLost,
    /// The data arrived, its ACK did not.
    AckLost,
}

/// One transmission of a packet: [RTS, CTS,] [CTS-to-self,] data, ACK, as far as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt<P> {
    /// Sender.
    pub from: NodeId,
    /// Receiver.
    pub to: NodeId,
    /// Sent before.
    pub is_retry: bool,
    /// Announces the exchange.
    pub rts: Option<Frame>,
    /// The receiver's answer to it.
    pub cts: Option<Frame>,
    /// Sent by the sender before OFDM data where radios of 802.11b listen.
    pub cts_to_self: Option<Frame>,
    /// The packet; absent when RTS or CTS were lost.
    pub data: Option<Frame>,
    /// The receiver's answer.
    pub ack: Option<Frame>,
    /// How it ended.
    pub fate: AttemptFate,
    /// What was to be carried. A host that reuses what a packet names (an arena's slot) reads it before it goes on.
    pub packet: P,
    /// Length of it, IP bytes.
    pub ip_bytes: u32,
}

impl<P> Attempt<P> {
    /// Its first frame's first symbol.
    #[must_use]
    pub fn start(&self) -> Time {
        let first = self.rts.or(self.cts_to_self).or(self.data);
        first.map_or(Time::ZERO, |frame| frame.start)
    }
}
