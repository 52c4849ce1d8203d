//! What a capture of the channel shows: every attempt to send a frame, with the times of all its frames.

use lasthop_core::packet::AccessCategory;
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

/// Which MPDU of a frame of several an attempt is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InAggregate {
    /// Of this run, the same for all MPDUs of a frame.
    pub number: u32,
    /// From 0.
    pub index: u16,
    /// MPDUs of the frame.
    pub mpdus: u16,
}

/// One transmission of a packet: [RTS, CTS,] [CTS-to-self,] data, ACK, as far as it came. Of an aggregate every packet is an
/// attempt: RTS, CTS and CTS-to-self stand in the first, the block ack in the last, and the data frame, the same, in all.
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
    /// Its class and place, where the frame is one of 802.11n, ac or ax.
    pub class: Option<AccessCategory>,
    /// Where the frame has several MPDUs.
    pub aggregate: Option<InAggregate>,
}

impl<P> Attempt<P> {
    /// Its first frame's first symbol.
    #[must_use]
    pub fn start(&self) -> Time {
        let first = self.rts.or(self.cts_to_self).or(self.data);
        first.map_or(Time::ZERO, |frame| frame.start)
    }
}
