//! Hosts and flows, expanded from their counts.

use std::collections::BTreeMap;

use lasthop_core::units::Span;

use super::air::LastHop;
use super::flow::{Flow, LoadTrace, open, read_carrier, read_class, read_kind};
use super::read::{Reader, nearest};
use super::set::Written;
use super::station::{Radio, STATION_KEYS, Station, read_radio};
use super::tree::Table;
use super::wired::{SERVER_KEYS, Server, Spread, read_server};
use super::{HostId, ScenarioError};
use crate::quantity::Degrees;

/// Most stations, most servers, most flows of a scenario.
pub const MOST: u32 = 10_000;

/// Every host by every name it answers to: a table's name stands for all of its members.
#[derive(Default)]
pub(crate) struct Names(BTreeMap<String, Vec<HostId>>);

impl Names {
    fn add(&mut self, reader: &Reader<'_>, table: &str, hosts: Vec<HostId>) -> Result<(), ScenarioError> {
        if table == "AP" {
            return Err(reader.wrong("name", "AP is the access point; it needs no table"));
        }
        match self.0.insert(table.to_owned(), hosts) {
            None => Ok(()),
            Some(_) => Err(reader.wrong("name", format!("there is already a host `{table}`; give each its own name"))),
        }
    }

    /// The hosts that `name` stands for: a host, a counted host, or one member of it.
    fn find(&self, name: &str) -> Option<Vec<HostId>> {
        if name == "AP" {
            return Some(vec![HostId::AccessPoint]);
        }
        if let Some(hosts) = self.0.get(name) {
            return Some(hosts.clone());
        }
        let (table, index) = name.rsplit_once('.')?;
        let index = index.parse::<usize>().ok()?.checked_sub(1)?;
        self.0.get(table)?.get(index).map(|host| vec![*host])
    }

    fn nearest(&self, name: &str) -> String {
        let known: Vec<&str> = self.0.keys().map(String::as_str).chain(["AP"]).collect();
        nearest(name, &known)
    }
}

/// The names of the members of a table: `S`, or `S.1` .. `S.n` where it has a count.
fn member_names(reader: &Reader<'_>, already: usize) -> Result<(String, Vec<String>), ScenarioError> {
    let table = reader.name()?.to_owned();
    let Some(count) = reader.count("count", 1..=MOST)? else { return Ok((table.clone(), vec![table])) };
    if already + count as usize > MOST as usize {
        return Err(reader.wrong("count", format!("makes more than {MOST} hosts of one kind")));
    }
    let names = (1..=count).map(|i| format!("{table}.{i}")).collect();
    Ok((table, names))
}

/// A `--set` on a member that the count does not reach.
fn refuse_stray_members(written: &Written, root: &str, table: &str, count: usize) -> Result<(), ScenarioError> {
    let first = (root.to_owned(), table.to_owned(), 0);
    let last = (root.to_owned(), table.to_owned(), u32::MAX);
    for ((_, _, index), keys) in written.members.range(first..=last) {
        let stray = *index == 0 || *index as usize > count;
        if let Some((path, leaf)) = keys.first().filter(|_| stray) {
            return Err(ScenarioError::Wrong {
                place: super::tree::SourceMap::default().show(&leaf.at),
                key: format!("{root}.{table}.{index}.{}", path.join(".")),
                why: format!("there is no {table}.{index}; they are numbered 1 to {count}"),
            });
        }
    }
    Ok(())
}

/// Reads every member of the table behind `reader` with `read`: once for all, and again where `--set` reached one.
fn read_members<T: Clone>(
    written: &Written,
    reader: &Reader<'_>,
    root: &str,
    names: (&str, usize),
    keys: &[&str],
    read: impl Fn(&Reader<'_>) -> Result<T, ScenarioError>,
) -> Result<Vec<T>, ScenarioError> {
    let (table, count) = names;
    refuse_stray_members(written, root, table, count)?;
    let mut members = vec![read(reader)?; count];
    for (i, member) in members.iter_mut().enumerate() {
        let index = i as u32 + 1;
        if let Some(own) = written.member(root, table, index, reader.raw())? {
            let path = format!("{root}.{table}.{index}");
            *member = read(&Reader::new(reader.source(), &path, reader.at(), &own, keys)?)?;
        }
    }
    Ok(members)
}

pub(crate) fn read_servers(
    root: &Reader<'_>,
    written: &Written,
    names: &mut Names,
) -> Result<Vec<Server>, ScenarioError> {
    let mut servers: Vec<Server> = Vec::new();
    for (i, (at, table)) in root.tables("server")?.into_iter().enumerate() {
        let reader = Reader::new(root.source(), &table_path("server", i, table), at, table, &SERVER_KEYS)?;
        let (table, members) = member_names(&reader, servers.len())?;
        let ids = (servers.len()..servers.len() + members.len()).map(HostId::Server).collect();
        names.add(&reader, &table, ids)?;
        let count = members.len();
        let mut wires = read_members(written, &reader, "server", (&table, count), &SERVER_KEYS, read_server)?;
        if let Some(spread) = Spread::read(&reader)? {
            for (i, wire) in wires.iter_mut().enumerate() {
                wire.delay = wire.delay.mul_f64(spread.factor(i, count));
            }
        }
        let pairs = members.into_iter().zip(wires);
        servers.extend(pairs.map(|(name, wire)| Server { name, table: table.clone(), wire }));
    }
    Ok(servers)
}

pub(crate) fn read_stations(
    root: &Reader<'_>,
    written: &Written,
    hop: &LastHop,
    names: &mut Names,
) -> Result<Vec<Station>, ScenarioError> {
    let mut found: Vec<(String, String, Radio)> = Vec::new();
    for (i, (at, table)) in root.tables("station")?.into_iter().enumerate() {
        let reader = Reader::new(root.source(), &table_path("station", i, table), at, table, &STATION_KEYS)?;
        let (table, members) = member_names(&reader, found.len())?;
        let ids = (found.len()..found.len() + members.len()).map(HostId::Station).collect();
        names.add(&reader, &table, ids)?;
        let read = |station: &Reader<'_>| read_radio(station, hop);
        let radios = read_members(written, &reader, "station", (&table, members.len()), &STATION_KEYS, read)?;
        found.extend(members.into_iter().zip(radios).map(|(name, radio)| (name, table.clone(), radio)));
    }
    let count = found.len() as f64;
    let place = |(i, (name, table, radio)): (usize, (String, String, Radio))| Station {
        name,
        table,
        distance: radio.distance,
        angle: radio.angle.unwrap_or(Degrees(360.0 * i as f64 / count)),
        sending: radio.sending,
        edca: radio.edca,
        standard: radio.standard,
        power: radio.power,
        walls: radio.walls,
        snr: radio.snr,
        rate_control: radio.rate_control,
        neighbour: radio.neighbour,
        storage: radio.storage,
    };
    Ok(found.into_iter().enumerate().map(place).collect())
}

/// Path of the i-th table of an array: by its name, else by its number.
fn table_path(root: &str, i: usize, table: &Table) -> String {
    table.text("name").map_or_else(|| format!("{root}.{}", i + 1), |name| format!("{root}.{name}"))
}

pub(crate) fn read_flows(
    root: &Reader<'_>,
    names: &Names,
    (duration, seed): (Span, u64),
    load: &mut LoadTrace<'_>,
) -> Result<Vec<Flow>, ScenarioError> {
    let mut flows: Vec<Flow> = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    for (i, (at, table)) in root.tables("flow")?.into_iter().enumerate() {
        let reader = open(root.source(), &table_path("flow", i, table), at, table)?;
        let name = reader.name()?;
        if seen.iter().any(|other| other == name) {
            return Err(reader.wrong("name", format!("there is already a flow `{name}`; give each its own name")));
        }
        seen.push(name.to_owned());
        let pairs = read_pairs(&reader, names, flows.len())?;
        let (start, within, stop) = read_times(&reader, duration)?;
        let kind = read_kind(&reader, load)?;
        let carrier = read_carrier(&reader, &kind)?;
        let (class, dscp) = read_class(&reader)?;
        let of = pairs.len() as u32;
        flows.extend(pairs.into_iter().enumerate().map(|(copy, (from, to))| Flow {
            name: if of == 1 { name.to_owned() } else { format!("{name}.{}", copy + 1) },
            table: name.to_owned(),
            copy: (copy as u32, of),
            from,
            to,
            kind: kind.clone(),
            carrier,
            class,
            dscp,
            start,
            starts: (start, within),
            stop,
        }));
    }
    flows.iter_mut().for_each(|flow| flow.draw_start(seed));
    Ok(flows)
}

/// Who sends to whom, one pair per copy.
fn read_pairs(flow: &Reader<'_>, names: &Names, already: usize) -> Result<Vec<(HostId, HostId)>, ScenarioError> {
    let end = |key: &str, example: &str| -> Result<Vec<HostId>, ScenarioError> {
        let name = flow.required(key, flow.text(key)?, example)?;
        let none = || flow.wrong(key, format!("there is no host `{name}`; {}", names.nearest(name)));
        names.find(name).ok_or_else(none)
    };
    let (from, to) = (end("from", "\"W1\"")?, end("to", "\"N1\"")?);
    let copies = flow.count("count", 1..=MOST)?;
    let pairs: Vec<(HostId, HostId)> = match (from.len(), to.len()) {
        (1, 1) => vec![(from[0], to[0]); copies.unwrap_or(1) as usize],
        (1, _) => to.into_iter().map(|to| (from[0], to)).collect(),
        (_, 1) => from.into_iter().map(|from| (from, to[0])).collect(),
        (n, m) if n == m => from.into_iter().zip(to).collect(),
        (n, m) => return Err(flow.wrong("to", format!("{n} hosts send to {m}; counted hosts need equal counts"))),
    };
    if copies.is_some_and(|n| n != 1 && n as usize != pairs.len()) {
        let why = format!("between counted hosts there is one flow per pair, {}; leave count out", pairs.len());
        return Err(flow.wrong("count", why));
    }
    if pairs.iter().any(|(from, to)| from == to) {
        return Err(flow.wrong("to", "is the host it comes from; a flow joins two hosts"));
    }
    if already + pairs.len() > MOST as usize {
        return Err(flow.wrong("count", format!("makes more than {MOST} flows")));
    }
    Ok(pairs)
}

/// When a flow starts, how much later its copies may, and when they stop.
fn read_times(flow: &Reader<'_>, duration: Span) -> Result<(Span, Span, Span), ScenarioError> {
    let start = flow.quantity("start")?.unwrap_or(Span::ZERO);
    if start >= duration {
        return Err(flow.wrong("start", format!("{start} is not before the end of the run at {duration}")));
    }
    let stop = flow.quantity("stop")?.unwrap_or(duration);
    if stop <= start {
        return Err(flow.wrong("stop", format!("{stop} is not after the start at {start}")));
    }
    let within = flow.quantity("start_within")?.unwrap_or(Span::ZERO);
    if start + within >= stop.min(duration) {
        return Err(flow.wrong("start_within", format!("{within} after {start} it may have to stop already")));
    }
    Ok((start, within, stop.min(duration)))
}

/// Whether both are the same hosts and flows in the same order.
pub(crate) fn same_shape(before: &super::Scenario, after: &super::Scenario) -> bool {
    let flows = |s: &super::Scenario| {
        s.flows.iter().map(|f| (f.name.clone(), f.from, f.to, f.kind.name(), f.start, f.stop)).collect::<Vec<_>>()
    };
    let hosts = |s: &super::Scenario| {
        let servers = s.servers.iter().map(|h| h.name.clone());
        servers
            .chain(s.stations.iter().map(|h| format!("{} {}", h.name, super::air::word(h.standard))))
            .collect::<Vec<_>>()
    };
    hosts(before) == hosts(after)
        && flows(before) == flows(after)
        && std::mem::discriminant(&before.hop) == std::mem::discriminant(&after.hop)
}

/// How much the changes of a scenario hold, so that a short file cannot ask for endless memory.
pub(crate) fn changed_size(scenario: &super::Scenario, changes: usize) -> usize {
    changes.saturating_mul(1 + scenario.servers.len() + scenario.stations.len() + scenario.flows.len())
}
