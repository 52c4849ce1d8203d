//! `[control.*]`: what the access point does besides forwarding.

use lasthop_core::ap::{Law, ShareRule};
use lasthop_core::levers::Lever;
use lasthop_core::snoop;
use lasthop_core::units::{BitRate, Bytes, Span};

use super::read::Reader;
use super::wired::MOST_PACKETS;
use super::{LONGEST, ScenarioError};
use crate::quantity::Share;

/// What controls the home.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Control {
    /// Advertised-window control.
    pub window: Option<WindowControl>,
    /// CLAMP in its place.
    pub clamp: Option<ClampControl>,
    /// Local retransmission, where the file has a table for it ([`super::Scenario::snoop`]).
    pub snoop: Option<SnoopControl>,
    /// TCP ends at the access point and begins anew there (I-TCP).
    pub split: Option<SplitControl>,
    /// Levers of the air that the access point may move, where they pay ([`lasthop_core::levers`]).
    pub levers: Vec<Lever>,
    /// MAC settings that override `[wifi]` while the controller runs.
    pub mac: Option<MacControl>,
}

/// `[control.window]`.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowControl {
    /// C: what the last hop can carry.
    pub capacity: Capacity,
    /// How often shares are computed.
    pub interval: Span,
    /// When it begins, since the start of the run: what is there then, it has not seen begin.
    pub start: Span,
    /// It measures and moves levers, and neither windows nor datagrams are held, as where somebody has paused it for all.
    pub left_alone: bool,
    /// How what UDP leaves is divided.
    pub share: ShareRule,
    /// Weight of the newest sample in the low-pass filter of UDP, 0..=1.
    pub udp_weight: f64,
    /// The RTT without queueing at the last hop.
    pub rtt: WindowRtt,
    /// `[control.law]`: parameters of the law by which what the last hop carries is shared.
    pub law: Law,
}

/// `[control.snoop]`: keys left out have the default of the network's habits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SnoopControl {
    /// Most connections known.
    pub connections: Option<u32>,
    /// Most bytes cached of one.
    pub connection_bytes: Option<Bytes>,
    /// Most bytes cached in all.
    pub bytes: Option<Bytes>,
    /// Most local retransmissions of a segment.
    pub retries: Option<u32>,
    /// Least local timer.
    pub least_timer: Option<Span>,
    /// Duplicates that make a hole.
    pub duplicates: Option<u32>,
}

impl SnoopControl {
    /// `usual` with what the file says.
    #[must_use]
    pub fn params(&self, usual: snoop::Params) -> snoop::Params {
        snoop::Params {
            connections: self.connections.map_or(usual.connections, |most| most as usize),
            connection_bytes: self.connection_bytes.map_or(usual.connection_bytes, |bytes| bytes.0),
            bytes: self.bytes.map_or(usual.bytes, |bytes| bytes.0),
            retries: self.retries.unwrap_or(usual.retries),
            least_timer: self.least_timer.unwrap_or(usual.least_timer),
            duplicates: self.duplicates.unwrap_or(usual.duplicates),
            ..usual
        }
    }
}

/// `[control.clamp]`: receivers that set their windows by the price of the access point's queue, for comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClampControl {
    /// What the last hop can carry.
    pub capacity: Capacity,
}

/// Where C comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Capacity {
    /// Given, IP bit/s.
    Rate(BitRate),
    /// A share, 0..=1, of what TCP alone gets over this air ([`crate::capacity::tcp_alone`]).
    Share(f64),
    /// Learned while it runs.
    Learn,
}

/// The RTT of the window formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowRtt {
    /// Measured per flow.
    Measured,
    /// One constant, as ns-2 runs use.
    Constant(Span),
}

/// `[control.split]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitControl {
    /// Most that the access point holds of one connection, beyond what is in flight when that is reached.
    pub buffer: Bytes,
}

/// `[control.mac]`: absent keys leave what `[wifi]` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MacControl {
    /// Transmissions of one frame, in all, short and long alike.
    pub attempts: Option<u8>,
    /// Transmissions of one frame of a real-time flow ([`super::Kind::is_realtime`]), whatever its length.
    pub realtime_attempts: Option<u8>,
    /// Packets in the access point's queue.
    pub limit: Option<u32>,
}

/// Capacity where `[control.window]` or `[control.clamp]` names none: the share the project's own figures are measured with.
const CAPACITY: Capacity = Capacity::Share(0.98);

pub(crate) fn read_control(root: &Reader<'_>) -> Result<Control, ScenarioError> {
    let Some(control) = root.table("control", &["window", "law", "levers", "clamp", "snoop", "split", "mac"])? else {
        return Ok(Control::default());
    };
    let mac = match control.table("mac", &["attempts", "realtime_attempts", "limit"])? {
        None => None,
        Some(mac) => Some(MacControl {
            attempts: mac.count("attempts", 1..=255)?.map(|n| n as u8),
            realtime_attempts: mac.count("realtime_attempts", 1..=255)?.map(|n| n as u8),
            limit: mac.count("limit", 1..=MOST_PACKETS)?,
        }),
    };
    let snoop = read_snoop(&control)?;
    let window = read_window(&control)?;
    let clamp = match control.table("clamp", &["capacity"])? {
        None => None,
        Some(_) if window.is_some() => {
            return Err(control.wrong("clamp", "stands beside [control.window]: only one of them can set a window"));
        }
        Some(clamp) => match read_capacity(&clamp)? {
            Capacity::Learn => {
                let why = "CLAMP learns nothing; give a rate (\"18Mbit/s\") or a share (\"98%\")";
                return Err(clamp.wrong("capacity", why));
            }
            capacity => Some(ClampControl { capacity }),
        },
    };
    let split = read_split(&control, snoop.is_some())?;
    let levers = read_levers(&control, window.as_ref())?;
    Ok(Control { window, clamp, snoop, split, levers, mac })
}

/// `levers = ["class", "txop"]`, "all" or "none".
fn read_levers(control: &Reader<'_>, window: Option<&WindowControl>) -> Result<Vec<Lever>, ScenarioError> {
    let Some(words) = control.words("levers")? else { return Ok(Vec::new()) };
    let known: Vec<_> = Lever::ALL.iter().map(|lever| lever.name()).collect();
    let mut levers = Vec::new();
    for word in words {
        match Lever::of_name(word) {
            _ if word == "all" => levers.extend(Lever::ALL),
            Some(lever) => levers.push(lever),
            None => {
                let known = known.join(", ");
                return Err(control.wrong("levers", format!("`{word}` is no lever; write \"all\", or some of {known}")));
            }
        }
    }
    levers.sort_unstable();
    levers.dedup();
    match window {
        _ if levers.is_empty() => Ok(levers),
        Some(window) if window.share == ShareRule::MaxMin => Ok(levers),
        Some(_) => Err(control.wrong("levers", "stands beside share = \"equal\", which moves nothing but windows")),
        None => Err(control.wrong("levers", "is the controller's, and there is none; write [control.window], too")),
    }
}

fn read_split(control: &Reader<'_>, snoop: bool) -> Result<Option<SplitControl>, ScenarioError> {
    let Some(split) = control.table("split", &["buffer"])? else { return Ok(None) };
    if snoop {
        return Err(control.wrong("split", "stands beside [control.snoop]: a connection is either split or left whole"));
    }
    let buffer = split.positive("buffer")?.unwrap_or(Bytes(64 << 10));
    if buffer < Bytes(4 << 10) {
        return Err(split.wrong("buffer", "is less than \"4KiB\", which is hardly two segments"));
    }
    Ok(Some(SplitControl { buffer }))
}

const SNOOP_KEYS: [&str; 6] = ["connections", "connection_bytes", "bytes", "retries", "least_timer", "duplicates"];

fn read_snoop(control: &Reader<'_>) -> Result<Option<SnoopControl>, ScenarioError> {
    let Some(snoop) = control.table("snoop", &SNOOP_KEYS)? else { return Ok(None) };
    Ok(Some(SnoopControl {
        connections: snoop.count("connections", 1..=1_000_000)?,
        connection_bytes: snoop.positive("connection_bytes")?,
        bytes: snoop.positive("bytes")?,
        retries: snoop.count("retries", 0..=1000)?,
        least_timer: snoop.positive("least_timer")?,
        duplicates: snoop.count("duplicates", 1..=1000)?,
    }))
}

const WINDOW_KEYS: [&str; 7] = ["capacity", "interval", "start", "share", "udp_weight", "rtt", "left_alone"];

fn read_window(control: &Reader<'_>) -> Result<Option<WindowControl>, ScenarioError> {
    let law = read_law(control)?;
    let Some(window) = control.table("window", &WINDOW_KEYS)? else { return Ok(None) };
    let rtt = match window.text("rtt") {
        Ok(None | Some("measured")) => WindowRtt::Measured,
        _ => match window.positive::<Span>("rtt") {
            Ok(Some(span)) => WindowRtt::Constant(span),
            _ => return Err(window.wrong("rtt", "is neither \"measured\" nor a time such as \"81.5ms\"")),
        },
    };
    let capacity = read_capacity(&window)?;
    let rules = [("max-min", ShareRule::MaxMin), ("equal", ShareRule::Equal)];
    let share = window.choice("share", &rules)?.unwrap_or(ShareRule::MaxMin);
    let interval = window.positive("interval")?.unwrap_or(share.interval());
    if interval < Span::from_millis(1) {
        return Err(window.wrong("interval", "is shorter than \"1ms\""));
    }
    let start = window.quantity("start")?.unwrap_or(Span::ZERO);
    if start > LONGEST {
        return Err(window.wrong("start", format!("{start} is longer than a week, {LONGEST}")));
    }
    if capacity == Capacity::Learn && share == ShareRule::Equal {
        let why = "is learned from what windows do: eq. (1) to the letter (share = \"equal\") needs a rate";
        return Err(window.wrong("capacity", why));
    }
    Ok(Some(WindowControl {
        capacity,
        interval,
        start,
        left_alone: window.flag("left_alone")?.unwrap_or(false),
        share,
        udp_weight: window.number("udp_weight", 0.0..=1.0)?.unwrap_or(0.2),
        rtt,
        law,
    }))
}

/// For experts; where nothing holds windows, only checked.
fn read_law(control: &Reader<'_>) -> Result<Law, ScenarioError> {
    let mut law = Law::default();
    let names: Vec<_> = Law::PARAMETERS.iter().map(|parameter| parameter.name).collect();
    let Some(table) = control.table("law", &names)? else { return Ok(law) };
    for parameter in Law::PARAMETERS {
        let plain =
            || format!("is not a plain number; write for example {}", law.get(parameter.name).unwrap_or_default());
        let value = table.number(parameter.name, f64::MIN..=f64::MAX);
        if let Some(value) = value.map_err(|_| table.wrong(parameter.name, plain()))? {
            law.set(parameter.name, value).map_err(|why| table.wrong(parameter.name, why))?;
        }
    }
    Ok(law)
}

fn read_capacity(table: &Reader<'_>) -> Result<Capacity, ScenarioError> {
    let right = "write a rate \"18Mbit/s\", a share \"98%\" of what TCP alone gets, or \"learn\"";
    let wrong = |found: &str| table.wrong("capacity", format!("`{found}` is no capacity; {right}"));
    if !table.has("capacity") {
        return Ok(CAPACITY);
    }
    let Ok(Some(text)) = table.text("capacity") else { return Err(table.wrong("capacity", right)) };
    if text == "learn" {
        return Ok(Capacity::Learn);
    }
    if text.ends_with('%') {
        let share: Share = text.parse().map_err(|_| wrong(text))?;
        return if share.0 > 0.0 { Ok(Capacity::Share(share.0)) } else { Err(wrong(text)) };
    }
    match text.parse::<BitRate>() {
        Ok(rate) if rate > BitRate::ZERO => Ok(Capacity::Rate(rate)),
        _ => Err(wrong(text)),
    }
}
