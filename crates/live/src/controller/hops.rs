//! The hops behind the hooked interfaces: one for each medium, with a place in the data path, and what it carried.

use std::collections::{BTreeMap, BTreeSet};

use lasthop_core::ap::{Duplex, HopId, HopSample};
use lasthop_core::fastpath::layout::{Control, Counters, HOPS, Hop};
use lasthop_core::units::{BitRate, Span};

use super::disciplines::Disciplines;
use crate::ports::Port;
use crate::program::{PLACES_OF_PORTS, Program};

/// Place of those that have none of their own.
const OTHERS: usize = 0;

#[derive(Debug, Default)]
pub(super) struct Hops {
    /// By their names.
    media: BTreeMap<HopId, Known>,
    /// Number of each hooked interface.
    ports: BTreeMap<u32, HopId>,
    sums: [Sums; HOPS],
}

#[derive(Debug)]
struct Known {
    /// In the data path; [`OTHERS`]: none of its own.
    place: usize,
    duplex: Duplex,
    /// Of each of its interfaces that are hooked: what it lies on, from the top.
    chains: Vec<Vec<u32>>,
}

impl Hops {
    /// From now on these interfaces are hooked, and whether both directions of each share its medium. False when the data path could
    /// not be told.
    pub(super) fn follow<'a>(&mut self, ports: impl Iterator<Item = (&'a Port, Duplex)>, program: &Program) -> bool {
        let mut before = std::mem::take(&mut self.media);
        self.ports.clear();
        for (port, duplex) in ports {
            let Some(ifindex) = port.ifindex else { continue };
            let hop = HopId(port.medium.id);
            let known = self.media.entry(hop).or_insert_with(|| {
                let place = before.remove(&hop).map_or(OTHERS, |known| known.place);
                Known { place, duplex, chains: Vec::new() }
            });
            known.chains.push(port.medium.chain.clone());
            if duplex == Duplex::Half {
                known.duplex = Duplex::Half;
            }
            self.ports.insert(ifindex, hop);
        }
        let mut free: BTreeSet<_> = (OTHERS + 1..HOPS).collect();
        self.media.values().for_each(|known| {
            free.remove(&known.place);
        });
        for known in self.media.values_mut().filter(|known| known.place == OTHERS) {
            known.place = free.pop_first().unwrap_or(OTHERS);
        }
        program.set_hops(&self.places()).is_ok()
    }

    /// Place of each interface by the lower bits of its number. Where two share those, that of the first.
    fn places(&self) -> [u8; PLACES_OF_PORTS] {
        let mut places = [OTHERS as u8; PLACES_OF_PORTS];
        for (ifindex, hop) in self.ports.iter().rev() {
            places[*ifindex as usize % PLACES_OF_PORTS] = self.media[hop].place as u8;
        }
        places
    }

    /// The hop behind an interface.
    pub(super) fn of(&self, ifindex: u32) -> HopId {
        let hop = self.ports.get(&ifindex).copied().unwrap_or_default();
        self.media.get(&hop).filter(|known| known.place != OTHERS).map_or(HopId(0), |_| hop)
    }

    /// The hooked interfaces of a hop.
    pub(super) fn ports(&self, hop: HopId) -> impl Iterator<Item = u32> {
        self.ports.iter().filter(move |(_, other)| **other == hop).map(|(ifindex, _)| *ifindex)
    }

    /// What there is to say of each hop. Of an interface, `backlog`: what waits there before its driver; `fair_at`: what may wait below the driver's
    /// queues that are fair to flows, and what waits in them, where downloads are left to them.
    pub(super) fn samples(
        &mut self,
        control: &Control,
        counters: &Counters,
        disciplines: &Disciplines,
        (backlog, fair_at): (impl Fn(u32) -> Option<u64>, impl Fn(u32) -> Option<(Span, u64)>),
    ) -> Vec<HopSample> {
        self.sums.iter_mut().zip(control.hops).for_each(|(sums, now)| sums.on(now));
        let sample = |(hop, known): (&HopId, &Known)| {
            let interfaces: BTreeSet<_> = known.chains.iter().flatten().copied().collect();
            let carried = &counters.hops[known.place];
            let fair = fair(&known.chains, &fair_at).filter(|_| known.place != OTHERS);
            let waits = interfaces.into_iter().filter_map(&backlog).chain(fair.map(|(_, waits)| waits));
            HopSample {
                hop: if known.place == OTHERS { HopId(0) } else { *hop },
                duplex: known.duplex,
                backlog: waits.reduce(|a, b| a + b),
                udp_bytes: carried.udp_bytes,
                udp_packets: carried.udp_packets,
                packet_trains: self.sums[known.place].0,
                shaped: shaped(&known.chains, |ifindex| disciplines.shaped(ifindex)),
                fair_queue: fair.map(|(below, _)| below),
            }
        };
        let mut samples: Vec<_> = self.media.iter().filter(|(_, known)| known.place != OTHERS).map(sample).collect();
        let others = self.media.iter().filter(|(_, known)| known.place == OTHERS).map(sample);
        samples.extend(others.reduce(|a, b| HopSample {
            backlog: a.backlog.zip(b.backlog).map(|(a, b)| a + b).or(a.backlog).or(b.backlog),
            shaped: None,
            ..a
        }));
        samples
    }
}

/// Of the interfaces with these chains together: the most that may wait below queues that are fair to flows, and all that waits in them; none where one of
/// the interfaces has no such queue.
fn fair(chains: &[Vec<u32>], of: impl Fn(u32) -> Option<(Span, u64)>) -> Option<(Span, u64)> {
    let each: Option<Vec<_>> = chains.iter().map(|chain| of(*chain.first()?)).collect();
    each?.into_iter().reduce(|(a, waits), (b, more)| (a.max(b), waits + more))
}

/// The most that interfaces with these chains let out together, when each passes a shaper: what the shapers let out that all of them
/// pass, or the sum of their own.
fn shaped(chains: &[Vec<u32>], of: impl Fn(u32) -> Option<BitRate>) -> Option<BitRate> {
    let least = |chain: &Vec<u32>| chain.iter().filter_map(|ifindex| of(*ifindex)).min();
    let sum: Option<u64> = chains.iter().map(|chain| least(chain).map(BitRate::as_bps)).sum();
    let first = chains.first()?;
    let common = first.iter().filter(|ifindex| chains.iter().all(|chain| chain.contains(*ifindex)));
    common.filter_map(|ifindex| of(*ifindex)).chain(sum.map(BitRate::bps)).min()
}

/// Sums of both directions, of which none goes back.
///
/// CPUs add to them without a lock. One that is stopped between reading and writing (a virtual machine's may be, for
/// milliseconds) writes an old sum over newer ones; a difference would then be next to 2^64. So a pair of sums that went back
/// counts as it was until it has caught up: what was lost in between is not counted.
#[derive(Clone, Copy, Debug, Default)]
struct Sums([Hop; 2]);

impl Sums {
    /// The hop as it is `now`, with sums that can be compared with those of the call before.
    fn on(&mut self, now: [Hop; 2]) {
        for (mine, now) in self.0.iter_mut().zip(now) {
            let (came, served) = ((mine.came_bytes, mine.came_ns), (mine.served_bytes, mine.served_ns));
            let bunched = (mine.bunched_bytes, mine.bunches);
            *mine = now;
            if now.came_bytes < came.0 || now.came_ns < came.1 {
                (mine.came_bytes, mine.came_ns) = came;
            }
            if now.served_bytes < served.0 || now.served_ns < served.1 {
                (mine.served_bytes, mine.served_ns) = served;
            }
            if now.bunched_bytes < bunched.0 || now.bunches < bunched.1 {
                (mine.bunched_bytes, mine.bunches) = bunched;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_that_goes_back_stays_with_its_time_until_it_has_caught_up() {
        let hop = |came_bytes, came_ns, served_bytes| Hop { came_bytes, came_ns, served_bytes, ..Hop::default() };
        let mut sums = Sums::default();
        let mut newest = |now| {
            sums.on([now, Hop::default()]);
            sums.0[0]
        };
        assert_eq!(newest(hop(1_000, 10, 5)), hop(1_000, 10, 5));
        assert_eq!(newest(hop(900, 20, 6)), hop(1_000, 10, 6), "the bytes went back");
        assert_eq!(newest(hop(1_100, 9, 6)), hop(1_000, 10, 6), "the time did");
        assert_eq!(newest(hop(1_100, 21, 4)), hop(1_100, 21, 6), "the other pair did");
        let left = Hop { left_bytes: 7, ..hop(1_100, 21, 6) };
        assert_eq!(newest(left), left, "what is no sum is as it is");
    }

    #[test]
    fn a_hop_has_a_fair_queue_when_each_of_its_interfaces_has_one() {
        let ms = Span::from_millis;
        let of = |ifindex: u32| match ifindex {
            2 => Some((ms(24), 30_000)),
            3 => Some((ms(12), 0)),
            _ => None,
        };
        let chains = |chains: &[&[u32]]| fair(&chains.iter().map(|chain| chain.to_vec()).collect::<Vec<_>>(), of);
        assert_eq!(chains(&[&[2]]), Some((ms(24), 30_000)));
        assert_eq!(chains(&[&[3], &[2]]), Some((ms(24), 30_000)), "two networks of one radio");
        assert_eq!(chains(&[&[2], &[9]]), None, "nobody tells of one");
        assert_eq!(chains(&[&[9, 2]]), None, "it lies on one: its packets are not told from those of the other");
        assert_eq!(chains(&[]), None);
    }

    #[test]
    fn a_sample_has_the_bound_of_a_fair_queue_and_what_waits_there_or_neither() {
        let disciplines = Disciplines::made_up(Vec::new());
        let sample = |place, fair: Option<(Span, u64)>| {
            let known = Known { place, duplex: Duplex::Half, chains: vec![vec![3]] };
            let mut hops = Hops { media: BTreeMap::from([(HopId(3), known)]), ..Hops::default() };
            let samples =
                hops.samples(&Control::default(), &Counters::default(), &disciplines, (|_| Some(500), |_| fair));
            (samples[0].fair_queue, samples[0].backlog)
        };
        let below = Span::from_millis(24);
        assert_eq!(sample(1, Some((below, 30_000))), (Some(below), Some(30_500)));
        assert_eq!(sample(1, None), (None, Some(500)), "as before");
        assert_eq!(sample(OTHERS, Some((below, 30_000))), (None, Some(500)), "hops that are not told apart");
    }

    #[test]
    fn a_shaper_bounds_a_hop_when_everything_passes_one() {
        let of = |ifindex: u32| match ifindex {
            2 => Some(BitRate::mbps(100)),
            5 | 6 => Some(BitRate::mbps(30)),
            _ => None,
        };
        let bound = |chains: &[&[u32]]| shaped(&chains.iter().map(|chain| chain.to_vec()).collect::<Vec<_>>(), of);
        assert_eq!(bound(&[&[2]]), Some(BitRate::mbps(100)));
        assert_eq!(bound(&[&[3]]), None);
        assert_eq!(bound(&[&[5, 2], &[6, 2]]), Some(BitRate::mbps(60)), "the sum of their own");
        assert_eq!(bound(&[&[5, 2], &[7, 2]]), Some(BitRate::mbps(100)), "what all pass");
        assert_eq!(bound(&[&[5], &[7]]), None, "one passes none");
    }
}
