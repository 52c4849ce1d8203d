//! How much a medium delivers at once, learned from what comes together from its stations.
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
//! Only of a hop that both directions share, for there a turn has to be contended for.

use std::collections::BTreeMap;

use super::observe::{Row, Seen};
use super::{Ap, Direction, Duplex, HopId, LinkSample, StationId};

/// Bunches are averaged over so long, s: about a hundred of the longest frames.
const MEMORY: f64 = 0.5;
/// Two packets, IP bytes.
const PAIR: f64 = 3000.0;
/// No frame of 802.11 lasts longer, s (the longest that L-SIG can say; IEEE 802.11-2020, table 19-25, aPPDUMaxTime).
const LONGEST: f64 = 5.484e-3;

/// What passes until it is the same link's turn again.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Turn {
    /// IP bytes; 0: packets are sent one by one.
    pub(super) bytes: f64,
    /// It takes no longer, s.
    pub(super) longest: f64,
}

/// Of one hop; sums fade.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aggregates {
    bunches: f64,
    /// IP bytes in bunches, and all.
    bunched: f64,
    all: f64,
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
        Turn { bytes: self.part() * self.links * self.size(), longest: self.links * LONGEST }
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
            let Some((was, is)) = of(before).zip(of(now)).filter(|(_, is)| is.duplex == Duplex::Half) else { continue };
            let (mut bunches, mut bunched) = (0.0, 0.0);
            for direction in Direction::BOTH.map(Direction::index) {
                let (was, is) = (&was.packet_trains[direction], &is.packet_trains[direction]);
                bunches += is.bunches.wrapping_sub(was.bunches) as f64;
                bunched += is.bunched_bytes.wrapping_sub(was.bunched_bytes) as f64 * seen[direction].to_ip.max(1.0);
            }
            let mut links: BTreeMap<(StationId, Direction), f64> = BTreeMap::new();
            for row in rows.iter().filter(|row| row.hop == *hop) {
                let Some(flow) = &row.active else { continue };
                *links.entry((row.station, row.direction)).or_default() += flow.rate;
            }
            let all = seen.iter().map(|seen| seen.bytes).sum();
            let aggregates = self.law.aggregates.entry(*hop).or_default();
            aggregates.on_interval((bunches, bunched, all), links.into_values(), dt);
            let (turn, frames) = (aggregates.turn(), aggregates.frames());
            self.costs.set_frames(*hop, frames);
            self.law.at(self.hop(*hop, Direction::ToStation)).set_turn(turn);
        }
        self.law.aggregates.retain(|hop, _| seen.contains_key(hop));
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

    #[test]
    fn a_turn_is_a_bunch_of_each_link_that_moves() {
        // 50 Mbit/s in frames of 28 packets, of one download.
        let alone = learned(7.44, 312_500.0, 312_500.0, &[50e6]);
        assert!((alone.turn().bytes - 42_000.0).abs() < 10.0, "{alone:?}");
        assert!((alone.frames() - 2.0 / 28.0).abs() < 1e-4, "frames for two packets");
        let three = learned(7.44, 312_500.0, 312_500.0, &[20e6; 3]);
        assert!((three.turn().bytes - 126_000.0).abs() < 30.0 && (three.turn().longest - 3.0 * LONGEST).abs() < 1e-12);
        // One that moves next to nothing is no turn.
        let beside = learned(7.44, 312_500.0, 312_500.0, &[50e6, 0.1e6]);
        assert!((beside.turn().bytes / 42_000.0 - 1.004).abs() < 1e-3, "{:?}", beside.turn());
    }

    #[test]
    fn where_packets_come_one_by_one_nothing_is_kept_for_frames() {
        let alone = learned(0.0, 0.0, 150_000.0, &[24e6]);
        assert_eq!((alone.turn().bytes, alone.frames()), (0.0, 1.0));
        assert_eq!((Aggregates::default().turn(), Aggregates::default().frames()), (Turn::default(), 1.0));
    }
}
