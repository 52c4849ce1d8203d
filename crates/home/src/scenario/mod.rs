//! A scenario file, `--set` applied, as types that cannot hold a wrong value.
//!
//! `schema/scenario.toml` is the normative form: every key with meaning, unit and default. Unknown keys are refused
//! with file, line, key and the nearest known key; a wrong value with what would be right. Counts are expanded:
//! `count = n` makes hosts `S.1` .. `S.n` (also for n = 1; `S` keeps naming all of them), and a flow with several
//! copies becomes `name.1` .. `name.n`. What a host of the project does not carry yet it refuses with
//! [`Scenario::refuse`], at the line where the key stands.

mod air;
mod change;
mod channel;
mod congestion;
mod control;
mod edca;
mod error;
mod flow;
mod hosts;
mod medium;
mod queue;
mod radio;
mod read;
mod renamed;
mod set;
mod station;
mod template;
#[cfg(test)]
mod tests;
mod traces;
mod tree;
mod wired;
mod wireless_link;

use std::io;
use std::path::Path;
use std::sync::Arc;

use lasthop_core::units::Span;
use lasthop_files::Terms;
use lasthop_medium::Standard;

pub use air::{Bridge, CARRIER_SENSE_DEFAULT, LastHop, Loss, Wifi};
pub use change::Change;
pub use channel::SnrLoss;
pub use congestion::{CongestionControl, KernelName};
pub use control::{Capacity, ClampControl, Control, MacControl, SnoopControl, SplitControl, WindowControl, WindowRtt};
pub use edca::CLASS_WORDS;
pub use error::ScenarioError;
pub use flow::{
    Flow, FrameSource, Ftp, Kind, LARGEST_PACKET, LossDiscrimination, Page, Periodic, Quic, Rated, RequestResponse,
    SMALLEST_UDP, Tcp, Video, Web,
};
pub use hosts::MOST;
pub use lasthop_core::aqm::Discipline;
pub use queue::Queue;
pub use radio::Sending;
pub use station::{Station, Storage};
pub use template::Template;
pub use tree::SourceMap;
pub use wired::{Server, WanLink, Wire};
pub use wireless_link::WirelessLink;

use hosts::Names;
use read::Reader;
use set::Written;
use traces::Traces;
use tree::{Origin, Value};

/// A host of the home.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostId {
    /// "AP".
    AccessPoint,
    /// Index into [`Scenario::servers`].
    Server(usize),
    /// Index into [`Scenario::stations`].
    Station(usize),
}

/// A home and what runs in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// What the report calls it.
    pub name: String,
    /// How long it runs.
    pub duration: Span,
    /// Every component draws from its own named stream of this seed.
    pub seed: u64,
    /// Figures count packets sent from here on.
    pub measure_from: Span,
    /// Between the servers and the access point; `None`: no delay, no limit.
    pub wan: Option<WanLink>,
    /// Wired hosts.
    pub servers: Vec<Server>,
    /// The channel, or the link in its place.
    pub hop: LastHop,
    /// Wireless hosts.
    pub stations: Vec<Station>,
    /// What is sent.
    pub flows: Vec<Flow>,
    /// What controls it.
    pub control: Control,
    /// What changes while it runs, in order of time.
    pub changes: Vec<Change>,
    /// Where each key was written.
    pub source: Arc<SourceMap>,
}

/// Longest run: a week. Bounds what a short file can ask of a host.
const LONGEST: Span = Span::from_secs(7 * 86_400);

/// Largest frame trace that is read, in bytes: some 25 hours of video.
const LARGEST_TRACE: u64 = 64 << 20;

const ROOT_KEYS: [&str; 14] = [
    "format",
    "name",
    "duration",
    "seed",
    "measure_from",
    "wan",
    "server",
    "wifi",
    "wireless_link",
    "bridge",
    "station",
    "flow",
    "control",
    "change",
];

/// How [`Scenario::parse_with`] gets at other files.
pub type ReadFile<'a> = dyn Fn(&Path) -> io::Result<String> + 'a;

impl Scenario {
    /// Reads the file at `path` and applies `set` to it.
    ///
    /// # Errors
    /// Names the file, the line, the key, and what would be right.
    pub fn load(path: &Path, set: &[String]) -> Result<Self, ScenarioError> {
        let text = read_home_file(path).map_err(|source| ScenarioError::Read { path: path.to_owned(), source })?;
        Self::parse(&text, &path.display().to_string(), set)
    }

    /// Reads `text` as the content of the file `file`; frame traces are looked for beside it.
    ///
    /// # Errors
    /// Names the file, the line, the key, and what would be right.
    pub fn parse(text: &str, file: &str, set: &[String]) -> Result<Self, ScenarioError> {
        Self::parse_with(text, file, set, &read_trace)
    }

    /// As [`Scenario::parse`], with the caller's way of reading frame traces.
    ///
    /// # Errors
    /// Names the file, the line, the key, and what would be right.
    pub fn parse_with(text: &str, file: &str, set: &[String], read: &ReadFile<'_>) -> Result<Self, ScenarioError> {
        build(Written::new(tree::parse(text, file)?), file, set, &mut Traces::new(file, read))
    }

    /// The same home with another seed.
    #[must_use]
    pub fn with_seed(&self, seed: u64) -> Self {
        let mut other = Self { seed, ..self.clone() };
        other.flows.iter_mut().for_each(|flow| flow.draw_start(seed));
        for change in &mut other.changes {
            let after = Arc::make_mut(&mut change.after);
            after.seed = seed;
            after.flows.iter_mut().for_each(|flow| flow.draw_start(seed));
        }
        other
    }

    /// The name of a host.
    #[must_use]
    pub fn host_name(&self, host: HostId) -> &str {
        match host {
            HostId::AccessPoint => "AP",
            HostId::Server(i) => &self.servers[i].name,
            HostId::Station(i) => &self.stations[i].name,
        }
    }

    /// The host called `name`; a table with a count of one also answers to its own name, and a table without a count
    /// to `name.1`.
    #[must_use]
    pub fn host(&self, name: &str) -> Option<HostId> {
        let servers = self.servers.iter().enumerate().map(|(i, s)| (HostId::Server(i), &s.name, &s.table));
        let stations = self.stations.iter().enumerate().map(|(i, s)| (HostId::Station(i), &s.name, &s.table));
        let hosts: Vec<_> = servers.chain(stations).collect();
        if name == "AP" {
            return Some(HostId::AccessPoint);
        }
        if let Some((host, ..)) = hosts.iter().find(|(_, own, _)| own.as_str() == name) {
            return Some(*host);
        }
        let table = name.strip_suffix(".1").unwrap_or(name);
        let mut of_table = hosts.iter().filter(|(_, _, own)| own.as_str() == table);
        match (of_table.next(), of_table.next()) {
            (Some((host, ..)), None) => Some(*host),
            _ => None,
        }
    }

    /// Every host's name, the access point first.
    pub fn host_names(&self) -> impl Iterator<Item = &str> {
        let servers = self.servers.iter().map(|s| s.name.as_str());
        std::iter::once("AP").chain(servers).chain(self.stations.iter().map(|s| s.name.as_str()))
    }

    /// The access point ends this flow's connection and begins it anew: TCP between a server and a station, but for pages.
    #[must_use]
    pub fn is_split(&self, flow: &Flow) -> bool {
        let apart = matches!(
            (flow.from, flow.to),
            (HostId::Server(_), HostId::Station(_)) | (HostId::Station(_), HostId::Server(_))
        );
        self.control.split.is_some() && apart && flow.tcp().is_some() && !matches!(flow.kind, Kind::Web(_))
    }

    /// The start of the flow that starts last; what was sent before it is no start-up of the whole home.
    #[must_use]
    pub fn youngest_start(&self) -> Span {
        self.flows.iter().map(|flow| flow.start).max().unwrap_or(Span::ZERO)
    }

    /// Refuses a key that is right but that the asking host does not carry yet, at the place where it stands.
    #[must_use]
    pub fn refuse(&self, key: &str, why: &str) -> ScenarioError {
        ScenarioError::NotYet { place: self.source.place(key), key: key.to_owned(), why: why.to_owned() }
    }
}

impl PartialEq for SourceMap {
    fn eq(&self, other: &Self) -> bool {
        self.file == other.file && self.keys == other.keys
    }
}

/// A scenario, which may come through a pipe.
fn read_home_file(path: &Path) -> io::Result<String> {
    lasthop_files::read_text(path, Terms::FOR_ITS_USER)
}

/// A frame trace that a scenario names.
fn read_trace(path: &Path) -> io::Result<String> {
    lasthop_files::read_text(path, Terms { most_bytes: LARGEST_TRACE, ..Terms::CONFIGURATION })
}

/// A home out of what was written and `set`.
fn build(mut written: Written, file: &str, set: &[String], traces: &mut Traces<'_>) -> Result<Scenario, ScenarioError> {
    for each in set {
        written.set(each)?;
    }
    let mut scenario = read_home(&written, file, traces)?;
    scenario.changes = read_changes(&scenario, written, file, traces)?;
    Ok(scenario)
}

/// Reads everything but the changes.
fn read_home(written: &Written, file: &str, traces: &mut Traces<'_>) -> Result<Scenario, ScenarioError> {
    let mut source = SourceMap::new(file, &written.root);
    for ((root, name, index), keys) in &written.members {
        for (path, leaf) in keys {
            source.keys.insert(format!("{root}.{name}.{index}.{}", path.join(".")), leaf.at.clone());
        }
    }
    let start = Origin::Line(1);
    let root = Reader::new(&source, "", &start, &written.root, &ROOT_KEYS)?;
    let format = root.integer("format", 1..=1)?;
    root.required("format", format, "1")?;
    let name = root.required("name", root.text("name")?, "\"my-home\"")?.to_owned();
    if name.is_empty() || name.len() > 200 || name.chars().any(char::is_control) {
        return Err(root.wrong("name", "is 1 to 200 characters on one line"));
    }
    let duration = root.positive("duration")?;
    let duration = root.required("duration", duration, "\"180s\"")?;
    if duration > LONGEST {
        return Err(root.wrong("duration", format!("{duration} is longer than a week, {LONGEST}")));
    }
    let measure_from = root.quantity("measure_from")?.unwrap_or(Span::ZERO);
    if measure_from >= duration {
        return Err(
            root.wrong("measure_from", format!("{measure_from} is not before the end of the run at {duration}"))
        );
    }
    let seed = root.integer("seed", 0..=u64::MAX)?.unwrap_or(1);
    let mut hop = air::read_last_hop(&root, |home| home != Standard::B && any_b(written))?;
    let mut names = Names::default();
    let servers = hosts::read_servers(&root, written, &mut names)?;
    let stations = hosts::read_stations(&root, written, &hop, &mut names)?;
    let flows = hosts::read_flows(&root, &names, (duration, seed), &mut |path| traces.load(path))?;
    refuse_strangers(&root, &stations, &flows)?;
    let control = control::read_control(&root)?;
    let wan = wired::read_wan(&root)?;
    if let LastHop::WirelessLink(link) = &mut hop {
        link.set_limits(&servers, wan.as_ref(), &flows);
    }
    let changes = Vec::new();
    drop(root);
    let source = Arc::new(source);
    Ok(Scenario { name, duration, seed, measure_from, wan, servers, hop, stations, flows, control, changes, source })
}

/// A flow of another network's station has its far end at "AP": who else is there is not known here.
fn refuse_strangers(root: &Reader<'_>, stations: &[Station], flows: &[Flow]) -> Result<(), ScenarioError> {
    let is_stranger = |host: HostId| matches!(host, HostId::Station(i) if stations[i].neighbour);
    for flow in flows {
        let ends = [flow.from, flow.to];
        let is_wrong = is_stranger(flow.to) || (is_stranger(flow.from) && flow.to != HostId::AccessPoint);
        if ends.into_iter().any(is_stranger) && (is_wrong || flow.tcp().is_some() || matches!(flow.kind, Kind::Quic(_)))
        {
            let why = "is of another network's station: its datagrams go from there to \"AP\", and nothing comes back";
            return Err(root.wrong("flow", format!("`{}` {why}", flow.name)));
        }
    }
    Ok(())
}

/// Whether any station names 802.11b.
fn any_b(written: &Written) -> bool {
    let b = |table: &tree::Table| table.text("standard") == Some("802.11b");
    let is_b = |node: &tree::Node| matches!(&node.value, Value::Table(table) if b(table));
    let whole = match written.root.get("station").map(|node| &node.value) {
        Some(Value::Array(items)) => items.iter().any(is_b),
        _ => false,
    };
    let member = |(path, leaf): &(Vec<String>, tree::Node)| {
        path.len() == 1
            && path[0] == "standard"
            && matches!(&leaf.value, Value::Text(t) | Value::Bare(t) if t == "802.11b")
    };
    whole || written.members.iter().any(|((root, ..), keys)| root == "station" && keys.last().is_some_and(member))
}

/// Reads the home anew after each change, so that a change holds nothing that a file could not.
fn read_changes(
    scenario: &Scenario,
    written: Written,
    file: &str,
    traces: &mut Traces<'_>,
) -> Result<Vec<Change>, ScenarioError> {
    let original = written.clone();
    let start = Origin::Line(1);
    let root = Reader::new(&scenario.source, "", &start, &original.root, &ROOT_KEYS)?;
    let steps = change::read_steps(&root, scenario.duration)?;
    if hosts::changed_size(scenario, steps.len()) > change::MOST_CHANGED {
        return Err(root.wrong("change", "there are too many changes for so many hosts and flows"));
    }
    let mut current = written;
    let mut changes = Vec::new();
    for step in steps {
        step.apply(&mut current, file)?;
        let after = read_home(&current, file, traces)?;
        if !hosts::same_shape(scenario, &after) {
            let key = step.keys().join(", ");
            return Err(step.refuse(
                file,
                &key,
                "changes which hosts or flows there are, or when; that cannot change while it runs",
            ));
        }
        changes.push(Change { at: step.at, keys: step.keys(), after: Arc::new(after) });
    }
    Ok(changes)
}
