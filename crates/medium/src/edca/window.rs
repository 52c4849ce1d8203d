//! The packets of one sender, receiver and class: queue, block ack window and reorder buffer in one ring.
//!
//! ```text
//!            first        passed          sent            end
//!              |  handed    |   on the way  |   wait        |
//! slots        A R R        . R . R R       . . . . . . . .
//! ```
//!
//! A slot is a packet; in an A-MSDU `more` of its first slot counts those behind it that go in the same MPDU. `R`: the MPDU is
//! at the receiver; `A`: its sender knows. An aggregate is made of the first MPDUs that are not acknowledged, at most
//! `window` MPDUs from the first one in the ring. Its receiver hands on in order: what lies behind a hole waits in its slot
//! until the hole is filled or given up (`passed` is how far it got). What is acknowledged or given up leaves at the front.
//!
//! Nothing is written to a slot while no MPDU is lost: `plain` says so, and then an aggregate is the first k slots.

use std::collections::VecDeque;

use lasthop_core::packet::Packet;
use lasthop_core::units::Time;

use super::times::{DELIMITER_BYTES, QOS_BYTES, SUBFRAME_BYTES};
use crate::medium::NodeId;

/// One packet.
#[derive(Clone, Copy, Debug)]
pub struct Slot<P> {
    pub packet: P,
    pub arrived: Time,
    /// Counts the packets that came to this node: what came first has the smaller number.
    pub order: u64,
    pub bytes: u32,
    /// Transmissions of its MPDU so far that failed.
    pub attempts: u16,
    /// Packets behind it in its MPDU.
    pub more: u8,
    pub state: u8,
}

/// [`Slot::state`]: at the receiver.
pub const RECEIVED: u8 = 1;
/// The sender knows.
pub const ACKED: u8 = 2;
/// Given up.
pub const GONE: u8 = 4;

/// What one frame may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Of the PSDU; the first MPDU goes in any case.
    pub bytes: u32,
    pub mpdus: u16,
}

/// An aggregate, or a single MPDU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aggregate {
    pub mpdus: u16,
    /// Of these, never sent before.
    pub fresh: u16,
    pub packets: u16,
    /// Bytes of the PSDU.
    pub bytes: u32,
    /// Behind its last slot.
    pub end: u64,
    /// Slots before it were sent before.
    pub sent: u64,
}

/// How MPDUs are framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Header, FCS and LLC/SNAP around an IP packet.
    pub header: u32,
    /// A delimiter before a single MPDU, too.
    pub delimits_one: bool,
    /// Longest A-MSDU; 0: none.
    pub amsdu_bytes: u32,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Window<P> {
    pub to: NodeId,
    slots: VecDeque<Slot<P>>,
    /// Number of the first slot.
    first: u64,
    /// Slots before it are at the host, or given up.
    passed: u64,
    /// Slots before it were sent.
    sent: u64,
    /// No slot has a state or `more`.
    plain: bool,
    /// MPDUs from the first slot on that may be on the way.
    window: u16,
    framing: Framing,
    /// Asks what arrived before it sends again.
    pub asks: bool,
    /// Requests without an answer.
    pub requests: u16,
}

/// A frame as it is filled.
struct Filled {
    mpdus: u64,
    /// Bytes of all but the last MPDU, padded: the last one's padding is not sent.
    before_last: u32,
    last: u32,
}

impl Filled {
    /// Adds packets while there is room; whether all of them had it.
    #[inline(always)]
    fn fill<P>(&mut self, slots: &[Slot<P>], around: u32, room: u32) -> bool {
        for slot in slots {
            let bytes = around + slot.bytes;
            let before = self.before_last + padded(self.last);
            if before + bytes > room {
                return false;
            }
            (self.before_last, self.last) = (before, bytes);
            self.mpdus += 1;
        }
        true
    }
}

#[inline]
const fn padded(bytes: u32) -> u32 {
    (bytes + 3) & !3
}

impl<P: Packet + Copy> Window<P> {
    pub fn new(to: NodeId, window: u16, framing: Framing) -> Self {
        Self {
            to,
            slots: VecDeque::new(),
            first: 0,
            passed: 0,
            sent: 0,
            plain: true,
            window,
            framing,
            asks: false,
            requests: 0,
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    #[inline]
    fn end(&self) -> u64 {
        self.first + self.slots.len() as u64
    }

    #[inline]
    pub fn push(&mut self, now: Time, order: u64, packet: P) {
        let bytes = packet.bytes();
        self.slots.push_back(Slot { packet, arrived: now, order, bytes, attempts: 0, more: 0, state: 0 });
    }

    /// The oldest packet that is not acknowledged.
    #[inline]
    pub fn front(&self) -> Option<&Slot<P>> {
        self.slots.front()
    }

    /// Slots never sent, in order.
    pub fn unsent(&self) -> impl Iterator<Item = &Slot<P>> {
        self.slots.range((self.sent - self.first) as usize..).filter(|slot| slot.state & GONE == 0)
    }

    /// Packets of a plain window's frame, in order.
    #[inline]
    pub fn first_packets(&self, aggregate: &Aggregate) -> impl Iterator<Item = &Slot<P>> {
        self.slots.range(..(aggregate.end - self.first) as usize)
    }

    /// The newest packet.
    pub fn back(&self) -> Option<&Slot<P>> {
        self.slots.back()
    }

    /// Packets that are neither acknowledged nor given up, in order.
    pub fn unacknowledged(&self) -> impl Iterator<Item = &Slot<P>> {
        self.slots.iter().filter(|slot| slot.state & (ACKED | GONE) == 0)
    }

    /// Frames are made otherwise from now on; what was sent together stays together.
    pub fn set_framing(&mut self, window: u16, framing: Framing) {
        (self.window, self.framing) = (window, framing);
    }

    pub fn window(&self) -> u16 {
        self.window
    }

    /// The first slots.
    #[inline]
    fn gather_plain(&self, room: Room) -> Aggregate {
        let most = usize::from(room.mpdus.min(self.window));
        let Some(first) = self.slots.front() else { return Aggregate::default() };
        let around = DELIMITER_BYTES + self.framing.header;
        let (front, back) = self.slots.as_slices();
        let mut frame = Filled { mpdus: 1, before_last: 0, last: around + first.bytes };
        let whole = frame.fill(&front[1..most.clamp(1, front.len())], around, room.bytes);
        if whole && most > front.len() {
            frame.fill(&back[..back.len().min(most - front.len())], around, room.bytes);
        }
        let Filled { mpdus, before_last, last } = frame;
        let mut bytes = before_last + last;
        if mpdus == 1 && !self.framing.delimits_one {
            bytes -= DELIMITER_BYTES;
        }
        let end = self.first + mpdus;
        let fresh = end.saturating_sub(self.sent.max(self.first)).min(mpdus) as u16;
        Aggregate { mpdus: mpdus as u16, fresh, packets: mpdus as u16, bytes, end, sent: self.sent }
    }

    /// The next frame: the first MPDUs that are not acknowledged, as many as there is room for.
    pub fn compose(&mut self, room: Room) -> Aggregate {
        if self.framing.amsdu_bytes > 0 {
            self.bundle(room);
        }
        if self.plain {
            return self.gather_plain(room);
        }
        self.gather(room)
    }

    #[inline(never)]
    fn gather(&self, room: Room) -> Aggregate {
        let mut aggregate = Aggregate { end: self.first, sent: self.sent, ..Aggregate::default() };
        let (mut at, mut number) = (0, 0);
        let mut whole = 0;
        while number < self.window && aggregate.mpdus < room.mpdus && at < self.slots.len() {
            let slot = &self.slots[at];
            let packets = 1 + usize::from(slot.more);
            if slot.state & (ACKED | GONE) == 0 {
                let bytes = DELIMITER_BYTES + self.mpdu_bytes(at);
                let before = padded(whole);
                if aggregate.mpdus > 0 && before + bytes > room.bytes {
                    break;
                }
                whole = before + bytes;
                aggregate.mpdus += 1;
                aggregate.fresh += u16::from(self.first + at as u64 >= self.sent);
                aggregate.packets += packets as u16;
                aggregate.end = self.first + (at + packets) as u64;
            }
            number += 1;
            at += packets;
        }
        aggregate.bytes = whole;
        if aggregate.mpdus == 1 && !self.framing.delimits_one {
            aggregate.bytes -= DELIMITER_BYTES;
        }
        aggregate
    }

    /// Bytes of the MPDU whose first packet stands at `at`.
    pub fn mpdu_bytes(&self, at: usize) -> u32 {
        let slot = &self.slots[at];
        if slot.more == 0 {
            return self.framing.header + slot.bytes;
        }
        let mut body = 0;
        for slot in self.slots.range(at..=at + usize::from(slot.more)) {
            body = padded(body) + SUBFRAME_BYTES + slot.bytes;
        }
        QOS_BYTES + body
    }

    /// Puts packets that were never sent together into A-MSDUs, as far as the next frame may reach.
    fn bundle(&mut self, room: Room) {
        let mut at = (self.sent - self.first) as usize;
        let most = usize::from(room.mpdus.min(self.window));
        let mut mpdus = 0;
        while at < self.slots.len() && mpdus < most {
            let mut more = 0;
            let mut body = SUBFRAME_BYTES + self.slots[at].bytes;
            while more < u8::MAX && at + usize::from(more) + 1 < self.slots.len() {
                let longer = padded(body) + SUBFRAME_BYTES + self.slots[at + usize::from(more) + 1].bytes;
                // The MPDU has to fit into the frame that carries it, too.
                if longer > self.framing.amsdu_bytes || longer + QOS_BYTES + DELIMITER_BYTES > room.bytes {
                    break;
                }
                (body, more) = (longer, more + 1);
            }
            self.slots[at].more = more;
            self.plain &= more == 0;
            at += 1 + usize::from(more);
            mpdus += 1;
        }
    }

    /// Packets of the frame that are sent for the first time: those that came together, with when, their bytes and their number,
    /// go to `first_time`.
    #[inline]
    pub fn mark_sent(&mut self, aggregate: &Aggregate, mut first_time: impl FnMut(Time, u64, u32)) {
        if aggregate.end <= self.sent {
            return;
        }
        let (from, to) = ((self.sent - self.first) as usize, (aggregate.end - self.first) as usize);
        self.sent = aggregate.end;
        let (mut arrived, mut bytes, mut packets) = (self.slots[from].arrived, 0, 0);
        for slot in self.slots.range(from..to) {
            if slot.state & GONE != 0 {
                continue;
            }
            if slot.arrived != arrived && packets > 0 {
                first_time(arrived, bytes, packets);
                (bytes, packets) = (0, 0);
            }
            arrived = slot.arrived;
            (bytes, packets) = (bytes + u64::from(slot.bytes), packets + 1);
        }
        if packets > 0 {
            first_time(arrived, bytes, packets);
        }
    }

    /// The MPDUs of a frame by the place of their first packet, in order.
    fn each_mpdu(&mut self, aggregate: &Aggregate, mut visit: impl FnMut(&mut Self, usize)) {
        let (mut at, end) = (0, (aggregate.end - self.first) as usize);
        while at < end {
            let Slot { more, state, .. } = self.slots[at];
            if state & (ACKED | GONE) == 0 {
                visit(self, at);
            }
            at += 1 + usize::from(more);
        }
    }

    /// Which MPDUs of a frame arrive: packets that arrive for the first time, and MPDUs.
    pub fn receive(&mut self, aggregate: &Aggregate, mut is_lost: impl FnMut(u32) -> bool) -> (u16, u16) {
        let (mut packets, mut mpdus) = (0, 0);
        self.each_mpdu(aggregate, |window, at| {
            if is_lost(window.mpdu_bytes(at)) {
                return;
            }
            mpdus += 1;
            let more = window.slots[at].more;
            if window.slots[at].state & RECEIVED == 0 {
                packets += 1 + u16::from(more);
            }
            for slot in window.slots.range_mut(at..=at + usize::from(more)) {
                slot.state |= RECEIVED;
            }
        });
        self.plain = false;
        (packets, mpdus)
    }

    /// No MPDU has ever been lost that is still here, and none is of several packets.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.plain
    }

    /// What the receiver can hand on now, up to which slot: all of a frame that arrived whole in a plain window.
    #[inline]
    pub fn pass_plain(&mut self, aggregate: &Aggregate) -> (u64, u64) {
        let from = std::mem::replace(&mut self.passed, aggregate.end);
        (from, aggregate.end)
    }

    /// The same by the slots' states.
    pub fn pass(&mut self) -> (u64, u64) {
        let from = self.passed;
        while self.passed < self.end() {
            if self.slots[(self.passed - self.first) as usize].state & (RECEIVED | GONE) == 0 {
                break;
            }
            self.passed += 1;
        }
        (from, self.passed)
    }

    /// The packet in a slot.
    #[inline]
    pub fn packet(&self, number: u64) -> P {
        self.slots[(number - self.first) as usize].packet
    }

    /// A packet that the receiver hands on; `None`: it was given up.
    #[inline]
    pub fn handed(&self, number: u64) -> Option<P> {
        let slot = &self.slots[(number - self.first) as usize];
        (slot.state & RECEIVED != 0 || self.plain).then_some(slot.packet)
    }

    /// Bytes of the PSDU behind the MPDU of a packet that a frame carries.
    pub fn bytes_behind(&self, number: u64, aggregate: &Aggregate) -> u32 {
        let (mut at, end) = (0, (aggregate.end.max(self.first) - self.first) as usize);
        let mut behind = 0;
        while at < end {
            let Slot { more, state, .. } = self.slots[at];
            if self.first + at as u64 > number && state & (ACKED | GONE) == 0 {
                behind += padded(DELIMITER_BYTES + self.mpdu_bytes(at));
            }
            at += 1 + usize::from(more);
        }
        behind
    }

    /// All of a plain window's frame is acknowledged.
    #[inline]
    pub fn acknowledge_plain(&mut self, aggregate: &Aggregate) {
        let packets = (aggregate.end - self.first) as usize;
        if packets == 1 {
            self.slots.pop_front();
        } else {
            self.slots.drain(..packets);
        }
        self.first = aggregate.end;
    }

    /// The sender learns of a frame: with an answer, what arrived; without, that nobody answered. MPDUs that `gives_up` are dropped,
    /// and those of their packets that the receiver does not have go to `lose`, with whether they were ever sent. MPDUs given
    /// up.
    pub fn settle(
        &mut self,
        aggregate: &Aggregate,
        answered: bool,
        gives_up: impl Fn(&Slot<P>) -> bool,
        mut lose: impl FnMut(&Slot<P>, bool),
    ) -> u64 {
        let mut given_up = 0;
        self.plain = false;
        self.each_mpdu(aggregate, |window, at| {
            let slot = &mut window.slots[at];
            let more = usize::from(slot.more);
            if answered && slot.state & RECEIVED != 0 {
                window.slots.range_mut(at..=at + more).for_each(|slot| slot.state |= ACKED);
                return;
            }
            slot.attempts = slot.attempts.saturating_add(1);
            if gives_up(slot) {
                given_up += 1;
                window.give_up(at, more, &mut lose);
            }
        });
        given_up
    }

    /// All MPDUs up to the last that was sent.
    pub fn on_the_way(&self) -> Aggregate {
        Aggregate { end: self.sent, ..Aggregate::default() }
    }

    /// What an answer to a request says: what arrived is acknowledged, and nothing else changes.
    pub fn learn(&mut self) {
        let all = self.on_the_way();
        self.each_mpdu(&all, |window, at| {
            let Slot { more, state, .. } = window.slots[at];
            if state & RECEIVED != 0 {
                window.slots.range_mut(at..=at + usize::from(more)).for_each(|slot| slot.state |= ACKED);
            }
        });
    }

    /// Lets go of what is done at the front; [`Self::pass`] before it.
    pub fn shrink(&mut self) {
        let done = |slot: &Slot<P>| slot.state & (ACKED | GONE) != 0;
        while self.first < self.passed && self.slots.front().is_some_and(done) {
            self.slots.pop_front();
            self.first += 1;
        }
        self.sent = self.sent.max(self.first);
        // Whatever stands behind the last one sent has no state.
        self.plain =
            self.slots.range(..(self.sent - self.first) as usize).all(|slot| slot.state == 0 && slot.more == 0);
    }

    /// Drops MPDUs that came before `oldest` from the front on, sent or not; see [`Self::settle`].
    pub fn expire(&mut self, oldest: Time, mut lose: impl FnMut(&Slot<P>, bool)) -> u64 {
        let mut given_up = 0;
        let mut at = 0;
        while at < self.slots.len() {
            let Slot { arrived, more, state, .. } = self.slots[at];
            if arrived >= oldest {
                break;
            }
            if state & (ACKED | GONE) == 0 {
                given_up += 1;
                self.give_up(at, usize::from(more), &mut lose);
            }
            at += 1 + usize::from(more);
        }
        self.plain &= given_up == 0;
        given_up
    }

    fn give_up(&mut self, at: usize, more: usize, lose: &mut impl FnMut(&Slot<P>, bool)) {
        let sent = (self.sent - self.first) as usize;
        for (number, slot) in (at..).zip(self.slots.range_mut(at..=at + more)) {
            slot.state |= GONE;
            if slot.state & RECEIVED == 0 {
                lose(slot, number < sent);
            }
        }
    }

    /// A transmission of the first MPDU counts as failed; it is not dropped for that.
    pub fn fail_first(&mut self) {
        let first = self.slots.iter_mut().find(|slot| slot.state & (ACKED | GONE) == 0);
        if let Some(slot) = first {
            slot.attempts = slot.attempts.saturating_add(1);
        }
    }

    /// Number of the first slot.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// It holds packets that were sent.
    pub fn has_sent(&self) -> bool {
        self.sent > self.first
    }

    /// Bytes of the PSDU that the next frame has at least.
    pub fn next_bytes(&self) -> u32 {
        let at = self.slots.iter().position(|slot| slot.state & (ACKED | GONE) == 0);
        at.map_or(0, |at| DELIMITER_BYTES + self.mpdu_bytes(at))
    }

    /// The packets of a frame, and whether they were sent before.
    pub fn mpdus(&mut self, aggregate: &Aggregate, mut tell: impl FnMut(&Slot<P>, bool)) {
        let sent = aggregate.sent;
        self.each_mpdu(aggregate, |window, at| {
            let is_retry = window.first + (at as u64) < sent;
            let slot = window.slots[at];
            for packet in window.slots.range(at..=at + usize::from(slot.more)) {
                tell(packet, is_retry);
            }
        });
    }
}
