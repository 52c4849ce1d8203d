//! What a running controller sees, does, and why; as one JSON object over a Unix socket, and what it can be asked to do.
//!
//! A client of the status socket connects, reads until the end, and has one [`Status`]. Rates are IP bit/s, times milliseconds;
//! counters run since the controller came. A client of the command socket ([`command`]) writes one line and reads one.

pub mod command;
pub mod prometheus;
mod quantile;
mod render;
pub mod watch;

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lasthop_core::packet::Direction;
use serde::{Deserialize, Serialize};

pub use render::render;

/// A controller, seen from outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Version of this form, [`FORMAT`]: it changes when a field is renamed or goes, and not when one is added.
    pub format: u32,
    /// Version of the program.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// How long it has been running, s.
    pub running_s: f64,
    /// It decides and shows, and rewrites nothing.
    pub dry_run: bool,
    /// Windows are lowered; otherwise they are measured and planned, and the queue alone works.
    #[serde(default = "yes")]
    pub windows: bool,
    /// LAN interfaces, then the WAN's.
    pub interfaces: Vec<InterfaceStatus>,
    /// What is waited for, and why some interfaces are not hooked, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<String>,
    /// Queue disciplines of ours; none where the kernel's own stay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<QueueStatus>,
    /// What of the machine was set, and what it was before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub knobs: Vec<KnobStatus>,
    /// Levers of radios that may be moved, and what became of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levers: Vec<LeverStatus>,
    /// Hooked radios, and whether downloads over each are left to its own fair queue.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fair_queues: Vec<FairQueueStatus>,
    /// Queue disciplines of others that shape or keep flows apart; they are left as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub found: Vec<FoundStatus>,
    /// What the last hop carries: as it was given, or what was learned of the direction that carries more;
    /// 0 while nothing is known.
    pub capacity_bps: u64,
    /// The capacity is learned; otherwise it was given.
    #[serde(default)]
    pub learns: bool,
    /// What is known of data that goes in one direction.
    #[serde(default)]
    pub directions: Directions,
    /// Devices of the home with a flow in [`Self::flows`] or [`Self::udp`], the fastest first.
    #[serde(default)]
    pub devices: Vec<DeviceStatus>,
    /// UDP flows that ever sent a full packet, by direction, the fastest first, at most [`Status::MOST_FLOWS`]. Games and calls
    /// send none and are not kept apart.
    #[serde(default)]
    pub udp: Vec<UdpStatus>,
    /// What somebody has paused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paused: Vec<PauseStatus>,
    /// What became of reading the configuration again (SIGHUP).
    #[serde(default)]
    pub configuration: ConfigurationStatus,
    /// Nobody is held back: nothing waits, or nobody fills what he may have.
    #[serde(default)]
    pub nothing_to_do: bool,
    /// What was decided, each with its cause: the newest 64, the oldest of them first.
    #[serde(default)]
    pub decisions: Vec<DecisionStatus>,
    /// What of it UDP left in the last interval.
    pub available_bps: u64,
    /// UDP, low-pass filtered, by direction.
    pub udp_bps: ByDirection,
    /// Directions of connections that carry payload, the fastest first, at most [`Status::MOST_FLOWS`].
    pub flows: Vec<FlowStatus>,
    /// The table of connections.
    pub table: TableStatus,
    /// Packets by what became of them, every reason.
    pub packets: BTreeMap<String, u64>,
    /// Windows that were told between acknowledgments.
    #[serde(default)]
    pub window_updates: WindowUpdates,
    /// Asking for window scales of older connections.
    pub conntrack: ConntrackStatus,
    /// Traffic that the hooks did not see.
    pub bypass: Bypass,
    /// How the loop itself fares.
    pub controller: LoopStatus,
    /// `control` of a report, exactly.
    pub control: Control,
}

/// Where a controller serves its status when nothing else is said.
pub const DEFAULT_SOCKET: &str = "/run/lasthop/lasthop.sock";

const fn yes() -> bool {
    true
}

/// Version of the form of a [`Status`]. 1 had other names (`holds`, `held`), and neither devices nor waiting times.
pub const FORMAT: u32 = 2;

impl Status {
    /// Most flows that one status lists.
    pub const MOST_FLOWS: usize = 500;
}

/// What became of reading the configuration again while the controller runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigurationStatus {
    /// How often it was read again and taken.
    pub reloads: u64,
    /// Why it was not taken when it was last read: file, line, key, and what would be right. The one before is in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Keys whose new values wait for a restart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for_restart: Vec<String>,
}

/// One number per direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ByDirection {
    /// Towards the stations.
    pub to_station: f64,
    /// Towards the rest of the world.
    pub to_remote: f64,
}

/// What is known of the last hop, for data to the stations and from them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Directions {
    /// Downloads.
    pub down: DirectionStatus,
    /// Uploads.
    pub up: DirectionStatus,
}

/// What is known of data that goes in one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectionStatus {
    /// What the narrowest hop carries; null while nothing is known.
    pub capacity_bps: Option<u64>,
    /// Where that is from; null while nothing is known.
    #[serde(default)]
    pub capacity_basis: Option<Basis>,
    /// How far the measurements that it is the mean of lie about it: their standard deviation as a part of it, over the last
    /// second or so in which packets waited. Null where it was not measured.
    #[serde(default)]
    pub capacity_spread: Option<f64>,
    /// IP bytes that passed.
    #[serde(default)]
    pub carried_bytes: u64,
    /// Filtered rate of all that passes, IP bit/s.
    #[serde(default)]
    pub rate_bps: u64,
    /// Waiting times, by place.
    #[serde(default)]
    pub waiting: Vec<WaitingStatus>,
    /// Where packets waited when they last did: `access-point` (its own queue), `firmware` (behind it, in driver or
    /// radio), `wan` (in front of the home); null where nothing ever waited.
    pub queue_place: Option<String>,
    /// What waits there, ms.
    pub queue_ms: f64,
    /// Windows are limited.
    #[serde(alias = "holds")]
    pub limits: bool,
}

/// Where a capacity is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// The configuration, or a shaper at the bottleneck.
    Given,
    /// What was delivered while packets waited.
    Measured,
    /// What packet trains came through at: a bound, until something is measured.
    Estimate,
}

/// A histogram of waiting times at one place: what was added to the paths of those who send all the time.
///
/// An interval of the controller counts once where acknowledgments or timestamps told of the queue in it, or had told of one that
/// is deeper than the time since. Where a queue keeps flows apart, a flow that sends little waits less. A connection that began
/// behind a queue that has stood ever since takes it for its path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitingStatus {
    /// As [`DirectionStatus::queue_place`], or `all`: of an interval, the sum over all places.
    pub place: String,
    /// Intervals that told.
    pub count: u64,
    /// Sum over them, ms.
    pub sum_ms: f64,
    /// Upper bound of a bucket, ms, and the intervals in it; empty buckets are left out. Bounds are 0.25 ms x 2^(n/8);
    /// that of the last is null: longer than all.
    pub buckets: Vec<(Option<f64>, u64)>,
}

/// A device of the home.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceStatus {
    /// What commands call it: its Ethernet address where the neighbour table knows it, else its IP address.
    pub id: String,
    /// Its name, where somebody gave it one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Who gave it: `dhcp` (a lease), `hosts` (the file), `mdns` (the device itself).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub named_by: Option<String>,
    /// IP bit/s of its TCP connections and of the UDP flows that ever sent a full packet, filtered.
    pub down_bps: u64,
    /// The same of what it sends.
    pub up_bps: u64,
    /// Directions of flows that carry something.
    pub flows: u64,
    /// What its downloads wait now, ms; null where nothing tells. The least of its connections that send all the time.
    pub down_waiting_ms: Option<f64>,
    /// The same of its uploads.
    pub up_waiting_ms: Option<f64>,
}

impl DeviceStatus {
    /// What people read: its name, else the end of its Ethernet address, else its address.
    #[must_use]
    pub fn label(&self) -> String {
        match (&self.name, self.id.len() == 17 && self.id.matches(':').count() == 5) {
            (Some(name), _) => name.clone(),
            (None, true) => format!("..{}", &self.id[9..]),
            (None, false) => self.id.clone(),
        }
    }
}

/// One direction of one UDP flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UdpStatus {
    /// As [`FlowStatus::flow`].
    pub flow: String,
    /// Direction of its data.
    pub direction: Direction,
    /// [`DeviceStatus::id`] of the device.
    pub device: String,
    /// What it is taken for: `unknown`, `real-time` or `elastic`.
    pub taken_for: String,
    /// Why, in words.
    pub why: String,
    /// `WireGuard`, `OpenVPN` or `IPsec`, by its ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tunnel: Option<String>,
    /// Rate, IP bit/s, filtered.
    pub rate_bps: u64,
    /// What it may use; null where it is not limited.
    pub share_bps: Option<u64>,
    /// IP bytes so far.
    pub bytes: u64,
    /// Packets marked (ECN) so far.
    pub marked: u64,
    /// Packets dropped so far.
    pub dropped: u64,
}

/// Something that is paused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PauseStatus {
    /// What.
    pub what: command::What,
    /// [`DeviceStatus::id`] of the device that it is paused for; null: for all.
    pub device: Option<String>,
    /// Time until it goes on by itself, s; null: until somebody resumes it, or the controller ends.
    pub left_s: Option<f64>,
}

/// A decision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DecisionStatus {
    /// Since the controller came, s.
    pub at_s: f64,
    /// What, and why; the log has the same line.
    pub line: String,
}

/// One interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InterfaceStatus {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// What is there now.
    pub state: Presence,
    /// The bridge that it is a port of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bridge: Option<String>,
    /// How the programs are attached; absent when they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached: Option<Mechanism>,
    /// How often the programs had to be attached again.
    pub reattached: u64,
    /// How often it went down or away.
    pub went_down: u64,
    /// Bytes received since the controller came, link headers included.
    pub received_bytes: u64,
    /// Bytes sent since the controller came, link headers included.
    pub sent_bytes: u64,
}

/// How a program got onto an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// tcx links.
    Tcx,
    /// Filters of a clsact qdisc.
    Clsact,
}

impl Mechanism {
    /// As messages name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcx => "tcx",
            Self::Clsact => "clsact",
        }
    }
}

/// What an interface is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Towards the stations; hooked.
    Lan,
    /// Towards the provider; watched.
    Wan,
}

/// Whether an interface is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Presence {
    /// Up, with carrier.
    Up,
    /// There, but down or without carrier.
    Down,
    /// No such interface now.
    Away,
}

/// Our queue of one interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueStatus {
    /// The interface.
    pub interface: String,
    /// Its kind; in the kernel, as `tc qdisc` lists it.
    pub kind: String,
    /// Who keeps it: `kernel`, or `user` (this process).
    #[serde(default)]
    pub datapath: String,
    /// In user space, the device that packets are handed over by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Kind of what is put back in the end; absent when the kernel told of none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<String>,
    /// How fast packets leave now.
    pub pace_bps: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes sent, link headers included.
    pub sent_bytes: u64,
    /// Channel time charged.
    pub airtime_s: f64,
    /// Packets held now.
    pub queued: u64,
    /// Most packets held at once.
    pub most_queued: u64,
    /// Packets dropped because the queue was full, from the flow of least credit.
    pub dropped: u64,
    /// Packets lost for any other reason: in user space, refused by the interface or not read in time. Stays 0.
    pub lost: u64,
    /// Flows remembered now.
    pub flows: u64,
    /// Most flows remembered.
    pub flows_bound: u64,
    /// Flows with packets now.
    pub backlogged: u64,
    /// Boosts of all active flows.
    pub boosts: u64,
    /// Flows that were given an account of their own.
    pub admitted: u64,
    /// Packets that went to an account that new flows of a station share.
    pub shared: u64,
    /// Of those, because the station's new flows had used up their credit.
    pub over_cap: u64,
    /// Of those, because there was no room for another flow.
    pub no_room: u64,
    /// Flows that left for others while they were active.
    pub evicted: u64,
    /// Packets that came merged from several (GRO, TSO): they pass whole, and a game waits that long.
    pub merged: u64,
    /// How often the pace made somebody wait.
    pub waits: u64,
    /// Packets sent without pace, because the controller had been silent for 2 s.
    pub unpaced: u64,
    /// In user space, how often the interface took no more, so that packets waited here.
    #[serde(default)]
    pub blocked: u64,
    /// In user space, packets of stations that were charged to their flows.
    #[serde(default)]
    pub charged_up: u64,
    /// Repair of the hop's losses; absent where it is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snoop: Option<lasthop_core::snoop::Snapshot>,
    /// Mean time in the queue of the packets that left it, ms; absent where nobody measures it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_sojourn_ms: Option<f64>,
    /// 99th percentile of the same, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_sojourn_ms: Option<f64>,
    /// How often it had to be put there again.
    pub put_again: u64,
    /// Wi-Fi stations of which the driver says what their packets cost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stations: Vec<StationStatus>,
}

/// A lever of radios that may be moved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LeverStatus {
    /// "class", "aql", "txop", "weights" or "attempts".
    pub name: String,
    /// "waiting" (for a radio), "not-here" (it does not work here), "untried", "trying", "kept" (what was tried is in force),
    /// "taken-back" (it is as it was found), "paused" (as it was found, until it goes on) or "refused" (by the driver).
    pub state: String,
    /// Why it does not work here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// As it was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// In force now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_force: Option<String>,
    /// Pairs of blocks, with it and without, of the newest trial; 0: none has ended.
    #[serde(default)]
    pub pairs: u32,
    /// What sparse packets waited more with it then, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_ms: Option<f64>,
    /// What was carried with it then, in parts of what was without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<f64>,
    /// Of "class": flows that have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<u64>,
    /// Of "class": packets that were given one so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<u64>,
}

/// Whether downloads over a radio's interface are left to the radio's own queue, which serves flows in turn (mac80211 with AQL).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FairQueueStatus {
    /// The interface.
    pub interface: String,
    /// "left" (no window of a download is limited for this radio), "elsewhere" (the queue is fair, and more waits than it explains: downloads
    /// are held) or "held" (its queue is not known to be fair, or sparse flows have no class: downloads are held).
    pub state: String,
    /// Why they are held, of "held".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Most that waits below the queue, in driver and hardware, ms; null where that is not bounded, or nobody tells.
    pub below_ms: Option<f64>,
    /// What waits in the queue, of all stations of the interface, bytes, as it was last told; null where the driver does not tell.
    pub waits_bytes: Option<u64>,
}

/// Something of the machine that was set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnobStatus {
    /// What: "wlan0: root queue discipline".
    pub what: String,
    /// What it was; it is put back in the end, unless somebody else has changed it.
    pub before: String,
    /// What it was set to.
    pub ours: String,
    /// Somebody else has changed it: it is theirs, and stays as it is.
    pub given_up: bool,
}

/// A queue discipline of somebody else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundStatus {
    /// The interface.
    pub interface: String,
    /// "cake at 18Mbit/s", "htb at 20Mbit/s with fq_codel", ...
    pub what: String,
    /// It limits the rate, so that there is a standing queue in it and not below.
    pub shapes: bool,
    /// It keeps the queue short, or flows apart.
    pub short: bool,
    /// What follows for control.
    pub follows: String,
}

/// What packets to one station cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StationStatus {
    /// Its address.
    pub mac: String,
    /// Rate at which bytes are charged to it: of the link, or less where it is slow or loses frames.
    pub rate_bps: u64,
    /// Air time charged for each packet beside that of its bytes.
    pub packet_us: u64,
}

/// One direction of one connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowStatus {
    /// `station <- remote` for downloads, `station -> remote` for uploads.
    pub flow: String,
    /// [`DeviceStatus::id`] of the device.
    #[serde(default)]
    pub device: String,
    /// Direction of its data.
    pub direction: Direction,
    /// Controlled, or why not.
    pub state: FlowCondition,
    /// Rate, IP bytes, filtered.
    pub rate_bps: u64,
    /// What it may use; absent when it is not controlled.
    pub share_bps: Option<u64>,
    /// Most the receiver may have outstanding, bytes; absent where nothing limits it.
    pub clamp_bytes: Option<u32>,
    /// The window in force: grows to the clamp, bytes.
    pub window_bytes: u32,
    /// RTT without queueing between access point and station.
    pub local_rtt_ms: Option<f64>,
    /// RTT without queueing between access point and remote end.
    pub remote_rtt_ms: Option<f64>,
    /// IP bytes so far.
    pub bytes: u64,
    /// ACKs whose window was lowered so far.
    pub rewritten: u64,
    /// Segments that passed at most 75 ms after the one before / segments, since it began to carry payload: the Real-Time Performance
    /// Index of a stream as far as this access point, without what was lost. Null before the hundredth.
    #[serde(default)]
    pub timely_index: Option<f64>,
}

/// What the controller does with a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowCondition {
    /// Window-limited to its share, and filling it.
    #[serde(alias = "held")]
    WindowLimited,
    /// Controlled, and using less than it may.
    Below,
    /// No payload lately.
    Idle,
    /// A FIN or RST has passed.
    Closing,
    /// Its sender has more in flight than was advertised to it: no window limits it.
    IgnoresWindows,
    /// Its window scale is not known yet: it is older than the controller, and conntrack did not know it.
    ScaleUnknown,
    /// Somebody has paused window control, for all or for its device.
    Paused,
}

/// The table of connections, and who is not controlled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TableStatus {
    /// Connections in it.
    pub connections: u64,
    /// Its bound.
    pub bound: u64,
    /// Connections forgotten because they had ended or were silent.
    pub forgotten: u64,
    /// Newer ones that found no place in the last ten seconds and pass uncontrolled; an estimate.
    #[serde(default)]
    pub uncontrolled: u64,
    /// For how long the table has been full, s; absent while there is place for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_s: Option<f64>,
    /// Connections that carry payload and are left alone because their window scale is not known.
    #[serde(default)]
    pub scale_unknown: u64,
}

/// Windows that are advertised between acknowledgments (`live::updates`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowUpdates {
    /// Whether they are sent.
    pub on: bool,
    /// Window updates sent so far.
    pub sent: u64,
    /// Window updates that could not be sent: no route, or a firewall refused them.
    pub failed: u64,
    /// How often a connection had to do without, because too many others were seen to.
    pub dropped: u64,
    /// Why none are sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off: Option<String>,
}

/// Asking conntrack for window scales.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConntrackStatus {
    /// Questions asked.
    pub asked: u64,
    /// Connections whose scales it knew.
    pub learned: u64,
    /// Connections that it did not know, either.
    pub unknown: u64,
    /// Why it cannot be asked at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

/// Interface counters minus hook counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bypass {
    /// IP bytes on the LAN interfaces that passed no hook (hardware flow offload).
    pub bytes: u64,
    /// Their share of everything, 0..=1.
    pub share: f64,
    /// More than measurement explains: this traffic bypasses control.
    pub bypasses_control: bool,
}

/// How the loop fares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoopStatus {
    /// Time between decisions.
    pub interval_ms: f64,
    /// Decisions so far.
    pub intervals: u64,
    /// Intervals that were skipped because the one before took too long or the machine stood still.
    pub missed: u64,
    /// Longest time that one decision took.
    pub longest_ms: f64,
    /// Plans written.
    pub plans: u64,
    /// Reads and writes that the kernel refused.
    pub failures: u64,
}

/// `control` of `report.md`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Control {
    /// Capacity used for decisions, over the intervals in which it was known; 0 where it never was.
    pub capacity_bps: CapacityReport,
    /// What was learned; its fields are absent where the capacity was given.
    #[serde(flatten)]
    pub learned: Option<Learned>,
    /// UDP of both directions, filtered.
    pub udp_bps: f64,
    /// Share of all IP bytes that belonged to flows whose window can be controlled, 0..=1.
    pub controllable_share: f64,
    /// ACKs whose window was lowered (in a dry run: would have been).
    pub rewritten: u64,
    /// ACKs of controlled flows whose window was low enough.
    pub passed: u64,
    /// Packets that were not controlled, by reason.
    pub not_controlled: BTreeMap<String, u64>,
    /// Clamp in force by flow, bytes.
    pub clamps: BTreeMap<String, u64>,
}

/// What of `control` is there only where the capacity is learned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    /// Of data to the stations.
    pub capacity_down_bps: CapacityReport,
    /// Of data from them.
    pub capacity_up_bps: CapacityReport,
    /// As [`DirectionStatus::queue_place`].
    pub queue_place: QueuePlaces,
    /// UDP that gives way, in both directions.
    pub elastic_udp_bps: f64,
    /// Decisions so far.
    pub decisions: u64,
}

/// A place by direction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuePlaces {
    /// Downloads.
    pub down: Option<String>,
    /// Uploads.
    pub up: Option<String>,
}

/// Capacity over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CapacityReport {
    /// Mean over the intervals in which it was known.
    pub mean: f64,
    /// Of the last interval.
    pub last: f64,
}

/// Why no status came.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// Nobody serves there.
    #[error("no controller answers at {path}; start one with `lasthop run`, or name its socket with --socket")]
    NobodyThere {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The socket is another user's.
    #[error(
        "{path} may not be read by this user; be root, or in the group that `socket_group` of its configuration names (for the status alone)"
    )]
    NotAllowed {
        /// The socket.
        path: PathBuf,
    },
    /// A controller of another version, whose form this program does not read.
    #[error(
        "the controller at {path} is lasthop {version}, and its status has form {form}; this program, lasthop {ours}, reads form {FORMAT}: \
         ask with the program of its version, or take what it says as it is with `lasthop status --json`",
        ours = env!("CARGO_PKG_VERSION")
    )]
    OtherForm {
        /// The socket.
        path: PathBuf,
        /// Of the controller.
        version: String,
        /// [`Status::format`] of what it said.
        form: u32,
    },
    /// What came is not a status.
    #[error("{path} did not answer with a status of this version; is another program serving there?")]
    NotAStatus {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
}

/// Longest that a client waits for one piece of an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks the controller that serves at `path` for its status, as JSON text.
///
/// # Errors
/// Says what the caller can do.
pub fn query_json(path: &Path) -> Result<String, QueryError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::PermissionDenied => QueryError::NotAllowed { path: path.to_owned() },
        _ => QueryError::NobodyThere { path: path.to_owned(), source },
    };
    let mut stream = UnixStream::connect(path).map_err(failed)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    let mut text = Vec::new();
    stream.read_to_end(&mut text).map_err(failed)?;
    whole(path, &text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Whether what came from `path` is JSON to its end.
///
/// # Errors
/// It is something else, or ends before: who wrote it went while it did.
pub fn whole(path: &Path, text: &[u8]) -> Result<(), QueryError> {
    let path = path.to_owned();
    match serde_json::from_slice::<serde::de::IgnoredAny>(text) {
        Ok(_) => Ok(()),
        Err(cut) if cut.is_eof() => Err(QueryError::NobodyThere { path, source: cut.into() }),
        Err(source) => Err(QueryError::NotAStatus { path, source }),
    }
}

/// Asks the controller that serves at `path` for its status.
///
/// # Errors
/// Says what the caller can do.
pub fn query(path: &Path) -> Result<Status, QueryError> {
    read(&query_json(path)?, path)
}

/// What every form begins with.
#[derive(Deserialize)]
struct Head {
    format: u32,
    version: String,
}

/// Reads a status of this form, or of an older one that has what this one needs.
fn read(text: &str, path: &Path) -> Result<Status, QueryError> {
    let path = path.to_owned();
    match (serde_json::from_str(text), serde_json::from_str(text)) {
        (Ok(status), Ok(Head { format, .. })) if format <= FORMAT => Ok(status),
        (_, Ok(Head { format: form, version })) if form != FORMAT => Err(QueryError::OtherForm { path, version, form }),
        (Ok(status), _) => Ok(status),
        (Err(source), _) => Err(QueryError::NotAStatus { path, source }),
    }
}

#[cfg(test)]
mod tests;
