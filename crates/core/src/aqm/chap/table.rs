//! The flows that the scheduler knows: a bounded table, found by key in a bounded number of steps.
//!
//! Slots in a vector, chained per hash bucket; those without packets stand in a list from the one that fell silent
//! last to the one that fell silent first, which leaves when room is needed. A chain never grows beyond
//! [`LONGEST_CHAIN`]: keys made to collide cost no more than that, and the flows that find no place share an account.

use super::super::packets::List;
use crate::credit::account::{Account, Bucket};
use crate::units::{Span, Time};

/// No slot.
pub(super) const NONE: u32 = u32::MAX;

/// Flows in one hash bucket. With as many buckets as flows, a chain of 16 comes up by chance once in 10^13.
const LONGEST_CHAIN: usize = 16;

/// One account and its packets.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub account: Account,
    pub packets: List,
    /// Which of equal ones has been backlogged for longer: a number given when the first packet came.
    pub since: u64,
    /// When a packet of it last came or left.
    pub seen: Time,
    key: u64,
    /// Of all flows of a station that have no account of their own. It is in no chain and in no list.
    shared: bool,
    /// Of how many flows this slot has been; tells an old charge from a new owner.
    pub generation: u32,
    chain: u32,
    newer: u32,
    older: u32,
}

/// What is kept per station.
#[derive(Clone, Copy, Debug)]
pub(super) struct Station {
    pub bucket: Bucket,
    /// Slot of the account that its flows without one of their own share; [`NONE`]: not needed so far.
    pub shared: u32,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Table {
    flows: Vec<Flow>,
    free: Vec<u32>,
    /// First slot of each chain; as many as the next power of two above the flows, at least 64.
    buckets: Vec<u32>,
    stations: Vec<Station>,
    newest: u32,
    oldest: u32,
    /// Flows of their own, shared accounts not counted.
    known: usize,
    capacity: usize,
}

impl Table {
    pub fn new(capacity: usize) -> Self {
        Self {
            flows: Vec::new(),
            free: Vec::new(),
            buckets: vec![NONE; 64],
            stations: Vec::new(),
            newest: NONE,
            oldest: NONE,
            known: 0,
            capacity: capacity.clamp(1, 1 << 24),
        }
    }

    #[inline]
    pub fn flow(&mut self, slot: u32) -> &mut Flow {
        &mut self.flows[slot as usize]
    }

    #[inline]
    pub fn get(&self, slot: u32) -> &Flow {
        &self.flows[slot as usize]
    }

    /// Flows that have an account of their own.
    pub fn known(&self) -> usize {
        self.known
    }

    pub fn station(&mut self, station: u16) -> &mut Station {
        let station = usize::from(station);
        if self.stations.len() <= station {
            self.stations.resize(station + 1, Station { bucket: Bucket::default(), shared: NONE });
        }
        &mut self.stations[station]
    }

    /// The slot of the account that the station's flows share, made when it is not there.
    pub fn shared(&mut self, station: u16, account: Account) -> u32 {
        let slot = self.station(station).shared;
        if slot != NONE {
            return slot;
        }
        let slot = self.take_slot(0, account);
        self.flow(slot).shared = true;
        self.station(station).shared = slot;
        slot
    }

    #[inline]
    pub fn find(&self, key: u64) -> Option<u32> {
        let mut slot = self.buckets[self.bucket(key)];
        while slot != NONE {
            let flow = &self.flows[slot as usize];
            if flow.key == key {
                return Some(slot);
            }
            slot = flow.chain;
        }
        None
    }

    /// Whether a flow of this key would find a place, if there is room at all.
    pub fn has_place(&self, key: u64) -> bool {
        let mut slot = self.buckets[self.bucket(key)];
        let mut length = 0;
        while slot != NONE {
            length += 1;
            slot = self.flows[slot as usize].chain;
        }
        length < LONGEST_CHAIN
    }

    pub fn is_full(&self) -> bool {
        self.known >= self.capacity
    }

    /// The flow without packets that fell silent first.
    pub fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// Whether the flow that fell silent first did so more than `active` ago.
    pub fn oldest_inactive(&self, now: Time, active: Span) -> Option<u32> {
        self.oldest().filter(|slot| now.since(self.get(*slot).seen) > active)
    }

    /// A new flow; it is taken to have packets.
    pub fn insert(&mut self, key: u64, account: Account) -> u32 {
        if self.known >= self.buckets.len() {
            self.grow();
        }
        let slot = self.take_slot(key, account);
        let bucket = self.bucket(key);
        self.flows[slot as usize].chain = std::mem::replace(&mut self.buckets[bucket], slot);
        self.known += 1;
        slot
    }

    /// Takes out a flow without packets.
    pub fn forget(&mut self, slot: u32) {
        self.unlink(slot);
        let bucket = self.bucket(self.get(slot).key);
        let next = self.get(slot).chain;
        let mut at = self.buckets[bucket];
        if at == slot {
            self.buckets[bucket] = next;
        } else {
            while self.get(at).chain != slot {
                at = self.get(at).chain;
            }
            self.flow(at).chain = next;
        }
        self.flow(slot).generation = self.get(slot).generation.wrapping_add(1);
        self.free.push(slot);
        self.known -= 1;
    }

    /// The flow has no packets any more.
    #[inline]
    pub fn rest(&mut self, slot: u32) {
        if self.get(slot).shared {
            return;
        }
        let older = std::mem::replace(&mut self.newest, slot);
        let flow = &mut self.flows[slot as usize];
        (flow.newer, flow.older) = (NONE, older);
        match self.flows.get_mut(older as usize) {
            Some(flow) => flow.newer = slot,
            None => self.oldest = slot,
        }
    }

    /// A flow that rested has packets again.
    #[inline]
    pub fn wake(&mut self, slot: u32) {
        self.unlink(slot);
    }

    fn unlink(&mut self, slot: u32) {
        let (newer, older) = (self.get(slot).newer, self.get(slot).older);
        match self.flows.get_mut(newer as usize) {
            Some(flow) => flow.older = older,
            None => self.newest = older,
        }
        match self.flows.get_mut(older as usize) {
            Some(flow) => flow.newer = newer,
            None => self.oldest = newer,
        }
    }

    fn take_slot(&mut self, key: u64, account: Account) -> u32 {
        let flow = |generation| Flow {
            account,
            packets: List::EMPTY,
            since: 0,
            seen: Time::ZERO,
            key,
            shared: false,
            generation,
            chain: NONE,
            newer: NONE,
            older: NONE,
        };
        if let Some(slot) = self.free.pop() {
            self.flows[slot as usize] = flow(self.get(slot).generation);
            return slot;
        }
        self.flows.push(flow(0));
        self.flows.len() as u32 - 1
    }

    /// Twice the buckets. It happens only while the table grows to its size.
    fn grow(&mut self) {
        let old = std::mem::take(&mut self.buckets);
        self.buckets = vec![NONE; old.len() * 2];
        for mut slot in old {
            while slot != NONE {
                let bucket = self.bucket(self.get(slot).key);
                let next = std::mem::replace(&mut self.flow(slot).chain, NONE);
                self.flow(slot).chain = std::mem::replace(&mut self.buckets[bucket], slot);
                slot = next;
            }
        }
    }

    /// The top bits of a product, which depend on all bits of the key (Knuth, TAOCP 3, 6.4).
    #[inline]
    fn bucket(&self, key: u64) -> usize {
        let bits = self.buckets.len().trailing_zeros();
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits)) as usize
    }
}
