//! Any of the disciplines behind one interface, dispatched by an enum: a plain queue costs what it costs alone.

use super::chap::{self, AccountId, Chap};
use super::codel::{self, Codel};
use super::drr::{self, Drr};
use super::fifo::{Fifo, Snapshot};
use super::flow_queues;
use super::fq_codel::FqCodel;
use super::mac80211::{self, Mac80211, Pending};
use super::red::{self, Red};
use crate::packet::{AccessCategory, FlowKind, Packet};
use crate::units::{Span, Time};

/// Which discipline, and how it is set.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Discipline {
    /// First in, first out, drop-tail.
    #[default]
    Fifo,
    /// Controlled delay (RFC 8289).
    Codel(codel::Params),
    /// Flow queues with CoDel each (RFC 8290).
    FqCodel(flow_queues::Params, FlowKind),
    /// Random early detection.
    Red(red::Params),
    /// Deficit round robin of stations by air time.
    Drr(drr::Params, FlowKind),
    /// What a Linux access point has.
    Mac80211(mac80211::Params, FlowKind),
    /// Credit (CHAP).
    Chap(chap::Params, FlowKind),
}

impl Discipline {
    /// The word of files and commands.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Codel(_) => "codel",
            Self::FqCodel(..) => "fq_codel",
            Self::Red(_) => "red",
            Self::Drr(..) => "drr",
            Self::Mac80211(..) => "mac80211",
            Self::Chap(..) => "chap",
        }
    }
}

/// A queue in front of the channel.
#[derive(Clone, Debug)]
pub enum Queue<P> {
    /// See [`Discipline::Fifo`].
    Fifo(Fifo<P>),
    /// Any other; behind a pointer, so that many plain ones lie close together.
    Other(Box<Other<P>>),
}

/// A discipline that is more than a plain queue.
// There is one per queue, and all of them are behind a pointer.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug)]
pub enum Other<P> {
    /// See [`Discipline::Codel`].
    Codel(Codel<P>),
    /// See [`Discipline::FqCodel`].
    FqCodel(FqCodel<P>, FlowKind),
    /// See [`Discipline::Red`].
    Red(Red<P>),
    /// See [`Discipline::Drr`]; with the station of the packet that left last.
    Drr(Drr<P>, FlowKind, u16),
    /// See [`Discipline::Mac80211`]; with station and class of the packet that left last.
    Mac80211(Mac80211<P>, FlowKind, (u16, AccessCategory)),
    /// See [`Discipline::Chap`]; with the account of the packet that left last.
    Chap(Chap<P>, FlowKind, Option<AccountId>),
}

impl<P: Packet> Queue<P> {
    /// An empty queue of at most `limit` packets, made at `now`.
    #[must_use]
    pub fn new(discipline: &Discipline, limit: usize, now: Time) -> Self {
        let other = match *discipline {
            Discipline::Fifo => return Self::Fifo(Fifo::new(limit, now)),
            Discipline::Codel(params) => Other::Codel(Codel::new(params, limit, now)),
            Discipline::FqCodel(params, kind) => Other::FqCodel(FqCodel::new(params, limit, now), kind),
            Discipline::Red(params) => Other::Red(Red::new(params, limit, now)),
            Discipline::Drr(params, kind) => Other::Drr(Drr::new(params, limit, now), kind, 0),
            Discipline::Mac80211(params, kind) => {
                Other::Mac80211(Mac80211::new(params, limit, now), kind, (0, AccessCategory::Be))
            }
            Discipline::Chap(params, kind) => Other::Chap(Chap::new(&params, limit, now), kind, None),
        };
        Self::Other(Box::new(other))
    }

    /// Takes a packet to or from `station`; gives back the one that is dropped for it, which may be the same.
    #[inline]
    pub fn enqueue(&mut self, now: Time, packet: P, station: u16) -> Option<P> {
        match self {
            Self::Fifo(queue) => queue.push(now, packet).err(),
            Self::Other(other) => other.enqueue(now, packet, station),
        }
    }

    /// The packet to be sent now; those that are dropped before it go to `lose`.
    #[inline]
    pub fn dequeue(&mut self, now: Time, lose: impl FnMut(P)) -> Option<P> {
        match self {
            Self::Fifo(queue) => queue.pop(now),
            Self::Other(other) => other.dequeue(now, lose),
        }
    }

    /// The packet that left last used this much of the channel, all its attempts included. Before the next one leaves, if it
    /// is to count for that one's choice.
    pub fn charge(&mut self, cost: Span) {
        let Self::Other(other) = self else { return };
        match &mut **other {
            Other::Drr(queue, _, station) => queue.charge(*station, cost),
            Other::Mac80211(queue, _, (station, class)) => queue.charge(*station, *class, cost),
            Other::Chap(queue, _, Some(account)) => queue.charge(*account, cost),
            Other::Codel(_) | Other::FqCodel(..) | Other::Red(_) | Other::Chap(..) => {}
        }
    }

    /// A packet came from `station` over the same channel and used, as far as it can be seen, this much of it.
    pub fn charge_received(&mut self, packet: &P, station: u16, cost: Span) {
        let Self::Other(other) = self else { return };
        match &mut **other {
            Other::Drr(queue, ..) => queue.charge(station, cost),
            Other::Mac80211(queue, ..) => queue.charge(station, packet.access_category(), cost),
            Other::Chap(queue, kind, _) => {
                queue.charge_flow(packet.key(*kind), cost);
            }
            Other::Codel(_) | Other::FqCodel(..) | Other::Red(_) => {}
        }
    }

    /// It is first in, first out, and keeps no accounts.
    #[inline]
    #[must_use]
    pub const fn is_plain(&self) -> bool {
        matches!(self, Self::Fifo(_))
    }

    /// Whether [`Self::charge`] and [`Self::charge_received`] change anything.
    #[inline]
    #[must_use]
    pub fn counts_air_time(&self) -> bool {
        matches!(self, Self::Other(other) if matches!(**other, Other::Drr(..) | Other::Mac80211(..) | Other::Chap(..)))
    }

    /// Packets held.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Fifo(queue) => queue.len(),
            Self::Other(other) => other.len(),
        }
    }

    /// Whether it holds no packet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Changes the limit; packets above a lower limit stay until they are served.
    pub fn set_limit(&mut self, limit: usize) {
        match self {
            Self::Fifo(queue) => queue.set_limit(limit),
            Self::Other(other) => match &mut **other {
                Other::Codel(queue) => queue.set_limit(limit),
                Other::FqCodel(queue, _) => queue.set_limit(limit),
                Other::Red(queue) => queue.set_limit(limit),
                Other::Drr(queue, ..) => queue.set_limit(limit),
                Other::Mac80211(queue, ..) => queue.set_limit(limit),
                Other::Chap(queue, ..) => queue.set_limit(limit),
            },
        }
    }

    /// The queue's figures; the mean covers the time up to `now`.
    #[must_use]
    pub fn snapshot(&self, now: Time) -> Snapshot {
        match self {
            Self::Fifo(queue) => queue.snapshot(now),
            Self::Other(other) => match &**other {
                Other::Codel(queue) => queue.snapshot(now),
                Other::FqCodel(queue, _) => queue.snapshot(now),
                Other::Red(queue) => queue.snapshot(now),
                Other::Drr(queue, ..) => queue.snapshot(now),
                Other::Mac80211(queue, ..) => queue.snapshot(now),
                Other::Chap(queue, ..) => queue.snapshot(now),
            },
        }
    }
}

impl<P: Packet> Other<P> {
    #[cold]
    fn enqueue(&mut self, now: Time, packet: P, station: u16) -> Option<P> {
        match self {
            Self::Codel(queue) => queue.enqueue(now, packet),
            Self::Red(queue) => queue.enqueue(now, packet),
            Self::FqCodel(queue, kind) => {
                let key = packet.key(*kind);
                queue.enqueue(now, packet, key)
            }
            Self::Drr(queue, kind, _) => {
                let key = packet.key(*kind);
                queue.enqueue(now, packet, key, station)
            }
            Self::Mac80211(queue, kind, _) => {
                let (key, class) = (packet.key(*kind), packet.access_category());
                queue.enqueue(now, packet, key, station, class)
            }
            Self::Chap(queue, kind, _) => {
                let key = packet.key(*kind);
                queue.enqueue(now, packet, key, station)
            }
        }
    }

    #[cold]
    fn dequeue(&mut self, now: Time, lose: impl FnMut(P)) -> Option<P> {
        match self {
            Self::Codel(queue) => queue.dequeue(now, lose),
            Self::FqCodel(queue, _) => queue.dequeue(now, lose),
            Self::Red(queue) => queue.dequeue(now),
            Self::Drr(queue, _, last) => {
                let (packet, station) = queue.dequeue(now, lose)?;
                *last = station;
                Some(packet)
            }
            Self::Mac80211(queue, _, last) => {
                let taken = next_of_any_class(queue, now, lose)?;
                *last = (taken.station, taken.packet.access_category());
                Some(taken.packet)
            }
            Self::Chap(queue, _, last) => {
                let served = queue.dequeue(now)?;
                *last = Some(served.account);
                Some(served.packet)
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Codel(queue) => queue.len(),
            Self::FqCodel(queue, _) => queue.len(),
            Self::Red(queue) => queue.len(),
            Self::Drr(queue, ..) => queue.len(),
            Self::Mac80211(queue, ..) => queue.len(),
            Self::Chap(queue, ..) => queue.len(),
        }
    }
}

/// Where the air has no classes and takes one packet at a time: the first class that has one, and nothing is pending.
fn next_of_any_class<P: Packet>(
    queue: &mut Mac80211<P>,
    now: Time,
    mut lose: impl FnMut(P),
) -> Option<mac80211::Taken<P>> {
    AccessCategory::ALL.into_iter().find_map(|class| {
        let taken = queue.dequeue(now, class, |_, _| Pending::default(), &mut lose);
        queue.rest(now, class);
        taken
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aqm::tests::{Sized, at_us};
    use proptest::prelude::*;

    fn all() -> [Discipline; 7] {
        let kind = FlowKind::Connection;
        [
            Discipline::Fifo,
            Discipline::Codel(codel::Params::default()),
            Discipline::FqCodel(flow_queues::Params::default(), kind),
            Discipline::Red(red::Params::default()),
            Discipline::Drr(drr::Params::default(), kind),
            Discipline::Mac80211(mac80211::Params::default(), kind),
            Discipline::Chap(chap::Params::default(), kind),
        ]
    }

    proptest! {
        /// Every packet leaves or is lost once, within a flow in order; figures agree with what was seen.
        #[test]
        fn nothing_is_lost_unseen_or_overtaken(steps in prop::collection::vec((0u32..4, 0u8..5, 0u64..20_000), 1..600)) {
            for discipline in all() {
                let mut queue = Queue::new(&discipline, 20, Time::ZERO);
                let (mut now, mut came, mut sent, mut lost) = (Time::ZERO, 0, 0, 0);
                let mut last = [0u32; 4];
                for (flow, what, us) in &steps {
                    now += Span::from_micros(*us);
                    if *what < 3 {
                        came += 1;
                        let packet = Sized { number: came, ..Sized::of(*flow, 100 + 300 * flow) };
                        lost += u64::from(queue.enqueue(now, packet, *flow as u16).is_some());
                    } else {
                        let was_empty = queue.is_empty();
                        let packet = queue.dequeue(now, |_| lost += 1);
                        prop_assert_eq!(packet.is_none(), was_empty, "{}", discipline.name());
                        queue.charge(Span::from_micros(300));
                        if let Some(packet) = packet {
                            sent += 1;
                            prop_assert!(packet.number > last[packet.flow as usize], "{}", discipline.name());
                            last[packet.flow as usize] = packet.number;
                        }
                    }
                    prop_assert!(queue.len() <= 20);
                    prop_assert_eq!(queue.len() as u64 + sent + lost, u64::from(came));
                }
                let metrics = queue.snapshot(now);
                prop_assert_eq!((metrics.packets, metrics.dropped), (queue.len(), lost));
                prop_assert!(metrics.mean_packets <= f64::from(metrics.max_packets as u32) + 1e-9);
            }
        }
    }

    #[test]
    fn air_time_is_charged_to_whoever_was_sent_to() {
        for discipline in all() {
            let mut queue = Queue::new(&discipline, 100, Time::ZERO);
            for flow in 0..2 {
                (0..20).for_each(|number| {
                    let packet = Sized { number, ..Sized::of(flow, 1000) };
                    assert_eq!(queue.enqueue(Time::ZERO, packet, flow as u16), None);
                });
            }
            let mut sent = [0; 2];
            for _each in 0..12 {
                let packet = queue.dequeue(at_us(1), |_| ()).unwrap();
                sent[packet.flow as usize] += 1;
                queue.charge(Span::from_micros(if packet.flow == 0 { 10_000 } else { 1000 }));
            }
            let by_air_time = queue.counts_air_time();
            assert_eq!(sent[1] > 3 * sent[0], by_air_time, "{}: {sent:?}", discipline.name());
            assert_eq!(by_air_time, matches!(discipline.name(), "drr" | "mac80211" | "chap"));
        }
    }
}
