//! From the scenario's words for the last hop to the models that carry it.

use crate::address::AddressPlan;
use crate::arena::Frame;
use crate::network::{Line, Network};
use lasthop_core::units::{Span, Time};
use lasthop_home::link::Link;
use lasthop_home::scenario::{
    AfterCollision, Loss, MacControl, Preamble, Scenario, ScenarioError, Standard, Timing, Wifi, Wire,
};
use lasthop_wifi as wifi;
use lasthop_wifi::{Medium, MediumParams, NodeId, Rate, StationParams};

/// The wires and the air of a home at time zero.
///
/// # Errors
/// A rate that this air does not have.
pub fn network(scenario: &Scenario, cell: &Wifi) -> Result<Network, ScenarioError> {
    let plan = AddressPlan { servers: scenario.servers.len(), stations: scenario.stations.len() };
    let link = |wire: &Wire| Link::<Frame>::new(*wire, Time::ZERO);
    let line =
        scenario.line.as_ref().map(|line| Line { to_servers: link(&line.up), to_access_point: link(&line.down) });
    let up = scenario.servers.iter().map(|s| link(&s.wire)).collect();
    let down = scenario.servers.iter().map(|s| link(&s.wire)).collect();
    let stations = (0..scenario.stations.len()).map(|i| station(scenario, cell, i)).collect::<Result<_, _>>()?;
    let air = Medium::new(medium(scenario, cell)?, stations, scenario.seed);
    Ok(Network::new(plan, up, down, line, air))
}

/// Frames that the models can hold at one time, roughly; what the arena needs.
#[must_use]
pub fn most_frames(scenario: &Scenario, cell: &Wifi) -> usize {
    // Frames on a long wire average far above an ACK's size; without a rate, what a real host sends.
    let on_wire = |wire: &Wire| match wire.rate {
        Some(rate) => wire.buffer as usize + rate.bytes_in(wire.delay) as usize / 300,
        None => (wire.delay.as_secs_f64() * 100_000.0) as usize,
    };
    let wires = scenario.servers.iter().map(|s| 2 * on_wire(&s.wire)).sum::<usize>();
    let line = scenario.line.as_ref().map_or(0, |l| on_wire(&l.up) + on_wire(&l.down));
    let queues = cell.queue.limit as usize + scenario.stations.len() * cell.station_queue.limit as usize;
    (wires + line + queues).clamp(8_192, 65_536)
}

fn medium(scenario: &Scenario, cell: &Wifi) -> Result<MediumParams, ScenarioError> {
    let standard = standard(cell.standard);
    let (attempts, short_attempts, limit) = mac(scenario, cell);
    let control_rate = match cell.control_rate {
        None => None,
        Some(rate) => {
            let known = Rate::of(wifi::Standard::G, rate);
            Some(known.ok_or_else(|| scenario.refuse("wifi.control_rate", "is no rate of this air"))?)
        }
    };
    Ok(MediumParams {
        standard,
        timing: match cell.timing {
            Timing::Standard => wifi::Timing::Standard,
            Timing::Ns2G => wifi::Timing::Ns2G,
        },
        control_rate,
        preamble: match cell.preamble {
            Preamble::Long => wifi::Preamble::Long,
            Preamble::Short => wifi::Preamble::Short,
        },
        protection: cell.protection,
        attempts,
        short_attempts: Some(short_attempts),
        rts_threshold: cell.rts_threshold,
        queue_limit: limit,
        power_w: cell.power.0,
        radio: wifi::Radio {
            frequency_hz: cell.frequency.0,
            receive_threshold_w: cell.receive_threshold.0,
            carrier_sense_threshold_w: cell.carrier_sense_threshold.0,
            capture_db: cell.capture.0,
        },
        loss: loss(cell.loss),
        after_collision: match cell.after_collision {
            AfterCollision::Standard => wifi::AfterCollision::Standard,
            AfterCollision::Eifs => wifi::AfterCollision::Eifs,
        },
    })
}

fn station(scenario: &Scenario, cell: &Wifi, index: usize) -> Result<StationParams, ScenarioError> {
    let it = &scenario.stations[index];
    Ok(StationParams {
        standard: standard(it.standard),
        rate: rate(scenario, index)?,
        distance_m: it.distance.0,
        angle_deg: it.angle.0,
        power_w: it.power.0,
        queue_limit: cell.station_queue.limit as usize,
    })
}

fn rate(scenario: &Scenario, index: usize) -> Result<Rate, ScenarioError> {
    let it = &scenario.stations[index];
    let key = format!("station.{}.rate", it.name);
    Rate::of(standard(it.standard), it.rate).ok_or_else(|| scenario.refuse(&key, "is no rate of this air"))
}

fn standard(standard: Standard) -> wifi::Standard {
    match standard {
        Standard::B => wifi::Standard::B,
        Standard::G => wifi::Standard::G,
    }
}

fn loss(loss: Loss) -> wifi::Loss {
    match loss {
        Loss::None => wifi::Loss::None,
        Loss::Fixed { rate } => wifi::Loss::Fixed { rate },
        Loss::Shadowing { exponent, deviation } => wifi::Loss::Shadowing { exponent, deviation_db: deviation.0 },
    }
}

/// Attempts of long and short frames and the access point's queue limit, with what `[control.mac]` overrides.
fn mac(scenario: &Scenario, cell: &Wifi) -> (u32, u32, usize) {
    let MacControl { attempts, limit } = scenario.control.mac.unwrap_or_default();
    (
        u32::from(attempts.unwrap_or(cell.long_attempts)),
        u32::from(attempts.unwrap_or(cell.short_attempts)),
        limit.unwrap_or(cell.queue.limit) as usize,
    )
}

/// What of the air a scenario may change while it runs.
#[derive(Clone, Debug)]
pub struct Retune {
    rates: Vec<Rate>,
    distances_m: Vec<f64>,
    loss: wifi::Loss,
    attempts: (u32, u32),
    queue_limit: usize,
    station_queue_limit: usize,
}

impl Retune {
    /// The keys it covers; `*` stands for a name.
    pub const KEYS: [&str; 12] = [
        "station.*.rate",
        "station.*.distance",
        "wifi.loss",
        "wifi.loss.kind",
        "wifi.loss.rate",
        "wifi.loss.exponent",
        "wifi.loss.deviation",
        "wifi.attempts",
        "wifi.short_attempts",
        "wifi.queue.limit",
        "wifi.station_queue.limit",
        "wifi.rate",
    ];

    /// The air as `scenario` has it.
    ///
    /// # Errors
    /// A rate that this air does not have.
    pub fn new(scenario: &Scenario, cell: &Wifi) -> Result<Self, ScenarioError> {
        let (long, short, queue_limit) = mac(scenario, cell);
        Ok(Self {
            rates: (0..scenario.stations.len()).map(|i| rate(scenario, i)).collect::<Result<_, _>>()?,
            distances_m: scenario.stations.iter().map(|s| s.distance.0).collect(),
            loss: loss(cell.loss),
            attempts: (long, short),
            queue_limit,
            station_queue_limit: cell.station_queue.limit as usize,
        })
    }

    /// Makes it so.
    pub fn apply(&self, air: &mut Medium<Frame>) {
        for (i, (rate, distance)) in self.rates.iter().zip(&self.distances_m).enumerate() {
            let node = NodeId(i as u16 + 1);
            air.set_station_rate(node, *rate);
            air.set_distance(node, *distance);
            air.set_queue_limit(node, self.station_queue_limit);
        }
        air.set_loss(self.loss);
        air.set_attempts(self.attempts.0, Some(self.attempts.1));
        air.set_queue_limit(NodeId::ACCESS_POINT, self.queue_limit);
    }
}

/// How long the longest way through the wires takes without queues; what is silent for longer has vanished.
#[must_use]
pub fn longest_way(scenario: &Scenario) -> Span {
    let server = scenario.servers.iter().map(|s| s.wire.delay).max().unwrap_or(Span::ZERO);
    scenario.line.as_ref().map_or(server, |line| server + line.down.delay.max(line.up.delay))
}
