//! Queues of the access point and of the stations: the discipline, its limit, its own keys.

use lasthop_core::units::{Bytes, Span};

use super::ScenarioError;
use super::read::Reader;
use super::wired::MOST_PACKETS;

/// A queue in front of the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Who leaves first, and who is dropped.
    pub discipline: Discipline,
    /// Most packets it holds.
    pub limit: u32,
}

/// Queue disciplines and the keys of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// First in, first out, drop-tail.
    Fifo,
    /// Controlled delay (RFC 8289).
    Codel {
        /// Standing sojourn it allows.
        target: Span,
        /// How long the sojourn must stand above it.
        interval: Span,
    },
    /// Flow queues with CoDel each (RFC 8290).
    FqCodel {
        /// Standing sojourn it allows.
        target: Span,
        /// How long the sojourn must stand above it.
        interval: Span,
        /// Bytes a flow may send per round.
        quantum: Bytes,
        /// Number of flow queues.
        flows: u32,
    },
    /// Deficit round robin.
    Drr {
        /// Bytes a flow may send per round.
        quantum: Bytes,
    },
    /// Credit-based home access point (CHAP).
    Chap {
        /// I: credit of a new flow and of each boost, in channel time.
        credit: Span,
    },
}

impl Discipline {
    /// The word of the file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Codel { .. } => "codel",
            Self::FqCodel { .. } => "fq_codel",
            Self::Drr { .. } => "drr",
            Self::Chap { .. } => "chap",
        }
    }
}

/// Limit where none is given, in packets: the interface queue of the papers' ns-2 runs.
pub(crate) const LIMIT_PACKETS: u32 = 50;

/// The queue at `key` of the last hop's table; `limit` where it gives none.
pub(crate) fn read_queue(wifi: &Reader<'_>, key: &str, limit: u32) -> Result<Queue, ScenarioError> {
    let Some((at, table)) = wifi.inner(key)? else {
        return Ok(Queue { discipline: Discipline::Fifo, limit });
    };
    let own: &[&str] = match table.text("kind").unwrap_or("fifo") {
        "codel" => &["kind", "limit", "target", "interval"],
        "fq_codel" => &["kind", "limit", "target", "interval", "quantum", "flows"],
        "drr" => &["kind", "limit", "quantum"],
        "chap" => &["kind", "limit", "credit"],
        _ => &["kind", "limit"],
    };
    let all = ["target", "interval", "quantum", "flows", "credit"];
    let queue = Reader::of_kind(wifi.source(), &wifi.path_of(key), at, table, own, &all)?;
    let target = || queue.positive("target").map(|t| t.unwrap_or(Span::from_millis(5)));
    let interval = || queue.positive("interval").map(|t| t.unwrap_or(Span::from_millis(100)));
    let quantum = || queue.positive("quantum").map(|q| q.unwrap_or(Bytes(1514)));
    let words = [("fifo", 0), ("codel", 1), ("fq_codel", 2), ("drr", 3), ("chap", 4)];
    let discipline = match queue.choice("kind", &words)?.unwrap_or(0) {
        1 => Discipline::Codel { target: target()?, interval: interval()? },
        2 => Discipline::FqCodel {
            target: target()?,
            interval: interval()?,
            quantum: quantum()?,
            flows: queue.count("flows", 1..=65_536)?.unwrap_or(1024),
        },
        3 => Discipline::Drr { quantum: quantum()? },
        4 => Discipline::Chap { credit: queue.positive("credit")?.unwrap_or(Span::from_millis(4)) },
        _ => Discipline::Fifo,
    };
    Ok(Queue { discipline, limit: queue.count("limit", 1..=MOST_PACKETS)?.unwrap_or(limit) })
}
