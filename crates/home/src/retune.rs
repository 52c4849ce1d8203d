//! What of the channel `[[change]]` may change while a home runs.

use lasthop_core::packet::Packet;
use lasthop_medium::{Medium, MediumParams, NodeId, StationParams};

use crate::scenario::Scenario;

/// What of the channel a scenario may change while it runs.
#[derive(Clone, Debug)]
pub struct Retune {
    params: MediumParams,
    stations: Vec<StationParams>,
}

impl Retune {
    /// The keys it covers; `*` stands for a name.
    pub const KEYS: [&str; 33] = [
        "station.*.rate",
        "station.*.mcs",
        "station.*.streams",
        "station.*.width",
        "station.*.guard_interval",
        "station.*.distance",
        "station.*.walls",
        "station.*.snr",
        "wifi.loss",
        "wifi.loss.kind",
        "wifi.loss.rate",
        "wifi.loss.exponent",
        "wifi.loss.deviation",
        "wifi.loss.reference",
        "wifi.loss.wall",
        "wifi.loss.noise_figure",
        "wifi.loss.fading",
        "wifi.loss.correlation",
        "wifi.attempts",
        "wifi.short_attempts",
        "wifi.queue.limit",
        "wifi.station_queue.limit",
        "wifi.rate",
        "wifi.mcs",
        "wifi.streams",
        "wifi.width",
        "wifi.guard_interval",
        "wireless_link.rate",
        "wireless_link.delay",
        "wireless_link.error_rate",
        "wireless_link.buffer",
        "wireless_link.queue.limit",
        "wireless_link.station_queue.limit",
    ];

    /// The channel as `scenario` has it.
    #[must_use]
    pub fn new(scenario: &Scenario) -> Self {
        let (params, stations) = scenario.medium();
        Self { params, stations }
    }

    /// Whether a change of `key`, a whole path, is covered.
    #[must_use]
    pub fn covers(key: &str) -> bool {
        Self::KEYS.iter().any(|known| match known.split_once('*') {
            None => *known == key,
            Some((head, tail)) => {
                let middle = key.strip_prefix(head).and_then(|rest| rest.strip_suffix(tail));
                middle.is_some_and(|name| !name.is_empty())
            }
        })
    }

    /// Makes it so.
    pub fn apply<P: Packet + Copy>(&self, medium: &mut Medium<P>) {
        for (i, station) in self.stations.iter().enumerate() {
            let node = NodeId(i as u16 + 1);
            medium.set_station_rate(node, station.rate);
            medium.set_distance(node, station.distance_m);
            medium.set_place(node, station.walls, station.snr_db);
            medium.set_queue_limit(node, station.queue_limit);
        }
        medium.set_loss(self.params.loss);
        medium.set_channel(self.params.channel);
        medium.set_attempts(self.params.attempts, self.params.short_attempts);
        medium.set_queue_limit(NodeId::ACCESS_POINT, self.params.queue_limit);
        if let Some(link) = self.params.wireless_link {
            medium.set_wireless_link(link);
        }
    }
}
