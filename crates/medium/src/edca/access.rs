//! One class of one node: its contention window, the frame it is sending, what it holds.

use lasthop_core::aqm::Queue;
use lasthop_core::packet::AccessCategory;
use lasthop_core::units::{Span, Time};

use super::exchange::Frames;
use super::times::Times;
use super::window::{Aggregate, Framing};
use crate::edca_params::{Ampdu, EdcaClass};
use crate::node::Addressed;
use crate::random::Stream;
use crate::snapshot::ClassStats;

/// What a class is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has nothing to send.
    Idle,
    /// It has, and waits for its turn.
    Contends,
    /// It waits for what comes of a frame of its own.
    Sends,
}

/// A frame on the way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flight {
    pub frames: Frames,
    pub aggregate: Aggregate,
    /// It is a block ack request.
    pub is_request: bool,
    /// Its answer is a block ack.
    pub by_block_ack: bool,
    /// Data was sent, not only an RTS.
    pub has_data: bool,
    /// All of it arrives, into a window without holes.
    pub whole: bool,
    /// Packets that arrive for the first time.
    pub arrived: u16,
    /// MPDUs that arrive.
    pub acked: u16,
    /// Medium time of the exchange.
    pub cost: Span,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Access<P> {
    pub class: EdcaClass,
    pub cw: u32,
    pub backoff: Stream,
    pub state: State,
    /// Packets that are not at their receivers: what the limit counts.
    pub held: usize,
    /// Most packets held of a plain queue, or handed over by a discipline.
    pub limit: usize,
    /// Which window it serves.
    pub window: usize,
    pub flight: Flight,
    /// Until when it may send on without contending.
    pub txop_end: Time,
    /// Hands packets over while there is room behind it; `None`: a plain queue, which is the windows themselves.
    pub discipline: Option<Box<Queue<Addressed<P>>>>,
    /// Packets are handed over to it, by that discipline or by the access point's own.
    pub managed: bool,
    pub stats: ClassStats,
}

impl<P> Access<P> {
    pub fn new(class: EdcaClass, backoff: Stream, limit: usize) -> Self {
        Self {
            class,
            cw: u32::from(class.cw_min),
            backoff,
            state: State::Idle,
            held: 0,
            limit,
            window: usize::MAX,
            flight: Flight::default(),
            txop_end: Time::ZERO,
            discipline: None,
            managed: false,
            stats: ClassStats::default(),
        }
    }

    /// Slots of a fresh backoff.
    #[inline]
    pub fn random_slots(&mut self) -> u64 {
        self.backoff.below(u64::from(self.cw) + 1)
    }

    #[inline]
    pub fn double_window(&mut self) {
        self.cw = (2 * self.cw + 1).min(u32::from(self.class.cw_max));
    }

    #[inline]
    pub fn reset_window(&mut self) {
        self.cw = u32::from(self.class.cw_min);
    }
}

/// One direction between the access point and a station.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Where the times of its rate stand.
    pub times: u8,
    pub ampdu: Option<Ampdu>,
    /// Its sender makes no longer ones, bytes, whatever both agreed on.
    pub ampdu_limit: u32,
    pub framing: Framing,
    /// Most bytes of an aggregate's PSDU.
    pub most_bytes: u32,
    /// Most bytes of any PSDU: of the longest frame.
    pub longest_bytes: u32,
    /// `-ln(1 - p)` of an MPDU's loss with probability p; infinite: all are lost.
    pub hazard: f64,
    /// The same of a byte of an MPDU, at the rate in use.
    pub byte_hazard: f64,
    /// A whole frame is lost with this probability, whatever is in it.
    pub loss: f64,
}

impl Link {
    /// [`Self::most_bytes`] and [`Self::longest_bytes`] at the rate with these times.
    pub fn room(&self, times: &Times) -> (u32, u32) {
        let most = self
            .ampdu
            .as_ref()
            .map_or(0, |ampdu| ampdu.bytes.min(self.ampdu_limit).min(times.bytes_within(ampdu.time)));
        (most, times.bytes_within(Ampdu::LONGEST))
    }

    /// Block acks cover so many MPDUs; 1: they are acknowledged one by one.
    pub fn window(&self, class: &EdcaClass) -> u16 {
        self.ampdu.filter(|_| class.aggregates).map_or(1, |ampdu| ampdu.window.max(1))
    }
}

/// Number of a class of a node among all contenders.
pub const fn contender(node: u16, class: AccessCategory) -> u16 {
    4 * node + class as u16
}

/// When the next MPDUs of one sender, receiver and class are lost: so much hazard away.
#[derive(Clone, Debug)]
pub struct Losses {
    stream: Stream,
    left: f64,
}

impl Losses {
    pub fn new(mut stream: Stream) -> Self {
        let left = stream.exponential(1.0);
        Self { stream, left }
    }

    /// Whether an MPDU of this hazard is lost. Geometric skips: a number is drawn per loss, not per MPDU.
    #[inline]
    pub fn lose(&mut self, hazard: f64) -> bool {
        self.left -= hazard;
        if self.left > 0.0 {
            return false;
        }
        self.left = self.stream.exponential(1.0);
        true
    }
}
