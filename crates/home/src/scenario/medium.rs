//! From the last hop, `[[station]]` and `[control.mac]` to what the medium is made of.

use lasthop_core::snoop;
use lasthop_medium::{Loss as MediumLoss, MediumParams, NodeId, Radio, StationParams};

use super::{Bridge, HostId, LastHop, Loss, Scenario, Wifi, WirelessLink};

impl Wifi {
    /// The cell's parameters, without stations.
    #[must_use]
    pub fn medium_params(&self) -> MediumParams {
        MediumParams {
            standard: self.standard,
            band: self.band,
            timing: self.timing,
            control_rate: self.control_rate,
            preamble: self.preamble,
            protection: self.protection,
            attempts: u32::from(self.long_attempts),
            short_attempts: Some(u32::from(self.short_attempts)),
            realtime_attempts: None,
            rts_threshold: self.rts_threshold,
            rts_for_aggregates: self.rts_for_aggregates,
            missed_block_ack: self.missed_block_ack,
            edca: self.edca,
            queue: self.queue.discipline,
            queue_limit: self.queue.limit as usize,
            firmware_queue: self.firmware_queue as usize,
            power_w: self.power.0,
            radio: Radio {
                frequency_hz: self.frequency.map_or(Radio::default().frequency_hz, |hertz| hertz.0),
                receive_threshold_w: self.receive_threshold.0,
                carrier_sense_threshold_w: self.carrier_sense_threshold.0,
                capture_db: self.capture.0,
            },
            loss: self.loss.into(),
            channel: match &self.loss {
                Loss::Snr(snr) => Some(snr.params(self.frequency, self.band)),
                _ => None,
            },
            after_collision: self.after_collision,
            hidden: self.hidden,
            bridge: None,
            wireless_link: None,
            check_bianchi_decrement: false,
        }
    }
}

impl Bridge {
    fn medium_params(&self) -> MediumParams {
        MediumParams {
            bridge: Some(self.costs),
            queue: self.queue.discipline,
            queue_limit: self.queue.limit as usize,
            ..MediumParams::default()
        }
    }
}

impl WirelessLink {
    fn medium_params(&self) -> MediumParams {
        MediumParams {
            wireless_link: Some(self.params),
            queue: self.queue.discipline,
            queue_limit: self.queue.limit as usize,
            ..MediumParams::default()
        }
    }
}

impl From<Loss> for MediumLoss {
    fn from(loss: Loss) -> Self {
        match loss {
            Loss::None => Self::None,
            Loss::Fixed { rate } => Self::Fixed { rate },
            Loss::Shadowing { exponent, deviation } => Self::Shadowing { exponent, deviation_db: deviation.0 },
            // [`MediumParams::channel`] has it.
            Loss::Snr(_) => Self::None,
        }
    }
}

impl Scenario {
    /// The last hop and its stations in the order of [`Scenario::stations`]. The settings of `[control.mac]` are in force
    /// where there is one: it counts while a controller runs.
    #[must_use]
    pub fn medium(&self) -> (MediumParams, Vec<StationParams>) {
        let (mut params, station_queue) = match &self.hop {
            LastHop::Wifi(wifi) => (wifi.medium_params(), &wifi.station_queue),
            LastHop::Bridge(bridge) => (bridge.medium_params(), &bridge.station_queue),
            LastHop::WirelessLink(link) => (link.medium_params(), &link.station_queue),
        };
        let mac = self.control.mac.unwrap_or_default();
        if let Some(attempts) = mac.attempts {
            params.attempts = u32::from(attempts);
            params.short_attempts = Some(u32::from(attempts));
        }
        params.realtime_attempts = mac.realtime_attempts.map(u32::from);
        params.queue_limit = mac.limit.map_or(params.queue_limit, |limit| limit as usize);
        let station = |s: &super::Station| StationParams {
            standard: s.standard,
            rate: s.sending.rate,
            distance_m: s.distance.0,
            walls: s.walls,
            snr_db: s.snr.map(|snr| snr.0),
            rate_law: s.rate_control,
            angle_deg: s.angle.0,
            power_w: s.power.0,
            queue: station_queue.discipline,
            queue_limit: station_queue.limit as usize,
            edca: s.edca,
            ampdu: s.sending.ampdu,
            amsdu_bytes: s.sending.amsdu,
        };
        (params, self.stations.iter().map(station).collect())
    }

    /// What Snoop at the access point is set to, where it runs.
    #[must_use]
    pub fn snoop(&self) -> Option<snoop::Params> {
        let (usual, by_link) = match &self.hop {
            LastHop::WirelessLink(link) if link.ns2 => (snoop::Params::ns2(), link.snoop),
            LastHop::WirelessLink(link) => (snoop::Params::default(), link.snoop),
            LastHop::Wifi(_) | LastHop::Bridge(_) => (snoop::Params::default(), false),
        };
        match &self.control.snoop {
            Some(control) => Some(control.params(usual)),
            None => by_link.then_some(usual),
        }
    }

    /// Names of the medium's queues, in the order of its snapshot.
    #[must_use]
    pub fn queue_names(&self) -> Vec<String> {
        let mut names = vec!["AP to stations".to_owned()];
        match &self.hop {
            LastHop::Bridge(bridge) if bridge.costs.half_duplex => names[0] = "both ways".to_owned(),
            LastHop::Bridge(_) | LastHop::WirelessLink(_) => names.push("stations to AP".to_owned()),
            LastHop::Wifi(_) => names.extend(self.stations.iter().map(|s| format!("{} to AP", s.name))),
        }
        names
    }

    /// The node of the medium that a host is; `None` for servers.
    #[must_use]
    pub fn node(&self, host: HostId) -> Option<NodeId> {
        match host {
            HostId::AccessPoint => Some(NodeId(0)),
            HostId::Station(i) => Some(NodeId(i as u16 + 1)),
            HostId::Server(_) => None,
        }
    }
}
