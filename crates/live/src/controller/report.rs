//! Totals over the intervals, and the status made of them.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use lasthop_core::ap::waiting::Histogram;
use lasthop_core::ap::{self, DirectionSnapshot, FlowSnapshot, QueuePlace, ShareRule, Snapshot, UdpSnapshot};
use lasthop_core::fastpath::layout::{Counters, FlowKey, Half, Reason};
use lasthop_core::meter::rate::Known;
use lasthop_core::packet::{Direction, FlowId};
use lasthop_core::units::{BitRate, Span, Time, count};

use super::Core;
use super::devices::Device;
use super::table::Carrying;
use lasthop_status::{
    Basis, ByDirection, Bypass, CapacityReport, Control, DeviceStatus, DirectionStatus, Directions, FairQueueStatus,
    FlowCondition, FlowStatus, Learned, LoopStatus, QueuePlaces, Status, TableStatus, UdpStatus, WaitingStatus,
};

/// From the first flow to the first line about it: its rate must settle.
const SUMMARY_FIRST: Span = Span::from_secs(2);
/// Between two lines about what is going on.
const SUMMARY_EVERY: Span = Span::from_secs(10);
/// Interface counters see every segment's headers where the hooks see one merged packet: up to 5 % more bytes.
const BYPASS_SHARE: f64 = 0.1;
/// Less than this is not worth a warning: ARP, and a deep queue that is sent after its packets were hooked.
const BYPASS_BYTES: u64 = 5_000_000;
/// Bypassing is judged from here on: what was queued when the controller came has been sent by then.
const SETTLED: Span = Span::from_secs(5);

#[derive(Default)]
pub(super) struct Totals {
    pub(super) counters: Counters,
    pub(super) epoch: u32,
    /// Where packets waited when they last did, by direction.
    pub(super) places: [Option<QueuePlace>; 2],
    /// Of UDP that gives way, so far.
    pub(super) elastic_bytes: u64,
    pub(super) missed: u64,
    pub(super) plans: u64,
    pub(super) failures: u64,
    intervals: u64,
    longest: Span,
    at: Option<Time>,
    /// IP bit/s of all that passes, filtered, by direction.
    rates: [f64; 2],
    summary_at: Time,
    summary_rewritten: u64,
    udp: ByDirection,
    capacity: Known,
    learned: [Known; 2],
    controllable_bytes: u64,
    settled_at: Time,
    /// When it had settled, and when the interfaces were last read.
    settled: Option<Carried>,
    carried: Carried,
    /// What passes between two hooked ports of one bridge is counted by both interfaces: then ingress tells nothing.
    joins_ports: bool,
}

/// IP bytes by direction at one moment.
#[derive(Clone, Copy, Default)]
struct Carried {
    interfaces: [u64; 2],
    hooks: [u64; 2],
}

impl Totals {
    pub(super) fn new(now: Time) -> Self {
        Self { summary_at: now + SUMMARY_FIRST, settled_at: now + SETTLED, ..Self::default() }
    }

    /// After [`Self::on_interval`]: what the interfaces counted by then, when they were read in this interval.
    pub(super) fn on_interface_bytes(&mut self, now: Time, interfaces: [u64; 2], joins_ports: bool) {
        self.joins_ports |= joins_ports;
        self.carried = Carried { interfaces, hooks: self.counters.ip_bytes };
        if self.settled.is_none() && now >= self.settled_at {
            self.settled = Some(self.carried);
        }
    }

    pub(super) fn on_interval(
        &mut self,
        now: Time,
        counters: Counters,
        controllable_bytes: u64,
        directions: &[DirectionSnapshot; 2],
        took: Span,
        udp_weight: f64,
    ) {
        let seconds = self.at.replace(now).map(|before| now.since(before).as_secs_f64().max(1e-3));
        if let Some(seconds) = seconds {
            let rate = |d: Direction| {
                let bytes = counters.udp_bytes[d.index()].saturating_sub(self.counters.udp_bytes[d.index()]);
                bytes as f64 * 8.0 / seconds
            };
            let smooth = |old: f64, new: f64| old + udp_weight * (new - old);
            self.udp = ByDirection {
                to_station: smooth(self.udp.to_station, rate(Direction::ToStation)),
                to_remote: smooth(self.udp.to_remote, rate(Direction::ToRemote)),
            };
        }
        if let Some(seconds) = seconds {
            for (i, rate) in self.rates.iter_mut().enumerate() {
                let bytes = counters.ip_bytes[i].saturating_sub(self.counters.ip_bytes[i]);
                *rate += udp_weight * (bytes as f64 * 8.0 / seconds - *rate);
            }
        }
        self.counters = counters;
        self.controllable_bytes = controllable_bytes;
        self.intervals += 1;
        self.capacity.on_rate(directions.iter().filter_map(|direction| direction.capacity).max());
        for (mean, direction) in self.learned.iter_mut().zip(directions) {
            mean.on_rate(direction.capacity);
        }
        self.longest = self.longest.max(took);
    }

    /// It is time for a line.
    pub(super) fn is_summary_due(&self, now: Time) -> bool {
        now >= self.summary_at
    }

    /// A line about the last seconds, when something moved.
    fn summary(&mut self, now: Time, moved: &Moved) -> Option<String> {
        if moved.flows == 0 {
            self.summary_at = now + SUMMARY_FIRST;
            return None;
        }
        self.summary_at = now + SUMMARY_EVERY;
        let total = self.rewritten();
        let rewritten = total - std::mem::replace(&mut self.summary_rewritten, total);
        Some(moved.line(rewritten))
    }

    fn rewritten(&self) -> u64 {
        self.counters.reason[Reason::Rewritten as usize] + self.counters.reason[Reason::WouldRewrite as usize]
    }

    fn bypass(&self) -> Bypass {
        let Some(before) = self.settled else { return Bypass::default() };
        let judged =
            Direction::BOTH.into_iter().filter(|direction| !self.joins_ports || *direction == Direction::ToStation);
        let since = |now: &[u64; 2], before: &[u64; 2]| -> u64 {
            judged.clone().map(|direction| now[direction.index()].saturating_sub(before[direction.index()])).sum()
        };
        let carried = since(&self.carried.interfaces, &before.interfaces);
        let bytes = carried.saturating_sub(since(&self.carried.hooks, &before.hooks));
        let share = if carried == 0 { 0.0 } else { bytes as f64 / carried as f64 };
        Bypass { bytes, share, bypasses_control: bytes > BYPASS_BYTES && share > BYPASS_SHARE }
    }
}

/// What the last seconds came to, of the connections that have a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Moved {
    flows: usize,
    rate: BitRate,
    /// What UDP leaves of the hop; 0 while nothing is known of it.
    available: BitRate,
    udp: BitRate,
    /// Number of flows that their plan limits.
    window_limited: usize,
    /// What they may use together.
    limited_to: BitRate,
    /// No window is changed, in a dry run or by the configuration.
    only_looks: bool,
}

impl Moved {
    fn line(&self, rewritten: u64) -> String {
        let flows = if self.flows == 1 { "connection has" } else { "connections have" };
        let of =
            if self.available == BitRate::ZERO { String::new() } else { format!(" of {}", self.available.rounded()) };
        let window_limited = match self.window_limited {
            0 => "none is window-limited".to_owned(),
            1 => format!("one is limited to {}", self.limited_to.rounded()),
            n => format!("{n} are limited to {} together", self.limited_to.rounded()),
        };
        let would = if self.only_looks { "would have been lowered" } else { "lowered" };
        format!(
            "{} TCP {flows} {}{of}, {window_limited}; UDP {}; {} ACKs {would}",
            count(self.flows as u64),
            self.rate.rounded(),
            self.udp.rounded(),
            count(rewritten)
        )
    }
}

impl Core {
    /// A line about the last seconds, when it is time for one and something moved.
    pub(super) fn summary(&mut self, now: Time) -> Option<String> {
        if !self.totals.is_summary_due(now) {
            return None;
        }
        let moved = self.moved(&self.ap.snapshot());
        self.totals.summary(now, &moved)
    }

    /// What it does now, for the service manager.
    pub(super) fn line(&self) -> String {
        let mode = if self.config.dry_run { "dry run on" } else { "controlling" };
        let known = |capacity: BitRate| capacity.rounded().to_string();
        let [down, up] = self.ap.directions().map(|way| way.capacity.map_or_else(|| "unknown".to_owned(), known));
        format!("{mode} {}; capacity down {down}, up {up}", self.links.describe())
    }

    fn moved(&self, ap: &Snapshot) -> Moved {
        let sum = |rates: &mut dyn Iterator<Item = BitRate>| BitRate::bps(rates.map(BitRate::as_bps).sum());
        let shared: Vec<_> = ap.flows.iter().filter(|flow| flow.share.is_some()).collect();
        let only_looks = self.config.dry_run || !self.config.windows;
        // While nothing waits nobody is window-limited, however full his window is: plans are wide then.
        let limits =
            |flow: &FlowSnapshot| self.config.share == ShareRule::Equal || ap.directions[flow.direction.index()].limits;
        let window_limited: Vec<_> =
            shared.iter().filter(|flow| !only_looks && flow.window_limited && limits(flow)).collect();
        Moved {
            flows: shared.len(),
            rate: sum(&mut shared.iter().map(|flow| flow.rate)),
            available: ap.available,
            udp: ap.udp,
            window_limited: window_limited.len(),
            limited_to: sum(&mut window_limited.iter().filter_map(|flow| flow.share)),
            only_looks,
        }
    }

    pub(super) fn status(&mut self) -> Status {
        let now = super::now();
        self.devices.refresh(now);
        let snapshot = self.ap.snapshot();
        let flows = snapshot.flows.iter().filter_map(|flow| self.table.names.key(flow.flow));
        self.devices.ask(now, &self.stations, flows.map(|key| key.station));
        self.as_it_is()
    }

    fn as_it_is(&self) -> Status {
        let snapshot = self.ap.snapshot();
        let mut flows: Vec<_> = snapshot.flows.iter().filter_map(|flow| self.flow(flow)).collect();
        let control = self.control(&snapshot, &flows);
        flows.sort_by(|a, b| b.rate_bps.cmp(&a.rate_bps).then_with(|| a.flow.cmp(&b.flow)));
        flows.truncate(Status::MOST_FLOWS);
        let datagrams: Vec<_> = self.ap.udp_flows().snapshot().filter(|flow| flow.bytes > 0).collect();
        let t = &self.totals;
        Status {
            format: lasthop_status::FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            running_s: super::now().since(self.started).as_secs_f64(),
            dry_run: self.config.dry_run,
            windows: self.config.windows,
            interfaces: self.links.status(),
            waits: self.links.remarks(),
            queues: self.queues.status(),
            knobs: self.queues.knobs().into_iter().chain(self.levers.knobs()).collect(),
            levers: self.levers.status(&self.program),
            fair_queues: self.fair_queues(&snapshot),
            found: self.disciplines.status(),
            capacity_bps: snapshot.capacity.as_bps(),
            learns: self.capacity.is_none(),
            directions: self.directions(&snapshot),
            devices: self.devices(&snapshot, &datagrams),
            udp: self.udp(&datagrams),
            paused: self.pauses.status(super::now()),
            configuration: self.configuration.clone(),
            nothing_to_do: self.has_nothing_to_do(&snapshot, &flows),
            decisions: self.journal.newest(),
            available_bps: snapshot.available.as_bps(),
            udp_bps: t.udp,
            flows,
            table: self.table(),
            packets: Reason::ALL.iter().map(|r| (r.name().to_owned(), t.counters.reason[*r as usize])).collect(),
            window_updates: self.updates.status(),
            conntrack: self.scales.status(),
            bypass: t.bypass(),
            controller: LoopStatus {
                interval_ms: self.interval.as_millis_f64(),
                intervals: t.intervals,
                missed: t.missed,
                longest_ms: t.longest.as_millis_f64(),
                plans: t.plans,
                failures: t.failures,
            },
            control,
        }
    }

    fn fair_queues(&self, snapshot: &Snapshot) -> Vec<FairQueueStatus> {
        let now = super::now();
        let at = |ifindex| super::fair_queue(now, ifindex, &self.levers, &self.queues, &self.disciplines);
        let status = |ifindex: u32| {
            let port = self.links.ports().into_iter().find(|port| port.ifindex == Some(ifindex))?;
            let hop = self.hops.of(ifindex);
            let other = || self.hops.ports(hop).find(|port| at(*port).is_err());
            let (found, waits) = (at(ifindex), self.queues.flow_queues().waits(now, ifindex));
            let (state, why) = match found {
                Err(why) => ("held", Some(why)),
                Ok(_) if hop.0 == 0 => ("held", Some("there are more hops than are told apart")),
                Ok(_) if other().is_some() => ("held", Some("another interface of its radio is without")),
                Ok(_) if snapshot.queues_elsewhere.contains(&hop) => ("elsewhere", None),
                Ok(_) => ("left", None),
            };
            Some(FairQueueStatus {
                interface: port.name.to_string(),
                state: state.to_owned(),
                why: why.map(str::to_owned),
                below_ms: found.ok().map(|(below, _)| below.as_millis_f64()),
                waits_bytes: waits,
            })
        };
        self.levers.radios().filter_map(status).collect()
    }

    fn table(&self) -> TableStatus {
        let full_s = self.full.lasts(super::now()).map(Span::as_secs_f64);
        TableStatus { uncontrolled: self.full.connections(), full_s, ..self.table.status() }
    }

    fn control(&self, snapshot: &Snapshot, flows: &[FlowStatus]) -> Control {
        let t = &self.totals;
        let all: u64 = t.counters.ip_bytes.iter().sum();
        let left_alone = Reason::ALL.into_iter().filter(|r| !r.is_controlled());
        Control {
            capacity_bps: match self.capacity {
                Some(given) => CapacityReport { mean: given.as_bps() as f64, last: given.as_bps() as f64 },
                None => capacity(t.capacity),
            },
            learned: self.capacity.is_none().then(|| self.learned()),
            udp_bps: snapshot.udp.as_bps() as f64,
            controllable_share: (t.controllable_bytes as f64 / all.max(1) as f64).min(1.0),
            rewritten: t.rewritten(),
            passed: t.counters.reason[Reason::WithinPlan as usize],
            not_controlled: left_alone.map(|r| (r.name().to_owned(), t.counters.reason[r as usize])).collect(),
            clamps: flows.iter().filter_map(|f| Some((f.flow.clone(), u64::from(f.clamp_bytes?)))).collect(),
        }
    }

    fn learned(&self) -> Learned {
        let [down, up] = self.totals.places.map(|place| place.map(|place| place.name().to_owned()));
        Learned {
            capacity_down_bps: capacity(self.totals.learned[Direction::ToStation.index()]),
            capacity_up_bps: capacity(self.totals.learned[Direction::ToRemote.index()]),
            queue_place: QueuePlaces { down, up },
            elastic_udp_bps: Direction::BOTH.map(|d| self.ap.udp_flows().elastic_rate(d).as_bps() as f64).iter().sum(),
            decisions: self.journal.count(),
        }
    }

    fn directions(&self, snapshot: &Snapshot) -> Directions {
        let [down, up] = Direction::BOTH.map(|of| {
            let i = of.index();
            DirectionStatus {
                carried_bytes: self.totals.counters.ip_bytes[i],
                rate_bps: self.totals.rates[i] as u64,
                waiting: self.ap.waiting(of).named().map(|(place, waits)| waiting(place, waits)).collect(),
                ..direction(&snapshot.directions[i], self.totals.places[i])
            }
        });
        Directions { down, up }
    }

    fn devices(&self, snapshot: &Snapshot, datagrams: &[UdpSnapshot]) -> Vec<DeviceStatus> {
        let address = |flow: FlowId| self.table.names.key(flow).map(|key| key.station);
        let flows: Vec<_> = snapshot.flows.iter().filter_map(|flow| Some((address(flow.flow)?, *flow))).collect();
        let datagrams: Vec<_> = datagrams.iter().filter_map(|flow| Some((address(flow.flow)?, *flow))).collect();
        self.devices.status(&self.stations, &flows, &datagrams)
    }

    fn udp(&self, datagrams: &[UdpSnapshot]) -> Vec<UdpStatus> {
        let status = |flow: &UdpSnapshot| {
            let key = self.table.names.key(flow.flow)?;
            Some(UdpStatus {
                flow: text(key, flow.direction),
                direction: flow.direction,
                device: Device::of(&key.station, &self.stations).to_string(),
                taken_for: flow.behaviour.name().to_owned(),
                why: flow.why.to_string(),
                tunnel: flow.tunnel.map(|tunnel| tunnel.to_string()),
                rate_bps: flow.rate.as_bps(),
                share_bps: flow.share.map(BitRate::as_bps),
                bytes: flow.bytes,
                marked: u64::from(flow.marked),
                dropped: u64::from(flow.dropped),
            })
        };
        let mut all: Vec<_> = datagrams.iter().filter_map(status).collect();
        all.sort_by(|a, b| b.rate_bps.cmp(&a.rate_bps).then_with(|| a.flow.cmp(&b.flow)));
        all.truncate(Status::MOST_FLOWS);
        all
    }

    /// Nobody is held back: windows pass as receivers offer them.
    fn has_nothing_to_do(&self, snapshot: &Snapshot, flows: &[FlowStatus]) -> bool {
        match self.config.share {
            ShareRule::MaxMin => snapshot.directions.iter().all(|direction| !direction.limits),
            ShareRule::Equal => flows.iter().all(|flow| flow.state != FlowCondition::WindowLimited),
        }
    }

    fn flow(&self, flow: &FlowSnapshot) -> Option<FlowStatus> {
        let (key, carrying) = self.table.carried(flow.flow)?;
        let half = &carrying.state.half[flow.direction.index()];
        Some(FlowStatus {
            flow: text(key, flow.direction),
            device: Device::of(&key.station, &self.stations).to_string(),
            direction: flow.direction,
            state: state(flow, carrying, half),
            rate_bps: flow.rate.as_bps(),
            share_bps: flow.share.map(BitRate::as_bps),
            clamp_bytes: flow.plan.filter(|_| flow.controllable).and_then(|plan| plan.limit()),
            window_bytes: half.window,
            local_rtt_ms: flow.local_rtt.map(Span::as_millis_f64),
            remote_rtt_ms: flow.remote_rtt.map(Span::as_millis_f64),
            bytes: half.bytes,
            rewritten: half.rewritten,
            timely_index: carrying.timely_index(flow.direction),
        })
    }
}

fn capacity(known: Known) -> CapacityReport {
    CapacityReport { mean: known.mean_bps(), last: known.last_bps() }
}

fn direction(direction: &DirectionSnapshot, place: Option<QueuePlace>) -> DirectionStatus {
    DirectionStatus {
        capacity_bps: direction.capacity.map(BitRate::as_bps),
        capacity_basis: direction.basis.map(|basis| match basis {
            ap::Basis::Given => Basis::Given,
            ap::Basis::Measured => Basis::Measured,
            ap::Basis::Estimate => Basis::Estimate,
        }),
        capacity_spread: direction.spread,
        queue_place: place.map(|place| place.name().to_owned()),
        queue_ms: direction.queue.as_millis_f64(),
        limits: direction.limits,
        ..DirectionStatus::default()
    }
}

fn waiting(place: &str, waits: &Histogram) -> WaitingStatus {
    WaitingStatus {
        place: place.to_owned(),
        count: waits.count(),
        sum_ms: waits.sum().as_millis_f64(),
        buckets: waits.buckets().map(|(upper, count)| (upper.map(Span::as_millis_f64), count)).collect(),
    }
}

fn state(flow: &FlowSnapshot, carrying: &Carrying, half: &Half) -> FlowCondition {
    if carrying.state.closing(flow.direction) {
        FlowCondition::Closing
    } else if flow.left_alone {
        FlowCondition::Paused
    } else if !flow.scale_known {
        FlowCondition::ScaleUnknown
    } else if !flow.controllable {
        FlowCondition::IgnoresWindows
    } else if flow.share.is_none() {
        FlowCondition::Idle
    } else if half.data_flags & Half::LIMITED != 0 {
        FlowCondition::WindowLimited
    } else {
        FlowCondition::Below
    }
}

/// `station <- remote` for downloads, `station -> remote` for uploads.
pub(super) fn text(key: &FlowKey, direction: Direction) -> String {
    let end = |address: [u8; 16], port: u16| {
        let address = Ipv6Addr::from(address);
        SocketAddr::new(address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4), port)
    };
    let arrow = if direction == Direction::ToStation { "<-" } else { "->" };
    format!("{} {arrow} {}", end(key.station, key.station_port), end(key.remote, key.remote_port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_named_by_station_arrow_and_remote() {
        let mut key = FlowKey { station_port: 5000, remote_port: 443, ..FlowKey::default() };
        key.station[10..12].fill(0xff);
        key.station[12..].copy_from_slice(&[10, 0, 0, 2]);
        key.remote[15] = 1;
        assert_eq!(text(&key, Direction::ToStation), "10.0.0.2:5000 <- [::1]:443");
        assert_eq!(text(&key, Direction::ToRemote), "10.0.0.2:5000 -> [::1]:443");
    }

    #[test]
    fn the_line_says_who_is_held_to_what_and_when_nobody_is() {
        let rate = BitRate::bps(14_223_456);
        let none = Moved {
            flows: 1,
            rate,
            available: BitRate::ZERO,
            udp: BitRate::bps(280_123),
            window_limited: 0,
            limited_to: BitRate::ZERO,
            only_looks: true,
        };
        assert_eq!(
            none.line(12_345),
            "1 TCP connection has 14.2 Mbit/s, none is window-limited; UDP 280 kbit/s; 12.3 thousand ACKs would have been lowered"
        );
        let available = BitRate::bps(18_612_345);
        let two = Moved {
            flows: 3,
            available,
            window_limited: 2,
            limited_to: BitRate::bps(12_408_230),
            only_looks: false,
            ..none
        };
        assert_eq!(
            two.line(1_234),
            "3 TCP connections have 14.2 Mbit/s of 18.6 Mbit/s, 2 are limited to 12.4 Mbit/s together; UDP 280 kbit/s; 1234 ACKs lowered"
        );
    }

    #[test]
    fn traffic_around_the_hooks_is_told_from_headers_of_merged_segments() {
        let mut totals = Totals::new(Time::ZERO);
        let after = Time::ZERO + SETTLED;
        totals.on_interface_bytes(Time::ZERO, [1_000_000, 0], false);
        assert_eq!(totals.bypass(), Bypass::default(), "what was queued before does not count");
        totals.on_interface_bytes(after, [7_000_000, 0], false);
        totals.counters.ip_bytes = [10_000_000, 0];
        let mut bypass = |interfaces| {
            totals.on_interface_bytes(after, interfaces, false);
            totals.bypass()
        };
        assert!(!bypass([17_500_000, 0]).bypasses_control);
        assert!(bypass([27_000_000, 0]).bypasses_control);
        assert_eq!(bypass([17_000_000, 10_000_000]).bytes, 10_000_000);
        assert!(!bypass([7_000_000, 0]).bypasses_control);
    }

    #[test]
    fn what_passes_between_two_ports_of_a_bridge_is_not_taken_for_traffic_around_the_hooks() {
        let mut totals = Totals::new(Time::ZERO);
        let after = Time::ZERO + SETTLED;
        totals.on_interface_bytes(after, [0, 0], true);
        totals.counters.ip_bytes = [50_000_000, 0];
        totals.on_interface_bytes(after, [50_000_000, 50_000_000], false);
        assert!(!totals.bypass().bypasses_control, "in by one port and out by the other");
        totals.on_interface_bytes(after, [70_000_000, 50_000_000], false);
        assert_eq!(totals.bypass().bytes, 20_000_000);
    }
}
