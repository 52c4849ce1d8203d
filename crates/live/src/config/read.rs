//! TOML text to [`Config`], key by key, each with its place in the file.

use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;
use std::str::FromStr;

use lasthop_core::ap::{Law, RttSource, ShareRule};
use lasthop_core::levers::Lever;
use lasthop_core::units::{BitRate, Bytes, Span};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{AttachMode, Capacity, Config, ConfigError, Datapath, Duplex, Queueing};
use crate::interface::InterfaceName;
use crate::log::Format;
use crate::qdisc::FlowKind;
use crate::qdisc::layout::LARGEST_LIMIT;

pub(super) const KEYS: [&str; 37] = [
    "lan",
    "wan",
    "capacity",
    "link",
    "interval",
    "share",
    "udp_weight",
    "rtt",
    "queue",
    "growth",
    "flows",
    "idle",
    "attach",
    "windows",
    "window_updates",
    "queueing",
    "datapath",
    "snoop",
    "snoop_timer",
    "snoop_retries",
    "snoop_duplicates",
    "snoop_connections",
    "snoop_connection_bytes",
    "snoop_bytes",
    "packet_time",
    "increment",
    "flow_key",
    "limit",
    "duplex",
    "levers",
    "mac",
    "mac_queue",
    "dry_run",
    "socket",
    "socket_group",
    "log_format",
    "law",
];
/// Shorter costs CPU for nothing, longer comes too near the heartbeat's 2 s.
const INTERVAL: RangeInclusive<Span> = Span::from_millis(20)..=Span::from_secs(1);
const IDLE: RangeInclusive<Span> = Span::from_secs(10)..=Span::from_secs(86_400);
/// Less than a frame's air time is no queue, more than this is one that every game feels.
const QUEUE: RangeInclusive<Span> = Span::from_micros(500)..=Span::from_millis(100);
/// Less than a frame's air time lets nothing grow, more than this is a queue that a game feels.
const GROWTH: RangeInclusive<Span> = Span::from_micros(500)..=Span::from_millis(100);
const FLOWS: RangeInclusive<i64> = 1_024..=1_048_576;
/// Slower than any medium's preamble, contention and acknowledgment together.
const PACKET_TIME: RangeInclusive<Span> = Span::ZERO..=Span::from_millis(20);
/// Less than the time of a packet boosts at each one; more is felt by a game when a flow is new.
const INCREMENT: RangeInclusive<Span> = Span::from_micros(100)..=Span::from_millis(100);
const LIMIT: RangeInclusive<i64> = 16..=LARGEST_LIMIT as i64;
/// Below, a delayed acknowledgment would always be too late; above, every sender's own timer is faster.
const TIMER: RangeInclusive<Span> = Span::from_millis(10)..=Span::from_secs(1);
const RETRIES: RangeInclusive<i64> = 1..=16;
/// From three on the sender itself acts.
const DUPLICATES: RangeInclusive<i64> = 1..=3;
const CONNECTIONS: RangeInclusive<i64> = 1..=1_048_576;
/// A full packet, or nothing could be kept; more than a router has.
const KEPT: RangeInclusive<u64> = 2_048..=1 << 30;
pub(super) const SHARES: [(&str, ShareRule); 2] = [("max-min", ShareRule::MaxMin), ("equal", ShareRule::Equal)];
pub(super) const ATTACH_MODES: [(&str, AttachMode); 3] =
    [("auto", AttachMode::Auto), ("tcx", AttachMode::Tcx), ("clsact", AttachMode::Clsact)];
pub(super) const FLOW_KINDS: [(&str, FlowKind); 2] = [("connection", FlowKind::Connection), ("hosts", FlowKind::Hosts)];
pub(super) const DUPLEXES: [(&str, Duplex); 3] =
    [("auto", Duplex::Auto), ("half", Duplex::Half), ("full", Duplex::Full)];
pub(super) const QUEUES: [(&str, Queueing); 5] = [
    ("kernel", Queueing::Kernel),
    ("chap", Queueing::Chap),
    ("fifo", Queueing::Fifo),
    ("codel", Queueing::Codel),
    ("fq_codel", Queueing::FqCodel),
];
pub(super) const DATAPATHS: [(&str, Datapath); 3] =
    [("auto", Datapath::Auto), ("kernel", Datapath::Kernel), ("user", Datapath::User)];
pub(super) const LOG_FORMATS: [(&str, Format); 4] =
    [("auto", Format::Auto), ("text", Format::Text), ("json", Format::Json), ("journal", Format::Journal)];
/// Levers that an access point can move from here; the others take hostapd, or no call of Linux moves them.
pub const LEVERS: [Lever; 4] = [Lever::Class, Lever::Aql, Lever::Txop, Lever::Weights];
pub(super) const MAC: [(&str, bool); 2] = [("auto", true), ("off", false)];
/// Fewer do not fill one aggregate; mac80211 itself begins with 4096.
const MAC_QUEUE: RangeInclusive<i64> = 64..=16_384;
/// A rate below this cannot carry two segments per RTT of anything.
const SLOWEST: BitRate = BitRate::bps(64_000);

/// A key that has another name now. Its old name is read, with a warning, by the versions that begin as `until` does, and refused by later
/// ones: whoever adds a row takes out those that are over.
pub(super) struct Renamed {
    /// The old name; of a parameter of the law with `law.` in front.
    pub(super) old: &'static str,
    /// The name now, written in the same way.
    pub(super) new: &'static str,
    /// The last series of versions that reads the old one: "0.2".
    pub(super) until: &'static str,
}

pub(super) const RENAMED: &[Renamed] = &[
    Renamed { old: "law.standing", new: "law.standing_weight", until: "0.2" },
    Renamed { old: "law.stands", new: "law.standing_threshold", until: "0.2" },
];

/// One value and where it stands.
struct Location<'a> {
    text: &'a str,
    file: &'a str,
    key: &'a str,
    span: Range<usize>,
}

/// What is wrong, what would be right.
type Complaint = (String, String);

impl Location<'_> {
    fn line(&self) -> usize {
        line_of(self.text, self.span.start)
    }

    fn error(&self, (wrong, right): Complaint) -> ConfigError {
        let (file, key) = (self.file.to_owned(), self.key.to_owned());
        ConfigError::Value { file, line: self.line(), key, wrong, right }
    }
}

/// The name of a key now; that of one that was renamed with a warning.
fn current<'a>(renamed: &'a [Renamed], place: &Location<'a>, warnings: &mut Vec<String>) -> &'a str {
    let Some(Renamed { old, new, until }) = renamed.iter().find(|renamed| renamed.old == place.key) else {
        return place.key;
    };
    let (file, line) = (place.file, place.line());
    warnings.push(format!(
        "{file}:{line}: {old}: this key is called `{new}` now; write that, for versions after {until} refuse the old name"
    ));
    new
}

fn line_of(text: &str, at: usize) -> usize {
    1 + text.as_bytes()[..at.min(text.len())].iter().filter(|b| **b == b'\n').count()
}

pub(super) fn parse(text: &str, file: &str) -> Result<Config, ConfigError> {
    parse_with(RENAMED, text, file)
}

/// As [`parse`], where these keys had other names.
pub(super) fn parse_with(renamed: &[Renamed], text: &str, file: &str) -> Result<Config, ConfigError> {
    let table = DeTable::parse(text).map_err(|error| ConfigError::Syntax {
        file: file.to_owned(),
        line: error.span().map_or(1, |s| line_of(text, s.start)),
        message: error.message().to_owned(),
    })?;
    let mut config = Config::default();
    // In the order of the file, so that the first mistake is named first.
    let mut entries: Vec<_> = table.get_ref().iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    for (key, value) in entries {
        let place = Location { text, file, key: key.get_ref(), span: key.span() };
        set(&mut config, renamed, &place, value)?;
    }
    Ok(config)
}

fn set(
    config: &mut Config,
    renamed: &[Renamed],
    place: &Location<'_>,
    value: &Spanned<DeValue<'_>>,
) -> Result<(), ConfigError> {
    let v = value.get_ref();
    let outcome = match current(renamed, place, &mut config.warnings) {
        "lan" => names(v).map(|x| config.lan = x),
        "wan" => string(v, "an interface").and_then(from_text).map(|x| config.wan = Some(x)),
        "capacity" => capacity(v).map(|x| config.capacity = x),
        "link" => rate(v).map(|x| config.link = Some(x)),
        "interval" => span(v, &INTERVAL).map(|x| config.interval = Some(x)),
        "share" => choice(v, &SHARES).map(|x| config.share = x),
        "udp_weight" => weight(v).map(|x| config.udp_weight = x),
        "rtt" => rtt(v).map(|x| config.rtt = x),
        // The law's own names for the same; what stands in [law] comes later, and wins.
        "queue" => span(v, &QUEUE).map(|x| config.law.queue_target = x.as_secs_f64()),
        "growth" => span(v, &GROWTH).map(|x| config.law.growth_time = x.as_secs_f64()),
        "flows" => integer(v, &FLOWS).map(|x| config.flows = x),
        "idle" => span(v, &IDLE).map(|x| config.idle = x),
        "attach" => choice(v, &ATTACH_MODES).map(|x| config.attach = x),
        "windows" => boolean(v).map(|x| config.windows = x),
        "window_updates" => boolean(v).map(|x| config.window_updates = x),
        "queueing" => choice(v, &QUEUES).map(|x| config.queueing = x),
        "datapath" => choice(v, &DATAPATHS).map(|x| config.datapath = x),
        "snoop" => boolean(v).map(|x| config.snoop = x),
        "snoop_timer" => span(v, &TIMER).map(|x| config.snoop_params.least_timer = x),
        "snoop_retries" => integer(v, &RETRIES).map(|x| config.snoop_params.retries = x),
        "snoop_duplicates" => integer(v, &DUPLICATES).map(|x| config.snoop_params.duplicates = x),
        "snoop_connections" => integer(v, &CONNECTIONS).map(|x| config.snoop_params.connections = x as usize),
        "snoop_connection_bytes" => size(v).map(|x| config.snoop_params.connection_bytes = x),
        "snoop_bytes" => size(v).map(|x| config.snoop_params.bytes = x),
        "packet_time" => span(v, &PACKET_TIME).map(|x| config.chap.packet_time = x),
        "increment" => span(v, &INCREMENT).map(|x| config.chap.increment = x),
        "flow_key" => choice(v, &FLOW_KINDS).map(|x| config.chap.flow_kind = x),
        "limit" => integer(v, &LIMIT).map(|x| config.chap.limit = x),
        "levers" => levers(v).map(|x| config.levers = x),
        "mac" => choice(v, &MAC).map(|x| config.mac = x),
        "mac_queue" => integer(v, &MAC_QUEUE).map(|x| config.mac_queue = Some(x)),
        "duplex" => choice(v, &DUPLEXES).map(|x| config.duplex = x),
        "dry_run" => boolean(v).map(|x| config.dry_run = x),
        "socket" => socket(v).map(|x| config.socket = x),
        "socket_group" => string(v, "the name of a group").map(|x| config.socket_group = x.to_owned()),
        "log_format" => choice(v, &LOG_FORMATS).map(|x| config.log_format = x),
        "law" => match v.as_table() {
            Some(table) => return law(config, renamed, place, table),
            None => Err(not_a(v, "a table: [law]")),
        },
        unknown => return Err(unknown_key(place, unknown, &KEYS)),
    };
    outcome.map_err(|complaint| place.error(complaint))
}

/// `[law]`, for experts: plain numbers, in the unit of each.
fn law(config: &mut Config, renamed: &[Renamed], place: &Location<'_>, table: &DeTable<'_>) -> Result<(), ConfigError> {
    let names: Vec<_> = Law::PARAMETERS.iter().map(|parameter| parameter.name).collect();
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    for (name, value) in entries {
        let key = format!("law.{}", name.get_ref());
        let place = Location { key: &key, span: name.span(), ..*place };
        let current = current(renamed, &place, &mut config.warnings).trim_start_matches("law.");
        if !names.contains(&current) {
            return Err(unknown_key(&place, current, &names));
        }
        let number = number(value.get_ref()).ok_or_else(|| not_a(value.get_ref(), "a plain number, such as 0.5"));
        let set = number.and_then(|number| config.law.set(current, number).map_err(|why| in_two(&why)));
        set.map_err(|complaint| place.error(complaint))?;
    }
    Ok(())
}

fn unknown_key(place: &Location<'_>, key: &str, keys: &[&str]) -> ConfigError {
    let nearest = keys.iter().map(|k| (strsim::jaro_winkler(key, k), k)).max_by(|a, b| a.0.total_cmp(&b.0));
    let right = match nearest {
        Some((likeness, nearest)) if likeness > 0.7 => format!("did you mean `{nearest}`?"),
        _ => "`lasthop run --print-config` shows all keys".to_owned(),
    };
    ConfigError::UnknownKey { file: place.file.to_owned(), line: place.line(), key: place.key.to_owned(), right }
}

fn not_a(found: &DeValue<'_>, what: &str) -> Complaint {
    let right = format!("write {what}");
    match found {
        DeValue::String(s) => (format!("`{s}` is not right here"), right),
        DeValue::Integer(n) => (format!("the number {} is not right here", n.as_str()), right),
        DeValue::Float(n) => (format!("the number {} is not right here", n.as_str()), right),
        other => (format!("{} is not right here", other.type_str()), right),
    }
}

fn string<'a>(v: &'a DeValue<'_>, what: &str) -> Result<&'a str, Complaint> {
    v.as_str().ok_or_else(|| not_a(v, &format!("{what} in quotes")))
}

fn from_text<T: FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, Complaint> {
    text.parse().map_err(|error: T::Err| in_two(&error.to_string()))
}

fn in_two(message: &str) -> Complaint {
    let (wrong, right) = message.split_once("; ").unwrap_or((message, "see `ip link`"));
    (wrong.to_owned(), right.to_owned())
}

/// In place of names in `lan`: all that lead to stations.
pub const AUTO: &str = "auto";

/// None of them: all that lead to stations.
fn names(v: &DeValue<'_>) -> Result<Vec<InterfaceName>, Complaint> {
    const RIGHT: &str = "\"auto\", or a list of interfaces, for example [\"wlan0\"]";
    match v.as_str() {
        Some(AUTO) => return Ok(Vec::new()),
        Some(one) => return from_text(one).map(|name| vec![name]),
        None => {}
    }
    let list = v.as_array().ok_or_else(|| not_a(v, RIGHT))?;
    let mut names: Vec<InterfaceName> = Vec::new();
    for item in list.iter() {
        let text = item.get_ref().as_str().ok_or_else(|| not_a(item.get_ref(), RIGHT))?;
        if text == AUTO {
            return Err(("`auto` stands for all, and not among others".to_owned(), format!("write {RIGHT}")));
        }
        let name: InterfaceName = from_text(text)?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

/// "auto", "off", or some of them by name.
fn levers(v: &DeValue<'_>) -> Result<Vec<Lever>, Complaint> {
    let names = LEVERS.map(|lever| format!("\"{}\"", lever.name())).join(", ");
    let right = format!("\"auto\", \"off\", or a list of some of {names}");
    let one = |v: &DeValue<'_>| {
        let known = v.as_str().and_then(Lever::of_name).filter(|lever| LEVERS.contains(lever));
        known.ok_or_else(|| not_a(v, &right))
    };
    match v.as_str() {
        Some(AUTO) => return Ok(LEVERS.to_vec()),
        Some("off") => return Ok(Vec::new()),
        Some(_) => return one(v).map(|lever| vec![lever]),
        None => {}
    }
    let list = v.as_array().ok_or_else(|| not_a(v, &right))?;
    let mut levers = list.iter().map(|item| one(item.get_ref())).collect::<Result<Vec<_>, _>>()?;
    levers.sort_unstable();
    levers.dedup();
    Ok(levers)
}

fn rate(v: &DeValue<'_>) -> Result<BitRate, Complaint> {
    let rate: BitRate = from_text(string(v, "a rate such as \"24Mbit/s\"")?)?;
    if rate < SLOWEST {
        return Err((format!("{rate} is less than a controller can divide"), format!("write at least {SLOWEST}")));
    }
    Ok(rate)
}

fn capacity(v: &DeValue<'_>) -> Result<Capacity, Complaint> {
    const RIGHT: &str = "\"learn\", a rate (\"23Mbit/s\"), or a share of the link (\"98%\")";
    let text = string(v, RIGHT)?;
    if text == "learn" {
        return Ok(Capacity::Learn);
    }
    let Some(percent) = text.strip_suffix('%') else {
        return rate(v).map(Capacity::Rate).map_err(|(wrong, _)| (wrong, format!("write {RIGHT}")));
    };
    match percent.trim().parse::<f64>() {
        Ok(p) if p > 0.0 && p <= 100.0 => Ok(Capacity::Share(p / 100.0)),
        _ => Err((format!("`{text}` is not a share above 0% and up to 100%"), format!("write {RIGHT}"))),
    }
}

fn span(v: &DeValue<'_>, range: &RangeInclusive<Span>) -> Result<Span, Complaint> {
    let right = format!("write {} to {}", range.start(), range.end());
    let span: Span = from_text(string(v, "a time such as \"200ms\"")?)?;
    if range.contains(&span) { Ok(span) } else { Err((format!("{span} is out of range"), right)) }
}

fn rtt(v: &DeValue<'_>) -> Result<RttSource, Complaint> {
    match string(v, "\"measured\" or a time")? {
        "measured" => Ok(RttSource::Measured),
        _ => span(v, &(Span::from_micros(100)..=Span::from_secs(10)))
            .map(RttSource::Constant)
            .map_err(|(wrong, _)| (wrong, "write \"measured\" or a time from 100us to 10s (\"80ms\")".to_owned())),
    }
}

fn number(v: &DeValue<'_>) -> Option<f64> {
    match v {
        DeValue::Float(f) => f.as_str().parse().ok(),
        DeValue::Integer(i) => i.as_str().parse().ok(),
        _ => None,
    }
}

fn weight(v: &DeValue<'_>) -> Result<f64, Complaint> {
    number(v).filter(|w: &f64| *w > 0.0 && *w <= 1.0).ok_or_else(|| not_a(v, "a number above 0 and up to 1"))
}

fn integer(v: &DeValue<'_>, range: &RangeInclusive<i64>) -> Result<u32, Complaint> {
    let number = v.as_integer().and_then(|i| i64::from_str_radix(i.as_str(), i.radix()).ok());
    number
        .filter(|n| range.contains(n))
        .map(|n| n as u32)
        .ok_or_else(|| not_a(v, &format!("a whole number from {} to {}", range.start(), range.end())))
}

fn size(v: &DeValue<'_>) -> Result<u64, Complaint> {
    let Bytes(bytes) = from_text(string(v, "a size such as \"1MiB\"")?)?;
    if KEPT.contains(&bytes) {
        return Ok(bytes);
    }
    let (least, most) = (Bytes(*KEPT.start()), Bytes(*KEPT.end()));
    Err((format!("{} is out of range", Bytes(bytes)), format!("write a size from {least} to {most}")))
}

fn boolean(v: &DeValue<'_>) -> Result<bool, Complaint> {
    v.as_bool().ok_or_else(|| not_a(v, "true or false"))
}

fn choice<T: Copy>(v: &DeValue<'_>, choices: &[(&str, T)]) -> Result<T, Complaint> {
    let all = choices.iter().map(|(name, _)| format!("\"{name}\"")).collect::<Vec<_>>().join(" or ");
    let found = v.as_str().and_then(|text| choices.iter().find(|(name, _)| *name == text));
    found.map(|(_, value)| *value).ok_or_else(|| not_a(v, &all))
}

/// `sockaddr_un` holds 108 bytes with the final zero.
const LONGEST_SOCKET: usize = 107;

fn socket(v: &DeValue<'_>) -> Result<PathBuf, Complaint> {
    let text = string(v, "a path")?;
    if text.starts_with('/') && text.len() <= LONGEST_SOCKET {
        return Ok(PathBuf::from(text));
    }
    Err((format!("`{text}` cannot be a socket"), format!("write an absolute path of at most {LONGEST_SOCKET} bytes")))
}
