//! The packets of all flows in one place: a vector of slots, each flow's linked in the order in which they came.

use crate::units::Time;

const NONE: u32 = u32::MAX;

/// A flow's packets.
#[derive(Clone, Copy, Debug)]
pub struct List {
    head: u32,
    tail: u32,
    len: u32,
}

impl List {
    /// None.
    pub const EMPTY: Self = Self { head: NONE, tail: NONE, len: 0 };

    /// How many.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// None.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// All packets. A slot that is free keeps what was in it until it is taken again.
#[derive(Clone, Debug)]
pub struct Packets<P> {
    slots: Vec<Slot<P>>,
    free: u32,
    len: usize,
}

#[derive(Clone, Debug)]
struct Slot<P> {
    packet: Option<P>,
    arrived: Time,
    next: u32,
}

impl<P> Default for Packets<P> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: NONE, len: 0 }
    }
}

impl<P> Packets<P> {
    /// Of all lists.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no list has any.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// To the end of a list.
    #[inline]
    pub fn push(&mut self, list: &mut List, now: Time, packet: P) {
        let slot = Slot { packet: Some(packet), arrived: now, next: NONE };
        let at = self.free;
        let at = match self.slots.get_mut(at as usize) {
            Some(free) => {
                self.free = free.next;
                *free = slot;
                at
            }
            None => {
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
        };
        match self.slots.get_mut(list.tail as usize) {
            Some(tail) => tail.next = at,
            None => list.head = at,
        }
        list.tail = at;
        list.len += 1;
        self.len += 1;
    }

    /// From the start of a list, with the time of arrival.
    #[inline]
    pub fn pop(&mut self, list: &mut List) -> Option<(Time, P)> {
        let at = list.head;
        let slot = self.slots.get_mut(at as usize)?;
        let packet = slot.packet.take();
        list.head = slot.next;
        slot.next = self.free;
        self.free = at;
        if list.head == NONE {
            list.tail = NONE;
        }
        list.len -= 1;
        self.len -= 1;
        packet.map(|packet| (slot.arrived, packet))
    }

    /// What [`Self::pop`] would give.
    #[inline]
    #[must_use]
    pub fn first(&self, list: &List) -> Option<(Time, &P)> {
        let slot = self.slots.get(list.head as usize)?;
        slot.packet.as_ref().map(|packet| (slot.arrived, packet))
    }

    /// What [`Self::pop`] would give, to be changed.
    #[inline]
    pub fn first_mut(&mut self, list: &List) -> Option<&mut P> {
        self.slots.get_mut(list.head as usize)?.packet.as_mut()
    }

    /// All packets that are held, each with its arrival, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (Time, &P)> {
        self.slots.iter().filter_map(|slot| slot.packet.as_ref().map(|packet| (slot.arrived, packet)))
    }
}
