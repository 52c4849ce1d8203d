//! From the scenario's words to the models that carry its packets.

use crate::address::AddressPlan;
use crate::arena::Frame;
use crate::network::{Network, WanLink};
use lasthop_core::units::{Span, Time};
use lasthop_home::link::Link;
use lasthop_home::scenario::{LastHop, Scenario, Wire};
use lasthop_medium::Medium;

/// The wires and the last hop of a home at time zero.
#[must_use]
pub fn network(scenario: &Scenario) -> Network {
    let plan = AddressPlan { servers: scenario.servers.len(), stations: scenario.stations.len() };
    let link = |wire: &Wire| Link::<Frame>::new(*wire, Time::ZERO);
    let wan = scenario.wan.as_ref().map(|wan| WanLink { to_servers: link(&wan.up), to_access_point: link(&wan.down) });
    let up = scenario.servers.iter().map(|s| link(&s.wire)).collect();
    let down = scenario.servers.iter().map(|s| link(&s.wire)).collect();
    let (params, stations) = scenario.medium();
    Network::new(plan, up, down, wan, Medium::new(params, stations, scenario.seed))
}

/// Frames that the models can hold at one time, roughly; what the arena needs.
#[must_use]
pub fn most_frames(scenario: &Scenario) -> usize {
    // Frames on a long wire, and those of a burst, average far above an ACK's size; without a rate, what a real host sends.
    let on_wire = |wire: &Wire| match wire.rate {
        Some(rate) => wire.buffer as usize + (rate.bytes_in(wire.delay) as usize + wire.burst as usize) / 300,
        None => (wire.delay.as_secs_f64() * 100_000.0) as usize,
    };
    let wires = scenario.servers.iter().map(|s| 2 * on_wire(&s.wire)).sum::<usize>();
    let wan = scenario.wan.as_ref().map_or(0, |l| on_wire(&l.up) + on_wire(&l.down));
    let queues = scenario.hop.queues();
    let most = |i: usize| queues.get(i).map_or(0, |(_, queue)| queue.limit as usize);
    let firmware = if let LastHop::Wifi(wifi) = &scenario.hop { wifi.firmware_queue as usize } else { 0 };
    let queues = most(0) + firmware + scenario.stations.len() * most(1);
    (wires + wan + queues).clamp(8_192, 65_536)
}

/// How long the longest way through the wires takes without queues; what is silent for longer has vanished.
#[must_use]
pub fn longest_path_delay(scenario: &Scenario) -> Span {
    let server = scenario.servers.iter().map(|s| s.wire.delay).max().unwrap_or(Span::ZERO);
    let wan = scenario.wan.as_ref().map_or(Span::ZERO, |wan| wan.down.delay.max(wan.up.delay));
    let hop = match &scenario.hop {
        LastHop::WirelessLink(link) => link.params.delay + link.params.station_delay,
        LastHop::Wifi(_) | LastHop::Bridge(_) => Span::ZERO,
    };
    server + wan + hop
}
