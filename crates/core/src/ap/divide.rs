//! Who gets what of a hop that was learned: air time among stations, then among the flows of each; elastic UDP takes part.

use std::collections::BTreeMap;

use super::record;
use super::{Action, Ap, Decision, Duplex, StationId, StationSample, set_plan};
use crate::packet::{Direction, FlowId};
use crate::share::{self, Wish};
use crate::units::{BitRate, Span};
use crate::window;

/// What is left for flows that can be held, however much the others take: a part of the hop.
const LEAST: f64 = 0.05;
/// What a frame costs beside its bytes: contention, headers, the acknowledgment, and TCP's own, ns. 802.11g with two frames
/// of data per ACK.
const FRAME_NS: f64 = 250_000.0;
/// Payload of a frame that prices are told by, bits.
const FRAME_BITS: f64 = 1500.0 * 8.0;
/// What a capacity that is a little wrong may be wrong by.
const RATE_BOOST: (f64, f64) = (0.9, 1.25);
/// And what it is where the capacity is only guessed.
const GUESS_MORE: f64 = 1.5;
/// No station costs more than this many times as much as the cheapest.
const DEAREST: f64 = 64.0;

/// Prices that are remembered: an 802.11 access point tells 2,007 stations apart.
const MOST_STATIONS: usize = 2_048;

/// What a byte to or from each station costs beside one of the cheapest that is known, by what its driver says.
///
/// ```text
/// price = attempts x (1500 x 8 / R + frame)      [s]
/// ```
#[derive(Debug, Default)]
pub(super) struct Prices {
    frames: BTreeMap<StationId, f64>,
    /// Of the cheapest.
    least: f64,
}

impl Prices {
    pub(super) fn on_station(&mut self, sample: &StationSample) {
        let data_ns = FRAME_BITS * 1e9 / sample.rate.as_bps().max(1) as f64;
        if self.frames.len() >= MOST_STATIONS && !self.frames.contains_key(&sample.station) {
            // Far more than a radio can have: most are long gone, and those that are there are told again.
            self.frames.clear();
        }
        self.frames.insert(sample.station, sample.attempts.max(1.0) * (data_ns + FRAME_NS));
        self.least = self.frames.values().copied().fold(f64::MAX, f64::min);
    }

    pub(super) fn of(&self, station: StationId) -> f64 {
        self.frames.get(&station).map_or(1.0, |frame| (frame / self.least).clamp(1.0, DEAREST))
    }
}

/// Whom a wish is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Window(FlowId, Direction),
    Datagrams(FlowId, Direction),
}

impl Who {
    const fn direction(self) -> Direction {
        match self {
            Self::Window(_, direction) | Self::Datagrams(_, direction) => direction,
        }
    }
}

impl Ap {
    /// Shares in air time, as rates of the direction and station in which a byte costs least.
    pub(super) fn divide(&mut self, bounds: [Span; 2]) {
        let airs = [0, 1].map(|i| self.ways[i].air().or(self.ways[1 - i].air()));
        let most = airs.into_iter().flatten().max();
        let ratio = |air: BitRate, most: BitRate| most.as_bps() as f64 / air.as_bps().max(1) as f64;
        let costs = airs.map(|air| air.zip(most).map_or(1.0, |(air, most)| ratio(air, most)));
        let (whos, mut wishes) = self.wishes(costs);
        let realtime = self.realtime();
        for (i, taken) in realtime.into_iter().enumerate() {
            let Some(line) = self.ways[i].line.capacity() else { continue };
            let own: Vec<usize> = (0..whos.len()).filter(|k| whos[*k].direction().index() == i).collect();
            let theirs: Vec<_> = own.iter().map(|k| Wish { cost: 1.0, ..wishes[*k] }).collect();
            for (k, share) in own.into_iter().zip(share::by_group(without(line, taken), &theirs)) {
                wishes[k].demand = Some(share);
            }
        }
        self.left = BitRate::ZERO;
        let line_taken = realtime;
        let realtime = [0, 1].map(|i| realtime[i] + self.small[i] * airs[i].map_or(0.0, |air| air.as_bps() as f64));
        let full = |i: usize| most.map(|most| without(most, realtime[i] * costs[i]));
        let shares: Vec<Option<BitRate>> = match (most, self.params.duplex) {
            (None, _) => wishes.iter().map(|wish| wish.demand).collect(),
            (Some(most), Duplex::Half) => {
                let air = without(most, realtime[0] * costs[0] + realtime[1] * costs[1]);
                self.left = air;
                share::by_group(air, &wishes).into_iter().map(Some).collect()
            }
            (Some(_), Duplex::Full) => {
                let mut shares = vec![None; whos.len()];
                for i in 0..2 {
                    let own: Vec<usize> = (0..whos.len()).filter(|k| whos[*k].direction().index() == i).collect();
                    let theirs: Vec<_> = own.iter().map(|k| wishes[*k]).collect();
                    let air = full(i).unwrap_or_default();
                    own.into_iter().zip(share::by_group(air, &theirs)).for_each(|(k, share)| shares[k] = Some(share));
                    self.left = self.left.max(air);
                }
                shares
            }
        };
        for (i, cost) in costs.into_iter().enumerate() {
            let newcomer = full(i).map(|air| {
                let one = Wish { group: StationId(u32::MAX), demand: None, cost };
                let with_one: Vec<_> = wishes.iter().copied().chain([one]).collect();
                share::by_group(air, &with_one).pop().unwrap_or(air)
            });
            let share = [newcomer, self.ways[i].capacity()].into_iter().flatten().min();
            self.set_default_of(Direction::BOTH[i], share);
        }
        for direction in Direction::BOTH {
            let room = self.room(direction, &costs, &realtime, &line_taken);
            self.set_start_of(direction, room);
        }
        for (i, taken) in realtime.into_iter().enumerate() {
            let own = whos.iter().zip(&wishes).zip(&shares).filter(|((who, _), _)| who.direction().index() == i);
            let given =
                own.map(|((_, wish), share)| Some(share.as_ref()?.as_bps() as f64 * self.prices.of(wish.group)));
            let given: Option<f64> = given.sum();
            self.ways[i].given = given.filter(|given| *given > 0.0).map(|given| BitRate::from_bps_f64(given + taken));
        }
        self.hold(bounds, &whos, &shares);
        self.steer_datagrams(&whos, &shares);
    }

    /// Rates of what cannot give way, by direction, bit/s: real-time UDP, and TCP whose window cannot be rewritten.
    fn realtime(&self) -> [f64; 2] {
        let udp = self.udp.smooth();
        let all = self.link.udp_bytes.iter().sum::<u64>().max(1) as f64;
        Direction::BOTH.map(|direction| {
            let i = direction.index();
            let udp = udp.as_bps() as f64 * self.link.udp_bytes[i] as f64 / all;
            let flows = self.flows.iter().filter(|((_, way), r)| *way == direction && !r.is_controllable());
            udp + flows.map(|(_, r)| r.rate().as_bps() as f64).sum::<f64>()
        })
    }

    fn wishes(&self, costs: [f64; 2]) -> (Vec<Who>, Vec<Wish<StationId>>) {
        let windows = self
            .controlled()
            .map(|((flow, direction), record)| (Who::Window(*flow, *direction), record.station(), record.demand()));
        let datagrams =
            self.udp_flows.elastic().map(|wish| (Who::Datagrams(wish.flow, wish.direction), wish.station, wish.demand));
        let wish = |(who, station, demand): (Who, StationId, Option<BitRate>)| {
            let cost = costs[who.direction().index()] * self.prices.of(station);
            (who, Wish { group: station, demand, cost })
        };
        windows.chain(datagrams).map(wish).unzip()
    }

    /// Windows.
    fn hold(&mut self, bounds: [Span; 2], whos: &[Who], shares: &[Option<BitRate>]) {
        let params = self.params;
        let flows = whos.len().max(1) as u32;
        let spare = self.spare(whos, shares);
        let mut floors = [(0u32, 0u64, 0.0f64); 2];
        for (who, share) in whos.iter().zip(shares) {
            let Who::Window(flow, direction) = *who else { continue };
            let Some(record) = self.flows.get_mut(&(flow, direction)) else { continue };
            let i = direction.index();
            let way = &self.ways[i];
            let Some((share, capacity)) = share.zip(way.capacity()) else {
                // Nothing is known of the hop, but something waits on the line: more would only wait longer.
                let grows = way.queue - way.local <= bounds[i] * 2;
                self.actions.extend(record.open(&params, flows, grows).map(|plan| set_plan((flow, direction), plan)));
                continue;
            };
            record.boost(way.boost);
            let hop = match way.pace() {
                Some(gain) => BitRate::bps(share.as_bps() + spare[i].as_bps()).mul_f64(gain / params.pace_gain.0),
                None => capacity.mul_f64(way.boost.max(1.0)),
            };
            let fair = capacity.mul_f64(1.0 / f64::from(flows));
            let plan =
                record.decide_beside(&params, bounds[i], (share, fair, hop), (way.basis(flows), way.pace().is_some()));
            self.actions.extend(plan.map(|plan| set_plan((flow, direction), plan)));
            let rtt = record.base_rtt(&params, bounds[i]).unwrap_or_default();
            floors[i] = (floors[i].0 + 1, floors[i].1 + u64::from(record.floor()), floors[i].2 + rtt.as_secs_f64());
        }
        for (i, (flows, floors, rtts)) in floors.into_iter().enumerate() {
            let capacity = self.ways[i].capacity().unwrap_or_default();
            let pipe = capacity.bytes_in(Span::from_secs_f64(rtts / f64::from(flows.max(1))));
            let exceeds = floors > pipe + pipe / 4;
            if exceeds && !self.ways[i].too_many {
                let direction = Direction::BOTH[i];
                self.actions.push_back(Action::Say(Decision::Floors {
                    direction,
                    flows: flows as usize,
                    floors,
                    pipe,
                }));
            }
            self.ways[i].too_many = exceeds;
        }
    }

    /// What nobody wants of each way, divided by those who share it.
    fn spare(&self, whos: &[Who], shares: &[Option<BitRate>]) -> [BitRate; 2] {
        Direction::BOTH.map(|direction| {
            let own = whos.iter().zip(shares).filter(|(who, _)| who.direction() == direction);
            let (flows, taken) =
                own.fold((0, 0), |(flows, taken), (_, share)| (flows + 1, taken + share.unwrap_or_default().as_bps()));
            let capacity = self.ways[direction.index()].capacity().unwrap_or_default();
            BitRate::bps(capacity.as_bps().saturating_sub(taken) / flows.max(1))
        })
    }

    /// Elastic UDP: marks or drops.
    fn steer_datagrams(&mut self, whos: &[Who], shares: &[Option<BitRate>]) {
        for (who, share) in whos.iter().zip(shares) {
            let (Who::Datagrams(flow, direction), Some(share)) = (*who, share) else { continue };
            let way = &self.ways[direction.index()];
            if way.capacity().is_none() {
                continue;
            }
            // Part of the boost is what windows need and rates do not. A guess leaves as much as it may be too low: then a queue
            // shows what is true.
            let more = if way.is_measured() { way.boost.clamp(RATE_BOOST.0, RATE_BOOST.1) } else { GUESS_MORE };
            self.hold_datagrams(flow, direction, share.mul_f64(more));
        }
    }

    /// What a new connection that carries data this way starts with; `None`: nothing is known of the hop.
    pub(super) fn set_default_of(&mut self, direction: Direction, share: Option<BitRate>) {
        let way = &self.ways[direction.index()];
        let plan = match share.zip(way.capacity()) {
            None => window::first(),
            Some((share, capacity)) => {
                let flow = window::Flow {
                    share,
                    fair: BitRate::ZERO,
                    hop: capacity.mul_f64(way.boost.max(1.0)),
                    base_rtt: Span::from_millis(200),
                    payload_share: 0.97,
                    trim: way.boost,
                    pace_gain: self.params.pace_gain.0,
                    mss: 1448,
                };
                window::plan(&flow, &self.params.bounds)
            }
        };
        let before = &mut self.default_plans[direction.index()];
        if record::differs(before, &plan) {
            *before = plan;
            self.actions.push_back(Action::SetDefault { direction, plan });
        }
    }

    /// What the hops leave to the TCP of one direction.
    fn room(
        &self,
        direction: Direction,
        costs: &[f64; 2],
        realtime: &[f64; 2],
        line_taken: &[f64; 2],
    ) -> Option<BitRate> {
        let i = direction.index();
        let tcp = |i: usize| {
            let flows = self.controlled().filter(|((_, way), _)| way.index() == i);
            flows.map(|(_, record)| record.rate().as_bps() as f64).sum::<f64>()
        };
        let taken = match self.params.duplex {
            Duplex::Half => realtime[i] + (realtime[1 - i] + tcp(1 - i)) * costs[1 - i] / costs[i],
            Duplex::Full => realtime[i],
        };
        let way = &self.ways[i];
        let air = way.air().map(|air| without(air.mul_f64(1.0 / way.mix()), taken));
        let line = way.line.capacity().map(|line| without(line, line_taken[i]));
        [air, line].into_iter().flatten().min()
    }

    /// What connections that begin may promise together.
    fn set_start_of(&mut self, direction: Direction, room: Option<BitRate>) {
        let (depth_bytes, rate_bytes) = window::start(room);
        let before = &mut self.starts[direction.index()];
        if before.0.abs_diff(depth_bytes) > before.0 / 50 || before.1.abs_diff(rate_bytes) > before.1 / 200 {
            *before = (depth_bytes, rate_bytes);
            self.actions.push_back(Action::SetStart { direction, depth_bytes, rate_bytes });
        }
    }
}

/// What is left of a hop.
fn without(capacity: BitRate, taken: f64) -> BitRate {
    let capacity = capacity.as_bps() as f64;
    BitRate::from_bps_f64((capacity - taken).max(LEAST * capacity))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_station_at_six_mbps_costs_five_times_one_at_fifty_four() {
        let mut prices = Prices::default();
        let sample = |station, mbps, attempts| StationSample { station, rate: BitRate::mbps(mbps), attempts };
        prices.on_station(&sample(StationId(1), 54, 1.0));
        prices.on_station(&sample(StationId(2), 6, 1.0));
        prices.on_station(&sample(StationId(3), 54, 2.0));
        // 2.25 ms for 0.472 ms.
        assert!((prices.of(StationId(2)) - 4.76).abs() < 0.01);
        assert!((prices.of(StationId(3)) - 2.0).abs() < 1e-9);
        assert_eq!((prices.of(StationId(1)), prices.of(StationId(9))), (1.0, 1.0));
    }
}
