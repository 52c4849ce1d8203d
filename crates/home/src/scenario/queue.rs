//! Queues of the access point and of the stations: the discipline, its limit, its own keys.

use lasthop_core::aqm::{Discipline, chap, codel, drr, flow_queues, mac80211, red};

use lasthop_core::packet::FlowKind;
use lasthop_core::units::{Bytes, Span};
use lasthop_medium::Standard;

use super::ScenarioError;
use super::read::{Given, Reader};
use super::wired::MOST_PACKETS;

/// A queue in front of the channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Queue {
    /// Who leaves first, and who is dropped.
    pub discipline: Discipline,
    /// Most packets it holds.
    pub limit: u32,
}

/// Limit where none is given, in packets: the interface queue of the papers' ns-2 runs.
pub(crate) const LIMIT_PACKETS: u32 = 50;

/// The same by standard, of the access point and of stations. With n, ac and ax, where what is in the air counts: as long as an
/// interface of Linux has it (`txqueuelen`), and two windows of block acks, so that aggregates are as long as they may be.
pub(crate) const fn limit_packets(standard: Standard) -> (u32, u32) {
    match standard {
        Standard::B | Standard::G => (LIMIT_PACKETS, LIMIT_PACKETS),
        Standard::N | Standard::Ac => (1000, 128),
        Standard::Ax => (1000, 512),
    }
}

/// Least and most memory of a queue that counts it.
const MEMORY: std::ops::RangeInclusive<u64> = 1 << 16..=1 << 30;

/// Longest time that a queue's key may name; far beyond what makes sense, and sums stay far from their end.
const LONGEST: Span = Span::from_secs(1000);

/// Keys of every kind; all have `kind` and `limit`.
const KINDS: [(&str, &[&str]); 7] = [
    ("fifo", &["kind", "limit"]),
    ("codel", &["kind", "limit", "target", "interval"]),
    ("fq_codel", &["kind", "limit", "target", "interval", "quantum", "flows", "flow"]),
    ("red", &["kind", "limit", "min", "max", "max_p", "weight", "gentle", "packet_time"]),
    ("drr", &["kind", "limit", "quantum", "target", "interval", "flow_quantum", "flows", "flow"]),
    (
        "mac80211",
        &[
            "kind",
            "limit",
            "aql",
            "airtime_fairness",
            "quantum",
            "target",
            "interval",
            "flow_quantum",
            "flows",
            "memory",
            "flow",
        ],
    ),
    ("chap", &["kind", "limit", "increment", "flow", "active", "flows", "new_credit", "burst"]),
];

/// Keys that some kind has beside `kind` and `limit`.
const KEYS_OF_SOME_KIND: [&str; 19] = [
    "target",
    "interval",
    "quantum",
    "flow_quantum",
    "flows",
    "flow",
    "min",
    "max",
    "max_p",
    "weight",
    "gentle",
    "packet_time",
    "increment",
    "active",
    "new_credit",
    "burst",
    "aql",
    "airtime_fairness",
    "memory",
];

/// The queue at `key` of the last hop's table; `limit` where it gives none.
pub(crate) fn read_queue(wifi: &Reader<'_>, key: &str, limit: u32) -> Result<Queue, ScenarioError> {
    let Some((at, table)) = wifi.inner(key)? else {
        return Ok(Queue { discipline: Discipline::Fifo, limit });
    };
    let kind = table.text("kind").unwrap_or("fifo");
    let own = KINDS.iter().find(|(word, _)| *word == kind).map_or(KINDS[0].1, |(_, own)| *own);
    let queue = Reader::of_kind(wifi.source(), &wifi.path_of(key), at, table, own, &KEYS_OF_SOME_KIND)?;
    let words: Vec<(&str, &str)> = KINDS.iter().map(|(word, _)| (*word, *word)).collect();
    let discipline = match queue.choice("kind", &words)?.unwrap_or("fifo") {
        "codel" => Discipline::Codel(read_codel(&queue, codel::Params::default())?),
        "fq_codel" => {
            Discipline::FqCodel(read_flows(&queue, "quantum", flow_queues::Params::default())?, read_flow(&queue)?)
        }
        "red" => Discipline::Red(read_red(&queue)?),
        "drr" => Discipline::Drr(read_drr(&queue)?, read_flow(&queue)?),
        "mac80211" => Discipline::Mac80211(read_mac80211(&queue)?, read_flow(&queue)?),
        "chap" => Discipline::Chap(read_chap(&queue)?, read_flow(&queue)?),
        _ => Discipline::Fifo,
    };
    let limit = if matches!(discipline, Discipline::Mac80211(..)) { mac80211::LIMIT_PACKETS } else { limit };
    Ok(Queue { discipline, limit: queue.count("limit", 1..=MOST_PACKETS)?.unwrap_or(limit) })
}

fn span(queue: &Reader<'_>, key: &str, usual: Span) -> Result<Span, ScenarioError> {
    match queue.positive::<Span>(key)? {
        Some(long) if long > LONGEST => {
            Err(queue.wrong(key, format!("{long} is too long; write a time up to {LONGEST}")))
        }
        given => Ok(given.unwrap_or(usual)),
    }
}

fn read_flow(queue: &Reader<'_>) -> Result<FlowKind, ScenarioError> {
    let words = [("connection", FlowKind::Connection), ("hosts", FlowKind::Hosts)];
    Ok(queue.choice("flow", &words)?.unwrap_or_default())
}

fn read_codel(queue: &Reader<'_>, usual: codel::Params) -> Result<codel::Params, ScenarioError> {
    let (target, interval) = (span(queue, "target", usual.target)?, span(queue, "interval", usual.interval)?);
    Ok(codel::Params { target, interval, ..usual })
}

fn read_flows(
    queue: &Reader<'_>,
    quantum: &str,
    usual: flow_queues::Params,
) -> Result<flow_queues::Params, ScenarioError> {
    let bytes = queue.positive::<Bytes>(quantum)?.unwrap_or(Bytes(u64::from(usual.quantum)));
    if bytes.0 > 1 << 20 {
        return Err(queue.wrong(quantum, format!("{bytes} is no turn of a flow; write 1B to 1MiB")));
    }
    Ok(flow_queues::Params {
        codel: read_codel(queue, usual.codel)?,
        quantum: bytes.0 as u32,
        flows: queue.count("flows", 1..=65_536)?.unwrap_or(usual.flows),
    })
}

fn read_drr(queue: &Reader<'_>) -> Result<drr::Params, ScenarioError> {
    let usual = drr::Params::default();
    let flows = read_flows(queue, "flow_quantum", usual.flows)?;
    Ok(drr::Params { quantum: span(queue, "quantum", usual.quantum)?, flows })
}

fn read_mac80211(queue: &Reader<'_>) -> Result<mac80211::Params, ScenarioError> {
    let usual = mac80211::Params::default();
    let memory = queue.positive::<Bytes>("memory")?.unwrap_or(Bytes(usual.memory));
    if !MEMORY.contains(&memory.0) {
        let (least, most) = (Bytes(*MEMORY.start()), Bytes(*MEMORY.end()));
        return Err(queue.wrong("memory", format!("{memory} is no memory of a queue; write {least} to {most}")));
    }
    Ok(mac80211::Params {
        quantum: span(queue, "quantum", usual.quantum)?,
        airtime_fairness: queue.flag("airtime_fairness")?.unwrap_or(usual.airtime_fairness),
        aql: read_aql(queue)?,
        memory: memory.0,
        flows: read_flows(queue, "flow_quantum", usual.flows)?,
    })
}

fn read_aql(queue: &Reader<'_>) -> Result<Option<mac80211::Aql>, ScenarioError> {
    let usual = mac80211::Aql::default();
    let aql = match queue.table_or_off("aql", &["low", "high", "threshold"])? {
        Given::Nothing => return Ok(Some(usual)),
        Given::Off => return Ok(None),
        Given::Table(aql) => aql,
    };
    let given = mac80211::Aql {
        low: span(&aql, "low", usual.low)?,
        high: span(&aql, "high", usual.high)?,
        threshold: span(&aql, "threshold", usual.threshold)?,
    };
    if given.high < given.low {
        return Err(aql.wrong("high", format!("{} is below `low` = {}; write low <= high", given.high, given.low)));
    }
    Ok(Some(given))
}

fn read_red(queue: &Reader<'_>) -> Result<red::Params, ScenarioError> {
    let usual = red::Params::default();
    let most = f64::from(MOST_PACKETS);
    let params = red::Params {
        min: queue.number("min", 0.0..=most)?.unwrap_or(usual.min),
        max: queue.number("max", 0.0..=most)?.unwrap_or(usual.max),
        max_p: queue.number("max_p", 0.0..=1.0)?.unwrap_or(usual.max_p),
        weight: queue.number("weight", 0.0..=1.0)?.unwrap_or(usual.weight),
        gentle: queue.flag("gentle")?.unwrap_or(usual.gentle),
        packet_time: span(queue, "packet_time", usual.packet_time)?,
        seed: usual.seed,
    };
    if params.max <= params.min {
        let why = format!("{} packets are not above `min` = {}; write min < max", params.max, params.min);
        return Err(queue.wrong("max", why));
    }
    Ok(params)
}

fn read_chap(queue: &Reader<'_>) -> Result<chap::Params, ScenarioError> {
    let usual = chap::Params::default();
    Ok(chap::Params {
        increment: span(queue, "increment", usual.increment)?,
        active: span(queue, "active", usual.active)?,
        flows: queue.count("flows", 1..=1_000_000)?.map_or(usual.flows, |flows| flows as usize),
        new_credit: span(queue, "new_credit", usual.new_credit)?,
        burst: queue.count("burst", 1..=10_000)?.unwrap_or(usual.burst),
    })
}

/// Every kind with its keys, for the test that holds the schema and this reader together.
#[cfg(test)]
pub(super) fn kinds() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    KINDS.into_iter()
}
