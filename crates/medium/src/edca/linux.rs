//! The queue of a Linux access point before its classes: [`lasthop_core::aqm::mac80211`], one for all of them.
//!
//! What it hands over waits in the windows, which are the hardware's queues, one per station and class; the class serves the
//! one with the oldest packet. AQL limits what is there by its estimate, at the rate of the last frame to the station; an exchange's end
//! gives it back. Air time of the access point's exchanges with a station, answered or not, and of the station's frames that arrive
//! is charged to the station in that class. `firmware_queue` limits the packets of each class besides, where it is not 0. Without both
//! it hands over what the next frame takes.

use lasthop_core::aqm::mac80211::{Aql, Estimate, Mac80211, Pending};
use lasthop_core::aqm::{Discipline, Snapshot};
use lasthop_core::packet::{AccessCategory, FlowKind, Packet};
use lasthop_core::units::Time;

use super::Edca;
use super::access::contender;
use crate::medium::{DropPlace, Event, NodeId};
use crate::node::Addressed;
use crate::params::MediumParams;
use crate::phy::Rate;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Linux<P> {
    queue: Mac80211<Addressed<P>>,
    kind: FlowKind,
    /// By station and class.
    estimates: Vec<[Estimate; 4]>,
    /// The rate they are of, by station: where its times stand.
    times: Vec<u8>,
    /// Most packets of a class in the windows.
    room: usize,
}

impl<P: Packet> Linux<P> {
    /// Where the access point has it.
    pub fn new(params: &MediumParams, nodes: usize) -> Option<Box<Self>> {
        let Discipline::Mac80211(own, kind) = params.queue else { return None };
        let queue = Mac80211::new(own, params.queue_limit, Time::ZERO);
        let slowest = [Estimate::legacy(Rate::OFDM_6.bit_rate(), true); 4];
        // Without any limit it hands over what the next frame takes, and one packet before that.
        let room = match (params.firmware_queue, own.aql) {
            (0, Some(_)) => usize::MAX,
            (packets, _) => packets.max(1),
        };
        Some(Box::new(Self { queue, kind, estimates: vec![slowest; nodes], times: vec![0; nodes], room }))
    }

    /// Whether it hands over what the next frame takes.
    pub fn pulls(&self, params: &MediumParams) -> bool {
        self.room == 1 && params.firmware_queue == 0
    }

    pub fn len(&self) -> usize {
        self.queue.len()
    }

    pub fn set_limit(&mut self, packets: usize) {
        self.queue.set_limit(packets);
    }

    pub fn set_aql(&mut self, aql: Aql) {
        self.queue.set_aql(aql);
    }

    pub fn snapshot(&self, now: Time) -> Snapshot {
        self.queue.snapshot(now)
    }

    fn estimate(&self, station: NodeId, class: AccessCategory, bytes: u32) -> Pending {
        self.estimates[usize::from(station.0)][class.index()].of(bytes)
    }
}

/// What packets at this rate are expected to take.
fn estimate(rate: Rate, aggregates: bool) -> Estimate {
    let Some(mode) = rate.mode() else { return Estimate::legacy(rate.bit_rate(), rate.is_ofdm()) };
    let is_ax = mode.standard == crate::Standard::Ax;
    Estimate::new(mode.bits_per_symbol(), mode.symbol(), mode.streams, is_ax, aggregates)
}

impl<P: Packet + Copy> Edca<P> {
    /// A station has another rate: estimates follow, and what is pending is estimated anew.
    pub(super) fn estimate_anew(&mut self, station: NodeId) {
        let Some(linux) = &mut self.linux else { return };
        let link = &self.links[Self::link_of(NodeId::ACCESS_POINT, station)];
        let rate = self.times[usize::from(link.times)].rate;
        linux.times[usize::from(station.0)] = link.times;
        for class in AccessCategory::ALL {
            let access = &self.accesses[usize::from(contender(0, class))];
            let aggregates = link.ampdu.is_some() && access.class.aggregates;
            linux.estimates[usize::from(station.0)][class.index()] = estimate(rate, aggregates);
        }
        for class in AccessCategory::ALL {
            let at = 4 * Self::link_of(NodeId::ACCESS_POINT, station) + class.index();
            if self.window_of[at] != super::NONE {
                self.recount_pending(class, self.window_of[at] as usize);
            }
        }
    }

    /// A packet for a class of the access point.
    pub(super) fn enqueue_linux(&mut self, now: Time, class: AccessCategory, to: NodeId, packet: P) {
        let Some(linux) = &mut self.linux else { return };
        let key = packet.key(linux.kind);
        let gone = linux.queue.enqueue(now, Addressed { packet, to }, key, to.0, class);
        if let Some(gone) = gone {
            let (node, place) = (NodeId::ACCESS_POINT, DropPlace::Queue);
            self.events.push_back(Event::Dropped { at: now, node, place, packet: gone.packet });
        }
        self.feed_linux(now, class);
    }

    /// What may leave for the windows does.
    pub(super) fn feed_linux(&mut self, now: Time, class: AccessCategory) {
        let number = usize::from(contender(0, class));
        while self.linux.as_ref().is_some_and(|linux| self.accesses[number].held < linux.room)
            && self.hand_over_linux(now, class).is_some()
        {}
        let params = &self.params;
        if let Some(linux) = self.linux.as_mut().filter(|linux| !linux.pulls(params)) {
            linux.queue.rest(now, class);
        }
    }

    /// The next frame has what it takes.
    pub(super) fn rest_linux(&mut self, now: Time, number: u16) {
        if let Some(linux) = self.linux.as_mut().filter(|_| number < 4) {
            linux.queue.rest(now, AccessCategory::ALL[usize::from(number)]);
        }
    }

    /// One packet; where to. [`Self::feed_linux`] ends the round.
    pub(super) fn hand_over_linux(&mut self, now: Time, class: AccessCategory) -> Option<NodeId> {
        let Linux { queue, estimates, .. } = &mut **self.linux.as_mut()?;
        let events = &mut self.events;
        let estimate = |station: u16, bytes: u32| estimates[usize::from(station)][class.index()].of(bytes);
        let taken = queue.dequeue(now, class, estimate, |gone| {
            let (node, place) = (NodeId::ACCESS_POINT, DropPlace::Queue);
            events.push_back(Event::Dropped { at: now, node, place, packet: gone.packet });
        })?;
        let Addressed { packet, to } = taken.packet;
        let window = self.window_at(NodeId::ACCESS_POINT, to, class);
        self.take_in(now, contender(0, class), window, packet);
        Some(to)
    }

    /// The access point has sent to a station: estimates are those of that frame's rate from now on.
    #[inline]
    pub(super) fn follow_rate(&mut self, at_window: usize) {
        let station = self.windows[at_window].to;
        let link = &self.links[Self::link_of(NodeId::ACCESS_POINT, station)];
        if self.linux.as_ref().is_some_and(|linux| linux.times[usize::from(station.0)] != link.times) {
            self.estimate_anew(station);
        }
    }

    /// All of a frame was acknowledged: what it was expected to take is no longer pending. Before it leaves the window.
    #[inline]
    pub(super) fn settle_linux(&mut self, number: u16) {
        let Some(linux) = &mut self.linux else { return };
        let access = &self.accesses[usize::from(number)];
        let class = AccessCategory::ALL[usize::from(number)];
        let window = &self.windows[access.window];
        let mut sum = Pending::default();
        window
            .first_packets(&access.flight.aggregate)
            .for_each(|slot| sum += linux.estimate(window.to, class, slot.bytes));
        linux.queue.settle(window.to.0, class, sum);
    }

    /// Some of a frame was acknowledged, or packets were given up: what is pending is what the window still holds.
    #[cold]
    pub(super) fn recount_pending(&mut self, class: AccessCategory, at_window: usize) {
        let Some(linux) = &mut self.linux else { return };
        let window = &self.windows[at_window];
        let mut sum = Pending::default();
        window.unacknowledged().for_each(|slot| sum += linux.estimate(window.to, class, slot.bytes));
        linux.queue.set_pending(window.to.0, class, sum);
    }

    /// An exchange with a station ended: air time for its account.
    pub(super) fn charge_linux(&mut self, number: u16) {
        let Some(linux) = &mut self.linux else { return };
        let access = &self.accesses[usize::from(number)];
        let station = (number / 4).max(self.windows[access.window].to.0);
        linux.queue.charge(station, AccessCategory::ALL[usize::from(number % 4)], access.flight.cost);
    }
}
