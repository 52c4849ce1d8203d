//! How much a hop delivers at once, learned from what comes together from its stations.
//!
//! A medium that has to be contended for sends several packets in a frame, as many as wait, and they share what the frame costs beside
//! them: contention, preamble, answer. So a queue that is too short for full frames makes the medium itself slower. How many
//! packets a frame carries shows where they come out: stations acknowledge them at once, and bring their own at once.
//!
//! ```text
//! s     mean size of the bunches that stations acknowledge or bring at once                        [bytes]
//! f     part of all bytes that comes in bunches
//! M     = (sum x)^2 / sum x^2     links (a station, a direction) that move data at rates x: as many of one rate   (Simpson)
//! turn  = f M s                   what passes until it is the same link's turn again               [bytes]
//! e     = (1 - f) + f 3000 / s    frames for two packets
//! ```
//!
//! A packet waits for the turn in which it comes to end, and leaves with its own: two turns are what full frames need as a queue
//! (bulk service: Bailey, "On queueing processes with bulk service", 1954). Where no more than an acknowledgment's two segments ever
//! comes at once, as over 802.11b and g, f = 0 and e = 1: nothing is kept for frames, and each packet pays for its own.
//!
//! That is of a medium that both directions share, for there a turn has to be contended for. Each direction of any other hop has its time for
//! itself; if what it carries comes in bunches all the same, it delivers only now and then, however long its queue is (power save, the turns
//! of a cable or mobile network, the backhaul of a mesh):
//!
//! ```text
//! T     = f time / bunches         from one bunch to the next, in the time that is theirs          [s]
//! p     = min(f T, least round trip to the station)                                                [s]
//! ```
//!
//! A packet waits up to p for the bunch that it leaves with, and what answers it for another. Neither is a queue: so much longer than packets
//! take may be the path, and so much is kept beside a queue. Who leaves between bunches does not wait for them: p is the mean of all
//! (a shaper of Linux lets three packets out at once now and then; without the second f a game beside a download of 6 Mbit/s waits twice as
//! long, `first-second-6` of `make outside`). A sender that pauses lets bunches come now and then, too: then round trips are shorter
//! than T, and what they take is all that can be the hop's. C is in neither, so that one that was learned too low does not prove itself right.

use std::collections::BTreeMap;

use super::bottleneck::Id;
use super::observe::{Row, Seen};
use super::{Ap, Direction, Duplex, HopId, LinkSample, StationId};

/// Bunches are averaged over so long, s: about a hundred of the longest frames.
const MEMORY: f64 = 0.5;
/// Two packets, IP bytes.
const PAIR: f64 = 3000.0;
/// No frame of 802.11 lasts longer, s (the longest that L-SIG can say; IEEE 802.11-2020, table 19-25, aPPDUMaxTime).
const LONGEST: f64 = 5.484e-3;

/// When it is the same link's turn again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Turn {
    /// After what others have sent meanwhile, IP bytes, which takes no longer than this, s; no bytes: packets are sent one by one.
    Contended(f64, f64),
    /// After this time, s; 0: at once.
    Periodic(f64),
}

/// Of one hop; sums fade.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aggregates {
    bunches: f64,
    /// IP bytes in bunches, and all.
    bunched: f64,
    all: f64,
    /// s.
    time: f64,
    /// M.
    links: f64,
}

impl Aggregates {
    /// An interval of `dt`, in which `all` IP bytes of TCP arrived, `bunched` of them in `bunches`; `links`: rates of links.
    fn on_interval(&mut self, (bunches, bunched, all): (f64, f64, f64), links: impl Iterator<Item = f64>, dt: f64) {
        let fades = (-dt / MEMORY).exp();
        self.bunches = self.bunches * fades + bunches;
        self.bunched = self.bunched * fades + bunched;
        self.all = self.all * fades + all.max(bunched);
        self.time = self.time * fades + dt;
        let (sum, squares) = links.fold((0.0, 0.0), |(sum, squares), rate| (sum + rate, squares + rate * rate));
        self.links = if squares > 0.0 { sum * sum / squares } else { 0.0 };
    }

    fn size(&self) -> f64 {
        if self.bunches > 0.0 { self.bunched / self.bunches } else { 0.0 }
    }

    fn part(&self) -> f64 {
        if self.all > 0.0 { self.bunched / self.all } else { 0.0 }
    }

    fn turn(&self) -> Turn {
        Turn::Contended(self.part() * self.links * self.size(), self.links * LONGEST)
    }

    /// Of a direction that has its time for itself, over which no round trip is shorter than `least`, s.
    fn period(&self, least: f64) -> Turn {
        let between = if self.bunches > 0.0 { self.part() * self.time / self.bunches } else { 0.0 };
        Turn::Periodic((self.part() * between).min(least))
    }

    /// Frames for two packets.
    fn frames(&self) -> f64 {
        let part = self.part();
        1.0 - part * (1.0 - PAIR / self.size().max(PAIR))
    }
}

impl Ap {
    /// What each hop delivers at once, of which `rows` and `seen` are what its flows showed in an interval of `dt`.
    pub(super) fn learn_aggregates(
        &mut self,
        rows: &[Row],
        seen: &BTreeMap<HopId, [Seen; 2]>,
        (before, now): (&LinkSample, &LinkSample),
        dt: f64,
    ) {
        for (hop, seen) in seen {
            let of = |sample: &LinkSample| sample.each_hop.iter().find(|each| each.hop == *hop).copied();
            let Some((was, is)) = of(before).zip(of(now)) else { continue };
            let shown = Direction::BOTH.map(|direction| {
                let (seen, i) = (&seen[direction.index()], direction.index());
                let (was, is) = (&was.packet_trains[i], &is.packet_trains[i]);
                let bunches = is.bunches.wrapping_sub(was.bunches) as f64;
                (bunches, is.bunched_bytes.wrapping_sub(was.bunched_bytes) as f64 * seen.to_ip.max(1.0), seen.bytes)
            });
            if is.duplex == Duplex::Full {
                for (direction, shown) in Direction::BOTH.into_iter().zip(shown) {
                    let id = self.hop(*hop, direction);
                    let aggregates = self.law.aggregates.entry(id).or_default();
                    aggregates.on_interval(shown, std::iter::empty(), dt);
                    let turn = aggregates.period(seen[direction.index()].local_path);
                    self.law.at(id).set_turn(turn);
                }
                continue;
            }
            let mut links: BTreeMap<(StationId, Direction), f64> = BTreeMap::new();
            for row in rows.iter().filter(|row| row.hop == *hop) {
                let Some(flow) = &row.active else { continue };
                *links.entry((row.station, row.direction)).or_default() += flow.rate;
            }
            let id = self.hop(*hop, Direction::ToStation);
            let [down, up] = shown;
            let aggregates = self.law.aggregates.entry(id).or_default();
            aggregates.on_interval((down.0 + up.0, down.1 + up.1, down.2 + up.2), links.into_values(), dt);
            let (turn, frames) = (aggregates.turn(), aggregates.frames());
            self.costs.set_frames(*hop, frames);
            self.law.at(id).set_turn(turn);
        }
        self.law.aggregates.retain(|id, _| matches!(id, Id::Hop(hop, _) if seen.contains_key(hop)));
        self.costs.retain(|hop| seen.contains_key(&hop));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(bunches: f64, bytes: f64, all: f64, links: &[f64]) -> Aggregates {
        let mut aggregates = Aggregates::default();
        (0..100).for_each(|_| aggregates.on_interval((bunches, bytes, all), links.iter().copied(), 0.05));
        aggregates
    }

    fn contended(aggregates: &Aggregates) -> (f64, f64) {
        let Turn::Contended(bytes, longest) = aggregates.turn() else { panic!("{aggregates:?}") };
        (bytes, longest)
    }

    #[test]
    fn a_turn_is_a_bunch_of_each_link_that_moves() {
        // 50 Mbit/s in frames of 28 packets, of one download.
        let alone = learned(7.44, 312_500.0, 312_500.0, &[50e6]);
        assert!((contended(&alone).0 - 42_000.0).abs() < 10.0, "{alone:?}");
        assert!((alone.frames() - 2.0 / 28.0).abs() < 1e-4, "frames for two packets");
        let three = learned(7.44, 312_500.0, 312_500.0, &[20e6; 3]);
        let (bytes, longest) = contended(&three);
        assert!((bytes - 126_000.0).abs() < 30.0 && (longest - 3.0 * LONGEST).abs() < 1e-12);
        // One that moves next to nothing is no turn.
        let beside = learned(7.44, 312_500.0, 312_500.0, &[50e6, 0.1e6]);
        assert!((contended(&beside).0 / 42_000.0 - 1.004).abs() < 1e-3, "{:?}", beside.turn());
    }

    #[test]
    fn where_packets_come_one_by_one_nothing_is_kept_for_frames() {
        let alone = learned(0.0, 0.0, 150_000.0, &[24e6]);
        assert_eq!((contended(&alone).0, alone.frames()), (0.0, 1.0));
        assert_eq!((contended(&Aggregates::default()), Aggregates::default().frames()), ((0.0, 0.0), 1.0));
        assert_eq!(alone.period(0.02), Turn::Periodic(0.0));
    }

    #[test]
    fn a_period_is_the_time_between_bunches_and_no_longer_than_a_round_trip() {
        // Five in 50 ms, whatever comes in them.
        for bytes in [15e3, 150e3] {
            let all = learned(5.0, bytes, bytes, &[]);
            assert!(matches!(all.period(0.02), Turn::Periodic(period) if (period - 0.01).abs() < 1e-9), "{all:?}");
            assert_eq!(all.period(0.002), Turn::Periodic(0.002), "their sender pauses");
        }
        // A bunch of three packets, and 100 pairs.
        let single = learned(1.0, 4500.0, 304_500.0, &[]);
        assert!(matches!(single.period(0.02), Turn::Periodic(period) if period < 2e-5), "{single:?}");
    }
}
