//! The report of a run, field by field as `schema/report.md` has it; the same from the simulator and the emulator.
//!
//! Times are in ms unless the name says otherwise. A figure without a population (the mean of no packets) is null;
//! fields that only some hosts or kinds of flow have are absent elsewhere.

mod in_order;
mod meter;
mod names;
mod tables;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use meter::{FlowMeter, LossPlace, Window};
pub use names::{closest, for_a_moment};
pub use tables::{airtime_fairness, flow_meter, goodput_fairness, queue, stations};

/// The value of `format`.
pub const FORMAT: u32 = 1;

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`FORMAT`].
    pub format: u32,
    /// Name of the scenario.
    pub scenario: String,
    /// Seed of the run.
    pub seed: u64,
    /// How long it ran, s.
    pub duration_s: f64,
    /// Figures count packets sent from here on, s.
    pub measure_from_s: f64,
    /// How it ran.
    pub run: Run,
    /// One per flow and copy.
    pub flows: Vec<FlowReport>,
    /// One per node of the channel, the access point among them.
    pub stations: Vec<StationReport>,
    /// One per queue.
    pub queues: Vec<QueueReport>,
    /// Jain's index.
    pub fairness: Fairness,
    /// What the controller did; absent without control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<ControlReport>,
    /// What Snoop did; absent without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snoop: Option<lasthop_core::snoop::Snapshot>,
}

/// How it ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Host that ran it.
    pub host: Host,
    /// Revision of the program, fixed at build time.
    pub revision: String,
    /// Wall time, s.
    pub wall_s: f64,
    /// Events handled.
    pub events: u64,
    /// False when p99 lag exceeded 1 ms or a TAP queue dropped.
    pub valid: bool,
    /// How late wake-ups came; only from the emulator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag_ms: Option<Lag>,
    /// Packets dropped by TAP queues; only from the emulator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drops: Option<u64>,
}

/// The host of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Host {
    /// Virtual time.
    Sim,
    /// Real time.
    Emu,
}

/// Lag of wake-ups, ms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lag {
    /// Median.
    pub p50: f64,
    /// 99 %.
    pub p99: f64,
    /// 99.9 %.
    pub p999: f64,
    /// Largest.
    pub max: f64,
}

/// One flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowReport {
    /// As in the scenario; copies are `name.1` ..
    pub name: String,
    /// Where its data starts.
    pub from: String,
    /// Where its data ends.
    pub to: String,
    /// What it sends.
    pub kind: String,
    /// Of packets sent in [measure_from, end).
    #[serde(flatten)]
    pub metrics: Metrics,
    /// Of packets sent before measure_from and after the youngest flow's start.
    pub start_up: Metrics,
}

/// Figures of one population of packets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// IP packets handed to the network.
    pub sent: u64,
    /// First copies received.
    pub delivered: u64,
    /// Further copies.
    pub duplicates: u64,
    /// Where the others went; in flight at the end counts nowhere.
    pub lost: Lost,
    /// Payload bits first received per second.
    pub goodput_bps: f64,
    /// IP bits first received per second.
    pub rate_bps: f64,
    /// One way, sender's network interface to receiver's; null when nothing was received.
    pub delay: Option<Delay>,
    /// Delay minus the flow's minimum over the whole run; null when nothing was received.
    pub added_delay: Option<AddedDelay>,
    /// Of packets received in a row; null before the first pair.
    pub jitter: Option<JitterReport>,
    /// Interarrival jitter of RFC 3550 at the end; null before the first pair.
    pub rfc3550: Option<f64>,
    /// Timely received / sent; null when nothing was sent.
    pub timely_index: Option<f64>,
    /// Handed to the application in order and timely / sent; only of streams over TCP whose receiver the host can see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timely_in_order: Option<f64>,
    /// Late / received; null when nothing was received.
    pub delayed_rate: Option<f64>,
    /// Lost / sent; null when nothing was sent.
    pub loss_rate: Option<f64>,
    /// Of TCP flows, where the host can see the sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpReport>,
    /// Of split connections: the sender of the half that ends at the access point; `tcp` is the other's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_half: Option<TcpReport>,
    /// Of flows over a rate-controlled transport (TFRC, SSVP).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_control: Option<RateReport>,
    /// Of web flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<PageReport>,
}

/// Where packets were lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// On the channel, after the last attempt.
    #[serde(alias = "air")]
    pub channel: u64,
    /// In the access point's queue.
    pub ap_queue: u64,
    /// In a station's queue.
    pub station_queue: u64,
    /// In a wired buffer.
    pub wired: u64,
    /// Elsewhere.
    pub other: u64,
}

impl Lost {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.channel + self.ap_queue + self.station_queue + self.wired + self.other
    }
}

/// One-way delay, ms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delay {
    /// Smallest.
    pub min: f64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95 %.
    pub p95: f64,
    /// 99 %.
    pub p99: f64,
    /// Largest.
    pub max: f64,
}

/// Delay above the flow's minimum, ms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AddedDelay {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95 %.
    pub p95: f64,
    /// 99 %.
    pub p99: f64,
    /// Largest.
    pub max: f64,
}

/// `|(R_i - R_{i-1}) - (S_i - S_{i-1})|`, ms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct JitterReport {
    /// Mean.
    pub mean: f64,
    /// Variance over all pairs, ms^2.
    pub var: f64,
    /// Largest.
    pub max: f64,
}

/// What a TCP sender went through.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpReport {
    /// Segments acknowledged.
    pub acked_packets: u64,
    /// Segments sent again.
    pub retransmitted: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Fast retransmits.
    pub fast_retransmits: u64,
    /// Segments.
    pub cwnd_max: f64,
    /// Segments, mean over time.
    pub cwnd_mean: f64,
    /// Smoothed round trip at the end, ms.
    pub srtt_ms: f64,
    /// Segments that Snoop sent again; absent without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_retransmitted: Option<u64>,
}

/// What a rate-controlled sender went through.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateReport {
    /// Rate that its law allowed, mean over time, payload bit/s.
    pub allowed_bps: f64,
    /// Loss events (losses within one round trip are one) that the receiver saw.
    pub loss_events: u64,
    /// Loss events per packet, as the receiver reckons them, at the end; 0 before the first.
    pub loss_event_rate: f64,
    /// Times no report came for too long.
    pub silences: u64,
    /// Smoothed round trip at the end, ms.
    pub srtt_ms: f64,
}

/// What a web user saw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PageReport {
    /// Load time of each page, ms.
    pub load_ms: Vec<f64>,
}

/// One node of the channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StationReport {
    /// As in the scenario.
    pub name: String,
    /// Of the run's time, 0..=1.
    pub airtime_share: f64,
    /// Frames that were transmitted at least once.
    pub frames: u64,
    /// Transmissions.
    pub attempts: u64,
    /// Repetitions.
    pub retries: u64,
    /// Frames whose attempts ran out.
    pub given_up: u64,
    /// Transmissions that began together with another.
    pub collisions: u64,
    /// Its classes that had something to send, where the air has classes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<ClassReport>,
    /// What it sent with which rate, of each receiver the most frequent one first; not shown where every rate and its errors stay as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<AirRateReport>,
}

/// One rate of a node towards another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AirRateReport {
    /// The receiver.
    pub to: String,
    /// What it carries, bit/s.
    pub rate_bps: u64,
    /// Modulation and coding of one stream; null with b and g.
    pub mcs: Option<u8>,
    /// Spatial streams.
    pub streams: u8,
    /// MHz.
    pub width_mhz: u32,
    /// Between symbols, ns; null with b and g.
    pub guard_interval_ns: Option<u32>,
    /// MPDUs sent with it, repetitions included.
    pub mpdus: u64,
    /// Of these, acknowledged.
    pub acked: u64,
}

/// One class of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassReport {
    /// VO, VI, BE or BK.
    pub class: String,
    /// PPDUs sent: exchanges begun.
    pub ppdus: u64,
    /// MPDUs in them.
    pub mpdus: u64,
    /// Mean; null without any.
    pub mpdus_per_ppdu: Option<f64>,
    /// Of PPDUs, how many began together with another node's, 0..=1; null without any.
    pub collision_probability: Option<f64>,
    /// Times that a class of higher priority of the same node went first.
    pub internal_collisions: u64,
    /// MPDUs sent again.
    pub retries: u64,
    /// MPDUs whose attempts or lifetime ran out.
    pub given_up: u64,
    /// Block ack requests.
    pub block_ack_requests: u64,
    /// Of the run's time, 0..=1.
    pub airtime_share: f64,
}

/// One queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueReport {
    /// Host and direction.
    pub name: String,
    /// Mean over time of the packets waiting.
    pub mean_packets: f64,
    /// Most packets waiting.
    pub max_packets: u64,
    /// Mean time in the queue, ms.
    pub mean_sojourn: f64,
    /// 99 % of the same, ms.
    pub p99_sojourn: f64,
    /// Packets dropped.
    pub dropped: u64,
    /// Packets marked in place of a drop (ECN); not shown when there is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub marked: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Jain's index; null where there is nobody to share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fairness {
    /// Over the goodput of flows with congestion control: elastic ones, and streams over a transport that has it.
    pub goodput: Option<f64>,
    /// Over the air time of stations.
    pub airtime: Option<f64>,
}

/// What the controller did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ControlReport {
    /// C.
    pub capacity_bps: CapacityReport,
    /// Filtered rate of UDP at the end, IP bit/s.
    pub udp_bps: f64,
    /// Bytes of flows that can be controlled / all bytes, 0..=1.
    pub controllable_share: f64,
    /// ACKs whose window was lowered.
    pub rewritten: u64,
    /// Packets passed untouched.
    pub passed: u64,
    /// Packets that could not be controlled, by reason.
    pub not_controlled: BTreeMap<String, u64>,
    /// The newest clamp of each flow, bytes.
    pub clamps: BTreeMap<String, u64>,
    /// What was learned, with `capacity = "learn"`.
    #[serde(flatten)]
    pub learned: LearnedReport,
    /// What was decided of the levers of the air; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub levers: Option<LeversReport>,
}

/// What was decided of the levers of the air (`control.levers`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LeversReport {
    /// Of each that works here, by its name.
    pub each: BTreeMap<String, LeverReport>,
    /// The class of each flow that has one at the end.
    pub classes: BTreeMap<String, String>,
    /// Trials that ended with a finding.
    pub trials: u64,
    /// Trials that ended for want of packets to measure by.
    pub empty_trials: u64,
}

/// One lever.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LeverReport {
    /// `untried`, `trying`, `kept`, `taken-back` or `refused`, at the end.
    pub stage: String,
    /// As it was found.
    pub found: String,
    /// In force at the end.
    pub in_force: String,
    /// The newest trial: its pairs of blocks; absent before the first has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<u32>,
    /// What sparse packets waited more with the setting that was tried (95th percentile), ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_ms: Option<f64>,
    /// What was carried with it, in parts of what was without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<f64>,
}

/// What a controller learned that was given no capacity; each field is absent where one was given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LearnedReport {
    /// C of data to the stations, IP bit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_down_bps: Option<CapacityReport>,
    /// C of data from them, IP bit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_up_bps: Option<CapacityReport>,
    /// Where packets waited when they last did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_place: Option<QueuePlaces>,
    /// Of UDP that gives way (QUIC, tunnels), both directions, IP bit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elastic_udp_bps: Option<f64>,
    /// Decisions, each of which had a line in the controller's log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decisions: Option<u64>,
}

/// `access-point`, `firmware` or `line` by direction; null where nothing ever waited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuePlaces {
    /// Of data to the stations.
    pub down: Option<String>,
    /// Of data from them.
    pub up: Option<String>,
}

/// C over the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CapacityReport {
    /// Mean over time.
    pub mean: f64,
    /// At the end.
    pub last: f64,
}

impl Report {
    /// As indented JSON with a final line feed.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// The flow called `name`.
    #[must_use]
    pub fn flow(&self, name: &str) -> Option<&FlowReport> {
        self.flows.iter().find(|flow| flow.name == name)
    }
}
