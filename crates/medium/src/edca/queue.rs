//! What waits: packets that come, what a discipline hands over, figures of the queues.

use lasthop_core::aqm::{Discipline, Queue, Snapshot};
use lasthop_core::packet::{AccessCategory, Packet};
use lasthop_core::units::{Span, Time};

use super::access::{Access, State, contender};
use super::window::{Room, Slot};
use super::{Edca, NONE, Radio};
use crate::edca_params::EdcaClass;
use crate::medium::{DropPlace, Event, NodeId};
use crate::node::Addressed;
use crate::params::{MediumParams, StationParams};
use crate::phy::Phy;
use crate::random::{Stream, seeded};
use crate::snapshot::NodeStats;

/// The four classes of every node.
pub(super) fn accesses<P: Packet>(
    params: &MediumParams,
    stations: &[StationParams],
    phy: &Phy,
    seed: u64,
) -> Vec<Access<P>> {
    let own = (params.edca, params.queue, params.plain_limit(params.queue_limit), params.queue_limit);
    let of_station = |s: &StationParams| {
        let edca = if s.standard.has_classes() { s.edca } else { [EdcaClass::dcf(phy.cw_min(s.standard) as u16); 4] };
        (edca, s.queue, s.queue_limit, s.queue_limit)
    };
    let nodes = std::iter::once(own).chain(stations.iter().map(of_station));
    let mut all = Vec::with_capacity(4 * stations.len() + 4);
    for (node, (edca, queue, plain_limit, limit)) in (0u16..).zip(nodes) {
        for class in AccessCategory::ALL {
            let number = contender(node, class);
            let backoff = Stream::numbered(seed, "wifi.edca.backoff", number);
            let mut access = Access::new(edca[class.index()], backoff, plain_limit);
            access.managed = queue != Discipline::Fifo;
            if node == 0 && matches!(queue, Discipline::Mac80211(..)) {
                access.limit = 0;
            } else if access.managed {
                access.discipline = Some(Box::new(Queue::new(&seeded(queue, seed, number), limit, Time::ZERO)));
                access.limit = if node == 0 { params.firmware_queue } else { 0 };
            }
            all.push(access);
        }
    }
    all
}

impl<P: Packet + Copy> Edca<P> {
    #[inline(never)]
    pub fn on_packet(&mut self, now: Time, from: NodeId, to: NodeId, packet: P) {
        if self.is_due(now) {
            self.catch_up(now);
        }
        self.clock = self.clock.max(now);
        let now = self.clock;
        let class = self.class_of(from, to, &packet);
        let number = contender(from.0, class);
        let access = &mut self.accesses[usize::from(number)];
        if access.managed {
            return self.enqueue(now, number, class, to, packet);
        }
        if access.held >= access.limit {
            return self.refuse(now, from, packet);
        }
        let mut window = access.window;
        // A station sends to the access point only, so each of its classes has one window.
        if number < 4 || window == usize::MAX {
            window = self.window_at(from, to, class);
        }
        self.take_in(now, number, window, packet);
    }

    #[cold]
    fn refuse(&mut self, at: Time, node: NodeId, packet: P) {
        self.radios[usize::from(node.0)].metrics.on_refuse();
        self.events.push_back(Event::Dropped { at, node, place: DropPlace::Queue, packet });
    }

    /// A packet goes to its window; the class contends for it, if it does not yet.
    #[inline(always)]
    pub(super) fn take_in(&mut self, now: Time, number: u16, window: usize, packet: P) {
        let radio = &mut self.radios[usize::from(number / 4)];
        radio.waiting += 1;
        radio.metrics.on_enqueue(packet.bytes(), radio.waiting);
        self.order += 1;
        let held = &mut self.windows[window];
        if number < 4 && held.is_empty() {
            self.ready[usize::from(number)].put(self.order, held.to.0);
        }
        held.push(now, self.order, packet);
        let access = &mut self.accesses[usize::from(number)];
        access.held += 1;
        if access.state == State::Idle {
            self.contend(number, now);
        }
    }

    /// A class that had nothing to send has something.
    fn contend(&mut self, number: u16, now: Time) {
        let access = &mut self.accesses[usize::from(number)];
        access.state = State::Contends;
        if !self.contention.arrive(number, now) {
            let slots = access.random_slots();
            self.contention.draw(number, slots, true);
        }
    }

    /// A packet for a class with a discipline.
    #[cold]
    fn enqueue(&mut self, now: Time, number: u16, class: AccessCategory, to: NodeId, packet: P) {
        if number < 4 && self.linux.is_some() {
            return self.enqueue_linux(now, class, to, packet);
        }
        let access = &mut self.accesses[usize::from(number)];
        let Some(queue) = &mut access.discipline else { return };
        if let Some(refused) = queue.enqueue(now, Addressed { packet, to }, to.0) {
            let (node, place) = (NodeId(number / 4), DropPlace::Queue);
            self.events.push_back(Event::Dropped { at: now, node, place, packet: refused.packet });
        }
        self.feed(now, number);
    }

    /// The discipline hands over what there is room for behind it: one packet at least, where nothing is held.
    pub(super) fn feed(&mut self, now: Time, number: u16) {
        if number < 4 && self.linux.is_some() {
            return self.feed_linux(now, AccessCategory::ALL[usize::from(number)]);
        }
        while self.accesses[usize::from(number)].held < self.accesses[usize::from(number)].limit.max(1) {
            if self.hand_over(now, number).is_none() {
                break;
            }
        }
    }

    /// One packet from the discipline to its window; where to.
    pub(super) fn hand_over(&mut self, now: Time, number: u16) -> Option<NodeId> {
        if number < 4 && self.linux.is_some() {
            return self.hand_over_linux(now, AccessCategory::ALL[usize::from(number)]);
        }
        let events = &mut self.events;
        let queue = self.accesses[usize::from(number)].discipline.as_mut()?;
        let (node, place) = (NodeId(number / 4), DropPlace::Queue);
        let next = queue.dequeue(now, |dropped| {
            events.push_back(Event::Dropped { at: now, node, place, packet: dropped.packet });
        })?;
        let class = AccessCategory::ALL[usize::from(number % 4)];
        let window = self.window_at(node, next.to, class);
        self.take_in(now, number, window, next.packet);
        Some(next.to)
    }

    /// Where a discipline hands over only what the next frame takes: packets to `to`, as far as it chooses them next. One to
    /// another station waits for the frame after it.
    #[cold]
    pub(super) fn pull(&mut self, now: Time, number: u16, to: NodeId, room: Room) {
        let at_window = self.accesses[usize::from(number)].window;
        let mpdus = usize::from(room.mpdus.min(self.windows[at_window].window()));
        let bytes = |slots: &mut dyn Iterator<Item = &Slot<P>>| slots.map(|slot| slot.bytes).sum::<u32>();
        let mut held = bytes(&mut self.windows[at_window].unacknowledged());
        while self.accesses[usize::from(number)].held < mpdus && held < room.bytes {
            if self.hand_over(now, number) != Some(to) {
                // Whose turn has begun goes on with it in the next frame.
                return;
            }
            held += self.windows[at_window].back().map_or(0, |slot| slot.bytes);
        }
        self.rest_linux(now, number);
    }

    /// Air time goes to the accounts of the access point's discipline: a frame's in equal parts to its packets, from the access
    /// point and to it.
    #[cold]
    pub(super) fn charge(&mut self, number: u16) {
        let access = &self.accesses[usize::from(number)];
        let (flight, window) = (access.flight, access.window);
        if flight.is_request {
            return;
        }
        if self.linux.is_some() {
            return self.charge_linux(number);
        }
        let station = (number / 4).max(self.windows[window].to.0);
        let cost = Span::from_nanos(flight.cost.as_nanos() / u64::from(flight.aggregate.packets.max(1)));
        let Some(queue) = &mut self.accesses[usize::from(number % 4)].discipline else { return };
        self.windows[window].mpdus(&flight.aggregate, |slot, _| {
            queue.charge_received(&Addressed { packet: slot.packet, to: NodeId(station) }, station, cost);
        });
    }

    pub fn set_queue_limit(&mut self, node: NodeId, packets: usize) {
        let plain = if node == NodeId::ACCESS_POINT { self.params.plain_limit(packets) } else { packets };
        if let Some(linux) = self.linux.as_mut().filter(|_| node == NodeId::ACCESS_POINT) {
            return linux.set_limit(packets);
        }
        for access in &mut self.accesses[4 * usize::from(node.0)..][..4] {
            match &mut access.discipline {
                Some(queue) => queue.set_limit(packets),
                None => access.limit = plain,
            }
        }
    }

    /// The sums of a node's classes, air time and collisions of whole frames.
    pub(super) fn node_stats(&self, node: usize) -> NodeStats {
        self.radios[node].stats
    }

    /// What a node's classes hold, and their disciplines before them.
    ///
    /// The mean wait in several disciplines follows from their lengths by Little's law; of the 99th percentiles the largest stands
    /// for all, and with what waits behind a discipline it is a sum that the true one does not exceed.
    pub(super) fn queue_snapshot(&self, now: Time, node: usize) -> Snapshot {
        let windows = &self.window_of[..];
        let of_node = |link: &usize| if node == 0 { link % 2 == 1 } else { *link == 2 * node };
        let held = (0..windows.len() / 4)
            .filter(of_node)
            .flat_map(|link| windows[4 * link..4 * link + 4].iter())
            .filter(|window| **window != NONE)
            .flat_map(|window| self.windows[*window as usize].unsent().map(|slot| slot.arrived));
        let own = self.radios[node].metrics.snapshot(now, held);
        let of_discipline = |access: &Access<P>| access.discipline.as_ref().map(|queue| queue.snapshot(now));
        let linux = self.linux.as_ref().filter(|_| node == 0).map(|linux| linux.snapshot(now));
        let before: Vec<_> = self.accesses[4 * node..][..4].iter().filter_map(of_discipline).chain(linux).collect();
        let mut sum = before.iter().fold(own, |sum, queue| joined(&sum, queue));
        let waited = before.iter().filter(|queue| queue.mean_sojourn_ms > 0.0);
        let (packets, per_ms) = waited.fold((0.0, 0.0), |(packets, per_ms), queue| {
            (packets + queue.mean_packets, per_ms + queue.mean_packets / queue.mean_sojourn_ms)
        });
        sum.mean_sojourn_ms += if per_ms > 0.0 { packets / per_ms } else { 0.0 };
        sum.p99_sojourn_ms += before.iter().map(|queue| queue.p99_sojourn_ms).fold(0.0, f64::max);
        sum
    }
}

impl Radio {
    /// A packet is given up.
    pub(super) fn forget<P>(&mut self, now: Time, slot: &Slot<P>, sent: bool) {
        if !sent {
            self.waiting -= 1;
            self.metrics.on_drop(now, slot.arrived, slot.bytes);
        }
    }
}

/// Two queues counted as one, but for the waits.
fn joined(sum: &Snapshot, other: &Snapshot) -> Snapshot {
    Snapshot {
        packets: sum.packets + other.packets,
        bytes: sum.bytes + other.bytes,
        mean_packets: sum.mean_packets + other.mean_packets,
        max_packets: sum.max_packets + other.max_packets,
        dropped: sum.dropped + other.dropped,
        marked: sum.marked + other.marked,
        ..*sum
    }
}
