//! The receiving end.
//!
//! Acknowledges everything that has arrived in order; at once when something is missing, doubled or repaired, else every
//! second full segment or after 40 ms. The application reads at once, so the window it offers is all of its buffer:
//!
//! ```text
//! window = right edge - ack,   right edge = max(right edge promised, ack + buffer)      [bytes]
//! ```
//!
//! Source: RFC 9293 section 3.8.6 (the edge never moves left), RFC 5681 section 4.2 and RFC 1122 section 4.2.3.2
//! (delayed ACK, at most 500 ms; Linux 40 ms), RFC 2018 section 4 (blocks: the newest first), RFC 7323 section 2
//! (scale).
//!
//! Does not: report duplicates (D-SACK, RFC 2883), send window updates of its own, take back what it has reported.

mod autotune;
mod meter;

use lasthop_core::units::{Span, Time};

use crate::note::{Note, Reports};
use crate::ranges::Ranges;
use crate::segment::{Ack, SackBlocks, Segment};
use autotune::Autotune;
use meter::Meter;

/// Ranges beyond a hole that are kept; a segment that would make one more is dropped and counted.
const MOST_RANGES: usize = 4096;
/// Largest window the field of a header expresses without scaling, bytes.
const UNSCALED: u64 = 65_535;
/// Blocks that fit beside timestamps (RFC 2018 section 3).
const MOST_BLOCKS: usize = 3;
/// Largest scale (RFC 7323 section 2.3).
const MAX_SCALE: u8 = 14;

/// How a receiver behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverParams {
    /// Payload of a full segment, bytes.
    pub mss: u32,
    /// Reports what lies beyond a hole.
    pub sack: bool,
    /// Acknowledges every second full segment.
    pub delayed_ack: bool,
    /// Longest delay of an acknowledgment: 40 ms as Linux; RFC 5681 says at most 500 ms.
    pub ack_delay: Span,
    /// Buffer, bytes; none: autotuned from 64 KiB to 6 MiB.
    pub window: Option<u64>,
    /// What it watches for its sender.
    pub reports: Reports,
}

impl Default for ReceiverParams {
    fn default() -> Self {
        Self {
            mss: 1460,
            sack: false,
            delayed_ack: true,
            ack_delay: Span::from_millis(40),
            window: None,
            reports: Reports::Nothing,
        }
    }
}

/// A receiver.
#[derive(Debug)]
pub struct Receiver {
    params: ReceiverParams,
    /// Everything below has arrived.
    next: u64,
    /// First byte not offered, as promised.
    right_edge: u64,
    beyond: Ranges,
    /// A byte of each of the ranges that arrived last, the newest first.
    recent: [Option<u64>; MOST_BLOCKS],
    autotune: Option<Autotune>,
    meter: Option<Box<Meter>>,
    /// What the host allows at most, bytes.
    limit: Option<u64>,
    syn: bool,
    ack_now: bool,
    /// A mark has come, and no word that the sender knows (RFC 3168 section 6.1.3).
    echo: bool,
    /// Arrived in order and not acknowledged, bytes.
    waiting: u64,
    delayed_until: Option<Time>,
    /// End of the stream, once its last segment has been here.
    end: Option<u64>,
    duplicate_bytes: u64,
    refused: u64,
}

impl Receiver {
    /// Listening.
    #[must_use]
    pub fn new(params: ReceiverParams) -> Self {
        Self {
            params,
            next: 0,
            right_edge: 0,
            beyond: Ranges::with_capacity(16),
            recent: [None; MOST_BLOCKS],
            autotune: params.window.is_none().then(|| Autotune::new(params.mss)),
            meter: Meter::new(params.reports, params.mss).map(Box::new),
            limit: None,
            syn: false,
            ack_now: false,
            echo: false,
            waiting: 0,
            delayed_until: None,
            end: None,
            duplicate_bytes: 0,
            refused: 0,
        }
    }

    /// A segment arrived; returns how many of its bytes are here for the first time.
    pub fn on_segment(&mut self, now: Time, segment: &Segment) -> u32 {
        if segment.syn {
            self.syn = true;
            self.ack_now = true;
            return 0;
        }
        if let Some(meter) = &mut self.meter {
            meter.on_segment(now, segment);
        }
        let (start, end) = (segment.offset.max(self.next), segment.offset + u64::from(segment.bytes));
        if segment.fin && end <= self.right_edge {
            self.end = Some(end);
        }
        let before = self.next;
        let new = if start >= end || segment.bytes == 0 { self.nothing_new() } else { self.take(start, end) };
        self.duplicate_bytes += u64::from(segment.bytes - new);
        if self.next > before {
            self.on_progress(now, self.next - before, segment.fin);
        }
        new
    }

    /// A segment arrived with a mark (CE), or with the word that its sender has cut its window (CWR).
    pub fn on_marks(&mut self, ce: bool, cwr: bool) {
        self.echo = ce || (self.echo && !cwr);
    }

    /// What the segment carries that comes next ([`crate::Sender::mark`]).
    pub fn on_mark(&mut self, mark: u32) {
        if let Some(meter) = &mut self.meter {
            meter.on_mark(mark);
        }
    }

    /// What the acknowledgment polled last tells the sender.
    #[must_use]
    pub fn note(&self) -> Option<Note> {
        self.meter.as_ref()?.note(self.next)
    }

    /// Whether acknowledgments tell of a mark (ECE).
    #[must_use]
    pub fn echoes(&self) -> bool {
        self.echo
    }

    fn nothing_new(&mut self) -> u32 {
        self.ack_now = true;
        0
    }

    fn take(&mut self, start: u64, end: u64) -> u32 {
        if end > self.right_edge
            || (start > self.next && self.beyond.len() >= MOST_RANGES && self.beyond.stands_alone(start, end))
        {
            self.refused += 1;
            self.ack_now = true;
            return 0;
        }
        if start > self.next {
            let new = self.beyond.insert(start, end);
            self.remember(start);
            self.ack_now = true;
            return new as u32;
        }
        let mut new = end - start;
        self.next = end;
        if !self.beyond.is_empty() {
            // Something is missing or was: the sender wants to know at once (RFC 5681 section 4.2).
            self.ack_now = true;
            new = self.fill(start, end);
        }
        new as u32
    }

    /// Joins `[start, end)`, which is next, with what waits beyond; returns its new bytes.
    fn fill(&mut self, start: u64, end: u64) -> u64 {
        let new = self.beyond.insert(start, end);
        if let Some((_, joined)) = self.beyond.containing(start) {
            self.next = joined;
        }
        self.beyond.remove_below(self.next);
        new
    }

    fn remember(&mut self, offset: u64) {
        let known = self.beyond.containing(offset);
        let at = self.recent.iter().position(|recent| recent.and_then(|byte| self.beyond.containing(byte)) == known);
        let last = at.unwrap_or(self.recent.len() - 1);
        self.recent[..=last].rotate_right(1);
        self.recent[0] = Some(offset);
    }

    fn on_progress(&mut self, now: Time, bytes: u64, fin: bool) {
        self.waiting += bytes;
        if let Some(meter) = &mut self.meter {
            meter.on_progress(self.next);
        }
        if let Some(autotune) = &mut self.autotune {
            autotune.on_progress(now, self.next);
        }
        if !self.params.delayed_ack || fin || self.waiting >= 2 * u64::from(self.params.mss) {
            self.ack_now = true;
        } else if self.delayed_until.is_none() {
            self.delayed_until = Some(now + self.params.ack_delay);
        }
    }

    /// The acknowledgment to go out.
    #[inline]
    pub fn poll(&mut self, now: Time) -> Option<Ack> {
        if !self.ack_now && self.delayed_until.is_none_or(|until| now < until) {
            return None;
        }
        Some(self.acknowledge(now))
    }

    /// The acknowledgment that goes with data in the other direction, due or not.
    pub fn acknowledge(&mut self, now: Time) -> Ack {
        self.ack_now = false;
        self.waiting = 0;
        self.delayed_until = None;
        let syn = std::mem::take(&mut self.syn);
        let buffer = if syn { self.buffer().min(UNSCALED) } else { self.buffer() };
        let moved = self.next + buffer > self.right_edge;
        self.right_edge = self.right_edge.max(self.next + buffer);
        if let Some(autotune) = &mut self.autotune {
            match (syn, moved) {
                (true, _) => autotune.on_syn(now),
                (false, true) => autotune.on_offer(now, self.right_edge),
                (false, false) => {}
            }
        }
        let window_bytes = self.right_edge - self.next;
        let mut ack = Ack { offset: self.next, window_bytes, sack: SackBlocks::default(), syn };
        if self.params.sack && !self.beyond.is_empty() {
            ack.sack = self.blocks();
        }
        ack
    }

    /// When `poll` has something to do without being told anything.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        self.delayed_until
    }

    /// Smallest scale that expresses the largest window it may offer.
    #[must_use]
    pub fn window_scale(&self) -> u8 {
        let largest = self.params.window.unwrap_or(autotune::LARGEST);
        (0..MAX_SCALE).find(|scale| largest >> scale <= UNSCALED).unwrap_or(MAX_SCALE)
    }

    /// From now on offers at most `bytes`, as far as that takes back nothing; none: no limit. The way in for what
    /// controls the window at the receiver, such as CLAMP.
    pub fn set_limit(&mut self, bytes: Option<u64>) {
        self.limit = bytes;
    }

    /// The host has made room ([`Self::set_limit`]): the sender is told when it can send `step` bytes more than it was offered.
    /// Half of a buffer is a good step (RFC 9293 section 3.8.6.2.2): smaller ones make acknowledgments that do not advance,
    /// of which three look like a loss.
    pub fn on_room(&mut self, step: u64) {
        self.ack_now |= self.next + self.buffer() >= self.right_edge + step.max(2 * u64::from(self.params.mss));
    }

    /// Bytes that arrived in order.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.next
    }

    /// The end of the stream has arrived, and everything before it.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.end.is_some_and(|end| self.next >= end)
    }

    /// Bytes that were here already.
    #[must_use]
    pub fn duplicate_bytes(&self) -> u64 {
        self.duplicate_bytes
    }

    /// Segments dropped: beyond the window, or one hole too many.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    fn buffer(&self) -> u64 {
        let own = self.params.window.or_else(|| self.autotune.as_ref().map(Autotune::window)).unwrap_or(UNSCALED);
        self.limit.map_or(own, |limit| own.min(limit))
    }

    fn blocks(&self) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        let recent = self.recent.iter().flatten().filter_map(|&offset| self.beyond.containing(offset));
        // Room that the newest leave is filled with others, so that a lost ACK costs little.
        for (start, end) in recent.chain(self.beyond.as_slice().iter().copied().take(MOST_BLOCKS)) {
            if !blocks.as_slice().contains(&(start, end)) {
                blocks.push(start, end);
            }
        }
        blocks
    }
}
